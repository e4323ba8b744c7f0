"""Lists in the published form (published.py) that many files of one kind have: read together, and kept with their footers.

What is wrong with a list, or is not said by the footers that were read, is left to who opens its file.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from pageseek._core.bloom import xxh64
from pageseek.base.errors import PageseekError
from pageseek.base.report import Report
from pageseek.format.chunks import sound_chunks
from pageseek.format.embedded import (
    FIGURES,
    KEY,
    InvalidIndexError,
    Pointer,
    directory_of,
    figures,
    types_of,
)
from pageseek.format.schema import Leaf
from pageseek.format.types import ABSENT
from pageseek.io.tails import TailBatch
from pageseek.prune.datafusion_list import FIRST, HEAD, KIND, Listed, length_of, only_text, place_of
from pageseek.prune.datafusion_list import KEY as PUBLISHED_KEY
from pageseek.scan.distinct_lists import LISTS
from pageseek.scan.footer_table import AT, KEYS, Flags, FooterTable
from pageseek.scan.schema_group import SchemaGroup
from pageseek.storage.local import read_part


class PublishedLists(NamedTuple):
    """Of each file its list of a column, or None; and whether it has one of which nothing can be said here."""

    lists: list[Listed | None]
    unusable: Flags


def is_read(records: FooterTable, leaf: Leaf, named: str | None) -> bool:
    """Whether the lists of a column were looked at before."""
    return (leaf.index, named) in records.published


def published_lists(
    records: FooterTable,
    kind: SchemaGroup,
    leaf: Leaf,
    named: str | None,
    batch: TailBatch,
    report: Report,
) -> PublishedLists:
    """Those of a column. `named`: the column that the caller says that lists are of."""
    key = leaf.index, named
    found: PublishedLists | None = records.published.get(key)
    if found is None:
        found = records.published[key] = _Reading(records, kind, leaf, named, batch, report).all()
    return found


class _Reading:
    """The lists of one column, as they are read."""

    def __init__(
        self,
        records: FooterTable,
        kind: SchemaGroup,
        leaf: Leaf,
        named: str | None,
        batch: TailBatch,
        report: Report,
    ) -> None:
        self.records, self.kind, self.leaf, self.batch, self.report = (
            records, kind, leaf, batch, report,
        )  # fmt: skip
        table = records.table[:, kind.column[leaf.index]]
        self.of_chunks = figures(records.counts, table)
        ends = np.repeat(records.sizes, records.n)
        sound = sound_chunks(table, leaf.element.type, leaf.max_rep > 0, records.rows, ends)
        # where a list may begin, at the earliest; nowhere in a file with a chunk that makes no sense
        self.least = np.where(sound.sound, sound.start + sound.size, np.iinfo(np.int64).max)
        self.starts = batch.spans(records.members)[:, 3].tolist()  # of the footers
        self.named = None if named is None else kind.tree.find(named)
        self.usual = only_text(kind.tree.leaves) if named is None else self.named
        self.held = 0  # bytes that were read of lists that do not lie in the ends of the files

    def all(self) -> PublishedLists:
        records = self.records
        made: list[Listed | None] = [None] * len(records.members)
        unusable = np.zeros(len(made), np.bool_)
        declared = self._stated()
        for k in np.flatnonzero(records.has(PUBLISHED_KEY)).tolist():
            try:
                listed = self._one(k)
                if listed is None:
                    continue
                first = records.first.item(k)
                if declared is None or not _has_all(
                    listed, declared[first : first + records.n.item(k)]
                ):
                    raise InvalidIndexError("a value that the statistics have is missing")
                made[k] = listed
                records.hold(listed.nbytes)
            except (InvalidIndexError, OSError):
                unusable[k] = True
        return PublishedLists(made, unusable)

    def _one(self, k: int) -> Listed | None:
        """The list of a file; None where it is of another column."""
        records, end = self.records, self.starts[k]
        first, n = records.first.item(k), records.n.item(k)
        at, size = records.pairs[k, KEYS.index(PUBLISHED_KEY)].tolist()
        offset = place_of(bytes(records.data[at : at + size]), end)
        entry = self._entry(k, offset)
        if entry is None:
            if self.usual is None:
                raise InvalidIndexError("it does not say whose values it has")
            if self.usual.index != self.leaf.index:
                return None
        elif (entry.physical, entry.logical) != types_of(self.leaf):
            raise InvalidIndexError("it was built for another type")
        if n and self.least[first : first + n].max() > offset:
            raise InvalidIndexError("pages lie behind it")
        room = end - offset
        head = self._bytes(k, offset, min(FIRST, room))
        length = length_of(head, room)
        data = head[HEAD : HEAD + length]
        if data.nbytes < length:
            data = self._bytes(k, offset + HEAD, length)
        if entry is not None:
            whole = bytes(head[:HEAD]) + bytes(data)
            chunks = self.of_chunks[FIGURES * first : FIGURES * (first + n)]
            if (len(whole), xxh64(whole), xxh64(chunks)) != (
                entry.length, entry.checksum, entry.chunks,
            ):  # fmt: skip
                raise InvalidIndexError("it is not what was attached")
        return Listed(data)

    def _entry(self, k: int, offset: int) -> Pointer | None:
        """As `published.own` has it; DoubtError where it is of another column than the caller, or this test, has."""
        at, size = self.records.pairs[k, KEYS.index(KEY)].tolist()
        if at == ABSENT:
            return None
        try:
            found = directory_of(self.records.data[at : at + size], self.starts[k], KIND)
        except InvalidIndexError:
            return None
        for one in found.pointers:
            if one.leaf is not None and one.offset == offset:
                if one.leaf != self.leaf.path or self.named not in (None, self.leaf):
                    raise InvalidIndexError("it was attached for another column")
                return one
        return None

    def _bytes(self, k: int, offset: int, length: int) -> memoryview:
        batch, place = self.batch, self.records.members.item(k)
        found = batch.part(place, offset, length)
        if found is not None:
            return found
        self.held += length
        if self.held > LISTS:
            raise InvalidIndexError("too many")
        data = read_part(batch.paths[place], batch.seen(place), offset, length)
        self.report.requests += 1
        self.report.waves += 1
        self.report.bytes["index"] += len(data)
        return memoryview(data)

    def _stated(self) -> list[tuple[bytes, ...]] | None:
        """Of each row group the values that the statistics name; None where they cannot be had."""
        records, leaf = self.records, self.leaf
        made: list[tuple[bytes, ...]] = [()] * len(records.counts)
        try:
            bounds = records.bounds(self.kind, leaf)
            if bounds is None:
                return made
            known = np.frombuffer(bounds.zones.known, np.uint8) != 0
            for name, values in (("min", bounds.lower), ("max", bounds.upper)):
                exact = records.table[
                    :, self.kind.column[leaf.index], AT[f"statistics_is_{name}_exact"]
                ]
                groups = np.flatnonzero(known & (exact == 1))
                texts = values.take(pa.array(groups)).cast(pa.binary()).to_pylist()
                for group, text in zip(groups.tolist(), texts, strict=True):
                    made[group] = (*made[group], text)
        except (PageseekError, pa.ArrowException):
            return None
        return made


def _has_all(listed: Listed, declared: list[tuple[bytes, ...]]) -> bool:
    """Whether a list has all lines of the values that the statistics of the row groups name."""
    lines = {line for texts in declared for text in texts for line in text.split(b"\n")}
    return not lines or not listed.missing(lines)
