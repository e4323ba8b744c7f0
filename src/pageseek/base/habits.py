"""Options of pyarrow, pandas and polars: those that have a meaning here, and what to write instead of the others.

An option that says how to read, not what, is accepted, and so is any option at its default. The module is loaded when a
function is called with an option that it does not have.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal, TypedDict

from pageseek.base.records import NamedTuple
from pageseek.base.suggest import nearest


class ReadHabits(TypedDict, total=False):
    """Options of pyarrow's readers that `scan` and `read_table` take."""

    use_threads: bool
    memory_map: bool
    pre_buffer: bool
    buffer_size: int
    cache_metadata: bool
    page_checksum_verification: bool
    coerce_int96_timestamp_unit: str | None
    read_dictionary: list[str] | None
    ignore_prefixes: list[str] | None
    # at their defaults alone, as _REFUSED has them
    use_pandas_metadata: Literal[False] | None
    arrow_extensions_enabled: Literal[True] | None
    engine: Literal["auto", "pyarrow"] | None
    binary_type: None
    list_type: None
    decryption_properties: None
    thrift_string_size_limit: None
    thrift_container_size_limit: None


class OpenHabits(TypedDict, total=False):
    """Options of pyarrow's readers that `open` takes."""

    memory_map: bool
    pre_buffer: bool
    buffer_size: int
    page_checksum_verification: bool


class NoHabits(TypedDict):
    """No option: of functions that refuse all others, with the nearest name, and that type checkers know whole."""


class _Refused(NamedTuple):
    """An option without a meaning here. `instead`: what to write. `neutral`: values that change nothing, its default among them."""

    instead: str
    neutral: tuple[Any, ...] = (None,)


# they say how pyarrow reads; here ranges are always requested together, and local files read without a copy between
_NO_EFFECT = frozenset(("memory_map", "pre_buffer", "buffer_size", "cache_metadata", "page_checksum_verification"))  # fmt: skip
_LIMITS = "use max_metadata_bytes=, which limits the bytes of a footer"
_PANDAS = "rows come out as Arrow; "
# fmt: off
_REFUSED = {
    # pyarrow
    "filters": _Refused("use filter=, which takes the same lists"),
    "thrift_string_size_limit": _Refused(_LIMITS),
    "thrift_container_size_limit": _Refused(_LIMITS),
    "schema_depth_limit": _Refused(_LIMITS),
    "binary_type": _Refused("use string_type='large' or 'view'"),
    "list_type": _Refused("lists come out as list; cast the table"),
    "arrow_extensions_enabled": _Refused("extension types always come out as such; cast the table", (None, True)),
    "decryption_properties": _Refused("encrypted columns cannot be read"),
    "use_pandas_metadata": _Refused("name the columns of the index in columns=", (None, False)),
    "use_legacy_dataset": _Refused("there is one reader", (None, False)),
    "metadata": _Refused("footers are kept in a cache of their own (cache_info)"),
    "common_metadata": _Refused("give the columns of all files with schema="),
    "format": _Refused("only Parquet is read", (None, "parquet")),
    "exclude_invalid_files": _Refused("give the files by a glob or as a list", (None, False)),
    "partition_base_dir": _Refused("give the folder: names such as k=1 below it are columns"),
    "batch_readahead": _Refused("use max_ahead_bytes="),
    "fragment_readahead": _Refused("use max_ahead_bytes="),
    "row_groups": _Refused("choose rows by filter=, or by Scan.take"),
    # pandas
    "engine": _Refused("there is one engine; leave it out", (None, "auto", "pyarrow")),
    "dtype_backend": _Refused(_PANDAS + "use .to_pandas(types_mapper=pandas.ArrowDtype)"),
    "to_pandas_kwargs": _Refused(_PANDAS + "use .to_pandas(...)"),
    "use_nullable_dtypes": _Refused(_PANDAS + "use .to_pandas(types_mapper=...)", (None, False)),
    "path": _Refused("the source is the first argument"),
    # polars and duckdb
    "n_rows": _Refused("use limit="),
    "nrows": _Refused("use limit="),
    "row_index_name": _Refused("use scan(...).with_row_number(name)"),
    "row_index_offset": _Refused("use scan(...).with_row_number(name), which counts from 0", (None, 0)),
    "parallel": _Refused("use threads=", (None, "auto")),
    "use_statistics": _Refused("use prune=, which chooses the mechanisms that rule out rows", (None, True)),
    "hive_partitioning": _Refused("use partitioning=, which False turns off", (None, True)),
    "hive_schema": _Refused("use partitioning=, which takes a schema"),
    "try_parse_hive_dates": _Refused("dates are recognized; use partitioning= for other types", (None, True)),
    "low_memory": _Refused("use max_ahead_bytes= or Scan.to_batches", (None, False)),
    "rechunk": _Refused("use .combine_chunks() of the table", (None, False)),
    "glob": _Refused("a path that exists is never a glob", (None, True)),
    "union_by_name": _Refused("columns of several files are always joined by name", (None, True)),
    "allow_missing_columns": _Refused("columns that a file lacks are null", (None, True)),
    "where": _Refused("use filter="),
    "predicate": _Refused("use filter="),
    "condition": _Refused("use filter="),
    "parameters": _Refused("use params="),
}
# of functions that write files
_REFUSED_BY_WRITERS = {
    "compression": _Refused("it is called codec here, such as codec='zstd'"),
    "compression_level": _Refused("codec= has the usual level of each codec"),
    "row_group_size": _Refused("use row_group_rows="),
    "max_rows_per_page": _Refused("use page_rows="),
    "data_page_size": _Refused("use page_rows=", (None, 1 << 20)),
    "write_page_index": _Refused("files that are written always have a page index", (None, True)),
    "sorting_columns": _Refused("use sort_by= of pageseek.rewrite, which sorts the rows"),
    "mode": _Refused("overwrite=True replaces a file that is there"),
}
# fmt: on


def refuse(
    given: Mapping[str, Any], known: Iterable[str], function: str = "scan", writes: bool = False
) -> None:
    """Raise TypeError for the first option that a function does not take, unless its value changes nothing.

    `known`: the options of the function. `writes`: it writes a file, where readers have other options.
    """
    table = _REFUSED_BY_WRITERS if writes else _REFUSED
    for name, value in given.items():
        if name in _NO_EFFECT and not writes:
            continue
        refused = table.get(name)
        if refused is not None:
            if not any(type(value) is type(one) and value == one for one in refused.neutral):
                raise TypeError(f"{name}={_short(value)}: {refused.instead}")
            continue
        meant = f"help(pageseek.{function}) lists those there are"
        if close := nearest(name, list(known)):
            meant = f"did you mean {close[0]}=?"
        elif close := nearest(name, list(table)):
            meant = f"{close[0]}: {table[close[0]].instead}"
        raise TypeError(f"there is no option {name}=; {meant}")


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else "..."


def read_habits(
    given: Mapping[str, Any],
    known: Iterable[str],
    threads: int | None,
    int96_unit: Any,
    dictionary_columns: Any,
) -> tuple[int | None, Any, Any]:
    """Threads, unit and columns with what pyarrow's names for them say.

    TypeError: an option is not known, or is given under both names.
    """
    rest = dict(given)
    use_threads = rest.pop("use_threads", None)
    if use_threads is not None and not isinstance(use_threads, bool):
        raise TypeError(f"use_threads={use_threads!r}: True or False; threads= takes a number")
    if use_threads is False:
        if threads not in (None, 1):
            raise _twice("threads", "use_threads")
        threads = 1
    unit = rest.pop("coerce_int96_timestamp_unit", None)
    if unit is not None:
        if int96_unit != "ns":
            raise _twice("int96_unit", "coerce_int96_timestamp_unit")
        if unit not in ("ns", "us", "ms"):
            raise TypeError(f"coerce_int96_timestamp_unit={unit!r}: int96_unit= is 'ns', 'us' or 'ms'")  # fmt: skip
        int96_unit = unit
    columns = rest.pop("read_dictionary", None)
    if columns is not None:
        if dictionary_columns:
            raise _twice("dictionary_columns", "read_dictionary")
        dictionary_columns = sorted(columns) if isinstance(columns, (set, frozenset)) else columns
    prefixes = rest.pop("ignore_prefixes", None)
    if prefixes is not None and sorted(prefixes) != [".", "_"]:
        raise TypeError(
            f"ignore_prefixes={_short(prefixes)}: names with a leading _ or . are hidden; "
            "give files of other names by a glob or as a list"
        )
    refuse(rest, known)
    return threads, int96_unit, dictionary_columns


def _twice(name: str, other: str) -> TypeError:
    return TypeError(f"{name}= and {other}= mean the same: give one of them")
