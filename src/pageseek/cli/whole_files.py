"""`--output` of commands that write a whole Parquet file: a path, or `-` for standard output."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from pageseek.cli.arguments import STDIN, UsageError

STDOUT = STDIN  # the same sign
SAID = "standard output"  # in place of the path of a temporary file


def add_output(where: argparse._MutuallyExclusiveGroup, more: str = "") -> None:
    """Add the option to the group that has `--in-place` too."""
    where.add_argument(
        "-o", "--output", metavar="FILE", help=f"where the new file goes{more}; - for standard output"
    )  # fmt: skip


@contextmanager
def destination(options: argparse.Namespace) -> Iterator[str | None]:
    """The path that a function writes to; None with `--in-place`.

    A writer needs a file that it can finish, so `-` is a temporary file. It is copied to standard output when it is complete.
    """
    if options.output != STDOUT:
        yield options.output
        return
    if options.json:
        raise UsageError("--json and --output - both write to standard output: name a file")
    if sys.stdout.isatty():
        raise UsageError(
            "a Parquet file is binary: write it to a file (--output FILE) or a pipe, not to the terminal"
        )
    import shutil  # late, both: help needs none
    import tempfile

    with tempfile.TemporaryDirectory(prefix="pageseek-") as folder:
        path = os.path.join(folder, "output.parquet")
        yield path
        with open(path, "rb") as made:
            shutil.copyfileobj(made, sys.stdout.buffer, 1 << 20)


def tell(options: argparse.Namespace, text: str) -> None:
    """Print what was done: beside the bytes of the file where these go to standard output."""
    print(text, file=sys.stderr if options.output == STDOUT else sys.stdout)
