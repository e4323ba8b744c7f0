"""`python -m support.peak URL MAX_AHEAD_BYTES PAUSE`: reads a file slowly, and prints what memory that took at its peak,
beyond what the process had before; and the bytes of one row group.

Linux only: the peak is reset before, which the kernel allows for one's own process.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import pageseek as ps

STATUS, CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def of(name: str) -> int:
    """A figure of this process, in bytes: VmRSS, VmHWM."""
    line = next(line for line in STATUS.read_text().splitlines() if line.startswith(name))
    return int(line.split()[1]) * 1024


def main() -> None:
    """Warm up with two batches, then measure."""
    url, ahead, pause = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
    batches = ps.scan(url, max_ahead_bytes=1, threads=1).to_batches()
    next(batches)
    batches.close()  # type: ignore[attr-defined]
    before = of("VmRSS")
    CLEAR.write_text("5")
    n = largest = 0
    for batch in ps.scan(url, max_ahead_bytes=ahead, threads=2).to_batches():
        n += batch.num_rows
        largest = max(largest, batch.nbytes)
        time.sleep(pause)
    said = {"before": before, "peak": of("VmHWM"), "rows": n, "batch": largest}
    sys.stdout.write(json.dumps(said) + "\n")


if __name__ == "__main__":
    main()
