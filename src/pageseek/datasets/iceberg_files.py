"""The data files of a snapshot of an Iceberg table, each with the deletes that apply to it (Iceberg specification, Scan Planning).

The manifests are read by `pyiceberg`, whose own planning knows neither equality deletes nor all deletion vectors.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from pageseek.base.errors import CorruptFileError, UnsupportedError
from pageseek.base.records import NamedTuple
from pageseek.datasets.deletes import (
    Deletes,
    DeletionVector,
    EqualityDeletes,
    KeyField,
    PositionDeletes,
)
from pageseek.datasets.iceberg_manifests import PlainTypes, manifests_of
from pageseek.storage.resolve import Source

SIDE_BY_SIDE = 16  # manifests that are read at a time
FRAME = 8  # bytes of the length and the checksum around a bitmap
_FILE_PATH = 2147483546  # the field of a position delete file that names data files
_DELETED = 2  # status of an entry
_MOST_FILES = (1 << 31) - 1  # of a manifest; a larger count is none
_STATUS_FIELD, _DATA_FIELD, _PARTITION_FIELD = 0, 2, 102
_POSITIONS, _EQUALITY = 1, 2  # content of a delete file
_VECTOR_FIELDS = "referenced_data_file", "content_offset", "content_size_in_bytes"

# where rows lie: the specification of a partition, and its values
_Where = tuple[int, tuple[str, ...]]


class DataFile(NamedTuple):
    """A data file, as pyiceberg has it, and the deletes of its rows."""

    file: Any
    deletes: tuple[Deletes, ...]


class _Entry(NamedTuple):
    """A live file of a manifest. `vector`: the data file, the offset and the size of a deletion vector, if the manifest has these."""

    file: Any
    sequence: int
    where: _Where
    content: int
    vector: tuple[str | None, int | None, int | None] = (None, None, None)


def data_files(
    snapshot: Any,
    io: Any,
    specs: Any,
    fields: dict[int, KeyField],
    place: Callable[[str], Source],
    inline: Sequence[str] | None = None,
) -> Iterator[DataFile]:
    """The data files of a snapshot.

    Parameters
    ----------
    specs : mapping
        The specifications of partitions, by number.
    fields : dict of int to KeyField
        The fields of the table, also those of older schemas, by id.
    place : callable
        The file of a URL.
    inline : sequence of str, optional
        The manifests, if the snapshot has no list of them.
    """
    data: list[_Entry] = []
    deletes: list[_Entry] = []
    io = PlainTypes(io)
    manifests = manifests_of(snapshot, io, inline)
    with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        for manifest, entries in zip(
            manifests, pool.map(lambda one: list(_entries(one, io)), manifests), strict=True
        ):
            said = (manifest.added_files_count or 0) + (manifest.existing_files_count or 0)
            if len(entries) < said <= _MOST_FILES:  # pyiceberg takes a cut file for a short one
                raise CorruptFileError(
                    f"{manifest.manifest_path}: the manifest has {len(entries)} files, and {said} by the manifest list: it was "
                    "cut or changed; restore it, or read an older snapshot"
                )
            (deletes if int(manifest.content or 0) else data).extend(entries)
    paths = {entry.file.file_path for entry in data}
    found = _Deletes(deletes, paths, specs, fields, place)
    for entry in data:
        yield DataFile(entry.file, found.of(entry))


def _entries(manifest: Any, io: Any) -> Iterator[_Entry]:
    entries = manifest.fetch_manifest_entry(io)
    vectors: Sequence[Any] = [(None, None, None)] * len(entries)
    if any(_format(entry.data_file) == "PUFFIN" for entry in entries):
        vectors = list(_vectors(manifest, io))
    exact: Sequence[Any] = [None] * len(entries)
    if any(isinstance(one, float) for entry in entries for one in _partition(entry.data_file)):
        exact = list(_exact_partitions(manifest, io))
    for entry, vector, partition in zip(entries, vectors, exact, strict=True):
        file = entry.data_file
        for at, value in enumerate(partition or ()):
            file.partition[at] = value
        values = [repr(one) for one in _partition(file)]
        where = file.spec_id, tuple(values)
        yield _Entry(file, entry.sequence_number or 0, where, int(file.content), vector)


def _partition(file: Any) -> list[Any]:
    """The values of the partition of a file."""
    return [file.partition[at] for at in range(len(file.partition))]


def _exact_partitions(manifest: Any, io: Any) -> Iterator[list[Any]]:
    """The partitions of the live files of a manifest: pyiceberg's compiled decoder rounds doubles to 32 bits, its other one does not."""
    from pyiceberg.avro.decoder import StreamingBinaryDecoder
    from pyiceberg.avro.file import AvroFile

    made: Any = AvroFile(io.new_input(manifest.manifest_path))
    with made as opened:
        ids = [field.field_id for field in opened.schema.fields]
        status, data = ids.index(_STATUS_FIELD), ids.index(_DATA_FIELD)
        inside = opened.schema.fields[data].field_type.fields
        partition = [field.field_id for field in inside].index(_PARTITION_FIELD)
        codec, blocks = opened.header.compression_codec(), opened.decoder
        while True:
            try:
                count = blocks.read_int()
            except EOFError:
                return
            block = blocks.read_bytes()
            values = StreamingBinaryDecoder(block if codec is None else codec.decompress(block))
            for _ in range(count):
                entry = opened.reader.read(values)
                if entry[status] != _DELETED:
                    found = entry[data][partition]
                    yield [found[at] for at in range(len(found))]
            blocks.read(len(opened.header.sync))


def _format(file: Any) -> str:
    return str(getattr(file.file_format, "name", file.file_format))


def _vectors(manifest: Any, io: Any) -> Iterator[tuple[Any, ...]]:
    """What a manifest says of its deletion vectors, which pyiceberg leaves out of its records."""
    from pyiceberg.avro.file import AvroFile
    from pyiceberg.manifest import MANIFEST_ENTRY_SCHEMAS

    schema: Any = MANIFEST_ENTRY_SCHEMAS[3]
    names = [field.name for field in schema.fields]
    inside = [field.name for field in schema.find_field(2).field_type.fields]
    records: Any = AvroFile(io.new_input(manifest.manifest_path), schema)
    with records as opened:
        for record in opened:
            entry = dict(zip(names, record, strict=True))
            if entry["status"] != _DELETED:
                told = dict(zip(inside, entry["data_file"], strict=True))
                yield tuple(told[name] for name in _VECTOR_FIELDS)


class _Deletes:
    """The delete files of a snapshot, by what they may apply to."""

    def __init__(
        self,
        entries: Iterable[_Entry],
        paths: Collection[str],
        specs: Any,
        fields: dict[int, KeyField],
        place: Callable[[str], Source],
    ) -> None:
        self._fields, self._place = fields, place
        self._vectors: dict[str, list[_Entry]] = {}
        self._of_files: dict[str, list[_Entry]] = {}  # deletes by position in one data file
        self._positions: dict[_Where, list[_Entry]] = {}  # in several
        self._equality: dict[_Where | None, list[_Entry]] = {}  # None: in the whole table
        for entry in entries:
            file, path = entry.file, entry.vector[0] or _only_path(entry.file)
            kind = _format(file)
            if entry.content == _EQUALITY:
                where = None if is_unpartitioned(specs.get(file.spec_id)) else entry.where
                self._equality.setdefault(where, []).append(entry)
            elif kind == "PUFFIN":
                if path is None:
                    raise CorruptFileError(
                        f"{file.file_path}: the manifest does not say of which file this deletion vector is"
                    )
                self._vectors.setdefault(path, []).append(entry)
            elif path is not None and path in paths:
                self._of_files.setdefault(path, []).append(entry)
            else:
                self._positions.setdefault(entry.where, []).append(entry)
            if kind not in ("PUFFIN", "PARQUET"):
                raise UnsupportedError(
                    f"{file.file_path}: deletes in a file of {kind} are not supported"
                )

    def of(self, data: _Entry) -> tuple[Deletes, ...]:
        """The deletes that apply to a data file."""
        path = data.file.file_path
        found: list[Deletes] = []
        vectors = [one for one in self._vectors.get(path, ()) if one.sequence >= data.sequence]
        if len(vectors) > 1:
            names = " and ".join(sorted(one.file.file_path for one in vectors[:2]))
            raise CorruptFileError(f"{path}: the table has several deletion vectors of it: {names}")
        if vectors:  # it has the deletes by position of before, too
            found.append(self._vector(vectors[0]))
        else:
            positions = [*self._of_files.get(path, ()), *self._positions.get(data.where, ())]
            found += [
                PositionDeletes(self._place(one.file.file_path), path)
                for one in positions
                if one.sequence >= data.sequence and one.where == data.where
            ]
        values = [*self._equality.get(None, ()), *self._equality.get(data.where, ())]
        found += [self._values(one) for one in values if one.sequence > data.sequence]
        return tuple(found)

    def _vector(self, entry: _Entry) -> DeletionVector:
        file = entry.file
        _, offset, size = entry.vector
        if offset is None or size is None:
            offset, size = 0, file.file_size_in_bytes
        return DeletionVector(
            self._place(file.file_path), offset, size - FRAME, None, file.record_count
        )

    def _values(self, entry: _Entry) -> EqualityDeletes:
        file = entry.file
        fields = []
        for number in file.equality_ids or ():
            if number not in self._fields:
                raise CorruptFileError(
                    f"{file.file_path}: it deletes by the field {number}, which no schema of the table has"
                )
            fields.append(self._fields[number])
        if not fields:
            raise CorruptFileError(
                f"{file.file_path}: the manifest does not say by which fields it deletes"
            )
        return EqualityDeletes(self._place(file.file_path), tuple(fields))


def is_unpartitioned(spec: Any) -> bool:
    """Whether a specification of partitions, if it is known, has none left: fields that were removed stay as `void` in version 1."""
    return spec is not None and all(str(field.transform) == "void" for field in spec.fields)


def _only_path(file: Any) -> str | None:
    """The data file of deletes by position, where all are of one, as the bounds of the paths say."""
    if int(file.content) != _POSITIONS:
        return None
    low, high = ((of or {}).get(_FILE_PATH) for of in (file.lower_bounds, file.upper_bounds))
    if low is None or low != high:
        return None
    return bytes(low).decode(errors="replace")
