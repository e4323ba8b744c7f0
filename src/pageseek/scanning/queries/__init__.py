"""What users hold.

| file | job |
|---|---|
| `scan` | the lazy `Scan` that users build |
| `results`, `scan_html` | its rows for pandas, polars, DuckDB and as Python's values; how notebooks show it |
| `execution` | its rows: batches, a table, a count, the report |
| `requested_schema` | the types that a consumer of its stream asks for |
| `prepared`, `prepared_async`, `key_batches` | scans whose filter has parameters; their coroutines; the rows of many keys in one pass |
| `async_scan` | one scan of one remote file by coroutines |
"""
