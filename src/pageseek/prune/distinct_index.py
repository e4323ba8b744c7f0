"""Row groups against the list of different values that pageseek has put into the file (docs/format.md)."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any

import pyarrow as pa

from pageseek._core import rows
from pageseek.base.errors import CoreError, PageseekError
from pageseek.base.report import Report
from pageseek.format.embedded import (
    DoubtError,
    Pointer,
    directory,
    fingerprint,
    of_leaf,
    opened,
    why_none,
)
from pageseek.format.parquet_file import WHOLE, ParquetFile
from pageseek.format.schema import Leaf
from pageseek.format.types import Form
from pageseek.format.value_list import KIND, VERSION
from pageseek.io.range_requests import Wanted
from pageseek.predicate.bound import BoundLeaf
from pageseek.prune.protocol import Proof, Site
from pageseek.prune.value_lists import ValueLists


class DistinctPruner:
    """Rules out row groups, and proves them, by the different values of their column."""

    name = "distinct"
    cheap = whole = coarse = True

    def cost(self, site: Site, test: BoundLeaf) -> int | None:
        """Bytes of the list, those that are not at hand; None where the file has none of the column."""
        if test.leaf.group or test.leaf.max_rep or test.form.is_null:
            return None
        if (test.leaf.index, test.form) in site.file.indexes:
            if site.file.indexes[test.leaf.index, test.form] is not None:
                return 0
            site.file.remind(WHOLE, test.leaf, site.report)
            return None
        pointer = _pointer(site.file, test.leaf, site.report)
        if pointer is None:
            return None
        at_hand = site.file.store.size - site.file.tail.nbytes <= pointer.offset
        return 0 if at_hand else pointer.length

    def judge(
        self, site: Site, tests: Sequence[BoundLeaf]
    ) -> Generator[Wanted, list[memoryview], list[Proof | None]]:
        """Ask for the lists that are not at hand; what they say is then known of all row groups."""
        file, known = site.file, site.file.indexes
        missing: dict[tuple[int, Form], Pointer] = {}
        for test in tests:
            key = test.leaf.index, test.form
            if key not in known:
                pointer = _pointer(file, test.leaf, site.report)
                if pointer is not None:
                    missing[key] = pointer
        if missing:
            answers = yield [(one.offset, one.length) for one in missing.values()]
            leaves = {test.leaf.index: test.leaf for test in tests}
            for (key, pointer), data in zip(missing.items(), answers, strict=True):
                if key not in known:  # a generator of another row group may have been first
                    found = _listed(site, leaves[key[0]], key[1], pointer, data)
                    file.keep_index(key, found, 4 * pointer.length)
        return [self._proof(site, test) for test in tests]

    def _proof(self, site: Site, test: BoundLeaf) -> Proof | None:
        found: ValueLists | None = site.file.indexes.get((test.leaf.index, test.form))
        if found is None:
            return None
        answer, group = found.answer(test, site.report), site.row_group
        every = rows.RowRanges.all(site.file.group_rows[group])
        none = rows.RowRanges.empty()
        may, must = every if answer.may[group] else none, every if answer.must[group] else none
        return Proof(may, must, bool(found.exact[group]))


def _pointer(file: ParquetFile, leaf: Leaf, report: Report) -> Pointer | None:
    """Where the list of a column lies."""
    key = "pointer", leaf.index
    known: dict[Any, Any] = file.indexes
    if key not in known:
        made, why = None, None
        try:
            listed = directory(file)
            made = of_leaf(leaf, KIND, VERSION, listed)
            why = None if made is not None else why_none(leaf, KIND, VERSION, listed)
        except DoubtError as doubt:
            file.doubt(WHOLE, leaf, f"{file.name}: embedded indexes ignored: {doubt}", report)
        if why is not None:
            file.doubt(WHOLE, leaf, _ignored(file, leaf, why), report)
        known[key] = made
    found: Pointer | None = known[key]
    if found is None:
        file.remind(WHOLE, leaf, report)
    return found


def _ignored(file: ParquetFile, leaf: Leaf, why: object) -> str:
    return f"{file.name}: {leaf.name!r}: list of distinct values ignored: {why}"


def _listed(site: Site, leaf: Leaf, form: Form, pointer: Pointer, data: memoryview) -> Any:
    file = site.file
    try:
        payload = opened(pointer, data, fingerprint(file, leaf))
        return ValueLists.of_file(payload, file.num_row_groups, form)
    except (DoubtError, CoreError, PageseekError, pa.ArrowException) as doubt:
        file.doubt(WHOLE, leaf, _ignored(file, leaf, doubt), site.report)
        return None
