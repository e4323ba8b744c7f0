"""The manifests of a snapshot of an Iceberg table (Iceberg specification, Manifest Lists and Snapshots).

`pyiceberg` reads the Avro files, whose fields it wants as version 2 has them. Version 1, which tables keep that were upgraded, may leave
out counts, and may list the manifests in the snapshot itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

_PATH, _SPEC, _PARTITIONS = 500, 502, 508  # ids of fields
_NEEDED = _PATH, _SPEC
_LIST_VERSION = 2  # of a record of pyiceberg
_SPEC_OF_FIRST = "0"  # in a manifest that does not name its partitions


def manifests_of(snapshot: Any, io: Any, inline: Sequence[str] | None) -> list[Any]:
    """The manifests of a snapshot, as pyiceberg has them. `inline`: their paths, if the snapshot has no list of them."""
    if inline is None:
        return _listed(str(snapshot.manifest_list), io)
    return [_inline(path, snapshot, io) for path in inline]


def _listed(path: str, io: Any) -> list[Any]:
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
    records: Any = AvroFile(io.new_input(path), Schema(*fields), read_types=kinds)
    with records as opened:
        return list(opened)


def _inline(path: str, snapshot: Any, io: Any) -> Any:
    """A manifest of data: version 1 has no others."""
    from pyiceberg.avro.file import AvroFile
    from pyiceberg.manifest import ManifestContent, ManifestFile

    made: Any = AvroFile(io.new_input(path))
    with made as opened:
        spec = int(opened.header.meta.get("partition-spec-id", _SPEC_OF_FIRST))
    return ManifestFile.from_args(
        manifest_path=path, manifest_length=0, partition_spec_id=spec, content=ManifestContent.DATA, sequence_number=0,
        min_sequence_number=0, added_snapshot_id=snapshot.snapshot_id,
    )  # fmt: skip
