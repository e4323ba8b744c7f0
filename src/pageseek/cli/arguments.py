"""The parser, its errors, and options that several commands have. Nothing here imports pyarrow."""

from __future__ import annotations

import argparse
import datetime as dt
import difflib
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NoReturn

COLOURS = ("auto", "always", "never")
STDIN = "-"
SOURCE = "files, directories, globs or URLs; the folder of a table; - for a file on standard input"


class UsageError(ValueError):
    """Options that do not go together, or values that they cannot have."""


class Parser(argparse.ArgumentParser):
    """A parser whose errors name what was probably meant, and where the help is."""

    def __init__(self, *args: Any, **options: Any) -> None:
        options.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        # an option that comes later must not change what a script says
        options.setdefault("allow_abbrev", False)
        super().__init__(*args, **options)
        self.register("action", None, Once)
        self.register("action", "store", Once)
        self._given: Sequence[str] = ()

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """As argparse does. What was given is kept, to tell a misspelt option from one that is missing."""
        self._given = list(sys.argv[1:] if args is None else args)
        return super().parse_known_args(args, namespace)

    def error(self, message: str) -> NoReturn:
        """Print one line and where to find help; exit with 2."""
        wrong = re.match(
            r"argument (?P<what>\S+): invalid choice: '(?P<given>[^']*)'( \(choose from (?P<choices>.*)\))?",
            message,
        )
        unknown = None
        if message.startswith("unrecognized arguments: "):
            unknown = message.partition(": ")[2]
            if not unknown.startswith("-"):
                message, unknown = f"not expected: {unknown}", None
        elif message.endswith(" required") or "arguments are required: " in message:
            unknown = next(self._unknown(), None)  # what is missing may be what was misspelt
        if wrong is not None:
            choices = [
                str(name)
                for action in self._actions
                if action.choices and argparse._get_action_name(action) == wrong["what"]
                for name in action.choices
            ]
            what = wrong["what"].lower()
            nearest = _nearest(wrong["given"], choices)
            if what == "command" and os.path.exists(wrong["given"]):
                nearest = f"; `{self.prog} inspect {wrong['given']}` shows what is there"
            message = f"no {what} {wrong['given']!r}{nearest}"
            if what.startswith("-"):
                message = f"{what} {wrong['given']}: it is one of {', '.join(choices)}{nearest}"
        elif unknown is not None:
            message = f"no option {unknown.split()[0]}{_nearest_option(unknown.split()[0], self._options())}"
        print(f"{self.prog}: {message}", file=sys.stderr)
        print(f"`{self.prog} --help` shows what there is", file=sys.stderr)
        raise SystemExit(2)

    def _options(self) -> list[str]:
        return [name for action in self._actions for name in action.option_strings]

    def _unknown(self) -> Iterator[str]:
        """What was given and looks like an option, and is none."""
        known = self._options()
        for word in self._given:
            if word == "--":
                return
            name = word.partition("=")[0] if word.startswith("--") else word[:2]
            if re.match("--?[A-Za-z]", word) and name not in known:
                yield word


class Once(argparse.Action):
    """Keeps one value. An option that is given a second time is refused: one of its values would be lost."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option: Any = None) -> None:
        if option is not None and _was_given(namespace, self.dest):
            parser.error(f"{option} is given twice; one value is used")
        setattr(namespace, self.dest, values)


class Added(argparse.Action):
    """Keeps the names of every time that an option is given, in order."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option: Any = None) -> None:
        if _was_given(namespace, self.dest):
            before = getattr(namespace, self.dest)
            if isinstance(before, list) and isinstance(values, list):
                values = [*before, *values]
            elif isinstance(before, dict) and isinstance(values, dict):
                twice = next((name for name in before.keys() & values), None)
                if twice is not None and before[twice] != values[twice]:
                    parser.error(
                        f"{option}: {twice!r} is given {before[twice]} and {values[twice]}"
                    )
                values = before | values
            elif before != values:
                parser.error(f"{option} is given names, and all or none as well")
        setattr(namespace, self.dest, values)


def _was_given(namespace: Any, name: str) -> bool:
    """Whether an option was given before. It is given from now on."""
    given: set[str] = namespace.__dict__.setdefault("_given", set())
    if name in given:
        return True
    given.add(name)
    return False


# options of other commands, and letters for ours
_MEANT = {
    "-w": "--where", "-f": "--format", "-c": "--columns", "--select": "--columns", "--fields": "--columns",
    "--cols": "--columns", "--query": "--where", "--sql": "--where", "--rows": "--limit", "--max-rows": "--limit",
    "--head": "--limit", "--out": "--output",
}  # fmt: skip


def _nearest_option(given: str, names: list[str]) -> str:
    """What may be meant by an option that is not there; a letter is near to no other letter."""
    meant = _MEANT.get(given.partition("=")[0])
    if meant in names:
        return f"; did you mean {meant}?"
    if not given.startswith("--"):
        names = [name for name in names if name.lower() == given.lower()]
    return _nearest(given, names)


def _nearest(given: str, names: Iterable[str]) -> str:
    word, known = given.partition("=")[0], list(names)
    found = [name for name in known if name.lower() == word.lower()]
    found = found or difflib.get_close_matches(word, known, 1, 0.5)
    return f"; did you mean {found[0]}?" if found else ""


def command(
    commands: Any, name: str, help: str, description: str, examples: str, run: Callable[..., int] | None = None
) -> Parser:  # fmt: skip
    """Add a subcommand: a line in the list, and a page of help with examples."""
    shown = "\n".join("  " + line.strip() for line in examples.strip().splitlines())
    made: Parser = commands.add_parser(
        name, help=help, description=description, epilog=f"examples:\n{shown}"
    )
    made.set_defaults(_parser=made)
    if run is not None:
        made.set_defaults(run=run)
    add_colour(made)
    return made


def add_colour(made: argparse.ArgumentParser) -> None:
    """Add the option of every command."""
    made.add_argument(
        "--color", "--colour", choices=COLOURS, default=argparse.SUPPRESS, metavar="WHEN",
        help="auto (the default: on a terminal, unless NO_COLOR is set), always or never",
    )  # fmt: skip


def add_table(made: argparse.ArgumentParser) -> None:
    """Add the option of every command that may be given a folder."""
    made.add_argument(
        "--no-table", dest="table", action="store_const", const=False,
        help="read the bare files of a folder that is a table of Delta Lake or Iceberg, not its current version",
    )  # fmt: skip


def add_source(made: argparse.ArgumentParser) -> None:
    """Add the files to read, the filter, and the version of a table."""
    made.add_argument("source", nargs="+", help=SOURCE)
    made.add_argument(
        "--where",
        action="append",
        default=[],
        metavar="SQL",
        help="such as \"a > 35 and b like 'x%%'\"; several are joined by AND",
    )
    add_table(made)
    version = made.add_mutually_exclusive_group()
    version.add_argument(
        "--table-version", type=count, metavar="N", help="a version of a Delta Lake table, in place of the current one"
    )  # fmt: skip
    version.add_argument(
        "--timestamp", type=moment, metavar="TIME", help="the version that was current then, such as 2024-01-31T12:00:00Z"
    )  # fmt: skip
    version.add_argument(
        "--snapshot", type=_snapshot, metavar="ID", help="a snapshot of an Iceberg table: its number, or the name of a branch or tag"
    )  # fmt: skip


def add_columns(made: argparse.ArgumentParser) -> None:
    """Add the columns of the result."""
    made.add_argument(
        "--columns",
        type=names,
        action=Added,
        metavar="A,B",
        help="columns of the result (default: all); repeatable; a name with a comma is quoted: 'a,\"b,c\"'",
    )


def _snapshot(value: str) -> int | str:
    return int(value) if value.isdecimal() else value


NAME = re.compile(r'\s*(?:"((?:[^"]|"")*)"\s*(?=,|$)|([^,]*))(?:,|$)')
KEY = re.compile(r'\s*\(((?:"(?:[^"]|"")*"|[^()"])*)\)\s*(?:,|$)')
RATED = re.compile(r'\s*"((?:[^"]|"")*)"\s*=([^,]*)(?:,|$)')


def _parts(value: str, form: re.Pattern[str] | None = None) -> Iterator[re.Match[str]]:
    """The parts of a list with commas: each has a form, or else is a name. A comma in double quotes divides nothing."""
    at = 0
    while at < len(value):
        found = (form and form.match(value, at)) or NAME.match(value, at)
        assert found is not None  # anything is a name
        yield found
        at = found.end()


def _name(found: re.Match[str]) -> str:
    return found[2].strip() if found[1] is None else _unquoted(found[1])


def _unquoted(name: str) -> str:
    return name.replace('""', '"')


def names(value: str) -> list[str]:
    """A list of names, written with commas. A name in double quotes may have commas and spaces; a quote in it is doubled."""
    return [name for name in map(_name, _parts(value)) if name]


def keys(value: str) -> list[str | tuple[str, ...]]:
    """Names as of `names`, and tuples of them in parentheses."""
    made: list[str | tuple[str, ...]] = []
    for found in _parts(value, KEY):
        if found.re is KEY:
            made.append(tuple(names(found[1])))
        elif name := _name(found):
            made.append(name)
    return made


def rates(value: str) -> dict[str, float]:
    """Names as of `names`, each with a rate of false positives if it has one: `a=0.001`."""
    made = {}
    for found in _parts(value, RATED):
        if found.re is RATED:
            column, rate = _unquoted(found[1]), found[2]
        elif found[1] is not None:
            column, rate = _name(found), ""
        else:
            column, _, rate = _name(found).partition("=")
        if column:
            made[column] = _rate(rate) if rate else 0.01
    return made


def _rate(value: str) -> float:
    try:
        rate = float(value)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{value!r} is no rate, such as 0.01") from error
    if not 0 < rate < 1:
        raise argparse.ArgumentTypeError(f"{value}: a rate is between 0 and 1, such as 0.01")
    return rate


def moment(value: str) -> dt.datetime:
    """A date, or a date and a time, in ISO 8601."""
    try:
        return dt.datetime.fromisoformat(value)
    except ValueError as error:
        raise argparse.ArgumentTypeError(
            f"{value!r} is no time, such as 2024-01-31T12:00:00Z"
        ) from error


def count(value: str) -> int:
    """A number that is not negative."""
    try:
        n = int(value)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{value!r} is no whole number") from error
    if n < 0:
        raise argparse.ArgumentTypeError(f"{value}: not negative")
    return n


def positive(value: str) -> int:
    """A number that is at least 1."""
    if (n := count(value)) < 1:
        raise argparse.ArgumentTypeError(f"{value}: at least 1")
    return n


def sources(given: list[str]) -> Any:
    """What the functions of the package take for the files that were named: one, or a list; `-` is standard input."""
    if STDIN not in given:
        return given if len(given) > 1 else given[0]
    if len(given) > 1:
        raise UsageError("- is a file on standard input, and goes with no other file")
    if sys.stdin is None or sys.stdin.isatty():
        raise UsageError(
            "-: nothing is piped in; name a file, or pipe one in: pageseek head - < FILE"
        )
    from pageseek.storage import Source  # late: few commands need it here

    return Source("standard input", data=sys.stdin.buffer.read())


def expanded(given: list[str]) -> list[Any]:
    """As `sources`, one by one; a glob in quotes is expanded, as the shell expands others."""
    import glob

    if STDIN in given:
        return [sources(given)]
    made: list[Any] = []
    for one in given:
        if "://" in one or os.path.lexists(one) or not glob.has_magic(one):
            made.append(one)
        else:
            made += sorted(glob.glob(one, recursive=True)) or [one]
    return made
