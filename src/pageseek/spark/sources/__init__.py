"""What users name as a source, as a scan.

| file | job |
|---|---|
| `opening` | a scan with the options that hold in Spark |
| `buckets` | buckets of S3, by the session's Hadoop settings |
| `asked` | columns and a filter of a call, and what of them Spark applies |
| `narrowed` | a source with the filter, columns or schema of its options |
| `options` | options as text |
| `folders` | the types and values of folders, and the names of their columns |
"""
