"""Tables of Delta Lake, by the public methods of `deltalake`, which is not imported here."""

from __future__ import annotations

import datetime as dt
import json
import os
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import unquote

import pyarrow as pa

from pageseek.base.errors import CorruptFileError, UnsupportedError
from pageseek.datasets.deletes import Deletes
from pageseek.datasets.delta_bounds import PHYSICAL_NAME, delta_bounds
from pageseek.datasets.delta_copies import copied_log, has_pairs
from pageseek.datasets.delta_log import DeltaLog, Replayed, deletion_vector
from pageseek.datasets.delta_paths import any_odd, is_absolute
from pageseek.datasets.delta_text import any_doubtful
from pageseek.datasets.delta_times import version_at
from pageseek.datasets.lake_places import Places, delta_options
from pageseek.datasets.table_fields import TableField
from pageseek.datasets.table_files import Table, foreign, plain_type
from pageseek.datasets.variants import has_variants, with_nullable_parts
from pageseek.storage.hive import Partitions
from pageseek.storage.redact import secrets_of, shown_path
from pageseek.storage.resolve import Source
from pageseek.storage.retry import RetryPolicy

# features that readers must know: we do, or they change nothing in how files are read
_DELTA_FEATURES = frozenset(
    ("columnMapping", "deletionVectors", "timestampNtz", "typeWidening", "typeWidening-preview",
     "v2Checkpoint", "vacuumProtocolCheck", "variantType", "variantType-preview", "variantShredding", "variantShredding-preview")
)  # fmt: skip


_MAPPING, _MAPS = "delta.columnMapping", "columnMapping"
# what the log of a version removes, by the id of a table's object, which has no hash
_removes: dict[int, tuple[weakref.ref[Any], int, list[str]]] = {}


def delta_table(
    table: Any,
    options: Mapping[str, Any] | None,
    retry_policy: RetryPolicy,
    root: Source | None = None,
    shown: str | None = None,
) -> Table:
    """What a `deltalake.DeltaTable` says.

    `root`: its folder, if the table was opened for that, perhaps by a copy of the log alone; and `shown` the name of the folder.
    """
    shown = str(table.table_uri) if shown is None else shown
    where = f"Delta table {shown}"
    secrets = secrets_of(dict(getattr(table, "_storage_options", None) or options or {}))
    with foreign(where, "deltalake", secrets):
        _refuse_features(table, where)
        fields = table.schema()
        schema = pa.schema(
            fields.to_arrow() if hasattr(fields, "to_arrow") else fields.to_pyarrow()
        )
        told = json.loads(fields.to_json())
        variants = frozenset([f["name"] for f in told["fields"] if has_variants(f["type"])])
        kinds = [
            with_nullable_parts(plain_type(field.type), one["type"])
            for field, one in zip(schema, told["fields"], strict=True)
        ]
        schema = pa.schema(
            [pa.field(f.name, kind, f.nullable) for f, kind in zip(schema, kinds, strict=True)]
        )
        folders = pa.schema([schema.field(key) for key in table.metadata().partition_columns])
        if options is None:
            options = delta_options(getattr(table, "_storage_options", None))
        files = None if root is None else root.filesystem
        places = Places(where, lambda _: options, retry_policy, files)
        base = places.source(str(table.table_uri).rstrip("/"), ()) if root is None else root
        folder = base.path.rstrip("/") + "/"
        if base.filesystem is None:
            folder = base.path.rstrip(os.sep) + os.sep
        elif root is None or not base.path:
            folder = folder.lstrip("/")
        actions = pa.table(table.get_add_actions(flatten=True))
        spelt_paths = actions["path"].to_pylist()
        log = DeltaLog(places.source(str(table.table_uri).rstrip("/"), ()), where, base)
        doubtful = any_doubtful(pa.array([fields.to_json()])) or any_doubtful(actions["path"])
        if doubtful and has_pairs(log.paths, log.read, table.version()):
            with copied_log(log.paths, log.read, table.version()) as at:
                plain = type(table)(at, version=table.version())
                home = replace(base, path=folder.rstrip("/") or base.path)
                return delta_table(plain, options, retry_policy, home, shown)
        nameless = "" in spelt_paths
        vectors: Mapping[str, Mapping[str, Any]] = {}
        if (
            nameless
            or "deletionVectors" in (table.protocol().reader_features or ())
            or _is_spelt_twice(table, actions["path"], log)
        ):
            found = log.replay(table.version())
            vectors = found.vectors
            if nameless:  # the log has said where, if it still has that action
                raise CorruptFileError(f"{where}: its log adds a file without a path")
            actions = actions.filter(pa.array(found.live(spelt_paths, where), pa.bool_()))
        mode = _mapping_mode(table, where)
        values = [_typed(actions, f"partition.{f.name}", f.type) for f in folders]
        for i, field in enumerate(folders):
            if f"partition.{field.name}" in actions.column_names and _is_doubtful(values[i]):
                own = next(one for one in told["fields"] if one["name"] == field.name)
                name = field.name if mode == "none" else own["metadata"][PHYSICAL_NAME]
                values[i] = _spelt(
                    actions, log.replay(table.version(), actions=True), name, field.type
                )
        shared: dict[Any, Partitions] = {}
        signed = any(pa.types.is_floating(f.type) for f in folders)
        sources = []
        for i, spelt in enumerate(actions["path"].to_pylist()):
            path = unquote(spelt)
            said = tuple([(f.name, column[i]) for f, column in zip(folders, values, strict=True)])
            # -0.0 equals 0.0, and is spelt otherwise
            said = shared.setdefault(repr(said) if signed else said, said)
            deletes: tuple[Deletes, ...] = ()
            if path in vectors:
                deletes = (deletion_vector(vectors[path], folder, base, places, where),)
            if spelt.startswith("/") and base.filesystem is not None:
                raise UnsupportedError(f"{where}: {spelt!r} does not say which store it lies in")
            if spelt.startswith("/"):
                path = os.path.normpath(path)
                sources.append(Source(path, partitions=said, deletes=deletes, table=where))
            elif is_absolute(spelt):
                sources.append(replace(places.source(spelt, said), deletes=deletes))
            else:
                files = base.filesystem
                path = folder + path
                sources.append(Source(path, files, None, said, retry_policy, deletes, where))
        what = f"Delta Lake table {shown_path(shown)}: version {table.version()}"
        mapped = () if mode == "none" else _mapped(told, mode == "id")
        bounds = delta_bounds(actions, schema, told["fields"], mode != "none")
        paths = tuple(actions["path"].to_pylist())
    return Table(
        tuple(sources), schema, folders, mapped, what=what, bounds=bounds, spelt=paths, root=base, version=table.version(), variants=variants,
    )  # fmt: skip


def version_then(
    table: Any, moment: dt.datetime, options: Mapping[str, Any] | None, retry_policy: RetryPolicy
) -> int:
    """The version of a table that was current at a moment. `deltalake` 1.6 does not know the times that commits have themselves."""
    log = log_of(table, options, retry_policy)
    return version_at(moment, log.modified(), log.read, f"Delta table {table.table_uri}")


def log_of(table: Any, options: Mapping[str, Any] | None, retry_policy: RetryPolicy) -> DeltaLog:
    """The log of an object, as it is now."""
    where = f"Delta table {table.table_uri}"
    if options is None:
        options = delta_options(getattr(table, "_storage_options", None))
    places = Places(where, lambda _: options, retry_policy)
    return DeltaLog(places.source(str(table.table_uri).rstrip("/"), ()), where)


def _is_spelt_twice(table: Any, added: pa.ChunkedArray, log: DeltaLog) -> bool:
    """Whether the log may have a file of the table by two spellings of its path: `deltalake` compares paths as they are spelt."""
    removed = _removed(table, log)
    if not (any_odd(added) or any_odd(removed)):
        return False
    kept: dict[str, str] = {}
    for path in added.to_pylist():
        if kept.setdefault(log.spelling.of(path), path) != path:
            return True
    return any(kept.get(log.spelling.of(path), path) != path for path in removed)


def _removed(table: Any, log: DeltaLog) -> list[str]:
    """The paths that the log of the table's version removes. They are read once for each object."""
    key, version = id(table), table.version()
    known = _removes.get(key)
    if known is None or known[0]() is not table or known[1] != version:
        seen = weakref.ref(table, lambda _: _removes.pop(key, None))
        known = _removes[key] = seen, version, log.removes(version)
    return known[2]


def _mapped(kind: Any, by_ids: bool) -> tuple[TableField, ...]:
    """The fields of a type of the log's schema (Delta protocol, Schema Serialization Format and Column Mapping): by their ids, or
    by the names that they have in files.
    """
    if not isinstance(kind, Mapping):
        return ()
    if kind["type"] == "array":
        return (TableField("element", -1, (), _mapped(kind["elementType"], by_ids)),)
    if kind["type"] == "map":
        key, value = (_mapped(kind[name], by_ids) for name in ("keyType", "valueType"))
        return TableField("key", -1, (), key), TableField("value", -1, (), value)
    made = []
    for field in kind["fields"]:
        told, name = field.get("metadata", {}), field["name"]
        inside = _mapped(field["type"], by_ids)
        if by_ids:
            made.append(TableField(name, int(told[f"{_MAPPING}.id"]), (), inside))
        else:
            own = told.get(f"{_MAPPING}.physicalName", name)
            made.append(TableField(name, -1, (own,), inside))
    return tuple(made)


def _refuse_features(table: Any, where: str) -> None:
    features = set(table.protocol().reader_features or ())
    unknown = sorted(features - _DELTA_FEATURES)
    if unknown:
        raise UnsupportedError(f"{where}: its readers have to know {', '.join(unknown)}")


def _mapping_mode(table: Any, where: str) -> str:
    """By what files have the columns: `none`, `name` or `id`. Only tables with the feature have it (Column Mapping)."""
    protocol = table.protocol()
    mode = str(dict(table.metadata().configuration).get(f"{_MAPPING}.mode", "none"))
    if protocol.min_reader_version != 2 and _MAPS not in (protocol.reader_features or ()):
        return "none"
    if mode not in ("none", "name", "id"):
        raise UnsupportedError(f"{where}: {_MAPPING}.mode={mode!r} is not known here")
    return mode


def _is_doubtful(values: Sequence[pa.Scalar]) -> bool:
    kind = values[0].type if values else None
    return kind in (pa.string(), pa.binary()) and any_doubtful(pa.array(values).cast(pa.string()))


def _spelt(actions: pa.Table, found: Replayed, name: str, kind: pa.DataType) -> Sequence[pa.Scalar]:
    """The values of a partition column of text or bytes, as the log spells them."""
    made = []
    for path in actions["path"].to_pylist():
        text = found.added[unquote(path)]["partitionValues"].get(name)
        made.append(
            pa.scalar(text.encode() if text and kind == pa.binary() else text or None, kind)
        )
    return made


def _typed(actions: pa.Table, name: str, kind: pa.DataType) -> Sequence[pa.Scalar]:
    if name not in actions.column_names:  # every file has null there
        return [pa.scalar(None, kind)] * len(actions)
    column = actions[name]
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    return list(column.cast(kind))
