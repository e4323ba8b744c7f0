"""Filters of Spark itself, SQL and Columns: the columns that they may name, and what of them is known here."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any

from pageseek.base.errors import PageseekError
from pageseek.predicate import expression as ex
from pageseek.spark.filters.binding import Binding
from pageseek.spark.filters.conjuncts import conjuncts
from pageseek.spark.filters.sent import sent_conjuncts
from pageseek.spark.session.settings import Settings

# Behind these, columns may be meant that the text does not name.
_OF_ANY_NAME = re.compile(r"(?:^|[(,.])\s*\*|\bidentifier\s*\(", re.IGNORECASE)
_WORDS = re.compile(r"\w+")


def is_sparks(given: Any) -> bool:
    """Whether a filter is one that Spark binds: SQL or a Column."""
    kind = type(given)
    return isinstance(given, str) or (
        kind.__name__ == "Column" and kind.__module__.startswith("pyspark.")
    )


def named_in(given: Any, names: Sequence[str]) -> list[str]:
    """The columns that a filter of Spark may name: all that it names, and perhaps others whose names occur in its text."""
    text = str(given)
    if _OF_ANY_NAME.search(text):
        return list(names)
    small = text.lower()
    words = set(_WORDS.findall(small))

    def occurs(name: str) -> bool:
        key = name.lower()
        if _WORDS.fullmatch(key):
            return key in words
        return key in small or key.replace("`", "``") in small

    return list(filter(occurs, names))


def known_of(given: Any, binding: Binding) -> tuple[ex.Expression | None, bool]:
    """What of a filter of Spark is applied here exactly, and whether that is all of it.

    It holds for every row for which the filter is TRUE.
    """
    if isinstance(given, str):
        with suppress(PageseekError):
            return binding.checked(given), True
    made = list(_bound(_conjuncts(given, binding.settings), binding))
    return (ex.flatten(ex.And(tuple(made))) if made else None), False


def whole_of(given: Any, binding: Binding) -> ex.Expression | None:
    """A Column of Connect, or of Spark 3.5, as an expression that is TRUE for the same rows.

    PredicateError: some of it is not known here.
    """
    made = map(binding.checked, _conjuncts(given, binding.settings, whole=True))
    return ex.flatten(ex.And(tuple([one for one in made if one is not None])))


def _conjuncts(given: Any, settings: Settings, whole: bool = False) -> Iterable[Any]:
    if isinstance(given, str):
        return conjuncts(given)
    if hasattr(given, "_expr"):  # of a Connect client
        return sent_conjuncts(given._expr, whole)
    return conjuncts(given._jc.expr().sql()) if settings.major < 4 else ()


def _bound(given: Iterable[Any], binding: Binding) -> Iterator[ex.Expression]:
    for one in given:
        try:
            made = binding.checked(one)
        except PageseekError:  # Spark applies it, or has an error of its own
            continue
        if made is not None:
            yield made
