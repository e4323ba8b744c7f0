"""What all scans of one table have in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

import pyarrow as pa

from pageseek.base.errors import FileChangedError
from pageseek.datasets.folder_columns import Folders
from pageseek.scanning.plans.scan_plan import ScanPlan
from pageseek.scanning.queries.scan import Scan
from pageseek.spark.columns import file_values
from pageseek.spark.columns.plan_schema import schema_of, types_of
from pageseek.spark.columns.row_metadata import as_given
from pageseek.spark.filters.binding import Binding
from pageseek.spark.filters.catalyst import Node
from pageseek.spark.session.one_spelling import all_columns
from pageseek.spark.session.settings import Settings, as_java
from pageseek.spark.table.native import has_plain_types
from pageseek.spark.table.native_files import folders_last
from pageseek.spark.tasks.metrics import Run
from pageseek.spark.tasks.task import AGAIN
from pageseek.storage import Source, Sources
from pageseek.storage.local import version_at

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType


@dataclass(frozen=True)
class Choices:
    """What the caller of `load` or `read` chose.

    Attributes
    ----------
    tasks : int, optional
        The greatest number of tasks of a scan.
    local : bool
        Whether the driver reads small scans.
    native : bool
        Whether Spark's own reader may read what a plan leaves.
    python_path : str, optional
        A directory that tasks put on `sys.path`.
    pinned : bool
        Whether all queries have the versions of the files that there are now; else those of when they are planned.
    """

    tasks: int | None = None
    local: bool = True
    native: bool = True
    python_path: str | None = None
    pinned: bool = False

    def __post_init__(self) -> None:
        if self.tasks is not None and self.tasks < 1:
            raise ValueError(f"tasks={self.tasks}: at least 1")


GONE = f"; it was there when the DataFrame was made: {AGAIN}"


class SourceTable:
    """A source in a session, with what was chosen for it.

    `schema`: its columns. `whole`: the same with all fields of structs. `name`: what plans call it. `last`: the last of its scans
    that was read.
    """

    def __init__(
        self,
        spark: SparkSession,
        scan: Scan,
        choices: Choices,
        name: str,
        given: StructType | None = None,
        absent: str = "",
    ) -> None:
        """`given`: the schema that a user gave, which the scan has. `absent`: why there is nothing that a query could read."""
        self.absent = absent
        self.spark, self.choices, self.name = spark, choices, name
        self.scan = scan
        self._watched = _reached(scan) if choices.pinned else ()
        self._versions = self._now()
        self.scan, columns = all_columns(scan)
        scan = self.scan
        self.schema = self.whole = schema_of(columns, scan, spark)[1]
        self._types = columns.schema
        if not set(scan._request.columns or ()) <= set(self.schema.names):  # fields of structs
            tops = scan.select(*self.schema.names)
            wide = tops._execution.columns()
            self.whole, self._types = schema_of(wide, tops, spark)[1], wide.schema
        if given is not None:
            self.schema = cast("StructType", as_given(self.schema, given))
            self.whole = cast("StructType", as_given(self.whole, given))
        self._is_free = file_values.is_free(self.schema.names)
        known = folders_last(columns, self.schema.names) and has_plain_types(self.schema)
        if scan._request.filter is not None or not known:
            self.choices = replace(choices, native=False)
        self.last: Run | None = None

    def with_similar(self, schema: StructType) -> StructType:
        """The columns that a scan wants, and those whose names Java takes for theirs: Spark asks for one of them, and needs all."""
        from pyspark.sql.types import StructType

        names = self.schema.names
        if all(map(str.isascii, names)) or Settings(self.spark).case_sensitive:
            return schema
        wanted = set(map(as_java, schema.names))
        more = [name for name in names if as_java(name) in wanted and name not in schema.names]
        return StructType([*schema, *(self.schema[name] for name in more)]) if more else schema

    def hidden(self, schema: StructType) -> list[str]:
        """The fields of the hidden column that the schema of a scan wants."""
        return file_values.fields_of(schema) if self._is_free else []

    def binding(self, predicates: Sequence[Node] = (), hidden: bool = False) -> Binding:
        """For the conditions of one scan: `predicates`, as Spark pushes them. `hidden`: whether it wants the hidden column."""
        scan = self.scan
        if self._is_free and (hidden or file_values.is_tested(predicates)):
            scan = file_values.with_values(scan)
        return Binding(self.spark, scan, self._types)

    def types(self, wanted: StructType) -> dict[str, pa.DataType]:
        """The Arrow types of the columns that a scan wants: those over all files."""
        return types_of(wanted, self.whole, self._types)

    def planned(self, scan: Scan, types: Mapping[str, pa.DataType]) -> ScanPlan:
        """The plan of a scan whose columns have these types.

        Raises
        ------
        FileChangedError
            A file has another version than the queries of this table have. Also one that a plan has no use for is
            looked at: it may have been of use, or may be of use now.
        """
        plan = scan.plan()
        if self._watched:
            now = self._now() | {file.source: file.version.tag for file in plan.files}
            for source in dict.fromkeys([*self._versions, *now]):
                if self._versions.get(source) != now.get(source):
                    raise FileChangedError(
                        f"{source.name}: the file changed after it was planned; {AGAIN}"
                    )
        fields = [f.with_type(types.get(f.name, f.type)) for f in plan.schema]
        return replace(plan, schema=pa.schema(fields, plan.schema.metadata))

    def _now(self) -> dict[Source, str]:
        """What tells the versions that the watched files have. A store is asked for them at most."""
        if self.scan._sources.paths is not None:
            return {source: version_at(source.path).tag for source in self._watched}
        if not self._watched:
            return {}
        request = replace(self.scan._request, columns=(), filter=None, limit=None)
        every = replace(self.scan, _sources=Sources.of(self._watched), _request=request)
        return {file.source: file.version.tag for file in every.plan().files}


def _reached(scan: Scan) -> tuple[Source, ...]:
    """The files that queries of a scan may reach: all but those that its own filter rules out by their folders."""
    request = scan._request
    if request.dataset_schema is None or request.filter is None:
        return scan.sources
    folders = Folders(request.dataset_schema, request.filter, request.nan)
    return tuple([source for source in scan.sources if folders.may(source.partitions)])
