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
from pageseek.scanning.leaves import leaf_reader, segments
from pageseek.scanning.one_file import group_reader, joined_groups
from pageseek.scanning.points import point_reads

N = 3_000
NULL_PAGE = N + 1
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


@pytest.fixture(autouse=True)
def _without_lookups(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few rows of a local file are read by one call of the core, which has tests of its own."""
    monkeypatch.setattr(point_reads, "AVAILABLE", False)


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
    if nulls == NULL_PAGE:  # pages without a null, pages of nulls alone, and pages with some
        values = [
            None if N // 3 < i < N // 2 or i % 5 == i // 2_000 else v
            for i, v in enumerate(map(value, rows))
        ]
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
@pytest.mark.parametrize("nulls", [0, 3, NULL_PAGE])
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
    values = written(path, kind, nulls, use_dictionary=False, data_page_size=1 << 10)
    if threads > 1:  # the pages of a leaf are divided, also where rows are no multiple of 8
        monkeypatch.setattr(segments, "SEGMENT_COST", 1)
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
    assert asked >= 5  # statistics decide the others


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
    if threads > 1:
        monkeypatch.setattr(segments, "SEGMENT_COST", 1)
    for condition in conditions(values):
        for columns in (None, ["i"]):
            with counted(monkeypatch, off=True):
                wanted = read(path, condition, columns=columns, threads=threads)
            with counted(monkeypatch, off=False):
                found = read(path, condition, columns=columns, threads=threads)
            assert found.equals(wanted), (condition, columns)


@pytest.mark.parametrize(("rows", "module"), [(100, joined_groups), (N, leaf_reader)])
def test_rows_of_several_tasks_come_in_order(
    rows: int, module: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.parquet"
    written(path, "string", 4, use_dictionary=False, data_page_size=1 << 10, row_group_size=rows)
    wanted = [row["i"] for row in ps.read_table(path).to_pylist() if row["x"] == "ab"]
    tasks, passing = [0], row_tests.rows_that_pass

    def noted(decoders: Any) -> Any:
        tasks.append(len(decoders))
        return passing(decoders)

    monkeypatch.setattr(segments, "SEGMENT_COST", 1)
    monkeypatch.setattr(module, "rows_that_pass", noted)
    found = ps.read_table(path, ["i"], ps.col("x") == "ab", threads=2)
    assert found["i"].to_pylist() == wanted
    assert max(tasks) > 1


def test_rows_of_small_row_groups_are_tested_as_they_are_decoded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.parquet"
    written(path, "string", 0, row_group_size=100)
    with counted(monkeypatch, off=False) as tested:
        assert ps.read_table(path, ["i"], ps.col("x") == "zz").num_rows == N // 7 + (N % 7 > 6)
    assert 0 < tested.times < N // 100


@pytest.mark.parametrize(
    "options",
    [
        {"string_type": "large"},
        {"string_type": "view"},
        {"dictionary_columns": ["x"]},
        {"limit": 7},
        {"limit": 700},
    ],
)
def test_options_of_a_read(
    options: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.parquet"
    values = written(path, "string", 4, use_dictionary=False, data_page_size=1 << 10)
    x, many = ps.col("x"), [f"{i:04}" for i in range(5_000)]
    asked = 0
    for condition in (*conditions(values), x.isin([*many, "ab"]), (x > "a") & (x < "b")):
        with counted(monkeypatch, off=True):
            wanted = read(path, condition, **options)
        with counted(monkeypatch, off=False) as tested:
            found = read(path, condition, **options)
        asked += tested.times
        assert found.equals(wanted), condition
    assert asked


@pytest.mark.parametrize("nan", ["ieee", "spark"])
def test_nan_and_zeros(nan: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.parquet"
    values = [float("nan"), 0.0, -0.0, 1.5, None, float("inf"), float("-inf")] * 100
    pq.write_table(pa.table({"x": values}), path, use_dictionary=False)
    x = ps.col("x")
    asked = 0
    for literal in (0.0, -0.0, 1.5, float("nan")):
        for condition in (x == literal, x != literal, x < literal, x >= literal, ~(x > literal), x.isin([literal, 1.5])):  # fmt: skip
            with counted(monkeypatch, off=True):
                wanted = read(path, condition, nan=nan)
            with counted(monkeypatch, off=False) as tested:
                found = read(path, condition, nan=nan)
            asked += tested.times
            assert str(found.to_pydict()) == str(wanted.to_pydict()), condition
    assert asked


def test_a_value_that_is_no_text_is_an_error_also_where_its_row_does_not_pass(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.parquet"
    table = pa.table({"x": pa.array(["a", "bc", "b"] * 100)})
    pq.write_table(table, path, use_dictionary=False, write_statistics=False)
    whole = path.read_bytes()
    path.write_bytes(whole.replace(b"bc", b"\xff\xfe"))
    assert path.read_bytes() != whole
    for condition in (ps.col("x") == "a", ps.col("x") != "b"):
        with (
            counted(monkeypatch, off=False) as tested,
            pytest.raises(ps.PageseekError, match=r"column 'x'.*not UTF-8"),
        ):
            ps.read_table(path, filter=condition)
        assert tested.times


def test_a_value_beyond_its_type_is_an_error_also_where_its_row_does_not_pass(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.parquet"
    noon = 12 * 3_600_000
    table = pa.table({"x": pa.array([noon, noon + 1, 7] * 100, pa.time32("ms"))})
    pq.write_table(table, path, use_dictionary=False, write_statistics=False, compression="none")
    whole = path.read_bytes()
    value, beyond = noon.to_bytes(4, "little"), (24 * 3_600_000).to_bytes(4, "little")
    path.write_bytes(whole.replace(value, beyond))
    assert path.read_bytes() != whole
    for condition in (ps.col("x") == dt.time(0, 0, 0, 7_000), ps.col("x") < dt.time(1)):
        with (
            counted(monkeypatch, off=False) as tested,
            pytest.raises(ps.PageseekError, match=r"column 'x'.*not a time of day"),
        ):
            ps.read_table(path, filter=condition)
        assert tested.times


def test_a_prefix_of_a_page_that_is_too_short_is_gone_on_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some strings are longer than those around them: the part of the page that is likely enough ends between two runs of rows."""
    path = tmp_path / "a.parquet"
    texts = ["x" * 5_000 if 12 <= i < 30 else f"{i:06}" for i in range(20_000)]
    table = pa.table({"i": range(20_000), "x": texts})
    pq.write_table(table, path, use_dictionary=False, compression="zstd", write_page_index=True)
    i = ps.col("i")
    some = ((i < 6) | ((i >= 12) & (i < 30))) & (ps.col("x") >= "000003")
    with counted(monkeypatch, off=False) as tested:
        found = ps.read_table(path, filter=some)
    assert found["i"].to_pylist() == [3, 4, 5, *range(12, 30)]
    assert tested.times
