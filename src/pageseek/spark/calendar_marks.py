"""Files whose dates and times Spark wrote in its old calendar. Such values are refused, not converted.

Until version 3.0 (3.1 for INT96) Spark counted days before 1582-10-15 by the Julian calendar, and instants before 1900
by the offsets of that calendar's time zones. The footer of a file tells: by Spark's version, or by a key that later
versions set when they were told to write the old way. Spark's own reader converts such values. Later dates and times
are the same in both calendars. TIMESTAMP_NTZ is younger than the change.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, TypeGuard

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pageseek.base.errors import PageseekError, PredicateError, UnsupportedError
from pageseek.dataset.dataset_schema import tested_paths
from pageseek.dataset.legacy_calendar import legacy_values
from pageseek.format.file_metadata import FileMetadata
from pageseek.format.schema import Leaf
from pageseek.format.types import INT96
from pageseek.predicate import expression as ex
from pageseek.predicate.literal import PER_SECOND, exact
from pageseek.spark.names import Columns, Kind
from pageseek.spark.settings import Settings

FIRST_DAY = dt.date(1582, 10, 15).toordinal() - dt.date(1970, 1, 1).toordinal()
FIRST_SECOND = -2_208_988_800  # 1900-01-01
LEGACY, CORRECTED, EXCEPTION = "LEGACY", "CORRECTED", "EXCEPTION"


class Modes(NamedTuple):
    """The modes of a session's two settings for files that do not tell their calendar."""

    datetime: str
    int96: str

    @classmethod
    def of(cls, settings: Settings) -> Modes:
        """The modes of a session."""
        default = CORRECTED if settings.major >= 4 else EXCEPTION
        names = "datetimeRebaseModeInRead", "int96RebaseModeInRead"
        return cls(*(settings.get(f"spark.sql.parquet.{name}", default).upper() for name in names))

    def in_file(self, pairs: Mapping[bytes, bytes | None]) -> Modes:
        """The modes for one file, by the key-value pairs of its footer."""
        legacy = legacy_values(pairs)
        if legacy is None:
            return self
        return Modes(*(LEGACY if old else CORRECTED for old in legacy))


def has_calendar(kind: pa.DataType) -> bool:
    """Whether a column of this wire type may hold values of the old calendar."""
    t = pa.types
    if t.is_nested(kind):
        return any(has_calendar(kind.field(i).type) for i in range(kind.num_fields))
    return bool(t.is_date32(kind) or (t.is_timestamp(kind) and kind.tz is not None))


# -- values that are read -------------------------------------------------------------------------


def check_values(column: str, file: FileMetadata, modes: Modes) -> None:
    """Refuse a column that has values of the old calendar.

    Raises
    ------
    UnsupportedError
        Spark would convert the values of this file, or refuse them.
    """
    tree = file.schema_tree
    try:
        field = tree.field(tree.field_index(column))
        leaves = [tree.leaf(i) for i in range(field.first_leaf, field.stop_leaf)]
    except PageseekError:  # a table has another name for it
        leaves = tree.leaves
    int96 = any(leaf.element.type == INT96 for leaf in leaves)
    found = modes.in_file(file.key_value_metadata)
    mode = found.int96 if int96 else found.datetime
    if mode != CORRECTED:
        raise _refused(file, column, int96, mode)


def _refused(file: FileMetadata, column: str, int96: bool, mode: str) -> UnsupportedError:
    setting = "int96RebaseModeInRead" if int96 else "datetimeRebaseModeInRead"
    if mode == EXCEPTION:
        return UnsupportedError(
            f"{file.name}: column {column!r} has dates before 1582-10-15 or timestamps before 1900, and nothing says "
            f"by which calendar: set spark.sql.parquet.{setting} to CORRECTED if it is the one of today"
        )
    return UnsupportedError(
        f"{file.name}: column {column!r} has, or may have, dates before 1582-10-15 or timestamps before 1900 in the calendar of "
        "Spark before 3.0, which are not converted: read this file with spark.read.parquet, or write it anew with "
        f"spark.sql.parquet.{setting.replace('InRead', 'InWrite')}=CORRECTED"
    )


def holds_old(array: pa.Array) -> bool:
    """Whether the two calendars count some value differently."""
    t, kind = pa.types, array.type
    if t.is_nested(kind):
        if not has_calendar(kind):
            return False
        if t.is_struct(kind):
            return any(map(holds_old, array.flatten()))
        if t.is_map(kind):
            return holds_old(array.keys) or holds_old(array.items)
        return holds_old(array.flatten())
    if not has_calendar(kind):
        return False
    least = pc.min(array.view(pa.int32() if t.is_date32(kind) else pa.int64())).as_py()
    return least is not None and least < first_of(kind)


def first_of(kind: pa.DataType) -> int:
    """The first value of a type that is the same in both calendars."""
    if pa.types.is_date(kind):
        return FIRST_DAY
    return FIRST_SECOND * PER_SECOND[kind.unit]


# -- values that are compared ---------------------------------------------------------------------


def check_filter(condition: ex.Expression, columns: Columns, settings: Settings) -> None:
    """Refuse a filter whose answer depends on values of the old calendar.

    A value before the switch-over stays before it when it is converted, so that its comparison with a later literal has
    the same answer. Its comparison with an earlier literal, or with another column, may not. The statistics of the
    files must then show that there are no such values.

    Raises
    ------
    UnsupportedError
        A file has, or may have, such values in a column of the filter.
    """
    tested = set(_paths(condition, columns))
    if not tested:
        return
    modes = Modes.of(settings)
    for source, file in columns.files():
        kept = modes.in_file(file.key_value_metadata)
        if kept == Modes(CORRECTED, CORRECTED):
            continue
        names = columns.names_of(file, source)
        for path, element in sorted(tested):
            try:
                leaf, leaf_type = names.element(path) if element else names(path)
            except PredicateError:
                continue
            kind = Kind(leaf_type, leaf)
            mode = kept.int96 if kind.is_int96 else kept.datetime
            if leaf.index < 0 or mode == CORRECTED or not _is_calendar(kind):
                continue
            least = _least(file, leaf)
            if least is None and mode == EXCEPTION:
                continue  # nothing says that there are such values
            stored = file.schema_tree.parquet_leaf_type(leaf).storage
            if least is None or least < first_of(stored):
                raise _refused(file, leaf.name, kind.is_int96, mode)


def _paths(condition: ex.Expression, columns: Columns) -> Iterator[tuple[tuple[str, ...], bool]]:
    """The columns that are compared with a column or a value of the old calendar, and whether as elements of lists."""
    for e in ex.walk(condition):
        if isinstance(e, (ex.CompareColumns, ex.ArrowFilter)):
            for path in tested_paths(e) or ():
                if _is_calendar(columns.kind(path)):
                    yield path, False
        elif isinstance(e, (ex.Compare, ex.IsIn)) and _has_times(e):  # others need no look-up
            element = isinstance(e.column, ex.Element)
            kind = columns.kind(e.column.path, element)
            if _is_calendar(kind) and _is_early(e, kind):
                yield e.column.path, element


def _values(e: ex.Compare | ex.IsIn) -> Any:
    return [e.value] if isinstance(e, ex.Compare) else e.values


def _has_times(e: ex.Compare | ex.IsIn) -> bool:
    values = _values(e)
    if isinstance(values, pa.Array):
        return bool(pa.types.is_temporal(values.type))
    return any(isinstance(v, (dt.date, pa.Scalar, np.datetime64)) for v in values)


def _is_calendar(kind: Kind | None) -> TypeGuard[Kind]:
    return kind is not None and (kind.is_instant or bool(pa.types.is_date(kind.leaf_type.storage)))


def _is_early(e: ex.Compare | ex.IsIn, kind: Kind) -> bool:
    """Whether a literal lies before the switch-over."""
    first = first_of(kind.leaf_type.storage)
    for value in _values(e):
        try:
            made = exact(value, kind.leaf_type, None)
        except PredicateError:  # the plan raises it
            continue
        if made is not None and not isinstance(made, bytes) and made < first:
            return True
    return False


def _least(file: FileMetadata, leaf: Leaf) -> int | None:
    """The least value that a leaf may have, in its own unit; None where statistics do not tell."""
    lower = file.statistics(leaf)[0]
    if leaf.element.type == INT96 or lower.null_count or not len(lower):
        return None
    width = pa.int32() if lower.type.bit_width == 32 else pa.int64()
    return int(pc.min(lower.view(width)).as_py())
