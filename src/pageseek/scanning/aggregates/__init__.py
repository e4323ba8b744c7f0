"""Counts, least and greatest values.

| file | job |
|---|---|
| `aggregate` | them, from what costs least |
| `aggregate_metadata`, `aggregate_bounds` | from footers and page indexes |
| `aggregate_columns`, `aggregate_values` | the columns that are asked for; from values |
"""
