"""Why a directory or a glob means no file: what was looked at, for the text of the error."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator

from pageseek.base.suggest import ENTRIES, nearest

_MAGIC = re.compile(r"[*?]|\[[^]]*\]")
_SHOWN = 3  # endings of names that are counted one by one


def in_directory(root: str, suffixes: tuple[str, ...]) -> str:
    """What lies in a local directory that has no data. `suffixes`: of the names of data."""
    return of_files(_below(root), suffixes)


def of_files(below: Iterable[str], suffixes: tuple[str, ...]) -> str:
    """What files there are, by their paths below a directory without data."""
    hidden: list[str] = []
    endings: Counter[str] = Counter()
    n = 0
    for n, path in enumerate(below, 1):  # noqa: B007 - their number
        name = path.rpartition("/")[2]
        if name.lower().endswith(suffixes):
            hidden.append(path)
        else:
            endings[os.path.splitext(name)[1] or "no ending"] += 1
    if not n:
        return "there is no file in it"
    many = f"at least {n:,}" if n >= ENTRIES else f"{n:,}"
    parts = [f"{count:,} with {ending}" for ending, count in endings.most_common(_SHOWN)]
    if len(endings) > _SHOWN:
        parts.append(f"{n - len(hidden) - sum(c for _, c in endings.most_common(_SHOWN)):,} others")
    if hidden:
        parts.append(
            f"{len(hidden):,} hidden by a name that begins with _ or . (such as {hidden[0]!r})"
        )
    return f"{many} file{'s' * (n != 1)} in and below it: {', '.join(parts)}"


def by_glob(path: str, top: str) -> str:
    """What is nearest to a local glob without a match. `top`: the folder before its first wildcard."""
    if not os.path.isdir(top):
        return f"; there is no folder {top}"
    try:
        with os.scandir(top) as entries:
            names = [entry.name for entry, _ in zip(entries, range(ENTRIES), strict=False)]
    except OSError:
        names = []
    count = f"at least {len(names):,}" if len(names) >= ENTRIES else f"{len(names):,}"
    close = nearest(_MAGIC.sub("", path.replace(os.sep, "/").rpartition("/")[2]), names)
    such = f", such as {close[0]!r}" if close else f", such as {min(names)!r}" if names else ""
    return f"; the folder {top} has {count} entr{'y' if len(names) == 1 else 'ies'}{such}"


def _below(root: str) -> Iterator[str]:
    """The paths of files below a directory, at most ENTRIES of them."""
    n = 0
    for folder, folders, names in os.walk(root):
        folders.sort()
        for name in sorted(names):
            yield os.path.relpath(os.path.join(folder, name), root).replace(os.sep, "/")
            n += 1
            if n >= ENTRIES:
                return
