"""The operators of filters, each once: how every form of a filter writes it, and how it is evaluated.

SQL, lists of tuples, pyarrow's filters, binding and simplifying all read these tables.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from pageseek._core import rows
from pageseek.base.records import NamedTuple


class Comparison(NamedTuple):
    """A comparison of two values.

    `name`: as expressions have it. `sql`, `tuples`: as SQL and lists of tuples write it. `inverse`: the comparison
    that is TRUE where this one is FALSE, if the values have a total order. `mirrored`: this one with its sides
    exchanged. `arrow`: the function of `pyarrow.compute`. `kernel`: the code of the core. `of_values`: on Python's
    values.
    """

    name: str
    sql: tuple[str, ...]
    tuples: tuple[str, ...]
    inverse: str
    mirrored: str
    arrow: str
    kernel: int
    of_values: Callable[[Any, Any], Any]


COMPARISONS = {
    one.name: one
    for one in (
        Comparison("=", ("=", "=="), ("=", "=="), "!=", "=", "equal", rows.OP_EQ, operator.eq),
        Comparison("!=", ("!=", "<>"), ("!=",), "=", "!=", "not_equal", rows.OP_NE, operator.ne),
        Comparison("<", ("<",), ("<",), ">=", ">", "less", rows.OP_LT, operator.lt),
        Comparison("<=", ("<=",), ("<=",), ">", ">=", "less_equal", rows.OP_LE, operator.le),
        Comparison(">", (">",), (">",), "<=", "<", "greater", rows.OP_GT, operator.gt),
        Comparison(">=", (">=",), (">=",), "<", "<=", "greater_equal", rows.OP_GE, operator.ge),
    )
}
SYMBOLS = "|".join(  # a pattern: the longest first
    sorted((text for one in COMPARISONS.values() for text in one.sql), key=len, reverse=True)
)
OF_SQL = {text: name for name, one in COMPARISONS.items() for text in one.sql}
OF_ARROW = {one.arrow: name for name, one in COMPARISONS.items()}
MIRRORED = {name: one.mirrored for name, one in COMPARISONS.items()}
OPERATORS = {name: one.of_values for name, one in COMPARISONS.items()}

# "always" and "never": a literal beyond all values makes a test TRUE or FALSE for every value that is not null
KERNELS = {name: one.kernel for name, one in COMPARISONS.items()} | {
    "always": rows.OP_ALWAYS,
    "never": rows.OP_NEVER,
}
INVERSE_KERNELS = {one.kernel: COMPARISONS[one.inverse].kernel for one in COMPARISONS.values()}
LOWER_BOUNDS, UPPER_BOUNDS = (rows.OP_GT, rows.OP_GE), (rows.OP_LT, rows.OP_LE)
POINTS = (rows.OP_EQ, rows.OP_IN)


class Function(NamedTuple):
    """A condition on one column that is composed of others, and that SQL writes as a function.

    `make` takes a `Column`, and a value if it `takes_value`. With `of_text` the value is a text, and the condition is
    NULL where that is.
    """

    make: Callable[..., Any]
    takes_value: bool
    of_text: bool = False


FUNCTIONS = {
    "is_nan": Function(lambda column: column.is_nan(), False),
    "isnan": Function(lambda column: column.is_nan(), False),
    "starts_with": Function(lambda column, text: column.starts_with(text), True, of_text=True),
    "array_contains": Function(lambda column, value: column.any() == value, True),
}

# the operators of lists of tuples
TUPLE_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    **{text: one.of_values for one in COMPARISONS.values() for text in one.tuples},
    "in": lambda column, values: column.isin(values),
    "not in": lambda column, values: ~column.isin(values),
}
