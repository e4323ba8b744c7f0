"""The engines, each with its own filter language, and with all options on that let it read less."""

from __future__ import annotations

import datetime as dt
import functools
import operator
import os
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pageseek.bench.pruning.queries import And, Filter, Not, Or, Query, Term

import pageseek as ps
from pageseek.predicate.operators import OPERATORS

__all__ = ["ENGINES"]

os.environ.setdefault("POLARS_MAX_THREADS", "1")
os.environ.setdefault("POLARS_FORCE_ASYNC", "1")  # reads that can be seen, not a mapped file

Make = Callable[[Term], Any]


def _tree(condition: Filter, term: Make) -> Any:
    """The tree of a filter in a language that has & | ~."""
    if isinstance(condition, Term):
        return term(condition)
    if isinstance(condition, Not):
        return ~_tree(condition.arg, term)
    join = operator.and_ if isinstance(condition, And) else operator.or_
    return functools.reduce(join, [_tree(arg, term) for arg in condition.args])


def _literal(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, dt.datetime):
        return f"TIMESTAMP '{value}'"
    if isinstance(value, dt.date):
        return f"DATE '{value}'"
    if isinstance(value, Decimal):
        return f"CAST('{value}' AS DECIMAL(12, 2))"
    return "'" + str(value).replace("'", "''") + "'"


def _sql(condition: Filter, field: Callable[[str], str]) -> str:
    if isinstance(condition, Not):
        return f"NOT ({_sql(condition.arg, field)})"
    if isinstance(condition, (And, Or)):
        word = " AND " if isinstance(condition, And) else " OR "
        return "(" + word.join(_sql(arg, field) for arg in condition.args) + ")"
    name, value = field(condition.column), condition.value
    if condition.op == "in":
        return f"{name} IN ({', '.join(map(_literal, value))})"
    if condition.op == "between":
        return f"{name} BETWEEN {_literal(value[0])} AND {_literal(value[1])}"
    if condition.op == "is null":
        return f"{name} IS NULL"
    if condition.op == "starts with":
        return f"{name} LIKE '{value}%'"
    return f"{name} {condition.op} {_literal(value)}"


def _names(query: Query) -> list[str] | None:
    return None if query.columns is None else list(query.columns)


def pageseek(path: str, query: Query) -> pa.Table:
    ps.clear_cache()
    return ps.read_table(path, _names(query), pageseek_filter(query.filter), threads=1)


def pageseek_filter(condition: Filter) -> ps.Expression:
    """A filter as an expression of pageseek."""
    made: ps.Expression = _tree(condition, _pageseek_term)
    return made


def _pageseek_term(term: Term) -> Any:
    column, value = ps.col(term.column), term.value
    if term.op in OPERATORS:
        return OPERATORS[term.op](column, value)
    if term.op == "between":
        return column.between(*value)
    if term.op == "in":
        return column.isin(value)
    return column.is_null() if term.op == "is null" else column.starts_with(value)


def pyarrow(path: str, query: Query) -> pa.Table:
    import pyarrow.dataset as ds

    parquet: Any = ds
    options = parquet.ParquetFragmentScanOptions(pre_buffer=True)
    made = ds.dataset(path, format=parquet.ParquetFileFormat(default_fragment_scan_options=options))
    return made.to_table(_names(query), filter=arrow_filter(query.filter), use_threads=False)


def arrow_filter(condition: Filter) -> pc.Expression:
    """A filter as an expression of pyarrow.compute."""

    def term(t: Term) -> pc.Expression:
        path = t.column.split(".")
        column = pc.field(*path) if len(path) > 1 else pc.field(path[0])
        if t.op in OPERATORS:
            return OPERATORS[t.op](column, pa.scalar(t.value))
        if t.op == "in":
            return column.isin(list(t.value))
        if t.op == "between":
            return (column >= pa.scalar(t.value[0])) & (column <= pa.scalar(t.value[1]))
        if t.op == "is null":
            return column.is_null()
        return pc.starts_with(column, t.value)

    return _tree(condition, term)


def datafusion(path: str, query: Query) -> pa.Table:
    from datafusion import SessionConfig, SessionContext

    config = SessionConfig().with_target_partitions(1)
    for option in (
        "pushdown_filters",
        "enable_page_index",
        "reorder_filters",
        "bloom_filter_on_read",
        "pruning",
    ):
        config = config.set(f"datafusion.execution.parquet.{option}", "true")
    context = SessionContext(config)
    context.register_parquet("made", path)
    where = _sql(
        query.filter,
        lambda name: "".join(
            f"['{part}']" if i else f'"{part}"' for i, part in enumerate(name.split("."))
        ),
    )
    batches = context.sql(f"SELECT {_listed(query)} FROM made WHERE {where}").collect()
    return pa.Table.from_batches(batches) if batches else pa.table({})


def _listed(query: Query) -> str:
    names = _names(query)
    return "*" if names is None else ", ".join(f'"{name}"' for name in names)


def duckdb(path: str, query: Query) -> pa.Table:
    import duckdb as engine

    connection = engine.connect(config={"threads": 1})
    where = _sql(query.filter, lambda name: ".".join(f'"{part}"' for part in name.split(".")))
    relation = connection.sql(f"SELECT {_listed(query)} FROM read_parquet('{path}') WHERE {where}")
    return relation.to_arrow_table()


def polars(path: str, query: Query) -> pa.Table:
    import polars as pl

    def term(t: Term) -> Any:
        first, *rest = t.column.split(".")
        column = pl.col(first)
        for part in rest:
            column = column.struct.field(part)
        if t.op in OPERATORS:
            return OPERATORS[t.op](column, pl.lit(t.value))
        if t.op == "in":
            return column.is_in(list(t.value))
        if t.op == "between":
            return column.is_between(*t.value)
        if t.op == "is null":
            return column.is_null()
        return column.str.starts_with(t.value)

    frame = pl.scan_parquet(path).filter(_tree(query.filter, term))
    names = _names(query)
    return (frame if names is None else frame.select(names)).collect().to_arrow()


ENGINES: dict[str, Callable[[str, Query], pa.Table]] = {
    engine.__name__: engine for engine in (pageseek, pyarrow, datafusion, duckdb, polars)
}
