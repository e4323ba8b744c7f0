"""What a task of `optimize` does: it rewrites groups of files, and stages the new ones."""

from __future__ import annotations

import json
import os
import pickle
import re
import secrets
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pyarrow as pa

from pageseek.api import scan
from pageseek.base.errors import FileChangedError, PageseekError, StoreError
from pageseek.base.memory import machine_bytes
from pageseek.base.records import NamedTuple
from pageseek.rewriting.layout import Layout
from pageseek.rewriting.request import LEAST_MEMORY
from pageseek.rewriting.rewrite import MEMORY_PART, rewrite_files
from pageseek.rewriting.rewritten import Rewritten
from pageseek.rewriting.spill import check_folder
from pageseek.scanning.queries.scan import Scan
from pageseek.spark.tasks.shipping import check_version
from pageseek.spark.writing.commit import FileVersion, version_of
from pageseek.spark.writing.write_task import attempt_folder, upload
from pageseek.storage import Source
from pageseek.storage.atomic_files import fsync_folder
from pageseek.storage.output_folders import OutputFolder

_BUCKET = re.compile(
    r"_[0-9]{5}(?=\.c[0-9]{3}\.[^/]*$)"
)  # Spark's names of files in bucketed tables
DONE = "done.json"  # in the folder of an attempt: its files are complete, flushed and checked
AHEAD = 256 << 20  # bytes that a scan fetches ahead, at most
REPORT = pa.schema(
    [("number", pa.int32()), ("attempt", pa.string()), ("done", pa.string()), ("error", pa.string()), ("said", pa.string())]
)  # fmt: skip
REPORT_DDL = "number int, attempt string, done string, error string, said string"


@dataclass(frozen=True, slots=True)
class OptimizeSpec:
    """What all tasks have in common. `memory`: bytes of a task; None: its share of the machine. `options`: of `scan`."""

    folder: OutputFolder
    staging: str
    file_rows: int | None
    memory: int | None
    spill_folder: str | None
    options: Mapping[str, Any]


def bucket_of(name: str) -> str:
    """The end of a file's name by which Spark knows its bucket; "" where it has none."""
    found = _BUCKET.search(name)
    return found[0] if found else ""


class Group(NamedTuple):
    """Files of one folder, bucket and schema, which are rewritten together.

    Attributes
    ----------
    number : int
        Its place among all groups: the order of new files.
    key : str
        Groups of the same files, which are written in the same way, have the same key.
    files : tuple of (str, FileVersion)
        Names below the folder, in the order of their rows.
    layout : Layout
        With the order of the rows, if that is by columns.
    clustered : tuple of str
        The columns along which they lie otherwise.
    indexes : dict
        As parameters of `pageseek.index.attach`; empty: there are none.
    int96 : bool
        Whether the files have INT96 timestamps.
    """

    number: int
    key: str
    files: tuple[tuple[str, FileVersion], ...]
    layout: Layout
    clustered: tuple[str, ...]
    indexes: Mapping[str, Any]
    int96: bool

    @property
    def inner(self) -> str:
        """The folder of its files, below that of all."""
        return self.files[0][0].rpartition("/")[0]

    @property
    def bucket(self) -> str:
        """What Spark reads the bucket of its files from; empty: they are in none."""
        return bucket_of(self.files[0][0])


class Done(NamedTuple):
    """A group that was written. It is stored in JSON.

    `files`: names below the folder of the attempt, rows, and bytes. `added`: kinds, columns and chunks of indexes. `skipped`: why
    others are missing.
    """

    key: str
    files: Sequence[tuple[str, int, int]]
    rows: int
    row_groups: int
    pages: int
    spilled: int
    added: Sequence[tuple[str, str, int]]
    skipped: Sequence[str]

    @classmethod
    def parsed(cls, text: str | bytes) -> Done:
        """What was stored. TypeError, ValueError: it is something else."""
        made = cls(**json.loads(text))
        numbers = [n for _, *of_file in made.files for n in of_file] + [n for *_, n in made.added]
        numbers += [made.rows, made.row_groups, made.pages, made.spilled]
        names = [made.key, *made.skipped, *(name for one in made.added for name in one[:2])]
        paths = [name for name, *_ in made.files]
        if any(type(n) is not int for n in numbers) or any(type(n) is not str for n in names):
            raise TypeError("numbers and texts have changed places")
        if any(".." in path.split("/") for path in paths):
            raise ValueError("a file outside of the folder")
        return made


def scan_of(
    sources: Sequence[Source], options: Mapping[str, Any], int96: bool, **more: Any
) -> Scan:
    """A scan of some files of one folder, with the options that hold here.

    INT96 timestamps are instants in microseconds, as they are for Spark: it would take INT64 ones without a zone for local times.
    """
    made = scan(sources, partitioning=False, threads=1, **{"int96_unit": "us", **options}, **more)
    if not int96:
        return made
    request = made._request
    return replace(
        made, _request=replace(request, options=request.options._replace(int96_utc=True))
    )


def run(
    batches: Iterator[pa.RecordBatch], version: str, packed: bytes, parts: Sequence[bytes]
) -> Iterator[pa.RecordBatch]:
    """Write the groups of the parts whose numbers come in, and report each."""
    check_version(version)
    spec = pickle.loads(packed)
    for at in [at for batch in batches for at in batch.column(0).to_pylist()]:
        for group in pickle.loads(parts[at]):
            yield write_group(spec, group)


def write_group(spec: OptimizeSpec, group: Group) -> pa.RecordBatch:
    """Stage a group in files of this attempt. Returns one row.

    Errors that other attempts would raise, too, are in that row, for the driver to raise.
    """
    attempt = f"{group.number:05}-{secrets.token_hex(6)}"
    row: dict[str, Any] = {"number": group.number, "attempt": attempt}
    try:
        row["done"] = json.dumps(_staged(spec, group, attempt)._asdict())
    except StoreError:
        raise
    except (PageseekError, NotADirectoryError) as error:
        row |= {"error": type(error).__name__, "said": str(error)}
    return pa.RecordBatch.from_pylist([row], REPORT)


def _staged(spec: OptimizeSpec, group: Group, attempt: str) -> Done:
    check_folder(spec.spill_folder)
    local = (
        tempfile.mkdtemp(prefix="pageseek-optimize-", dir=spec.spill_folder)
        if spec.folder.far
        else attempt_folder(spec.folder, spec.staging, attempt)
    )
    try:
        made = _rewritten(spec, group, local)
        done = _done(spec, group, made, local)
        if spec.folder.far:
            for name, *_ in done.files:
                upload(os.path.join(local, name), spec.folder, f"{spec.staging}/{attempt}/{name}")
        else:
            fsync_folder(os.path.join(local, "x"))
            fsync_folder(local)
        spec.folder.put(
            f"{spec.staging}/{attempt}/{DONE}", json.dumps(done._asdict()).encode()
        )  # the last of its files
    except BaseException:
        shutil.rmtree(local, ignore_errors=True)
        raise
    if spec.folder.far:
        shutil.rmtree(local, ignore_errors=True)
    return done


def _rewritten(spec: OptimizeSpec, group: Group, local: str) -> Rewritten:
    for name, version in group.files:
        refuse_changed(spec.folder, name, version, version_of(spec.folder, name))
    sources = [spec.folder.source(name) for name, _ in group.files]
    memory = spec.memory
    if memory is None:  # an executor runs a task on each core, or so
        memory = max(machine_bytes() // MEMORY_PART // (os.cpu_count() or 1), LEAST_MEMORY)
    reading = partial(
        scan_of, sources, spec.options, group.int96, max_ahead_bytes=min(AHEAD, memory // 4)
    )
    try:
        # one file, unless there may be several
        to = os.path.join(local, "files" if spec.file_rows else "00000.parquet")
        return rewrite_files(
            sources, reading, to, layout=group.layout, clustered=group.clustered, file_rows=spec.file_rows,
            indexes=group.indexes, memory=memory, spill_folder=spec.spill_folder,
        )  # fmt: skip
    except FileNotFoundError:
        for name, version in group.files:
            refuse_changed(spec.folder, name, version, version_of(spec.folder, name))
        raise


def refuse_changed(
    folder: OutputFolder, name: str, version: FileVersion, now: FileVersion | None
) -> None:
    """Raise FileChangedError where a file is no longer the one that was listed."""
    if now != version:
        what = "deleted" if now is None else "replaced"
        raise FileChangedError(
            f"{folder.source(name).name}: the file was {what} while the files were rewritten; nothing has changed: optimize again"
        )


def _done(spec: OptimizeSpec, group: Group, made: Rewritten, local: str) -> Done:
    files, left = [], made.rows
    for path in made.files:
        rows = left if spec.file_rows is None else min(left, spec.file_rows)
        left -= rows
        name = os.path.relpath(path, os.path.realpath(local)).replace(os.sep, "/")
        files.append((name, rows, os.path.getsize(path)))
    added: dict[tuple[str, str], int] = {}
    for one in made.indexes:
        for key, chunks in one.added.items():
            added[key] = added.get(key, 0) + chunks
    return Done(
        group.key, files, made.rows, made.row_groups, made.pages, made.spilled,
        [(kind, column, chunks) for (kind, column), chunks in added.items()],
        list(dict.fromkeys(why for one in made.indexes for why in one.skipped)),
    )  # fmt: skip
