"""pageseek inside Spark: pruned on the driver, read in the executors.

| file | job |
|---|---|
| `reader` | `read`, on the driver |
| `lookup` | `lookup`: the keys, and what Spark does with them |
| `lookup_files` | the files of a lookup, and their plans |
| `lookup_keys` | keys as conditions, and as an index |
| `lookup_ranges` | which task gets which row groups and keys |
| `lookup_task` | what of a lookup runs in an executor |
| `packing` | how many tasks a plan is worth, and how large Spark takes it to be |
| `settings` | what of the session's settings matters |
| `dialect` | Spark's SQL |
| `names` | columns as the session finds them |
| `meaning` | a filter with the meaning that Spark gives it |
| `zone` | local times of the session |
| `calendar_marks` | values of an older calendar |
| `types` | from Parquet to Spark's types |
| `plan_schema` | the schema of a plan's DataFrame |
| `shipping` | functions that are sent to executors |
| `task` | what of a read runs in an executor |

pyspark is imported only when a function is called.
"""

from pageseek.spark.lookup import lookup
from pageseek.spark.reader import read

__all__ = ["lookup", "read"]
