"""`python -m pageseek.bench.demo [FILE]`: pageseek in two minutes.

Makes a Parquet file of a few million rows if none is given, looks rows up in it here and in a local Spark
session, and shows what was read beside the time of a full scan.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import os
import shutil
import sys
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pageseek.bench import generate

import pageseek as ps
from pageseek.base.report import format_size
from pageseek.datasets.sources import open_metadata
from pageseek.format.file_metadata import FileMetadata

ROWS = 3_000_000


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demonstration; 0 also without Spark, after a message that says what is missing."""
    made = argparse.ArgumentParser(prog="python -m pageseek.bench.demo", description=__doc__)
    made.add_argument("file", nargs="?", type=Path, help="a Parquet file (default: one is made)")
    made.add_argument("--column", help="column to look up in (default: the first that can be)")
    made.add_argument(
        "--rows",
        type=int,
        default=ROWS,
        help="rows of the file that is made (default: %(default)s)",
    )
    made.add_argument(
        "--folder", type=Path, default=generate.default_folder(), help="where it is made"
    )
    made.add_argument("--no-spark", action="store_true", help="leave Spark out")
    options = made.parse_args(arguments)
    try:
        return _demo(options)
    except (ps.PageseekError, OSError) as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1


def _demo(options: argparse.Namespace) -> int:
    path = options.file
    if path is None:
        print(f"Making a file of {options.rows:,} rows, sorted by the column 'key' ...", flush=True)
        path = generate.lookup_file(options.folder, options.rows, max(options.rows // 3, 1))
    with open_metadata(path) as file:
        print(
            f"{path}: {file.num_rows:,} rows, {file.num_row_groups} row groups, {format_size(file.store.size)}"
        )
        column = options.column or _column(file)
    if column is None:
        print(
            "demo: the file has no column of numbers, text, dates or times with values",
            file=sys.stderr,
        )
        return 1
    value = _value(path, column)
    condition = ps.col(column) == value
    print(f"\nLooking up {condition!r}\n")
    found, first = _timed(lambda: ps.read_table(path, filter=condition, threads=1))
    again = min(
        _timed(lambda: ps.read_table(path, filter=condition, threads=1))[1] for _ in range(5)
    )
    _show(found)
    print(f"\n{ps.scan(path, filter=condition).explain(analyze=True)}\n")
    whole, full = _timed(lambda: pq.read_table(path, use_threads=False))
    print(f"lookup, file opened for it   {first * 1000:10.1f} ms")
    print(f"lookup, metadata cached      {again * 1000:10.1f} ms")
    print(f"pyarrow, whole file          {full * 1000:10.1f} ms, {full / again:,.0f} times as long")
    print("each on one thread")
    rows = whole.num_rows
    del whole
    if not options.no_spark:
        _spark(str(path), condition, found, rows)
    return 0


def _rows(n: int) -> str:
    return f"{n:,} row" if n == 1 else f"{n:,} rows"


def _timed(call: Any) -> tuple[Any, float]:
    start = time.perf_counter()
    made = call()
    return made, time.perf_counter() - start


def _column(file: FileMetadata) -> str | None:
    """The first flat column whose values can be looked up and whose footer statistics show some."""
    for leaf in file.leaves:
        if leaf.flat:
            kind = file.schema.field(leaf.top).type
            lookable = (
                pa.types.is_integer(kind) or pa.types.is_string(kind) or pa.types.is_temporal(kind)
            )
            if lookable and file.statistics(leaf)[0].null_count < file.num_row_groups:
                return leaf.name
    return None


def _value(path: Path, column: str) -> Any:
    """A value from the middle of the file."""
    group = pq.ParquetFile(path)
    values = group.read_row_group(group.num_row_groups // 2, [column]).column(0).drop_null()
    if not len(values):
        raise ps.UnsupportedError(
            f"{path}: column {column!r} has no value in the middle of the file; name another"
        )
    return values[len(values) // 2].as_py()


def _show(found: pa.Table) -> None:
    """Print the first row, a column a line."""
    width = max(len(name) for name in found.schema.names)
    for name, value in (found.slice(0, 1).to_pylist() or [{}])[0].items():
        print(f"  {name:<{width}}  {value}")
    if found.num_rows != 1:
        print(f"  ... {found.num_rows:,} rows in all")


def _spark(path: str, condition: ps.Expression, expected: pa.Table, rows: int) -> None:
    print("\nThe same in Spark")
    missing = spark_missing()
    if missing:
        for line in missing:
            print(f"  left out: {line}")
        return
    read = importlib.import_module("pageseek.spark").read
    from pyspark.sql import SparkSession

    # otherwise workers run python3 from PATH, and bind to the address of the host name
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    print("  starting a local session; the lines until its times are Spark's own ...", flush=True)
    warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
    spark = (
        SparkSession.builder.master("local[2]")
        .appName("pageseek-demo")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    try:
        read(spark, path, filter=condition).collect()  # the first query starts the Python workers
        found, seconds = _timed(lambda: read(spark, path, filter=condition).collect())
        frame = spark.read.parquet(path)
        _, full = _timed(lambda: frame.write.format("noop").mode("overwrite").save())
        agree = len(found) == expected.num_rows
        print(
            f"  pageseek.spark.read          {seconds * 1000:10.1f} ms, {_rows(len(found))} of {rows:,}"
        )
        print(f"  full scan by Spark           {full * 1000:10.1f} ms")
        print(f"  {'the answer is the same' if agree else 'THE ANSWER DIFFERS from the local one'}")
    finally:
        spark.stop()


def spark_missing() -> list[str]:
    """The missing requirements of Spark, each with its remedy."""
    missing = []
    if importlib.util.find_spec("pyspark") is None:
        missing.append('pyspark is not installed: pip install "pageseek[spark]"')
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        missing.append(
            "Java is not installed: install a JRE 17 or 21 (Debian, Ubuntu: apt install openjdk-17-jre-headless)"
        )
    return missing


if __name__ == "__main__":
    sys.exit(main())
