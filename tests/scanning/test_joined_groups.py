"""Small row groups that are read as one: rows, reports and errors are those of row groups that are read one by one."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek._core.page_tasks import PARALLEL
from pageseek.base.report import Report
from pageseek.scanning.one_file import group_joints, joined_groups
from pageseek.scanning.plans import tables
from support.tiers import rounds

pytestmark = pytest.mark.usefixtures("scans")

ROWS, GROUP = 4_000, 130
CONDITIONS = [
    None,
    ps.col("key").between(1_000, 2_500),
    ps.col("value") < 100,
    ps.col("text") == "text 3000",
    (ps.col("value") < 300) & ps.col("city").isin(["city 3", "city 4"]),
    (ps.col("city") == "city 3")
    | (ps.col("flag").isin([True]) & (ps.col("price") > Decimal("12.00"))),
    ps.col("text").like("%77%"),
    ps.col("value").is_null(),
    ps.col("value").is_null() & (ps.col("key") > 3_500),
    ps.col("city") == "nowhere",
]


class Spy:
    """Counts row groups that are read as one, those that are read by themselves, and how often reading as one failed."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.joined = self.single = self.failed = 0
        real = group_joints.joined

        def counted(*given: Any) -> Iterator[group_joints.Joint]:
            for joint in real(*given):
                if len(joint.groups) > 1:
                    self.joined += len(joint.groups)
                else:
                    self.single += 1
                yield joint

        as_one = joined_groups.read_joined

        def watched(*given: Any) -> Any:
            found = yield from as_one(*given)
            self.failed += found is None
            return found

        monkeypatch.setattr(group_joints, "joined", counted)
        monkeypatch.setattr(joined_groups, "read_joined", watched)


@pytest.fixture
def spy(monkeypatch: pytest.MonkeyPatch) -> Spy:
    monkeypatch.setattr(tables, "FEW_VALUES", 0)
    return Spy(monkeypatch)


@pytest.fixture
def one_by_one(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Calls a function while no row group is small enough."""

    def call(function: Any, *given: Any, **named: Any) -> Any:
        with monkeypatch.context() as patched:
            patched.setattr(group_joints, "SMALL_ROWS", -1)
            try:
                return function(*given, **named)
            except ps.PageseekError as error:
                return f"{type(error).__name__}: {error}"

    return call


def table(rows: int = ROWS, seed: int = 3) -> pa.Table:
    dice = np.random.default_rng(seed)
    nulls = dice.random(rows) < 0.3
    nulls[900:1500] = True  # row groups of nulls alone
    numbers = dice.integers(0, 9_000, rows)
    days = [dt.date(2020, 1, 1) + dt.timedelta(int(n) % 50) for n in numbers]
    return pa.table(
        {
            "key": np.arange(rows),
            "value": pa.array(numbers, mask=nulls),
            "text": pa.array([f"text {i}" for i in range(rows)], mask=nulls),
            "city": pa.array([f"city {i % 90} of a long name" if i % 3 else f"city {i % 90}" for i in range(rows)]),
            "flag": pa.array(numbers % 3 == 0, mask=nulls),
            "price": pa.array([Decimal(int(n)) / 100 for n in numbers], pa.decimal128(9, 2)),
            "day": pa.array(days),
            "x": dice.random(rows),
            "fixed": pa.array([int(n).to_bytes(3, "big") for n in numbers], pa.binary(3)),
        }
    )  # fmt: skip


def folder(place: Path, **how: Any) -> Path:
    """Files of many row groups: with dictionaries and without, with a page index and without."""
    whole = table()
    for i in range(4):
        part = place / f"part={i}"
        part.mkdir(parents=True)
        pq.write_table(
            whole.slice(i * ROWS // 4, ROWS // 4), part / "file.parquet", row_group_size=GROUP,
            write_page_index=i % 2 == 0, use_dictionary=["city", "value"] if i < 3 else False,
            data_page_version="2.0" if i == 1 else "1.0", **how,
        )  # fmt: skip
    return place


def told(source: Any, condition: Any, threads: int) -> dict[str, Any]:
    scan = ps.scan(source, filter=condition, threads=threads)
    found: dict[str, Any] = scan.explain(analyze=True).to_dict()
    for name in (
        "seconds",
        "requests",
        "waves",
        "threads",
        "bytes",
    ):  # of joined ones requests are joined, too
        found.pop(name, None)
    return found


@pytest.mark.parametrize("compression", ["none", "snappy", "zstd", "lz4"])
def test_rows_and_reports_are_those_of_row_groups_by_themselves(
    tmp_path: Path, spy: Spy, one_by_one: Any, compression: str
) -> None:
    source = folder(tmp_path, compression=compression)
    for condition in CONDITIONS:
        for how in ({}, {"string_type": "view"}):
            wanted = one_by_one(ps.read_table, source, filter=condition, threads=1, **how)
            for threads in (1, 2, 3) if PARALLEL else (1,):
                found = ps.read_table(source, filter=condition, threads=threads, **how)
                found.validate(full=True)
                assert found.equals(wanted)
        said = one_by_one(told, source, condition, 1)
        assert told(source, condition, 1) == said
        if PARALLEL:
            assert told(source, condition, 2) == said
        batches = list(ps.scan(source, filter=condition, batch_size=100).to_batches())
        assert all(len(batch) <= 100 for batch in batches)
        rows = pa.Table.from_batches(batches, ps.scan(source).schema)
        assert rows.equals(one_by_one(ps.read_table, source, filter=condition, threads=1))
    assert spy.joined > 500
    assert not spy.failed


@pytest.mark.parametrize("indexed", [True, False])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_row_groups_of_several_pages(
    tmp_path: Path, spy: Spy, one_by_one: Any, indexed: bool, version: Any
) -> None:
    """If a filter leaves few rows, the pages that have none are left out, as in row groups by themselves."""
    path = tmp_path / "pages.parquet"
    whole = table(24_000)
    pq.write_table(
        whole, path, row_group_size=5_000, write_batch_size=250, data_page_size=1, write_page_index=indexed,
        use_dictionary=["city", "value"], data_page_version=version, compression="snappy",
    )  # fmt: skip
    few = ps.col("x") > whole.column("x").to_numpy().max() - 1e-3
    either, both = few | (ps.col("city") == "city 7"), few & (ps.col("price") > Decimal(20))
    for i, condition in enumerate([*CONDITIONS, few, either, both]):
        for columns in (None, ["text", "day"]):
            how: dict[str, Any] = {"filter": condition, "columns": columns}
            wanted = one_by_one(ps.read_table, path, **how)
            for threads in (1, 2) if PARALLEL else (1,):
                found = ps.read_table(path, threads=threads, **how)
                found.validate(full=True)
                assert found.equals(wanted)
        if i not in (4, 8, 12):  # their conditions take turns by measured times
            assert told(path, condition, 1) == one_by_one(told, path, condition, 1)
    assert spy.joined > 40
    assert not spy.failed


def test_texts_of_a_dictionary_are_tested_by_code_in_larger_row_groups(
    tmp_path: Path, spy: Spy, one_by_one: Any
) -> None:
    path = tmp_path / "codes.parquet"
    rows = 6 * (group_joints.CODED_ROWS + 1)
    city = pa.array([f"city {i % 90}" for i in range(rows)])
    pq.write_table(pa.table({"city": city, "n": np.arange(rows)}), path, row_group_size=rows // 6)
    ps.read_table(path, filter=ps.col("city") == "city 3", threads=1)
    assert not spy.joined
    condition = ps.col("n").isin(list(range(0, rows, 999)))
    wanted = one_by_one(ps.read_table, path, filter=condition)
    assert ps.read_table(path, filter=condition, threads=1).equals(wanted)
    assert spy.joined


def test_the_dictionary_that_pruning_has_read_does_not_keep_row_groups_apart(
    tmp_path: Path, spy: Spy, one_by_one: Any
) -> None:
    path = tmp_path / "kept.parquet"
    values = pa.array([i * 7919 % 400 for i in range(60_000)])
    pq.write_table(
        pa.table({"v": values, "n": np.arange(60_000)}), path, row_group_size=10_000, use_dictionary=["v"]
    )  # fmt: skip
    condition = (ps.col("v") >= 100) & (ps.col("v") < 103)
    wanted = one_by_one(ps.read_table, path, filter=condition)
    assert wanted.num_rows
    assert ps.read_table(path, filter=condition).equals(wanted)
    assert spy.joined


def test_row_numbers_limits_and_columns(tmp_path: Path, spy: Spy, one_by_one: Any) -> None:
    source = folder(tmp_path)
    condition = ps.col("value") < 1_000
    for scan in (
        ps.scan(source, filter=condition).with_row_number("n"),
        ps.scan(source).select("text").with_row_number("n"),
        ps.scan(source, filter=condition).select("part"),
        ps.scan(source, filter=condition).select("value", "part", "city"),
        ps.scan(source).take(list(range(5, 4_000, 37))).select("key", "city"),
        ps.scan(source, filter=condition).limit(77),
        ps.scan(source, filter=condition & (ps.col("part") == 2)),
        ps.scan(source, dictionary_columns=["city"], filter=condition),
    ):
        wanted = one_by_one(scan.to_table)
        assert scan.to_table().equals(wanted)
        assert scan.count_rows() == wanted.num_rows
    assert spy.joined


def test_progress_counts_each_row_group(tmp_path: Path, spy: Spy) -> None:
    path = folder(tmp_path) / "part=0" / "file.parquet"
    steps: list[Any] = []
    ps.scan(path, progress=lambda *given: steps.append(given)).to_table()
    groups = -(-ROWS // 4 // GROUP)
    assert spy.joined > 1
    assert steps[-1][0].done == steps[-1][0].total == groups


def test_row_groups_with_different_encodings(tmp_path: Path, spy: Spy, one_by_one: Any) -> None:
    """A dictionary is that of its own row group; one without a dictionary lies between others."""
    path = tmp_path / "mixed.parquet"
    whole = table(600)
    writer = pq.ParquetWriter(
        path, whole.schema, use_dictionary=True, dictionary_pagesize_limit=1500
    )
    for i in range(20):  # some outgrow their dictionary
        some = whole.slice(i * 30, 30) if i % 3 else pa.concat_tables([whole.slice(i * 30, 30)] * 4)
        writer.write_table(some)
    writer.close()
    for condition in CONDITIONS:
        wanted = one_by_one(ps.read_table, path, filter=condition)
        assert ps.read_table(path, filter=condition).equals(wanted)
        assert told(path, condition, 1) == one_by_one(told, path, condition, 1)
    assert spy.joined
    assert not spy.failed


def test_codes_that_stand_for_long_strings_are_not_joined(tmp_path: Path, spy: Spy) -> None:
    """The footer tells how large codes are. The tables before tell what they stand for."""
    path = tmp_path / "long.parquet"
    texts = pa.array([f"{i % 3}" * 100_000 for i in range(60 * 100)])
    pq.write_table(pa.table({"text": texts}), path, row_group_size=100)
    rows = 0
    for batch in ps.scan(path, threads=1).to_batches():
        assert batch.nbytes <= 8 * group_joints.MOST_BYTES
        rows += len(batch)
    assert rows == 6_000
    assert not spy.joined


@pytest.mark.parametrize("string_type", ["string", "view"])
@pytest.mark.parametrize("condition", [None, ps.col("text") != "x", ps.col("key") >= 0])
def test_codes_that_stand_for_long_strings_behind_others_that_do_not(
    tmp_path: Path, spy: Spy, one_by_one: Any, condition: Any, string_type: str
) -> None:
    """What the first row groups are like does not tell how much memory later ones take."""
    path = tmp_path / "later.parquet"
    schema = pa.schema({"key": pa.int64(), "text": pa.string()})
    with pq.ParquetWriter(path, schema, use_dictionary=["text"]) as writer:
        for i in range(320):
            texts = (
                [f"{i} " + "long" * 2_000] * 100 if i >= 60 else [f"{j:>100}" for j in range(100)]
            )
            writer.write_table(pa.table({"key": np.arange(100) + 100 * i, "text": texts}, schema))
    how: dict[str, Any] = {"filter": condition, "string_type": string_type}
    wanted = one_by_one(ps.read_table, path, **how)
    for threads in (1, 2) if PARALLEL else (1,):
        steps: list[ps.Progress] = []
        scan = ps.scan(path, threads=threads, progress=steps.append, **how)
        batches = []
        for batch in scan.to_batches():
            assert batch.nbytes <= 2 * joined_groups.MOST_OUTPUT
            batches.append(batch)
        found = pa.Table.from_batches(batches)
        found.validate(full=True)
        assert found.equals(wanted)
        assert steps[-1].done == steps[-1].total == 320
    assert told(path, condition, 1) == one_by_one(told, path, condition, 1)
    assert spy.joined > 50
    assert spy.failed or string_type == "view"  # of which each long string is copied once


def test_what_is_damaged_is_told_as_of_its_own_row_group(
    tmp_path: Path, spy: Spy, one_by_one: Any
) -> None:
    path = folder(tmp_path / "whole", compression="snappy") / "part=0" / "file.parquet"
    data = path.read_bytes()
    dice = random.Random(11)
    different = 0
    files = rounds(150, 2)
    for i in range(files):
        at = dice.randrange(4, len(data))
        broken = tmp_path / f"{i}.parquet"
        broken.write_bytes(data[:at] + bytes([data[at] ^ 1 << dice.randrange(8)]) + data[at + 1 :])
        for condition in (None, ps.col("value") < 500):
            wanted = one_by_one(ps.read_table, broken, filter=condition)
            try:
                found: Any = ps.read_table(broken, filter=condition)
            except ps.PageseekError as error:
                found = f"{type(error).__name__}: {error}"
            if isinstance(wanted, str):
                assert found == wanted
                different += 1
            else:
                assert found.equals(wanted)
    assert different > files // 8
    assert spy.joined
    assert spy.failed > files // 30


@pytest.mark.parametrize("threads", [1, 2])
def test_rows_before_a_damaged_row_group_are_handed_out(
    tmp_path: Path, spy: Spy, one_by_one: Any, threads: int
) -> None:
    path = folder(tmp_path, compression="snappy") / "part=0" / "file.parquet"
    data = bytearray(path.read_bytes())
    chunk = pq.ParquetFile(path).metadata.row_group(5).column(0)
    data[chunk.data_page_offset] ^= 0xFF
    path.write_bytes(data)

    def before() -> tuple[int, str]:
        rows = 0
        try:
            for batch in ps.scan(path, threads=threads).to_batches():
                rows += len(batch)
        except ps.CorruptFileError as error:
            return rows, str(error)
        raise AssertionError("nothing failed")

    assert before() == one_by_one(before)
    assert before()[0] == 5 * GROUP
    assert spy.joined


def test_a_file_that_changes_is_told(tmp_path: Path, spy: Spy) -> None:
    path = folder(tmp_path) / "part=0" / "file.parquet"
    batches = iter(ps.scan(path, batch_size=10, threads=1).to_batches())
    next(batches)
    path.write_bytes(path.read_bytes()[::-1])
    with pytest.raises(ps.FileChangedError):
        list(batches)


@pytest.mark.parametrize("fault", ["long strings", "offset index"])
@pytest.mark.parametrize("by_chunk", [True, False])
def test_pages_that_were_read_before_reading_as_one_failed_are_counted_once(
    tmp_path: Path, spy: Spy, one_by_one: Any, fault: str, by_chunk: bool
) -> None:
    """Of `number` a few pages of each row group are read before the failure."""
    path, rows, groups = tmp_path / "pages.parquet", 4_000, 9
    key, number = np.tile(np.arange(rows, dtype=np.int32), groups), np.arange(rows * groups)
    text = ["z"] * rows * groups
    if fault == "long strings":  # for which short codes stand
        text[rows:] = ["x" * 6_000] * (rows * (groups - 1))
    pq.write_table(
        pa.table({"key": key, "number": number, "text": text}), path, row_group_size=rows,
        data_page_size=4_000, write_batch_size=500, use_dictionary=["text"], write_page_index=True,
        compression="none", write_statistics=False,
    )  # fmt: skip
    condition: Any = ps.col("key") < 3_100
    if fault == "long strings":
        condition &= ps.col("number") >= 0
    else:
        metadata = ps.open(path)._metadata
        chunk = metadata.chunk(7, metadata.schema_tree.leaf(1))
        data, at = path.read_bytes(), chunk.offset_index_offset
        index = data[at : at + chunk.offset_index_length]
        assert index.count(b"\xb8\x17") == 1  # 1,500 as a varint, the first row of the fourth page
        index = index.replace(b"\xb8\x17", b"\xba\x17")
        data = data[:at] + index + data[at + len(index) :]
        path.write_bytes(data)

    def counts() -> tuple[dict[str, tuple[int, ...]], list[str]]:
        ps.clear_cache()
        report = Report(chunks={} if by_chunk else None)
        scan = ps.scan(path, columns=["number", "text"], filter=condition, threads=1)
        assert sum(map(len, scan.plan().execute(report))) == 3_100 * groups
        leaves = report.tally()[1].items()
        return {
            name: (leaf.pages_total, leaf.pages_read, leaf.rows_decoded, leaf.dictionary_pages)
            for name, leaf in leaves
        }, report.notes

    wanted = one_by_one(counts)
    assert not spy.failed
    found = counts()
    assert found == wanted
    assert spy.failed
    assert bool(found[1]) == (fault == "offset index")


def test_the_pages_that_few_rows_need_are_decoded_together(
    tmp_path: Path, spy: Spy, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, rows, groups = tmp_path / "pages.parquet", 4_000, group_joints.ENOUGH_GROUPS
    key, number = np.tile(np.arange(rows, dtype=np.int32), groups), np.arange(rows * groups)
    pq.write_table(
        pa.table({"key": key, "number": number, "text": number.astype(str)}), path, row_group_size=rows,
        data_page_size=4_000, write_batch_size=500, use_dictionary=False, write_page_index=True, write_statistics=False,
    )  # fmt: skip
    decoded: list[int] = []
    decode = joined_groups.decode

    def counted(readers: Any, size: int) -> Any:
        decoded.append(len(readers))
        return decode(readers, size)

    monkeypatch.setattr(joined_groups, "decode", counted)
    found = ps.read_table(path, filter=ps.col("key") < 400, threads=1)
    assert found["number"].to_pylist() == number[key < 400].tolist()
    assert spy.joined and not spy.failed
    assert decoded == [
        2 * (groups - 1)
    ]  # the first is read by itself, to see how large tables become
