"""The values that a caller gives for the parameters of a filter in SQL: those of `?` in order, or those of `:name` by name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from pageseek.base.errors import PredicateError
from pageseek.base.report import counted
from pageseek.base.suggest import offered
from pageseek.predicate.expression import Column, Expression
from pageseek.predicate.given_values import plain_text
from pageseek.predicate.parameters import Param

_LISTS = (list, tuple, set, frozenset, np.ndarray, pa.Array, pa.ChunkedArray)


class Given:
    """Values of parameters, taken by a parser one after the other. A value never becomes a part of the text."""

    __slots__ = ("_named", "_ordered", "_taken")

    def __init__(self, params: Sequence[Any] | Mapping[str, Any]) -> None:
        self._named: Mapping[str, Any] | None = None
        self._ordered: Sequence[Any] = ()
        self._taken: dict[str | int, None] = {}
        if isinstance(params, Mapping):
            self._named = params
        elif isinstance(params, (list, tuple)):
            self._ordered = params
        else:
            raise PredicateError(
                f"params={_short(params)}: a list with a value for each ?, or a dict with one for each :name"
            )

    def value(self, text: str, listed: bool) -> Any:
        """The value of a parameter. `text`: as it is written, `?` or `:name`. `listed`: it stands for all values of IN."""
        if text == "?":
            if self._named is not None:
                raise PredicateError(
                    "? takes its value from a list, and params is a dict; write :name"
                )
            at = len(self._taken)
            if at >= len(self._ordered):
                raise PredicateError(
                    f"this ? is number {at + 1}, and params has {counted(len(self._ordered), 'value')}"
                )
            self._taken[at] = None
            return _checked(text, self._ordered[at], listed)
        name = text[1:]
        if self._named is None:
            raise PredicateError(
                f"{text} takes its value from a dict: give params={{{name!r}: ...}}"
            )
        if name not in self._named:
            raise PredicateError(
                f"{text} has no value: {offered(name, list(map(str, self._named)))}"
            )
        self._taken[name] = None
        return _checked(text, self._named[name], listed)

    def check_all_used(self) -> None:
        """PredicateError: a value was given that no parameter takes."""
        if self._named is not None:
            unused = [name for name in self._named if name not in self._taken]
            if unused:
                known = [name for name in self._taken if isinstance(name, str)]
                raise PredicateError(
                    f"params: the filter has no parameter :{unused[0]}; {offered(str(unused[0]), known)}"
                )
        elif len(self._taken) < len(self._ordered):
            raise PredicateError(
                f"params has {counted(len(self._ordered), 'value')}, and the filter has {len(self._taken)} ?"
            )


def _checked(text: str, value: Any, listed: bool) -> Any:
    value = bytes(value) if isinstance(value, memoryview) else plain_text(value)
    if isinstance(value, (Expression, Column, Param)):
        raise PredicateError(f"the value of {text} is {value!r}, which is no value; write it into the filter")  # fmt: skip
    is_list = isinstance(value, _LISTS) or (
        isinstance(value, Iterable) and not isinstance(value, (str, bytes, bytearray, pa.Scalar))
    )
    if isinstance(value, Mapping) and not listed:
        raise PredicateError(f"the value of {text} is a dict, which is compared with no column")
    if listed and not is_list:
        raise PredicateError(
            f"IN {text} takes a list of values, not {_short(value)}; write IN ({text}) for one value"
        )
    if is_list and not listed:
        raise PredicateError(
            f"the value of {text} is a list; write IN {text}, without parentheses, for some of its values"
        )
    return value


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else text[:37] + "..."
