"""Lists of the values of a column that many similar files have: read together, kept with their footers, held against tests.

There are two forms of such lists: distinct_lists.py and datafusion_lists.py. Filters and lookup indexes, which tell that a value is
absent, go the same way. A file whose list is damaged, or is not told by its footer alone, is opened by itself, and its pruner says
what is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import ClassVar, TypeAlias

import numpy as np

from pageseek._core import lists
from pageseek.base import log
from pageseek.base.late_modules import npt
from pageseek.base.records import NamedTuple
from pageseek.base.report import Report
from pageseek.format.embedded import FIGURES, KEY, EntryForm, InvalidIndexError, figures
from pageseek.format.schema import lazy
from pageseek.io.tails import TailBatch
from pageseek.predicate.bound import BoundLeaf
from pageseek.scanning.many_files.candidate_rows import CandidateRows
from pageseek.scanning.many_files.footer_table import Flags, FooterTable
from pageseek.scanning.many_files.schema_group import SchemaGroup
from pageseek.storage.local import read_part

LISTS = 8 << 20  # bytes of the lists of one column that lie outside of the tails
LIST_SHARE = 4  # all lists are read if one in this many is needed
FEWEST = 8  # files that are as quickly opened


class ListAnswer(NamedTuple):
    """The proof of a test by lists: for each row group whether some row may pass, and whether all do. `exact`: whether the
    list has all values of the row group and no others; None if no list tells. `rows`: those that may pass, if indexes name them.
    `told`, `unpaid`: as Asked has them; None for no file.
    """

    may: bytes
    must: bytes
    exact: Flags | None
    rows: CandidateRows | None = None
    told: Flags | None = None
    unpaid: Flags | None = None


class Asked(NamedTuple):
    """What lists of one form have answered.

    Attributes
    ----------
    unusable : bool array
        Files whose lists cannot be used here.
    answers : list of (BoundLeaf, ListAnswer)
        What the lists of the others prove of tests.
    idle : bool array
        Files of which these lists prove nothing, and of which a pruner of the same mechanism could prove nothing either.
    unread : bool array
        Files whose lists were not read, since few are needed: pruners ask them when the files are opened.
    told, unpaid : bool array
        Files whose lists have told all that a pruner of the same mechanism could learn from them; these, and files of which it
        would learn too little for what that costs, if they are small.
    """

    unusable: Flags
    answers: list[tuple[BoundLeaf, ListAnswer]]
    idle: Flags
    unread: Flags
    told: Flags
    unpaid: Flags


Question: TypeAlias = tuple[BoundLeaf, ...]  # a test; for an index of several columns one of each


class ListReader:
    """Reads the lists of one column of the files of a footer table, or of several columns as one key.

    Attributes
    ----------
    leaves : list of Leaf
        The columns; `leaf`, `leaf_type` and `chunks` are of the first one.
    """

    def __init__(
        self,
        table: FooterTable,
        schema_group: SchemaGroup,
        question: Question,
        batch: TailBatch,
        report: Report,
    ) -> None:
        self.table, self.schema_group, self.batch = table, schema_group, batch
        self.leaves = [test.leaf for test in question]
        self.leaf, self.leaf_type = question[0].leaf, question[0].leaf_type
        of_each = [table.chunks[:, schema_group.column[leaf.index]] for leaf in self.leaves]
        self.chunks = of_each[0]
        self._of_each, self._report, self._far = of_each, report, 0

    @property
    def threads(self) -> int:
        """Those of the scan."""
        return self.schema_group.bound_request.request.num_threads

    @lazy
    def figures(self) -> bytes:
        """The figures of all chunks, file by file, as fingerprints are of them."""
        made = [figures(self.table.counts, chunks) for chunks in self._of_each]
        return made[0] if len(made) == 1 else _file_by_file(made, self.table)

    @lazy
    def places_of_figures(self) -> npt.NDArray[np.int64]:
        """For each file the first of its figures, and how many it has: one for each chunk."""
        return len(self.leaves) * np.stack([self.table.first, self.table.n], axis=1)

    def figures_of(self, k: int) -> bytes:
        """The figures of the chunks of a file, which its fingerprint is of."""
        first, n = self.places_of_figures[k].tolist()
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
        began = log.begun()
        tails, spans = self.batch.longer(self.table.members[files], lengths, self.threads, behind)
        if began:
            first = self.batch.paths[self.table.members.item(int(files[0]))]
            some = f"{len(files):,} files from {first} on"
            log.requested(some, "index", (), len(files), began, int(spans[:, 1].sum()))
        self._report.requests += len(files)
        self._report.waves += 1
        self._report.bytes["index"] += int(spans[:, 1].sum())
        return tails, spans


def _file_by_file(of_each: Sequence[bytes], table: FooterTable) -> bytes:
    """The figures of several columns: those of the first file, one column after the other, those of the second, and so on."""
    every = np.frombuffer(b"".join(of_each), np.uint8).reshape(-1, FIGURES)
    file_of = np.repeat(np.arange(len(table.n)), table.n)
    return every[np.argsort(np.tile(file_of, len(of_each)), kind="stable")].tobytes()


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

    @classmethod
    def questions(cls, table: FooterTable, schema_group: SchemaGroup) -> list[Question]:
        """What such lists are asked: each of the tests that they take, by itself."""
        return [(test,) for test in schema_group.tests if cls.takes(test)]

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
        self, question: Question, needed: Flags, reader: Callable[[], ListReader]
    ) -> ListAnswer | None:
        """The proof for the files that are `needed`, and maybe others. `reader`: makes what reads more of them."""
        return self.evaluate(question[0])

    @classmethod
    def complete(
        cls, table: FooterTable, schema_group: SchemaGroup, questions: Sequence[Question]
    ) -> tuple[bool, bool]:
        """Whether a pruner could ask no more than the questions; and whether it pays in small files to ask no more."""
        return False, False


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
    questions = form.questions(table, schema_group)
    have = unusable.copy()
    for question in questions:
        have |= form.present(table, schema_group, question[0])
    needed = open_files & have
    told, unpaid = (
        np.full(len(none), flag) for flag in form.complete(table, schema_group, questions)
    )
    if not questions or not needed.any():
        return Asked(unusable, [], none, none, told, unpaid)
    named = schema_group.bound_request.request.distinct_index
    keys = [
        (form, tuple([(test.leaf.index, test.leaf_type) for test in question]), named)
        for question in questions
    ]
    few = not form.on_demand and LIST_SHARE * needed.sum() < have.sum()
    if few and not all(key in table.lists for key in keys):
        return Asked(none, [], none, needed, none, none)
    answers, left_out = [], [test for test in schema_group.tests if not form.takes(test)]
    idle = have & (form.only_denies and not any(map(form.leaves_out, left_out)))
    for question, key in zip(questions, keys, strict=True):
        if form.on_demand and needed.sum() < FEWEST:  # they are opened, and then asked
            told, unpaid = told & ~needed, unpaid & ~needed
            break
        reader = partial(ListReader, table, schema_group, question, batch, report)
        if key not in table.lists:
            table.lists[key] = form(reader())
        found: ColumnLists = table.lists[key]
        answer = found.ask(question, needed, reader)
        unusable |= found.unusable
        told &= none if answer is None or answer.told is None else answer.told
        unpaid &= none if answer is None or answer.unpaid is None else answer.unpaid
        if answer is None:
            continue
        answers.append((question[0], answer))
        may = np.frombuffer(answer.may, np.uint8)
        idle &= table.of_files(may == 0) == 0
        if schema_group.requires(question[0]):  # of files that it leaves out nothing more is read
            needed = needed & (table.of_files(may) > 0)
    return Asked(unusable, answers, idle & ~unusable, none, told, unpaid)
