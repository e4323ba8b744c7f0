"""The parts of a lookup without a session: keys as conditions and as an index, ranges, chunks of keys."""

from __future__ import annotations

import pickle
import time
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek.spark.lookups import key_index, lookup_task
from pageseek.spark.lookups.key_index import KeyIndex
from pageseek.spark.lookups.lookup_keys import NANOSECONDS, PLAIN, cast_exactly, condition
from pageseek.spark.lookups.lookup_ranges import KeyRange, key_ranges, partition_ids, spark_hash
from pageseek.spark.lookups.lookup_task import Probe, assign, pack, probe_partition
from pageseek.spark.session.names import Columns
from pageseek.spark.tasks.task import new_report
from pageseek.storage import Source

NAN = float("nan")


def same(a: Any, b: Any) -> bool:
    """Equality as in a join of Spark."""
    return a is not None and b is not None and (a == b or (a != a and b != b))


def pairs_of(index: KeyIndex, codes: Any) -> list[tuple[int, int]]:
    return [
        pair
        for rows, keys in index.pairs(codes)
        for pair in zip(rows.tolist(), keys.tolist(), strict=True)
    ]


@pytest.mark.parametrize(
    ("hashes", "steps"),
    [(None, 8), (2, 8), (None, 0)],
    ids=["hashes", "few hashes", "full buckets"],
)
def test_an_index_finds_the_pairs_that_a_loop_finds(
    monkeypatch: pytest.MonkeyPatch, hashes: int | None, steps: int
) -> None:
    """Also where different values have one hash, and where buckets of the table are full."""
    monkeypatch.setattr(key_index._Table, "_STEPS", steps)
    if hashes is not None:
        whole = key_index.hashes_of
        monkeypatch.setattr(
            key_index,
            "hashes_of",
            lambda a: whole(a) if pa.types.is_int64(a.type) else whole(a) % hashes,
        )
    random = np.random.default_rng(1)
    values = {
        pa.int64(): [None, -1, 0, 1, 2**62],
        pa.float64(): [None, NAN, -0.0, 0.0, -NAN],
        pa.string(): [None, "", "a", "b", "é"],
        pa.binary(): [None, b"", b"\0", b"\xff", b"a"],
        pa.bool_(): [None, True, False, False, True],
        pa.decimal128(9, 2): [None, Decimal("1.10"), Decimal(0), Decimal(-1), Decimal(7)],
        pa.timestamp("us", "UTC"): [None, 0, 1, -1, 10**15],
    }
    for _ in range(60):
        kinds = [list(values)[i] for i in random.integers(0, len(values), random.integers(1, 4))]
        keys, rows = (
            pa.table([pa.array([values[kind][i] for i in random.integers(0, 5, n)], kind) for kind in kinds],
                     names=[str(i) for i in range(len(kinds))])
            for n in random.integers(1, 40, 2)
        )  # fmt: skip
        keys = keys.drop_null()
        keys, rows = keys.slice(random.integers(0, 3)), rows.slice(random.integers(0, 3))
        index = KeyIndex([column.combine_chunks() for column in keys.columns])
        codes = index.codes([column.combine_chunks() for column in rows.columns])
        found = set(pairs_of(index, codes))
        mine, theirs = (list(zip(*t.to_pydict().values(), strict=True)) for t in (rows, keys))
        wanted = {
            (i, j)
            for i, row in enumerate(mine)
            for j, key in enumerate(theirs)
            if all(same(a, b) for a, b in zip(row, key, strict=True))
        }
        assert found == wanted


@pytest.mark.parametrize("kind", [pa.int64(), pa.string(), pa.decimal128(20, 2)], ids=str)
def test_a_batch_costs_no_more_with_many_keys(kind: pa.DataType) -> None:
    """An index that is built again for each batch costs 100 times as much with 300 times as many keys."""

    def array(numbers: Any) -> pa.Array:
        return (
            pa.array(numbers).cast(pa.decimal128(20, 0) if kind != pa.string() else kind).cast(kind)
        )

    rows = [array(np.arange(0, 2_000_000, 1000))]
    few, many = (KeyIndex([array(np.arange(n) * 3)]) for n in (1_000, 300_000))
    assert [int((one.codes(rows) >= 0).sum()) for one in (few, many)] == [1, 300]
    seconds: list[list[float]] = [[], []]
    for _ in range(7):
        for index, taken in zip((few, many), seconds, strict=True):
            start = time.process_time()
            index.codes(rows)
            taken.append(time.process_time() - start)
    assert min(seconds[1]) < 15 * min(seconds[0]) + 0.002


def test_an_index_without_keys_finds_nothing() -> None:
    index = KeyIndex([pa.array([], pa.int64()), pa.array([], pa.string())])
    codes = index.codes([pa.array([1, None]), pa.array(["a", "b"])])
    assert codes.tolist() == [-1, -1]
    assert pairs_of(index, codes) == []


def test_pairs_come_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """One key that occurs often, with many rows, makes more pairs than memory holds."""
    monkeypatch.setattr(key_index, "MOST_PAIRS", 10)
    index = KeyIndex([pa.array([7] * 6 + [8])])
    codes = index.codes([pa.array([8, 7, 7, 9, 7, 8, 8])])
    pieces = [len(rows) for rows, _ in index.pairs(codes)]
    assert sum(pieces) == 21
    assert len(pieces) > 1
    assert max(pieces) <= 10 + 6
    wanted = {(row, key) for row in (1, 2, 4) for key in range(6)} | {(0, 6), (5, 6), (6, 6)}
    assert set(pairs_of(index, codes)) == wanted


def test_decimals_are_packed_as_they_are(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    kind = pa.decimal128(20, 2)
    values = pa.array([Decimal(n) / 100 for n in range(-500, 500)], kind)
    pq.write_table(pa.table({"d": values}), path)
    wanted = values.slice(17, 300)
    by_array = ps.read_table(path, filter=ps.col("d").isin(wanted))
    assert by_array["d"].to_pylist() == wanted.to_pylist()
    one_by_one = ps.read_table(path, filter=ps.col("d").isin(wanted.to_pylist()))
    assert by_array.equals(one_by_one)


def test_the_last_timestamp_is_a_key(tmp_path: Path) -> None:
    """There is no microsecond after it."""
    path = tmp_path / "a.parquet"
    values = pa.array([-1, 5, None, 2**63 - 1], pa.timestamp("ns"))
    pq.write_table(pa.table({"t": values}), path)
    for keys, wanted in (([2**63 - 1], 0), ([0, 2**63 - 1], 2), ([2**63 - 2], 0), ([0], 1)):
        by = condition("t", NANOSECONDS, pa.array(keys, pa.timestamp("us")))
        assert ps.scan(path).filter(by).count_rows() == wanted


def test_keys_are_cast_where_no_number_changes() -> None:
    for keys, kind, is_cast in (
        ([1.5, NAN, -0.0, None], pa.float32(), True),
        ([0.1], pa.float32(), False),
        ([1e300], pa.float32(), False),
        ([3, None], pa.float64(), True),
        ([2**53 + 1], pa.float64(), False),
        ([2, -(10**9), None], pa.decimal128(12, 2), True),
        ([10**10], pa.decimal128(12, 2), False),
        ([1.0], pa.int64(), False),
        (["1"], pa.int64(), False),
        ([], pa.float32(), True),
    ):
        given = pa.chunked_array([pa.array(keys, pa.float64() if not keys else None)])
        made = cast_exactly(given, kind)
        assert made.type == (kind if is_cast else given.type), (keys, kind)
        assert len(made) == len(given)


def test_each_partition_has_a_number_of_its_own() -> None:
    for n in (1, 2, 7, 64):
        ids = partition_ids(n)
        assert [spark_hash(i) % n for i in ids] == list(range(n))


@pytest.mark.spark
def test_the_hash_is_that_of_spark(spark: Any) -> None:
    rows = spark.range(-3, 50).selectExpr("cast(id as int) i", "hash(cast(id as int)) h").collect()
    assert all(spark_hash(row["i"] & 0xFFFFFFFF) == row["h"] for row in rows)


# -- ranges ---------------------------------------------------------------------------------------


class NoSettings:
    case_sensitive = True


def ranges_of(path: Path, on: list[str], tasks: int) -> list[tuple[KeyRange, Any]]:
    scan = ps.scan(path)
    wire = pa.schema([scan.schema.field(name) for name in on])
    return key_ranges(scan.plan(), Columns(scan, NoSettings()), on, wire, tasks)  # type: ignore[arg-type]


@pytest.fixture
def sorted_files(tmp_path: Path) -> Path:
    """k is sorted over all files; r has the same bounds in each; t is text; z has NaN; n only nulls in the first file."""
    random = np.random.default_rng(2)
    for i in range(4):
        k = np.arange(i * 100, (i + 1) * 100)
        table = pa.table(
            {
                "k": k,
                "r": random.permutation(100),
                "t": [f"{x:04d}" * 30 for x in k],
                "z": np.where(k % 7, k / 2, NAN),
                "n": pa.array(k, mask=k < 100),
            }
        )
        pq.write_table(table, tmp_path / f"{i}.parquet", row_group_size=50)
    return tmp_path


@pytest.mark.parametrize("on", [["k"], ["t"], ["r", "k"], ["r"], ["z"], ["n"]])
@pytest.mark.parametrize("tasks", [1, 3, 20])
def test_every_value_is_in_the_range_of_its_part(
    sorted_files: Path, on: list[str], tasks: int
) -> None:
    parts = ranges_of(sorted_files, on, tasks)
    numbers = list(range(len(parts)))
    assert 1 <= len(parts) <= max(tasks, 8 if tasks > 8 else tasks)
    seen = 0
    for number, (_, part) in enumerate(parts):
        table = pa.Table.from_batches(list(part.execute()), part.schema)
        seen += table.num_rows
        keys = table.select(on).drop_null()
        sent = pickle.dumps(([one for one, _ in parts], numbers))
        out = pa.Table.from_batches(assign(iter(keys.to_batches()), ps.__version__, sent))
        mine = out.filter(pa.compute.equal(out["part"], number))
        assert mine.num_rows == keys.num_rows
    assert seen == (300 if on == ["n"] else 400)


def test_sorted_files_get_ranges_that_do_not_overlap(sorted_files: Path) -> None:
    for on in (["k"], ["r", "k"]):
        parts = ranges_of(sorted_files, on, 4)
        assert [(r.by, r.low.as_py(), r.high.as_py()) for r, _ in parts if r.low and r.high] == [
            (len(on) - 1, at, at + 99) for at in (0, 100, 200, 300)
        ]


# -- chunks of keys -------------------------------------------------------------------------------


def in_chunks(keys: pa.Table, size: int) -> Iterator[pa.RecordBatch]:
    """What Spark sends: ids, sorted keys, padding."""
    table = keys.add_column(0, "part", pa.array([4] * len(keys), pa.int32()))
    yield from table.append_column("width", pa.nulls(len(keys))).to_batches(max_chunksize=size)


@pytest.mark.parametrize("size", [1, 3, 100])
@pytest.mark.parametrize("with_keys", [False, True])
def test_chunks_of_keys_give_each_row_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int, with_keys: bool
) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"k": [0.0, 1.0, 2.0, NAN, 3.0], "row": range(5)}), path)
    keys = pa.table({"k": [-0.0, 0.0, 0.0, 1.0, 1.0, 2.5, NAN, NAN]})
    monkeypatch.setattr(lookup_task, "MOST_KEYS", 2)
    plan = ps.scan(path, nan="spark").plan()
    probe = Probe(("k",), (PLAIN,), ("row",), with_keys, None, plan.schema)
    sent = pickle.dumps((probe, keys.schema))
    batches = probe_partition(in_chunks(keys, size), ps.__version__, sent, [(4, pack(plan))], None)
    found = pa.Table.from_batches(batches).columns[-1].to_pylist()
    assert sorted(found) == ([0, 0, 0, 1, 1, 3, 3] if with_keys else [0, 1, 3])


def test_another_version_is_refused() -> None:
    with pytest.raises(ps.PageseekError, match=r"the driver has pageseek 0\.0\.7"):
        next(assign(iter(()), "0.0.7", b""))


def test_few_pages_are_read_for_few_keys(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(
        pa.table({"k": range(10_000)}), path, write_page_index=True, data_page_size=512, write_batch_size=64
    )  # fmt: skip
    probe = Probe(("k",), (PLAIN,), ("k",), False, None, pa.schema([("k", pa.int64())]))
    keys = pa.table({"k": [5, 7777]})
    plan = lookup_task._pruned(ps.scan(path).plan(), probe.condition(keys))
    assert 0 < plan.num_rows < 1000
    assert [b.column(0).to_pylist() for b in probe.batches(plan, keys, new_report())] == [[5, 7777]]


def test_files_that_are_called_alike_are_told_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = [str(tmp_path / f"{i}.parquet") for i in range(3)]
    for i, path in enumerate(paths):
        pq.write_table(pa.table({"k": range(i * 100, i * 100 + 50 + i)}), path, row_group_size=10)
    monkeypatch.setattr(Source, "name", property(lambda _: "http://h/dl"))  # their queries differ
    found = lookup_task._pruned(ps.scan(paths).plan(), ps.col("k").isin([7, 133, 251]))
    rows = pa.Table.from_batches(list(found.execute()))["k"].to_pylist()
    assert rows == [7, 133, 251]
