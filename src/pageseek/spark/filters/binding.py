"""Conditions of a query, bound to the columns of a source with the meaning that they have in a session."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pageseek.base.errors import PageseekError, UnsupportedError
from pageseek.datasets.dataset_schema import tested_paths
from pageseek.predicate.expression import (
    ArrowFilter,
    Column,
    Compare,
    CompareColumns,
    Expression,
    IsIn,
    IsNull,
    Not,
    StartsWith,
    walk,
)
from pageseek.scanning.queries.scan import Scan
from pageseek.scanning.requests.bound_request import BoundRequest
from pageseek.spark.calendar.calendar_marks import rebased_filter
from pageseek.spark.columns.file_values import on_values
from pageseek.spark.columns.row_metadata import has_collation, spark_fields
from pageseek.spark.filters import catalyst
from pageseek.spark.filters.meaning import spark_filter
from pageseek.spark.session.names import Columns
from pageseek.spark.session.settings import Settings

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession
    from pyspark.sql.types import DataType


class Binding:
    """Binds conditions to one scan, by the settings that the session has at the first use of each."""

    def __init__(self, spark: SparkSession, scan: Scan, known: pa.Schema | None = None) -> None:
        """`known`: the types of columns over all files, as far as they are known."""
        self._scan, self._known = scan, known
        self.settings = Settings(spark)
        self._collated: dict[str, bool] = {}
        self._pushed: dict[str, Expression | None] = {}

    @cached_property
    def columns(self) -> Columns:
        """All columns of the source."""
        request = replace(self._scan._request, columns=None, filter=None, limit=None)
        return Columns(replace(self._scan, _request=request), self.settings, self._known)

    @property
    def scan(self) -> Scan:
        """The scan, whose names are spelled as those of conditions."""
        return self.columns.respelled(self._scan)

    def condition(self, given: Any) -> Expression | None:
        """A filter in any form that `read` takes, as an expression."""
        made = spark_filter(given, self.columns, self.settings)
        if made is None:
            return None
        for name in filter(self._is_collated, sorted(tested_columns(made))):
            raise UnsupportedError(
                f"filter {made!r}: {name!r} has a collation of Spark, which compares its texts by rules of its own; "
                "filter the DataFrame instead: load(...).where(...)"
            )
        return rebased_filter(made, self.columns, self.settings)

    def _is_collated(self, name: str) -> bool:
        """Whether a top-level column has texts that are not compared by their bytes: as the first file that has it says."""
        if name not in self._collated:
            kind = self._told(name)
            self._collated[name] = kind is not None and has_collation(kind)
        return self._collated[name]

    def _told(self, name: str) -> DataType | None:
        """The type that Spark's schema gives a column, in the first file that has the column."""
        request = replace(self.columns.request, columns=(name,))
        schema = request.dataset_schema
        if schema is not None and (schema.given is not None or name in schema.folders.names):
            return None
        for source, file in self.columns.files():
            try:
                found = BoundRequest.of(file, request, source).columns
            except PageseekError:  # the plan raises it, with the place in the text
                continue
            if found:
                told = spark_fields(file.key_value_metadata).get(found[0].name)
                return None if told is None else told.dataType
        return None

    def pushed(self, predicate: catalyst.Node) -> Expression | None:
        """A predicate that Spark pushes, as an expression; None where it is not applied here exactly."""
        key = json.dumps(predicate)
        if key not in self._pushed:
            self._pushed[key] = self._translated(predicate)
        return self._pushed[key]

    def _translated(self, predicate: catalyst.Node) -> Expression | None:
        try:
            return self.checked(catalyst.expression(on_values(predicate, self.scan)))
        except (catalyst.NotTranslated, PageseekError):
            return None

    def checked(self, given: Any) -> Expression | None:
        """A filter as an expression that the columns fit."""
        made = self.condition(given)
        self.scan.filter(made).limit(0).plan()  # raises what they do not fit
        return made

    def filtered(self, predicates: Iterable[catalyst.Node]) -> Scan:
        """The scan with those of the predicates that are applied here."""
        scan = self.scan
        made = [one for one in map(self.pushed, predicates) if one is not None]
        tested = {one.column.path for one in made if isinstance(one, (Compare, IsIn, StartsWith))}
        for one in made:
            if _not_null(one) not in tested:  # then the other test says so, too
                scan = scan.filter(one)
        return scan


def tested_columns(e: Expression) -> set[str]:
    """The top-level columns in a condition."""
    tops: set[str] = set()
    for one in walk(e):
        if isinstance(one, (ArrowFilter, CompareColumns)):
            tops |= {path[0] for path in tested_paths(one) or ()}
        else:
            tested = getattr(one, "column", getattr(one, "element", None))
            if isinstance(tested, Column):
                tops.add(tested.path[0])
    return tops


def _not_null(e: Expression) -> tuple[str, ...] | None:
    """The column that a condition says not to be null."""
    if isinstance(e, Not) and isinstance(e.arg, IsNull):
        return e.arg.column.path
    return None
