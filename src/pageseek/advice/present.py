"""Which indexes the files have already, and how large others would be."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from pageseek.advice.column_facts import ColumnFacts
from pageseek.advice.estimates import (
    BITMAP,
    BLOOM,
    BLOOM_RATE,
    DISTINCT,
    FILE_BLOOM,
    FOOTER,
    KEY,
    LOOKUP,
    PAGE_INDEX,
    Change,
)
from pageseek.advice.layout import Layout, likely_index_bytes, spread
from pageseek.base.report import Report
from pageseek.datasets.file_cache import cache
from pageseek.format import file_bloom_form, lookup_form
from pageseek.format.chunks import declared_pages
from pageseek.format.embedded import InvalidIndexError, directory
from pageseek.format.file_metadata import FileMetadata
from pageseek.format.page_headers import likely_pages
from pageseek.format.types import ABSENT
from pageseek.index.bloom_builder import blocks_for
from pageseek.storage import Source

BLOOM_BLOCK = 32  # bytes
FILE_BLOOM_RATE = 0.01
OWN = 0.05  # different values a run, from which on further runs have further values
MOST_LOOKED_AT = 16  # files whose footers tell what there is


@dataclass(slots=True)
class Present:
    """What the files have.

    Attributes
    ----------
    kinds : set of (kind, column)
        Indexes that all files have, of those that were looked at.
    no_page_index : list of str
        Leaves that lack a page index somewhere.
    num_rows, num_files, num_groups : int
        Of the whole source.
    page_index_bytes : float
        Of the page indexes that are missing.
    """

    kinds: set[tuple[str, str]] = field(default_factory=set)
    no_page_index: list[str] = field(default_factory=list)
    num_rows: int = 0
    num_files: int = 0
    num_groups: int = 0
    page_index_bytes: float = 0.0

    def has(self, kind: str, column: str) -> bool:
        """Whether all files have an index of a column."""
        return (kind, column) in self.kinds

    def has_key(self, columns: Sequence[str]) -> bool:
        """Whether all files have a lookup index of several columns together, in any order."""
        return self.has(KEY, _key(columns))

    def distinct(self, facts: ColumnFacts | None, layout: Layout) -> float:
        """About the different values of a column in all rows. The facts are of the rows that planning left: where nearly each
        run of them has a value of its own, so have the others. Without facts, every row has.
        """
        if facts is None:
            return float(self.num_rows)
        share = facts.distinct / max(layout.num_rows, 1)
        return share * self.num_rows if share > OWN / facts.run else facts.distinct

    def filter_bytes(self, kind: str, facts: ColumnFacts | None, layout: Layout) -> int:
        """About the bytes of the Bloom filter of a column chunk (BLOOM), or of a whole file (FILE_BLOOM)."""
        distinct = self.distinct(facts, layout)
        if kind == BLOOM:
            run = 1.0 if facts is None else facts.run
            n = min(distinct, self.num_rows / max(self.num_groups, 1) / run)
            return int(blocks_for(max(int(n), 1), BLOOM_RATE) * BLOOM_BLOCK)
        n = min(distinct, self.num_rows / max(self.num_files, 1))
        return int(file_bloom_form.body_bytes(blocks_for(max(int(n), 1), FILE_BLOOM_RATE)))

    def adds(self, change: Change, facts: ColumnFacts | None, layout: Layout) -> int:
        """About the bytes that an attached index adds to all files."""
        if change.kind == PAGE_INDEX:
            return int(self.page_index_bytes)
        groups = max(self.num_groups, 1)
        distinct = self.distinct(facts, layout)
        size = 0.0
        if change.kind in (LOOKUP, KEY):
            n = max(self.num_rows // max(self.num_files, 1), 1)
            block = int(lookup_form.block_size(lookup_form.ENTRIES, lookup_form.row_bits_of(n)))
            size = self.num_files * (
                lookup_form.directory_bytes(n) + lookup_form.num_blocks(n) * block
            )
        elif change.kind == BITMAP:
            size = min(2.0, distinct / 8) * self.num_rows
        elif change.kind == BLOOM:
            size = groups * self.filter_bytes(BLOOM, facts, layout)
        elif change.kind == FILE_BLOOM:
            size = self.num_files * self.filter_bytes(FILE_BLOOM, facts, layout)
        elif change.kind == DISTINCT:
            width = 12 if facts is None else facts.value_bytes
            size = self.num_files * distinct * width + groups * distinct / 8
        if change.kind != PAGE_INDEX and self.no_page_index:
            size += self.page_index_bytes  # `attach` adds it as well
        return int(size)


def present_in(sources: Sequence[Source], report: Report) -> Present:
    """What some of the files have, by their footers."""
    made = Present(num_files=len(sources))
    found: list[set[tuple[str, str]]] = []
    lacking: dict[str, None] = {}
    chosen = spread(len(sources), MOST_LOOKED_AT)
    for i in chosen:
        file = cache.open(sources[i], report)
        made.num_rows += file.num_rows
        made.num_groups += file.num_row_groups
        found.append(_kinds(file, lacking, made, report))
    scale = len(sources) / max(len(chosen), 1)
    made.num_rows, made.num_groups = int(made.num_rows * scale), int(made.num_groups * scale)
    made.page_index_bytes *= scale
    made.kinds = set.intersection(*found) if found else set()
    made.no_page_index = list(lacking)
    return made


def _kinds(
    file: FileMetadata, lacking: dict[str, None], made: Present, report: Report
) -> set[tuple[str, str]]:
    kinds: set[tuple[str, str]] = set()
    for leaf in file.leaves:
        chunks = [chunk for chunk, n in zip(file.chunks(leaf), file.group_rows, strict=True) if n]
        if chunks and all(chunk.bloom_filter_offset != ABSENT for chunk in chunks):
            kinds.add((BLOOM, leaf.name))
        without = [one for one in chunks if one.offset_index_offset in (ABSENT, 0)]
        if without:
            lacking[leaf.name] = None
            for chunk in without:
                pages = declared_pages(chunk) or max(round(likely_pages(chunk)), 1)
                made.page_index_bytes += sum(likely_index_bytes(pages, leaf))
        elif chunks:
            kinds.add((PAGE_INDEX, leaf.name))
    with suppress(InvalidIndexError):
        there = directory(file)
        for one in there.pointers if there is not None else ():
            if one.kind == FOOTER:
                kinds.add((FOOTER, ""))
            if one.leaf is not None:
                name = _key(one.leaf) if one.kind == KEY else ".".join(one.leaf)
                kinds.add((one.kind, name))
    return kinds


def _key(columns: Sequence[str]) -> str:
    return ", ".join(sorted(columns))
