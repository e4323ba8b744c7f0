"""A process in which one allocation after another fails while what page tasks have made is taken.

It is a process of its own, because any thread may ask for the allocation that fails, also one of a library.
"""

import _testcapi as testcapi
import json
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow.parquet as pq

import pageseek as ps
from pageseek._core.page_tasks import PageWork
from pageseek.scanning.one_file import lane

ALLOCATIONS = 40  # more than taking two columns makes


def resident() -> int:
    """Bytes of memory that this process has."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def main(path: str) -> dict[str, int]:
    """How many allocations failed; bytes that the process has grown by since a read in which none did."""
    wanted = pq.read_table(path)
    failed: set[int] = set()
    at = -1

    def taken(tasks: list[Any], threads: int = 1) -> Any:
        work = PageWork(tasks)
        if at < 0:
            return work.results()
        testcapi.set_nomemory(at, at + 1)
        try:
            return work.results()
        except MemoryError:
            failed.add(at)
            raise
        finally:
            testcapi.remove_mem_hooks()

    before = 0
    with mock.patch.object(lane, "read_pages", taken):
        for at in range(-1, ALLOCATIONS):
            with suppress(MemoryError, ps.PageseekError):
                found = ps.read_table(path, threads=1)
                if not found.equals(wanted):
                    raise ValueError(f"wrong rows after allocation {at} failed")
                del found
            if at < 0:
                before = resident()
    return {"failed": len(failed), "grown": resident() - before}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(main(sys.argv[1])) + "\n")
