"""Row groups of a remote file that share a request, because one request is quicker than two."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress

from pageseek.base.errors import PageseekError
from pageseek.base.records import NamedTuple
from pageseek.base.report import Report
from pageseek.format.schema import Leaf
from pageseek.io.coalesce import PARALLEL, SENDING
from pageseek.scanning.leaves.leaf_places import places_wanted
from pageseek.scanning.leaves.output_size import likely_memory
from pageseek.scanning.one_file.file_scan import FileScan
from pageseek.scanning.requests.plan import GroupPlan
from pageseek.scanning.requests.steps import Held, Read, Steps
from pageseek.storage.store import wait_bytes

UNKNOWN_BYTES = 8 << 20  # of memory for a row group whose chunks are not known
FEWEST_RUNS = 4  # requests of a file below which row groups share one only if they are tiny


class Run(NamedTuple):
    """Row groups that are read together. `nbytes`: of the request that several share."""

    groups: Sequence[GroupPlan]
    nbytes: int


def weight(scan: FileScan, group: GroupPlan) -> int:
    """About the bytes of memory of a row group while it is read: its pages, decompressed and decoded."""
    file, number = scan.file, group.row_group
    try:
        leaves = scan.bound_request.leaves.required(file)(number)
        chunks = [file.chunk(number, leaf) for leaf in leaves]
    except PageseekError:  # raised again when it is read
        return UNKNOWN_BYTES
    chosen, total = group.ranges.num_rows, file.group_rows[number]
    return 2 * sum([likely_memory(chunk, chosen, total) for chunk in chunks])


def runs(scan: FileScan, budget: int) -> Iterator[Run]:
    """The row groups of a file, each by itself unless some share a request.

    Row groups of a remote file share a request if nothing is tested in them and one request is quicker than two. The bytes
    between two of them are read with them if that costs less than a request. PARALLEL requests are under way at a time, so
    that each costs a part of a wait only; but if one request takes the whole bandwidth, these bytes cost as much as others.
    """
    groups, store = scan.plan.groups, scan.file.store
    wait, most = wait_bytes(store), max(len(groups) // FEWEST_RUNS, 1)
    run: list[GroupPlan] = []
    total = start = stop = 0  # of the run
    for group in groups:
        heavy, places = weight(scan, group), []
        if wait and (scan.bound_request.bound is None or group.fully_matched):
            with suppress(PageseekError):  # raised again when it is read
                places = [at for ats in _places(scan, group).values() for at in ats]
        first = min([at for at, _ in places], default=-1)
        last = max([sum(at) for at in places], default=0)
        if run and not (
            0 <= first - stop <= wait // PARALLEL
            and (len(run) < most or last - start <= wait // SENDING)
            and last - start <= wait
            and total + heavy + last - start <= budget
        ):
            yield Run(run, stop - start if len(run) > 1 else 0)
            run, total = [], 0
        start = start if run else first
        stop = last if places else store.size  # without places no other row group joins it
        run.append(group)
        total += heavy
    if run:
        yield Run(run, stop - start if len(run) > 1 else 0)


def fetch(scan: FileScan, groups: Sequence[GroupPlan], report: Report) -> Steps[Sequence[Held]]:
    """Read the bytes of the row groups of a run together. Returns them in the order of their places."""
    file = scan.file
    wanted: dict[tuple[int, int], None] = {}
    with suppress(PageseekError):  # raised again when it is read
        for group in groups:
            for leaf, places in _places(scan, group).items():
                counts = report.chunk(file.name, group.row_group, leaf.name, None)
                counts.bytes += sum([length for _, length in places])
                wanted.update(dict.fromkeys(places))
    buffers = yield Read(list(wanted), "data")
    found = [(at, data) for (at, _), data in zip(wanted, buffers, strict=True)]
    return sorted(found, key=lambda held: held[0])


def _places(scan: FileScan, group: GroupPlan) -> dict[Leaf, list[tuple[int, int]]]:
    """The (offset, length) of the reads of each leaf of a row group in which nothing is tested."""
    file, number = scan.file, group.row_group
    leaves = {
        part.leaf.index: part.leaf for column in scan.bound_request.columns for part in column.parts
    }
    return {
        leaf: places_wanted(file, number, leaf, group.ranges, False) for leaf in leaves.values()
    }
