"""Nested columns: the tree that Arrow makes of a top-level field, and arrays put together from its leaves.

`tree` has the field's nodes, `paths` what stands between a field and one of its leaves: its nesting levels.
A decoder follows them with the leaf's definition and repetition levels. It gives the validity of each node that may be
null and the offsets of each that repeats. `assembly` hangs these into arrays, from the leaves up.
"""

from pageseek.format.nesting.assembly import MAX_FILL, Decoded, assemble
from pageseek.format.nesting.paths import (
    OPTIONAL,
    REPEATED,
    NestingLevel,
    nesting_levels_of,
    project,
    select,
)
from pageseek.format.nesting.tree import MAX_DEPTH, Kind, Node, build

__all__ = [
    "MAX_DEPTH",
    "MAX_FILL",
    "OPTIONAL",
    "REPEATED",
    "Decoded",
    "Kind",
    "NestingLevel",
    "Node",
    "assemble",
    "build",
    "nesting_levels_of",
    "project",
    "select",
]
