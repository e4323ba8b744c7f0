"""The outputs in docs/command-line.md are those of the commands."""

from __future__ import annotations

import re

from pageseek.cli.main import COMMANDS
from support.console_examples import BLOCK, PAGE, rerun, steady


def test_the_page_shows_what_the_commands_print() -> None:
    page = PAGE.read_text()
    commands = re.findall(r"(?m)^\$ pageseek (\w+)", "".join(BLOCK.findall(page)))
    assert len(commands) > 10
    assert steady(rerun(page)) == steady(page)


def test_every_command_is_on_the_page() -> None:
    page = PAGE.read_text()
    assert [name for name in COMMANDS if f"`{name}" not in page] == []
