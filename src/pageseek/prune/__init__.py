"""Proofs that rows cannot match: `groups` from the statistics of row groups, `pages` from the page index.

Pruners do no IO. One that needs bytes is a generator: it yields the (offset, length) ranges that it wants,
receives their bytes in order, and returns what it proved.
"""

from pageseek.prune.bloom import BloomPruner
from pageseek.prune.dictionary import DictionaryPruner
from pageseek.prune.groups import GroupProof, prune_groups
from pageseek.prune.pages import PageProof, load_indexes, prune_pages

__all__ = ["BloomPruner", "DictionaryPruner", "GroupProof", "PageProof", "load_indexes", "prune_groups", "prune_pages"]
