"""`optimize`: the files of a folder rewritten by tasks, sorted or clustered, and exchanged once."""

from __future__ import annotations

import hashlib
import heapq
import pickle
import time
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pageseek.base import errors
from pageseek.base.errors import FileChangedError, NoColumnError, PageseekError, PredicateError
from pageseek.base.limits import DEFAULT
from pageseek.base.progress import Watch, watched_steps
from pageseek.base.report import Report
from pageseek.base.suggest import offered
from pageseek.base.tracebacks import short_traceback
from pageseek.base.version import __version__
from pageseek.rewriting import request as asked
from pageseek.rewriting.layout import PAGE_ROWS, Layout
from pageseek.spark.session.progress import progress_of
from pageseek.spark.session.settings import Settings, check_session
from pageseek.spark.sources.buckets import reached
from pageseek.spark.tasks.shipping import shipped
from pageseek.spark.tasks.sizing import TASKS_PER_CORE, parallelism_of
from pageseek.spark.writing.asked_indexes import AskedIndexes
from pageseek.spark.writing.commit import (
    MANIFEST,
    STALE_AFTER,
    SUCCESS,
    Staging,
    begin,
    in_motion,
    one_attempt_each,
    recover,
    version_of,
    versions_of,
    visible,
)
from pageseek.spark.writing.file_groups import Listed, groups_of, listed, names_of, refuse_table
from pageseek.spark.writing.optimize_task import (
    DONE,
    REPORT_DDL,
    Done,
    Group,
    OptimizeSpec,
    refuse_changed,
    scan_of,
)
from pageseek.spark.writing.optimized import Optimized
from pageseek.spark.writing.targets import Target
from pageseek.spark.writing.write import WrittenFile
from pageseek.storage.output_folders import OutputFolder, output_folder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

GROUP_BYTES = 512 << 20
# options of `scan` that say how files are read
OPTIONS = (
    "int96_unit", "out_of_range", "max_page_bytes", "max_output_bytes", "max_metadata_bytes",
)  # fmt: skip


@short_traceback
def optimize(
    spark: SparkSession,
    path: Any,
    *,
    sort_by: str | Sequence[str | tuple[str, str]] = (),
    cluster_by: Sequence[str] = (),
    page_rows: int = PAGE_ROWS,
    row_group_rows: int | None = None,
    file_rows: int | None = None,
    codec: str = "zstd",
    indexes: Mapping[str, Any] | None = None,
    group_bytes: int = GROUP_BYTES,
    memory_limit: int | None = None,
    spill_folder: str | None = None,
    tasks: int | None = None,
    stale_after: float = STALE_AFTER,
    progress: bool | Watch | None = None,
    python_path: str | None = None,
    storage_options: Mapping[str, Any] | None = None,
    **options: Any,
) -> Optimized:
    """Rewrite the Parquet files of a folder in place, as `pageseek.rewrite` does: sorted or clustered, in small pages, with indexes.

    The files of each partition are put together in groups of about `group_bytes`. Tasks write one new file for each group into a
    hidden folder, read it again and compare it with the source. When all groups are done, the driver gives the new files their names and
    deletes the old ones. If anything fails before, all is as it was; if the driver dies, the next run takes over the groups that were
    finished (docs/spark.md).

    Parameters
    ----------
    spark : pyspark.sql.SparkSession
        Classic or Connect.
    path : path, URL, or (filesystem, path)
        The folder. The driver and every executor must see it under the same name. On object stores a rename is a copy.
    sort_by, cluster_by, page_rows, row_group_rows, codec, indexes
        The order and the layout of each new file, as in `pageseek.rewrite`. Whether case matters in names says the session. A
        column that some files lack does not order them, and they get no index of it.
    file_rows : int, optional
        Rows of a file, at most; one file for each group unless given.
    group_bytes : int
        Bytes of the files that are written together, about; 512 MiB unless given. A file is never divided. Files of two folders, or of
        two schemas, are never written together.
    memory_limit : int, optional
        Bytes of memory of a task, about; a quarter of its machine's, divided by the cores, unless given. Rows that do not fit wait in a temporary
        file.
    spill_folder : str, optional
        The folder of that file on the executors; the system's folder for temporary files unless given.
    tasks : int, optional
        The greatest number of tasks; by default four for each core of the session.
    stale_after : float
        As in `write`.
    progress : bool or function, optional
        Show how far it is with opening files, and with giving new ones their names, as in `pageseek.scan`; by default where the driver
        has a terminal or a notebook. Spark's own bar shows the tasks.
    python_path : str, optional
        As in `read`.
    storage_options : mapping, optional
        Options of the store, where `path` is a URL, as in `scan`; for S3, those of the session's Hadoop settings unless given.
    **options
        How the files are read, as in `scan`: `int96_unit` ("us" unless given), `out_of_range`, `max_page_bytes`,
        `max_output_bytes`, `max_metadata_bytes`.

    Returns
    -------
    Optimized
        What was done. Print it.

    Raises
    ------
    FileChangedError
        A file was replaced or deleted meanwhile, or another write replaces files of the folder. Nothing has changed.
    FileNotFoundError
        The folder has no Parquet file.
    UnsupportedError
        The folder is, has or lies in a table of Delta Lake or Iceberg; it has links to folders; a column has no order, or cannot have
        such an index; or INT64 timestamps could not have the meaning of INT96 ones.
    PredicateError
        No file has a column of a name.
    RewriteError
        What was written is not what was read. Nothing has changed.
    CorruptFileError, StoreError
        A file cannot be read, or a new one cannot be written.
    """
    check_session(spark)
    began = time.perf_counter()
    by, clustered = asked.sort_columns(sort_by), asked.cluster_columns(cluster_by)
    if by and clustered:
        raise ValueError("sort_by and cluster_by: rows have one order; give one of them")
    _check_names("", options, OPTIONS)
    _check_names("indexes: ", indexes or {}, (*asked.INDEXES, *asked.PARAMETERS))
    given = {"page_rows": page_rows, "group_bytes": group_bytes}
    more = {"row_group_rows": row_group_rows, "file_rows": file_rows, "tasks": tasks}
    given |= {name: n for name, n in more.items() if n is not None}
    given = {name: asked.number(name, n) for name, n in given.items()}
    if memory_limit is not None:
        asked.number("memory_limit", memory_limit, asked.LEAST_MEMORY)
    layout = asked.layout_of(given["page_rows"], given.get("row_group_rows"), codec, by)
    wanted = _indexes(indexes or {})
    refuse_table(path)
    path, storage_options = reached(spark, path, storage_options)
    folder = output_folder(path, storage_options)
    settings, shown = Settings(spark), progress_of(spark, progress)

    def look(names: Sequence[str]) -> tuple[list[Listed], _Kinds]:
        Target(folder, folder.name).check("overwrite", False)
        most = options.get("max_metadata_bytes", DEFAULT.max_metadata_bytes)
        with watched_steps("files", len(names), shown, Report()) as step:
            files = listed(folder, names, settings, most, step)
        return files, _Kinds(files, layout, clustered, wanted, options, not settings.case_sensitive)

    names = names_of(path, storage_options, folder)
    files, how = look(names)
    with closing(begin(folder)) as staging:
        finished = _Finished(staging)
        recover(folder, stale_after, staging.name, finished.take)
        now = names_of(path, storage_options, folder)
        if now != names:
            files, how = look(now)
        _refuse_motion(staging, set(now))
        key = repr((__version__, given.get("file_rows"), sorted(options.items())))
        groups = [
            how.group(number, inside, key)
            for number, inside in enumerate(groups_of(files, group_bytes))
        ]
        found = {g.number: finished.groups[g.key] for g in groups if g.key in finished.groups}
        kept = len(found)
        spec = OptimizeSpec(
            folder, staging.name, given.get("file_rows"), memory_limit, spill_folder, options
        )
        left = [group for group in groups if group.number not in found]
        most = given.get("tasks") or TASKS_PER_CORE * parallelism_of(spark)
        found |= _written(spark, spec, _packed(left, most), python_path)
        made = _named(staging, groups, found, layout.codec)
        _exchange(staging, files, made, shown)
    return _report(folder, files, groups, found, made, by, clustered, kept, began)


def _check_names(what: str, given: Mapping[str, Any], known: Sequence[str]) -> None:
    for name in given:
        if name not in known:
            raise TypeError(f"optimize: {what}{name!r} is not known; {offered(str(name), known)}")


def _indexes(given: Mapping[str, Any]) -> AskedIndexes:
    """Indexes that are named as for `pageseek.rewrite`."""
    kinds = ("distinct", "lookup", "bitmap", "trigram")
    return AskedIndexes.of(
        given.get("page_index", False),
        given.get("bloom", ()),
        given.get("file_bloom", ()),
        {kind: given.get(kind, ()) for kind in kinds},
        given.get("distinct_index"),
        given.get("indexes"),
        given.get("footer", False),
    )


class _Finished:
    """Groups that runs have finished which died. They are moved to the staging folder of this one.

    Attributes
    ----------
    groups : dict of (str, Done)
        The folder of the attempt, and what it wrote, by the keys of groups.
    """

    def __init__(self, staging: Staging) -> None:
        self._staging = staging
        self.groups: dict[str, tuple[str, Done]] = {}

    def take(self, name: str) -> None:
        """Take over what a write that died has finished, from its staging folder."""
        folder, mine = self._staging.folder, self._staging.name
        there = set(folder.names(name))
        if f"{name}/{MANIFEST}" in there:  # some of its files have their last names already
            return
        for one in sorted(there):
            if not one.endswith(f"/{DONE}"):
                continue
            attempt = one.split("/")[1]
            # whatever is wrong with it, the group is written again
            with suppress(OSError, PageseekError, ValueError, TypeError, AttributeError):
                done = Done.parsed(folder.get(one))
                if done.key in self.groups:
                    continue
                inside = [file for file, *_ in done.files]
                sizes = [version_of(folder, f"{name}/{attempt}/{file}") for file in inside]
                if [None if s is None else s[0] for s in sizes] != [n for *_, n in done.files]:
                    continue
                moves = (f"{attempt}/{file}" for file in [*inside, DONE])
                folder.move({f"{name}/{move}": f"{mine}/{move}" for move in moves})
                self.groups[done.key] = attempt, done


def _refuse_motion(staging: Staging, ours: set[str]) -> None:
    """Raise FileChangedError where another write is giving names to files of ours, or deletes them."""
    for other, theirs in in_motion(staging.folder, staging.name).items():
        if theirs & ours:
            raise FileChangedError(
                f"{staging.folder.name}: another write, {other}, replaces these files, or was cut off while it gave files their names; "
                "nothing has changed: optimize again when it is done, or with stale_after=0 if no write is at work"
            )


class _Kinds:
    """How the files of each kind are written: orders and indexes by the names that they have.

    Raises
    ------
    PredicateError
        No file has a column of a name, or a file has several.
    UnsupportedError
        A column has no order, or cannot have an index.
    """

    def __init__(
        self,
        files: Sequence[Listed],
        layout: Layout,
        clustered: Sequence[str],
        wanted: AskedIndexes,
        options: Mapping[str, Any],
        fold: bool,
    ) -> None:
        self._fold = fold
        first: dict[tuple[Any, ...], Listed] = {}
        for file in files:
            first.setdefault(file.kind, file)
        schemas = {
            kind: scan_of([one.source], options, one.int96).schema for kind, one in first.items()
        }
        order = [name for name, _ in layout.sorted_by] or list(clustered)
        said = "sort_by" if layout.sorted_by else "cluster_by"
        for name in order:
            if not any(self._own(name, schema) for schema in schemas.values()):
                where = files[0].source.name
                where += f" and {len(files) - 1} more" if len(files) > 1 else ""
                there = schemas[files[0].kind].names
                raise NoColumnError(f"{where}: {said}: no column {name!r}; {offered(name, there)}")
        wanted.spelled_as([one.source for one in first.values()], fold)
        self._how: dict[tuple[Any, ...], tuple[Layout, tuple[str, ...], dict[str, Any]]] = {}
        for kind, one in first.items():
            schema = schemas[kind]
            own = {name: self._own(name, schema) for name in order}
            by = tuple([(own[name], down) for name, down in layout.sorted_by if own[name]])
            along = tuple([own[name] for name in clustered if own[name]])
            if len(along) == 1:  # the others are null in all rows
                by, along = ((along[0], False),), ()
            asked.check_columns(
                schema, said, [name for name, _ in by] or along, str(one.source.name)
            )
            made = replace(layout, sorted_by=by)
            theirs = wanted.of_file(one.source, fold)
            given = {} if theirs.is_empty else theirs.arguments()
            if given:
                asked.try_indexes(schema, made, given, str(one.source.name))
            self._how[kind] = made, along, given

    def _own(self, name: str, schema: pa.Schema) -> str:
        """A column as a schema spells it; "" where it has none."""
        if name in schema.names:
            return name
        fits = [one for one in schema.names if self._fold and one.lower() == name.lower()]
        if len(fits) > 1:
            raise PredicateError(
                f"{name!r} is ambiguous: {', '.join(map(repr, fits))}; write the name as the files do"
            )
        return fits[0] if fits else ""

    def group(self, number: int, files: Sequence[Listed], key: str) -> Group:
        """A group of files. `key`: what else decides what is written."""
        layout, along, indexes = self._how[files[0].kind]
        names = tuple([(file.name, file.version) for file in files])
        told = repr((key, names, layout, along, indexes, files[0].int96))
        return Group(
            number, hashlib.sha256(told.encode()).hexdigest(), names, layout, along, indexes, files[0].int96
        )  # fmt: skip


def _packed(groups: Sequence[Group], most: int) -> list[list[Group]]:
    """The groups in as many parts of about equal bytes as there may be tasks, the largest first."""
    parts: list[list[Group]] = [[] for _ in range(min(most, len(groups)))]
    heap = [(0, i) for i in range(len(parts))]
    for size, group in sorted(
        ((sum(size for _, (size, _) in one.files), one) for one in groups),
        key=lambda pair: (-pair[0], pair[1].number),
    ):
        load, i = heap[0]
        heapq.heapreplace(heap, (load + size + 1, i))
        parts[i].append(group)
    return parts


def _written(
    spark: SparkSession,
    spec: OptimizeSpec,
    parts: Sequence[Sequence[Group]],
    python_path: str | None,
) -> dict[int, tuple[str, Done]]:
    """Have tasks write groups. Returns the folder of the attempt and what it wrote, by the numbers of groups."""
    if not parts:
        return {}
    packed = tuple(pickle.dumps(part, protocol=5) for part in parts)
    task = shipped(
        "pageseek.spark.writing.optimize_task", "run", python_path, pickle.dumps(spec, protocol=5), packed
    )  # fmt: skip
    rows = spark.range(0, len(parts), 1, len(parts)).mapInArrow(task, REPORT_DDL).collect()
    failed = [row for row in rows if row.error is not None]
    for row in sorted(failed, key=lambda row: int(row.number)):
        kind = getattr(errors, row.error, PageseekError)
        raise (NotADirectoryError if row.error == "NotADirectoryError" else kind)(row.said)
    one_attempt_each([(row.number, row.attempt) for row in rows])
    return {row.number: (row.attempt, Done.parsed(row.done)) for row in rows}


def _named(
    staging: Staging, groups: Sequence[Group], found: Mapping[int, tuple[str, Done]], codec: str
) -> dict[str, WrittenFile]:
    """The new files by their staged names."""
    made = {}
    end = "" if codec == "none" else f".{codec}"
    for group in groups:
        attempt, done = found[group.number]
        for i, (staged, rows, size) in enumerate(done.files):
            name = f"part-{group.number:05}-{staging.job}{group.bucket}.c{i:03}{end}.parquet"
            if group.inner:
                name = f"{group.inner}/{name}"
            made[f"{staging.name}/{attempt}/{staged}"] = WrittenFile(name, rows, size)
    return made


def _exchange(
    staging: Staging,
    files: Sequence[Listed],
    made: Mapping[str, WrittenFile],
    shown: bool | Watch,
) -> None:
    """Let the new files take the place of the old ones, if these are the ones that were read."""
    folder, old = staging.folder, {file.name: file.version for file in files}
    there = visible(folder)
    parts = (name.rpartition("/") for name in old)
    sums = {f"{inner}{slash}.{name}.crc" for inner, slash, name in parts}
    # Hadoop's checksums of old files, and footers that name them
    beside = [name for name in there if name in sums or name.rpartition("/")[2] == "_metadata"]
    mark = SUCCESS in there

    def check() -> None:
        _refuse_motion(staging, set(old))
        for (name, version), now in zip(old.items(), versions_of(folder, old), strict=True):
            refuse_changed(folder, name, version, now)

    with watched_steps("files", len(made), shown, Report()) as staging.moved:
        left = staging.publish(
            {one: file.name for one, file in made.items()},
            [*old, *beside, *[SUCCESS] * mark],
            True,
            mark=mark,
            versions=old,
            check=check,
        )
    if left:
        raise FileChangedError(
            f"{folder.source(left[0]).name}: {len(left)} files were replaced while the new files got their names; these are there, and have the "
            "rows from before"
        )


def _report(
    folder: OutputFolder,
    files: Sequence[Listed],
    groups: Sequence[Group],
    found: Mapping[int, tuple[str, Done]],
    made: Mapping[str, WrittenFile],
    by: Sequence[tuple[str, bool]],
    clustered: Sequence[str],
    kept: int,
    began: float,
) -> Optimized:
    done = [found[group.number][1] for group in groups]
    added: dict[tuple[str, str], int] = {}
    for one in done:
        for kind, column, chunks in one.added:
            added[kind, column] = added.get((kind, column), 0) + chunks
    return Optimized(
        folder.name,
        tuple(made.values()),
        len(files),
        sum(file.bytes for file in files),
        len(groups),
        kept,
        sum(one.row_groups for one in done),
        sum(one.pages for one in done),
        tuple([(name, asked.WAYS[down]) for name, down in by]),
        tuple(clustered),
        added,
        tuple(dict.fromkeys(why for one in done for why in one.skipped)),
        sum(one.spilled for one in done),
        time.perf_counter() - began,
    )
