"""What of a Spark session reading depends on.

| file | job |
|---|---|
| `settings` | its settings |
| `zone` | its local times |
| `names` | columns as it finds them, whose case may not matter |
"""
