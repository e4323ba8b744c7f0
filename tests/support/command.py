"""The command, run in this process."""

from __future__ import annotations

import pytest

from pageseek.cli import main

ROWS = 4_000  # of the file that tests of the command read


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(list(arguments))
    seen = capsys.readouterr()
    return code, seen.out, seen.err
