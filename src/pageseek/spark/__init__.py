"""pageseek inside Spark: pruned on the driver, read in the executors.

| file | job |
|---|---|
| `reader` | `read`, on the driver |
| `packing` | how many tasks a plan is worth, and how large Spark takes it to be |
| `settings` | what of the session's settings matters |
| `dialect` | Spark's SQL |
| `names` | columns as the session finds them |
| `meaning` | a filter with the meaning that Spark gives it |
| `zone` | local times of the session |
| `calendar_marks` | values of an older calendar |
| `types` | from Parquet to Spark's types |
| `plan_schema` | the schema of a plan's DataFrame |
| `task` | what runs in an executor |

pyspark is imported only when a function is called.
"""

from pageseek.spark.reader import read

__all__ = ["read"]
