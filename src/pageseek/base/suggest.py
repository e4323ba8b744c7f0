"""The names nearest to one that does not exist: names of columns, options and files."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

SHORT = 12  # names at most that are all shown
CLOSE = 3  # nearest names that are shown of more
MAX_NAMES = 100_000  # names that are compared
ENTRIES = 10_000  # entries of a folder that are compared


def nearest(name: str, names: Sequence[str]) -> list[str]:
    """The names that differ in case only, else paths that end in the name, else names that begin so, or differ in few letters; the
    nearest first, at most CLOSE.
    """
    small = name.lower()
    same = [one for one in names[:MAX_NAMES] if one.lower() == small]
    same = same or [one for one in names[:MAX_NAMES] if one.lower().endswith(f".{small}")]
    if same:
        return same[:CLOSE]
    import difflib  # slow to import, and needed for errors only

    of_small: dict[str, str] = {}
    for one in names[:MAX_NAMES]:
        of_small.setdefault(one.lower(), one)
    close = difflib.get_close_matches(small, of_small, CLOSE)
    if len(small) > 2:
        close = [one for one in of_small if one.startswith(small)] + close
    return [of_small[one] for one in dict.fromkeys(close)][:CLOSE]


def offered(name: str, names: Sequence[str]) -> str:
    """The names that exist, nearest to one that does not, as the end of a sentence."""
    if not names:
        return "there are none"
    close = nearest(name, names)
    if len(names) <= SHORT:
        meant = f"did you mean {close[0]!r}? " if close else ""
        return f"{meant}there are {_listed(names)}"
    if close:
        *others, last = map(repr, close)
        meant = f"{', '.join(others)} or {last}" if others else last
        return f"did you mean {meant}? there are {len(names):,} names"
    return f"there are {_listed(names[:SHORT])}, ..."


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names))


class Offer:
    """The text of `offered`, made when it is shown: many files may lack a column, and few of these errors are shown."""

    __slots__ = ("_name", "_names")

    def __init__(self, name: str, names: Callable[[], Sequence[str]]) -> None:
        self._name, self._names = name, names

    def __str__(self) -> str:
        return offered(self._name, self._names())


def nearest_path(path: str) -> str:
    """The local file or folder whose name is nearest to that of a path without a file; "" where none is near."""
    folder, missing = os.path.abspath(path), [""]
    try:
        while not os.path.isdir(folder):
            folder, name = os.path.split(folder)
            missing.append(name)
            if not name:
                return ""
        if len(missing) == 1:
            return ""
        with os.scandir(folder) as entries:
            names = [entry.name for entry, _ in zip(entries, range(ENTRIES), strict=False)]
    except (OSError, ValueError):
        return ""
    # that names end alike, as all files of a folder may, makes them no nearer; nor does the ending in x.parquet.gz
    stem, ending = os.path.splitext(missing[-1])
    alike = [name for name in names if os.path.splitext(name)[1] == ending]
    packed = [name for name in names if ending and f"{ending}." in name and name not in alike]
    stems = {name.partition(f"{ending}.")[0]: name for name in packed}
    stems |= {os.path.splitext(name)[0]: name for name in alike}
    near = [stems[one] for one in nearest(stem, [*stems])]
    alike += packed
    close = near + nearest(missing[-1], [name for name in names if name not in alike])
    return os.path.join(folder, close[0]) if close else ""
