"""`python -m support.attach_peak FILE OUTPUT INDEXES`: attaches indexes (arguments of attach, in JSON), and prints what memory
that took at its peak, beyond what the process had before; with no OUTPUT (-) the file is verified. Linux only, as
`support.peak`.
"""

from __future__ import annotations

import json
import sys

import pyarrow as pa

import pageseek as ps
from support.opened import open_metadata
from support.peak import CLEAR, of


def main() -> None:
    """Import everything, then measure."""
    pa.array([1])  # imports pandas where it is installed
    with open_metadata(sys.argv[1]) as file:
        groups = file.num_row_groups
    before = of("VmRSS")
    CLEAR.write_text("5")
    if sys.argv[2] == "-":
        assert ps.index.verify(sys.argv[1], threads=2).ok
    else:
        how = json.loads(sys.argv[3])
        ps.index.attach(sys.argv[1], **how, output=sys.argv[2], overwrite=True, threads=2)
    said = {"before": before, "peak": of("VmHWM"), "groups": groups}
    sys.stdout.write(json.dumps(said) + "\n")


if __name__ == "__main__":
    main()
