"""`python -m support.datafusion_index_peak FILE`: makes a file with a long list in the published form, verifies it, and prints what memory
that took at its peak. Linux only, as `support.peak`.
"""

from __future__ import annotations

import json
import struct
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import pageseek as ps
from pageseek._core import build
from pageseek.index.footer_edit import new_footer
from support.opened import open_metadata
from support.peak import CLEAR, of

LINES, ROWS = 4_000_000, 1_000_000


def main() -> None:
    """The column has other values than a list of attach may have; all are listed."""
    path = Path(sys.argv[1])
    texts = pc.utf8_lpad(pa.array(range(ROWS)).cast(pa.string()), width=7, padding="0")
    pq.write_table(pa.table({"t": texts}), path, use_dictionary=False)
    del texts
    body = b"\n".join(b"%07d" % i for i in range(LINES))
    with open_metadata(path) as file:
        places = struct.pack("<q", -(1 << 63)) * (file.num_row_groups * build.PLACES)
        at = file.footer_start
        footer = new_footer(file, places, [], [(b"distinct_index_offset", b"%d" % at)])
    with path.open("r+b") as out:
        out.seek(at)
        out.writelines((b"IDX1", struct.pack("<Q", len(body)), body))
        out.writelines((footer, struct.pack("<I", len(footer)), b"PAR1"))
    size = len(body)
    del body
    before = of("VmRSS")
    CLEAR.write_text("5")
    found = ps.index.verify(path, threads=2)
    assert found.ok and found.checked["distinct_index"] == 1, str(found)
    said = {"before": before, "peak": of("VmHWM"), "lines": LINES, "bytes": size}
    sys.stdout.write(json.dumps(said) + "\n")


if __name__ == "__main__":
    main()
