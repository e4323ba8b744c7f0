"""What a scan asks for, and the records that all rooms of `scanning` share.

| file | job |
|---|---|
| `request`, `bound_request` | what a scan asks for, and what that is in one file |
| `binding`, `leaf_use` | a request bound to many files once; which leaves it reads, and what for |
| `condition_order` | which condition of a filter comes first |
| `plan`, `steps` | what is left to read; what a file scan may ask of its lane |
| `row_selection` | rows that are named by their numbers |
| `empty_tables` | the columns of a table without files |
| `log_answers`, `catalog_answers` | what the log of a table rules out, and answers |
| `accounting` | what the report counts of a plan |
"""
