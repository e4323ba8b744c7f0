"""How a change is made: the command, and the same in Python."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from pathlib import PurePath
from typing import Any

from pageseek.advice.estimates import (
    ATTACHED,
    CLUSTER,
    FOOTER,
    GROUP_ROWS,
    KEY,
    LOOKUP,
    PAGE_INDEX,
    PAGE_ROWS,
    SORT,
    Change,
)
from pageseek.advice.larger_groups import SMALL_PAGE, USUAL_GROUP
from pageseek.scanning.queries.scan import Scan


class Target:
    """What the commands change, as a caller has named it.

    Attributes
    ----------
    names : list of str
        Paths or URLs; none for bytes and other objects.
    table : str
        The table in Python, whose files are exchanged by commits; empty for bare files.
    is_one : bool
        It is a single file.
    """

    def __init__(
        self, names: Sequence[str], is_one: bool, table: str = "", number: int = 1
    ) -> None:
        self.names, self.is_one, self.table = list(names), is_one, table
        self._number = number

    def numbered(self, n: int) -> Target:
        """The same with names of outputs that n - 1 other commands do not have."""
        return Target(self.names, self.is_one, self.table, n)

    @classmethod
    def of(cls, source: Any, lazy: Scan) -> Target:
        """The target of a source, and of the scan that was made of it."""
        sources, names = lazy.sources, []
        if isinstance(source, (str, os.PathLike)):
            names = [os.fspath(source)]
        elif isinstance(source, (list, tuple)) and all(
            isinstance(a, (str, os.PathLike)) for a in source
        ):
            names = [os.fspath(name) for name in source]
        elif len(sources) == 1 and sources[0].data is None:
            names = [sources[0].name]
        is_one = len(sources) == len(names) == 1 and (
            os.path.isfile(names[0]) or names[0] in (sources[0].path, sources[0].name)
        )
        return cls(names, is_one, _table(source, names, lazy))

    @property
    def shell(self) -> str:
        """As an argument of a command. A name that begins with a dash is none of an option."""
        shown = [name if not name.startswith("-") else f"./{name}" for name in self.names]
        return " ".join(map(shlex.quote, shown)) or "SOURCE"

    @property
    def python(self) -> str:
        """As an argument of a function."""
        if not self.names:
            return "source"
        return repr(self.names[0]) if len(self.names) == 1 else repr(self.names)

    def output(self, word: str) -> str:
        """A name for the rewritten file, beside the old one."""
        word = word if self._number == 1 else f"{word}-{self._number}"
        if len(self.names) != 1:
            return f"{word}.parquet"
        name = self.names[0].rstrip("/")
        if any(mark in name for mark in "*?[]"):
            return f"{word}.parquet"
        stem = name.removesuffix(".parquet")
        return f"{stem}.{word}.parquet" if PurePath(stem).name else f"{word}.parquet"


def command_of(change: Change, target: Target) -> str:
    """The command for a shell."""
    if change.kind in ATTACHED and target.table:  # a command has no table object that could commit
        return f"python -c {shlex.quote(_of_table(change, target))}"
    if not all(change.columns):  # a list on the command line has no empty name
        return f"python -c {shlex.quote(f'import pageseek as ps; {python_of(change, target)}')}"
    if change.kind in ATTACHED:
        columns = ",".join(map(_listed, change.columns))
        if change.kind == KEY:
            option = _option(LOOKUP, f"({columns})")
        else:
            option = "" if change.kind == PAGE_INDEX else _option(change.kind, columns)
            if change.kind == FOOTER:
                option = f" --{FOOTER}"
        return f"pageseek index attach {target.shell}{option} --in-place"
    word = {SORT: "sorted", CLUSTER: "clustered"}.get(change.kind, "rewritten")
    option = _rewrite_options(change)
    return f"pageseek rewrite {target.shell}{output_option(target.output(word))}{option}"


def output_option(name: str) -> str:
    """The option for the output of a command, with a space before it."""
    return _option("output", name)


def _rewrite_options(change: Change) -> str:
    if change.kind == SORT:
        return _option(SORT, ",".join(map(_sorted, change.columns)))
    if change.kind == CLUSTER:
        return _option(CLUSTER, ",".join(map(_listed, change.columns)))
    return _option(change.kind, str(SMALL_PAGE if change.kind == PAGE_ROWS else USUAL_GROUP))


def _option(kind: str, value: str) -> str:
    """An option with a space before it. A value that begins with a dash would be taken for another option."""
    between = "=" if value.startswith("-") else " "
    return f" --{kind.replace('_', '-')}{between}{shlex.quote(value)}"


def _listed(name: str) -> str:
    """A name in a list with commas, quoted where it would be read as something else."""
    plain = name == name.strip() and not set(name) & set(',"()=')
    return name if plain else '"' + name.replace('"', '""') + '"'


def _sorted(name: str) -> str:
    """A name in a list for sorting, where what follows a colon may be the direction."""
    _, colon, way = name.rpartition(":")
    is_way = colon and way.lower() in ("asc", "ascending", "desc", "descending")
    return _listed(f"{name}:asc" if is_way else name)


def python_of(change: Change, target: Target) -> str:
    """The call in Python."""
    if change.kind in ATTACHED:
        if target.table:
            return _attach_table(change, target)
        indexes = _indexes(change)
        if target.is_one:
            return f"ps.index.attach({target.python}{indexes}, in_place=True)"
        return f"ps.index.attach_all({target.python}{indexes})"
    word = {SORT: "sorted", CLUSTER: "clustered"}.get(change.kind, "rewritten")
    given = (
        f"{change.kind}={list(change.columns)!r}"
        if change.columns
        else f"{change.kind}={SMALL_PAGE if change.kind == PAGE_ROWS else USUAL_GROUP}"
    )
    return f"ps.rewrite({target.python}, {target.output(word)!r}, {given})"


def _table(source: Any, names: Sequence[str], lazy: Scan) -> str:
    """The table of a scan in Python; empty where its files are bare."""
    if not lazy._request.options.int96_utc:  # which only tables set
        return ""
    kind = type(source).__module__.partition(".")[0]
    folder = names[0] if names else str(getattr(source, "table_uri", ""))
    if kind == "deltalake" or (folder and os.path.isdir(os.path.join(folder, "_delta_log"))):
        return f"DeltaTable({folder!r})"
    return "catalog.load_table(...)"


def _indexes(change: Change) -> str:
    """The arguments of `attach` beside the source."""
    if change.kind == KEY:
        return f", {LOOKUP}={[tuple(change.columns)]!r}"
    if change.kind == FOOTER:
        return f", {FOOTER}=True"
    return "" if change.kind == PAGE_INDEX else f", {change.kind}={list(change.columns)!r}"


def _attach_table(change: Change, target: Target) -> str:
    indexes = _indexes(change)
    return f"ps.index.attach_all(None, table={target.table}{indexes})"


def _of_table(change: Change, target: Target) -> str:
    made = "from deltalake import DeltaTable; " if target.table.startswith("Delta") else ""
    return f"import pageseek as ps; {made}{_attach_table(change, target)}"


def title_of(change: Change) -> str:
    """The change in words."""
    columns = ", ".join(change.columns)
    return {
        PAGE_INDEX: "page index",
        SORT: f"rows sorted by {columns}",
        CLUSTER: f"rows clustered by {columns}",
        PAGE_ROWS: f"pages of {SMALL_PAGE:,} rows",
        "bloom": f"Bloom filters of {columns}",
        "lookup": f"lookup index of {columns}",
        KEY: f"lookup index of {columns} together",
        "bitmap": f"bitmap index of {columns}",
        "distinct": f"list of values of {columns}",
        GROUP_ROWS: f"row groups of {USUAL_GROUP:,} rows",
        FOOTER: "places of the chunks in the footer",
        "trigram": f"trigram index of {columns}",
        "file_bloom": f"Bloom filters of whole files for {columns}",
    }[change.kind]
