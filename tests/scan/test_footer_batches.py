"""Footers of many files, read and pruned together: plans equal those of opening each file by itself."""

from __future__ import annotations

import itertools
import os
import random
import struct
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pageseek._core import metadata as core

import pageseek as ps
from pageseek.io import tails as ends_of_files
from pageseek.scan import footer_batches as footer_batches
from pageseek.scan import footer_table
from support.batch_comparison import check, kept_of, one_by_one, opened, outcome, planned
from support.bloom import bitset, bloomed, header
from support.bounds import NAN, exact, i32, stats
from support.opened import open_metadata
from support.writer import BYTE_ARRAY, DOUBLE, I32, I64, INT32, Column, Struct, write

N = 40  # files, unless there have to be many


@pytest.fixture(autouse=True)
def _no_cache() -> Iterator[None]:
    ps.clear_cache()
    yield
    ps.clear_cache()


def simple(folder: Path, n: int = N, rows: int = 10) -> ps.Scan:
    folder.mkdir(exist_ok=True)
    for i in range(n):
        table = pa.table(
            {
                "id": pa.array(range(i * rows, (i + 1) * rows), pa.int64()),
                "k": pa.array([i % 5] * rows, pa.int32()),
                "s": [f"s{i % 7}"] * rows,
            }
        )
        pq.write_table(table, folder / f"{i:05}.parquet")
    return ps.scan(str(folder))


# ---- the same answers ------------------------------------------------------------------------------

CONDITIONS: list[str | None] = [
    None,
    "id = 35",
    "id = -1",
    "id < 100",
    "id >= 100 and k = 3",
    "k = 3",
    "not k = 3",
    "k = 3 or s = 's1'",
    "s like 's1%'",
    "s in ('s1', 's2', 'x')",
    "s is null",
    "s is not null",
    "id = k",
    "k > 100",
]


@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.parametrize("columns", [None, ["s"], []])
def test_plans_are_those_of_files_opened_one_by_one(
    tmp_path: Path, condition: str | None, columns: list[str] | None
) -> None:
    scan = simple(tmp_path)
    if columns is not None:
        scan = scan.select(columns)
    if condition is not None:
        scan = scan.filter(condition)
    check(scan)


@pytest.mark.parametrize("condition", [None, "k = 3", "id > 95", "s = 's1' and id <> 7"])
def test_so_are_those_with_a_limit_rows_that_are_taken_and_numbers(
    tmp_path: Path, condition: str | None
) -> None:
    scan = simple(tmp_path)
    scan = scan if condition is None else scan.filter(condition)
    for limit in (0, 1, 10, 25, 95, 10_000):
        check(scan.limit(limit))
    check(scan.take([3, 150, 151, 399]))
    check(scan.take([150, 400]))  # there is no row 400
    check(scan.take(range(20, 200)).limit(50))
    check(scan.with_row_number())


def test_only_files_in_doubt_are_opened(tmp_path: Path) -> None:
    scan = simple(tmp_path, 300)
    scan.plan()
    assert opened() == 1
    ps.clear_cache()
    scan.filter(ps.col("id") == 777).plan()  # in doubt, and nothing but its rows can tell
    assert opened() == 1
    ps.clear_cache()
    assert scan.filter(ps.col("id") == 777).to_table().num_rows == 1
    assert opened() == 2
    ps.clear_cache()
    scan.filter(ps.col("k") == 3).plan()  # every row of a file, or none
    assert opened() == 1
    ps.clear_cache()
    assert scan.limit(25).count_rows() == 25
    assert opened() <= 2


def test_a_limit_ends_the_reading_of_footers(tmp_path: Path) -> None:
    scan = simple(tmp_path, 300)
    report = scan.limit(25).explain()
    assert report.requests < 40
    assert report.to_dict()["files"]["pruned_by"] == {"limit": 297}
    report = scan.filter(ps.col("k") == 4).limit(1).explain()
    assert report.requests < 40


def test_folders_are_columns(tmp_path: Path) -> None:
    for i, year in itertools.product(range(12), (2023, 2024, 2025)):
        (tmp_path / f"year={year}" / f"b={i % 2}").mkdir(exist_ok=True, parents=True)
        pq.write_table(
            pa.table({"id": [i, i + 1]}), tmp_path / f"year={year}" / f"b={i % 2}" / f"{i}.parquet"
        )
    scan = ps.scan(str(tmp_path))
    for condition in (None, "year = 2024", "id = 3", "id = 3 or year = 2023", "b = 1 and id > 4"):
        check(scan if condition is None else scan.filter(condition))
        check((scan if condition is None else scan.filter(condition)).with_row_number())
    for condition, n in (
        ("id = -1", 1),
        ("year = 2024 and id = -1", 1),
        ("id = -1 or year = 7", 3),
    ):
        ps.clear_cache()  # one file is opened for each of the folders that the filter tells apart
        scan.filter(condition).plan()
        assert opened() == n


# ---- statistics as files may have them -------------------------------------------------------------


def odd_file(seed: int) -> bytes:
    """A file of one or two row groups whose statistics may be missing, odd, old, or lies."""
    draw = random.Random(seed)

    def of_x(low: int, high: int) -> Callable[[Struct], None] | None:
        return draw.choice([
            None, None, None,
            stats(min_value=None, max_value=None, min=i32(low), max=i32(high)),
            stats(min_value=i32(high + 1), max_value=i32(low)),
            stats(min_value=b"\1\2\3"),
            stats(max_value=None),
            stats(nulls=None),
            stats(nulls=I64(1_000)),
            stats(min_value=i32(low - 40), max_value=i32(high + 40)),
            stats(min_value=i32(low + 1), max_value=i32(low + 1)),
            lambda meta: meta.pop(12),
        ])  # fmt: skip

    def of_d() -> Callable[[Struct], None] | None:
        nan, one = struct.pack("<d", NAN), struct.pack("<d", 1.0)
        return draw.choice([
            None, None, stats(min_value=nan), stats(max_value=nan), stats(min_value=one, max_value=one),
            stats(nans=I64(0)), stats(nans=I64(50)),
        ])  # fmt: skip

    def of_s() -> Callable[[Struct], None] | None:
        return draw.choice([
            None, None, stats(min_value=b"", max_value=b"b"), stats(min_value=b"b", max_value=b"a"),
            exact(False, False), stats(min=b"a", max=b"a", min_value=None, max_value=None),
        ])  # fmt: skip

    groups = []
    for _ in range(draw.choice([1, 1, 1, 2])):
        n, low = draw.choice([1, 4, 9]), draw.randrange(-5, 30)
        x = [low + draw.randrange(draw.choice([1, 6])) for _ in range(n)]
        d = [draw.choice([0.0, -0.0, 1.5, NAN, low / 2]) for _ in range(n)]
        s = [draw.choice([b"a", b"ab", b"b", "é".encode(), None]) for _ in range(n)]
        if draw.random() < 0.2:
            s = [None] * n
        nans, told = draw.random() < 0.5, draw.random() < 0.9
        edit_s = of_s() if told else None
        groups.append([
            Column("x", INT32, x, edit_chunk=of_x(min(x), max(x)), optional=False),
            Column("d", DOUBLE, d, edit_chunk=of_d(), nan_count=nans, optional=False),
            Column("s", BYTE_ARRAY, s, edit_chunk=edit_s, converted=0, optional=True, statistics=told),
        ])  # fmt: skip
    writer = draw.choice([
        b"pageseek-tests version 1.0.0", b"pageseek-tests version 1.0.0",
        b"parquet-mr version 1.8.0", b"parquet-mr version 1.12.0 (build abc)", b"parquet-cpp-arrow version 21.0.0", None,
    ])  # fmt: skip
    return write(
        *groups,
        created_by=writer,
        column_orders=draw.choice(["type", "type", "type", None]),
        key_values=draw.choice([None, {b"k": b"v"}]),
    )


ODD_CONDITIONS = [
    "x = 7", "x <> 7", "x < 5", "x >= 20", "not x between 3 and 9", "x in (1, 5, 9)", "x is null", "x is not null",
    "d = 0", "d < 1", "d > 1", "is_nan(d)", "not d = 1.5", "d <> 1.5",
    "s = 'a'", "s > 'a'", "s like 'a%'", "s is null", "s is not null", "not s = 'b'",
    "x < 5 or d > 1", "x < 12 and s = 'a'", "not (x < 5 and s is null)",
]  # fmt: skip


@pytest.mark.parametrize("nan", ["ieee", "spark"])
@pytest.mark.parametrize("seed", range(4))
def test_odd_statistics_are_judged_as_those_of_one_file(
    tmp_path: Path, seed: int, nan: str
) -> None:
    for i in range(N):
        (tmp_path / f"{i:03}.parquet").write_bytes(odd_file(1000 * seed + i))
    scan = ps.scan(str(tmp_path), nan=nan)
    taken = 0
    for condition in ODD_CONDITIONS:
        one = scan.filter(condition)
        ps.clear_cache()
        found = planned(one)
        taken += N - opened()
        with one_by_one():
            assert found == planned(one), condition
        found = outcome(lambda one=one: one.select("x").limit(9).to_table())  # type: ignore[misc]
        with one_by_one():
            assert found == outcome(lambda one=one: one.select("x").limit(9).to_table())  # type: ignore[misc]
    assert taken > N  # of those that differ least


@pytest.mark.parametrize("prune", [False, ["statistics"], ["column_index"]])
def test_mechanisms_can_be_chosen(tmp_path: Path, prune: Any) -> None:
    simple(tmp_path)
    check(ps.scan(str(tmp_path), filter="id = 35", prune=prune))


def searchable_file(seed: int) -> bytes:
    """A file of which more than statistics may tell: pages, an index of them, dictionaries, a Bloom filter."""
    draw = random.Random(seed)
    n = draw.choice([4, 60, 400])
    pages = draw.choice(
        [[n], [n], [n // 2, n - n // 2], [n // 4] * 3 + [n - n // 4 * 3], [1, n - 1]]
    )
    few = draw.choice([2, 5, 1000])
    x = [0, 100_000, *(2 * draw.randrange(few) for _ in range(n - 2))]
    s = [b"%05d" % draw.randrange(few) if draw.random() < 0.9 else None for _ in range(n)]
    coded = ["dictionary" if draw.random() < 0.5 else "plain"] * len(pages)
    knobs = {"column_index": draw.random() < 0.5, "offset_index": draw.random() < 0.7}
    told = {"encoding_stats": draw.random() < 0.8, "null_count": draw.random() < 0.8}
    first = Column("x", INT32, x, pages, encodings=coded, optional=False, **knobs, **told)
    rest = (
        Column("s", BYTE_ARRAY, s, draw.choice([pages, None]), encodings=coded[0] if len(pages) == 1 else "plain", converted=0, optional=True, **told),
        Column("row", INT32, list(range(n)), optional=False, **told),
    )  # fmt: skip
    if rest[0].pages is not None and len(rest[0].pages) != len(rest[0].encodings):
        rest[0].encodings = ["plain"] * len(rest[0].pages)
    if draw.random() < 0.3:
        made = header(1024) + bitset([i32(value) for value in x])
        return bloomed(first, made, others=rest)
    return write([first, *rest])


SEARCHES = [
    "x = 1", "x = 8", "x in (1, 3)", "x in (1, 8)", "x > 99000", "not x = 8", "x = 1 or row = 3", "x = 1 and s = 'x'",
    "s = '00001'", "s = '000015'", "s is null", "s is not null and x = 1", "s like '0000%'", "x = row", "x = 7 or x = row",
]  # fmt: skip


@pytest.mark.parametrize("seed", range(3))
def test_where_the_footer_has_the_last_word_no_mechanism_could_add_to_it(
    tmp_path: Path, seed: int
) -> None:
    """Files that are opened are pruned at least as well: with their tails in memory more indexes cost nothing."""
    for i in range(N):
        (tmp_path / f"{i:03}.parquet").write_bytes(searchable_file(1000 * seed + i))
    scan = ps.scan(str(tmp_path))
    taken = 0
    for condition in SEARCHES:
        for columns in (["x", "s", "row"], ["row"], []):
            one = scan.filter(condition).select(columns)
            ps.clear_cache()
            found = kept_of(one.plan())
            taken += N - opened()
            with one_by_one():
                assert found <= kept_of(one.plan()), condition
        ps.clear_cache()
        found = outcome(one.to_table)
        with one_by_one():
            assert found == outcome(one.to_table)
    assert taken > 2 * N


def test_bloom_filters_are_asked(tmp_path: Path) -> None:
    x = [0, 2, 4, 6, 99] * 800
    made = header(1024) + bitset([i32(value) for value in set(x)])
    for i in range(N):
        column = Column("x", INT32, x, optional=False)
        (tmp_path / f"{i:03}.parquet").write_bytes(
            bloomed(column, made) if i % 2 else write([column])
        )
    scan = ps.scan(str(tmp_path), filter="x = 3")
    check(scan)
    assert scan.plan().report.files.pruned_by == {"bloom_filter": N // 2}


def test_pruners_that_were_registered_are_asked(tmp_path: Path) -> None:
    class Denies:
        name, cheap = "denies", True

        def cost(self, site: Any, test: Any) -> int | None:
            return 0

        def judge(self, site: Any, tests: Any) -> Any:
            yield from ()
            none = ps.RowRanges.empty()
            return [ps.prune.Proof(none, none) for _ in tests]

    scan = simple(tmp_path)
    pruner = Denies()
    ps.register_pruner(pruner)
    try:
        asked = ps.scan(str(tmp_path), filter="id = 35").plan()
    finally:
        ps.unregister_pruner("denies")
    assert (asked.files, asked.report.files.pruned_by["denies"]) == ((), 1)
    assert len(scan.filter("id = 35").plan().files) == 1


# ---- files that are not like the others ------------------------------------------------------------


def with_an_odd_one(folder: Path, at: int, change: Callable[[Path], None]) -> ps.Scan:
    simple(folder, 130)
    change(folder / f"{at:05}.parquet")
    return ps.scan(str(folder))


def wider(path: Path) -> None:
    pq.write_table(pa.table({"id": [1, 5], "k": pa.array([1, 2], pa.int64()), "new": [1, 2]}), path)


def narrower(path: Path) -> None:
    pq.write_table(pa.table({"id": pa.array([5, 6], pa.int8())}), path)


def unfit(path: Path) -> None:
    pq.write_table(pa.table({"id": ["a"], "k": [1]}), path)


def by_another_writer(path: Path) -> None:
    values = Column("id", INT32, [5, 6], optional=False)
    path.write_bytes(write([values], created_by=b"parquet-mr version 1.2.0"))


def empty(path: Path) -> None:
    pq.write_table(pq.read_table(path).slice(0, 0), path)


def of_many_groups(path: Path) -> None:
    pq.write_table(pa.concat_tables([pq.read_table(path)] * 5), path, row_group_size=7)


def described(path: Path) -> None:
    table = pq.read_table(path)
    pq.write_table(table.replace_schema_metadata({"about": "x" * 9000}), path)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-20])


def garbled(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[-60:-12] = bytes(48)
    path.write_bytes(data)


def tiny(path: Path) -> None:
    path.write_bytes(b"PAR1")


def long_footer_claimed(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[:-8] + (1 << 30).to_bytes(4, "little") + b"PAR1")


def gone(path: Path) -> None:
    path.unlink()
    path.symlink_to(path.with_suffix(".nowhere"))


def encrypted(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-4] + b"PARE")


def outside(path: Path) -> None:
    def edit(meta: Struct) -> None:
        meta[9] = type(meta[9])(1 << 40)

    numbers = Column("id", INT32, [5, 6], optional=False, edit_chunk=edit)
    path.write_bytes(write([numbers]))


def of_rows_that_are_not_there(path: Path) -> None:
    def edit(footer: Struct) -> None:
        footer[3] = type(footer[3])(99)

    path.write_bytes(write([Column("id", INT32, [5, 6], optional=False)], edit_footer=edit))


ODD_ONES = [
    wider, narrower, unfit, by_another_writer, empty, of_many_groups, described, cut, garbled, tiny,
    long_footer_claimed, encrypted, outside, of_rows_that_are_not_there,
]  # fmt: skip


@pytest.mark.parametrize("change", ODD_ONES, ids=lambda change: str(change.__name__))
@pytest.mark.parametrize("at", [0, 1, 77, 129])
def test_an_odd_file_among_many(tmp_path: Path, at: int, change: Callable[[Path], None]) -> None:
    scan = with_an_odd_one(tmp_path, at, change)
    for condition in (None, "id = 5", "id = 5000", "id >= 1200"):
        one = scan if condition is None else scan.filter(condition)
        found = planned(one), planned(one.select("id").limit(3))
        with one_by_one():
            assert found == (planned(one), planned(one.select("id").limit(3)))
        found = outcome(one.select("id").to_table)
        with one_by_one():
            assert found == outcome(one.select("id").to_table)
    if change in (wider, described, of_many_groups):
        ps.clear_cache()
        scan.plan()
        assert opened() <= 3


def meta(number: int, value: Any) -> Callable[[Struct], None]:
    """A field of a ColumnChunk's metadata becomes another."""

    def edit(chunk: Struct) -> None:
        chunk[3][number] = value

    return edit


DAMAGE: dict[str, Callable[[Struct], Any]] = {
    "in another file": lambda chunk: chunk.update({1: b"other.parquet"}),
    "encrypted": lambda chunk: chunk.update({8: {1: {}}}),
    "without metadata": lambda chunk: chunk.pop(3),
    "of another type": meta(1, I32(DOUBLE)),
    "of other values": meta(5, I64(3)),
    "behind the end": meta(9, I64(1 << 40)),
    "before the start": meta(9, I64(2)),
    "too long": meta(7, I64(1 << 20)),
    "much too long": meta(7, I64((1 << 63) - 1)),
    "of negative size": meta(7, I64(-5)),
    "with a dictionary outside": meta(11, I64(1)),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_chunk_among_many(tmp_path: Path, damage: str) -> None:
    for i in range(N):
        x = Column("x", INT32, [i, i + 1], optional=False)
        y = Column("y", INT32, [i, i + 1], optional=False)
        if i == 30:
            y.edit_column = DAMAGE[damage]
        (tmp_path / f"{i:02}.parquet").write_bytes(write([x, y]))
    scan = ps.scan(str(tmp_path))
    with pytest.raises(ps.PageseekError, match=r"30\.parquet.*'y'"):
        scan.plan()
    for condition in (None, "x = 5", "x >= 30", "y = 31", "y >= 0"):
        check(scan if condition is None else scan.filter(condition))
    check(scan.select("x"))


def test_a_file_that_is_gone(tmp_path: Path) -> None:
    scan = simple(tmp_path)
    (tmp_path / "00020.parquet").unlink()
    with pytest.raises(FileNotFoundError, match="00020"):
        scan.plan()
    assert scan.limit(100).to_table().num_rows == 100  # those before are enough


def test_files_of_several_kinds_in_turns(tmp_path: Path) -> None:
    for i in range(200):
        names = ["id", "a", "b", "c"][: 1 + i % 4]
        pq.write_table(pa.table({name: [i, i + 1] for name in names}), tmp_path / f"{i:03}.parquet")
    scan = ps.scan(str(tmp_path))
    check(scan)
    check(scan.filter("c = 7 or id = 2"))
    ps.clear_cache()
    scan.filter("id = -1").plan()
    assert opened() == 4


def test_files_that_all_differ_are_no_reason_to_read_ahead(tmp_path: Path) -> None:
    for i in range(150):
        pq.write_table(pa.table({"id": [i], f"c{i}": [i]}), tmp_path / f"{i:03}.parquet")
    scan = ps.scan(str(tmp_path))
    check(scan.filter("id = 7"))
    with one_by_one():
        alone = scan.filter("id = 7").explain().requests
    assert scan.filter("id = 7").explain().requests < alone + 100  # many are left alone


def test_stored_schemas_that_differ_in_remarks_only(tmp_path: Path) -> None:
    when = pa.timestamp("us", "Europe/Berlin")
    for i in range(60):
        fields = [
            pa.field("id", pa.int64()),
            pa.field("t", when if i % 20 != 7 else pa.timestamp("us", "UTC")),
        ]
        if i == 33:
            fields[0] = fields[0].with_metadata({"about": "it"})
        schema = pa.schema(fields, {"pandas": f'{{"stop": {i**9}}}'})
        table = pa.table(
            {"id": [i, i + 1], "t": pa.array([i, None], pa.int64()).cast(fields[1].type)},
            schema=schema,
        )
        pq.write_table(table, tmp_path / f"{i:02}.parquet")
    scan = ps.scan(str(tmp_path)).select("id")
    check(scan)
    check(scan.filter("id = 12"))
    ps.clear_cache()
    scan.filter("id = -1").plan()
    assert opened() == 3  # one of each zone, and the one with a remark on a column
    check(ps.scan(str(tmp_path)))


def test_long_footers_are_read_again_only_once(tmp_path: Path) -> None:
    for i in range(30):
        pq.write_table(
            pa.table({f"column_{k}": [i] for k in range(200)}), tmp_path / f"{i}.parquet"
        )
    scan = ps.scan(str(tmp_path)).select("column_7")
    check(scan)
    ps.clear_cache()
    assert scan.explain().requests <= 30 + 3


def test_one_long_footer_does_not_make_all_reads_long(tmp_path: Path) -> None:
    noise = random.Random(0).randbytes(50_000)
    for i in range(60):
        table = pa.table({"id": [i, i + 1], "b": [noise, noise[::-1]]})
        if i == 5:
            table = table.replace_schema_metadata({"about": "x" * 30_000})
        pq.write_table(table, tmp_path / f"{i:02}.parquet")
    report = ps.scan(str(tmp_path)).explain()
    assert report.bytes["metadata"] < 60 * ends_of_files.TAIL + 10 * 90_000


def test_what_is_read_as_a_whole_and_stays_open_is_opened_once(tmp_path: Path) -> None:
    scan = simple(tmp_path)
    assert scan.to_table().num_rows == 10 * N
    assert (ps.cache_info().files, opened()) == (N, N)


def test_more_row_groups_than_there_is_room_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for i in range(20):
        pq.write_table(
            pa.table({"id": range(i, i + 10), "x": [1] * 10}),
            tmp_path / f"{i:02}.parquet",
            row_group_size=10 if i % 5 else 1,
        )
    monkeypatch.setattr(footer_table, "RECORDS", 22)
    scan = ps.scan(str(tmp_path))
    check(scan)
    check(scan.filter("id = 12"))


# ---- changes, the cache, descriptors ---------------------------------------------------------------


def test_a_file_that_was_replaced_is_noticed(tmp_path: Path) -> None:
    scan = simple(tmp_path, 100)
    plan = scan.filter("id = 505").plan()
    assert [file.source.path[-13:] for file in plan.files] == ["00050.parquet"]
    path = tmp_path / "00050.parquet"
    pq.write_table(pa.table({"id": [1], "k": pa.array([2], pa.int32()), "s": ["x"]}), path)
    assert scan.filter("id = 505").plan().files == ()
    assert scan.filter("id = 505").to_table().num_rows == 0
    assert scan.filter("id = 1").to_table().num_rows == 2
    with pytest.raises(ps.FileChangedError, match="00050"):
        list(plan.execute())


def test_a_file_written_over_in_place_is_noticed_by_its_time(tmp_path: Path) -> None:
    scan = simple(tmp_path, 100)
    before = scan.plan()
    path = tmp_path / "00050.parquet"
    data = path.read_bytes()
    path.write_bytes(data)
    os.utime(path, ns=(1, 1))
    after = scan.plan()
    changed = [a.source.path for a, b in zip(before.files, after.files, strict=True) if a != b]
    assert changed == [str(path)]
    with pytest.raises(ps.FileChangedError, match="00050"):
        list(before.execute())


def test_a_file_that_changes_between_its_footer_and_its_opening(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    simple(tmp_path, 100)
    path = tmp_path / "00050.parquet"
    read = ends_of_files.read_ends

    def replaced(names: Any, start: int, places: Any, *how: Any) -> Any:
        found = read(names, start, places, *how)
        if str(path) in names.paths[start : start + len(places)]:
            pq.write_table(pa.table({"id": [505, 505], "z": [1, 2]}), path)
        return found

    monkeypatch.setattr(ends_of_files, "read_ends", replaced)
    with pytest.raises(ps.FileChangedError, match="00050"):
        ps.read_table(str(tmp_path), filter="id = 505")
    simple(tmp_path, 100)
    scan = ps.scan(str(tmp_path), filter="id = 505", prune=False)  # every file is opened to plan it
    assert scan.to_table().num_rows == 2


def test_files_that_a_limit_spares_are_not_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    simple(tmp_path, 100)
    monkeypatch.setattr(ends_of_files, "read_ends", lambda *_: pytest.fail("it is looked at"))
    assert ps.scan(str(tmp_path)).limit(10).to_table().num_rows == 10
    assert ps.scan(str(tmp_path), filter="id >= 0").limit(3).plan().num_rows == 3


def test_the_first_file_is_judged_with_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first file is opened for what all files share, and for nothing else."""
    simple(tmp_path, 100)
    monkeypatch.setattr(
        sys.modules["pageseek.scan.planner"].Planner, "_prune", lambda *_: pytest.fail("by itself")
    )
    assert ps.scan(str(tmp_path), filter="id = -1").plan().num_rows == 0


def test_the_cache_and_descriptors_stay_few(tmp_path: Path) -> None:
    resource = pytest.importorskip("resource")
    scan = simple(tmp_path, 400)
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = (
        max(map(int, os.listdir("/proc/self/fd"))) + 24 if os.path.isdir("/proc/self/fd") else 256
    )
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, limits[0]), limits[1]))
    try:
        assert len(scan.plan().files) == 400
        assert opened() == 1
        assert ps.cache_info().bytes < 400 * 6000  # of their ends
        assert scan.filter("id = 35 or id = 3535").to_table().num_rows == 2
        assert opened() <= 3
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


def test_what_may_be_held_of_metadata_is_bounded(tmp_path: Path) -> None:
    simple(tmp_path)
    check(ps.scan(str(tmp_path), max_metadata_bytes=200))
    with pytest.raises(ps.LimitError, match="max_metadata_bytes"):
        ps.scan(str(tmp_path), max_metadata_bytes=200).plan()


# ---- the core --------------------------------------------------------------------------------------


def test_footers_read_together_are_those_read_by_themselves(tmp_path: Path) -> None:
    simple(tmp_path, 5)
    files = [open_metadata(str(path)) for path in sorted(tmp_path.iterdir())]
    ends = [path.read_bytes() for path in sorted(tmp_path.iterdir())]
    footers = [data[-8 - int.from_bytes(data[-8:-4], "little") : -8] for data in ends]
    starts = itertools.accumulate(map(len, footers), initial=0)
    at = b"".join(
        struct.pack("<2Q", start, len(foot)) for start, foot in zip(starts, footers, strict=False)
    )
    leaves = struct.pack("<2Q", 2, 0)
    groups, stored, rows, chunks = core.footers(
        b"".join(footers), at, files[0].schema_key, leaves, 8
    )
    assert groups.cast("q").tolist() == [1] * 5
    assert rows.cast("q").tolist() == [10] * 5
    data = b"".join(footers)
    for at_stored, length in zip(stored.cast("q")[::2], stored.cast("q")[1::2], strict=True):
        assert data[at_stored : at_stored + length] == files[0].key_value_metadata[b"ARROW:schema"]
    width = len(core.CHUNK_FIELDS)
    records = chunks.cast("q").tolist()
    records = [records[i : i + width] for i in range(0, len(records), width)]
    moved = [
        core.CHUNK_FIELDS.index(f"statistics_{name}_offset")
        for name in ("min", "max", "min_value", "max_value")
    ]
    for i, (file, start) in enumerate(
        zip(files, itertools.accumulate(map(len, footers), initial=0), strict=False)
    ):
        for k, name in enumerate(("s", "id")):
            wanted = list(file.chunks(file.schema_tree.find(name))[0])
            for field in (*moved, core.CHUNK_FIELDS.index("end")):
                wanted[field] += start if wanted[field] >= 0 else 0
            assert records[2 * i + k] == wanted
    groups, _, rows, _ = core.footers(b"".join(footers), at, files[0].schema_key, leaves, 3)
    assert (len(groups), len(rows)) == (24, 24)  # room for three


@pytest.mark.parametrize("bad", [(b"\0" * 15, b"", 1), (b"", b"\0" * 9, 1), (b"", b"", 1 << 62)])
def test_arguments_of_the_core_that_make_no_sense(bad: tuple[bytes, bytes, int]) -> None:
    with pytest.raises(core.CoreError):
        core.footers(b"", bad[0], (b"", b"", b"", None), *bad[1:])


def test_files_that_are_all_unlike_are_not_each_held_against_all_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    n = 300
    plain = tmp_path / "plain"
    pq.write_table(pa.table({"id": [1, 2], "s": ["a", "b"]}), plain)
    folder, raw = tmp_path / "unlike", plain.read_bytes()
    writer = f"version {pa.__version__}".encode()
    assert raw.count(writer) == 1
    folder.mkdir()
    for i in range(n):  # each by a writer of its own, but for the last
        said = b"version %0*d" % (len(writer) - 8, min(i, n - 100))
        (folder / f"{i:03}.parquet").write_bytes(raw.replace(writer, said))
    held, footers = 0, core.footers

    def counted(data: Any, at: Any, *more: Any, **knobs: Any) -> Any:
        nonlocal held
        held += len(at)
        return footers(data, at, *more, **knobs)

    monkeypatch.setattr(core, "footers", counted)
    scan = ps.scan(str(folder)).filter(ps.col("id") > 5)
    assert scan.count_rows() == 0
    assert held < 12 * n  # and not n * n / 2
    assert opened() <= n - 100 + 2 * footer_batches.LONGEST_PAUSE  # similar files are still found
    monkeypatch.undo()
    check(scan)
    check(scan.filter(ps.col("id") > 1))
