"""pageseek inside Spark: pruned on the driver, read in the executors.

| file | job |
|---|---|
| `reader` | `read`, on the driver |
| `lookup` | `lookup`: the keys, and what Spark does with them |
| `lookup_files` | the files of a lookup, and their plans |
| `lookup_keys` | keys as conditions, and as an index |
| `lookup_ranges` | which task gets which row groups and keys |
| `lookup_task` | what of a lookup runs in an executor |
| `load` | `load`: a table that prunes by what comes later |
| `register` | `register`: the format "pageseek", in SQL too |
| `options` | options as text |
| `narrowed` | a source with the filter, columns or schema of its options |
| `source` | the format as a Python Data Source: over Connect, and for streams |
| `planning` | what it plans, without a session |
| `pushed_filters` | what Spark pushes into it |
| `growing` | files that appear, and the offsets of streams |
| `shim` | this table in Java, and how it is loaded |
| `planner`, `planned_scan` | what it asks Python, of the table and of a scan |
| `table` | what all scans of a table have in common |
| `catalyst` | Spark's predicates as expressions |
| `binding` | conditions, bound to the columns of a source |
| `aggregates` | aggregations that the metadata answer, or tasks in parts |
| `expected` | how many rows a filter may leave |
| `local` | small scans that the driver reads |
| `native` | where Spark's own reader is quicker |
| `metrics` | `report`: what the tasks have read |
| `sizing` | a plan as parts: how many tasks it is worth, and how large Spark takes it to be |
| `settings` | what of the session's settings matters |
| `dialect` | Spark's SQL |
| `names` | columns as the session finds them |
| `meaning` | a filter with the meaning that Spark gives it |
| `zone` | local times of the session |
| `calendar_marks` | which files have values of an older calendar; filters on them |
| `rebase` | these values in the calendar of today |
| `zone_history` | what Spark adds to old timestamps of a zone |
| `folders` | the types and values of folders |
| `row_metadata` | types that Spark tells in the footers of its files |
| `types` | from Parquet to Spark's types |
| `variant` | Variants that are shredded into columns |
| `plan_schema` | the schema of a plan's DataFrame |
| `shipping` | functions that are sent to executors |
| `task` | what of a read runs in an executor |
| `write` | `write`, on the driver |
| `write_types`, `write_task` | the types of its files; what its tasks do |
| `commit` | how its files appear once, and what becomes of dead writes |
| `attach` | `attach_index`: indexes for many files, by tasks |

pyspark is imported only when a function is called.
"""

from pageseek.spark.attach import attach_index
from pageseek.spark.load import load
from pageseek.spark.lookup import lookup
from pageseek.spark.metrics import report
from pageseek.spark.reader import read
from pageseek.spark.register import register
from pageseek.spark.write import Written, write

__all__ = ["Written", "attach_index", "load", "lookup", "read", "register", "report", "write"]
