"""Spark's daemon of Python workers, as `spark.python.daemon.module`: its workers are killed in the middle of their tasks.

The environment names a folder, KILL_MARKS. A file `stage` in it says what runs now, and what is to be done with it:
`worker` kills the worker, `executor` its JVM, `wait` has it never go on, `none` lets it work. Of each stage a few tasks are struck. A task is
struck between two tables that it reads, or before a file that it writes is flushed to disk.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pyspark import TaskContext

MARKS = Path(os.environ["KILL_MARKS"])
STRIKES = 2


def strike() -> None:
    """Kill this worker or its executor, or wait, if the stage says so and has not struck enough tasks yet."""
    if TaskContext.get() is None:  # it plans for the driver, which does not try again
        return
    stage, _, what = (MARKS / "stage").read_text().partition(" ")
    for i in range(STRIKES if what != "none" else 0):
        try:
            os.close(os.open(MARKS / f"{stage}-{i}", os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            continue
        if what == "wait":
            time.sleep(600)
        victim = os.getpid()
        if what == "executor":  # the parent of the daemon
            victim = int(
                Path(f"/proc/{os.getppid()}/stat").read_text().rpartition(")")[2].split()[1]
            )
        os.kill(victim, signal.SIGKILL)
        time.sleep(600)


def main() -> None:
    """Set the traps, which all workers inherit, and be Spark's daemon."""
    from pageseek.scanning.plans.tables import TableReader

    by_file, fsync = TableReader.by_file, os.fsync

    def traps(self: TableReader, *given: Any) -> Iterator[Any]:
        for one in by_file(self, *given):
            yield one
            strike()

    def flushed(descriptor: int) -> None:
        strike()
        fsync(descriptor)

    TableReader.by_file, os.fsync = traps, flushed  # type: ignore[method-assign]

    from pyspark import daemon

    daemon.manager()


if __name__ == "__main__":
    main()
