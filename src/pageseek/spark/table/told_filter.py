"""A condition of Spark as an expression of this package, told by what Spark pushes into a table that is never read."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pageseek.base.errors import PredicateError
from pageseek.predicate import expression as ex
from pageseek.spark.columns.plan_schema import schema_of
from pageseek.spark.filters.binding import Binding
from pageseek.spark.session.one_spelling import all_columns
from pageseek.spark.table.shim import Proxy, table_frame, table_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# of a plan that leaves no filter to Spark, and is not known to be without rows
_NODES = {"DataSourceV2ScanRelation", "DataSourceV2Relation", "Project"}


def told_filter(spark: SparkSession, given: Any, binding: Binding) -> ex.Expression | None:
    """A filter, SQL or a Column, that is TRUE for the same rows. Spark parses and binds it, as it does behind `load`.

    The session must fit the table of Java.

    Raises
    ------
    PredicateError
        Some of it would have to be applied by Spark.
    """
    scan, columns = all_columns(binding.scan)
    asked = _Asked()
    table = table_of(spark, "pageseek", schema_of(columns, scan, spark)[1], asked)
    plan = table_frame(spark, table).where(given)._jdf.queryExecution().optimizedPlan()
    made = [binding.pushed(one) for one in asked.given]
    exact = [one for one in made if one is not None]
    if len(exact) < len(made) or _names(plan) - _NODES:
        raise PredicateError(f"filter {given}: pageseek does not apply all of it itself")
    return ex.flatten(ex.And(tuple(exact))) if exact else None


def _names(plan: Any) -> set[str]:
    """The kinds of the nodes of a plan of Java."""
    found, below = {str(plan.nodeName())}, plan.children()
    for i in range(below.size()):
        found |= _names(below.apply(i))
    return found


class _Asked(Proxy):
    """A planner that takes every condition, and keeps it."""

    def __init__(self) -> None:
        self.given: list[Any] = []
        self._schema = ""

    def on_scan(self, about: str) -> _Asked:
        """Itself, as the planner of a scan."""
        return self

    def on_accepts(self, about: str) -> str:
        """All conditions are taken."""
        self.given = json.loads(about)
        return "1" * len(self.given)

    def on_plan(self, about: str) -> _Asked:
        """Itself, as the plan."""
        self._schema = json.loads(about)["schema"]
        return self

    def on_schema(self, about: str) -> str:
        """The columns that Spark wants."""
        return self._schema

    def on_way(self, about: str) -> str:
        """The driver would read."""
        return "local"

    def on_size(self, about: str) -> int:
        """About the bytes that Spark would get."""
        return 1

    on_rows = on_size
