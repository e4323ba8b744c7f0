"""Prepared queries in a program of asyncio: `await query.aio(k)`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pyarrow as pa

from pageseek.base.coroutines import in_thread
from pageseek.base.errors import PredicateError
from pageseek.base.tracebacks import short_traceback


class AsyncQuery:
    """The coroutines of a prepared query (`PreparedQuery.aio`)."""

    __slots__ = ("_bind", "_many", "_table")

    def __init__(
        self,
        table: Callable[..., pa.Table],
        bind: Callable[..., Any],
        many: Callable[..., pa.Table],
    ) -> None:
        self._table, self._bind, self._many = table, bind, many

    @short_traceback
    async def __call__(self, *values: Any, **named: Any) -> pa.Table:
        """The rows for values of the parameters, as `PreparedQuery` returns them.

        One remote file that obstore reads, and whose store has ETags, is read by coroutines of obstore: any number of queries
        wait without a thread, and as many requests are in flight as the store may have. What such a query decodes is small
        and done by the event loop; when a file is opened for the first time, that happens in a thread.

        All other queries run in a thread of the loop's default executor (`asyncio.to_thread`): local files, several files,
        stores without ETags, and answers of more than about 8 MiB. The loop never waits for a disk. As many of them run at
        a time as that executor has threads. A coroutine that is cancelled sends no further request, and a query in a thread
        ends at its next one.
        """
        scan = self._bind(*values, **named)
        if scan._sources.far and not scan._progress:
            from pageseek.scanning.queries.async_scan import table_async

            try:
                found = await table_async(scan._sources, scan._request)
            except PredicateError:
                found = None  # the query names the parameter
            if found is not None:
                return found
        return await in_thread(partial(self._table, *values, **named))

    @short_traceback
    async def many(self, keys: Any, *, place: str = "key_place") -> pa.Table:
        """The rows of many keys as one table, as `PreparedQuery.many` returns them; in a thread of the default executor."""
        return await in_thread(partial(self._many, keys, place=place))
