"""Conditions that are tested by the codes of dictionaries: the rows are those of the values."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek._core.codecs import CodecSettings
from pageseek.format.columns import Part
from pageseek.predicate.bound import Bound
from pageseek.scanning.leaves import entry_tests, segments
from pageseek.scanning.one_file import group_joints, group_reader, joined_groups
from support import writer
from support.writer import I32, I64, INT64, Column, _finish_page, plain, write

pytestmark = pytest.mark.usefixtures("scans")

GROUPS, GROUP = 12, 700
DAY = dt.date(2020, 1, 1)


class Asked:
    """Counts how often entries were evaluated, and how often they could be."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked = self.told = 0
        real = entry_tests.entry_tests

        def counted(
            part: Part, chunks: Any, num_rows: int, condition: Bound, settings: CodecSettings,
            alone: bool = False,
        ) -> Any:  # fmt: skip
            found = real(part, chunks, num_rows, condition, settings, alone)
            self.asked += 1
            self.told += found is not None
            return found

        for room in (joined_groups, group_reader):
            monkeypatch.setattr(room, "entry_tests", counted)
        monkeypatch.setattr(group_reader, "CODED_ROWS", 0)
        monkeypatch.setattr(joined_groups, "CODE_TEST_ROWS", 0)
        monkeypatch.setattr(group_joints, "ENOUGH_ROWS", 3 * GROUP)
        monkeypatch.setattr(group_joints, "ENOUGH_GROUPS", 3)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Asked:
    return Asked(monkeypatch)


def table(nulls: float) -> pa.Table:
    """Numbers of few different values in every row group: long runs of one, and others in disorder."""
    rows = GROUPS * GROUP
    dice = np.random.default_rng(5)
    numbers = dice.integers(0, 60, rows) + np.arange(rows) // GROUP
    numbers[(np.arange(rows) // 90) % 3 == 0] = 7
    floats = numbers.astype(float)
    floats[numbers % 10 == 3] = np.nan
    mask = dice.random(rows) < nulls
    mask[2 * GROUP : 3 * GROUP] = nulls > 0
    days = [DAY + dt.timedelta(int(n)) for n in numbers]
    return pa.table(
        {
            "i": np.arange(rows),
            "int8": pa.array(numbers.astype(np.int8), mask=mask),
            "int64": pa.array(numbers, mask=mask),
            "uint32": pa.array(numbers.astype(np.uint32), mask=mask),
            "float": pa.array(floats.astype(np.float32), mask=mask),
            "double": pa.array(floats, mask=mask),
            "day": pa.array(days, mask=mask),
            "text": pa.array([f"{'long ' * (n % 4)}{n}" for n in numbers.tolist()], mask=mask),
            "decimal": pa.array(
                [Decimal(n) / 4 for n in numbers.tolist()], pa.decimal128(9, 2), mask=mask
            ),
            "fixed": pa.array([b"%04d" % n for n in numbers.tolist()], pa.binary(4), mask=mask),
            "time": pa.array([dt.datetime(2020, 1, 1, 0, int(n) % 60) for n in numbers], mask=mask),
        }
    )


def between(low: Any, high: Any) -> Callable[[Any], bool]:
    return lambda x: x is not None and low <= x < high


CASES = [
    ((ps.col("day") >= DAY + dt.timedelta(20)) & (ps.col("day") < DAY + dt.timedelta(29)), "day",
     between(DAY + dt.timedelta(20), DAY + dt.timedelta(29))),
    (ps.col("int8") == 7, "int8", lambda x: x == 7),
    (~(ps.col("int8") == 7), "int8", lambda x: x is not None and x != 7),
    (ps.col("int64").isin([3, 7, 40]), "int64", lambda x: x in (3, 7, 40)),
    (ps.col("int64").is_null() | (ps.col("int64") > 50), "int64", lambda x: x is None or x > 50),
    (~ps.col("int64").isin([3, 7, 40]), "int64", lambda x: x is not None and x not in (3, 7, 40)),
    (ps.col("uint32") != 7, "uint32", lambda x: x is not None and x != 7),
    ((ps.col("uint32") < 5) | (ps.col("uint32") > 40), "uint32", lambda x: x is not None and (x < 5 or x > 40)),
    (ps.col("float") > 30, "float", lambda x: x is not None and x > 30),
    (ps.col("double").is_nan(), "double", lambda x: x is not None and x != x),
    (ps.col("time") >= dt.datetime(2020, 1, 1, 0, 30), "time", lambda x: x is not None and x.minute >= 30),
]  # fmt: skip
# in small row groups their values are tested, in large ones codes
BY_VALUE = [
    (ps.col("text") == "long long 6", "text", lambda x: x == "long long 6"),
    (~ps.col("text").isin(["7", "long 5"]), "text", lambda x: x is not None and x not in ("7", "long 5")),
    (ps.col("text").starts_with("long long "), "text", lambda x: x is not None and x.startswith("long long ")),
    (ps.col("decimal") > Decimal("7.25"), "decimal", lambda x: x is not None and x > Decimal("7.25")),
    (ps.col("fixed") <= b"0009", "fixed", lambda x: x is not None and x <= b"0009"),
]  # fmt: skip


@pytest.mark.parametrize("compression", ["none", "snappy", "zstd"])
@pytest.mark.parametrize("nulls", [0, 0.3])
@pytest.mark.parametrize("pages", [1 << 20, 200])
def test_rows_are_those_whose_values_pass(
    tmp_path: Path, asked: Asked, compression: str, nulls: float, pages: int
) -> None:
    whole, path = table(nulls), tmp_path / "a.parquet"
    pq.write_table(
        whole, path, row_group_size=GROUP, compression=compression, data_page_size=pages,
        write_statistics=False, write_batch_size=64,
    )  # fmt: skip
    for condition, name, passes in CASES:
        before = asked.told
        expected = [i for i, x in enumerate(whole[name].to_pylist()) if passes(x)]
        for threads in (1, 2):
            found = ps.read_table(path, columns=["i"], filter=condition, threads=threads)
            assert found["i"].to_pylist() == expected, condition
        only_nulls = name == "int64" and "is_null" in str(condition)
        assert asked.told > before or only_nulls, condition  # nulls are found by levels
    assert asked.told == asked.asked


def test_two_conditions_and_the_payload(tmp_path: Path, asked: Asked) -> None:
    """A leaf of the payload, and one that another condition needs, are decoded; the second condition meets scattered rows."""
    whole, path = table(0.3), tmp_path / "a.parquet"
    pq.write_table(whole, path, row_group_size=GROUP, write_statistics=False)
    condition = (ps.col("int8") < 30) & (ps.col("day") >= DAY + dt.timedelta(10))
    rows = zip(whole["int8"].to_pylist(), whole["day"].to_pylist(), strict=True)
    expected = [
        i for i, (n, day) in enumerate(rows)
        if n is not None and n < 30 and day >= DAY + dt.timedelta(10)
    ]  # fmt: skip
    for payload in ("day", "time"):
        found = ps.read_table(path, columns=["i", payload], filter=condition)
        assert found["i"].to_pylist() == expected
        assert found[payload].to_pylist() == whole[payload].take(expected).to_pylist()
    assert asked.told


@pytest.mark.parametrize("row_group", [GROUP, GROUPS * GROUP], ids=["joined", "one"])
@pytest.mark.parametrize("index", [False, True])
@pytest.mark.parametrize("damage", ["many", "plain", "entries", "codes"])
def test_what_has_no_codes_is_read_as_values(
    tmp_path: Path, asked: Asked, damage: str, index: bool, row_group: int
) -> None:
    whole, path = table(0), tmp_path / "a.parquet"
    if damage == "many":
        whole = whole.set_column(2, "int64", pa.array(np.arange(len(whole)) // 1.5))
    columns = [name for name in whole.column_names if (name, damage) != ("int64", "plain")]
    pq.write_table(
        whole, path, row_group_size=row_group, use_dictionary=columns, compression="none",
        write_page_index=index, write_statistics=False,
    )  # fmt: skip
    condition = ps.col("int64") == 40
    expected = [i for i, x in enumerate(whole["int64"].to_pylist()) if x == 40]
    metadata = pq.ParquetFile(path).metadata
    number = metadata.num_row_groups // 3
    chunk = metadata.row_group(number).column(2)
    if damage in ("entries", "codes"):
        data = bytearray(path.read_bytes())
        at = chunk.dictionary_page_offset if damage == "entries" else chunk.data_page_offset
        data[at] ^= 0x55  # the first byte of the header
        path.write_bytes(data)
        with pytest.raises(ps.PageseekError, match=f"column 'int64', row group {number}"):
            ps.read_table(path, columns=["i"], filter=condition)
        return
    assert ps.read_table(path, columns=["i"], filter=condition)["i"].to_pylist() == expected
    assert not asked.told


def test_chunks_that_are_not_tested_by_code_are_read_once(
    tmp_path: Path, asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.parquet"
    whole = table(0).set_column(2, "int64", pa.array(np.arange(GROUPS * GROUP)))
    pq.write_table(whole, path, row_group_size=GROUP, write_statistics=False)
    scan = ps.scan(path, columns=["i"], filter=ps.col("int64") == 40, threads=1)
    scan.to_table()  # the footer is known now
    found = scan.explain(analyze=True).to_dict()["requests"]
    assert asked.asked
    assert not asked.told
    monkeypatch.setattr(joined_groups, "CODE_TEST_ROWS", 1 << 40)
    assert scan.explain(analyze=True).to_dict()["requests"] == found


# -- one row group ------------------------------------------------------------------------------


@pytest.mark.covering(2)
@pytest.mark.parametrize("compression", ["none", "zstd"])
@pytest.mark.parametrize("nulls", [0, 0.3])
@pytest.mark.parametrize("index", [False, True])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_rows_of_one_row_group(
    tmp_path: Path, asked: Asked, monkeypatch: pytest.MonkeyPatch, compression: str, nulls: float,
    index: bool, version: str,
) -> None:  # fmt: skip
    """All its rows and those of some pages, by one task and by several segments, of local and remote bytes."""
    monkeypatch.setattr(segments, "SEGMENT_COST", 100)
    whole, path = table(nulls), tmp_path / "a.parquet"
    pq.write_table(
        whole, path, compression=compression, data_page_size=200, write_batch_size=64,
        write_page_index=index, data_page_version=version, write_statistics=["i"],
    )  # fmt: skip
    for condition, name, passes in CASES + BY_VALUE:
        before = asked.told
        expected = [i for i, x in enumerate(whole[name].to_pylist()) if passes(x)]
        inner = [i for i in expected if 1000 <= i < 5000]
        within = condition & (ps.col("i") >= 1000) & (ps.col("i") < 5000)
        for threads in (1, 2):
            found = ps.read_table(path, columns=["i"], filter=condition, threads=threads)
            assert found["i"].to_pylist() == expected, condition
            found = ps.read_table(path, columns=["i"], filter=within, threads=threads)
            assert found["i"].to_pylist() == inner, condition
            for first in (
                ps.scan(path, columns=["i"], filter=condition).limit(5),
                ps.scan(path, columns=["i"], filter=within).limit(5),
            ):
                assert first.to_table()["i"].to_pylist() in (expected[:5], inner[:5])
        only_nulls = name == "int64" and "is_null" in str(condition)
        assert asked.told > before or only_nulls, condition  # nulls are found by levels


@pytest.mark.parametrize("index", [False, True])
def test_a_report_counts_the_pages_that_were_tested(
    tmp_path: Path, asked: Asked, index: bool
) -> None:
    whole, path = table(0.3), tmp_path / "a.parquet"
    pq.write_table(
        whole, path, data_page_size=200, write_batch_size=64, write_page_index=index,
        write_statistics=False,
    )  # fmt: skip
    scan = ps.scan(path, columns=["i"], filter=ps.col("int64") == 40)
    scan.to_table()  # the footer is known now
    by_codes = scan.explain(analyze=True).to_dict()
    assert asked.told
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(group_reader, "CODED_ROWS", 1 << 40)
        told = asked.asked
        by_values = scan.explain(analyze=True).to_dict()
        assert asked.asked == told
    assert by_codes["columns"] == by_values["columns"]
    assert by_codes["bytes"]["total"] == by_values["bytes"]["total"]


ROWS = 10_000
PAGES = [1_000] * 10


def coded(values: list[int]) -> Column:
    return Column("x", INT64, values, pages=PAGES, encodings="dictionary", statistics=False)


def rows_of(values: list[int], at: Sequence[Column], condition: Any) -> None:
    """The rows that pass are those whose values do, whoever tests them."""
    data = write([Column("row", INT64, list(range(ROWS)), pages=PAGES), *at])
    for threads in (1, 2):
        for stop in (8_000, ROWS):
            within = condition if stop == ROWS else (ps.col("row") < stop) & condition
            found = ps.read_table(data, columns=["row"], filter=within, threads=threads)
            assert found["row"].to_pylist() == [i for i in range(stop) if values[i] == 7]


def test_an_index_that_leaves_out_the_first_page_is_not_trusted(asked: Asked) -> None:
    """What lies before its first page is more than a dictionary."""

    def shifted(index: Any) -> None:
        places = [(int(page[1]), int(page[2])) for page in index[1]][1:]
        at, size = places.pop()
        for page, (start, length) in zip(
            index[1], [*places, (at, size - 20), (at + size - 20, 20)], strict=True
        ):
            page[1], page[2] = I64(start), I32(length)

    values = np.random.default_rng(2).integers(0, 50, ROWS).tolist()
    column = coded(values)
    column.edit_offset_index, column.column_index = shifted, False
    rows_of(values, [column], ps.col("x") == 7)
    assert asked.asked
    rows_of(values, [coded(values)], ps.col("x") == 7)
    assert asked.told


@pytest.mark.parametrize("index", [False, True])
@pytest.mark.parametrize("data_page_offset", [False, True])
def test_of_two_dictionaries_the_last_counts(
    asked: Asked, monkeypatch: pytest.MonkeyPatch, index: bool, data_page_offset: bool
) -> None:
    """`data_page_offset`: the footer has the place of the second dictionary for that of the first data page."""
    values = np.random.default_rng(2).integers(0, 50, ROWS).tolist()
    first = coded(values)
    write([first])
    entries = plain(INT64, [value + 1 for value in dict.fromkeys(values)])
    second = _finish_page(
        Column("z", INT64, [0]), -1, {1: I32(2), 7: {1: I32(50), 2: I32(0)}}, len(entries), entries
    )

    def followed(column: Column, page: int, *rest: Any) -> bytes:
        made = _finish_page(column, page, *rest)
        return made + second if page == -1 and column.name == "x" else made

    monkeypatch.setattr(writer, "_finish_page", followed)
    monkeypatch.setattr(segments, "SEGMENT_COST", 100)  # two threads read two segments

    def early(chunk: Any) -> None:
        chunk[9] = I64(int(chunk[11]) + first.made.dictionary[1])

    column = coded(values)
    column.offset_index = column.column_index = index
    if data_page_offset:
        column.edit_chunk = early
    rows_of([value + 1 for value in values], [column], ps.col("x") == 7)
    assert asked.asked
