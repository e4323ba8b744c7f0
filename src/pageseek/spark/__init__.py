"""pageseek inside Spark: pruned on the driver, read in the executors.

| room | job |
|---|---|
| `aggregator` | `aggregate` |
| `loader`, `reader`, `registration` | `load`, `read`, and the format "pageseek" of a session |
| `lookups`, `writing` | `lookup`; `write`, `optimize` and `attach_index` |
| `datasource` | the format as a Python Data Source: over Connect, and for streams |
| `table` | the format as a table of DataSource V2, in Classic sessions |
| `tasks` | what runs in executors, how it gets there, and what comes back |
| `sources` | what users name as a source, as a scan |
| `filters` | filters with the meaning that Spark gives them |
| `calendar` | values that Spark wrote in its old calendar |
| `columns` | types, from Parquet to Spark |
| `session` | what of a session reading depends on |

A room imports only rooms further down.

Functions are imported when they are first used: a task in an executor needs none of them. pyspark is imported only when a function
is called.
"""

from typing import TYPE_CHECKING

from pageseek.base.late_modules import handed_on

if TYPE_CHECKING:
    from pageseek.spark.aggregator import aggregate
    from pageseek.spark.loader import load
    from pageseek.spark.lookups.lookup import lookup
    from pageseek.spark.reader import read
    from pageseek.spark.registration import register
    from pageseek.spark.tasks.reports import input_files, report, reports
    from pageseek.spark.writing.attach import attach_index
    from pageseek.spark.writing.optimize import optimize
    from pageseek.spark.writing.optimized import Optimized
    from pageseek.spark.writing.write import Written, write

__all__ = [
    "Optimized",
    "Written",
    "aggregate",
    "attach_index",
    "input_files",
    "load",
    "lookup",
    "optimize",
    "read",
    "register",
    "report",
    "reports",
    "write",
]

# where each is. No module in this folder has the name of one: it would take its place when it is imported.
_HOMES = {
    "Optimized": "writing.optimized",
    "Written": "writing.write",
    "aggregate": "aggregator",
    "attach_index": "writing.attach",
    "input_files": "tasks.reports",
    "load": "loader",
    "lookup": "lookups.lookup",
    "optimize": "writing.optimize",
    "read": "reader",
    "register": "registration",
    "report": "tasks.reports",
    "reports": "tasks.reports",
    "write": "writing.write",
}


if not TYPE_CHECKING:  # type checkers would take any name
    __getattr__ = handed_on(__name__, _HOMES)


def __dir__() -> list[str]:
    """The public names."""
    return sorted(__all__)
