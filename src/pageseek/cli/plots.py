"""The option `--plot`: a picture in a file."""

from __future__ import annotations

import argparse
import os
import sys
from typing import Any

ENDINGS = (".png", ".svg", ".pdf")


def add_plot(made: argparse.ArgumentParser, what: str) -> None:
    """Add the option."""
    made.add_argument(
        "--plot", type=_picture, metavar="FILE", help=f"{what}, as {', '.join(e[1:] for e in ENDINGS)} by its ending (needs matplotlib)"
    )  # fmt: skip
    made.add_argument("--overwrite", action="store_true", help="let --plot replace a file that is there")  # fmt: skip


def _picture(value: str) -> str:
    if os.path.splitext(value)[1].lower() not in ENDINGS:
        raise argparse.ArgumentTypeError(
            f"{value!r}: a picture is a file whose name ends in {', '.join(ENDINGS)}"
        )
    return value


def check_plot(options: argparse.Namespace) -> None:
    """Refuse a picture that cannot get its name, or would replace a file, before anything is read."""
    if options.plot is not None:
        from pageseek.storage.atomic_files import refuse_place

        refuse_place(options.plot, options.overwrite)


def saved(figure: Any, options: argparse.Namespace) -> None:
    """Write a picture, and say so beside the output."""
    from pageseek.pictures.figures import save

    save(figure, options.plot, replace=options.overwrite)
    print(f"{options.plot}: drawn", file=sys.stderr)
