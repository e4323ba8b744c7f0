"""The rows of a file that its table has deleted.

| file | job |
|---|---|
| `deleted_rows` | the rows, whatever form they are listed in |
| `delete_files` | scans of the files that list them |
| `deletion_vectors`, `position_deletes`, `equality_deletes` | the forms |
"""
