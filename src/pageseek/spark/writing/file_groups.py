"""The files of a folder in groups, each of which a task can rewrite: of one folder and one schema, and about so many bytes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from itertools import groupby
from typing import Any

from pageseek.base.errors import UnsupportedError
from pageseek.base.records import NamedTuple
from pageseek.base.report import Report
from pageseek.datasets.legacy_calendar import legacy_values
from pageseek.datasets.sources import files_of
from pageseek.format.file_metadata import FileMetadata
from pageseek.format.types import INT96
from pageseek.index.table_target import refuse_inside
from pageseek.spark.columns.row_metadata import KEY
from pageseek.spark.session.settings import INT96_CONVERSION, Settings
from pageseek.spark.writing.asked_indexes import AT_ONCE
from pageseek.spark.writing.commit import FileVersion
from pageseek.spark.writing.optimize_task import bucket_of
from pageseek.storage import Source
from pageseek.storage.output_folders import OutputFolder

OF_SPARK = b"org.apache.spark."  # keys of footers by which Spark reads values
NO_COMMIT = (
    "optimize does not commit to tables: pageseek.rewrite(TABLE, in_place=True) does, in one process; or write to a place outside of "
    "the table (pageseek.rewrite(source, output))"
)


class Listed(NamedTuple):
    """A file. `name`: below the folder. `kind`: equal for files that may be written together."""

    name: str
    source: Source
    version: FileVersion
    kind: tuple[Any, ...]
    int96: bool

    @property
    def bytes(self) -> int:
        """Its size."""
        return self.version[0]


def refuse_table(path: Any) -> None:
    """Raise UnsupportedError where a path is the object of a table, and TypeError where it is no folder."""
    package = type(path).__module__.partition(".")[0]
    if package in ("deltalake", "pyiceberg"):
        raise UnsupportedError(f"{type(path).__name__} of {package}: {NO_COMMIT}")
    if isinstance(path, list | bytes | bytearray | memoryview):
        raise TypeError(f"optimize: one folder is wanted, not {type(path).__name__}")


def names_of(path: Any, storage_options: Any, folder: OutputFolder) -> list[str]:
    """The Parquet files of a folder, as scans see them, in the order of their names below it.

    Raises
    ------
    FileNotFoundError
        There are none.
    UnsupportedError
        The folder is a table of Delta Lake or Iceberg, or is or has a folder of one; or a stream of Spark writes to it.
    ValueError
        It is no folder.
    """
    refuse_inside(folder.source("part.parquet"), NO_COMMIT)
    found = files_of(path, storage_options)
    if found.table is not None:
        raise UnsupportedError(f"{', '.join(found.origin.notes)}: {NO_COMMIT}")
    made = [_below(folder, source.path) for source in found.files]
    if None in made:
        raise ValueError(
            f"{folder.name}: optimize takes one folder; for a single file call pageseek.rewrite(file, in_place=True)"
        )
    return [name for name in made if name is not None]


def _below(folder: OutputFolder, path: str) -> str | None:
    """The name of a file below a folder; None: it does not lie there."""
    if folder.far:
        path, root = path.lstrip("/"), f"{folder.path.strip('/')}/".lstrip("/")
    else:
        path, root = path.replace(os.sep, "/"), f"{folder.path.replace(os.sep, '/').rstrip('/')}/"
    return path[len(root) :] if path.startswith(root) and len(path) > len(root) else None


def listed(
    folder: OutputFolder,
    names: Sequence[str],
    settings: Settings,
    max_metadata_bytes: int,
    step: Callable[[], None],
) -> list[Listed]:
    """The files with their versions and kinds. All footers are read; `step` is called after each.

    Raises
    ------
    CorruptFileError
        A footer cannot be read.
    UnsupportedError
        INT64 timestamps could not have the meaning of the INT96 ones of a file.
    """
    moved = settings.is_true(INT96_CONVERSION)
    made = []
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for one in pool.map(lambda name: _opened(folder, name, moved, max_metadata_bytes), names):
            made.append(one)
            step()
    return made


def _opened(folder: OutputFolder, name: str, moved: bool, max_metadata_bytes: int) -> Listed:
    source = folder.source(name)
    with closing(FileMetadata(source, source.open(), Report(), max_metadata_bytes)) as file:
        pairs = file.key_value_metadata
        int96 = tuple([leaf.name for leaf in file.leaves if leaf.element.type == INT96])
        if int96:
            _check_calendar(file, int96[0], moved)
        of_spark = tuple(sorted((k, v) for k, v in pairs.items() if k.startswith(OF_SPARK)))
        schema = file.schema.remove_metadata().serialize().to_pybytes()
        version = file.store.version
        return Listed(
            name, source, (version.size, version.tag), (schema, of_spark, int96), bool(int96)
        )


def _check_calendar(file: FileMetadata, column: str, moved: bool) -> None:
    """Raise UnsupportedError where Spark reads INT96 timestamps of a file otherwise than it would read INT64 ones."""
    pairs = file.key_value_metadata
    legacy = legacy_values(pairs)
    if legacy is not None and legacy[0] != legacy[1]:
        raise UnsupportedError(
            f"{file.name}: column {column!r} has INT96 timestamps in {'the old calendar' if legacy[1] else 'the calendar of today'}, and "
            "INT64 ones would be in the other: rewrite it by spark.read.parquet and pageseek.spark.write"
        )
    if moved and KEY not in pairs and not (file.created_by or "").startswith("parquet-mr"):
        raise UnsupportedError(
            f"{file.name}: column {column!r} has INT96 timestamps, which {INT96_CONVERSION} moves by the session's zone: set it "
            "to false if they are in UTC"
        )


def groups_of(files: Sequence[Listed], group_bytes: int) -> Iterator[list[Listed]]:
    """The files of each folder, bucket and kind, in the order of their names, in groups of about equal bytes, near to
    `group_bytes`. A file is never divided.
    """
    kinds: dict[tuple[Any, ...], int] = {}

    def place(file: Listed) -> tuple[str, str, int]:
        kind = kinds.setdefault(file.kind, len(kinds))
        return file.name.rpartition("/")[0], bucket_of(file.name), kind

    ordered = sorted(files, key=lambda file: (*place(file), file.name))
    for _, inside in groupby(ordered, key=place):
        together = list(inside)
        total = sum(file.bytes for file in together)
        part = total / max(round(total / group_bytes), 1)
        group: list[Listed] = []
        size = 0
        for file in together:
            # it goes where most of it belongs
            if group and size + file.bytes / 2 > part:
                yield group
                group, size = [], 0
            group.append(file)
            size += file.bytes
        yield group
