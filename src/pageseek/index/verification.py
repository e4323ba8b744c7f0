"""What the indexes of a file, or of the files of a table, say, compared with the data: page index, Bloom filters, statistics,
lists of values.

Sources: parquet.thrift (ColumnIndex, OffsetIndex, Statistics), PageIndex.md, BloomFilter.md, docs/format.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from typing import TYPE_CHECKING, Any

from pageseek.base.arguments import check_column, check_progress, number_of_threads, refuse_others
from pageseek.base.errors import PageseekError
from pageseek.base.progress import Watch, watched_steps
from pageseek.base.report import Report
from pageseek.base.tracebacks import short_traceback
from pageseek.datasets.sources import files_of, with_schema
from pageseek.format.embedded import (
    KEY_LOOKUP,
    Directory,
    InvalidIndexError,
    directory,
    fingerprint_of_all,
)
from pageseek.format.file_metadata import FileMetadata
from pageseek.format.footer_form import KIND as FOOTER
from pageseek.index.chunk_check import ChunkCheck
from pageseek.index.chunk_walk import each_chunk
from pageseek.index.findings import Finding, Verified
from pageseek.index.footer_index import footer_pointer, is_current
from pageseek.index.page_reader import Chunk
from pageseek.index.stored_indexes import StoredIndexes
from pageseek.index.table_verification import DELETES, TableCheck
from pageseek.index.targets import one_file
from pageseek.prune.registry import LOG
from pageseek.storage import Source

if TYPE_CHECKING:
    from typing import Unpack

    from pageseek.base.habits import NoHabits


@short_traceback
def verify(
    source: Any,
    *,
    distinct_index: str | None = None,
    threads: int | None = None,
    progress: bool | Watch = False,
    table: bool | None = None,
    storage_options: Mapping[str, Any] | None = None,
    **others: Unpack[NoHabits],
) -> Verified:
    """Read a file whole, and compare every index with what was read. `source`, `threads`, `progress`, `storage_options`: as of
    `attach`. `table`: as of `scan`.

    Of a table, all files of its current version are read, and what its log or manifests say of them is compared, too: the statistics
    by which files are ruled out, and the deleted rows.

    `distinct_index`: the column of a list in DataFusion's form, where the file does not say it; by default the only column of
    strings.

    Raises
    ------
    PageseekError
        The file cannot be opened. A page that cannot be read is a finding.
    UnsupportedError
        `distinct_index` is not a column of strings.
    """
    refuse_others(others, verify, "index.verify")
    check_progress(progress)
    check_column("distinct_index", distinct_index)
    threads = number_of_threads(threads)
    named = files_of(source, storage_options, table=table)
    if named.table is None:
        one = one_file(source, storage_options, table)
        return _file(one, distinct_index, threads, progress)
    sources, dataset_schema = with_schema(named, None, None)
    check = TableCheck(named.table.bounds, named.table.schema, dataset_schema)
    result, report = Verified(named.table.what), Report()
    with watched_steps("files", len(sources), progress, report) as step:
        for i, one in enumerate(sources):
            found = _file(one, distinct_index, threads, False)
            result.findings += [finding._replace(file=one.name) for finding in found.findings]
            for kind, n in found.checked.items():
                result.checked[kind] = result.checked.get(kind, 0) + n
            if one.deletes:
                result.checked[DELETES] = result.checked.get(DELETES, 0) + 1
                result.findings += check.deletes(one)
            if check.columns:
                result.checked[LOG] = result.checked.get(LOG, 0) + len(check.columns)
                try:
                    result.findings += check.log(i, one, threads)
                except PageseekError as error:  # the first finding, if a page cannot be read
                    result.findings.append(Finding(LOG, "", None, None, str(error), one.name))
            step()
    return result


def _file(
    one: Source, distinct_index: str | None, threads: int | None, progress: bool | Watch
) -> Verified:
    """The indexes of one file, compared with its data."""
    result = Verified(one.name)
    report = Report()
    with closing(FileMetadata(one, one.open(), report)) as file:

        def wrong(kind: str, column: str, what: str) -> None:
            result.findings.append(Finding(kind, column, None, None, what))

        found: Directory | None = None
        try:
            found = directory(file)
        except InvalidIndexError as error:
            wrong("embedded", "", str(error))
        if found is not None:
            if found.chunks not in (None, fingerprint_of_all(file)):
                wrong("embedded", "", "attached to other column chunks: the file was rewritten")
            for kind, path, why in found.left_out:
                wrong(kind or "embedded", ".".join(path), why)
            paths = {leaf.path for leaf in file.leaves}
            for entry in found.pointers:
                if entry.leaf is None or entry.leaf in paths or entry.kind == KEY_LOOKUP:
                    continue
                wrong(entry.kind, entry.column, "the file has no such column")
            own = footer_pointer(found)
            if own is not None:
                result.checked[FOOTER] = 1
                if not is_current(file, own):
                    wrong(FOOTER, "", "it is not of this footer")
        stored = StoredIndexes(file, found, distinct_index, wrong)
        chunks = [
            (group, leaf)
            for group in range(file.num_row_groups)
            for leaf in file.leaves
            if file.group_rows[group]
        ]

        def work(chunk: Chunk) -> ChunkCheck:
            made = ChunkCheck(file, chunk, stored)
            made.run()
            return made

        for made in each_chunk(file, chunks, work, report, threads, progress):
            result.findings += made.findings
            leaf, group = made.chunk.leaf, made.chunk.row_group
            for kind, part in made.parts.items():
                for what in stored.take(kind, leaf, group, part):
                    result.findings.append(Finding(kind, leaf.name, group, None, what))
            for kind in made.kinds:
                result.checked[kind] = result.checked.get(kind, 0) + 1
        stored.finish()
    return result
