"""The tails of many local files and the tables of their footers, as the cache has them or read for it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pageseek.base.report import Report
from pageseek.base.workers import cores
from pageseek.dataset.file_cache import cache
from pageseek.io.tails import TailBatch, TailReader
from pageseek.scan.footer_table import FooterTable
from pageseek.scan.request import Request
from pageseek.scan.schema_group import SchemaGroup


class BatchTails:
    """Reads tails for one scan, many files at a time."""

    __slots__ = ("_limit", "_reader", "_threads")

    def __init__(self, request: Request) -> None:
        self._threads = request.threads or cores()
        self._limit = request.limits.max_metadata_bytes
        self._reader = TailReader(self._limit, self._threads)

    def read(self, paths: tuple[str, ...], report: Report) -> TailBatch:
        """The tails of files, counted where they are read."""
        batch = cache.batch(paths, self._limit, self._threads)
        if batch is None:
            reader = self._reader
            requests, read = reader.requests, reader.bytes
            batch = reader.read(paths)
            report.requests += reader.requests - requests
            report.waves += reader.requests - requests
            report.bytes["metadata"] += reader.bytes - read
            cache.add_batch(batch)
        return batch

    def tables(
        self, batch: TailBatch, schema_group: SchemaGroup, places: npt.NDArray[np.int64]
    ) -> list[FooterTable]:
        """What the footers of the files at some places of a batch say that are of a schema group."""
        whole = len(places) == len(batch.places)
        key = schema_group.like, schema_group.leaves.tobytes(), None if whole else places.tobytes()
        made: list[FooterTable] | None = batch.made.get(key)
        if made is None:
            made = FooterTable.of(schema_group, batch, places, self._limit, self._threads)
            cache.keep_made(batch, key, made)
        return made

    def measure(self, batch: TailBatch) -> None:
        """Tables of a batch may take more memory now: they count in the cache."""
        cache.measure_batch(batch)
