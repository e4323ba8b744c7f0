"""Files that lie far away: what waits for the store side by side, and what is worth a wait, by the server's log."""

from __future__ import annotations

import io
import pickle
import time
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek.scanning.one_file import division
from pageseek.scanning.plans.opened_file import OpenedFile
from pageseek.storage import endpoint as endpoints
from support.object_requests import ObjectRequests
from support.object_server.server import ObjectServer
from support.remote_files import PATH, s3_options

pytest.importorskip("obstore", reason="pip install 'pageseek[obstore]'")
GROUP = 20_000


@pytest.fixture
def server(object_server: ObjectServer, monkeypatch: pytest.MonkeyPatch) -> ObjectServer:
    """A wait is worth 400 kB."""
    monkeypatch.setattr(endpoints, "LATENCY", 0.04)
    monkeypatch.setattr(endpoints, "BANDWIDTH", 1e7)
    ps.clear_cache()
    object_server.latency = 0.04
    return object_server


def put(server: ObjectServer, groups: int, size: int = GROUP, **how: Any) -> pa.Table:
    random = np.random.default_rng(1)
    n = groups * size
    made = pa.table({"key": random.permutation(n) * 3, "text": np.char.mod("%012d", np.arange(n))})
    file = io.BytesIO()
    pq.write_table(
        made, file, row_group_size=size, compression="none", use_dictionary=False,
        write_page_index=True, max_rows_per_page=1_000, write_batch_size=500, **how,
    )  # fmt: skip
    server.put(PATH, file.getvalue())
    return made


def scan(server: ObjectServer, filter: Any) -> ps.Scan:
    return ps.scan(f"s3://{PATH}", storage_options=s3_options(server), filter=filter, threads=1)


@pytest.mark.timed
@pytest.mark.parametrize("groups", [1, 8])
def test_row_groups_share_the_wait_for_their_bloom_filters(
    server: ObjectServer, groups: int
) -> None:
    """One row group of 480 kB is not worth a wait that may prove nothing; eight of them are, which wait at the same time."""
    made = put(server, groups, bloom_filter_options={"key": {"ndv": GROUP, "fpp": 1e-3}})
    absent = made.num_rows // 2 * 3 + 1
    report = scan(server, ps.col("key") == absent).explain(analyze=True).to_dict()
    assert report["rows"]["out"] == 0
    asked = groups > 1
    assert report["row_groups"]["pruned_by"] == ({"bloom_filter": groups} if asked else {})
    if asked:
        assert server.log.waves(PATH) == 2  # the end, and the filters


@pytest.mark.timed
def test_pieces_of_one_row_group_wait_side_by_side(
    server: ObjectServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also on one thread, as a task of Spark reads them; and the payload of pieces without a row that passes stays unread."""
    monkeypatch.setattr(division, "PIECE_BYTES", 130_000)  # of what is tested
    made = put(server, 1, 6 * GROUP)
    row = 45_678
    plan = scan(server, ps.col("key") == made["key"][row].as_py()).plan()
    shipped = pickle.dumps(plan)
    ps.clear_cache()
    server.log.reset()
    found = pa.Table.from_batches(pickle.loads(shipped).execute())
    assert found == made.slice(row, 1)
    asked = ObjectRequests(server, PATH)
    assert len(asked.others) > 6  # of the key, a request for each piece at least
    assert server.log.in_flight(PATH) > 3
    assert asked.depth < len(asked.others) / 2
    assert sum(length for _, length in asked.places) < made["key"].nbytes * 1.5


@pytest.mark.timed
def test_files_of_a_part_wait_side_by_side(server: ObjectServer) -> None:
    """Also on one thread: while one file is opened, the pages of others come. Each batch knows its file."""
    files = 24
    for i in range(files):
        server.objects.put(f"bucket/many/{i:02}.parquet", file_of(i))
    named = [f"s3://bucket/many/{i:02}.parquet" for i in range(files)]
    plan = ps.scan(
        named, storage_options=s3_options(server), filter=ps.col("k") == 7, threads=1
    ).plan()
    shipped = pickle.dumps(plan)
    ps.clear_cache()
    server.log.reset()
    found = [
        (file.source.name, batch["file"].to_pylist())
        for file, batch in pickle.loads(shipped).execute_by_file()
    ]
    assert [rows for _, rows in found] == [[i] for i in range(files)]
    assert [name for name, _ in found] == named
    assert server.log.waves() < files / 2  # one after another there are two for each
    assert server.log.in_flight() > 3


def file_of(i: int) -> bytes:
    file = io.BytesIO()
    random = np.random.default_rng(i)
    made = pa.table({"k": random.permutation(3_000), "file": np.full(3_000, i)})
    pq.write_table(made, file, compression="none", use_dictionary=False)
    return file.getvalue()


def test_rows_of_the_files_before_one_that_has_changed_are_given(
    server: ObjectServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They may still be read when the change is found. The others need not be opened any more."""
    files = 24
    for i in range(files):
        server.objects.put(f"bucket/t/{i:02}.parquet", file_of(i))
    paths = [f"s3://bucket/t/{i:02}.parquet" for i in range(files)]
    plan = ps.scan(paths, storage_options=s3_options(server), filter="k < 10", threads=1).plan()
    changed = 5
    server.objects.put(f"bucket/t/{changed:02}.parquet", file_of(99))
    ps.clear_cache()
    read = OpenedFile.read

    def late(self: OpenedFile, *given: Any) -> Any:
        time.sleep(0.3)
        return read(self, *given)

    monkeypatch.setattr(OpenedFile, "read", late)
    rows = plan.execute_by_file()
    for i in range(changed):
        file, batch = next(rows)
        assert file.source.path == f"t/{i:02}.parquet"
        assert batch.num_rows == 10
    with pytest.raises(ps.FileChangedError, match=rf"t/{changed:02}\.parquet"):
        next(rows)
