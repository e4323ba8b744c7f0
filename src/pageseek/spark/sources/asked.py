"""What a call asks of a source: columns and a filter, which the scan has or Spark applies behind it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pageseek.base.records import NamedTuple
from pageseek.scanning.queries.scan import Scan
from pageseek.spark.columns.narrowing import narrowed_column
from pageseek.spark.columns.plan_schema import schema_of
from pageseek.spark.columns.row_metadata import quoted
from pageseek.spark.filters.binding import Binding
from pageseek.spark.filters.sparks import is_sparks, known_of, named_in
from pageseek.spark.session.one_spelling import all_columns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType


class Asked(NamedTuple):
    """Columns and rows of a source.

    Attributes
    ----------
    scan : Scan
        The columns that are needed, and the filter as far as it has one.
    behind : str or Column, optional
        The filter that Spark applies behind the scan.
    columns : list of str, optional
        The columns as the files spell them; None is all.
    names : sequence of str, optional
        The same as the caller spells them.
    schema : StructType, optional
        The columns that come out, where the scan has more or larger ones.
    """

    scan: Scan
    behind: Any
    columns: list[str] | None
    names: Sequence[str] | None
    schema: StructType | None

    @classmethod
    def of(
        cls,
        spark: SparkSession,
        scan: Scan,
        columns: Sequence[str] | None,
        filter: Any,
        pushes: bool,
    ) -> Asked:
        """Of a scan of everything. `pushes`: Spark pushes its own filters into the scan."""
        if isinstance(columns, str):
            raise TypeError(f"columns={columns!r}: a list of names")
        binding = Binding(spark, scan)
        asked = None if columns is None else [binding.columns.output(name) for name in columns]
        if asked is not None and columns is not None:  # a column has its fields in it
            outer = [
                (ours, name)
                for ours, name in zip(asked, columns, strict=True)
                if not _inside(ours, asked) or binding.columns.is_column(ours)
            ]
            asked, columns = [ours for ours, _ in outer], [name for _, name in outer]
        first, behind = None, None
        if not is_sparks(filter):
            first = binding.condition(filter)
        elif pushes:
            behind = filter
        else:
            first, whole = known_of(filter, binding)
            behind = None if whole else filter
        scan = binding.scan
        made, schema = scan.filter(first), None
        if asked is not None:
            needed = list(dict.fromkeys(asked))
            every: list[str] = []
            if behind is not None:
                made, known = all_columns(made)
                every = known.schema.names
            wanted = made.select(*needed)
            if behind is not None:
                named = named_in(behind, every)
                inside = [name for name in needed if name not in every]
                needed = [n for n in needed if n not in inside or _top(n, every) not in named]
                folders = _folders(scan)  # all of them, and last: for Spark's own reader
                needed = [n for n in dict.fromkeys([*needed, *named]) if n not in folders]
                needed += folders
                if inside:
                    schema = schema_of(wanted._execution.columns(), wanted, spark)[1]
            made = made.select(*needed)
        return cls(made, behind, asked, columns, schema)

    def of_frame(self, frame: DataFrame, limit: int | None = None) -> DataFrame:
        """The DataFrame of the scan's rows with what is applied behind the scan, and its columns as the caller named them."""
        if self.behind is not None:
            frame = frame.where(self.behind)
        if limit is not None:
            frame = frame.limit(limit)
        asked, names = self.columns, self.names
        if asked is None or names is None:
            return frame
        if self.schema is not None:
            frame = _narrowed(frame, self.schema)
        elif set(asked) <= set(frame.columns):
            if list(frame.columns) != asked:
                frame = frame.select(*map(_column, asked))
            return frame if asked == list(names) else frame.toDF(*names)
        told = dict(zip(asked, names, strict=True))
        wanted = [told.get(name, name) for name in frame.columns]
        return frame if wanted == frame.columns else frame.toDF(*wanted)


def _folders(scan: Scan) -> list[str]:
    dataset_schema = scan._request.dataset_schema
    return [] if dataset_schema is None else list(dataset_schema.folders.names)


def _inside(path: str, names: Sequence[str]) -> bool:
    """Whether one of the names is that of a column that a dotted path is inside of."""
    return path != (top := _top(path, names)) and top in names


def _top(path: str, names: Sequence[str]) -> str:
    """The column that a dotted path is inside of."""
    parts = path.split(".")
    tops = (".".join(parts[:n]) for n in range(len(parts) - 1, 0, -1))
    return next((top for top in tops if top in names), path)


def _column(name: str) -> Any:
    from pyspark.sql.functions import col

    return col(quoted(name))


def _narrowed(frame: DataFrame, schema: StructType) -> DataFrame:
    given = frame.schema
    columns = []
    for field in schema:
        made = narrowed_column(_column(field.name), given[field.name].dataType, field.dataType)
        columns.append(made.alias(field.name))
    return frame.select(*columns)
