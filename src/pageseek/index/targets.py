"""The file that the caller names, and where the new one goes."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

from pageseek.base.arguments import check_flag
from pageseek.base.errors import UnsupportedError
from pageseek.base.records import dataclass
from pageseek.datasets.sources import Found, files_of
from pageseek.index import delta_target as delta
from pageseek.index import iceberg_target as iceberg
from pageseek.index.local_target import LocalTarget, Target
from pageseek.index.store_target import StoreTarget
from pageseek.index.table_target import TableEnd, refuse_inside
from pageseek.storage import Source, Store
from pageseek.storage.atomic_files import refuse_place
from pageseek.storage.resolve import place


def one_file(
    source: Any,
    storage_options: Mapping[str, Any] | None = None,
    table: bool | None = None,
    changed: bool = False,
) -> Source:
    """The file that the caller names. `table`: as of `scan`. `changed`: the caller changes it, which a table allows by commits only."""
    named = files_of(source, storage_options, table=table)
    if changed:
        refuse_tables(named)
    found = named.files
    if len(found) != 1:
        shown = repr(source) if isinstance(source, str | os.PathLike) else "the source"
        of = (
            ""
            if named.folder is None
            else f" in the current version of the {named.folder.kind} table"
        )
        each = f"call it for each of them, such as {found[0].name!r}" if found else "name one"
        raise ValueError(
            f"{shown[:200]}: {len(found)} files{of}, and this is of one: {each}{'; attach_all adds indexes to all' if changed else ''}"
        )
    return found[0]


def refuse_tables(named: Found) -> None:
    """Raise UnsupportedError where a caller who changes files names a table, which allows that by commits only."""
    if named.folder is not None:
        raise UnsupportedError(
            f"{named.folder.name}: this is a table of {named.folder.kind}, whose files are changed by its own commits: name one of "
            "them, and commit it through the table (Delta Lake: table=DeltaTable(...); Iceberg: table=catalog.load_table(...)), "
            "or read the bare files (table=False)"
        )


@dataclass(frozen=True, slots=True)
class End:
    """Where the new file goes. `in_place`: to the place of the old one."""

    to: Source
    in_place: bool
    overwrite: bool

    def target(self, source: Store) -> Target:
        """The target of a file that is made from `source`, an open one."""
        if self.to.filesystem is not None:
            return StoreTarget(self.to, source, self.in_place, self.overwrite)
        path, replaces = self.to.path, self.in_place or self.overwrite
        if not self.in_place:
            return LocalTarget(path, None, replaces)
        return LocalTarget(path, path, replaces, source.version)

    def done(self, size: int) -> None:
        """Called once the new file is there, with its bytes: nothing is left to do."""


def ends(
    source: Any,
    output: Any,
    in_place: bool,
    overwrite: bool = False,
    storage_options: Mapping[str, Any] | None = None,
    table: Any = None,
) -> tuple[Source, End | TableEnd]:
    """The file that the caller names, and where the new one goes. What is sure to fail later fails here."""
    check_flag("in_place", in_place)  # "no" would replace the file
    check_flag("overwrite", overwrite)
    if table is not None and not isinstance(table, bool):
        if in_place or overwrite or output is not None:
            raise ValueError(
                "with table= the new file goes beside the old one: neither output=, in_place= nor overwrite="
            )
        return _of_table(source, table, storage_options)
    one = one_file(source, storage_options, table, changed=True)
    return one, _end_of(one, output, in_place, overwrite, storage_options)


def _of_table(
    source: Any, table: Any, storage_options: Mapping[str, Any] | None
) -> tuple[Source, TableEnd]:
    room = type(table).__module__.partition(".")[0]
    end: Callable[[Source, Any, Mapping[str, Any] | None], TableEnd]
    if room == "deltalake" and hasattr(table, "get_add_actions"):
        known, end = delta.as_recorded(source, table, storage_options), delta.delta_end
    elif room == "pyiceberg" and hasattr(table, "transaction"):
        known, end = iceberg.as_recorded(source, table, storage_options), iceberg.IcebergEnd
    else:
        raise TypeError(
            f"table {type(table).__name__}: a deltalake.DeltaTable or a table of pyiceberg"
        )
    one = one_file(source, storage_options) if known is None else known
    return one, end(one, table, storage_options)


def _end_of(
    source: Source,
    output: Any,
    in_place: bool,
    overwrite: bool,
    storage_options: Mapping[str, Any] | None,
) -> End:
    if in_place == (output is not None):
        raise ValueError("one of output=PATH and in_place=True is required, and not both")
    if in_place:
        if overwrite:
            raise ValueError("overwrite=True goes with output=PATH")
        if source.data is not None:
            raise UnsupportedError(
                f"{source.name}: bytes at hand are not changed in_place: give output=PATH"
            )
        refuse_inside(source)
        return End(source, True, False)
    to = place(output, storage_options)
    refuse_inside(to)
    if _same(to, source):
        raise ValueError(f"output={to.name!r} is the file itself: say in_place=True for that")
    if to.filesystem is None:
        refuse_place(to.path, overwrite)
    return End(to, False, overwrite)


def _same(one: Source, other: Source) -> bool:
    if one.data is not None or other.data is not None:
        return False
    if one.filesystem is None and other.filesystem is None:
        return os.path.exists(one.path) and os.path.samefile(one.path, other.path)
    return one.key == other.key
