"""Rows that the core tests as it decodes them: answers, counts and errors are those of values that are decoded first."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek.predicate import row_tests
from pageseek.scanning.one_file import group_reader, joined_groups

N = 3_000
KINDS: dict[str, tuple[pa.DataType, Callable[[int], Any]]] = {
    "int32": (pa.int32(), lambda i: i % 7),
    "uint64": (pa.uint64(), lambda i: i % 7 + 2**63),
    "float64": (pa.float64(), lambda i: float("nan") if i % 7 == 5 else i % 7 / 2),
    "decimal": (pa.decimal128(20, 2), lambda i: Decimal(i % 7) / 4),
    "date": (pa.date32(), lambda i: dt.date(2024, 1, 1 + i % 7)),
    "time": (pa.time64("us"), lambda i: dt.time(i % 7)),
    "timestamp": (pa.timestamp("ns"), lambda i: dt.datetime(2024, 1, 1 + i % 7)),
    "string": (pa.string(), lambda i: ["", "a", "ab", "b", "ba", "é", "zz"][i % 7]),
    "binary": (pa.binary(), lambda i: bytes(range(i % 7))),
    "fixed": (pa.binary(3), lambda i: bytes([i % 7] * 3)),
}


def conditions(values: list[Any]) -> Iterator[ps.Expression]:
    """Conditions on the column `x`, of three of its values in ascending order."""
    x, (low, middle, high) = ps.col("x"), values
    yield x == middle
    yield x != middle
    yield (x >= low) & (x < high)
    yield x.isin([low, high])
    yield ~x.isin([low, high])
    yield ~(x > middle)
    yield x.is_null()
    yield x.is_not_null()
    yield (x != low) & (ps.col("i") < N // 2)
    yield (ps.col("i") > N // 3) & (x == high)


def written(path: Path, kind: str, nulls: int, **options: Any) -> list[Any]:
    """A file of N rows of a kind, of which every so-manieth is null. Returns three of its values, in ascending order."""
    type_, value = KINDS[kind]
    rows = np.random.default_rng(3).permutation(N).tolist()
    values = [None if nulls and row % nulls == 0 else value(row) for row in rows]
    table = pa.table({"i": range(N), "x": pa.array(values, type_)})
    pq.write_table(table, path, write_page_index=True, **options)
    known = sorted({one for one in values if one is not None and one == one})
    return [known[0], known[len(known) // 2], known[-1]]


class Asked:
    """How often the core tested rows."""

    def __init__(self) -> None:
        self.times = 0


@contextmanager
def counted(monkeypatch: pytest.MonkeyPatch, off: bool) -> Iterator[Asked]:
    """Count tests of the core; `off`: have none."""
    made = Asked()

    def tests(*given: Any) -> Any:
        found = None if off else row_tests.row_tests(*given)
        made.times += found is not None
        return found

    with monkeypatch.context() as patch:
        for module in (group_reader, joined_groups):
            patch.setattr(module, "row_tests", tests)
        yield made


def read(path: Path, condition: ps.Expression, **options: Any) -> pa.Table:
    table = ps.read_table(path, filter=condition, **options)
    table.validate(full=True)
    return table


def counts(path: Path, condition: ps.Expression, **options: Any) -> Any:
    """What a read counts of each leaf."""
    return ps.scan(path, filter=condition, **options).explain(analyze=True).to_dict()["leaves"]


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("columns", [None, ["i"], ["x"]])
@pytest.mark.parametrize("nulls", [0, 3, 1])
@pytest.mark.parametrize("kind", KINDS)
def test_answers_are_those_of_values_that_are_decoded_first(
    kind: str,
    nulls: int,
    columns: list[str] | None,
    threads: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = tmp_path / "a.parquet"
    if nulls == 1:
        values = written(path, kind, 0)
        type_ = KINDS[kind][0]
        table = pa.table({"i": range(N), "x": pa.nulls(N, type_)})
        pq.write_table(table, path, use_dictionary=False, data_page_size=1 << 10)
    else:
        values = written(path, kind, nulls, use_dictionary=False, data_page_size=1 << 10)
    asked = 0
    for condition in conditions(values):
        with counted(monkeypatch, off=True):
            wanted = read(path, condition, columns=columns, threads=threads)
            told = counts(path, condition, columns=columns, threads=threads)
        with counted(monkeypatch, off=False) as tested:
            found = read(path, condition, columns=columns, threads=threads)
            same = counts(path, condition, columns=columns, threads=threads)
        asked += tested.times
        assert found.equals(wanted) or str(found.to_pydict()) == str(wanted.to_pydict()), condition
        assert same == told, condition
    assert asked >= 5 or nulls == 1  # statistics decide the others, or all


@pytest.mark.parametrize(
    "options",
    [
        {"row_group_size": 100},  # which are read as one
        {"row_group_size": 1_000, "use_dictionary": True},
        {"row_group_size": 1_000, "use_dictionary": False, "column_encoding": {"x": "DELTA_BYTE_ARRAY"}},
        {"row_group_size": 1_000, "data_page_version": "2.0", "compression": "zstd"},
        {"row_group_size": 999, "dictionary_pagesize_limit": 2},  # which gives way to plain values
    ],
)  # fmt: skip
@pytest.mark.parametrize("threads", [1, 2])
def test_encodings_and_row_groups(
    options: dict[str, Any], threads: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.parquet"
    values = written(path, "string", 4, data_page_size=1 << 10, **options)
    for condition in conditions(values):
        for columns in (None, ["i"]):
            with counted(monkeypatch, off=True):
                wanted = read(path, condition, columns=columns, threads=threads)
            with counted(monkeypatch, off=False):
                found = read(path, condition, columns=columns, threads=threads)
            assert found.equals(wanted), (condition, columns)


def test_rows_of_small_row_groups_are_tested_as_they_are_decoded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.parquet"
    written(path, "string", 0, row_group_size=100)
    with counted(monkeypatch, off=False) as tested:
        assert ps.read_table(path, ["i"], ps.col("x") == "zz").num_rows == N // 7 + (N % 7 > 6)
    assert 0 < tested.times < N // 100


def test_a_value_that_is_no_text_is_an_error_also_where_its_row_does_not_pass(
    tmp_path: Path,
) -> None:
    path = tmp_path / "a.parquet"
    table = pa.table({"x": pa.array([b"a", b"\xff\xfe", b"b"] * 100)})
    pq.write_table(table, path, use_dictionary=False, store_schema=False, write_statistics=False)
    data = path.read_bytes()
    schema = pa.table({"x": pa.array(["a", "bc", "b"] * 100)})
    pq.write_table(schema, path, use_dictionary=False, store_schema=False, write_statistics=False)
    path.write_bytes(path.read_bytes().replace(b"bc", b"\xff\xfe"))
    assert b"\xff\xfe" in data
    for condition in (ps.col("x") == "a", ps.col("x") != "b"):
        with pytest.raises(ps.PageseekError, match=r"column 'x'.*not UTF-8"):
            ps.read_table(path, filter=condition)


def test_a_prefix_of_a_page_that_is_too_short_is_gone_on_with(tmp_path: Path) -> None:
    """Strings that are longer at the front of a page than elsewhere: the part that is likely enough is not."""
    path = tmp_path / "a.parquet"
    texts = ["x" * 5_000 if i < 20 else f"{i:06}" for i in range(20_000)]
    table = pa.table({"i": range(20_000), "x": texts})
    pq.write_table(table, path, use_dictionary=False, compression="zstd", write_page_index=True)
    found = ps.read_table(path, filter=(ps.col("i") < 30) & (ps.col("x") >= "000025"))
    assert found["i"].to_pylist() == [*range(20), *range(25, 30)]
