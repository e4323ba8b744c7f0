"""Filters with the meaning that Spark gives them, as expressions of this package.

| file | job |
|---|---|
| `dialect` | Spark's SQL as text |
| `meaning` | casts and comparisons as Spark does them |
| `catalyst` | predicates that Spark pushes into a table |
| `pushed_filters` | filters that Spark pushes into a Python Data Source |
| `sparks` | filters that Spark binds itself, and what of them is known here |
| `conjuncts` | the conditions that AND joins in SQL |
| `sent` | Columns of a Connect client |
| `binding` | conditions, bound to the columns of a source |
"""
