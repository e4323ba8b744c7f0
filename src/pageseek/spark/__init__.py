"""pageseek inside Spark: pruned on the driver, read in the executors.

| room | job |
|---|---|
| `aggregate` | `aggregate` |
| `load`, `reader`, `register` | `load`, `read`, and the format "pageseek" of a session |
| `lookups`, `writing` | `lookup`; `write` and `attach_index` |
| `datasource` | the format as a Python Data Source: over Connect, and for streams |
| `table` | the format as a table of DataSource V2, in Classic sessions |
| `tasks` | what runs in executors, how it gets there, and what comes back |
| `sources` | what users name as a source, as a scan |
| `filters` | filters with the meaning that Spark gives them |
| `calendar` | values that Spark wrote in its old calendar |
| `columns` | types, from Parquet to Spark |
| `session` | what of a session reading depends on |

A room imports only rooms further down.

pyspark is imported only when a function is called.
"""

from pageseek.spark.aggregate import aggregate
from pageseek.spark.load import load
from pageseek.spark.lookups.lookup import lookup
from pageseek.spark.reader import read
from pageseek.spark.register import register
from pageseek.spark.tasks.reports import input_files, report, reports
from pageseek.spark.writing.attach import attach_index
from pageseek.spark.writing.write import Written, write

__all__ = [
    "Written",
    "aggregate",
    "attach_index",
    "input_files",
    "load",
    "lookup",
    "read",
    "register",
    "report",
    "reports",
    "write",
]
