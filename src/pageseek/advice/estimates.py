"""What a query would read of files that were changed: by indexes attached, or by writing the rows in another order."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from pageseek._core import rows
from pageseek.advice.larger_groups import as_rewritten, joined, joined_groups, shifted
from pageseek.advice.layout import ChunkPages, Group
from pageseek.advice.matches import Matches, Places
from pageseek.advice.questions import EQUAL, RANGE, Condition
from pageseek.advice.reading import Cost, chunk_bytes, index_cost, read_group
from pageseek.advice.text_search import FIRST_BYTES, TextSearch, text_search
from pageseek.base.records import NamedTuple
from pageseek.base.report import Report
from pageseek.format import bitmap_form, file_bloom_form, lookup_form, trigram_form
from pageseek.format.embedded import PAYLOAD_HEAD_BYTES
from pageseek.index.kinds.file_bloom import FIRST_BYTES as FIRST_FILTER_BYTES
from pageseek.scanning.many_files.chunk_filters import LONGEST_END
from pageseek.scanning.many_files.file_filters import FILTERS
from pageseek.scanning.many_files.filters_in_tails import LONGEST_TAIL
from pageseek.scanning.many_files.footer_batches import FEWEST_FILES
from pageseek.scanning.plans.planner import FEWEST_FILES as MANY_FILES

PAGE_INDEX, BLOOM, LOOKUP, BITMAP, DISTINCT = "page_index", "bloom", "lookup", "bitmap", "distinct"
TRIGRAM, FILE_BLOOM = "trigram", "file_bloom"
FOOTER = "footer"  # where each chunk stands in a large footer
KEY = "key_lookup"  # a lookup index of several columns together
SORT, CLUSTER, PAGE_ROWS, GROUP_ROWS = "sort_by", "cluster_by", "page_rows", "row_group_rows"
ATTACHED = (PAGE_INDEX, BLOOM, LOOKUP, KEY, BITMAP, DISTINCT, TRIGRAM, FILE_BLOOM, FOOTER)
DOUBT = 8  # an index is asked if it may save so many times its bytes (`prune.pruner_stage`)
FILTER_READ = 100  # bytes of a Bloom filter that a value takes, with its header
BLOOM_RATE = 0.01
MOST_SIMULATED = 512  # row groups of a sorted file that are looked at


class Change(NamedTuple):
    """One change of the files: the kind of an index, or of a rewrite, and the columns."""

    kind: str
    columns: tuple[str, ...]


class Estimator:
    """Costs of one query: as the files are, and as they would be."""

    def __init__(
        self,
        matches: Matches,
        total_rows: int,
        report: Report,
        filter_bytes: Callable[[str, str], int],
        has_file_filters: bool = False,
    ) -> None:
        """`total_rows`: of the source. `report`: of the plan. `filter_bytes`: about the bytes of a Bloom filter of a kind, by the
        column. `has_file_filters`: planning has asked filters of whole files.
        """
        self.matches, self.layout = matches, matches.layout
        self._total, self._report = max(total_rows, 1), report
        self._has_file_filters, self._filter_bytes = has_file_filters, filter_bytes
        self._every = tuple(range(len(matches.conditions)))
        self._searches: dict[int, TextSearch] = {}

    @property
    def num_rows(self) -> float:
        """About the rows of the answer."""
        return self.matches.num_rows(self._every) / max(self.layout.share, 1e-12)

    def before(self) -> Cost:
        """The cost of the files as they are. What planning has read of indexes counts, if that is more than is estimated."""
        cost = self._read(self.layout.groups)
        cost.add(self._index_cost())
        cost.add(self._planned_beyond())
        return cost.scaled(self.layout.share)

    def _index_cost(self) -> Cost:
        return index_cost(self.layout.groups, self._kept(self.layout.groups), self.layout.gap)

    def _planned_beyond(self) -> Cost:
        """What planning has read of indexes beyond what is estimated."""
        found, report, share = self._index_cost(), self._report, self.layout.share
        opened = 2 * report.files.read if report.bytes["metadata"] else 0
        return Cost(
            index=max(report.bytes["index"] * share - found.index, 0.0),
            requests=max((report.requests - opened) * share - found.requests, 0.0),
        )

    def after(self, changes: Sequence[Change]) -> Cost:
        """The cost of files with these changes. Bloom filters of whole files that are there are asked as before."""
        cost = self._after(changes)
        if self._has_file_filters:
            cost.add(self._planned_beyond().scaled(self.layout.share))
        return cost

    def _after(self, changes: Sequence[Change]) -> Cost:
        kinds = {one.kind for one in changes}
        if GROUP_ROWS in kinds or kinds == {PAGE_ROWS}:
            return self._regrouped()
        if kinds & {SORT, CLUSTER}:
            return self._rewritten(next(one for one in changes if one.kind in (SORT, CLUSTER)))
        groups = [self._indexed(group) for group in self.layout.groups]
        if PAGE_ROWS in kinds:
            groups = [self._repaged(group) for group in groups]
        ranges = self._left_by_bounds(groups)
        groups = [replace(g, ranges=left) for g, left in zip(groups, ranges, strict=True)]
        cost = Cost()
        spared = Cost()
        # whole files are ruled out first
        for change in sorted(changes, key=lambda one: one.kind != FILE_BLOOM):
            if change.kind == TRIGRAM:
                groups = self._searched(groups, change, cost)
            elif change.kind == FILE_BLOOM:
                groups = self._by_files(groups, change, cost, spared)
            elif change.kind in ATTACHED and change.kind != PAGE_INDEX:
                groups = self._pruned(groups, change, cost, spared)
        kept = self._kept(groups)
        if FILE_BLOOM in kinds:  # of the files that it rules out nothing more is read
            files = {one.file for one in groups if one.ranges}
            opened = [n for n, one in enumerate(groups) if one.file in files]
        else:
            opened = list(range(len(groups)))
        of_opened = [groups[n] for n in opened], [kept[n] for n in opened]
        cost.add(index_cost(*of_opened, self.layout.gap))
        cost.add(self._read(groups))
        cost.add(spared)
        return cost.scaled(self.layout.share)

    def in_another_order(self) -> Cost:
        """The cost of rows whose order does not help the query: as they are dealt out by another column."""
        by_rows = self._report.rows.pruned_by
        if not self.layout.groups or {LOOKUP, KEY, BITMAP} & set(
            by_rows
        ):  # attached again, they serve any order
            return self.before()
        return self._of_blocks(self._pattern(), [(0.0, float(self._total))], [], float(self._total))

    # -- as they lie ------------------------------------------------------------------------------

    def _read(self, groups: Sequence[Group]) -> Cost:
        cost, layout = Cost(), self.layout
        for number, group in enumerate(groups):
            cost.add(
                read_group(
                    group,
                    lambda which, n=number: self.matches.places(which)[n],  # type: ignore[misc]
                    layout.far, layout.gap, layout.wait, min(len(groups), 16),
                )
            )  # fmt: skip
        return cost

    def _kept(self, groups: Sequence[Group]) -> list[bool]:
        passed = self.matches.places(self._every)
        return [bool(one.ranges & left) for one, left in zip(groups, passed, strict=True)]

    def _indexed(self, group: Group) -> Group:
        return replace(group, leaves={n: one.with_index() for n, one in group.leaves.items()})

    def _repaged(self, group: Group) -> Group:
        return joined([group], self._values_bytes(group))

    def _left_by_bounds(self, groups: Sequence[Group]) -> Places:
        """The rows that the page index of the changed files leaves, by pages of each tested leaf."""
        left = [group.ranges for group in groups]
        for i, condition in enumerate(self.matches.conditions):
            if not condition.path:
                continue
            chunks = [self._tested(group, i) for group in groups]
            sizes = [one.num_rows / one.num_pages for one in chunks if one is not None]
            if not sizes:
                continue
            found = self.matches.left_by_bounds(i, int(np.median(sizes)))
            for n, (chunk, here) in enumerate(zip(chunks, found, strict=True)):
                if chunk is not None:
                    left[n] = left[n] & _whole_pages(chunk, here)
        return left

    @staticmethod
    def _tested(group: Group, i: int) -> ChunkPages | None:
        leaves = group.conditions[i]
        return group.leaves[leaves[0]] if len(leaves) == 1 else None

    # -- indexes ----------------------------------------------------------------------------------

    def _pruned(
        self, groups: Sequence[Group], change: Change, cost: Cost, spared: Cost
    ) -> list[Group]:
        """The rows that an attached index leaves. `cost`: takes what it reads. `spared`: takes the pages of rows that a Bloom
        filter leaves by mistake.
        """
        which = [
            i for i, one in enumerate(self.matches.conditions)
            if one.path in change.columns and (one.kind == EQUAL or change.kind in (BITMAP, DISTINCT))
        ]  # fmt: skip
        made = list(groups)
        for together in [which] if change.kind == KEY else [[i] for i in which]:
            i = together[0]
            condition = self.matches.conditions[i]
            k = math.prod([max(len(self.matches.conditions[one].values), 1) for one in together])
            places = self.matches.places(together)
            n = self.matches.num_rows(together)
            asked = [self._pays(group, change.kind, k, n, i) for group in made]
            of_filter = self._filter_read(condition.path, k) if change.kind == BLOOM else 0.0
            if change.kind in (LOOKUP, KEY):
                self._ask_lookup(made, asked, k, cost)
            for number, (group, here) in enumerate(zip(made, places, strict=True)):
                if not asked[number] or not group.ranges:
                    continue
                if change.kind == BITMAP:
                    cost.index += _bitmap_bytes(group, here, condition, self._seen(i))
                    cost.requests += 1
                elif change.kind == BLOOM:
                    cost.index += of_filter
                    cost.requests += 1
                if change.kind in (LOOKUP, KEY, BITMAP):
                    left = group.ranges & here
                else:
                    left = group.ranges if here else rows.RowRanges.empty()
                if change.kind == BLOOM and not left:
                    wrong = min(BLOOM_RATE * k, 1.0)
                    spared.add(self._read_one(group, number), wrong)
                sure = left if change.kind == BITMAP and len(self._every) == 1 else group.sure
                made[number] = replace(group, ranges=left, sure=sure)
            if change.kind == BITMAP and any(asked):
                cost.index += 100 + self._seen(i) * (16 * len(made) + 16)
                cost.requests += 1
        return made

    def _filter_read(self, path: str, k: int) -> float:
        """The bytes that are read of the Bloom filter of a column chunk. Those of many local files are read together, and whole."""
        groups, files = self.layout.groups, {one.file for one in self.layout.groups}
        size = self._filter_bytes(BLOOM, path)
        of_file = size * len(groups) / max(len(files), 1)
        together = not self.layout.far and len(files) >= MANY_FILES and of_file <= LONGEST_END
        return size if together else FILTER_READ * k

    def search(self, column: str) -> tuple[int, TextSearch] | None:
        """The number of the condition on the texts of a column, and what a trigram index does for it; None where there is none."""
        for i, one in enumerate(self.matches.conditions):
            if one.texts and one.text_path == column:
                if i not in self._searches:
                    files = max(len(self.layout.files) / max(self.layout.share, 1e-12), 1)
                    self._searches[i] = text_search(self.matches, i, self._total, round(files))
                return i, self._searches[i]
        return None

    def _searched(self, groups: Sequence[Group], change: Change, cost: Cost) -> list[Group]:
        """The rows that a trigram index leaves."""
        found = self.search(change.columns[0])
        if found is None:
            return list(groups)
        _, index = found
        read = FIRST_BYTES + index.parts * trigram_form.PART_BYTES
        files = {one.file for one in groups if one.ranges}
        of_file = {
            n: sum(
                chunk_bytes(one) * one.ranges.num_rows / max(one.num_rows, 1)
                for one in groups
                if one.file == n
            )
            for n in files
        }
        asked = {n for n, size in of_file.items() if DOUBT * index.parts * trigram_form.PART_BYTES < size}  # fmt: skip
        cost.index += read * len(asked)
        cost.requests += (1 + index.parts) * len(asked)
        return [
            replace(one, ranges=one.ranges & here) if one.file in asked else one
            for one, here in zip(groups, index.places, strict=True)
        ]

    def _by_files(
        self, groups: Sequence[Group], change: Change, cost: Cost, spared: Cost
    ) -> list[Group]:
        """The row groups of files that a Bloom filter of each leaves. Local files are asked together: their filters are read whole,
        and small ones with the footers.
        """
        made = list(groups)
        for i, condition in enumerate(self.matches.conditions):
            if condition.path not in change.columns or condition.kind != EQUAL:
                continue
            places = self.matches.places([i])
            kept = {one.file for one, here in zip(made, places, strict=True) if one.ranges & here}
            k = max(len(condition.values), 1)
            wrong = min(BLOOM_RATE * k, 1.0)
            asked = len({one.file for one in made if one.ranges})
            size = PAYLOAD_HEAD_BYTES + self._filter_bytes(FILE_BLOOM, condition.path)
            together = not self.layout.far and asked * size <= FILTERS
            if not together:
                sectors = PAYLOAD_HEAD_BYTES + k * file_bloom_form.SECTOR_BYTES + FIRST_FILTER_BYTES
                size = min(size, sectors)
            cost.index += asked * size
            in_tail = together and asked >= FEWEST_FILES and size <= LONGEST_TAIL
            cost.requests += 0 if in_tail else asked
            for number, group in enumerate(made):
                if group.ranges and group.file not in kept:
                    spared.add(self._read_one(group, number), wrong)
                    made[number] = replace(group, ranges=rows.RowRanges.empty())
        return made

    def _regrouped(self) -> Cost:
        """The cost of the rows in large row groups of small pages, of several files where these are small."""
        layout, cost, made = self.layout, Cost(), list[tuple[Group, list[int]]]()
        ranges = self._left_by_bounds([self._repaged(group) for group in layout.groups])
        groups = layout.groups
        for some in joined_groups(groups):
            together = [replace(groups[n], ranges=ranges[n]) for n in some]
            made.append((joined(together, self._values_bytes(together[0])), some))
        sizes = [group.num_rows for group in groups]
        kept = []
        for group, some in made:

            def places(which: tuple[int, ...], some: list[int] = some) -> rows.RowRanges:
                found = self.matches.places(which)
                return shifted([found[n] for n in some], [sizes[n] for n in some])

            cost.add(read_group(group, places, layout.far, layout.gap, layout.wait, min(len(made), 16)))  # fmt: skip
            kept.append(bool(group.ranges & places(self._every)))
        cost.add(index_cost([group for group, _ in made], kept, layout.gap))
        return cost.scaled(layout.share)

    def _values_bytes(self, group: Group) -> dict[int, float]:
        """About the bytes of the different values of each tested leaf."""
        made: dict[int, float] = {}
        for leaves, facts in zip(group.conditions, self.matches.facts, strict=True):
            if len(leaves) == 1 and facts is not None:
                made[leaves[0]] = facts.distinct * facts.value_bytes
        return made

    def _read_one(self, group: Group, number: int) -> Cost:
        layout = self.layout
        return read_group(
            group, lambda which: self.matches.places(which)[number], layout.far, layout.gap, layout.wait
        )  # fmt: skip

    def _seen(self, i: int) -> float:
        facts = self.matches.facts[i]
        return 1000.0 if facts is None else facts.distinct

    def _pays(self, group: Group, kind: str, k: int, n: float, i: int) -> bool:
        """Whether a scan asks an index about a row group: it has to be able to save much more than it reads."""
        if kind in (LOOKUP, KEY):
            size = self._lookup_bytes(group, k)
            if k >= 64:  # rows of many values lie in most pages
                pages = sum(
                    one.num_pages for one in [self._tested(g, i) for g in self.layout.groups] if one
                )
                if math.exp(-n / max(pages, 1)) < 0.25:
                    return False
        elif kind == BLOOM:
            size = FILTER_READ * k
        else:
            return True
        return DOUBT * size < chunk_bytes(group) * group.ranges.num_rows / max(group.num_rows, 1)

    def _file_rows(self, group: Group) -> int:
        """About the rows of the file of a group."""
        return sum(one.num_rows for one in self.layout.groups if one.file == group.file)

    def _lookup_bytes(self, group: Group, k: int) -> int:
        n = self._file_rows(group)
        blocks = min(k, lookup_form.num_blocks(n))
        block = int(lookup_form.block_size(lookup_form.ENTRIES, lookup_form.row_bits_of(n)))
        return PAYLOAD_HEAD_BYTES + lookup_form.directory_bytes(n) + blocks * block

    def _ask_lookup(self, groups: Sequence[Group], asked: list[bool], k: int, cost: Cost) -> None:
        """Count the index of each file once."""
        for file in {one.file for one, asks in zip(groups, asked, strict=True) if asks}:
            group = next(one for one in groups if one.file == file)
            cost.index += self._lookup_bytes(group, k)
            cost.requests += 1 + min(k, lookup_form.num_blocks(self._file_rows(group)))

    # -- rewritten --------------------------------------------------------------------------------

    def _rewritten(self, change: Change) -> Cost:
        """The cost of rows in another order. One row group is the pattern of all."""
        if not self.layout.groups:
            return Cost()
        pattern = self._pattern(change.columns[0] if change.kind == SORT else None)
        if change.kind == CLUSTER:
            blocks = self._cells(change, pattern)
        else:
            blocks = self._sorted(change, pattern)
        share = max(self.layout.share, 1e-12)
        lead = [i for i, one in enumerate(self.matches.conditions) if one.path in change.columns]
        if change.kind == SORT:
            lead = lead[:1]
        led = self.matches.num_rows(lead) / share
        return self._of_blocks(pattern, blocks, lead, max(led, 1.0))

    def _pattern(self, sorted_by: str | None = None) -> Group:
        """A row group as it would be, by a column in whose order the rows are, if any is told."""
        groups = self.layout.groups
        leaf = None
        for i, one in enumerate(self.matches.conditions):
            if one.path == sorted_by and (chunk := self._tested(groups[0], i)) is not None:
                leaf = chunk.leaf.index
        return as_rewritten(groups, self._total, self._values_bytes(groups[0]), leaf)

    def _sorted(self, change: Change, pattern: Group) -> list[tuple[float, float]]:
        """Where the rows of the sorted column's condition begin, and how many they are, by value."""
        (i,) = [n for n, one in enumerate(self.matches.conditions) if one.path == change.columns[0]]
        n, facts, spans = (
            self.matches.num_rows([i]) / max(self.layout.share, 1e-12),
            self.matches.facts[i],
            self.matches.spans[i],
        )
        if facts is None or spans is None:
            return [(0.4 * self._total, n)]
        different = list(dict.fromkeys(spans))
        if len(different) == 1:
            weights = [1.0]
        else:
            weights = [facts.rows_of(*one) for one in different]
        total = sum(weights) or 1.0
        return [
            (facts.share_below(first) * self._total, n * weight / total)
            for (first, _), weight in zip(different, weights, strict=True)
        ]

    def _cells(self, change: Change, pattern: Group) -> list[tuple[float, float]]:
        """The pages of a space-filling curve over several columns that a box meets, as pieces of neighbouring rows."""
        which = [i for i, one in enumerate(self.matches.conditions) if one.path in change.columns]
        size = self._page_rows(pattern, which[0])
        pages = max(self._total / size, 1.0)
        side = pages ** (1 / len(which))
        met = []
        for i in which:
            one = self.matches.conditions[i]
            # an end of a range lies in the middle of a page, on average
            ends = 0.5 * ((one.low is not None) + (one.high is not None))
            part = self.matches.num_rows([i]) / max(self.layout.num_rows, 1)
            met.append(min(part * side + ends, side))
        total = max(math.prod(met), 1.0)
        pieces = max(min(met), 1.0)
        starts = np.linspace(0, max(self._total - total / pieces * size, 0), round(pieces) + 1)[:-1]
        return [(float(at), total / pieces * size) for at in starts]

    def _page_rows(self, pattern: Group, i: int) -> float:
        chunk = self._tested(pattern, i)
        return 20_000.0 if chunk is None else max(pattern.num_rows / chunk.num_pages, 1.0)

    def _of_blocks(
        self, pattern: Group, blocks: list[tuple[float, float]], lead: Sequence[int], led: float
    ) -> Cost:
        """The cost of row groups like the pattern, where rows that pass the leading conditions are these blocks."""
        size = max(pattern.num_rows, 1)
        passing_all = self.num_rows
        by_group: dict[int, list[tuple[int, int]]] = {}
        for at, n in blocks:
            start = min(max(int(at), 0), max(self._total - 1, 0))
            stop = min(max(int(at + n + 0.5), start + 1), self._total)
            for number in range(start // size, (stop - 1) // size + 1):
                part = max(start - number * size, 0), min(stop - number * size, size)
                by_group.setdefault(number, []).append(part)
        numbers = sorted(by_group)
        chosen = (
            numbers
            if len(numbers) <= MOST_SIMULATED
            else [numbers[i * len(numbers) // MOST_SIMULATED] for i in range(MOST_SIMULATED)]
        )
        cost, groups, kept = Cost(), [], []
        random = np.random.default_rng(size)
        share = max(self.layout.share, 1e-12)
        of_lead = self.matches.num_rows(lead) if lead else self._total * share
        ratio = {
            i: min(self.matches.num_rows([*lead, i]) / max(of_lead, 1e-9), 1.0) for i in self._every
        }
        of_all = min(passing_all / led, 1.0)
        for number in chosen:
            here = rows.RowRanges(sorted(_merged(by_group[number])))
            bounds = rows.RowRanges.all(size)
            for i in lead:
                chunk = self._tested(pattern, i)
                if chunk is not None:
                    bounds = bounds & _whole_pages(chunk, here)
            group = replace(pattern, ranges=bounds, sure=rows.RowRanges.empty())
            passing = _Passing(here, size, frozenset(lead), len(self._every), ratio, of_all, random)
            layout = self.layout
            cost.add(
                read_group(
                    group, passing, layout.far, layout.gap, layout.wait, min(len(chosen), 16)
                )
            )
            groups.append(group)
            kept.append(bool(passing(self._every)))
        cost.add(index_cost(groups, kept, self.layout.gap))
        return cost.scaled(len(chosen) / max(len(numbers), 1))


class _Passing:
    """The rows of a row group that pass some conditions, where `here` are those that pass the leading ones: of the others, each
    lets a share of the rows pass, and all together let `of_all` pass.
    """

    def __init__(
        self,
        here: rows.RowRanges,
        size: int,
        lead: frozenset[int],
        n: int,
        shares: Mapping[int, float],
        of_all: float,
        random: np.random.Generator,
    ) -> None:
        self._here, self._size, self._lead, self._n = here, size, lead, n
        self._shares, self._of_all, self._random = shares, of_all, random
        self._found: dict[frozenset[int], rows.RowRanges] = {}

    def __call__(self, which: tuple[int, ...]) -> rows.RowRanges:
        key = frozenset(which)
        found = self._found.get(key)
        if found is None:
            share = self._of_all
            if len(key) < self._n:
                share = math.prod(self._shares[i] for i in key - self._lead)
            some = (
                self._here if key & self._lead or not self._lead else rows.RowRanges.all(self._size)
            )
            found = self._found[key] = _thinned(some, share, self._random)
        return found


def _merged(parts: list[tuple[int, int]]) -> list[tuple[int, int]]:
    made: list[tuple[int, int]] = []
    for start, stop in sorted(parts):
        if made and start <= made[-1][1]:
            made[-1] = made[-1][0], max(made[-1][1], stop)
        elif stop > start:
            made.append((start, stop))
    return made


def _thinned(some: rows.RowRanges, share: float, random: np.random.Generator) -> rows.RowRanges:
    """A share of some rows, drawn at random."""
    if share >= 1 or not some:
        return some
    wanted = share * some.num_rows
    n = round(wanted) or int(wanted > 0.3)
    mask = np.zeros(some.num_rows, np.bool_)
    mask[random.choice(some.num_rows, n, replace=False)] = True
    made: rows.RowRanges = some.refine(np.packbits(mask, bitorder="little").tobytes())
    return made


def _whole_pages(chunk: ChunkPages, some: rows.RowRanges) -> rows.RowRanges:
    """The rows of the pages that hold some rows."""
    pages = chunk.touched(some)
    if not len(pages):
        return rows.RowRanges.empty()
    pairs = np.stack([chunk.starts[pages], chunk.starts[pages + 1]], axis=1)
    return rows.RowRanges(_merged([(int(a), int(b)) for a, b in pairs.tolist()]))


def _bitmap_bytes(
    group: Group, here: rows.RowRanges, condition: Condition, distinct: float
) -> float:
    """The bytes of the sets that a condition needs: one for each value that passes, in the smallest of their forms."""
    n, found = group.num_rows, here.num_rows
    sets = max(len(condition.values), 1)
    if condition.kind == RANGE:
        sets = max(round(distinct * found / max(n, 1)), 1)
    each = found / sets
    chunks = -(-n // bitmap_form.CHUNK)
    return sets * min(n / 8, 4 * chunks + 2 * each, 8 * max(here.num_ranges / sets, 1))
