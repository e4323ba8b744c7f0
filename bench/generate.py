"""Makes the files that the benchmarks read. Made once, kept in a folder, and found there again.

`lookup_file`
    Rows sorted by `key`, eight columns of types so unlike that pages of equal bytes hold unequal
    numbers of rows: no two columns cut their pages at the same rows. zstd, with page index.
`default_file`
    The same rows as pyarrow writes them when it is told no more than that: every column by a dictionary,
    until that has 1 MiB, and pages of 20,000 rows, which begin at other rows once a dictionary is given up.
`small_pages_file`
    These rows in pages of 1,000 rows, by any codec.
`small_files`
    These rows in thousands of files.
`wide_file`
    Thousands of columns and many row groups of few rows: the footer is nearly all of it.
`lineitem_file`
    The table lineitem of TPC-H, made by tpchgen-cli; `lineitem_large_groups` has it in few row groups, with a page index.
`events_file`
    Rows in the order of `id`, with a unique string that has a Bloom filter and a wide payload.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

KEY_STEP = 10  # keys grow by 1 to 19: some numbers between the first and the last are absent
PAGE_BYTES = 160_000  # 20,000 values of 8 bytes
CUSTOMERS = 1_000_000
LOOKUP_COLUMNS = ("key", "customer", "price", "quantity", "note", "city", "at", "amount")
SEED = 20_240_131
FEWEST_ROWS = 100_000  # that are made at a time
EVENT_GROUP, EVENT_PAGE = 1_000_000, 20_000  # rows
EVENT_KEYS = 1_000_000  # `k` is below
EVENT_CATEGORIES = [f"category-{i:02d}" for i in range(12)]
EVENT_WRITER: dict[str, Any] = {
    "write_page_index": True,
    "max_rows_per_page": EVENT_PAGE,
    "use_dictionary": ["dev", "category"],
}


def default_folder() -> Path:
    """Where files are kept when no folder is named: PAGESEEK_BENCH_DATA, or one under the temp folder."""
    named = os.environ.get("PAGESEEK_BENCH_DATA")
    return Path(named) if named else Path(tempfile.gettempdir()) / "pageseek-bench"


def lookup_file(folder: Path, rows: int = 10_000_000, group_rows: int = 1_000_000) -> Path:
    """File sorted by `key`: int64, double, int32, strings, dictionary strings, timestamps, decimals.

    Parameters
    ----------
    folder : Path
        Where the file is, or is made.
    rows, group_rows : int
        Rows of the file and of a row group.
    """
    path = folder / f"lookup-{rows}-{group_rows}.parquet"
    return _once(path, lambda at: _write_lookup(at, rows, group_rows, UNLIKE_PAGES))


def default_file(folder: Path, rows: int = 10_000_000, group_rows: int = 1_000_000) -> Path:
    """The rows of `lookup_file` in the dictionaries and pages that pyarrow writes by default."""
    path = folder / f"lookup-default-{rows}-{group_rows}.parquet"
    return _once(path, lambda at: _write_lookup(at, rows, group_rows, {}))


def small_pages_file(
    folder: Path, codec: str, rows: int = 2_000_000, group_rows: int = 1_000_000
) -> Path:
    """The rows of `lookup_file` in pages of 1,000 rows, all of them where `key` begins one, with a codec of pyarrow."""
    path = folder / f"lookup-1000-{codec}-{rows}-{group_rows}.parquet"
    return _once(path, lambda at: _write_lookup(at, rows, group_rows, SMALL_PAGES, codec))


def small_files(folder: Path, files: int = 10_000, rows: int = 500) -> Path:
    """A folder of files with so many rows of `lookup_file` each."""
    return _once(folder / f"small-{files}-{rows}", lambda at: _write_small(at, files, rows))


def random_key_files(folder: Path, files: int = 500, rows: int = 500_000) -> Path:
    """A folder of files with so many rows each: a random `key` of 36 characters in no order, `t`, and `v`, in pages of 1,000 rows."""
    return _once(folder / f"keys-{files}-{rows}", lambda at: _write_keys(at, files, rows))


def wide_file(
    folder: Path, columns: int = 5_000, row_groups: int = 20, group_rows: int = 10
) -> Path:
    """File whose footer describes `columns` x `row_groups` chunks, each with statistics."""
    path = folder / f"wide-{columns}-{row_groups}-{group_rows}.parquet"
    return _once(path, lambda at: _write_wide(at, columns, row_groups, group_rows))


def lineitem_file(folder: Path, scale: float = 0.1) -> Path:
    """TPC-H lineitem at a scale factor.

    Raises
    ------
    FileNotFoundError
        tpchgen-cli is not installed.
    """
    path = folder / f"lineitem-{scale:g}.parquet"
    return _once(path, lambda at: _write_lineitem(at, scale))


def lineitem_large_groups(folder: Path, scale: float = 0.1) -> Path:
    """The rows of `lineitem_file` in about four row groups, by zstd, with a page index."""
    path = folder / f"lineitem-{scale:g}-large.parquet"

    def write(at: Path) -> None:
        table = pq.read_table(lineitem_file(folder, scale))
        rows = -(-table.num_rows // 4)
        pq.write_table(table, at, row_group_size=rows, compression="zstd", write_page_index=True)

    return _once(path, write)


def events_file(
    folder: Path, rows: int = 10_000_000, compression: str = "zstd", seed: int = 0
) -> Path:
    """A file of `event_table` in row groups of EVENT_GROUP rows and pages of EVENT_PAGE, with a Bloom filter of `uid`."""

    def write(at: Path) -> None:
        bloom = {"bloom_filter_options": {"uid": {"ndv": min(rows, EVENT_GROUP), "fpp": 0.01}}}
        schema = event_table(0, 1).schema
        options = EVENT_WRITER | {"compression": compression}
        with pq.ParquetWriter(at, schema, **options, **bloom) as out:
            for start in range(0, rows, EVENT_GROUP):
                out.write_table(event_table(start, min(EVENT_GROUP, rows - start), seed))

    return _once(folder / f"events-{rows}-{compression}-{seed}.parquet", write)


def event_table(first: int, rows: int, seed: int = 0) -> pa.Table:
    """Rows of a wide table: `id` ascends; `k`, `uid` and `payload` are in no order."""
    rng = np.random.default_rng((seed, first) if seed else first)
    ids = np.arange(first, first + rows)
    uids = _uuids(rng.bytes(16 * rows))
    events = pa.array(rng.integers(0, 10**9, rows)).cast(pa.string())
    words = pa.array([" ".join(rng.choice(EVENT_CATEGORIES, 22)) for _ in range(97)])
    texts = words.take(pa.array(rng.integers(0, 97, rows)))
    payload = pc.binary_join_element_wise('{"event": "', events, '", "text": "', texts, '"}', "")
    return pa.table(
        {
            "id": ids,
            "ts": pa.array(1_700_000_000_000_000 + ids * 1000, pa.timestamp("us", "UTC")),
            "dev": pa.array(rng.integers(0, 5000, rows), pa.int32()),
            "k": pa.array(rng.integers(0, EVENT_KEYS, rows), pa.int32()),
            "value": rng.normal(size=rows),
            "category": pa.array(np.array(EVENT_CATEGORIES)[rng.integers(0, 12, rows)]),
            "uid": uids,
            "payload": payload,
        }
    )


def _uuids(random: bytes) -> pa.Array:
    """The text of a UUID of version 4 for each 16 bytes."""
    raw = np.frombuffer(random, np.uint8).reshape(-1, 16).copy()
    raw[:, 6] = raw[:, 6] & 0x0F | 0x40
    raw[:, 8] = raw[:, 8] & 0x3F | 0x80
    digits = np.frombuffer(raw.tobytes().hex().encode(), np.uint8).reshape(-1, 32)
    text = np.full((len(raw), 36), ord("-"), np.uint8)
    for start, end, at in ((0, 8, 0), (8, 12, 9), (12, 16, 14), (16, 20, 19), (20, 32, 24)):
        text[:, at : at + end - start] = digits[:, start:end]
    offsets = np.arange(0, text.size + 1, 36, dtype=np.int32)
    return pa.StringArray.from_buffers(len(raw), pa.py_buffer(offsets), pa.py_buffer(text))


def _once(path: Path, write: Callable[[Path], None]) -> Path:
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_name(f"{path.name}.{os.getpid()}")
        try:
            write(unfinished)
            unfinished.replace(path)
        finally:
            if unfinished.is_dir():
                shutil.rmtree(unfinished)
            unfinished.unlink(missing_ok=True)
    return path


def lookup_table(rows: int, first_key: int = 0, seed: int = SEED) -> pa.Table:
    """Build rows of the lookup file in memory, their keys above `first_key`."""
    random = np.random.default_rng(seed)
    key = first_key + np.cumsum(random.integers(1, 2 * KEY_STEP, rows))
    price = np.round(random.lognormal(3.0, 1.0, rows), 2)
    quantity = random.integers(1, 51, rows).astype(np.int32)
    seconds = 1_600_000_000 + np.arange(rows) + random.integers(0, 3_600, rows)
    return pa.table(
        {
            "key": pa.array(key),
            "customer": pa.array(random.integers(0, CUSTOMERS, rows)),
            "price": pa.array(price, mask=random.random(rows) < 0.05),
            "quantity": pa.array(quantity),
            "note": _notes(random, rows),
            "city": _cities(random, rows),
            "at": pa.array(seconds * 1_000_000).cast(pa.timestamp("us", "UTC")),
            "amount": pa.array(price * quantity).cast(pa.decimal128(15, 2), safe=False),
        }
    )


def _notes(random: np.random.Generator, rows: int) -> pa.Array:
    words = np.array(
        [
            "blue",
            "box",
            "cold",
            "door",
            "early",
            "fox",
            "green",
            "hill",
            "ice",
            "jar",
            "keen",
            "lamp",
            "mild",
            "north",
            "oak",
            "plain",
            "quiet",
            "river",
            "stone",
            "tall",
            "under",
            "vast",
            "warm",
            "yard",
            "zinc",
            "parcel",
            "damaged",
            "delivered",
            "returned",
            "express",
        ]
    )
    pool = [
        " ".join(random.choice(words, size)) for size in random.integers(1, 12, 20_000).tolist()
    ]
    return pa.array(pool).take(pa.array(random.integers(0, len(pool), rows)))


def _cities(random: np.random.Generator, rows: int) -> pa.Array:
    names = [f"{'north' if i % 2 else 'south'}-city-{i:04d}" for i in range(1_000)]
    codes: npt.NDArray[np.int64] = np.minimum(random.zipf(1.3, rows) - 1, len(names) - 1)
    return pa.array(names).take(pa.array(codes))


# of the lookup file: pages of equal bytes
UNLIKE_PAGES: dict[str, Any] = {
    "use_dictionary": ["city"],
    "data_page_size": PAGE_BYTES,
    "write_batch_size": 500,
    "max_rows_per_page": 1_000_000,
}


SMALL_PAGES: dict[str, Any] = {"use_dictionary": ["city"], "max_rows_per_page": 1_000}


def _write_lookup(
    path: Path, rows: int, group_rows: int, pages: dict[str, Any], codec: str = "zstd"
) -> None:
    first = 0
    writer: pq.ParquetWriter | None = None
    try:
        step = max(FEWEST_ROWS // group_rows, 1) * group_rows
        for start in range(0, rows, step):
            table = lookup_table(min(step, rows - start), first, SEED + start)
            first = table["key"][-1].as_py()
            if writer is None:
                writer = pq.ParquetWriter(
                    path,
                    table.schema,
                    compression=codec,
                    write_page_index=True,
                    sorting_columns=[pq.SortingColumn(0)],
                    **pages,
                )
            writer.write_table(table, row_group_size=group_rows)
    finally:
        if writer is not None:
            writer.close()


def _write_small(folder: Path, files: int, rows: int) -> None:
    folder.mkdir()
    first, step = 0, max(FEWEST_ROWS // rows, 1)
    for start in range(0, files, step):
        some = min(step, files - start)
        table = lookup_table(some * rows, first, SEED + start)
        first = table["key"][-1].as_py()
        for i in range(some):
            path = folder / f"part-{start + i:05}.parquet"
            one = table.slice(i * rows, rows)
            pq.write_table(one, path, compression="zstd", write_page_index=True)


def _write_keys(folder: Path, files: int, rows: int) -> None:
    folder.mkdir()
    for i in range(files):
        random = np.random.default_rng(SEED + i)
        t = np.arange(i * rows, (i + 1) * rows)
        table = pa.table({"key": _uuids(random.bytes(16 * rows)), "t": t, "v": random.random(rows)})
        path, pages = folder / f"part-{i:05}.parquet", {"max_rows_per_page": 1_000}
        pq.write_table(
            table, path, compression="zstd", use_dictionary=False, write_page_index=True, **pages
        )


def _write_wide(path: Path, columns: int, row_groups: int, group_rows: int) -> None:
    random = np.random.default_rng(SEED)
    n = row_groups * group_rows
    makers: list[Callable[[], pa.Array]] = [
        lambda: pa.array(np.arange(n) + random.integers(0, 1_000)),
        lambda: pa.array(random.random(n)),
        lambda: pa.array([f"v{x:06d}" for x in random.integers(0, 1_000_000, n).tolist()]),
        lambda: pa.array(random.integers(0, 100, n).astype(np.int32)),
    ]
    arrays = [makers[i % len(makers)]() for i in range(columns)]
    table = pa.table(arrays, names=[f"feature_{i:05d}" for i in range(columns)])
    pq.write_table(table, path, row_group_size=group_rows, compression="zstd")


def tpchgen() -> str | None:
    """Path of the tpchgen-cli command; None if it is not installed."""
    beside = Path(sys.executable).with_name("tpchgen-cli")
    return str(beside) if beside.exists() else shutil.which("tpchgen-cli")


def _write_lineitem(path: Path, scale: float) -> None:
    command = tpchgen()
    if command is None:
        raise FileNotFoundError("tpchgen-cli: not installed; pip install tpchgen-cli")
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        arguments = ["parquet", "-s", f"{scale:g}", "--tables", "lineitem", "--output-dir", folder]
        subprocess.run([command, *arguments], check=True, stdout=subprocess.DEVNULL)
        shutil.move(Path(folder) / "lineitem.parquet", path)
