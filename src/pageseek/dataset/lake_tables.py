"""Tables of Delta Lake and Iceberg: the files with their rows, the values of their partitions, and their columns.

Their objects are used by their public methods; neither package is imported here.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from urllib.parse import unquote, urlsplit
from uuid import UUID

import pyarrow as pa

from pageseek.base.errors import PageseekError, UnsupportedError
from pageseek.base.records import dataclass
from pageseek.dataset.lake_places import Places, delta_options, iceberg_places
from pageseek.storage.hive import Partitions
from pageseek.storage.redact import cleaned, secrets_of, shown_path
from pageseek.storage.resolve import DEFAULT_RETRY, Source
from pageseek.storage.retry import RetryPolicy

# features that readers must know: we do, or they change nothing in how files are read
_DELTA_FEATURES = frozenset(
    ("columnMapping", "deletionVectors", "timestampNtz", "typeWidening", "typeWidening-preview",
     "v2Checkpoint", "vacuumProtocolCheck")
)  # fmt: skip
ColumnId = tuple[str, int, tuple[str, ...]]  # name, field id, names in files that have no ids


@dataclass(frozen=True, slots=True)
class Table:
    """The files of one version of a table, and how they are read. `ids`: the field ids of its columns, if files have them."""

    sources: tuple[Source, ...]
    schema: pa.Schema
    folders: pa.Schema
    ids: tuple[ColumnId, ...] = ()
    # names of files -> fields inside of columns whose values the partition has: path, field id
    inside: tuple[tuple[str, tuple[tuple[str, int], ...]], ...] = ()
    what: str = ""  # the table and its version, as `explain` names them


def table_of_lake(
    source: Any, options: Mapping[str, Any] | None = None, retry_policy: RetryPolicy = DEFAULT_RETRY
) -> Table | None:
    """What a `deltalake.DeltaTable`, or a table or scan of `pyiceberg`, says; None for other objects.

    `options`: of the store that has its files; None: those of the object.

    Raises
    ------
    UnsupportedError
        Rows are deleted by vectors or delete files, or the table has a feature that is not known here, or its package
        cannot read it.
    """
    room = type(source).__module__.partition(".")[0]
    if room == "deltalake" and hasattr(source, "get_add_actions"):
        return delta_table(source, options, retry_policy)
    if room == "pyiceberg":
        with foreign("Iceberg table", room, ()):
            scan = source.scan() if hasattr(source, "scan") else source
        if hasattr(scan, "plan_files"):
            metadata, io = getattr(scan, "table_metadata", None), getattr(scan, "io", None)
            where = "Iceberg table" if metadata is None else f"Iceberg table {metadata.location}"
            return iceberg_table(scan, iceberg_places(where, io, options, retry_policy), where)
    return None


@contextmanager
def foreign(
    where: str, package: str, secrets: Iterable[str], remedy: str = "", hidden: str = ""
) -> Iterator[None]:
    """Turn errors of a table's package into ours; those of the system stay. `hidden`: a text that is left out of them."""
    try:
        yield
    except (PageseekError, OSError):
        raise
    except BaseException as error:
        # a panic in Rust is no Exception
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        text = str(error).replace(hidden, "") if hidden else str(error)
        said = cleaned(text, secrets) or type(error).__name__
        raise UnsupportedError(
            f"{where}: {package} cannot tell which files it has: {said}{remedy}"
        ) from None


# -- Delta Lake -----------------------------------------------------------------------------------


def delta_table(
    table: Any,
    options: Mapping[str, Any] | None,
    retry_policy: RetryPolicy,
    root: Source | None = None,
    shown: str | None = None,
    copied: bool = False,
) -> Table:
    """What a `deltalake.DeltaTable` says.

    `root`: its folder, if the table was opened for that, and `shown` the name of the folder. `copied`: it was opened by a
    copy of the log alone.
    """
    shown = str(table.table_uri) if shown is None else shown
    where = f"Delta table {shown}"
    told = secrets_of(dict(getattr(table, "_storage_options", None) or options or {}))
    with foreign(where, "deltalake", told):
        _refuse_features(table, where, copied)
        fields = table.schema()
        schema = pa.schema(
            fields.to_arrow() if hasattr(fields, "to_arrow") else fields.to_pyarrow()
        )
        schema = pa.schema([pa.field(f.name, _plain(f.type), f.nullable) for f in schema])
        folders = pa.schema([schema.field(key) for key in table.metadata().partition_columns])
        if options is None:
            options = delta_options(getattr(table, "_storage_options", None))
        places = Places(where, lambda _: options, retry_policy)
        base = places.source(str(table.table_uri).rstrip("/"), ()) if root is None else root
        folder = base.path.rstrip("/") + "/"
        if base.filesystem is None:
            folder = base.path.rstrip(os.sep) + os.sep
        elif root is None or not base.path:
            folder = folder.lstrip("/")
        actions = pa.table(table.get_add_actions(flatten=True))
        values = [_typed(actions, f"partition.{f.name}", f.type) for f in folders]
        shared: dict[Partitions, Partitions] = {}
        sources = []
        for i, path in enumerate(actions["path"].to_pylist()):
            path = unquote(path)  # as the log spells it
            said = tuple([(f.name, column[i]) for f, column in zip(folders, values, strict=True)])
            said = shared.setdefault(said, said)
            if urlsplit(path).scheme:
                sources.append(places.source(path, said))
            else:
                sources.append(Source(folder + path, base.filesystem, None, said, retry_policy))
        what = f"Delta Lake table {shown_path(shown)}: version {table.version()}"
    return Table(tuple(sources), schema, folders, what=what)


def _refuse_features(table: Any, where: str, copied: bool) -> None:
    features = set(table.protocol().reader_features or ())
    unknown = sorted(features - _DELTA_FEATURES)
    if unknown:
        raise UnsupportedError(f"{where}: its readers have to know {', '.join(unknown)}")
    mode = dict(table.metadata().configuration).get("delta.columnMapping.mode", "none")
    if mode != "none":
        raise UnsupportedError(f"{where}: column mapping by {mode} is not supported")
    if "deletionVectors" in features:
        _refuse_vectors(table, where, copied)


def _typed(actions: pa.Table, name: str, kind: pa.DataType) -> Sequence[pa.Scalar]:
    if name not in actions.column_names:  # every file has null there
        return [pa.scalar(None, kind)] * len(actions)
    column = actions[name]
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    return list(column.cast(kind))


def _refuse_vectors(table: Any, where: str, copied: bool) -> None:
    listed = getattr(table, "deletion_vectors", None)
    if listed is None:
        raise UnsupportedError(
            f"{where}: it may have deletion vectors, which this version of deltalake does not tell of"
        )
    many = "some"
    try:
        found = listed()
        rows = sum(batch.num_rows for batch in pa.RecordBatchReader.from_stream(found))
        many = str(rows)
    except Exception:
        if not copied:
            raise
        rows = 1  # there are some: their files were looked for, and are missing beside a copied log
    if rows:
        raise UnsupportedError(
            f"{where}: {many} of its files have deletion vectors, which are not supported: "
            "purge them (REORG TABLE ... APPLY (PURGE))"
        )


# -- Iceberg --------------------------------------------------------------------------------------


def iceberg_table(scan: Any, places: Places, where: str, version: str = "") -> Table:
    """What a scan of `pyiceberg` says. `where`: the table, in errors. `version`: the file of its metadata, for `explain`."""
    told = dict(getattr(getattr(scan, "io", None), "properties", None) or {})
    with foreign(where, "pyiceberg", secrets_of(told)):
        return _iceberg(scan, places, where, version)


def _iceberg(scan: Any, places: Places, where: str, version: str) -> Table:
    metadata = getattr(scan, "table_metadata", None)
    if getattr(scan, "limit", None) is not None or type(scan.row_filter).__name__ != "AlwaysTrue":
        raise UnsupportedError(
            f"{where}: the scan has a filter or a limit of its own; give them to pageseek instead"
        )
    projected = scan.projection()
    arrow = projected.as_arrow()
    schema = pa.schema([f.with_type(_plain(f.type)) for f in arrow])
    mapping = metadata.name_mapping() if metadata is not None else None
    aliases = {field.field_id: tuple(field.names) for field in mapping or ()}
    ids = []
    for field in projected.fields:
        if getattr(field, "initial_default", None) is not None:
            raise UnsupportedError(
                f"{where}: column {field.name!r} has a default for files without it, which is not supported"
            )
        ids.append((field.name, field.field_id, aliases.get(field.field_id, ())))
    names = {number: name for name, number, _ in ids}
    specs = metadata.specs() if metadata is not None else {}
    shared: dict[Any, Partitions] = {}
    sources, folders = [], {}
    inside: dict[str, tuple[tuple[str, int], ...]] = {}
    for task in scan.plan_files():
        file = task.file
        if task.delete_files:
            raise UnsupportedError(
                f"{where}: rows of {file.file_path} are deleted by delete files, which are not supported: "
                "rewrite its data files (rewrite_data_files)"
            )
        if file.file_format.name != "PARQUET":
            raise UnsupportedError(f"{where}: {file.file_path} is {file.file_format.name}")
        said: Partitions = ()
        nested: list[tuple[str, int]] = []
        spec = specs.get(file.spec_id)
        for place, field in enumerate(spec.fields if spec is not None else ()):
            if str(field.transform) != "identity":
                continue
            name = names.get(field.source_id)
            if name is None:
                path = projected.find_column_name(field.source_id)
                if path is not None and file.partition[place] is not None:
                    nested.append((path, field.source_id))
                continue
            kind = schema.field(name).type
            told = file.partition[place]
            if kind == pa.float64() and told is not None:
                told = _unrounded(told, file, field.source_id)
            value = _value(told, kind, f"{file.file_path}: column {name!r}")
            said = (*said, (name, value))
            folders[name] = pa.field(name, kind)
        same = shared.setdefault(repr(said), said)  # -0.0 equals 0.0, and is spelt otherwise
        sources.append(places.source(file.file_path, same, encoded=False))
        if nested:
            inside[sources[-1].name] = tuple(nested)
    snapshot = _snapshot(scan, metadata)
    what = f"{where}: {version}{snapshot}"
    columns = pa.schema(list(folders.values()))
    return Table(tuple(sources), schema, columns, tuple(ids), tuple(inside.items()), what)


def _snapshot(scan: Any, metadata: Any) -> str:
    number = getattr(scan, "snapshot_id", None) or getattr(metadata, "current_snapshot_id", None)
    return "no snapshot" if number is None else f"snapshot {number}"


def _unrounded(value: float, file: Any, field: int) -> float:
    """A double for a partition, which pyiceberg's compiled decoder rounds to 32 bits; the bounds of the column have it whole."""
    low, high = ((of or {}).get(field) for of in (file.lower_bounds, file.upper_bounds))
    if low is None or low != high or len(low) != 8:
        return value
    whole: float = struct.unpack("<d", low)[0]
    return value if whole == value else whole  # it has the sign of a zero


def _value(value: Any, kind: pa.DataType, where: str) -> pa.Scalar:
    """The value of a partition for Arrow. Manifests have times as numbers, in the unit of their type."""
    t = pa.types
    try:
        if value is not None and (t.is_timestamp(kind) or t.is_time(kind)):
            value = int(value)
        elif isinstance(value, UUID):
            value = value.bytes
        if isinstance(kind, pa.BaseExtensionType):
            return pa.ExtensionScalar.from_storage(kind, pa.scalar(value, kind.storage_type))
        return pa.scalar(value, kind)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise UnsupportedError(
            f"{where}: its partition says {value!r}, which is no {kind}: {error}"
        ) from error


def _plain(kind: pa.DataType) -> pa.DataType:
    """A type with 32-bit offsets, as readers give it by default."""
    t = pa.types
    if t.is_large_string(kind) or kind == pa.string_view():
        return pa.string()
    if t.is_large_binary(kind) or kind == pa.binary_view():
        return pa.binary()
    if t.is_struct(kind):
        return pa.struct([f.with_type(_plain(f.type)) for f in kind])
    if t.is_map(kind):
        key, item = (f.with_type(_plain(f.type)) for f in (kind.key_field, kind.item_field))
        return pa.map_(key, item)
    if t.is_list(kind) or t.is_large_list(kind):
        return pa.list_(kind.value_field.with_type(_plain(kind.value_type)))
    return kind
