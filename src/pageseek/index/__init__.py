"""Indexes inside Parquet files: what a file lacks is added, and its data pages stay as they are (docs/format.md).

| file | job |
|---|---|
| `attach`, `detach`, `verify` | the public functions; `list` is in `detach` |
| `build` | all wanted indexes of a column chunk, in one pass over its pages |
| `bloom_builder`, `distinct_builder`, `page_index_builder` | what is built: Bloom filters, lists of distinct values, page indexes |
| `page_bounds` | bounds of pages as a ColumnIndex has them |
| `page_reader`, `chunk_walk`, `page_budget` | the pages of column chunks, read side by side in bounded memory |
| `stored_lists`, `statistics_check` | what `verify` compares with the data |
| `targets` | which file is read, and where the new one goes |
| `local_target`, `store_target` | a new file on this machine, or in a store |
| `table_target`, `delta_target`, `iceberg_target` | a new file in a table, by a commit |
"""

from pageseek.index.attach import Attached, attach
from pageseek.index.detach import Entry, detach
from pageseek.index.detach import listed as list
from pageseek.index.verify import Finding, Verified, verify

__all__ = ["Attached", "Entry", "Finding", "Verified", "attach", "detach", "list", "verify"]
