"""From a request to rows: plan, prune, fetch, decode, filter.

| file | job |
|---|---|
| `scan` | the lazy `Scan` that users build |
| `request`, `bound_request` | what is asked, and what that is in one file |
| `file_plan` | which row groups and rows of a file are left |
| `planner` | opens files, prunes them, and makes a plan |
| `plan` | the plan, and its execution |
| `pruning` | puts row groups to the pruning mechanisms |
| `footer_batches`, `footer_table`, `schema_group`, `homogeneous_files` | the footers of many similar files, pruned together |
| `row_group` | one row group: filter columns first, then the payload of the rows that passed |
| `condition_order` | which condition of a filter comes first |
| `leaf_reader` | one leaf of one row group: its pages, fetched and decoded |
| `page_batch` | leaves of which one page each is needed, decoded in one call |
| `dictionary_codes` | dictionary codes, kept as codes |
| `decoded_columns`, `list_elements` | decoded leaves, tested and cut down to the rows that passed |
| `aggregate` | counts, least and greatest values |
"""
