"""`python -m support.tails_peak MAX_AHEAD_BYTES CACHE_BYTES URL...`: plans a scan of many files that keeps none of them, and
prints what memory that took at its peak, beyond what the process had before. Linux only.
"""

from __future__ import annotations

import json
import sys

import pageseek as ps
from support.peak import CLEAR, of


def main() -> None:
    """Warm up with one file, then measure."""
    ahead, most, urls = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
    ps.resize_cache(most)
    ps.scan(urls[0], max_ahead_bytes=ahead).count_rows()
    before = of("VmRSS")
    CLEAR.write_text("5")
    rows = ps.scan(urls[1:], max_ahead_bytes=ahead, filter=ps.col("k") < 0).count_rows()
    said = {"before": before, "peak": of("VmHWM"), "rows": rows}
    sys.stdout.write(json.dumps(said) + "\n")


if __name__ == "__main__":
    main()
