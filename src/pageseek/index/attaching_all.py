"""Indexes added to many files: those of a folder, a list, a glob or a table."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from pageseek.base.errors import PageseekError
from pageseek.base.progress import Watch, counted
from pageseek.base.report import Report, format_size
from pageseek.dataset.sources import files_of
from pageseek.index.attached import Attached
from pageseek.index.attaching import attach
from pageseek.index.targets import refuse_tables


@dataclass(slots=True)
class AttachedFiles:
    """What was done to many files.

    Attributes
    ----------
    files : list of Attached
        Those that have got indexes, in the order of the source.
    unchanged : list of str
        The names of files that have got nothing, since they had all of them, or cannot have them.
    failed : dict of str to Exception
        The errors of the others, by the names of their files, which are as they were.
    seconds : float
        The time that it took.
    """

    files: list[Attached] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    failed: dict[str, Exception] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def ok(self) -> bool:
        """Whether no file has failed."""
        return not self.failed

    def __str__(self) -> str:
        before = sum(one.bytes_before for one in self.files)
        more = sum(one.bytes_after - one.bytes_before for one in self.files)
        total = len(self.files) + len(self.unchanged) + len(self.failed)
        sizes = f"{format_size(before)} and {format_size(max(more, 0))} more"
        lines = [f"{len(self.files):,} of {total:,} files: {sizes}, in {self.seconds:.1f} s"]
        if self.unchanged:
            lines.append(
                f"  {len(self.unchanged):,} stay as they are: they have these indexes, or cannot have them"
            )
        counts: dict[tuple[str, str], list[int]] = {}
        for one in self.files:
            for key, chunks in one.added.items():
                found = counts.setdefault(key, [0, 0])
                found[0], found[1] = found[0] + 1, found[1] + chunks
        width = max([len(column) for _, column in counts], default=0)
        lines += [
            f"  {kind:<10}  {column:<{width}}  {chunks:,} chunk{'s' * (chunks != 1)} in {n:,} file{'s' * (n != 1)}"
            for (kind, column), (n, chunks) in counts.items()
        ]
        skipped: dict[str, int] = {}
        for one in self.files:
            for why in one.skipped:
                skipped[why] = skipped.get(why, 0) + 1
        shown = sorted(skipped.items(), key=lambda pair: -pair[1])[:5]
        lines += [f"  not: {why} ({n:,} file{'s' * (n != 1)})" for why, n in shown]
        for name, error in list(self.failed.items())[:5]:
            said = str(error)
            lines.append(f"  failed: {said if name in said else f'{name}: {said}'}")
        if len(self.failed) > 5:
            lines.append(f"  and {len(self.failed) - 5:,} more have failed")
        return "\n".join(lines)


def attach_all(
    source: Any,
    *,
    table: Any = None,
    storage_options: Mapping[str, Any] | None = None,
    threads: int | None = None,
    progress: bool | Watch = False,
    **indexes: Any,
) -> AttachedFiles:
    """Add indexes to many Parquet files, in place: `attach` for each of them, several at a time.

    A file that has all of the indexes stays as it is, and each file is replaced in one step: a run that was stopped is started
    again. A file that fails stays as it was, and the others go on.

    Parameters
    ----------
    source : path, URL, glob, folder, sequence of them, or (filesystem, path)
        The files, named as for `scan`. With a `table` it may be left out as None: all files of its version.
    table : deltalake.DeltaTable, or a table of pyiceberg; or False
        As of `attach`: one commit for each file, one after the other.
    storage_options : mapping
        Options of the store, as of `scan`.
    threads : int
        Threads in all; by default one for each core.
    progress : bool or callable
        Show a bar, or call a function with a pageseek.Progress after each file.
    **indexes
        `page_index`, `bloom`, `distinct`, `lookup`, `bitmap`, `distinct_index`, `indexes` and `replace`, as of `attach`.

    Returns
    -------
    AttachedFiles
        What was done. Print it.

    Raises
    ------
    UnsupportedError
        The folder is a table, whose files are changed by its own commits only (`table`).
    ValueError
        There are no files.
    """
    wrong = sorted({"output", "in_place", "overwrite"} & set(indexes))
    if wrong:
        raise TypeError(f"attach_all: {wrong[0]}=: files are changed in place, or by the table")
    began = time.monotonic()
    of_table = table is not None and not isinstance(table, bool)
    works: dict[str, Callable[[], Attached]] = {}
    cores = threads or os.cpu_count() or 1
    if of_table:
        for name in _files_of_table(source, table):
            works[name] = partial(
                attach,
                name,
                table=table,
                storage_options=storage_options,
                threads=threads,
                **indexes,
            )
        at_once = 1
    else:
        named = files_of(source, storage_options, table=table)
        refuse_tables(named)
        if named.table is not None:
            raise TypeError(
                "attach_all: a table is given as table=, with None or some of its files as the source"
            )
        at_once = min(cores, len(named.files))
        each = max(cores // max(at_once, 1), 1)
        for file in named.files:
            works[file.name] = partial(
                attach, file, in_place=True, table=table, threads=each, **indexes
            )
    if not works:
        raise ValueError(f"{str(source)[:200]}: no files")
    made = AttachedFiles()
    done: dict[str, Attached | Exception] = {}
    with (
        counted("files", len(works), progress, Report()) as step,
        ThreadPoolExecutor(max(at_once, 1), "pageseek-attach") as pool,
    ):
        begun = {pool.submit(work): name for name, work in works.items()}
        try:
            for future in as_completed(begun):
                try:
                    done[begun[future]] = future.result()
                except (OSError, PageseekError) as error:
                    done[begun[future]] = error
                step()
        except BaseException:  # a wrong argument, or Ctrl-C: what has begun is finished
            pool.shutdown(wait=True, cancel_futures=True)
            raise
    for name in works:
        found = done[name]
        if isinstance(found, Exception):
            made.failed[name] = found
        elif found.added:
            made.files.append(found)
        else:
            made.unchanged.append(name)
    made.seconds = time.monotonic() - began
    return made


def _files_of_table(source: Any, table: Any) -> Sequence[str]:
    """The files of a table, as it spells them."""
    if source is not None:
        return [os.fspath(one) for one in ([source] if isinstance(source, str | os.PathLike) else source)]  # fmt: skip
    if hasattr(table, "file_uris"):
        return list(table.file_uris())
    if hasattr(table, "inspect"):
        return list(table.inspect.data_files()["file_path"].to_pylist())
    raise TypeError(f"table {type(table).__name__}: a deltalake.DeltaTable or a table of pyiceberg")
