"""`pageseek inspect`: what is drawn of a file."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek.cli.inspect_files import MOST_FAILED, MOST_FILES
from support.command import ROWS as N
from support.command import run


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


LARGE = {
    "u": pa.array(range(2**63, 2**63 + 2_000), pa.uint64()),
    "i": pa.array(range(-(2**63), 2_000 - 2**63), pa.int64()),
    "d": pa.array([Decimal(f"{10**36 + i}e-1") for i in range(2_000)], pa.decimal128(38, 1)),
    "at": pa.array(range(2**62, 2**62 + 2_000), pa.timestamp("ns")),
}


@pytest.mark.parametrize("name", LARGE)
def test_inspect_draws_pages_of_large_numbers_apart(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "large.parquet"
    pq.write_table(
        pa.table({name: LARGE[name]}), path, write_page_index=True, use_dictionary=False, data_page_size=1, write_batch_size=100
    )  # fmt: skip
    out = run(capsys, "inspect", str(path), "--column", name)[1]
    strips = [line.split("|")[1] for line in out.splitlines() if line.endswith("|")]
    assert strips == ["." * (2 * i) + "##" + "." * (38 - 2 * i) for i in range(20)]


def test_inspect_shows_moments_whole_and_both_ends_of_long_texts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "long.parquet"
    table = pa.table(
        {
            "at": pa.array([0, 1], pa.timestamp("ns", "Europe/Berlin")),
            "took": pa.array([0, 10**15 + 1], pa.duration("us")),
            "text": ["x" * 80 + "1", "x" * 80 + "2"],
        }
    )
    pq.write_table(table, path, write_page_index=True)
    out = run(capsys, "inspect", str(path), "--column", "at", "--column", "took")[1]
    assert "..." not in out
    assert " 1970-01-01 00:00:00.000000001\n" in out  # of the chunk, in UTC
    assert " 1970-01-01 01:00:00.000000001+01:00 " in out  # of its page
    assert " 11574 days, 1:46:40.000001 " in out
    out = run(capsys, "inspect", str(path), "--column", "text")[1]
    assert out.count("xxxxxxxxxxx...xxxxxxxxx1") == out.count("xxxxxxxxxxx...xxxxxxxxx2") == 2


def test_inspect_draws_infinite_bounds_to_the_edge(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, inf = tmp_path / "real.parquet", float("inf")
    low = [float(i) for i in range(200)]
    table = pa.table({"some": [*low, 200.0, inf] + [-inf, inf] * 49, "all": [-inf, inf] * 150})
    pq.write_table(table, path, write_page_index=True, use_dictionary=False, data_page_size=1, write_batch_size=100)  # fmt: skip
    out = run(capsys, "inspect", str(path), "--column", "some")[1]
    strips = [line.split("|")[1] for line in out.splitlines() if line.endswith("|")]
    assert strips == ["#" * 20 + "." * 20, "." * 20 + "#" * 20, "<" + "#" * 38 + ">"]
    assert "infinite bounds: 1 of 3 pages (" in out
    out = run(capsys, "inspect", str(path), "--column", "all")[1]
    assert out.splitlines()[-1] == "infinite bounds: 3 of 3 pages"


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


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "sales"
    made.mkdir()
    for i in range(4):
        table = pa.table({"id": range(i * 10, i * 10 + 10), "name": ["x"] * 10})
        pq.write_table(table, made / f"{i}.parquet", write_page_index=i > 0, row_group_size=5)
    ps.index.attach(made / "2.parquet", in_place=True, lookup=["id"], bloom=["name"])
    return made


def test_inspect_lists_the_files_of_a_folder(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = run(capsys, "inspect", str(folder))
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0] == f"{folder}/"
    assert lines[1].startswith("  4 files, 40 rows, 8 row groups, ")
    assert "written by parquet-cpp-arrow" in out
    assert "column index 12 of 16 chunks" in out and "bloom filter 2 of 16 chunks" in out
    assert "  attached: lookup in 1 file" in lines
    head, rows = lines[6].split("  "), {line[0]: line for line in lines[8:12]}
    assert head[0] == "file" and list(rows) == ["0", "1", "2", "3"]
    assert "lookup" in rows["2"] and "2 of 4" in rows["2"]
    assert " all " not in rows["0"] and " all " in rows["1"]
    assert lines[-1] == f"one file in detail: pageseek inspect {folder}/0.parquet"


@pytest.mark.parametrize("given", ["{}/*.parquet", "{0}/0.parquet {0}/1.parquet {0}/2.parquet {0}/3.parquet"])  # fmt: skip
def test_inspect_lists_files_of_globs_and_lists(
    given: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    listed = run(capsys, "inspect", str(folder))
    assert run(capsys, "inspect", *given.format(folder).split()) == listed
    made = json.loads(run(capsys, "inspect", str(folder), "--json")[1])
    one = json.loads(run(capsys, "inspect", str(folder / "2.parquet"), "--json")[1])
    assert [Path(record["file"]).name for record in made] == [f"{i}.parquet" for i in range(4)]
    assert {name: value for name, value in made[2].items() if name in one} == {
        name: value for name, value in one.items() if name != "columns"
    }
    assert (made[2]["attached"], made[2]["codecs"]) == (["lookup"], ["snappy"])


def test_inspect_draws_columns_of_several_files_one_after_the_other(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = run(capsys, "inspect", str(folder), "--column", "id")[1]
    assert out.count("pages of id (int64)") == 4
    assert len(json.loads(run(capsys, "inspect", str(folder), "--pages", "--json")[1])) == 4


def test_inspect_says_once_what_is_true_of_all_files(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    heads = [run(capsys, "inspect", str(folder))[1].splitlines()[6]]
    pq.write_table(pa.table({"id": [1]}), folder / "4.parquet", compression="zstd")
    heads.append(run(capsys, "inspect", str(folder))[1].splitlines()[6])
    assert ["codec" in head for head in heads] == [False, True]
    assert not any("written by" in head for head in heads)


def test_inspect_tells_which_files_of_a_folder_are_damaged(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("1", "3"):
        (folder / f"{name}.parquet").write_bytes(b"PAR1")
    code, out, _ = run(capsys, "inspect", str(folder))
    assert code == 1
    assert "4 files, 20 rows, 4 row groups" in out and "; 2 files cannot be opened" in out
    for name in ("1", "3"):
        assert f"{folder / name}.parquet: " in out
    code, out, _ = run(capsys, "inspect", str(folder), "--json")
    records = json.loads(out)
    assert code == 1 and [i for i in range(4) if "error" in records[i]] == [1, 3]
    assert records[2]["rows"] == 10


def test_inspect_of_many_files_is_bounded(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pq.write_table(pa.table({"a": [1]}), tmp_path / "0000.parquet")
    body = (tmp_path / "0000.parquet").read_bytes()
    for i in range(1, 500):
        (tmp_path / f"{i:04}.parquet").write_bytes(body if i % 10 else b"no file")
    code, out, _ = run(capsys, "inspect", str(tmp_path))
    assert code == 1 and "500 files, 451 rows" in out
    assert f"... and {500 - MOST_FILES} more; --json lists all" in out
    assert f"... and {49 - MOST_FAILED} more that cannot be opened" in out
    assert len(out.splitlines()) < MOST_FILES + MOST_FAILED + 15
    assert len(json.loads(run(capsys, "inspect", str(tmp_path), "--json")[1])) == 500


def test_inspect_lists_the_files_of_a_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lake = pytest.importorskip("deltalake")
    for mode in ("error", "append", "overwrite", "append"):
        lake.write_deltalake(str(tmp_path / "t"), pa.table({"a": [1, 2]}), mode=mode)
    out = run(capsys, "inspect", str(tmp_path / "t"))[1]
    assert "version 3" in out.splitlines()[0] and "2 files, 4 rows" in out
    assert "4 files, 8 rows" in run(capsys, "inspect", str(tmp_path / "t"), "--no-table")[1]
