"""Random conditions in Spark's SQL over the columns of any DataFrame, with literals that are near its values."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass
from typing import Any

_OPS = ("=", "<>", "<", "<=", ">", ">=", "<=>")
_PLAIN = re.compile(r"-?\d+(\.\d+)?")
_MOST = 40  # values of a column
_CALLS = {
    "number": ("{0} % 3 = 1", "abs({0}) > {1}", "{0} + 1 >= {1}", "coalesce({0}, {1}) = {1}", "nullif({0}, {1}) is null"),
    "string": ("upper({0}) = upper({1})", "length({0}) > 3", "{0} || 'x' > {1}", "trim({0}) = {1}", "locate('a', {0}) > 0"),
    "date": ("year({0}) > 1990", "date_add({0}, 1) > {1}", "dayofweek({0}) = 2"),
    "time": ("hour({0}) = 0", "to_date({0}) = to_date({1})", "date_trunc('DAY', {0}) <= {1}"),
    "boolean": ("not {0}", "{0} = (1 = 1)", "{0} is true", "{0} is not false", "{0} is unknown"),
    "binary": ("hex({0}) > '40'", "length({0}) = 2"),
}  # fmt: skip


@dataclass(frozen=True)
class Leaf:
    """A column, or a field of a struct: its name in SQL, what its values are, and some of them as literals of its type."""

    name: str
    kind: str
    literals: tuple[str, ...]


def leaves_of(frame: Any) -> list[Leaf]:
    """The leaves of a frame that can be compared, outside of lists and maps. The session is in UTC."""
    found = [leaf for field in frame.schema for leaf in _leaves(field, "")]
    texts = [
        f"collect_set({'hex' if kind == 'binary' else 'string'}({name}))" for name, kind in found
    ]
    values = frame.limit(5000).selectExpr(*texts).first()
    made = []
    for (name, kind), one in zip(found, values or (), strict=True):
        known = sorted(v for v in one if "\ufffd" not in v and "\x00" not in v)[:_MOST]
        literals = [_literal(kind, value) for value in known] or ["null"]
        made.append(Leaf(name, kind, tuple(literals)))
    return made


def _leaves(field: Any, above: str) -> list[tuple[str, str]]:
    from pyspark.sql import types as s

    name = above + "`" + field.name.replace("`", "``") + "`"
    kind = field.dataType
    if isinstance(kind, s.StructType):
        return [leaf for below in kind for leaf in _leaves(below, name + ".")]
    kinds: dict[Any, str] = {
        s.FloatType: "float",
        s.DoubleType: "double",
        s.BinaryType: "binary",
        s.BooleanType: "boolean",
        s.DateType: "date",
        s.TimestampType: "timestamp",
        s.TimestampNTZType: "timestamp_ntz",
    }
    if isinstance(kind, (s.IntegralType, s.DecimalType)):
        return [(name, "number")]
    if isinstance(kind, (s.CharType, s.VarcharType)) or kind == s.StringType():
        return [(name, "string")]
    return [(name, kinds[type(kind)])] if type(kind) in kinds else []


def _text(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _literal(kind: str, value: str) -> str:
    if kind == "string":
        return _text(value)
    if kind == "binary":
        return f"X'{value}'"
    if kind in ("float", "double"):
        return f"{kind}('{value}')"
    return value if kind in ("number", "boolean") else f"{kind} '{value}'"


def _other(rng: random.Random, leaf: Leaf) -> str:
    """A literal near the values of a leaf, often of another type."""
    own = rng.choice(leaf.literals)
    inner = re.sub(r"^\w+ ?\(?'|'\)?$", "", own)
    if leaf.kind == "number" and _PLAIN.fullmatch(own):
        ways = [
            own,
            own,
            f"{own}e0",
            f"'{own}'",
            f"float({own})",
            f"{own.split('.')[0]}.5",
            f"({own} + 1)",
        ]
        return rng.choice(ways)
    if leaf.kind in ("float", "double"):
        ways = [
            own,
            own,
            "double('NaN')",
            "-0.0",
            "0",
            "0.0d",
            f"'{inner}'",
            "float('inf')",
            "0.1",
            "0.1f",
        ]
        if _PLAIN.fullmatch(inner):
            ways += [inner, f"{inner}d", f"{inner}f"]
        return rng.choice(ways)
    if leaf.kind in ("date", "timestamp", "timestamp_ntz"):
        day = inner.split(" ")[0]
        return rng.choice(
            [own, own, f"date '{day}'", f"'{inner}'", f"'{day}'", f"timestamp '{inner}'", f"timestamp '{day} 05:00:00Z'",
             f"timestamp_ntz '{inner}'", "timestamp '2024-03-10 02:30:00'", "timestamp_ntz '2024-11-03 01:30:00'", "date '1500-03-01'"]
        )  # fmt: skip
    if leaf.kind == "string":
        return rng.choice([own, own, "''", _text(inner[:2]), _text(inner.upper()), "'5'", '"a"'])
    return rng.choice([own, "null"] if rng.random() < 0.1 else [own])


def predicate(rng: random.Random, leaves: list[Leaf], depth: int = 2) -> str:
    """A condition. Spark refuses a few, by their types or values."""
    if depth and rng.random() < 0.45:
        parts = [predicate(rng, leaves, depth - 1) for _ in range(rng.choice((1, 2, 2, 3)))]
        if len(parts) == 1:
            return f"not ({parts[0]})"
        return "(" + f" {rng.choice(('and', 'or'))} ".join(parts) + ")"
    leaf = rng.choice(leaves)
    name, value, other = leaf.name, _other(rng, leaf), _other(rng, leaf)
    kinds = [f"{name} {rng.choice(_OPS)} {value}"] * 4
    kinds += [f"{value} {rng.choice(_OPS[:6])} {name}", f"{name} is null", f"{name} is not null"]
    kinds += [f"{name} in ({value}, {other})", f"{name} not in ({rng.choice(leaf.literals)}, null)"]
    kinds += [f"{name} between {value} and {other}", f"if({name} > {value}, true, {name} is null)"]
    kinds.append(
        f"case when {name} = {value} then false when {name} < {other} then null else true end"
    )
    group = "number" if leaf.kind in ("number", "float", "double") else leaf.kind
    group = "time" if group.startswith("timestamp") else group
    kinds += [call.format(name, value) for call in rng.sample(_CALLS[group], 2)]
    alike = [
        one
        for one in leaves
        if one is not leaf
        and (one.kind == leaf.kind or (group == "number" and one.kind in ("number", "double")))
    ]
    if alike:
        kinds.append(f"{name} {rng.choice(_OPS)} {rng.choice(alike).name}")
    if leaf.kind == "string":
        inner = value.strip("'\"")
        patterns = (
            f"{inner[:2]}%",
            f"%{inner[-2:]}",
            f"%{inner[1:2]}%",
            "a\\\\_%",
            "_%",
            f"{inner[:1]}_%",
        )
        kinds += [
            f"{name} like '{rng.choice(patterns)}'",
            f"{name} not like '{rng.choice(patterns)}'",
        ]
        kinds += [
            f"startswith({name}, '{inner[:1]}')",
            f"{name} rlike '^[a-m]'",
            f"{name} ilike 'A%'",
        ]
    if group == "number" and leaf.kind != "number":
        kinds += [f"isnan({name})", f"not isnan({name}) or {name} <=> {value}"]
    return rng.choice(kinds)


def in_other_case(rng: random.Random, condition: str) -> str:
    """The condition with names in another case."""
    return re.sub(
        r"`[a-z_0-9]+`",
        lambda found: found[0].upper() if rng.random() < 0.5 else found[0],
        condition,
    )
