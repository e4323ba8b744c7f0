"""Random conditions over one small table: what they mean in plain Python, and as expression, SQL and pyarrow's."""

from __future__ import annotations

import datetime as dt
import functools
import itertools
import math
import operator
import re
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import strategies as st

import pageseek as ps
from pageseek.predicate import expression as ex
from pageseek.predicate.operators import MIRRORED

NAN = math.nan
DAY = dt.date(2024, 1, 1)
NOON = dt.datetime(2024, 1, 1, 12)
SECOND = dt.timedelta(seconds=1)
VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "i": (pa.int64(), [None, -2, 0, 1, 2, 3, 2**53 + 1, -(2**63)]),
    "j": (pa.int32(), [None, -1, 0, 1, 2, 3]),
    "u": (pa.uint64(), [None, 0, 1, 2, 2**63 + 1, 2**64 - 1]),
    "f": (pa.float64(), [None, NAN, -0.0, 0.0, 0.5, 1.0, 2.0**53, math.inf, -math.inf]),
    "g": (pa.float32(), [None, NAN, -0.0, 0.5, 1.0, 2.0]),
    "m": (
        pa.decimal128(9, 2),
        [None, Decimal("-1.50"), Decimal("0.00"), Decimal("0.50"), Decimal("1.00")],
    ),
    "s": (pa.string(), [None, "", "a", "ab", "a%", "b\nb", "é€", "abab"]),
    "r": (pa.string(), [None, "", "a", "ab", "z"]),
    "d": (pa.date32(), [None, DAY, DAY + dt.timedelta(1), DAY - dt.timedelta(400)]),
    "t": (
        pa.timestamp("ms"),
        [None, NOON, NOON + SECOND, dt.datetime(2024, 1, 1), dt.datetime(1950, 1, 1)],
    ),
    "b": (pa.bool_(), [None, True, False]),
    "l": (pa.list_(pa.int64()), [None, [], [1], [1, 2], [None], [3, None], [5, -1, 0]]),
}
LITERALS: dict[str, list[Any]] = {
    "i": [0, 1, 2, 2.5, 2**53, 2**53 + 1, 2**70, -(2**63), None],
    "j": [0, 1, 2**40, 0.5, None],
    "u": [0, -1, 2**63, 2**64 - 1, 2.0],
    "f": [0, 0.0, -0.0, 0.5, 1, NAN, math.inf, None],
    "g": [0.5, 0.1, 1, NAN, None],
    "m": [Decimal("0.50"), Decimal("0.505"), 1, Decimal("1e3"), 0.5, None],
    "s": ["", "a", "ab", "é€", "zz", None],
    "r": ["", "ab"],
    "d": [DAY, DAY + dt.timedelta(1), NOON, None],
    "t": [NOON, DAY, NOON + dt.timedelta(microseconds=1), None],
    "b": [True, False],
    "l": [1, 0, 4, 2.5],
}
PAIRS = [*itertools.permutations("ijufgm", 2), ("s", "r"), ("d", "t"), ("t", "d"), ("i", "i"), ("f", "f")]  # fmt: skip
PATTERNS = ["a%", "%b", "%b%", "_", "a_", "%a_%", "ab", "", "%", "b_b", "a\\%", "_%_", "é_", "%é%"]
# not the package's own: a truth does not lean on what it tests
OPS: dict[str, Callable[[Any, Any], Any]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
ROWS = 96
Node = tuple[Any, ...]


def column(name: str, seed: int) -> list[Any]:
    """Runs of neighbours, so that pages and row groups have bounds that differ."""
    values = VALUES[name][1]
    return [values[(k // (1 + seed % 7) * (seed + 3) + (k * k * seed) // 11) % len(values)] for k in range(ROWS)]  # fmt: skip


def data() -> dict[str, list[Any]]:
    """The columns of the table."""
    return {name: column(name, seed) for seed, name in enumerate(VALUES)}


def table() -> pa.Table:
    """The table, for Arrow."""
    return pa.table({name: pa.array(values, VALUES[name][0]) for name, values in data().items()})


@functools.cache
def rows() -> list[dict[str, Any]]:
    """Its rows, for the oracle."""
    columns = data()
    return [{name: columns[name][k] for name in VALUES} for k in range(ROWS)]


# ---- the oracle: True, False or None -------------------------------------------------------------


def compared(op: str, x: Any, y: Any, nan: str) -> bool | None:
    if x is None or y is None:
        return None
    x, y = (dt.datetime.combine(v, dt.time()) if type(v) is dt.date else v for v in (x, y))
    x, y = (Fraction(v) if isinstance(v, Decimal) else v for v in (x, y))
    if nan == "spark":
        keys = [(1, 0) if v != v else (0, v) for v in (x, y)]
        return bool(OPS[op](keys[0], keys[1]))
    return bool(OPS[op](x, y))


def either(found: list[bool | None]) -> bool | None:
    return True if True in found else None if None in found else False


def matches(pattern: str, text: str) -> bool:
    out, k = "", 0
    while k < len(pattern):
        char = pattern[k]
        if char == "\\":
            k += 1
            out += re.escape(pattern[k])
        else:
            out += {"%": ".*", "_": "."}.get(char, re.escape(char))
        k += 1
    return re.fullmatch(out, text, re.DOTALL) is not None


def truth(node: Node, row: dict[str, Any], nan: str) -> bool | None:
    kind, *args = node
    if kind == "const":
        return args[0]
    if kind == "not":
        inner = truth(args[0], row, nan)
        return None if inner is None else not inner
    if kind in ("and", "or"):
        found = [truth(arg, row, nan) for arg in args[0]]
        if kind == "or":
            return either(found)
        return False if False in found else None if None in found else True
    if kind == "true":
        return truth(args[0], row, nan) is True
    if kind == "cols":
        return compared(args[1], row[args[0]], row[args[2]], nan)
    x = row[args[0]]
    if kind == "null":
        return x is None
    if kind == "any":
        return None if x is None else either([compared(args[1], v, args[2], nan) for v in x])
    if kind == "in":
        return either([compared("=", x, v, nan) for v in args[1]])
    if x is None:
        return None
    if kind == "nan":
        return bool(x != x)
    if kind == "cmp":
        return compared(args[1], x, args[2], nan)
    if kind == "like":
        return matches(args[1], x)
    assert kind == "starts"
    return bool(x.startswith(args[1]))


# ---- three ways to write it ----------------------------------------------------------------------


def expression(node: Node) -> ex.Expression:
    kind, *args = node
    if kind == "const":
        return ex.Constant(args[0])
    if kind == "not":
        return ~expression(args[0])
    if kind in ("and", "or"):
        return functools.reduce(
            operator.and_ if kind == "and" else operator.or_, map(expression, args[0])
        )
    if kind == "true":
        return ex.IsTrue(expression(args[0]))
    x: Any = ps.col(args[0])
    if kind in ("cmp", "any", "cols"):
        x = x.any() if kind == "any" else x
        found: ex.Expression = OPS[args[1]](x, ps.col(args[2]) if kind == "cols" else args[2])
        return found
    if kind == "in":
        return x.isin(args[1])  # type: ignore[no-any-return]
    tests = {"null": x.is_null, "nan": x.is_nan, "like": x.like, "starts": x.starts_with}
    return tests[kind](*args[1:])  # type: ignore[no-any-return]


def literal(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return {None: "NULL", True: "TRUE", False: "FALSE"}[value]
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if isinstance(value, float):
        return f"double '{value}'" if not math.isfinite(value) else f"{value:.17e}"
    if isinstance(value, dt.datetime):
        return f"timestamp '{value}'"
    if isinstance(value, dt.date):
        return f"date '{value}'"
    return f"decimal '{value}'" if isinstance(value, Decimal) else str(value)


def sql(node: Node) -> str:
    kind, *args = node
    if kind == "const":
        return literal(args[0])
    if kind == "not":
        return f"not ({sql(args[0])})"
    if kind in ("and", "or"):
        return f" {kind} ".join(f"({sql(arg)})" for arg in args[0])
    if kind == "true":
        return f"({sql(args[0])}) is true"
    name = args[0]
    if kind == "in":
        return f"{name} in ({', '.join(map(literal, args[1]))})"
    if kind == "cols":
        return f"{name} {args[1]} {args[2]}"
    if kind == "cmp":
        return f"{name} {args[1]} {literal(args[2])}"
    if kind == "any":
        return f"{literal(args[2])} {MIRRORED[args[1]]} any({name})"
    return {
        "null": lambda: f"{name} is null",
        "nan": lambda: f"{name} is nan",
        "like": lambda: f"{name} like {literal(args[1])}",
        "starts": lambda: f"starts_with({name}, {literal(args[1])})",
    }[kind]()


def arrow(node: Node) -> Any:
    kind, *args = node
    if kind == "const":
        return pc.scalar(pa.scalar(args[0], pa.bool_()))
    if kind == "not":
        return ~arrow(args[0])
    if kind in ("and", "or"):
        return functools.reduce(
            operator.and_ if kind == "and" else operator.or_, map(arrow, args[0])
        )
    if kind == "true":
        return pc.coalesce(arrow(args[0]), pc.scalar(False))
    x = pc.field(args[0])
    if kind == "cmp":
        value = args[2]
        if value is None:
            value = pa.scalar(None, VALUES[args[0]][0])
        elif isinstance(value, int) and not -(2**63) <= value < 2**63:
            value = 7
        return OPS[args[1]](x, pc.scalar(value))
    if kind == "cols":
        return OPS[args[1]](x, pc.field(args[2]))
    if kind == "in":
        return x.isin(pa.array([v for v in args[1] if _fits(v, args[0])], VALUES[args[0]][0]))
    if kind == "any":
        return pc.list_value_length(x) > 1
    return {
        "null": lambda: x.is_null(nan_is_null=len(args) > 1),
        "nan": lambda: x.is_nan(),
        "like": lambda: pc.match_like(x, args[1]),
        "starts": lambda: pc.starts_with(x, args[1]),
    }[kind]()


def _fits(value: Any, name: str) -> bool:
    if value is None:
        return True
    try:
        pa.array([value], VALUES[name][0])
    except (pa.ArrowException, TypeError, OverflowError, ValueError):
        return False
    return True


def leaves(of_arrow: bool = False) -> st.SearchStrategy[Node]:
    names = "ijufgmsrdtb"
    ops = st.sampled_from(list(OPS))
    compare = st.sampled_from(names).flatmap(
        lambda n: st.tuples(st.just("cmp"), st.just(n), ops, st.sampled_from(LITERALS[n]))
    )
    within = st.sampled_from(names.replace("b", "")).flatmap(
        lambda n: st.tuples(
            st.just("in"),
            st.just(n),
            st.lists(st.sampled_from(LITERALS[n]), min_size=1, max_size=4),
        )
    )
    pairs = st.sampled_from([p for p in PAIRS if not of_arrow or p[0] not in "ufgm"])
    return st.one_of(
        compare,
        within,
        pairs.flatmap(lambda p: st.tuples(st.just("cols"), st.just(p[0]), ops, st.just(p[1]))),
        st.tuples(st.just("null"), st.sampled_from(list(VALUES))),
        st.tuples(st.just("nan"), st.sampled_from("fg")),
        st.tuples(st.just("like"), st.sampled_from("sr"), st.sampled_from(PATTERNS)),
        st.tuples(st.just("starts"), st.sampled_from("sr"), st.sampled_from(["", "a", "ab", "é"])),
        st.tuples(st.just("any"), st.just("l"), ops, st.sampled_from(LITERALS["l"])),
        st.tuples(st.just("const"), st.sampled_from([True, False, None])),
    )


def trees(of_arrow: bool = False) -> st.SearchStrategy[Node]:
    return st.recursive(
        leaves(of_arrow),
        lambda inner: st.one_of(
            st.tuples(st.just("not"), inner),
            st.tuples(st.sampled_from(["and", "or"]), st.lists(inner, min_size=2, max_size=3)),
            st.tuples(st.just("true"), inner),
        ),
        max_leaves=6,
    )
