"""Timestamps of Delta Lake tables over files that have them in another unit or of another zone: a number is a microsecond."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import pageseek as ps
from pageseek.base.errors import UnsupportedError
from support.delta_logs import Log, field, nested, wrapped

deltalake = pytest.importorskip("deltalake", reason="pip install 'pageseek[delta]'")

# microseconds since 1970
MICROS = [1_000_000_000_000_001, 0, -1, None, -1_000_001, 999_999, 5_000_000, -2_000_000]
LATER = [7, -7]
KINDS = {"timestamp": pa.timestamp("us", "UTC"), "timestamp_ntz": pa.timestamp("us")}
BY_PAGES = {"version": "2.6", "write_page_index": True, "write_batch_size": 1, "data_page_size": 1}


def times(numbers: list[int | None], unit: str, zone: str | None) -> pa.Array:
    return pa.array(numbers, pa.int64()).cast(pa.timestamp(unit, zone))


def in_nanoseconds(micros: list[int | None]) -> list[int | None]:
    return [None if one is None else one * 1000 for one in micros]


def table(root: Path, kind: str, values: pa.Array, others: Any = (), **options: Any) -> Log:
    """A table with one value a page. `others`: further columns, which the files lack."""
    log = Log(root, [*nested(kind), *others], features=["timestampNtz"])
    log.add("0.parquet", wrapped(values), **BY_PAGES, **options)
    return log


def by_deltalake(root: str) -> list[Any]:
    return sorted(deltalake.DeltaTable(root).to_pyarrow_table(columns=["a"])["a"].cast(pa.int64()).to_pylist(), key=str)  # fmt: skip


ZONES = [None, "UTC", "America/New_York"]
# INT96 has no zone
STORED = [(unit, zone) for unit in ("ns", "us", "int96") for zone in ZONES if unit != "int96" or zone is None]  # fmt: skip


@pytest.mark.covering(2)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("stored", STORED, ids=str)
@pytest.mark.parametrize("others", [0, 1, 2], ids=["alone", "and its own unit", "and a local one"])
def test_a_number_is_a_microsecond(
    tmp_path: Path, kind: str, stored: tuple[str, str | None], others: int
) -> None:
    unit, zone = stored
    old, own = unit == "int96", KINDS[kind]
    values = times(
        MICROS if unit == "us" else in_nanoseconds(MICROS), "us" if unit == "us" else "ns", zone
    )
    numbers = list(MICROS)
    # a column of the other kind: local times of files do not all mean moments then
    extra = [field("z", next(one for one in KINDS if one != kind))] if others == 2 else []
    log = table(tmp_path / "t", kind, values, extra, use_deprecated_int96_timestamps=old)
    if others == 1:
        log.add("1.parquet", wrapped(times(LATER, "us", own.tz)))
        numbers += LATER
    at = str(log.root)
    expected = wrapped(times(numbers, "us", own.tz))
    found = ps.read_table(at, columns=["a", "s", "l", "m"])
    assert sorted(found.to_pylist(), key=str) == sorted(expected.to_pylist(), key=str)
    assert found.schema.field("a").type == found.schema.field("s").type[0].type == own
    assert sorted(found["a"].cast(pa.int64()).to_pylist(), key=str) == by_deltalake(at)
    there = [one for one in numbers if one is not None]
    for value in (*there, -1_000_000, 2**61):
        literal = pa.scalar(value, own)
        for name in ("a", "s.x", "l"):
            column = ps.col(name).any() if name == "l" else ps.col(name)
            for condition, rows in (
                (column == literal, [one for one in there if one == value]),
                (column < literal, [one for one in there if one < value]),
                (column >= literal, [one for one in there if one >= value]),
            ):
                scan = ps.scan(at, columns=["a"], filter=condition)
                said = scan.to_table()["a"].cast(pa.int64()).to_pylist()
                assert sorted(said) == sorted(rows), condition
                assert scan.count_rows() == len(rows)
    for name in ("a", "s.x"):
        made = ps.scan(at).aggregate([(name, "min"), (name, "max"), (name, "count")])
        low, high, count = (column.combine_chunks() for column in made.columns)
        assert (low.type, high.type, count[0].as_py()) == (own, own, len(there))
        assert (low[0].value, high[0].value) == (min(there), max(there))
    look = ps.scan(at, columns=["a"]).prepare(ps.col("a") == ps.param("k"))
    for value in (MICROS[0], -1, 3):
        assert look(pa.scalar(value, own))["a"].cast(pa.int64()).to_pylist() == [
            one for one in there if one == value
        ]


def test_pages_that_a_filter_on_nanoseconds_needs(tmp_path: Path) -> None:
    values = times(in_nanoseconds(MICROS), "ns", "UTC")
    at = str(table(tmp_path / "t", "timestamp", values).root)
    scan = ps.scan(at, columns=["a"], filter=ps.col("a") == pa.scalar(-1, KINDS["timestamp"]))
    pages = scan.explain(analyze=True).to_dict()["leaves"]["a"]["pages"]
    assert (pages["total"], pages["read"]) == (len(MICROS), 1)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("zone", [None, "UTC"])
@pytest.mark.parametrize("number", [1, 1999, -1, -1001, 10**18 + 999])
def test_nanoseconds_between_two_microseconds(
    tmp_path: Path, kind: str, zone: str | None, number: int
) -> None:
    """deltalake refuses them to pyarrow; DataFusion and polars cut them, and not alike."""
    values = times([5000, number, None], "ns", zone)
    at = str(table(tmp_path / "t", kind, values).root)
    with pytest.raises(pa.ArrowInvalid, match="lose data"):
        by_deltalake(at)
    for read in (
        lambda: ps.read_table(at, columns=["a"]),
        lambda: ps.read_table(at, columns=["s.x"]),
        lambda: ps.read_table(at, columns=["l"]),
        lambda: ps.read_table(at, columns=["m"]),
        lambda: ps.read_table(
            at, columns=["a"], filter=ps.col("a") < pa.scalar(2**60, KINDS[kind])
        ),
        lambda: ps.scan(at).aggregate([("a", "min"), ("a", "max")]),
    ):
        with pytest.raises(
            UnsupportedError,
            match=r"(0\.parquet|aggregate): column '[aslm]'.* would lose data: -?\d+",
        ):
            read()
    # what is stored is compared, so that a row is never taken for one of another microsecond
    for micros in (number // 1000, number // 1000 + 1):
        literal = pa.scalar(micros, KINDS[kind])
        assert ps.scan(at, filter=ps.col("a") == literal).count_rows() == 0
    five = ps.read_table(at, columns=["a"], filter=ps.col("a") == pa.scalar(5, KINDS[kind]))
    assert pc.cast(five["a"], pa.int64()).to_pylist() == [5]


@pytest.mark.parametrize("function", ["min", "max"])
def test_figures_that_nanoseconds_do_not_hold(tmp_path: Path, function: str) -> None:
    sign = 1 if function == "max" else -1
    log = table(tmp_path / "t", "timestamp", times([3000, -3000], "ns", "UTC"))
    # deltalake names the newest file first
    log.add("1.parquet", wrapped(times([0, sign * 2 * 10**16], "us", "UTC")), **BY_PAGES)
    for prune in (True, False, ["column_index"]):
        scan = ps.scan(str(log.root), prune=prune, threads=1, max_ahead_bytes=0)
        found = scan.aggregate([("a", function)])
        assert found.column(0)[0].value == sign * 2 * 10**16
