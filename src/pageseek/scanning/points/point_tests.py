"""The conditions of a filter that the core evaluates in a lookup, and the rows of a file that may pass them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pageseek._core import rows
from pageseek._core.points import MAX_TESTS
from pageseek.base.errors import CoreError, PageseekError
from pageseek.base.records import NamedTuple
from pageseek.format.columns import Names
from pageseek.format.file_metadata import FileMetadata
from pageseek.format.page_index import OffsetIndex
from pageseek.format.schema import Leaf
from pageseek.format.types import LeafType
from pageseek.predicate import expression as ex
from pageseek.predicate.bind import NAN_RULES, NEVER
from pageseek.predicate.bound import BoundConst, BoundLeaf
from pageseek.predicate.constant_column import ConstantColumn
from pageseek.predicate.leaf_conditions import OF_ONE_LEAF, null_test
from pageseek.predicate.parameter_values import parameters_of, with_values
from pageseek.prune.protocol import Pruner
from pageseek.prune.registry import LOOKUPS, PAGE_HEADERS, applicable
from pageseek.prune.verdicts import PASSES, SOME
from pageseek.scanning.requests.request import Request

if TYPE_CHECKING:
    from pageseek.datasets.dataset_schema import Path
    from pageseek.datasets.evolution import SchemaMapping
    from pageseek.scanning.many_files.similar_files import SharedColumns

MOST_ALONG = 16  # leaves whose offset indexes come along with those of the tested ones
MOST_GROUPS = 4  # that statistics leave: of more row groups, other indexes may rule out some
_TESTS = (ex.Compare, ex.IsIn, ex.StartsWith, ex.IsNan, ex.IsNull)
Bounds = tuple[rows.Zones, OffsetIndex] | None


class Test(NamedTuple):
    """A condition of the filter on one flat leaf. `takes_value`: of a parameter."""

    condition: ex.Expression
    negate: bool
    takes_value: bool
    leaf: Leaf
    leaf_type: LeafType


class PointTests:
    """Those conditions in terms of one version of a file. Threads may share them.

    Attributes
    ----------
    tests : list of Test
        All of the filter, which joins them by AND.
    """

    __slots__ = ("_file", "_known", "_nan", "_request", "_zones", "tests")

    def __init__(self, file: FileMetadata, request: Request, tests: list[Test]) -> None:
        self._file, self._request, self.tests = file, request, tests
        self._nan = NAN_RULES[request.nan]
        self._zones = [file.group_zones(test.leaf, request.options) for test in tests]
        self._known: dict[int, list[Bounds]] = {}  # bounds of pages for each test, by row group

    @property
    def pruners(self) -> list[Pruner]:
        """Those whose index the file has for a tested column, such as a Bloom filter: they might rule out row groups."""
        return applicable(self._file, self._request.prune, [test.leaf for test in self.tests])

    @classmethod
    def of(
        cls, file: FileMetadata, request: Request, shared: SharedColumns | None = None
    ) -> PointTests | None:
        """The conditions of a filter; None where the core does not evaluate one of them. `shared`: what other files with the same
        columns have found.
        """
        condition = request.filter
        assert condition is not None
        parts: Sequence[ex.Expression] = (condition,)
        if isinstance(condition, ex.And):
            parts = condition.args
        if any(isinstance(part, ex.ArrowFilter) for part in parts):
            known = _without_arrow(parts, _names(file, request), request)
            if known is None:
                return None
            parts = known
        if len(parts) > MAX_TESTS:
            return None
        tests = []
        for part in parts:
            made = _test(part, file, request, {} if shared is None else shared.tested)
            if made is None:
                return None
            tests.append(made)
        return cls(file, request, tests)

    def bound(self, values: Mapping[str, Any]) -> list[BoundLeaf] | bool:
        """For each condition its test with the values of a call. False: one of them is true for no row; else True: one is true for
        every row.

        Raises
        ------
        PredicateError
            A value does not fit its column.
        """
        made = [self._bound(test, values) for test in self.tests]
        tests = [test for test in made if isinstance(test, BoundLeaf)]
        return tests if len(tests) == len(made) else False not in made

    def _bound(self, test: Test, values: Mapping[str, Any]) -> BoundLeaf | bool:
        condition = test.condition
        if test.takes_value:
            condition = with_values(condition, values)
        found = test.leaf, test.leaf_type
        make = OF_ONE_LEAF.get(type(condition), null_test)
        bound = make(condition, found, self._nan, test.negate)
        if isinstance(bound, BoundLeaf):
            return False if bound.op == NEVER[bound.negate] else bound
        assert isinstance(bound, BoundConst)
        return bound.value

    def ranges(
        self,
        tests: Sequence[BoundLeaf],
        deleted: rows.RowRanges | None,
        along: Callable[[], Sequence[Leaf]] = tuple,
    ) -> list[tuple[int, rows.RowRanges]] | None:
        """The row groups that may have rows, and these rows; None where they are too many for one call, or where page headers may yet
        take the place of an index. `along`: the leaves that are read if there are such rows.
        """
        numbers = self._row_groups(tests)
        found = self._by_indexes(numbers, tests)
        if found is None and len(numbers) <= MOST_GROUPS:
            found = self._by_bounds(numbers, tests, along)
        return self._without(deleted, found) if found and deleted else found

    def _row_groups(self, tests: Sequence[BoundLeaf]) -> Sequence[int]:
        """The row groups that statistics leave."""
        numbers: Sequence[int] = range(self._file.num_row_groups)
        for zones, test in zip(self._zones, tests, strict=True):
            if zones is not None:
                may = zones.probe(test.op, test.against(0), test.nan)
                may = may.translate(SOME[PASSES[test.negate]])
                numbers = [i for i in numbers if may[i]] if len(may) > 1 or not may[0] else numbers
        return numbers

    def _by_indexes(
        self, numbers: Sequence[int], tests: Sequence[BoundLeaf]
    ) -> list[tuple[int, rows.RowRanges]] | None:
        """Those of these row groups in which lookup indexes name rows, and these rows. None: no index tells, or of many rows."""
        pruners = [pruner for pruner in self.pruners if pruner.name in LOOKUPS] if numbers else []
        if not pruners:
            return None
        from pageseek.scanning.points.named_rows import named_rows  # late: few files have such

        left, options = frozenset(numbers), self._request.options
        found = named_rows(self._file, pruners, tests, options)
        return found and [(number, ranges) for number, ranges in found if number in left]

    def _by_bounds(
        self,
        numbers: Sequence[int],
        tests: Sequence[BoundLeaf],
        along: Callable[[], Sequence[Leaf]],
    ) -> list[tuple[int, rows.RowRanges]] | None:
        """The row groups that the bounds of pages leave, and their rows. None: a leaf has no offset index."""
        found = []
        for number in numbers:
            known = self._bounds_of(number, along)
            if known is None:
                return None
            ranges = None
            for bounds, test in zip(known, tests, strict=True):
                if bounds is not None:
                    zones, offsets = bounds
                    verdict = zones.probe(test.op, test.against(0), test.nan)
                    some = offsets.rows_of(verdict, PASSES[test.negate])
                    ranges = some if ranges is None else ranges & some
            if ranges is None:
                ranges = rows.RowRanges.all(self._file.group_rows[number])
            if ranges:
                found.append((number, ranges))
        return found

    def _without(
        self, deleted: rows.RowRanges, found: Sequence[tuple[int, rows.RowRanges]]
    ) -> list[tuple[int, rows.RowRanges]]:
        """The rows of row groups but those that a table has deleted."""
        file, left = self._file, []
        for number, ranges in found:
            first = file.first_row(number)
            gone = deleted.slice(first, first + file.group_rows[number])
            some = ranges - gone.shift(-first)
            if some:
                left.append((number, some))
        return left

    def _bounds_of(self, number: int, along: Callable[[], Sequence[Leaf]]) -> list[Bounds] | None:
        """For each test the zones of the pages of its leaf, and where these pages are; None for one without such bounds. They are
        read if they are not in memory. None in place of the list: a leaf has no offset index.
        """
        known = self._known.get(number)
        if known is None:
            try:
                file, leaves = self._file, [test.leaf for test in self.tests]
                places = [file.index_range("offset", number, leaf) for leaf in leaves]
                # the others cost little beside the tested ones if they were read with the footer
                more = (
                    along()
                    if places and all(place and not file.to_fetch(*place) for place in places)
                    else ()
                )
                offsets = [*leaves, *more] if len(more) <= MOST_ALONG else leaves
                file.read_page_indexes(number, offsets, leaves, self._request.options)
                if any(file.offset_indexes[number, leaf.index] is None for leaf in leaves):
                    return None
                known = [self._bounds(number, leaf) for leaf in leaves]
            except (CoreError, PageseekError):  # raised again, with the place, where it is read
                return None
            self._known[number] = known
        return known

    def _bounds(self, number: int, leaf: Leaf) -> Bounds:
        file, options = self._file, self._request.options
        index = file.column_indexes[number, leaf.index, options]
        if index is None and PAGE_HEADERS in self._request.prune:
            index = file.header_index(number, leaf, options)
        offsets = file.offset_indexes[number, leaf.index]
        return None if index is None or offsets is None else (index.zones, offsets)


def _without_arrow(
    parts: Sequence[ex.Expression], names: Names | SchemaMapping, request: Request
) -> list[ex.Expression] | None:
    """The parts with conditions of this package in place of those of pyarrow; None where these are not known."""
    if NAN_RULES[request.nan] != rows.NAN_IEEE:  # pyarrow's rule holds for its conditions alone
        return None
    from pageseek.predicate.arrow_conditions import same_conditions  # late: for pyarrow's

    made: list[ex.Expression] = []
    for part in parts:
        if isinstance(part, ex.ArrowFilter):
            dataset = None if isinstance(names, Names) else names
            known = same_conditions(part, names, dataset)
            if known is None:
                return None
            made += known
        else:
            made.append(part)
    return made


def _test(
    condition: ex.Expression,
    file: FileMetadata,
    request: Request,
    known: dict[Path, tuple[Leaf, LeafType] | None],
) -> Test | None:
    """A condition on its leaf; None where the core does not evaluate it. `known`: leaves by their paths."""
    negate = False
    while isinstance(condition, ex.Not) or (isinstance(condition, ex.IsTrue) and not negate):
        if isinstance(condition, ex.Not):
            negate = not negate
        condition = condition.arg
    if not isinstance(condition, _TESTS) or type(condition.column) is not ex.Column:
        return None
    path = condition.column.path
    if path not in known:
        known[path] = _flat_leaf(path, _names(file, request))
    found = known[path]
    return found and Test(condition, negate, bool(parameters_of(condition)), *found)


def _names(file: FileMetadata, request: Request) -> Names | SchemaMapping:
    """The names of a filter in a file."""
    if request.dataset_schema is None:
        return Names(file, request.options)
    from pageseek.datasets.evolution import SchemaMapping  # late: for many files

    return SchemaMapping(file, request.dataset_schema, request.options, ())


def _flat_leaf(path: Path, names: Names | SchemaMapping) -> tuple[Leaf, LeafType] | None:
    """The leaf at a path; None where the core does not test it."""
    if not isinstance(names, Names) and names.as_float(path):
        return None
    leaf, leaf_type = names(path)
    if leaf.group or not leaf.flat or leaf_type.is_null or isinstance(leaf, ConstantColumn):
        return None
    return leaf, leaf_type
