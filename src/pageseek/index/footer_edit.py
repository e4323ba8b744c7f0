"""The new footer of a file whose indexes are added or taken out."""

from __future__ import annotations

from array import array
from typing import Any

from pageseek._core import build as core
from pageseek.base.errors import CoreError, from_core
from pageseek.format.file_metadata import FileMetadata
from pageseek.format.schema import Leaf
from pageseek.format.types import ABSENT

GONE = -1  # in the place of an index, or of column orders: the new footer has none
OFFSET_PLACE, COLUMN_PLACE, BLOOM_PLACE = 0, 2, 4  # among those of a chunk (ps_footer_edit)


class FooterEdit:
    """What differs in the new footer: the places of indexes, and key-value pairs. All else stays as the old footer has it."""

    def __init__(self, file: FileMetadata) -> None:
        self._file = file
        n = file.num_row_groups * file.num_leaves
        self._places = array("q", [ABSENT]) * (n * core.PLACES)
        self._dropped: list[bytes] = []
        self._added: dict[bytes, bytes] = {}

    def _at(self, row_group: int, leaf: Leaf, which: int) -> int:
        return (row_group * self._file.num_leaves + leaf.index) * core.PLACES + which

    def place(self, row_group: int, leaf: Leaf, which: int, offset: int, length: int) -> None:
        """An index of a chunk lies there now. `which`: OFFSET_PLACE, COLUMN_PLACE or BLOOM_PLACE."""
        at = self._at(row_group, leaf, which)
        self._places[at], self._places[at + 1] = offset, length

    def remove(self, row_group: int, leaf: Leaf, which: int) -> None:
        """A chunk has no such index any more."""
        self.place(row_group, leaf, which, GONE, GONE)

    def removes(self, row_group: int, leaf: Leaf, which: int) -> bool:
        """Whether `remove` was called for an index."""
        return self._places[self._at(row_group, leaf, which)] == GONE

    def set_key(self, key: bytes, value: bytes | None) -> None:
        """Replace the value of a key; None takes the key out."""
        self._dropped.append(key)
        self._added.pop(key, None)
        if value is not None:
            self._added[key] = value

    def tail(self, orders: int = 0) -> bytes:
        """The footer, its length and the magic: the last bytes of the new file. `orders`: the leaves whose column orders
        are added where the old footer has none, or GONE.
        """
        return ended(self.footer(orders))

    def footer(self, orders: int = 0) -> bytes:
        """The footer alone."""
        return new_footer(
            self._file, self._places, self._dropped, list(self._added.items()), orders
        )


def ended(footer: bytes) -> bytes:
    """A footer with what follows it in a file: its length and the magic."""
    return footer + len(footer).to_bytes(4, "little") + b"PAR1"


def new_footer(
    file: FileMetadata,
    places: Any,
    dropped: list[bytes],
    added: list[tuple[bytes, bytes]],
    orders: int = 0,
) -> bytes:
    """The footer of a file with other places of indexes and other key-value pairs (`core.footer_edited`)."""
    try:
        return bytes(core.footer_edited(file.footer, places, dropped, added, orders))
    except CoreError as error:
        raise from_core(error, f"{file.name}: footer", file.footer_start) from error
