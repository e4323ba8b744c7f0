"""Tables of Iceberg, by the public methods of `pyiceberg`, which is not imported here."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

import pyarrow as pa

from pageseek.base.errors import UnsupportedError
from pageseek.datasets.deletes import Deletes, EqualityDeletes, KeyField
from pageseek.datasets.iceberg_bounds import iceberg_bounds
from pageseek.datasets.iceberg_files import DataFile, data_files
from pageseek.datasets.iceberg_metadata import NOTHING, Aside, is_geo
from pageseek.datasets.lake_places import Places
from pageseek.datasets.table_fields import TableField
from pageseek.datasets.table_files import Table, foreign, plain_type
from pageseek.storage.hive import Partitions
from pageseek.storage.redact import secrets_of
from pageseek.storage.resolve import Source

_IN_NO_FILE = -2  # the id of a field that is not read from files


def iceberg_table(
    scan: Any,
    places: Places,
    where: str,
    version: str = "",
    current: bool = False,
    aside: Aside = NOTHING,
) -> Table:
    """What a scan of `pyiceberg` says. `where`: the table, in errors. `version`: the file of its metadata, for `explain`.
    `current`: the columns are those that the table has now, whichever the snapshot had. `aside`: what pyiceberg does not know of it.
    """
    told = dict(getattr(getattr(scan, "io", None), "properties", None) or {})
    with foreign(where, "pyiceberg", secrets_of(told)):
        return _iceberg(scan, places, where, version, current, aside)


def _iceberg(
    scan: Any, places: Places, where: str, version: str, current: bool, aside: Aside
) -> Table:
    metadata = getattr(scan, "table_metadata", None)
    if getattr(scan, "limit", None) is not None or type(scan.row_filter).__name__ != "AlwaysTrue":
        raise UnsupportedError(
            f"{where}: the scan has a filter or a limit of its own; give them to pageseek instead"
        )
    projected = metadata.schema() if current and metadata is not None else scan.projection()
    arrow = projected.as_arrow()
    schema = pa.schema([f.with_type(plain_type(f.type)) for f in arrow])
    types = _types(projected, aside)
    mapping = metadata.name_mapping() if metadata is not None else None
    aliases = _aliases(mapping or ())
    fields = _fields(projected, list(arrow), aliases, where, aside)
    names = {field.id: field.name for field in fields}
    specs = metadata.specs() if metadata is not None else {}
    dates = _dates(metadata.schemas if metadata is not None else ())
    shared: dict[Any, Partitions] = {}
    sources, folders = [], {}
    inside: dict[str, tuple[tuple[str, int], ...]] = {}
    snapshot = scan.snapshot()

    def place(url: str) -> Source:
        return places.source(url, (), encoded=False)

    found: Sequence[DataFile] = ()
    if snapshot is not None:
        keys = _key_fields(metadata, names, aliases, where, aside)
        inline = aside.manifests.get(snapshot.snapshot_id)
        found = list(data_files(snapshot, scan.io, specs, keys, place, inline))
    for file, deletes in found:
        if file.file_format.name != "PARQUET":
            raise UnsupportedError(f"{where}: {file.file_path} is {file.file_format.name}")
        said: Partitions = ()
        nested: list[tuple[str, int]] = []
        unread: list[tuple[int, pa.Scalar]] = []
        by_values = any(isinstance(one, EqualityDeletes) for one in deletes)
        spec = specs.get(file.spec_id)
        for at, field in enumerate(spec.fields if spec is not None else ()):
            if str(field.transform) != "identity":
                continue
            name = names.get(field.source_id)
            if name is None:
                kind = _stored_type(metadata, field.source_id) if by_values else None
                days = field.source_id in dates and pa.types.is_timestamp(kind)
                if kind is not None and not days:
                    where_in = f"{file.file_path}: field {field.source_id}"
                    value = _value(file.partition[at], kind, where_in)
                    unread.append((field.source_id, value))
                path = projected.find_column_name(field.source_id)
                if path is not None and file.partition[at] is not None:
                    nested.append((path, field.source_id))
                continue
            kind = schema.field(name).type
            if field.source_id in dates and pa.types.is_timestamp(kind):
                raise UnsupportedError(
                    f"{where}: {file.file_path} lies in a partition of {name!r}, which became a timestamp from a date; the "
                    "specification does not allow that for a column of partitions"
                )
            value = _value(file.partition[at], kind, f"{file.file_path}: column {name!r}")
            said = (*said, (name, value))
            folders[name] = pa.field(name, kind)
        same = shared.setdefault(repr(said), said)  # -0.0 equals 0.0, and is spelt otherwise
        source = places.source(file.file_path, same, encoded=False)
        if unread:
            deletes = tuple([_saying(one, tuple(unread)) for one in deletes])
        sources.append(replace(source, deletes=deletes) if deletes else source)
        if nested:
            inside[sources[-1].name] = tuple(nested)
    what = f"{where}: {version}{_snapshot(scan, metadata)}"
    columns = pa.schema(list(folders.values()))
    bounds = iceberg_bounds([one.file for one in found], schema, fields, types)
    paths = tuple([one.file.file_path for one in found])
    return Table(
        tuple(sources),
        schema,
        columns,
        fields,
        tuple(inside.items()),
        what,
        bounds,
        paths,
        unread=tuple(_unread(fields, types)),
    )


def _stored_type(metadata: Any, number: int) -> pa.DataType | None:
    """The type of a field of any schema of a table, the newest one first."""
    for schema in reversed(metadata.schemas):
        if number in schema.field_ids:
            found: pa.DataType = type(schema)(schema.find_field(number)).as_arrow().field(0).type
            return found
    return None


def _saying(one: Deletes, said: tuple[tuple[int, pa.Scalar], ...]) -> Deletes:
    """Deletes of a data file, with what its partition says of fields that are not read."""
    return replace(one, said=said) if isinstance(one, EqualityDeletes) else one


def _aliases(mapping: Iterable[Any]) -> dict[int, tuple[str, ...]]:
    """The names of fields in files without ids, at any depth, by id (Iceberg specification, Name Mapping Serialization)."""
    found = {}
    for field in mapping:
        if field.field_id is not None:
            found[field.field_id] = tuple(field.names)
        found |= _aliases(field.fields)
    return found


def _types(schema: Any, aside: Aside) -> dict[int, str]:
    """The types of fields, by id, whose values are no binary, though pyiceberg has binary for them."""
    found = dict(aside.types)
    for number in schema.field_ids:
        kind = str(schema.find_type(number))
        if is_geo(kind):
            found[number] = kind
    return found


def _unread(
    fields: Iterable[TableField], types: Mapping[int, str], before: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], str]]:
    """The paths of fields of types that are not read, with these."""
    for one in fields:
        path = (*before, one.name)
        kind = types.get(one.id)
        if kind is not None and not is_geo(kind):
            yield path, kind
        yield from _unread(one.children, types, path)


def _fields(
    kind: Any,
    arrow: Sequence[pa.Field],
    aliases: Mapping[int, tuple[str, ...]],
    where: str,
    aside: Aside,
) -> tuple[TableField, ...]:
    """The fields inside a schema or a type of pyiceberg. `arrow`: the same of Arrow."""
    # a type has the field of its elements, of its keys and values, or fields
    inside = [getattr(kind, name, None) for name in ("element_field", "key_field", "value_field")]
    found = [field for field in inside if field is not None] or list(getattr(kind, "fields", ()))
    made = []
    for one, same in zip(found, arrow, strict=True):
        below = _fields(one.field_type, _inside(same.type), aliases, where, aside)
        default = aside.defaults.get(one.field_id, getattr(one, "initial_default", None))
        if default is not None and pa.types.is_struct(same.type):  # {}: its fields have their own
            default = {f.name: None if f.default is None else f.default.as_py() for f in below}
        if default is not None:
            default = _value(default, plain_type(same.type), f"{where}: default of {one.name!r}")
        number, names = one.field_id, aliases.get(one.field_id, ())
        if str(one.field_type) == "unknown":  # null, whatever a file has there
            number, names = _IN_NO_FILE, ()
        made.append(TableField(one.name, number, names, below, default))
    return tuple(made)


def _inside(kind: pa.DataType) -> list[pa.Field]:
    """The fields inside a type of Arrow."""
    if pa.types.is_map(kind):
        return [kind.key_field, kind.item_field]
    return [kind.field(at) for at in range(kind.num_fields)]


def _key_fields(
    metadata: Any,
    names: Mapping[int, str],
    aliases: Mapping[int, tuple[str, ...]],
    where: str,
    aside: Aside,
) -> dict[int, KeyField]:
    """The fields of all schemas of a table, by which rows may be deleted."""
    found: dict[int, KeyField] = {}

    def add(
        fields: Iterable[TableField],
        before: tuple[tuple[str, ...], ...],
        around: tuple[tuple[int, bool], ...],
    ) -> None:
        for one in fields:
            # a mapping that does not name a field says that files without ids lack it
            path = (*before, one.aliases or (() if aliases else (one.name,)))
            column = names.get(one.id)
            found[one.id] = KeyField(one.id, column or one.name, path, one.default, column, around)
            add(one.children, path, (*around, (one.id, one.default is not None)))

    for schema in metadata.schemas:
        add(_fields(schema, list(schema.as_arrow()), aliases, where, aside), (), ())
    return found


def _dates(schemas: Iterable[Any]) -> set[int]:
    """The ids of columns that are dates in some schema of a table: a manifest does not tell whether a number is days."""
    columns = [field for schema in schemas for field in schema.fields]
    return {field.field_id for field in columns if str(field.field_type) == "date"}


def _snapshot(scan: Any, metadata: Any) -> str:
    number = getattr(scan, "snapshot_id", None) or getattr(metadata, "current_snapshot_id", None)
    return "no snapshot" if number is None else f"snapshot {number}"


def _value(value: Any, kind: pa.DataType, where: str) -> pa.Scalar:
    """The value of a partition, or a default, for Arrow. Manifests have times as numbers, in the unit of their type."""
    t = pa.types
    try:
        if isinstance(value, dt.datetime | dt.time):  # of a default
            return pa.scalar(value, kind)
        if isinstance(value, str) and t.is_timestamp(kind):
            return pa.scalar(value).cast(kind)
        if value is not None and (t.is_timestamp(kind) or t.is_time(kind)):
            value = int(value)
        elif isinstance(value, UUID):
            value = value.bytes
        if isinstance(kind, pa.BaseExtensionType):
            return pa.ExtensionScalar.from_storage(kind, pa.scalar(value, kind.storage_type))
        return pa.scalar(value, kind)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise UnsupportedError(
            f"{where}: the table says {value!r}, which is no {kind}: {error}"
        ) from error
