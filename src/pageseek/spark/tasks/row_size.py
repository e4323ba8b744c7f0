"""How large a decoded row is: a guess from the footers of a few files, by which Spark chooses joins."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from pageseek.base.errors import PageseekError
from pageseek.base.report import Report
from pageseek.datasets.file_cache import cache
from pageseek.scanning.one_file.division import decoded_bytes
from pageseek.scanning.plans.scan_plan import ScanPlan
from pageseek.scanning.requests.bound_request import BoundRequest

T = TypeVar("T")
_SAMPLE = 4  # files whose footers are looked at, and row groups of each


def decoded_row_bytes(plan: ScanPlan) -> int:
    """About the bytes of a decoded row of a plan; 0 where no footer tells.

    The bytes that are read do not tell it: a text that compresses well, or stands in a dictionary, is much larger in the
    memory of a join.
    """
    size = num_rows = 0
    request = replace(plan.request, filter=None)
    for one in _few(plan.files):
        try:
            file = cache.open(one.source, Report(), request.limits.max_metadata_bytes)
            leaves = BoundRequest.of(file, request, one.source).leaves.required(file)
            for group in _few(one.groups):
                rows = file.group_rows[group.row_group]
                for leaf in leaves(group.row_group):
                    size += decoded_bytes(leaf, file.chunk(group.row_group, leaf), rows)
                num_rows += rows
        except (
            PageseekError,
            OSError,
            IndexError,
        ):  # its tasks will tell: it has changed, or is gone
            continue
    return size // max(num_rows, 1)


def _few(all_of_them: tuple[T, ...]) -> tuple[T, ...]:
    step = max(len(all_of_them) // _SAMPLE, 1)
    return all_of_them[::step][:_SAMPLE]
