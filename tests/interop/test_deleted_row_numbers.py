"""Numbers of rows in tables with deleted rows: places in the files, deleted rows included."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

import pageseek as ps
from support.command import run
from support.delta_by_hand import DeltaTable


def made(kind: str, folder: Path) -> tuple[Any, dict[str, list[Any]]]:
    """A table, and the rows of its files by their paths; None for one that is deleted."""
    if kind == "delta":
        pytest.importorskip("deltalake")
        table = DeltaTable(
            folder / "t", "name", {"id": "long", "s": "string"}, [], random.Random(5)
        )
        for n in (90, 40, 70):
            table.add(n)
            table.delete()
            table.delete()
        files = {
            path: [None if i in gone else {k: row[f"col-{j}"] for j, k in ((1, "id"), (2, "s"))} for i, row in enumerate(rows)]
            for path, (rows, gone) in table._files.items()
        }  # fmt: skip
        return str(folder / "t"), files
    pytest.importorskip("pyiceberg")
    from support.iceberg_by_hand import Model

    model = Model(folder, 5)
    for _ in range(3):
        model.append()
        model.positions()
    model.vector()
    model.values()
    model.catalog.close()
    return model.table, {path: rows for path, (_, _, rows) in model.files.items()}


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_numbers_and_takes(tmp_path: Path, kind: str) -> None:
    table, files = made(kind, tmp_path)
    scan = ps.scan(table)
    order = [
        next(p for p in files if one.name.endswith(p.removeprefix("file://")))
        for one in scan.sources
    ]
    rows = [row for path in order for row in files[path]]
    left = {i: row for i, row in enumerate(rows) if row is not None}
    assert 0 < len(left) < len(rows)
    found = scan.with_row_number("number").to_table().to_pylist()
    assert {row["number"]: row["id"] for row in found} == {i: row["id"] for i, row in left.items()}
    assert len(found) == len(left)
    some = (
        scan.filter(ps.col("s") != "nothing")
        .with_row_number("number")
        .to_table()["number"]
        .to_pylist()
    )
    assert some == [i for i, row in left.items() if row["s"] is not None]
    rng = random.Random(1)
    for _ in range(20):
        taken = sorted(rng.sample(range(len(rows)), rng.randrange(1, 30)))
        there = [left[i]["id"] for i in taken if i in left]
        assert scan.take(taken).to_table()["id"].to_pylist() == there
        assert scan.take(taken).count_rows() == len(there)
    gone = [i for i in range(len(rows)) if i not in left]
    assert scan.take(gone).count_rows() == 0
    report = scan.explain(analyze=True)
    assert report.rows.pruned_by["deleted"] == len(gone)
    assert scan.limit(7).to_table()["id"].to_pylist() == [row["id"] for row in left.values()][:7]


def test_deleted_rows_on_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root, files = made("delta", tmp_path)
    rows = [row for of_file in files.values() for row in of_file]
    left = [row for row in rows if row is not None]
    assert run(capsys, "count", root) == (0, f"{len(left)}\n", "")
    code, out, _ = run(capsys, "scan", root, "--json", "--columns", "id")
    assert code == 0 and len(out.splitlines()) == len(left)
    code, out, _ = run(capsys, "explain", root, "--analyze", "--json")
    assert code == 0
    assert json.loads(out)["rows"]["pruned_by"]["deleted"] == len(rows) - len(left)
