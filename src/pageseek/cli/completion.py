"""`pageseek completion SHELL`: a script with which a shell completes commands, options and names of files."""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

from pageseek.cli.arguments import command

SHELLS = ("bash", "zsh", "fish")
FILES = (
    "source",
    "file",
    "files",
    "output",
    "plot",
)  # arguments that are completed by names of files
FOLDERS = ("spill_folder",)


def add_parser(commands: Any) -> None:
    """Add the subcommand."""
    made = command(
        commands, "completion", "a script that completes commands and options in a shell",
        "Prints a script with which a shell completes commands, options and names of files.",
        """pageseek completion bash > ~/.local/share/bash-completion/completions/pageseek
        pageseek completion zsh > ~/.zfunc/_pageseek   # a folder of fpath
        pageseek completion fish > ~/.config/fish/completions/pageseek.fish""",
        _run,
    )  # fmt: skip
    made.add_argument("shell", choices=SHELLS, metavar="SHELL", help=", ".join(SHELLS))


def _run(options: argparse.Namespace) -> int:
    if find_spec("shtab") is None:
        raise ImportError(
            "completion is made by shtab, which is not installed: pip install 'pageseek[cli]'"
        )
    shtab = importlib.import_module("shtab")
    main = importlib.import_module("pageseek.cli.main")
    parser = main.parser()
    for action in _actions(parser):
        if action.dest == main.HELPED:
            action.choices = [name for name in main.COMMANDS if name != "help"]
        elif action.dest in FILES:
            action.complete = shtab.FILE  # type: ignore[attr-defined]
        elif action.dest in FOLDERS:
            action.complete = shtab.DIRECTORY  # type: ignore[attr-defined]
    print(shtab.complete(parser, shell=options.shell))
    return 0


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for inner in action.choices.values():
                yield from _actions(inner)
        else:
            yield action
