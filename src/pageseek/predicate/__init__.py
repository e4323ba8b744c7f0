"""Filters: what users write (`expression`, `dnf`), and what the core runs (`bind`, `literal`)."""

from pageseek.predicate.bind import Bound, BoundAnd, BoundConst, BoundLeaf, BoundOr, bind
from pageseek.predicate.dnf import from_dnf
from pageseek.predicate.expression import Column, Expression, col, to_expression

__all__ = [
    "Bound",
    "BoundAnd",
    "BoundConst",
    "BoundLeaf",
    "BoundOr",
    "Column",
    "Expression",
    "bind",
    "col",
    "from_dnf",
    "to_expression",
]
