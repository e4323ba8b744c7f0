"""A file whose row groups are read, and the tables that they become."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa

from pageseek.base.arrays import of_numpy
from pageseek.base.batches import table_of
from pageseek.base.errors import PageseekError
from pageseek.scanning.one_file.file_scan import FileScan, Passed, Rows
from pageseek.scanning.one_file.lane import Lane
from pageseek.scanning.plans.scheduler import Scheduler
from pageseek.scanning.requests.plan import GroupPlan
from pageseek.scanning.requests.steps import Held

if TYPE_CHECKING:
    from pageseek.datasets.dataset_schema import SchemaAdapter


# whether a table of several files, which are scanned as one, may be handed out
Together: TypeAlias = Callable[[pa.Table, FileScan], bool]


class OpenedFile:
    """A file of a plan while its rows are read.

    Attributes
    ----------
    scan : FileScan
        The file.
    unconfirmed : bool
        Whether its version is still to be confirmed.
    refused : bool
        Whether a table of several files was not to be handed out as one.
    """

    __slots__ = (
        "_adapter",
        "_left",
        "_lock",
        "_scheduler",
        "_schema",
        "_together",
        "refused",
        "scan",
        "unconfirmed",
    )

    def __init__(
        self,
        scan: FileScan,
        schema: pa.Schema,
        scheduler: Scheduler,
        row_groups: int = 0,
        together: Together | None = None,
    ) -> None:
        """`schema`: of the tables. `row_groups`: how many will be read, if the caller counts them (`done`). `together`: whether a
        table of several files may be handed out.
        """
        self._scheduler, self._together, self.refused = scheduler, together, False
        self.scan, self.unconfirmed, self._schema = scan, True, schema
        bound_request = scan.bound_request
        self._adapter: SchemaAdapter | None = None
        if schema is not bound_request.schema:
            self._adapter = bound_request.adapter(schema, scan.source)
        self._left, self._lock = row_groups, threading.Lock()

    def done(self, row_groups: int) -> bool:
        """Count row groups that were read. True if they were the last."""
        with self._lock:
            self._left -= row_groups
            return self._left == 0

    def read(
        self, group: GroupPlan, left: int | None, lane: Lane, held: Sequence[Held] = ()
    ) -> tuple[pa.Table | None, Sequence[Passed]]:
        """The rows of a row group that pass, at most `left` of them; None if there are none. If they are large, a first piece of
        them, and the others.
        """
        try:
            read = self._scheduler.read(self.scan, group, left, lane, held)
        except Exception as error:
            self.scan.plan.name_in(error)
            raise
        return self.table(group, read, lane), read.rest

    def read_passed(self, passed: Passed, lane: Lane) -> pa.Table | None:
        """One of the others."""
        try:
            read = self._scheduler.read_passed(self.scan, passed, lane)
        except Exception as error:
            self.scan.plan.name_in(error)
            raise
        return self.table(passed.group, read, lane)

    def read_joined(self, groups: Sequence[GroupPlan], lane: Lane) -> tuple[bool, pa.Table | None]:
        """Whether row groups could be read as one, and their rows that pass."""
        try:
            read = self._scheduler.read_joined(self.scan, groups, lane)
        except Exception as error:
            self.scan.plan.name_in(error)
            raise
        return (False, None) if read is None else self.try_table(groups, read, lane)

    def try_table(
        self, groups: Sequence[GroupPlan], read: Rows, lane: Lane
    ) -> tuple[bool, pa.Table | None]:
        """Whether the rows fit the schema, and their table. Of several files an error would name the first, and the rows of those
        before the one at fault would be lost: they are read one by one.
        """
        report, before = lane.context.report, lane.context.report.rows_out
        several = self.scan.joined is not None
        try:
            table = self.table(groups[0], read, lane)
        except PageseekError:
            if not several:
                raise
            return False, None
        if (
            several
            and table is not None
            and self._together
            and not self._together(table, self.scan)
        ):
            report.rows_out = before  # its rows are read again
            self.refused = True
            return False, None
        if read.count_read is not None:
            read.count_read()
        return True, table

    def table(self, group: GroupPlan, read: Rows, lane: Lane) -> pa.Table | None:
        """The rows that were read of a row group as a table; None if there are none."""
        store = self.scan.file.store
        self.unconfirmed = not store.version.strong
        if not self.unconfirmed:  # the store tells without a request
            store.check()
        if not read.found.num_rows:
            return None
        self.scan.file.count_reads(lane.context.report)
        table = self._table(group, read)
        lane.context.report.rows_out += read.found.num_rows
        return table

    def _table(self, group: GroupPlan, read: Rows) -> pa.Table:
        """The rows of a row group as a table."""
        scan, n, arrays = self.scan, read.found.num_rows, read.arrays
        if self._adapter is not None:  # adds columns of other files, and of folders
            arrays = self._adapter(arrays, n)
        if scan.request.row_number is not None:
            first = scan.first_row + scan.file.first_row(group.row_group)
            arrays = [[of_numpy(read.found.rows() + first)], *arrays]
        return table_of(self._schema, n, arrays)
