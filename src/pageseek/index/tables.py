"""Tables that keep a list of their files with sizes: a file of one is not to be replaced behind its back."""

from __future__ import annotations

import os
import posixpath

from pageseek.errors import UnsupportedError
from pageseek.storage import Source
from pageseek.storage.files import Files
from pageseek.storage.folders import have
from pageseek.storage.obstore_files import ObstoreFiles

# of each kind of table the folder beside its files, and how the name of a file there ends
TABLES = (("Delta Lake", "_delta_log", ""), ("Iceberg", "metadata", ".metadata.json"))


def refuse_inside(place: Source) -> None:
    """Raise UnsupportedError where a path lies inside a Delta Lake or Iceberg table, which records the size of each file."""
    far = place.filesystem
    if isinstance(far, Files) and far.looks_like_file(""):  # a plain web server tells of no folders
        return
    folders = _above_here(place.path)
    if far is not None:
        folders = _above(place.path, rooted=isinstance(far, ObstoreFiles))
    asked = [
        (kind, f"{folder.rstrip('/')}/{name}" if folder else name, ending)
        for folder in folders
        for kind, name, ending in TABLES
    ]
    pairs = [(folder, ending) for _, folder, ending in asked]
    found = have(place, pairs) if far is not None else (_has(*pair) for pair in pairs)
    for (kind, folder, _), there in zip(asked, found, strict=True):
        if there:
            raise UnsupportedError(
                f"{place.name}: it lies in a {kind} table ({folder}), which records the size of each of its files, and would not "
                "read one that has grown; commit it through the table (Delta Lake: table=DeltaTable(...)), or attach to a copy elsewhere (output=...)"
            )


def _above(path: str, rooted: bool) -> list[str]:
    """The folders that a path on a store lies in, the nearest first. `rooted`: paths begin in a bucket, not with its name."""
    scheme, colon, rest = path.rpartition("://")
    folders = []
    while (above := posixpath.dirname(rest)) != rest:
        if above or rooted:
            folders.append(scheme + colon + above)
        rest = above
    return folders


def _above_here(path: str) -> list[str]:
    folder = os.path.dirname(os.path.realpath(path))
    folders = [folder]
    while (above := os.path.dirname(folder)) != folder:
        folders.append(folder := above)
    return folders


def _has(folder: str, ending: str) -> bool:
    """Of a table that was just made the log may be empty."""
    try:
        names = os.listdir(folder)
    except OSError:
        return False
    return not ending or any(name.endswith(ending) for name in names)
