"""The files of a lookup: their columns, and the plans that keys leave of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from pageseek.api import scan
from pageseek.base.errors import PredicateError, UnsupportedError
from pageseek.predicate import expression as ex
from pageseek.spark.calendar_marks import Modes, check_filter, first_of, has_calendar
from pageseek.spark.lookup_keys import form_of, whole
from pageseek.spark.lookup_task import Probe
from pageseek.spark.meaning import spark_filter
from pageseek.spark.names import Columns
from pageseek.spark.plan_schema import plan_wire
from pageseek.spark.settings import Settings
from pageseek.spark.types import spark_schema

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

    from pageseek.scan.scan import Scan
    from pageseek.scan.scan_plan import ScanPlan


@dataclass(frozen=True)
class Files:
    """The files side of a lookup.

    Attributes
    ----------
    scan : Scan
        The columns that equal keys, then the others that come out; without the filter.
    columns : Columns
        All columns.
    on, output : tuple of str
        The columns that equal keys, and those that come out, as the files spell them.
    names : tuple of str
        The columns that come out, as the caller spells them.
    filter : Expression, optional
        A condition on the rows.
    forms : tuple of int
        How keys are compared (lookup_keys.py).
    wire : pyarrow.Schema
        The wire types of the scan's columns.
    schema : StructType
        Their types in Spark.
    name : str
        What errors call the files.
    """

    scan: Scan
    columns: Columns
    settings: Settings
    on: tuple[str, ...]
    output: tuple[str, ...]
    names: tuple[str, ...]
    filter: ex.Expression | None
    forms: tuple[int, ...]
    wire: pa.Schema
    schema: StructType
    name: str

    @classmethod
    def of(
        cls,
        spark: SparkSession,
        source: Any,
        on: Sequence[str],
        columns: Sequence[str] | None,
        with_on: bool,
        filter: Any,
        options: Mapping[str, Any],
    ) -> Files:
        """The files of a source. `with_on`: columns that equal keys come out, too, where they are asked for."""
        if isinstance(source, (bytes, bytearray, memoryview, pa.Buffer)):
            raise UnsupportedError(
                "bytes in memory cannot be read by executors: write them to a file that all nodes see"
            )
        settings = Settings(spark)
        every = scan(source, **{"nan": "spark", "int96_unit": "us", "threads": 1, **options})
        known = Columns(every, settings)
        made = spark_filter(filter, known, settings)
        if made is not None:
            check_filter(made, known, settings)
        own = tuple(known.output(name) for name in on)
        asked = every.schema.names if columns is None else columns
        pairs = [(known.output(name), name) for name in asked]
        if not with_on:
            pairs = [pair for pair in pairs if pair[0] not in own]
        output = tuple(pair[0] for pair in pairs)
        selected = every.select(*dict.fromkeys((*own, *output)))
        kinds = [known.kind((name,)) for name in own]
        empty = selected.limit(0).plan()
        wire = plan_wire(empty, every.sources)
        for one in (*own, *output):
            if one not in wire.names:
                raise PredicateError(
                    f"{one!r} is a field of a struct: name columns of the top level"
                )
        forms = [
            form_of(kind, empty.schema.field(one).type)
            for kind, one in zip(kinds, own, strict=True)
        ]
        name = every.sources[0].path if every.sources else "a table without files"
        return cls(
            selected,
            known,
            settings,
            own,
            output,
            tuple(pair[1] for pair in pairs),
            made,
            tuple(forms),
            wire,
            spark_schema(wire, name, spark),
            name,
        )

    def probe(self, output: Sequence[str], with_keys: bool) -> Probe:
        """What the tasks do."""
        modes = None
        if any(has_calendar(field.type) for field in self.wire):
            modes = Modes.of(self.settings)
        return Probe(self.on, self.forms, tuple(output), with_keys, self.filter, self.wire, modes)

    def plan(self, keys: pa.Table) -> ScanPlan:
        """What the keys, which have no nulls, leave of the files.

        Raises
        ------
        UnsupportedError
            A key is a date or time that files may have in the calendar of Spark before 3.0.
        """
        for name, column in zip(self.on, keys.columns, strict=True):
            if has_calendar(column.type) and len(column):
                self._check_calendar(name, pc.min(whole(column)))
        probe = self.probe((), False)
        return self.scan.filter(probe.condition(keys)).plan()

    def whole_plan(self) -> ScanPlan:
        """All row groups, for keys that are not known yet."""
        for name in self.on:
            kind = self.wire.field(name).type
            if has_calendar(kind):
                self._check_calendar(name, _early(kind))
        return self.scan.plan()

    def _check_calendar(self, name: str, least: pa.Scalar) -> None:
        check_filter(ex.Compare(ex.Column((name,)), "=", least), self.columns, self.settings)


def _early(kind: pa.DataType) -> pa.Scalar:
    """A value that the two calendars count differently."""
    count = pa.array([first_of(kind) - 1], pa.int32() if pa.types.is_date32(kind) else pa.int64())
    return count.view(kind)[0]
