"""Files from DataFrames, and indexes for files.

| file | job |
|---|---|
| `write` | `write`, on the driver |
| `write_types` | the types of its files |
| `write_task` | what its tasks do |
| `trial` | what they would fail at, found by a file without rows |
| `commit` | how its files appear once, and what becomes of dead writes |
| `destination` | what users name as the place, as a target |
| `targets`, `delta_write`, `iceberg_write` | a folder, or a table with a commit of its own |
| `lake_columns` | what a table wants of columns |
| `partition_values` | values of partitions, to be compared with those of a table |
| `attach` | `attach_index`: indexes for many files, by tasks |
| `optimize` | `optimize`: files rewritten, on the driver |
| `file_groups` | files that are rewritten together |
| `optimize_task`, `optimized` | what its tasks do; its result |
| `asked_indexes` | which indexes that are, by the names of columns |
"""
