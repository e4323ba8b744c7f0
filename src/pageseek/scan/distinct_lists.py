"""The lists of values that pageseek has put into many similar files, read together and held against tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pageseek._core import lists
from pageseek._core.bloom import xxh64
from pageseek.base.errors import CoreError, PageseekError
from pageseek.base.report import Report
from pageseek.format.embedded import (
    FIGURES,
    HEAD,
    KEY,
    EntryForm,
    InvalidIndexError,
    Pointer,
    figures,
    opened,
)
from pageseek.format.schema import Leaf
from pageseek.format.types import LeafType
from pageseek.format.value_list import KIND as DISTINCT_KIND
from pageseek.format.value_list import VERSION
from pageseek.io.tails import TailBatch
from pageseek.predicate.bound import BoundLeaf
from pageseek.prune import ValueLists
from pageseek.scan.footer_table import KEYS, Flags, FooterTable
from pageseek.scan.schema_group import SchemaGroup
from pageseek.storage.local import read_part

LISTS = 8 << 20  # bytes of lists that do not lie in the ends of the files
SHARE = 4  # one of this many files that have lists is enough to read the lists of all


class Listed(NamedTuple):
    """The lists of one column that some of the files have. `groups`: the row groups that these speak of; `doubtful`: of
    each file, whether it has one, or may have, that is not among them.
    """

    values: ValueLists | None
    groups: npt.NDArray[np.int64]
    unusable: Flags


class ListAnswer(NamedTuple):
    """What lists say of a test: of each row group whether rows may pass and whether all do; `exact`: whether its list has all
    values and no other.
    """

    may: bytes
    must: bytes
    exact: Flags


def ask_lists(
    table: FooterTable,
    schema_group: SchemaGroup,
    tests: Sequence[BoundLeaf],
    open_files: Flags,
    batch: TailBatch,
    report: Report,
) -> tuple[Flags, dict[int, ListAnswer]]:
    """Which files have lists that cannot be used, and what those of the others say of each test (by its id), where it is worth
    reading them. `open_files`: those of which something is left.
    """
    have = table.has(KEY)
    unusable: Flags = np.zeros(len(have), np.bool_)
    if not have.any():
        return unusable, {}
    error = open_files & have
    known = all((test.leaf.index, test.leaf_type) in table.listed for test in tests)
    # of a few they are read as these are opened
    if not error.any() or (not known and SHARE * error.sum() < have.sum()):
        return error, {}
    answers: dict[int, ListAnswer] = {}
    for test in tests:
        key = test.leaf.index, test.leaf_type
        if key not in table.listed:
            table.listed[key] = _read_lists(
                table, schema_group, test.leaf, test.leaf_type, batch, report
            )
        listed: Listed = table.listed[key]
        unusable |= listed.unusable
        if listed.values is not None:
            answer, n = listed.values.evaluate(test), len(table.counts)
            may, must = np.ones(n, np.uint8), np.zeros(n, np.uint8)
            may[listed.groups] = np.frombuffer(answer.may, np.uint8)
            must[listed.groups] = np.frombuffer(answer.must, np.uint8)
            exact = np.zeros(n, np.bool_)
            exact[listed.groups] = np.frombuffer(listed.values.exact, np.bool_)
            answers[id(test)] = ListAnswer(may.tobytes(), must.tobytes(), exact)
    return unusable, answers


def _read_lists(
    table: FooterTable,
    schema_group: SchemaGroup,
    leaf: Leaf,
    leaf_type: LeafType,
    batch: TailBatch,
    report: Report,
) -> Listed:
    found, data, sizes, unusable = _bodies(table, schema_group, leaf, batch, report)
    if not len(found):
        return Listed(None, np.zeros(0, np.int64), unusable)
    table.hold(len(data))
    places = np.stack([np.cumsum(sizes) - sizes, sizes, table.n[found]], axis=1)
    first, n = table.first[found], table.n[found]
    ends = np.cumsum(n)
    # all row groups of the first of these files, of the second, and so on
    groups = np.arange(ends[-1]) + np.repeat(first - (ends - n), n)
    try:
        values = ValueLists(data, places, leaf_type)
    except (CoreError, PageseekError, pa.ArrowException):
        unusable[found] = True
        return Listed(None, np.zeros(0, np.int64), unusable)
    unusable[found] = ~values.sound
    return Listed(values, groups, unusable)


def _bodies(
    table: FooterTable, schema_group: SchemaGroup, leaf: Leaf, batch: TailBatch, report: Report
) -> tuple[npt.NDArray[np.int64], bytes, npt.NDArray[np.int64], Flags]:
    """The files that have a list of a column, these one behind the other, and their sizes; and which files may have
    one that is not to be had.
    """
    have = np.flatnonzero(table.has(KEY))
    entry_form = EntryForm(leaf, DISTINCT_KIND, VERSION)
    of_chunks = figures(table.counts, table.table[:, schema_group.column[leaf.index]])
    pairs = table.pairs[have, KEYS.index(KEY)]
    places = batch.spans(table.members[have])
    spans = np.stack([table.first[have], table.n[have]], axis=1)
    files = np.concatenate([pairs, places, spans], axis=1)
    entries = entry_form.find(table.data, batch.tails, of_chunks, files)
    state = entries[:, 0]
    unusable = np.zeros(len(table.members), np.bool_)
    unusable[have[state == lists.DOUBTFUL]] = True
    # where a body begins among the last bytes of all files
    starts = places[:, 0] + places[:, 1] - places[:, 2] + entries[:, 1]
    at_hand = state == lists.SOUND
    bodies = np.stack([starts, entries[:, 2]], axis=1)[at_hand] + (HEAD, -HEAD)
    found, sizes, data = have[at_hand], bodies[:, 1], lists.cut(batch.tails, bodies)
    others: list[int] = []
    more: list[memoryview] = []
    held = 0
    for i in np.flatnonzero((state == lists.FAR) | (state == lists.UNREAD)).tolist():
        k = have.item(i)
        try:
            if state[i] == lists.FAR:
                pointer: Pointer | None = entry_form.pointer(entries[i].tolist())
            else:
                at, size = pairs[i].tolist()
                pointer = entry_form.parsed(table.data[at : at + size], int(places[i, 3]))
            if pointer is None:
                continue
            body = batch.part(table.members.item(k), pointer.offset, pointer.length)
            if body is None:
                held += pointer.length
                if held > LISTS:
                    raise InvalidIndexError("too many")
                body = _read(batch, table.members.item(k), pointer, report)
            first, n = FIGURES * int(table.first[k]), FIGURES * int(table.n[k])
            more.append(opened(pointer, body, xxh64(of_chunks[first : first + n])))
            others.append(k)
        except (InvalidIndexError, OSError):  # who opens the file will say what is wrong
            unusable[k] = True
    if others:
        found = np.append(found, others)
        sizes = np.append(sizes, [body.nbytes for body in more])
        data = b"".join([data, *more])
    return found, data, sizes, unusable


def _read(batch: TailBatch, place: int, pointer: Pointer, report: Report) -> memoryview:
    """An index that does not lie in the end of its file."""
    data = read_part(batch.paths[place], batch.seen(place), pointer.offset, pointer.length)
    report.requests += 1
    report.waves += 1
    report.bytes["index"] += len(data)
    return memoryview(data)
