"""The command: what it prints, its exit codes, its errors."""

from __future__ import annotations

import datetime as dt
import json
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek.cli import main, scan, text
from support.opened import open_metadata

N = 4_000


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    table = pa.table(
        {
            "id": range(N),
            "scattered": [i * 7919 % N for i in range(N)],
            "name": [None if i % 100 == 0 else f"n{i:05d}" for i in range(N)],
            "day": [dt.date(2024, 1, 1) + dt.timedelta(days=i // 100) for i in range(N)],
            "odd name": [i % 2 == 1 for i in range(N)],
        }
    )
    made = tmp_path_factory.mktemp("cli") / "made.parquet"
    pq.write_table(
        table, made, write_page_index=True, row_group_size=N // 2, data_page_size=1_000, write_batch_size=100,
        use_dictionary=False,
    )  # fmt: skip
    return str(made)


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(list(arguments))
    seen = capsys.readouterr()
    return code, seen.out, seen.err


def test_inspect_draws_groups_and_chunks(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "inspect", path)
    assert code == 0
    assert "4,000 rows, 2 row groups, 5 columns" in out
    assert "column index all" in out
    assert out.count("scattered") == 2
    assert "first row" not in out


def test_inspect_draws_sorted_and_scattered_pages_apart(
    path: str, capsys: pytest.CaptureFixture[str]
) -> None:
    def strips(column: str) -> list[str]:
        out = run(capsys, "inspect", path, "--column", column)[1]
        return [line.split("|")[1] for line in out.splitlines() if line.endswith("|")]

    ordered, scattered = strips("id"), strips("scattered")
    assert all(strip.count("#") < 4 for strip in ordered)
    assert [strip.index("#") for strip in ordered] == sorted(strip.index("#") for strip in ordered)
    assert all(strip.count("#") > 35 for strip in scattered)


def test_inspect_json_holds_pages(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(run(capsys, "inspect", path, "--pages", "--json")[1])
    pages = found["columns"][0]["chunks"][1]["pages"]
    assert sum(page["rows"] for page in pages) == N // 2
    assert pages[0]["min"] == N // 2
    assert found["columns"][3]["chunks"][0]["min"] == "2024-01-01"


def test_inspect_knows_a_file_without_page_index(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = tmp_path / "plain.parquet"
    pq.write_table(pa.table({"a": [1, 2], "nested": [{"x": 1}, {"x": 2}]}), made)
    code, out, _ = run(capsys, "inspect", str(made), "--pages")
    assert code == 0
    assert "column index none" in out
    assert "no offset index" in out
    assert "`pageseek index attach` adds one" in out
    assert "nested.x" in out


def test_explain_counts_pages(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "explain", path, "--where", "id = 3000", "--analyze")
    assert code == 0
    assert "1 of 2" in out
    assert "1 row\n" in out
    report = json.loads(
        run(capsys, "explain", path, "--where", "id = 3000", "--analyze", "--json")[1]
    )
    assert report["rows"]["out"] == 1
    assert report["leaves"]["id"]["pages"]["read"] == 1


def test_scan_prints_a_table_and_json_lines(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    terms = ["--columns", "id,name", "--where", "id >= 99", "--where", "id < 103"]
    out = run(capsys, "scan", path, *terms)[1].splitlines()
    assert out[0].split() == ["id", "name"]
    assert [line.split() for line in out[2:]] == [
        ["99", "n00099"],
        ["100", "-"],
        ["101", "n00101"],
        ["102", "n00102"],
    ]
    rows = [
        json.loads(line)
        for line in run(capsys, "scan", path, *terms, "--json", "--limit", "2")[1].splitlines()
    ]
    assert rows == [{"id": 99, "name": "n00099"}, {"id": 100, "name": None}]


def test_scan_says_when_there_are_more_rows(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert "the first 20 rows" in run(capsys, "scan", path)[1]
    out = run(capsys, "scan", path, "--limit", "3")[1]
    assert len(out.splitlines()) == 5


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


def test_conditions_are_joined_by_and(path: str) -> None:
    found = ps.read_table(
        path, filter=scan.condition(['"odd name" = true', "day = date '2024-01-03' or id < 2"])
    )
    assert found["id"].to_pylist() == [1, *range(201, 300, 2)]
    assert scan.condition([]) is None


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


def test_strip_draws_at_its_place() -> None:
    assert text.strip(0, 1, 0, 10, 10) == "##........"
    assert text.strip(9, 10, 0, 10, 10) == ".........#"
    assert text.strip(0, 10, 0, 10, 10) == "#" * 10
    assert text.strip(None, 3, 0, 10, 4) == "????"
    assert text.strip(5, 5, 5, 5, 4) == "####"


def test_places_of_temporal_values_grow_with_time() -> None:
    kinds = [pa.date32(), pa.timestamp("us"), pa.timestamp("ns", "UTC")]
    for kind in kinds:
        low, high = (
            pa.scalar(day, pa.date32()).cast(kind)
            for day in (dt.date(2024, 1, 1), dt.date(2024, 1, 2))
        )
        low_at, high_at = text.place(low), text.place(high)
        assert low_at is not None
        assert high_at is not None
        assert low_at < high_at
    assert text.place(pa.scalar("a")) is None
    assert text.place(pa.scalar(float("nan"))) is None
    assert text.place(pa.scalar(None, pa.int32())) is None


def test_json_takes_what_json_lacks() -> None:
    made = text.to_json({"a": b"\x01", "b": dt.date(2024, 1, 1), "c": float("nan")}, indent=None)
    assert json.loads(made) == {"a": "01", "b": "2024-01-01", "c": "nan"}


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


def test_folders_that_are_tables(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    deltalake = pytest.importorskip("deltalake")
    lake = tmp_path / "lake"
    root = str(lake / "t")
    deltalake.write_deltalake(root, pa.table({"a": [1]}))
    deltalake.write_deltalake(root, pa.table({"a": [2]}), mode="overwrite")
    assert run(capsys, "scan", root, "--json") == (0, '{"a": 2}\n', "")
    code, out, _ = run(capsys, "scan", root, "--json", "--no-table")
    assert code == 0 and sorted(out.split("\n")) == ["", '{"a": 1}', '{"a": 2}']
    assert run(capsys, "scan", root, "--json", "--table-version", "0") == (0, '{"a": 1}\n', "")
    assert run(capsys, "scan", root, "--json", "--timestamp", "2999-01-01") == (0, '{"a": 2}\n', "")
    code, out, _ = run(capsys, "explain", root, "--table-version", "0")
    assert code == 0 and f"Delta Lake table {root}: version 0" in out
    for arguments, said in (
        (("--table-version", "7"), "version"),
        (("--snapshot", "main"), "snapshot= is for tables of Iceberg"),
        (("--timestamp", "noon"), "2024-01-31T12:00:00Z"),
    ):
        code, _, error = run(capsys, "scan", root, *arguments)
        assert code == 1 and said in error, error
    said = f"Delta Lake table {root}: version 1"
    code, out, _ = run(capsys, "explain", root)
    assert code == 0 and said in out
    code, out, _ = run(capsys, "explain", root, "--json")
    assert code == 0 and json.loads(out)["notes"] == [said]
    code, out, _ = run(capsys, "explain", root, "--json", "--no-table")
    assert code == 0 and json.loads(out)["files"]["total"] == 2
    for arguments in (("inspect", root), ("index", "list", root), ("index", "verify", root)):
        assert run(capsys, *arguments)[0] == 0
        code, _, error = run(capsys, *arguments, "--no-table")
        assert code == 1 and "2" in error
    for arguments in (("scan", str(lake)), ("explain", str(lake)), ("inspect", str(lake))):
        code, _, error = run(capsys, *arguments)
        assert code == 1 and root in error and "--no-table" in error, error
        assert "--columns" not in error and "=False" not in error, error
    for action in ("attach", "detach"):
        code, _, error = run(capsys, "index", action, root, "--in-place")
        assert code == 1 and "in Python: table=" in error and "--no-table" in error, error
        assert "=False" not in error, error
    code, _, error = run(
        capsys, "index", "attach", root, "--no-table", "--output", str(tmp_path / "o")
    )
    assert code == 1 and "2 files" in error, error


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
