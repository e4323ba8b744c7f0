"""Tables that keep a list of their files with sizes: a file of one is not to be replaced behind its back."""

from __future__ import annotations

import os

from pageseek.errors import UnsupportedError

DELTA, ICEBERG = "_delta_log", "metadata"


def refuse_inside(path: str) -> None:
    """Raise UnsupportedError where a path lies inside a Delta Lake or Iceberg table, which records the size of each file."""
    folder = os.path.dirname(os.path.realpath(path))
    while True:
        found = _table_at(folder)
        if found is not None:
            kind, log = found
            raise UnsupportedError(
                f"{path}: it lies in a {kind} table ({log}), which records the size of each of its files, and would not "
                "read one that has grown; attach to a copy elsewhere (output=...), and add that through the table"
            )
        above = os.path.dirname(folder)
        if above == folder:
            return
        folder = above


def _table_at(folder: str) -> tuple[str, str] | None:
    """The kind of table whose folder this is, and what shows that."""
    log = os.path.join(folder, DELTA)
    if os.path.isdir(log):
        return "Delta Lake", log
    log = os.path.join(folder, ICEBERG)
    try:
        names = os.listdir(log)
    except OSError:
        return None
    return ("Iceberg", log) if any(name.endswith(".metadata.json") for name in names) else None
