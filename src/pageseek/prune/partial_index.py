"""Embedded indexes of which a scan reads parts: their beginning once for a file, then what each test needs (docs/format.md)."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, TypeVar

from pageseek.base.errors import CoreError
from pageseek.base.records import dataclass
from pageseek.format.embedded import (
    MAGIC,
    PAYLOAD_HEAD_BYTES,
    InvalidIndexError,
    Pointer,
    fingerprint,
)
from pageseek.format.file_metadata import FileMetadata
from pageseek.format.schema import Leaf
from pageseek.io.range_requests import Asking, together
from pageseek.predicate.bound import BoundLeaf
from pageseek.prune.embedded_pruner import EmbeddedPruner
from pageseek.prune.protocol import Price, Proof, PruneContext

T = TypeVar("T")
MOST_KEPT = 4  # questions whose answers are kept with an index


@dataclass(frozen=True, slots=True)
class Body:
    """The body of an index. `offset`, `length`: where it lies in the file. `start`: its first bytes."""

    offset: int
    length: int
    start: memoryview


class Latest:
    """What the latest questions to an index found, for the row groups that ask next. Threads share it: it is replaced as a whole."""

    def __init__(self) -> None:
        self._found: dict[bytes, Any] = {}

    def __contains__(self, key: bytes) -> bool:
        return key in self._found

    def get(self, key: bytes) -> Any:
        """What was found; None if nothing was, or it is not known any more."""
        return self._found.get(key)

    def keep(self, key: bytes, found: Any) -> None:
        """Keep what a question found."""
        self._found = dict(list(self._found.items())[1 - MOST_KEPT :]) | {key: found}


class PartialIndexKind:
    """What kinds of such indexes share. Bytes that are read are checked by the kind: a checksum of the whole body cannot be."""

    name: str
    version: int
    title: str
    cheap = True
    whole = coarse = patterns = False
    largest = (1 << 30) + PAYLOAD_HEAD_BYTES  # bytes of a payload that `verify` holds

    def __init__(self) -> None:
        self._embedded = EmbeddedPruner(self.name, self.version, self.title, None)

    # -- of the kind ------------------------------------------------------------------------------

    def takes(self, context: PruneContext, test: BoundLeaf) -> bool:
        """Whether the index may prove something of a test."""
        raise NotImplementedError

    def key(self, context: PruneContext, test: BoundLeaf) -> Hashable:
        """What tells the index of a test from others of the kind."""
        return test.leaf.index, test.leaf_type

    def pointer(self, context: PruneContext, test: BoundLeaf) -> Pointer | None:
        """Where the index of a test lies."""
        return self._embedded.pointer(context, test.leaf)

    def chunks(self, file: FileMetadata, pointer: Pointer, test: BoundLeaf) -> int:
        """The fingerprint of the column chunks that the index has to be of."""
        return fingerprint(file, test.leaf)

    def first_bytes(self, file: FileMetadata) -> int:
        """How many bytes of the body are read first."""
        raise NotImplementedError

    def cost(self, context: PruneContext, test: BoundLeaf, index: Any) -> int:
        """About the bytes that a test needs of an index, None as long as it is not in memory."""
        raise NotImplementedError

    def begin(self, file: FileMetadata, test: BoundLeaf, body: Body) -> Asking[tuple[Any, int]]:
        """The index as it is kept with the file, and about its bytes in memory. InvalidIndexError: it is none."""
        raise NotImplementedError

    def proof(self, context: PruneContext, test: BoundLeaf, index: Any) -> Asking[Proof | None]:
        """What the index proves of a test in a row group. InvalidIndexError: a part of it is none."""
        raise NotImplementedError

    # -- as a pruner ------------------------------------------------------------------------------

    def applies(self, file: FileMetadata, leaf: Leaf) -> bool:
        """Whether the footer lists an index of the column."""
        return self._embedded.applies(file, leaf)

    def price(self, context: PruneContext, test: BoundLeaf) -> Price | None:
        """The bytes of what is not in memory; None where the file has no index of the column, or it proves nothing."""
        if not self.takes(context, test):
            return None
        file, key = context.file, (self.name, self.key(context, test))
        index = file.indexes.get(key)
        if index is not None:
            return Price(self.cost(context, test, index))
        pointer = self.pointer(context, test)
        if pointer is None:
            return None
        if key in file.indexes:  # it is wrong
            file.note_ignored_indexes(None, test.leaf, context.report)
            return None
        size = min(PAYLOAD_HEAD_BYTES + self.first_bytes(file), pointer.length)
        whole = context.to_fetch(pointer.offset, pointer.length)
        parts = context.to_fetch(pointer.offset, size) + self.cost(context, test, None)
        return Price(min(parts, whole))

    def prune(
        self, context: PruneContext, tests: Sequence[BoundLeaf]
    ) -> Asking[list[Proof | None]]:
        """Read the beginnings that are not in memory, and what the tests need."""
        return (yield from together([self._proof(context, test) for test in tests]))

    def _proof(self, context: PruneContext, test: BoundLeaf) -> Asking[Proof | None]:
        return self.asked(context, test, self.proof)

    def asked(
        self,
        context: PruneContext,
        test: BoundLeaf,
        question: Callable[[PruneContext, BoundLeaf, Any], Asking[T | None]],
    ) -> Asking[T | None]:
        """What the index of a test answers to a question; None without an index of use. The beginning is read if it is not in memory."""
        if not self.takes(context, test):
            return None
        file, key = context.file, (self.name, self.key(context, test))
        pointer = self.pointer(context, test)
        if pointer is None:
            return None
        try:
            index = file.indexes.get(key)
            if index is None:
                if key in file.indexes:  # it is wrong
                    return None
                body = yield from self._body(file, pointer, self.chunks(file, pointer, test))
                index = file.indexes.get(key)  # of row groups that ask together, one makes it
            if index is None:
                index, nbytes = yield from self.begin(file, test, body)
                file.keep_index(key, index, nbytes)
            return (yield from question(context, test, index))
        except (InvalidIndexError, CoreError) as error:
            text = self._embedded.ignored(file, test.leaf, error)
            file.ignore_index(None, test.leaf, text, context.report)
            file.keep_index(key, None, 0)
            return None

    def _body(self, file: FileMetadata, pointer: Pointer, chunks: int) -> Asking[Body]:
        """The body of an index that belongs to the column chunks of the file, of which `chunks` is the fingerprint."""
        size = min(PAYLOAD_HEAD_BYTES + self.first_bytes(file), pointer.length)
        (data,) = yield [(pointer.offset, size)]
        head = MAGIC + bytes(4) + chunks.to_bytes(8, "little")
        if data[:PAYLOAD_HEAD_BYTES] != head:
            raise InvalidIndexError(
                "it is not of these column chunks, or its bytes could not be read"
            )
        offset, length = pointer.offset + PAYLOAD_HEAD_BYTES, pointer.length - PAYLOAD_HEAD_BYTES
        return Body(offset, length, data[PAYLOAD_HEAD_BYTES:])


def read_whole(body: Body, places: Sequence[tuple[int, int]]) -> Asking[list[memoryview]]:
    """The bytes at (offset in the body, length). InvalidIndexError: they could not be read."""
    if not places:
        return []
    parts = yield [(body.offset + at, length) for at, length in places]
    if any(part.nbytes != length for part, (_, length) in zip(parts, places, strict=True)):
        raise InvalidIndexError("its bytes could not be read")
    return parts


def read_directory(body: Body, size: int, most: int) -> Asking[memoryview]:
    """The first `size` bytes of a body, of which a part may be there. InvalidIndexError: these are more than `most`, or than it has."""
    if size > min(body.length, most):
        raise InvalidIndexError(f"a directory of {size} bytes in {body.length}")
    if size <= body.start.nbytes:
        return body.start
    (data,) = yield from read_whole(body, [(0, size)])
    return data
