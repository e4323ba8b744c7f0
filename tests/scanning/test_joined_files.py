"""Small files that are read as one: rows, counts and errors are those of files that are read one by one."""

from __future__ import annotations

import asyncio
import json
import os
import random
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek.base.report import Report
from pageseek.io.tails import TailBatch
from pageseek.scanning.many_files import homogeneous_files, joined_files
from pageseek.scanning.many_files.footer_table import AT
from pageseek.scanning.one_file import group_joints, joined_groups
from pageseek.scanning.plans.prepare import prepare
from pageseek.scanning.plans.scheduler import Scheduler
from support.small_files import CITIES, ROWS, N, learn_joined, table, write_alike, write_different
from support.tiers import FULL

pytestmark = pytest.mark.usefixtures("scans")

CONDITIONS = [
    None,
    ps.col("id") >= 0,
    ps.col("id").between(333, 1_444),
    ps.col("city") == "city 3",
    ps.col("city") == "city 33",
    (ps.col("city") == "city 3") & (ps.col("value") > 0.5),
    (ps.col("city") == "city 3") | (ps.col("number") < 20),
    ps.col("number").isin([3, 77, 78, 5_000]),
    ps.col("text").like("%77%"),
    ~(ps.col("number") > 100),
    ps.col("number").is_null(),
    ps.col("number").is_null() & (ps.col("id") > 500),
    ps.col("number").is_not_null() & (ps.col("city") == "city 3"),
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_alike(tmp_path)
    return tmp_path


class Spy:
    """Counts files that are read as one, the most at a time, and how often that failed."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.joined, self.failed = learn_joined(monkeypatch), 0
        as_one = joined_groups.read_joined

        def watched(*given: Any) -> Any:
            found = yield from as_one(*given)
            self.failed += found is None
            return found

        monkeypatch.setattr(joined_groups, "read_joined", watched)

    @property
    def files(self) -> int:
        """The files that were scanned as one."""
        return sum(self.joined)

    @property
    def most(self) -> int:
        """The most at a time."""
        return max(self.joined, default=0)


@pytest.fixture
def spy(monkeypatch: pytest.MonkeyPatch) -> Spy:
    return Spy(monkeypatch)


def whole(source: Any, condition: Any = None, **options: Any) -> pa.Table:
    """The rows by a read that joins no files, and prunes nothing."""
    scan = ps.scan(source, filter=condition, prune=False, **options)
    return scan.with_row_number("row").to_table().drop_columns("row")


def check(
    source: Any, condition: Any = None, *, numbers: Sequence[int] = (1, 2), **options: Any
) -> pa.Table:
    """All ways to read, by each of the numbers of threads, give the rows of files that are read one by one."""
    wanted = whole(source, condition, **options)
    for threads in numbers:
        found = ps.read_table(source, filter=condition, threads=threads, **options)
        assert found.schema.equals(wanted.schema)
        assert found.equals(wanted), (condition, threads)
        scan = ps.scan(source, filter=condition, threads=threads, **options)
        assert pa.Table.from_batches(scan.to_batches(), wanted.schema).equals(wanted)
        assert scan.count_rows() == wanted.num_rows
    return wanted


@pytest.mark.parametrize("condition", CONDITIONS, ids=str)
def test_rows_are_those_of_files_that_are_read_one_by_one(
    folder: Path, spy: Spy, condition: Any
) -> None:
    check(str(folder), condition)
    check(str(folder), condition, columns=["value", "id"])
    check(str(folder), condition, string_type="view")
    assert not spy.failed
    if "is null" not in str(condition):  # which is read by levels alone, file by file
        assert spy.files


def test_small_files_are_not_opened_but_for_the_first(
    folder: Path, spy: Spy, monkeypatch: pytest.MonkeyPatch
) -> None:
    ps.read_table(str(folder), filter="city = 'city 3'")
    assert spy.files == N
    spy.joined.clear()
    monkeypatch.setattr(homogeneous_files, "SMALL_GROUP_ROWS", ROWS - 1)
    ps.read_table(str(folder), filter="city = 'city 3'")
    assert spy.files == 0


def test_a_file_whose_rows_are_all_denied_gives_no_payload(folder: Path) -> None:
    made = counts(str(folder), ps.col("text") == "text 777", columns=["id"])
    assert made.leaves["id"].rows_decoded == 1
    assert made.leaves["id"].pages_read == 1  # of N
    assert made.leaves["text"].pages_read > 1


def test_files_of_several_row_groups_some_of_them_large(
    tmp_path: Path, spy: Spy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(homogeneous_files, "SMALL_GROUP_ROWS", 30)
    for i in range(N):
        size = (30, 10, 50)[i % 3] if i % 7 else 7
        pq.write_table(table(i), tmp_path / f"{i:03}.parquet", row_group_size=size)
    for i, condition in enumerate(CONDITIONS):
        check(str(tmp_path), condition, numbers=(1, 2) if FULL else (1 + i % 2,))
    assert spy.files
    assert not spy.failed


def test_files_that_differ(tmp_path: Path, spy: Spy) -> None:
    """In columns, types, codecs, folders, encodings, and writers' schemas."""
    write_different(tmp_path, 5)
    conditions = [
        *CONDITIONS,
        ps.col("day") == 2,
        (ps.col("day") != 1) & (ps.col("number") > 250),
    ]
    for i, condition in enumerate(conditions):
        check(str(tmp_path), condition, numbers=(1, 2) if FULL else (1 + i % 2,))
    assert spy.files > N


@pytest.mark.parametrize("threads", [1, 2])
def test_a_file_that_changes_between_plan_and_read(
    folder: Path, spy: Spy, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    victim, longer = folder / "017.parquet", TailBatch.longer

    def replaced(self: TailBatch, *given: Any) -> Any:
        pq.write_table(table(99), victim)
        os.utime(victim, (7, 7))
        return longer(self, *given)

    monkeypatch.setattr(TailBatch, "longer", replaced)
    with pytest.raises(ps.FileChangedError, match="017"):
        ps.read_table(str(folder), threads=threads)
    assert spy.failed
    monkeypatch.undo()
    check(str(folder))


@pytest.mark.parametrize("threads", [1, 2])
def test_a_file_that_is_gone(folder: Path, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    victim, longer = folder / "017.parquet", TailBatch.longer

    def removed(self: TailBatch, *given: Any) -> Any:
        victim.unlink(missing_ok=True)
        return longer(self, *given)

    monkeypatch.setattr(TailBatch, "longer", removed)
    with pytest.raises(FileNotFoundError, match="017"):
        ps.read_table(str(folder), threads=threads)


@pytest.mark.parametrize("threads", [1, 2])
def test_damage_is_named_with_its_file_column_and_page(
    folder: Path, spy: Spy, threads: int
) -> None:
    victim = folder / "017.parquet"
    chunk = pq.read_metadata(victim).row_group(0).column(3)
    data = bytearray(victim.read_bytes())
    at = chunk.data_page_offset
    data[at + 30 : at + 60] = b"\xff" * 30
    victim.write_bytes(data)
    os.utime(victim, (9, 9))
    errors = []
    scan = ps.scan(str(folder), threads=threads)
    for one in (scan, scan.with_row_number("row")):
        with pytest.raises(ps.PageseekError) as caught:
            one.to_table()
        errors.append(str(caught.value))
    assert errors[0] == errors[1]
    assert "017.parquet" in errors[0]
    assert "value" in errors[0]
    assert spy.failed
    check(str(folder), columns=["id", "text"])  # what is not read hurts nobody
    # rows of the files before the damaged one come first
    got = 0
    batches = ps.scan(str(folder), threads=threads).to_batches()
    with suppress(ps.PageseekError):
        for batch in batches:
            got += batch.num_rows
    assert got == 17 * ROWS


@pytest.mark.parametrize("threads", [1, 2])
def test_a_value_that_fits_no_column_is_named_with_its_file(
    tmp_path: Path, spy: Spy, threads: int
) -> None:
    """Other files have a narrower range: the table has their type."""
    for i in range(N):
        when = np.datetime64("3000-01-01" if i == 17 else "2000-01-01", "ms")
        times = pa.array(np.full(ROWS, when), pa.timestamp("ms" if i < 30 else "ns"))
        pq.write_table(pa.table({"t": times, "id": range(ROWS)}), tmp_path / f"{i:03}.parquet")
    got = []
    batches = ps.scan(str(tmp_path), threads=threads).to_batches()
    with pytest.raises(ps.UnsupportedError, match=r"017\.parquet: column 't'"):
        got.extend(batches)
    assert sum([batch.num_rows for batch in got]) == 17 * ROWS
    assert spy.files
    check(str(tmp_path), columns=["id"])


def test_codes_of_long_texts_are_read_file_by_file(tmp_path: Path, spy: Spy) -> None:
    """They become far more than the footers let expect."""
    for i in range(N):
        texts = pa.array([f"{i:02}" + "x" * 300_000] * ROWS)
        pq.write_table(pa.table({"t": texts, "id": range(ROWS)}), tmp_path / f"{i:03}.parquet")
    found = ps.read_table(str(tmp_path), string_type="large")
    assert found.num_rows == N * ROWS
    assert found["t"][-1].as_py() == f"{N - 1:02}" + "x" * 300_000
    assert spy.files


@pytest.mark.parametrize(
    ("executes", "columns", "limit"),
    [(True, None, None), (False, None, None), (True, ["list"], None), (True, None, 7)],
)
def test_footers_are_held_only_for_files_that_may_be_read_as_one(
    tmp_path: Path, executes: bool, columns: Any, limit: int | None
) -> None:
    for i in range(N):
        some = table(i).append_column("list", pa.array([[1]] * ROWS))
        pq.write_table(some, tmp_path / f"{i:03}.parquet")
    scan = ps.scan(str(tmp_path), columns=columns or ["id", "city"], limit=limit)
    execution = scan._execution
    report = Report(chunks=None)
    scheduler = Scheduler(execution.request, report)
    made = prepare(execution.sources, scheduler, lazy=executes, fold=not executes)
    held = executes and columns is None and limit is None
    assert sum(footer is not None for footer in made.footers) == (N if held else 0)


def test_bytes_that_are_fetched_count_as_memory_though_a_footer_denies_them() -> None:
    sizes = np.zeros((2, 1, len(AT)), np.int64)
    sizes[:, 0, AT["total_compressed_size"]] = 1 << 18
    sizes[:, 0, AT["total_uncompressed_size"]] = 0, -1
    ones = np.ones(2, np.int64)
    leaf: Any = SimpleNamespace(element=SimpleNamespace(type=0))
    like: Any = SimpleNamespace(tests_codes=False)
    told = joined_files._Chunks(like, [0, 1], [1, 1], ones, sizes, [leaf], ones)
    assert min(told.memory(np.arange(2))) >= 1 << 18


def counts(source: str, condition: Any, **options: Any) -> Report:
    """The report of a scan that was executed at once."""
    execution = ps.scan(source, filter=condition, **options)._execution
    with execution._prepared(execution.request) as prepared:
        for _ in prepared.tables():
            pass
        return prepared.report


@pytest.mark.parametrize("condition", [None, "id >= 100 and value > 0.9", "city = 'city 3'"])
def test_counts_of_a_scan_are_those_of_files_one_by_one(
    folder: Path, condition: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted = []
    for least in (2, 10_000):
        monkeypatch.setattr(joined_files, "FEWEST_FILES", least)
        ps.clear_cache()
        made = counts(str(folder), condition)
        leaves = {
            name: (leaf.bytes, leaf.pages_total, leaf.pages_read, leaf.dictionary_pages)
            for name, leaf in made.leaves.items()
        }
        counted.append((made.files, made.row_groups, made.rows, made.rows_out, leaves))
    assert counted[0] == counted[1]
    assert counted[0][0].total == N
    assert counted[0][3]


def test_random_files_and_filters(tmp_path: Path, spy: Spy) -> None:
    rng = random.Random(11)
    for case in range(6):
        place = tmp_path / str(case)
        place.mkdir()
        codec = rng.choice(["zstd", "snappy", "lz4", "none", "gzip", "brotli"])
        pages = rng.choice([64, 1 << 20])
        for i in range(rng.randint(9, 60)):
            pq.write_table(
                table(i, rng.randint(1, 80)),
                place / f"{i:03}.parquet",
                compression=codec,
                data_page_size=pages,
                write_batch_size=16,
                use_dictionary=rng.random() < 0.7,
                data_page_version=rng.choice(["1.0", "2.0"]),
                write_page_index=rng.random() < 0.5,
            )
        for _ in range(6):
            k, n = rng.randrange(3_000), rng.randrange(300)
            some = [
                ps.col("id") > k, ps.col("number") == n, ps.col("number") != n, ps.col("city") == rng.choice(CITIES),
                ps.col("value") < rng.random(), ps.col("text") == f"text {k}", ps.col("city").isin(rng.sample(CITIES, 2)),
            ]  # fmt: skip
            a, b, c = rng.sample(some, 3)
            check(str(place), rng.choice([a, a & b, a | b, ~a, (a | b) & c, a & ~b]))
    assert spy.files > 100


def test_files_are_joined_a_bounded_number_at_a_time(
    folder: Path, spy: Spy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(joined_files, "MOST_CHUNKS", 50)
    ps.read_table(str(folder), filter="number > 200")  # of five columns
    assert (spy.files, spy.most) == (N, 10)
    check(str(folder), "number > 200")
    monkeypatch.setattr(joined_files, "MOST_CHUNKS", 9)  # one file has five
    spy.joined.clear()
    check(str(folder), "number > 200", columns=["id", "city", "number", "value", "text"])
    assert not spy.failed


@pytest.mark.parametrize("columns", [17, 32, 33])
def test_wide_files(tmp_path: Path, spy: Spy, columns: int) -> None:
    for i in range(N):
        made = {f"c{k}": np.arange(i, i + 10) * (k + 1) for k in range(columns)}
        pq.write_table(pa.table(made), tmp_path / f"{i:03}.parquet")
    check(str(tmp_path), "c1 = 40")
    spy.joined.clear()
    ps.read_table(str(tmp_path), filter="c1 = 40")
    assert (spy.files > 0) == (columns <= 32)


def test_a_query_that_is_cancelled_reads_no_further_files(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group_joints, "ENOUGH_ROWS", 1)
    reads, plain = 0, joined_files.JoinedStore.read

    def slow(self: joined_files.JoinedStore, ranges: Any) -> Any:
        nonlocal reads
        reads += 1
        time.sleep(0.05)
        return plain(self, ranges)

    monkeypatch.setattr(joined_files.JoinedStore, "read", slow)
    asyncio.run(ps.aio.read_table(str(folder), threads=1))
    whole, reads = reads, 0

    async def read() -> None:
        task = asyncio.create_task(ps.aio.read_table(str(folder), threads=1))
        while not reads and not task.done():
            await asyncio.sleep(0.005)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(read())
    assert 0 < reads < whole


def test_folders_of_both_zeros(tmp_path: Path, spy: Spy) -> None:
    """These are equal, and not the same."""
    for i in range(N):
        place = tmp_path / f"{i // 4:02}" / f"zero={'-0.0' if i & 2 else '0.0'}"
        place.mkdir(exist_ok=True, parents=True)
        pq.write_table(table(i), place / f"{i:03}.parquet")
    kind = ds.partitioning(pa.schema({"zero": pa.float64()}), flavor="hive")
    found = check(str(tmp_path), partitioning=kind)
    assert np.signbit(found["zero"].to_numpy()).sum() == N * ROWS // 2
    found = ps.read_table(str(tmp_path), partitioning=kind)
    assert np.signbit(found["zero"].to_numpy()).sum() == N * ROWS // 2
    assert spy.files


def test_both_zeros_in_partitions_of_delta(tmp_path: Path) -> None:
    pytest.importorskip("deltalake")
    fields = [
        {"name": name, "type": kind, "nullable": True, "metadata": {}}
        for name, kind in (("id", "long"), ("zero", "double"))
    ]
    schema = json.dumps({"type": "struct", "fields": fields})
    actions: list[dict[str, Any]] = [
        {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}},
        {"metaData": {
            "id": "1", "format": {"provider": "parquet", "options": {}}, "schemaString": schema,
            "partitionColumns": ["zero"], "configuration": {},
        }},
    ]  # fmt: skip
    for i in range(N):
        path = tmp_path / f"{i:03}.parquet"
        pq.write_table(table(i).select(["id"]), path)
        values = {"zero": "-0.0" if i % 2 else "0.0"}
        actions.append(
            {"add": {
                "path": path.name, "partitionValues": values, "size": path.stat().st_size,
                "modificationTime": 0, "dataChange": True,
            }}
        )  # fmt: skip
    (tmp_path / "_delta_log").mkdir()
    log = tmp_path / "_delta_log" / f"{0:020}.json"
    log.write_text("\n".join(map(json.dumps, actions)))
    found = ps.read_table(str(tmp_path))
    assert (np.signbit(found["zero"].to_numpy()) == (found["id"].to_numpy() // ROWS % 2)).all()


@pytest.mark.parametrize("threads", [1, 2])
def test_small_columns_of_large_files(tmp_path: Path, spy: Spy, threads: int) -> None:
    """What is not read makes no file large."""
    for i in range(N):
        made = table(i, 7_000).append_column(
            "blob", pa.array([os.urandom(200) for _ in range(7_000)])
        )
        pq.write_table(made, tmp_path / f"{i:03}.parquet")
    read = ps.read_table(
        str(tmp_path), columns=["id"], filter="number < 299 or value >= 0", threads=threads
    )
    assert read.num_rows == N * 7_000
    assert spy.files == N


def test_strings_of_longer_row_groups_are_tested_by_codes_and_not_joined(
    tmp_path: Path, spy: Spy, monkeypatch: pytest.MonkeyPatch
) -> None:
    for i in range(N):
        pq.write_table(table(i), tmp_path / f"{i:03}.parquet")
    monkeypatch.setattr(homogeneous_files, "CODED_ROWS", ROWS - 1)
    check(str(tmp_path), "city = 'city 3'")
    assert not spy.files
    check(str(tmp_path), "value < 0.5")
    assert spy.files
