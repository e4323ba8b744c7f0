"""The changes that may make a query cheaper, as far as they apply to its columns and are not there."""

from __future__ import annotations

import math

import pyarrow as pa

from pageseek.advice.column_facts import ColumnFacts
from pageseek.advice.estimates import (
    BITMAP,
    BLOOM,
    CLUSTER,
    DISTINCT,
    FILE_BLOOM,
    GROUP_ROWS,
    KEY,
    LOOKUP,
    PAGE_INDEX,
    PAGE_ROWS,
    SORT,
    TRIGRAM,
    Change,
    Estimator,
)
from pageseek.advice.larger_groups import SMALL_PAGE, USUAL_GROUP
from pageseek.advice.present import Present
from pageseek.advice.questions import EQUAL, OTHER, RANGE, Condition
from pageseek.format import bitmap_form
from pageseek.format.value_hashes import can_hash

MANY = 1_000  # different values of a column that a Bloom filter or a lookup index is for
MOST_KEY_COLUMNS, MOST_KEYS = 4, 256  # columns of one key, and keys of one query
RARER = 4  # times fewer rows with all of the values than with the rarest of them
MOST_LISTED = 10_000  # different values of a list
SMALL = 8  # times fewer rows than a usual row group has
FILES = 8  # from which on a filter for each whole file is tried


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
        if condition.texts and not present.has(TRIGRAM, condition.text_path):
            made.append(Change(TRIGRAM, (condition.text_path,)))
        if not condition.path or not any(group.conditions[i] for group in matches.layout.groups):
            continue  # of several columns, of a list, or of the names of folders
        made += _indexes(condition, facts, present.distinct(facts, matches.layout), present)
        if condition.kind != OTHER:
            ordered.append(condition.path)
    made += _keys(estimator, present)
    made += [Change(SORT, (column,)) for column in ordered]
    ranges = [one.path for one in matches.conditions if one.kind == RANGE and one.path in ordered]
    if len(ranges) > 1:
        made.append(Change(CLUSTER, tuple(ranges[:2])))
    if _has_large_pages(estimator):
        made.append(Change(PAGE_ROWS, ()))
    if _has_small_groups(estimator, present):
        made.append(Change(GROUP_ROWS, ()))
    return made


def _has_small_groups(estimator: Estimator, present: Present) -> bool:
    """Whether several row groups that planning left are much smaller than usual ones."""
    groups = max(present.num_groups, 1)
    return len(estimator.layout.groups) > 1 and SMALL * present.num_rows < groups * USUAL_GROUP


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
    if condition.kind == EQUAL and many and hashed and present.num_files >= FILES:
        made.append(Change(FILE_BLOOM, (column,)))
    if condition.kind == EQUAL and facts is not None and distinct <= MOST_LISTED:
        made.append(Change(DISTINCT, (column,)))
    return [one for one in made if not present.has(one.kind, column)]


def _keys(estimator: Estimator, present: Present) -> list[Change]:
    """A lookup index of all columns that have to be equal to some values, if their pairs are much rarer than the values of each."""
    matches = estimator.matches
    which = [
        i
        for i, one in enumerate(matches.conditions)
        if one.kind == EQUAL
        and one.path
        and ((facts := matches.facts[i]) is None or can_hash(facts.type))
    ]
    columns = [matches.conditions[i].path for i in which]
    values = math.prod([len(matches.conditions[i].values) for i in which])
    if not 2 <= len(which) <= MOST_KEY_COLUMNS or values > MOST_KEYS or present.has_key(columns):
        return []
    rarest = min(matches.num_rows([i]) for i in which)
    if rarest < RARER * max(matches.num_rows(which), 1):
        return []  # a lookup index of that column serves as well
    return [Change(KEY, tuple(columns))]


def _has_large_pages(estimator: Estimator) -> bool:
    """Whether the pages of most leaves have many more rows than small ones would have."""
    chunks = [one for group in estimator.layout.groups for one in group.leaves.values()]
    large = sum(one.num_rows > 4 * SMALL_PAGE * one.num_pages for one in chunks)
    return 2 * large > len(chunks)
