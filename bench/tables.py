"""`python -m pageseek.bench.tables`: a lookup in a Delta Lake table of many files, beside deltalake and polars.

The table has one row group and 10,000 rows a file. All engines have its log in memory before; pageseek reads it also with a deletion vector for
each file. They take turns, in other files each time.
"""

from __future__ import annotations

import argparse
import base64
import itertools
import json
import shutil
import statistics
import struct
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from pageseek.bench.run import machine

import pageseek as ps

ROWS = 10_000  # of a file
_Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_B85 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"


def table_of(folder: Path, files: int) -> str:
    """A table with so many files, each of which has its own keys, in one commit."""
    from deltalake import write_deltalake

    root = folder / f"table-{files}"
    if not (root / "_delta_log").exists():
        random = np.random.default_rng(1)
        first = pa.table(_columns(0, random))
        write_deltalake(str(root), first)
        log = root / "_delta_log" / f"{1:020}.json"
        lines = []
        for i in range(1, files):
            name = f"{i}.parquet"
            pq.write_table(
                pa.table(_columns(i, random)),
                root / name,
                write_page_index=True,
                compression="zstd",
            )
            told = {"numRecords": ROWS, "minValues": {"id": i * ROWS}, "maxValues": {"id": (i + 1) * ROWS - 1}, "nullCount": {"id": 0}}  # fmt: skip
            size = (root / name).stat().st_size
            lines.append(json.dumps({"add": {"path": name, "partitionValues": {}, "size": size, "modificationTime": 1, "dataChange": True, "stats": json.dumps(told)}}))  # fmt: skip
        log.write_text("\n".join(lines))
    return str(root)


def _columns(i: int, random: np.random.Generator) -> dict[str, Any]:
    ids = np.arange(i * ROWS, (i + 1) * ROWS)
    return {"id": ids, "value": random.random(ROWS), "text": [f"text {n % 977}" for n in ids]}


def with_vectors(root: str) -> str:
    """A copy of a table in which each file has a vector of 20 rows, the first among them."""
    from deltalake import DeltaTable

    made = Path(f"{root}-vectors")
    if not made.exists():
        part = Path(f"{made}.part")
        shutil.copytree(root, part)
        features = ["deletionVectors"]
        actions: list[Any] = [
            {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": features, "writerFeatures": features}}
        ]  # fmt: skip
        data = _bitmap([*range(0, ROWS, ROWS // 20)])
        text = base64.b85encode(data + bytes(-len(data) % 4)).decode()
        vector = {
            "storageType": "i", "pathOrInlineDv": text.translate(str.maketrans(_B85, _Z85)),
            "sizeInBytes": len(data), "cardinality": 20,
        }  # fmt: skip
        for old in sorted((part / "_delta_log").glob("*.json")):
            for line in old.read_text().splitlines():
                added = json.loads(line).get("add")
                if added is not None:
                    removed = {"path": added["path"], "deletionTimestamp": 1, "dataChange": True}
                    actions += [{"remove": removed}, {"add": added | {"deletionVector": vector}}]
        version = DeltaTable(root).version() + 1
        log = part / "_delta_log" / f"{version:020}.json"
        log.write_text("\n".join(map(json.dumps, actions)))
        part.rename(made)
    return str(made)


def _bitmap(numbers: list[int]) -> bytes:
    body = np.array(numbers, "<u2").tobytes()
    head = struct.pack("<IQIIIHHI", 1681511377, 1, 0, 12346, 1, 0, len(numbers) - 1, 16)
    return head + body


def ways(root: str, vectors: str) -> dict[str, Callable[[int], int]]:
    """What answers a lookup, by name; each returns the number of rows."""
    import polars as pl
    from deltalake import DeltaTable

    plain, deleted = ps.scan(DeltaTable(root)), ps.scan(DeltaTable(vectors))
    query = plain.prepare(ps.col("id") == ps.param("key"))
    dataset: Any = DeltaTable(root).to_pyarrow_dataset()
    lazy = pl.scan_delta(DeltaTable(root))
    return {
        "pageseek": lambda key: int(plain.filter(ps.col("id") == key).to_table().num_rows),
        "pageseek, prepared": lambda key: int(query(key).num_rows),
        "pageseek, vectors": lambda key: int(
            deleted.filter(ps.col("id") == key).to_table().num_rows
        ),
        "deltalake": lambda key: int(dataset.to_table(filter=ds.field("id") == key).num_rows),
        "polars": lambda key: lazy.filter(pl.col("id") == key).collect().height,
    }


def main() -> None:
    """Print a table of medians."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--files", type=int, default=1_000)
    parser.add_argument("--rounds", type=int, default=30)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = given.folder or Path(scratch)
        root = table_of(folder, given.files)
        engines = ways(root, with_vectors(root))
        random = np.random.default_rng(7)
        seconds: dict[str, list[float]] = {name: [] for name in engines}
        # each lookup is in a file that nobody has read, as long as there is one
        files = iter(itertools.cycle(random.permutation(given.files).tolist()))
        for turn in range(given.rounds + 1):
            for name in random.permutation(list(engines)).tolist():  # none always follows the same
                answer = engines[name]
                row = int(random.integers(0, ROWS // 500)) * 500 + 1  # no deleted one
                key = next(files) * ROWS + row
                began = time.perf_counter()
                if answer(key) != 1:
                    raise RuntimeError(f"{name}: no row of key {key}")
                if turn:  # the first warms up
                    seconds[name].append(time.perf_counter() - began)
    print(
        f"{machine()}\n\n| lookup in {given.files:,} files | ms | times pageseek |\n|---|---|---|"
    )
    base = statistics.median(seconds["pageseek"])
    for name, found in seconds.items():
        median = statistics.median(found)
        print(f"| {name} | {median * 1e3:.2f} | {median / base:.2f} |")


if __name__ == "__main__":
    main()
