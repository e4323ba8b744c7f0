"""Predicates of polars as filters that prune.

polars gives an expression as JSON, whose form it does not document. What is known of it here becomes a filter that is TRUE
wherever the predicate is; what is not known is left out. polars evaluates the predicate itself on the rows that are left.

In polars NaN equals itself and is above every number. JSON has no NaN and no infinities: they come as null.
"""

from __future__ import annotations

import io
import json
import math
from typing import Any

import pyarrow as pa

from pageseek.base.errors import PredicateError
from pageseek.base.records import NamedTuple, dataclass
from pageseek.predicate import expression as ex
from pageseek.predicate.operators import MIRRORED

KNOWN_VERSIONS = (1, 2)  # of polars: those whose JSON is known here
MAX_VALUES = 1_000_000  # of a list; polars alone looks values up in longer ones
MAX_DEPTH = 60
_OPS = {"Eq": "=", "NotEq": "!=", "Lt": "<", "LtEq": "<=", "Gt": ">", "GtEq": ">="}
_MISSING = {"EqValidity": "=", "NotEqValidity": "!="}  # where null equals itself
_ERRORS = (ValueError, TypeError, LookupError, AttributeError, RecursionError, RuntimeError)


class Part(NamedTuple):
    """A filter that is TRUE wherever a part of a predicate is; `exact`: and FALSE or NULL where that is."""

    filter: ex.Expression
    exact: bool


@dataclass(frozen=True, slots=True)
class Predicate:
    """A predicate of polars. `expression`: what polars has to evaluate; None: nothing. `tree`: its JSON, if that is known."""

    expression: Any
    tree: Any

    @classmethod
    def of(cls, expression: Any) -> Predicate:
        """A predicate as polars pushes it. What polars adds for its own pruning (`dynamic_pred`) is taken out: it cannot be
        evaluated, and its query does not rely on it.
        """
        import polars as pl

        try:
            if int(pl.__version__.partition(".")[0]) not in KNOWN_VERSIONS:
                return cls(expression, None)
            tree = json.loads(expression.meta.serialize(format="json"))
        except (*_ERRORS, pl.exceptions.PolarsError):
            return cls(expression, None)
        return cls(*_without_dynamic(expression, tree))

    @property
    def columns(self) -> list[str]:
        """The columns that it needs."""
        return [] if self.expression is None else list(self.expression.meta.root_names())

    def part(self, schema: pa.Schema) -> Part | None:
        """What is known of it; None if nothing is. `schema`: the columns of the scan."""
        if self.tree is None:
            return None
        part = _Reader(schema).part(self.tree, 0)
        try:
            return None if part is None else Part(ex.flatten(part.filter), part.exact)
        except PredicateError:  # too deep
            return None


def _without_dynamic(expression: Any, tree: Any) -> tuple[Any, Any]:
    """The expression and its tree without the parts, joined by AND, that polars' optimizer added; None if nothing is left."""
    if isinstance(tree, dict):
        shown = tree.get("Display")
        if isinstance(shown, dict) and str(shown.get("fmt_str", "")).startswith("dynamic_pred"):
            return None, None
        both = tree.get("BinaryExpr")
        if isinstance(both, dict) and both.get("op") == "And":
            last, first = expression.meta.pop()  # not by JSON, which has no NaN
            left, left_tree = _without_dynamic(first, both["left"])
            right, right_tree = _without_dynamic(last, both["right"])
            if left is None or right is None:
                return (right, right_tree) if left is None else (left, left_tree)
            if left is not first or right is not last:
                joined = {"BinaryExpr": {**both, "left": left_tree, "right": right_tree}}
                return left & right, joined
    return expression, tree


def _expression(tree: Any) -> Any:
    """An expression of polars by its JSON. ValueError: it is none."""
    import polars as pl

    try:
        return pl.Expr.deserialize(io.BytesIO(json.dumps(tree).encode()), format="json")
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        raise ValueError(str(error)) from error


class _Reader:
    """Translates the JSON of one predicate."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema

    def part(self, tree: Any, depth: int) -> Part | None:
        """A part of a predicate; None if nothing is known of it."""
        if depth > MAX_DEPTH or not isinstance(tree, dict) or len(tree) != 1:
            return None
        ((name, inside),) = tree.items()
        try:
            if name == "BinaryExpr":
                return self._binary(inside["left"], inside["op"], inside["right"], depth)
            if name == "Function":
                return self._function(inside["function"], inside["input"], depth)
            if name == "Column":
                column, kind = self._column(tree)
                return Part(column == True, True) if pa.types.is_boolean(kind) else None  # noqa: E712
            if name == "Literal":
                value = _scalar(tree)
                known = pa.types.is_boolean(value.type) and value.is_valid
                return Part(ex.Constant(value.as_py()), True) if known else None
        except _ERRORS:  # another form than is known here
            return None
        return None

    def _binary(self, left: Any, op: str, right: Any, depth: int) -> Part | None:
        if op in ("And", "LogicalAnd", "Or", "LogicalOr"):
            one, other = self.part(left, depth + 1), self.part(right, depth + 1)
            if one is not None and other is not None:
                kind = ex.And if op.endswith("And") else ex.Or
                return Part(kind((one.filter, other.filter)), one.exact and other.exact)
            some = one or other
            return None if some is None or op.endswith("Or") else Part(some.filter, False)
        if op in _MISSING:
            made = self._comparison(left, "=", right)
            if made is None or not made.exact or isinstance(made.filter, ex.CompareColumns):
                return None  # two nulls are equal
            found: ex.Expression = ex.IsTrue(made.filter)
            return Part(found if _MISSING[op] == "=" else ex.Not(found), True)
        return self._comparison(left, _OPS[op], right)

    def _comparison(self, left: Any, op: str, right: Any) -> Part | None:
        if "Literal" in left:
            left, op, right = right, MIRRORED[op], left
        column, kind = self._column(left)
        if "Literal" not in right:
            other, other_kind = self._column(right)
            if not (_compares_as_is(left) and _compares_as_is(right)):
                return None
            return self._columns(column, kind, op, other, other_kind)
        value = _scalar(right)
        cast = "Cast" in left
        if not value.is_valid or not _comparable(kind, value, cast):
            return None
        if pa.types.is_dictionary(kind) and op not in ("=", "!="):
            return None  # in the order of categories
        plain = _plain(value)
        made: ex.Expression = ex.Compare(column, op, plain)
        if pa.types.is_floating(kind):
            if op in (">", ">=", "!="):
                made = ex.Or((made, ex.IsNan(column)))
            return Part(made, plain != 0)
        return Part(made, True)

    @staticmethod
    def _columns(
        column: ex.Column, kind: pa.DataType, op: str, other: ex.Column, other_kind: pa.DataType
    ) -> Part | None:
        t = pa.types
        whole = t.is_integer(kind) and t.is_integer(other_kind)
        if whole or (
            kind == other_kind and (_is_text(kind) or t.is_date32(kind) or t.is_timestamp(kind))
        ):
            return Part(ex.CompareColumns(column, op, other), True)
        return None

    def _function(self, function: Any, inputs: list[Any], depth: int) -> Part | None:
        if "Boolean" in function:
            return self._boolean(function["Boolean"], inputs, depth)
        if "StringExpr" in function:
            return self._text(function["StringExpr"], inputs)
        return None

    def _boolean(self, name: Any, inputs: list[Any], depth: int) -> Part | None:
        if name == "Not":
            part = self.part(inputs[0], depth + 1)
            return None if part is None or not part.exact else Part(ex.Not(part.filter), True)
        if name in ("IsNull", "IsNotNull"):
            column, _ = self._column(inputs[0], any_type=True)
            test: ex.Expression = ex.IsNull(column)
            return Part(test if name == "IsNull" else ex.Not(test), True)
        if name in ("IsNan", "IsNotNan"):
            column, kind = self._column(inputs[0])
            if not pa.types.is_floating(kind):
                return None
            test = ex.IsNan(column)
            return Part(test if name == "IsNan" else ex.Not(test), True)
        ((name, options),) = name.items()
        if name == "IsBetween":
            value, low, high = inputs
            ends = {
                "Both": (">=", "<="),
                "Left": (">=", "<"),
                "Right": (">", "<="),
                "None": (">", "<"),
            }
            above, below = ends[options["closed"]]
            bounds = self._comparison(value, above, low), self._comparison(value, below, high)
            known = [bound for bound in bounds if bound is not None]
            if not known:
                return None
            exact = len(known) == 2 and all(bound.exact for bound in known)
            return Part(ex.And(tuple(bound.filter for bound in known)), exact)
        return self._is_in(inputs, options["nulls_equal"]) if name == "IsIn" else None

    def _is_in(self, inputs: list[Any], nulls_equal: bool) -> Part | None:
        column, kind = self._column(inputs[0])
        values = _values(inputs[1])
        if "Cast" in inputs[0] or len(values) > MAX_VALUES:
            return None
        present = values.drop_null()
        if not all(
            _comparable(kind, value, False)
            for value in (present[:1] if _is_uniform(present.type) else present)
        ):
            return None
        has_null = len(present) < len(values)
        listed: Any = present
        if _is_text(present.type):
            listed = present.cast(pa.large_string())
        elif not pa.types.is_integer(present.type):
            listed = tuple(map(_plain, present))
        found: ex.Expression = ex.IsIn(column, listed)
        if nulls_equal:
            found = ex.IsTrue(found)
            return Part(ex.Or((found, ex.IsNull(column))) if has_null else found, False)
        # null is in no list, and not in an empty one either: that is null
        known = len(values) > 0 and not has_null
        return Part(found, known and not pa.types.is_floating(kind))

    def _text(self, name: Any, inputs: list[Any]) -> Part | None:
        column, kind = self._column(inputs[0])
        value = _scalar(inputs[1])
        if (
            not _is_text(kind)
            or not value.is_valid
            or not _is_text(value.type)
            or "Cast" in inputs[0]
        ):
            return None
        text = str(value)
        if name == "StartsWith":
            return Part(ex.StartsWith(column, text), True)
        escaped = text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
        if name == "EndsWith":
            return Part(ex.Like(column, "%" + escaped), True)
        if isinstance(name, dict) and name.get("Contains", {}).get("literal") is True:
            return Part(ex.Like(column, f"%{escaped}%"), True)
        return None

    def _column(self, tree: Any, any_type: bool = False) -> tuple[ex.Column, pa.DataType]:
        """A column, a field of a struct, or either in a cast that keeps its values apart and in order; with its own type."""
        ((name, inside),) = tree.items()
        if name == "Cast":
            if "Cast" in inside["expr"]:
                raise ValueError("casts of casts")
            column, kind = self._column(inside["expr"])
            if not _keeps(kind, inside["dtype"]["Literal"]):
                raise ValueError("a cast that may change values")
            return column, kind
        names: list[str] = []
        while name == "Function":  # fields of structs, the innermost first
            names.append(inside["function"]["StructExpr"]["FieldByName"])
            ((name, inside),) = inside["input"][0].items()
        if name != "Column":
            raise ValueError("not a column")
        path = (inside, *reversed(names))
        if any("." in part for part in path) and len(path) > 1:
            raise ValueError("a name with a dot, which a path would split")
        kind = pa.struct(list(self._schema))
        for part in path:
            kind = kind.field(kind.get_field_index(part)).type
        if not any_type and pa.types.is_nested(kind):
            raise ValueError("nested")
        return ex.Column(path), kind


# -- literals -------------------------------------------------------------------------------------

# literals that polars need not make of their JSON, which takes as long as a lookup: their classes and types
_PLAIN_LITERALS: dict[str, tuple[type, pa.DataType]] = {
    "Int8": (int, pa.int8()),
    "Int16": (int, pa.int16()),
    "Int32": (int, pa.int32()),
    "Int64": (int, pa.int64()),
    "UInt8": (int, pa.uint8()),
    "UInt16": (int, pa.uint16()),
    "UInt32": (int, pa.uint32()),
    "UInt64": (int, pa.uint64()),
    "Float64": (float, pa.float64()),
    "String": (str, pa.large_string()),
}


def _scalar(tree: Any) -> pa.Scalar:
    """A literal, as polars makes it of its JSON."""
    ((kind, value),) = tree["Literal"].get("Scalar", {}).items() or (("", None),)
    make = _PLAIN_LITERALS.get(kind)
    if make is not None and type(value) is make[0] and set(tree) == {"Literal"}:
        return pa.scalar(value, make[1])
    import polars as pl

    made = pl.select(_expression(tree)).to_series().to_arrow()
    if len(made) != 1 or set(tree) != {"Literal"}:
        raise ValueError("not one value")
    return made[0]


def _values(tree: Any) -> pa.Array:
    """The values of a list, or of a series."""
    import polars as pl

    while "Alias" in tree:
        tree = tree["Alias"][0]
    if set(tree) != {"Literal"}:
        raise ValueError("not a literal")
    made = pl.select(_expression(tree)).to_series()
    if made.dtype == pl.List or made.dtype == pl.Array:
        if len(made) != 1 or made[0] is None:
            raise ValueError("not one list")
        made = made[0]
    return made.to_arrow()


def _plain(value: pa.Scalar) -> Any:
    """The value as a filter takes it."""
    return value if pa.types.is_temporal(value.type) else value.as_py()


def _is_text(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    )


def _is_binary(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind)
    )


def _is_uniform(kind: pa.DataType) -> bool:
    """Whether one value of a list tells whether all of them can be compared."""
    return bool(pa.types.is_integer(kind) or _is_text(kind))


def _comparable(kind: pa.DataType, value: pa.Scalar, cast: bool) -> bool:
    """Whether polars and this package agree on comparisons of a column and a value. `cast`: polars casts the column first."""
    t, other = pa.types, value.type
    if isinstance(kind, pa.BaseExtensionType):
        return False
    if t.is_dictionary(kind):
        kind = kind.value_type
    if t.is_integer(kind):
        if t.is_floating(other):  # of a column in a cast; beyond 2**53 it is rounded
            return cast and abs(value.as_py()) < 2**53
        return bool(t.is_integer(other))
    if t.is_floating(kind):
        return bool(t.is_floating(other) and math.isfinite(value.as_py()))
    if t.is_timestamp(kind):
        return bool(t.is_timestamp(other) and (kind.tz is None) == (other.tz is None))
    if t.is_date32(kind):
        return bool(t.is_date32(other) or (cast and t.is_timestamp(other) and other.tz is None))
    if t.is_decimal(kind):
        return bool(t.is_decimal(other))
    for same in (_is_text, _is_binary, t.is_boolean, t.is_time, t.is_duration):
        if same(kind):
            return bool(same(other))
    return False


def _compares_as_is(tree: Any) -> bool:
    """Whether a column, maybe in a cast, is compared with another one as the file has it: as doubles, other integers are equal."""
    target = tree["Cast"]["dtype"]["Literal"] if "Cast" in tree else "Int64"
    return isinstance(target, str) and target.startswith(("Int", "UInt"))


def _keeps(kind: pa.DataType, target: Any) -> bool:
    """Whether a cast of polars leaves all values as they are, in comparisons that `_comparable` allows."""
    t = pa.types
    if isinstance(target, dict):
        unit, zone = target.get("Datetime", ("Nanoseconds", None))  # nanoseconds overflow
        return bool(t.is_date32(kind) and unit != "Nanoseconds" and zone is None)
    if t.is_integer(kind) and isinstance(target, str):
        if target in ("Float64", "Int128"):
            return True
        signed = target.startswith("Int")
        bits = target.removeprefix("Int").removeprefix("UInt")
        if not bits.isdigit() or not target.startswith(("Int", "UInt")):
            return False
        wide = int(bits) - signed >= kind.bit_width - t.is_signed_integer(kind)
        return wide and (signed or t.is_unsigned_integer(kind))
    return bool(t.is_float32(kind) and target == "Float64")
