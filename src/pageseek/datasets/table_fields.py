"""The fields of a table whose files may call them otherwise, or lack them."""

from __future__ import annotations

import pyarrow as pa

from pageseek.base.records import NamedTuple


class TableField(NamedTuple):
    """A field of a table, and how files have it.

    `id`: the field id by which files have it, -1: by names alone. `aliases`: its names in files without ids. `children`: fields of a
    struct; the element of a list; key and value of a map. `default`: its value in files that lack it; None: null.
    """

    name: str
    id: int
    aliases: tuple[str, ...] = ()
    children: tuple[TableField, ...] = ()
    default: pa.Scalar | None = None

    @property
    def has_defaults_inside(self) -> bool:
        """Whether a field inside, at any depth, has a default."""
        return any(one.default is not None or one.has_defaults_inside for one in self.children)
