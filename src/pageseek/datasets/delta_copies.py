"""Copies of the log of a Delta Lake table in temporary folders, which `deltalake` opens in its place: of a log in a store, and of one
that has something which `deltalake` takes otherwise than the protocol means it.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from pageseek.datasets.delta_log import chosen_log
from pageseek.datasets.delta_text import in_full
from pageseek.datasets.widened_partitions import Respell, respelt
from pageseek.storage.table_folders import LOG

SIDE_BY_SIDE = 16  # files of a log that are copied at a time


@contextmanager
def copied_log(
    paths: Mapping[str, str],
    read: Callable[[str], bytes],
    version: int | None,
    columns: Mapping[str, Respell] | None = None,
) -> Iterator[str]:
    """A local folder that has those files of a log that a version needs, the newest one if none is given.

    Parameters
    ----------
    paths : mapping
        The files of the log, by their names below `_delta_log/`.
    read : callable
        The bytes of one, by its name.
    columns : mapping, optional
        How values of partition columns are spelt in the copy.
    """
    with tempfile.TemporaryDirectory(prefix="pageseek-") as at:
        os.makedirs(os.path.join(at, LOG, "_sidecars"))

        def bring(name: str) -> None:
            data = read(name)
            if columns:
                data = respelt(name, data, columns)
            if name.endswith(".json"):
                data = in_full(data)
            with open(os.path.join(at, LOG, name), "wb") as file:
                file.write(data)

        with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
            list(pool.map(bring, chosen_log(paths, version)))
        yield at


def has_pairs(paths: Mapping[str, str], read: Callable[[str], bytes], version: int | None) -> bool:
    """Whether a log spells a character as two escapes in what a version needs."""
    names = [name for name in chosen_log(paths, version) if name.endswith(".json")]
    with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        return any(in_full(data) != data for data in pool.map(read, names))
