"""How a change is made: the command, and the same in Python."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from pathlib import PurePath
from typing import Any

from pageseek.advice.estimates import ATTACHED, CLUSTER, PAGE_INDEX, PAGE_ROWS, SMALL_PAGE, SORT, Change
from pageseek.storage import Source

TABLE = "the table"  # what a table object is called in commands


class Target:
    """What the commands change, as a caller has named it.

    Attributes
    ----------
    is_table : bool
        Its files are exchanged by commits.
    is_one : bool
        It is a single file.
    """

    def __init__(self, source: Any, sources: Sequence[Source], is_table: bool, one: bool) -> None:
        """`one`: the source is the name of a file, not of a folder with one."""
        self.is_table, self.is_one = is_table, one
        if isinstance(source, (str, os.PathLike)):
            self.names = [os.fspath(source)]
        elif isinstance(source, (list, tuple)) and all(isinstance(a, (str, os.PathLike)) for a in source):
            self.names = [os.fspath(name) for name in source]
        elif len(sources) == 1 and sources[0].data is None:
            self.names = [sources[0].path]
        else:
            self.names = []

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
        if len(self.names) != 1:
            return f"{word}.parquet"
        name = self.names[0].rstrip("/")
        if any(mark in name for mark in "*?[]"):
            return f"{word}.parquet"
        stem = name.removesuffix(".parquet")
        return f"{stem}.{word}.parquet" if PurePath(stem).name else f"{word}.parquet"


def command_of(change: Change, target: Target) -> str:
    """The command for a shell."""
    columns = shlex.quote(",".join(change.columns))
    if change.kind in ATTACHED:
        if target.is_table:  # a command has no table object that could commit
            return f"python -c {shlex.quote(_of_table(change))}"
        option = "" if change.kind == PAGE_INDEX else f" --{change.kind} {columns}"
        return f"pageseek index attach {target.shell}{option} --in-place"
    word = {SORT: "sorted", CLUSTER: "clustered"}.get(change.kind, "rewritten")
    option = _rewrite_options(change)
    return f"pageseek rewrite {target.shell} --output {shlex.quote(target.output(word))} {option}"


def _rewrite_options(change: Change) -> str:
    columns = shlex.quote(",".join(change.columns))
    if change.kind == SORT:
        return f"--sort-by {columns}"
    if change.kind == CLUSTER:
        return f"--cluster-by {columns}"
    return f"--page-rows {SMALL_PAGE}"


def python_of(change: Change, target: Target) -> str:
    """The call in Python."""
    if change.kind in ATTACHED:
        if target.is_table:
            return _attach_table(change)
        indexes = "" if change.kind == PAGE_INDEX else f", {change.kind}={list(change.columns)!r}"
        if target.is_one:
            return f"ps.index.attach({target.python}{indexes}, in_place=True)"
        return f"ps.index.attach_all({target.python}{indexes})"
    word = {SORT: "sorted", CLUSTER: "clustered"}.get(change.kind, "rewritten")
    given = f"{change.kind}={list(change.columns)!r}" if change.columns else f"page_rows={SMALL_PAGE}"
    return f"ps.rewrite({target.python}, {target.output(word)!r}, {given})"


def _attach_table(change: Change) -> str:
    indexes = "" if change.kind == PAGE_INDEX else f", {change.kind}={list(change.columns)!r}"
    return f"ps.index.attach_all(None, table=table{indexes})"


def _of_table(change: Change) -> str:
    return f"import pageseek as ps; table = ...; {_attach_table(change)}"


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
        "bitmap": f"bitmap index of {columns}",
        "distinct": f"list of values of {columns}",
    }[change.kind]
