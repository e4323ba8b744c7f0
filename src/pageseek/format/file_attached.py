"""What was attached to a file with checksums, and which of its indexes are not used.

Source: docs/format.md.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Any

from pageseek._core import metadata as core
from pageseek.base.errors import PageseekError
from pageseek.base.log import not_trusted
from pageseek.base.report import Report
from pageseek.format.checksums import ALTERED, GONE
from pageseek.format.embedded import (
    DATAFUSION_KEY,
    KEY,
    PAGE_INDEX,
    Directory,
    InvalidIndexError,
    Pointer,
    directory,
    fingerprint_of_all,
)
from pageseek.format.file_statistics import FileStatistics
from pageseek.format.schema import Leaf, lazy
from pageseek.format.value_list import KIND as LIST

ENTRY = 256  # bytes, about, of an entry of the directory that is kept


def _offset(one: Pointer) -> int:
    return one.offset


class AttachedFile(FileStatistics):
    """One file of one version with what was attached to it.

    Attributes
    ----------
    indexes : dict
        Embedded indexes, as their pruners made them.
    """

    def __init__(self, *args: Any) -> None:
        """The parameters are those of FooterFile."""
        self.indexes: dict[Any, Any] = {}
        self._ignored_indexes: dict[tuple[int | None, int | None], tuple[str, ...]] = {}
        super().__init__(*args)

    def ignore_index(
        self, row_group: int | None, leaf: Leaf | None, text: str, report: Report
    ) -> None:
        """Note why an index is not used, now and in later scans (`note_ignored_indexes`).

        `row_group` is None for an index of the whole file, `leaf` is None for one that names no column.
        """
        key = row_group, None if leaf is None else leaf.index
        known = self._ignored_indexes.get(key, ())
        if text in known:
            report.note(text)
        else:
            not_trusted(text, report)
            self._parsed += len(text)
            self._ignored_indexes[key] = (*known, text)

    def note_ignored_indexes(
        self, row_group: int | None, leaf: Leaf | None, report: Report
    ) -> None:
        """Repeat the notes of earlier scans in a report."""
        for text in self._ignored_indexes.get(
            (row_group, None if leaf is None else leaf.index), ()
        ):
            report.note(text)

    @property
    def has_ignored_indexes(self) -> bool:
        """Whether some index is not used."""
        return bool(self._ignored_indexes)

    def keep_index(self, key: Any, found: Any, nbytes: int) -> None:
        """Keep what a pruner made of an embedded index, and count its bytes; None: it cannot be trusted."""
        self._parsed += nbytes
        self.indexes[key] = found

    def _index_start(self) -> int:
        """The offset of the page index, or of attached lists of values before it."""
        start: int = super()._index_start()
        told = self.key_value_metadata.get(DATAFUSION_KEY) or b""
        at = int(told) if told.isdigit() and len(told) < 20 else -1
        if self.store.size - self.tail.nbytes <= at < self.footer_start:  # as far as it was read
            start = min(start, at)
        try:
            found = directory(self)
        except InvalidIndexError:  # using an index notes it
            return start
        lists = () if found is None else [one.offset for one in found.pointers if one.kind == LIST]
        return int(min((start, *lists)))

    @lazy
    def _summed(self) -> Directory | None:
        """The attached entries with checksums, by offset; None if there are none, or the directory is invalid."""
        if KEY not in self.key_value_metadata:
            return None
        try:
            found = directory(self)
        except InvalidIndexError:  # using an index notes it
            return None
        summed = [one for one in found.pointers if one.sums] if found is not None else []
        if found is None or not summed:
            return None
        self._parsed += ENTRY * len(summed)
        return Directory(0, tuple(sorted(summed, key=_offset)), chunks=found.chunks)

    @lazy
    def has_copied_entries(self) -> bool:
        """Whether the entries are of another file: a writer rewrote the data and copied the key-value pair."""
        if self._summed is None:
            return False
        try:
            return self._summed.chunks not in (None, fingerprint_of_all(self))
        except PageseekError:
            return False

    def attached_with_sums(self, kind: str, offset: int) -> Pointer | None:
        """The entry with checksums that covers an offset; None if there is none."""
        if self._summed is None:
            return None
        entries = self._summed.pointers
        at = bisect_right(entries, offset, key=_offset) - 1  # none reaches into the next
        one = entries[at] if at >= 0 else None
        return one if one is not None and one.kind == kind and one.holds(offset) else None

    def why_altered(self, state: int, offset: int) -> str | None:
        """Why the bytes of a page index at `offset` are not those that were attached. None if they are, or have no checksum.
        `state`: from `core.sums`.
        """
        if state == core.SUM_FITS:
            return None
        if state == core.SUM_DIFFERS:
            return ALTERED
        if self.attached_with_sums(PAGE_INDEX, offset) is None or self.has_copied_entries:
            return None
        return GONE
