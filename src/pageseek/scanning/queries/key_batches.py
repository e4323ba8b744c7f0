"""The rows of many keys in one pass: one scan with all keys in a list of IN, whose rows are then put in the order of the keys.

A row belongs to the keys that equal its value. Rows and keys are compared as the filter compares them: by the values that
the column can hold, so that 5.0 finds an integer 5, and a time finds one in another unit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from pageseek.base.arrays import of_numpy
from pageseek.base.errors import PredicateError
from pageseek.base.late_modules import compute as pc
from pageseek.base.late_modules import npt
from pageseek.base.records import NamedTuple
from pageseek.format.types import BYTES_KINDS, FLOAT_KINDS, K_BOOL, K_D128, K_FIXED, LeafType
from pageseek.predicate import expression as ex
from pageseek.predicate.bind import NAN_RULES
from pageseek.predicate.constant_column import constant_leaf_type
from pageseek.predicate.given_values import listed
from pageseek.predicate.in_literals import DTYPES
from pageseek.predicate.literal import exact, fit
from pageseek.predicate.parameter_values import parameters_of
from pageseek.predicate.parameters import Param
from pageseek.scanning.requests.request import Request

Int64s = npt.NDArray[np.int64]


class Equality(NamedTuple):
    """A column that must equal a parameter."""

    column: ex.Column
    parameter: str


def equalities_of(condition: ex.Expression) -> list[Equality] | None:
    """The columns that must equal parameters, if all parameters of a condition are for that; else None."""
    parts = condition.args if isinstance(condition, ex.And) else (condition,)
    found: list[Equality] = []
    for part in parts:
        if (
            isinstance(part, ex.Compare)
            and part.op == "="
            and isinstance(part.value, Param)
            and type(part.column) is ex.Column
        ):
            found.append(Equality(part.column, part.value.name))
        elif parameters_of(part):
            return None
    return found or None


def in_lists(
    condition: ex.Expression, keys: Mapping[str, tuple[Any, ...] | pa.Array]
) -> ex.Expression:
    """The condition with all keys in place of each parameter."""
    parts = condition.args if isinstance(condition, ex.And) else (condition,)
    made = tuple(
        [
            ex.IsIn(part.column, keys[part.value.name])
            if isinstance(part, ex.Compare) and isinstance(part.value, Param)
            else part
            for part in parts
        ]
    )
    return ex.And(made) if len(made) > 1 else made[0]


def keys_of_one(
    request: Request, name: str, keys: Mapping[str, tuple[Any, ...] | pa.Array]
) -> Request:
    """The request with the keys of one parameter, and none for the others."""
    assert request.filter is not None
    alone = {other: values if other == name else () for other, values in keys.items()}
    return replace(request, filter=in_lists(request.filter, alone))


def keys_of(
    keys: Any, parameters: Sequence[str]
) -> tuple[dict[str, tuple[Any, ...] | pa.Array], int]:
    """The keys that a caller gave, by parameter, and their number."""
    if isinstance(keys, (pa.Table, pa.RecordBatch)):
        given = {name: keys.column(i) for i, name in enumerate(keys.schema.names)}
    elif isinstance(keys, Mapping):
        given = dict(keys)
    elif hasattr(type(keys), "to_table"):  # a scan, a dataset
        raise TypeError(
            f"many: a {type(keys).__name__} is no list of keys: give its table, .to_table(), or a column of that, .to_table()['column']"
        )
    elif len(parameters) == 1:
        given = {parameters[0]: keys}
    else:
        names = ", ".join(f"{name!r}: [...]" for name in parameters)
        raise TypeError(f"many: with several parameters, give a table or {{{names}}}")
    for name in parameters:
        if name not in given:
            raise TypeError(
                f"many: no keys for param({name!r}); there are {', '.join(map(repr, given))}"
            )
    for name in given:
        if name not in parameters:
            known = ", ".join(map(repr, parameters))
            raise TypeError(f"many: no parameter {name!r}; there are {known}")
    made = {}
    for name, values in given.items():
        if isinstance(values, (str, bytes)) or not hasattr(values, "__iter__"):
            raise PredicateError(f"many: param({name!r}): give a list of keys")
        made[name] = listed(values)
    lengths = {name: len(values) for name, values in made.items()}
    if len(set(lengths.values())) > 1:
        told = ", ".join(f"{name!r} has {n:,}" for name, n in lengths.items())
        raise PredicateError(f"many: as many keys for each parameter: {told}")
    return made, next(iter(lengths.values()), 0)


# -- one pass --------------------------------------------------------------------------------------


def rows_of_keys(
    request: Request,
    read: Callable[[Request], pa.Table],
    equalities: Sequence[Equality],
    keys: Mapping[str, tuple[Any, ...] | pa.Array],
    n: int,
    place: str,
) -> pa.Table | None:
    """The rows of n keys in the order of these, with the places of the keys; None where a column has values of another kind than
    keys can be compared with in one pass. `read`: the rows of a request to the same files.
    """
    assert request.filter is not None
    names = [one.column.path[0] for one in equalities]
    if any(len(one.column.path) > 1 for one in equalities) or not _are_columns(
        request, read, names
    ):
        return None
    wanted, kept = request.columns, len(request.columns or ())
    if wanted is not None:
        wanted = (*wanted, *[name for name in dict.fromkeys(names) if name not in wanted])
    made = in_lists(request.filter, keys)
    table = read(replace(request, columns=wanted, filter=made, limit=None))
    indices = [table.schema.get_field_index(name) for name in names]  # -1 where several have it
    if -1 in indices:
        return None
    nan = NAN_RULES[request.nan]
    places, columns = Places(n), []
    for one, index in zip(equalities, indices, strict=True):
        leaf_type = constant_leaf_type(table.schema.field(index).type)
        if leaf_type is None:
            return None
        places.add(key_values(keys[one.parameter], leaf_type, nan, one.column))
        columns.append(row_values(table.column(index), leaf_type))
    if wanted is not None and len(wanted) > kept:
        table = table.select(range(kept + (request.row_number is not None)))
    rows, of_keys = places.order(places.of_rows(columns), request.limit)
    if table.num_columns and (len(rows) != table.num_rows or (np.diff(rows) != 1).any()):
        table = _taken(table, rows)
    return with_places(table, place, of_keys)


def _are_columns(
    request: Request, read: Callable[[Request], pa.Table], names: Sequence[str]
) -> bool:
    """Whether names with a dot are those of columns, and no paths into structs."""
    dotted = [name for name in names if "." in name]
    if not dotted:
        return True
    schema = read(replace(request, columns=tuple(dotted), filter=None, limit=0)).schema
    return set(dotted) <= set(schema.names)


# -- keys and rows as the same values --------------------------------------------------------------


def key_values(
    keys: tuple[Any, ...] | pa.Array, leaf_type: LeafType, nan: int, column: ex.Column
) -> pa.Array:
    """Keys as values that can be looked up among those of `row_values`; null where no row can equal one."""
    found = _by_array(keys, leaf_type)
    if found is not None:
        return found
    made: list[Any] = []
    for key in keys:
        value = exact(key, leaf_type, column)
        if value is None:
            made.append(None)
            continue
        op, fitted = fit("=", value, leaf_type, nan)
        never = op != "=" or (isinstance(fitted, float) and fitted != fitted and not nan)
        made.append(None if never else fitted)
    return _physical(made, leaf_type)


def _by_array(keys: tuple[Any, ...] | pa.Array, leaf_type: LeafType) -> pa.Array | None:
    """Keys of the commonest types without a loop: integers for integers, texts for texts."""
    t, made = pa.types, leaf_type.storage
    if isinstance(keys, tuple):
        kinds = set(map(type, keys)) - {type(None)}
        if kinds == {int} and t.is_integer(made):
            try:
                keys = pa.array(keys, pa.int64())
            except (pa.ArrowException, OverflowError):
                return None
        elif kinds == {str} and (t.is_string(made) or t.is_large_string(made)):
            try:
                keys = pa.array(keys, pa.large_string())
            except (pa.ArrowException, UnicodeError):  # lone surrogates
                return None
        else:
            return None
    kind = keys.type
    if t.is_integer(made) and t.is_integer(kind):
        # an integer that the column cannot hold equals none of its values
        limits = np.iinfo(DTYPES[leaf_type.kind])
        wide = pa.uint64() if t.is_uint64(kind) or t.is_uint64(made) else pa.int64()
        if t.is_uint64(kind) != t.is_uint64(made):
            return None
        wide_keys = keys.cast(wide)
        inside = pc.and_(
            pc.greater_equal(wide_keys, pa.scalar(int(limits.min), wide)),
            pc.less_equal(wide_keys, pa.scalar(int(limits.max), wide)),
        )
        return pc.if_else(inside, wide_keys, pa.scalar(None, wide))
    text = t.is_string(made) or t.is_large_string(made)
    if text and (t.is_string(kind) or t.is_large_string(kind) or t.is_string_view(kind)):
        return keys.cast(pa.large_string()).cast(pa.large_binary())
    return None


def _physical(values: list[Any], leaf_type: LeafType) -> pa.Array:
    """Fitted literals as an array of `physical_type`."""
    kind, made = leaf_type.kind, physical_type(leaf_type)
    if kind in FLOAT_KINDS:
        return _plain_floats(pa.array(values, pa.float64(), from_pandas=False))
    if pa.types.is_fixed_size_binary(made):
        if kind == K_FIXED:
            values = [None if v is None or len(v) != leaf_type.width else v for v in values]
        else:
            width = made.byte_width
            values = [
                None if v is None else v.to_bytes(width, "little", signed=True) for v in values
            ]
    elif kind == K_BOOL:
        values = [None if v is None else int(v) for v in values]
    return pa.array(values, made)


def physical_type(leaf_type: LeafType) -> pa.DataType:
    """The type that keys and rows have while they are compared."""
    kind = leaf_type.kind
    if kind in BYTES_KINDS:
        return pa.large_binary()
    if kind in FLOAT_KINDS:
        return pa.float64()
    if kind == K_BOOL:
        return pa.int64()
    if kind in DTYPES:
        return pa.uint64() if DTYPES[kind] is np.uint64 else pa.int64()
    return pa.binary(leaf_type.width if kind == K_FIXED else 16 if kind == K_D128 else 32)


def row_values(column: pa.ChunkedArray, leaf_type: LeafType) -> pa.Array:
    """The values of a column of the result, as those of `key_values`."""
    array = column.combine_chunks()
    if isinstance(array, pa.ChunkedArray):  # byte strings of more than 2 GiB
        array = pa.concat_arrays([chunk.cast(pa.large_binary()) for chunk in array.chunks])
    while isinstance(array, pa.ExtensionArray) or pa.types.is_dictionary(array.type):
        array = array.storage if isinstance(array, pa.ExtensionArray) else array.dictionary_decode()
    kind, made = leaf_type.kind, physical_type(leaf_type)
    if kind in BYTES_KINDS:
        t = pa.types
        if t.is_string(array.type) or t.is_string_view(array.type):
            array = array.cast(pa.large_string())
        return array.cast(made)
    if kind in FLOAT_KINDS:
        return _plain_floats(array)
    if kind == K_BOOL:
        return array.cast(pa.int64())
    if kind in DTYPES:
        bare = pa.from_numpy_dtype(DTYPES[kind])
        return array.view(bare).cast(made)
    if kind == K_FIXED:
        return array
    validity, data = array.buffers()  # decimals as their bytes
    return pa.Array.from_buffers(made, len(array), [validity, data], -1, array.offset)


def _plain_floats(array: pa.Array) -> pa.Array:
    """Floats as doubles with one zero and one NaN."""
    values = array.to_numpy(zero_copy_only=False).astype(np.float64) + 0.0
    values[np.isnan(values)] = np.nan
    validity = None if not array.null_count else array.is_valid().buffers()[1]
    return pa.Array.from_buffers(
        pa.float64(), len(array), [validity, pa.py_buffer(np.ascontiguousarray(values))]
    )


# -- rows in the order of their keys ---------------------------------------------------------------


class Places:
    """Keys of one or several parameters, numbered so that equal keys have one number."""

    def __init__(self, n: int) -> None:
        self._n = n
        self._sets: list[pa.Array] = []
        self._steps: list[Int64s] = []
        self.numbers: Int64s = np.zeros(n, np.int64)

    def add(self, values: pa.Array) -> None:
        """Add the keys of a further parameter (`key_values`)."""
        coded = values.dictionary_encode()
        codes = np.asarray(coded.indices.fill_null(-1)).astype(np.int64)
        self._sets.append(coded.dictionary)
        joined = _joined(self.numbers, codes, len(coded.dictionary))
        different, numbers = np.unique(joined[joined >= 0], return_inverse=True)
        self._steps.append(different)
        self.numbers = np.full(self._n, -1, np.int64)
        self.numbers[joined >= 0] = numbers

    def of_rows(self, columns: Sequence[pa.Array]) -> Int64s:
        """The number of the key that each row equals, or -1 (`row_values`, in the order of the parameters)."""
        numbers: Int64s = np.zeros(len(columns[0]), np.int64)
        for values, known, different in zip(columns, self._sets, self._steps, strict=True):
            codes = np.asarray(pc.index_in(values, value_set=known, skip_nulls=True).fill_null(-1))
            joined = _joined(numbers, codes.astype(np.int64), len(known))
            at = np.searchsorted(different, joined)
            at[at == len(different)] = 0
            hit = (different[at] == joined) if len(different) else np.zeros(len(joined), np.bool_)
            numbers = np.where(hit, at, -1)
        return numbers

    def order(self, of_rows: Int64s, limit: int | None) -> tuple[Int64s, Int64s]:
        """The rows in the order of their keys, and for each the place of its key. A key that is given twice has its rows twice.

        `limit`: rows of each key at most.
        """
        by_number = np.argsort(of_rows, kind="stable")
        ordered = of_rows[by_number]
        first = np.searchsorted(ordered, self.numbers, "left")
        count = np.searchsorted(ordered, self.numbers, "right") - first
        count[self.numbers < 0] = 0
        if limit is not None:
            count = np.minimum(count, limit)
        places = np.repeat(np.arange(self._n), count)
        before = np.cumsum(count) - count
        rows = by_number[np.arange(len(places)) - before[places] + first[places]]
        return rows, places


def _joined(numbers: Int64s, codes: Int64s, size: int) -> Int64s:
    """One number for each pair of numbers; -1 where one of them is."""
    return np.where((numbers < 0) | (codes < 0), -1, numbers * max(size, 1) + codes)


def _taken(table: pa.Table, rows: Int64s) -> pa.Table:
    """The rows of these numbers, in this order."""
    try:
        return table.take(of_numpy(rows))
    except pa.ArrowNotImplementedError:  # Arrow has no such function for views
        runs = np.split(rows, np.flatnonzero(np.diff(rows) != 1) + 1) if len(rows) else []
        parts = [table.slice(int(run[0]), len(run)) for run in runs]
        return pa.concat_tables(parts).combine_chunks() if parts else table.slice(0, 0)


def with_places(table: pa.Table, name: str, places: Int64s) -> pa.Table:
    """A table with the places of keys as its first column."""
    if name in table.schema.names:
        raise PredicateError(
            f"many: there is a column {name!r}; name that of the places otherwise: many(keys, place=...)"
        )
    field = pa.field(name, pa.int64(), nullable=False)
    if not table.num_columns:  # it may have lost the number of its rows
        return pa.table(
            [of_numpy(places.astype(np.int64))], pa.schema([field], table.schema.metadata)
        )
    return table.add_column(0, field, of_numpy(places.astype(np.int64)))
