"""The distinct values of a chunk, collected from pages of any size."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek.index import distinct_builder as distinct
from pageseek.index.distinct_builder import DistinctBuilder, FileValues, GroupValues
from pageseek.index.page_reader import Chunk
from support.opened import open_metadata
from support.tiers import rounds

ROWS = rounds(20_000)


def gathered(path: Path, **limits: int) -> dict[str, GroupValues]:
    """The distinct values of the first row group, by column."""
    found = {}
    with open_metadata(path) as file:

        def read(offset: int, length: int) -> memoryview:
            return memoryview(file.store.read([(offset, length)])[0])

        for leaf in file.leaves:
            chunk = Chunk(file, 0, leaf, read)
            builder = DistinctBuilder(chunk, **limits)
            for page in chunk.pages(values=True):
                builder.take(page)
            found[leaf.name] = builder.done()
    return found


def table() -> pa.Table:
    random = np.random.default_rng(5)
    late = np.round(random.normal(size=ROWS), 2)
    late[-1] = np.nan  # it comes when most is known
    holes = np.zeros(ROWS, bool)
    holes[7] = True
    return pa.table(
        {
            "number": pa.array(random.integers(0, 3_000, ROWS), mask=holes),
            "text": [f"name-{i}" for i in random.integers(0, 5_000, ROWS)],
            "empty": [""] * ROWS,
            "code": pa.array([b"%04d" % i for i in random.integers(0, 999, ROWS)], pa.binary(4)),
            "flag": random.random(ROWS) < 0.5,
            "real": late,
            "half": late.astype(np.float16),
            "none": pa.nulls(ROWS, pa.int32()),
        }
    )


@pytest.mark.parametrize("page", [11, ROWS])
@pytest.mark.parametrize("batch", [1, 3_000, 1 << 16])
def test_they_are_those_of_the_column(
    tmp_path: Path, page: int, batch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, path = table(), tmp_path / "x.parquet"
    pq.write_table(data, path, max_rows_per_page=page, write_batch_size=page, use_dictionary=["text"])  # fmt: skip
    monkeypatch.setattr(distinct, "BATCH", batch)
    for name, found in gathered(path).items():
        column = data[name]
        wanted: set[Any] = set(column.drop_null().to_pylist())
        assert found.nans == any(value != value for value in wanted), name
        assert found.nulls == (column.null_count > 0)
        assert found.values is not None
        values = found.values.to_pylist()
        if name == "half":
            values = np.frombuffer(b"".join(values), np.float16).tolist()
        elif pa.types.is_string(column.type):
            values = [value.decode() for value in values]
        assert len(values) == len(set(map(repr, values))), name  # zeros have two signs
        assert set(values) == {value for value in wanted if value == value}, name


@pytest.mark.parametrize("page", [10, ROWS])
def test_too_many_are_given_up(tmp_path: Path, page: int) -> None:
    path = tmp_path / "x.parquet"
    data = pa.table({"n": np.arange(ROWS) % 500, "t": [f"{i % 500:0100d}" for i in range(ROWS)]})
    pq.write_table(data, path, max_rows_per_page=page, write_batch_size=page)
    for limits, given_up in (
        ({"most": 500}, set()), ({"most": 499}, {"n", "t"}), ({"largest": 500 * 8}, {"t"}), ({"largest": 100}, {"n", "t"}),
    ):  # fmt: skip
        found = gathered(path, **limits)
        assert {name for name, of in found.items() if of.values is None} == given_up


@pytest.mark.timed
def test_many_small_pages_cost_little_more_than_their_number(tmp_path: Path) -> None:
    """Known values are not compared again for each page."""
    path = tmp_path / "x.parquet"
    texts = pa.array([f"{'w' * 30}{i:08d}" for i in np.random.default_rng(2).permutation(160_000) % 40_000])  # fmt: skip
    pq.write_table(pa.table({"t": texts}), path, max_rows_per_page=40, write_batch_size=40, use_dictionary=False)  # fmt: skip

    def cost(**what: Any) -> float:
        begun = time.process_time()
        made = ps.index.attach(path, **what, output=tmp_path / "out", overwrite=True, threads=1)
        assert sum(made.added.values()) == 1
        return time.process_time() - begun

    cost(page_index=True)  # what has to be imported is
    assert cost(page_index=False, distinct=["t"]) < 12 * cost(page_index=True) + 0.1


def put_together(
    path: Path, groups: list[list[int] | None], **limits: int
) -> tuple[FileValues, list[int]]:
    """Those of row groups of a file of one column of numbers, with what was held after each."""
    pq.write_table(pa.table({"n": pa.array([], pa.int64())}), path)
    with open_metadata(path) as file:
        made, held = FileValues(file.leaves[0], len(groups), **limits), []
    for i, values in enumerate(groups):
        made.take(
            i,
            GroupValues(
                None if values is None else pa.array(values, pa.int64()), i % 2 == 1, i % 3 == 0
            ),
        )
        held.append(made.nbytes)
    return made, held


@pytest.mark.parametrize("largest", [100, 130, 1 << 20])
def test_each_row_group_has_its_values(tmp_path: Path, largest: int) -> None:
    """They come in any order, and with bits of each row group where these have room."""
    groups = [[5, 3], None, [], [3, 9, -1], [5, 3], [8, 7, 6, 2, 1, 0, -1]]
    found = put_together(tmp_path / "x.parquet", groups, largest=largest)[0]
    assert found.complete == 5 and found.values() is None
    made = found.index()
    assert made is not None
    wanted = sorted({value for group in groups for value in group or ()})
    assert np.frombuffer(made.values, np.int64).tolist() == wanted
    assert made.flags.tolist() == [5, 2, 1, 7, 1, 3]
    assert made.has is not None
    for group, bits in zip(groups, made.has, strict=True):
        member = np.unpackbits(bits, count=made.n, bitorder="little").astype(bool)
        assert np.array(wanted)[member].tolist() == sorted(group or [])


def test_bits_that_have_no_room(tmp_path: Path) -> None:
    groups: list[list[int] | None] = [[i % 17] for i in range(100)]
    for largest, there in ((299, False), (300, True)):
        made = put_together(tmp_path / "x.parquet", groups, largest=largest)[0].index()
        assert made is not None and made.n == 17
        assert (made.has is not None) is there


def test_many_row_groups_take_little_memory(tmp_path: Path) -> None:
    """Memory is bounded by the index, for any number of row groups, and is freed if there will be no index."""
    most, largest = 1_000, 16_000
    same, apart = list(range(900)), [list(range(i * 900, (i + 1) * 900)) for i in range(50)]
    made, held = put_together(tmp_path / "x.parquet", [same] * 50, most=most, largest=largest)
    index = made.index()
    assert index is not None and index.has is not None
    assert max(held) < 2 * len(index.to_bytes())
    made, held = put_together(tmp_path / "x.parquet", [*apart], most=most, largest=largest)
    assert made.index() is None and made.values() is None
    assert held[0] > 0 and not any(held[1:])
    made, held = put_together(tmp_path / "x.parquet", [same] * 400, most=most, largest=largest)
    index = made.index()
    assert index is not None and index.has is None
    assert max(held) < 900 * 8 + distinct.HELD
