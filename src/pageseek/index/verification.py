"""What a file's indexes say, held against its data: page index, Bloom filters, statistics, lists of values.

Sources: parquet.thrift (ColumnIndex, OffsetIndex, Statistics), PageIndex.md, BloomFilter.md, docs/format.md.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from pageseek._core import bloom as bloom_core
from pageseek._core import build
from pageseek._core import metadata as core
from pageseek.base.errors import CoreError, PageseekError
from pageseek.base.progress import Watch
from pageseek.base.report import Report
from pageseek.format.bounds import IEEE754_ORDER, TYPE_ORDER
from pageseek.format.checksums import ALTERED, filter_key, of_pieces, piece_of, sums_size
from pageseek.format.chunks import chunk_range
from pageseek.format.embedded import (
    BLOOM,
    PAGE_INDEX,
    Directory,
    InvalidIndexError,
    directory,
    fingerprint_of_all,
)
from pageseek.format.file_metadata import FileMetadata
from pageseek.format.page_index import int64s
from pageseek.format.schema import Leaf
from pageseek.format.types import ABSENT, K_F16, K_F32, K_F64
from pageseek.index.chunk_walk import each_chunk
from pageseek.index.page_bounds import Order
from pageseek.index.page_reader import Chunk, Page, SpansError, Values
from pageseek.index.statistics_check import shown, wrong_encodings, wrong_statistics
from pageseek.index.stored_indexes import StoredIndexes
from pageseek.index.targets import one_file
from pageseek.prune.kind import NotBuiltError

STATISTICS, PAGE_HEADERS, ENCODINGS = "statistics", "page_headers", "encoding_stats"
_FLOATS = {K_F16: np.float16, K_F32: np.float32, K_F64: np.float64}
Real = tuple[bytes, bytes, int] | None  # least, greatest, NaN of a page
PIECE = 1 << 16  # values that are looked for in a filter at a time
_ORDERS = ("unordered", "ascending", "descending")


class Finding(NamedTuple):
    """Something that an index says and the data denies. `page` is None where it is about a whole chunk, `row_group` where it is
    about the file.
    """

    kind: str
    column: str
    row_group: int | None
    page: int | None
    what: str

    def __str__(self) -> str:
        where = f"{self.kind} of {self.column!r}" if self.column else self.kind
        if self.row_group is not None:
            where += f", row group {self.row_group}"
        if self.page is not None:
            where += f", page {self.page}"
        return f"{where}: {self.what}"


@dataclass(slots=True)
class Verified:
    """`checked`: how many chunks have an index of each kind, all of which were held against the data."""

    path: str
    checked: dict[str, int] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether nothing was found."""
        return not self.findings

    def __str__(self) -> str:
        kinds = ", ".join(f"{n:,} of {kind}" for kind, n in self.checked.items()) or "nothing"
        lines = [f"{self.path}: {kinds} checked, {len(self.findings):,} wrong"]
        return "\n".join([*lines, *(f"  {one}" for one in self.findings)])


def verify(
    source: Any,
    *,
    distinct_index: str | None = None,
    threads: int | None = None,
    progress: bool | Watch = False,
    table: bool | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> Verified:
    """Read a file whole, and hold every index against what was read. `source`, `threads`, `progress`, `storage_options`: as of
    `attach`; `table`: as of `scan`.

    `distinct_index`: the column that a list in DataFusion's form is of, which its file does not say; else that of the only
    column of strings.

    Raises
    ------
    PageseekError
        The file cannot be opened. A page that cannot be read is a finding.
    UnsupportedError
        `distinct_index` is no column of strings.
    """
    one = one_file(source, storage_options, table)
    result = Verified(one.name)
    report = Report()
    with closing(FileMetadata(one, one.open(), report)) as file:
        found: Directory | None = None
        try:
            found = directory(file)
        except InvalidIndexError as error:
            result.findings.append(Finding("embedded", "", None, None, str(error)))

        def wrong(kind: str, column: str, what: str) -> None:
            result.findings.append(Finding(kind, column, None, None, what))

        if found is not None:
            if found.chunks not in (None, fingerprint_of_all(file)):
                wrong("embedded", "", "attached to other column chunks: the file was written anew")
            for kind, path, why in found.left_out:
                wrong(kind or "embedded", ".".join(path), why)
            paths = {leaf.path for leaf in file.leaves}
            for entry in found.pointers:
                if entry.leaf is not None and entry.leaf not in paths:
                    wrong(entry.kind, ".".join(entry.leaf), "the file has no such column")
        stored = StoredIndexes(file, found, distinct_index, wrong)
        chunks = [
            (group, leaf)
            for group in range(file.num_row_groups)
            for leaf in file.leaves
            if file.group_rows[group]
        ]

        def work(chunk: Chunk) -> _Checking:
            made = _Checking(file, chunk, stored)
            made.run()
            return made

        for made in each_chunk(file, chunks, work, report, threads, progress):
            result.findings += made.findings
            for kind, leaf, group, part in made.parts:
                for what in stored.take(kind, leaf, group, part):
                    result.findings.append(Finding(kind, leaf.name, group, None, what))
            for kind in made.kinds:
                result.checked[kind] = result.checked.get(kind, 0) + 1
        stored.finish()
    return result


class _Checking:
    """One chunk."""

    def __init__(self, file: FileMetadata, chunk: Chunk, stored: StoredIndexes) -> None:
        """`stored`: the embedded indexes of the file."""
        self._file, self._chunk, self._leaf = file, chunk, chunk.leaf
        self._metadata, self._stored = chunk.metadata, stored
        self.findings: list[Finding] = []
        self.kinds: list[str] = []
        self.parts: list[tuple[str, Leaf, int, Any]] = []  # what embedded kinds have returned
        self._order: Order | None = None
        if chunk.kind is not None:
            self._order = Order(self._leaf, chunk.kind, chunk.width)

    def _wrong(self, kind: str, page: int | None, what: str) -> None:
        self.findings.append(Finding(kind, self._leaf.name, self._chunk.row_group, page, what))

    def run(self) -> None:
        """Go through the pages of the chunk."""
        offsets, column, filter_ = self._offsets(), self._column(), self._filter()
        before, spans = len(self.findings), False
        try:
            try:
                pages, bounds = self._gone_through(self._chunk.pages(values=True), filter_)
            except SpansError as error:
                del self.findings[before:]
                if offsets is not None:
                    self._wrong(PAGE_INDEX, None, f"rows go on from one page to the next: {error}")
                offsets, column, spans = None, None, True
                pages, bounds = self._gone_through(self._chunk.joined(), filter_)
        except PageseekError as error:
            self._wrong("data", None, str(error))
            return
        if offsets is not None:
            self._check_offsets(offsets, pages)
        if self._chunk.tells_nulls:
            if column is not None:
                self._check_column(column[0], column[1], pages, bounds)
            self._check_statistics(pages, bounds)
        if not spans:
            for what in wrong_encodings(self._chunk, pages):
                self._wrong(ENCODINGS, None, what)

    def _gone_through(
        self, pages: Generator[Page], filter_: memoryview | None
    ) -> tuple[list[Page], list[Real]]:
        """The pages without their values, and what these are; each is looked for in the filter, and sent to the embedded
        kinds.
        """
        checks = dict(self._stored.checks(self._chunk))
        parts: dict[str, Any] = {}
        kept: list[Page] = []
        bounds: list[Real] = []
        with closing(pages):
            for page in pages:
                kept.append(page._replace(values=None))
                if page.values is None:
                    bounds.append(None)
                    continue
                bounds.append(self._order.bounds_whole(page) if self._order else None)
                if filter_ is not None:
                    self._in_filter(page, filter_)
                for kind, check in checks.items():
                    try:
                        if kind not in parts:
                            check.take(page)
                    except NotBuiltError as error:
                        parts[kind] = error
                del page  # before the next one is read
        for kind, check in checks.items():
            try:
                if kind not in parts:
                    parts[kind] = check.done()
            except NotBuiltError as error:
                parts[kind] = error
        self.kinds += parts
        self.parts = [(k, self._leaf, self._chunk.row_group, v) for k, v in parts.items()]
        return kept, bounds

    def _check_statistics(self, pages: list[Page], bounds: list[Real]) -> None:
        """Those of the chunk in the footer, and those that headers have of their pages."""
        order = self._order if self._ordered() else None
        chunk = self._chunk.metadata
        if chunk.statistics_present == 1:
            self.kinds.append(STATISTICS)
            nulls = sum(page.nulls for page in pages)
            for what in wrong_statistics(
                chunk, self._file.footer, self._leaf, order, nulls, bounds
            ):
                self._wrong(STATISTICS, None, what)
        if self._leaf.max_rep:  # nobody asks those, and writers do not agree which levels are nulls
            return
        for page, real in zip(pages, bounds, strict=True):
            if not page.head:
                continue
            if PAGE_HEADERS not in self.kinds:
                self.kinds.append(PAGE_HEADERS)
            for what in wrong_statistics(
                page.header, page.head, self._leaf, order, page.nulls, [real]
            ):
                self._wrong(PAGE_HEADERS, page.number, what)

    # -- page index -----------------------------------------------------------------------------

    def _brought(self, offset: int, length: int, kind: str, what: str) -> memoryview | None:
        if offset == ABSENT:
            return None
        self.kinds += [kind] if kind not in self.kinds else []
        if (
            length == ABSENT
            or offset < 4
            or length <= 0
            or offset + length > self._file.footer_start
        ):
            self._wrong(kind, None, f"{what} of {length} bytes at {offset} has no room in the file")
            return None
        (read,) = self._file.store.read([(offset, length)])
        data = memoryview(read)
        if kind == PAGE_INDEX:
            (state,) = core.sums([(data, *chunk_range(self._metadata))])
            why = self._file.why_altered(state, offset)
            if why is not None:
                self._wrong(kind, None, f"{what}: {why}")
        return data

    def _offsets(self) -> Any:
        m = self._metadata
        data = self._brought(
            m.offset_index_offset, m.offset_index_length, PAGE_INDEX, "an offset index"
        )
        if data is None:
            return None
        try:
            start, stop = chunk_range(m)
            return core.offset_index(data, self._chunk.num_rows, start, stop)
        except CoreError as error:
            self._wrong(PAGE_INDEX, None, f"offset index: {error.message}")
            return None

    def _column(self) -> Any:
        m = self._metadata
        data = self._brought(
            m.column_index_offset, m.column_index_length, PAGE_INDEX, "a column index"
        )
        if data is None:
            return None
        if m.offset_index_offset == ABSENT:
            self._wrong(PAGE_INDEX, None, "a column index without an offset index")
        try:
            return data, core.column_index(data)
        except CoreError as error:
            self._wrong(PAGE_INDEX, None, f"column index: {error.message}")
            return None

    def _check_offsets(self, found: Any, pages: list[Page]) -> None:
        n, offsets, sizes, rows = (
            found[0],
            *(int64s(part).tolist() if part else [] for part in found[1:4]),
        )
        if n != len(pages):
            self._wrong(
                PAGE_INDEX, None, f"{n} pages in the offset index, {len(pages)} in the chunk"
            )
        for page, offset, size, row in zip(pages, offsets, sizes, rows):  # noqa: B905
            for name, said, real in (
                ("offset", offset, page.offset), ("size", size, page.size), ("first row", row, page.first_row)
            ):  # fmt: skip
                if said != real:
                    self._wrong(PAGE_INDEX, page.number, f"{name} {said}, and it is {real}")

    def _check_column(
        self,
        data: memoryview,
        found: Any,
        pages: list[Page],
        real: list[Real],
    ) -> None:
        n, order, null_pages, *places, nulls, nans = found
        if n != len(pages):
            self._wrong(
                PAGE_INDEX, None, f"{n} pages in the column index, {len(pages)} in the chunk"
            )
            return
        lows, highs = (
            [
                bytes(data[at : at + size])
                for at, size in zip(int64s(a).tolist(), int64s(b).tolist(), strict=True)
            ]
            for a, b in (places[:2], places[2:])
        )
        null_counts = int64s(nulls).tolist() if nulls else None
        nan_counts = int64s(nans).tolist() if nans else None
        said: list[tuple[bytes, bytes]] = []
        for page, low, high, is_null, bounds in zip(
            pages, lows, highs, null_pages, real, strict=True
        ):
            empty = page.nulls == page.num_values
            if bool(is_null) != empty:
                what = (
                    "has nothing but nulls, and is not marked as a null page"
                    if empty
                    else "is marked as a null page, and has values"
                )
                self._wrong(PAGE_INDEX, page.number, what)
            if null_counts is not None and null_counts[page.number] != page.nulls:
                self._wrong(
                    PAGE_INDEX,
                    page.number,
                    f"{null_counts[page.number]} nulls, and it has {page.nulls}",
                )
            if (
                nan_counts is not None
                and bounds is not None
                and nan_counts[page.number] != bounds[2]
            ):
                self._wrong(
                    PAGE_INDEX,
                    page.number,
                    f"{nan_counts[page.number]} NaN, and it has {bounds[2]}",
                )
            if not is_null:
                self._check_bounds(PAGE_INDEX, page.number, low, high, bounds)
                said.append((low, high))
        self._check_order(order, said)

    def _ordered(self) -> bool:
        """Whether min and max are in an order that is known."""
        orders, index = self._file.orders, self._leaf.index
        if self._order is None or not self._order.known or index >= len(orders):
            return False
        return orders[index] == TYPE_ORDER or (
            orders[index] == IEEE754_ORDER and self._order.floats
        )

    def _check_bounds(
        self,
        kind: str,
        page: int | None,
        low: bytes,
        high: bytes,
        real: Real,
    ) -> None:
        if not self._ordered() or real is None or not real[0]:
            return
        assert self._order is not None
        if not (self._order.is_value(low) and self._order.is_value(high)):
            self._wrong(kind, page, "a bound is no value of the column")
            return
        if self._order.less(real[0], low):
            self._wrong(kind, page, f"least {shown(low)}, and it has {shown(real[0])}")
        if self._order.less(high, real[1]):
            self._wrong(kind, page, f"greatest {shown(high)}, and it has {shown(real[1])}")

    def _check_order(self, claimed: int, said: list[tuple[bytes, bytes]]) -> None:
        if not claimed or not self._ordered():
            return
        assert self._order is not None
        for (low, high), (next_low, next_high) in pairwise(said):
            pairs = ((low, next_low), (high, next_high))
            for one, other in pairs:
                if not (self._order.is_value(one) and self._order.is_value(other)):
                    return
                if self._order.less(other, one) if claimed == 1 else self._order.less(one, other):
                    self._wrong(
                        PAGE_INDEX, None, f"bounds are said to be {_ORDERS[claimed]}, and are not"
                    )
                    return

    # -- Bloom filter -----------------------------------------------------------------------------

    def _filter(self) -> memoryview | None:
        m = self._metadata
        if m.bloom_filter_offset == ABSENT:
            return None
        self.kinds.append(BLOOM)
        offset, end = m.bloom_filter_offset, self._file.footer_start
        if not 4 <= offset < end:
            self._wrong(BLOOM, None, f"at byte {offset}, where there is none")
            return None
        (head,) = self._file.store.read([(offset, min(256, end - offset))])
        try:
            length, size = bloom_core.header(head)
        except CoreError as error:
            self._wrong(BLOOM, None, error.message)
            return None
        if offset + length + size > end:
            self._wrong(BLOOM, None, f"its {size} bytes have no room")
            return None
        if m.bloom_filter_length not in (ABSENT, length + size):
            self._wrong(
                BLOOM,
                None,
                f"{m.bloom_filter_length} bytes by the footer, {length + size} by its header",
            )
        (data,) = self._file.store.read([(offset + length, size)])
        self._check_sums(memoryview(head)[:length], memoryview(data))
        return memoryview(data)

    def _check_sums(self, header: memoryview, bits: memoryview) -> None:
        """Of a filter that was attached with checksums."""
        at, length = self._metadata.bloom_filter_offset, header.nbytes + bits.nbytes
        entry = self._file.attached_with_sums(BLOOM, at)
        if entry is None or self._file.has_copied_entries:
            return
        try:
            piece = piece_of(entry, at, length, bits.nbytes)
        except InvalidIndexError as error:
            self._wrong(BLOOM, None, str(error))
            return
        (sums,) = self._file.store.read([(at + length, sums_size(bits.nbytes, piece))])
        key = filter_key(header, chunk_range(self._metadata)[0])
        if of_pieces(bits, key, piece) != sums:
            self._wrong(BLOOM, None, ALTERED)

    def _in_filter(self, page: Page, bits: memoryview) -> None:
        assert page.values is not None and self._chunk.kind is not None
        n = found = 0
        zeros: Values | None = None
        for piece in page.values.pieces(self._chunk.value_bytes, PIECE):
            values, those = self._asked(piece)
            zeros = those or zeros
            looked_for, there = self._found(values, bits)
            n, found = n + looked_for, found + there
        if zeros is not None:
            asked, there = self._found(zeros, bits)
            if asked and not there:
                self._wrong(BLOOM, page.number, "it has a zero, and one of neither sign is in it")
        if found < n:
            self._wrong(BLOOM, page.number, f"{n - found} of its {n} values are not in it")

    def _found(self, values: Values, bits: memoryview) -> tuple[int, int]:
        """How many values there are, and how many of them a filter has."""
        assert self._chunk.kind is not None
        try:
            hashes = build.hashes(self._chunk.kind, self._chunk.width, values)
        except CoreError:  # values that have no hash: whose filter this is, is not known
            return 0, 0
        found = bloom_core.check(bits, bloom_core.places(hashes, bits.nbytes), hashes)
        return len(hashes) // 8, found

    def _asked(self, values: Values) -> tuple[Values, Values | None]:
        """Without NaN and zeros of floats, which writers hash in ways of their own; and both zeros, if there is one: who asks
        for a zero looks for either.
        """
        kind = None if self._order is None else _FLOATS.get(self._order.kind)
        if kind is None:
            return values, None
        numbers = np.frombuffer(values.data, kind, values.n)
        valid = np.ones(values.n, bool)
        if values.validity is not None:
            bits = np.frombuffer(values.validity, np.uint8)
            valid = np.unpackbits(bits, count=values.n, bitorder="little").view(bool)
        kept = valid & (numbers == numbers) & (numbers != 0)
        zeros = None
        if (valid & (numbers == 0)).any():
            zeros = Values(2, None, None, np.array([0.0, -0.0], kind).tobytes())
        return values._replace(validity=np.packbits(kept, bitorder="little")), zeros
