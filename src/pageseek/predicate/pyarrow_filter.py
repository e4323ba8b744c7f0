"""`pyarrow.compute.Expression` as a filter: pyarrow evaluates it; its serialized form is read if that is known here.

An expression serializes to an Arrow IPC file of one row: the metadata of its schema spell the calls, in the
order of writing, and refer to columns that hold literals and options. None of this is documented. If anything
differs from the known form, pyarrow alone evaluates the expression.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from pageseek.base.errors import PredicateError
from pageseek.base.records import dataclass
from pageseek.format.types import (
    BYTES_KINDS,
    FLOAT_KINDS,
    K_BOOL,
    K_F16,
    K_F32,
    K_F64,
    K_U64,
    LeafType,
)
from pageseek.predicate import expression as ex
from pageseek.predicate.column_pairs import family
from pageseek.predicate.operators import MIRRORED, OF_ARROW

KNOWN_VERSIONS = range(19, 28)  # of pyarrow: those whose serialized form is known here
MAX_CALLS = 10_000  # pyarrow alone evaluates longer and deeper expressions
MAX_DEPTH = 50


@dataclass(frozen=True, slots=True)
class Call:
    name: str
    args: tuple[Node, ...]
    options: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class Field:
    path: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Literal:
    value: pa.Scalar


Node: TypeAlias = Call | Field | Literal
LeafTypeOf: TypeAlias = Callable[[tuple[str, ...]], LeafType | None]


def read(expression: Any) -> Node | None:
    """The calls of an expression; None where its form is not known."""
    try:
        version = int(pa.__version__.split(".")[0])
        if version not in KNOWN_VERSIONS:
            return None
        data = expression.__reduce__()[1][0]
        with pa.ipc.open_file(data) as reader:
            batch = reader.get_batch(0)
        return _Reader(batch).node()
    except (
        pa.ArrowException,
        ValueError,
        TypeError,
        LookupError,
        AttributeError,
        StopIteration,
        AssertionError,
    ):
        return None


class _Schema(ctypes.Structure):
    """The beginning of ArrowSchema, of the Arrow C data interface."""

    _fields_ = (
        ("format", ctypes.c_char_p),
        ("name", ctypes.c_char_p),
        ("metadata", ctypes.c_void_p),
    )


def _metadata(schema: pa.Schema) -> list[tuple[str, str]]:
    """Keys and values in their order. pyarrow gives a dict, but keys recur here."""
    capsule = schema.__arrow_c_schema__()
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    at = _Schema.from_address(get(capsule, b"arrow_schema")).metadata
    if not at:
        return []

    def integer() -> int:
        nonlocal at
        (value,) = struct.unpack("=i", ctypes.string_at(at, 4))
        at += 4
        return int(value)

    def text() -> str:
        nonlocal at
        size = integer()
        value = ctypes.string_at(at, size)
        at += size
        return value.decode()

    return [(text(), text()) for _ in range(integer())]


class _Reader:
    def __init__(self, batch: pa.RecordBatch) -> None:
        self._batch = batch
        self._entries: Iterator[tuple[str, str]] = iter(_metadata(batch.schema))
        self._left = MAX_CALLS

    def node(self) -> Node:
        made = self._node(*next(self._entries), 0)
        assert next(self._entries, None) is None
        return made

    def _node(self, key: str, value: str, depth: int) -> Node:
        self._left -= 1
        assert self._left > 0
        assert depth < MAX_DEPTH
        if key == "literal":
            return Literal(self._batch.column(int(value))[0])
        if key == "field_ref":
            return Field((value,))
        if key == "nested_field_ref":
            parts = [next(self._entries) for _ in range(int(value))]
            assert all(key == "field_ref" for key, _ in parts)
            return Field(tuple(name for _, name in parts))
        assert key == "call"
        args: list[Node] = []
        options: dict[str, Any] | None = None
        while True:
            key, inner = next(self._entries)
            if key == "end":
                assert inner == value
                return Call(value, tuple(args), options)
            if key == "options":
                column = self._batch.column(int(inner))
                options = {field.name: column.field(i)[0] for i, field in enumerate(column.type)}
            else:
                args.append(self._node(key, inner, depth + 1))


def fields(node: Node | None) -> list[tuple[str, ...]] | None:
    """The paths of the columns that are named; None where that is not known."""
    if node is None:
        return None
    found: dict[tuple[str, ...], None] = {}
    rest: list[Node] = [node]
    while rest:
        part = rest.pop()
        if isinstance(part, Field):
            found[part.path] = None
        elif isinstance(part, Call):
            rest.extend(reversed(part.args))
    return list(found)


def conjuncts(node: Node) -> Iterator[Node]:
    """The parts that are all TRUE where the whole is."""
    if isinstance(node, Call) and node.name in ("and_kleene", "and"):
        for arg in node.args:
            yield from conjuncts(arg)
    else:
        yield node


# -- translation ----------------------------------------------------------------------------------


def translate(node: Node, leaf_type_of: LeafTypeOf) -> ex.Expression | None:
    """The condition as an expression of this package, by the rules of IEEE 754; None if the two may differ."""
    if isinstance(node, Literal):
        if pa.types.is_boolean(node.value.type) or pa.types.is_null(node.value.type):
            return ex.Constant(node.value.as_py())
        return None
    if isinstance(node, Field):
        leaf_type = leaf_type_of(node.path)
        return None if leaf_type is None or leaf_type.kind != K_BOOL else _column(node) == True  # noqa: E712
    if node.name in ("and_kleene", "or_kleene"):
        args = [translate(arg, leaf_type_of) for arg in node.args]
        known = tuple(arg for arg in args if arg is not None)
        if len(known) < len(args):
            return None
        return ex.And(known) if node.name == "and_kleene" else ex.Or(known)
    if node.name == "invert":
        inner = translate(node.args[0], leaf_type_of)
        return None if inner is None else ex.Not(inner)
    if node.name in OF_ARROW:
        return _comparison(node, leaf_type_of)
    if not isinstance(node.args[0], Field):
        return None
    leaf_type = leaf_type_of(node.args[0].path)
    if leaf_type is None or leaf_type.is_null:
        return None
    make = _TESTS.get(node.name)
    return None if make is None else make(node.args[0], leaf_type, node.options or {})


def _column(field: Field) -> ex.Column:
    return ex.Column(field.path)


def _comparison(node: Call, leaf_type_of: LeafTypeOf) -> ex.Expression | None:
    left, right = node.args
    op = OF_ARROW[node.name]
    if isinstance(left, Literal):
        left, op, right = right, MIRRORED[op], left
    if not isinstance(left, Field) or not isinstance(right, Literal):
        return None
    leaf_type = leaf_type_of(left.path)
    if leaf_type is None or leaf_type.is_null or not _same(right.value, leaf_type):
        return None
    return ex.Compare(_column(left), op, right.value)


def _same(value: pa.Scalar, leaf_type: LeafType) -> bool:
    """Whether pyarrow compares with a literal as this package does: its casts change neither side."""
    t, made, kind = pa.types, leaf_type.storage, value.type
    if not value.is_valid:
        return bool(kind == made)
    if isinstance(leaf_type.type, pa.BaseExtensionType) or isinstance(kind, pa.BaseExtensionType):
        return False
    if t.is_integer(made) and (t.is_integer(kind) or t.is_floating(kind)):
        return True  # pyarrow's casts are checked: they change no value, or fail
    if leaf_type.kind in FLOAT_KINDS:
        if not (t.is_integer(kind) or t.is_floating(kind)):
            return False
        number = value.as_py()
        if t.is_integer(kind):
            return bool(abs(number) <= (2**53 if leaf_type.kind == K_F64 else 2**11))
        wide = {K_F16: np.float16, K_F32: np.float32, K_F64: np.float64}[leaf_type.kind]
        with np.errstate(over="ignore"):
            narrow: Any = wide(number)
            return bool(number != number or float(narrow) == number)
    if leaf_type.kind in BYTES_KINDS:
        of_text = t.is_string(kind) or t.is_large_string(kind)
        of_bytes = t.is_binary(kind) or t.is_large_binary(kind)
        return bool(of_text if family(leaf_type) == "text" else of_bytes)
    if t.is_timestamp(made) and t.is_timestamp(kind):
        return (made.tz is None) == (kind.tz is None) and made.unit == kind.unit
    if t.is_decimal(made):
        return bool(t.is_decimal(kind)) and made.scale == kind.scale
    return bool(kind == made)


def _is_in(field: Field, leaf_type: LeafType, options: dict[str, Any]) -> ex.Expression | None:
    values = options["value_set"].values
    matching = options["null_matching_behavior"].as_py()
    if leaf_type.kind in FLOAT_KINDS or values is None or matching not in range(4):
        return None  # pyarrow looks floats up by their bits
    if values.type != leaf_type.storage and not (
        pa.types.is_integer(values.type)
        and pa.types.is_integer(leaf_type.storage)
        and leaf_type.kind != K_U64
    ):
        return None
    column = _column(field)
    has_null, present = values.null_count > 0, values.drop_null()
    found: ex.Expression = ex.IsIn(column, present)
    if matching < 2:  # MATCH, SKIP: never NULL
        found = ex.IsTrue(found)
        return ex.Or((found, ex.IsNull(column))) if has_null and matching == 0 else found
    if not len(present):
        return None
    if matching == 3 and has_null:  # INCONCLUSIVE: a miss is NULL
        return ex.IsIn(column, (*present, None))
    return found


def _is_null(field: Field, leaf_type: LeafType, options: dict[str, Any]) -> ex.Expression | None:
    column = _column(field)
    found: ex.Expression = ex.IsNull(column)
    if options["nan_is_null"].as_py() and leaf_type.kind in FLOAT_KINDS:
        return ex.Or((found, ex.IsTrue(ex.IsNan(column))))
    return found


def _starts_with(
    field: Field, leaf_type: LeafType, options: dict[str, Any]
) -> ex.Expression | None:
    pattern = options["pattern"].as_py()
    if options["ignore_case"].as_py() or leaf_type.kind not in BYTES_KINDS:
        return None
    return ex.StartsWith(
        _column(field), pattern if family(leaf_type) == "text" else pattern.encode()
    )


def _match_like(field: Field, leaf_type: LeafType, options: dict[str, Any]) -> ex.Expression | None:
    pattern = options["pattern"].as_py()
    if options["ignore_case"].as_py() or "\\" in pattern or "\0" in pattern:
        return None
    if family(leaf_type) != "text":
        return None
    return ex.Like(_column(field), pattern)


_TESTS: dict[str, Callable[[Field, LeafType, dict[str, Any]], ex.Expression | None]] = {
    "is_in": _is_in,
    "is_null": _is_null,
    "is_valid": lambda field, _leaf_type, _options: ex.Not(ex.IsNull(_column(field))),
    "is_nan": lambda field, leaf_type, _options: (
        ex.IsNan(_column(field)) if leaf_type.kind in FLOAT_KINDS else None
    ),
    "starts_with": _starts_with,
    "match_like": _match_like,
}


# -- evaluation -----------------------------------------------------------------------------------


def evaluator(expression: Any, schema: pa.Schema) -> Callable[[list[pa.ChunkedArray]], Any]:
    """A function by which pyarrow evaluates the expression for the columns of a schema. It is first tried on no rows."""
    from pyarrow import acero

    def evaluate(values: list[pa.ChunkedArray]) -> Any:
        table = pa.Table.from_arrays(values, schema=schema)
        try:
            source = acero.Declaration("table_source", acero.TableSourceNodeOptions(table))
            node = acero.ProjectNodeOptions([expression], ["passes"])
            made = acero.Declaration("project", node, [source]).to_table(use_threads=False)
        except (pa.ArrowException, ValueError, TypeError, KeyError) as error:
            raise PredicateError(f"filter {expression}: pyarrow: {error}") from error
        return made.column(0)

    found = evaluate([pa.chunked_array([], field.type) for field in schema])
    if not (pa.types.is_boolean(found.type) or pa.types.is_null(found.type)):
        raise PredicateError(f"filter {expression} gives {found.type}, not true or false")
    return lambda values: _boolean(evaluate(values))


def _boolean(values: pa.ChunkedArray) -> Any:
    return values.cast(pa.bool_()) if pa.types.is_null(values.type) else values
