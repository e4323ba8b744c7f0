"""Conditions of pyarrow bound to the leaves of a file: pyarrow evaluates them, and the parts that are known here prune."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from pageseek.base.errors import PredicateError
from pageseek.format.types import LeafType
from pageseek.predicate import expression as ex
from pageseek.predicate import pyarrow_filter as arrow
from pageseek.predicate.bound import Bound, BoundConst, BoundResidual
from pageseek.predicate.leaf_conditions import input_leaf, undecided
from pageseek.predicate.schema_names import DatasetNames, Names, UnknownColumnError
from pageseek.predicate.simplify import join


def arrow_test(
    e: ex.ArrowFilter,
    names: Names,
    dataset: DatasetNames | None,
    bind: Callable[[ex.Expression], Bound],
    negate: bool,
) -> Bound:
    """The condition, bound by `bind` alone if all of it is known here, else evaluated by pyarrow too.

    `dataset`: `names`, if they are those of many files.
    """
    node = arrow.read(e.expression)
    known, all_known = ([], False) if node is None or negate else _known(node, names, dataset, bind)
    if all_known:
        return join(known, True)
    paths = arrow.outermost(arrow.fields(node) or ()) or None
    if dataset is None:
        columns, leaves, schema = names.whole(paths)
        evaluate = arrow.evaluator(e.expression, schema)
    else:
        try:
            columns, leaves, schema, fill = dataset.complete(paths)
        except UnknownColumnError:
            return join([*known, undecided(e, negate)], True)
        evaluate_whole = arrow.evaluator(e.expression, schema)
        if not leaves:  # one row stands for all
            alone = BoundResidual((), evaluate_whole, negate, e)
            return join([*known, BoundConst(alone.mask(fill([], 1))[1] > 0)], True)

        def evaluate(values: list[pa.ChunkedArray]) -> Any:
            return evaluate_whole(fill(values, len(values[0])))

    inputs = tuple(input_leaf(found, e) for found in leaves)
    return join([*known, BoundResidual(inputs, evaluate, negate, e, columns)], True)


def _known(
    node: arrow.Node,
    names: Names,
    dataset: DatasetNames | None,
    bind: Callable[[ex.Expression], Bound],
) -> tuple[list[Bound], bool]:
    """Conditions of this package that are TRUE wherever the whole is, and whether they mean the same as the whole."""
    leaf_type_of = _leaf_types(names, dataset)
    known: list[Bound] = []
    all_known = True
    for part in arrow.conjuncts(node):
        try:
            made = arrow.passing(part, leaf_type_of)
            if made is None:
                all_known = False
                made = arrow.implied(part, leaf_type_of)
            if made is not None:
                known.append(bind(ex.flatten(made)))
        except (PredicateError, LookupError, ValueError, AttributeError):
            all_known = False  # pyarrow decides
    return known, all_known


def same_conditions(
    e: ex.ArrowFilter, names: Names, dataset: DatasetNames | None
) -> list[ex.Expression] | None:
    """Conditions of this package that are all TRUE exactly where a filter of pyarrow is; None if they are not known. Arguments as of
    `arrow_test`.
    """
    node = arrow.read(e.expression)
    if node is None:
        return None
    leaf_type_of, made = _leaf_types(names, dataset), []
    for part in arrow.conjuncts(node):
        try:
            found = arrow.passing(part, leaf_type_of)
            if found is None:
                return None
            made.append(ex.flatten(found))
        except (PredicateError, LookupError, ValueError, AttributeError):
            return None
    return made


def _leaf_types(names: Names, dataset: DatasetNames | None) -> arrow.LeafTypeOf:
    def leaf_type_of(path: tuple[str, ...]) -> LeafType | None:
        """The leaf type of a path. None if pyarrow may mean another column: a name has a dot."""
        if any("." in name for name in path):
            return None
        if dataset is not None:
            return dataset.target(path)
        leaf, leaf_type = names(path)
        return None if leaf.group else leaf_type

    return leaf_type_of
