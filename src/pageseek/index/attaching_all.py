"""Indexes added to many files: those of a folder, a list, a glob or a table."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from functools import partial
from typing import Any

from pageseek.base.arguments import check_progress, number_of_threads
from pageseek.base.errors import PageseekError
from pageseek.base.progress import Watch, watched_steps
from pageseek.base.report import Report
from pageseek.base.tracebacks import short_traceback
from pageseek.datasets.sources import files_of
from pageseek.index.attached import Attached, AttachedFiles
from pageseek.index.attaching import attach
from pageseek.index.targets import refuse_tables


@short_traceback
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
        `page_index`, `bloom`, `distinct`, `lookup`, `bitmap`, `trigram`, `file_bloom`, `footer`, `distinct_index`, `indexes` and `replace`, as of `attach`.

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
    check_progress(progress)
    threads = number_of_threads(threads)
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
    done: dict[str, Attached | Exception] = {}
    with (
        watched_steps("files", len(works), progress, Report()) as step,
        ThreadPoolExecutor(max(at_once, 1), "pageseek-attach") as pool,
    ):
        try:
            begun = {pool.submit(work): name for name, work in works.items()}
            for future in as_completed(begun):
                try:
                    done[begun[future]] = future.result()
                except (OSError, PageseekError) as error:
                    done[begun[future]] = error
                step()
        except BaseException:  # a wrong argument, or Ctrl-C: what has begun is finished
            pool.shutdown(wait=True, cancel_futures=True)
            raise
    made = AttachedFiles(seconds=time.monotonic() - began)
    for name in works:
        found = done[name]
        if isinstance(found, Exception):
            made.failed[name] = found
        else:
            (made.files if found.added else made.unchanged).append(found)
    return made


def _files_of_table(source: Any, table: Any) -> Sequence[str]:
    """The files of a table, as it spells them."""
    if source is not None:
        one = isinstance(source, str | os.PathLike)
        return [os.fspath(name) for name in ([source] if one else source)]
    if hasattr(table, "file_uris"):
        return list(table.file_uris())
    if hasattr(table, "inspect"):
        return list(table.inspect.data_files()["file_path"].to_pylist())
    raise TypeError(f"table {type(table).__name__}: a deltalake.DeltaTable or a table of pyiceberg")
