"""Proofs that rows cannot match, or that all of them do.

Pruners do no IO. One that needs bytes is a generator: it yields the (offset, length) ranges that it wants,
receives their bytes in that order, and returns its proofs.

| file | job |
|---|---|
| `row_groups` | the statistics of all row groups, from the footer alone |
| `column_index` | the page index, fetched |
| `bloom_filter`, `dictionary` | Bloom filters and dictionaries of column chunks |
| `bloom_blocks` | where a Bloom filter lies, and which of its blocks are read |
| `value_lists`, `datafusion_list` | what lists of distinct values say of tests, for one file or many |
| `needed_hashes` | the hashes of the values of which a row needs one |
| `partial_index` | kinds of index of which a scan reads parts |
| `kind` | what a kind of index is: build, prune, verify |
| `embedded_pruner`, `checked_pruner` | pruners of kinds: found in files; errors of users' pruners, late imports |
| `chunk_pruner` | what the pruners of column chunks share |
| `protocol` | the protocol of a pruner |
| `registry`, `built_in_kinds` | the mechanisms and kinds of index by name, those of users too; those of this package |
| `accumulator` | one file that mechanisms prune, and what is proved of each row group, for the whole filter |
| `verdicts` | which outcome of a comparison passes, and whether some or all rows of a zone have it |
| `driver` | puts the row groups of a file to all mechanisms, the cheapest first |
| `page_stages` | the mechanisms that go by pages: column index and page headers |
| `pruner_stage` | one pruner put to the row groups where it is worth its price |
| `sampling` | few row groups that stand for many |
| `footer_finality` | whether any mechanism could add to what the footer has proved |
"""

from typing import TYPE_CHECKING

from pageseek.base.late_modules import handed_on
from pageseek.io.range_requests import Wanted

if TYPE_CHECKING:
    from pageseek.prune.protocol import Catalog, Price, Proof, PruneContext, Pruner, passing
    from pageseek.prune.registry import register_pruner, unregister_pruner

__all__ = [
    "Catalog",
    "Price",
    "Proof",
    "PruneContext",
    "Pruner",
    "Wanted",
    "passing",
    "register_pruner",
    "unregister_pruner",
]

__getattr__ = handed_on(
    __name__,
    {
        "Catalog": "protocol",
        "Price": "protocol",
        "Proof": "protocol",
        "PruneContext": "protocol",
        "Pruner": "protocol",
        "passing": "protocol",
        "register_pruner": "registry",
        "unregister_pruner": "registry",
    },
)
