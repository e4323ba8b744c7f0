"""Defaults of fields inside of structs that a file has, and that lack the field (Iceberg specification, Default values)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa

from pageseek.datasets.table_fields import TableField

Path = tuple[str, ...]
_REPEATED = (["element"], ["key", "value"])


class NestedDefaults:
    """The defaults that stand for the fields of one file.

    Parameters
    ----------
    fields : sequence of TableField
        Of the table.
    has : callable
        Whether the file has the field at a path.
    """

    def __init__(self, fields: Sequence[TableField], has: Callable[[Path], bool]) -> None:
        self._fields, self._has = fields, has

    def of(self, path: Path) -> tuple[Path, pa.Scalar] | None:
        """Of a field that the file lacks inside of a struct that it has: the path of the struct, and the default of the field."""
        fields, repeated = self._on(path)
        if repeated or len(fields) < 2 or fields[-1].default is None:
            return None
        names = tuple([one.name for one in fields])
        if self._has(names) or not self._has(names[:-1]):
            return None
        return names[:-1], fields[-1].default

    def may_have(self, path: Path) -> bool:
        """Whether a field that the file lacks may have another value than null in some rows."""
        fields, repeated = self._on(path)
        inside = fields[1:] if repeated else fields[1:-1]
        return any(one.default is not None for one in inside) or self.of(path) is not None

    def in_list(self, path: Path) -> Path | None:
        """The names on the path of a field inside of lists of which it, or a struct around it, has a default; None for others."""
        fields, repeated = self._on(path)
        if not repeated or all(one.default is None for one in fields[1:]):
            return None
        return tuple([one.name for one in fields])

    def _on(self, path: Path) -> tuple[list[TableField], bool]:
        """The fields of the table on a path, none where they are not known; and whether it leads through a list or a map."""
        fields, found, repeated = self._fields, list[TableField](), False
        for name in path if len(path) > 1 else path[0].split("."):
            inside = [one.name for one in fields] if found else []
            repeated |= inside in _REPEATED
            # a path may leave out the elements of lists
            while inside == ["element"] and name != "element":
                fields = fields[0].children
                inside = [one.name for one in fields]
                repeated |= inside in _REPEATED
            one = next((field for field in fields if field.name == name), None)
            if one is None:
                return [], False
            found.append(one)
            fields = one.children
        return found, repeated
