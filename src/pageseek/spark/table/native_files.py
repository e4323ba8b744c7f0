"""What a plan leaves, as Spark's own reader is told it: files, values of their folders, and places of row groups."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from pageseek.base.errors import FileChangedError
from pageseek.format.chunks import chunk_range
from pageseek.scanning.plans.scan_plan import AllColumns, ScanPlan
from pageseek.scanning.requests.plan import FilePlan
from pageseek.spark.session.names import Columns
from pageseek.spark.tasks.task import AGAIN
from pageseek.storage.hive import Partitions
from pageseek.storage.local import seen, version_of

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


def files_of(plan: ScanPlan, columns: Columns, schema: StructType, push: bool) -> str:
    """The files of a plan as the Java side takes them.

    Of each its path, bytes, milliseconds of the last change, values of the folders, where in it are the row groups that
    are left, and the version. `push`: whether Spark's reader may prune by the filters.

    Raises
    ------
    FileChangedError
        A file has another version than the plan has.
    """
    folders = folders_of(plan)
    values: dict[Partitions, list[str | None]] = {}  # files of one folder share one tuple
    files = []
    for file in plan.files:
        source = file.source
        found = os.stat(source.path)
        now = version_of(seen(found)).tag
        if now != file.version.tag:
            raise FileChangedError(
                f"{source.name}: the file changed after it was planned ({file.version.tag} -> {now}); {AGAIN}"
            )
        if source.partitions not in values:
            given = dict(source.partitions)
            values[source.partitions] = [_internal(given[name]) for name in folders.names]
        told = os.path.abspath(source.path), found.st_size, found.st_mtime_ns // 10**6
        files.append([*told, values[source.partitions], _places(file, columns), now])
    made = {"schema": schema.json(), "folders": folders.names, "files": files, "push": push}
    return json.dumps(made)


def _places(plan: FilePlan, columns: Columns) -> list[int] | None:
    """Where in a file are the row groups that are left, as pairs of begin and end; None is everywhere.

    Spark's reader gives a row group to the task that has its middle, which parquet-java takes from the first chunk and
    from sizes that may contradict the chunks: such a middle counts, too.
    """
    assert plan.footer is not None
    if len(plan.groups) == plan.footer.row_groups:
        return None
    file = columns.open(plan.source)
    chunks = list(map(file.chunks, file.schema_tree.leaves))
    groups = file.row_groups
    made = []
    for group in plan.groups:
        own = [of[group.row_group] for of in chunks]
        places = list(map(chunk_range, own))
        first = places[0][0]
        told = groups[group.row_group].total_compressed_size
        middles = [first + (told or 0) // 2, first + sum(c.total_compressed_size for c in own) // 2]
        made += [min(begin for begin, _ in places), max(end for _, end in places)]
        made += [at + more for at in middles for more in (0, 1)]
    return made


def folders_of(plan: ScanPlan | AllColumns) -> pa.Schema:
    """The columns whose values are in the names of folders."""
    dataset_schema = plan.request.dataset_schema
    return pa.schema([]) if dataset_schema is None else dataset_schema.folders


def folders_last(plan: ScanPlan | AllColumns, names: Sequence[str]) -> bool:
    """Whether the columns of folders are all there, behind the others: so Spark's reader gives its rows."""
    folders: list[str] = folders_of(plan).names
    return list(names[len(names) - len(folders) :]) == folders


def _internal(value: pa.Scalar) -> str | None:
    """The value of a folder as Spark holds it, as text: a date in days, a timestamp in microseconds."""
    if not value.is_valid:
        return None
    if pa.types.is_date(value.type) or pa.types.is_timestamp(value.type):
        return str(value.value)
    return str(value.as_py())
