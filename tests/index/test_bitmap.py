"""Bitmap indexes: filters and counts equal the full read plus filter, whatever happens to the index."""

from __future__ import annotations

import datetime as dt
import random
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek.format import bitmap_form
from pageseek.format.embedded import InvalidIndexError, directory
from pageseek.format.value_list import Distinct
from pageseek.index import bitmap_builder
from pageseek.index.kinds import bitmap as bitmap_kind
from support.opened import open_metadata
from support.tiers import rounds

N, GROUP = 20_000, 6_000
TYPES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "s": (pa.string(), ["", "a", "ab", "ü", "z\0"]),
    "b": (pa.binary(), [b"", b"\xff", b"ab"]),
    "flag": (pa.bool_(), [True, False]),
    "i8": (pa.int8(), [*range(-5, 5)]),
    "u32": (pa.uint32(), [0, 7, (1 << 32) - 1]),
    "i64": (pa.int64(), [*range(40), -(1 << 63)]),
    "d": (pa.date32(), [dt.date(1969, 12, 30) + dt.timedelta(i) for i in range(5)]),
    "t": (pa.timestamp("us"), [dt.datetime(2020, 1, 1), dt.datetime(1950, 5, 5)]),
    "m": (pa.decimal128(9, 2), [Decimal("-1.50"), Decimal("0.00"), Decimal("12.25")]),
    "fixed": (pa.binary(3), [b"abc", b"\0\0\0"]),
    "one": (pa.string(), ["same"]),
    "null": (pa.string(), []),
}


@pytest.fixture(scope="module")
def table() -> pa.Table:
    rng = random.Random(1)
    columns: dict[str, Any] = {"row": range(N)}
    for name, (kind, values) in TYPES.items():
        nulls = 0.0 if name in ("one", "i8") else 0.1
        made = [
            None if not values or rng.random() < nulls else rng.choice(values) for _ in range(N)
        ]
        if name == "d":  # whose rows lie together
            made = sorted(made, key=lambda one: (one is None, one))
        columns[name] = pa.array(made, kind)
    return pa.table(columns)


@pytest.fixture(scope="module")
def paths(table: pa.Table, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    folder = tmp_path_factory.mktemp("bitmap")
    plain, indexed = str(folder / "a.parquet"), str(folder / "b.parquet")
    pq.write_table(table, plain, row_group_size=GROUP, data_page_size=2_000)
    done = ps.index.attach(plain, bitmap=list(TYPES), output=indexed)
    assert not done.skipped
    assert {name for kind, name in done.added if kind == "bitmap"} == set(TYPES)
    return plain, indexed


def conditions(rng: random.Random) -> ps.Expression:
    def one() -> Any:
        name = rng.choice(list(TYPES))
        column, values = ps.col(name), TYPES[name][1]
        kind = rng.randrange(6)
        if kind == 0 or not values:
            return column.is_null()
        value = rng.choice(values)
        if kind == 1:
            return column.isin(rng.sample(values, rng.randrange(1, len(values) + 1)))
        if name == "s" and kind == 2:
            return column.starts_with(rng.choice(["a", "", "ü"]))
        made: Any = [column == value, column != value, column < value, column >= value]
        return rng.choice(made[:2] if name == "flag" else made)

    made = one()
    for _ in range(rng.randrange(3)):
        other = one()
        made = made & other if rng.random() < 0.5 else made | other
        if rng.random() < 0.3:
            made = ~made
    return made


@pytest.mark.covering(1)
@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("prune", [True, ["bitmap"]])
def test_rows_and_counts_equal_the_filter(paths: tuple[str, str], seed: int, prune: Any) -> None:
    rng, used = random.Random(seed), 0
    for _ in range(25):
        condition = conditions(rng)
        wanted = ps.scan(paths[0], filter=condition, prune=False).to_table()
        scan = ps.scan(paths[1], filter=condition, prune=prune)
        assert scan.to_table().equals(wanted), repr(condition)
        assert scan.count_rows() == wanted.num_rows, repr(condition)
        used += "bitmap" in scan.explain().rows.pruned_by
    assert used > (15 if prune != True else 5)  # noqa: E712


@pytest.mark.parametrize("options", [{"string_type": "view"}, {"dictionary_columns": ["s"]}])
def test_other_types_of_output(paths: tuple[str, str], options: dict[str, Any]) -> None:
    for condition in (ps.col("s") == "ab", ps.col("s") > "a", ps.col("s").is_null()):
        wanted = ps.scan(paths[0], filter=condition, prune=False)
        found = ps.scan(paths[1], filter=condition, prune=["bitmap"], **options)
        assert found.to_table()["row"].equals(wanted.to_table()["row"])
        assert found.explain().rows.pruned_by.get("bitmap", 0) > 0


def test_pages_of_two_bitmaps_and_a_range_and_counts_without_a_page(tmp_path: Path) -> None:
    """Only pages that have a row of the answer are read of the payload."""
    n = 60_000
    rng = np.random.default_rng(1)
    table = pa.table({"a": rng.integers(0, 100, n), "b": rng.integers(0, 100, n), "k": range(n), "v": rng.random(n)})  # fmt: skip
    path = str(tmp_path / "a.parquet")
    pq.write_table(table, path, row_group_size=n, data_page_size=4_000, use_dictionary=False)
    ps.index.attach(path, bitmap=["a", "b"], in_place=True)
    a, b, k = (table[name].to_numpy() for name in "abk")
    rows = np.flatnonzero((a == 5) & (b == 7) & (k > 10_000))
    assert len(rows) > 0
    condition = (ps.col("a") == 5) & (ps.col("b") == 7) & (ps.col("k") > 10_000)
    scan = ps.scan(path, columns=["v"], filter=condition)
    assert scan.to_table().equals(table.select(["v"]).take(rows))
    assert scan.explain(analyze=True).to_dict()["pages"]["read"] <= 2 * len(rows)
    both = ps.scan(path, columns=[], filter=(ps.col("a") == 5) & (ps.col("b") == 7))
    assert both.count_rows() == ((a == 5) & (b == 7)).sum()
    assert both.explain(analyze=True).to_dict()["pages"]["read"] == 0
    half = ps.scan(path, filter=ps.col("a") < 50)
    assert half.aggregate(["count"])["count"].to_pylist() == [(a < 50).sum()]
    for analyze in (False, True):
        ps.clear_cache()
        told = half.explain(analyze=analyze, aggregate=["count"]).to_dict()
        assert told["pages"]["read"] == told["bytes"]["data"] == 0
        assert told["bytes"]["index"] < 12_000  # the directory, and not the rows of 50 values


def test_counts_of_one_test_read_the_directory_alone(
    paths: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    i8, row = ps.col("i8"), ps.col("row")
    conditions: list[tuple[Any, bool]] = [
        (i8 == 2, True), (i8 != 2, True), (i8 > 0, True), (i8.isin([-4, 3]), True), (~i8.isin([1, 2]), True),
        (i8.between(0, 3), True), (ps.col("s").is_null(), True), ((i8 > 0) & (row >= 0), False), ((i8 == 1) | (row < 3), False),
    ]  # fmt: skip
    plain, read = bitmap_kind.read_whole, 0

    def counted(body: Any, places: Any) -> Any:
        nonlocal read
        read += 1
        return plain(body, places)

    monkeypatch.setattr(bitmap_kind, "read_whole", counted)
    for condition, alone in conditions:
        wanted = ps.scan(paths[0], filter=condition, prune=False).count_rows()
        for limit in (wanted + 1, 5):
            ps.clear_cache()
            read = 0
            scan = ps.scan(paths[1], filter=condition, prune=["bitmap"]).limit(limit)
            assert scan.count_rows() == min(wanted, limit), repr(condition)
            assert (read == 0) == alone, repr(condition)
            ps.clear_cache()
            read = 0
            assert scan.aggregate(["count"])["count"].to_pylist() == [min(wanted, limit)]
            assert (read == 0) == alone, repr(condition)
        assert ps.scan(paths[1], filter=condition).to_table().num_rows == wanted
    # rows are taken by their numbers
    ps.clear_cache()
    for numbers in ([5, 6, 7, 19_999], []):
        wanted = ps.scan(paths[0], filter=i8 > 0, prune=False).take(numbers).count_rows()
        assert (
            ps.scan(paths[1], filter=i8 > 0, prune=["bitmap"]).take(numbers).count_rows() == wanted
        )


def test_counted_row_groups_are_not_pruned_further(tmp_path: Path) -> None:
    """Pages of many row groups and columns, whose column indexes are not in memory when the bitmap has counted."""
    n, per_value = 200_000, 6_667
    row = np.arange(n, dtype="int32")
    made = {"s": pa.array(row // per_value, pa.int32())} | {f"c{i}": row for i in range(4)}
    plain, indexed = str(tmp_path / "a.parquet"), str(tmp_path / "b.parquet")
    for rows_per_group in (n, n // 2):
        pq.write_table(
            pa.table(made), plain, row_group_size=rows_per_group, write_page_index=True, use_dictionary=False,
            data_page_size=400, write_batch_size=100,
        )  # fmt: skip
        ps.index.attach(plain, bitmap=["s"], output=indexed, overwrite=True)
        for test in ("s = 1", "s > 3", "not s = 5", "s in (2, 29)"):
            wanted = ps.scan(plain, filter=test, prune=False).count_rows()
            for more in ({}, {"prune": ["bitmap", "column_index"]}, {"prune": ["bitmap", "page_headers"]}):  # fmt: skip
                ps.clear_cache()
                scan = ps.scan(indexed, filter=test, **more)
                assert scan.count_rows() == wanted, (rows_per_group, test, more)
                assert scan.limit(9).count_rows() == min(wanted, 9)


def test_mutated_indexes_change_no_answer(
    paths: tuple[str, str], table: pa.Table, tmp_path: Path
) -> None:
    listed = directory(open_metadata(paths[1]))
    assert listed is not None
    (entry,) = [one for one in listed.pointers if one.kind == "bitmap" and one.leaf == ("i64",)]
    data = Path(paths[1]).read_bytes()
    rng, at, ignored = random.Random(3), tmp_path / "m.parquet", 0
    places = [*range(entry.offset, entry.offset + 60)]
    places += [rng.randrange(entry.offset, entry.offset + entry.length) for _ in range(rounds(140))]
    conditions = ps.col("i64") == 7, ps.col("i64") > 20
    wanted = [
        ps.read_table(paths[0], columns=["row"], filter=condition, prune=False)
        for condition in conditions
    ]
    for place in places:
        mutated = bytearray(data)
        mutated[place] ^= 1 << rng.randrange(8)
        at.write_bytes(mutated)
        ps.clear_cache()
        for condition, rows in zip(conditions, wanted, strict=True):
            scan = ps.scan(at, columns=["row"], filter=condition, prune=["bitmap"])
            assert scan.to_table().equals(rows)
            ignored += any("ignored" in note for note in scan.explain().notes)
    assert ignored > len(places) // 2


def test_sets_that_share_rows_are_refused(paths: tuple[str, str], tmp_path: Path) -> None:
    """Checksums are right, and so are the numbers of rows: the index is wrong all the same."""
    plain = bitmap_builder.set_bytes
    at = tmp_path / "a.parquet"

    def first(found: Any, num_rows: int) -> tuple[int, bytes]:
        return plain(np.arange(len(found)), num_rows)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bitmap_builder, "set_bytes", first)
        ps.index.attach(paths[0], bitmap=["i8"], output=at)
    for condition in (ps.col("i8") > 0, ps.col("i8") <= 2, ps.col("i8").isin([1, 4])):
        wanted = ps.read_table(paths[0], columns=["row"], filter=condition, prune=False)
        scan = ps.scan(at, columns=["row"], filter=condition, prune=["bitmap"])
        assert scan.to_table().equals(wanted)
        assert any("share rows" in note for note in scan.explain().notes)


def test_directories_of_too_many_values_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    values = Distinct(3, 1, b"abc", None, np.zeros(1, np.uint8), None)
    sets = [[(1, *bitmap_form.set_bytes(np.array([i]), 4)) for i in range(4)]]
    body = memoryview(bitmap_form.body(values, sets))
    assert bitmap_form.BitmapDirectory(body, [4], len(body)).values.n == 3
    monkeypatch.setattr(bitmap_form, "MAX_VALUES", 2)
    with pytest.raises(InvalidIndexError, match="3 values"):
        bitmap_form.BitmapDirectory(body, [4], len(body))


def test_verify_list_and_detach(paths: tuple[str, str], tmp_path: Path) -> None:
    assert ps.index.verify(paths[1]).ok
    assert "bitmap" in {one.kind for one in ps.index.list(paths[1])}
    to = tmp_path / "c.parquet"
    ps.index.detach(paths[1], output=to)
    assert to.read_bytes() == Path(paths[0]).read_bytes()


def test_what_gets_no_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, to = str(tmp_path / "a.parquet"), str(tmp_path / "b.parquet")
    pq.write_table(pa.table({"many": range(10_000), "real": [0.5] * 10_000}), path)
    done = ps.index.attach(path, bitmap=["many"], output=to)
    assert any("more than 4,096 values" in one for one in done.skipped)
    with pytest.raises(ps.UnsupportedError, match="'real'"):
        ps.index.attach(path, bitmap=["real"], output=to, overwrite=True)
    pq.write_table(pa.table({"many": range(9_000)}), path, row_group_size=3_000)
    done = ps.index.attach(path, bitmap=["many"], output=to, overwrite=True)
    assert any("more than 4,096 values" in one for one in done.skipped)
    pq.write_table(pa.table({"few": [1, 2] * 50}), path, row_group_size=10)
    monkeypatch.setattr(bitmap_builder, "MAX_DIRECTORY_BYTES", 400)
    done = ps.index.attach(path, bitmap=["few"], output=to, overwrite=True)
    assert any("its directory would have more than 400 B" in one for one in done.skipped)


@pytest.mark.parametrize("num_rows", [0, 1, 7, 65_536, 65_537, 200_000])
def test_every_form_of_a_set(num_rows: int) -> None:
    rng = np.random.default_rng(num_rows)
    every = np.arange(num_rows)
    sets = [every[:0], every, every[num_rows // 3 : num_rows // 2], every[::2], every[rng.random(num_rows) < 0.001]]  # fmt: skip
    forms = set()
    for rows in sets:
        form, data = bitmap_form.set_bytes(rows, num_rows)
        forms.add(form)
        found = bitmap_form.set_of(form, memoryview(data), len(rows), num_rows)
        assert (found.rows() == rows).all()
        with pytest.raises(InvalidIndexError):
            bitmap_form.set_of(form, memoryview(data), len(rows) + 1, num_rows)
    if num_rows > 1000:
        assert forms == {bitmap_form.BITS, bitmap_form.ROWS, bitmap_form.RUNS}
