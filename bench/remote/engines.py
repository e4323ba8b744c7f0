"""The engines, each pointed at the server by its own S3 client, with everything that helps it read less switched on.

What an engine may keep between questions is made again for each: every answer is a cold one.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.fs as pafs
from pageseek.bench.remote.cases import BUCKET, Case

import pageseek as ps

Ask = Callable[[str, Case], pa.Table]
_KEY = "any"  # the server takes any


def _pageseek(endpoint: str, case: Case) -> pa.Table:
    store = importlib.import_module("obstore.store").S3Store(
        BUCKET,
        endpoint=endpoint,
        region="us-east-1",
        access_key_id=_KEY,
        secret_access_key=_KEY,
        client_options={"allow_http": True},
    )
    ps.clear_cache()
    condition = None if case.high < 0 else ps.col(case.key).between(case.low, case.high)
    columns = None if case.columns is None else list(case.columns)
    return ps.read_table([(store, name) for name in case.objects], columns, condition)


def _pyarrow(endpoint: str, case: Case) -> pa.Table:
    filesystem = pafs.S3FileSystem(
        access_key=_KEY, secret_key=_KEY, region="us-east-1", endpoint_override=endpoint
    )
    paths = [f"{BUCKET}/{name}" for name in case.objects]
    condition = None
    if case.high >= 0:
        condition = (ds.field(case.key) >= case.low) & (ds.field(case.key) <= case.high)
    columns = None if case.columns is None else list(case.columns)
    return ds.dataset(paths, filesystem=filesystem).to_table(columns, filter=condition)


def _datafusion(endpoint: str, case: Case) -> pa.Table:
    datafusion = importlib.import_module("datafusion")
    stores = importlib.import_module("datafusion.object_store")
    config = datafusion.SessionConfig()
    for name in ("pushdown_filters", "reorder_filters", "enable_page_index"):
        config = config.set(f"datafusion.execution.parquet.{name}", "true")
    context = datafusion.SessionContext(config)
    store = stores.AmazonS3(
        bucket_name=BUCKET,
        region="us-east-1",
        access_key_id=_KEY,
        secret_access_key=_KEY,
        endpoint=endpoint,
        allow_http=True,
    )
    context.register_object_store("s3://", store, BUCKET)
    at = case.objects[0] if len(case.objects) == 1 else case.objects[0].rsplit("/", 1)[0] + "/"
    context.register_parquet("t", f"s3://{BUCKET}/{at}")
    columns = "*" if case.columns is None else ", ".join(case.columns)
    where = "" if case.high < 0 else f" where {case.key} between {case.low} and {case.high}"
    return context.sql(f"select {columns} from t{where}").to_arrow_table()


def _polars(endpoint: str, case: Case) -> pa.Table:
    polars = importlib.import_module("polars")
    options = {
        "aws_endpoint_url": endpoint,
        "aws_allow_http": "true",
        "aws_access_key_id": _KEY,
        "aws_secret_access_key": _KEY,
        "aws_region": "us-east-1",
        "aws_virtual_hosted_style_request": "false",
    }
    scan = polars.scan_parquet(
        [f"s3://{BUCKET}/{name}" for name in case.objects], storage_options=options
    )
    if case.high >= 0:
        scan = scan.filter(polars.col(case.key).is_between(case.low, case.high))
    if case.columns is not None:
        scan = scan.select(case.columns)
    return scan.collect().to_arrow()


def _duckdb(endpoint: str, case: Case) -> pa.Table:
    duckdb: Any = importlib.import_module("duckdb")
    connection = duckdb.connect()
    connection.execute("load httpfs")  # which is no part of its package
    secret = (
        f"create secret (type s3, key_id '{_KEY}', secret '{_KEY}', region 'us-east-1', "
        f"endpoint '{endpoint.removeprefix('http://')}', use_ssl false, url_style 'path')"
    )
    connection.execute(secret)
    files = ", ".join(f"'s3://{BUCKET}/{name}'" for name in case.objects)
    columns = "*" if case.columns is None else ", ".join(case.columns)
    where = "" if case.high < 0 else f" where {case.key} between {case.low} and {case.high}"
    found = connection.execute(f"select {columns} from read_parquet([{files}]){where}")
    return found.fetch_arrow_table()


ENGINES: dict[str, Ask] = {
    "pageseek": _pageseek,
    "pyarrow": _pyarrow,
    "datafusion": _datafusion,
    "polars": _polars,
    "duckdb": _duckdb,
}
