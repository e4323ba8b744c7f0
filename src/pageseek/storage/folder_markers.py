"""Empty objects that stand for folders in a bucket."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor

from pageseek.storage.listing import is_data, is_hidden

AT_ONCE = 16  # questions about empty objects


def without_markers(listed: Iterable[tuple[str, int]], is_file: Callable[[str], bool]) -> list[str]:
    """The paths of a listing, pairs of a path and its bytes, without those of empty objects that stand for folders.

    The key of such an object ends with a slash, which obstore leaves out. `is_file`: whether an object has a key without one. That is
    asked only where no other lies below.
    """
    pairs = list(listed)
    empty = {path for path, size in pairs if not size}
    if not empty:
        return [path for path, _ in pairs]
    others = {path for path, size in pairs if size}
    for path, _ in pairs:
        while (slash := path.rfind("/")) > 0 and (path := path[:slash]) not in others:
            others.add(path)
    alone = sorted(empty - others)
    asked = [path for path in alone if _may_be_folder(path)]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        gone = {
            path for path, there in zip(asked, pool.map(is_file, asked), strict=True) if not there
        }
    return [path for path, size in pairs if size] + [path for path in alone if path not in gone]


def _may_be_folder(path: str) -> bool:
    """Whether an empty object may stand for a folder of files that may be wanted: one named as a Parquet file, or without an ending."""
    name = path.rpartition("/")[2]
    return is_data(name) or ("." not in name and not is_hidden(name))
