"""What tasks would fail at, found by the driver before there is one: by a file without rows, with the columns and indexes of those to come."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from pageseek.api import scan
from pageseek.base.errors import PageseekError, PredicateError, UnsupportedError
from pageseek.datasets.dataset_schema import DatasetSchema
from pageseek.datasets.widening import joined_fields
from pageseek.index import attach
from pageseek.scanning.queries.scan import Scan
from pageseek.spark.sources.opening import OPTIONS
from pageseek.spark.writing.write_task import StagedFile, WriteSpec
from pageseek.storage.hive import partitions_of
from pageseek.storage.resolve import Sources


def try_out(spec: WriteSpec, there: Sequence[str]) -> None:
    """Write a file without rows on this machine, and hold it against those that are there.

    Parameters
    ----------
    spec : WriteSpec
        What is written.
    there : sequence of str
        Files that stay beside the new ones, below the folder; others than Parquet files count for nothing. The footers of
        all are read, or known from before: two of them may have types that go together with the new one's, but not with each other.

    Raises
    ------
    PageseekError
        A column cannot have an index.
    PredicateError
        The files that are there are in folders of other columns.
    UnsupportedError
        They have columns of other types, so that the folder could not be read; or it cannot be read as it is.
    ValueError
        There is no such kind of index.
    """
    beside = [name for name in there if _is_data(name)]
    if not (spec.bloom or spec.indexes or beside):
        return
    with tempfile.TemporaryDirectory(prefix="pageseek-write-") as folder:
        path = os.path.join(folder, "0.parquet")
        StagedFile(spec, path).close()
        if beside:
            _check_folders(spec, beside)
            _check_types(spec, path, beside)
        if spec.bloom or spec.indexes:
            try:
                attach(
                    path, page_index=False, bloom=spec.bloom, indexes=spec.indexes, in_place=True
                )
            except PageseekError as error:
                raise type(error)(str(error).replace(path, "write")) from None


def _is_data(name: str) -> bool:
    return name.endswith(".parquet") and not any(
        one.startswith(("_", ".")) and "=" not in one for one in name.split("/")
    )


def _check_folders(spec: WriteSpec, beside: Sequence[str]) -> None:
    for folder in dict.fromkeys(name.rpartition("/")[0] for name in beside):
        old = [name for name, _ in partitions_of(folder.split("/"))]
        if old != list(spec.partition_by):
            raise PredicateError(
                f"{spec.folder.name}: it has files in folders of {', '.join(old) or 'no column'}, and partition_by names "
                f"{', '.join(spec.partition_by) or 'none'}: a folder with both could not be read"
            )


def _check_types(spec: WriteSpec, path: str, beside: Sequence[str]) -> None:
    new = scan(path, partitioning=False, **OPTIONS)
    of_all = replace(new._request, dataset_schema=DatasetSchema(pa.schema([]), None))
    old = Scan(Sources.of([spec.folder.source(name) for name in beside]), of_all)
    joined = joined_fields(list(old.schema), list(new.schema))
    if isinstance(joined, tuple):
        before, after = joined
        raise UnsupportedError(
            f"{spec.folder.name}: column {before.name!r} is {before.type} in its files, and would be {after.type} in the new "
            "ones: no type holds the values of both exactly; cast it, or write to another folder"
        )
