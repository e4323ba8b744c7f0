"""Colour, widths and tables of a terminal."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pageseek.cli import terminal
from pageseek.cli.terminal import Look

if sys.platform == "win32":
    pytest.skip("no pseudo-terminals", allow_module_level=True)

ESCAPE = re.compile(r"\x1b\[[0-9;]*m")
WIDE = ["a" * 30, "漢字" * 10, "1234567890" * 2]


def in_terminal(width: int, *arguments: str, **environment: str) -> str:
    """What the command prints in a terminal of a width."""
    import fcntl
    import pty
    import struct
    import termios

    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, width, 0, 0))
    kept = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "NO_COLOR", "TERM")}
    env = kept | {"TERM": "xterm-256color", "PYTHONIOENCODING": "utf-8"} | environment
    command = [sys.executable, "-m", "pageseek", *arguments]
    with subprocess.Popen(command, stdout=theirs, stderr=theirs, stdin=theirs, env=env) as process:
        os.close(theirs)
        seen = b""
        while True:
            try:
                part = os.read(ours, 1 << 16)
            except OSError:  # the other end is closed
                break
            if not part:
                break
            seen += part
        process.wait()
    os.close(ours)
    return seen.decode().replace("\r\n", "\n")


@pytest.mark.parametrize("width", [72, 200])
def test_lines_fit_the_terminal_and_are_coloured(width: int, path: str) -> None:
    commands = [
        ["explain", path, "--where", "id = 7"],
        ["inspect", path, "--column", "id"],
        ["head", path],
    ]
    for arguments in commands if width == 72 else commands[2:]:
        out = in_terminal(width, *arguments)
        assert ESCAPE.search(out)
        lines = [ESCAPE.sub("", line) for line in out.splitlines()]
        assert max(map(terminal.wide, lines)) <= max(width, len(path)), lines
        assert "head" not in arguments or "int64" in lines[1]


def test_values_are_said_to_be_cut_only_where_they_are_shown(tmp_path: Path) -> None:
    path = tmp_path / "wide.parquet"
    table = pa.table({"id": [1], "long": ["x" * 50], "sum": [123456789], "last": [987654321]})
    pq.write_table(table, path)
    for width, is_shown in ((200, True), (30, False)):
        out = ESCAPE.sub("", in_terminal(width, "head", str(path)))
        assert ("xxx" in out) == ("1 value is cut at 40 characters" in out) == is_shown, out


def test_no_color_gets_plain_text_and_errors_are_coloured(path: str) -> None:
    assert not ESCAPE.search(in_terminal(80, "head", path, NO_COLOR="1"))
    refused = in_terminal(80, "head", "-")
    assert ESCAPE.search(refused) and "nothing is piped in" in refused


class Stream:
    encoding = "utf-8"

    def __init__(self, terminal: bool) -> None:
        self.isatty = lambda: terminal


def test_the_option_goes_before_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(terminal, "_chosen", "auto")

    def coloured(stream: Stream) -> bool:
        return terminal._look(stream).colour

    assert coloured(Stream(True)) and not coloured(Stream(False))
    assert terminal._look(Stream(False)).width is None
    monkeypatch.setenv("TERM", "dumb")
    assert not coloured(Stream(True))
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")
    assert not coloured(Stream(True))
    terminal.choose("always")
    assert coloured(Stream(True)) and coloured(Stream(False))
    terminal.choose("never")
    monkeypatch.delenv("NO_COLOR")
    assert not coloured(Stream(True))
    assert not terminal._look(None).colour


@pytest.mark.parametrize("width", [10, 20, 40, 60, 300])
@pytest.mark.parametrize("drawn", [False, True])
def test_tables_are_narrowed_or_lose_columns_but_numbers_stay_whole(
    width: int, drawn: bool
) -> None:
    look = Look(width=width, drawn=drawn)
    head = ["text", "wide", "number", "last"]
    lines = terminal.table(head, [[*WIDE, "z"]], right=(2,), look=look, under=["string"] * 4)
    assert all(terminal.wide(line) <= width for line in lines)
    numbers = re.findall(r"\d+", "".join(lines[3:4]))
    assert numbers in ([], [WIDE[2]])
    hidden = [name for name in head if name not in lines[0].split()]
    if hidden and width >= 40:
        assert all(name in lines[-1] for name in hidden)
    if width == 300:
        assert not hidden and WIDE[1] in lines[3]


def test_columns_are_left_out_in_the_order_asked() -> None:
    row = ["x" * 12] * 5
    lines = terminal.table(list("abcde"), [row], look=Look(width=45), drop=(4, 0))
    assert lines[0].split() == ["...", "b", "c", "d"] or lines[0].split() == ["b", "c", "d", "..."]


def test_columns_that_fit_in_the_end_come_back_the_last_that_was_left_out_first(path: str) -> None:
    row = ["x" * 9, "yy", "z" * 30, "v" * 4, "w" * 9]
    lines = terminal.table(
        list("abcde"), [row], (0, 1, 2, 3, 4), look=Look(width=35), drop=(3, 1, 2)
    )
    assert lines[0].split() == ["a", "b", "...", "d", "e"], lines
    assert lines[2].split() == ["x" * 9, "yy", "...", "v" * 4, "w" * 9]
    lines = terminal.table(
        list("abcde"), [row], (0, 1, 2, 3, 4), look=Look(width=34), drop=(3, 1, 2)
    )
    assert lines[0].split() == ["a", "b", "...", "e"], lines
    out = ESCAPE.sub("", in_terminal(20, "schema", path))
    assert re.search(r"^id +int64 +…$", out, re.MULTILINE), out
    out = ESCAPE.sub("", in_terminal(40, "inspect", path))
    assert re.search(r"^ +0  …  id +10  0$", out, re.MULTILINE), out


def test_wide_characters_are_measured() -> None:
    assert terminal.wide("漢a") == 3
    assert terminal.wide("e\u0301") == 1
    assert terminal.cut("漢字漢字", 5, "…") == "漢字…"
    assert terminal.cut("abc", 3) == "abc"


def test_plain_tables_stay_as_they_are(capsys: Any) -> None:
    lines = terminal.table(["a", "b"], [["1", "x"], ["22", "-"]], (0,), look=Look(), nulls="-")
    assert lines == [" a  b", "--  -", " 1  x", "22  -"]


def test_explain_in_a_narrow_terminal_breaks_no_line_of_a_table(path: str) -> None:
    out = ESCAPE.sub("", in_terminal(40, "explain", path, "--where", "id = 7"))
    lines = out.splitlines()
    assert max(map(terminal.wide, lines)) <= 40 or len(path) > 36
    assert re.search(r"^  rows        █+░+  \d", out, re.MULTILINE)  # a number beside its bar
    assert re.search(r"^      \d+ pages less: ", out, re.MULTILINE)
    words = " ".join(out.split())  # none is broken
    assert "pages less: the bounds in the column index prove that no row in them matches" in words
    assert max(len(line) - len(line.lstrip()) for line in lines) == 6  # nothing hangs on the right
    rows = [line.split() for line in lines if re.match(r"  (id|name|day) ", line)]
    assert len(rows) == 3 and {len(row) for row in rows} == {6}, out
    assert [row[1:3] + row[-1:] for row in rows] == [["1", "of", "200"]] * 3


def test_numbers_and_moments_are_whole_or_left_out() -> None:
    moments = ["2024-01-31 12:00:00", "2024-01-31 13:30:00"]
    rows = [[moment, "a text of many words", "1234567890123456"] for moment in moments]
    for width in range(8, 70):
        lines = terminal.table(["at", "text", "mixed"], rows, look=Look(width=width))
        assert all(terminal.wide(line) <= width for line in lines)
        if width >= 26:
            kept = lines[0].split()
            assert ("at" in kept) <= (moments[0] in lines[2]), (width, lines)
            assert ("mixed" in kept) <= (rows[0][2] in lines[2]), (width, lines)


def test_columns_that_do_not_fit_are_named_in_a_few_lines() -> None:
    head = [f"name{i}" for i in range(100)]
    lines = terminal.table(head, [["x" * 12] * 100], look=Look(width=40))
    assert lines[3].startswith("(9") and "columns do not fit: name" in " ".join(lines[3:])
    assert len(lines) == 6 and max(map(len, lines)) <= 40 and lines[-1].endswith("...")


def test_types_and_names_of_columns_are_kept_in_narrow_terminals(path: str, tmp_path: Path) -> None:
    moments = str(tmp_path / "a.parquet")
    pq.write_table(pa.table({"at": pa.array([0], pa.timestamp("us", "UTC"))}), moments)
    assert "timestamp[us, tz=UTC]" in in_terminal(36, "schema", moments)
    out = ESCAPE.sub("", in_terminal(40, "schema", path))
    assert "date32[day]" in out and "BYTE_ARRAY" not in out and "stored as)" in out
    out = ESCAPE.sub("", in_terminal(40, "inspect", path))
    assert all(f"  {name}  " in out for name in ("id", "scattered", "odd name")), out
