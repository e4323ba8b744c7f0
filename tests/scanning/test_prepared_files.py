"""Prepared queries over files of all kinds: several, changing, damaged, random ones, and those of others; threads and processes."""

from __future__ import annotations

import asyncio
import datetime as dt
import multiprocessing as mp
import os
import pickle
import random
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek.scanning.points.point_reads import PointPlan
from support.prepared_queries import (
    FLAT,
    answer,
    expected,
    point_table,
    same,
    written,
)
from support.tiers import each_part, in_part, rounds

pytestmark = pytest.mark.usefixtures("scans")


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("prepared") / "all.parquet")


# -- files, threads, processes ---------------------------------------------------------------------


def test_several_files(tmp_path: Path) -> None:
    """Folders are columns, a file lacks a column, another has a narrower one."""
    for i, day in enumerate(("2024-01-01", "2024-01-02", "2024-01-03")):
        folder = tmp_path / f"day={day}"
        folder.mkdir()
        columns = {
            "k": pa.array(range(i * 50, i * 50 + 100), [pa.int32(), pa.int64(), pa.int16()][i])
        }
        if i != 1:
            columns["v"] = pa.array([f"{i} {j}" for j in range(100)])
        pq.write_table(
            pa.table(columns), folder / "a.parquet", write_page_index=True, max_rows_per_page=10
        )
    scan = ps.scan(tmp_path)
    query = scan.prepare(ps.col("k") == ps.param("k"))
    for k in (3, 60, 149, 199, 500, 2**40, None):
        same(lambda k=k: query(k), lambda k=k: scan.filter(ps.col("k") == k).to_table())
    same(lambda: query.many([60, 3, 149, None]), lambda: expected(query, [60, 3, 149, None]))
    by_day = scan.prepare((ps.col("day") == ps.param("d")) & (ps.col("v") == ps.param("v")))
    for day, v in (
        (dt.date(2024, 1, 1), "0 7"),
        ("2024-01-03", "2 9"),
        (dt.date(2024, 1, 2), "0 7"),
        (None, "0 7"),
    ):
        condition = (ps.col("day") == day) & (ps.col("v") == v)
        same(lambda d=day, v=v: by_day(d=d, v=v), lambda c=condition: scan.filter(c).to_table())
    keys = [{"d": dt.date(2024, 1, 1), "v": "0 7"}, {"d": dt.date(2024, 1, 3), "v": "2 9"}]
    given = {"d": [k["d"] for k in keys], "v": [k["v"] for k in keys]}
    same(lambda: by_day.many(given), lambda: expected(by_day, keys))


@pytest.mark.parametrize("in_place", [False, True])
def test_a_file_that_changes_is_read_anew(tmp_path: Path, in_place: bool) -> None:
    path = tmp_path / "a.parquet"

    def write(step: int, rows: int) -> None:
        table = pa.table({"k": range(rows), "v": [i * step for i in range(rows)]})
        at = path if in_place else tmp_path / "b.parquet"
        pq.write_table(table, at, write_page_index=True, max_rows_per_page=100)
        os.replace(at, path)

    write(1, 1_000)
    query = ps.scan(path).prepare(ps.col("k") == ps.param("k"))
    assert query(7).to_pylist() == [{"k": 7, "v": 7}]
    write(3, 2_000)
    assert query(7).to_pylist() == [{"k": 7, "v": 21}]
    assert query(1_500).to_pylist() == [{"k": 1_500, "v": 4_500}]
    assert query.many([1_500, 7])["v"].to_pylist() == [4_500, 21]
    pq.write_table(pa.table({"k": ["7"], "v": [1.5]}), path)
    with pytest.raises(
        ps.PredicateError, match=r"param\('k'\): .*a.parquet: column 'k' of type string"
    ):
        query(7)
    assert query("7").to_pylist() == [{"k": "7", "v": 1.5}]
    path.unlink()
    with pytest.raises(FileNotFoundError):
        query("7")


def test_threads_share_a_query(path: Path) -> None:
    query = ps.scan(path).select("sorted", "text", "i64").prepare(ps.col("sorted") == ps.param("k"))
    plain = {
        k: ps.scan(path).select("sorted", "text", "i64").filter(ps.col("sorted") == k).to_table()
        for k in range(0, 1000, 9)
    }
    failed: list[Any] = []

    def run(seed: int) -> None:
        rng = random.Random(seed)
        try:
            for _ in range(200):
                k = rng.choice(list(plain))
                assert query(k).equals(plain[k])
            keys = rng.choices(list(plain), k=20)
            assert (
                query.many(keys)
                .drop_columns("key_place")
                .equals(pa.concat_tables([plain[k] for k in keys]).combine_chunks())
            )
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=run, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed


def test_a_forked_process_goes_on(path: Path) -> None:
    if "fork" not in mp.get_all_start_methods():
        pytest.skip("no fork here")
    query = ps.scan(path, columns=["sorted", "i8"]).prepare(ps.col("sorted") == ps.param("k"))
    wanted = query(5).to_pylist()
    receiver, sender = mp.get_context("fork").Pipe(duplex=False)
    child = mp.get_context("fork").Process(target=lambda: sender.send(query(5).to_pylist()))
    child.start()
    assert receiver.poll(60) and receiver.recv() == wanted
    child.join(60)


def test_another_process_loads_it(path: Path, tmp_path: Path) -> None:
    query = ps.scan(path, columns=["sorted", "i8"]).prepare(ps.col("sorted") == ps.param("k"))
    again = pickle.loads(pickle.dumps(query))
    assert again(5).to_pylist() == query(5).to_pylist()
    assert again.parameters == query.parameters
    (tmp_path / "query").write_bytes(pickle.dumps(query))
    code = "import pickle, sys; print(pickle.load(open(sys.argv[1], 'rb'))(5).to_pylist())"
    command = [sys.executable, "-c", code, str(tmp_path / "query")]
    run = subprocess.run(command, check=True, capture_output=True, text=True)
    assert run.stdout.strip() == str(query(5).to_pylist())


def test_bytes_in_memory(path: Path) -> None:
    data = path.read_bytes()
    query = ps.scan(data, columns=["sorted", "text"]).prepare(ps.col("sorted") == ps.param("k"))
    for k in (5, 999, -1):
        same(
            lambda k=k: query(k),
            lambda k=k: ps.read_table(data, ["sorted", "text"], ps.col("sorted") == k),
        )


def test_asyncio(path: Path) -> None:
    query = ps.scan(path, columns=["sorted", "text"]).prepare(ps.col("sorted") == ps.param("k"))

    async def all_of() -> None:
        found = await asyncio.gather(*[query.aio(k) for k in range(0, 1_000, 7)])
        for k, table in zip(range(0, 1_000, 7), found, strict=True):
            assert table.equals(query(k))
        assert (await query.aio.many([5, 900, 5])).equals(query.many([5, 900, 5]))
        with pytest.raises(
            ps.PredicateError, match=r"param\('k'\): .*all.parquet: column 'sorted'"
        ):
            await query.aio("x")
        with pytest.raises(TypeError, match="no value for param"):
            await query.aio()

    asyncio.run(all_of())


# -- random files, and files of others -------------------------------------------------------------


@pytest.mark.parametrize("seed", range(rounds(24, 2)))
def test_random_files(tmp_path: Path, seed: int) -> None:
    """Codecs, versions of pages, sizes of pages and row groups, dictionaries, nulls, duplicates over pages."""
    rng = random.Random(seed)
    n, spread = rng.choice([1, 50, 2_000]), rng.choice([3, 40, 10_000])
    nulls = rng.choice([0.0, 0.2, 0.95])

    def some(make: Callable[[int], Any]) -> list[Any]:
        return [None if rng.random() < nulls else make(rng.randrange(spread)) for _ in range(n)]

    table = pa.table(
        {
            "i": pa.array(some(lambda v: v), pa.int64()),
            "s": pa.array(some(lambda v: f"s{v}")),
            "f": pa.array(some(lambda v: v / 2), pa.float32()),
            "l": pa.array(some(lambda v: [v, None])),
        }
    )
    if rng.random() < 0.6:
        table = table.sort_by(rng.choice(["i", "s", "f"]))
    path = tmp_path / "a.parquet"
    pq.write_table(
        table, path, row_group_size=rng.choice([7, 300, 5_000]), max_rows_per_page=rng.choice([1, 10, 300]),
        compression=rng.choice(["none", "snappy", "zstd", "lz4", "gzip", "brotli"]), data_page_size=rng.choice([64, 1 << 20]),
        data_page_version=rng.choice(["1.0", "2.0"]), use_dictionary=rng.random() < 0.5,
        write_page_index=rng.random() < 0.8, write_statistics=rng.random() < 0.9,
        write_page_checksum=rng.random() < 0.5,
    )  # fmt: skip
    for name, make in (("i", lambda v: v), ("s", lambda v: f"s{v}"), ("f", lambda v: v / 2)):
        columns = rng.sample(table.column_names, rng.randrange(5))
        scan = ps.scan(path, columns=columns)
        equal, below = (
            scan.prepare(ps.col(name) == ps.param("k")),
            scan.prepare(ps.col(name) < ps.param("k")),
        )
        both = scan.prepare((ps.col(name) == ps.param("k")) & (ps.col("i") >= ps.param("low")))
        keys = [make(rng.randrange(spread)) for _ in range(8)]
        for k in keys:
            same(
                lambda q=equal, k=k: q(k),
                lambda k=k, s=scan, m=name: s.filter(ps.col(m) == k).to_table(),
            )
            same(
                lambda q=below, k=k: q(k),
                lambda k=k, s=scan, m=name: s.filter(ps.col(m) < k).to_table(),
            )
            same(
                lambda q=both, k=k: q(k=k, low=spread // 3),
                lambda k=k, s=scan, m=name: s.filter(
                    (ps.col(m) == k) & (ps.col("i") >= spread // 3)
                ).to_table(),
            )
        same(lambda q=equal, k=keys: q.many(k), lambda q=equal, k=keys: expected(q, k))


def _flat(schema: pa.Schema) -> list[str]:
    return [
        f.name for f in schema if not pa.types.is_nested(f.type) and schema.names.count(f.name) == 1
    ][:6]


@each_part
@pytest.mark.parametrize("kind", ["valid", "odd", "hostile"])
def test_corpus(conformance: Path, kind: str, part: str) -> None:
    """Files of other writers, damaged ones too: the rows or the error of the plain scan, whatever column is tested."""
    tried = by_core = seen = 0
    for path in sorted((conformance / "corpus" / kind).rglob("*.parquet")):
        whole = answer(lambda p=path: ps.scan(p).limit(200).to_table())
        if isinstance(whole, tuple):
            continue
        flat = _flat(whole.schema)
        for name in flat:
            seen += 1
            if not in_part(part, seen, 3):
                continue
            column = ps.col(name)
            picks = sorted({0, whole.num_rows // 2}) if whole.num_rows else []
            values = [whole.column(name)[i] for i in picks] or [None]
            for columns in (None, flat):
                scan = ps.scan(path, columns=columns)
                query = answer(lambda s=scan, c=column: s.prepare(c == ps.param("k")))
                if isinstance(query, tuple):
                    continue
                tried += 1
                for value in values:
                    same(
                        lambda q=query, v=value: q(v),
                        lambda s=scan, c=column, v=value: s.filter(c == v).to_table(),
                    )
                    by_core += not isinstance(
                        answer(lambda q=query, v=value: point_table(q, k=v)), (tuple, type(None))
                    )
    assert tried
    assert by_core or kind == "odd"


@pytest.mark.parametrize("seed", range(30))
def test_damaged_files(tmp_path: Path, seed: int) -> None:
    """Whatever byte is wrong: the rows or the error of the plain scan."""
    rng = random.Random(seed)
    n = 600
    table = pa.table(
        {
            "k": pa.array([i // 3 for i in range(n)], pa.int32()),
            "s": pa.array([f"text {i % 40}" if i % 7 else None for i in range(n)]),
            "f": pa.array([i / 8 for i in range(n)]),
        }
    )
    path = tmp_path / "a.parquet"
    pq.write_table(
        table, path, row_group_size=400, max_rows_per_page=50, compression=rng.choice(["none", "snappy", "zstd", "lz4"]),
        write_page_index=True, use_dictionary=["s"], data_page_version=rng.choice(["1.0", "2.0"]),
    )  # fmt: skip
    data = path.read_bytes()
    footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    for step in range(rounds(40, 2)):
        wrong = bytearray(data)
        for _ in range(rng.randrange(1, 4)):
            # the pages for the most part, and the page index behind them
            at = (
                rng.randrange(4, footer) if rng.random() < 0.9 else rng.randrange(footer, len(data))
            )
            wrong[at] = rng.randrange(256)
        damaged = tmp_path / f"{step}.parquet"
        damaged.write_bytes(wrong)
        query = answer(lambda p=damaged: ps.scan(p).prepare(ps.col("k") == ps.param("k")))
        if isinstance(query, tuple):
            continue
        for k in (rng.randrange(n // 3), rng.randrange(n // 3)):
            first = answer(lambda p=damaged, k=k: ps.read_table(p, filter=ps.col("k") == k))
            ps.clear_cache()
            ours = answer(lambda q=query, k=k: q(k))
            ps.clear_cache()
            if isinstance(first, tuple):
                assert isinstance(ours, tuple) and ours[0] is first[0]
            else:
                assert not isinstance(ours, tuple), ours
                assert ours.equals(first)


def test_a_fault_in_a_page_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    table = pa.table({"k": range(1_000), "v": [f"value {i}" for i in range(1_000)]})
    pq.write_table(
        table, path, write_page_index=True, max_rows_per_page=100, use_dictionary=False,
        compression="none", write_page_checksum=True,
    )  # fmt: skip
    query = ps.scan(path).prepare(ps.col("k") == ps.param("k"))
    assert query(555).num_rows == 1
    data = path.read_bytes()
    at = data.index(b"value 555")
    path.write_bytes(data[:at] + b"V" + data[at + 1 :])
    with pytest.raises(
        ps.CorruptFileError,
        match=r"a.parquet: column 'v', row group 0, page 5 at byte \d+: .*checksum",
    ):
        query(555)
    assert query(455).num_rows == 1


def test_a_file_changes_under_a_call(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is written into the file after it was looked at is told by the look afterwards."""
    at = tmp_path / "a.parquet"
    at.write_bytes(path.read_bytes())
    query = ps.scan(at, columns=["sorted"]).prepare(ps.col("sorted") == ps.param("k"))
    assert query(5).num_rows == 3
    plain = PointPlan._is_small

    def changing(self: Any, *given: Any) -> bool:
        os.utime(at, ns=(1, 1))
        return plain(self, *given)

    monkeypatch.setattr(PointPlan, "_is_small", changing)
    with pytest.raises(ps.FileChangedError, match="changed while it was being read"):
        query(5)
    monkeypatch.undo()
    assert query(5).num_rows == 3


def test_what_goes_another_way(path: Path, tmp_path: Path) -> None:
    def fast(scan: ps.Scan, condition: Any = None, **values: Any) -> bool:
        query = scan.prepare(ps.col("sorted") == ps.param("k") if condition is None else condition)
        return point_table(query, **(values or {"k": 5})) is not None

    flat = ps.scan(path, columns=FLAT)
    assert fast(flat)
    assert fast(flat.limit(1))
    assert fast(ps.scan(path, columns=[]))
    assert fast(ps.scan(path, columns=["text"], string_type="view"))
    assert fast(flat, ps.col("sorted").between(ps.param("a"), ps.param("b")), a=5, b=50)
    assert fast(flat, ps.col("sorted").isin(ps.param("ks")), ks=[5, 900])
    assert fast(flat, ~(ps.col("sorted") > ps.param("k")) & ps.col("i8").is_not_null(), k=5)
    assert not fast(ps.scan(path))  # nested columns
    assert not fast(ps.scan(path, columns=["coded"]))
    assert not fast(ps.scan(path, columns=["text"], dictionary_columns=["text"]))
    assert not fast(flat.with_row_number("n"))
    assert not fast(flat.take([5]))
    assert not fast(ps.scan(path, columns=FLAT, prune=["statistics"]))
    assert not fast(ps.scan([path, path], columns=["i8"]))
    assert not fast(ps.scan(path.read_bytes(), columns=["i8"]))
    assert not fast(flat, (ps.col("sorted") == ps.param("k")) | (ps.col("i8") == 1))
    assert not fast(flat, ps.col("struct.a") == ps.param("k"))
    other = tmp_path / "no_index.parquet"
    pq.write_table(pa.table({"sorted": range(1_000)}), other, max_rows_per_page=100)
    assert not fast(ps.scan(other))


def test_another_index_is_asked_where_it_may_pay(tmp_path: Path) -> None:
    """A dictionary as large as the pages cannot; a Bloom filter, of which one block is read, may."""
    n = range(30_000)
    table = pa.table({"k": n, "v": [f"value {i}" for i in n]})
    plain, filtered = tmp_path / "plain.parquet", tmp_path / "filtered.parquet"
    pq.write_table(table, plain, write_page_index=True, max_rows_per_page=30_000)
    ps.index.attach(plain, output=filtered, bloom=["k"])
    for path, few in (plain, True), (filtered, False):
        query = ps.scan(path).prepare(ps.col("k") == ps.param("k"))
        assert (point_table(query, k=5) is not None) == few
        assert query(5)["v"].to_pylist() == ["value 5"]


def test_page_headers_serve_where_there_is_no_index(tmp_path: Path) -> None:
    """They are read by the first call, which goes the way of every scan."""
    path = tmp_path / "a.parquet"
    table = pa.table({"k": range(400_000), "v": [f"{i:030}" for i in range(400_000)]})
    pq.write_table(table, path, max_rows_per_page=10_000, use_dictionary=False, compression="none")
    query = ps.scan(path).prepare(ps.col("k") == ps.param("k"))
    assert point_table(query, k=5) is None
    for k in (5, 150_000, 399_999, 400_000):
        same(lambda k=k: query(k), lambda k=k: ps.read_table(path, filter=ps.col("k") == k))
    assert point_table(query, k=5) is not None
