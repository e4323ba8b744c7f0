"""Parquet files on the object server, and the ways to name one."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest

from support.object_server.server import ObjectServer

GROUPS, ROWS = 4, 5_000
PATH = "bucket/t/a.parquet"
SECRET = "not-to-be-seen"


def table(seed: int = 0) -> pa.Table:
    n = GROUPS * ROWS
    random = np.random.default_rng(seed)
    return pa.table(
        {
            "id": np.arange(n),
            "seed": np.full(n, seed),
            "v": random.integers(0, 1 << 40, n),
            "text": np.char.mod("%012d", random.integers(0, 1 << 40, n)),
        }
    )


def content(seed: int = 0, **how: Any) -> bytes:
    file = io.BytesIO()
    options: dict[str, Any] = {
        "row_group_size": ROWS, "max_rows_per_page": 500, "write_batch_size": 100,
        "write_page_index": True, "compression": "none", "use_dictionary": False, **how,
    }  # fmt: skip
    pq.write_table(table(seed), file, **options)
    return file.getvalue()


def s3_options(server: ObjectServer, **more: Any) -> dict[str, Any]:
    return {
        "endpoint": server.endpoint, "region": "us-east-1", "access_key_id": "any",
        "secret_access_key": SECRET, **more,
    }  # fmt: skip


def over_s3(server: ObjectServer) -> dict[str, Any]:
    pytest.importorskip("obstore", reason="pip install 'pageseek[obstore]'")
    return {"source": f"s3://{PATH}", "storage_options": s3_options(server)}


def over_http(server: ObjectServer) -> dict[str, Any]:
    pytest.importorskip("obstore", reason="pip install 'pageseek[obstore]'")
    return {"source": server.url(PATH)}


def of_obstore(server: ObjectServer) -> dict[str, Any]:
    stores = pytest.importorskip("obstore.store", reason="pip install 'pageseek[obstore]'")
    store = stores.S3Store(
        "bucket", config=s3_options(server),
        client_options={"allow_http": True, "read_timeout": "1s"},
        prefix="t", retry_config={"max_retries": 0},
    )  # fmt: skip
    return {"source": (store, "a.parquet")}


def of_fsspec(server: ObjectServer) -> dict[str, Any]:
    fsspec = pytest.importorskip("fsspec")
    pytest.importorskip("aiohttp")
    return {"source": (fsspec.filesystem("http"), server.url(PATH))}


def of_pyarrow(server: ObjectServer) -> dict[str, Any]:
    if not hasattr(pafs, "S3FileSystem"):
        pytest.skip("this pyarrow is built without S3")
    where = server.endpoint.removeprefix("http://")
    filesystem = pafs.S3FileSystem(
        endpoint_override=where, scheme="http", region="us-east-1", access_key="any",
        secret_key=SECRET, retry_strategy=pafs.AwsStandardS3RetryStrategy(max_attempts=1),
    )  # fmt: skip
    return {"source": (filesystem, PATH)}


Way = Callable[[ObjectServer], dict[str, Any]]
STRONG: list[Way] = [over_s3, over_http, of_obstore]
WEAK: list[Way] = [of_fsspec, of_pyarrow]
