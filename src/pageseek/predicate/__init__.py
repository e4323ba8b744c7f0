"""Filters: what users write, and what the core runs.

| file | job |
|---|---|
| `expression` | the expression tree that all forms of a filter become |
| `filters` | a filter in any accepted form, lists of tuples among them, as such a tree |
| `parameters`, `parameter_values` | placeholders in filters, and the values that calls give for them |
| `sql`, `sql_tokens`, `iso8601` | filters as SQL, their tokens, and the times in them |
| `sql_mistakes` | what to write in place of SQL that filters do not have |
| `pyarrow_filter` | filters as expressions of pyarrow |
| `operators` | the operators: how each form of a filter writes them, and which kernel evaluates them |
| `bind` | an expression bound to the leaves of a file |
| `schema_names` | the protocol by which a binder looks names up |
| `leaf_conditions` | conditions on leaves: tests that a kernel answers, and residuals |
| `like`, `column_pairs` | how residuals are evaluated |
| `arrow_conditions` | conditions of pyarrow |
| `dataset_conditions`, `constant_column` | conditions on columns that one file of a dataset lacks, or has with one value |
| `bound` | the tree that binding makes, which pruners and evaluation read |
| `simplify` | several bound conditions as fewer |
| `literal`, `in_literals`, `in_arrays` | exact values of a column's domain, one by one and by the thousand |
| `masks` | rows of decoded arrays that pass a test, as bitmaps |
| `row_tests` | conditions on one leaf, as the core tests them while it decodes |
| `search` | `lower_bound` and `upper_bound` of sorted arrays |
| `text` | literals as text, and a caret below a place in SQL |
"""
