"""Names of fields that a file spells in another case than its dataset."""

from __future__ import annotations

import io
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek.datasets.spelling import (
    ByCase,
    has_structs,
    own_path,
    respelled,
    respelled_node,
    undecided,
    undecided_fields,
    unified,
)
from pageseek.format.nesting import Node
from pageseek.format.types import Options

I = pa.int64()  # noqa: E741


def struct(**fields: pa.DataType) -> pa.DataType:
    return pa.struct(list(fields.items()))


def node_of(kind: pa.DataType) -> Node:
    """The column `top` of a file."""
    data = io.BytesIO()
    pq.write_table(pa.table({"top": pa.array([], kind)}), data)
    file: Any = ps.open(data.getvalue())._metadata
    return file.node(0, Options())


@pytest.mark.parametrize(
    ("own", "spelling", "names"),
    [
        (["a", "B"], ["A", "b", "c"], ["A", "b"]),
        (["a", "x"], ["A"], ["A", "x"]),
        (["a", "A"], ["A"], ["a", "A"]),  # the second is the dataset's
        (["a", "A"], ["b"], ["a", "A"]),
        (["aB", "Ab"], ["ab"], ["aB", "Ab"]),  # both cannot be it
        (["aB", "Ab", "c"], ["ab", "C"], ["aB", "Ab", "C"]),
        ([], ["a"], []),
    ],
)
def test_names_are_spelled_as_in_the_dataset(
    own: list[str], spelling: list[str], names: list[str]
) -> None:
    assert respelled(own, spelling) == names


INNER, OTHER = struct(A=I, b=struct(C=I)), struct(a=I, B=struct(c=I, D=I))
SPELLED = struct(A=I, b=struct(C=I, D=I))


@pytest.mark.parametrize(
    "around",
    [
        lambda kind: kind,
        pa.list_,
        pa.large_list,
        lambda kind: pa.list_(kind, 3),
        lambda kind: pa.map_(pa.string(), kind),
        lambda kind: struct(x=pa.list_(pa.list_(kind))),
    ],
)
def test_fields_are_spelled_at_any_depth(around: Any) -> None:
    node = node_of(around(OTHER))
    made = respelled_node(node, ByCase(around(INNER)))
    assert made.field.type.equals(
        respelled_node(node_of(around(SPELLED)), ByCase(around(INNER))).field.type
    )
    assert [n.name for n in made.leaf_nodes()][-3:] == ["A", "C", "D"]
    assert [n.leaf for n in made.leaf_nodes()] == [n.leaf for n in node.leaf_nodes()]
    own = node_of(around(INNER))
    assert respelled_node(own, ByCase(around(INNER))) is own
    assert respelled_node(node, ByCase(I)) is node


def test_a_path_is_as_the_file_spells_it() -> None:
    node = node_of(OTHER)
    assert own_path(node, ByCase(INNER), ["A"], "t") == ("a",)
    assert own_path(node, ByCase(INNER), ["b", "C"], "t") == ("B", "c")
    assert own_path(node, ByCase(INNER), ["b", "none"], "t") == ("B", "none")
    assert own_path(node, ByCase(INNER), ["none", "C"], "t") == ("none", "C")
    assert own_path(node, ByCase(INNER), [], "t") == ()
    listed, mapped = node_of(pa.list_(OTHER)), node_of(pa.map_(pa.string(), OTHER))
    assert own_path(listed, ByCase(pa.list_(INNER)), ["element", "b", "C"], "t") == (
        "element",
        "B",
        "c",
    )
    assert own_path(listed, ByCase(pa.list_(INNER)), ["b", "C"], "t") == ("B", "c")
    assert own_path(mapped, ByCase(pa.map_(pa.string(), INNER)), ["value", "A"], "t") == (
        "value",
        "a",
    )


def test_fields_that_differ_in_case_alone_spell_nothing() -> None:
    node = node_of(struct(aB=I, c=I))
    assert respelled_node(node, ByCase(struct(AB=I, ab=I, C=I))) is node


def test_a_field_that_may_be_several_of_the_file_is_told_and_keeps_its_name() -> None:
    node, kind = node_of(pa.list_(struct(aB=I, Ab=I, C=I))), pa.list_(struct(ab=I, c=I))
    assert list(undecided_fields(node, ByCase(kind))) == [("ab", ["aB", "Ab"])]
    assert not list(undecided_fields(node, ByCase(pa.list_(struct(aB=I, c=I)))))
    made = respelled_node(node, ByCase(kind))
    assert made.field.type.value_type.names == ["aB", "Ab", "c"]
    with pytest.raises(ps.UnsupportedError, match="t, field 'ab' may be 'aB' or 'Ab', which"):
        own_path(node, ByCase(kind), ["ab"], "t")
    assert own_path(node, ByCase(kind), ["element", "c"], "t") == ("element", "C")


def test_types_with_structs() -> None:
    assert has_structs(pa.map_(pa.string(), pa.list_(struct(a=I))))
    assert not has_structs(pa.map_(pa.string(), pa.list_(I)))
    assert not has_structs(I)


def test_types_are_made_one_with_the_first_spelling() -> None:
    first, later = (
        struct(A=I, b=pa.list_(struct(C=I))),
        struct(B=pa.list_(struct(c=I, D=I)), a=I, d=I, x=I),
    )
    made = unified([first, later, struct(X=struct(y=I))])
    assert made == struct(A=I, b=pa.list_(struct(C=I, D=I)), d=I, x=I)
    assert unified([first, later], fold=False).num_fields == 6
    assert unified([pa.null(), later]) == later
    keyed, other = pa.map_(pa.string(), first), pa.map_(pa.string(), later)
    assert unified([keyed, other]).item_type == unified([first, later])


def test_names_that_the_first_has_in_two_spellings_stay_two() -> None:
    first = struct(a=I, A=I, s=struct(x=I))
    made = unified([first, struct(S=I, s=struct(X=I, y=I))])
    assert made == struct(a=I, A=I, s=struct(x=I, y=I), S=I)


def test_several_names_for_one_of_the_dataset() -> None:
    assert undecided(["aB", "Ab", "c", "D"], ["ab", "C", "d"]) == {"ab": ["aB", "Ab"]}
    assert undecided(["aB", "Ab", "ab"], ["ab"]) == {}
    assert undecided(["x", "y"], ["ab"]) == {}
