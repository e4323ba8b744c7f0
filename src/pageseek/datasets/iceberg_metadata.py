"""The metadata of an Iceberg table in JSON, as `pyiceberg` takes it (Iceberg specification, Appendix C).

What it refuses, though the specification has it, is taken out or told otherwise, and told beside it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Any

from pageseek.base.records import dataclass

FIRST_PARTITION_FIELD = 1000  # the id of the first field of a partitioning
_LIST, _INLINE, _FIELD_ID, _TYPE = "manifest-list", "manifests", "field-id", "type"
_SOURCE, _SOURCES = "source-id", "source-ids"
_DEFAULTS = "initial-default", "write-default"
_KNOWN_TYPES = re.compile(
    r"boolean|int|long|float|double|date|time|timestamp(tz)?(_ns)?|string|uuid|binary|unknown|fixed\s*\[.*|decimal\s*\(.*"
)
_KNOWN_TRANSFORMS = re.compile(r"identity|void|year|month|day|hour|bucket\[\d+\]|truncate\[\d+\]")
_UNKNOWN_TRANSFORM = "unknown"
_GEO = re.compile(r"(geometry|geography)(\s*\(.*\))?")
_NANOS = "timestamp_ns", "timestamptz_ns"


@dataclass(frozen=True, slots=True)
class Aside:
    """What pyiceberg is not told of a table.

    Attributes
    ----------
    manifests : mapping of int to tuple of str
        Snapshots of version 1 that have no list of manifests, but name these themselves.
    types : mapping of int to str
        The types of fields, by id, which pyiceberg takes for binary.
    defaults : mapping of int to object
        The initial defaults of fields, by id, as JSON has them.
    """

    manifests: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    types: Mapping[int, str] = field(default_factory=dict)
    defaults: Mapping[int, Any] = field(default_factory=dict)


NOTHING = Aside()


def is_geo(kind: str) -> bool:
    """Whether a type is one of shapes, which files have as binary: in WKB."""
    return _GEO.fullmatch(kind) is not None


def for_pyiceberg(text: str) -> tuple[str, Aside]:
    """The metadata as pyiceberg takes it, and what was taken out. A text that is no such metadata stays as it is."""
    try:
        told = json.loads(text)
        manifests = _inline_manifests(told)
        types, defaults = dict[int, str](), dict[int, Any]()
        for schema in _schemas(told):
            _known_fields(schema, types, defaults)
        changed = [_known_partitions(spec) for spec in _specs(told)]
        changed.append(_known_orders(told))
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return text, NOTHING  # pyiceberg says what is wrong with it
    if manifests or types or defaults or any(changed):
        text = json.dumps(told)
    return text, Aside(manifests, types, defaults)


def _inline_manifests(told: dict[str, Any]) -> dict[int, tuple[str, ...]]:
    found = {}
    for snapshot in told.get("snapshots") or ():
        if snapshot.get(_LIST) is None and isinstance(snapshot.get(_INLINE), list):
            found[int(snapshot["snapshot-id"])] = tuple(map(str, snapshot[_INLINE]))
            snapshot[_LIST] = ""
    return found


# -- schemas --------------------------------------------------------------------------------------


def _schemas(told: dict[str, Any]) -> Iterator[dict[str, Any]]:
    if told.get("schema") is not None:  # of version 1
        yield told["schema"]
    yield from told.get("schemas") or ()


def _known_fields(kind: Any, types: dict[int, str], defaults: dict[int, Any]) -> None:
    """Change the fields inside of a type to what pyiceberg knows, and note what they are."""
    if not isinstance(kind, dict):
        return
    for one in kind.get("fields") or ():
        told = one[_TYPE]
        if told in _NANOS or (isinstance(told, dict) and told[_TYPE] == "struct"):
            value = one.get(_DEFAULTS[0])
            if value is not None:
                defaults[int(one["id"])] = value
            for name in _DEFAULTS:
                one.pop(name, None)
        _known_type(one, _TYPE, "id", types, defaults)
    for name in ("element", "key", "value"):
        if name in kind:
            _known_type(kind, name, f"{name}-id", types, defaults)


def _known_type(
    holder: dict[str, Any],
    name: str,
    number: str,
    types: dict[int, str],
    defaults: dict[int, Any],
) -> None:
    told = holder[name]
    if isinstance(told, str) and _KNOWN_TYPES.fullmatch(told) is None:
        types[int(holder[number])] = told
        holder[name] = "binary"
    else:
        _known_fields(told, types, defaults)


# -- partitions and orders ------------------------------------------------------------------------


def _specs(told: dict[str, Any]) -> Iterator[list[dict[str, Any]]]:
    """The fields of each partitioning."""
    if told.get("partition-spec") is not None:  # of version 1
        yield told["partition-spec"]
    for spec in told.get("partition-specs") or ():
        yield spec["fields"]


def _known_partitions(fields: list[dict[str, Any]]) -> bool:
    """Give ids to fields without them, as version 1 may have them: in their order. Make transforms of several columns, and those
    that nobody knows, unknown to pyiceberg, too. Whether there were any.
    """
    changed = False
    for at, one in enumerate(fields):
        if one.get(_FIELD_ID) is None:
            one[_FIELD_ID] = FIRST_PARTITION_FIELD + at
            changed = True
        if not _is_known(one):
            one[_SOURCE] = one[_SOURCE] if _SOURCE in one else one[_SOURCES][0]
            one["transform"] = _UNKNOWN_TRANSFORM
            changed = True
    return changed


def _is_known(one: Mapping[str, Any]) -> bool:
    """Whether a field of partitions or of an order is made of one column, by a transform of the specification."""
    several = one.get(_SOURCE) is None and len(one.get(_SOURCES) or ()) != 1
    return not several and _KNOWN_TRANSFORMS.fullmatch(one["transform"]) is not None


def _known_orders(told: dict[str, Any]) -> bool:
    """Take out the orders of rows, which readers do not use, where one is not known. Whether there was one."""
    orders = told.get("sort-orders") or ()
    if all(_is_known(one) for order in orders for one in order["fields"]):
        return False
    told["sort-orders"] = [{"order-id": 0, "fields": []}]
    told["default-sort-order-id"] = 0
    return True
