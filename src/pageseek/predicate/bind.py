"""From an expression to what the core can run: leaves, kinds, packed literals.

NOT is pushed down to the leaves, where it is a flag: in three-valued logic NOT (x < 5) is TRUE exactly where
x < 5 is FALSE, which the kernels answer directly, NaN included.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from pageseek._core import rows
from pageseek.base.errors import NoColumnError, PredicateError
from pageseek.format.schema import Leaf
from pageseek.format.types import BYTES_KINDS, FLOAT_KINDS, K_BOOL, K_BYTES, K_FIXED, LeafType
from pageseek.predicate import column_pairs as sidebyside
from pageseek.predicate import expression as ex
from pageseek.predicate import like
from pageseek.predicate import pyarrow_filter as arrow
from pageseek.predicate.bound import (
    INPUT,
    Bound,
    BoundAnd,
    BoundAny,
    BoundConst,
    BoundLeaf,
    BoundNot,
    BoundOr,
    BoundResidual,
)
from pageseek.predicate.constant_column import ConstantColumn, decide
from pageseek.predicate.fold import fold
from pageseek.predicate.in_arrays import FEW, Many, by_type, many
from pageseek.predicate.in_literals import merged, pack_literals
from pageseek.predicate.literal import Number, exact, fit_fixed, fit_float, fit_integer
from pageseek.predicate.text import point, show

OPS = {
    "=": rows.OP_EQ,
    "!=": rows.OP_NE,
    "<": rows.OP_LT,
    "<=": rows.OP_LE,
    ">": rows.OP_GT,
    ">=": rows.OP_GE,
    "always": rows.OP_ALWAYS,
    "never": rows.OP_NEVER,
}
Found = tuple[Leaf, LeafType]


class Names(Protocol):
    """What a file calls its columns."""

    def __call__(self, path: tuple[str, ...], /) -> Found:
        """The leaf at a path, through structs."""

    def element(self, path: tuple[str, ...], /) -> Found:
        """The leaf at a path, through lists as well."""

    def whole(
        self, paths: list[tuple[str, ...]] | None, /
    ) -> tuple[tuple[Any, ...], list[Found], pa.Schema]:
        """Columns with all that is below (of the whole file, if None), their leaves, and their schema."""


class DatasetNames(Names, Protocol):
    """What a file of many calls its columns: it may lack some, and have others with one value or of a narrower type."""

    def complete(
        self, paths: list[tuple[str, ...]] | None, /
    ) -> tuple[
        tuple[Any, ...],
        list[Found],
        pa.Schema,
        Callable[[list[pa.ChunkedArray], int], list[pa.ChunkedArray]],
    ]:
        """As `whole`, with the schema of all files, and what makes columns of it from the values of this one."""

    def target(self, path: tuple[str, ...], /) -> LeafType | None:
        """How values of a column are compared once they have the type of all files."""

    def as_float(self, path: tuple[str, ...], /) -> bool:
        """Whether the integers of this file are floats among the others."""


class UnsaidError(LookupError):
    """Raised by names that stand for more than one file, of a column in which these may differ."""


Find = Names | Callable[[tuple[str, ...]], Found]
NAN_RULES = {"ieee": rows.NAN_IEEE, "spark": rows.NAN_SPARK}


def bind(
    expression: ex.Expression,
    find: Find,
    nan: str = "ieee",
) -> Bound:
    """Bind names and literals to the leaves of a file; `find` gives the leaf at a path.

    A function will do for `find` where no condition is on lists or of pyarrow.
    """
    if nan not in NAN_RULES:
        raise PredicateError(f"nan={nan!r}: one of {', '.join(map(repr, NAN_RULES))}")
    return _Binder(find, NAN_RULES[nan]).bind(expression, False)


class _Binder:
    def __init__(self, find: Find, nan: int) -> None:
        self._find = find
        self._nan = nan
        self._many: Any = find if hasattr(find, "complete") else None  # DatasetNames

    def bind(self, e: ex.Expression, negate: bool) -> Bound:
        while isinstance(e, ex.Not):
            e, negate = e.arg, not negate
        if isinstance(e, (ex.And, ex.Or)):
            args = [self.bind(arg, negate) for arg in e.args]
            return _join(args, isinstance(e, ex.And) != negate)
        if isinstance(e, ex.Constant):
            return BoundConst(e.value is not None and e.value != negate)
        if isinstance(e, ex.IsTrue):
            inner = self.bind(e.arg, False)
            return _not(inner) if negate else inner
        bound = self._test(e, negate)
        if isinstance(bound, BoundLeaf) and bound.op == (
            rows.OP_ALWAYS if negate else rows.OP_NEVER
        ):
            return BoundConst(False)
        return bound

    def _test(self, e: ex.Expression, negate: bool) -> Bound:
        try:
            return self._bound(e, negate)
        except UnsaidError:
            return _anything(e, negate)
        except PredicateError as error:
            place = None if error.at is not None else self._fault(e)
            if place is None:
                raise
            words = str(error)
            if isinstance(e, ex.CompareColumns) and isinstance(error, NoColumnError):
                words += f"; a text is written in single quotes, {show('.'.join(e.other.path))}"
            raise point(words, place.text, place.at) from error

    def _fault(self, e: ex.Expression) -> ex.Place | None:
        """Where in the text of the filter a condition is that cannot be bound: the column, or a value."""
        if isinstance(e, ex.AnyElement):
            return e.element.place
        column: ex.Column | None = getattr(e, "column", None)
        if column is None or column.place is None:
            return None
        place = column.place
        try:
            _, leaf_type = self._value(column)
        except PredicateError:
            return place
        if isinstance(e, ex.CompareColumns):
            return e.other.place
        if isinstance(e, (ex.Like, ex.StartsWith)):
            beside: Iterable[int] = place.values if leaf_type.kind in BYTES_KINDS else ()
        elif isinstance(e, ex.IsIn):
            beside = (
                at
                for value, at in zip(e.values, place.values, strict=True)
                if not _fits(value, leaf_type)
            )
        elif isinstance(e, ex.Compare):
            beside = place.values[-1:] if e.op == "<=" else place.values  # BETWEEN has two
        else:
            beside = ()
        return place._replace(at=next(iter(beside), place.at))

    def _bound(self, e: ex.Expression, negate: bool) -> Bound:
        if self._many is not None:
            settled = self._settled(e, negate)
            if settled is not None:
                return settled
            e = self._rounded(e)
        if isinstance(e, ex.Compare):
            return self._compare(e, negate)
        if isinstance(e, ex.IsIn):
            return self._isin(e, negate)
        if isinstance(e, ex.IsNull):
            return self._is_null(e, negate)
        if isinstance(e, ex.IsNan):
            leaf, leaf_type = self._value(e.column)
            op = rows.OP_IS_NAN if leaf_type.kind in FLOAT_KINDS else rows.OP_NEVER
            return BoundLeaf(leaf, leaf_type, op, (0, b"", None), negate, self._nan, e)
        if isinstance(e, ex.StartsWith):
            return self._prefix(e, negate)
        if isinstance(e, ex.Like):
            return self._like(e, negate)
        if isinstance(e, ex.CompareColumns):
            return self._columns(e, negate)
        if isinstance(e, ex.AnyElement):
            return self._any(e, negate)
        if isinstance(e, ex.ArrowFilter):
            return self._arrow(e, negate)
        raise PredicateError(f"{e!r}: not a condition that can be bound")

    def _settled(self, e: ex.Expression, negate: bool) -> Bound | None:
        """A condition on columns of which one has the same value in all rows."""
        column: ex.Column | None = getattr(e, "column", None)
        if isinstance(e, ex.AnyElement):
            one, leaf_type = self._many.element(e.element.path)
        elif column is None:
            return None
        else:
            one, leaf_type = self._find(column.path)
        if isinstance(e, ex.CompareColumns):
            other, theirs = self._find(e.other.path)
            if not isinstance(one, ConstantColumn) and not isinstance(other, ConstantColumn):
                return None
            if any(
                isinstance(leaf, ConstantColumn) and leaf.values is None for leaf in (one, other)
            ):
                return BoundConst(False)
            if (
                not leaf_type.is_null
                and not theirs.is_null
                and not sidebyside.comparable(leaf_type, theirs)
            ):
                raise _uncomparable(e, leaf_type, theirs)
            if isinstance(other, ConstantColumn):
                return self._bound(ex.Compare(e.column, e.op, other.scalar), negate)
            assert isinstance(one, ConstantColumn)
            return self._bound(ex.Compare(e.other, _TURNED[e.op], one.scalar), negate)
        if not isinstance(one, ConstantColumn):
            return None
        if one.values is not None:
            alone = _Binder(lambda _path: (one, leaf_type), self._nan)._bound(e, negate)
            return BoundConst(decide(alone, one.values))
        if isinstance(e, ex.IsNull):
            return BoundConst(not negate)
        return BoundConst(negate and isinstance(e, ex.IsIn) and not len(e.values))

    def _rounded(self, e: ex.Expression) -> ex.Expression:
        """Numbers of SQL are the nearest doubles where the column is one of floats, whatever this file has."""
        if isinstance(e, ex.Compare):
            if isinstance(e.value, Number) and self._many.as_float(e.column.path):
                return replace(e, value=float(e.value))
        elif (
            isinstance(e, ex.IsIn)
            and isinstance(e.values, tuple)
            and self._many.as_float(e.column.path)
        ):
            rounded = (float(v) if isinstance(v, Number) else v for v in e.values)
            return ex.IsIn(e.column, tuple(rounded))
        return e

    def _is_null(self, e: ex.IsNull, negate: bool) -> Bound:
        leaf, leaf_type = self._find(e.column.path)
        if leaf.group and leaf.nesting_level < 0:
            return BoundConst(negate)  # nothing on the way to this group can be null
        return BoundLeaf(leaf, leaf_type, rows.OP_IS_NULL, (0, b"", None), negate, self._nan, e)

    def _value(self, column: ex.Column) -> tuple[Leaf, LeafType]:
        """A leaf whose values are compared."""
        leaf, leaf_type = self._find(column.path)
        if leaf.group:
            raise PredicateError(
                f"{column!r} is nested: it can be tested for null; to compare, name one of its leaves, "
                "and of a list write .any() for some of its elements"
            )
        return leaf, leaf_type

    def _compare(self, e: ex.Compare, negate: bool) -> Bound:
        leaf, leaf_type = self._value(e.column)
        value = exact(e.value, leaf_type, e.column)
        if value is None:
            return BoundConst(False)  # NULL for every row, and so is its negation
        op, fitted = fit(e.op, value, leaf_type, self._nan)
        return BoundLeaf(
            leaf, leaf_type, OPS[op], pack_literals([fitted], leaf_type), negate, self._nan, e
        )

    def _isin(self, e: ex.IsIn, negate: bool) -> Bound:
        leaf, leaf_type = self._value(e.column)
        if not len(e.values):
            return BoundConst(negate)  # no list holds anything, not even null
        if len(e.values) < FEW:
            found = _singly(e.values, leaf_type, e.column)
        else:
            if leaf_type not in e.packed:  # of the files before, most have the same form
                e.packed[leaf_type] = _at_once(e.values, leaf_type, e.column)
            found = e.packed[leaf_type]
        if negate and found.has_null:
            return BoundConst(False)  # NOT IN (..., NULL) is never TRUE
        if not found.literals[0]:
            return BoundLeaf(leaf, leaf_type, rows.OP_NEVER, (0, b"", None), negate, self._nan, e)
        return BoundLeaf(leaf, leaf_type, rows.OP_IN, found.literals, negate, self._nan, e)

    def _prefix(self, e: ex.StartsWith, negate: bool) -> Bound:
        leaf, leaf_type = self._value(e.column)
        if leaf_type.kind not in BYTES_KINDS:
            raise PredicateError(f"{e!r}: column of type {leaf_type.type} has no prefix")
        prefix = exact(e.prefix, leaf_type, e.column)
        return BoundLeaf(
            leaf,
            leaf_type,
            rows.OP_PREFIX,
            pack_literals([prefix], leaf_type),
            negate,
            self._nan,
            e,
        )

    def _like(self, e: ex.Like, negate: bool) -> Bound:
        leaf, leaf_type = self._value(e.column)
        text = sidebyside.family(leaf_type)
        if text not in ("text", "binary") or isinstance(leaf_type.type, pa.UuidType):
            raise PredicateError(
                f"{e!r}: column of type {leaf_type.type} is no text; compare it with ="
            )
        if isinstance(e.pattern, str) != (text == "text"):
            how = "give str for text and bytes for binary columns"
            if e.column.place is not None:
                how = "write 'text' for columns of text and X'00ff' for binary ones"
            raise PredicateError(f"{e!r}: {how}")
        pattern = like.compile_pattern(e.pattern, e.escape)
        if pattern.exact:
            plain = b"".join(part for part in pattern.parts if isinstance(part, bytes))
            op, fitted = fit("=", plain, leaf_type, self._nan)
            literals = pack_literals([fitted], leaf_type)
            found: Bound = BoundLeaf(leaf, leaf_type, OPS[op], literals, negate, self._nan, e)
            return BoundConst(False) if OPS[op] == rows.OP_NEVER and not negate else found
        wide = leaf_type.kind in BYTES_KINDS
        prefix = BoundLeaf(
            leaf, leaf_type, rows.OP_PREFIX, (0, b"", None), False, self._nan,
            ex.StartsWith(e.column, _text(pattern.prefix, text == "text")),
        )  # fmt: skip
        if wide:
            prefix = replace(prefix, literals=pack_literals([pattern.prefix], leaf_type))
            if pattern.only_prefix:
                return replace(prefix, negate=negate, source=e)
        evaluate = like.matcher(pattern, text == "text")
        residual = BoundResidual((_input(leaf, leaf_type, e),), evaluate, negate, e)
        if negate or not pattern.prefix or not wide:
            return residual
        return BoundAnd((prefix, residual))

    def _columns(self, e: ex.CompareColumns, negate: bool) -> Bound:
        found = [self._value(column) for column in (e.column, e.other)]
        (one, a), (other, b) = found
        if a.is_null or b.is_null:
            return BoundConst(False)
        if not sidebyside.comparable(a, b):
            raise _uncomparable(e, a, b)
        evaluate = sidebyside.comparison(a, e.op, b, self._nan == rows.NAN_SPARK)
        inputs = _input(one, a, e), _input(other, b, e)
        return BoundResidual(inputs, evaluate, negate, e)

    def _any(self, e: ex.AnyElement, negate: bool) -> Bound:
        find = getattr(self._find, "element", self._find)
        leaf, leaf_type = find(e.element.path)
        if leaf.max_rep == 0:
            raise PredicateError(
                f"{e!r}: column of type {leaf_type.type} is no list; compare it without any()"
            )
        test = _Binder(lambda _path: (leaf, leaf_type), self._nan).bind(e.test, negate)
        if test == BoundConst(False) and not negate:
            return test
        return BoundAny(_input(leaf, leaf_type, e), test, negate)

    def _arrow(self, e: ex.ArrowFilter, negate: bool) -> Bound:
        """By pyarrow, and before that, so that they prune, by the parts that are understood."""
        names: Any = self._find
        node = arrow.read(e.expression)
        known: list[Bound] = []
        sure = node is not None
        if node is not None and not negate:
            for part in arrow.conjuncts(node):
                try:
                    made = arrow.translate(part, self._leaf_type_of)
                    if made is None:
                        sure = False
                    else:
                        known.append(
                            _Binder(self._find, rows.NAN_IEEE).bind(ex.flatten(made), False)
                        )
                except (PredicateError, LookupError, ValueError, AttributeError):
                    sure = False  # pyarrow decides what becomes of it
            if sure:
                return _join(known, True)
        paths = arrow.fields(node) or None
        if self._many is None:
            columns, leaves, schema = names.whole(paths)
            evaluate = arrow.evaluator(e.expression, schema)
        else:
            try:
                columns, leaves, schema, fill = self._many.complete(paths)
            except UnsaidError:
                return _join([*known, _anything(e, negate)], True)
            judge = arrow.evaluator(e.expression, schema)
            if not leaves:  # one row stands for all
                alone = BoundResidual((), judge, negate, e)
                return _join([*known, BoundConst(alone.mask(fill([], 1))[1] > 0)], True)

            def evaluate(values: list[pa.ChunkedArray]) -> Any:
                return judge(fill(values, len(values[0])))

        inputs = tuple(_input(leaf, leaf_type, e) for leaf, leaf_type in leaves)
        return _join([*known, BoundResidual(inputs, evaluate, negate, e, columns)], True)

    def _leaf_type_of(self, path: tuple[str, ...]) -> LeafType | None:
        """Of a column that pyarrow would take for the same: a path of names that have no dots."""
        if any("." in name for name in path):
            return None
        if self._many is not None:
            found: LeafType | None = self._many.target(path)
            return found
        leaf, leaf_type = self._find(path)
        return None if leaf.group else leaf_type


def _fits(value: Any, leaf_type: LeafType) -> bool:
    try:
        exact(value, leaf_type, None)
    except PredicateError:
        return False
    return True


def _anything(e: ex.Expression, negate: bool) -> BoundResidual:
    """A condition of which nothing can be said."""
    return BoundResidual((), lambda _: pa.nulls(0, pa.bool_()), negate, e)


def _input(leaf: Leaf, leaf_type: LeafType, source: ex.Expression) -> BoundLeaf:
    return BoundLeaf(leaf, leaf_type, INPUT, (0, b"", None), False, rows.NAN_IEEE, source)


def _text(prefix: bytes, is_text: bool) -> str | bytes:
    return prefix.decode("utf-8", "surrogatepass") if is_text else prefix


_TURNED = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def _uncomparable(e: ex.CompareColumns, a: LeafType, b: LeafType) -> PredicateError:
    return PredicateError(f"{e!r}: {a.type} and {b.type} cannot be compared{_zones(a, b)}")


def _zones(a: LeafType, b: LeafType) -> str:
    if {sidebyside.family(a), sidebyside.family(b)} == {
        "timestamp with time zone",
        "date or timestamp",
    }:
        return ": one has a time zone, the other has none"
    return ""


def _not(bound: Bound) -> Bound:
    if isinstance(bound, BoundConst):
        return BoundConst(not bound.value)
    return bound.arg if isinstance(bound, BoundNot) else BoundNot(bound)


def _at_once(values: tuple[Any, ...] | pa.Array, leaf_type: LeafType, column: ex.Column) -> Many:
    """The values of IN by whole arrays, of one type each, as far as they go."""
    found = many(values, leaf_type)
    if found is not None:
        return found
    groups = by_type(values) if isinstance(values, tuple) else [values]
    parts = [
        (many(group, leaf_type) if len(groups) > 1 else None) or _singly(group, leaf_type, column)
        for group in groups
    ]
    literals = parts[0].literals
    if len(parts) > 1:
        literals = merged([part.literals for part in parts if part.literals[0]], leaf_type)
    return Many(literals, any(part.has_null for part in parts))


def _singly(values: Iterable[Any], leaf_type: LeafType, column: ex.Column) -> Many:
    values = [exact(v, leaf_type, column) for v in values]
    present = [v for v in values if v is not None]
    fitted = (fit("=", v, leaf_type, rows.NAN_IEEE) for v in present)  # a NaN equals no integer
    literals = merged([pack_literals([v for op, v in fitted if op == "="], leaf_type)], leaf_type)
    return Many(literals, len(present) < len(values))


def fit(op: str, value: Any, leaf_type: LeafType, nan: int) -> tuple[str, Any]:
    """`x op value` as a comparison that values of the form can answer, or "always" or "never"."""
    if leaf_type.kind in BYTES_KINDS or leaf_type.kind == K_BOOL:
        return op, value
    if leaf_type.kind == K_FIXED:
        return fit_fixed(op, value, leaf_type.width)
    if leaf_type.kind in FLOAT_KINDS:
        return fit_float(op, value, leaf_type)
    return fit_integer(op, value, leaf_type, nan == rows.NAN_SPARK)


def _join(args: list[Bound], is_and: bool) -> Bound:
    kind = BoundAnd if is_and else BoundOr
    flat = [part for arg in args for part in (arg.args if isinstance(arg, kind) else (arg,))]
    if any(isinstance(part, BoundConst) and part.value != is_and for part in flat):
        return BoundConst(not is_and)
    flat = [part for part in flat if not isinstance(part, BoundConst)]
    if len(flat) > 1:
        # `a = 1 or a = 2` as `a in (1, 2)`, and `a != 1 and a != 2` as `a not in (1, 2)`; prefixes likewise
        flat = _gathered(flat, _is_point, _one_in, is_and)
        flat = _gathered(flat, _is_prefix, _one_prefix, is_and)
    if is_and and len(flat) > 1:
        folded = _fold(flat)
        if folded is None:
            return BoundConst(False)
        flat = folded
    if not flat:
        return BoundConst(is_and)
    return flat[0] if len(flat) == 1 else kind(tuple(flat))


_FEW_ALIKE = 4


def _gathered(
    parts: list[Bound],
    belongs: Callable[[BoundLeaf, bool], bool],
    join: Callable[[Sequence[BoundLeaf], bool], BoundLeaf],
    is_and: bool,
) -> list[Bound]:
    """Tests of one leaf that one test can stand for, where they are many: in the place of the first."""
    by_leaf: dict[tuple[tuple[int, int], int], list[BoundLeaf]] = {}
    for part in parts:
        if isinstance(part, BoundLeaf) and belongs(part, is_and):
            by_leaf.setdefault((part.leaf.key, part.nan), []).append(part)
    if all(len(same) < _FEW_ALIKE for same in by_leaf.values()):
        return parts
    out: list[Bound] = []
    for part in parts:
        same = (
            by_leaf.get((part.leaf.key, part.nan), [])
            if isinstance(part, BoundLeaf) and belongs(part, is_and)
            else []
        )
        if len(same) < _FEW_ALIKE:
            out.append(part)
        elif part is same[0]:
            out.append(join(same, is_and))
    return out


def _is_point(test: BoundLeaf, negated: bool) -> bool:
    """Whether it is `= v` or `in`; `negated`: where that is FALSE."""
    if test.leaf_type.kind == K_BOOL or test.leaf_type.is_null:
        return False
    if test.op in (rows.OP_EQ, rows.OP_IN):
        return test.negate == negated
    return bool(test.op == rows.OP_NE and test.negate != negated)


def _one_in(tests: Sequence[BoundLeaf], negate: bool) -> BoundLeaf:
    """The points of several tests in one."""
    first = tests[0]
    literals = merged([test.literals for test in tests], first.leaf_type)
    source = ex.Or(tuple(test.source for test in tests))
    return BoundLeaf(first.leaf, first.leaf_type, rows.OP_IN, literals, negate, first.nan, source)


def _is_prefix(test: BoundLeaf, negated: bool) -> bool:
    return test.op == rows.OP_PREFIX and test.negate == negated


def _one_prefix(tests: Sequence[BoundLeaf], negate: bool) -> BoundLeaf:
    """The prefixes of several tests in one, without those that start with another."""
    first = tests[0]
    width = np.int32 if first.leaf_type.kind == K_BYTES else np.int64
    prefixes: list[bytes] = []
    for _, data, offsets in (test.literals for test in tests):
        ends = np.frombuffer(offsets or b"", width).tolist()
        prefixes += (data[a:b] for a, b in pairwise(ends))
    kept: list[bytes] = []
    for prefix in sorted(prefixes):  # what starts with a prefix follows it without a gap
        if not kept or not prefix.startswith(kept[-1]):
            kept.append(prefix)
    source = ex.Or(tuple(test.source for test in tests))
    return replace(
        first, literals=pack_literals(kept, first.leaf_type), negate=negate, source=source
    )


def _fold(parts: list[Bound]) -> list[Bound] | None:
    """Conjuncts with the tests of each leaf folded, in the order in which the leaves first come; None: never TRUE."""
    tests: dict[tuple[tuple[int, int], int], list[BoundLeaf]] = {}
    for part in parts:
        if isinstance(part, BoundLeaf) and not part.leaf_type.is_null:
            tests.setdefault((part.leaf.key, part.nan), []).append(part)
    if all(len(same) == 1 for same in tests.values()):
        return parts
    out: list[Bound] = []
    for part in parts:
        same = tests.get((part.leaf.key, part.nan), []) if isinstance(part, BoundLeaf) else []
        if len(same) < 2:
            out.append(part)
        elif part is same[0]:
            folded = fold(same)
            if folded is None:
                return None
            out.extend(folded)
    return out


__all__ = ["Names", "UnsaidError", "bind", "fit", "pack_literals"]
