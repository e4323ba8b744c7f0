"""A session of Spark without Spark: its tasks run in this process, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pyarrow as pa

from pageseek.spark.session.settings import ToldSession

Task = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


class InProcess(ToldSession):
    """A session with two cores. `settings`: with `_` for `.` in their names."""

    def __init__(self, **settings: str) -> None:
        named = {name.replace("_", "."): value for name, value in settings.items()}
        super().__init__("4.3.0", {"spark.master": "local[2]", **named})
        self.tasks = 0  # run so far

    def range(self, start: int, stop: int, step: int, partitions: int) -> Any:
        """As of a session, where each number is a partition."""
        assert (start, stop, step) == (0, partitions, 1)

        def map_in_arrow(task: Task, schema: str) -> Any:
            return SimpleNamespace(collect=lambda: list(self._rows(task, partitions)))

        return SimpleNamespace(mapInArrow=map_in_arrow)

    def _rows(self, task: Task, partitions: int) -> Iterator[Any]:
        for i in range(partitions):
            self.tasks += 1
            for batch in task(iter([pa.record_batch({"id": [i]})])):
                for row in batch.to_pylist():
                    yield SimpleNamespace(**row)
