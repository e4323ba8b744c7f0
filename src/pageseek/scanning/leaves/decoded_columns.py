"""Decoded leaves of a row group, all of the same rows: evaluates conditions on them, and keeps the rows that pass."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa

from pageseek._core import rows
from pageseek.base.errors import CorruptFileError, LimitError, placed
from pageseek.base.late_modules import compute as pc
from pageseek.format.columns import PRESENCE, Column, Part
from pageseek.format.nesting import Decoded, assemble
from pageseek.format.null_arrays import nulls
from pageseek.format.schema import Leaf
from pageseek.format.types import BYTES_KINDS, LeafType
from pageseek.predicate.bound import (
    Bound,
    BoundAny,
    BoundConst,
    BoundLeaf,
    BoundResidual,
    Unjoined,
    fold,
)
from pageseek.predicate.masks import (
    Bitmap,
    compared,
    constant,
    count_bits,
    first_bits,
    head_of,
    head_of_nesting,
    joined,
    picked,
    picked_nesting,
    presence,
    repeats,
)
from pageseek.scanning.leaves.dictionary_codes import CODES
from pageseek.scanning.leaves.list_elements import passing, taken

Key = tuple[int, int]  # of a leaf: Leaf.key
MOST_BYTES = 1 << 30  # bytes of strings that one dictionary lookup makes


class DecodedColumns:
    """Arrays of leaves, all of the same rows.

    Attributes
    ----------
    arrays : dict
        The decoded values, or dictionary codes, of each leaf.
    """

    __slots__ = "_entries", "_ladders", "_leaf_types", "_name", "_row_group", "arrays"

    def __init__(self, name: str, row_group: int) -> None:
        """`name`: of the file, for errors."""
        self._name, self._row_group = name, row_group
        self.arrays: dict[Key, list[pa.Array]] = {}
        self._leaf_types: dict[Key, LeafType] = {}
        self._ladders: dict[Key, Decoded] = {}  # of nested ones
        self._entries: dict[Key, pa.Array] = {}  # of leaves held as codes, their dictionaries

    def where(self) -> str:
        """The file and the row group, for errors."""
        return f"{self._name}: row group {self._row_group}"

    # -- what is held -------------------------------------------------------------------------

    def put(
        self,
        leaf: Leaf,
        leaf_type: LeafType,
        arrays: list[pa.Array],
        decoded: Decoded | None,
        entries: pa.Array | None,
        num_rows: int,
    ) -> None:
        """Add a decoded leaf: values, or codes with their dictionary `entries`. `decoded`: the nesting levels of a nested leaf."""
        key = leaf.key
        self._leaf_types[key], self.arrays[key] = leaf_type, arrays
        if entries is not None:
            self._entries[key], self._leaf_types[key] = entries, CODES
        if decoded is None:
            return
        if decoded.rows != num_rows:
            raise CorruptFileError(
                f"{self.where()}, column {leaf.name!r}: {decoded.rows} rows where {num_rows} are due"
            )
        if leaf.group:  # only its presence is tested
            self.arrays[key] = [presence(decoded, leaf)]
        else:
            self._ladders[key] = decoded

    def put_nulls(self, part: Part, num_rows: int) -> None:
        """Add a leaf that is null in all rows."""
        key = part.leaf.key
        where = f"{self.where()}, column {part.leaf.name!r}"
        self.arrays[key] = [nulls(num_rows, part.leaf_type.storage, where)]
        self._entries.pop(key, None)

    def share_presence(self, leaf: Leaf) -> None:
        """Add the presence of a group, from a leaf of the payload."""
        self.arrays[leaf.key] = [presence(self._ladders[leaf.index, -1], leaf)]
        self._leaf_types[leaf.key] = PRESENCE

    def tell_by(self, key: Key, other: Key) -> None:
        """Let the arrays of one leaf stand for another's."""
        self.arrays[key], self._leaf_types[key] = self.arrays[other], PRESENCE

    def let_go(self, key: Key) -> None:
        self.arrays.pop(key, None)
        self._entries.pop(key, None)
        self._ladders.pop(key, None)

    def clear(self) -> None:
        self.arrays.clear()
        self._entries.clear()
        self._ladders.clear()

    def keep(self, mask: Bitmap, n: int, count: int, done: Key | None = None) -> None:
        """Keep the `count` of n rows that are set in a bitmap. `done`: a leaf that has no others."""
        for key, arrays in self.arrays.items():
            if key == done:
                continue
            nesting_levels = self._ladders.get(key)
            if nesting_levels is not None and repeats(nesting_levels):
                self._ladders[key] = made = taken(nesting_levels, mask)
                self.arrays[key] = [made.array]
                continue
            self.arrays[key] = picked(self._leaf_types[key], arrays, mask, n, count)
            if nesting_levels is not None:
                self._ladders[key] = picked_nesting(nesting_levels, mask, count)

    def of_rows(self, start: int, count: int, n: int) -> DecodedColumns:
        """The same leaves for `count` of the n rows, from `start` on."""
        made = DecodedColumns(self._name, self._row_group)
        made.arrays |= self.arrays
        made._leaf_types |= self._leaf_types
        made._ladders |= self._ladders
        made._entries |= self._entries
        made.keep(first_bits(start + count, n) ^ first_bits(start, n), n, count)
        return made

    def head(self, limit: int) -> None:
        """Keep the first rows."""
        for key, arrays in self.arrays.items():
            nesting_levels = self._ladders.get(key)
            if nesting_levels is not None and repeats(nesting_levels):
                if limit < nesting_levels.rows:
                    self._ladders[key] = made = taken(
                        nesting_levels, first_bits(limit, nesting_levels.rows)
                    )
                    self.arrays[key] = [made.array]
                continue
            self.arrays[key] = head_of(self._leaf_types[key], arrays, limit)
            if nesting_levels is not None:
                self._ladders[key] = head_of_nesting(nesting_levels, limit)

    # -- output --------------------------------------------------------------------------------

    def output(self, column: Column) -> list[pa.Array]:
        """The arrays of a column, made from its leaves."""
        if column.node is None:
            (part,) = column.parts
            arrays = self.arrays[part.leaf.key]
            if part.leaf.key in self._entries:
                arrays = self._looked_up(part.leaf.key, part.leaf_type)
            leaf_type = part.leaf_type
            if leaf_type.type is leaf_type.storage or leaf_type.type == leaf_type.storage:
                return arrays
            with placed(f"{self.where()}, column {column.name!r}"):
                return [leaf_type.finish(array) for array in arrays]
        decoded, where = {}, self.where()
        for part in column.parts:
            arrays, nesting_levels = self.arrays[part.leaf.key], self._ladders.get(part.leaf.key)
            if len(arrays) > 1:
                raise LimitError(
                    f"{where}: column {part.leaf.name!r}: byte strings of more than 2 GiB inside "
                    'a struct; use string_type="large"'
                )
            made = (
                Decoded(len(arrays[0]), arrays[0], ()) if nesting_levels is None else nesting_levels
            )
            decoded[part.leaf.index] = replace(made, array=arrays[0])
        with placed(f"{where}, column {column.name!r}"):
            return [assemble(column.node, decoded, where)]

    def _looked_up(self, key: Key, leaf_type: LeafType) -> list[pa.Array]:
        """The values of codes, in arrays that are small enough for 32-bit offsets."""
        codes, entries = self.arrays[key], self._entries[key]
        step, in_bytes = max([1, *map(len, codes)]), leaf_type.kind in BYTES_KINDS
        if in_bytes and len(entries) and step * entries.buffers()[2].size > MOST_BYTES:
            longest = pc.max(pc.binary_length(entries)).as_py() or 0
            step = max(MOST_BYTES // max(longest, 1), 1)
        return [
            entries.take(array.slice(start, step))
            for array in codes
            for start in range(0, max(len(array), 1), step)
        ]

    # -- tests --------------------------------------------------------------------------------

    def evaluate(self, bound: Bound, n: int) -> tuple[Bitmap, int]:
        """A bitmap of the n rows for which a condition is TRUE, and their number."""
        if isinstance(bound, BoundLeaf):
            return self._test(bound, n)

        def of_part(part: Unjoined) -> tuple[Bitmap, int]:
            if isinstance(part, BoundLeaf):
                return self._test(part, n)
            if isinstance(part, BoundConst):
                return constant(part.value, n)
            return self._any(part) if isinstance(part, BoundAny) else self._residual(part)

        def join(is_and: bool, parts: Iterator[tuple[Bitmap, int]]) -> tuple[Bitmap, int]:
            mask, count = next(parts)
            while count != (0 if is_and else n) and (found := next(parts, None)) is not None:
                mask = mask & found[0] if is_and else mask | found[0]
                count = count_bits(mask, n)
            return mask, count

        def invert(found: tuple[Bitmap, int]) -> tuple[Bitmap, int]:
            return found[0] ^ first_bits(n, n), n - found[1]

        return fold(bound, of_part, join, invert)

    def _any(self, bound: BoundAny) -> tuple[Bitmap, int]:
        key = bound.input.leaf.key
        slots = sum(map(len, self.arrays[key]))
        mask, _ = self.evaluate(bound.test, slots)
        return passing(self._ladders[key], mask, slots, bound.every)

    def _residual(self, bound: BoundResidual) -> tuple[Bitmap, int]:
        keys = [test.leaf.key for test in bound.inputs]
        if bound.columns:
            made = [self.output(column) for column in bound.columns]
        elif len(keys) == 1 and keys[0] in self._entries:  # the dictionary is evaluated once
            entries = pa.chunked_array([self._entries[keys[0]]])
            return bound.mask([entries], pa.chunked_array(self.arrays[keys[0]]))
        else:
            made = [
                self._looked_up(key, test.leaf_type) if key in self._entries else self.arrays[key]
                for test, key in zip(bound.inputs, keys, strict=True)
            ]
        return bound.mask([pa.chunked_array(arrays) for arrays in made])

    def _test(self, test: BoundLeaf, n: int) -> tuple[Bitmap, int]:
        arrays = self.arrays[test.leaf.key]
        if test.leaf_type.is_null:  # IS NULL is TRUE for every row, all else NULL
            return constant(test.op == rows.OP_IS_NULL and not test.negate, n)
        if test.leaf.key in self._entries and test.op != rows.OP_IS_NULL:
            return self._test_codes(test, arrays)
        leaf_type = self._leaf_types.get(test.leaf.key, test.leaf_type)
        masks = []
        for array in arrays:
            masks.append(compared(test, leaf_type, array))  # noqa: PERF401 (of one, a comprehension costs more)
        return joined(masks)

    def _test_codes(self, test: BoundLeaf, codes: list[pa.Array]) -> tuple[Bitmap, int]:
        """Evaluate the dictionary once, and the rows by their codes."""
        entries = self._entries[test.leaf.key]
        bits = compared(test, test.leaf_type, entries)[0]
        passes = np.unpackbits(bits, count=len(entries), bitorder="little").tobytes() + b"\0"
        masks = []
        for array in codes:
            validity, values = array.buffers()
            known = validity if array.null_count else None
            mask, count = rows.codes_mask(values, known, len(array), passes)
            masks.append((np.frombuffer(mask, np.uint8), count, len(array)))
        return joined(masks)
