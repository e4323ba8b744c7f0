"""Proofs that rows cannot match, or surely do.

`groups`: the statistics of all row groups, from the footer alone. `pages`: the page index. `protocol`: what other
mechanisms look like; `bloom` and `dictionary` are two. `registry` knows them by name, those that others registered
as well. `evidence` joins what they prove, `driver` puts the row groups of a file to them; `final` says of those of many
files where that would be in vain.

Pruners do no IO. One that needs bytes is a generator: it yields the (offset, length) ranges that it wants,
receives their bytes in order, and returns what it proved.
"""

from pageseek.asking import Wanted
from pageseek.prune.driver import Left, Task
from pageseek.prune.final import Figures, final, may_be_final
from pageseek.prune.groups import GroupProof, prune_groups
from pageseek.prune.pages import load_indexes
from pageseek.prune.protocol import Proof, Pruner, Site, passing
from pageseek.prune.registry import (
    COLUMN_INDEX,
    DISTINCT,
    PAGE_HEADERS,
    PUBLISHED,
    STATISTICS,
    mechanisms,
    register_pruner,
    unregister_pruner,
)
from pageseek.prune.value_lists import ValueLists

__all__ = [
    "COLUMN_INDEX",
    "DISTINCT",
    "PAGE_HEADERS",
    "PUBLISHED",
    "STATISTICS",
    "Figures",
    "GroupProof",
    "Left",
    "Proof",
    "Pruner",
    "Site",
    "Task",
    "ValueLists",
    "Wanted",
    "final",
    "load_indexes",
    "may_be_final",
    "mechanisms",
    "passing",
    "prune_groups",
    "register_pruner",
    "unregister_pruner",
]
