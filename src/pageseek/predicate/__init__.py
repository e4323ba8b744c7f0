"""Filters: what users write, and what the core runs.

Written: `expression`, `sql` (with `iso` for its times), `dnf`, and pyarrow's own, which `arrow` reads. Bound to
a file by `bind`, with `literal` and `many` for values and `fold` for what can be simplified. What no test of one
leaf answers is a residual: `like`, `sidebyside` for two columns, `arrow`.
"""

from pageseek.predicate.bind import bind
from pageseek.predicate.bound import (
    Bound,
    BoundAnd,
    BoundAny,
    BoundConst,
    BoundLeaf,
    BoundNot,
    BoundOr,
    BoundResidual,
)
from pageseek.predicate.dnf import from_dnf
from pageseek.predicate.expression import Column, Expression, col, to_expression

__all__ = [
    "Bound",
    "BoundAnd",
    "BoundAny",
    "BoundConst",
    "BoundLeaf",
    "BoundNot",
    "BoundOr",
    "BoundResidual",
    "Column",
    "Expression",
    "bind",
    "col",
    "from_dnf",
    "to_expression",
]
