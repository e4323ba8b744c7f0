"""Lists of the different values of a column (docs/format.md), of one file or of many, put to tests."""

from __future__ import annotations

from typing import Any

import numpy as np

from pageseek._core import convert, rows
from pageseek._core.lists import Lists
from pageseek.base.arrays import of_numpy
from pageseek.base.late_modules import npt
from pageseek.base.records import NamedTuple
from pageseek.format.embedded import InvalidIndexError
from pageseek.format.types import FLOAT_KINDS, K_FIXED, LeafType, to_arrow
from pageseek.predicate.bound import BoundLeaf
from pageseek.prune.protocol import passing

_NAN = of_numpy(np.array([np.nan]))


class Answer(NamedTuple):
    """A byte for each row group, 0 or 1: whether some row may pass a test, and whether all do. `test` is kept alive: answers
    are found by its id.
    """

    test: BoundLeaf
    may: bytes
    must: bytes


class ValueLists:
    """Lists of values of one leaf type.

    Parameters
    ----------
    data : bytes
        The bytes of the lists; they are kept.
    places : int64 array of shape (n, 3)
        Where each list begins, its bytes, and the row groups of its file.

    Attributes
    ----------
    sound : bool array of shape (n,)
        The lists that can be used: they are well-formed, and all their values are values of the column's type.
    exact : bytes
        For each row group of these files whether all its values are known, and no others.
    """

    def __init__(self, data: bytes, places: npt.NDArray[np.int64], leaf_type: LeafType) -> None:
        self._lists = Lists(data, places.tobytes())
        values, ends, known, counts = self._converted(data, leaf_type)
        self._floats = leaf_type.kind in FLOAT_KINDS
        self._groups = places[:, 2]
        self.sound: npt.NDArray[np.bool_] = counts >= 0
        wrong = np.flatnonzero(known == 0)
        self._valueless = len(wrong) > 0
        if len(wrong):
            owner = np.repeat(np.arange(len(counts)), np.maximum(counts, 0))
            self.sound[owner[wrong]] = False
        if (
            len(wrong) and leaf_type.kind == K_FIXED
        ):  # an array of one width cannot hold the wrong values
            usable = places.copy()
            usable[~self.sound, 1] = 0  # a list of no bytes is refused
            self._lists = Lists(data, usable.tobytes())
            values, ends, known, _ = self._converted(data, leaf_type)
        self._values = to_arrow(
            leaf_type, len(known), 0, None, None if leaf_type.kind == K_FIXED else ends, values
        )
        self.exact = self._lists.exact()
        if not self.sound.all():
            self.exact = bytes(
                np.frombuffer(self.exact, np.uint8) & np.repeat(self.sound, self._groups)
            )
        self._asker, self._answers = 0, dict[int, Answer]()

    def _converted(
        self, data: bytes, leaf_type: LeafType
    ) -> tuple[Any, Any, npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
        """The values, their offsets, which of them are values, and how many each list has."""
        counts = np.asarray(self._lists.counts)
        n, at = int(counts[counts > 0].sum()), self._lists.values()
        values, ends, _, _, known = convert.convert_bounds(leaf_type.core, data, at + at, n)
        return values, ends, np.frombuffer(known, np.uint8), counts

    @classmethod
    def of_file(
        cls, payload: bytes | memoryview, row_groups: int, leaf_type: LeafType
    ) -> ValueLists:
        """The list of one file. CoreError: it is malformed. InvalidIndexError: it has values that the column cannot have."""
        data = bytes(payload)
        made = cls(data, np.array([[0, len(data), row_groups]], np.int64), leaf_type)
        if not made.sound[0]:
            if not made._valueless:
                made._lists.check(0)
            raise InvalidIndexError("not all of its values are such as the column has")
        return made

    def answer(self, test: BoundLeaf, asker: object) -> Answer:
        """What the values prove of a test, for the row groups of all files. A list that is not sound proves nothing. Answers are
        kept until another `asker` comes, no longer, because tests may hold a million values.
        """
        if self._asker != id(asker):
            self._asker, self._answers = id(asker), {}
        made = self._answers.get(id(test))
        if made is None or made.test is not test:
            made = self._answers[id(test)] = self.evaluate(test)
        return made

    def evaluate(self, test: BoundLeaf) -> Answer:
        """What the values prove of a test, as of `answer`, but not kept."""
        nan = False
        if self._floats:
            nan = bool(passing(test, _NAN)[0])
        null = test.op == rows.OP_IS_NULL and not test.negate
        may, must = self._lists.evaluate(passing(test, self._values), null, self._floats, nan)
        if not self.sound.all():
            sound = np.repeat(self.sound, self._groups)
            may = (np.frombuffer(may, np.uint8) | ~sound).tobytes()
            must = (np.frombuffer(must, np.uint8) & sound).tobytes()
        return Answer(test, may, must)
