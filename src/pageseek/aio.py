"""pageseek in programs of asyncio: `await ps.aio.read_table(...)`, `async for batch in ps.aio.to_batches(...)`.

Once this module is imported, the event loop never waits for a disk or a store. A small answer of one remote file that obstore reads, and whose store has
ETags, is read by coroutines: any number of them wait without a thread. All else runs in threads of the loop's default executor.

A task that is cancelled sends no further request. What its thread is about to decode is finished first.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pageseek import api
from pageseek.api import Scan
from pageseek.base.coroutines import Work, in_thread
from pageseek.base.tracebacks import short_traceback, shorten
from pageseek.scanning.queries.async_scan import table_async
from pageseek.scanning.requests.request import Request

if TYPE_CHECKING:
    from typing import Unpack

    from pageseek.base.scan_options import ScanOptions

__all__ = ["count_rows", "read_table", "scan", "to_batches"]


@short_traceback
async def scan(
    source: Any,
    *,
    columns: Sequence[str] | None = None,
    filter: Any = None,
    limit: int | None = None,
    **options: Unpack[ScanOptions],
) -> Scan:
    """As `pageseek.scan`, which may list a folder or open a table: it does so in a thread.

    The other functions of this module take the scan in place of a source.
    """
    made = partial(api.scan, source, columns=columns, filter=filter, limit=limit, **options)
    return await in_thread(made)


@short_traceback
async def read_table(
    source: Any,
    columns: Sequence[str] | None = None,
    filter: Any = None,
    limit: int | None = None,
    *,
    filters: Any = None,
    **options: Unpack[ScanOptions],
) -> pa.Table:
    """The rows that pass a filter, as a table; parameters as of `pageseek.read_table`.

    Parameters
    ----------
    source
        As of `pageseek.scan`; or a scan, to which columns, filter and limit are added.
    """
    if filter is not None and filters is not None:
        raise TypeError("give filter or filters, not both")
    condition = filter if filter is not None else filters
    found = await _scan_of(source, columns, condition, limit, options)
    table = await _by_coroutines(found, found._request)
    return await in_thread(found.to_table) if table is None else table


@short_traceback
async def count_rows(
    source: Any,
    filter: Any = None,
    *,
    columns: Sequence[str] | None = None,
    limit: int | None = None,
    **options: Unpack[ScanOptions],
) -> int:
    """The number of rows that pass a filter; without one the footers answer. `source`: as of `read_table`."""
    found = await _scan_of(source, columns, filter, limit, options)
    table = None
    if found._request.row_number is None:
        table = await _by_coroutines(found, replace(found._request, columns=()))
    return await in_thread(found.count_rows) if table is None else int(table.num_rows)


async def to_batches(
    source: Any,
    columns: Sequence[str] | None = None,
    filter: Any = None,
    limit: int | None = None,
    **options: Unpack[ScanOptions],
) -> AsyncGenerator[pa.RecordBatch, None]:
    """The rows as record batches, read as the iterator advances; parameters as of `read_table`.

    A loop that is left early ends the reading once the iterator is closed: `contextlib.aclosing` does so at once, and else
    the event loop does when nobody refers to the iterator any more.
    """
    pull = None
    try:
        pull = _Pull(await _scan_of(source, columns, filter, limit, options))
        while (batch := await pull.next()) is not None:
            yield batch
            del batch  # before the next one is made
    except Exception as error:
        shorten(error)
        raise
    finally:
        if pull is not None:
            await pull.close()


async def _scan_of(
    source: Any,
    columns: Sequence[str] | None,
    filter: Any,
    limit: int | None,
    options: ScanOptions,
) -> Scan:
    """The scan of a source, or one that was made before and is narrowed."""
    if not isinstance(source, Scan):
        return await scan(source, columns=columns, filter=filter, limit=limit, **options)
    params = options.pop("params", None)
    if options:
        raise TypeError(
            f"{next(iter(options))}=: the source is a scan, which has its options; give them to pageseek.scan"
        )
    found = source if columns is None else source.select(columns)
    found = found if filter is None and params is None else found.filter(filter, params)
    return found if limit is None else found.limit(limit)


async def _by_coroutines(found: Scan, request: Request) -> pa.Table | None:
    """The rows, where coroutines can read them."""
    if found._progress or not found._sources.far:
        return None
    return await table_async(found._sources, request)


if not TYPE_CHECKING:  # type checkers would take any name

    def __getattr__(name: str) -> Any:
        """The error for a name that is not here, with what to write instead."""
        from pageseek.base.other_names import no_such_name

        raise no_such_name("pageseek.aio", name, __all__)


def __dir__() -> list[str]:
    """The public names."""
    return sorted(__all__)


class _Pull:
    """The batches of a scan, each taken in a thread."""

    def __init__(self, found: Scan) -> None:
        self._scan, self._work = found, Work()
        self._batches: Iterator[pa.RecordBatch] | None = None
        self._lock = threading.Lock()  # a thread that nobody waits for may still have the generator

    async def next(self) -> pa.RecordBatch | None:
        """The next batch; None at the end."""
        return await self._work.wait(self._next)

    def _next(self) -> pa.RecordBatch | None:
        with self._lock:
            if self._batches is None:
                self._batches = self._scan.to_batches()
            return next(self._batches, None)

    async def close(self) -> None:
        """Stop reading. A thread that reads just now ends at its next request, which is waited for."""
        self._work.stop.set()
        with suppress(RuntimeError):  # the executor takes no more work: the loop ends
            await asyncio.to_thread(self._close)

    def _close(self) -> None:
        with self._lock:
            close = getattr(self._batches, "close", None)
            if close is not None:
                close()
