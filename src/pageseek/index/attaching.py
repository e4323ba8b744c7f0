"""Indexes put into a Parquet file, and taken out: its pages stay where they are, and a new footer says where the rest is.

What the file had up to its old footer is kept, byte for byte and at the same places; indexes follow it, then the new
footer, in which whatever else the old one had is as it was. The form is that of docs/format.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import Any

from pageseek.base.progress import Watch
from pageseek.base.report import Report
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
from pageseek.index.index_specs import embedded_columns, index_specs
from pageseek.index.targets import ends


def attach(
    source: Any,
    *,
    page_index: bool | Sequence[str] = True,
    bloom: Sequence[str] | Mapping[str, float] = (),
    distinct: Sequence[str] = (),
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
) -> Attached:
    """Add indexes to a Parquet file; its data is not touched, and every reader still reads it.

    Parameters
    ----------
    source : path, URL, (filesystem, path), or bytes
        One file: whatever `scan` takes for one.
    page_index : bool or list of str
        ColumnIndex and OffsetIndex (PageIndex.md), of every column or of some, where chunks have none. All readers that know
        page indexes profit.
    bloom : list of str, or dict
        Columns that get Parquet's own Bloom filters (BloomFilter.md), where chunks have none; with a dict the rate
        of false positives of each (0.01 otherwise).
    distinct : list of str
        Columns whose different values are listed, for the file and for each row group, where they are not too many. Read by
        pageseek.
    distinct_index : str
        A column of strings whose different values are also written in the form of DataFusion's example: `IDX1`, a length,
        values with newlines between them, and its place under the key `distinct_index_offset`.
    indexes : dict
        Of registered kinds (`pageseek.index.register`) by name the columns that get such an index, where they have none.
        `indexes={"distinct": ["a"]}` says what `distinct=["a"]` does.
    output : path, URL, or (filesystem, path)
        Where the new file goes, which has what the store of the old one says of it (Content-Type, user metadata), where that of
        the new one takes it. `in_place=True` replaces the old one instead, if it is still the version that was read: on S3, GCS
        and Azure by a write on that condition, which obstore has and other filesystems have not. Either way it appears in one
        step, once it is complete. What goes to a store is put together in the folder for temporary files.
    overwrite : bool
        Let `output` replace what is there, whatever it is.
    table : deltalake.DeltaTable, or a table of pyiceberg; or False
        That the file belongs to, in place of `output` and `in_place`. The new file goes beside the old one, and one commit exchanges
        them, with partition values and statistics as they were; the object is of that version then. `source` may be spelt as
        the table spells it (`file_uris()`, `inspect.data_files()["file_path"]`), and is opened with the table's own options then.
        A `source` that is the folder of a table is refused without it; False takes the bare files of such a folder, as in `scan`.
    replace : bool
        Build what is there anew.
    storage_options : mapping
        Of the stores that `source` and `output` name by URLs, as of `scan`.
    threads : int
        That decode; as many as there are cores if not given.
    progress : bool or callable
        Show a bar (by tqdm), or call a function with a pageseek.Progress after each chunk.

    Returns
    -------
    Attached
        What was added, and what was not, and why. Where nothing was, a file stays as it is, in place and in a table.

    Raises
    ------
    UnsupportedError
        The file is encrypted, a column cannot have such an index, the store cannot replace a file on the condition that it is the
        one that was read, or the new file would lie in a Delta Lake or Iceberg table, which records the sizes of its files (`table`).
        Of a `table`: rows of the file are deleted by vectors or delete files, or it asks more of writers than is known here.
    CorruptFileError
        A page cannot be read. Nothing was written.
    FileChangedError
        The file became another one meanwhile, and that one is left as it is, or somebody has taken it out of the `table`. Nothing
        was written.
    StoreError
        A store failed, or a commit to the `table`.
    FileExistsError
        Something lies where `output` says. Nothing was written.
    """
    if not isinstance(distinct_index, str | None):
        raise TypeError(f"distinct_index={distinct_index!r}: the name of one column")
    one, end = ends(source, output, in_place, overwrite, storage_options, table)
    report = Report()
    with closing(FileMetadata(one, one.open(), report)) as file:
        refuse_encrypted(file)
        refuse_chunks_in_footer(file)
        before = attached_directory(file, report)
        embedded = embedded_columns(distinct, distinct_index, indexes)
        specs = index_specs(file, page_index, bloom, embedded, replace, before, report)
        paged = any(spec.page_index for spec in specs)  # only bounds of pages need an order
        order_given = paged and not file.has_orders and not has_bounds(file)
        if end.in_place and not specs:  # it has everything
            return Attached(one.name, file.store.size, file.store.size, skipped=report.notes)
        with closing(end.target(file.store)) as target:
            made = AppendedIndexes(file, target, before, specs, order_given, replace)
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
