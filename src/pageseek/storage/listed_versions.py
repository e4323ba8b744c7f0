"""Versions of many files of one store at once, as a listing of their folder tells them."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from typing import NamedTuple

from pageseek.storage.files import Files, Place
from pageseek.storage.retry import RetryPolicy
from pageseek.storage.store import Version

FEWEST = 16  # files for which a listing is worth more than a question about each
OTHERS = 16  # names that a listing may have for each of them


class ListedVersions(NamedTuple):
    """Versions by path, and the requests that it took."""

    versions: dict[str, Version]
    requests: int


def listed_versions(
    files: Files, retry_policy: RetryPolicy, paths: Sequence[str]
) -> ListedVersions:
    """The versions of files, as far as one listing of the folder that they share tells them.

    It ends where the folder has many other files. It tells nothing where the files are few, or the store does not list them.
    """
    if len(paths) < FEWEST or not files.lists_versions:
        return ListedVersions({}, 0)
    folder = posixpath.commonpath([posixpath.dirname(path) for path in paths])
    most = len(paths) * OTHERS
    place = Place(files, folder, retry_policy)
    try:
        found = place.ask(lambda: files.versions_below(folder, most, retry_policy), "what is in it")
    except OSError:  # of a store, too; each file is asked for, then
        return ListedVersions({}, 1)
    return ListedVersions(*found)


def is_same(listed: Version, known: Version) -> bool:
    """Whether a listing tells a version that is known. Some stores put ETags into quotation marks only in answers for one object."""
    same_tag = listed.tag.strip('"') == known.tag.strip('"')
    return listed.strong and known.strong and listed.size == known.size and same_tag
