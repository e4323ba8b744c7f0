"""Filters: what users write, and what the core runs.

| file | job |
|---|---|
| `expression` | the expression tree that all forms of a filter become |
| `filters` | a filter in whatever form, as such a tree |
| `sql`, `iso8601` | filters as SQL, and the times in them |
| `dnf`, `pyarrow_filter` | filters as lists of tuples, and as pyarrow's expressions |
| `operators` | the operators: how each form of a filter writes them, and which kernel evaluates them |
| `bind` | an expression bound to the leaves of a file |
| `schema_names` | what a binder asks of a schema |
| `leaf_tests` | conditions on one leaf that a kernel answers |
| `residuals`, `arrow_conditions` | conditions that only values answer, those of pyarrow among them |
| `like`, `column_pairs` | how such conditions are evaluated |
| `dataset_conditions`, `constant_column` | conditions on columns that a file of many lacks, or has with one value |
| `comparison_faults` | errors of conditions that do not fit their columns |
| `bound` | the tree that binding makes, which pruners and evaluation read |
| `simplify` | several bound conditions as fewer |
| `given_values` | the values of a condition, fitted to the type of a leaf |
| `literal`, `in_literals`, `in_arrays` | exact values of a column's domain, one by one and by the thousand |
| `masks` | rows of decoded arrays that pass a test, as bitmaps |
| `search` | `lower_bound` and `upper_bound` of sorted arrays |
| `text` | literals as text, and a caret below a place in SQL |
"""
