"""moto, another implementation of S3, in a thread."""

from __future__ import annotations

import logging
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.fs as pafs
import pytest

from support.remote_files import SECRET


@dataclass
class Bucket:
    """The bucket `bucket`, with a client of boto3."""

    endpoint: str
    client: Any

    @property
    def options(self) -> dict[str, Any]:
        return {
            "endpoint": self.endpoint, "region": "us-east-1", "access_key_id": "any",
            "secret_access_key": SECRET,
        }  # fmt: skip

    def iceberg_catalog(self, folder: Path, warehouse: str) -> Any:
        """A catalog of pyiceberg with the namespace `n`, whose tables lie in the bucket below `warehouse`."""
        from pyiceberg.catalog.sql import SqlCatalog

        catalog = SqlCatalog(
            "c", uri=f"sqlite:///{folder}/c.db", warehouse=f"s3://bucket/{warehouse}",
            **{
                "s3.endpoint": self.endpoint, "s3.access-key-id": "any",
                "s3.secret-access-key": SECRET, "s3.region": "us-east-1",
            },
        )  # fmt: skip
        catalog.create_namespace("n")
        return catalog

    def put(self, data: bytes, key: str) -> None:
        self.client.put_object(Bucket="bucket", Key=key, Body=data)

    def over_obstore(self, key: str) -> dict[str, Any]:
        return {"source": f"s3://bucket/{key}", "storage_options": self.options}

    def over_pyarrow(self, key: str) -> dict[str, Any]:
        if not hasattr(pafs, "S3FileSystem"):
            pytest.skip("this pyarrow is built without S3")
        filesystem = pafs.S3FileSystem(
            endpoint_override=self.endpoint.removeprefix("http://"), scheme="http",
            region="us-east-1", access_key="any", secret_key=SECRET,
        )  # fmt: skip
        return {"source": (filesystem, f"bucket/{key}")}


@contextmanager
def moto() -> Iterator[Bucket]:
    """A server with one empty bucket; the test is skipped where moto is not installed."""
    how = "pip install 'moto[s3]' flask flask-cors"
    server = pytest.importorskip("moto.server", reason=how)
    boto3 = pytest.importorskip("boto3", reason=how)
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    running = server.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    running.start()
    try:
        host, port = running.get_host_and_port()
        endpoint = f"http://{host}:{port}"
        # what other servers of this process hold it holds as well
        reset = urllib.request.Request(f"{endpoint}/moto-api/reset", method="POST")
        urllib.request.urlopen(reset).close()
        client = boto3.client(
            "s3", endpoint_url=endpoint, region_name="us-east-1", aws_access_key_id="any",
            aws_secret_access_key=SECRET,
        )  # fmt: skip
        client.create_bucket(Bucket="bucket")
        yield Bucket(endpoint, client)
        client.close()
    finally:
        running.stop()
