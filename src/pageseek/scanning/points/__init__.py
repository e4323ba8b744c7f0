"""Lookups that a few reads of one local file answer, by one call of the core.

| file | job |
|---|---|
| `point_reads` | the reads |
| `named_rows` | the rows that lookup indexes name |
| `point_tests` | the conditions of such a lookup, and the rows that may pass them |
| `table_points` | the same in a table: the files that its log leaves |
"""
