"""From a request to rows: open, bind, prune, fetch, decode, filter.

A file goes through the states of a `FileScan`. They are generators that yield steps (read these bytes, decode these pages); the
`Scheduler` answers the steps.

| room | job |
|---|---|
| `queries` | what users hold |
| `aggregates` | counts, least and greatest values |
| `plans` | the files of a scan: planned, opened, and read in order |
| `points` | lookups that a few reads of one local file answer, by one call of the core |
| `many_files` | the footers and indexes of many similar files, read and pruned together |
| `one_file` | one file: the states of its scan, and its row groups |
| `leaves` | one leaf of one row group: which bytes, and their values |
| `deletes` | the rows of a file that its table has deleted |
| `requests` | what a scan asks for, and the records that all rooms of `scanning` share |

A room imports only rooms further down.
"""
