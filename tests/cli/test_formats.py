"""Rows in other forms than a table: to a file, which appears when it is complete, and to a pipe."""

from __future__ import annotations

import csv
import datetime as dt
import decimal
import io
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek.cli import formats, main
from support.command import ROWS, run

ODD = pa.table(
    {
        "text": ["", None, 'a,"b"\nc'],
        "binary": [b"\x00\xff", None, b""],
        "number": pa.array([decimal.Decimal("1.10"), None, decimal.Decimal("-2.00")]),
        "real": [float("nan"), None, 0.1],
        "half": pa.array([1.5, None, 2.0], pa.float16()),
        "when": [dt.datetime(2024, 1, 31, 12), None, dt.datetime(1969, 1, 1)],
        "tags": [["a", None], None, []],
        "place": [{"x": 1, "day": dt.date(2024, 1, 1)}, None, {"x": None, "day": None}],
        "kind": pa.array(["k", None, "l"]).dictionary_encode(),
        "flag": [True, None, False],
    }
)


@pytest.fixture
def odd(tmp_path: Path) -> str:
    made = tmp_path / "odd.parquet"
    pq.write_table(ODD, made)
    return str(made)


Piped = Callable[..., bytes]


@pytest.fixture
def piped(capsysbinary: pytest.CaptureFixture[bytes]) -> Piped:
    """What the command writes to a pipe."""

    def run_it(*arguments: str) -> bytes:
        assert main(list(arguments)) == 0
        return capsysbinary.readouterr().out

    return run_it


@pytest.mark.parametrize("ending", ["parquet", "arrow", "arrows", "csv", "jsonl", "txt"])
def test_the_ending_of_the_output_says_the_form(
    ending: str, path: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / f"out.{ending}"
    terms = ["--where", "id >= 100 and id < 1200", "--columns", "id,name,day"]
    code, said, err = run(capsys, "scan", path, *terms, "--output", str(out))
    assert (code, said) == (0, "")
    assert "1,100 rows" in err
    expected = ps.read_table(path, columns=["id", "name", "day"], filter=terms[1])
    if ending == "parquet":
        assert pq.read_table(out) == expected
        assert ps.open(out).column_index(0, "id") is not None
    elif ending in ("arrow", "arrows"):
        opened = pa.ipc.open_file if ending == "arrow" else pa.ipc.open_stream
        assert opened(out.read_bytes()).read_all() == expected
    else:
        text = out.read_text()
        assert text.count("\n") == {"csv": 1101, "jsonl": 1100, "txt": 1102}[ending]
        assert "n00101" in text and "\x1b" not in text
    assert [p.name for p in tmp_path.iterdir()] == [out.name]


def test_a_pipe_gets_every_form(path: str, piped: Piped) -> None:
    terms = ["scan", path, "--where", "id < 3", "--format"]
    expected = ps.read_table(path, filter="id < 3")
    assert pa.ipc.open_stream(piped(*terms, "arrow")).read_all() == expected
    assert pq.read_table(io.BytesIO(piped(*terms, "parquet"))) == expected
    command = [sys.executable, "-m", "pageseek", *terms, "parquet"]
    body = subprocess.run(command, check=True, capture_output=True).stdout
    assert pq.read_table(io.BytesIO(body)) == expected
    assert (
        piped(*terms, "csv").decode().splitlines()[0] == '"id","scattered","name","day","odd name"'
    )
    assert [json.loads(line)["id"] for line in piped(*terms, "jsonl").splitlines()] == [0, 1, 2]
    assert b"\x1b" not in piped(*terms, "table")
    assert b"\x1b[" in piped(*terms, "table", "--color", "always")
    assert b"\x1b" not in piped("explain", path) + piped("inspect", path)


def test_all_rows_are_written_and_a_limit_holds(
    path: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(formats, "GROUP_ROWS", 1_500)
    for more, rows in (((), ROWS), (("--limit", "7"), 7)):
        out = str(tmp_path / f"{rows}.parquet")
        assert run(capsys, "scan", path, *more, "--output", out)[0] == 0
        assert ps.read_table(out) == ps.read_table(path, limit=rows)
    assert ps.open(str(tmp_path / f"{ROWS}.parquet")).num_row_groups >= 3
    out = str(tmp_path / "head.csv")
    assert run(capsys, "head", path, "-n", "3", "-o", out)[0] == 0
    assert Path(out).read_text().count("\n") == 4
    assert len(run(capsys, "head", path)[1].splitlines()) == 12
    out = str(tmp_path / "none.parquet")
    assert run(capsys, "scan", path, "--where", "id < 0", "--output", out)[0] == 0
    assert ps.read_table(out).schema == ps.read_table(path).schema


def test_csv_tells_nulls_from_empty_texts_and_takes_every_type(odd: str, piped: Piped) -> None:
    body = piped("scan", odd, "--format", "csv").decode()
    assert body.splitlines()[1].startswith('"","00ff","1.10",nan,')
    head, first, second, third = csv.reader(io.StringIO(body))
    assert head == ODD.column_names
    assert set(second) == {""}
    assert third[0] == 'a,"b"\nc'
    found = dict(zip(head, first, strict=True))
    assert json.loads(found["tags"]) == ["a", None]
    assert json.loads(found["place"]) == {"x": 1, "day": "2024-01-01"}
    assert (found["half"], found["kind"], found["flag"]) == ("1.5", "k", "true")
    assert found["when"].startswith("2024-01-31 12:00:00")


@pytest.mark.parametrize("form", ["parquet", "arrow", "jsonl"])
def test_odd_values_survive(form: str, odd: str, piped: Piped) -> None:
    body, expected = piped("scan", odd, "--format", form), ps.read_table(odd)
    if form == "jsonl":
        rows: list[dict[str, Any]] = [json.loads(line) for line in body.splitlines()]
        assert [row["text"] for row in rows] == ODD["text"].to_pylist()
        assert rows[0]["binary"] == "00ff" and rows[0]["real"] == "nan"
        return
    got = (
        pa.ipc.open_stream(body).read_all() if form == "arrow" else pq.read_table(io.BytesIO(body))
    )
    assert got.schema.names == expected.schema.names
    assert str(got.to_pylist()) == str(expected.to_pylist())


def test_a_file_is_not_replaced_unless_told(
    path: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "mine.csv"
    out.write_text("mine")
    code, _, err = run(capsys, "scan", path, "--output", str(out))
    assert code == 1 and "--overwrite" in err and "=True" not in err
    assert out.read_text() == "mine"
    assert run(capsys, "scan", path, "--output", str(out), "--overwrite")[0] == 0
    assert out.read_text().count("\n") == ROWS + 1


def test_nothing_appears_when_reading_fails(
    path: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = bytearray(Path(path).read_bytes())
    with ps.open(path) as file:
        at = file.offset_index(1, "name")
        assert at is not None
        place = int(at.offset[3])
    broken[place : place + 40] = b"\xff" * 40
    (tmp_path / "broken.parquet").write_bytes(broken)
    for ending in ("parquet", "csv", "arrow"):
        code, _, err = run(
            capsys, "scan", str(tmp_path / "broken.parquet"), "--output", str(tmp_path / f"o.{ending}")
        )  # fmt: skip
        assert code == 1 and "broken.parquet" in err and err.count("\n") == 1, err
    assert [p.name for p in tmp_path.iterdir()] == ["broken.parquet"]


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--output", "out.xyz"], 2, "say --format"),
        (["--output", "s3://bucket/out.csv"], 2, "a local file"),
        (["--output", "{folder}", "--overwrite", "--format", "csv"], 2, "a folder; name a file"),
        (["--output", "{folder}/none/out.csv"], 1, "none"),
        (["--columns", ",", "--format", "csv"], 1, "--columns"),
        (["--columns", ",", "--format", "parquet"], 1, "--columns"),
    ],
)
def test_wrong_outputs_are_refused(
    arguments: list[str],
    code: int,
    words: str,
    path: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    ended, out, err = run(
        capsys, "scan", path, *(part.format(folder=tmp_path) for part in arguments)
    )
    assert (ended, out, err.count("\n")) == (code, "", 1)
    assert words in err


def test_binary_is_refused_on_a_terminal(
    path: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    for form in ("arrow", "parquet"):
        code, out, err = run(capsys, "scan", path, "--format", form)
        assert (code, out) == (2, "")
        assert "--output FILE" in err


def test_a_file_that_appears_meanwhile_is_left_alone(path: str, tmp_path: Path) -> None:
    out = tmp_path / "mine.csv"
    out.write_text("mine")
    with pytest.raises(FileExistsError, match=r"mine\.csv"):
        formats.write(ps.scan(path), "csv", str(out))
    assert out.read_text() == "mine" and len(list(tmp_path.iterdir())) == 1
