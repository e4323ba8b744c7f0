"""Indexes inside Parquet files: what a file lacks is added, and its data pages stay as they are (docs/format.md).

The functions are imported when they are first used: a scan that reads an attached index needs only its kind.

| file | job |
|---|---|
| `attaching`, `attaching_all`, `detaching`, `verification` | the public functions; `list` is in `detaching` |
| `kinds` | the kinds of index that pageseek embeds, a file each |
| `bitmap_builder` | the rows of each value of a bitmap index |
| `lookup_builder` | hashes with their rows, sorted into the blocks of a lookup index |
| `file_bloom_builder` | a Bloom filter of all values of a column of the file |
| `footer_index` | the index of the new footer itself |
| `trigram_builder` | three bytes of texts with the blocks of rows that have them |
| `spilled` | entries of row groups, sorted by part; what does not fit into memory waits in a file |
| `attachable` | whether indexes can be added to a file, and what was attached before |
| `index_specs` | what is built for each leaf |
| `build` | all wanted indexes of a column chunk, in one pass over its pages |
| `appended`, `payloads` | the bytes that are written behind a file; those of embedded kinds |
| `footer_edit` | the new footer |
| `attached` | the result of `attach` and `detach` |
| `bloom_builder`, `distinct_builder`, `page_index_builder` | what is built: Bloom filters, distinct values, page indexes |
| `page_bounds` | bounds of pages as a ColumnIndex has them |
| `page_reader`, `page_values`, `chunk_walk`, `page_budget` | the pages of column chunks, read side by side in bounded memory |
| `chunk_check` | what `verify` does with a column chunk |
| `page_index_check`, `filter_check`, `statistics_check`, `stored_indexes` | what it compares with the data: page index, Bloom filter, statistics, embedded indexes |
| `table_verification` | what `verify` compares with the files of a table: its log, its deletes |
| `findings` | the result of `verify` |
| `results_html` | how notebooks show these results |
| `targets` | which file is read, and where the new one goes |
| `local_target`, `store_target` | a new file on this machine, or in a store |
| `table_target`, `delta_target`, `iceberg_target` | a new file in a table, by a commit |
| `iceberg_commits` | commits that exchange files of an Iceberg table |
| `delta_commits` | commits to the log of Delta Lake that deltalake cannot make |
| `delta_statistics` | what the log of a Delta Lake table says of the values of a file |
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pageseek.base.late_modules import handed_on
from pageseek.prune.kind import (
    Builder,
    IndexedColumn,
    InvalidIndexError,
    Kind,
    NotBuiltError,
    PageValues,
    required_values,
)
from pageseek.prune.registry import register, unregister

if TYPE_CHECKING:
    from pageseek.index.attached import Attached, AttachedFiles
    from pageseek.index.attaching import attach
    from pageseek.index.attaching_all import attach_all
    from pageseek.index.detaching import Entry, detach
    from pageseek.index.detaching import listed as list
    from pageseek.index.findings import Finding, Verified
    from pageseek.index.verification import verify

__all__ = [
    "Attached",
    "AttachedFiles",
    "Builder",
    "Entry",
    "Finding",
    "IndexedColumn",
    "InvalidIndexError",
    "Kind",
    "NotBuiltError",
    "PageValues",
    "Verified",
    "attach",
    "attach_all",
    "detach",
    "list",
    "register",
    "required_values",
    "unregister",
    "verify",
]

# what builds and verifies is imported when it is first used
_HOMES = {
    "Attached": "attached",
    "AttachedFiles": "attached",
    "Entry": "detaching",
    "Finding": "findings",
    "Verified": "findings",
    "attach": "attaching",
    "attach_all": "attaching_all",
    "detach": "detaching",
    "list": "detaching:listed",
    "verify": "verification",
}


if not TYPE_CHECKING:  # type checkers would take any name
    __getattr__ = handed_on(__name__, _HOMES)


def __dir__() -> Any:
    """The public names."""
    return sorted(__all__)
