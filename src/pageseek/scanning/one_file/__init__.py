"""One file: the states of its scan, and its row groups.

| file | job |
|---|---|
| `file_scan`, `file_pruning` | the states: prune, filter, payload; the rows that no mechanism denies |
| `lane` | what answers the steps of one file scan |
| `row_group` | one row group: filter columns first, then the payload of the rows that passed |
| `group_filter`, `group_reader` | the conditions of the filter, one after the other; leaves, fetched in waves and decoded |
| `division` | large row groups in pieces: for little memory, and for several tasks |
| `group_joints`, `joined_groups`, `waves` | which small row groups are read as one, and how; those that advance together in one thread while the core decodes their pages |
| `request_sharing`, `limit_steps` | row groups that share a request; how many are pruned at a time where there is a limit |
"""
