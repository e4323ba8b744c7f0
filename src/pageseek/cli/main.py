"""Commands, exit codes and errors.

Exit codes: 0 done, 1 a file or a request that cannot be served, 2 wrong arguments, 130 interrupted.
"""

from __future__ import annotations

import argparse
import errno
import importlib
import os
import re
import sys
from collections.abc import Sequence
from functools import partial

from pageseek.base.errors import (
    CorruptFileError,
    FileChangedError,
    LimitError,
    NoColumnError,
    PageseekError,
    PredicateError,
    UnsupportedError,
)
from pageseek.base.version import __version__
from pageseek.cli import terminal
from pageseek.cli.arguments import Parser, UsageError, add_colour
from pageseek.cli.wording import in_options

# modules of subcommands, with the commands of each in the order of the help
ROOMS = {
    "scan": ("head", "scan", "explain"),
    "count": ("count",),
    "schema": ("schema",),
    "inspect": ("inspect",),
    "index": ("index",),
    "rewrite": ("rewrite",),
    "advise": ("advise",),
    "completion": ("completion",),
}
COMMANDS = [name for names in ROOMS.values() for name in names] + ["help", "bench"]
FILTERED = ("head", "scan", "explain", "count")  # have --where
VERSIONS = ["--version"], ["-V"]
HELPED = "helped"  # the command that `help` is asked about
CODES = "exit codes: 0 done; 1 a file or a request that cannot be served; 2 wrong arguments; 130 interrupted"
EXAMPLES = """examples:
  pageseek head orders.parquet
  pageseek count 'sales/*.parquet' --where "price < 10"
  pageseek explain orders.parquet --where "o_orderkey = 4711" --analyze
  pageseek scan orders.parquet --where "o_orderkey = 4711" --output found.csv"""
OVERVIEW = f"""pageseek {__version__} reads from Parquet files only the pages that an answer needs.

look     pageseek head FILE                  the first rows
         pageseek schema FILE                columns and their types
         pageseek inspect FILE               row groups, pages and indexes; --plot draws them
find     pageseek scan FILE --where SQL      the rows that pass a filter, as table, CSV, JSON, Arrow or Parquet
         pageseek count FILE --where SQL     how many there are
         pageseek explain FILE --where SQL   what is read for them, and why not more
improve  pageseek advise FILE --where SQL    what would make a filter cheaper
         pageseek index attach FILE          page index, Bloom filters and other indexes, added to a file
         pageseek rewrite FILE               the file rewritten: sorted, in small pages

`pageseek help` lists all commands, `pageseek help COMMAND` the options of one, with examples."""

REMEDIES: tuple[tuple[type[BaseException], str], ...] = (
    (NoColumnError, "`pageseek schema FILE` lists the columns and their types"),
    (CorruptFileError, "write or copy the file again"),
    (FileChangedError, "run the command again"),
    (UnsupportedError, "choose other columns with --columns, or read the file with pyarrow"),
    (LimitError, "read fewer columns or rows"),
    (FileNotFoundError, "check the path"),
)
OWN_REMEDY = (
    "download the file",
    "write another --format",
    "write --format",
    "pyarrow reads them",
    "leave it out by",
    "give --table-version",
    "or --table-version",
    "give --snapshot",
    "names no snapshot",
)
# messages with a better remedy than that of their kind
OWN_REMEDIES = (
    "an empty name",
    "symbolic link",
    "as CSV and JSON do",
    "there is no folder",
    "no such file; ",
    "in this directory",
    "no file matches",
)


def parser(rooms: Sequence[str] | None = None) -> argparse.ArgumentParser:
    """The arguments of every subcommand, or of those in some modules."""
    made = Parser(
        prog="pageseek",
        description="Reads from Parquet files only the pages that an answer needs.",
        epilog=f"{EXAMPLES}\n\n{CODES}",
    )
    made.add_argument("-V", "--version", action="version", version=f"pageseek {__version__}")
    add_colour(made)
    made.set_defaults(_parser=made, color="auto")
    commands = made.add_subparsers(
        title="commands", dest="command", metavar="COMMAND", required=True
    )
    for room in ROOMS if rooms is None else rooms:
        importlib.import_module(f"pageseek.cli.{room}").add_parser(commands)
    # both are done before anything is parsed, unless options stand before them
    for name, words, said in (
        ("help", HELPED, "list the commands, or the options of one"),
        ("bench", "words", "time pageseek beside other engines (pageseek-bench)"),
    ):
        later = commands.add_parser(name, help=said, add_help=False, prefix_chars="\0")
        later.add_argument(words, nargs=argparse.REMAINDER)
        later.set_defaults(run=partial(_later, words))
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command with the given arguments, or those of the process; return the exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    with terminal.streams():
        return _run(given)


def _run(given: list[str]) -> int:
    try:
        if not given:
            print(OVERVIEW)
            return 0
        if given[0] == "help":
            given = _asked(given[1:])
        if given[0] == "bench":
            # imported by name: the command works without the benchmarks, and `cli` must not depend on them
            benched: int = importlib.import_module("pageseek.bench.cli").main(given[1:])
            return benched
        options = _parsed(given)
        terminal.choose(options.color)
        code: int = options.run(options)
        sys.stdout.flush()
        return code
    except BrokenPipeError:  # the reader of the output, such as `head`, has ended
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 0
    except KeyboardInterrupt:
        return 130
    except (PageseekError, OSError, ValueError, TypeError, ImportError) as error:
        return _failed(error, given)
    except _arrows() as error:
        return _failed(error, given)


def _parsed(given: list[str]) -> argparse.Namespace:
    """The options. Only the module of the command is imported, if it is the first word."""
    room = next((room for room, names in ROOMS.items() if given[0] in names), None)
    rooms = [room] if room is not None else [] if given in VERSIONS else None
    options, unknown = parser(rooms).parse_known_args(given)
    if unknown:  # the parser of the subcommand knows its options
        options._parser.error("unrecognized arguments: " + " ".join(unknown))
    return options


def _later(words: str, options: argparse.Namespace) -> int:
    return _run([options.command, *getattr(options, words)])


def _asked(words: Sequence[str]) -> list[str]:
    """`pageseek help COMMAND` as `pageseek COMMAND --help`."""
    commands = [word for word in words if not word.startswith("-") and word != "help"]
    return [*commands, "--help"]


def _arrows() -> tuple[type[BaseException], ...]:
    """The errors of pyarrow, if it was imported. This is asked when an error is under way."""
    pyarrow = sys.modules.get("pyarrow")
    return () if pyarrow is None else (pyarrow.ArrowException,)


def _failed(error: BaseException, given: list[str]) -> int:
    from pageseek.cli.text import safe  # late: help needs none

    command = next((word for word in given if word in COMMANDS), "")
    said = terminal.stderr().red("pageseek:")
    print(f"{said} {safe(_line(error, command, given))}", file=sys.stderr)
    return 2 if isinstance(error, UsageError) else 1


def _line(error: BaseException, command: str, given: Sequence[str] = ()) -> str:
    if str(error).startswith("filter:"):  # it points at the place, and has its own remedy
        return in_options(str(error), given)
    text, place = str(error), ""
    if (
        isinstance(error, PredicateError) and error.at is not None
    ):  # two more lines point at the place
        text, newline, place = text.partition("\n")
        place = newline + place
    text = " ".join(text.split()) or type(error).__name__
    if isinstance(error, OSError) and text.startswith("[Errno "):
        # what was written under a name has it; a full disk behind standard output has none
        unnamed = "standard output" if error.errno == errno.ENOSPC else None
        if (name := error.filename or unnamed) is not None:
            text = f"{name}: {(error.strerror or '').lower()}"  # as other commands say it
    if "table=False" in text:  # the error has its remedy
        return in_options(text.replace("table=False", "--no-table"), given) + place
    more = importlib.import_module("pageseek.cli.rewrite").WORDS if command == "rewrite" else ()
    text = in_options(text, given, more)
    if isinstance(error, UnsupportedError) and (
        command in ("index", "rewrite") or any(word in text for word in OWN_REMEDY)
    ):  # its remedy below is about reading columns
        return text
    remedy = next((remedy for kind, remedy in REMEDIES if isinstance(error, kind)), None)
    name = os.path.basename(text.partition(": ")[0])
    if isinstance(error, FileNotFoundError) and command in FILTERED and re.search("[<>=]", name):
        remedy = "check the path; a condition stands behind --where"
    if text.startswith("standard input: ") or any(word in text for word in OWN_REMEDIES):
        remedy = None
    return (text if remedy is None else f"{text} ({remedy})") + place
