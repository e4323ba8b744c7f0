"""From a request to rows: open, bind, prune, fetch, decode, filter.

A file goes through the states of a `FileScan`. They are generators that yield steps (read these bytes, decode these pages); the
`Scheduler` answers the steps.

| file | job |
|---|---|
| `scan` | the lazy `Scan` that users build |
| `results`, `scan_html` | its rows for pandas, polars, DuckDB and as Python's values; how notebooks show it |
| `execution` | its rows: batches, a table, a count, the report |
| `requested_schema` | the types that a consumer of its stream asks for |
| `prepared`, `prepared_async`, `key_batches` | scans whose filter has parameters; their coroutines; the rows of many keys in one pass |
| `async_scan` | one scan of one remote file by coroutines |
| `point_reads` | lookups that a few reads of one local file answer, by one call of the core |
| `point_tests` | the conditions of such a lookup, and the rows that may pass them |
| `table_points` | the same in a table: the files that its log leaves |
| `request`, `bound_request` | what a scan asks for, and what that is in one file |
| `binding`, `leaf_use` | a request bound to many files once; which leaves it reads, and what for |
| `steps` | what a file scan may ask of its lane |
| `file_scan`, `file_pruning` | the states of one file: prune, filter, payload; the rows that no mechanism denies |
| `deleted_rows`, `delete_files` | the rows of a file that its table has deleted; scans of the files that list them |
| `deletion_vectors`, `position_deletes`, `equality_deletes` | the forms in which they are listed |
| `log_answers` | the files that the log of a table rules out |
| `scheduler`, `lane` | threads, memory and order; what answers the steps of one file scan |
| `open_ahead` | opens files; remote ones are begun before their turn |
| `plan`, `scan_plan` | what is left to read: records, and the `ScanPlan` that executes them |
| `planner`, `dataset_columns` | the files of a scan, brought to the state before their rows are read; their columns as one |
| `empty_tables` | the columns of a table without files |
| `footer_selection`, `accounting` | row groups that the footer leaves; what the report counts of a plan |
| `footer_batches`, `batched_file`, `footer_table`, `schema_group`, `homogeneous_files` | the footers of many similar files, read and pruned together |
| `batched_lists`, `distinct_lists`, `datafusion_lists` | the lists of values in these files, read and held against tests together; their two forms |
| `file_filters`, `chunk_filters` | the Bloom filters of these files, and of their column chunks, probed together |
| `prepare` | plans for others, and plans that are executed at once |
| `division` | large row groups in pieces: for little memory, and for several tasks |
| `tables`, `planned_files`, `opened_file` | the rows of a plan, a table for each row group, in order; its files, opened in order; one of them |
| `waves` | small row groups that advance together in one thread while the core decodes their pages |
| `request_sharing`, `limit_steps` | row groups that share a request; how many are pruned at a time where there is a limit |
| `row_group` | one row group: filter columns first, then the payload of the rows that passed |
| `group_filter`, `group_reader` | the conditions of the filter, one after the other; leaves, fetched in waves and decoded |
| `late_offsets` | where pages lie of leaves that no mechanism has asked for |
| `condition_order` | which condition of a filter comes first |
| `leaf_places`, `leaf_reader` | one leaf of one row group: which bytes, and their decoding |
| `chunk_headers`, `output_size` | what the page headers of a chunk say; how much room its decoder makes at once |
| `segments` | the pages of one leaf, divided among threads |
| `page_batch` | the pages of several leaves, decoded by one call of the core |
| `dictionary_codes` | dictionary codes, kept as codes |
| `decoded_columns`, `list_elements` | decoded leaves, tested and cut down to the rows that passed |
| `aggregate` and its `_metadata`, `_bounds`, `_columns`, `_values` | counts, least and greatest values |
"""
