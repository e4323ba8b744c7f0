"""The files of a dataset, or row groups of them, which other processes can read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import reduce
from operator import and_
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pageseek._core import rows
from pageseek.api import Scan
from pageseek.base.records import dataclass
from pageseek.base.tracebacks import short_traceback
from pageseek.datasets.sources import Found, open_metadata
from pageseek.engines.asked import condition_of, scanner, with_columns
from pageseek.engines.scanner import DatasetScanner, check_version
from pageseek.format.parquet_file import ParquetFile
from pageseek.storage import Origin, Source, Version


@dataclass(frozen=True, slots=True)
class DatasetFragment:
    """One file of a dataset, with methods of `pyarrow.dataset.ParquetFileFragment`. It is picklable. docs/engines.md
    names the methods that are not there.

    Its rows have the columns of the whole dataset. `scan` reads it. The filter of a filtered dataset holds for its fragments.
    """

    scan: Scan
    dataset_schema: pa.Schema
    _row_groups: tuple[int, ...] | None = None
    _whole: Scan | None = None  # of all row groups, if this is a subset of them
    _version: Version | None = None  # of the footer that had the row groups

    @property
    @short_traceback
    def path(self) -> str:
        """The path of the file."""
        return self._source.path

    @property
    @short_traceback
    def partition_expression(self) -> Any:
        """The values that the names of its folders give to columns."""
        tests = [_is_value(pc.field(name), value) for name, value in self._source.partitions]
        return reduce(and_, tests) if tests else pc.scalar(True)

    @property
    @short_traceback
    def physical_schema(self) -> pa.Schema:
        """The columns of the file itself, with the types of Arrow that its own schema has."""
        with self._open() as file:
            return file.schema

    @property
    @short_traceback
    def num_row_groups(self) -> int:
        """The number of row groups of this fragment."""
        return len(self.row_groups)

    @property
    @short_traceback
    def row_groups(self) -> list[Any]:
        """The row groups of this fragment, as `open` gives them."""
        with self._open() as file:
            groups = file.row_groups
        return groups if self._row_groups is None else [groups[i] for i in self._row_groups]

    @short_traceback
    def scanner(self, schema: pa.Schema | None = None, **options: Any) -> DatasetScanner:
        """The columns and rows wanted; arguments of the dataset's scanner. `schema`: columns in place of those of the dataset."""
        made, known = self.scan, self.dataset_schema
        if schema is not None and not schema.equals(known):
            made = with_columns(made, schema)
            known = made.schema
        return replace(scanner(made, known, **options), _version=self._version)

    @short_traceback
    def to_table(self, schema: pa.Schema | None = None, **options: Any) -> pa.Table:
        """The rows as a table."""
        return self.scanner(schema, **options).to_table()

    @short_traceback
    def to_batches(
        self, schema: pa.Schema | None = None, **options: Any
    ) -> Iterator[pa.RecordBatch]:
        """The rows as record batches."""
        return self.scanner(schema, **options).to_batches()

    @short_traceback
    def head(self, num_rows: int, **options: Any) -> pa.Table:
        """The first rows."""
        return self.scanner(**options).head(num_rows)

    @short_traceback
    def take(self, indices: Any, **options: Any) -> pa.Table:
        """The rows of these numbers."""
        return self.scanner(**options).take(indices)

    @short_traceback
    def count_rows(self, filter: Any = None, **options: Any) -> int:
        """The number of rows."""
        options.pop("columns", None)
        return self.scanner(columns=[], filter=filter, **options).count_rows()

    @short_traceback
    def subset(
        self,
        filter: Any = None,
        schema: pa.Schema | None = None,
        row_group_ids: Iterable[int] | None = None,
    ) -> DatasetFragment:
        """Only some row groups of the file, in its order, with all of their rows.

        The fragment is read as long as the file has the version of today; after that it is a FileChangedError.

        Parameters
        ----------
        filter : any filter of `scan`, optional
            Row groups of this fragment that may have rows for which it is TRUE. There may be none.
        schema : pyarrow.Schema, optional
            The columns of the filter, in place of those of the dataset. The rows come out as without it.
        row_group_ids : iterable of int, optional
            The row groups of these numbers, which are those of the whole file, also for a subset. One of both is given.
        """
        if (filter is None) == (row_group_ids is None):
            raise ValueError("subset: give filter=, or else row_group_ids=")
        sizes, version = self._sizes()
        if row_group_ids is not None:
            if schema is not None:
                raise ValueError("subset: schema= has the columns of a filter, and there is none")
            return self._subset(set(row_group_ids), sizes, version)
        return self._subset(self._passing(filter, schema, version), sizes, version)

    @short_traceback
    def split_by_row_group(
        self, filter: Any = None, schema: pa.Schema | None = None
    ) -> list[DatasetFragment]:
        """A fragment for each row group; each as of `subset`. `filter`, `schema`: which row groups, as of `subset`."""
        sizes, version = self._sizes()
        wanted: Iterable[int] = range(len(sizes)) if self._row_groups is None else self._row_groups
        if filter is not None:
            wanted = sorted(self._passing(filter, schema, version))
        return [self._subset({i}, sizes, version) for i in wanted]

    def _passing(self, filter: Any, schema: pa.Schema | None, version: Version) -> set[int]:
        """The row groups of this fragment that may have rows for which a filter is TRUE."""
        made = self.scan if schema is None else with_columns(self.scan, schema)
        plan = made.filter(condition_of(filter)).plan()
        for file in plan.files:
            check_version(self._source.name, file.version, version)
        return {group.row_group for file in plan.files for group in file.groups if group.ranges}

    def _sizes(self) -> tuple[list[int], Version]:
        with self._open() as file:
            return [group.num_rows for group in file.row_groups], file._metadata.store.version

    def _subset(self, row_groups: set[int], sizes: list[int], version: Version) -> DatasetFragment:
        wanted = tuple(sorted(row_groups))
        beyond = next((i for i in wanted if not 0 <= i < len(sizes)), None)
        if beyond is not None:
            raise IndexError(
                f"{self._source.name}: there is no row group {beyond}, the file has {len(sizes)}"
            )
        stops = np.cumsum([0, *sizes]).tolist()
        ranges = rows.RowRanges([(stops[i], stops[i + 1]) for i in wanted if sizes[i]])
        whole = self._whole or self.scan
        if whole._request.selected is not None:
            ranges &= whole._request.selected.get(self._source.name, rows.RowRanges.empty())
        request = replace(whole._request, selected={self._source.name: ranges})
        scan = replace(whole, _request=request)
        return replace(self, scan=scan, _row_groups=wanted, _whole=whole, _version=version)

    def __repr__(self) -> str:
        groups = "" if self._row_groups is None else f", row groups {list(self._row_groups)}"
        return f"<fragment of pageseek.dataset: {self._source.name}{groups}>"

    @property
    def _source(self) -> Source:
        return self.scan.sources[0]

    def _open(self) -> ParquetFile:
        found = Found([self._source], None, None, Origin())
        limit = self.scan._request.limits.max_metadata_bytes
        file = ParquetFile(open_metadata(found, max_metadata_bytes=limit))
        if self._version is not None:
            check_version(self._source.name, file._metadata.store.version, self._version)
        return file


def _is_value(field: pc.Expression, value: Any) -> pc.Expression:
    """The condition that a column has a value; NaN equals nothing in a comparison."""
    plain = value.as_py() if isinstance(value, pa.Scalar) else value
    if plain is None:
        return field.is_null()
    if isinstance(plain, float) and plain != plain:
        return pc.is_nan(field)
    return field == pc.scalar(value)
