"""Lookups by lookup indexes of one file: the rows that these name are read by one call of the core, and are those of a scan."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek._core.points import AVAILABLE
from pageseek.scanning.points import named_rows as room
from pageseek.scanning.queries.execution import Execution
from support.delta_by_hand import with_vector
from support.lookup_files import KEYS, ODD, place, table

pytestmark = pytest.mark.skipif(not AVAILABLE, reason="the core reads no files here")
LOOKUP = ["number", "text", "real", KEYS[0], KEYS[2]]
Filter = list[tuple[str, str, Any]]


def written(path: Path, i: int, lookup: list[Any] = LOOKUP) -> pa.Table:
    """A file of several row groups with page and lookup indexes; and its rows."""
    rows = table(i)
    pq.write_table(rows, path, row_group_size=900, write_page_index=True, max_rows_per_page=200)
    ps.index.attach(path, page_index=False, lookup=lookup, in_place=True)
    return rows


def unplanned(source: Any, *filters: Any, **options: Any) -> list[pa.Table]:
    """The rows of lookups, none of which may be planned as a scan."""
    error = AssertionError("a plan was made")
    with mock.patch.object(Execution, "_prepared", side_effect=error):
        return [ps.read_table(source, filter=one, **options) for one in filters]


def filters_of(rows: pa.Table, rng: random.Random) -> list[Filter]:
    """Comparisons of values that are there and that are not, by one column and by several."""
    names = "number", "text", "real", "tenant", KEYS[2][1]
    columns = {name: rows[name].to_pylist() for name in names}
    made: list[Filter] = []
    for at in rng.sample(range(1, len(rows)), 12):
        given = {name: (name, "=", column[at]) for name, column in columns.items()}
        number = given["number"]
        some = [number[2], columns["number"][-at], -5]
        made += [[number], [given["text"]], [given["real"]], [("number", "in", some)]]
        made += [[number, ("tenant", "=", 3)], [number, ("real", ">", 10.0)], [("tenant", "=", 2), number]]  # fmt: skip
        made += [[number, given[KEYS[2][1]]], [number, (KEYS[2][1], "=", "ü3")], [number, ("text", "!=", given["text"][2])]]  # fmt: skip
    return [*made, [("number", "=", -1)], [("text", "=", "")], [("real", "=", 0.5)]]


@pytest.mark.parametrize("i", [3, 4, 5])
@pytest.mark.parametrize("lookup", [LOOKUP, [KEYS[0], KEYS[2], "text", "real"]])
def test_rows_are_those_of_a_scan(tmp_path: Path, i: int, lookup: list[Any]) -> None:
    path = tmp_path / "a.parquet"
    rows = written(path, i, lookup)
    filters = filters_of(rows, random.Random(i))
    if "number" not in lookup:
        keys = {*KEYS[0]}, {*KEYS[2]}
        filters = [
            one
            for one in filters
            if {c for c, op, _ in one if op == "="} in keys or one[0][0] != "number"
        ]
    found = unplanned(path, *filters)
    assert sum(one.num_rows for one in found) > 20
    for one, answer in zip(filters, found, strict=True):
        assert answer.equals(pq.read_table(path, filters=one)), one


def test_prepared_queries(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    rows = written(path, 5)
    for name in ("number", "text"):
        query = ps.scan(path, columns=["real", name]).prepare(ps.col(name) == ps.param("k"))
        wanted = rows.select(["real", name])
        with mock.patch.object(Execution, "_prepared", side_effect=AssertionError("a plan")):
            for at in (1, 700, len(rows) - 1):
                value = rows[name][at]
                found = query(value.as_py())
                assert found.equals(wanted.filter(pa.compute.equal(rows[name], value)))
            assert query(None).num_rows == query("none" if name == "text" else -9).num_rows == 0


def test_limit_and_pages_read(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    rows = written(path, 4)
    twice = rows["number"][1].as_py()
    assert rows["number"].to_pylist().count(twice) == 2
    (both,) = unplanned(path, [("number", "=", twice)])
    (first,) = unplanned(path, [("number", "=", twice)], limit=1)
    assert both.num_rows == 2 and first.equals(both.slice(0, 1))


def test_more_rows_than_one_call_reads_are_scanned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.parquet"
    rows = written(path, 4)
    some = rows["number"].to_pylist()[::230]
    filters: Filter = [("number", "in", some)]
    with pytest.raises(AssertionError, match="a plan"):
        unplanned(path, filters)
    wanted = ps.read_table(path, filter=filters)
    assert wanted.equals(pq.read_table(path, filters=filters)) and wanted.num_rows >= len(some)
    monkeypatch.setattr(room, "MOST_NAMED", 1 << 20)
    assert unplanned(path, filters)[0].equals(wanted)


@pytest.mark.parametrize("prune", [["statistics", "column_index"], ["lookup"], False])
def test_only_with_the_mechanisms_that_are_asked_for(tmp_path: Path, prune: Any) -> None:
    path = tmp_path / "a.parquet"
    rows = written(path, 4)
    given: Filter = [("text", "=", rows["text"][77].as_py())]
    with mock.patch.object(room, "answered", side_effect=AssertionError("an index was asked")):
        found = ps.read_table(path, filter=given, prune=prune)
    assert found.equals(pq.read_table(path, filters=given)) and found.num_rows


@pytest.mark.parametrize(
    ("column", "name"),
    [("text", name) for name in ODD if name != "of another column"]
    + [(KEYS[0], name) for name in ODD if name != "written otherwise"],
)
def test_an_index_that_is_wrong_costs_no_row(tmp_path: Path, name: str, column: Any) -> None:
    path = tmp_path / "a.parquet"
    names = (column,) if isinstance(column, str) else column
    rows = written(path, 4, [column])
    ODD[name](path, names)
    ps.clear_cache()
    for at in (0, 3, 4_000, len(rows) - 1):
        given: Filter = [(one, "=", rows[one][at].as_py()) for one in names]
        if given[0][2] is None:
            continue
        if name == "a short file":
            with pytest.raises(ps.CorruptFileError):
                ps.read_table(path, filter=given)
            continue
        wanted = pq.read_table(path, filters=given)
        assert wanted.num_rows
        assert ps.read_table(path, filter=given).equals(wanted)
        assert ps.read_table(path, filter=given).equals(wanted)


def test_an_index_that_becomes_wrong_later(tmp_path: Path) -> None:
    """The directory is in memory when the blocks change, and with them the file."""
    path = tmp_path / "a.parquet"
    rows = written(path, 4, ["text"])
    texts = rows["text"].to_pylist()
    filters: list[Filter] = [[("text", "=", texts[at])] for at in (10, 5_000)]
    assert unplanned(path, filters[0])[0].num_rows
    offset, length = place(path, ("text",))
    data = bytearray(path.read_bytes())
    data[offset + 4_000 : offset + length] = bytes(length - 4_000)
    path.write_bytes(data)
    for one in filters:
        found = ps.read_table(path, filter=one)
        assert found.equals(pq.read_table(path, filters=one)) and found.num_rows


def test_rows_that_a_table_has_deleted(tmp_path: Path) -> None:
    deltalake = pytest.importorskip("deltalake", "1.6", reason="pip install 'pageseek[delta]'")
    root = tmp_path / "t"
    rows = table(4)
    deltalake.write_deltalake(str(root), rows)
    (path,) = root.glob("*.parquet")
    ps.index.attach(path, lookup=["number", "text"], table=deltalake.DeltaTable(str(root)))
    twice = rows["number"][1].as_py()
    log = root / "_delta_log"
    versions = sorted(log.glob("*.json"))
    added = [
        one["add"]
        for version in versions
        for one in map(json.loads, version.read_text().splitlines())
        if "add" in one
    ][-1]
    numbers = pq.read_table(root / added["path"])["number"].to_pylist()
    places = [at for at, number in enumerate(numbers) if number == twice]
    assert len(places) == 2
    names = ["deletionVectors"]
    protocol = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": names, "writerFeatures": names}  # fmt: skip
    for gone in (places[:1], places):
        actions = with_vector(added, gone)
        said = [{"protocol": protocol}, *actions]
        version = len(list(log.glob("*.json")))
        (log / f"{version:020}.json").write_text("\n".join(map(json.dumps, said)))
        added = actions[-1]["add"]
        (found,) = unplanned(str(root), [("number", "=", twice)])
        assert found.num_rows == 2 - len(gone)
        (other,) = unplanned(str(root), [("number", "=", numbers[0])])
        assert other.num_rows == 1
