"""Filters in Spark's SQL: its texts with backslashes, its times without a zone, its numbers.

The grammar is that of `pageseek.predicate.sql`. A literal that means something else in Spark has Spark's meaning here,
or is an error that says how to write it.
"""

from __future__ import annotations

import math
import re
from decimal import Decimal
from typing import Any

import pyarrow as pa

from pageseek.base.errors import PredicateError
from pageseek.predicate import expression as ex
from pageseek.predicate import iso8601 as iso
from pageseek.predicate import sql, sql_tokens
from pageseek.predicate.literal import Number
from pageseek.spark.session.settings import Settings
from pageseek.spark.session.zone import SessionTime

MAX_DIGITS = 38  # of a decimal, and of a number without an exponent
# Where this grammar is asked, Spark does not apply a filter.
_FOR_SPARK = "; if Spark's SQL has it, filter the DataFrame instead: load(...).where(...), or what lookup returns"
_SINGLE, _DOUBLE = r"'(?:[^'\\]|\\.|'')*'", r'"(?:[^"\\]|\\.|"")*"'
_ESCAPE = re.compile(
    r"(?P<twice>''|\"\")|\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([01][0-7]{2})|(.))", re.DOTALL
)
_NAMED = {
    "0": "\0",
    "b": "\b",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "Z": "\x1a",
    "%": r"\%",
    "_": r"\_",
}


def parse(text: str, settings: Settings) -> ex.Expression:
    """A condition in Spark's SQL as an expression. Times without a zone come as SessionTime.

    Raises
    ------
    PredicateError
        The text is not a condition that is understood; the message points at the place.
    """
    return ex.flatten(_Parser(text, settings).whole())


def to_micros(value: Any) -> Any:
    """A timestamp cut to microseconds, towards the past, as Spark reads texts."""
    if not isinstance(value, pa.TimestampScalar):  # a datetime has no nanoseconds
        return value
    return pa.scalar(value.value // 1000, pa.timestamp("us", value.type.tz)).as_py()


class _Parser(sql.Parser):
    def __init__(self, text: str, settings: Settings) -> None:
        self._settings = settings
        if (
            '"' in text
            and settings.ansi
            and settings.is_true("spark.sql.ansi.doubleQuotedIdentifiers")
        ):
            self.tokens = sql_tokens.token_pattern(
                _SINGLE, f"{sql_tokens.BACKTICKS}|{sql_tokens.DOUBLE_QUOTES}"
            )
        else:
            self.tokens = sql_tokens.token_pattern(f"{_SINGLE}|{_DOUBLE}", sql_tokens.BACKTICKS)
        self.typed = {
            **sql.Parser.typed,
            "timestamp": self._timestamp,
            "timestamp_ltz": _instant,
            "timestamp_ntz": _local,
        }
        del self.typed["uuid"]  # a type that Spark does not have
        super().__init__(text)

    def _timestamp(self, text: str) -> Any:
        kind = self._settings.get("spark.sql.timestampType", "TIMESTAMP_LTZ")
        return to_micros(iso.timestamp(text)) if kind == "TIMESTAMP_NTZ" else _instant(text)

    def _unquoted(self, token: Any) -> str:
        mark: str = token.text[0]
        text: str = token.text[1:-1]
        twice = mark * 2 in text.replace("\\\\", "").replace("\\" + mark, "")
        if self._settings_say_raw(text):
            if twice:
                raise self._error(
                    token.at, f"{mark * 2} inside a text: write it with other quotes around"
                )
            return text
        if "\\" not in text and not twice:
            return text
        joined = twice and (
            self._settings.major < 4
            or self._settings.is_true("spark.sql.legacy.consecutiveStringLiterals.enabled")
        )

        def said(found: re.Match[str]) -> str:
            pair, short, long, octal, char = found.groups()
            if pair is not None:
                return pair if pair[0] != mark else "" if joined else mark
            if char is not None:
                return _NAMED.get(char, char)
            code = int(short or long or octal, 8 if octal else 16)
            if code > 0x10FFFF:
                raise self._error(token.at, f"{found[0]} is no character")
            return chr(code)

        made = _ESCAPE.sub(said, text)
        try:  # \u may spell a character beyond 16 bits in two halves
            return made.encode("utf-16", "surrogatepass").decode("utf-16")
        except UnicodeDecodeError as error:
            raise self._error(token.at, "this text has half a character") from error

    def _error(self, at: int, words: str) -> PredicateError:
        return super()._error(at, f"{words}{_FOR_SPARK}")

    def _settings_say_raw(self, text: str) -> bool:
        marked = "\\" in text or "''" in text or '""' in text
        return marked and self._settings.is_true("spark.sql.parser.escapedStringLiterals")

    def _number(self, token: Any, sign: str) -> Any:
        made = super()._number(token, sign)
        if isinstance(made, float):
            if math.isinf(made):
                raise self._error(token.at, "a number beyond the greatest double")
            if self._settings.is_true("spark.sql.legacy.exponentLiteralAsDecimal.enabled"):
                made = Number(sign + token.text)
        if isinstance(made, (int, Decimal)) and sum(digits(made)) > MAX_DIGITS:
            raise self._error(
                token.at,
                f"a number of more than {MAX_DIGITS} digits; with an exponent it is a double",
            )
        return made

    def _constant(self, left: Any, op: str, right: Any, at: int) -> ex.Expression:
        both = (left, right)
        if any(isinstance(v, float) for v in both) and not any(isinstance(v, bool) for v in both):
            left, right = (float(v) if isinstance(v, (int, Decimal)) else v for v in both)
        return super()._constant(left, op, right, at)

    def _column(self) -> ex.Column:
        """Names between dots are parts of a path; a name in backticks is one part, dots included."""
        first = self._next
        made = super()._column()
        tokens = self._tokens[first : self._next]
        parts = [self._name(token) for token in tokens if token.kind in ("quoted", "word")]
        return ex.Column(tuple(parts), made.place)

    def _like(self, operand: Any, at: int) -> ex.Expression:
        made = super()._like(operand, at)
        if isinstance(made, ex.Like):
            self._check_escapes(made, at)
        return made

    def _ilike(self, operand: Any, at: int) -> ex.Expression:
        """Java's small letters are not those of `ilike` here: some are several characters."""
        raise self._error(at, "ILIKE is not understood here")

    def _check_escapes(self, test: ex.Like, at: int) -> None:
        """Refuse an escape before anything but a wildcard or another escape, as Spark does."""
        pattern, escape = test.pattern, test.escape
        if not escape:
            raise self._error(at, "ESCAPE takes one character, such as '!'")
        if not isinstance(pattern, str):
            raise self._error(at, "the pattern of LIKE is a text such as 'a%'")
        rest = iter(pattern)
        for char in rest:
            if char == escape:
                after = next(rest, "")
                if after not in ("%", "_", escape) or not after:
                    raise self._error(
                        at,
                        f"in a pattern {escape!r} stands before %, _ or another {escape!r}; a backslash of a text "
                        r"is written '\\', and one that a pattern matches '\\\\'",
                    )

    def _function(self) -> ex.Expression:
        made = super()._function()
        # isnan(NULL) is false
        return ex.IsTrue(made) if isinstance(made, ex.IsNan) else made


def _instant(text: str) -> Any:
    made = to_micros(iso.timestamp(text))
    return made if made.tzinfo is not None else SessionTime(made)


def _local(text: str) -> Any:
    made = to_micros(iso.timestamp(text))
    if made.tzinfo is not None:
        raise ValueError(f"{text!r}: a TIMESTAMP_NTZ has no zone")
    return made


def digits(value: int | Decimal) -> tuple[int, int]:
    """The digits before and behind the point of the value as a decimal of Spark."""
    if isinstance(value, int):
        return len(str(abs(value))) if abs(value) < 10**4000 else 4000, 0
    _, figures, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    behind = max(-exponent, 0)
    return max(len(figures) + exponent, 0), behind
