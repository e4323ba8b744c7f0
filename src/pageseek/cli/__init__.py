"""The command `pageseek`.

| file | job |
|---|---|
| `main` | arguments, exit codes, errors |
| `inspect`, `scan` (and `explain`), `index`, `rewrite`, `advise` | the subcommands |
| `text` | tables, sizes and bars for a terminal |
"""

from pageseek.cli.main import main

__all__ = ["main"]
