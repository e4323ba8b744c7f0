"""What several of the benchmarks do."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest
from pageseek._core import rows

import pageseek as ps
from pageseek.columns import Part
from pageseek.decode import LeafReader
from pageseek.fetch import Fetcher
from pageseek.report import Report
from pageseek.types import Options

Decode = Callable[[rows.RowRanges], list[pa.Array]]


@pytest.fixture(scope="session")
def decode_of() -> Callable[[bytes], Decode]:
    """Of a file of one column, what decodes selected rows of its first row group, by the page index."""

    def made(data: bytes) -> Decode:
        file = ps.open(data)
        leaf = file.leaves[0]
        offsets = file.offset_index(0, leaf)
        form = file.schema_tree.form(leaf, Options())

        def decode(selection: rows.RowRanges) -> list[pa.Array]:
            fetcher = Fetcher(file.store, Report())
            reader = LeafReader(file, 0, Part(leaf, form), fetcher, offsets)
            reader.give(fetcher.read(reader.want(selection), "data"))
            return reader.read()

        return decode

    return made
