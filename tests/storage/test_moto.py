"""The same reads against moto, another implementation of S3."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

import pageseek as ps
from pageseek.storage.folder_markers import without_markers
from pageseek.storage.retry import RetryPolicy
from pageseek.storage.urls import from_url
from support.moto_s3 import Bucket, moto
from support.opened import open_metadata
from support.remote_files import GROUPS, ROWS, content, table

pytest.importorskip("obstore", reason="pip install 'pageseek[obstore]'")
KEY = "t/a.parquet"
CONDITIONS: list[Any] = [
    None,
    ps.col("id") == 12_345,
    ps.col("id").between(7_000, 7_900),
    ps.col("v") < 1 << 36,
]


@pytest.fixture(scope="module")
def server() -> Iterator[Bucket]:
    with moto() as made:
        yield made


@pytest.fixture
def bucket(server: Bucket) -> Bucket:
    server.put(content(), KEY)
    ps.clear_cache()
    return server


@pytest.mark.parametrize("condition", CONDITIONS, ids=str)
@pytest.mark.parametrize("way", [Bucket.over_obstore, Bucket.over_pyarrow])
def test_answers_are_those_of_a_file_at_hand(bucket: Bucket, way: Any, condition: Any) -> None:
    right = ps.read_table(content(), filter=condition)
    for _ in range(2):  # cold, and with footer and version known
        assert ps.read_table(**way(bucket, KEY), filter=condition) == right


@pytest.mark.timed
def test_a_lookup_is_two_requests_and_then_one(bucket: Bucket) -> None:
    for n in (2, 1):
        scan = ps.scan(**bucket.over_obstore(KEY), filter=CONDITIONS[1])
        report = scan.explain(analyze=True).to_dict()
        assert (report["requests"], report["waves"], report["version"]) == (n, n, "strong")


def test_folders_and_globs(bucket: Bucket) -> None:
    for name in ("l/day=1/a.parquet", "l/day=2/b.parquet", "l/_x/c.parquet"):
        bucket.put(content(), name)
    for way in (bucket.over_obstore, bucket.over_pyarrow):
        found = ps.read_table(**way("l"), filter="day = 2 and id < 3", columns=["id", "day"])
        assert found.to_pydict() == {"id": [0, 1, 2], "day": [2, 2, 2]}
    assert ps.scan(**bucket.over_obstore("l/day=*/*.parquet")).count_rows() == 2 * GROUPS * ROWS


def test_an_object_that_was_replaced_is_refused_by_if_match(bucket: Bucket) -> None:
    """The store sends no byte of the second version: it answers 412."""
    for way in (bucket.over_obstore, bucket.over_pyarrow):
        bucket.put(content(0), KEY)
        ps.clear_cache()
        batches = ps.scan(**way(KEY), threads=1, max_ahead_bytes=0).to_batches()
        rows = [next(batches)]
        bucket.put(content(1), KEY)
        with pytest.raises(ps.FileChangedError, match=r"a\.parquet: the file changed"):
            rows.extend(batches)
        old = pa.Table.from_batches(rows)
        if way == bucket.over_obstore:  # else it is found at the end
            assert old == table().slice(0, old.num_rows) and old.num_rows < GROUPS * ROWS
        assert set(ps.read_table(**way(KEY), columns=["seed"])["seed"].to_pylist()) == {1}


def test_if_match_is_what_does_it(bucket: Bucket) -> None:
    from obstore.exceptions import PreconditionError

    opened = open_metadata(**bucket.over_obstore(KEY))
    bucket.put(content(1), KEY)
    store: Any = opened.store
    with pytest.raises(PreconditionError):
        store._get(0, 4)
    with pytest.raises(ps.FileChangedError):
        store.read([(0, 4)])


def test_what_is_not_there(bucket: Bucket) -> None:
    for way in (bucket.over_obstore, bucket.over_pyarrow):
        with pytest.raises(FileNotFoundError, match="none"):
            ps.read_table(**way("none.parquet"))
    bucket.client.delete_object(Bucket="bucket", Key=KEY)
    with pytest.raises(FileNotFoundError, match=r"a\.parquet"):
        ps.read_table(**bucket.over_obstore(KEY))


@pytest.mark.parametrize("way", [Bucket.over_obstore, Bucket.over_pyarrow])
def test_empty_objects_that_stand_for_folders_are_no_files(bucket: Bucket, way: Any) -> None:
    rows = ps.scan(content()).count_rows()
    for i, keys in enumerate(
        [
            ["x/", "x/y.parquet/", "x/y.parquet/part.parquet"],  # a folder as Spark names it
            ["y.parquet/", "y.parquet"],
            ["y.parquet/", "z.parquet"],
            ["k=1/", "k=1/a.parquet", "k=2/"],
        ]
    ):
        for key in keys:
            bucket.put(b"" if key.endswith("/") else content(), f"m{i}/{key}")
        for source in (f"m{i}", f"m{i}/**/*"):
            assert ps.scan(**way(bucket, source), partitioning=False).count_rows() == rows
    for key in ("m5/_delta_log/0.json", "m5/x/", "m5/y.parquet/", "m5/part-0"):
        bucket.put(b"", key)
    if way is Bucket.over_obstore:
        files, path = from_url("s3://bucket/m5", "s3", bucket.options, RetryPolicy())
        assert files.find(path, RetryPolicy()) == ["m5/_delta_log/0.json", "m5/part-0"]
    bucket.put(b"", "m4/empty.parquet")
    with pytest.raises(ps.CorruptFileError, match=r"empty\.parquet"):
        ps.read_table(**way(bucket, "m4"))


def test_no_question_is_asked_of_a_folder_that_has_files() -> None:
    def is_file(path: str) -> bool:
        raise AssertionError(path)

    listed = [("a", 0), ("a/x.parquet", 0), ("a/x.parquet/b/p.parquet", 5), ("c.parquet", 5)]
    left = ["a/x.parquet/b/p.parquet", "c.parquet"]
    assert without_markers(listed, is_file) == left
    assert without_markers([*listed, ("_log", 0), ("d.json", 0)], is_file) == [
        *left,
        "_log",
        "d.json",
    ]


def test_keys_that_obstore_cannot_spell(bucket: Bucket) -> None:
    bucket.put(content(), "odd/a.parquet")
    bucket.put(content(), "odd/x//b.parquet")
    with pytest.raises(ps.StoreError, match=r"odd/x//b\.parquet.*rename that object, or give"):
        ps.read_table(**bucket.over_obstore("odd/"))
    source = [f"s3://bucket/odd/{name}" for name in ("a.parquet",)]
    assert ps.scan(source, storage_options=bucket.options).count_rows() > 0


def test_filesystems_that_wrap_a_store(bucket: Bucket) -> None:
    fsspec = pytest.importorskip("obstore.fsspec")
    arrow = pytest.importorskip("fsspec.implementations.arrow")
    condition = ps.col("id") == 12_345
    right = ps.read_table(content(), filter=condition)
    wrapped = fsspec.FsspecStore("s3", client_options={"allow_http": True}, **bucket.options)
    assert ps.read_table((wrapped, f"bucket/{KEY}"), filter=condition) == right
    filesystem, path = bucket.over_pyarrow(KEY)["source"]
    assert ps.read_table((arrow.ArrowFSWrapper(filesystem), path), filter=condition) == right
