"""Methods as polars, pandas, pyarrow and Spark call them: a name that is not here is refused with what to write instead.

The file is imported when somebody asks for a name that does not exist.
"""

from __future__ import annotations

from collections.abc import Sequence

from pageseek.base.suggest import nearest

_LIKE = "write like('%text%'), or ilike() without regard to case"
_NULL = "write is_null()"
_NOT_NULL = "write is_not_null()"
_SAME_NAMES = "columns keep their names: rename those of the table"
_AS_THEY_ARE = "values are compared as they are: give a value of the column's type"
_FUNCTION = "columns are compared as they are; a filter of pyarrow has functions: pc.{}(pc.field('name')) == ..."
_ORDER = "rows have the order of the files: sort the table, or write sorted files with pageseek.rewrite()"
_GROUPS = "aggregate() gives figures of all rows; for groups there are to_duckdb() and to_polars()"
_NEW_COLUMNS = (
    "a scan selects columns and rows: compute new columns of to_table(), to_polars() or to_duckdb()"
)
_TABLE = "write to_table()"
_READ = "write pageseek.read_table(path): an open file shows what is in it"
_BATCHES = "write pageseek.scan(path).to_batches()"
_GROUP_ROWS = (
    "write pageseek.scan(path).take(range(group.first_row, group.first_row + group.num_rows))"
)
_FILTER = "write filter()"
_COUNT = "write count_rows()"

INSTEAD = {
    "Column": {
        "startswith": "write starts_with()",
        "endswith": "write like('%text')",
        "contains": _LIKE,
        "str": _LIKE,
        "rlike": f"there are no regular expressions: {_LIKE}",
        "match": f"there are no regular expressions: {_LIKE}",
        "is_in": "write isin()",
        "is_between": "write between()",
        "isNull": _NULL,
        "isna": _NULL,
        "isnull": _NULL,
        "isNotNull": _NOT_NULL,
        "notna": _NOT_NULL,
        "notnull": _NOT_NULL,
        "is_valid": _NOT_NULL,
        "isnan": "write is_nan()",
        "cast": _AS_THEY_ARE,
        "astype": _AS_THEY_ARE,
        "dt": _AS_THEY_ARE,
        "alias": _SAME_NAMES,
        "lower": "write ilike() to compare without regard to case; "
        + _FUNCTION.format("utf8_lower"),
        "upper": "write ilike() to compare without regard to case; "
        + _FUNCTION.format("utf8_upper"),
        "length": _FUNCTION.format("utf8_length"),
        "abs": _FUNCTION.format("abs"),
        "eq": "write ==",
        "ne": "write !=",
        "lt": "write <",
        "le": "write <=",
        "gt": "write >",
        "ge": "write >=",
    },
    "Scan": {
        "where": _FILTER,
        "query": _FILTER,
        "collect": _TABLE,
        "toPandas": "write to_pandas()",
        "to_arrow": _TABLE,
        "arrow": _TABLE,
        "read": _TABLE,
        "fetchall": "write to_pylist()",
        "to_dicts": "write to_pylist()",
        "df": "write to_pandas()",
        "to_csv": "write to_pandas().to_csv(path); the command `pageseek scan FILE --output rows.csv` writes batch by batch",
        "to_json": "write to_pandas().to_json(path); the command `pageseek scan FILE --output rows.jsonl` writes batch by batch",
        "slice": "write take() with the numbers of the rows, or limit() for the first ones",
        "offset": "write take() with the numbers of the rows",
        "pl": "write to_polars()",
        "show": "write head(), or to_pandas()",
        "tail": "write take() with the numbers of the rows",
        "iter_batches": "write to_batches()",
        "sort": _ORDER,
        "sort_by": _ORDER,
        "sort_values": _ORDER,
        "orderBy": _ORDER,
        "order_by": _ORDER,
        "group_by": _GROUPS,
        "groupby": _GROUPS,
        "groupBy": _GROUPS,
        "with_columns": _NEW_COLUMNS,
        "withColumn": _NEW_COLUMNS,
        "rename": _NEW_COLUMNS,
        "join": "write filter() with isin() for given keys; other joins are those of to_duckdb() and to_polars()",
        "drop": "write select() with the columns that stay",
        "dtypes": "write schema",
        "num_rows": _COUNT,
        "shape": _COUNT,
        "fetch": "write head()",
        "first": "write head(1)",
        "sample": "write take() with the numbers of the rows",
        "unique": "write to_polars(), which has it",
        "distinct": "write to_polars(), which has unique()",
        "min": "write aggregate()",
        "max": "write aggregate()",
        "sum": "aggregate() has counts and the least and greatest values; to_polars() and to_duckdb() have sums",
        "sql": "write filter() with the condition; to_duckdb() takes whole queries",
        "describe": "aggregate() gives figures of all rows; to_pandas() has describe()",
        "with_row_index": "write with_row_number()",
        "sink_parquet": "write write_parquet()",
        "to_parquet": "write write_parquet()",
    },
    "ParquetFile": {
        "metadata": "write row_groups, leaves and chunks(), or print the file",
        "schema_arrow": "write schema",
        "read": _READ,
        "to_table": _READ,
        "to_pandas": "write pageseek.scan(path).to_pandas()",
        "filter": "write pageseek.scan(path).filter()",
        "iter_batches": _BATCHES,
        "to_batches": _BATCHES,
        "read_row_group": _GROUP_ROWS,
        "read_row_groups": _GROUP_ROWS,
        "columns": "write schema.names, or leaves",
    },
    "RowGroup": {
        "id": "write index",
        "statistics": "write statistics(column) of pageseek.open(path)",
        "column": "write chunk(row_group, column) of pageseek.open(path)",
    },
    "DatasetScanner": {
        "scan_batches": "write to_batches(); fragments are scanned one by one by get_fragments()",
        "to_pandas": "write to_table().to_pandas()",
    },
    "pageseek": {
        "read_parquet": "write read_table()",
        "scan_parquet": "write scan()",
        "read": "write read_table()",
        "field": "write col()",
        "ParquetDataset": "write scan()",
        "read_schema": "write open(path).schema",
        "read_metadata": "write open(path)",
        "write_table": "pageseek does not write tables; pyarrow.parquet.write_table(..., write_page_index=True) does",
        "lit": "give the value itself",
        "sql": "conditions are SQL: scan(path).filter('a > 3'); scan(path).to_duckdb() takes whole queries",
        "head": "write scan(path).head(n)",
        "count": "write scan(path).count_rows()",
    },
    "pageseek.aio": {
        "count": _COUNT,
        "head": "write read_table() with limit=",
        "to_table": "write read_table()",
        "to_pandas": "write read_table(), and to_pandas() of its table",
        "to_polars": "write read_table(), and polars.from_arrow() of its table",
        "iter_batches": "write to_batches()",
        "open": "await asyncio.to_thread(pageseek.open, path)",
        "explain": "await asyncio.to_thread(scan.explain)",
        "prepare": "pageseek.scan(path).prepare(...) has coroutines, by its aio",
    },
    "pageseek.polars": {
        "scan_parquet": "write scan()",
        "read_parquet": "write scan() and collect()",
        "read": "write scan() and collect()",
    },
}


def no_such_name(owner: str, name: str, known: Sequence[str]) -> AttributeError:
    """The error for `owner.name`. `known`: the names that there are."""
    kind = f"module {owner!r}" if owner.startswith("pageseek") else f"{owner!r} object"
    message = f"{kind} has no attribute {name!r}"
    if name.startswith("_"):
        return AttributeError(message)
    instead = INSTEAD[owner].get(name)
    if instead is None:
        close = nearest(name, [one for one in known if not one.startswith("_")])
        instead = f"did you mean {close[0]}?" if close else None
    return AttributeError(f"{message}: {instead}" if instead else message)
