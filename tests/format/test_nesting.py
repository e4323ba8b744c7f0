"""Nested columns: nesting levels, assembly of arrays, projection."""

from __future__ import annotations

import io
import itertools
import uuid
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pageseek.base.errors import CorruptFileError, LimitError
from pageseek.format.nesting import (
    Decoded,
    Node,
    assemble,
    build,
    nesting_levels_of,
    project,
    select,
)
from pageseek.format.schema import Options
from support.nesting import (
    FORMS,
    LIST,
    MAP,
    OPTIONAL,
    OTHERS,
    REPEATED,
    bitmap,
    check_round_trip,
    decode_all,
    file,
    group,
    leaf,
    node_of,
    nodes_of,
    shred,
)
from support.opened import open_metadata
from support.tiers import examples

DICTIONARY = pa.dictionary(pa.int32(), pa.string(), ordered=True)


# ---- assembly ------------------------------------------------------------------------------------


def every_value(node: Node, longest: int) -> list[Any]:
    """Every value of a node with a bounded number of list elements, and one value for each leaf."""
    if node.kind == "leaf":
        made: list[Any] = [1]
    elif node.kind == "struct":
        names = [child.name for child in node.children]
        below = [every_value(child, longest) for child in node.children]
        made = [dict(zip(names, values, strict=True)) for values in itertools.product(*below)]
    else:
        elements: list[Any] = every_value(node.children[0], longest)
        if node.kind == "map":
            elements = list(itertools.product(elements, every_value(node.children[1], longest)))
        made = [
            list(values)
            for n in range(longest + 1)
            for values in itertools.product(elements, repeat=n)
        ]
    return [None, *made] if node.optional else made


def struct_of(*kinds: pa.DataType, nullable: bool = True) -> pa.DataType:
    return pa.struct([pa.field(n, k, nullable) for n, k in zip("abc", kinds, strict=False)])


def required_list(kind: pa.DataType) -> pa.DataType:
    return pa.list_(pa.field("element", kind, False))


I = pa.int32()  # noqa: E741
SMALL = {
    "leaf": (I, 1),
    "list": (pa.list_(I), 2),
    "list of lists": (pa.list_(pa.list_(I)), 2),
    "list of lists of lists": (pa.list_(pa.list_(pa.list_(I))), 1),
    "required elements": (required_list(required_list(I)), 2),
    "struct": (struct_of(I, I), 1),
    "struct of struct": (struct_of(struct_of(I), I), 1),
    "required in struct": (struct_of(struct_of(I, nullable=False), I, nullable=False), 1),
    "list of structs": (pa.list_(struct_of(I, I)), 1),
    "struct of lists": (struct_of(pa.list_(I), pa.list_(I)), 1),
    "list of structs of lists": (pa.list_(struct_of(pa.list_(I), I)), 1),
    "struct of required lists": (struct_of(required_list(I), nullable=False), 2),
    "map": (pa.map_(I, I), 2),
    "map of lists": (pa.map_(I, pa.list_(I)), 1),
    "list of maps": (pa.list_(pa.map_(I, struct_of(I, I))), 1),
    "map in struct": (struct_of(pa.map_(I, I), I), 1),
    "large list": (pa.large_list(pa.large_list(I)), 1),
    "list view": (pa.list_view(struct_of(pa.list_(I))), 1),
    "large list view": (pa.large_list_view(I), 2),
}


@pytest.mark.parametrize("nullable", [True, False])
@pytest.mark.parametrize("name", SMALL)
def test_small_tables_come_back_whole(name: str, nullable: bool) -> None:
    kind, longest = SMALL[name]
    node = node_of(kind, nullable)
    values = every_value(node, longest)
    check_round_trip(node, [])
    check_round_trip(node, values)
    assert assemble(node, decode_all(node, values)).equals(pa.array(values, node.field.type))
    for pair in itertools.product(values[:40], repeat=2):
        check_round_trip(node, list(pair))


FIXED = {
    "list": (pa.list_(I, 2), [None, [1, 2], [None, 3]]),
    "no elements": (pa.list_(I, 0), [None, []]),
    "of lists": (pa.list_(pa.list_(I), 2), [None, [None, []], [[1], [2, None]]]),
    "of fixed lists": (pa.list_(pa.list_(I, 1), 2), [None, [None, [1]], [[None], [2]]]),
    "in lists": (pa.list_(pa.list_(I, 2)), [None, [], [None, [1, 2]], [[3, None]]]),
    "of structs": (pa.list_(struct_of(I, pa.string()), 1), [None, [None], [{"a": 1, "b": "x"}]]),
    "of views": (pa.list_(pa.list_view(I), 1), [None, [None], [[1, 2]]]),
    "of names": (pa.list_(DICTIONARY, 2), [None, ["x", None], ["x", "y"]]),
    "of nulls": (pa.list_(pa.null(), 1), [None, [None]]),
    "of maps": (pa.list_(pa.map_(I, I), 1), [None, [None], [[]], [[(1, None), (2, 3)]]]),
    "in structs": (struct_of(pa.list_(I, 2), I), [None, {"a": None, "b": 1}, {"a": [1, 2], "b": None}]),
    "required in structs": (struct_of(pa.list_(I, 2), nullable=False), [None, {"a": [1, 2]}]),
    "required in nested structs": (
        struct_of(pa.struct([pa.field("x", pa.list_(I, 1), False)])),
        [None, {"a": None}, {"a": {"x": [5]}}],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FIXED)
def test_fixed_size_lists_are_filled_where_they_are_null(name: str) -> None:
    kind, values = FIXED[name]
    node = node_of(kind)
    for n in range(4):
        for rows in itertools.product(values, repeat=n):
            check_round_trip(node, list(rows))


def test_a_fixed_size_list_of_another_size_is_an_error() -> None:
    node = node_of(pa.list_(I, 2))
    decoded = decode_all(node, [[1, 2], None, [3]])
    with pytest.raises(
        CorruptFileError, match=r"f\.parquet: column 'c\.list\.element': list 2 has 1"
    ):
        assemble(node, decoded, "f.parquet")


def test_a_null_list_excuses_no_fixed_size_list_in_another() -> None:
    node = node_of(pa.list_(pa.field("element", pa.list_(I, 2), False)))
    with pytest.raises(CorruptFileError, match="list 0 has 1 elements, its type says 2"):
        assemble(node, decode_all(node, [None, [[3], [1, 2]]]))


def test_a_fixed_size_list_cannot_claim_all_memory() -> None:
    node = node_of(pa.list_(I, 1 << 30))
    with pytest.raises(LimitError, match="where they are null"):
        assemble(node, decode_all(node, [None, None]))


def test_lists_of_fixed_size_inside_each_other_cannot_either() -> None:
    """The sizes multiply, beyond 64 bits as well: 2^60 and 2^64 elements for one null."""
    for inner, outer in ((1 << 30, 1 << 30), (1 << 32 - 2, 1 << 30)):
        deep = pa.list_(pa.struct([("x", pa.list_(pa.list_(I, inner), 16))]), outer)
        node = node_of(deep)
        with pytest.raises(LimitError, match=f"{inner * 16 * outer} elements"):
            assemble(node, decode_all(node, [None]))


def test_leaves_of_every_form_are_finished() -> None:
    fields = [
        ("d", pa.dictionary(pa.int32(), pa.string(), ordered=True), ["x", "y", "x", None]),
        ("v", pa.string_view(), ["x", None, "long enough not to be inlined", ""]),
        ("n", pa.null(), [None] * 4),
        ("z", pa.timestamp("us", "Europe/Paris"), [1, None, 3, 4]),
        ("f", pa.duration("s"), [1, 2, None, 4]),
        ("b", pa.large_binary(), [b"", None, b"x", b"yy"]),
    ]
    values = [
        dict(zip("dvnzfb", row, strict=True)) for row in zip(*(f[2] for f in fields), strict=True)
    ]
    kind = pa.list_(pa.struct([(name, kind) for name, kind, _ in fields]))
    node = node_of(kind)
    rows = [values[:1], None, [], [None, *values[1:]]]
    made = assemble(node, decode_all(node, rows))
    made.validate(full=True)
    assert made.type == node.field.type
    assert made.to_pylist() == pa.array(rows, node.field.type).to_pylist()
    assert made.type.field(0).type == kind.field(0).type


def test_an_extension_in_a_struct() -> None:
    node = node_of(pa.struct([("u", pa.uuid())]))
    one = uuid.UUID(int=7)
    made = assemble(node, decode_all(node, [{"u": one.bytes}, None, {"u": None}]))
    made.validate(full=True)
    assert made.type.field(0).type == pa.uuid()
    assert made.to_pylist() == [{"u": one}, None, {"u": None}]


LEAVES: list[tuple[pa.DataType, st.SearchStrategy[Any]]] = [
    (pa.int32(), st.integers(-3, 3)),
    (pa.bool_(), st.booleans()),
    (pa.string(), st.text("ab", max_size=3)),
    (pa.large_string(), st.text("ab", max_size=3)),
    (pa.binary(2), st.binary(min_size=2, max_size=2)),
    (DICTIONARY, st.text("ab", max_size=1)),
    (pa.float64(), st.floats(allow_nan=False)),
]


@st.composite
def typed_values(draw: st.DrawFn, depth: int = 4) -> tuple[pa.Field, st.SearchStrategy[Any]]:
    """A field, and a strategy of its values."""
    shape = draw(st.sampled_from(["leaf", "struct", "list", "map"])) if depth else "leaf"
    nullable = draw(st.booleans())
    if shape == "leaf":
        kind, values = draw(st.sampled_from(LEAVES))
    elif shape == "struct":
        below = draw(st.lists(typed_values(depth - 1), min_size=1, max_size=3))
        kind = pa.struct([f.with_name(f"f{i}") for i, (f, _) in enumerate(below)])
        values = st.fixed_dictionaries({f"f{i}": v for i, (_, v) in enumerate(below)})
    elif shape == "list":
        field, inside = draw(typed_values(depth - 1))
        size = draw(st.sampled_from([None, None, 1, 2]))
        kind = draw(st.sampled_from([pa.list_, pa.large_list, pa.list_view]))(field)
        kind = kind if size is None else pa.list_(field, size)
        values = st.lists(inside, min_size=size or 0, max_size=size or 3)
    else:
        (key, keys), (item, items) = draw(typed_values(0)), draw(typed_values(depth - 1))
        key = key.with_nullable(False)
        kind = pa.map_(key.with_name("key"), item.with_name("value"))
        values = st.lists(st.tuples(keys.filter(lambda k: k is not None), items), max_size=3)
    return pa.field("c", kind, nullable), st.none() | values if nullable else values


@settings(max_examples=examples(200), deadline=None)
@given(typed_values(), st.data())
def test_any_nested_column_comes_back(made: Any, data: st.DataObject) -> None:
    field, values = made
    node = node_of(field.type, field.nullable)
    assert node.field.type.equals(field.type)
    check_round_trip(node, data.draw(st.lists(values, max_size=6)))


DECODABLE = [
    name
    for name in FORMS
    if "empty" not in name and "nulls" not in name and not name.startswith("logical")
]


@settings(max_examples=examples(8), deadline=None)
@pytest.mark.parametrize("form", DECODABLE)
@given(data=st.data())
def test_pyarrow_reads_the_same_from_the_levels(form: str, data: st.DataObject) -> None:
    (node,) = nodes_of(file([FORMS[form]]))

    def values(at: Node) -> st.SearchStrategy[Any]:
        if at.kind == "leaf":
            made: st.SearchStrategy[Any] = st.integers(0, 9)
        elif at.kind == "struct":
            made = st.fixed_dictionaries({c.name: values(c) for c in at.children})
        else:
            parts = [values(c) for c in at.children]
            made = st.lists(st.tuples(*parts) if at.kind == "map" else parts[0], max_size=3)
        return st.none() | made if at.optional else made

    rows = data.draw(st.lists(values(node), min_size=1, max_size=5))
    levels = shred(node, rows)
    columns = [(l.path, l.max_rep, l.max_def, levels[l.index]) for l in node.leaves()]  # noqa: E741
    read = pq.ParquetFile(io.BytesIO(file([FORMS[form]], None, len(rows), columns)))
    assert read.read().column(0).to_pylist() == rows
    check_round_trip(node, rows)


def test_the_corpus_comes_back_from_its_levels(conformance: Path) -> None:
    compared = 0
    for path in sorted((conformance / "corpus" / "valid").glob("*.parquet")):
        try:
            read = pq.ParquetFile(path)
            nested = [i for i, f in enumerate(read.schema_arrow) if f.type.num_fields]
        except (pa.ArrowException, OSError):
            continue
        if not nested:
            continue
        with open_metadata(str(path)) as opened:
            tree = opened.schema_tree
            for i in nested:
                node = build(tree, i, Options(), tree.stored_field(i, tree.field(i).name))
                try:
                    batch = next(read.iter_batches(20, columns=[node.name]), None)
                    expected = None if batch is None else batch.column(0).to_pylist()
                except (pa.ArrowException, OSError, ValueError, OverflowError):
                    continue  # pages that pyarrow cannot read, dates that Python has not
                if expected is None:
                    continue
                made = assemble(node, decode_all(node, expected))
                made.validate(full=True)
                assert repr(made.to_pylist()) == repr(expected), f"{path.name}: {node.name}"
                compared += 1
    assert compared > 300


# ---- disagreement --------------------------------------------------------------------------------


def test_optional_keys_are_taken_and_null_ones_refused() -> None:
    entries = group("kv", REPEATED, leaf("k", OPTIONAL), leaf("v", OPTIONAL))
    (node,) = nodes_of(file([group("m", OPTIONAL, entries, says=MAP)]))
    assert node.field.type == pa.map_(pa.field("k", I, False), pa.field("v", I))
    assert nesting_levels_of(node, 0) == ((0, 1, 0), (1, 2, 1), (0, 3, 1))
    check_round_trip(node, [None, [], [(1, None), (2, 3)]])
    with pytest.raises(CorruptFileError, match=r"column 'm\.kv\.k': the key of a map is null"):
        assemble(node, decode_all(node, [[(1, 2), (None, 3)]]))


@pytest.mark.parametrize(
    ("kind", "ours", "theirs"),
    [
        (struct_of(I, I), [None, {"a": 1, "b": 1}], [{"a": 1, "b": 1}, None]),
        (struct_of(I, I), [None], [{"a": 1, "b": 1}]),
        (pa.list_(struct_of(I, I)), [[None], []], [[], [None]]),
        (pa.list_(struct_of(I, I)), [[None], []], [[None], None]),
        (pa.list_(struct_of(I, I)), [[None]], [[None, None]]),
        (pa.map_(I, I), [[(1, 1)], [(1, 1)]], [[(1, 1), (1, 1)], []]),
        (struct_of(I, I), [None, None], [None]),
        (struct_of(I, I, nullable=False), [{"a": 1, "b": 1}], []),
    ],
    ids=str,
)
def test_leaves_that_disagree_are_named(kind: pa.DataType, ours: Any, theirs: Any) -> None:
    node = node_of(kind)
    one, other = (leaf.name for leaf in node.leaves())
    mixed = {0: decode_all(node, ours)[0], 1: decode_all(node, theirs)[1]}
    with pytest.raises(CorruptFileError) as caught:
        assemble(node, mixed, "f.parquet")
    assert f"f.parquet: columns {one!r} and {other!r} disagree" in str(caught.value)


def test_leaves_of_a_required_struct_have_the_same_rows() -> None:
    node = node_of(struct_of(I, I), nullable=False)
    row = {"a": 1, "b": 2}
    mixed = {0: decode_all(node, [row])[0], 1: decode_all(node, [row, row])[1]}
    with pytest.raises(CorruptFileError, match=r"'c\.a' and 'c\.b' disagree"):
        assemble(node, mixed)


def test_leaves_deep_in_siblings_are_compared_too() -> None:
    node = node_of(struct_of(pa.list_(struct_of(I, I)), pa.list_(struct_of(I, I))))
    rows = [{"a": [{"a": 1, "b": 2}, None], "b": [None]}, None]
    decoded = decode_all(node, rows)
    check_round_trip(node, rows)
    wrong = decode_all(node, [None, rows[0]])
    for leaf_number in range(1, 4):
        with pytest.raises(CorruptFileError, match="disagree"):
            assemble(node, decoded | {leaf_number: wrong[leaf_number]})


def test_bits_past_the_last_slot_are_not_compared() -> None:
    node = node_of(struct_of(I, I))
    for n in (1, 7, 8, 9, 16, 17):
        rows = [None, *({"a": i, "b": i} for i in range(n - 1))]
        decoded = decode_all(node, rows)
        bits = [False] + [True] * (n - 1)
        for tail in ([], [True] * 9, [False] * 3):
            said = replace(decoded[1], nesting_levels=[(n, 1, pa.py_buffer(bitmap(bits + tail)))])
            assert assemble(node, {0: decoded[0], 1: said}).to_pylist() == rows


def test_a_leaf_with_too_few_values_is_an_error() -> None:
    node = node_of(pa.list_(I))
    decoded = decode_all(node, [[1, 2], [3]])[0]
    short = Decoded(decoded.rows, decoded.array.slice(0, 2), decoded.nesting_levels)
    with pytest.raises(CorruptFileError, match="has 2 slots where 3 are due"):
        assemble(node, {0: short})


def test_values_are_not_copied() -> None:
    node = node_of(pa.list_(struct_of(I)))
    decoded = decode_all(node, [[{"a": 1}], [{"a": 2}]])
    made = assemble(node, decoded)
    assert made.values.field(0).buffers()[1].address == decoded[0].array.buffers()[1].address


# ---- projection ----------------------------------------------------------------------------------

WIDE = pa.struct(
    [
        ("l", pa.list_(pa.struct([("x", I), ("y", pa.struct([("p", I), ("q", I)]))]))),
        ("m", pa.map_(pa.struct([("u", I), ("v", I)]), pa.struct([("w", I), ("x", I)]))),
        ("b", pa.struct([("c", I), ("d", pa.list_(I))])),
        ("a", I),
    ]
)
ROW = {
    "l": [{"x": 1, "y": {"p": 2, "q": 3}}, None],
    "m": [({"u": 4, "v": 5}, {"w": 6, "x": 7})],
    "b": {"c": 8, "d": [9, None]},
    "a": 10,
}


@pytest.mark.parametrize(
    ("paths", "expected"),
    [
        (["c"], WIDE),
        (["c.a"], "struct<a: int32>"),
        (["c.a", "c.b.c"], "struct<b: struct<c: int32>, a: int32>"),
        (["c.l.list.element.x"], "struct<l: list<element: struct<x: int32>>>"),
        (["c.l.element.x"], "struct<l: list<element: struct<x: int32>>>"),
        (["c.l.x"], "struct<l: list<element: struct<x: int32>>>"),
        (["c.l.y.q"], "struct<l: list<element: struct<y: struct<q: int32>>>>"),
        (["c.b.d"], "struct<b: struct<d: list<element: int32>>>"),
        (["c.b.d.element"], "struct<b: struct<d: list<element: int32>>>"),
        (["c.m.key"], "struct<m: list<m: struct<key: struct<u: int32, v: int32> not null> not null>>"),
        (["c.m.key_value.value.x"], "struct<m: list<m: struct<value: struct<x: int32>> not null>>"),
        (["c.m.key", "c.m.value.x"], "struct<m: map<struct<u: int32, v: int32>, struct<x: int32>>>"),
        (["c.m.key.u", "c.m.value.x"], "struct<m: map<struct<u: int32>, struct<x: int32>>>"),
    ],
)  # fmt: skip
def test_projection_keeps_what_lies_below_the_paths(paths: list[str], expected: Any) -> None:
    node = node_of(WIDE)
    kept = project(node, paths)
    assert kept is not None
    if isinstance(expected, str):
        assert str(kept.field.type) == expected
    else:
        assert kept is node
    for each in kept.leaves():
        assert nesting_levels_of(kept, each.index) == nesting_levels_of(node, each.index)
    decoded = decode_all(node, [ROW, None, dict.fromkeys(ROW)])
    wanted = {leaf.index for leaf in kept.leaves()}
    made = assemble(kept, {i: d for i, d in decoded.items() if i in wanted})
    made.validate(full=True)
    assert made.type == kept.field.type and made.null_count == 1
    for each in node.leaves():
        if each.index not in wanted:
            with pytest.raises(KeyError):
                nesting_levels_of(kept, each.index)


def test_projection_keeps_the_leaves_that_pyarrow_reads() -> None:
    sink = io.BytesIO()
    pq.write_table(pa.table({"c": pa.array([ROW], WIDE)}), sink)
    (node,) = nodes_of(sink.getvalue())
    read = pq.ParquetFile(sink)
    for each in node.leaves():
        for n in range(1, len(each.path) + 1):
            path = ".".join(each.path[:n])
            kept = project(node, [path])
            assert kept is not None
            made = assemble(kept, decode_all(node, [ROW]))
            assert made.to_pylist() == read.read(columns=[path]).column(0).to_pylist()


def test_a_path_of_nothing_selects_nothing() -> None:
    node = node_of(WIDE)
    for path in ("d", "c.z", "c.a.b", "c.l.z", "c.", "", "c.b.e", "c.m.entries", "ca", "c.aa"):
        assert select(node, path) == frozenset()
        assert project(node, ["c.a", path]) is None
    assert project(node, []) is None


def test_names_with_dots_and_names_that_recur() -> None:
    (node,) = nodes_of(file([group("a.b", OPTIONAL, leaf("c.d"), leaf("c"))]))
    assert select(node, "a.b") == {0, 1}
    assert select(node, "a.b.c.d") == {0}
    assert select(node, "a.b.c") == {1}
    assert select(node, "a") == frozenset()
    below = leaf("e")
    for _ in range(40):
        below = group("e", OPTIONAL, group("list", REPEATED, below), says=LIST)
    (node,) = nodes_of(file([below]))
    assert select(node, ".".join(["e"] * 30)) == {0}
    assert select(node, ".".join(["e"] * 43)) == frozenset()


def test_groups_without_leaves_fall_out_of_a_projection() -> None:
    (node,) = nodes_of(file([OTHERS["empty group inside"]]))
    kept = project(node, ["a"])
    assert kept is not None and kept.field.type == pa.struct([("b", I)])
    check_round_trip(kept, [None, {"b": 1}, {"b": None}])
    (node,) = nodes_of(file([OTHERS["empty group"]]))
    assert project(node, ["a"]) is None
