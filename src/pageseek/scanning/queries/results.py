"""What a scan gives beside tables and batches: the answers of `Scan.to_pandas`, `to_polars`, `to_duckdb` and `to_pylist`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from pageseek.base.errors import UnsupportedError
from pageseek.base.packages import needed
from pageseek.base.wide_decimals import has_narrow_decimals, with_wide_decimals
from pageseek.scanning.queries.execution import Execution

if TYPE_CHECKING:
    from pageseek.scanning.queries.scan import Scan

T = TypeVar("T")
PANDAS = b"pandas"  # the key of what pandas has written to a file of its index
PANIC = "PanicException"
INSTEAD = "leave it out with select(...), or take to_table(), which has it"


def to_pandas(scan: Scan, options: dict[str, Any]) -> Any:
    """The rows as a DataFrame, with the index that the file's metadata names."""
    needed("pandas", "to_pandas")
    index = [] if options.get("ignore_metadata") else _index_columns(scan)
    if index:
        columns = scan._request.columns
        assert columns is not None
        scan = replace(scan, _request=replace(scan._request, columns=(*columns, *index)))
    table = scan.to_table()
    if len(scan.sources) != 1:  # a range is that of the first file
        table = table.replace_schema_metadata(without_range(table.schema).metadata)
    return _converted(table, lambda rows: _frame(rows, options), "pandas")


def to_polars(scan: Scan) -> Any:
    """The rows as a DataFrame of polars."""
    polars = needed("polars", "to_polars")
    table = scan.to_table()
    return polars_frame(polars, table, polars.from_arrow)


def polars_frame(polars: Any, rows: Any, make: Callable[[Any], Any]) -> Any:
    """Rows of Arrow as a function of polars makes a frame of them. UnsupportedError: it has no such columns."""
    _refuse(rows.schema, "polars", _unknown_to_polars)
    _refuse_twice(rows.schema, "polars")
    # polars 2.1 takes decimals of an Arrow stream, and those in lists and structs, for such of 128 bits
    if has_narrow_decimals(rows.schema):
        rows = with_wide_decimals(rows)
    try:
        return make(rows)
    except BaseException as error:
        # a panic of Rust is no Exception, and its class is that of no module
        if not isinstance(error, polars.exceptions.PolarsError) and type(error).__name__ != PANIC:
            raise
        raise UnsupportedError(f"polars does not take these columns: {error}; {INSTEAD}") from error


def to_duckdb(scan: Scan, connection: Any) -> Any:
    """The rows as a relation of DuckDB."""
    duckdb = needed("duckdb", "to_duckdb")
    if connection is not None and not hasattr(connection, "from_arrow"):
        raise TypeError(f"connection={connection!r}: one of DuckDB, such as duckdb.connect() gives")
    table = scan.to_table()
    if not table.num_columns:
        raise UnsupportedError(
            "to_duckdb: DuckDB has no relations without columns: select one, or take count_rows()"
        )
    _refuse(table.schema, "DuckDB", _unknown_to_duckdb)
    try:
        return (duckdb if connection is None else connection).from_arrow(table)
    except duckdb.NotImplementedException as error:
        raise UnsupportedError(
            f"to_duckdb: DuckDB does not take these columns: {error}; take to_table()"
        ) from error


def to_pylist(scan: Scan) -> list[dict[str, Any]]:
    """The rows as dicts."""
    table = scan.to_table()
    _refuse_twice(table.schema, "a dict")
    return _converted(table, pa.Table.to_pylist, "Python")


def without_range(schema: pa.Schema) -> pa.Schema:
    """A schema that does not say any more which range of numbers was the index of pandas: these are not all rows of one file."""
    said = _said_of_pandas(schema)
    kept = [one for one in said.get("index_columns", ()) if isinstance(one, str)]
    if kept == said.get("index_columns", []):
        return schema
    told = json.dumps({**said, "index_columns": kept}).encode()
    return schema.with_metadata({**(schema.metadata or {}), PANDAS: told})


def _index_columns(scan: Scan) -> list[str]:
    """The columns of pandas' index that `select` has left out."""
    request = scan._request
    if request.columns is None:
        return []
    every = replace(request, columns=None, filter=None, row_number=None)
    schema = Execution(scan._sources, every).columns().schema
    said = _said_of_pandas(schema).get("index_columns", ())
    taken = {*request.columns, request.row_number}
    names = dict.fromkeys([name for name in said if isinstance(name, str)])
    return [name for name in names if name in schema.names and name not in taken]


def _frame(table: pa.Table, options: dict[str, Any]) -> Any:
    try:
        return table.to_pandas(**options)
    except pa.ArrowInvalid as error:
        if not options.get("zero_copy_only"):
            raise
        raise UnsupportedError(
            f"to_pandas(zero_copy_only=True): {error}; leave the option out, or take to_table()"
        ) from error
    except (
        LookupError,
        TypeError,
        ValueError,
        AttributeError,
        NotImplementedError,
        RecursionError,
    ):
        metadata = table.schema.metadata or {}
        if PANDAS not in metadata:
            raise
        # what the file says of an index may be at fault
        kept = {key: value for key, value in metadata.items() if key != PANDAS}
        return table.replace_schema_metadata(kept).to_pandas(**options)


def _said_of_pandas(schema: pa.Schema) -> dict[str, Any]:
    """What pandas has written of its index; nothing where that is not to be understood."""
    try:
        said = json.loads((schema.metadata or {}).get(PANDAS, b"{}"))
    except (ValueError, RecursionError):
        return {}
    if not isinstance(said, dict) or not isinstance(said.get("index_columns", []), list):
        return {}
    return said


def _converted(table: pa.Table, convert: Callable[[pa.Table], T], into: str) -> T:
    """The rows, converted. UnsupportedError names the column that has a value which does not exist there."""
    try:
        return convert(table)
    except (ValueError, OverflowError, pa.ArrowException) as error:  # such as a date after 9999
        for name, values in zip(table.column_names, table.columns, strict=True):
            try:
                convert(pa.Table.from_arrays([values], [name]))
            except (ValueError, OverflowError, pa.ArrowException) as why:
                raise UnsupportedError(
                    f"column {name!r} of type {values.type}: a value that {into} does not hold: {why}; {INSTEAD}"
                ) from error
        raise


def _refuse(schema: pa.Schema, engine: str, unknown: Callable[[pa.DataType], bool]) -> None:
    """Raise UnsupportedError where an engine does not know the type of a column."""
    for field in schema:
        for kind in _types_in(field.type):
            if unknown(kind):
                raise UnsupportedError(
                    f"column {field.name!r} of type {field.type}: {engine} has no {kind}; {INSTEAD}"
                )


def _refuse_twice(schema: pa.Schema, engine: str) -> None:
    names = schema.names
    for name in names:
        if names.count(name) > 1:
            raise UnsupportedError(
                f"several columns have the name {name!r}, and {engine} takes each name once; select others, or take to_table()"
            )


def _types_in(kind: pa.DataType) -> Iterator[pa.DataType]:
    """A type, and those inside of it."""
    yield kind
    if isinstance(kind, pa.BaseExtensionType):
        yield from _types_in(kind.storage_type)
    elif pa.types.is_dictionary(kind):
        yield from _types_in(kind.value_type)
    else:
        for i in range(kind.num_fields):
            yield from _types_in(kind.field(i).type)


def _unknown_to_polars(kind: pa.DataType) -> bool:
    names = [field.name for field in kind] if pa.types.is_struct(kind) else []
    twice = len(set(names)) < len(names)
    return twice or bool(pa.types.is_decimal256(kind) or pa.types.is_interval(kind))


def _unknown_to_duckdb(kind: pa.DataType) -> bool:
    return bool(pa.types.is_decimal256(kind) or pa.types.is_float16(kind))
