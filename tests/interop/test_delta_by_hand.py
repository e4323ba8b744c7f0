"""Random tables of Delta Lake, written by hand from the protocol: rows and filters equal a plain model."""

from __future__ import annotations

import datetime as dt
import os
import random
from pathlib import Path
from typing import Any

import pytest

import pageseek as ps
from support.delta_by_hand import KINDS, DeltaTable

pytest.importorskip("deltalake")
TABLES = int(os.environ.get("DELTA_TABLES", "24"))
FIRST = int(os.environ.get("FIRST_TABLE", "0"))
OPS = {
    "==": lambda a, b: a == b, "!=": lambda a, b: a != b, "<": lambda a, b: a < b, "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b, ">=": lambda a, b: a >= b,
}  # fmt: skip


def made(root: Path, seed: int) -> tuple[DeltaTable, dict[str, str]]:
    rng = random.Random(seed)
    chosen = rng.sample(list(KINDS), 6)
    kinds = {f"c{i}": kind for i, kind in enumerate(chosen)}
    partitions = rng.sample(list(kinds), rng.randrange(3))
    table = DeltaTable(root, ("none", "name", "id")[seed % 3], kinds, partitions, rng)
    for _ in range(rng.randrange(1, 5)):
        table.add(rng.randrange(1, 200))
    for _ in range(rng.randrange(8)):
        rng.choice([table.delete, table.rename, table.delete, lambda: table.add(30)])()
    return table, kinds


def as_text(rows: list[dict[str, Any]]) -> list[str]:
    return sorted(repr([(k, shown(v)) for k, v in sorted(row.items())]) for row in rows)


def shown(value: Any) -> Any:
    """A moment without the object that stands for its zone."""
    return value.isoformat() if isinstance(value, dt.datetime) else value


@pytest.mark.parametrize("seed", range(FIRST, FIRST + TABLES))
def test_rows_and_filters_equal_a_model(tmp_path: Path, seed: int) -> None:
    table, kinds = made(tmp_path / "t", seed)
    rows, rng = table.rows(), random.Random(-seed)
    scan = ps.scan(str(tmp_path / "t"))
    assert as_text(scan.to_table().to_pylist()) == as_text(rows)
    assert scan.count_rows() == len(rows)
    passed = ruled_out = 0
    for _ in range(30):
        name, op = rng.choice(list(kinds)), rng.choice(list(OPS))
        value = rng.choice(list(KINDS[kinds[name]][1]))
        compare = OPS[op]
        expected = [row for row in rows if row[name] is not None and compare(row[name], value)]
        column = ps.col(name)
        condition = {
            "==": column == value, "!=": column != value, "<": column < value, "<=": column <= value,
            ">": column > value, ">=": column >= value,
        }[op]  # fmt: skip
        if rng.random() < 0.3:
            other = rng.choice(list(kinds))
            condition = condition & ps.col(other).is_null()
            expected = [row for row in expected if row[other] is None]
        found = scan.filter(condition).to_table().to_pylist()
        assert as_text(found) == as_text(expected), (name, op, value)
        passed += len(expected)
        ruled_out += scan.filter(condition).explain().files.pruned_by.get("log", 0)
        only = scan.filter(condition).select([name]).to_table()[name].to_pylist()
        assert sorted(map(repr, map(shown, only))) == sorted(
            repr(shown(row[name])) for row in expected
        )
    assert passed or not rows
    RULED_OUT.append(ruled_out)


RULED_OUT: list[int] = []  # files that the log ruled out, of each table


def test_the_log_has_ruled_out_files() -> None:
    if len(RULED_OUT) < 4:
        pytest.skip("few tables came before")
    assert sum(RULED_OUT) > 0
