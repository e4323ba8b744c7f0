"""The files of a scan: planned, opened, and read in order.

| file | job |
|---|---|
| `planner`, `dataset_columns` | the files of a scan, brought to the state before their rows are read; their columns as one |
| `footer_selection` | row groups that the footer leaves |
| `prepare` | plans for others, and plans that are executed at once |
| `scan_plan` | the `ScanPlan` that executes a plan |
| `plan_html` | how notebooks and consoles show it |
| `tables`, `planned_files`, `opened_file` | the rows of a plan, a table for each row group, in order; its files, opened in order; one of them |
| `scheduler` | threads, memory and order |
| `open_ahead` | opens files; remote ones are begun before their turn |
"""
