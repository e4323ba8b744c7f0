"""The rows of files that have given keys.

| file | job |
|---|---|
| `lookup` | `lookup`: the keys, and what Spark does with them |
| `lookup_files` | the files, and their plans |
| `listed_keys` | keys that are tables, or values of Python |
| `lookup_keys` | keys as conditions, and in types that compare as Spark does |
| `key_index` | keys as an index that finds equal rows |
| `lookup_ranges` | which task gets which row groups and keys |
| `lookup_task` | what runs in an executor |
"""
