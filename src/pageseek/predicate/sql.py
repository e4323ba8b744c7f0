"""Filters as SQL: the condition of a WHERE clause, without that word.

`id >= 5 and not (name like 'a%' or day in (date '2024-01-31', null))`. The parser descends recursively over tokens,
with a level for each of OR, AND, NOT and the predicates. A chain of one kind is a loop.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any, TypeAlias

from pageseek.base.errors import PredicateError
from pageseek.base.suggest import offered
from pageseek.predicate import expression as ex
from pageseek.predicate import iso8601 as iso
from pageseek.predicate.literal import Number, uuid_of
from pageseek.predicate.operators import FUNCTIONS, MIRRORED, OF_SQL, OPERATORS
from pageseek.predicate.parameters import Param
from pageseek.predicate.sql_tokens import TOKEN, Literal, Token, checked_decimal, integer
from pageseek.predicate.text import RESERVED, point

if TYPE_CHECKING:
    from pageseek.predicate.sql_values import Given

MAX_NESTED = 100  # parentheses and NOTs within one another


_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_TYPED: dict[str, Callable[[str], Any]] = {
    "date": iso.date,
    "timestamp": iso.timestamp,
    "time": iso.time,
    "double": float,
    "uuid": uuid_of,
    "decimal": lambda text: Decimal(checked_decimal(text.strip())),
}
_CASTS = ("cast", "try_cast")
_PREDICATES = ("in", "between", "like", "ilike")  # each is a method of the parser
_OF_ARROW = {
    "lower": "utf8_lower", "upper": "utf8_upper", "length": "utf8_length", "abs": "abs", "coalesce": "coalesce", "round": "round",
}  # fmt: skip
_BEHIND_COLUMNS = ("and", "or", "not", "is", *_PREDICATES)
MAX_PARTS = 1_000  # of a dotted name


_Operand: TypeAlias = ex.Column | Literal


def parse(text: str, params: Sequence[Any] | Mapping[str, Any] | None = None) -> ex.Expression:
    """A condition as an expression.

    Parameters
    ----------
    params : sequence or mapping, optional
        The values of `?`, in order, or those of `:name`. Without it, a `:name` is a parameter of a prepared query.

    Raises
    ------
    PredicateError
        The text is not a condition; the message points at the place.

    Examples
    --------
    >>> parse("a > 5 and b is not null")
    a > 5 and b is not null
    """
    if params is None:
        return Parser(text).whole()
    from pageseek.predicate.sql_values import Given  # late: few filters have values beside them

    return Parser(text, Given(params)).whole()


class Parser:
    """The parser of one text. A dialect overrides its tokens, texts, functions and `typed`: values behind a word."""

    tokens = TOKEN
    typed = _TYPED

    def __init__(self, text: str, given: Given | None = None) -> None:
        self._text = text
        self._given = given
        self._tokens = self._split()
        self._next = 0
        self._token = self._tokens[0]
        self._depth = 0

    def _split(self) -> list[Token]:
        text, at, tokens = self._text, 0, []
        while at < len(text):
            found = self.tokens.match(text, at)
            if found is None:
                from pageseek.predicate import sql_mistakes  # late: for errors only

                raise self._error(at, sql_mistakes.of_sign(text, at))
            kind, part = found.lastgroup, found[0]
            if kind == "word" or kind == "symbol":
                tokens.append(Token(kind, part, at, part.lower()))
            elif kind is not None and kind != "space":
                tokens.append(Token(kind, part, at, ""))
            at = found.end()
        tokens.append(Token("end", "", len(text), ""))
        return tokens

    def _error(self, at: int, words: str) -> PredicateError:
        return point(f"filter: {words}", self._text, at)

    # -- tokens -----------------------------------------------------------------------------------

    def _ahead(self, n: int = 1) -> Token:
        return self._tokens[min(self._next + n, len(self._tokens) - 1)]

    def _take(self, n: int = 1) -> Token:
        """Return the current token, and go on by `n`."""
        token = self._token
        self._next = min(self._next + n, len(self._tokens) - 1)
        self._token = self._tokens[self._next]
        return token

    def _took(self, key: str) -> bool:
        """Take this keyword or symbol if it comes next, and say whether it did."""
        if self._token.key != key:
            return False
        self._take()
        return True

    def _need(self, symbol: str, why: str) -> None:
        if not self._took(symbol):
            raise self._expected(f"{symbol!r} {why}")

    def _expected(self, what: str) -> PredicateError:
        token = self._token
        found = "the end" if token.kind == "end" else token.text
        found = found if len(found) <= 40 else found[:37] + "..."
        return self._error(token.at, f"write {what} here, not {found}")

    def _deeper(self) -> None:
        self._depth += 1
        if self._depth > MAX_NESTED:
            raise self._error(
                self._token.at,
                f"parentheses and NOTs nest deeper than the limit of {MAX_NESTED}; write it flatter",
            )

    # -- conditions -------------------------------------------------------------------------------

    def whole(self) -> ex.Expression:
        after = self._ahead()
        if self._token.word in ("where", "select") and (
            after.kind in ("quoted", "number")
            or (after.kind == "word" and after.word not in _BEHIND_COLUMNS)
        ):
            raise self._error(
                self._token.at, f"write the condition alone, without {self._token.text}"
            )
        made = self._or()
        date = _DATE.match(self._text, self._tokens[self._next - 1].at)
        if date is not None and self._token.key == "-":
            raise self._error(date.start(), f"a date is written so: date '{date[0]}'")
        if self._token.word in ("order", "limit", "group"):
            raise self._error(
                self._token.at, f"write the condition alone, without {self._token.text}"
            )
        if self._token.text in ("+", "-", "*", "/", "%"):
            raise self._error(self._token.at, f"{self._token.text!r}: {ex.NO_ARITHMETIC}")
        if self._token.kind != "end":
            raise self._expected("AND, OR or the end")
        if self._given is not None:
            self._given.check_all_used()
        return made

    def _or(self) -> ex.Expression:
        args = [self._and()]
        while self._took("or"):
            args.append(self._and())
        return args[0] if len(args) == 1 else ex.Or(tuple(args))

    def _and(self) -> ex.Expression:
        args = [self._not()]
        while self._took("and"):
            args.append(self._not())
        return args[0] if len(args) == 1 else ex.And(tuple(args))

    def _not(self) -> ex.Expression:
        nots = 0
        while self._took("not"):
            nots += 1
        made = self._is()
        return ex.Not(made) if nots % 2 else made

    def _is(self) -> ex.Expression:
        """A condition, and IS TRUE, IS FALSE or IS NULL behind it."""
        made = self._condition()
        while self._token.word == "is":
            at = self._take().at
            negate = self._took("not")
            if self._took("true"):
                made = ex.IsTrue(made)
            elif self._took("false"):
                made = ex.IsTrue(ex.Not(made))
            elif self._took("null") or self._took("unknown"):
                made = ex.Not(ex.Or((ex.IsTrue(made), ex.IsTrue(ex.Not(made)))))
            else:
                raise self._error(at, "after a condition, IS takes [NOT] TRUE, FALSE or NULL")
            made = ex.Not(made) if negate else made
        return made

    def _condition(self) -> ex.Expression:
        token = self._token
        if token.key == "(" and not self._is_operand_in_parentheses():
            self._deeper()
            self._take()
            made = self._or()
            self._need(")", "to close the parenthesis")
            self._depth -= 1
            return made
        if token.word in FUNCTIONS and self._ahead().key == "(":
            return self._function()
        operand = self._operand()
        return self._predicate(operand, token)

    def _is_operand_in_parentheses(self) -> bool:
        """`(a) > 5`: parentheses around one operand that a comparison follows."""
        opened = 0
        while opened <= MAX_NESTED and self._ahead(opened).key == "(":
            opened += 1
        inside = opened
        while (token := self._ahead(inside)).kind != "end" and (
            token.kind in ("number", "text", "blob", "quoted", "param")
            or (token.kind == "word" and token.word not in ("and", "or", "not", "is", *_PREDICATES))
            or token.key in (".", "-", "+")
        ):
            inside += 1
        closed = 0
        while closed < opened and self._ahead(inside + closed).key == ")":
            closed += 1
        after = self._ahead(inside + closed)
        return (
            inside > opened
            and closed == opened
            and (after.key in OF_SQL or after.word in ("is", "not", *_PREDICATES))
            and not (after.word == "is" and self._is_boolean(opened, inside))
        )

    def _is_boolean(self, opened: int, inside: int) -> bool:
        return inside - opened == 1 and self._ahead(opened).word in ("true", "false", "null")

    def _predicate(self, operand: _Operand, first: Token) -> ex.Expression:
        token = self._token
        if token.key in OF_SQL:
            op = OF_SQL[self._take().key]
            return self._compare(operand, op, self._operand(), token.at)
        if token.word == "is" and isinstance(operand, ex.Column):
            return self._is_what(operand)
        if (
            token.word == "is"
            and isinstance(operand, Literal)
            and not (operand.value is None or isinstance(operand.value, bool))
        ):
            if isinstance(operand.value, Param):
                raise self._error(first.at, "IS tests a column, not a parameter")
            self._take()
            negate = self._took("not")
            if not self._took("null"):
                raise self._expected("NULL after a value and IS")
            return ex.Constant(negate)
        negate = token.key == "not" and self._ahead().key in _PREDICATES
        if negate:
            self._take()
        word = self._token.word
        if word in _PREDICATES:
            at = self._take().at
            made = getattr(self, f"_{word}")(operand, at)
            return ex.Not(made) if negate else made
        if isinstance(operand, Literal):
            if operand.value is None or isinstance(operand.value, bool):
                return ex.Constant(operand.value)
            raise self._expected("a comparison such as = or <")
        if isinstance(operand, ex.Element):
            raise self._expected("a comparison such as = or < after ANY(...)")
        if token.key in ("+", "-"):
            raise self._error(token.at, f"{token.key!r}: {ex.NO_ARITHMETIC}")
        if token.kind != "end" and token.key not in (")", "and", "or", "is"):
            raise self._expected("a comparison such as =, <, IN, LIKE or IS NULL")
        return operand == True  # noqa: E712  # a column of booleans

    def _compare(self, left: _Operand, op: str, right: _Operand, at: int) -> ex.Expression:
        if isinstance(left, Literal):
            if isinstance(right, Literal):
                return self._constant(left.value, op, right.value, at)
            left, op, right = right, MIRRORED[op], left
        value: Any = right
        if isinstance(right, Literal):
            left, value = _beside(left, right), right.value
        try:
            return left._compare(op, value)
        except PredicateError as error:
            raise self._error(at, str(error)) from None

    def _constant(self, left: Any, op: str, right: Any, at: int) -> ex.Expression:
        """Two values compared, as programs write them: `1 = 1`."""
        if left is None or right is None:
            return ex.Constant(None)
        if left != left or right != right:
            raise self._error(at, "NaN is compared with columns only, by the scan's own rule")
        for kinds in ((bool,), (int, Decimal, float), (str,)):
            both = all(
                isinstance(value, kinds) and (bool in kinds or not isinstance(value, bool))
                for value in (left, right)
            )
            if both:
                return ex.Constant(bool(OPERATORS[op](left, right)))
        raise self._error(at, "two values are compared that are not of one kind")

    def _is_what(self, column: ex.Column) -> ex.Expression:
        self._take()
        negate = self._took("not")
        if self._took("null"):
            made = column.is_null()
        elif self._took("nan"):
            made = column.is_nan()
        elif self._took("true"):
            made = ex.IsTrue(column == True)  # noqa: E712
        elif self._took("false"):
            made = ex.IsTrue(column == False)  # noqa: E712
        elif self._took("unknown"):  # for booleans, like TRUE and FALSE
            made = ex.Not(ex.Or((ex.IsTrue(column == True), ex.IsTrue(column == False))))  # noqa: E712
        else:
            raise self._expected("NULL, NAN, TRUE, FALSE or UNKNOWN, or = for a value")
        return ex.Not(made) if negate else made

    def _in(self, operand: _Operand, at: int) -> ex.Expression:
        if not _is_null(operand):
            self._column_of(operand, at, "IN")
        if self._token.kind == "param":
            return self._in_parameter(operand)
        self._need("(", "to begin the values of IN")
        values: list[Literal] = []
        if self._token.key == ")":
            raise self._expected("at least one value")
        while True:
            item = self._operand()
            if not isinstance(item, Literal):
                raise self._error(self._tokens[self._next - 1].at, "IN takes values, not columns")
            values.append(item)
            if not self._took(","):
                break
        self._need(")", "to end the values of IN")
        if isinstance(operand, Literal):
            return ex.Constant(None)
        return _beside(operand, *values).isin([item.value for item in values])

    def _in_parameter(self, operand: _Operand) -> ex.Expression:
        """`c in ?` and `c in :name`: the parameter stands for all values."""
        token = self._take()
        values = self._parameter(token, listed=True)
        if isinstance(operand, Literal):
            return ex.Constant(None if isinstance(values, Param) or list(values) else False)
        try:
            return operand.isin(values)
        except PredicateError as error:
            raise self._error(token.at, str(error)) from None

    def _parameter(self, token: Token, listed: bool = False) -> Any:
        """The value that a parameter stands for, or the parameter itself where values come later."""
        try:
            if self._given is not None:
                return self._given.value(token.text, listed)
            if token.text == "?":
                raise PredicateError(
                    "? has no value: give params=[...]; in a prepared query write :name"
                )
            return Param(token.text[1:])
        except PredicateError as error:
            raise self._error(token.at, str(error)) from None

    def _between(self, operand: _Operand, at: int) -> ex.Expression:
        low = self._operand()
        self._need("and", "between the two ends of BETWEEN")
        high = self._operand()
        if isinstance(operand, ex.Element):
            if isinstance(low, Literal) and isinstance(high, Literal):
                return _beside(operand, low, high).between(low.value, high.value)
            raise self._error(at, "elements of a list can be compared with values only")
        first = self._compare(operand, ">=", low, at)
        return ex.And((first, self._compare(operand, "<=", high, at)))

    def _like(self, operand: _Operand, at: int) -> ex.Expression:
        found = self._pattern(operand, at, "LIKE")
        return found if isinstance(found, ex.Expression) else found[0].like(*found[1:])

    def _ilike(self, operand: _Operand, at: int) -> ex.Expression:
        found = self._pattern(operand, at, "ILIKE")
        if isinstance(found, ex.Expression):
            return found
        column, pattern, escape = found
        if isinstance(pattern, bytes):
            raise self._error(at, "the pattern of ILIKE is a text such as 'a%'; bytes have no case")
        return column.ilike(pattern, escape)

    def _pattern(
        self, operand: _Operand, at: int, what: str
    ) -> tuple[ex.Column, str | bytes, str] | ex.Expression:
        """The column, pattern and escape of LIKE; or what the condition is where one of them is null."""
        if not _is_null(operand):
            self._column_of(operand, at, what)
        pattern, escape = self._operand(), "\\"
        if not isinstance(pattern, Literal) or not isinstance(
            pattern.value, (str, bytes, type(None))
        ):
            raise self._error(at, f"the pattern of {what} is a text such as 'a%'")
        if self._took("escape"):
            token = self._token
            given = self._operand()
            if not isinstance(given, Literal) or not isinstance(given.value, str):
                raise self._error(token.at, "ESCAPE takes one character, such as '!'")
            escape = given.value
            if len(escape) > 1:
                raise self._error(
                    token.at, "ESCAPE takes one character, such as '!', or '' for none"
                )
        if pattern.value is None or isinstance(operand, Literal):
            return ex.Constant(None)
        return _beside(operand, pattern), pattern.value, escape

    def _column_of(self, operand: _Operand, at: int, what: str) -> ex.Column:
        if isinstance(operand, Literal):
            raise self._error(at, f"{what} tests a column; there is a value before it")
        return operand

    def _function(self) -> ex.Expression:
        token = self._take()
        self._need("(", f"after {token.text}")
        column = self._column_of(self._operand(), token.at, token.text)
        function = FUNCTIONS[token.word]
        values: list[Any] = []
        if function.takes_value:
            self._need(",", f"and the value for {token.text}")
            at = self._token.at
            operand = self._operand()
            if not isinstance(operand, Literal):
                raise self._error(at, f"{token.text} takes a column and a value")
            column = _beside(column, operand)
            values.append(operand.value)
        self._need(")", f"to close {token.text}")
        if function.of_text and values[0] is None:
            return ex.Constant(None)
        if function.of_text and not isinstance(values[0], (str, bytes, Param)):
            raise self._error(token.at, f"{token.text} takes a text such as 'a'")
        made: ex.Expression = function.make(column, *values)
        return made

    # -- operands ---------------------------------------------------------------------------------

    def _operand(self) -> _Operand:
        token = self._token
        if token.key == "(":
            self._deeper()
            self._take()
            made = self._operand()
            self._need(")", "to close the parenthesis")
            self._depth -= 1
            return made
        if token.word in ("any", "some") and self._ahead().key == "(":
            self._take(2)
            column = self._column()
            self._need(")", f"to close {token.text}")
            return column.any()
        if token.kind == "quoted":
            return self._column()
        if token.kind == "param":
            self._take()
            return Literal(self._parameter(token), token.at)
        if token.kind == "word" and token.word not in RESERVED:
            if token.word in _CASTS and self._ahead().key == "(":
                from pageseek.predicate import sql_mistakes

                raise self._error(token.at, f"{token.text}: {sql_mistakes.NOT_CONVERTED}")
            if token.word in self.typed and self._ahead().kind == "text":
                return Literal(self._typed(), token.at)
            if self._ahead().key == "(":
                if token.word in _OF_ARROW:
                    like = (
                        "; ILIKE compares without regard to case"
                        if token.word in ("lower", "upper")
                        else ""
                    )
                    raise self._error(
                        token.at,
                        f"there is no function {token.text}{like}; a filter of pyarrow has one: pc.{_OF_ARROW[token.word]}(pc.field('name')) == ...",
                    )
                raise self._error(
                    token.at,
                    f"there is no function {token.text}; {offered(token.text, (*FUNCTIONS, 'any'))}",
                )
            return self._column()
        return Literal(self._value(), token.at)

    def _column(self) -> ex.Column:
        parts: list[str] = []
        quoted, place = False, ex.Place(self._text, self._token.at)
        while True:
            token = self._token
            is_word = token.kind == "word" and (parts or token.word not in RESERVED)
            if token.kind != "quoted" and not is_word:
                raise self._expected("a column; names that are no plain words in double quotes")
            quoted |= token.kind == "quoted"
            parts.append(self._name(token))
            if not parts[-1]:
                raise self._error(token.at, "a column with an empty name")
            if len(parts) > MAX_PARTS:
                raise self._error(token.at, f"a name of more than {MAX_PARTS:,} parts")
            self._take()
            if not self._took("."):
                break
        return ex.Column(tuple(parts) if quoted else (".".join(parts),), place)

    def _name(self, token: Token) -> str:
        """The name that a word or a quoted name stands for."""
        mark = token.text[0]
        return token.text if token.kind == "word" else token.text[1:-1].replace(mark * 2, mark)

    def _typed(self) -> Any:
        kind, token = self._take().word, self._take()
        text = self._unquoted(token)
        try:
            return self.typed[kind](text)
        except (ValueError, ArithmeticError) as error:
            words = f"{text!r} is no number" if kind in ("decimal", "double") else str(error)
            raise self._error(token.at, f"{kind.upper()}: {words}") from error

    def _unquoted(self, token: Token) -> str:
        """The value of a text."""
        return token.text[1:-1].replace("''", "'")

    def _value(self) -> Any:
        sign = ""
        while self._token.key in ("-", "+"):
            if self._take().key == "-":
                sign = "" if sign else "-"
            if self._token.kind != "number":
                raise self._expected("a number")
        token = self._take()
        if token.kind == "number":
            return self._number(token, sign)
        if token.kind == "text":
            return self._unquoted(token)
        if token.kind == "blob":
            try:
                return bytes.fromhex(token.text[2:-1])
            except ValueError:
                raise self._error(token.at, "X'...' takes pairs of hexadecimal digits") from None
        if token.word in ("true", "false", "null"):
            return {"true": True, "false": False, "null": None}[token.word]
        if token.kind != "end":
            self._next -= 1
            self._token = token
        raise self._expected("a column or a value such as 35, 3.5, 'text' or DATE '2024-01-31'")

    def _number(self, token: Token, sign: str) -> Any:
        text = sign + token.text
        if self._token.kind == "word" and self._token.at == token.at + len(token.text):
            raise self._error(self._token.at, "a number and a name run into each other")
        if "e" in text.lower():
            return float(text)
        if "." in text:
            return Number(text)
        return integer(text)


def _is_null(operand: _Operand) -> bool:
    return isinstance(operand, Literal) and operand.value is None


def _beside(column: ex.Column, *literals: Literal) -> ex.Column:
    """The column with the places of the values that it is compared with."""
    if column.place is None:
        return column
    place = column.place._replace(values=tuple(literal.at for literal in literals))
    return type(column)(column.path, place)
