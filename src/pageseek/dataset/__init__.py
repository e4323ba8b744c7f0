"""Many files as one: which files there are, how their columns fit together, and what is kept of them.

| file | job |
|---|---|
| `dataset_schema` | the schema of all files, and how one file's arrays are fitted to it |
| `partitions` | the values in the names of folders, typed |
| `given_schema` | the files of a source with the columns of their folders and the schema that was given |
| `evolution`, `field_ids` | what one file has of the columns of the dataset, by names or by ids |
| `folder_columns` | the columns of partitions, which are known before a file is opened |
| `widening` | the type that holds one column of several files |
| `legacy_calendar` | files in which Spark has dates and times of its old calendar |
| `file_cache` | files that stay open between scans, with what was parsed of them |
| `saved_cache` | that cache, written to a file and read back |
| `sources` | what a path, a folder or a table object means |
| `lake_folders` | folders that are tables, opened at their current version |
| `lake_tables` | tables of Delta Lake and Iceberg as files and columns |
| `lake_places` | where the files of such a table lie |
"""
