"""Files and tables rewritten in the layout for lookups: sorted or clustered, in small pages, with indexes (docs/rewriting.md).

| file | job |
|---|---|
| `rewrite` | the public function |
| `request` | what the caller asks for, checked before anything is read |
| `reading` | rows read in little memory |
| `rewritten`, `rewritten_html` | its result; how notebooks show it |
| `orders` | the orders of rows: by columns, or on a curve through several |
| `curve` | Hilbert's curve |
| `sort_keys` | rows compared by key columns: sorted, cut at bounds, checked |
| `sorting` | rows in an order, in bounded memory |
| `spill` | rows that wait on disk |
| `layout`, `encoding`, `row_sizes`, `sink` | rows as a Parquet file |
| `places` | where files go |
| `output` | the files that are written: encoded, checked, given indexes, named |
| `tables`, `table_rewrite` | a table whose files are exchanged by one commit |
| `delta_rewrite`, `iceberg_rewrite` | its names, places and commits, by kind of table |
| `table_output`, `stored_columns` | the files of one partition of it, and its columns in them |
| `digest` | a digest of rows that does not depend on their order |
| `written_scan` | the rows of a scan, written to one file |
| `checking` | what was written compared with what was read |
"""
