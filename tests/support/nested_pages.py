"""Nested columns cut into pages at will: pages for a decoder, and whole files.

Schemas are those that pyarrow writes for a type, taken over element by element; levels come from `nesting.shred`.
"""

from __future__ import annotations

import io
import itertools
import struct
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from pageseek._core import decode as core
from pageseek.format.columns import Part, _part
from pageseek.format.nesting import REPEATED, Decoded, Node
from pageseek.format.types import Options, to_arrow
from support import encodings as encoders
from support.nesting import Shredded, nodes_of, shred
from support.writer import (
    BYTE_ARRAY,
    CODECS,
    ENCODINGS,
    FIXED,
    I8,
    I16,
    I32,
    I64,
    RLE,
    Struct,
    compress,
    hybrid,
    plain,
    plain_value,
    thrift,
)

FITTING = {  # encodings besides plain and dictionary, by physical type
    0: ("rle",),
    1: ("delta", "split"),
    2: ("delta", "split"),
    4: ("split",),
    5: ("split",),
    BYTE_ARRAY: ("delta-lengths", "delta-strings"),
    FIXED: ("delta-strings", "split"),
}


@dataclass(frozen=True)
class Layout:
    """How the entries of a leaf lie in pages.

    `cuts`: entries at which pages begin, but for the first. `codec` and `version` are those of all pages, `encodings` are
    taken in turns. Levels are runs, or (`packed`) packed. `bounds`: statistics, and a column index where
    there is an offset index.
    """

    cuts: tuple[int, ...] = ()
    version: int = 1
    encodings: tuple[str, ...] = ("plain",)
    codec: str = "uncompressed"
    packed: bool = False
    offset_index: bool = True
    bounds: bool = True
    crc: bool = False
    told: tuple[int, ...] = ()  # rows that headers of version 2 claim, where not the true ones


class PageOf(NamedTuple):
    """A page with its header, the row after those that began before it, and the rows that begin in it."""

    data: bytes
    first: int
    rows: int


# ---- values ---------------------------------------------------------------------------------------


def physical_of(value: Any, physical: int, length: int) -> Any:
    """A value as the file has it: a decimal in its digits, text in bytes."""
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, Decimal):
        sign, digits, _ = value.as_tuple()
        number = int("".join(map(str, digits))) * (-1 if sign else 1)
        return number.to_bytes(length, "big", signed=True) if physical == FIXED else number
    return value


@dataclass
class LeafPages:
    """A leaf's levels and physical values, and what its pages come to; `dictionary` is a page too, or empty."""

    node: Node
    part: Part
    levels: Shredded
    layout: Layout
    values: list[Any] = field(init=False)
    entries: list[Any] = field(init=False)  # of the dictionary
    codes: dict[str, int] = field(init=False)

    def __post_init__(self) -> None:
        element = self.part.leaf.element
        self.physical, length = int(element.type), int(element.type_length)
        self.values = [physical_of(v, self.physical, length) for v in self.levels.values]
        known = {repr(v): v for v in self.values}  # -0.0 is not 0.0, and NaN is itself
        self.entries = list(known.values())
        self.codes = {shown: code for code, shown in enumerate(known)}

    @property
    def dictionary(self) -> bytes:
        if "dictionary" not in self.layout.encodings:
            return b""
        body = plain(self.physical, self.entries)
        header: Struct = {1: I32(2), 7: {1: I32(len(self.entries)), 2: I32(0)}}
        return self._page(header, b"", body)

    def pages(self) -> list[PageOf]:
        reps, defs, _ = self.levels
        top, made, row, value = self.part.leaf.max_def, [], 0, 0
        edges = [0, *self.layout.cuts, len(defs)]
        for number, (start, stop) in enumerate(itertools.pairwise(edges)):
            there = defs[start:stop].count(top)
            rows = reps[start:stop].count(0)
            page = self._data_page(
                number, reps[start:stop], defs[start:stop], self.values[value : value + there]
            )
            made.append(PageOf(page, row, rows))
            row, value = row + rows, value + there
        return made

    def _data_page(
        self, number: int, reps: list[int], defs: list[int], values: Sequence[Any]
    ) -> bytes:
        layout, leaf = self.layout, self.part.leaf
        name = layout.encodings[number % len(layout.encodings)]
        encoding = ENCODINGS[name]
        if name == "dictionary":
            width = max(len(self.entries) - 1, 0).bit_length()
            codes = [self.codes[repr(v)] for v in values]
            body = bytes([width]) + hybrid(codes, width, layout.packed)
        elif name == "rle":
            runs = hybrid([int(v) for v in values], 1, layout.packed)
            body = struct.pack("<I", len(runs)) + runs
        else:
            body = plain(self.physical, values)
            if name != "plain":
                body = encoders.encode(encoding, self.physical, values, body, encoders.USUAL)
        rep, deep = (
            hybrid(levels, top.bit_length(), layout.packed) if top else b""
            for levels, top in ((reps, leaf.max_rep), (defs, leaf.max_def))
        )
        if layout.version == 1:
            for levels, top in ((deep, leaf.max_def), (rep, leaf.max_rep)):
                if top:
                    body = struct.pack("<I", len(levels)) + levels + body
            header = {1: I32(len(defs)), 2: I32(encoding), 3: I32(RLE), 4: I32(RLE)}
            return self._page({1: I32(0), 5: header}, b"", body)
        header = {
            1: I32(len(defs)),
            2: I32(sum(level < leaf.max_def for level in defs)),
            3: I32(layout.told[number] if layout.told else reps.count(0)),
            4: I32(encoding),
            5: I32(len(deep)),
            6: I32(len(rep)),
            7: layout.codec != "uncompressed",
        }
        return self._page({1: I32(3), 8: header}, rep + deep, body)

    def _page(self, header: Struct, levels: bytes, body: bytes) -> bytes:
        version_2 = header[1] == 3
        packed = body if version_2 and not body else compress(self.layout.codec, body)
        stored = levels + packed
        header |= {2: I32(len(levels) + len(body)), 3: I32(len(stored))}
        if self.layout.crc:
            crc = zlib.crc32(stored)
            header[4] = I32(crc - (1 << 32) if crc >> 31 else crc)
        return thrift(header) + stored

    def whole_rows(self) -> bool:
        """Whether every page begins with a row, as an offset index asks for."""
        reps = self.levels.reps
        return all(cut < len(reps) and reps[cut] == 0 for cut in self.layout.cuts)


def row_cuts(levels: Shredded) -> list[int]:
    """Entries at which a page may begin under an offset index."""
    return [i for i, rep in enumerate(levels.reps) if rep == 0 and i]


# ---- a decoder, fed ------------------------------------------------------------------------------


def parts_of(node: Node) -> list[Part]:
    return [_part(node, at) for at in node.leaf_nodes()]


def decoder_of(part: Part, *, levels_only: bool = False, codec: str = "uncompressed") -> Any:
    def inflate(data: memoryview, size: int) -> Any:
        return pa.Codec(codec).decompress(data, decompressed_size=size, asbytes=True)

    return core.LeafDecoder(
        part.leaf_type.core,
        part.leaf.max_def,
        part.leaf.max_rep,
        codec=codec,
        decompress=inflate,
        nesting_levels=part.nesting_levels,
        levels_only=levels_only,
    )


def finished(decoder: Any, part: Part, levels_only: bool = False) -> Decoded:
    """The output of a decoder, as the slow reference has it."""
    made = decoder.finish()
    array = pa.nulls(0) if levels_only else to_arrow(part.leaf_type, *made)
    nesting_levels: list[tuple[Any, ...]] = []
    for nesting_level, (slots, nulls, validity, offsets) in zip(
        part.nesting_levels, decoder.nesting_levels(), strict=True
    ):
        nesting_levels.append(
            (slots, offsets) if nesting_level[0] == REPEATED else (slots, nulls, validity)
        )
    return Decoded(decoder.rows, array, nesting_levels)


def drive(
    decoder: Any,
    part: Part,
    pages: Sequence[PageOf],
    *selections: Any,
    indexed: bool,
    dictionary: bytes = b"",
    max_rows: int = 1 << 62,
    wanted: Sequence[bool] | None = None,
    levels_only: bool = False,
) -> Iterator[Decoded]:
    """Read one selection after the other, page by page, in batches of so many rows.

    `wanted`: pages that are not handed where False.
    """
    feed = iter(pages if wanted is None else list(itertools.compress(pages, wanted)))
    for chosen in selections:
        decoder.begin(chosen, max_rows)
        state, ended = decoder.resume(), False
        while state != core.TAKE_DONE:
            if state == core.TAKE_FULL:
                yield finished(decoder, part, levels_only)
                decoder.begin(chosen, max_rows)
                state = decoder.resume()
            elif (page := next(feed, None)) is None:
                assert not ended, "a selected row has not come"
                state, ended = decoder.end(), True
            else:
                count = page.rows if indexed else -1
                decoder.head(page.data, 0, count)
                state = decoder.take(page.first, indexed)
                if state == core.TAKE_DICTIONARY:
                    decoder.head(dictionary)
                    decoder.take_dictionary()
                    decoder.head(page.data, 0, count)
                    state = decoder.take(page.first, indexed)
        yield finished(decoder, part, levels_only)


def same(found: Decoded, wanted: Decoded, values: bool = True) -> bool:
    """Whether all buffers say the same; bits behind the last one do not count."""
    if found.rows != wanted.rows or len(found.nesting_levels) != len(wanted.nesting_levels):
        return False
    if values and not found.array.equals(wanted.array):
        return False
    for a, b in zip(found.nesting_levels, wanted.nesting_levels, strict=True):
        if a[0] != b[0] or len(a) != len(b):
            return False
        if len(a) == 2:
            if not np.array_equal(np.frombuffer(a[1], np.int32), np.frombuffer(b[1], np.int32)):
                return False
        elif (
            a[1] != b[1]
            or (a[2] is None) != (b[2] is None)
            or (a[2] is not None and _bits(a) != _bits(b))
        ):
            return False
    return True


def _bits(nesting_level: tuple[Any, ...]) -> bytes:
    bits = np.frombuffer(nesting_level[2], np.uint8)
    return np.unpackbits(bits, count=nesting_level[0], bitorder="little").tobytes()


# ---- files ---------------------------------------------------------------------------------------


def compact(data: bytes) -> tuple[Struct, int]:
    """A struct at the front of the bytes, and how many of them it takes."""
    reader = _Reader(data)
    return reader.struct(), reader.source.tell()


class _Reader:
    """Just enough of the compact protocol to take over what pyarrow writes."""

    def __init__(self, data: bytes) -> None:
        self.source = io.BytesIO(data)

    def _byte(self) -> int:
        return self.source.read(1)[0]

    def _varint(self) -> int:
        value = shift = 0
        while True:
            byte = self._byte()
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7

    def _value(self, kind: int) -> Any:
        if kind in (4, 5, 6):
            n = self._varint()
            return (None, None, None, None, I16, I32, I64)[kind](n >> 1 ^ -(n & 1))  # type: ignore[misc]
        if kind == 3:
            return I8(self._byte())
        if kind == 8:
            return self.source.read(self._varint())
        if kind == 9:
            size = self._byte()
            n = size >> 4 if size >> 4 < 15 else self._varint()
            return [self._value(size & 15) for _ in range(n)]
        assert kind == 12
        return self.struct()

    def struct(self) -> Struct:
        made: Struct = {}
        last = 0
        while head := self._byte():
            if head >> 4:
                last += head >> 4
            else:
                n = self._varint()
                last = n >> 1 ^ -(n & 1)
            kind = head & 15
            made[last] = kind == 1 if kind in (1, 2) else self._value(kind)
        return made


@cache
def elements_of(schema: pa.Schema) -> tuple[list[Struct], list[Node]]:
    """The schema elements that pyarrow writes, and the nodes of the top-level fields."""
    sink = io.BytesIO()
    with pq.ParquetWriter(sink, schema, store_schema=False):
        pass
    data = sink.getvalue()
    (size,) = struct.unpack("<I", data[-8:-4])
    return compact(data[-8 - size : -8])[0][2], nodes_of(data, Options())


def _statistics(leaf: LeafPages, values: Sequence[Any], entries: int) -> Struct:
    made: Struct = {3: I64(entries - len(values))}
    if leaf.physical in (1, 2, BYTE_ARRAY) and values:
        low, high = min(values), max(values)
        made |= {5: plain_value(leaf.physical, high), 6: plain_value(leaf.physical, low)}
    return made


def file_of(
    schema: pa.Schema,
    rows: Mapping[str, Sequence[Any]],
    layouts: Sequence[Layout],
    edit_locations: Callable[[int, list[Struct]], Any] | None = None,
) -> bytes:
    """A file of one row group; a layout for each leaf. The hook gets the pages of an offset index, by leaf number."""
    elements, nodes = elements_of(schema)
    leaves = [
        LeafPages(node, part, levels, layouts[part.leaf.index])
        for node in nodes
        for levels_of in [shred(node, rows[node.name])]
        for part in parts_of(node)
        for levels in [levels_of[part.leaf.index]]
    ]
    out = bytearray(b"PAR1")
    chunks: list[Struct] = []
    indexes: list[tuple[Struct, LeafPages, list[tuple[int, int, int]]]] = []
    for leaf in leaves:
        start, places = len(out), []
        dictionary = leaf.dictionary
        out += dictionary
        first = len(out)
        for page in leaf.pages():
            places.append((len(out), len(page.data), page.first))
            out += page.data
        size = I64(len(out) - start)
        meta: Struct = {
            1: I32(leaf.physical),
            2: [I32(0), I32(RLE), *(I32(ENCODINGS[e]) for e in leaf.layout.encodings)],
            3: [name.encode() for name in leaf.part.leaf.path],
            4: I32(CODECS[leaf.layout.codec]),
            5: I64(len(leaf.levels.defs)),
            6: size,
            7: size,
            9: I64(first),
        }
        if dictionary:
            meta[11] = I64(start)
        if leaf.layout.bounds:
            meta[12] = _statistics(leaf, leaf.values, len(leaf.levels.defs))
        chunk: Struct = {2: I64(0), 3: meta}
        chunks.append(chunk)
        if leaf.layout.offset_index and leaf.whole_rows():
            indexes.append((chunk, leaf, places))
    for chunk, leaf, _ in indexes:
        if leaf.layout.bounds and not leaf.part.leaf.max_rep:
            _add(out, chunk, 6, _column_index(leaf))
    for chunk, leaf, places in indexes:
        locations = [{1: I64(at), 2: I32(size), 3: I64(row)} for at, size, row in places]
        if edit_locations:
            edit_locations(leaf.part.leaf.index, locations)
        _add(out, chunk, 4, {1: locations})
    n = len(next(iter(rows.values())))
    footer = thrift(
        {
            1: I32(2),
            2: elements,
            3: I64(n),
            4: [{1: chunks, 2: I64(len(out)), 3: I64(n)}],
            6: b"pageseek-tests version 1.0.0",
            7: [{1: {}} for _ in leaves],
        }
    )
    return bytes(out + footer + struct.pack("<I", len(footer)) + b"PAR1")


def _column_index(leaf: LeafPages) -> Struct | None:
    top, made = leaf.part.leaf.max_def, []
    value = 0
    for start, stop in itertools.pairwise([0, *leaf.layout.cuts, len(leaf.levels.defs)]):
        there = leaf.levels.defs[start:stop].count(top)
        made.append(_statistics(leaf, leaf.values[value : value + there], stop - start))
        value += there
    if leaf.physical not in (1, 2, BYTE_ARRAY):
        return None
    return {
        1: [5 not in page for page in made],
        2: [page.get(6, b"") for page in made],
        3: [page.get(5, b"") for page in made],
        4: I32(0),
        5: [page[3] for page in made],
    }


def _add(out: bytearray, chunk: Struct, at: int, index: Struct | None) -> None:
    """Write an index; its offset and length are the fields `at` and `at` + 1 of the chunk."""
    if index is None:
        return
    data = thrift(index)
    chunk |= {at: I64(len(out)), at + 1: I32(len(data))}
    out += data
