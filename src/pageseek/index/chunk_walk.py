"""Column chunks read by several threads, with the results in their order, in bounded memory."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from functools import partial
from typing import TypeVar

from pageseek.base.arguments import number_of_threads
from pageseek.base.progress import Watch, watched_steps
from pageseek.base.report import Report
from pageseek.base.workers import Job, WorkerPool, cores
from pageseek.format.file_metadata import FileMetadata
from pageseek.format.schema import Leaf
from pageseek.index.page_budget import Room
from pageseek.index.page_reader import Chunk
from pageseek.io.fetch import Fetcher
from pageseek.storage import Store

T = TypeVar("T")
AHEAD = 512 << 20  # bytes that the results of chunks may take together, beside the one that is due


def each_chunk(
    file: FileMetadata,
    chunks: Sequence[tuple[int, Leaf]],
    work: Callable[[Chunk], T],
    report: Report,
    threads: int | None = None,
    progress: bool | Watch = False,
    store: Store | None = None,
    held: Callable[[int, Leaf], int] = lambda *_: 0,
) -> Iterator[T]:
    """What `work` makes of each chunk, in their order, by several threads where there are several chunks.

    Parameters
    ----------
    chunks
        Row group and leaf of each.
    store
        Where pages are read, if not in the file itself.
    held
        The bytes that what is made of a chunk takes until it is handed on.
    """
    threads = number_of_threads(threads)
    lock, room = threading.Lock(), Room()
    own = store is None or store is file.store
    fetcher = Fetcher(file.store if store is None else store, report, file.tail if own else None)

    def read(offset: int, length: int) -> memoryview:
        with lock:
            return fetcher.read([(offset, length)], "data")[0]

    def one(row_group: int, leaf: Leaf) -> T:
        return work(Chunk(file, row_group, leaf, read, room))

    n = min(threads or cores(), len(chunks))
    with (
        watched_steps("column chunks", len(chunks), progress, report) as step,
        WorkerPool(n, n + 1, AHEAD) if n > 1 else nullcontext() as pool,
    ):
        made: Iterator[T]
        if pool is None:
            made = (one(*chunk) for chunk in chunks)
        else:
            made = pool.in_order(Job(partial(one, *chunk), held(*chunk)) for chunk in chunks)
        for found in made:
            step()
            yield found
