"""Conditions of a query, bound to the columns of a source with the meaning that they have in a session."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pageseek.base.errors import PageseekError
from pageseek.predicate.expression import Compare, Expression, IsIn, IsNull, Not, StartsWith
from pageseek.scan.scan import Scan
from pageseek.spark import catalyst
from pageseek.spark.calendar_marks import rebased_filter
from pageseek.spark.meaning import spark_filter
from pageseek.spark.names import Columns
from pageseek.spark.settings import Settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Binding:
    """Binds conditions to one scan, by the settings that the session has at the first use of each.

    `special`: columns whose values Spark compares by rules of their own.
    """

    def __init__(
        self, spark: SparkSession, scan: Scan, special: frozenset[str] = frozenset()
    ) -> None:
        self.scan, self._special = scan, special
        self.settings = Settings(spark)

    @cached_property
    def columns(self) -> Columns:
        """All columns of the source."""
        request = replace(self.scan._request, columns=None, filter=None, limit=None)
        return Columns(replace(self.scan, _request=request), self.settings)

    def condition(self, given: Any) -> Expression | None:
        """A filter in any form that `read` takes, as an expression."""
        made = spark_filter(given, self.columns, self.settings)
        return None if made is None else rebased_filter(made, self.columns, self.settings)

    def pushed(self, predicate: catalyst.Node) -> Expression | None:
        """A predicate that Spark pushes, as an expression; None where it is not applied here exactly."""
        if not self._special.isdisjoint(path[0] for path in catalyst.columns_of(predicate)):
            return None
        try:
            made = self.condition(catalyst.expression(predicate))
            self.scan.filter(made).limit(0).plan()  # raises what the columns do not fit
        except (catalyst.NotTranslated, PageseekError):
            return None
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


def _not_null(e: Expression) -> tuple[str, ...] | None:
    """The column that a condition says not to be null."""
    if isinstance(e, Not) and isinstance(e.arg, IsNull):
        return e.arg.column.path
    return None
