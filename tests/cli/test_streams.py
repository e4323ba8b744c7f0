"""Standard output and standard error: what reaches them, and what if they are odd."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pageseek.cli import main
from support.command import run


def test_no_escape_sequence_of_a_file_reaches_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = "a\x1b]0;pwned\x07\x9b2J\nb"
    inner = pa.struct([(name, pa.int64())])
    table = pa.table({name: [1, 2], "s": pa.array([{name: 1}, None], inner)})
    table = table.replace_schema_metadata({"k": name})
    path = str(tmp_path / "made.parquet")
    pq.write_table(table, path, write_page_index=True)
    body = Path(path).read_bytes()
    Path(path).write_bytes(body.replace(b"parquet-cpp-arrow", b"\x1b[2J\rcpp-arrow".ljust(17)))
    plain = len(run(capsys, "inspect", path)[1].splitlines())
    where = ["--where", f'"{name}" = 1']
    indexed = str(tmp_path / "indexed.parquet")
    for arguments in (
        ["inspect", path], ["inspect", path, "--pages"], ["inspect", path, "--json"],
        ["schema", path], ["schema", path, "--arrow"], ["schema", path, "--json"],
        ["head", path], ["scan", path, "--json"], ["explain", path, *where, "--analyze"],
        ["explain", path, "--json"], ["advise", path, "--filter", where[1]],
        ["index", "attach", path, "--lookup", name, "--output", indexed],
        ["index", "list", indexed], ["index", "verify", indexed],
        ["scan", path, "--columns", f"{name}x"], ["scan", f"{path}{name}"],
    ):  # fmt: skip
        code, out, err = run(capsys, *arguments)
        wrong = arguments[-1].endswith("x") or name in arguments[1]
        assert code == wrong, (arguments, err)
        assert all(c == "\n" or c.isprintable() for c in out + err), (arguments, out, err)
    assert plain == 9  # five of the file, two of the head, two columns
    assert "\\x1b]0;pwned\\x07\\x9b2J\\nb" in run(capsys, "inspect", path)[1]


@pytest.mark.skipif(sys.platform == "win32", reason="a shell of POSIX")
@pytest.mark.parametrize(
    "arguments",
    [["head"], ["scan", "--json"], ["scan", "--format", "arrow"], ["inspect", "--json"], ["count"]],
)
def test_a_closed_output_is_an_error(arguments: list[str], path: str) -> None:
    command = [sys.executable, "-m", "pageseek", *arguments, path]
    done = subprocess.run(["sh", "-c", 'exec "$@" >&-', "sh", *command], capture_output=True, text=True, check=False)  # fmt: skip
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1 and "standard output is closed" in done.stderr, done.stderr
    if os.path.exists("/dev/full"):
        done = subprocess.run(["sh", "-c", 'exec "$@" >/dev/full', "sh", *command], capture_output=True, text=True, check=False)  # fmt: skip
        assert (done.returncode, done.stderr) == (1, "pageseek: standard output: no space left on device\n")  # fmt: skip
    done = subprocess.run(["sh", "-c", 'exec "$@" 2>&-', "sh", *command, "nope"], capture_output=True, text=True, check=False)  # fmt: skip
    assert (done.returncode, done.stdout) == (1, "")


def test_a_file_is_written_while_the_output_is_closed(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    monkeypatch.setattr(sys, "stderr", None)
    assert main(["scan", path, "--output", str(tmp_path / "o.csv")]) == 0
    assert sys.stdout is None and sys.stderr is None


def test_an_output_in_ascii_gets_escapes(tmp_path: Path) -> None:
    path = str(tmp_path / "made.parquet")
    pq.write_table(pa.table({"é漢": ["ü"]}), path)
    env = os.environ | {"PYTHONIOENCODING": "ascii"}
    for arguments in (["head"], ["inspect"], ["schema"], ["explain"], ["inspect", "--json"], ["scan", "--columns", "ö"]):  # fmt: skip
        command = [sys.executable, "-m", "pageseek", *arguments, path]
        done = subprocess.run(command, capture_output=True, env=env, check=False)
        assert (done.stdout + done.stderr).isascii() and b"can't" not in done.stderr, done
        assert done.returncode == (arguments[0] == "scan")
        if "--json" in arguments:
            assert json.loads(done.stdout)["columns"][0]["name"] == "é漢"


def test_csv_on_a_terminal_spells_out_what_a_terminal_obeys(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(tmp_path / "a.parquet")
    pq.write_table(pa.table({"a": ["\x1b[31mé\x07"]}), path)
    assert run(capsys, "scan", path, "--format", "csv")[1] == '"a"\n"\x1b[31mé\x07"\n'
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert run(capsys, "scan", path, "--format", "csv")[1] == '"a"\n"\\x1b[31mé\\x07"\n'


def test_a_table_says_that_values_are_cut(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, text = str(tmp_path / "a.parquet"), str(tmp_path / "a.txt")
    pq.write_table(pa.table({"a": ["x" * 40, "x" * 37 + "...", "x" * 41, None, "y" * 80]}), path)
    said = "2 values are cut at 40 characters; --format jsonl shows them whole\n"
    assert run(capsys, "head", path)[2] == said
    assert run(capsys, "head", path, "-n", "2")[2] == ""
    assert run(capsys, "scan", path, "-o", text)[2].startswith(said)
