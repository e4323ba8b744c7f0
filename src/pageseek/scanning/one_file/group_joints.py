"""Which small row groups are read as one: the steps of a row group cost more than its pages do.

Row groups are joined if all their rows are read, or if no page can be left out because each column has one. joined_groups.py reads them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import pyarrow as pa

from pageseek.base.errors import CoreError, PageseekError
from pageseek.base.records import NamedTuple
from pageseek.format.chunks import has_codes_only
from pageseek.format.columns import Part
from pageseek.format.schema import Leaf
from pageseek.format.types import BYTES_KINDS
from pageseek.predicate.bound import BoundLeaf, all_null, null_tests
from pageseek.scanning.leaves.leaf_reader import CODED_KINDS
from pageseek.scanning.one_file.file_scan import FileScan
from pageseek.scanning.one_file.request_sharing import weight
from pageseek.scanning.requests.bound_request import BoundRequest
from pageseek.scanning.requests.plan import GroupPlan, Joint
from pageseek.scanning.requests.steps import ScanContext

ENOUGH_GROUPS = 8  # row groups that are joined, once they have so many rows:
ENOUGH_ROWS = 1 << 18
MOST_BYTES = 16 << 20  # of memory that joined row groups take, about
LEAST_BYTES = 4 << 20  # that they may take, however little may be read ahead
SMALL_ROWS = 1 << 18  # of a row group that is worth it
# with more rows, strings are tested faster by the codes of a dictionary than by joined values
CODED_ROWS = 1 << 14
FIRST_GROWTH = 4.0  # of tables of several files, until it is known
LEAST_STRING = 4  # bytes of its offset


def joined(
    scan: FileScan,
    groups: Iterable[GroupPlan],
    context: ScanContext,
    growth: Callable[[], float],
    max_ahead_bytes: int,
) -> Iterator[Joint]:
    """The row groups in order, those that are read as one together.

    `max_ahead_bytes`: as of the request; they take no more memory, or LEAST_BYTES. `growth`: of the tables so far, the most bytes for each one that the footer let expect, since codes may stand for long
    strings; 0 before the first.
    """
    leaves, several = _fitting(scan, context), scan.joined
    most = max(min(MOST_BYTES, max_ahead_bytes), LEAST_BYTES)
    first_growth = 0.0 if several is None else FIRST_GROWTH
    together: list[GroupPlan] = []
    num_rows = nbytes = 0
    for group in groups:
        if several is not None:
            likely, fits = max(several.memory[group.row_group], 1), leaves is not None
        else:
            likely = max(weight(scan, group), 1)
            fits = leaves is not None and _is_small(scan, group, leaves, context)
        if fits and leaves is not None:
            likely = max(likely, group.ranges.num_rows * leaves.row_bytes)
        if together and (
            not fits
            or together[0].fully_matched != group.fully_matched
            or _is_full(
                len(together),
                num_rows + group.ranges.num_rows,
                (nbytes + likely) * (growth() or first_growth),
                most,
            )
        ):
            yield Joint(together, nbytes, several is not None or len(together) > 1)
            together, num_rows, nbytes = [], 0, 0
        if fits:
            together.append(group)
            num_rows += group.ranges.num_rows
            nbytes += likely
        else:
            yield Joint([group], likely, several is not None)
    if together:
        yield Joint(together, nbytes, several is not None or len(together) > 1)


def _is_full(num_groups: int, num_rows: int, nbytes: float, most: int) -> bool:
    """Whether so many row groups are enough, if another one makes them so many rows and bytes; 0 bytes: nobody knows."""
    if not 0 < nbytes <= most:
        return True
    return num_groups >= ENOUGH_GROUPS and num_rows > ENOUGH_ROWS


class _Leaves(NamedTuple):
    """The leaves that are read of row groups that can be joined.

    `by_code`: those of them that are tested faster by the codes of a dictionary. `row_bytes`: the least that a row takes once it is
    decoded, in all columns that are decoded for every row.
    """

    leaves: list[Leaf]
    by_code: list[Leaf]
    row_bytes: int


def _fitting(scan: FileScan, context: ScanContext) -> _Leaves | None:
    """The leaves that are read of the row groups of a file, if these can be joined."""
    if context.wait_bytes or scan.begun or (scan.file.num_row_groups < 2 and scan.joined is None):
        return None
    leaves = leaves_to_join(scan.bound_request)
    if leaves is None:
        return None
    use = scan.bound_request.leaves
    every = {test.leaf.key: test for _, tests in use.conditions for test in tests.values()}
    by_code = [test.leaf for test in every.values() if test.leaf_type.kind in CODED_KINDS]
    decoded: Iterable[Part | BoundLeaf] = every.values() if every else use.parts.values()
    row_bytes = sum(
        [
            LEAST_STRING if one.leaf_type.kind in BYTES_KINDS else one.leaf_type.width
            for one in decoded
        ]
    )
    return _Leaves(list(leaves.values()), by_code, row_bytes)


def leaves_to_join(bound_request: BoundRequest) -> dict[int, Leaf] | None:
    """The leaves that a request reads, by their index, if row groups can be joined for it."""
    use, bound = bound_request.leaves, bound_request.bound
    asked = {} if bound is None else null_tests(bound)
    # such leaves are read by levels alone, but for payload that may have values
    if bound is not None and (asked.keys() - use.parts.keys() or asked.keys() & all_null(bound)):
        return None
    leaves: dict[int, Leaf] = {}
    for leaf, leaf_type in use.read():
        if not leaf.flat or leaf.group or pa.types.is_dictionary(leaf_type.type):
            return None
        leaves[leaf.index] = leaf
    if any(part.nesting_levels for part in use.parts.values()):
        return None
    return leaves


def _is_small(scan: FileScan, group: GroupPlan, leaves: _Leaves, context: ScanContext) -> bool:
    file, number = scan.file, group.row_group
    num_rows = file.group_rows[number]
    if group.divided or group.matching or number in file.dropped or num_rows > SMALL_ROWS:
        return False
    whole = group.ranges.num_rows == num_rows
    try:
        for leaf in leaves.leaves:
            codec = file.chunk(number, leaf).codec
            settings = context.codec_settings.get(codec) or context.settings_of(codec, file)
            if not settings.own or not (whole or file.has_one_page(number, leaf)):
                return False
        if num_rows > CODED_ROWS and not group.fully_matched:
            for leaf in leaves.by_code:
                chunk = file.chunk(number, leaf)
                if has_codes_only(chunk):
                    return False
    except (CoreError, PageseekError):  # raised again when it is read by itself
        return False
    return True
