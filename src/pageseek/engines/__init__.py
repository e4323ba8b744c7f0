"""Other engines read through pageseek: they say which columns and rows they want, and get no others (docs/engines.md).

| file | job |
|---|---|
| `arrow_dataset` | the public function `dataset`: a dataset of pyarrow, as duckdb, polars and datafusion take it |
| `asked` | the arguments with which an engine asks for rows, as a scan |
| `scanner` | the rows of one question |
| `fragments` | the files of a dataset one by one |
| `projection` | columns that are computed or renamed |
| `polars` | `pageseek.polars.scan`: a LazyFrame |
| `polars_predicate` | predicates of polars as filters of this package |
"""
