"""What runs in executors, how it gets there, and what comes back.

| file | job |
|---|---|
| `task` | a read |
| `shipping` | how functions are sent |
| `sizing` | a plan as parts: how many tasks it is worth, and how large Spark takes it to be |
| `expected` | how many rows a filter may leave |
| `row_size` | how large a decoded row is |
| `described` | what `explain` shows of a plan |
| `metrics` | what the tasks have read, as they tell it |
| `reports` | `report`, `reports` and `input_files` |
"""
