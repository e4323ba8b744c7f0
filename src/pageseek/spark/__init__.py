"""pageseek inside Spark: pruned on the driver, read in the executors.

Rooms: `reader` (`read`, on the driver), `packing` (how many tasks), `types` (from Parquet to Spark),
`task` (what runs in an executor). pyspark is imported only when a function is called.
"""

from pageseek.spark.reader import read

__all__ = ["read"]
