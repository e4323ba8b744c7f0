"""Terms of --where: `column op literal`, nothing more.

A literal is an integer, a float, 'text', date '2024-01-31', timestamp '2024-01-31 12:00:00', true, false or
null; `column is null` and `column is not null` are terms as well. A column whose name is no plain word is
written in double quotes. Several terms are joined by AND.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Sequence
from typing import Any

from pageseek.errors import PredicateError
from pageseek.predicate.dnf import from_dnf
from pageseek.predicate.expression import And, Expression, col

_TERM = re.compile(
    r"""\s*(?: "(?P<quoted>(?:[^"]|"")+)" | (?P<name>[^\W\d][\w.]*) )
        \s*(?P<op> <> | <= | >= | != | == | = | < | > | \bis\s+not\b | \bis\b )
        \s*(?P<literal>.*?)\s*\Z""",
    re.VERBOSE | re.IGNORECASE | re.DOTALL,
)
_TEXT = re.compile(r"'((?:[^']|'')*)'\Z", re.DOTALL)
_TYPED = re.compile(r"(date|timestamp)\s*'([^']*)'\Z", re.IGNORECASE)
_INTEGER = re.compile(r"[+-]?\d+\Z", re.ASCII)
_FLOAT = re.compile(
    r"[+-]?(?:(?:\d+\.\d*|\.\d+|\d+)(?:e[+-]?\d+)?|inf|nan)\Z", re.IGNORECASE | re.ASCII
)
_WORDS: dict[str, Any] = {"true": True, "false": False, "null": None}
FORMS = "35, 3.5, 'text', date '2024-01-31', timestamp '2024-01-31 12:00:00', true, false or null"


def parse(terms: Sequence[str]) -> Expression | None:
    """The terms joined by AND; None without any.

    Raises
    ------
    PredicateError
        A term is not of the form `column op literal`.
    """
    made = [parse_term(term) for term in terms]
    if not made:
        return None
    return made[0] if len(made) == 1 else And(tuple(made))


def parse_term(text: str) -> Expression:
    """One term as an expression."""
    match = _TERM.match(text)
    if match is None or not match["literal"]:
        raise PredicateError(
            f"--where {text!r}: write a column, an operator (= != < <= > >=) and a literal such as {FORMS}"
        )
    quoted = match["quoted"]
    name = quoted.replace('""', '"') if quoted is not None else match["name"]
    op = " ".join(match["op"].lower().split())
    value = parse_literal(match["literal"], text)
    if op in ("is", "is not"):
        if value is not None:
            raise PredicateError(
                f"--where {text!r}: only null may stand after {op}; write = or != for a value"
            )
        return col(name).is_null() if op == "is" else col(name).is_not_null()
    if value is None:
        raise PredicateError(
            f"--where {text!r}: a comparison with null is never true; write 'is null' or 'is not null'"
        )
    made = from_dnf([(name, "!=" if op == "<>" else op, value)])
    assert made is not None
    return made


def parse_literal(text: str, where: str) -> Any:
    """A literal as a Python value; `where` is the term, for the error."""
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    if _INTEGER.match(text):
        return int(text)
    if _FLOAT.match(text):
        return float(text)
    if match := _TEXT.match(text):
        return match[1].replace("''", "'")
    if match := _TYPED.match(text):
        kind: type[dt.date] = dt.date if match[1].lower() == "date" else dt.datetime
        try:
            return kind.fromisoformat(match[2])
        except ValueError as error:
            raise PredicateError(f"--where {where!r}: {error}; write it as in ISO 8601") from error
    raise PredicateError(
        f"--where {where!r}: {text} is no literal; write {FORMS} (AND: a further --where)"
    )
