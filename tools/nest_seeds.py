"""Seeds for the fuzz target `nest`: pages of nested files that pyarrow writes, in the form that the target reads.

    python tools/nest_seeds.py

Written to _core/tests/seeds/nest; the form is that of _core/tests/fuzz_nest.c.
"""

from __future__ import annotations

import io
import random
import struct
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from support.nested_pages import compact, parts_of  # noqa: E402
from support.nesting import node_of  # noqa: E402

FORMS = {pa.bool_(): 0, pa.int32(): 1, pa.int64(): 2, pa.float64(): 3, pa.string(): 4}
DATA, DICTIONARY, DATA_V2 = 0, 2, 3
SELECTIONS = {  # byte of shape, and what follows it
    "rows": bytes([3, 2, 9, 5, 40, 1, 200]),
    "bits": bytes([66, 2, 0, 0x6D, 0xB5, 0x57]),
    "runs": bytes([162, 7, 2, 0xFF, 0x01, 0x5A, 0, 0xFF, 0xFF, 0x3C, 0x18]),
}


def words(*values: int) -> bytes:
    return struct.pack(f"<{len(values)}H", *values)


def records(data: bytes, chunk: Any, flags: int) -> bytes:
    """The pages of a column chunk, one record each."""
    at = chunk.data_page_offset
    if chunk.has_dictionary_page:
        at = min(at, chunk.dictionary_page_offset)
    stop, out = at + chunk.total_compressed_size, b""
    while at < stop:
        header, size = compact(data[at:])
        at += size
        body = data[at : at + header[3]]
        at += header[3]
        if header[1] == DICTIONARY:
            out += bytes([0, 0]) + words(header[7][1], len(body)) + body
        elif header[1] == DATA:
            page = header[5]
            out += bytes([page[2] << 4 | 2, flags]) + words(page[1], len(body)) + body
        else:
            page = header[8]
            levels = page[6] + page[5]
            out += bytes([page[4] << 4 | 4, flags]) + words(page[1], page[6], page[5])
            out += body[:levels] + words(len(body) - levels) + body[levels:]
    return out


def seeds(kind: pa.DataType, rows: list[Any]) -> dict[str, bytes]:
    made = {}
    parts = parts_of(node_of(kind))
    for version, (name, chosen), use_dictionary in (
        ("1.0", ("rows", SELECTIONS["rows"]), False),
        ("1.0", ("runs", SELECTIONS["runs"]), True),
        ("2.0", ("bits", SELECTIONS["bits"]), False),
        ("2.0", ("runs", SELECTIONS["runs"]), True),
    ):
        sink = io.BytesIO()
        table = pa.table({"c": pa.array(rows, kind)})
        how = {"compression": "NONE", "data_page_version": version, "store_schema": False}
        pq.write_table(
            table,
            sink,
            data_page_size=400,
            write_batch_size=50,
            use_dictionary=use_dictionary,
            **how,
        )
        data = sink.getvalue()
        group = pq.ParquetFile(io.BytesIO(data)).metadata.row_group(0)
        for i, part in enumerate(parts):
            nesting_levels = sum(
                1 << k
                for k, nesting_level in enumerate(part.nesting_levels)
                if nesting_level[0] == 1
            )
            own = part.leaf.max_def - len(part.nesting_levels)
            most = 0 if name != "rows" else 20
            lead = bytes(
                [
                    FORMS[part.leaf_type.type],
                    own << 1,
                    most,
                    nesting_levels,
                    len(part.nesting_levels) - 1,
                    chosen[0],
                ]
            )
            made[f"{part.leaf.name}_{name}_v{version[0]}_{i}"] = (
                lead + chosen[1:] + records(data, group.column(i), 32 if version[0] == "2" else 0)
            )
    return made


def main() -> None:
    dice = random.Random(3)

    def some(make: Any, most: int = 4) -> Any:
        return None if dice.random() < 0.2 else [make() for _ in range(dice.randrange(most))]

    def maybe(value: Any) -> Any:
        return None if dice.random() < 0.2 else value

    def number() -> Any:
        return maybe(dice.randrange(50))

    tables: dict[str, tuple[pa.DataType, list[Any]]] = {
        "list": (pa.list_(pa.int32()), [some(number) for _ in range(300)]),
        "lists": (pa.list_(pa.list_(pa.int64())), [some(lambda: some(number)) for _ in range(200)]),
        "struct": (
            pa.struct([("a", pa.bool_()), ("b", pa.struct([("c", pa.string())]))]),
            [
                maybe({"a": maybe(i % 3 == 0), "b": maybe({"c": maybe("ab" * (i % 4))})})
                for i in range(300)
            ],
        ),
        "deep": (
            pa.list_(pa.struct([("x", pa.list_(pa.float64())), ("y", pa.string())])),
            [
                some(lambda: maybe({"x": some(number), "y": maybe("y" * dice.randrange(3))}))
                for _ in range(200)
            ],
        ),
    }
    target = ROOT / "_core/tests/seeds/nest"
    target.mkdir(parents=True, exist_ok=True)
    for name, (kind, rows) in tables.items():
        for seed, data in seeds(kind, rows).items():
            (target / f"{name}_{seed.split('_', 1)[1]}").write_bytes(data[:4000])


if __name__ == "__main__":
    main()
