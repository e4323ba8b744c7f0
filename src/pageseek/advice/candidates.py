"""The changes that may make a query cheaper, as far as they apply to its columns and are not there."""

from __future__ import annotations

import pyarrow as pa

from pageseek.advice.column_facts import ColumnFacts
from pageseek.advice.estimates import (
    BITMAP,
    BLOOM,
    CLUSTER,
    DISTINCT,
    LOOKUP,
    PAGE_INDEX,
    PAGE_ROWS,
    SMALL_PAGE,
    SORT,
    Change,
    Estimator,
)
from pageseek.advice.present import Present
from pageseek.advice.questions import EQUAL, OTHER, RANGE, Condition
from pageseek.format import bitmap_form
from pageseek.format.value_hashes import can_hash

MANY = 1_000  # different values of a column that a Bloom filter or a lookup index is for
MOST_LISTED = 10_000  # different values of a list


def changes_for(estimator: Estimator, present: Present) -> list[Change]:
    """The changes to try for one query."""
    matches = estimator.matches
    made: list[Change] = []
    leaves = {one.leaf.name for group in matches.layout.groups for one in group.leaves.values()}
    if leaves & set(present.no_page_index):
        made.append(
            Change(PAGE_INDEX, tuple(name for name in present.no_page_index if name in leaves))
        )
    ordered: list[str] = []
    for i, condition in enumerate(matches.conditions):
        facts = matches.facts[i]
        if not condition.path or not any(group.conditions[i] for group in matches.layout.groups):
            continue  # of several columns, of a list, or of the names of folders
        made += _indexes(condition, facts, present.distinct(facts, matches.layout), present)
        if condition.kind != OTHER:
            ordered.append(condition.path)
    made += [Change(SORT, (column,)) for column in ordered]
    ranges = [one.path for one in matches.conditions if one.kind == RANGE and one.path in ordered]
    if len(ranges) > 1:
        made.append(Change(CLUSTER, tuple(ranges[:2])))
    if _has_large_pages(estimator):
        made.append(Change(PAGE_ROWS, ()))
    return made


def _indexes(
    condition: Condition, facts: ColumnFacts | None, distinct: float, present: Present
) -> list[Change]:
    """Indexes of the column of a condition, by the different values of the column."""
    column, made = condition.path, []
    few = facts is not None and distinct <= bitmap_form.MAX_VALUES
    many, hashed = distinct >= MANY, facts is None or can_hash(facts.type)
    if (
        few
        and facts is not None
        and not pa.types.is_floating(facts.type)
        and condition.kind != OTHER
    ):
        made.append(Change(BITMAP, (column,)))
    if condition.kind == EQUAL and many and hashed:
        made += [Change(LOOKUP, (column,)), Change(BLOOM, (column,))]
    if condition.kind == EQUAL and facts is not None and distinct <= MOST_LISTED:
        made.append(Change(DISTINCT, (column,)))
    return [one for one in made if not present.has(one.kind, column)]


def _has_large_pages(estimator: Estimator) -> bool:
    """Whether the pages of most leaves have many more rows than small ones would have."""
    chunks = [one for group in estimator.layout.groups for one in group.leaves.values()]
    large = sum(one.num_rows > 4 * SMALL_PAGE * one.num_pages for one in chunks)
    return 2 * large > len(chunks)
