"""Lists in the form of DataFusion's example (prune/datafusion_list.py) of many similar files."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from pageseek._core.bloom import xxh64
from pageseek.base.errors import PageseekError
from pageseek.format.chunks import sound_chunks
from pageseek.format.embedded import (
    DATAFUSION_KEY,
    KEY,
    InvalidIndexError,
    Pointer,
    directory_of,
    types_of,
)
from pageseek.format.schema import Leaf
from pageseek.predicate.bound import BoundLeaf
from pageseek.prune.datafusion_list import (
    FIRST_READ_BYTES,
    KIND,
    LIST_HEAD_BYTES,
    Listed,
    asked_of,
    denies,
    length_of,
    may_deny,
    only_text,
    place_of,
)
from pageseek.scanning.many_files.batched_lists import ColumnLists, ListAnswer, ListReader
from pageseek.scanning.many_files.footer_table import AT


class DatafusionLists(ColumnLists):
    """For each file its list of the column, or None."""

    footer_key = DATAFUSION_KEY

    def __init__(self, reader: ListReader) -> None:
        table = reader.table
        self._counts_of_groups = table.n
        self._lists: list[Listed | None] = [None] * len(table.members)
        self.unusable = table.has(DATAFUSION_KEY)
        try:
            files = _Files(reader)
            declared = _declared_values(reader)
        except (PageseekError, pa.ArrowException):  # each file says what is wrong as it is opened
            return
        for k in np.flatnonzero(self.unusable).tolist():
            try:
                listed = files.read_list(k)
            except (InvalidIndexError, OSError):
                continue
            if listed is not None:
                first = table.first.item(k)
                texts = declared[first : first + table.n.item(k)]
                lines = {line for some in texts for text in some for line in text.split(b"\n")}
                if lines and listed.missing(lines):  # it is not of this column
                    continue
                self._lists[k] = listed
                table.hold(listed.nbytes)
            self.unusable[k] = False

    @staticmethod
    def takes(test: BoundLeaf) -> bool:
        """Whether a list may rule out rows for a test."""
        return may_deny(test)

    def evaluate(self, test: BoundLeaf) -> ListAnswer | None:
        """The files of which no row passes a test."""
        asked = asked_of(test)
        denied = np.array(
            [one is not None and denies(test, asked, one) for one in self._lists], np.bool_
        )
        if not denied.any():
            return None
        may = np.repeat(~denied, self._counts_of_groups)
        return ListAnswer(may.tobytes(), bytes(len(may)), None)


class _Files:
    """The files whose lists are read."""

    def __init__(self, reader: ListReader) -> None:
        """PageseekError: the file has no such column as the caller names."""
        self._reader, leaf, table = reader, reader.leaf, reader.table
        stops = np.repeat(table.sizes, table.n)
        sound = sound_chunks(reader.chunks, leaf.element.type, leaf.max_rep > 0, table.rows, stops)
        # where the list of a file begins at the earliest: nowhere if a chunk makes no sense
        self._least = np.where(sound.sound, sound.start + sound.size, np.iinfo(np.int64).max)
        self._footers = reader.batch.spans(table.members)[:, 3].tolist()  # where they begin
        tree = reader.schema_group.tree
        named = reader.schema_group.bound_request.request.distinct_index
        self._named = None if named is None else tree.find(named)
        self._usual: Leaf | None = only_text(tree.leaves) if named is None else self._named

    def read_list(self, k: int) -> Listed | None:
        """The list of a file; None if it is of another column."""
        reader, table, stop = self._reader, self._reader.table, self._footers[k]
        first, n = table.first.item(k), table.n.item(k)
        offset = place_of(bytes(table.value(k, DATAFUSION_KEY) or b""), stop)
        entry = self._entry(k, offset)
        if entry is None:
            if self._usual is None:
                raise InvalidIndexError("it does not say whose values it has")
            if self._usual.index != reader.leaf.index:
                return None
        elif (entry.physical, entry.logical) != types_of(reader.leaf):
            raise InvalidIndexError("it was built for another type")
        if n and self._least[first : first + n].max() > offset:
            raise InvalidIndexError("pages lie behind it")
        room = stop - offset
        head = reader.read(k, offset, min(FIRST_READ_BYTES, room))
        length = length_of(head, room)
        data = head[LIST_HEAD_BYTES : LIST_HEAD_BYTES + length]
        if data.nbytes < length:
            data = reader.read(k, offset + LIST_HEAD_BYTES, length)
        if entry is not None:
            whole = bytes(head[:LIST_HEAD_BYTES]) + bytes(data)
            found = len(whole), xxh64(whole), xxh64(reader.figures_of(k))
            if found != (entry.length, entry.checksum, entry.chunks):
                raise InvalidIndexError("it is not what was attached")
        return Listed(data)

    def _entry(self, k: int, offset: int) -> Pointer | None:
        """The entry of the list, if pageseek attached it. InvalidIndexError: it is of another column than this one, or than the
        caller names.
        """
        leaf, value = self._reader.leaf, self._reader.table.value(k, KEY)
        if value is None:
            return None
        try:
            found = directory_of(value, self._footers[k], KIND)
        except InvalidIndexError:
            return None
        for one in found.pointers:
            if one.leaf is not None and one.offset == offset:
                if one.leaf != leaf.path or self._named not in (None, leaf):
                    raise InvalidIndexError("it was attached for another column")
                return one
        return None


def _declared_values(reader: ListReader) -> list[tuple[bytes, ...]]:
    """For each row group the values that its statistics name exactly."""
    table, chunks = reader.table, reader.chunks
    made: list[tuple[bytes, ...]] = [()] * len(table.counts)
    bounds = table.bounds(reader.schema_group, reader.leaf)
    if bounds is None:
        return made
    known = np.frombuffer(bounds.zones.known, np.uint8) != 0
    for name, values in (("min", bounds.lower), ("max", bounds.upper)):
        groups = np.flatnonzero(known & (chunks[:, AT[f"statistics_is_{name}_exact"]] == 1))
        texts = values.take(pa.array(groups)).cast(pa.binary()).to_pylist()
        for group, text in zip(groups.tolist(), texts, strict=True):
            made[group] = (*made[group], text)
    return made
