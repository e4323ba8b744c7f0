"""Which version of a Delta Lake table was current at a moment.

Delta protocol, section "In-Commit Timestamps": a commit has its time, or else the time of its file counts.
"""

from __future__ import annotations

import datetime as dt
import json
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping
from itertools import accumulate

from pageseek.base.errors import UnsupportedError
from pageseek.datasets.delta_log import is_commit


def version_at(
    moment: dt.datetime, modified: Mapping[str, float], read: Callable[[str], bytes], where: str
) -> int:
    """The newest version whose commit is not after a moment.

    Parameters
    ----------
    modified : mapping
        For the names in `_delta_log/`, when the file was written, in seconds since 1970.
    read : callable
        The bytes of a file, by its name.

    Raises
    ------
    UnsupportedError
        The log has no commit so old.
    """
    names = sorted(filter(is_commit, modified))
    if not names:
        raise UnsupportedError(f"{where}: timestamp=: the log has no commit: give version=")
    sought, times = moment.timestamp(), dict[int, float | None]()

    def own(at: int) -> float | None:
        if at not in times:
            times[at] = _own_time(read(names[at]))
        return times[at]

    # Times of commits are a property of the table from one version on; before it, those of files count. The files of a copied
    # log are all newer than its commits, so that the two do not compare.
    first, last = 0, len(names)
    if own(last - 1) is None:
        first = last
    else:
        first = bisect_left(range(last), True, key=lambda at: own(at) is not None)
    if first < last and (own(first) or 0) <= sought:
        low = bisect_right(range(last), sought, first, key=lambda at: own(at) or 0)
    else:
        files = list(accumulate((modified[name] for name in names[:first]), max))
        low = bisect_right(files, sought)
    if low == 0:
        raise UnsupportedError(
            f"{where}: timestamp={moment.isoformat()} is before the first commit of the log, "
            f"{names[0]}: give a later one, or version="
        )
    return int(names[low - 1][:20])


def _own_time(data: bytes) -> float | None:
    """The seconds since 1970 that a commit says, in the first of its lines."""
    try:
        said = json.loads(data.partition(b"\n")[0])["commitInfo"]["inCommitTimestamp"]
        return int(said) / 1000
    except (ValueError, KeyError, TypeError, OverflowError):
        return None
