"""A table of DataSource V2, planned by Python while Spark plans a query.

| file | job |
|---|---|
| `shim` | the table in Java, and how it is loaded |
| `planner` | what it asks of a table |
| `planned_scan` | what it asks of a scan |
| `wanted` | what Spark wants of a scan, as a plan |
| `table` | what all scans of a table have in common |
| `aggregates` | aggregations that the metadata answer, or tasks in parts |
| `local`, `driver` | which scans are so small that the driver reads them; how it does |
| `native`, `native_files` | where Spark's own reader is quicker; what it is told |
"""
