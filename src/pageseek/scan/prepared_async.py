"""Prepared queries in a program of asyncio: `await query.aio(k)`."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    from pageseek.scan.prepared import PreparedQuery


class AsyncQuery:
    """The coroutines of a prepared query (`PreparedQuery.aio`)."""

    __slots__ = ("_query",)

    def __init__(self, query: PreparedQuery) -> None:
        self._query = query

    async def __call__(self, *values: Any, **named: Any) -> pa.Table:
        """The rows for values of the parameters, as `PreparedQuery` returns them.

        The query runs in a thread of the event loop's default executor (`asyncio.to_thread`), so that the loop never waits for a
        disk or a store. As many queries run at a time as that executor has threads. A coroutine that is cancelled stops
        waiting; its query goes on to its end.
        """
        return await asyncio.to_thread(partial(self._query, *values, **named))

    async def many(self, keys: Any, *, place: str = "key_place") -> pa.Table:
        """The rows of many keys as one table, as `PreparedQuery.many` returns them; in a thread, as above."""
        return await asyncio.to_thread(partial(self._query.many, keys, place=place))
