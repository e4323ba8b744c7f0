"""All reads of files.

| file | job |
|---|---|
| `range_requests` | generators that yield the byte ranges they want and receive the bytes |
| `coalesce` | which ranges become one request |
| `fetch` | reads ranges of one file and counts them |
| `tails` | the last bytes of many local files, read together |
| `version_checks` | files of a remote store that are read before the store has confirmed their version |
"""
