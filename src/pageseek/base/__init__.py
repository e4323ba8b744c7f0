"""What every other folder builds on; nothing here knows Parquet.

| file | job |
|---|---|
| `errors` | the exceptions that users see |
| `tracebacks` | short tracebacks of errors that are raised on purpose |
| `records` | dataclasses that are made quickly |
| `late_modules` | modules of others, and functions of folders above, that are imported when they are used |
| `arguments` | arguments that callers give, checked |
| `limits` | the sizes that a file may claim |
| `report` | the counts of one scan |
| `report_text`, `report_html` | a report as text, and as HTML for notebooks |
| `progress` | the bar of a long scan |
| `memory` | buffers that are kept from one scan to the next |
| `text_table` | aligned tables for terminals |
| `escapes` | texts without what a terminal or a page obeys |
| `html` | tables and bars for notebooks |
| `log` | what the loggers of the standard library are told |
| `packages` | packages that only some functions need |
| `suggest` | the names that are nearest to one that is not there |
| `workers` | the threads of one scan |
| `in_parts` | work on many things, divided among threads |
| `coroutines` | coroutines that run side by side, and end together |
| `cancellation` | how a thread that waits learns that nobody needs the answer |
| `arrays`, `batches` | Arrow arrays, tables and batches, made without pandas |
| `mapped_types` | types of Arrow in which those of leaves are replaced |
| `wide_decimals` | decimals of 32 and 64 bits as those of 128 bits |
| `bounded_cache` | results that were wanted last |
"""
