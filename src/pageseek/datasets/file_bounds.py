"""What a table says of the values in its files, before any of them is opened: bounds and counts, for all files at once.

They are to the files of a table what the statistics of a footer are to the row groups of a file, and are probed in the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa

from pageseek._core import rows
from pageseek.base.late_modules import compute as pc
from pageseek.base.late_modules import npt
from pageseek.base.records import NamedTuple
from pageseek.format.schema import Leaf
from pageseek.format.types import ABSENT, FLOAT_KINDS, LeafType, Options, SchemaElement
from pageseek.predicate.constant_column import constant_leaf_type
from pageseek.predicate.schema_names import UnknownColumnError

Path = tuple[str, ...]
_NO_ELEMENT = SchemaElement._make([ABSENT] * len(SchemaElement._fields))


class ColumnBounds(NamedTuple):
    """Of one column in each file: no value but null and NaN lies outside of `lower` and `upper`; null where that is not known.

    `null_counts`: of int64, null where it is not known. `malformed`: the numbers of the files whose bounds are no values of the
    column; they are null above.
    """

    lower: pa.Array
    upper: pa.Array
    null_counts: pa.Array
    malformed: tuple[int, ...] = ()


class FileBounds:
    """The bounds of the columns in the files of a table, in the order of the files.

    Parameters
    ----------
    schema : pyarrow.Schema
        The columns of the table.
    num_rows : numpy array of int64
        The rows of each file, -1 where the table does not say.
    column : callable
        The bounds of the column at a path, with values of its type in the table; None where there are none.
    said_by : str
        What says so, as notes name it.
    names : sequence of str
        Of the files.
    """

    def __init__(
        self,
        schema: pa.Schema,
        num_rows: npt.NDArray[np.int64],
        column: Callable[[Path], ColumnBounds | None],
        said_by: str,
        names: Sequence[str],
    ) -> None:
        self._schema, self._num_rows, self._column = schema, num_rows, column
        self._said_by, self._names = said_by, names
        self._leaves: dict[Path, tuple[Leaf, LeafType]] = {}
        self._sound: dict[Path, ColumnBounds | None] = {}
        self._zones: dict[Path, rows.Zones | None] = {}

    def of(self, path: Path) -> ColumnBounds | None:
        """The bounds of a column, without those that cannot be true; None where there are none."""
        if path not in self._sound:
            told = self._column(path)
            self._sound[path] = None if told is None else _sound(told, self._num_rows)
        return self._sound[path]

    def told(self, path: Path) -> ColumnBounds | None:
        """As `of`, for a column at a path of the schema; None also where its values cannot be compared with bounds."""
        try:
            self(path)
        except UnknownColumnError:
            return None
        return self.of(path)

    def num_rows(self, at: int) -> int | None:
        """The rows of a file, None where the table does not say."""
        told = int(self._num_rows[at])
        return None if told < 0 else told

    def notes(self, paths: Iterable[Path]) -> list[str]:
        """What is not used of the statistics, for columns of a filter."""
        made = []
        unknown = np.flatnonzero(self._num_rows < 0).tolist()
        if unknown:
            made.append(f"{self._said_by} has no statistics of {self._some(unknown)}")
        for path in paths:
            found = self._sound.get(self._split(path))
            if found is not None and found.malformed:
                column = ".".join(self._split(path))
                made.append(
                    f"{self._said_by}: statistics of {column!r} are malformed for {self._some(found.malformed)}, and ignored"
                )
        return made

    def _some(self, files: Sequence[int]) -> str:
        first = self._names[files[0]]
        return first if len(files) == 1 else f"{len(files):,} files, such as {first}"

    # -- names of a filter: see DatasetNames ------------------------------------------------------

    def __call__(self, path: Path) -> tuple[Leaf, LeafType]:
        """The column at a path; UnknownColumnError where its values cannot be compared with bounds."""
        path = self._split(path)
        found = self._leaves.get(path)
        if found is None:
            kind = _type_at(self._schema, path)
            leaf_type = None if kind is None else constant_leaf_type(kind)
            if leaf_type is None or kind == pa.bool_() or isinstance(kind, pa.BaseExtensionType):
                raise UnknownColumnError(path)
            leaf = Leaf(len(self._leaves), path, _NO_ELEMENT, 1, 0, -1)
            found = self._leaves[path] = leaf, leaf_type
        return found

    def element(self, path: Path) -> NoReturn:
        """Bounds tell nothing of the elements of lists."""
        raise UnknownColumnError(path)

    def whole(self, paths: list[Path] | None) -> NoReturn:
        """There are no values, only bounds."""
        raise UnknownColumnError(paths)

    complete = whole

    def in_struct(self, _path: Path) -> None:
        """Never: bounds are of files, which may have the field."""

    def default_in_list(self, _path: Path) -> None:
        """Never: bounds are of files, which may have the field."""

    def target(self, path: Path) -> LeafType | None:
        """How values of a column are compared."""
        return self(path)[1]

    def as_float(self, path: Path) -> bool:
        """Never: a column of a table has one type."""
        return False

    def _split(self, path: Path) -> Path:
        """A path as its parts: a single name may have dots of its own."""
        if len(path) == 1 and path[0] not in self._schema.names:
            return tuple(path[0].split("."))
        return path

    # -- zones: see Groups ------------------------------------------------------------------------

    @property
    def num_row_groups(self) -> int:
        """The number of files: each counts as one."""
        return len(self._num_rows)

    def group_zones(self, leaf: Leaf, options: Options) -> rows.Zones | None:
        """The bounds of a column as zones to probe, one a file; None without any."""
        if leaf.path not in self._zones:
            self._zones[leaf.path] = self._made(leaf.path)
        return self._zones[leaf.path]

    def _made(self, path: Path) -> rows.Zones | None:
        bounds = self.of(path)
        if bounds is None:
            return None
        leaf_type = self._leaves[path][1]
        storage: pa.DataType = leaf_type.storage
        known = np.asarray(bounds.lower.is_valid()) & np.asarray(bounds.upper.is_valid())
        if leaf_type.kind in FLOAT_KINDS:  # a bound that is NaN bounds nothing
            for one in (bounds.lower, bounds.upper):
                known &= ~np.isnan(one.fill_null(0).to_numpy(zero_copy_only=False))
        low, high = (
            _buffers(one if one.type == storage else one.cast(storage))
            for one in (bounds.lower, bounds.upper)
        )
        null_counts = bounds.null_counts.fill_null(ABSENT).to_numpy(zero_copy_only=False)
        return rows.Zones(
            leaf_type.kind, leaf_type.width, len(known), low[0], low[1], high[0], high[1], known.astype(np.uint8), None,
            np.ascontiguousarray(null_counts, np.int64), None, np.ascontiguousarray(self._num_rows),
        )  # fmt: skip


def _sound(told: ColumnBounds, num_rows: npt.NDArray[np.int64]) -> ColumnBounds:
    """The bounds without those of files where they are inverted, or count more nulls than rows."""
    counts = told.null_counts.fill_null(0).to_numpy(zero_copy_only=False)
    wrong = (counts < 0) | ((num_rows >= 0) & (counts > num_rows))
    inverted = pc.greater(told.lower, told.upper).fill_null(False)
    wrong |= inverted.to_numpy(zero_copy_only=False)
    if not wrong.any():
        return told
    keep = pa.array(~wrong)
    lower, upper, nulls = (
        pc.if_else(keep, one, pa.scalar(None, one.type))
        for one in (told.lower, told.upper, told.null_counts)
    )
    malformed = tuple(sorted({*told.malformed, *np.flatnonzero(wrong).tolist()}))
    return ColumnBounds(lower, upper, nulls, malformed)


def _buffers(array: pa.Array) -> tuple[Any, Any]:
    """The values, and the offsets of those that have a length of their own."""
    n, kind = len(array), array.type
    if array.offset:
        array = pa.concat_arrays([array])
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        filled = array.fill_null("" if pa.types.is_string(kind) else b"")
        _, offsets, data = filled.buffers()
        places = np.frombuffer(offsets, np.int32)[filled.offset : filled.offset + n + 1]
        return data if data is not None else b"", np.ascontiguousarray(places)
    width = kind.bit_width // 8
    data = array.buffers()[1]
    start = array.offset * width
    return memoryview(data)[start : start + n * width], None


def _type_at(schema: pa.Schema, path: Path) -> pa.DataType | None:
    """The type of a field through structs."""
    at = schema.get_field_index(path[0])
    if at < 0:
        return None
    kind = schema.field(at).type
    for name in path[1:]:
        if not pa.types.is_struct(kind) or kind.get_field_index(name) < 0:
            return None
        kind = kind.field(name).type
    return None if pa.types.is_nested(kind) else kind
