"""Where the chunks of files lie that are read as one: each for itself, and all together."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek.format.chunks import PlacedChunks
from pageseek.scanning.many_files import joined_files
from pageseek.scanning.many_files.footer_table import AT
from pageseek.scanning.many_files.joined_files import STRIDE, JoinedFiles
from support.opened import open_metadata
from support.small_files import N, write_different

LEAVES: list[Any] = [SimpleNamespace(index=index) for index in (7, 2, 9)]


def bytes_at(start: int, size: int) -> bytes:
    """What lies somewhere in the files: each byte tells its place."""
    return bytes((start + i) * 37 % 251 for i in range(size))


def check(file: Any, numbers: Sequence[int], leaves: Sequence[Any]) -> PlacedChunks:
    """Hold chunks that are placed together against each by itself."""
    found: PlacedChunks = file.placed_chunks(numbers, leaves)
    buffers = [bytes_at(*one) for one in found.ranges]
    for i, leaf in enumerate(leaves):
        placed = [file.placed_chunk(number, leaf) for number in numbers]
        wanted = [bytes_at(start, stop - start) for _, start, stop in placed]
        assert found.cut(i, buffers) == wanted
        assert found.sizes[i] == list(map(len, wanted))
        assert found.unpacked[i] == [chunk.total_uncompressed_size for chunk, _, _ in placed]
        assert found.codecs[i] == {chunk.codec for chunk, _, _ in placed}
    return found


def of_files(places: Sequence[Sequence[tuple[int, int]]], rng: random.Random) -> JoinedFiles:
    """Files of one row group, each with three chunks at (offset, length)."""
    chunks = np.zeros((len(places), 3, len(AT)), np.int64)
    for one in chunks.reshape(-1, len(AT)):
        one[AT["total_uncompressed_size"]], one[AT["codec"]] = rng.randrange(99), rng.choice([0, 6])
    start, size = np.moveaxis(np.array(places, np.int64), 2, 0)
    start = start + np.arange(len(places))[:, None] * STRIDE
    columns = {leaf.index: i for i, leaf in enumerate(LEAVES)}
    store: Any = None
    keys = [(f"file {i}", 0) for i in range(len(places))]
    return JoinedFiles(
        "several", store, store, [1] * len(places), columns, chunks, start, size, keys
    )


@pytest.mark.parametrize(
    ("places", "ranges"),
    [
        pytest.param([(4, 10), (14, 5), (19, 2)], [(4, 17)], id="neighbours"),
        pytest.param([(14, 5), (4, 10), (19, 2)], [(4, 17)], id="in another order"),
        pytest.param([(4, 10), (15, 5), (20, 2)], [(4, 10), (15, 7)], id="a gap"),
        pytest.param([(4, 10), (13, 5), (18, 2)], [(4, 10), (13, 7)], id="overlapping"),
        pytest.param([(4, 10), (4, 10), (14, 2)], [(4, 10), (4, 12)], id="one place twice"),
        pytest.param([(4, 10), (14, 0), (14, 2)], [(4, 12)], id="no bytes"),
    ],
)
def test_neighbours_are_one_range(
    places: list[tuple[int, int]], ranges: list[tuple[int, int]]
) -> None:
    file = of_files([places, places], random.Random(1))
    further = [(start + STRIDE, size) for start, size in ranges]
    assert check(file, [0, 1], LEAVES).ranges == ranges + further
    assert check(file, [1], LEAVES).ranges == further
    check(file, [0, 1], LEAVES[1:])


def test_chunks_at_random_places() -> None:
    rng = random.Random(5)
    for _ in range(200):
        places = []
        for _ in range(rng.randint(1, 6)):
            if rng.random() < 0.6:
                at, own = 4, []
                for _ in range(3):
                    own.append((at, rng.randrange(12)))
                    at += own[-1][1] + rng.choice([0, 0, 0, 3])
                rng.shuffle(own)
            else:
                own = [(rng.randrange(4, 40), rng.randrange(12)) for _ in range(3)]
            places.append(own)
        numbers = sorted(rng.sample(range(len(places)), rng.randint(1, len(places))))
        file = of_files(places, rng)
        found = check(file, numbers, rng.sample(LEAVES, rng.randint(1, 3)))
        assert found.ranges == sorted(found.ranges, key=lambda one: one[0])


def test_chunks_of_one_file(tmp_path: Path) -> None:
    rows = pa.table({"a": range(1000), "b": [f"{i % 7}" for i in range(1000)]})
    pq.write_table(rows, tmp_path / "a.parquet", row_group_size=100)
    file = open_metadata(tmp_path / "a.parquet")
    check(file, [0, 3, 4, 9], list(file.schema_tree.leaves))


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("condition", ["number < 20", "id > 700 and city <> 'city 3'"])
def test_footers_that_were_pruned_say_what_is_parsed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, condition: str, seed: int
) -> None:
    write_different(tmp_path, seed, row_groups=(7, 20, 1000))
    chunks, compared = joined_files._Chunks, 0
    looked_at = chunks.looked_at

    def both(footers: Sequence[Any], leaves: Sequence[Any]) -> Any:
        nonlocal compared
        found = looked_at(footers, leaves)
        assert found is not None
        first = footers[0]
        places = np.array([footer.place for footer in footers], np.int64)
        row_groups = sum(footer.num_row_groups for footer in footers)
        parsed = chunks.parsed(
            first.homogeneous.schema_group, first.batch, places, row_groups, leaves, 1 << 30, 2
        )
        for name in chunks.__slots__:
            assert np.array_equal(getattr(found, name), getattr(parsed, name)), name
        compared += len(footers)
        return found

    monkeypatch.setattr(chunks, "looked_at", both)
    ps.clear_cache()
    found = ps.read_table(str(tmp_path), filter=condition)
    assert compared > N // 2
    monkeypatch.setattr(chunks, "looked_at", lambda *_: None)
    ps.clear_cache()
    assert ps.read_table(str(tmp_path), filter=condition).equals(found)
