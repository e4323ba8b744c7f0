"""`pyarrow.compute.Expression` as a filter: pyarrow evaluates it; its serialized form is read if that is known here.

An expression serializes to an Arrow IPC file of one row: the metadata of its schema spell the calls, in the
order of writing, and refer to columns that hold literals and options. None of this is documented. If anything
differs from the known form, pyarrow alone evaluates the expression.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from pageseek.base.bounded_cache import BoundedCache
from pageseek.base.errors import PredicateError
from pageseek.base.mapped_types import mapped_field
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
from pageseek.predicate.literal import PER_SECOND
from pageseek.predicate.operators import MIRRORED, OF_ARROW

KNOWN_VERSIONS = range(19, 28)  # of pyarrow: those whose serialized form is known here
MAX_CALLS = 10_000  # pyarrow alone evaluates longer and deeper expressions
MAX_DEPTH = 50
MAX_KEPT = 1 << 14  # bytes of an expression whose calls are kept


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
_KEPT: BoundedCache[bytes, Node] = BoundedCache(64)  # each file of a scan reads the same one


def read(expression: Any) -> Node | None:
    """The calls of an expression; None where its form is not known."""
    try:
        version = int(pa.__version__.split(".")[0])
        if version not in KNOWN_VERSIONS:
            return None
        data = expression.__reduce__()[1][0]
        if data.size > MAX_KEPT:
            return _parsed(data)
        return _KEPT.get(data.to_pybytes(), lambda: _parsed(data))
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


def _parsed(data: pa.Buffer) -> Node:
    with pa.ipc.open_file(data) as reader:
        batch = reader.get_batch(0)
    return _Reader(batch).node()


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


def outermost(paths: Iterable[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """The paths to read for these: of a struct that is read whole none inside; with a dot in a name, the whole column."""
    made = dict.fromkeys(path[:1] if any("." in name for name in path) else path for path in paths)
    return [path for path in made if not any(path[:n] in made for n in range(1, len(path)))]


def conjuncts(node: Node) -> Iterator[Node]:
    """The parts that are all TRUE where the whole is, and nowhere else."""
    args: tuple[Node, ...] = ()
    if isinstance(node, Call) and node.name in ("and_kleene", "and"):
        args = node.args
    elif isinstance(node, Call) and node.name == "if_else" and _is_not_true(node.args[2]):
        args = node.args[:2]  # as duckdb writes IN
    if not args:
        yield node
    for arg in args:
        yield from conjuncts(arg)


def _is_not_true(node: Node) -> bool:
    return isinstance(node, Literal) and not node.value.as_py()


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
    if node.name == "if_else":
        return _choice(node, leaf_type_of)
    if not node.args or not isinstance(node.args[0], Field):
        return None
    leaf_type = leaf_type_of(node.args[0].path)
    if leaf_type is None or leaf_type.is_null:
        return None
    make = _TESTS.get(node.name)
    return None if make is None else make(node.args[0], leaf_type, node.options or {})


def passing(node: Node, leaf_type_of: LeafTypeOf) -> ex.Expression | None:
    """A condition that is TRUE exactly where this one is; it may be FALSE where this one is NULL. None if none is known."""
    exact = translate(node, leaf_type_of)
    if exact is not None:
        return exact
    parts, either = list(conjuncts(node)), False
    if isinstance(node, Call) and node.name == "or_kleene":
        parts, either = list(node.args), True
    if len(parts) < 2:
        return None
    made = [passing(part, leaf_type_of) for part in parts]
    known = tuple(part for part in made if part is not None)
    if len(known) < len(made):
        return None
    return ex.Or(known) if either else ex.And(known)


def implied(node: Node, leaf_type_of: LeafTypeOf) -> ex.Expression | None:
    """A condition that is TRUE wherever this one is, but may be TRUE elsewhere, too; None if none is known."""
    exact = translate(node, leaf_type_of)
    if exact is not None or not isinstance(node, Call):
        return exact
    if node.name in ("and_kleene", "and", "or_kleene", "or"):
        args = [implied(arg, leaf_type_of) for arg in node.args]
        known = tuple(arg for arg in args if arg is not None)
        if node.name in ("and_kleene", "and"):
            return ex.And(known) if known else None
        return ex.Or(known) if len(known) == len(args) else None
    if node.name == "if_else":
        branches = node.args[1:]
        passing = [arg for arg in branches if not _is_not_true(arg)]
        if not passing:
            return ex.Constant(False)
        made = [implied(arg, leaf_type_of) for arg in passing]
        return None if None in made else ex.Or(tuple(arg for arg in made if arg is not None))
    if node.name == "is_in" and isinstance(node.args[0], Field):
        leaf_type = leaf_type_of(node.args[0].path)
        if leaf_type is not None and leaf_type.kind in FLOAT_KINDS:
            return _is_in_floats(node.args[0], leaf_type, node.options or {})
    return None


def _choice(node: Call, leaf_type_of: LeafTypeOf) -> ex.Expression | None:
    """`if_else` whose test is never NULL."""
    if not (isinstance(node.args[0], Call) and node.args[0].name in ("is_valid", "is_null")):
        return None
    test, one, other = (translate(arg, leaf_type_of) for arg in node.args)
    if test is None or one is None or other is None:
        return None
    return ex.Or((ex.And((test, one)), ex.And((ex.Not(test), other))))


def _column(field: Field) -> ex.Column:
    return ex.Column(field.path)


def _comparison(node: Call, leaf_type_of: LeafTypeOf) -> ex.Expression | None:
    left, right = node.args
    op = OF_ARROW[node.name]
    if isinstance(left, Literal):
        left, op, right = right, MIRRORED[op], left
    if not isinstance(right, Literal):
        return None
    target = None
    if isinstance(left, Call) and left.name == "cast":
        target, left = _cast_to(left), left.args[0]
        if target is None:
            return None
    if not isinstance(left, Field):
        return None
    leaf_type = leaf_type_of(left.path)
    if leaf_type is None or leaf_type.is_null:
        return None
    if target is None:
        known = _same(right.value, leaf_type)
    else:
        known = _same_in_cast(right.value, leaf_type, target)
    return ex.Compare(_column(left), op, right.value) if known else None


def _cast_to(node: Call) -> pa.DataType | None:
    """The type of a cast that changes no value, or fails."""
    options = node.options or {}
    lossy = any(value.as_py() for name, value in options.items() if name.startswith("allow_"))
    return None if lossy or "to_type" not in options else options["to_type"].type


def _same_in_cast(value: pa.Scalar, leaf_type: LeafType, target: pa.DataType) -> bool:
    """Whether a comparison of a literal with a column in a cast is one with the column: no value of it fails in the cast."""
    t, made, kind = pa.types, leaf_type.storage, value.type
    if not value.is_valid or isinstance(leaf_type.type, pa.BaseExtensionType):
        return False
    if t.is_integer(made) and t.is_integer(target):
        signed = t.is_signed_integer(made), t.is_signed_integer(target)
        wide = target.bit_width > made.bit_width or (
            target.bit_width == made.bit_width and signed[0] == signed[1]
        )
        return wide and (signed[1] or not signed[0]) and bool(t.is_integer(kind))
    if t.is_float64(target):
        narrow = t.is_float32(made) or (t.is_integer(made) and made.bit_width <= 32)
        return bool(narrow and t.is_float64(kind))
    if t.is_timestamp(target) and t.is_date32(made):
        return bool(t.is_timestamp(kind)) and target.tz is None and kind.tz is None
    if t.is_timestamp(target) and t.is_timestamp(made):
        finer = PER_SECOND[target.unit] >= PER_SECOND[made.unit]
        return finer and target.tz == made.tz and _same(value, leaf_type)
    if _is_text(target):
        return family(leaf_type) == "text" and _is_text(kind)
    return False


def _same(value: pa.Scalar, leaf_type: LeafType) -> bool:
    """Whether pyarrow compares with a literal as this package does: its casts change neither side."""
    t, made, kind = pa.types, leaf_type.storage, value.type
    if not value.is_valid:
        return bool(kind == made)
    if isinstance(leaf_type.type, pa.BaseExtensionType) or isinstance(kind, pa.BaseExtensionType):
        return False
    if t.is_dictionary(kind):
        kind = kind.value_type
    if t.is_integer(made) and (t.is_integer(kind) or t.is_floating(kind) or t.is_decimal(kind)):
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
        of_bytes = t.is_binary(kind) or t.is_large_binary(kind)
        return bool(_is_text(kind) if family(leaf_type) == "text" else of_bytes)
    if t.is_timestamp(made) and t.is_timestamp(kind):
        return bool(made.tz == kind.tz)
    if t.is_date32(made) or (t.is_timestamp(made) and made.tz is None):
        return bool(t.is_date(kind) or (t.is_timestamp(kind) and kind.tz is None))
    if t.is_time(made):
        return bool(t.is_time(kind))
    if t.is_decimal(made):
        return bool(t.is_decimal(kind))
    return bool(kind == made)


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _is_in(field: Field, leaf_type: LeafType, options: dict[str, Any]) -> ex.Expression | None:
    values = options["value_set"].values
    if values is not None and leaf_type.kind in FLOAT_KINDS:
        # pyarrow looks floats up by their bits: 0.0 is not -0.0, and NaN is NaN
        present = values.drop_null()
        if values.type != leaf_type.storage or not _is_plain(present):
            return None
    return _in_values(field, None if values is None else _stored(values, leaf_type), options)


def _is_in_floats(
    field: Field, leaf_type: LeafType, options: dict[str, Any]
) -> ex.Expression | None:
    """A condition that is TRUE wherever floats are in a list by their bits."""
    values = options["value_set"].values
    if values is None or values.type != leaf_type.storage:
        return None
    found: ex.Expression = ex.IsIn(_column(field), values.drop_null())
    numbers = np.asarray(values.drop_null())
    if np.any(numbers != numbers):
        found = ex.Or((found, ex.IsNan(_column(field))))
    return ex.Or((found, ex.IsNull(_column(field)))) if values.null_count else found


def _is_plain(values: pa.Array) -> bool:
    """Whether floats are equal exactly where their bits are."""
    numbers = np.asarray(values)
    return bool(np.all((numbers == numbers) & (numbers != 0)))


def _stored(values: pa.Array, leaf_type: LeafType) -> pa.Array | None:
    """The values of a list in a type of which pyarrow and this package find the same in the column; None if there is none."""
    t, made, kind = pa.types, leaf_type.storage, values.type
    if kind == made or (t.is_integer(kind) and t.is_integer(made) and leaf_type.kind != K_U64):
        return values
    both = (
        (_is_text(kind) and family(leaf_type) == "text")
        or (t.is_timestamp(kind) and t.is_timestamp(made) and kind.tz == made.tz)
        or (t.is_decimal(kind) and t.is_decimal(made))
        or (t.is_time(kind) and t.is_time(made))
    )
    if not both or isinstance(leaf_type.type, pa.BaseExtensionType):
        return None
    try:
        return values.cast(pa.string() if _is_text(kind) else made)
    except pa.ArrowException:  # a value that the column cannot have
        return None


def _in_values(
    field: Field, values: pa.Array | None, options: dict[str, Any]
) -> ex.Expression | None:
    matching = options["null_matching_behavior"].as_py()
    if values is None or matching not in range(4):
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

    without_views = pa.schema([mapped_field(field, _without_view) for field in schema])
    views = not without_views.equals(schema)

    def evaluate(values: list[pa.ChunkedArray]) -> Any:
        table = pa.Table.from_arrays(values, schema=schema)
        if views:
            table = table.cast(without_views)
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


def _without_view(kind: Any) -> Any:
    """The type of texts or bytes for which pyarrow's functions have kernels."""
    if pa.types.is_string_view(kind):
        return pa.large_string()
    return pa.large_binary() if pa.types.is_binary_view(kind) else kind


def _boolean(values: pa.ChunkedArray) -> Any:
    return values.cast(pa.bool_()) if pa.types.is_null(values.type) else values
