"""The literals of IN, and what is made of them once for all files, row groups and batches."""

from __future__ import annotations

from typing import Any

from pageseek._core import bloom, rows
from pageseek.errors import CoreError

_SEARCHED = (
    16  # of so many literals, a search for one row costs no more than the table for one literal
)


Packed = tuple[int, bytes, bytes | None]
Core = tuple[int, int, int, int, int, int, int]  # of a Form


class Listed(Packed):
    """Distinct literals in ascending order, as every kernel takes them: how many, their values, their offsets."""

    _tested = 0  # rows so far
    _lookup: rows.Lookup | None = None
    _has_table = False

    def lookup(self, kind: int, width: int, n: int) -> rows.Lookup:
        """To test `n` more rows by: with a table as soon as rows enough have come to pay for it."""
        self._tested += n
        table = self._tested > self[0] // _SEARCHED
        found = self._lookup
        if found is None or (table and not self._has_table):
            self._lookup = found = rows.Lookup(kind, width, self, table)
            self._has_table = table
        return found

    def hashes(self, form: Core) -> bytes | None:
        """What Bloom filters are asked for; None where they cannot be."""
        known: dict[Core, bytes | None] = self.__dict__.setdefault("_hashes", {})
        if form not in known:
            try:
                known[form] = bloom.hashes(form, self)
            except CoreError:  # NaN
                known[form] = None
        return known[form]

    def __reduce__(self) -> tuple[Any, ...]:
        return Listed, (tuple(self),)


__all__ = ["Listed"]
