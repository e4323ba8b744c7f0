"""Aggregations that Spark pushes into a table: answered by the metadata, or computed in parts by the tasks.

A task gives one row for each group of its rows; Spark aggregates these rows again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pageseek.base.errors import PageseekError
from pageseek.base.records import NamedTuple
from pageseek.format.file_metadata import FileMetadata
from pageseek.scanning.plans.scan_plan import ScanPlan
from pageseek.scanning.queries.scan import Scan
from pageseek.spark.calendar.calendar_marks import may_be_old
from pageseek.spark.session.names import Columns
from pageseek.spark.table.local import BYTES

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

FUNCTIONS = {"count_all": "count_all", "count": "count", "min": "min", "max": "max", "sum": "sum"}
MOST_BITS = 18  # of the codes of a row's groups: more groups would be nearly as many as the rows
MOST_GROUPS = 1 << 18  # of a task, before it sends its rows


class Function(NamedTuple):
    """One aggregate function: its name in FUNCTIONS, and its column; "" for the rows themselves."""

    name: str
    column: str


class Aggregation(NamedTuple):
    """An aggregation: the columns that make groups, and the functions. Picklable: tasks get it."""

    by: tuple[str, ...]
    functions: tuple[Function, ...]

    @classmethod
    def of(cls, request: Mapping[str, Any]) -> Aggregation | None:
        """An aggregation as Spark pushes it; None where it is of more than columns and known functions."""
        by = [_column(one) for one in request["by"]]
        functions = []
        for one in request["functions"]:
            columns = [_column(of) for of in one["of"]]
            if one["name"] not in FUNCTIONS or len(columns) > 1 or None in columns:
                return None
            functions.append(Function(one["name"], columns[0] or "" if columns else ""))
        if None in by or not functions:
            return None
        return cls(tuple(name or "" for name in by), tuple(functions))

    @property
    def columns(self) -> list[str]:
        """The columns that it needs."""
        return list(dict.fromkeys([*self.by, *(f.column for f in self.functions if f.column)]))

    def figures(self) -> list[Any]:
        """The functions as `Scan.aggregate` names them, without repetition."""
        made: list[Any] = []
        for name, column in self.functions:
            figure = "count" if name == "count_all" else (column, name)
            if figure not in made:
                made.append(figure)
        return made

    def row(self, scan: Scan) -> pa.Table:
        """The only row of an aggregation without groups, a column for each function."""
        found = scan.aggregate(self.figures())
        names = ["count" if n == "count_all" else f"{column}_{n}" for n, column in self.functions]
        columns = [found.column(name) for name in names]
        return pa.Table.from_arrays(columns, names=[f"f{i}" for i in range(len(columns))])

    def schema(self, table: StructType) -> StructType | None:
        """The schema of its rows: the groups' columns, then the functions; None where Spark's type is not known here."""
        from pyspark.sql.types import ArrayType, LongType, MapType, StructType

        made = StructType([table[name] for name in self.by])
        if any(isinstance(f.dataType, (ArrayType, MapType, StructType)) for f in made):
            return None
        for i, (name, column) in enumerate(self.functions):
            kind: Any = LongType()
            if name == "sum":
                kind = _sum_type(table[column].dataType)
            elif name in ("min", "max"):
                kind = table[column].dataType
                if not _is_ordered(kind):
                    return None
            if kind is None:
                return None
            made = made.add(self.named(i), kind, True)
        return made

    def named(self, i: int) -> str:
        """The name of a function's column, which no column of the groups has, whatever the case."""
        name = f"f{i}"
        while name in map(str.lower, self.by):
            name = f"_{name}"
        return name


def _column(node: Mapping[str, Any]) -> str | None:
    path = node.get("column")
    return path[0] if path is not None and len(path) == 1 else None


def _is_ordered(kind: Any) -> bool:
    from pyspark.sql import types as s

    if isinstance(kind, s.StringType):  # collations have their own order
        return bool(kind == s.StringType())
    plain = s.IntegralType, s.DateType, s.TimestampType, s.TimestampNTZType
    return isinstance(kind, (*plain, s.DecimalType, s.BooleanType))


def _sum_type(kind: Any) -> Any:
    """The type of a sum in Spark; None where the parts of a sum could overflow before it does, or be rounded.

    Spark casts the parts of a sum of decimals to the type of one of them.
    """
    from pyspark.sql import types as s

    return s.LongType() if isinstance(kind, (s.ByteType, s.ShortType, s.IntegerType)) else None


def answers(scan: Scan, aggregation: Aggregation) -> bool:
    """Whether the driver answers an aggregation: from the metadata, or from few pages."""
    if aggregation.by or any(f.name == "sum" for f in aggregation.functions):
        return False
    try:
        report = scan.explain(aggregate=aggregation.figures())
    except PageseekError:
        return False
    return report.bytes["data"] <= BYTES


def is_of_today(scan: Scan, aggregation: Aggregation, table: StructType) -> bool:
    """Whether the least and greatest dates and times are the same in Spark's old calendar, as later ones are."""
    from pyspark.sql.types import DateType, TimestampType

    of = [table[f.column].dataType for f in aggregation.functions if f.name in ("min", "max")]
    if not any(isinstance(kind, (DateType, TimestampType)) for kind in of):
        return True
    return not any(may_be_old(column) for column in aggregation.row(scan).columns)


def has_few_groups(plan: ScanPlan, aggregation: Aggregation, columns: Columns) -> bool:
    """Whether the rows of a task make few groups, by the sizes of the codes of dictionaries."""
    if not aggregation.by:
        return True
    if not plan.files:
        return False
    file = columns.open(plan.files[0].source)
    return sum(_bits(file, name) for name in aggregation.by) <= MOST_BITS


def _bits(file: FileMetadata, name: str) -> float:
    """The bits of a value in a column chunk: with a dictionary, those of its code."""
    try:
        leaf = file._resolve(name)
        chunks = file.chunks(leaf)
    except PageseekError:  # a column of folders
        return 8.0
    if not all(_is_dictionary(chunk) for chunk in chunks):
        return float(MOST_BITS + 1)
    return float(max(8 * c.total_uncompressed_size / max(c.num_values, 1) for c in chunks))


def _is_dictionary(chunk: Any) -> bool:
    return bool(chunk.encodings & (1 << 2 | 1 << 8))


def wire_of(columns: pa.Schema, aggregation: Aggregation, schema: StructType) -> pa.Schema:
    """The wire types of an aggregation's rows, by those of the columns that it reads."""
    fields = [columns.field(name) for name in aggregation.by]
    for function, field in zip(aggregation.functions, schema[len(fields) :], strict=True):
        kind = pa.int64()
        if function.name in ("min", "max"):
            kind = columns.field(function.column).type
        fields.append(pa.field(field.name, kind))
    return pa.schema(fields)


# -- in a task ------------------------------------------------------------------------------------


def summarized(
    batches: Iterable[pa.RecordBatch], aggregation: Aggregation, wire: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """The rows of an aggregation of some batches, in wire types. Groups may occur several times."""
    kept: list[pa.Table] = []
    for batch in batches:
        kept.append(_grouped(pa.Table.from_batches([batch]), aggregation, False))
        if sum(table.num_rows for table in kept) > MOST_GROUPS:
            kept = [_grouped(pa.concat_tables(kept), aggregation, True)]
            if kept[0].num_rows > MOST_GROUPS // 2:
                yield from _sent(kept.pop(), wire)
    if kept:
        yield from _sent(_grouped(pa.concat_tables(kept), aggregation, True), wire)
    elif not aggregation.by:
        yield row_of_none(aggregation, wire)


def row_of_none(aggregation: Aggregation, wire: pa.Schema) -> pa.RecordBatch:
    """The row of an aggregation without groups over no rows: there is always one."""
    values = [
        pa.array([0 if function.name.startswith("count") else None], field.type)
        for function, field in zip(aggregation.functions, wire, strict=True)
    ]
    return pa.RecordBatch.from_arrays(values, schema=wire)


def _grouped(table: pa.Table, aggregation: Aggregation, again: bool) -> pa.Table:
    """One row for each group; `again`: the table is one of such rows."""
    wanted: list[Any] = []
    for i, (name, column) in enumerate(aggregation.functions):
        if again:
            wanted.append((f"f{i}", "sum" if name.startswith("count") else name))
        else:
            wanted.append(([], "count_all") if name == "count_all" else (column, name))
    count = len(aggregation.by)
    by = [f"g{i}" for i in range(count)] if again else list(aggregation.by)
    found = table.group_by(by, use_threads=False).aggregate(wanted)
    names = [f"g{i}" for i in range(count)] + [f"f{i}" for i in range(len(wanted))]
    return pa.Table.from_arrays(found.columns, names=names)


def _sent(table: pa.Table, wire: pa.Schema) -> Iterator[pa.RecordBatch]:
    cast = table.rename_columns(wire.names).cast(wire)
    yield from cast.combine_chunks().to_batches()
