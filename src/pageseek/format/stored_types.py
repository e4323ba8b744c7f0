"""Fields of the Arrow schema that a writer stored in its file."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from pageseek.base.late_modules import json

_CANONICAL: dict[bytes, Callable[[pa.DataType, bytes], pa.DataType]] = {
    b"arrow.uuid": lambda storage, _: pa.uuid(),
    b"arrow.json": lambda storage, _: pa.json_(storage),
    b"arrow.bool8": lambda storage, _: pa.bool8(),
    b"arrow.opaque": lambda storage, text: _opaque(storage, json.loads(text)),
}
_EXTENSION = b"PSEEK:extension:"  # `ARROW:extension:`, renamed so that Arrow does not act on it


def _opaque(storage: pa.DataType, named: dict[str, str]) -> pa.DataType:
    return pa.opaque(storage, named["type_name"], named["vendor_name"])


def stored_type(field: pa.Field) -> pa.DataType:
    """The type of a field of the writer's schema, with Arrow's own extension types, and no others."""
    kept = field.metadata or {}
    make = _CANONICAL.get(kept.get(_EXTENSION + b"name", b""))
    if make is None:
        return field.type
    try:
        made = make(field.type, kept.get(_EXTENSION + b"metadata", b""))
    except (pa.ArrowException, ValueError, KeyError, TypeError):
        return field.type
    return made if made.storage_type == field.type else field.type


def stored_metadata(field: pa.Field) -> dict[bytes, bytes]:
    """The metadata of a field of the writer's schema, without that of an extension type which `stored_type` gives."""
    made, kept = {}, field.metadata or {}
    canonical = kept.get(_EXTENSION + b"name") in _CANONICAL
    for key, value in kept.items():
        if not key.startswith(_EXTENSION):
            made[key] = value
        elif not canonical:
            made[key.replace(_EXTENSION, b"ARROW:extension:", 1)] = value
    return made
