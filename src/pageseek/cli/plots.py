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


def _picture(value: str) -> str:
    if os.path.splitext(value)[1].lower() not in ENDINGS:
        raise argparse.ArgumentTypeError(
            f"{value!r}: a picture is a file whose name ends in {', '.join(ENDINGS)}"
        )
    return value


def saved(figure: Any, path: str) -> None:
    """Write a picture, and say so beside the output."""
    from pageseek.pictures.figures import save

    save(figure, path)
    print(f"{path}: drawn", file=sys.stderr)
