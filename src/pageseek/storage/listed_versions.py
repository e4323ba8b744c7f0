"""Versions of many files of one store at once, as a listing of their folder tells them."""

from __future__ import annotations

import posixpath
import time
from collections.abc import Sequence
from dataclasses import replace

from pageseek.base import log
from pageseek.base.records import NamedTuple
from pageseek.storage.files import Files, Place
from pageseek.storage.retry import RetryPolicy
from pageseek.storage.store import Version

FEWEST = 16  # files for which a listing is worth more than a question about each
OTHERS = 16  # names that a listing may have for each of them
FORGOTTEN = 600.0  # seconds after which a folder is listed again that could not be listed

_failed: dict[tuple[str, str], float] = {}  # folders that could not be listed, and until when


class ListedVersions(NamedTuple):
    """Versions by path, and the requests that it took."""

    versions: dict[str, Version]
    requests: int


def listed_versions(
    files: Files, retry_policy: RetryPolicy, paths: Sequence[str]
) -> ListedVersions:
    """The versions of files, as far as one listing of the folder that they share tells them.

    It ends where the folder has many other files. It tells nothing where the files are few, or the store does not list them: a
    listing that fails is not tried again, since each file can be asked for.
    """
    if len(paths) < FEWEST or not files.lists_versions:
        return ListedVersions({}, 0)
    folder = posixpath.commonpath([posixpath.dirname(path) for path in paths])
    key = files.key, folder
    if _failed.get(key, 0.0) > time.monotonic():
        return ListedVersions({}, 0)
    wanted, most = sorted(paths), len(paths) * OTHERS
    place = Place(files, folder, replace(retry_policy, retries=0))
    began = log.begun()
    try:
        found = place.ask(
            lambda: files.find_versions(folder, wanted, most, retry_policy), "what is in it"
        )
    except OSError:  # of a store, too
        _failed[key] = time.monotonic() + FORGOTTEN
        log.requested(place.name, "listing", (), 1, began)
        return ListedVersions({}, 1)
    log.requested(place.name, "listing", (), found[1], began)
    return ListedVersions(*found)


def is_same(listed: Version, known: Version) -> bool:
    """Whether a listing tells a version that is known. Some stores put ETags into quotation marks only in answers for one object."""
    same_tag = listed.tag.strip('"') == known.tag.strip('"')
    return listed.strong and known.strong and listed.size == known.size and same_tag
