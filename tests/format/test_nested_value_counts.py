"""Pages of lists that declare more values than their chunk: runs of levels take no bytes, so the footer bounds them."""

from __future__ import annotations

import itertools
import resource
import struct
import time
from typing import Any

import pyarrow as pa
import pytest

import pageseek as ps
from support.nested_pages import Layout, LeafPages, file_of
from support.writer import I32, RLE, Struct

KIND = pa.list_(pa.int32())
SCHEMA = pa.schema([pa.field("id", pa.int64(), False), pa.field("c", KIND)])
ROWS: list[Any] = [[1, 2], None, [], [3, None], [4], [5, 6, 7]]
TABLE = pa.table({"id": range(len(ROWS)), "c": ROWS}, schema=SCHEMA)
HUGE = 2**31 - 1


def run_of(level: int, count: int) -> bytes:
    """A run of the hybrid encoding (Encodings.md) of levels of at most 8 bits."""
    made, header = bytearray(), count << 1
    while header > 127:
        made.append(header & 127 | 128)
        header >>= 7
    return bytes([*made, header, level])


@pytest.fixture(params=[1, 2])
def claiming(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Make a file whose last page of the list has this many null rows, or elements of its last row."""
    plain_page = LeafPages._data_page

    def made(count: int, rep: int, cut: int, **layout: Any) -> bytes:
        def lying(self: LeafPages, number: int, reps: Any, defs: Any, values: Any) -> bytes:
            if self.part.leaf.index == 0 or number == 0:
                return plain_page(self, number, reps, defs, values)
            levels = run_of(rep, count), run_of(self.part.leaf.max_def - 1, count)
            if request.param == 1:
                body = b"".join(struct.pack("<I", len(run)) + run for run in levels)
                header: Struct = {1: I32(count), 2: I32(0), 3: I32(RLE), 4: I32(RLE)}
                return self._page({1: I32(0), 5: header}, b"", body)
            sizes = [I32(len(run)) for run in reversed(levels)]
            header = {1: I32(count), 2: I32(count), 3: I32(1), 4: I32(0), 5: sizes[0], 6: sizes[1]}
            return self._page({1: I32(3), 8: header | {7: False}}, b"".join(levels), b"")

        monkeypatch.setattr(LeafPages, "_data_page", lying)
        return file_of(
            SCHEMA, TABLE.to_pydict(), (Layout(), Layout((cut,), request.param, **layout))
        )

    return made


@pytest.mark.timed
@pytest.mark.parametrize("rep", [0, 1])
@pytest.mark.parametrize("indexed", [True, False])
def test_a_page_of_more_values_than_its_chunk(claiming: Any, indexed: bool, rep: int) -> None:
    data = claiming(HUGE, rep, 7, offset_index=indexed)
    before, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.monotonic()
    for condition, column in itertools.product((None, ps.col("id") == 5), ("c", "id")):
        if column == "id" and condition is None:
            continue
        with pytest.raises(ps.CorruptFileError) as raised:
            ps.read_table(data, columns=["c"], filter=condition)
        assert "column 'c.list.element', row group 0, page 1 at byte" in str(raised.value)
        assert f"claims {HUGE} values, the footer gives its whole chunk 10" in str(raised.value)
        assert "without this column" in str(raised.value)
    with pytest.raises(ps.CorruptFileError, match="claims"):
        ps.read_table(data, filter=ps.col("c").is_null())
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 200 * 1024  # KiB
    assert time.monotonic() - start < 5


def test_pages_that_together_have_more_values_than_their_chunk(claiming: Any) -> None:
    data = claiming(9, 1, 7, offset_index=False)
    with pytest.raises(ps.CorruptFileError, match=r"page 1 at byte \d+: .* 16, .* chunk 10"):
        ps.read_table(data)


def test_a_page_of_as_many_values_as_are_left(claiming: Any) -> None:
    """The page with the true count."""
    data = claiming(2, 1, 8, offset_index=False)
    assert ps.read_table(data)["c"].to_pylist() == [*ROWS[:5], [5, None, None]]
