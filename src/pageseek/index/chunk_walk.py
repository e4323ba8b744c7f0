"""Column chunks gone through side by side, with the results in their order and little held at a time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TypeVar

from pageseek.base.progress import Watch, counted
from pageseek.base.report import Report
from pageseek.base.workers import Job, WorkerPool, cores
from pageseek.format.file_metadata import FileMetadata
from pageseek.format.schema import Leaf
from pageseek.index.page_budget import Room
from pageseek.index.page_reader import Chunk
from pageseek.io.fetch import Fetcher
from pageseek.storage import Store

T = TypeVar("T")
AHEAD = 512 << 20  # bytes that what is made of chunks may take together, beside the one that is due


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
    """What `work` makes of each chunk, (row group, leaf), by several threads where that is of use. `store`: where its
    pages are read, if not in the file itself. `held`: the bytes that what is made of a chunk takes until it is handed on.
    """
    if threads is not None and threads < 1:
        raise ValueError(f"threads={threads}: at least 1")
    with counted("column chunks", len(chunks), progress, report) as step:
        for found in _worked(file, chunks, work, report, threads, store, held):
            step()
            yield found


def _worked(
    file: FileMetadata,
    chunks: Sequence[tuple[int, Leaf]],
    work: Callable[[Chunk], T],
    report: Report,
    threads: int | None,
    store: Store | None,
    held: Callable[[int, Leaf], int],
) -> Iterator[T]:
    lock = threading.Lock()
    own = store is None or store is file.store
    fetcher = Fetcher(file.store if store is None else store, report, file.tail if own else None)

    def read(offset: int, length: int) -> memoryview:
        with lock:
            return fetcher.read([(offset, length)], "data")[0]

    def one(row_group: int, leaf: Leaf) -> T:
        return work(Chunk(file, row_group, leaf, read, room))

    room = Room()
    n = min(threads or cores(), len(chunks))
    if n < 2:
        for row_group, leaf in chunks:
            yield one(row_group, leaf)
        return
    jobs = (Job(partial(one, row_group, leaf), held(row_group, leaf)) for row_group, leaf in chunks)
    with WorkerPool(n, n + 1, AHEAD) as pool:
        yield from pool.in_order(jobs)
