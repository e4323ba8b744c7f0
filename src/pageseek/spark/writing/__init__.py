"""Files from DataFrames, and indexes for files.

| file | job |
|---|---|
| `write` | `write`, on the driver |
| `write_types` | the types of its files |
| `write_task` | what its tasks do |
| `commit` | how its files appear once, and what becomes of dead writes |
| `attach` | `attach_index`: indexes for many files, by tasks |
"""
