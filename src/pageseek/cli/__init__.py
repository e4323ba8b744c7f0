"""The command `pageseek`.

Modules of subcommands are imported when one is run. They import pyarrow in functions, so that help and completion need none.

| file | job |
|---|---|
| `main` | commands, exit codes, errors |
| `arguments` | the parser, its errors, and options that several commands have |
| `scan` (and `explain`, `head`), `count`, `schema`, `inspect` | commands that read |
| `inspect_files` | the table of `inspect` for several files |
| `index`, `rewrite`, `advise` | commands that write, and that give advice |
| `completion` | scripts for shells |
| `rows` | rows as a table |
| `formats` | rows as Arrow, Parquet, CSV and JSON lines, to a file or a pipe |
| `plots` | the option `--plot` |
| `terminal` | colour, widths and tables of a terminal |
| `text` | values, sizes, strips and JSON |
"""

from pageseek.cli.main import main

__all__ = ["main"]
