"""Answers for one engine with a number of threads, in a process of its own: a question a line, as JSON, in and out."""

from __future__ import annotations

import datetime as dt
import gc
import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any

Question = dict[str, Any]


def sql_of(question: Question, table: str, row_number: str) -> str:
    """The question in SQL."""
    names = "*" if question["columns"] is None else ", ".join(question["columns"])
    conditions = []
    for column, op, value in question["filter"]:
        conditions.append(f"{column} {op} {_literal(value)}")
    if question["rows"]:
        conditions.append(f"{row_number} in ({', '.join(map(str, question['rows']))})")
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    return f"SELECT {names} FROM {table}{where}"


def _literal(value: Any) -> str:
    if isinstance(value, list):
        return f"({', '.join(map(_literal, value))})"
    if isinstance(value, dt.date):
        return f"date '{value}'"
    return f"'{value}'" if isinstance(value, str) else str(value)


def pageseek(threads: int) -> Callable[[Question], int]:
    import pageseek as ps

    def run(question: Question) -> int:
        options: dict[str, Any] = {"threads": threads}
        if question["string_type"]:
            options["string_type"] = question["string_type"]
        if question["rows"]:
            return int(
                ps.scan(question["path"], **options).take(question["rows"]).to_table().num_rows
            )
        found = ps.read_table(
            question["path"], question["columns"], question["filter"] or None, **options
        )
        return int(found.num_rows)

    return run


def datafusion(threads: int) -> Callable[[Question], int]:
    from datafusion import SessionConfig, SessionContext

    config = SessionConfig().with_target_partitions(threads)
    for option in ("pushdown_filters", "enable_page_index", "reorder_filters"):
        config = config.set(f"datafusion.execution.parquet.{option}", "true")
    context = SessionContext(config)
    known: dict[str, str] = {}  # names of paths

    def run(question: Question) -> int:
        path = question["path"]
        if path not in known:
            known[path] = f"t{len(known)}"
            context.register_parquet(known[path], path)
        batches = context.sql(sql_of(question, known[path], "")).collect()
        return sum(batch.num_rows for batch in batches)

    return run


def duckdb(threads: int) -> Callable[[Question], int]:
    import duckdb

    connection = duckdb.connect(config={"threads": threads})
    connection.execute("SET parquet_metadata_cache = true")

    def run(question: Question) -> int:
        table = f"read_parquet('{question['path']}')"
        relation = connection.sql(sql_of(question, table, "file_row_number"))
        return int(relation.to_arrow_table().num_rows)

    return run


def polars(threads: int) -> Callable[[Question], int]:
    os.environ["POLARS_MAX_THREADS"] = str(threads)  # read when polars is imported
    import polars as pl

    def run(question: Question) -> int:
        frame = pl.scan_parquet(question["path"])
        for column, op, value in question["filter"]:
            frame = frame.filter(pl.sql_expr(f"{column} {op} {_literal(value)}"))
        if question["columns"] is not None:
            frame = frame.select(*question["columns"])
        return int(frame.collect().height)

    return run


def chdb(threads: int) -> Callable[[Question], int]:
    from chdb.session import Session

    session = Session()
    session.query(f"SET max_threads = {threads}")

    def run(question: Question) -> int:
        table = f"file('{question['path']}', Parquet)"
        number = "_row_number"
        return int(session.query(sql_of(question, table, number), "ArrowTable").num_rows)

    return run


def pyarrow(threads: int) -> Callable[[Question], int]:
    import pyarrow.parquet as pq

    def run(question: Question) -> int:
        terms = [
            (column, "==" if op == "=" else op, value) for column, op, value in question["filter"]
        ]
        found = pq.read_table(
            question["path"],
            columns=question["columns"],
            filters=terms or None,
            use_threads=threads > 1,
        )
        return int(found.num_rows)

    return run


ENGINES = {made.__name__: made for made in (pageseek, datafusion, duckdb, polars, chdb, pyarrow)}


def main() -> None:
    """Answer questions until there are no more."""
    run = ENGINES[sys.argv[1]](int(sys.argv[2]))
    for text in sys.stdin:
        question = json.loads(text)
        question["filter"] = [
            (column, op, dt.date.fromisoformat(value["date"]) if isinstance(value, dict) else value)
            for column, op, value in question["filter"]
        ]
        gc.collect()
        start = time.perf_counter()
        try:
            count = run(question)
            answer: Question = {"seconds": time.perf_counter() - start, "count": count}
        except Exception as error:  # noqa: BLE001 - the other process says it
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
