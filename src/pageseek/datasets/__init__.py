"""Many files as one: what a source means, how the columns of its files fit together, and what is kept of them.

| file | job |
|---|---|
| `dataset_schema` | the schema of all files, and how one file's arrays are fitted to it |
| `partitions` | the values in the names of folders, typed |
| `evolution`, `field_ids` | the columns of the dataset in one file, by names or by ids |
| `nested_defaults` | defaults of fields that a file lacks inside of structs |
| `presence` | what is read of structs for fields inside that a file lacks |
| `spelling` | names of fields that a file spells in another case |
| `folder_columns` | the columns of partitions, which are known before a file is opened |
| `told_types` | text over bytes, and zones of timestamps, where a table says so |
| `variants` | variants of Delta Lake, and the files that have them shredded |
| `widening` | the type that holds one column of several files |
| `legacy_calendar` | files in which Spark has dates and times of its old calendar |
| `file_cache` | files that stay open between scans, with what was parsed of them |
| `confirmed` | versions that stores have confirmed in the course of one planning |
| `saved_cache` | what that cache has of remote files, written to a file and read back |
| `kept_ends` | the same in a folder that processes share, and find again |
| `sources` | what a path, a folder or a table object means: files, and the columns of all of them |
| `lake_folders` | folders that are tables, opened at a version |
| `table_versions` | which version of a table is read |
| `lake_tables` | objects of deltalake and pyiceberg as files and columns |
| `delta_tables`, `iceberg_tables` | the same for each of them |
| `table_files`, `table_fields` | the record of such a table; its fields, which files may call otherwise or lack |
| `delta_paths` | one spelling for all paths in a log that mean one file |
| `delta_copies` | copies of a log that `deltalake` opens in its place |
| `widened_partitions` | values of partition columns in a log, as the type of today spells them |
| `delta_log`, `iceberg_files` | what their packages do not tell: deletion vectors in the log; data files with the deletes that apply to them |
| `deletes` | where the deleted rows of a file are listed |
| `iceberg_metadata`, `iceberg_manifests` | metadata and lists of manifests that the specification allows and pyiceberg refuses |
| `file_bounds`, `delta_bounds`, `iceberg_bounds` | what a table says of the values in its files, probed as statistics are; the forms of both formats |
| `lake_places` | where the files of such a table lie |
"""
