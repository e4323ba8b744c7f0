"""The columns of a DataFrame, brought into the order of a table, whose names they have by the session's rule of case."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pageseek.base.errors import PredicateError, UnsupportedError
from pageseek.base.suggest import offered
from pageseek.spark.session.settings import Settings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def in_order(
    df: DataFrame, settings: Settings, table: str, types: Mapping[str, str], needed: set[str]
) -> DataFrame:
    """The columns in a table's order, under its names.

    Parameters
    ----------
    types : mapping
        The columns of the table, and their types as Spark spells them.
    needed : set of str
        Those that no file may lack.

    Raises
    ------
    PredicateError
        The table has no column of a name, or the DataFrame lacks one that is needed.
    UnsupportedError
        A column has another type than in the table.
    """
    from pyspark.sql import functions as f

    def folded(name: str) -> str:
        return name if settings.case_sensitive else name.lower()

    own = {folded(name): name for name in types}
    found = {}
    for field in df.schema.fields:
        name = own.get(folded(field.name))
        if name is None:
            raise PredicateError(
                f"{table} has no column {field.name!r}; {offered(field.name, list(types))}; drop it, or add it to the table"
            )
        if field.dataType.simpleString() != types[name]:
            raise UnsupportedError(
                f"{table}: column {name!r} is {types[name]} there, and {field.dataType.simpleString()} in the DataFrame: cast it"
            )
        found[name] = f.col("`" + field.name.replace("`", "``") + "`").alias(name)
    missing = sorted(needed - set(found))
    if missing:
        raise PredicateError(f"{table}: column {missing[0]!r} must have values: add it")
    return df.select(*[found[name] for name in types if name in found])
