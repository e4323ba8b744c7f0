"""`pageseek rewrite`."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek.cli.main import main


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = tmp_path / "in.parquet"
    rows = [i * 37 % 1_000 for i in range(1_000)]
    pq.write_table(pa.table({"a": rows, "b": [i % 7 for i in rows], "s": ["x"] * 1_000}), made)
    return made


def run(*arguments: object) -> int:
    return main(["rewrite", *map(str, arguments)])


def test_sorted_with_indexes(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = path.with_name("out.parquet")
    code = run(path, "--output", out, "--sort-by", "b:desc,a", "--page-rows", 100, "--row-group-rows", 400, "--codec", "snappy",
               "--lookup", "a", "--bitmap", "b", "--bloom", "s=0.001,a", "--memory-limit", "64M")  # fmt: skip
    assert code == 0
    said = capsys.readouterr().out
    for word in (
        "1,000 rows",
        "3 row groups",
        "sorted by b descending, a",
        "lookup",
        "bitmap",
        "bloom",
    ):
        assert word in said
    found = ps.read_table(out).to_pydict()
    assert list(zip(found["b"], found["a"], strict=True)) == sorted(
        zip(found["b"], found["a"], strict=True), key=lambda row: (-row[0], row[1])
    )
    with ps.open(out) as file:
        assert file.chunk(0, "a").codec == "snappy"
        index = file.offset_index(0, "a")
        assert index is not None
        assert index.first_row.tolist()[:3] == [0, 100, 200]


def test_clustered_in_place_as_json(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(path, "--in-place", "--cluster-by", "a,b", "--lookup", "a", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["files"] == [str(path)]
    assert found["cluster_by"] == ["a", "b"]
    assert found["indexes"] == [{"path": str(path), "kind": "lookup", "column": "a", "chunks": 1}]
    assert ps.scan(path, filter="a = 5").count_rows() == 1


def test_a_folder(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(path, "--output", path.with_name("new"), "--file-rows", 300, "--sort-by", "a") == 0
    assert "part-00000.parquet" in capsys.readouterr().out
    assert len(list(path.with_name("new").iterdir())) == 4


def test_errors_name_options(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for said, arguments in (
        ("--sort-by: no column 'c'", ["--sort-by", "c", "--in-place"]),
        ("--cluster-by: 1 columns", ["--cluster-by", "a", "--in-place"]),
        ("--memory-limit 5: at least", ["--memory-limit", "5", "--in-place"]),
        ("say --overwrite", ["--output", str(path.with_name("there"))]),
    ):
        path.with_name("there").touch()
        assert run(path, *arguments) == 1
        assert said in capsys.readouterr().err
    with pytest.raises(SystemExit):
        run(path, "--in-place", "--memory-limit", "much")
    assert "no size, such as" in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--page-rows", "--row-group-rows", "--file-rows"])
def test_rows_are_at_least_one(option: str, path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        run(path, "--output", path.with_name("new.parquet"), option, 0)
    assert caught.value.code == 2
    assert f"{option}: 0: at least 1" in capsys.readouterr().err
