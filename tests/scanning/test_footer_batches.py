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

import pageseek as ps
from pageseek._core import metadata as core
from pageseek.io import tails as ends_of_files
from pageseek.scanning.many_files import footer_batches as footer_batches
from support.batch_comparison import (
    N,
    check,
    check_rows,
    kept_of,
    one_by_one,
    opened,
    outcome,
    planned,
    simple,
)
from support.bloom import bitset, bloomed, header
from support.bounds import NAN, exact, i32, stats
from support.opened import open_metadata
from support.writer import BYTE_ARRAY, DOUBLE, I64, INT32, Column, Struct, write


@pytest.fixture(autouse=True)
def _no_cache() -> Iterator[None]:
    ps.clear_cache()
    yield
    ps.clear_cache()


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


@pytest.mark.covering(1)
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


@pytest.mark.covering(1)
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


FOOTERS_ONLY: list[list[str]] = [["statistics"], ["statistics", "distinct"], []]


@pytest.fixture(scope="module")
def searchable(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("searchable")
    for i in range(N):
        (folder / f"{i:03}.parquet").write_bytes(searchable_file(i))
    return str(folder)


@pytest.mark.covering(1)
@pytest.mark.parametrize("condition", SEARCHES)
@pytest.mark.parametrize("prune", FOOTERS_ONLY)
def test_where_nothing_but_the_footer_is_asked_plans_are_the_same(
    searchable: str, condition: str, prune: list[str]
) -> None:
    check(ps.scan(searchable, filter=condition, prune=prune))


@pytest.mark.parametrize("prune", FOOTERS_ONLY)
def test_where_nothing_but_the_footer_is_asked_no_file_has_to_be_opened(
    tmp_path: Path, prune: list[str]
) -> None:
    folder = tmp_path / "alike"
    simple(folder)
    ps.clear_cache()
    assert ps.scan(str(folder), filter="id > 5", prune=prune).plan().num_rows
    assert opened() == 1


def test_columns_are_those_of_all_files_and_similar_ones_are_not_opened(tmp_path: Path) -> None:
    scan = simple(tmp_path, 300)
    pq.write_table(
        pa.table({"id": pa.array([1], pa.int32()), "z": [1.5]}), tmp_path / "00123.parquet"
    )
    wanted = ["id", "k", "s", "z"]
    ps.clear_cache()
    assert scan.schema.names == scan.filter("id = -1").schema.names == wanted
    assert scan.limit(1).schema.names == wanted
    assert opened() == 2
    (tmp_path / "00200.parquet").write_bytes(b"no parquet file at all")
    with pytest.raises(ps.CorruptFileError, match=r"00200\.parquet"):
        scan.schema  # noqa: B018
    check(scan)


def test_bloom_filters_are_asked(tmp_path: Path) -> None:
    x = [0, 2, 4, 6, 99] * 800
    made = header(1024) + bitset([i32(value) for value in set(x)])
    for i in range(N):
        column = Column("x", INT32, x, optional=False)
        (tmp_path / f"{i:03}.parquet").write_bytes(
            bloomed(column, made) if i % 2 else write([column])
        )
    scan = ps.scan(str(tmp_path), filter="x = 3")
    check_rows(scan)  # pages of files that are ruled out together are not counted
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
        sys.modules["pageseek.scanning.plans.planner"].Planner,
        "_prune",
        lambda *_: pytest.fail("by itself"),
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
