"""Filters: what users write, and what the core runs.

| file | job |
|---|---|
| `expression` | the expression tree that all forms of a filter become |
| `filters` | a filter in whatever form, as such a tree |
| `sql`, `iso8601` | filters as SQL, and the times in them |
| `dnf`, `pyarrow_filter` | filters as lists of tuples, and as pyarrow's expressions |
| `bind` | an expression bound to the leaves of a file |
| `bound` | the tree that this makes, which pruners and evaluation read |
| `fold` | several conditions on one leaf as fewer |
| `literal`, `in_literals`, `in_arrays` | exact values of a column's domain, one by one and by the thousand |
| `like`, `column_pairs`, `constant_column` | what no comparison of one leaf answers |
| `masks` | rows of decoded arrays that pass a test, as bitmaps |
| `search` | `lower_bound` and `upper_bound` of sorted arrays |
| `text` | literals as text, and a caret below a place in SQL |
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
from pageseek.predicate.expression import Column, Expression, col
from pageseek.predicate.filters import to_expression

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
