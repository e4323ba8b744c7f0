"""What of a Spark session reading depends on.

| file | job |
|---|---|
| `settings` | its settings |
| `hadoop` | its settings of Hadoop |
| `zone` | its local times |
| `names` | columns as it finds them, whose case may not matter |
| `one_spelling` | one name for what files spell in several ways |
| `progress` | whether it shows bars |
"""
