"""pageseek inside Spark: pruned on the driver, read in the executors.

| file | job |
|---|---|
| `reader` | `read`, on the driver |
| `packing` | how many tasks a plan is worth |
| `types` | from Parquet to Spark's types |
| `task` | what runs in an executor |

pyspark is imported only when a function is called.
"""

from pageseek.spark.reader import read

__all__ = ["read"]
