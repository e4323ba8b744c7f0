"""The bytes that are written behind a file as its indexes are done, and the new footer."""

from __future__ import annotations

from collections.abc import Sequence

from pageseek._core import build as core
from pageseek.base.errors import UnsupportedError
from pageseek.format.checksums import PIECE_BYTES, with_sum
from pageseek.format.embedded import (
    BLOOM,
    MAX_DIRECTORY_BYTES,
    PAGE_INDEX,
    Directory,
    Pointer,
    fingerprint_of_all,
    merged,
)
from pageseek.format.file_metadata import FileMetadata
from pageseek.format.footer_form import KIND as FOOTER
from pageseek.format.schema import Leaf
from pageseek.format.types import ABSENT
from pageseek.index.attached import Attached
from pageseek.index.build import BuiltIndexes, IndexSpec
from pageseek.index.footer_edit import BLOOM_PLACE, COLUMN_PLACE, OFFSET_PLACE, FooterEdit
from pageseek.index.footer_index import footer_pointer, write_footer
from pageseek.index.local_target import Target
from pageseek.index.page_index_builder import PageIndex
from pageseek.index.payloads import Payloads, footer_key


class AppendedIndexes:
    """The bytes behind the old ones, as chunk after chunk is done."""

    def __init__(
        self,
        file: FileMetadata,
        target: Target,
        before: Directory | None,
        specs: Sequence[IndexSpec],
        order_given: bool,
        replace: bool,
        footer: bool,
    ) -> None:
        """`before`: what the file lists. `order_given`: the footer gets column orders. `replace`: as of `attach`. `footer`: the
        footer gets an index, which it has anyway where it had one.
        """
        self._file, self._target, self._before = file, target, before
        self._order_given, self._replace, self._footer = order_given, replace, footer
        self._edit, self._payloads = FooterEdit(file), Payloads(file, specs)
        self._page_indexes: list[tuple[int, Leaf, PageIndex]] = []
        self._filters = (
            0  # bytes of Bloom filters with their checksums, which lie one behind the other
        )
        self.result = Attached(target.path, file.store.size, 0)

    def take(self, made: BuiltIndexes) -> None:
        """Write the Bloom filter of a chunk, and keep what cannot be written yet. Chunks come in the order of the file."""
        group, leaf, pages = made.row_group, made.leaf, made.page_index
        if made.bloom is not None:
            at = self._target.write(made.bloom)
            self._edit.place(group, leaf, BLOOM_PLACE, at, len(made.bloom))
            self._target.write(made.bloom_sums)
            self._filters += self._target.size - at
            self.result._count(BLOOM, leaf.name, 1)
        for name, part in made.parts.items():
            self._payloads.add(name, leaf, group, part)
        if pages is not None:
            self._keep_offsets(group, leaf, pages)
            self._page_indexes.append((group, leaf, pages))
            for why in pages.why_not:
                part = "column index" if pages.offsets is not None else "page index"
                self.result.skipped.append(f"{part} of {leaf.name!r}, row group {group}: {why}")
            if pages.offsets is not None or pages.column is not None:
                self.result._count(PAGE_INDEX, leaf.name, 1)

    def _keep_offsets(self, group: int, leaf: Leaf, made: PageIndex) -> None:
        """An offset index that the writer left stays, if it is that of the pages."""
        if self._replace or self._file.chunk(group, leaf).offset_index_offset == ABSENT:
            return
        known, new = self._file.offset_index(group, leaf), made.offsets
        made.offsets = None
        if new is None or made.column is None:
            made.column = None
            return
        if known is not None:
            first_rows = known.first_row[:-1].copy()
            if core.offset_index(known.offset, known.compressed_size, first_rows) == new:
                return
        made.column = None
        made.why_not.append("the offset index that it has does not fit its pages; say replace=True")

    def finish(self) -> None:
        """Write what is known only when all chunks are done: page indexes, payloads, footer. Payloads lie next to the footer,
        since a read of the tail then brings them too.
        """
        file, before, target = self._file, self._before, self._target
        regions = []
        if self._filters:
            start = target.size - self._filters
            regions.append(Pointer(BLOOM, 1, start, self._filters, sums=PIECE_BYTES))
        start = target.size
        self._write_page_indexes()
        if target.size > start:
            regions.append(Pointer(PAGE_INDEX, 1, start, target.size - start, sums=True))
        payloads = self._payloads.write(target, self.result)
        new = {(one.kind, one.leaf) for one in payloads}
        alone = {one.kind for one in payloads if footer_key(one.kind) is not None}  # one per file
        kept = [
            one.freed() if (one.kind, one.leaf) in new or one.kind in alone | {FOOTER} else one
            for one in (() if before is None else before.pointers)
        ]
        found = Directory(
            file.footer_start if before is None else before.base,
            tuple(merged([*kept, *regions, *payloads])),
            self._order_given or (before is not None and before.orders),
            fingerprint_of_all(file),
        )
        told = found.to_value()
        if len(told) > MAX_DIRECTORY_BYTES:
            raise UnsupportedError(
                f"{file.name}: to say where {len(found.pointers):,} indexes lie takes {len(told):,} bytes of the footer, more than "
                f"the {MAX_DIRECTORY_BYTES:,} that are read; list the values of fewer columns"
            )
        for key, at in self._payloads.keys.items():
            self._edit.set_key(key, b"%d" % at)
        orders = file.num_leaves if self._order_given else 0
        had = footer_pointer(before) is not None
        why = write_footer(file, self._edit, found, target, orders, self._footer or had)
        if why is not None:
            self.result.skipped.append(why)
        elif self._footer:
            self.result._count(FOOTER, "", file.num_row_groups)
        self.result.bytes_after = target.size

    def _write_page_indexes(self) -> None:
        """All ColumnIndexes, then all OffsetIndexes, as writers lay them; each with its checksum."""
        for group, leaf, made in self._page_indexes:
            if made.column is not None:
                self._write_page_index(group, leaf, COLUMN_PLACE, made.column)
            elif made.offsets is not None:  # an old one may not fit the new offset index
                self._edit.remove(group, leaf, COLUMN_PLACE)
        for group, leaf, made in self._page_indexes:
            if made.offsets is not None:
                self._write_page_index(group, leaf, OFFSET_PLACE, made.offsets)

    def _write_page_index(self, group: int, leaf: Leaf, which: int, made: bytes) -> None:
        _, start, _ = self._file.placed_chunk(group, leaf)
        made = with_sum(made, start)
        self._edit.place(group, leaf, which, self._target.write(made), len(made))
