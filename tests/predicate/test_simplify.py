"""Conjunctions on one column are folded: the rows equal those of plain Python, and no page is read if no row can match."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pageseek as ps
from pageseek._core import rows
from pageseek.format.types import Options
from pageseek.predicate import expression as ex
from pageseek.predicate.bind import bind
from pageseek.predicate.bound import Bound, BoundAnd, BoundConst, BoundLeaf, leaves_of
from support.opened import open_metadata

NAN = math.nan
INTS = [None, 1, 2, 3, 4]
DOMAINS: dict[str, tuple[pa.DataType, list[Any], list[Any]]] = {  # type, values, literals
    "int8": (pa.int8(), INTS, [1, 2, 3, 2.5, 127, 300, None]),
    "uint64": (pa.uint64(), [*INTS, 2**64 - 1], [2, 3, 2**63, 2**64 - 1, -1]),
    "double": (
        pa.float64(),
        [None, NAN, -0.0, 0.0, 1.0, math.inf],
        [NAN, -0.0, 0.0, 1.0, math.inf],
    ),
    "float16": (pa.float16(), [None, NAN, -0.0, 0.0, 1.0], [NAN, 0.0, 1.0, 0.3]),
    "string": (pa.string(), [None, "", "a", "ab", "b"], ["", "a", "ab", "b"]),
    "fixed": (pa.binary(2), [None, b"aa", b"ab", b"b\0"], [b"aa", b"ab", b"b", b"abc"]),
    "bool": (pa.bool_(), [None, False, True], [False, True]),
    "decimal": (pa.decimal128(5, 1), INTS, [1, 2, 3, 2.25]),
}


def memory_file(kind: pa.DataType, values: list[Any]) -> bytes:
    made = (
        [None if v is None else np.float16(v) for v in values] if kind == pa.float16() else values
    )
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"x": pa.array(made, kind)}), sink)
    return sink.getvalue().to_pybytes()


# -- truth in plain Python: True, False or None ---------------------------------------------------


def less(a: Any, b: Any, nan: str) -> bool:
    if nan == "spark" and isinstance(a, float) and a != a:
        return False
    if nan == "spark" and isinstance(b, float) and b != b:
        return True
    return a < b


def same(a: Any, b: Any, nan: str) -> bool:
    return a == b or (nan == "spark" and a != a and b != b)


def is_float(value: Any) -> bool:
    return isinstance(value, float)


def truth(e: ex.Expression, x: Any, nan: str) -> bool | None:
    if isinstance(e, ex.And):
        found = [truth(arg, x, nan) for arg in e.args]
        return False if False in found else None if None in found else True
    if isinstance(e, ex.Not):
        inner = truth(e.arg, x, nan)
        return None if inner is None else not inner
    if isinstance(e, ex.IsNull):
        return x is None
    if isinstance(e, ex.IsIn) and not e.values:
        return False  # for null too
    if x is None:
        return None
    if isinstance(e, ex.IsNan):
        return x != x
    if isinstance(e, ex.StartsWith):
        return bool(x.startswith(e.prefix))
    if isinstance(e, ex.IsIn):
        if any(same(x, v, nan) for v in e.values if v is not None):
            return True
        return None if None in e.values else False
    assert isinstance(e, ex.Compare)
    v = e.value
    if v is None:
        return None
    ordered = nan == "spark" or not (x != x or v != v)
    return {
        "=": lambda: same(x, v, nan),
        "!=": lambda: not same(x, v, nan),
        "<": lambda: ordered and less(x, v, nan),
        "<=": lambda: ordered and (less(x, v, nan) or same(x, v, nan)),
        ">": lambda: ordered and less(v, x, nan),
        ">=": lambda: ordered and (less(v, x, nan) or same(x, v, nan)),
    }[e.op]()


# -- the bound filter, run by the kernel ----------------------------------------------------------


def run(bound: Bound, array: pa.Array) -> list[bool]:
    n = len(array)
    if isinstance(bound, BoundConst):
        return [bound.value] * n
    if not isinstance(bound, BoundLeaf):
        parts = [run(arg, array) for arg in bound.args]
        return [all(p) if isinstance(bound, BoundAnd) else any(p) for p in zip(*parts, strict=True)]
    buffers = array.buffers()
    mask, _ = rows.compare(
        bound.leaf_type.kind,
        bound.leaf_type.width,
        n,
        buffers[0],
        buffers[-1],
        buffers[1] if len(buffers) == 3 else None,
        bound.op,
        bound.negate,
        bound.literals,
        bound.nan,
    )
    return np.unpackbits(np.frombuffer(mask, np.uint8), count=n, bitorder="little") == 1


def conditions(name: str) -> list[ex.Expression]:
    _, _, literals = DOMAINS[name]
    x = ps.col("x")
    found: list[ex.Expression] = []
    for v in literals:
        found += [x == v, x != v, x < v, x <= v, x > v, x >= v]
    known = [v for v in literals if v is not None]
    found += [x.isin(known[:2]), x.isin(known[1:]), x.isin([known[0], None]), x.isin([])]
    found += [x.is_null(), x.is_nan()]
    if name == "string":
        found += [x.starts_with("a"), x.starts_with("")]
    return found + [~c for c in found]


class Bench:
    """A column of one domain, and how conditions on it are bound."""

    def __init__(self, name: str) -> None:
        kind, values, _ = DOMAINS[name]
        self.file = open_metadata(memory_file(kind, values))
        tree = self.file.schema_tree
        self.leaf_type = tree.leaf_type(tree.find("x"), Options())
        self.array = ps.read_table(memory_file(kind, values))["x"].chunk(0)
        self.values = [
            None if v is None else float(v) if pa.types.is_floating(kind) else v
            for v in self.array.to_pylist()
        ]

    def bind(self, e: ex.Expression, nan: str) -> Bound:
        tree = self.file.schema_tree
        return bind(e, lambda path: (tree.find(path[0]), self.leaf_type), nan)

    def check(self, e: ex.Expression, nan: str) -> Bound:
        bound = self.bind(e, nan)
        wanted = [truth(e, x, nan) is True for x in self.values]
        assert list(run(bound, self.array)) == wanted, (e, nan, bound)
        return bound


BENCHES = {name: Bench(name) for name in DOMAINS}


@pytest.mark.covering(1)
@pytest.mark.parametrize("nan", ["ieee", "spark"])
@pytest.mark.parametrize("name", DOMAINS)
def test_every_pair_of_conditions_means_the_same_folded(name: str, nan: str) -> None:
    bench = BENCHES[name]
    for one, other in itertools.product(conditions(name), repeat=2):
        bound = bench.check(one & other, nan)
        assert len(leaves_of(bound)) <= 2


def test_every_contradiction_of_integers_is_found() -> None:
    bench = BENCHES["int8"]
    domain = [None, *range(-128, 128)]
    # x >= 127 and x != 127 is known to be empty only by the end of the type
    known = [c for c in conditions("int8") if "127" not in repr(c)]
    # A conjunction is true where both of its sides are.
    true_at = [frozenset(x for x in domain if truth(c, x, "ieee") is True) for c in known]
    found = 0
    for (one, some), (other, others) in itertools.product(
        zip(known, true_at, strict=True), repeat=2
    ):
        if not some & others:
            assert bench.bind(one & other, "ieee") == BoundConst(False), (one, other)
            found += 1
    assert found > 100


@pytest.mark.covering(1)
@pytest.mark.parametrize("nan", ["ieee", "spark"])
@pytest.mark.parametrize("name", DOMAINS)
@given(data=st.data())
def test_many_conditions_mean_the_same_folded(name: str, nan: str, data: st.DataObject) -> None:
    chosen = data.draw(st.lists(st.sampled_from(conditions(name)), min_size=2, max_size=6))
    BENCHES[name].check(ex.And(tuple(chosen)), nan)


def test_what_a_fold_leaves() -> None:
    x = ps.col("x")
    bench = BENCHES["double"]

    def shown(e: ex.Expression, nan: str = "ieee") -> list[tuple[int, bool]]:
        return [(t.op, t.negate) for t in leaves_of(bench.bind(e, nan))]

    assert shown((x > 1) & (x > 0) & (x < 5) & (x <= 5)) == [
        (rows.OP_GT, False),
        (rows.OP_LT, False),
    ]
    assert shown((x >= 0.0) & (x <= -0.0)) == [(rows.OP_EQ, False)]
    assert shown(x.is_not_null() & (x > 1)) == [(rows.OP_GT, False)]
    assert shown(x.isin([0, 1, 2]) & (x > 0.5)) == [(rows.OP_IN, False)]
    assert shown(~(x < 1) & ~(x > 0), "ieee") == [(rows.OP_LT, True), (rows.OP_GT, True)]  # NaN
    assert bench.bind(~(x < 1) & ~(x > 0), "spark") == BoundConst(False)
    assert bench.bind(~(x < 1) & (x <= 0), "ieee") == BoundConst(False)


def test_other_columns_and_alternatives_are_left_alone() -> None:
    table = pa.table({"a": [1, 2, 3], "b": [3, 2, 1]})
    a, b = ps.col("a"), ps.col("b")
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    data = sink.getvalue().to_pybytes()
    found = ps.read_table(data, filter=((a > 1) & (b < 3) & (a < 3)) | ((a == 1) & (a == 2)))
    assert found.to_pylist() == [{"a": 2, "b": 2}]
    assert ps.read_table(data, filter=~((a != 1) | (b != 3))).num_rows == 1
