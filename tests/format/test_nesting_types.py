"""Nested columns: the Arrow type of a field, for all forms of lists and maps; hostile schemas."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pageseek.base.errors import CorruptFileError, LimitError, UnsupportedError
from pageseek.format.nesting import MAX_DEPTH, assemble, build
from pageseek.format.types import Options
from support.nesting import (
    BYTE_ARRAY,
    FORMS,
    KV,
    LIST,
    MAP,
    MAP_KEY_VALUE,
    OPTIONAL,
    OTHERS,
    REPEATED,
    REQUIRED,
    check_levels,
    check_round_trip,
    file,
    group,
    leaf,
    lists,
    node_of,
    nodes_of,
    schema_of,
    table_schema,
    written,
)
from support.opened import open_metadata
from support.tiers import examples


def arrow_says(data: bytes) -> list[pa.Field]:
    return [plain_field(f) for f in pq.ParquetFile(io.BytesIO(data)).schema_arrow]


def plain_field(field: pa.Field) -> pa.Field:
    """A field of pyarrow's with what its Python cannot make made equal.

    pa.map_ calls the entries of a map "entries"; the Parquet reader calls them like the map, and may give
    them a field id. pa.field makes no null type that is not nullable.
    """
    kind, t = field.type, pa.types
    if t.is_struct(kind):
        kind = pa.struct([plain_field(f) for f in kind])
    elif t.is_map(kind):
        parts = plain_field(kind.key_field), plain_field(kind.item_field)
        kind = pa.map_(*parts, keys_sorted=kind.keys_sorted)
    elif t.is_large_list(kind):
        kind = pa.large_list(plain_field(kind.field(0)))
    elif t.is_fixed_size_list(kind):
        kind = pa.list_(plain_field(kind.field(0)), kind.list_size)
    elif t.is_list_view(kind):
        kind = pa.list_view(plain_field(kind.field(0)))
    elif t.is_large_list_view(kind):
        kind = pa.large_list_view(plain_field(kind.field(0)))
    elif t.is_list(kind):
        kind = pa.list_(plain_field(kind.field(0)))
    return pa.field(field.name, kind, field.nullable or t.is_null(kind), field.metadata)


def same_as_pyarrow(data: bytes) -> None:
    expected = arrow_says(data)
    nodes = nodes_of(data)
    for node, field in zip(nodes, expected, strict=True):
        assert node.field.equals(field, check_metadata=True), f"{node.field} is not {field}"
        check_levels(node)


@pytest.mark.parametrize("form", FORMS)
def test_every_form_has_pyarrows_type(form: str) -> None:
    same_as_pyarrow(file([leaf("first"), FORMS[form], leaf("last")]))


def test_a_two_level_list_is_told_from_a_three_level_one() -> None:
    made = {name: str(nodes_of(file([form]))[0].field.type) for name, form in lists().items()}
    assert made["two levels"] == "list<item: int32 not null>"
    assert made["three levels"] == "list<element: int32>"
    assert made["named array"] == "list<array: struct<x: int32> not null>"
    assert made["a tuple of another"] == "list<x: int32>"
    assert made["of two-level lists"] == "list<array: list<array: int32 not null> not null>"


REFUSED = {
    "two fields": group("l", OPTIONAL, leaf("a"), leaf("b"), says=LIST),
    "no field": group("l", OPTIONAL, says=LIST),
    "repeated": group("l", REPEATED, group("list", REPEATED, leaf("e")), says=LIST),
    "not repeated inside": group("l", OPTIONAL, group("list", OPTIONAL, leaf("e")), says=LIST),
    "empty inside": group("l", OPTIONAL, group("list", REPEATED), says=LIST),
    "three levels in two": group(
        "l",
        OPTIONAL,
        group("xx", REPEATED, group("yy", REPEATED, leaf("z")), says=LIST),
        says=LIST,
    ),
    "map of three": group("l", OPTIONAL, group("kv", REPEATED, *KV, leaf("w")), says=MAP),
    "map of nothing": group("l", OPTIONAL, group("kv", REPEATED), says=MAP),
    "map of a leaf": group("l", OPTIONAL, leaf("kv", REPEATED), says=MAP),
    "map without entries": group("l", OPTIONAL, *KV, says=MAP),
    "map repeated": group("l", REPEATED, group("kv", REPEATED, *KV), says=MAP),
    "key repeated": group("l", OPTIONAL, group("kv", REPEATED, leaf("k", REPEATED), leaf("v")), says=MAP),
}  # fmt: skip


@pytest.mark.parametrize("form", REFUSED)
def test_what_pyarrow_refuses_is_refused_with_the_columns_name(form: str) -> None:
    data = file([REFUSED[form]])
    with pytest.raises((pa.ArrowException, OSError)):
        arrow_says(data)
    with pytest.raises(CorruptFileError, match=r"t\.parquet: column 'l"):
        nodes_of(data)


ODD_NAMES = st.sampled_from(["a", "array", "list", "a_tuple", "list_tuple"])


def random_elements(depth: int) -> st.SearchStrategy[Any]:
    repetition = st.sampled_from([REQUIRED, OPTIONAL, REPEATED, REPEATED])
    leaves = st.builds(leaf, ODD_NAMES, repetition, field_id=st.sampled_from([None, 3]))
    if depth == 0:
        return leaves
    below = st.lists(random_elements(depth - 1), min_size=1, max_size=2)
    groups = st.builds(
        lambda name, rep, children, says, number: group(
            name, rep, *children, says=says, field_id=number
        ),
        ODD_NAMES,
        repetition,
        below,
        st.sampled_from([None, LIST, LIST, LIST, MAP, MAP_KEY_VALUE]),
        st.sampled_from([None, 4]),
    )
    return groups | leaves if depth < 3 else groups


def lists_around_leaves(kind: pa.DataType, lists: int = 0) -> list[int]:
    if not kind.num_fields:
        return [lists]
    lists += not pa.types.is_struct(kind)
    below = (
        [kind.key_type, kind.item_type]
        if pa.types.is_map(kind)
        else [kind.field(i).type for i in range(kind.num_fields)]
    )
    return [n for inner in below for n in lists_around_leaves(inner, lists)]


@settings(max_examples=examples(300), deadline=None)
@given(random_elements(4))
def test_any_schema_is_typed_or_refused_as_by_pyarrow(elements: Any) -> None:
    data = file([elements])
    try:
        expected = arrow_says(data)
    except (pa.ArrowException, OSError) as error:
        if "Map keys must be annotated as required" in str(error):
            return  # ours may be OPTIONAL
        with pytest.raises(CorruptFileError):
            nodes_of(data)
        return
    depths = [leaf.max_rep for leaf in schema_of(data).leaves]
    if lists_around_leaves(expected[0].type) != depths:
        # A repeated LIST or MAP in a struct that is an element of a LIST: pyarrow loses a level of it
        with pytest.raises(CorruptFileError, match="a LIST or MAP must not be repeated"):
            nodes_of(data)
        return
    (node,) = nodes_of(data)
    assert node.field.equals(expected[0], check_metadata=True)
    check_levels(node)


# leaf_form decides whether an index type other than int32 survives; that is not tested here.
DICTIONARY = pa.dictionary(pa.int32(), pa.string(), ordered=True)
KEYS, NAMES = pa.field("key", pa.large_string(), False), pa.field("value", DICTIONARY)
STORED = [
    pa.large_list(pa.large_string()),
    pa.list_(pa.field("foo", DICTIONARY, metadata={"k": "v"})),
    pa.list_(pa.int32(), 3),
    pa.list_view(pa.int32()),
    pa.large_list_view(pa.list_view(pa.int8())),
    pa.map_(pa.field("key", DICTIONARY, False), pa.field("value", pa.large_list(pa.int8()))),
    pa.map_(pa.string(), pa.duration("s"), keys_sorted=True),
    pa.struct(
        [
            pa.field("d", DICTIONARY, metadata={"PARQUET:field_id": "7", "a": "b"}),
            pa.field("f", pa.duration("s")),
            pa.field("z", pa.timestamp("us", "Europe/Paris"), nullable=False),
            pa.field("n", pa.null()),
            pa.field("e", pa.struct([("q", pa.large_list(pa.binary()))])),
            pa.field("u", pa.uuid()),
            pa.field("m", pa.map_(KEYS, NAMES)),
        ]
    ),
]


@pytest.mark.parametrize("kind", STORED, ids=str)
@pytest.mark.parametrize("nullable", [True, False])
def test_the_writers_types_are_honoured_at_any_depth(kind: pa.DataType, nullable: bool) -> None:
    same_as_pyarrow(written(pa.field("c", kind, nullable, {"x": "y"})))


@pytest.mark.parametrize(
    "stored",
    [
        pa.map_(pa.large_string(), pa.duration("s")),
        pa.large_list(pa.field("x", pa.struct([KEYS, ("b", pa.duration("s"))]), False, {"l": "k"})),
        pa.large_list(pa.field("x", pa.struct([KEYS]), False, {"l": "k"})),
        pa.list_(pa.field("x", pa.struct([KEYS, ("b", pa.duration("s"))])), 3),
        pa.struct([("x", pa.struct([KEYS, ("b", pa.duration("s"))]))]),
        pa.int8(),
    ],
    ids=str,
)
@pytest.mark.parametrize("shape", ["list", "map"])
def test_a_stored_type_of_another_shape_is_followed_as_far_as_it_fits(
    stored: pa.DataType, shape: str
) -> None:
    a = leaf("a", REQUIRED, physical=BYTE_ARRAY, converted=0, field_id=2)
    b = leaf("b", OPTIONAL, physical=2)
    if shape == "list":
        element = group("list", REPEATED, group("element", OPTIONAL, a, b))
        form = group("c", OPTIONAL, element, says=LIST)
    else:
        form = group("c", OPTIONAL, group("key_value", REPEATED, a, b), says=MAP)
    same_as_pyarrow(file([form], pa.schema([pa.field("c", stored, metadata={"m": "n"})])))


def test_large_strings_reach_every_leaf() -> None:
    text = leaf("t", OPTIONAL, physical=BYTE_ARRAY, converted=0)
    data = file(
        [group("s", OPTIONAL, text, group("l", OPTIONAL, group("list", REPEATED, text), says=LIST))]
    )
    (node,) = nodes_of(data, Options(string_type="large"))
    assert str(node.field.type) == "struct<t: large_string, l: list<t: large_string>>"


def test_extension_types_that_nobody_knows_stay_metadata() -> None:
    kind = pa.struct(
        [pa.field("x", pa.int32(), metadata={"ARROW:extension:name": "no.such", "k": "v"})]
    )
    made = node_of(kind).field.type.field(0)
    assert made.metadata == {b"ARROW:extension:name": b"no.such", b"k": b"v"}


def test_the_corpus_has_pyarrows_types(conformance: Path) -> None:
    compared = 0
    for path in sorted((conformance / "corpus" / "valid").glob("*.parquet")):
        try:
            expected = [plain_field(f) for f in pq.ParquetFile(path).schema_arrow]
        except (pa.ArrowException, OSError):
            continue
        with open_metadata(str(path)) as opened:
            tree = opened.schema_tree
            assert tree.num_fields == len(expected)
            for i, field in enumerate(expected):
                if (
                    tree.field(i).stop_leaf - tree.field(i).first_leaf == 1
                    and tree.leaf(tree.field(i).first_leaf).flat
                ):
                    continue  # leaf_form's own tests
                node = build(tree, i, Options(), tree.stored_field(i, tree.field(i).name))
                assert node.field.equals(field, check_metadata=True), f"{path.name}: {field}"
                check_levels(node)
                compared += 1
    assert compared > 300


# ---- hostile schemas -----------------------------------------------------------------------------


def deep(groups: int) -> list[Any]:
    below = leaf("x")
    for _ in range(groups):
        below = group("g", OPTIONAL, below)
    return below


def test_depth_has_a_limit() -> None:
    (node,) = nodes_of(file([deep(MAX_DEPTH)]))
    check_levels(node)
    rows: list[Any] = [None, 7]
    for _ in range(MAX_DEPTH):
        rows = [{"g" if isinstance(r, dict) else "x": r} for r in rows]
    check_round_trip(node, [*rows, None])
    with pytest.raises(
        LimitError, match=r"t\.parquet: column 'g': groups lie deeper than the limit"
    ):
        nodes_of(file([deep(MAX_DEPTH + 1)]))


def test_a_very_deep_schema_is_a_clean_error() -> None:
    records = [{"name": "g", "num_children": 1, "repetition": 1} for _ in range(2000)]
    tree = table_schema(*records, {"name": "x", "type": 1})
    with pytest.raises(LimitError):
        build(tree, 0, Options(), None)


@pytest.mark.parametrize("count", [2, 3, 1 << 31, 1 << 62])
def test_a_group_that_claims_more_children_than_there_are(count: int) -> None:
    tree = table_schema(
        {"name": "root", "num_children": 1},
        {"name": "s", "num_children": count, "repetition": 1},
        {"name": "x", "type": 1, "repetition": 1},
    )
    with pytest.raises(CorruptFileError, match="column 's': the schema ends before"):
        build(tree, 0, Options(), None)


def test_a_negative_count_of_children_is_none() -> None:
    tree = table_schema(
        {"name": "root", "num_children": 2},
        {"name": "s", "num_children": -5, "repetition": 1},
        {"name": "x", "type": 1, "repetition": 1},
    )
    assert build(tree, 0, Options(), None).field.type == pa.struct([])
    assert build(tree, 1, Options(), None).field.type == pa.int32()


def test_a_field_without_leaves_has_no_array() -> None:
    for name in ("empty group", "empty group inside"):
        (node,) = nodes_of(file([OTHERS[name]]))
        with pytest.raises((UnsupportedError, KeyError)):
            assemble(node, {})


class Tampered(NamedTuple):
    """An Arrow schema with bytes of its message exchanged."""

    schema: pa.Schema
    old: bytes
    new: bytes

    def serialize(self) -> pa.Buffer:
        data = self.schema.serialize().to_pybytes()
        assert self.old in data and len(self.old) == len(self.new)
        return pa.py_buffer(data.replace(self.old, self.new))


def test_a_stored_time_zone_that_is_no_text_is_passed_over() -> None:
    instant = leaf("t", physical=2, converted=10)
    kind = pa.struct([("t", pa.timestamp("us", "Europe/Paris"))])
    stored = Tampered(pa.schema([("s", kind)]), b"Europe/Paris", b"Europe/P\xff\xfe\xfd\xfc")
    (node,) = nodes_of(file([group("s", OPTIONAL, instant)], stored))
    assert node.field.type.field(0).type == pa.timestamp("us", "UTC")


@pytest.mark.parametrize("size", [-1, -5, -(1 << 31)])
def test_a_stored_list_of_less_than_nothing_is_a_list(size: int) -> None:
    stored = Tampered(
        pa.schema([("l", pa.list_(pa.int32(), 77777))]),
        (77777).to_bytes(4, "little"),
        size.to_bytes(4, "little", signed=True),
    )
    (node,) = nodes_of(file([lists()["three levels"]], stored))
    assert node.field.type == pa.list_(pa.field("element", pa.int32()))
