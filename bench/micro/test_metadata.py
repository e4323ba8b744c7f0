"""Thrift: footer, page header, column index. Run with `pytest bench/micro`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pageseek.bench import generate

from pageseek._core import metadata as core
from pageseek.datasets.sources import open_metadata


@pytest.fixture(scope="module")
def wide(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return generate.wide_file(tmp_path_factory.mktemp("wide"), 1_000, 10)


@pytest.fixture(scope="module")
def footer(wide: Path) -> bytes:
    data = wide.read_bytes()
    length = int.from_bytes(data[-8:-4], "little")
    return data[-8 - length : -8]


@pytest.fixture(scope="module")
def lookup(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return generate.lookup_file(tmp_path_factory.mktemp("lookup"), 1_000_000, 1_000_000)


def _index(path: Path, which: str, column: str) -> bytes:
    with open_metadata(path) as file:
        at = file.index_range(which, 0, file.schema_tree.find(column))
    assert at is not None
    return path.read_bytes()[at[0] : sum(at)]


def test_footer(benchmark: Any, footer: bytes) -> None:
    benchmark.extra_info["bytes"] = len(footer)
    assert benchmark(core.footer, footer)[1] == 100


def test_open_and_bounds(benchmark: Any, wide: Path) -> None:
    def bounds() -> Any:
        with open_metadata(wide) as file:
            return file.statistics("feature_00500")

    assert len(benchmark(bounds)[0]) == 10


def test_open_and_bounds_with_pyarrow(benchmark: Any, wide: Path) -> None:
    assert benchmark(pq.read_metadata, wide).num_row_groups == 10


@pytest.mark.parametrize("column", ["key", "note"])
def test_column_index(benchmark: Any, lookup: Path, column: str) -> None:
    data = _index(lookup, "column", column)
    benchmark.extra_info["pages"] = core.column_index(data)[0]
    benchmark(core.column_index, data)


def test_offset_index(benchmark: Any, lookup: Path) -> None:
    data = _index(lookup, "offset", "note")
    benchmark(core.offset_index, data, 1_000_000, 0, 1 << 40)


def test_page_header(benchmark: Any, lookup: Path) -> None:
    with open_metadata(lookup) as file:
        offsets = file.offset_index(0, "note")
    assert offsets is not None
    start = int(offsets.offset[0])
    data = lookup.read_bytes()[start : start + int(offsets.compressed_size[0])]
    benchmark(core.page_header, data)
