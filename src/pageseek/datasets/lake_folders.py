"""Folders that are tables of Delta Lake and Iceberg, and files of metadata of Iceberg, opened by the packages of these formats.

What lies in a store is read by our own requests: the log of a Delta table is copied into a temporary folder, the metadata
and the manifests of an Iceberg table are read as pyiceberg needs them. So tables lie on any filesystem that files are read from.
"""

from __future__ import annotations

import datetime as dt
import gzip
import io
import os
import posixpath
import re
import zlib
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from functools import cached_property
from typing import Any

from pageseek.base.errors import CorruptFileError, PageseekError, UnsupportedError
from pageseek.base.records import NamedTuple
from pageseek.datasets.delta_copies import copied_log, has_pairs
from pageseek.datasets.delta_log import DeltaLog, names_here, refuse_later
from pageseek.datasets.delta_tables import delta_table
from pageseek.datasets.delta_times import version_at
from pageseek.datasets.iceberg_metadata import for_pyiceberg
from pageseek.datasets.iceberg_tables import iceberg_table
from pageseek.datasets.lake_places import Places
from pageseek.datasets.table_files import Table, foreign
from pageseek.datasets.table_versions import CURRENT, AsOf
from pageseek.datasets.widened_partitions import Respell, widened_partitions
from pageseek.storage.obstore_files import ObstoreFiles
from pageseek.storage.redact import secrets_of
from pageseek.storage.remote import whole_file
from pageseek.storage.resolve import DEFAULT_RETRY, Source
from pageseek.storage.retry import RetryPolicy
from pageseek.storage.table_folders import DELTA, ENDS, LOG, METADATA, REMEDY, TableFolder

HINT = "version-hint.text"
MOST_METADATA = 1 << 30  # bytes of an Iceberg table's metadata, decompressed
_PLAIN = re.compile(r"[\w ./-]+", re.ASCII)  # paths that deltalake takes as they are

_numbers = tuple(map(re.compile, (r"v(\d+)", r"(\d+)-.+")))


def open_table(
    folder: TableFolder,
    options: Mapping[str, Any] | None = None,
    retry_policy: RetryPolicy = DEFAULT_RETRY,
    as_of: AsOf = CURRENT,
) -> Table:
    """A version of a table in a folder, the current one unless another is given."""
    return (_delta if folder.kind == DELTA else _iceberg)(folder, options, retry_policy, as_of)


def _missing(folder: TableFolder, package: str, extra: str) -> UnsupportedError:
    return UnsupportedError(
        f"{folder.name}: this is a table of {folder.kind}, which {package} opens, and that is not installed: "
        f'pip install "pageseek[{extra}]"; {folder.remedy}'
    )


# -- Delta Lake -----------------------------------------------------------------------------------


def _delta(
    folder: TableFolder, options: Mapping[str, Any] | None, retry_policy: RetryPolicy, as_of: AsOf
) -> Table:
    try:
        from deltalake import DeltaTable
    except ImportError:
        raise _missing(folder, "deltalake", "delta") from None
    where = f"Delta table {folder.name}"
    root = Source(folder.path, folder.filesystem, retry_policy=retry_policy, table=where)
    with ExitStack() as stack:
        at = folder.path
        copied = folder.filesystem is not None or not _PLAIN.fullmatch(at)
        version = as_of.delta(where)
        log = _Log(folder, retry_policy)
        if isinstance(version, dt.datetime):
            version = version_at(version, log.modified(), log.read, where)
        elif version is not None:
            refuse_later(version, log.paths, where)
        if copied:
            at = stack.enter_context(copied_log(log.paths, log.read, version))
        told = secrets_of(dict(options or {}))
        with foreign(where, "deltalake", told, f"; {REMEDY}", at if copied else ""):
            try:
                opened = DeltaTable(at, version=version)
            except Exception:
                columns = _widened(DeltaLog(root, where), version)
                if not columns and (copied or not has_pairs(log.paths, log.read, version)):
                    raise
                at = stack.enter_context(copied_log(log.paths, log.read, version, columns))
                opened = DeltaTable(at, version=version)
        return delta_table(opened, options, retry_policy, root, folder.name)


def _widened(log: DeltaLog, version: int | None) -> dict[str, Respell]:
    """How values are spelt of partition columns whose type was widened."""
    try:
        found = log.replay(log.newest() if version is None else version, actions=True)
        return widened_partitions((found.actions or {})["metaData"])
    except (PageseekError, OSError, KeyError, ValueError, TypeError, AttributeError):
        return {}  # why it does not open is told by its own error


class _Log:
    """The files of a log, by their names below `_delta_log/`."""

    def __init__(self, folder: TableFolder, retry_policy: RetryPolicy) -> None:
        self._folder, self._files, self._retry_policy = folder, folder.filesystem, retry_policy
        here = self._files is None
        self._at = os.path.join(folder.path, LOG) if here else f"{folder.path.rstrip('/')}/{LOG}"

    @cached_property
    def paths(self) -> dict[str, str]:
        """Where the files lie, by their names. Those of a local folder are listed when they are needed first."""
        if self._files is None:
            return {name: os.path.join(self._at, name) for name in names_here(self._at)}
        return {self._name(path): path for path in self._folder.files}

    def _name(self, path: str) -> str:
        return path.lstrip("/")[len(self._at.lstrip("/")) + 1 :]

    def read(self, name: str) -> bytes:
        return whole_file(
            Source(self.paths[name], self._files, retry_policy=self._retry_policy).open()
        )

    def modified(self) -> dict[str, float]:
        """When the files were written, in seconds since 1970."""
        if self._files is None:
            return {name: os.stat(path).st_mtime for name, path in self.paths.items()}
        found = self._files.modified(self._at, self._retry_policy)
        times = {self._name(path): time for path, time in found.items()}
        return {name: time for name, time in times.items() if name in self.paths}


# -- Iceberg --------------------------------------------------------------------------------------


def _iceberg(
    folder: TableFolder, options: Mapping[str, Any] | None, retry_policy: RetryPolicy, as_of: AsOf
) -> Table:
    try:
        from pyiceberg.catalog.noop import NoopCatalog
        from pyiceberg.table import StaticTable
        from pyiceberg.table.metadata import TableMetadataUtil
    except ImportError:
        raise _missing(folder, "pyiceberg", "iceberg") from None
    where = f"Iceberg table {folder.name}"
    at = folder.metadata or _current(folder, retry_policy, where)
    name = "/".join(at.replace(os.sep, "/").split("/")[-2:])
    secrets = secrets_of(dict(options or {}))
    data = whole_file(Source(at, folder.filesystem, retry_policy=retry_policy).open())
    text = _text(data, where if folder.metadata else f"{where}: {name}", folder.remedy)
    text, aside = for_pyiceberg(text)
    with foreign(where, "pyiceberg", secrets, f"; {folder.remedy}"):
        metadata = TableMetadataUtil.parse_raw(text)
    places = _places(folder, str(metadata.location), options or {}, retry_policy, where)
    with foreign(where, "pyiceberg", secrets, f"; {folder.remedy}"):
        opened = StaticTable(
            identifier=("folder", folder.name),
            metadata=metadata,
            metadata_location=at,
            io=_Io(places),  # type: ignore[arg-type]
            catalog=NoopCatalog("folder"),
        )
        scan = opened.scan(snapshot_id=as_of.iceberg(opened, where))
        current = as_of.has_current_schema(opened)
        return iceberg_table(scan, places, where, f"{name}, ", current, aside)


def _current(folder: TableFolder, retry_policy: RetryPolicy, where: str) -> str:
    """The path of the file of metadata that has the current version."""
    inside = os.path.join if folder.filesystem is None else posixpath.join
    start = inside(folder.path, METADATA)
    if folder.filesystem is None:
        files = {name: inside(start, name) for name in os.listdir(start)}
    else:
        files = {posixpath.basename(path): path for path in folder.files}

    def read(name: str) -> bytes:
        return whole_file(Source(files[name], folder.filesystem, retry_policy=retry_policy).open())

    hint = read(HINT).decode(errors="replace") if HINT in files else None
    try:
        name = current_metadata(files, hint)
    except ValueError as error:
        raise UnsupportedError(
            f"{where}: {METADATA}/ does not say which version is the current one: {error}: "
            f"give the table of its catalog (catalog.load_table(...)); {REMEDY}"
        ) from None
    if name is None:
        said = f", and {HINT} says {hint.strip()!r}" if hint else ""
        raise UnsupportedError(
            f"{where}: {METADATA}/ has no file of the current version{said}: "
            f"give the table of its catalog (catalog.load_table(...)); {REMEDY}"
        )
    return files[name]


def _text(data: bytes, name: str, remedy: str) -> str:
    try:
        if data[:2] == b"\x1f\x8b":
            with gzip.open(io.BytesIO(data)) as file:
                data = file.read(MOST_METADATA + 1)
        if len(data) > MOST_METADATA:
            raise UnsupportedError(f"{name}: it has more than {MOST_METADATA:,} bytes")
        return data.decode()
    except (EOFError, OSError, ValueError, zlib.error) as error:
        raise CorruptFileError(f"{name}: it is no JSON: {error}; {remedy}") from error


def _number(stem: str) -> int | None:
    return next((int(found[1]) for one in _numbers if (found := one.fullmatch(stem))), None)


def _stem(name: str) -> str:
    for end in (".gz", ".metadata.json", ".gz"):
        name = name.removesuffix(end)
    return name


def current_metadata(names: Iterable[str], hint: str | None) -> str | None:
    """The one of the names in `metadata/` that has the current version: as `version-hint.text` says, else that of the
    greatest number. None where there is none.

    Raises
    ------
    ValueError
        Several are of that number.
    """
    stems = {name: _stem(name) for name in names if name.endswith(ENDS)}
    numbers = {name: _number(stem) for name, stem in stems.items()}
    hint = (hint or "").strip()
    if hint in stems:
        return hint
    if hint:
        best = [name for name, stem in stems.items() if stem == hint]
        if not best and hint.isascii() and hint.isdigit():
            best = [name for name, number in numbers.items() if number == int(hint)]
            # tables without a catalog, which have the hint, write a number alone
            best = [name for name in best if name.startswith("v")] or best
    else:
        most = max((number for number in numbers.values() if number is not None), default=None)
        best = [] if most is None else [name for name, number in numbers.items() if number == most]
    if len(best) > 1:
        raise ValueError(f"{', '.join(sorted(best))} are of one version")
    return best[0] if best else None


def _places(
    folder: TableFolder,
    location: str,
    options: Mapping[str, Any],
    retry_policy: RetryPolicy,
    where: str,
) -> Places:
    """The files of an Iceberg table in a folder. The table spells URLs; the filesystem that it was found by takes, say, what
    follows the bucket in them.
    """
    files, base, path, location = (
        folder.filesystem,
        "",
        folder.path.strip("/"),
        location.rstrip("/"),
    )
    elsewhere = isinstance(files, ObstoreFiles) and not files.may_have(location, path)
    if files is not None and not elsewhere and path and location.endswith(f"/{path}"):
        base = location.removesuffix(path)
        if folder.path.startswith("/"):
            base = base.removesuffix("/")
    return Places(where, lambda _: options, retry_policy, files, base)


class _Io:
    """Opens manifests for pyiceberg."""

    def __init__(self, places: Places) -> None:
        self.properties: dict[str, str] = {}
        self._places = places

    def new_input(self, location: str) -> _Input:
        """A file of the table, by the URL in the table."""
        return _Input(location, self._places.source(location, (), encoded=False))


class _Input(NamedTuple):
    location: str
    source: Source

    def open(self, seekable: bool = True) -> io.BytesIO:
        """The file, whole."""
        return io.BytesIO(whole_file(self.source.open()))
