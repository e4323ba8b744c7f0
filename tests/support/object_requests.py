"""The requests for one object, from the server's log, as (offset, length), compared with the places of pages."""

from __future__ import annotations

from collections.abc import Sequence

from support.object_server.log import Record
from support.object_server.server import ObjectServer

Place = tuple[int, int]  # offset, length


def place_of(record: Record, size: int) -> Place:
    """The bytes that a request asks for, of an object of `size` bytes."""
    first, _, last = (record.range or "bytes=0-").removeprefix("bytes=").partition("-")
    if not first:
        length = min(int(last), size)
        return size - length, length
    stop = int(last) + 1 if last else size
    return int(first), min(stop, size) - int(first)


class ObjectRequests:
    """The requests of one object since the log was last reset: the tail that opening reads, the ranges
    after it, and what was asked only to see that the version is the one that is known.
    """

    def __init__(self, server: ObjectServer, path: str) -> None:
        info = server.objects.info(path)
        assert info is not None
        self.size = info.size
        self.records = server.log.requests(path)
        self.tails = [one for one in self.records if (one.range or "").startswith("bytes=-")]
        # a byte that is not sent where the version is the known one
        self.confirmations = [one for one in self.records if "if-none-match" in one.headers]
        apart = self.tails + self.confirmations
        self.others = [one for one in self.records if one not in apart]
        self.places = sorted(place_of(one, info.size) for one in self.others)
        self.depth = server.log.waves(path)  # one after another

    def covers(self, pages: Sequence[Place]) -> bool:
        """Whether each of the pages was requested whole."""
        return all(
            any(at <= page and page + n <= at + length for at, length in self.places)
            for page, n in pages
        )

    def outside(self, pages: Sequence[Place]) -> int:
        """Requested bytes outside of the pages."""
        inside = 0
        for at, length in self.places:
            inside += sum(
                max(min(page + n, at + length) - max(page, at), 0) for page, n in set(pages)
            )
        return sum(length for _, length in self.places) - inside
