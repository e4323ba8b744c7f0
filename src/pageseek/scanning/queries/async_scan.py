"""One scan of one remote file by coroutines: the steps of the file scan wait for the store without a thread.

It serves small answers of a file whose store has coroutines and strong versions. All others are read in a thread.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any, TypeVar

import pyarrow as pa

from pageseek._core.page_tasks import read_pages
from pageseek.base.batches import table_of
from pageseek.base.coroutines import in_thread, together
from pageseek.base.errors import PageseekError
from pageseek.base.report import Report
from pageseek.datasets.file_cache import cache
from pageseek.format.file_metadata import FileMetadata
from pageseek.io.range_requests import DecodePages
from pageseek.io.version_checks import UnconfirmedVersions
from pageseek.prune.registry import REGISTRY
from pageseek.scanning.one_file.file_scan import FileScan, Rows
from pageseek.scanning.one_file.lane import WORTH_A_CORE, Lane
from pageseek.scanning.one_file.request_sharing import weight
from pageseek.scanning.plans.footer_selection import ranges_by_footer
from pageseek.scanning.requests.bound_request import BoundRequest
from pageseek.scanning.requests.plan import FilePlan, GroupPlan
from pageseek.scanning.requests.request import Request
from pageseek.scanning.requests.steps import Decode, Read, Reserve, Step, Steps
from pageseek.storage import RemoteStore, Source, Sources
from pageseek.storage.retry import Retries

T = TypeVar("T")
MOST_BYTES = 8 << 20  # of the row groups that are read, about; they are in memory at the same time
MOST_GROUPS = 16  # of them


async def table_async(sources: Sources, request: Request) -> pa.Table | None:
    """The rows of a scan as a table; None where it is read in a thread.

    A file is read in the version that the cache has, which its first answer confirms, or else a request by itself. Where it
    turns out to be past, the scan begins again in a thread.
    """
    if (
        len(sources) != 1
        or not sources.far
        or request.dataset_schema is not None
        or sources[0].deletes
        or request.selects_rows
        or request.row_number is not None
        or REGISTRY.catalogs
    ):
        return None
    report, limit = Report(nan=request.nan, chunks=None), request.limits.max_metadata_bytes
    unconfirmed, source = UnconfirmedVersions(), sources[0]
    unconfirmed.report = report
    try:
        if cache.assumes(source, limit):
            file = cache.open(source, report, limit, unconfirmed=unconfirmed)
        else:  # once for each version
            file = await in_thread(partial(cache.open, source, report, limit))
        store = file.store
        if not (isinstance(store, RemoteStore) and store.asynchronous and store.version.strong):
            return None
        table = await _AsyncScan(source, file, request, report, unconfirmed).table()
        check = unconfirmed.of(store)
        if check is not None and not check.confirmed:  # nothing was read of it
            await store.confirm_async(Retries())
    except PageseekError as error:
        if not unconfirmed.may_explain(error):
            raise
        return None
    return table


class _AsyncScan:
    """The scan of one open file."""

    def __init__(
        self,
        source: Source,
        file: FileMetadata,
        request: Request,
        report: Report,
        unconfirmed: UnconfirmedVersions,
    ) -> None:
        self._request, self._report, self._unconfirmed = request, report, unconfirmed
        self._scan = scan = FileScan(source, file, request)
        scan.bound_request = BoundRequest.of(file, request)

    def _lane(self) -> Lane:
        limits = self._request.limits
        return Lane.of(self._scan, self._report, limits, None, 1, self._unconfirmed)

    async def table(self) -> pa.Table | None:
        """The rows; None where they are too many for this way."""
        scan, limit = self._scan, self._request.limit
        schema = scan.bound_request.schema
        groups = await self._groups()
        if len(groups) > MOST_GROUPS or sum([weight(scan, one) for one in groups]) > MOST_BYTES:
            return None
        scan.plan = FilePlan(scan.source, scan.file.store.version, tuple(groups))
        if limit is None:
            found = await together([self._rows(group, None) for group in groups])
        else:
            found = []
            for group in groups if limit else ():
                found.append(await self._rows(group, limit))
                limit -= found[-1].found.num_rows
                if limit <= 0:
                    break
        tables = [
            table_of(schema, rows.found.num_rows, rows.arrays)
            for rows in found
            if rows.found.num_rows
        ]
        if len(tables) == 1:
            return tables[0]
        if not schema.names:
            return table_of(schema, sum([table.num_rows for table in tables]), [])
        return pa.concat_tables(tables) if tables else table_of(schema, 0, [[] for _ in schema])

    async def _groups(self) -> list[GroupPlan]:
        """The row groups that have rows left after all mechanisms."""
        scan, report = self._scan, self._report
        counts, proof = scan.file.group_rows, scan.proof
        may, fully = proof.may, proof.must
        if scan.bound_request.bound is None:
            may = fully = b"\1" * len(counts)
        ranges = ranges_by_footer(
            counts, may, fully, scan.bound_request, None, report, scan.source, 0, True
        )
        groups = [
            GroupPlan(i, found, bool(fully[i]), 0, pages_pruned=bool(fully[i]))
            for i, found in ranges.items()
        ]
        return await _run(self._lane(), scan.prune_pages(groups, report)) if groups else []

    async def _rows(self, group: GroupPlan, left: int | None) -> Rows:
        lane = self._lane()
        return await _run(lane, self._scan.read(group, left, lane.context))


async def _run(lane: Lane, steps: Steps[T]) -> T:
    """Run steps to their end. Reads are awaited."""
    try:
        step = next(steps)
        while True:
            try:
                answer = await _answer(lane, step)
            except BaseException as error:  # noqa: BLE001 - the generator adds the place, or recovers
                step = steps.throw(error)
            else:
                step = steps.send(answer)
    except StopIteration as done:
        found: T = done.value
        return found


async def _answer(lane: Lane, step: Step) -> Any:
    if isinstance(step, Read):
        return await lane.fetcher.read_async(*step)
    if isinstance(step, list):
        return await lane.fetcher.read_async(step, "index")
    if isinstance(step, DecodePages):
        if step.nbytes < WORTH_A_CORE:
            return read_pages(step.tasks, 1)
        return await asyncio.to_thread(read_pages, step.tasks, 1)  # others go on meanwhile
    if isinstance(step, Reserve):
        return None
    assert isinstance(step, Decode)
    return [await _run(lane, job) for job in step.jobs]
