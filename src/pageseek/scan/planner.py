"""From a request to a plan: files are opened and pruned, and what will be read is counted."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import accumulate, compress

import pyarrow as pa

from pageseek._core import rows
from pageseek.base.report import Report
from pageseek.dataset.dataset_schema import DatasetSchema, Union, depends_on_types, tested_paths
from pageseek.dataset.evolution import Folders, SchemaMapping
from pageseek.dataset.file_cache import cache
from pageseek.dataset.opening import opened_in_order
from pageseek.format.file_metadata import FileMetadata
from pageseek.io.fetch import Fetcher
from pageseek.io.version_checks import UnconfirmedVersions
from pageseek.predicate.bound import BoundConst
from pageseek.predicate.expression import Expression
from pageseek.prune import STATISTICS, GroupProof, prune_groups
from pageseek.scan.bound_request import BoundRequest, BoundRequests
from pageseek.scan.file_plan import FilePlan, GroupPlan, Opened
from pageseek.scan.footer_batches import FEW, BatchedFile, FooterBatches, PrunedFiles
from pageseek.scan.plan import Ahead, ScanPlan, checked
from pageseek.scan.pruning import LIMIT, NO_ROWS, TAKE, Steps, judge, last_proof
from pageseek.scan.request import Request
from pageseek.storage import Known, Source, Sources

FILTER, PARTITION = "filter", "partition"
# remote files that stay open from plan to reading, each of which would else be asked for its version again; and those
# of them of which bytes are kept that were read to prune
HELD, HELD_FULL = 256, 16
Visit = Callable[[Opened, FilePlan, Report], None]


def make_plan(sources: Sequence[Source], request: Request) -> ScanPlan:
    """Open the files and prune; reads footers, and of the page index what the filter needs."""
    plan = prepare(sources, request, fold=True)[0]
    plan.report.fold()
    return plan


def prepare(
    sources: Sequence[Source],
    request: Request,
    account: bool = True,
    lazy: bool = False,
    report: Report | None = None,
    first: FileMetadata | None = None,
    visit: Visit | None = None,
    fold: bool = False,
    unconfirmed: UnconfirmedVersions | None = None,
    ahead: Ahead | None = None,
) -> tuple[ScanPlan, list[Opened | None]]:
    """A plan, and of its files those that stay open, or nothing where none does: a single one, and remote ones, of
    which many use up no descriptors.

    `account`: count the pages and bytes that the plan will read, for `explain` and `split`. `lazy`: the plan is executed
    at once, so that row groups which a limit may spare are judged then, as they are reached. `report` and the `first`
    file, if there are; `visit` is called with each file of which something is left. `fold`: of what is counted only
    sums are wanted. `unconfirmed`: takes the files whose versions the caller will have confirmed. `ahead`: what
    reads files while others are opened, for a plan that is executed whole.
    """
    if report is None:
        report = Report(nan=request.nan, chunks={} if account else None)
    if unconfirmed is not None:
        unconfirmed.report = report
    if account:
        report.source = sources[0].name if len(sources) == 1 else f"{len(sources):,} files"
        report.filter = "" if request.filter is None else repr(request.filter)
    files: list[FilePlan] = []
    opened: list[Opened | None] = []
    held = full = 0  # of these
    survey = _Survey(sources, request, report, first, unconfirmed)
    if visit is None:
        survey.look_ahead(lazy)
    request = survey.request
    left = request.limit
    first_row = 0  # of the file, counted through all
    counted = request.take is not None or request.row_number is not None
    report.files.total = len(sources)
    behind = 0
    while behind < len(sources):
        if left == 0 and survey.begun:
            report.files.prune(LIMIT, len(sources) - behind)
            break
        gone = None if counted else survey.gone(behind)
        if gone is not None:
            _count_gone(gone, report)
            behind, first_row = behind + gone.files, first_row + gone.rows
            continue
        at, source = behind, sources[behind]
        behind += 1
        may = survey.may(source)
        if not may and not counted:  # what a folder says is so: the file is not even opened
            report.files.prune(PARTITION, 1)
            continue
        file = made = settled = None
        batched_file = survey.batched_file(at)
        if batched_file is None:
            file, bound_request = survey.open(source, at)
            if left is None:  # it may have shown how to read the footers of others, and its own
                batched_file = survey.batched_file(at, file)
        if batched_file is not None:
            settled = _settled(
                batched_file, source, request, left, report, lazy, first_row, may, fold
            )
        if batched_file is not None and settled is not None:
            groups, proof = settled
            version, num_rows = batched_file.version, batched_file.num_rows
        else:
            if file is None:
                file, bound_request = survey.open(source, at, batched_file)
            version, num_rows = file.store.version, file.num_rows
            if not version.strong:
                report.version = "weak"
            with report.timed("prune"):
                before, indexes = dict(report.row_groups.pruned_by), report.bytes["index"]
                groups, made = _prune_file(
                    file,
                    bound_request,
                    left,
                    report,
                    lazy,
                    len(sources) == 1,
                    first_row,
                    may,
                    unconfirmed,
                )
                proof = "" if groups else last_proof(before, report)
            if (
                not groups and report.bytes["index"] > indexes
            ):  # was it of the version of the footer?
                checked(file.store, report)
        report.file_bytes += version.size
        if left is not None:
            left -= sum([group.ranges.num_rows for group in groups if group.proven])
        if groups:
            report.files.read += 1
            files.append(FilePlan(source, version, groups, first_row))
            if made is not None and visit is not None:
                visit(made, files[-1], report)
            keeps = made is not None and (
                len(sources) == 1
                or (
                    source.far and held < HELD and (full < HELD_FULL or not made.bound_request.kept)
                )
            )
            # of a single file there is nothing to be opened meanwhile; a limit may spare what is ahead
            early = source.far and left is None and len(sources) > 1 and made is not None and keeps
            if (
                ahead is not None
                and made is not None
                and early
                and made.bound_request.bound is not None
            ):
                made = ahead.begin(made, files[-1], report)
            if made is not None and keeps:
                held, full = held + 1, full + bool(made.bound_request.kept)
            opened.append(made if keeps else None)
        else:
            report.files.prune(proof, 1)
            if made is not None and unconfirmed is not None:
                unconfirmed.ask(made.file.store)
        first_row += num_rows
        report.step()
    else:  # no limit was reached before the last of them
        if request.take is not None:
            _check_taken(request.take, first_row)
    survey.close()
    schema = survey.schema()
    report.columns = list(schema.names)
    if unconfirmed is not None:  # some were opened to know the types, and some will be again
        unconfirmed.ask_all_but([one.file.store for one in opened if one is not None])
    return ScanPlan(request, schema, tuple(files), report), opened if held else []


class _Survey:
    """The files of a scan as they are opened, and what they have of its columns."""

    def __init__(
        self,
        sources: Sequence[Source],
        request: Request,
        report: Report,
        first: FileMetadata | None,
        unconfirmed: UnconfirmedVersions | None = None,
    ) -> None:
        self._sources, self._report, self._first = Sources.of(sources), report, first
        self._unconfirmed = unconfirmed
        self._single: pa.Schema | None = None
        self._union: Union | None = None
        self._folders: Folders | None = None
        self._begun = 0  # files
        self._ahead: Iterator[FileMetadata] | None = None  # those that are opened before their turn
        self._waiting: deque[Source] = deque()
        self._footer_batches: FooterBatches | None = None
        self.request = request
        self._bound_requests = BoundRequests(request)
        dataset_schema = request.dataset_schema
        if dataset_schema is None:
            return
        self._folders = Folders(dataset_schema, request.filter, request.nan)
        if (
            dataset_schema.given is None
            and request.filter is not None
            and depends_on_types(request.filter)
        ):
            tested = self._tested(request.filter, dataset_schema)
            self.request = replace(request, dataset_schema=replace(dataset_schema, tested=tested))
        elif dataset_schema.given is not None:
            self.request = replace(
                request, dataset_schema=replace(dataset_schema, tested=dataset_schema.given)
            )
        self._union = Union(dataset_schema, request.columns)
        self._bound_requests = BoundRequests(self.request)

    def _tested(self, condition: Expression, dataset_schema: DatasetSchema) -> pa.Schema:
        """The types among all files of the columns of a filter: it means something only once they are known."""
        paths, options = tested_paths(condition), self.request.options
        union = Union(dataset_schema, None)
        for source in self._sources:
            if self.may(source):
                file = self._file(source)
                mapping = SchemaMapping(file, dataset_schema, options, source.partitions)
                union.add(mapping.whole(paths)[2], (), file.name)
        return union.schema()

    @property
    def begun(self) -> bool:
        """Whether the schema is known as far as it has to be."""
        return self._begun > 0 and not (self._union is not None and self._union.unknown)

    def may(self, source: Source) -> bool:
        """Whether rows of a file may pass, by its folders."""
        return self._folders is None or self._folders.may(source.partitions)

    def _file(self, source: Source, end: Known | None = None) -> FileMetadata:
        if self._first is not None and source is self._sources[0]:
            return self._first
        with self._report.timed("open"):
            if len(self._sources) > 1 and self._ahead is None:
                self._waiting = deque(self._distant())
                self._ahead = opened_in_order(
                    tuple(self._waiting),
                    self._report,
                    self.request.limits.max_metadata_bytes,
                    self.request.limit is not None,
                    self._unconfirmed,
                    self.request.max_ahead_bytes,
                )
            if self._ahead is not None and self._waiting and self._waiting[0] is source:
                self._waiting.popleft()
                return next(self._ahead)
            most = self.request.limits.max_metadata_bytes
            return cache.open(source, self._report, most, end, self._unconfirmed)

    def _distant(self) -> Iterator[Source]:
        """The files that will be opened, in order, where they are far enough to be waited for side by side."""
        if not self._sources.far:
            return
        request = self.request
        counted = request.take is not None or request.row_number is not None
        for i, source in enumerate(self._sources):
            if (i or self._first is None) and (counted or self.may(source)):
                yield source

    def look_ahead(self, lazy: bool) -> None:
        """Let footers be read before their turn, many together, where files are many, near and opened by us.

        Not where all of them will be read in a moment, and stay open until then.
        """
        request, n = self.request, len(self._sources)
        whole = all(part is None for part in (request.filter, request.limit, request.take))
        if lazy and whole and n <= cache.capacity:
            return
        many = n >= FEW and self._union is not None and self._first is None
        if many and not self._sources.far:
            counted = request.take is not None or request.row_number is not None
            self._footer_batches = FooterBatches(
                self._sources,
                request,
                self._report,
                lambda source: counted or self.may(source),
                self._bound_requests.said,
            )

    def batched_file(self, at: int, opened: FileMetadata | None = None) -> BatchedFile | None:
        """What the footer of a file says, if it was read with others, and of the version that was opened."""
        found = None if self._footer_batches is None else self._footer_batches.of(at)
        if found is None or opened is None or found.version == opened.store.version:
            return found
        return None

    def gone(self, at: int) -> PrunedFiles | None:
        """The files from a position on of which nothing is left, if that is known of several at once."""
        return None if self._footer_batches is None else self._footer_batches.gone(at)

    def close(self) -> None:
        """No more files are planned."""
        if self._footer_batches is not None:
            self._footer_batches.close()

    def open(
        self, source: Source, at: int | None = None, batched_file: BatchedFile | None = None
    ) -> tuple[FileMetadata, BoundRequest]:
        """A file, and what is asked of it. `at`: its position; `batched_file`: what its footer batch says."""
        end = None
        if batched_file is not None:
            end = batched_file.known
        elif self._footer_batches is not None and at is not None:
            end = self._footer_batches.end(at)
        file = self._file(source, end)
        self._begun += 1
        if batched_file is not None and batched_file.version == file.store.version:
            schema_group = batched_file.homogeneous.schema_group
            file.adopt_columns(schema_group.tree)
            return file, schema_group.bound_request.again()
        with self._report.timed("open"):
            bound_request = self._bound_requests.of(file, source)
            if self._union is None:
                self._single = bound_request.schema
            else:
                self._union.add(bound_request.schema, bound_request.absent, file.name)
        if self._footer_batches is not None:
            self._footer_batches.learn(file, bound_request, source, at)
        return file, bound_request

    def schema(self) -> pa.Schema:
        """The schema of the answer.

        It is that of the files that were opened, and of one at least; others are opened where a column that was
        named is in none of them.
        """
        if self._union is None:
            assert self._single is not None
            return self._single
        if not self.begun:
            for source in self._sources:
                if not self.begun:
                    self.open(source)
        if self._union.unknown:  # the first file says what it has instead
            source = self._sources[0]
            BoundRequest.of(self._file(source), self.request, source, self._union.unknown)
        name = self._sources[0].name if self._sources else "the table"
        return self.request.numbered(self._union.schema(), name)


def _check_taken(take: rows.RowRanges, num_rows: int) -> None:
    if take and take.bounds[1] > num_rows:
        raise IndexError(f"take: there is no row {take.bounds[1] - 1}, the source has {num_rows}")


def _prune_file(
    file: FileMetadata,
    bound_request: BoundRequest,
    limit: int | None,
    report: Report,
    lazy: bool,
    alone: bool,
    first_row: int,
    may: bool = True,
    unconfirmed: UnconfirmedVersions | None = None,
) -> tuple[tuple[GroupPlan, ...], Opened]:
    counts, bound, request = file.group_rows, bound_request.bound, bound_request.request
    proof = GroupProof(b"", b"")
    may_pass = must = b"\1" * len(counts)
    if bound is not None:
        proof = prune_groups(file, bound, request.options, STATISTICS in request.prune)
        may_pass, must = proof.may, proof.must
    ranges = _by_footer(counts, may_pass, must, bound_request, limit, report, first_row, may)
    groups = [
        GroupPlan(i, found, bool(must[i]), 0, judged=bool(must[i])) for i, found in ranges.items()
    ]
    version_check = None if unconfirmed is None else unconfirmed.of(file.store)
    opened = Opened(file, bound_request, proof, version_check)
    if not groups:
        return (), opened
    fetcher = Fetcher(
        file.store, report, file.tail, request.limits, bound_request.kept, None, version_check
    )
    if lazy and limit is not None and not (alone and Steps.is_one(groups, limit)):
        sure = iter(judge(opened, [group for group in groups if group.judged], fetcher))
        plans = [next(sure) if group.judged else group for group in groups]
    else:
        plans = judge(opened, groups, fetcher)
    for plan in plans:
        report.row_groups.read += 1
        report.rows.read += plan.ranges.num_rows
    return tuple(plans), opened


def _by_footer(
    counts: Sequence[int],
    may: bytes,
    must: bytes,
    bound_request: BoundRequest,
    limit: int | None,
    report: Report,
    first_row: int,
    by_folders: bool,
    steps: Sequence[tuple[str, bytes]] = (),
) -> dict[int, rows.RowRanges]:
    """The rows to look at of each row group that the footer leaves. `counts`: the rows of each; `may` and `must`: what
    is proved of them; `by_folders`: whether some may pass by these; `steps`: the mechanisms that proved it, and what each left,
    if the footer was not the only one.
    """
    report.row_groups.total += len(counts)
    report.rows.total += sum(counts)
    denied = may.count(0)
    if denied:
        never = FILTER if isinstance(bound_request.bound, BoundConst) else STATISTICS
        never = never if by_folders else PARTITION
        groups, rows_in = len(counts), sum(counts)
        for mechanism, left in steps or [(STATISTICS, may)]:
            groups_left, rows_left = len(left) - left.count(0), sum(compress(counts, left))
            by = never if mechanism == STATISTICS else mechanism
            report.row_groups.prune(by, groups - groups_left)
            report.rows.prune(by, rows_in - rows_left)
            groups, rows_in = groups_left, rows_left
    kept = [i for i in compress(range(len(counts)), may) if counts[i]]
    report.row_groups.prune(NO_ROWS, len(counts) - len(kept) - denied)
    request = bound_request.request
    if request.take is None:
        ranges = {i: rows.RowRanges.all(counts[i]) for i in kept}
    else:
        begin = list(accumulate(counts, initial=first_row))
        asked = {i: request.asked(begin[i], counts[i]) for i in kept}
        ranges = {i: found for i, found in asked.items() if found}
        report.row_groups.prune(TAKE, len(kept) - len(ranges))
        report.rows.prune(TAKE, sum(counts[i] - asked[i].num_rows for i in kept))
    return ranges if limit is None else _cut(ranges, must, limit, report)


def _settled(
    batched_file: BatchedFile,
    source: Source,
    request: Request,
    limit: int | None,
    report: Report,
    lazy: bool,
    first_row: int,
    may: bool,
    fold: bool,
) -> tuple[tuple[GroupPlan, ...], str] | None:
    """The row groups to read of a file, and what ruled out the last where there are none; None where its footer does not
    say all that a plan needs.
    """
    counts, passes, must = batched_file.counts, batched_file.may, batched_file.must
    homogeneous, first = batched_file.homogeneous, batched_file.first
    account, stop = report.chunks is not None, first + len(counts)
    if 0 in counts:  # where there are no statistics either, what others have would tell them apart
        return None
    if request.take is not None:
        if request.asked(first_row, batched_file.num_rows):
            return None
    elif limit is not None:
        # what is in doubt is judged as it is reached; where the limit cuts, an index helps
        if (passes != must and (account or not lazy)) or sum(compress(counts, must)) > limit:
            return None
    elif passes != must:
        version_check = [some and not every for some, every in zip(passes, must, strict=True)]
        if not all(compress(homogeneous.final[first:stop], version_check)):
            return None
    if account and not all(compress(homogeneous.sound[first:stop], passes)):
        return None
    before = dict(report.row_groups.pruned_by)
    bound_request = homogeneous.schema_group.bound_request
    ranges = _by_footer(
        counts, passes, must, bound_request, limit, report, first_row, may, batched_file.steps
    )
    if not ranges:
        return (), last_proof(before, report)
    made = []
    for i, found in ranges.items():
        cost, proven = 0, bool(must[i])
        if account:
            cost = homogeneous.cost(first + i, proven)
            homogeneous.take((source.name, i), first + i, proven, LIMIT, report, fold)
        made.append(GroupPlan(i, found, proven, cost, judged=proven or limit is None))
        report.row_groups.read += 1
        report.rows.read += found.num_rows
    return tuple(made), ""


def _count_gone(gone: PrunedFiles, report: Report) -> None:
    """Count files of which nothing is left."""
    report.file_bytes += gone.bytes
    report.row_groups.total += gone.row_groups
    report.rows.total += gone.rows
    for mechanism, (files, row_groups, num_rows) in gone.by.items():
        report.files.prune(mechanism, files)
        report.row_groups.prune(mechanism, row_groups)
        report.rows.prune(mechanism, num_rows)
    report.step(gone.files)


def _cut(
    ranges: dict[int, rows.RowRanges], must: bytes, limit: int, report: Report
) -> dict[int, rows.RowRanges]:
    """The row groups before the limit is surely reached; the ranges of the last are cut."""
    kept, left = {}, limit
    for i, found in ranges.items():
        if left == 0:
            report.row_groups.prune(LIMIT, 1)
            report.rows.prune(LIMIT, found.num_rows)
            continue
        kept[i] = found
        if must[i]:
            kept[i] = found.head(left)
            report.rows.prune(LIMIT, found.num_rows - kept[i].num_rows)
            left -= kept[i].num_rows
    return kept
