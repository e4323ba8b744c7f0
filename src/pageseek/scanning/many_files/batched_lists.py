"""Lists of the values of a column that many similar files have: read together, kept with their footers, held against tests.

There are two forms of such lists: distinct_lists.py and datafusion_lists.py. Filters and lookup indexes, which tell that a value is
absent, go the same way. A file whose list is damaged, or is not told by its footer alone, is opened by itself, and its pruner says
what is wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import ClassVar

import numpy as np

from pageseek._core import lists
from pageseek.base import log
from pageseek.base.late_modules import npt
from pageseek.base.records import NamedTuple
from pageseek.base.report import Report
from pageseek.format.embedded import FIGURES, KEY, EntryForm, InvalidIndexError, figures
from pageseek.io.tails import TailBatch
from pageseek.predicate.bound import BoundLeaf
from pageseek.scanning.many_files.footer_table import Flags, FooterTable
from pageseek.scanning.many_files.schema_group import SchemaGroup
from pageseek.storage.local import read_part

LISTS = 8 << 20  # bytes of the lists of one column that lie outside of the tails
LIST_SHARE = 4  # all lists are read if one in this many is needed
FEWEST = 8  # files that are as quickly opened


class ListAnswer(NamedTuple):
    """The proof of a test by lists: for each row group whether some row may pass, and whether all do. `exact`: whether the
    list has all values of the row group and no others; None if no list tells.
    """

    may: bytes
    must: bytes
    exact: Flags | None


class Asked(NamedTuple):
    """What lists of one form have answered.

    Attributes
    ----------
    unusable : bool array
        Files whose lists cannot be used here.
    answers : dict
        What the lists of the others prove of each test, by its id.
    idle : bool array
        Files of which these lists prove nothing, and of which a pruner of the same mechanism could prove nothing either.
    unread : bool array
        Files whose lists were not read, since few are needed: pruners ask them when the files are opened.
    """

    unusable: Flags
    answers: dict[int, ListAnswer]
    idle: Flags
    unread: Flags


class ListReader:
    """Reads the lists of one column of the files of a footer table."""

    def __init__(
        self,
        table: FooterTable,
        schema_group: SchemaGroup,
        test: BoundLeaf,
        batch: TailBatch,
        report: Report,
    ) -> None:
        self.table, self.schema_group, self.batch = table, schema_group, batch
        self.leaf, self.leaf_type = test.leaf, test.leaf_type
        self.chunks = table.chunks[:, schema_group.column[test.leaf.index]]
        self.figures = figures(table.counts, self.chunks)
        self._report, self._far = report, 0

    def figures_of(self, k: int) -> bytes:
        """The figures of the chunks of a file, which its fingerprint is of."""
        first, n = self.table.first.item(k), self.table.n.item(k)
        return self.figures[FIGURES * first : FIGURES * (first + n)]

    def read(self, k: int, offset: int, length: int) -> memoryview:
        """Bytes of a file. OSError: it was replaced. InvalidIndexError: LISTS bytes have been read."""
        batch, place = self.batch, self.table.members.item(k)
        found = batch.part(place, offset, length)
        if found is not None:
            return found
        self._far += length
        if self._far > LISTS:
            raise InvalidIndexError("too many")
        began = log.begun()
        data = read_part(batch.paths[place], batch.seen(place), offset, length)
        log.requested(batch.paths[place], "index", [(offset, len(data))], 1, began)
        self._report.requests += 1
        self._report.waves += 1
        self._report.bytes["index"] += len(data)
        return memoryview(data)

    def read_ends(
        self,
        files: npt.NDArray[np.int64],
        lengths: npt.NDArray[np.int64],
        behind: npt.NDArray[np.int64] | None = None,
    ) -> tuple[memoryview, npt.NDArray[np.int64]]:
        """Bytes of some files that were not read with their footers, and where they lie, as `TailBatch.longer`."""
        threads = self.schema_group.bound_request.request.num_threads
        began = log.begun()
        tails, spans = self.batch.longer(self.table.members[files], lengths, threads, behind)
        if began:
            first = self.batch.paths[self.table.members.item(int(files[0]))]
            some = f"{len(files):,} files from {first} on"
            log.requested(some, "index", (), len(files), began, int(spans[:, 1].sum()))
        self._report.requests += len(files)
        self._report.waves += 1
        self._report.bytes["index"] += int(spans[:, 1].sum())
        return tails, spans


def doubtful_entries(
    reader: ListReader,
    entry_form: EntryForm,
    files: npt.NDArray[np.int64],
    entries: npt.NDArray[np.int64],
) -> Flags:
    """Which files have an entry of the index that only the open file can judge. `entries`: as `entry_form` found them."""
    table, state = reader.table, entries[:, 0]
    doubtful: Flags = state == lists.DOUBTFUL
    starts = reader.batch.spans(table.members[files])[:, 3]  # of footers
    for i in np.flatnonzero(state == lists.UNREAD).tolist():  # not as `attach` writes it
        try:
            value = table.value(files.item(i), KEY)
            doubtful[i] = entry_form.parsed(value, int(starts[i])) is not None
        except InvalidIndexError:
            doubtful[i] = True
    return doubtful


class ColumnLists:
    """The lists of one form that the files of a footer table have of one column.

    Attributes
    ----------
    footer_key : bytes
        The key-value pair of a file that has such lists.
    unusable : bool array
        For each file whether it has a list of the column, or may have one, that has to be read from the open file.
    """

    footer_key: ClassVar[bytes]
    only_denies: ClassVar[bool] = False  # a proof is always that no row of a row group passes
    on_demand: ClassVar[bool] = False  # of the files that are not needed nothing is read
    unusable: Flags

    def __init__(self, reader: ListReader) -> None:
        raise NotImplementedError

    @classmethod
    def present(cls, table: FooterTable, schema_group: SchemaGroup, test: BoundLeaf) -> Flags:
        """The files that may have a list of the column of a test."""
        return table.has(cls.footer_key)

    @staticmethod
    def takes(test: BoundLeaf) -> bool:
        """Whether such lists may prove anything of a test."""
        raise NotImplementedError

    @staticmethod
    def leaves_out(test: BoundLeaf) -> bool:
        """Whether a pruner may prove something of a test that these lists do not take."""
        return True

    def evaluate(self, test: BoundLeaf) -> ListAnswer | None:
        """The proof of a test; None if the lists prove nothing."""
        raise NotImplementedError

    def ask(
        self, test: BoundLeaf, needed: Flags, reader: Callable[[], ListReader]
    ) -> ListAnswer | None:
        """The proof of a test for the files that are `needed`, and maybe others. `reader`: makes what reads more of them."""
        return self.evaluate(test)


def ask_lists(
    form: type[ColumnLists],
    table: FooterTable,
    schema_group: SchemaGroup,
    open_files: Flags,
    batch: TailBatch,
    report: Report,
) -> Asked:
    """What lists of one form prove of the tests that they take.

    `open_files`: files with undecided rows. If few of them have lists, these are read as the files are opened.
    """
    unusable: Flags = np.zeros(len(open_files), np.bool_)
    none = unusable.copy()
    tests = [test for test in schema_group.tests if form.takes(test)]
    have = unusable.copy()
    for test in tests:
        have |= form.present(table, schema_group, test)
    needed = open_files & have
    if not tests or not needed.any():
        return Asked(unusable, {}, none, none)
    named = schema_group.bound_request.request.distinct_index
    keys = [(form, test.leaf.index, test.leaf_type, named) for test in tests]
    if form.on_demand:
        if needed.sum() < FEWEST:  # they are opened, and then asked
            return Asked(none, {}, none, none)
    elif LIST_SHARE * needed.sum() < have.sum() and not all(key in table.lists for key in keys):
        return Asked(none, {}, none, needed)
    answers, left_out = {}, [test for test in schema_group.tests if not form.takes(test)]
    idle = have & (form.only_denies and not any(map(form.leaves_out, left_out)))
    for test, key in zip(tests, keys, strict=True):
        reader = partial(ListReader, table, schema_group, test, batch, report)
        if key not in table.lists:
            table.lists[key] = form(reader())
        found: ColumnLists = table.lists[key]
        answer = found.ask(test, needed, reader)
        unusable |= found.unusable
        if answer is not None:
            answers[id(test)] = answer
            idle &= table.of_files(np.frombuffer(answer.may, np.uint8) == 0) == 0
    return Asked(unusable, answers, idle & ~unusable, none)
