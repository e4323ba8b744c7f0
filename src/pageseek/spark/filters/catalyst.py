"""Spark's predicates, as it pushes them into a table, as expressions of this package.

Spark has bound them before: names are those of the table's schema, both sides of a comparison have one type, and local
times are instants. A predicate is translated exactly, or not at all; Spark then applies it behind the scan.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from pageseek.predicate.expression import And, Column, Compare, Expression, IsIn, Not, Or, flatten

Node = Mapping[str, Any]
_COMPARED = {"=": "=", "<>": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
_DECIMAL = re.compile(r"DECIMAL\(\d+,\d+\)")
_FLOATS = ("FLOAT", "DOUBLE")
_SPECIAL = re.compile(r"([%_\\])")
_TYPES = {
    "BOOLEAN": pa.bool_(),
    "TINYINT": pa.int8(),
    "SMALLINT": pa.int16(),
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(),
    "STRING": pa.string(),
    "BINARY": pa.binary(),
    "DATE": pa.date32(),
    "TIMESTAMP": pa.timestamp("us", "UTC"),
    "TIMESTAMP_NTZ": pa.timestamp("us"),
}


class NotTranslated(Exception):
    """A predicate has no expression of this package."""


def expression(node: Node) -> Expression:
    """A predicate as an expression that is TRUE, FALSE and NULL for the same rows.

    Raises
    ------
    NotTranslated
        There is none.
    """
    name = node.get("name")
    made = _PREDICATES.get(name)  # type: ignore[arg-type]
    if made is not None:
        return made(node["of"])
    if name in _COMPARED:
        return _compared(_COMPARED[name], *node["of"])
    raise NotTranslated(str(name))


def literal(node: Node) -> Any:
    """A literal as a value that this package compares; None is null."""
    if "type" not in node:
        raise NotTranslated("no literal")
    name, text = node["type"], node["value"]
    kind = _TYPES.get(name)
    if kind is None and not _DECIMAL.fullmatch(name):
        raise NotTranslated(name)
    if text is None:
        return None
    if kind is None:
        return Decimal(text)
    if pa.types.is_boolean(kind):
        return text == "true"
    if pa.types.is_string(kind):
        return text
    if pa.types.is_binary(kind):
        return base64.b64decode(text)
    if pa.types.is_floating(kind):  # the shortest text of a float is another double
        return float(np.float32(text)) if kind == pa.float32() else float(text)
    # days and microseconds may lie beyond the years of Python
    return int(text) if pa.types.is_integer(kind) else pa.scalar(int(text), kind)


def column(node: Node) -> Column:
    """A reference to a column, or to a field of a struct."""
    if "column" not in node:
        raise NotTranslated("no column")
    return Column(tuple(node["column"]))


def _compared(op: str, left: Node, right: Node) -> Expression:
    if "column" in right:
        if "column" not in left:  # Spark puts columns on the left
            raise NotTranslated("a literal on the left")
        return _as_operator(op, column(left), column(right))
    value = literal(right)
    if value is None:
        raise NotTranslated("a comparison with null")
    return Compare(column(left), op, value)


def _as_operator(op: str, left: Column, right: Column) -> Expression:
    made: dict[str, Callable[[], Expression]] = {
        "=": lambda: left == right,
        "!=": lambda: left != right,
        "<": lambda: left < right,
        "<=": lambda: left <= right,
        ">": lambda: left > right,
        ">=": lambda: left >= right,
    }
    return made[op]()


def _null_safe(of: list[Node]) -> Expression:
    left, right = of
    if "column" in right:
        raise NotTranslated("null-safe, two columns")
    value = literal(right)
    if value is None:
        return column(left).is_null()
    # for a null it is FALSE: NULL AND FALSE
    return And((Compare(column(left), "=", value), column(left).is_not_null()))


def _is_in(of: list[Node]) -> Expression:
    tested, given = column(of[0]), of[1:]
    if not given:  # keys of a join, of which there are none
        return IsIn(tested, ())
    values = [literal(one) for one in given]
    if any(value is None for value in values):
        raise NotTranslated("IN with null")
    if isinstance(values[0], pa.Scalar):
        return IsIn(tested, pa.array([one.value for one in values], values[0].type))
    return IsIn(tested, tuple(values))


def _matched(pattern: Callable[[str], str]) -> Callable[[list[Node]], Expression]:
    def made(of: list[Node]) -> Expression:
        text = literal(of[1])
        if not isinstance(text, str):
            raise NotTranslated("a pattern that is no text")
        return column(of[0]).like(pattern(_SPECIAL.sub(r"\\\1", text)))

    return made


def _starts(of: list[Node]) -> Expression:
    text = literal(of[1])
    if not isinstance(text, str):
        raise NotTranslated("a prefix that is no text")
    return column(of[0]).starts_with(text)


def _joined(kind: type[And] | type[Or]) -> Callable[[list[Node]], Expression]:
    return lambda of: flatten(kind(tuple(map(expression, of))))


_PREDICATES: dict[str, Callable[[list[Node]], Expression]] = {
    "AND": _joined(And),
    "OR": _joined(Or),
    "NOT": lambda of: Not(expression(of[0])),
    "IS_NULL": lambda of: column(of[0]).is_null(),
    "IS_NOT_NULL": lambda of: column(of[0]).is_not_null(),
    "<=>": _null_safe,
    "IN": _is_in,
    "STARTS_WITH": _starts,
    "ENDS_WITH": _matched(lambda text: f"%{text}"),
    "CONTAINS": _matched(lambda text: f"%{text}%"),
}


def has_float(predicates: Sequence[Node]) -> bool:
    """Whether floats are compared: NaN, the greatest one, is in no statistics, by which Spark's reader prunes."""
    return any(one.get("type") in _FLOATS or has_float(one.get("of", ())) for one in predicates)
