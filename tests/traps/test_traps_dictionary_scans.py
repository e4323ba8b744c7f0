"""Scans that dictionaries prune give the rows of full ones, also in files of other writers."""

from __future__ import annotations

import io
import math
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek.format.chunks import page_header
from pageseek.prune.dictionary import DictionaryPruner
from support.bloom import bitset, bloomed, header
from support.opened import open_metadata
from support.oracle import agree
from support.pruners import holds, judged
from support.writer import (
    BYTE_ARRAY,
    DOUBLE,
    FIXED,
    INT32,
    INT64,
    STRING,
    Column,
    plain_value,
    write,
)

X = ps.col("x")
DICTIONARY = DictionaryPruner()


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pruners run wherever they can prove something, at any price."""
    monkeypatch.setattr("pageseek.prune.pruner_stage.DOUBT", 0)
    for module in ("bloom_filter", "dictionary"):
        monkeypatch.setattr(f"pageseek.prune.{module}.bytes_at_stake", lambda *_: 1 << 40)


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("encodings", ["dictionary", "plain"])
@pytest.mark.parametrize("index", [False, True])
@pytest.mark.parametrize("statistics", [False, True])
def test_pruned_scans_equal_full_ones(encodings: str, index: bool, statistics: bool) -> None:
    knobs = {
        "encodings": encodings,
        "offset_index": index,
        "column_index": index,
        "statistics": statistics,
    }
    cases: list[tuple[int, list[Any], list[Any], dict[str, Any]]] = [
        (INT32, [1, 5, 5, 9, 1, 5], [1, 4, 5, 10], {}),
        (INT32, [1, None, 5, None, 1, 5], [1, 4, 5, 10], {}),
        (INT32, [None] * 6, [1], {"optional": True}),
        (DOUBLE, [0.0, -0.0, math.nan, 1.5, 1.5, None], [0.0, -0.0, 1.5, 2.5, math.nan], {}),
        (BYTE_ARRAY, [b"a", b"", b"b", None, b"a", b"a"], ["a", "", "c"], {"logical": STRING}),
        (FIXED, [b"ab", b"cd"] * 3, [b"ab", b"ac", b"a"], {"type_length": 2}),
    ]
    for physical, values, literals, more in cases:
        plain = [plain_value(physical, v) for v in values if v is not None]
        for cuts in ([6], [2, 4], [1] * 6):
            x = Column("x", physical, values, cuts, **knobs, **more)
            made = header(1024) + bitset(plain or [b"nothing"])
            data = bloomed(x, made, others=(Column("row", INT64, list(range(6))),))
            agree(data, *literals)


@pytest.mark.usefixtures("eager")
def test_64_one_arm_of_an_or_is_not_enough() -> None:
    made = header(1024) + bitset([plain_value(INT32, v) for v in (1, 5, 9)])
    x = Column("x", INT32, [1, 5, 9], column_index=False, offset_index=False)
    y = Column("y", INT32, [2, 4, 6], encodings="dictionary", column_index=False)
    data = bloomed(x, made, others=(y,))
    assert ps.read_table(data, filter=(X == 4) | (ps.col("y") == 5)).num_rows == 0
    assert ps.read_table(data, filter=(X == 4) | (ps.col("y") == 4)).num_rows == 1
    assert ps.read_table(data, filter=(X == 5) | (ps.col("y") == 5)).num_rows == 1
    assert ps.read_table(data, filter=(X == 5) & (ps.col("y") == 5)).num_rows == 0


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("codec", ["uncompressed", "snappy", "zstd"])
def test_t53_dictionaries_of_many_row_groups_do_not_share_their_bytes(codec: str) -> None:
    """Dictionaries of one size, so that only wrong values would show reused memory."""
    groups = []
    for g in range(6):
        values = [b"%d-%02d" % (g, i % 9) for i in range(18)]
        rows = [18 * g + i for i in range(18)]
        how: dict[str, Any] = {"encodings": "dictionary", "codec": codec}
        x = Column("x", BYTE_ARRAY, values, [9, 9], logical=STRING, **how)
        groups.append([x, Column("row", INT64, rows, **how)])
    data = write(*groups)
    for g in range(6):
        wanted = [18 * g + 4, 18 * g + 13]
        assert ps.read_table(data, filter=f"{g}-04" == X)["row"].to_pylist() == wanted
        assert holds(data, DICTIONARY, f"{g}-04" == X).denied == [k != g for k in range(6)]
    assert ps.read_table(data, filter=X == "6-04").num_rows == 0
    some = X.isin([f"{g}-0{g}" for g in range(6)])
    kept = list(ps.scan(data, filter=some, batch_size=2).to_batches())
    texts = [v for batch in kept for v in batch.column("x").to_pylist()]
    assert texts == [f"{g}-0{g}" for g in range(6) for _ in range(2)]


# ---- files of others -----------------------------------------------------------------------------------


def test_dictionaries_of_other_writers_deny_no_value(conformance: Path) -> None:
    tried = 0
    for path in sorted((conformance / "corpus" / "valid").glob("*dict*.parquet")):
        data = path.read_bytes()
        file = open_metadata(data)
        for leaf in file.leaves:
            if leaf.max_rep or file.num_rows > 50_000:
                continue
            try:
                values = ps.read_table(data, columns=[leaf.path[0]])
                array = values[0].combine_chunks()
                for name in leaf.path[1:]:
                    array = array.field(name)
            except ps.PageseekError:
                continue
            first = 0
            for group, count in enumerate(file.group_rows):
                for value in array.slice(first, count).unique().drop_null()[:10]:
                    try:
                        made = judged(data, DICTIONARY, ps.col(*leaf.path) == value)
                    except ps.PredicateError:
                        break
                    assert not made.denied[group], (path.name, leaf.name, value)
                    tried += 1
                first += count
    assert tried


def test_54_a_malformed_dictionary_of_another_writer(conformance: Path) -> None:
    path = conformance / "corpus" / "hostile" / "pqtest__nation.dict-malformed.parquet"
    if not path.exists():
        pytest.skip(f"the corpus has no {path.name}")
    data = path.read_bytes()
    for leaf in open_metadata(data).leaves:
        judged(data, DICTIONARY, ~ps.col(leaf.name).isin([]) | (ps.col(leaf.name).is_not_null()))


def test_what_lies_between_dictionary_and_stated_first_page_is_read_pruned_or_not() -> None:
    """`data_page_offset` at the second data page, of rows that are as many as the rest has: the page before it counts."""
    values = [f"{'ABCDEFGH'[i % 8]}{i // 1000}" for i in range(10_000)]
    sink = io.BytesIO()
    pq.write_table(
        pa.table({"s": values}), sink, data_page_size=1, write_batch_size=1_000, compression="none",
        write_statistics=False, store_schema=False,
    )  # fmt: skip
    raw = sink.getvalue()
    size = int.from_bytes(raw[-8:-4], "little")
    chunk = pq.read_metadata(sink).row_group(0).column(0)
    first = chunk.data_page_offset
    header = page_header(memoryview(raw), first, lambda: "s", 0)
    second = first + header.header_length + header.compressed_size
    footer = raw[-8 - size : -8]
    assert footer.count(b"\x26" + varint(first)) == 1  # data_page_offset, two fields after the last
    footer = footer.replace(b"\x26" + varint(first), b"\x26" + varint(second))
    footer = footer.replace(b"\x16" + varint(10_000), b"\x16" + varint(9_000))  # counts
    lying = raw[: -8 - size] + footer + len(footer).to_bytes(4, "little") + b"PAR1"
    for wanted, page in (("A0", 0), ("A9", 9)):
        counts = {
            ps.read_table(lying, filter=ps.col("s") == wanted, prune=prune).num_rows
            for prune in (False, True, ["dictionary"])
        }
        assert counts == {0 if page == 9 else 125}


def varint(number: int) -> bytes:
    """A zigzag varint of the compact protocol."""
    rest, out = number << 1, bytearray()
    while rest > 127:
        out.append(rest & 127 | 128)
        rest >>= 7
    return bytes([*out, rest])
