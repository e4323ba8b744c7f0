"""Files whose dates and times Spark wrote in its old calendar: which they are, and their values and filters in today's.

Until version 3.0 (3.1 for INT96) Spark counted days before 1582-10-15 by the Julian calendar, and instants before 1900
by the offsets of that calendar's time zones. The footer of a file tells: by Spark's version, or by a key that later
versions set when they were told to write the old way. Spark's own reader converts such values. Later dates and times
are the same in both calendars. TIMESTAMP_NTZ is younger than the change.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pageseek.base.errors import PageseekError, PredicateError, UnsupportedError
from pageseek.base.records import NamedTuple
from pageseek.datasets.dataset_schema import tested_paths
from pageseek.datasets.legacy_calendar import legacy_values, zone_of
from pageseek.format.file_metadata import FileMetadata
from pageseek.format.schema import Leaf
from pageseek.format.types import INT96
from pageseek.predicate import expression as ex
from pageseek.predicate.literal import PER_SECOND, exact
from pageseek.spark.calendar.rebase import DAYS, Shift, bounds, rebased
from pageseek.spark.calendar.zone_history import default_zone, shift_of
from pageseek.spark.session.names import Columns, Kind
from pageseek.spark.session.settings import Settings

if TYPE_CHECKING:
    from pageseek.scanning.plans.scan_plan import ScanPlan

FIRST_DAY = dt.date(1582, 10, 15).toordinal() - dt.date(1970, 1, 1).toordinal()
FIRST_SECOND = -2_208_988_800  # 1900-01-01
_DAY = 86_400
FEW_VALUES = 256  # of fewer the least is found sooner without numpy
_TURN_BACK = "; filter the DataFrame instead: read(...).where(...)"
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
    return _has_dates(kind) or _has_instants(kind)


# -- values that are read -------------------------------------------------------------------------


class Calendars(NamedTuple):
    """What a task needs to convert old values. `shifts`: of timestamps, by the zone that a file names; None: it names none."""

    modes: Modes
    shifts: Mapping[str | None, Shift]

    @classmethod
    def of(cls, plan: ScanPlan, wire: pa.Schema, settings: Settings) -> Calendars | None:
        """Those of a plan; None if no column has dates or instants.

        Spark is asked for a zone only if files of the plan have timestamps of it in the old calendar.
        """
        if not any(has_calendar(kind) for kind in wire.types):
            return None
        modes, zones = Modes.of(settings), set(plan.report.old_zones)
        if LEGACY in modes:
            zones.add(None)
        if not any(_has_instants(kind) for kind in wire.types):
            zones.clear()
        shifts = {}
        for zone in zones:
            with contextlib.suppress(
                UnsupportedError
            ):  # the task raises it, if there are such values
                shifts[zone] = _shift(zone, settings)
        return cls(modes, shifts)

    def are_of_today(self, pairs: Mapping[bytes, bytes | None]) -> bool:
        """Whether the values of a file are in the calendar of today, by the key-value pairs of its footer."""
        return self.modes.in_file(pairs) == Modes(CORRECTED, CORRECTED)

    def rebased(self, column: str, array: pa.Array, file: FileMetadata) -> pa.Array:
        """A column that `holds_old` values, in wire types, in the calendar of today.

        Raises
        ------
        UnsupportedError
            Nothing says by which calendar the values of this file are, or what its time zone was.
        """
        if self.are_of_today(file.key_value_metadata):
            return array
        modes = self.modes.in_file(file.key_value_metadata)
        mode, int96 = _mode_of_times(column, file, modes)
        dates = _has_dates(array.type)
        for one, is_int96, there in (
            (modes.datetime, False, dates),
            (mode, int96, _has_instants(array.type)),
        ):
            if one == EXCEPTION and there:
                raise _unknown(file, column, is_int96)
        times = None
        if mode == LEGACY and _has_instants(array.type):
            times = self.shifts.get(zone_of(file.key_value_metadata))
            if times is None:
                raise UnsupportedError(
                    f"{file.name}: column {column!r} has timestamps before 1900 of Spark before 3.0, and Spark did not tell the "
                    "history of their time zone when the scan was planned: read this file with spark.read.parquet"
                )
        return rebased(array, DAYS if modes.datetime == LEGACY else None, times)


def _shift(zone: str | None, settings: Settings) -> Shift:
    return shift_of(default_zone(settings) if zone is None else zone, settings)


def _mode_of_times(column: str, file: FileMetadata, modes: Modes) -> tuple[str, bool]:
    """The mode of a column's timestamps, and whether they are INT96."""
    tree = file.schema_tree
    try:
        field = tree.field(tree.field_index(column))
        leaves = [tree.leaf(i) for i in range(field.first_leaf, field.stop_leaf)]
    except PageseekError:  # a table has another name for it
        leaves = tree.leaves
    int96 = [leaf.element.type == INT96 for leaf in leaves if _is_instant(leaf, file)]
    if any(int96) and not all(int96) and modes.datetime != modes.int96:
        raise UnsupportedError(
            f"{file.name}: column {column!r} has timestamps before 1900, and some of its fields are INT96, which have another "
            "calendar: read this file with spark.read.parquet"
        )
    return (modes.int96, True) if any(int96) else (modes.datetime, False)


def _is_instant(leaf: Leaf, file: FileMetadata) -> bool:
    kind = file.schema_tree.parquet_leaf_type(leaf).storage
    return leaf.element.type == INT96 or bool(pa.types.is_timestamp(kind) and kind.tz)


def _unknown(file: FileMetadata, column: str, int96: bool) -> UnsupportedError:
    return UnsupportedError(
        f"{file.name}: column {column!r} has dates before 1582-10-15 or timestamps before 1900, and nothing says "
        f"by which calendar: set spark.sql.parquet.{'int96' if int96 else 'datetime'}RebaseModeInRead to CORRECTED if it is "
        "the one of today, and to LEGACY if it is that of Spark before 3.0"
    )


def _has_dates(kind: pa.DataType) -> bool:
    return _has(kind, pa.types.is_date32)


def _has_instants(kind: pa.DataType) -> bool:
    return _has(kind, lambda leaf: pa.types.is_timestamp(leaf) and leaf.tz is not None)


def _has(kind: pa.DataType, test: Callable[[pa.DataType], bool]) -> bool:
    if pa.types.is_nested(kind):
        return any(_has(kind.field(i).type, test) for i in range(kind.num_fields))
    return test(kind)


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
    if not len(array):
        return False
    first, n = first_of(kind), array.offset
    days = t.is_date32(kind)
    size = 4 if days else 8
    stored = memoryview(array.buffers()[1])[n * size : (n + len(array)) * size]
    slots = stored.cast("i") if days else stored.cast("q")
    # what lies in the slots of nulls may be anything
    if (min(slots) if len(slots) < FEW_VALUES else np.asarray(slots).min()) >= first:
        return False
    least = pc.min(array.view(pa.int32() if t.is_date32(kind) else pa.int64())).as_py()
    return least is not None and least < first


def may_be_old(values: pa.ChunkedArray) -> bool:
    """Whether dates or times, in the types of files, are early enough that old ones may have become them, or become later."""
    kind = values.type
    if pa.types.is_timestamp(kind):
        return _precede(values, kind, first_of(kind) + _DAY * PER_SECOND[kind.unit])
    return bool(pa.types.is_date32(kind)) and _precede(values, kind, FIRST_DAY)


def _precede(values: pa.ChunkedArray, kind: pa.DataType, first: int) -> bool:
    whole = pa.int32() if pa.types.is_date32(kind) else pa.int64()
    return any(n is not None and n < first for n in values.cast(whole).to_pylist())


def first_of(kind: pa.DataType) -> int:
    """The first value of a type that is the same in both calendars."""
    if pa.types.is_date(kind):
        return FIRST_DAY
    return FIRST_SECOND * PER_SECOND[kind.unit]


# -- values that are compared ---------------------------------------------------------------------


def rebased_filter(condition: ex.Expression, columns: Columns, settings: Settings) -> ex.Expression:
    """A filter for the values as files store them, whose answer is that for the converted values.

    A value before the switch-over stays before it when it is converted, so that its comparison with a later literal has
    the same answer. An earlier literal is replaced by the stored values that become it. One condition has to do for all
    files, so that those that may have early values must have them in one calendar; their statistics tell which have none.

    Raises
    ------
    UnsupportedError
        Files have early values in several calendars, or nothing says in which; or such a column is compared with another.
    """
    known: dict[tuple[tuple[str, ...], bool], Shift | None] = {}

    def shift(path: tuple[str, ...], element: bool) -> Shift | None:
        if (path, element) not in known:
            known[path, element] = _shift_of_all(path, element, columns, settings)
        return known[path, element]

    def of(e: ex.Expression) -> ex.Expression:
        if isinstance(e, ex.AnyElement):
            return ex.AnyElement(e.element, ex.rebuilt(e.test, of))
        if isinstance(e, (ex.CompareColumns, ex.ArrowFilter)):
            for path in tested_paths(e) or ():
                if _is_calendar(columns.kind(path)) and shift(path, False) is not None:
                    raise UnsupportedError(
                        f"filter {e!r}: column {'.'.join(path)!r} has, or may have, dates before 1582-10-15 or timestamps "
                        f"before 1900 in the calendar of Spark before 3.0{_TURN_BACK}"
                    )
            return e
        if not isinstance(e, (ex.Compare, ex.IsIn)) or not _has_times(e):  # others need no look-up
            return e
        element = isinstance(e.column, ex.Element)
        kind = columns.kind(e.column.path, element)
        if not _is_calendar(kind) or not _is_early(e, kind):
            return e
        added = shift(e.column.path, element)
        return e if added is None else _for_stored(e, kind, added)

    return ex.flatten(ex.rebuilt(condition, of))


def _shift_of_all(
    path: tuple[str, ...], element: bool, columns: Columns, settings: Settings
) -> Shift | None:
    """What is added to early values of a column in all files; None: nothing, or there are none."""
    modes = Modes.of(settings)
    found: dict[tuple[str, str | None], str] = {}  # mode and zone -> a file with them
    is_date = False
    for source, file in columns.files():
        kept = modes.in_file(file.key_value_metadata)
        names = columns.names_of(file, source)
        try:
            leaf, leaf_type = names.element(path) if element else names(path)
        except PredicateError:
            continue
        kind = Kind(leaf_type, leaf)
        if leaf.index < 0 or not _is_calendar(kind):
            continue
        is_date = not kind.is_instant
        mode = kept.int96 if kind.is_int96 else kept.datetime
        least = _least(file, leaf)
        if least is None and mode == EXCEPTION:
            continue  # nothing says that there are such values
        if least is not None and least >= first_of(
            file.schema_tree.parquet_leaf_type(leaf).storage
        ):
            continue
        if mode == EXCEPTION:
            raise _unknown(file, leaf.name, kind.is_int96)
        zone = zone_of(file.key_value_metadata) if mode == LEGACY and not is_date else None
        found.setdefault((mode, zone), file.name)
    if len(found) > 1:
        names_of_files = " and ".join(list(found.values())[:2])
        raise UnsupportedError(
            f"filter on {'.'.join(path)!r}: the early values of {names_of_files} are in different calendars{_TURN_BACK}"
        )
    for mode, zone in found:
        if mode == LEGACY:
            return DAYS if is_date else _shift(zone, settings)
    return None


def _for_stored(e: ex.Compare | ex.IsIn, kind: Kind, shift: Shift) -> ex.Expression:
    """The condition on stored values that holds where that on converted ones does."""
    if isinstance(e, ex.Compare):
        wanted = _in_wire(e.value, kind)
        if wanted is None:
            return e
        made = _stored(e.column, "=" if e.op == "!=" else e.op, wanted, kind, shift)
        return ex.Not(made) if e.op == "!=" else made
    values: list[Any] = []
    for value in e.values:
        wanted = _in_wire(value, kind)
        if wanted is None or wanted.denominator > 1:  # null, and what equals no value
            values.append(value)
            continue
        for low, high in _ranges(shift, "=", wanted, e.column):
            assert low is not None and high is not None
            values += [_literal(one, kind) for one in range(low, high)]
    return ex.IsIn(e.column, tuple(values))


def _stored(
    column: ex.Column, op: str, wanted: Fraction, kind: Kind, shift: Shift
) -> ex.Expression:
    tests: list[ex.Expression] = []
    for low, high in _ranges(shift, op, wanted, column):
        ends = []
        if low is not None:
            ends.append(ex.Compare(column, ">=", _literal(low, kind)))
        if high is not None:
            ends.append(ex.Compare(column, "<", _literal(high, kind)))
        tests.append(ends[0] if len(ends) == 1 else ex.And(tuple(ends)))
    if not tests:  # FALSE, and NULL for a null
        never = _literal(0, kind)
        return ex.And((ex.Compare(column, "<", never), ex.Compare(column, ">", never)))
    return tests[0] if len(tests) == 1 else ex.Or(tuple(tests))


def _ranges(
    shift: Shift, op: str, wanted: Fraction, column: ex.Column
) -> list[tuple[int | None, int | None]]:
    if wanted < shift.least:
        raise UnsupportedError(
            f"filter on {column.shown}: it compares with a value before 0001-01-04, which is not converted{_TURN_BACK}"
        )
    return list(shift.ranges(*bounds(op, wanted)))


def _in_wire(value: Any, kind: Kind) -> Fraction | None:
    """A literal in days or microseconds; None if it is null, or no number of them."""
    try:
        made = exact(value, kind.leaf_type, None)
    except PredicateError:  # the plan raises it
        return None
    if (
        made is None
        or isinstance(made, bytes)
        or (isinstance(made, float) and not math.isfinite(made))
    ):
        return None
    stored = kind.leaf_type.storage
    if pa.types.is_date(stored):
        return Fraction(made)
    return Fraction(made) * PER_SECOND["us"] / PER_SECOND[stored.unit]


def _literal(value: int, kind: Kind) -> pa.Scalar:
    if not kind.is_instant:
        return pa.scalar(value, pa.date32())
    return pa.scalar(value, pa.timestamp("us", "UTC"))


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
    """Whether a literal lies before the switch-over, or so soon behind it that an instant before it may become that one."""
    stored = kind.leaf_type.storage
    first = first_of(stored)
    if kind.is_instant:
        first += _DAY * PER_SECOND[stored.unit]
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
