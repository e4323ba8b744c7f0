"""A cold lookup by a lookup index: few requests in sequence, one page a column, few bytes a row, few false candidates."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek._core import hash_blocks
from pageseek._core.bloom import xxh64
from pageseek.format import lookup_form
from support.object_server.server import ObjectServer

ROWS = 60_000
WAIT = 0.08  # seconds that the server delays each request: concurrent requests overlap


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """Different texts without order, in four row groups; and the texts."""
    rng = np.random.default_rng(1)
    keys = [f"{number:032x}" for number in rng.integers(0, 1 << 62, ROWS).tolist()]
    table = pa.table({"key": keys, "number": rng.integers(0, 1 << 40, ROWS), "real": rng.random(ROWS)})  # fmt: skip
    path = tmp_path_factory.mktemp("cold") / "a.parquet"
    pq.write_table(table, path, row_group_size=ROWS // 4, data_page_size=20_000, use_dictionary=False)  # fmt: skip
    before = path.stat().st_size
    ps.index.attach(path, page_index=True, in_place=True)
    with_pages = path.stat().st_size
    ps.index.attach(path, lookup=["key"], in_place=True)
    assert before < with_pages < path.stat().st_size < with_pages + 5 * ROWS
    return path, keys


@pytest.mark.timed
@pytest.mark.parametrize("row", [0, ROWS // 2 + 7, ROWS - 1])
def test_four_requests_in_sequence_and_one_page_a_column(
    file: tuple[Path, list[str]], object_server: ObjectServer, row: int
) -> None:
    path, keys = file
    object_server.put("/a.parquet", path.read_bytes())
    object_server.latency = WAIT
    ps.clear_cache()
    scan = ps.scan(object_server.url("/a.parquet"), filter=ps.col("key") == keys[row])
    report = scan.explain(analyze=True).to_dict()
    assert {name: one["pages"]["read"] for name, one in report["leaves"].items()} == dict.fromkeys(("key", "number", "real"), 1)  # fmt: skip
    assert object_server.log.waves() <= 4
    assert scan.to_table()["key"].to_pylist() == [keys[row]]


def test_false_candidates_are_fewer_than_one_in_200_probes() -> None:
    rng, n, probes = np.random.default_rng(2), lookup_form.ENTRIES, 200_000
    hashes = rng.integers(0, 1 << 63, n, dtype=np.uint64)
    data = lookup_form.block_bytes(hashes, rng.permutation(1 << 20)[:n], 20)
    others = np.setdiff1d(rng.integers(0, 1 << 63, probes, dtype=np.uint64), hashes)
    block = data, n, xxh64(data) & 0xFFFFFFFF, len(others)
    found = np.frombuffer(hash_blocks.find([block], others, 20, 1 << 20), np.int64)
    assert 0 < len(found) < probes / 200
