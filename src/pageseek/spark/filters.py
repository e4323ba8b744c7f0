"""A filter in any form that `read` takes, with the meaning that it has in a Spark session."""

from __future__ import annotations

from typing import Any

from pageseek.predicate import expression as ex
from pageseek.predicate.filters import to_expression
from pageseek.spark.dialect import parse
from pageseek.spark.meaning import Meaning
from pageseek.spark.names import Columns
from pageseek.spark.settings import Settings


def spark_filter(given: Any, columns: Columns, settings: Settings) -> ex.Expression | None:
    """The filter as an expression of ours; one of pyarrow keeps the meaning that pyarrow gives it."""
    text = isinstance(given, str)
    made = parse(given, settings) if text else to_expression(given)
    if made is None or isinstance(made, ex.ArrowFilter):
        return made
    return ex.flatten(Meaning(columns, settings, text).of(made))


__all__ = ["spark_filter"]
