"""Tables of Delta Lake and Iceberg with files in a bucket: read with the options of the table's object, or with given ones."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pageseek as ps
from pageseek.datasets.lake_places import Places, delta_options, iceberg_options
from pageseek.storage.obstore_files import ObstoreFiles
from pageseek.storage.resolve import place as resolve_place
from pageseek.storage.retry import RetryPolicy
from pageseek.storage.urls import from_url
from support.moto_s3 import Bucket, moto
from support.remote_files import SECRET

pytest.importorskip("obstore", reason="pip install 'pageseek[obstore]'")
ROWS = pa.table(
    {
        "id": pa.array([1, 2, 3, 4], pa.int64()),
        "k": ["x", "y z%=", None, "x"],
        "v": [1.5, None, 2.5, 3.5],
    }
)


@pytest.fixture(scope="module")
def bucket() -> Iterator[Bucket]:
    with moto() as made:
        yield made


def sorted_rows(table: pa.Table) -> list[dict[str, Any]]:
    return sorted(table.to_pylist(), key=lambda row: row["id"])


# -- Delta Lake -----------------------------------------------------------------------------------


@pytest.fixture
def delta(bucket: Bucket) -> Any:
    deltalake = pytest.importorskip("deltalake")
    ps.clear_cache()
    options = {
        "AWS_ENDPOINT_URL": bucket.endpoint, "AWS_ACCESS_KEY_ID": "any",
        "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_REGION": "us-east-1", "AWS_ALLOW_HTTP": "true",
        "aws_conditional_put": "etag", "max_retries": "3",
    }  # fmt: skip
    root = "s3://bucket/lake/a table"
    deltalake.write_deltalake(
        root, ROWS, partition_by=["k"], storage_options=options, mode="overwrite"
    )
    return deltalake.DeltaTable(root, storage_options=options)


def test_delta(delta: Any) -> None:
    assert sorted_rows(ps.read_table(delta)) == ROWS.to_pylist()
    for condition, ids in (("k = 'x'", [1, 4]), ("k = 'y z%='", [2]), ("v > 2", [3, 4])):
        found = ps.read_table(delta, columns=["id"], filter=condition)
        assert sorted(found["id"].to_pylist()) == ids
    report = ps.scan(delta, filter="k = 'x' and id = 4").explain(analyze=True).to_dict()
    assert report["files"]["pruned_by"]["partition"] == 2
    assert report["version"] == "strong"
    assert report["requests"] <= 3


def test_delta_in_another_process(delta: Any) -> None:
    plan = ps.scan(delta, filter="v > 2").plan()
    assert SECRET not in repr(plan)
    plan = pickle.loads(pickle.dumps(plan))
    ps.clear_cache()
    assert sum(batch.num_rows for batch in plan.execute()) == 2


def test_delta_with_other_options(delta: Any, bucket: Bucket) -> None:
    delta._storage_options = None  # as if the environment had let it in
    scan = ps.scan(delta, storage_options=bucket.options, retries=1)
    assert sorted_rows(scan.to_table()) == ROWS.to_pylist()
    with pytest.raises(OSError, match="lake/a table") as caught:
        ps.read_table(
            delta, storage_options={**bucket.options, "endpoint": f"{bucket.endpoint}/none"},
            retries=0,
        )  # fmt: skip
    assert SECRET not in str(caught.value)


def test_delta_written_anew(delta: Any, bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    version = delta.version()
    done = ps.rewrite(delta, in_place=True, sort_by="v", indexes={"lookup": ["id"]})
    assert (done.version, done.replaced, len(done.files)) == (version + 1, 3, 3)
    assert delta.version() == version + 1
    assert sorted_rows(ps.read_table(delta)) == ROWS.to_pylist()
    assert delta.to_pyarrow_table().num_rows == 4
    assert sorted_rows(ps.read_table(delta, version=version)) == ROWS.to_pylist()
    assert SECRET not in repr(done)
    root, options = "s3://bucket/lake/a table", bucket.options
    done = ps.rewrite(root, in_place=True, storage_options=options)  # by its folder
    assert done.version == version + 2
    assert sorted_rows(ps.read_table(root, storage_options=options)) == ROWS.to_pylist()


@pytest.mark.parametrize("scheme", ["s3", "s3a"])
def test_delta_a_file_that_is_removed_by_its_url(delta: Any, bucket: Bucket, scheme: str) -> None:
    """It was added by its path in the folder."""
    (path,) = (path for path in pa.table(delta.get_add_actions())["path"].to_pylist() if path.startswith("k=x"))  # fmt: skip
    removed = {"path": f"{scheme}://bucket/lake/a%20table/{path}", "deletionTimestamp": 1, "dataChange": True}  # fmt: skip
    entry = f"lake/a table/_delta_log/{delta.version() + 1:020}.json"
    bucket.put(json.dumps({"remove": removed}).encode(), entry)
    delta.update_incremental()
    root, options = "s3://bucket/lake/a table", bucket.options
    for found in (ps.read_table(delta), ps.read_table(root, storage_options=options)):
        assert sorted(found["id"].to_pylist()) == [2, 3]


def test_delta_a_file_that_was_vacuumed(delta: Any, bucket: Bucket) -> None:
    scan = ps.scan(delta)
    listed = bucket.client.list_objects_v2(Bucket="bucket", Prefix="lake/a table/k=x/")
    for one in listed["Contents"]:
        bucket.client.delete_object(Bucket="bucket", Key=one["Key"])
    with pytest.raises(FileNotFoundError, match="lake/a table/k=x/"):
        scan.to_table()


# -- Iceberg --------------------------------------------------------------------------------------


@pytest.fixture
def iceberg(bucket: Bucket, tmp_path: Path) -> Iterator[Any]:
    pytest.importorskip("pyiceberg")
    from pyiceberg.transforms import IdentityTransform

    ps.clear_cache()
    catalog = bucket.iceberg_catalog(tmp_path, tmp_path.name)
    table = catalog.create_table("n.t", schema=ROWS.schema)
    with table.update_spec() as change:
        change.add_field("k", IdentityTransform(), "k")
    table.append(ROWS)
    yield table
    catalog.engine.dispose()


def test_iceberg_written_anew(iceberg: Any) -> None:
    iceberg.append(ROWS.slice(0, 1))
    done = ps.rewrite(iceberg, in_place=True, sort_by="v", indexes={"lookup": ["id"]})
    assert (done.rows, done.replaced, len(done.files)) == (5, 4, 3)
    assert iceberg.current_snapshot().snapshot_id == done.version
    wanted = sorted(map(repr, [*ROWS.to_pylist(), *ROWS.slice(0, 1).to_pylist()]))
    assert sorted(map(repr, ps.read_table(iceberg).to_pylist())) == wanted
    assert sorted(map(repr, iceberg.scan().to_arrow().to_pylist())) == wanted
    assert SECRET not in repr(done)


def test_iceberg(iceberg: Any) -> None:
    assert sorted_rows(ps.read_table(iceberg)) == ROWS.to_pylist()
    found = ps.read_table(iceberg, columns=["id"], filter="k = 'x'")
    assert sorted(found["id"].to_pylist()) == [1, 4]
    report = ps.scan(iceberg.scan(), filter="k = 'x'").explain(analyze=True).to_dict()
    assert report["files"]["pruned_by"] == {"partition": 2}
    assert report["version"] == "strong"
    assert SECRET not in repr(ps.scan(iceberg)) + repr(ps.scan(iceberg).plan())


# -- options --------------------------------------------------------------------------------------


def test_options_of_writers_are_left_out() -> None:
    given = {
        "AWS_S3_LOCKING_PROVIDER": "dynamodb", "DELTA_DYNAMO_TABLE_NAME": "t", "AWS_REGION": "r",
        "AWS_S3_ALLOW_UNSAFE_RENAME": "true", "timeout": "5s", "azure_storage_account_name": "a",
    }  # fmt: skip
    said = {"region": "r", "timeout": "5s", "azure_storage_account_name": "a"}
    assert delta_options(given) == said
    assert delta_options(None) == {}


def test_properties_of_iceberg_by_scheme() -> None:
    given = {
        "s3.endpoint": "e", "client.region": "r", "s3.region": "s", "adls.account-name": "a",
        "uri": "u", "s3.anonymous": True, "client.access-key-id": "c",
    }  # fmt: skip
    assert iceberg_options(given, "s3") == {
        "endpoint": "e", "region": "s", "skip_signature": "True", "access_key_id": "c",
    }  # fmt: skip
    assert iceberg_options(given, "abfss") == {"account_name": "a"}
    assert iceberg_options(given, "hdfs") == {}
    with pytest.raises(ps.UnsupportedError, match="storage_options"):
        iceberg_options({"s3.signer": "S3V4RestSigner"}, "s3")


def test_files_of_one_bucket_are_opened_by_one() -> None:
    asked: list[str] = []

    def options(scheme: str) -> dict[str, Any]:
        asked.append(scheme)
        return {"region": "r"}

    places = Places("t", options, RetryPolicy())
    found = [
        places.source(url, (), encoded)
        for url, encoded in (
            ("s3://b/x/1%20.parquet", True), ("s3://b/x/2%20.parquet", False),
            ("s3n://b/3.parquet", True), ("s3://c/4.parquet", True),
        )
    ]  # fmt: skip
    assert [one.path for one in found] == [
        "x/1 .parquet",
        "x/2%20.parquet",
        "3.parquet",
        "4.parquet",
    ]
    assert asked == ["s3", "s3a", "s3"]
    files = [one.filesystem for one in found]
    assert files[0] is files[1] and isinstance(files[0], ObstoreFiles)
    assert files[0] == files[2] and files[0] != files[3]
    with pytest.raises(
        ps.UnsupportedError, match=r"t: its files lie at nonsense://: .*filesystem, path"
    ):
        places.source("nonsense://b/x", ())


def test_files_of_a_bucket_that_is_open_are_opened_there(bucket: Bucket) -> None:
    stores = pytest.importorskip("obstore.store")
    client = {"allow_http": True}
    plain, prefixed = (
        stores.S3Store("bucket", prefix=prefix, config=bucket.options, client_options=client)
        for prefix in (None, "lake")
    )
    arrow = bucket.over_pyarrow("t")["source"][0]
    for given, below in (
        ((plain, "t"), "lake/a b.bin"),
        ((prefixed, "t"), "a b.bin"),
        ((arrow, "bucket/t"), "bucket/lake/a b.bin"),
    ):
        root = resolve_place(given)
        places = Places("t", lambda _: {"region": "r"}, RetryPolicy(), root.filesystem)
        for scheme in ("s3", "s3a"):
            found = places.source(f"{scheme}://bucket/lake/a%20b.bin", ())
            assert (found.path, found.filesystem) == (below, root.filesystem)
        assert places.source("gs://bucket/lake/a.bin", ()).filesystem != root.filesystem
        if given[0] is not arrow:
            assert places.source("s3://other/lake/a.bin", ()).filesystem != root.filesystem
        if given[0] is prefixed:
            assert places.source("s3://bucket/a.bin", ()).filesystem != root.filesystem


@pytest.mark.parametrize("base", ["", "http://h/t/"])
def test_queries_of_urls_are_not_parts_of_paths(base: str) -> None:
    files = from_url("http://h/t/-", "http", {}, RetryPolicy())[0] if base else None
    places = Places("t", lambda _: {}, RetryPolicy(), files, base)
    found = [places.source(f"http://h/t/a.parquet?token={i}", (), False) for i in range(2)]
    assert [one.name for one in found] == ["http://h/t/a.parquet"] * 2
    assert found[0].key != found[1].key


def test_metadata_that_was_copied_elsewhere_means_the_files_that_it_names(tmp_path: Path) -> None:
    pytest.importorskip("pyiceberg")
    pytest.importorskip("obstore")
    with moto() as bucket:
        catalog = bucket.iceberg_catalog(tmp_path, "x/house")
        table = catalog.create_table("n.t", schema=pa.schema([("id", pa.int64())]))
        table.append(pa.table({"id": [1, 2, 3]}))
        for found in bucket.client.list_objects_v2(Bucket="bucket")["Contents"]:
            key = found["Key"]
            if "/metadata/" in key:  # to a path that the location ends in
                body = bucket.client.get_object(Bucket="bucket", Key=key)["Body"].read()
                bucket.put(body, key.removeprefix("x/"))
        copied = table.metadata.location.replace("/x/", "/")
        assert ps.read_table(copied, storage_options=bucket.options).num_rows == 3
        catalog.engine.dispose()


def test_files_of_a_table_that_are_gone_are_told_with_a_remedy(bucket: Bucket) -> None:
    deltalake = pytest.importorskip("deltalake")
    options = {**bucket.options, "allow_http": "true"}
    for i in range(3):
        part = pa.table({"id": [i]})
        deltalake.write_deltalake("s3://bucket/gone", part, mode="append", storage_options=options)
    scan = ps.scan("s3://bucket/gone", storage_options=bucket.options)
    listed = bucket.client.list_objects_v2(Bucket="bucket", Prefix="gone/part")
    for found in listed["Contents"]:
        bucket.client.delete_object(Bucket="bucket", Key=found["Key"])
    ps.clear_cache()
    with pytest.raises(FileNotFoundError, match=r"though Delta table .*gone has it.*VACUUM"):
        scan.to_table()
