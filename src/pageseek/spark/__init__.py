"""pageseek inside Spark: pruned on the driver, read in the executors.

| file | job |
|---|---|
| `reader` | `read`, on the driver |
| `load` | `load`: a table that prunes by what comes later |
| `register` | `register`: the format "pageseek", in SQL too |
| `options` | options as text |
| `narrowed` | a source with the filter, columns or schema of its options |
| `source` | the format as a Python Data Source: over Connect, and for streams |
| `planning` | what it plans, without a session |
| `pushed_filters` | what Spark pushes into it |
| `growing` | files that appear, and the offsets of streams |
| `shim` | this table in Java, and how it is loaded |
| `planner` | what it asks Python: predicates, columns, limits, joins, parts |
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
| `calendar_marks` | values of an older calendar |
| `types` | from Parquet to Spark's types |
| `plan_schema` | the schema of a plan's DataFrame |
| `task` | what runs in an executor |

pyspark is imported only when a function is called.
"""

from pageseek.spark.load import load
from pageseek.spark.metrics import report
from pageseek.spark.reader import read
from pageseek.spark.register import register

__all__ = ["load", "read", "register", "report"]
