"""The metadata of an Iceberg table in JSON, as `pyiceberg` takes it (Iceberg specification, Appendix C).

What it refuses, though the specification has it, is taken out, and told beside it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Any

from pageseek.base.records import dataclass

FIRST_PARTITION_FIELD = 1000  # the id of the first field of a partitioning
_LIST, _INLINE, _FIELD_ID = "manifest-list", "manifests", "field-id"


@dataclass(frozen=True, slots=True)
class Aside:
    """What pyiceberg is not told of a table.

    Attributes
    ----------
    manifests : mapping of int to tuple of str
        Snapshots of version 1 that have no list of manifests, but name these themselves.
    """

    manifests: Mapping[int, tuple[str, ...]] = field(default_factory=dict)


NOTHING = Aside()


def for_pyiceberg(text: str) -> tuple[str, Aside]:
    """The metadata as pyiceberg takes it, and what was taken out. A text that is no such metadata stays as it is."""
    try:
        told = json.loads(text)
        manifests = _inline_manifests(told)
        changed = [_number_partitions(spec) for spec in _specs(told)]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return text, NOTHING  # pyiceberg says what is wrong with it
    if manifests or any(changed):
        text = json.dumps(told)
    return text, Aside(manifests)


def _inline_manifests(told: dict[str, Any]) -> dict[int, tuple[str, ...]]:
    found = {}
    for snapshot in told.get("snapshots") or ():
        if snapshot.get(_LIST) is None and snapshot.get(_INLINE) is not None:
            found[int(snapshot["snapshot-id"])] = tuple(map(str, snapshot[_INLINE]))
            snapshot[_LIST] = ""
    return found


def _specs(told: dict[str, Any]) -> Iterator[list[dict[str, Any]]]:
    """The fields of each partitioning."""
    if told.get("partition-spec") is not None:  # of version 1
        yield told["partition-spec"]
    for spec in told.get("partition-specs") or ():
        yield spec["fields"]


def _number_partitions(fields: list[dict[str, Any]]) -> bool:
    """Give ids to fields without them, as version 1 may have them: in their order. Whether there were any."""
    lacking = [(at, one) for at, one in enumerate(fields) if one.get(_FIELD_ID) is None]
    for at, one in lacking:
        one[_FIELD_ID] = FIRST_PARTITION_FIELD + at
    return bool(lacking)
