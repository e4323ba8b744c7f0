"""Nested columns: the tree of a top-level field in Arrow, and arrays assembled from its leaves.

`tree` has the field's nodes, `paths` the nesting levels between a field and each of its leaves. A decoder follows them
with the leaf's definition and repetition levels. It gives the validity of each node that may be null and the offsets of
each that repeats. `assembly` makes arrays of these, from the leaves up.
"""

from typing import TYPE_CHECKING

from pageseek.base.late_modules import handed_on

if TYPE_CHECKING:
    from pageseek.format.nesting.assembly import Decoded, assemble
    from pageseek.format.nesting.paths import (
        OPTIONAL,
        REPEATED,
        NestingLevel,
        nesting_levels_of,
        project,
        select,
    )
    from pageseek.format.nesting.tree import MAX_DEPTH, Node, build

__all__ = [
    "MAX_DEPTH",
    "OPTIONAL",
    "REPEATED",
    "Decoded",
    "NestingLevel",
    "Node",
    "assemble",
    "build",
    "nesting_levels_of",
    "project",
    "select",
]

__getattr__ = handed_on(
    __name__,
    {
        "MAX_DEPTH": "tree",
        "OPTIONAL": "paths",
        "REPEATED": "paths",
        "Decoded": "assembly",
        "NestingLevel": "paths",
        "Node": "tree",
        "assemble": "assembly",
        "build": "tree",
        "nesting_levels_of": "paths",
        "project": "paths",
        "select": "paths",
    },
)
