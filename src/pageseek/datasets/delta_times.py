"""Which version of a Delta Lake table was current at a moment.

Delta protocol, section "In-Commit Timestamps": a commit has its time, or else the time of its file counts.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable, Mapping

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
    # Times of commits are a property of the table from one version on; before it, those of files count.
    own = _own_time(read(names[-1])) is not None
    latest, low, high = 0.0, 0, len(names)
    files: list[float] = []
    for name in names:  # a copied log may have files that are older than those before them
        latest = max(latest, modified[name])
        files.append(latest)
    while low < high:
        at = (low + high) // 2
        time = _own_time(read(names[at])) if own else None
        if (files[at] if time is None else time) <= moment.timestamp():
            low = at + 1
        else:
            high = at
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
    except (ValueError, KeyError, TypeError):
        return None
