"""What every other folder builds on; nothing here knows Parquet.

| file | job |
|---|---|
| `errors` | the exceptions that users see |
| `records` | dataclasses that are made quickly |
| `late_modules` | modules of others that are imported when they are used |
| `arguments` | arguments that callers give, checked |
| `limits` | the sizes that a file may claim |
| `report` | the counts of one scan, and how they are shown |
| `progress` | the bar of a long scan |
| `memory` | buffers that are kept from one scan to the next |
| `text_table` | aligned tables for terminals |
| `suggest` | the names that are nearest to one that is not there |
| `workers` | the threads of one scan |
| `in_parts` | work on many things, divided among threads |
| `cancellation` | how a thread that waits learns that nobody needs the answer |
| `arrays`, `batches` | Arrow arrays, tables and batches, made without pandas |
| `bounded_cache` | results that were wanted last |
"""
