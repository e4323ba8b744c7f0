"""The command: arguments, exit codes, errors, start."""

from __future__ import annotations

import subprocess
import sys

import pytest

import pageseek as ps
from pageseek.cli import main
from support.command import run


@pytest.mark.parametrize("term", ["", "id >", "id = 'x", "day = date 'tomorrow'", "id is 3"])
def test_a_bad_condition_is_pointed_at(
    term: str, path: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = run(capsys, "scan", path, "--where", term)
    assert (code, out) == (1, "")
    head, line, caret = err.splitlines()
    assert head.startswith("pageseek: filter: ")
    assert line == f"  {term}"
    assert caret.strip() == "^"


@pytest.mark.parametrize("term", ["id < 9 and name = 3", "nope = 3", "odd = 'x\ny' or name in (3)"])
def test_a_condition_that_does_not_fit_is_pointed_at(
    term: str, path: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(ps.PredicateError) as caught:
        ps.read_table(path, filter=term)
    words, line, caret = str(caught.value).split("\n")
    code, out, err = run(capsys, "scan", path, "--where", term)
    assert (code, out) == (1, "")
    assert err.splitlines()[1:] == [line, caret]
    assert err.startswith(f"pageseek: {words} (`pageseek inspect FILE` lists")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["scan", "missing.parquet"], "check the path"),
        (["inspect", "{here}"], "Parquet"),
    ],
)
def test_errors_are_one_line_on_stderr(
    arguments: list[str], words: str, path: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = run(capsys, *(part.format(path=path, here=__file__) for part in arguments))
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert err.startswith("pageseek: ")
    assert words in err


def test_wrong_arguments_exit_with_two(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as error:
        main(["scan", "x.parquet", "--limit", "-1"])
    assert error.value.code == 2
    assert "not negative" in capsys.readouterr().err


def test_module_runs_as_a_command(path: str) -> None:
    command = [sys.executable, "-m", "pageseek"]
    shown = subprocess.run([*command, "--version"], check=True, capture_output=True, text=True)
    assert shown.stdout.strip() == f"pageseek {ps.__version__}"
    counted = subprocess.run(
        [*command, "scan", path, "--limit", "1"], check=True, capture_output=True
    )
    assert counted.stdout.splitlines()[2].startswith(b" 0")
