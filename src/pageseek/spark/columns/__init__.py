"""Types of columns, from Parquet to Spark.

| file | job |
|---|---|
| `types` | the types, and the batches that tasks send |
| `variant` | Variants that are shredded into columns |
| `row_metadata` | types that Spark tells in the footers of its files |
| `file_values` | the hidden column `_metadata` |
| `narrowing` | columns of a DataFrame without some fields of structs |
| `plan_schema` | the schema of a plan's DataFrame |
"""
