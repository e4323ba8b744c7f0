"""A lookup by another engine takes the way of a lookup by `read_table`: few reads by one call of the core, and no plan of a scan."""

from __future__ import annotations

import decimal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek._core.points import AVAILABLE
from pageseek.scanning.queries.execution import Execution

pytestmark = pytest.mark.skipif(not AVAILABLE, reason="the core reads no files here")
F = pc.field
N = 2_000
TABLE = pa.table(
    {
        "k": range(N),
        "s": [None if k % 9 == 0 else f"s{k:05}" for k in range(N)],
        "f": [float("nan") if k % 100 == 50 else k / 4 for k in range(N)],
        "m": pa.array([decimal.Decimal(k) / 4 for k in range(N)], pa.decimal128(9, 2)),
    }
)


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file whose rows no plan of a scan may find."""

    def planned(*_: Any, **__: Any) -> None:
        raise AssertionError("a plan was made")

    made = tmp_path / "a.parquet"
    pq.write_table(TABLE, made, row_group_size=500, write_page_index=True)
    assert ps.dataset(made).schema == TABLE.schema
    monkeypatch.setattr(Execution, "_prepared", planned)
    return made


FILTERS = {
    "equal": F("k") == 700,
    "another integer type": F("k") == pc.scalar(pa.scalar(700, pa.int16())),
    "and": (F("k") >= 700) & (F("k") < 710) & (F("s") != "s00703"),
    "not": ~(F("k") < 1990),
    "in": F("k").isin([3, 700, -1]),
    "in, with null": F("s").isin(["s00700", "s00703"]),
    "in, as duckdb writes it": pc.if_else(
        F("k").is_valid(), F("k").isin([3, 700]), pc.scalar(pa.scalar(None, pa.bool_()))
    ),
    "is null": F("s").is_null() & (F("k") < 30),
    "is valid": F("s").is_valid() & (F("k") < 30),
    "text": F("s") == "s00700",
    "double": F("f") == 25.25,
    "decimal": F("m") == pc.scalar(decimal.Decimal("12.25")),
    "no row": F("k") == -5,
}


@pytest.mark.parametrize("name", FILTERS)
def test_a_filter_of_pyarrow_is_looked_up(path: Path, name: str) -> None:
    wanted = TABLE.filter(FILTERS[name])
    assert ps.read_table(path, filter=FILTERS[name]).equals(wanted)
    scanner = ps.dataset(path).scanner(filter=FILTERS[name])
    assert scanner.to_reader().read_all().equals(wanted)
    assert pa.Table.from_batches(scanner.to_batches(), TABLE.schema).equals(wanted)


def test_other_filters_are_joined_to_it(path: Path) -> None:
    scan = ps.scan(path, filter="k < 702").filter(F("k") >= 700)
    assert scan.to_table()["k"].to_pylist() == [700, 701]
    assert scan.to_reader().read_all()["k"].to_pylist() == [700, 701]
    assert ps.scan(path, filter="(k = 700) is true").to_table().num_rows == 1


def test_batches_have_the_size_asked_for(path: Path) -> None:
    scanner = ps.dataset(path).scanner(filter=F("k") < 25, batch_size=10)
    assert [batch.num_rows for batch in scanner.to_batches()] == [10, 10, 5]


@pytest.mark.parametrize(
    ("options", "condition"),
    [
        ({}, (F("k") + 1) == 701),  # pyarrow evaluates it
        ({}, (F("k") == 700) & ((F("k") + 1) == 701)),
        ({"nan": "spark"}, F("k") == 700),  # pyarrow's comparisons have another rule for NaN
    ],
)
def test_what_is_not_known_is_planned(
    path: Path, options: dict[str, Any], condition: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(AssertionError, match="a plan was made"):
        ps.read_table(path, filter=condition, **options)
    monkeypatch.undo()
    assert ps.read_table(path, filter=condition, **options)["k"].to_pylist() == [700]


def test_pyarrow_keeps_its_rule_for_nan(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(TABLE, path, write_page_index=True)
    for condition in (F("f") >= 499.0, F("f") == float("nan")):
        found = ps.read_table(path, filter=condition, nan="spark")
        assert found["k"].to_pylist() == TABLE.filter(condition)["k"].to_pylist()


def test_an_expression_is_parsed_once(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from pageseek.predicate import pyarrow_filter

    condition = (F("k") == 700) & (F("s") != "once")
    assert pyarrow_filter.read(condition) is pyarrow_filter.read(
        (F("k") == 700) & (F("s") != "once")
    )
    monkeypatch.setattr(pyarrow_filter, "MAX_KEPT", 0)
    assert pyarrow_filter.read(condition) is not pyarrow_filter.read(condition)


def by_duckdb(path: Path) -> Any:
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect() as connection:
        connection.register("d", ps.dataset(path))
        queries = "k = 700", "k in (3, 700)", "k between 698 and 700 and s = 's00700'"
        return [connection.sql(f"select k from d where {q}").fetchall() for q in queries]


def by_polars(path: Path) -> Any:
    return _of_frames(lambda: ps.polars.scan(path))


def by_polars_of_the_dataset(path: Path) -> Any:
    pl = pytest.importorskip("polars")
    return _of_frames(lambda: pl.scan_pyarrow_dataset(ps.dataset(path)))


def _of_frames(frame: Callable[[], Any]) -> Any:
    pl = pytest.importorskip("polars")
    k = pl.col("k")
    tests = k == 700, k.is_in([3, 700]), k.is_between(698, 700) & (pl.col("s") == "s00700")
    return [frame().filter(test).select("k").collect().rows() for test in tests]


@pytest.mark.parametrize("query", [by_duckdb, by_polars, by_polars_of_the_dataset])
def test_the_filter_of_an_engine_is_looked_up(path: Path, query: Callable[[Path], Any]) -> None:
    assert query(path) == [[(700,)], [(3,), (700,)], [(700,)]]


def test_what_only_looks_like_a_lookup_is_right_too(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(TABLE, path, write_page_index=True)
    found = ps.read_table(path, filter="not ((s = 's00001') is true) and k < 3")
    assert found["k"].to_pylist() == [0, 2]  # where s is null, the condition is not TRUE
    condition = (F("k") < 3) & pc.if_else(F("s").is_valid(), F("k") == 1, pc.scalar(True))
    assert ps.read_table(path, filter=condition)["k"].to_pylist() == [0, 1]
