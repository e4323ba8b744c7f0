"""How a Python Data Source is planned: in a process that has no session, but was told the settings of one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pageseek.base.errors import UnsupportedError
from pageseek.scanning.queries.scan import Scan
from pageseek.spark.columns.plan_schema import schema_of
from pageseek.spark.columns.types import arrow_type
from pageseek.spark.datasource.growing import OPTIONS, Growing
from pageseek.spark.filters.binding import Binding
from pageseek.spark.filters.pushed_filters import node_of
from pageseek.spark.session.one_spelling import all_columns
from pageseek.spark.sources.buckets import reached
from pageseek.spark.sources.narrowed import narrowed, with_data
from pageseek.spark.sources.options import TextOptions, parsed
from pageseek.spark.tasks.expected import expected_rows
from pageseek.spark.tasks.sizing import parts_of
from pageseek.storage.listing import NoDataError

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


@dataclass
class Planning:
    """Plans what a Python Data Source reads, in a process without a session.

    Attributes
    ----------
    session : ToldSession
        What was told of the session, which it stands for.
    wanted : TextOptions
        What the options say.
    pushes : bool
        Whether Spark may push filters.
    hint : str, optional
        SQL that Spark applies behind the scan: what is known of it rules out rows.
    given : StructType, optional
        The columns that the user gave, where Spark asks which columns the table has then.
    """

    session: Any
    wanted: TextOptions
    pushes: bool
    hint: str | None = None
    given: StructType | None = None

    @classmethod
    def of(
        cls,
        session: Any,
        options: Mapping[str, str],
        pushes: bool,
        hint: str | None = None,
        given: StructType | None = None,
    ) -> Planning:
        """For the options of a query."""
        return cls(session, parsed(options, OPTIONS), pushes, hint, given)

    def scan(
        self, schema: StructType | None = None, source: Any = None, folders_last: bool = False
    ) -> Scan:
        """The scan, with the columns of a schema. `folders_last`: as in `narrowed`."""
        wanted = self.wanted
        columns = wanted.table.get("columns") if schema is None else None
        return narrowed(
            self.session,
            wanted.source if source is None else source,
            schema=schema,
            columns=columns,
            filter=wanted.table.get("filter"),
            hint=self.hint,
            folders_last=folders_last,
            **wanted.scan,
        )

    def schema(self) -> StructType:
        """The columns that the options and files say, or the columns that were given with those of folders behind them."""
        self.growing()  # raises what is wrong with the options of a stream before it starts
        given = self.given
        try:
            made = self.scan(given, folders_last=given is not None)
        except NoDataError:
            if given is None:
                raise
            left = with_data(self.session, self.wanted.source, self.wanted.scan)
            if not left:
                return given  # a stream may begin with nothing
            made = self.scan(given, left, folders_last=True)
        scan, columns = all_columns(made)
        schema = schema_of(columns, scan, self.session)[1]
        if given is not None:
            schema = type(schema)([given[f.name] if f.name in given.names else f for f in schema])
        if not schema.names:
            raise UnsupportedError(
                "a Python Data Source has at least one column: name one in `columns`"
            )
        return schema

    def pushed(self, scan: Scan, filters: Sequence[Any]) -> tuple[Scan, list[Any]]:
        """The scan with those filters that it applies, and the others."""
        binding, left = Binding(self.session, scan), []
        for one in filters:
            condition = binding.pushed(node_of(one))
            if condition is None:
                left.append(one)
            else:
                scan = scan.filter(condition)
        return scan, left

    def parts(self, scan: Scan, schema: StructType) -> list[bytes]:
        """The plan of a scan as parts for tasks, whose batches have the types that Spark expects."""
        plan = scan.plan()
        wire = pa.schema(
            [pa.field(f.name, arrow_type(f.dataType, f.name), f.nullable) for f in schema]
        )
        expected = expected_rows(plan, Binding(self.session, scan).columns)
        return parts_of(self.session, plan, wire, self.wanted.table.get("tasks"), expected)

    def growing(self) -> Growing:
        """The files of a stream."""
        source, storage_options = reached(
            self.session, self.wanted.source, self.wanted.scan.get("storage_options")
        )
        return Growing.of(source, storage_options, self.wanted.other, self.wanted.scan.get("table"))
