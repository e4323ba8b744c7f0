"""Scans with the options that hold in Spark."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pageseek.api import scan
from pageseek.base.errors import UnsupportedError
from pageseek.base.report import Report
from pageseek.datasets.file_cache import cache
from pageseek.format.types import BYTE_ARRAY, INT96, L_TIMESTAMP, Options, logical_of
from pageseek.scanning.queries.scan import Scan
from pageseek.spark.columns.row_metadata import KEY
from pageseek.spark.session.one_spelling import spelled
from pageseek.spark.session.progress import progress_of
from pageseek.spark.session.settings import (
    BINARY_AS_STRING,
    INFER_NTZ,
    INT96_CONVERSION,
    Settings,
    check_session,
)
from pageseek.spark.sources.buckets import reached
from pageseek.spark.sources.folders import inference, named_otherwise, overlaid, with_names
from pageseek.spark.sources.options import check_names

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_TABLE = re.compile(
    r"(?!.*\.(parquet|parq|pq)$)[A-Za-z_]\w*(\.[A-Za-z_]\w*){0,2}", re.ASCII
)  # a name of one
# What scans have here unless the caller says otherwise: Spark runs a task on each core.
OPTIONS: dict[str, Any] = {"nan": "spark", "int96_unit": "us", "threads": 1}


def opened(
    spark: SparkSession, source: Any, *, spelling: pa.Schema | None = None, **options: Any
) -> Scan:
    """A scan of files that executors can read, with the options that hold in Spark.

    `spelling`: names that its columns have where case does not matter, and those of fields in their types.
    """
    check_session(spark)
    if isinstance(source, (bytes, bytearray, memoryview, pa.Buffer)):
        raise UnsupportedError(
            "bytes in memory cannot be read by executors: write them to a file that all nodes see"
        )
    check_names(options)
    source, options["storage_options"] = reached(spark, source, options.get("storage_options"))
    options["progress"] = progress_of(spark, options.get("progress"))
    settings, given = Settings(spark), options.pop("partitioning", None)
    if given is not False:
        given = inference(settings, None if given is True else given)
    try:
        made = scan(source, partitioning=given, **{**OPTIONS, **options})
    except FileNotFoundError as error:
        if isinstance(source, str) and _TABLE.fullmatch(source):
            raise FileNotFoundError(
                f"{error}; a table of a catalog is not looked up: give its path"
            ) from error
        raise
    named = named_otherwise(made, spelling, settings)
    if named:
        if options.get("schema") is not None:  # its types are those of the folders' names
            own = {name: folder for folder, name in named.items()}
            options["schema"] = pa.schema(
                [f.with_name(own.get(f.name, f.name)) for f in options["schema"]]
            )
            made = scan(source, partitioning=given, **{**OPTIONS, **options})
        made = with_names(made, named)
    request = made._request
    types = _with_untold(
        request.options._replace(wide_unsigned=True, int96_utc=True, any_text=True), made, settings
    )
    made = spelled(replace(made, _request=replace(request, options=types)), settings, spelling)
    return overlaid(made, settings)


def _with_untold(options: Options, scan: Scan, settings: Settings) -> Options:
    """Options with the types that settings choose for what Parquet leaves open. As with Spark's own reader, they count where the
    first file has no schema of Spark. The session is asked for them only if that file leaves something open.
    """
    if not scan.sources:
        return options
    first = cache.open(scan.sources[0], Report(), scan._request.limits.max_metadata_bytes)
    if KEY in first.key_value_metadata:
        return options
    told = [(leaf.element.type, *logical_of(leaf.element)[:2]) for leaf in first.schema_tree.leaves]
    if (
        any(physical == INT96 for physical, _, _ in told)
        and not (first.created_by or "").startswith("parquet-mr")
        and settings.is_true(INT96_CONVERSION)
    ):
        raise UnsupportedError(
            f"{first.name}: the INT96 timestamps of this writer would have to be moved by the session's zone, as {INT96_CONVERSION} "
            "wants it: set that to false, if they are in UTC, or read them with spark.read.parquet"
        )
    instants = any(logical == L_TIMESTAMP and not utc for _, logical, utc in told)
    text = any(physical == BYTE_ARRAY and not logical for physical, logical, _ in told)
    return options._replace(
        instants=instants and not settings.is_true(INFER_NTZ, "true"),
        binary_text=text and settings.is_true(BINARY_AS_STRING),
    )
