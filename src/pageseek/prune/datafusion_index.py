"""Files against a list of different values in the published form (datafusion_list.py)."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any

from pageseek.base.errors import PageseekError
from pageseek.format.file_metadata import WHOLE, FileMetadata
from pageseek.format.schema import Leaf
from pageseek.io.range_requests import Wanted
from pageseek.predicate.bound import BoundLeaf
from pageseek.prune.chunk_pruner import NONE_PASSES, InvalidIndexError
from pageseek.prune.datafusion_list import (
    FIRST,
    HEAD,
    MAGIC,
    Listed,
    asked_of,
    check,
    check_bytes,
    column,
    denies,
    length_of,
    may_deny,
    place,
)
from pageseek.prune.protocol import Price, Proof, PruneContext


class PublishedPruner:
    """Rules out the row groups of a file whose list lacks what is asked for."""

    name = "distinct_index"
    cheap = whole = coarse = True

    def cost(self, context: PruneContext, test: BoundLeaf) -> Price | None:
        """Of what is read of the list at first; None where the file has none of the column, or that says nothing of the test."""
        if not may_deny(test):
            return None
        found = _place(context)
        if found is None or found[1].index != test.leaf.index:
            return None
        key = self.name, found[1].index
        known = context.file.indexes
        if key not in known:
            offset = found[0]
            return Price(context.to_fetch(offset, min(FIRST, context.file.footer_start - offset)))
        if known[key] is not None:
            return Price(0)
        context.file.note_ignored_indexes(WHOLE, found[1], context.report)
        return None

    def judge(
        self, context: PruneContext, tests: Sequence[BoundLeaf]
    ) -> Generator[Wanted, list[memoryview], list[Proof | None]]:
        """Ask for the list, unless it is at hand."""
        found = _place(context)
        if found is None:
            return [None] * len(tests)
        offset, leaf = found
        file, key = context.file, (self.name, leaf.index)
        known: dict[Any, Any] = file.indexes
        if key not in known:
            try:
                values = yield from _values(file, leaf, offset)
            except (InvalidIndexError, PageseekError) as error:
                note = f"{file.name}: {leaf.name!r}: {MAGIC.decode()} index ignored: {error}"
                file.ignore_index(WHOLE, leaf, note, context.report)
                values = None
            file.keep_index(key, values, 0 if values is None else values.nbytes)
        values = known[key]
        return [
            NONE_PASSES
            if values is not None
            and test.leaf.index == leaf.index
            and denies(test, asked_of(test), values)
            else None
            for test in tests
        ]


def _values(
    file: FileMetadata, leaf: Leaf, offset: int
) -> Generator[Wanted, list[memoryview], Listed]:
    room = file.footer_start - offset
    (head,) = yield [(offset, min(FIRST, room))]
    length = length_of(head, room)
    data = head[HEAD : HEAD + length]
    if data.nbytes < length:
        (data,) = yield [(offset + HEAD, length)]
    if data.nbytes != length:
        raise InvalidIndexError("its bytes could not be read")
    check_bytes(file, leaf, head, data)
    listed = Listed(data)
    check(file, leaf, listed)
    return listed


def _place(context: PruneContext) -> tuple[int, Leaf] | None:
    """Where the list lies, and the column whose values it has."""
    file = context.file
    key = "published", context.distinct_index
    known: dict[Any, Any] = file.indexes
    if key not in known:
        found = None
        try:
            offset = place(file)
            if offset is not None:
                leaf = column(file, context.distinct_index)
                if leaf is None:
                    raise InvalidIndexError(
                        "it does not say whose values it has: distinct_index= does"
                    )
                found = offset, leaf
        except (InvalidIndexError, PageseekError) as error:
            note = f"{file.name}: {MAGIC.decode()} index ignored: {error}"
            file.ignore_index(WHOLE, None, note, context.report)
        file.keep_index(key, found, 0)
    made: tuple[int, Leaf] | None = known[key]
    if made is None:
        file.note_ignored_indexes(WHOLE, None, context.report)
    return made
