"""The format as a Python Data Source: over Connect, and for streams.

| file | job |
|---|---|
| `source` | the format |
| `planning` | what it plans, without a session |
| `growing` | files that appear, and the offsets of streams |
"""
