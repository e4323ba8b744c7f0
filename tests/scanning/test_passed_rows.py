"""The rows of a row group that pass a filter are read in pieces: the filter is evaluated once, and memory stays small."""

from __future__ import annotations

import io
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek.base.errors import CorruptFileError
from pageseek.base.report import Report
from pageseek.datasets.file_cache import cache
from pageseek.format.page_index import OffsetIndex
from pageseek.scanning.one_file import division
from support.object_requests import ObjectRequests
from support.object_server.server import ObjectServer
from support.remote_files import PATH, s3_options

ROWS, GROUPS = 16_000, 2


def table() -> pa.Table:
    rng = np.random.default_rng(11)
    n = ROWS * GROUPS
    k = np.arange(n)
    lists = pa.ListArray.from_arrays(
        pa.array(np.r_[0, np.cumsum(k % 3)], pa.int32()),
        pa.array(rng.integers(0, 9, (k % 3).sum())),
        mask=pa.array(k % 11 == 0),
    )
    structs = pa.StructArray.from_arrays(
        [pa.array(k % 7, mask=k % 5 == 0), lists], ["a", "b"], mask=pa.array(k % 13 == 0)
    )
    return pa.table({
        "k": k, "shuffled": rng.permutation(n), "few": pa.array(rng.integers(0, 9, n)).cast(pa.string()),
        "text": [f"text {i} " * (i % 5) if i % 7 else None for i in k.tolist()], "list": lists, "st": structs,
    })  # fmt: skip


def content(**how: Any) -> bytes:
    file = io.BytesIO()
    options = {
        "row_group_size": ROWS,
        "data_page_size": 1_000,
        "write_batch_size": 64,
        "write_page_index": True,
        "use_dictionary": ["few"],
        "compression": "none",
    }
    pq.write_table(table(), file, **{**options, **how})
    return file.getvalue()


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is tested is one piece, what passes several."""
    monkeypatch.setattr(division, "PIECE_BYTES", 200_000)
    monkeypatch.setattr(division, "WALK_SECONDS", 1.0)  # pages of 1 kB are many


@pytest.fixture(params=["a file", "without an index", "far away"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, Any]:
    if request.param == "far away":
        pytest.importorskip("obstore", reason="pip install 'pageseek[obstore]'")
        server: ObjectServer = request.getfixturevalue("object_server")
        server.latency = 0.005
        server.put(PATH, content())
        return {"source": f"s3://{PATH}", "storage_options": s3_options(server)}
    path = tmp_path / f"{request.param}.parquet"
    path.write_bytes(content(write_page_index=request.param == "a file"))
    return {"source": path}


CONDITIONS = {
    "other leaf": ps.col("shuffled") >= 4_000,
    "few rows": ps.col("shuffled") < 100,
    "payload, too": (ps.col("few") != "3") & (ps.col("shuffled") >= 1_000),
    "text": ps.col("text").is_null() | (ps.col("text") >= "text 2"),
    "elements": ps.col("list").any() == 7,
    "group": ps.col("st").is_not_null() & (ps.col("k") > 100),
    "residual": pc.field("k") * 2 > pc.field("shuffled"),
    "none": ps.col("shuffled") < 0,
}  # fmt: skip


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("condition", CONDITIONS.values(), ids=CONDITIONS.keys())
def test_the_rows_are_those_of_the_whole_read_and_filter(
    small_pieces: None, place: dict[str, Any], threads: int, condition: Any
) -> None:
    columns = ["k", "few", "text"]
    if "without an index" not in str(place["source"]):  # the levels of lists tell no rows
        columns += ["list", "st"]
    scan = ps.scan(**place, threads=threads, filter=condition).select(*columns)
    wanted = scan.to_table()
    ps.clear_cache()
    batches = list(pickle.loads(pickle.dumps(scan.plan())).execute())
    found = pa.Table.from_batches(batches, wanted.schema)
    assert found.combine_chunks().equals(wanted.combine_chunks())
    if found.num_rows:
        numbered = pa.Table.from_batches(scan.with_row_number("n").plan().execute())
        assert numbered["n"].equals(numbered["k"])
    if found.nbytes > 1_000_000:
        assert len(batches) > GROUPS
        assert max(batch.nbytes for batch in batches) < 500_000


def test_what_is_tested_is_read_once(tmp_path: Path, small_pieces: None) -> None:
    path = tmp_path / "one.parquet"
    path.write_bytes(content())
    plan = ps.scan(path, threads=1, filter=CONDITIONS["other leaf"]).plan()
    report = Report(analyzed=True)
    batches = list(plan.execute(report))
    assert len(batches) > 2 * GROUPS
    leaves = report.to_dict()["leaves"]
    assert leaves["shuffled"]["pages"]["read"] == leaves["shuffled"]["pages"]["total"]
    assert leaves["shuffled"]["rows_decoded"] == ROWS * GROUPS
    assert report.rows.read == ROWS * GROUPS
    assert report.row_groups.read == GROUPS
    pages = leaves["text"]["pages"]
    assert pages["total"] <= pages["read"] <= pages["total"] + len(batches)  # a page at each cut


def test_few_rows_far_away_are_read_by_few_requests(
    object_server: ObjectServer, small_pieces: None
) -> None:
    pytest.importorskip("obstore", reason="pip install 'pageseek[obstore]'")
    object_server.put(PATH, content())
    scan = ps.scan(
        f"s3://{PATH}", storage_options=s3_options(object_server), threads=1,
        filter=ps.col("shuffled") == 7,
    )  # fmt: skip
    plan = scan.plan()
    object_server.log.reset()
    assert pa.Table.from_batches(plan.execute())["shuffled"].to_pylist() == [7]
    # of each row group what is tested; of one the pages of six leaves
    assert len(ObjectRequests(object_server, PATH).others) <= GROUPS + 6 + 1


def test_an_index_that_proves_wrong_in_a_later_piece_is_an_error(
    tmp_path: Path, small_pieces: None
) -> None:
    path = tmp_path / "one.parquet"
    path.write_bytes(content())
    plan = ps.scan(path, threads=1, filter=CONDITIONS["other leaf"]).select("k", "text").plan()
    file = cache.open(plan.files[0].source, Report(), 1 << 30)
    assert len(list(plan.execute())) > GROUPS
    said = file.offset_indexes[1, 3]
    assert said is not None
    rows = said.first_row.copy()
    rows[said.num_pages // 2 : -1] += 3
    at, sizes = said.offset.tobytes(), said.compressed_size.tobytes()
    file.offset_indexes[1, 3] = OffsetIndex(said.num_pages, at, sizes, rows.tobytes())
    given: list[int] = []
    with pytest.raises(CorruptFileError, match=r"row group 1: .*was divided by this index"):
        given += (batch.num_rows for batch in plan.execute())
    assert ROWS * 3 // 4 < sum(given) < ROWS * GROUPS
