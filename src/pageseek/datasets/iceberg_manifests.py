"""The manifests of a snapshot of an Iceberg table (Iceberg specification, Manifest Lists and Snapshots).

`pyiceberg` reads the Avro files, whose fields it wants as version 2 has them. Version 1, which tables keep that were upgraded, may leave
out counts, and may list the manifests in the snapshot itself. Version 3 has types that pyiceberg does not know there.
"""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from typing import Any

from pageseek.base.records import NamedTuple

_PATH, _SPEC, _PARTITIONS = 500, 502, 508  # ids of fields
_NEEDED = _PATH, _SPEC
_LIST_VERSION = 2  # of a record of pyiceberg
_SPEC_OF_FIRST = "0"  # in a manifest that does not name its partitions
_SCHEMA = b"avro.schema"

# a type that pyiceberg does not know is the number that it is made of: the names have the same length
_UNKNOWN = re.compile(rb'"logicalType"(\s*:\s*"timestamp-nanos")')
_PLAIN = rb'"plainNumber"\1'


class PlainTypes:
    """The files of a table, of which manifests have types that pyiceberg knows."""

    def __init__(self, files: Any) -> None:
        self._files = files

    def new_input(self, location: str) -> _Input:
        """A file, by its URL in the table."""
        return _Input(self._files.new_input(location))


class _Input(NamedTuple):
    file: Any

    def open(self, seekable: bool = True) -> io.BytesIO:
        """The file, whole."""
        with self.file.open() as opened:
            data = opened.read()
        start, end = _schema(data)
        known = _UNKNOWN.sub(_PLAIN, data[start:end])
        return io.BytesIO(data[:start] + known + data[end:] if known != data[start:end] else data)


def _schema(data: bytes) -> tuple[int, int]:
    """Where the schema of an Avro file begins and ends: behind its key and its length, seven bits a byte, the lowest first."""
    at = data.find(_SCHEMA)
    if at < 0:
        return 0, 0
    at += len(_SCHEMA)
    length = shift = 0
    while at < len(data) and shift < 63:
        length |= (data[at] & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if data[at - 1] < 0x80:
            break
    return at, at + (length >> 1)  # of a length the sign is the lowest bit


def manifests_of(snapshot: Any, files: Any, inline: Sequence[str] | None) -> list[Any]:
    """The manifests of a snapshot, as pyiceberg has them. `inline`: their paths, if the snapshot has no list of them."""
    if inline is None:
        return _listed(str(snapshot.manifest_list), files)
    return [_inline(path, snapshot, files) for path in inline]


def _listed(path: str, files: Any) -> list[Any]:
    """The manifests of a list. All but the path and the partitions of a manifest may be absent: it defaults to 0, or is not known."""
    from pyiceberg.avro.file import AvroFile
    from pyiceberg.manifest import MANIFEST_LIST_FILE_SCHEMAS, ManifestFile, PartitionFieldSummary
    from pyiceberg.schema import Schema

    wanted = MANIFEST_LIST_FILE_SCHEMAS[_LIST_VERSION].fields
    fields = [
        one if one.field_id in _NEEDED else one.model_copy(update={"required": False})
        for one in wanted
    ]
    kinds: Any = {-1: ManifestFile, _PARTITIONS: PartitionFieldSummary}
    records: Any = AvroFile(files.new_input(path), Schema(*fields), read_types=kinds)
    with records as opened:
        return list(opened)


def _inline(path: str, snapshot: Any, files: Any) -> Any:
    """A manifest of data: version 1 has no others."""
    from pyiceberg.avro.file import AvroFile
    from pyiceberg.manifest import ManifestContent, ManifestFile

    made: Any = AvroFile(files.new_input(path))
    with made as opened:
        spec = int(opened.header.meta.get("partition-spec-id", _SPEC_OF_FIRST))
    make: Any = getattr(ManifestFile, "from_args", ManifestFile)  # before 0.10 by a call
    return make(
        manifest_path=path, manifest_length=0, partition_spec_id=spec, content=ManifestContent.DATA, sequence_number=0,
        min_sequence_number=0, added_snapshot_id=snapshot.snapshot_id, added_files_count=None, existing_files_count=None,
    )  # fmt: skip
