"""Dates and times that Spark wrote in its old calendar.

| file | job |
|---|---|
| `calendar_marks` | which files have them; filters on them |
| `rebase` | their values in the calendar of today |
| `zone_history` | what Spark adds to old timestamps of a zone |
"""
