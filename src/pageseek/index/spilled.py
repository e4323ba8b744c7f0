"""Entries of row groups, sorted by part of an index. What does not fit into memory waits in a temporary file."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from pageseek.base.records import NamedTuple

HELD = 48 << 20  # bytes of entries that are held in memory


class _Segment(NamedTuple):
    """The entries of a row group. `starts`: of each part, and the end."""

    entries: npt.NDArray[Any] | None  # None: they are in the file, from `at`
    at: int
    starts: npt.NDArray[np.int64]


class SpillingBuilder:
    """A builder whose entries can wait in a file. Builders of users are none, whatever their methods are called."""

    @property
    def nbytes(self) -> int:
        """The bytes that are held in memory."""
        raise NotImplementedError

    def spill(self) -> None:
        """Let go of entries that are held in memory: they wait in a file."""
        raise NotImplementedError


class SpilledEntries:
    """Entries that are added row group by row group, and taken part by part.

    Attributes
    ----------
    nbytes : int
        What is held in memory.
    """

    def __init__(self, dtype: npt.DTypeLike) -> None:
        self._dtype = np.dtype(dtype)
        self._segments: list[_Segment] = []
        self._file: IO[bytes] | None = None
        self._written = self.nbytes = 0

    def add(self, entries: npt.NDArray[Any], counts: npt.NDArray[np.int64]) -> None:
        """Add the entries of a row group, in the order of the parts. `counts`: those of each part."""
        starts = np.concatenate([[0], np.cumsum(counts)])
        self._segments.append(_Segment(entries, 0, starts))
        self.nbytes += entries.nbytes
        if self.nbytes > HELD:
            self.spill()

    def spill(self) -> None:
        """Write what is in memory into the file."""
        if self._file is None:
            self._file = tempfile.TemporaryFile(prefix="pageseek-")  # noqa: SIM115 (it lives as long as this does)
        for i, one in enumerate(self._segments):
            if one.entries is not None:
                self._file.seek(self._written)
                self._file.write(memoryview(one.entries).cast("B"))
                self._segments[i] = _Segment(None, self._written, one.starts)
                self._written += one.entries.nbytes
        self.nbytes = 0

    def counts(self, parts: int) -> npt.NDArray[np.int64]:
        """The entries of each part."""
        found = np.zeros(parts, np.int64)
        for one in self._segments:
            found += np.diff(one.starts)
        return found

    def of_part(self, part: int) -> Iterator[npt.NDArray[Any]]:
        """The entries of a part in each row group, in the order of the row groups."""
        return self.of_parts(part, part + 1)

    def of_parts(self, first: int, end: int) -> Iterator[npt.NDArray[Any]]:
        """The entries of the parts from `first` up to `end` in each row group, in the order of the row groups."""
        for one in self._segments:
            start, stop = one.starts[first].item(), one.starts[end].item()
            if one.entries is not None:
                yield one.entries[start:stop]
            elif stop > start:
                assert self._file is not None
                self._file.seek(one.at + start * self._dtype.itemsize)
                data = self._file.read((stop - start) * self._dtype.itemsize)
                yield np.frombuffer(data, self._dtype)
            else:
                yield np.empty(0, self._dtype)

    def close(self) -> None:
        """Delete the file."""
        if self._file is not None:
            self._file.close()
