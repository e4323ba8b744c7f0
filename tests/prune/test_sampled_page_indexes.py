"""A page index that proves nothing for sampled row groups is not read for the others; if few rows pass, its offsets are still used."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import pageseek as ps
from support.opened import open_metadata
from support.store_log import Log

GROUPS, ROWS = 64, 2_000


def made(path: Path, rows_per_page: int) -> tuple[str, pa.Table]:
    random = np.random.default_rng(11)
    n = GROUPS * ROWS
    table = pa.table(
        {
            "a": random.integers(0, 1_000_000, n),
            "sorted": np.arange(n),
            "text": np.char.mod("%032d", random.integers(0, 1 << 60, n)),
        }
    )
    pq.write_table(
        table, path, row_group_size=ROWS, max_rows_per_page=rows_per_page, write_page_index=True,
        use_dictionary=False, write_batch_size=50,
    )  # fmt: skip
    return str(path), table


def index_places(path: str, leaf: str) -> list[tuple[int, int]]:
    """The places of the column and offset indexes of a leaf, in every row group."""
    with open_metadata(path) as file:
        place = next(one for one in file.leaves if one.name == leaf)
        return [
            at
            for which in ("column", "offset")
            for group in range(GROUPS)
            if (at := file.index_range(which, group, place)) is not None
        ]


def test_an_index_in_vain_is_given_up(tmp_path: Path, log: Log) -> None:
    path, _ = made(tmp_path / "a.parquet", 100)
    places = index_places(path, "a")
    assert len(places) == 2 * GROUPS
    ps.clear_cache()
    log.clear()
    found = ps.read_table(path, ["a"], ps.col("a") < 900_000)
    assert 0 < len(log.required_leaves(places)) <= 2 * 8
    assert found == ps.read_table(path, ["a"], ps.col("a") < 900_000, prune=False)
    log.clear()
    ps.clear_cache()
    ps.read_table(path, ["a"], ps.col("sorted") < 100)
    assert len(log.required_leaves(places)) <= 2


def test_few_rows_are_read_by_the_places_of_their_pages(tmp_path: Path, log: Log) -> None:
    path, table = made(tmp_path / "a.parquet", 100)
    asked = ps.col("a") < 300  # some 40 rows, whose bounds are those of every page
    ps.clear_cache()
    log.clear()
    found = ps.read_table(path, filter=asked)
    assert found.num_rows == int(np.count_nonzero(table["a"].to_numpy() < 300)) > 10
    pruned = sum(length for _, length in log.ranges)
    log.clear()
    ps.read_table(path, filter=asked, prune=False)
    whole = sum(length for _, length in log.ranges)
    assert pruned < whole / 2


def test_the_index_of_a_single_page_is_not_read(tmp_path: Path, log: Log) -> None:
    path, _ = made(tmp_path / "one.parquet", ROWS)
    places: dict[str, Any] = {leaf: index_places(path, leaf) for leaf in ("a", "text")}
    for asked in (ps.col("a") < 900_000, ps.col("a") < 3, ps.col("a").is_not_null()):
        ps.clear_cache()
        log.clear()
        found = ps.read_table(path, filter=asked)
        assert found == ps.read_table(path, filter=asked, prune=False)
        assert not log.required_leaves(places["a"])
        assert not log.required_leaves(places["text"])
    # without the statistics of the footer, the bounds of the page are something new
    ps.clear_cache()
    log.clear()
    ps.read_table(path, filter=ps.col("a") < 3, prune=["column_index"])
    assert log.required_leaves(places["a"])
