"""The footers and indexes of many similar files, read and pruned together.

| file | job |
|---|---|
| `footer_batches`, `batched_file` | the footers; one of the files |
| `footer_table`, `schema_group` | their figures side by side; the files of one schema |
| `joined_files` | small files that are read as one |
| `homogeneous_files`, `similar_files` | files whose footers differ in figures only |
| `batched_lists` | the lists of values in these files, held against tests |
| `distinct_lists`, `datafusion_lists` | the two forms of such lists |
| `file_lookups` | the lookup indexes of these files, of one column or several as one key, of which a value reads one block each |
| `file_filters`, `filters_in_tails`, `chunk_filters` | the Bloom filters of these files, and of their column chunks, probed together |
"""
