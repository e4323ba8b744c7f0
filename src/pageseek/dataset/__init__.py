"""Many files as one: which files there are, how their columns fit together, and what is kept of them.

| file | job |
|---|---|
| `dataset_schema` | the schema of all files, and how one file's arrays are fitted to it |
| `partitions` | the values in the names of folders, typed |
| `evolution` | what one file has of the columns of the dataset |
| `widening` | the type that holds one column of several files |
| `file_cache` | files that stay open between scans, with what was parsed of them |
| `saved_cache` | that cache, written to a file and read back |
| `opening` | many remote files, opened side by side |
| `sources` | what a path, a folder or a table object means |
| `lake_folders` | folders that are tables, opened at their current version |
| `lake_tables` | tables of Delta Lake and Iceberg as files and columns |
| `lake_places` | where the files of such a table lie |
"""
