"""The table, and the eight files that hold its rows: sorted or not, indexed or not, by three writers."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pageseek.bench.pruning.queries import ID_STEP, ROWS, START

__all__ = ["LAYOUTS", "Layout", "make", "table"]

SEED = 20_240_607


def table() -> pa.Table:
    """A million rows: `id` ascends, `at` and `day` nearly do, all else is spread."""
    random = np.random.default_rng(SEED)
    n = ROWS
    ids = np.arange(n, dtype=np.int64) * ID_STEP
    late = random.integers(0, 600, n)  # seconds
    at = np.datetime64(START, "us") + (np.arange(n) + late).astype("timedelta64[s]")
    user = random.integers(0, 200_000, n).astype(np.int32)
    country = np.minimum(random.zipf(1.3, n) - 1, 10**6) % 60
    price = np.round(random.random(n) * 1000, 2)
    level = (random.random(n) * 256).astype(np.uint8)
    amount = pa.array(random.integers(0, 10_000_000, n)).cast(pa.decimal128(19, 0))
    tags = np.char.add("t-", np.char.zfill(np.vectorize(np.base_repr)(ids[::1] // 3, 16), 8))
    tags = np.char.lower(tags)[random.permutation(n)]
    words = np.array(
        ["red", "green", "blue", "small", "large", "round", "flat", "old", "new", "warm"]
    )
    picked = words[random.integers(0, len(words), (n, 6))]
    note = picked[:, 0]
    for i in range(1, 6):
        note = np.char.add(np.char.add(note, " "), picked[:, i])
    city = np.array([f"city {i:03d}" for i in range(500)])[random.integers(0, 500, n)]
    zone = random.integers(0, 64, n).astype(np.int32)
    cents = pa.compute.multiply(amount, pa.scalar(Decimal("0.01"))).cast(pa.decimal128(12, 2))
    return pa.table(
        {
            "id": ids,
            "at": pa.array(at),
            "day": pa.array(at.astype("datetime64[D]")),
            "user": user,
            "country": np.array([f"c{i:02d}" for i in range(60)])[country],
            "price": pa.array(price, mask=random.random(n) < 0.03),
            "amount": cents,
            "level": level,
            "flag": random.random(n) < 0.0002,
            "tag": tags,
            "note": note,
            "place": pa.StructArray.from_arrays(
                [pa.array(city), pa.array(zone)], names=["city", "zone"]
            ),
        }
    )


@dataclass(frozen=True, slots=True)
class Layout:
    """One file of the table. `needs`: the package that writes it."""

    name: str
    what: str
    write: Callable[[pa.Table, Path], None]
    needs: str = "pyarrow"


def _indexed(made: pa.Table, path: Path) -> None:
    pq.write_table(made, path, row_group_size=100_000, compression="zstd", write_page_index=True,
                   max_rows_per_page=8_192, data_page_size=1 << 16)  # fmt: skip


def _big_group(made: pa.Table, path: Path) -> None:
    pq.write_table(made, path, row_group_size=ROWS, compression="snappy", write_page_index=True,
                   data_page_size=1 << 17)  # fmt: skip


def _small_groups(made: pa.Table, path: Path) -> None:
    pq.write_table(made, path, row_group_size=5_000, compression="zstd")


def _plain_statistics(made: pa.Table, path: Path) -> None:
    pq.write_table(made, path, row_group_size=125_000, compression="snappy",
                   max_rows_per_page=20_000)  # fmt: skip


def _shuffled(made: pa.Table, path: Path) -> None:
    order = np.random.default_rng(SEED + 1).permutation(made.num_rows)
    options = {name: {"ndv": 100_000, "fpp": 0.01} for name in ("user", "tag", "id")}
    pq.write_table(made.take(order), path, row_group_size=100_000, compression="zstd",
                   write_page_index=True, max_rows_per_page=10_000,
                   bloom_filter_options=options)  # fmt: skip


def _no_statistics(made: pa.Table, path: Path) -> None:
    order = np.lexsort([made["id"].to_numpy(), made["country"].to_numpy(zero_copy_only=False)])
    pq.write_table(made.take(order), path, row_group_size=100_000, compression="zstd",
                   write_statistics=False, max_rows_per_page=10_000)  # fmt: skip


def _by_duckdb(made: pa.Table, path: Path) -> None:
    duckdb = importlib.import_module("duckdb")
    connection = duckdb.connect(config={"threads": 1})
    connection.register("made", made)
    connection.execute(
        f"COPY (SELECT * FROM made ORDER BY country, id) TO '{path}' "
        "(FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE 61440)"
    )


def _by_datafusion(made: pa.Table, path: Path) -> None:
    datafusion = importlib.import_module("datafusion")
    config = datafusion.SessionConfig().with_target_partitions(1)
    settings = {
        "bloom_filter_on_write": "true",
        "data_page_row_count_limit": "10000",
        "max_row_group_size": "200000",
        "compression": "'zstd(3)'",
        "writer_version": "'2.0'",
    }
    for name, value in settings.items():
        config = config.set(f"datafusion.execution.parquet.{name}", value.strip("'"))
    context = datafusion.SessionContext(config)
    order = np.lexsort([made["at"].to_numpy(), made["level"].to_numpy() // 64])
    frame = context.from_arrow(made.take(order).combine_chunks())
    folder = path.with_name(path.name + ".parts")
    frame.write_parquet(str(folder))
    parts = sorted(folder.rglob("*.parquet")) if folder.is_dir() else [folder]
    if len(parts) != 1:
        raise RuntimeError(f"datafusion wrote {len(parts)} files where one was expected")
    parts[0].replace(path)
    if folder.is_dir():
        folder.rmdir()


LAYOUTS: tuple[Layout, ...] = (
    Layout("indexed", "sorted by id, page index, pages of 8,192 rows, zstd", _indexed),
    Layout("big-group", "sorted by id, one row group, pages of 128 KiB, snappy", _big_group),
    Layout("small-groups", "sorted by id, 200 row groups, no page index, zstd", _small_groups),
    Layout("statistics", "sorted by id, 8 row groups, no page index, snappy", _plain_statistics),
    Layout("shuffled", "no order, page index, Bloom filters of id, user and tag", _shuffled),
    Layout("no-statistics", "by country, neither statistics nor page index", _no_statistics),
    Layout("duckdb", "by country, as duckdb writes it", _by_duckdb, "duckdb"),
    Layout(
        "datafusion",
        "by level and time, page index, Bloom filters, V2 pages",
        _by_datafusion,
        "datafusion",
    ),
)


def make(folder: Path) -> dict[str, Path]:
    """The files of all layouts whose writers are installed; made once and found there again."""
    found: dict[str, Path] = {}
    made: pa.Table | None = None
    for layout in LAYOUTS:
        path = folder / f"pruning-{layout.name}-{ROWS}.parquet"
        if not path.exists():
            try:
                importlib.import_module(layout.needs)
            except ImportError:
                continue
            made = table() if made is None else made
            folder.mkdir(parents=True, exist_ok=True)
            unfinished = path.with_name(f"{path.name}.{os.getpid()}")
            layout.write(made, unfinished)
            unfinished.replace(path)
        found[layout.name] = path
    return found
