"""Indexes added to a Parquet file: its pages stay where they are, and a new footer says where the indexes lie.

All bytes before the old footer are kept at their places. Indexes follow them, then the new footer, which keeps everything
else of the old one. docs/format.md has the form.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any, Protocol

from pageseek.base.arguments import check_flag, check_progress, number_of_threads, refuse_others
from pageseek.base.progress import Watch
from pageseek.base.report import Report
from pageseek.base.tracebacks import short_traceback
from pageseek.format.embedded import Directory
from pageseek.format.file_metadata import FileMetadata
from pageseek.index.appended import AppendedIndexes
from pageseek.index.attachable import (
    attached_directory,
    has_bounds,
    refuse_chunks_in_footer,
    refuse_encrypted,
)
from pageseek.index.attached import Attached
from pageseek.index.build import build_chunks
from pageseek.index.footer_index import footer_pointer, is_current
from pageseek.index.index_specs import IndexRequest, index_request, index_specs
from pageseek.index.local_target import Target
from pageseek.index.table_target import TableEnd
from pageseek.index.targets import ends
from pageseek.storage import Source, Store

if TYPE_CHECKING:
    from typing import Unpack

    from pageseek.base.habits import NoHabits


class Ending(Protocol):
    """Where a file with indexes goes."""

    @property
    def in_place(self) -> bool:
        """Whether nothing is to be done where nothing is added."""
        ...

    def target(self, source: Store) -> Target:
        """The target of a file that is made from `source`, an open one."""
        ...

    def done(self, size: int) -> None:
        """Called once the new file is there, with its bytes."""
        ...


@short_traceback
def attach(
    source: Any,
    *,
    page_index: bool | Sequence[str] = True,
    bloom: Sequence[str] | Mapping[str, float] = (),
    distinct: Sequence[str] = (),
    lookup: Sequence[str | tuple[str, ...]] = (),
    bitmap: Sequence[str] = (),
    trigram: Sequence[str] = (),
    file_bloom: Sequence[str] | Mapping[str, float] = (),
    footer: bool = False,
    distinct_index: str | None = None,
    indexes: Mapping[str, Sequence[str]] | None = None,
    output: Any = None,
    in_place: bool = False,
    overwrite: bool = False,
    table: Any = None,
    replace: bool = False,
    storage_options: Mapping[str, Any] | None = None,
    threads: int | None = None,
    progress: bool | Watch = False,
    **others: Unpack[NoHabits],
) -> Attached:
    """Add indexes to a Parquet file. Its data stays as it is, and every reader can still read it.

    Parameters
    ----------
    source : path, URL, (filesystem, path), or bytes
        One file, named as for `scan`.
    page_index : bool or list of str
        ColumnIndex and OffsetIndex (PageIndex.md), of every column or of some, where chunks have none. They help all readers
        that know page indexes.
    bloom : list of str, or dict
        Columns that get Parquet's own Bloom filters (BloomFilter.md), where chunks have none. A dict has the rate of false
        positives of each column; the rate is 0.01 otherwise.
    distinct : list of str
        Columns whose distinct values are listed, for the file and for each row group, if they are not too many. Only pageseek
        reads such lists.
    lookup : list of str, or of tuples of str
        Columns of many different values in any order, whose rows are found by value: a hash table of four to five bytes a row, of
        which a lookup reads one block. A tuple of names is a key of several columns, whose rows are found by all of them together.
        Only pageseek reads it.
    bitmap : list of str
        Columns of few different values, up to 4,096: the rows of each. Every comparison is decided by it, and matching rows are
        counted without a page. Only pageseek reads it.
    trigram : list of str
        Columns of texts that are searched by LIKE '%part%', or by how they begin: which blocks of 64 rows have each three bytes.
        Only pageseek reads it.
    file_bloom : list of str, or dict
        Columns that get one Bloom filter of all values in the file, by which `=` and IN rule out whole files. A dict has the rate of
        false positives of each column; the rate is 0.01 otherwise. Only pageseek reads it.
    footer : bool
        Say where each column chunk stands in the footer, if that is large: a file of thousands of columns is then opened by the
        parts that a query needs. Only pageseek reads it.
    distinct_index : str
        A column of strings whose distinct values are also listed in the form of DataFusion's example: `IDX1`, a length,
        values with newlines between them, and its place under the key `distinct_index_offset`.
    indexes : dict
        By name of a registered kind (`pageseek.index.register`), the columns that get such an index if they have none.
        `indexes={"distinct": ["a"]}` is the same as `distinct=["a"]`.
    output : path, URL, or (filesystem, path)
        Where the new file goes. It gets the attributes of the old object (Content-Type, user metadata), if both stores know
        such. A file for a store is first put together in the folder for temporary files.
    in_place : bool
        Replace the old file instead, if it is still the version that was read. On S3, GCS and Azure this takes a conditional
        write, which obstore has and other filesystems lack. The new file appears in one step, once it is complete.
    overwrite : bool
        Let `output` replace what is there, whatever it is.
    table : deltalake.DeltaTable, or a table of pyiceberg; or False
        The table of the file, in place of `output` and `in_place`. The new file goes beside the old one, and one commit exchanges
        them; partition values and statistics stay, and the object is of the new version afterwards. `source` may be spelt as
        the table spells it (`file_uris()`, `inspect.data_files()["file_path"]`); the table's own options then open it.
        The folder of a table is refused as a `source` unless this is False, which takes its bare files, as in `scan`.
    replace : bool
        Build indexes again that are there.
    storage_options : mapping
        Options of the stores of `source` and `output`, where these are URLs, as of `scan`.
    threads : int
        Threads that decode; by default one for each core.
    progress : bool or callable
        Show a bar (by tqdm), or call a function with a pageseek.Progress after each chunk.

    Returns
    -------
    Attached
        What was added, what was not, and why. If nothing was added, a file in place or in a table stays as it is.

    Raises
    ------
    UnsupportedError
        The file is encrypted; a column cannot have such an index; the store has no conditional write; or the new file would lie
        in a Delta Lake or Iceberg table, which records the sizes of its files (`table`). With a `table`: rows of the file are
        deleted by delete files, or the table has features that are not known here.
    CorruptFileError
        A page cannot be read. Nothing was written.
    FileChangedError
        Another file has taken the place of this one meanwhile, and stays; or another commit has taken it out of the `table`.
        Nothing was written.
    StoreError
        A store failed, or a commit to the `table`.
    FileExistsError
        There is something at `output`. Nothing was written.
    """
    refuse_others(others, attach, "index.attach")
    check_progress(progress)
    threads = number_of_threads(threads)
    check_flag("replace", replace)
    asked = index_request(
        page_index=page_index,
        bloom=bloom,
        distinct=distinct,
        lookup=lookup,
        bitmap=bitmap,
        trigram=trigram,
        file_bloom=file_bloom,
        footer=footer,
        distinct_index=distinct_index,
        indexes=indexes,
    )
    one, end = ends(source, output, in_place, overwrite, storage_options, table)
    if isinstance(end, TableEnd):
        asked = asked.renamed(end.stored_name)
    return attach_to(one, end, asked, replace=replace, threads=threads, progress=progress)


def attach_to(
    one: Source,
    end: Ending,
    asked: IndexRequest,
    *,
    replace: bool = False,
    threads: int | None = None,
    progress: bool | Watch = False,
) -> Attached:
    """Add indexes to a file that was found, which goes where `end` says. Other parameters as of `attach`."""
    report = Report()
    with closing(FileMetadata(one, one.open(), report)) as file:
        refuse_encrypted(file)
        refuse_chunks_in_footer(file)
        before = attached_directory(file, report)
        specs = index_specs(file, asked, replace, before, report)
        paged = any(spec.page_index for spec in specs)  # only bounds of pages need an order
        order_given = paged and not file.has_orders and not has_bounds(file)
        indexed = asked.footer and (replace or not _has_footer_index(file, before))
        if end.in_place and not specs and not indexed:  # it has everything
            return Attached(one.name, file.store.size, file.store.size, skipped=report.notes)
        with closing(end.target(file.store)) as target:
            made = AppendedIndexes(file, target, before, specs, order_given, replace, indexed)
            near = target.copy(file.store, file.footer_start)
            for built in build_chunks(file, near, specs, report, order_given, threads, progress):
                made.take(built)
            made.finish()
            if made.result.added or not end.in_place:
                target.commit(file.store.check)
                end.done(target.size)
            else:
                made.result.path, made.result.bytes_after = one.name, file.store.size
    made.result.skipped[:0] = report.notes
    return made.result


def _has_footer_index(file: FileMetadata, before: Directory | None) -> bool:
    """Whether the footer has an index that readers use."""
    found = footer_pointer(before)
    return found is not None and is_current(file, found)
