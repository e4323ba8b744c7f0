"""Parameters of filters: they stand for values that each call of a prepared query brings."""

from __future__ import annotations

from typing import Any

from pageseek.base.errors import PredicateError
from pageseek.base.tracebacks import short_traceback


class Param:
    """A value that a prepared query takes with each call. It stands where a filter has a value.

    Attributes
    ----------
    name : str
        The name under which a call gives the value.
    listed : bool
        Whether it stands for all values of an `isin`.
    """

    __slots__ = "listed", "name"

    def __init__(self, name: str, listed: bool = False) -> None:
        if not isinstance(name, str) or not name.isidentifier():
            raise PredicateError(f"param({name!r}): a name, as of an argument of a function")
        self.name, self.listed = name, listed

    def __reduce__(self) -> tuple[Any, ...]:
        return Param, (self.name, self.listed)

    def __repr__(self) -> str:
        return f":{self.name}"


@short_traceback
def param(name: str) -> Param:
    """A parameter of a prepared query: `scan.prepare(col("id") == param("k"))`.

    It may stand for the value of a comparison, of `between`, `isin` and `starts_with`, or for all values: `isin(param("ids"))`.
    """
    return Param(name)
