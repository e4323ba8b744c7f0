"""Nested columns in plain Python: schemas written by hand, values to levels, and levels to what a decoder gives.

Nothing here shares code with the package but the shape of `Node`, `rungs` and `Decoded`. Values are what pyarrow takes:
a struct is a dict, a list a list, a map a list of pairs, null is None.
"""

from __future__ import annotations

import base64
import io
import struct
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from pageseek._core import metadata as core
from pageseek.format.file_footer import key_values
from pageseek.format.nesting import Decoded, Node, assemble, build, nesting_levels_of
from pageseek.format.schema import Schema
from pageseek.format.types import Options, SchemaElement
from support.writer import I32, I64, Struct, hybrid, plain, thrift

REQUIRED, OPTIONAL, REPEATED = range(3)
MAP, MAP_KEY_VALUE, LIST = 1, 2, 3  # ConvertedType
LOGICAL = {MAP: 2, LIST: 3}  # the same in LogicalType
INT32, BYTE_ARRAY = 1, 6


# ---- schemas by hand -----------------------------------------------------------------------------


def leaf(
    name: str,
    repetition: int | None = OPTIONAL,
    *,
    physical: int = INT32,
    converted: int | None = None,
    logical: int | None = None,
    field_id: int | None = None,
) -> list[Struct]:
    """The schema element of a leaf."""
    return [
        {
            1: I32(physical),
            3: None if repetition is None else I32(repetition),
            4: name.encode(),
            6: None if converted is None else I32(converted),
            9: None if field_id is None else I32(field_id),
            10: None if logical is None else {logical: {}},
        }
    ]


def group(
    name: str,
    repetition: int | None,
    *children: list[Struct],
    says: int | None = None,
    logical: int | None = None,
    field_id: int | None = None,
) -> list[Struct]:
    """The schema elements of a group and of all below it; `says` is its ConvertedType."""
    own: Struct = {
        3: None if repetition is None else I32(repetition),
        4: name.encode(),
        5: I32(len(children)),
        6: None if says is None else I32(says),
        9: None if field_id is None else I32(field_id),
        10: None if logical is None else {logical: {}},
    }
    return [own, *(element for child in children for element in child)]


class Shredded(NamedTuple):
    """The levels of a leaf, and its values that are not null."""

    reps: list[int]
    defs: list[int]
    values: list[Any]


def file(
    fields: Sequence[list[Struct]],
    stored: Any = None,
    rows: int = 0,
    columns: Sequence[tuple[tuple[str, ...], int, int, Shredded]] = (),
) -> bytes:
    """A file of these top-level fields, and of one row group if columns are given.

    `stored` is the Arrow schema that the writer leaves, or what serializes like one. A column is (path, greatest repetition level, greatest definition level, INT32 levels and values).
    """
    out = bytearray(b"PAR1")
    chunks: list[Struct] = []
    for path, max_rep, max_def, (reps, defs, values) in columns:
        start = len(out)
        body = b""
        for top, levels in ((max_rep, reps), (max_def, defs)):
            if top:
                runs = hybrid(levels, top.bit_length())
                body += struct.pack("<I", len(runs)) + runs
        body += plain(INT32, values)
        header = {5: {1: I32(len(defs)), 2: I32(0), 3: I32(3), 4: I32(3)}}
        out += thrift({1: I32(0), 2: I32(len(body)), 3: I32(len(body)), **header}) + body
        size = I64(len(out) - start)
        meta: Struct = {
            1: I32(INT32),
            2: [I32(0), I32(3)],
            3: [part.encode() for part in path],
            4: I32(0),
            5: I64(len(defs)),
            6: size,
            7: size,
            9: I64(start),
        }
        chunks.append({2: I64(0), 3: meta})
    footer: Struct = {
        1: I32(2),
        2: group("schema", None, *fields),
        3: I64(rows),
        4: [{1: chunks, 2: I64(len(out)), 3: I64(rows)}] if chunks else [],
    }
    if stored is not None:
        footer[5] = [
            {1: b"ARROW:schema", 2: base64.b64encode(stored.serialize().to_pybytes())},
        ]
    encoded = thrift(footer)
    return bytes(out + encoded + struct.pack("<I", len(encoded)) + b"PAR1")


def schema_of(data: bytes) -> Schema:
    """The schema tree of a file in memory."""
    (size,) = struct.unpack("<I", data[-8:-4])
    footer = memoryview(data)[-8 - size : -8]
    parsed = core.footer(footer)
    stored = key_values(footer, parsed[8]).get(b"ARROW:schema")
    return Schema(parsed[4], parsed[5], footer, stored, "t.parquet")


def table_schema(*records: dict[str, Any]) -> Schema:
    """A schema of element records that no footer was checked for; `name` besides the fields of SchemaElement."""
    names = b"".join(record["name"].encode() for record in records)
    absent = -(1 << 63)
    rows, at = [], 0
    for record in records:
        size = len(record["name"].encode())
        known = {k: v for k, v in record.items() if k != "name"}
        made = dict.fromkeys(SchemaElement._fields, absent)
        rows.append([*(made | {"name_offset": at, "name_length": size} | known).values()])
        at += size
    kind, count = (SchemaElement._fields.index(name) for name in ("type", "num_children"))
    leaves = sum(row[kind] != absent and row[count] <= 0 for row in rows[1:])
    return Schema(np.array(rows, np.int64).tobytes(), leaves, memoryview(names), None, "t.parquet")


# ---- values to levels and back -------------------------------------------------------------------


def shred(node: Node, rows: Iterable[Any]) -> dict[int, Shredded]:
    """The levels and values of every leaf below a top-level field, row by row (Dremel's record shredding)."""
    made = {leaf.index: Shredded([], [], []) for leaf in node.leaves()}

    def missing(below: Node, rep: int, level: int) -> None:
        for each in below.leaves():
            made[each.index].reps.append(rep)
            made[each.index].defs.append(level)

    def walk(at: Node, value: Any, rep: int, level: int) -> None:
        if at.optional:
            if value is None:
                missing(at, rep, level)
                return
            level += 1
        if at.kind == "leaf":
            missing(at, rep, level)
            made[at.first_leaf].values.append(value)
        elif at.kind == "struct":
            for child in at.children:
                walk(child, value[child.name], rep, level)
        elif not value:
            missing(at, rep, level)
        else:
            for i, element in enumerate(value):
                parts = element if at.kind == "map" else [element]
                for child, part in zip(at.children, parts, strict=True):
                    walk(child, part, rep if i == 0 else at.rep_level + 1, level + 1)

    for row in rows:
        walk(node, row, 0, 0)
    return made


def bitmap(bits: Sequence[bool]) -> bytes:
    number = sum(bit << i for i, bit in enumerate(bits))
    return number.to_bytes((len(bits) + 7) // 8, "little")


def decode_slowly(node: Node, number: int, levels: Shredded) -> Decoded:
    """The output of a decoder for a leaf, derived from the meaning of the levels."""
    nesting_levels = nesting_levels_of(node, number)
    target = next(leaf for leaf in _leaf_nodes(node) if leaf.first_leaf == number)
    assert target.leaf is not None and target.leaf_type is not None
    if target.optional:
        nesting_levels = nesting_levels[:-1]
    entries = list(zip(levels.reps, levels.defs, strict=True))

    def begins(lists: int, due: int) -> list[int]:
        """Entries that begin a slot of the segment at a list depth."""
        return [i for i, (rep, level) in enumerate(entries) if rep <= lists and level >= due]

    made: list[tuple[Any, ...]] = []
    lists, slots = 0, begins(0, 0)
    for kind, due, rep in nesting_levels:
        if kind == 0:
            bits = [entries[i][1] >= due for i in slots]
            made.append((len(slots), bits.count(False), None if all(bits) else bitmap(bits)))
        else:
            lists += 1
            assert rep == lists
            inner = begins(lists, due)
            offsets = [sum(i < begin for i in inner) for begin in slots] + [len(inner)]
            made.append((len(slots), np.array(offsets, np.int32)))
            slots = inner
    values = iter(levels.values)
    top = target.leaf.max_def
    array = [next(values) if entries[i][1] == top else None for i in slots]
    return Decoded(levels.reps.count(0), pa.array(array, target.leaf_type.storage), made)


def _leaf_nodes(node: Node) -> Iterable[Node]:
    if node.kind == "leaf":
        yield node
    for child in node.children:
        yield from _leaf_nodes(child)


def decode_all(node: Node, rows: Iterable[Any]) -> dict[int, Decoded]:
    """The output of decoders for every leaf of a column of these values."""
    return {i: decode_slowly(node, i, levels) for i, levels in shred(node, rows).items()}


# ---- nodes, and what holds for each of them -----------------------------------------------------


def nodes_of(data: bytes, options: Options | None = None) -> list[Node]:
    tree = schema_of(data)
    return [
        build(tree, i, options or Options(), tree.stored_field(i, tree.field(i).name))
        for i in range(tree.num_fields)
    ]


def written(field: pa.Field) -> bytes:
    """A file of no rows that pyarrow writes."""
    sink = io.BytesIO()
    with pq.ParquetWriter(sink, pa.schema([field])):
        pass
    return sink.getvalue()


def node_of(kind: pa.DataType, nullable: bool = True, metadata: Any = None) -> Node:
    """The node of a column that pyarrow writes of this type."""
    (node,) = nodes_of(written(pa.field("c", kind, nullable, metadata)))
    return node


def check_levels(node: Node) -> None:
    for each in node.leaves():
        nesting_levels = nesting_levels_of(node, each.index)
        assert [nesting_level[1] for nesting_level in nesting_levels] == list(
            range(1, each.max_def + 1)
        )
        assert [
            nesting_level[2] for nesting_level in nesting_levels if nesting_level[0] == 1
        ] == list(range(1, each.max_rep + 1))


def check_round_trip(node: Node, rows: list[Any]) -> None:
    made = assemble(node, decode_all(node, rows))
    made.validate(full=True)
    assert made.type == node.field.type
    assert made.to_pylist(maps_as_pydicts=None) == rows
    assert len(made) == len(rows)


# ---- lists and maps in every form ----------------------------------------------------------------

KV = leaf("key", REQUIRED, field_id=1), leaf("value", OPTIONAL, field_id=2)


def lists(says: int | None = LIST, logical: int | None = None) -> dict[str, list[Any]]:
    """Lists and maps in every form that LogicalTypes.md or a writer knows."""

    def ls(name: str, repetition: int, *below: Any, field_id: int | None = None) -> Any:
        return group(name, repetition, *below, says=says, logical=logical, field_id=field_id)

    return {
        "two levels": ls("l", OPTIONAL, leaf("item", REPEATED, field_id=9), field_id=5),
        "three levels": ls(
            "l", OPTIONAL, group("list", REPEATED, leaf("element", field_id=9), field_id=6)
        ),
        "nothing null": ls("l", REQUIRED, group("list", REPEATED, leaf("element", REQUIRED))),
        "named array": ls("l", OPTIONAL, group("array", REPEATED, leaf("x"), field_id=6)),
        "named tuple": ls("l", OPTIONAL, group("l_tuple", REPEATED, leaf("x"))),
        "a tuple of another": ls("l", OPTIONAL, group("m_tuple", REPEATED, leaf("x"))),
        "two fields": ls("l", OPTIONAL, group("x", REPEATED, leaf("a"), leaf("b", REQUIRED))),
        "of lists": ls(
            "l",
            OPTIONAL,
            group("list", REPEATED, ls("element", OPTIONAL, group("list", REPEATED, leaf("e")))),
        ),
        "of two-level lists": ls(
            "l", OPTIONAL, ls("array", REPEATED, leaf("array", REPEATED, field_id=9), field_id=6)
        ),
        "of two-level lists of structs": ls(
            "l", OPTIONAL, ls("xx", REPEATED, group("yy", REPEATED, leaf("z"), leaf("w")))
        ),
        "of two-level tuples": ls(
            "l", OPTIONAL, ls("xx", REPEATED, group("xx_tuple", REPEATED, leaf("z")))
        ),
        "three times two levels": ls(
            "l", OPTIONAL, ls("xx", REPEATED, ls("yy", REPEATED, leaf("z", REPEATED)))
        ),
        "of a repeated field": ls("l", OPTIONAL, group("xx", REPEATED, leaf("y", REPEATED))),
        "of maps": ls(
            "l", OPTIONAL, group("xx", REPEATED, group("kv", REPEATED, *KV), says=MAP, field_id=6)
        ),
        "of lists of maps": ls(
            "l",
            OPTIONAL,
            ls("xx", REPEATED, group("yy", REPEATED, group("kv", REPEATED, *KV), says=MAP)),
        ),
        "of structs of one field": ls(
            "l", OPTIONAL, group("array", REPEATED, group("g", OPTIONAL, leaf("z")))
        ),
    }


def maps(says: int | None = MAP, logical: int | None = None) -> dict[str, list[Any]]:
    def mp(repetition: int, *below: Any) -> Any:
        return group("m", repetition, *below, says=says, logical=logical, field_id=4)

    key = leaf("key", REQUIRED)
    return {
        "usual": mp(OPTIONAL, group("key_value", REPEATED, *KV, field_id=3)),
        "other names": mp(
            REQUIRED, group("map", REPEATED, leaf("k", REQUIRED), group("v", REQUIRED, leaf("z")))
        ),
        "annotated inside": mp(OPTIONAL, group("map", REPEATED, *KV, says=MAP_KEY_VALUE)),
        "repeated value": mp(OPTIONAL, group("kv", REPEATED, key, leaf("value", REPEATED))),
        "struct as key": mp(
            OPTIONAL, group("map", REPEATED, group("k", REQUIRED, leaf("x")), leaf("v"))
        ),
        "keys alone": mp(OPTIONAL, group("key_value", REPEATED, key)),
        "keys alone, of an array": mp(OPTIONAL, group("array", REPEATED, key)),
        "structs alone": mp(
            OPTIONAL, group("kv", REPEATED, group("key", REQUIRED, leaf("a"), leaf("b")))
        ),
    }


OTHERS = {
    "repeated field": leaf("a", REPEATED, field_id=3),
    "repeated group": group("a", REPEATED, leaf("b", field_id=7), field_id=3),
    "no repetition": group("a", None, leaf("b", None)),
    "empty group": group("a", OPTIONAL),
    "repeated empty group": group("a", REPEATED),
    "empty group inside": group("a", OPTIONAL, group("e", OPTIONAL), leaf("b")),
    "MAP_KEY_VALUE for MAP": group("m", OPTIONAL, group("kv", REPEATED, *KV), says=MAP_KEY_VALUE),
    "logical type wins": group("m", OPTIONAL, group("kv", REPEATED, *KV), says=LIST, logical=2),
    "an id below zero": group("a", OPTIONAL, leaf("b", field_id=-1), field_id=-7),
    "nulls": group("a", OPTIONAL, leaf("b", REQUIRED, logical=11), leaf("c", logical=11)),
    "list of nulls": group("a", OPTIONAL, leaf("b", REPEATED, logical=11), says=LIST),
}
FORMS = {
    **{f"list {k}": v for k, v in lists().items()},
    **{f"logical list {k}": v for k, v in lists(None, LOGICAL[LIST]).items()},
    **{f"map {k}": v for k, v in maps().items()},
    **{f"logical map {k}": v for k, v in maps(None, LOGICAL[MAP]).items()},
    **OTHERS,
}
