"""Arguments, exit codes and errors of the command.

Exit codes: 0 done, 1 a file or a request that cannot be served, 2 wrong arguments, 130 interrupted.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Sequence

import pyarrow as pa

from pageseek.base.errors import (
    CorruptFileError,
    FileChangedError,
    LimitError,
    PageseekError,
    PredicateError,
    UnsupportedError,
)
from pageseek.base.version import __version__
from pageseek.cli import advise, index, inspect, rewrite, scan

REMEDIES: tuple[tuple[type[BaseException], str], ...] = (
    (PredicateError, "`pageseek inspect FILE` lists the columns and their types"),
    (CorruptFileError, "write or copy the file again"),
    (FileChangedError, "run the command again"),
    (UnsupportedError, "choose other columns with --columns, or read the file with pyarrow"),
    (LimitError, "read fewer columns or rows"),
    (FileNotFoundError, "check the path"),
)


def parser() -> argparse.ArgumentParser:
    """The arguments of every subcommand."""
    made = argparse.ArgumentParser(
        prog="pageseek", description="Reads from Parquet files only the pages that an answer needs."
    )
    made.add_argument("--version", action="version", version=f"pageseek {__version__}")
    commands = made.add_subparsers(
        title="commands", dest="command", metavar="COMMAND", required=True
    )
    for room in (inspect, scan, index, rewrite, advise):
        room.add_parser(commands)
    commands.add_parser(
        "bench", add_help=False, help="time pageseek beside other engines (pageseek-bench)"
    )
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command with the given arguments, or those of the process; return the exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        if given[:1] == ["bench"]:
            # imported by name: the command works without the benchmarks, and `cli` must not depend on them
            benched: int = importlib.import_module("pageseek.bench.cli").main(given[1:])
            return benched
        options = parser().parse_args(given)
        code: int = options.run(options)
        sys.stdout.flush()
        return code
    except BrokenPipeError:  # the reader of the output, such as `head`, has ended
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 0
    except KeyboardInterrupt:
        return 130
    except (PageseekError, OSError, ValueError, TypeError, pa.ArrowException) as error:
        print(f"pageseek: {_line(error, next(iter(given), ''))}", file=sys.stderr)
        return 1


def _line(error: BaseException, command: str) -> str:
    if str(error).startswith("filter:"):  # it points at the place, and has its own remedy
        return str(error)
    text, place = str(error), ""
    if (
        isinstance(error, PredicateError) and error.at is not None
    ):  # two more lines point at the place
        text, newline, place = text.partition("\n")
        place = newline + place
    text = " ".join(text.split()) or type(error).__name__
    if "table=False" in text:  # the error has its remedy
        return index.in_options(text.replace("table=False", "--no-table")) + place
    if command in ("index", "rewrite"):
        text = rewrite.said(text) if command == "rewrite" else index.in_options(text)
        if isinstance(error, UnsupportedError):  # its remedy below is about reading
            return text
    remedy = next((remedy for kind, remedy in REMEDIES if isinstance(error, kind)), None)
    return (text if remedy is None else f"{text} ({remedy})") + place
