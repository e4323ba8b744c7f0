"""Literals as the kernels take them. Tables and hashes of the literals of IN are made once for all files and batches."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from pageseek._core import bloom, rows
from pageseek.base.arrays import distinct_numbers
from pageseek.base.errors import CoreError, PredicateError
from pageseek.format.types import (
    BYTES_KINDS,
    K_BOOL,
    K_BYTES,
    K_D128,
    K_F64,
    K_FIXED,
    K_I8,
    CoreForm,
    LeafType,
)

# of the numbers among the kinds, in the order of ps_kind (pageseek.h)
_NUMBERS = (
    np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64,
    np.float16, np.float32, np.float64,
)  # fmt: skip
DTYPES: dict[int, Any] = dict(zip(range(K_I8, K_F64 + 1), _NUMBERS, strict=True))

_SEARCHED = (
    16  # a table of n literals costs as much to build as n / 16 rows cost to search for without it
)


Literals = tuple[int, bytes, bytes | None]  # how many, their values, their offsets
NO_LITERALS: Literals = (0, b"", None)


class Listed(Literals):
    """Distinct literals in ascending order."""

    _tested = 0  # rows so far
    _ready: tuple[bool, rows.Lookup] | None = None  # whether it has a table, and the look-up

    def lookup(self, kind: int, width: int, n: int) -> rows.Lookup:
        """The look-up for `n` more rows. It has a table as soon as the rows so far are worth one."""
        self._tested += n
        table = self._tested > self[0] // _SEARCHED
        ready = self._ready
        if ready is None or (table and not ready[0]):
            self._ready = ready = table, rows.Lookup(kind, width, self, table)
        return ready[1]

    def hashes(self, leaf_type: CoreForm) -> bytes | None:
        """The hashes to look for in Bloom filters; None if a literal has no hash."""
        known: dict[CoreForm, bytes | None] = self.__dict__.setdefault("_hashes", {})
        if leaf_type not in known:
            try:
                known[leaf_type] = bloom.hashes(leaf_type, self)
            except CoreError:  # NaN
                known[leaf_type] = None
        return known[leaf_type]

    def __reduce__(self) -> tuple[Any, ...]:
        return Listed, (tuple(self),)


def pack_literals(values: list[Any], leaf_type: LeafType) -> Literals:
    """Values of the leaf type's kind as the kernels take them."""
    n, kind = len(values), leaf_type.kind
    if kind in DTYPES:
        return n, np.array(values, DTYPES[kind]).tobytes(), None
    if kind == K_BOOL:
        return n, np.packbits(np.array(values, np.uint8), bitorder="little").tobytes(), None
    if kind in BYTES_KINDS or (kind == K_FIXED and any(len(v) != leaf_type.width for v in values)):
        ends = np.cumsum([0, *map(len, values)], dtype=np.int64)
        offsets = _offset_type(kind)
        if ends[-1] > np.iinfo(offsets).max:
            raise PredicateError("the literals of one condition hold more than 2 GiB")
        return n, b"".join(values), ends.astype(offsets).tobytes()
    if kind == K_FIXED:
        return n, b"".join(values), None
    size = 16 if kind == K_D128 else 32
    return n, b"".join(v.to_bytes(size, "little", signed=True) for v in values), None


def merged(parts: Sequence[Literals], leaf_type: LeafType) -> Listed:
    """The literals of all parts in one list, for IN."""
    n = sum(part[0] for part in parts)
    kind = leaf_type.kind
    if n == 0:
        return Listed((0, b"", None))
    if kind == K_BOOL:
        bits = (
            np.unpackbits(np.frombuffer(d, np.uint8), count=m, bitorder="little")
            for m, d, _ in parts
        )
        return Listed(
            pack_literals(distinct_numbers(np.concatenate(list(bits))).tolist(), leaf_type)
        )
    if kind not in BYTES_KINDS:
        data = b"".join(part[1] for part in parts)
        if kind in DTYPES:
            return distinct(np.frombuffer(data, DTYPES[kind]))
        order = np.frombuffer(rows.sort_literals(kind, leaf_type.width, n, data), np.int64)
        table = np.frombuffer(data, np.uint8).reshape(n, -1)
        return Listed((len(order), table[order].tobytes(), None))
    texts = {text for part in parts for text in texts_of(part, kind)}
    return Listed(pack_literals(sorted(texts), leaf_type))


def texts_of(literals: Literals, kind: int) -> list[bytes]:
    """Literals that have offsets, one by one."""
    _, data, offsets = literals
    ends = np.frombuffer(offsets or b"", _offset_type(kind)).tolist()
    return [data[start:end] for start, end in pairwise(ends)]


def _offset_type(kind: int) -> Any:
    return np.int32 if kind in (K_BYTES, K_FIXED) else np.int64


def distinct(values: np.ndarray) -> Listed:
    """Numbers of one kind, each once: one of the two zeros, and one NaN at the end."""
    found = np.sort(values)  # several times quicker than numpy.unique
    new = np.ones(len(found), bool)
    np.not_equal(found[1:], found[:-1], out=new[1:])
    if found.dtype.kind == "f":
        new[1:] &= ~np.isnan(found[:-1])
    found = found[new]
    return Listed((len(found), found.tobytes(), None))
