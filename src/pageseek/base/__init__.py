"""What every other folder builds on; nothing here knows Parquet.

| file | job |
|---|---|
| `errors` | the exceptions that users see |
| `records` | dataclasses that are made quickly |
| `limits` | the sizes that a file may claim |
| `report` | the counts of one scan, and how they are shown |
| `progress` | the bar of a long scan |
| `memory` | buffers that are kept from one scan to the next |
| `workers` | the threads of one scan |
| `in_parts` | a row of things, divided among threads |
| `cancellation` | how a thread that waits learns that nobody needs the answer |
| `arrays`, `batches` | Arrow arrays, tables and batches, made without pandas |
"""
