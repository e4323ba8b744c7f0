"""Indexes inside Parquet files: what a file lacks is added, without touching its data.

`attach` puts page indexes, Bloom filters and lists of different values into a file, `list` shows what it has,
`detach` takes out what was attached, `verify` holds what indexes say against the data. The form is that of docs/format.md.
"""

from pageseek.index.attach import Attached, attach
from pageseek.index.take_out import Entry, detach
from pageseek.index.take_out import listed as list
from pageseek.index.verify import Finding, Verified, verify

__all__ = ["Attached", "Entry", "Finding", "Verified", "attach", "detach", "list", "verify"]
