"""`pageseek index`: indexes attached, listed, verified and taken out."""

from __future__ import annotations

import json
import os
import sys
from io import BytesIO, TextIOWrapper
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek.cli import main
from support.command import run
from support.opened import open_metadata


def test_indexes_are_attached_listed_verified_and_taken_out(
    path: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = str(tmp_path / "out.parquet")
    code, said, _ = run(
        capsys, "index", "attach", path, "--output", out, "--bloom", "name=0.001,id", "--distinct", "day",
    )  # fmt: skip
    assert code == 0
    assert "bloom" in said and "distinct" in said
    code, said, _ = run(capsys, "index", "list", out)
    assert [line.split()[:2] for line in said.splitlines()[2:] if "attached" in line] == [
        ["bloom", "id"], ["bloom", "name"], ["distinct", "day"],
    ]  # fmt: skip
    found = json.loads(run(capsys, "index", "list", out, "--json")[1])
    assert {one["kind"] for one in found} == {"page_index", "bloom", "distinct"}
    code, said, _ = run(capsys, "index", "verify", out)
    assert code == 0
    assert "0 wrong" in said
    assert run(capsys, "index", "detach", out, "--in-place")[0] == 0
    assert Path(out).read_bytes() == Path(path).read_bytes()


def test_errors_of_indexes_name_options_of_the_command(
    path: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for where in ((), ("--in-place", "--output", "x.parquet")):
        with pytest.raises(SystemExit) as ended:
            main(["index", "attach", path, *where])
        assert ended.value.code == 2
        error = capsys.readouterr().err
        assert "--output" in error and "--in-place" in error
    there = tmp_path / "there.parquet"
    there.write_bytes(b"mine")
    (tmp_path / "_delta_log").mkdir()
    (tmp_path / "_delta_log" / ("0" * 20 + ".json")).write_text("{}")
    elsewhere = tmp_path / "table.parquet"
    for arguments, remedy in (
        ((path, "--output", path), "say --in-place"),
        ((path, "--output", str(elsewhere)), "attach to a copy elsewhere (--output FILE)"),
        ((path, "--output", "o.parquet", "--bloom", "odd name"), "leave it out of --bloom"),
        ((path, "--output", "o.parquet", "--distinct-index", "id"), "use --distinct"),
    ):
        code, _, error = run(capsys, "index", "attach", *arguments)
        assert code == 1
        assert remedy in error, error
        assert "=True" not in error and "output=" not in error and "--columns" not in error, error
    (tmp_path / "_delta_log" / ("0" * 20 + ".json")).unlink()
    (tmp_path / "_delta_log").rmdir()
    code, _, error = run(capsys, "index", "attach", path, "--output", str(there))
    assert code == 1 and "say --overwrite to replace it" in error, error
    assert there.read_bytes() == b"mine"


def test_a_wrong_index_is_an_exit_code(
    path: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out.parquet"
    ps.index.attach(path, bloom=["id"], output=out)
    with open_metadata(out) as file:
        chunk = file.chunk(0, file.schema_tree.find("id"))
        at, size = chunk.bloom_filter_offset, chunk.bloom_filter_length
    data = bytearray(out.read_bytes())
    data[at + size - 64 : at + size] = bytes(64)
    out.write_bytes(data)
    code, said, _ = run(capsys, "index", "verify", str(out))
    assert code == 1
    assert "are not in it" in said
    found = json.loads(run(capsys, "index", "verify", str(out), "--json")[1])
    assert found["findings"][0]["kind"] == "bloom"


@pytest.mark.parametrize(
    "command", [["index", "attach", "--lookup", "id"], ["rewrite", "--sort-by", "id"]]
)
def test_a_dash_is_standard_output(
    command: list[str], path: str, tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    made = str(tmp_path / "made.parquet")
    assert main([*command, path, "-o", made]) == 0
    assert b"made.parquet: " in capsysbinary.readouterr().out
    assert main([*command, path, "--output", "-"]) == 0
    out, err = capsysbinary.readouterr()
    assert out == Path(made).read_bytes() and err.startswith(b"standard output: ")
    assert main(["index", "detach", made, "-o", "-"]) == 0
    if command[0] == "index":
        assert capsysbinary.readouterr().out == Path(path).read_bytes()
    capsysbinary.readouterr()
    assert main([*command, path, "-o", "-", "--json"]) == 2
    out, err = capsysbinary.readouterr()
    assert not out and b"both write to standard output" in err
    assert [one.name for one in tmp_path.iterdir()] == ["made.parquet"]


def test_a_parquet_file_is_not_written_to_a_terminal(
    path: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    code, out, err = run(capsys, "index", "attach", path, "-o", "-")
    assert (code, out) == (2, "") and "--output FILE" in err
    code, out, err = run(capsys, "rewrite", path, "-o", "-", "--file-rows", "10")
    assert (code, out) == (2, "") and "leave out --file-rows" in err


def test_a_file_on_standard_input_gets_indexes_and_loses_them(
    path: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def piped(source: str, *arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "stdin", TextIOWrapper(BytesIO(Path(source).read_bytes())))
        return run(capsys, "index", *arguments)

    made, plain = str(tmp_path / "made.parquet"), str(tmp_path / "plain.parquet")
    assert piped(path, "attach", "-", "--lookup", "id", "-o", made)[0] == 0
    assert ps.read_table(made).equals(ps.read_table(path))
    assert "lookup" in piped(made, "list", "-")[1]
    assert piped(made, "detach", "-", "-o", plain)[0] == 0
    assert Path(plain).read_bytes() == Path(path).read_bytes()
    for action in ("attach", "detach"):
        code, _, err = piped(path, action, "-", "--in-place")
        assert code == 2 and "by --output FILE" in err, err
    assert "goes with no other file" in piped(path, "attach", "-", path, "--in-place")[2]
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe")
        err = run(capsys, "index", "attach", str(tmp_path / "pipe"), "-o", made)[2]
        assert "a pipe; to read it whole, give it as standard input: - in place" in err, err
        assert run(capsys, "head", "/dev/zero")[2].endswith("not a regular file but a device\n")


def test_indexes_of_a_folder_are_taken_out(
    path: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plain = Path(path).read_bytes()
    for name in "ab":
        ps.index.attach(path, lookup=["id"], bitmap=["day"], output=tmp_path / f"{name}.parquet")
    (tmp_path / "c.parquet").write_bytes(plain)
    (tmp_path / "broken.parquet").write_bytes(plain[:-9] + b"\xff" + plain[-8:])
    folder = str(tmp_path)
    code, said, _ = run(capsys, "index", "detach", folder, "--in-place", "--kinds", "bitmap")
    assert code == 1 and "failed: " in said and "broken.parquet" in said, said
    assert "2 of 4 files: " in said and " less, in " in said, said
    assert "bitmap      day  1 chunk" not in said and "taken out in 2 files" in said, said
    kinds = {one.kind for one in ps.index.list(tmp_path / "a.parquet")}
    assert "lookup" in kinds and "bitmap" not in kinds
    (tmp_path / "broken.parquet").unlink()
    code, said, _ = run(capsys, "index", "detach", folder, "--in-place", "--json")
    assert code == 0 and [len(json.loads(said)[k]) for k in ("files", "unchanged")] == [2, 1]
    assert {one.read_bytes() for one in tmp_path.iterdir()} == {plain}
    for files in ([folder], [path]):
        code, _, err = run(capsys, "index", "detach", *files, "--in-place", "--kinds", "blom")
        assert code == 1 and "no index of kind 'blom' was attached" in err, err
    code, _, err = run(capsys, "index", "detach", folder, path, "--output", "x.parquet")
    assert code == 2 and "several files go with --in-place" in err


def test_a_folder_is_listed_and_verified_file_by_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = []
    for name in ("a", "b"):
        (tmp_path / "many").mkdir(exist_ok=True)
        names.append(str(tmp_path / "many" / f"{name}.parquet"))
        pq.write_table(pa.table({"id": [1, 2]}), names[-1], write_page_index=True)
    folder = str(tmp_path / "many")
    code, out, err = run(capsys, "index", "list", folder)
    assert (code, err) == (0, "") and all(name in out for name in names)
    code, out, _ = run(capsys, "index", "list", folder, "--json")
    assert code == 0 and list(json.loads(out)) == names
    code, out, _ = run(capsys, "index", "verify", folder, "--json")
    assert code == 0 and [one["path"] for one in json.loads(out)] == names
