"""Blocks of Bloom filters: which are read for some hashes, and what a file keeps of its filters between queries."""

from __future__ import annotations

import uuid
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pageseek as ps
from pageseek._core import bloom
from pageseek.base.errors import CoreError

GROUPS, ROWS = 6, 60_000


@given(
    hashes=st.lists(st.integers(0, 2**64 - 1), max_size=300),
    repeated=st.integers(0, 5),
    num_blocks=st.integers(1, 5_000),
)
def test_each_block_once_and_where_that_of_each_hash_begins(
    hashes: list[int], repeated: int, num_blocks: int
) -> None:
    hashes = hashes + hashes[:repeated]
    data = np.array(hashes, np.uint64).tobytes()
    size = num_blocks * bloom.BLOCK
    places = np.frombuffer(bloom.places(data, size), np.uint64)
    begins, at = bloom.blocks(data, size)
    assert begins == np.unique(places).tolist()
    order = np.frombuffer(at, np.uint64)
    assert (order % bloom.BLOCK == 0).all()
    assert [begins[i] for i in (order // bloom.BLOCK).tolist()] == places.tolist()


@pytest.mark.parametrize("size", [0, 31, -32, 1 << 40])
def test_a_bitset_of_no_possible_size_is_an_error(size: int) -> None:
    with pytest.raises(CoreError, match="bitset"):
        bloom.blocks(bytes(8), size)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Random texts with filters that are too large to be read whole."""
    made = tmp_path_factory.mktemp("bloom") / "texts.parquet"
    rng = np.random.default_rng(3)
    texts = [str(uuid.UUID(bytes=rng.bytes(16))) for _ in range(ROWS)]
    table = pa.table({"text": texts, "row": range(ROWS)})
    how = {"bloom_filter_options": {"text": {"ndv": ROWS // GROUPS, "fpp": 0.001}}}
    pq.write_table(table, made, row_group_size=ROWS // GROUPS, use_dictionary=False, **how)
    return made


def test_a_header_is_read_once_for_an_open_file(path: Path) -> None:
    ps.clear_cache()
    texts = pq.read_table(path)["text"]
    absent = str(uuid.UUID(int=7 << 100))
    read = []
    for text in (absent, absent, texts[ROWS // 2].as_py(), absent):
        scan = ps.scan(path, filter=ps.col("text") == text, prune=["bloom_filter"])
        report = scan.explain(analyze=True)
        assert report.rows_out == (text != absent)
        read.append(report.to_dict()["bytes"]["index"])
    blocks = GROUPS * bloom.BLOCK
    assert read[0] > blocks
    assert read[1:] == [blocks] * 3


def test_answers_are_those_of_a_full_read_with_and_without_what_is_kept(path: Path) -> None:
    texts = pq.read_table(path)["text"].to_pylist()
    rng = np.random.default_rng(5)
    for i in range(60):
        if i % 3 == 0:
            ps.clear_cache()
        asked = [texts[j] for j in rng.integers(0, ROWS, i % 5)]
        asked += [str(uuid.UUID(bytes=rng.bytes(16))) for _ in range(i % 4)]
        asked = asked or ["", texts[0]]
        condition = ps.col("text").isin(asked) if i % 2 else ps.col("text") == asked[0]
        found = ps.read_table(path, filter=condition)["row"].to_pylist()
        wanted = set(asked if i % 2 else asked[:1])
        assert found == [row for row, text in enumerate(texts) if text in wanted]
