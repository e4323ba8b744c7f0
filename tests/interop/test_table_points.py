"""Prepared queries on tables: few reads of the files that the log leaves give the rows of a scan."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek._core.points import AVAILABLE
from support.delta_by_hand import KINDS, DeltaTable
from support.local_reads import hook_local_reads

deltalake = pytest.importorskip("deltalake", reason="pip install 'pageseek[delta]'")
pytestmark = [
    pytest.mark.skipif(not AVAILABLE, reason="the core cannot decompress here"),
    pytest.mark.usefixtures("scans"),
]


QUICK = (4, 10, 12)  # seeds of tables of which few reads answer some calls


def few_reads(query: Any, values: dict[str, Any]) -> pa.Table | None:
    """The answer of few reads; None where the call goes another way."""
    return None if query._points is None else query._points.table(values)


@pytest.mark.parametrize("seed", range(24))
def test_rows_are_those_of_a_scan(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    chosen = rng.sample(list(KINDS), 5)
    kinds = {f"c{i}": kind for i, kind in enumerate(chosen)}
    partitions = ["c0"] if seed % 8 == 7 else []
    table = DeltaTable(tmp_path / "t", ("none", "name", "id")[seed % 3], kinds, partitions, rng)
    for _ in range(8):
        table.add(rng.randrange(1, 100))
        if rng.random() < 0.3:
            rng.choice([table.delete, table.rename])()
    scan = ps.scan(str(tmp_path / "t"))
    for name in kinds:
        column = ps.col(name)
        for condition, how in (
            (column == ps.param("k"), scan), ((column > ps.param("k")) & ps.col("c1").is_null(), scan.select(["c1", name])),
            (~(column == ps.param("k")), scan.limit(3)),
        ):  # fmt: skip
            query = how.prepare(condition)
            for value in (*KINDS[kinds[name]][1], None):
                assert query(k=value).equals(query.bind(k=value).to_table()), (name, value)
    quick = [
        few_reads(scan.prepare(ps.col("c1") == ps.param("k")), {"k": v})
        for v in KINDS[kinds["c1"]][1]
    ]
    assert any(one is not None for one in quick) or seed not in QUICK
    rows = table.rows()
    for value in KINDS[kinds["c1"]][1]:
        expected = sum(row["c1"] == value for row in rows)
        assert scan.prepare(ps.col("c1") == ps.param("k"))(value).num_rows == expected


def made(root: Path, n: int = 30) -> str:
    for i in range(n):
        rows = pa.table(
            {"id": range(i * 100, i * 100 + 100), "text": [f"text {j}" for j in range(100)]}
        )
        deltalake.write_deltalake(str(root), rows, mode="append")
    return str(root)


def test_few_reads_of_few_files(tmp_path: Path) -> None:
    root = made(tmp_path / "t")
    by_id = ps.scan(root).prepare(ps.col("id") == ps.param("k"))
    for key in (0, 99, 100, 1234, 2999):
        found = few_reads(by_id, {"k": key})
        assert found is not None
        assert found.to_pylist() == [{"id": key, "text": f"text {key % 100}"}]
    assert by_id(-1).num_rows == by_id(None).num_rows == 0
    between = (ps.col("id") >= ps.param("a")) & (ps.col("id") < ps.param("b"))
    span = ps.scan(root, columns=["id"]).prepare(between)
    found = few_reads(span, {"a": 150, "b": 350})
    assert found is not None and sorted(found["id"].to_pylist()) == [*range(150, 350)]
    assert found["id"].to_pylist() == span.bind(a=150, b=350).to_table()["id"].to_pylist()
    assert few_reads(span, {"a": 0, "b": 2_000}) is None  # too many files
    assert span(a=0, b=2_000).num_rows == 2_000
    first = few_reads(
        ps.scan(root, columns=["id"], limit=70).prepare(between), {"a": 150, "b": 350}
    )
    assert first is not None and first["id"].to_pylist() == found["id"].to_pylist()[:70]
    for other in (
        ps.scan(root, prune=False), ps.scan(root, columns=["text"]).with_row_number("n"), ps.scan(root, table=False),
    ):  # fmt: skip
        query = other.prepare(ps.col("id") == ps.param("k"))
        assert few_reads(query, {"k": 1234}) is None
        assert query(1234).num_rows == 1
    by_text = ps.scan(root).prepare(ps.col("text") == ps.param("k"))
    assert few_reads(by_text, {"k": "text 5"}) is None
    assert by_text("text 5").num_rows == 30
    with pytest.raises(ps.PredicateError, match=r"param\('k'\)"):
        by_id("text")


def test_a_file_that_was_replaced(tmp_path: Path) -> None:
    root = made(tmp_path / "t", 12)
    query = ps.scan(root).prepare(ps.col("id") == ps.param("k"))
    assert query(250).num_rows == 1
    (path,) = [
        one for one in Path(root).glob("*.parquet") if pq.read_table(one)["id"][0].as_py() == 200
    ]
    rows = pq.read_table(path)
    path.unlink()
    pq.write_table(rows.set_column(1, "text", pa.array(["new"] * 100)), path)
    assert query(250)["text"].to_pylist() == ["new"]
    path.unlink()
    with pytest.raises(FileNotFoundError):
        query(250)


def test_an_iceberg_table(catalog: Any, tmp_path: Path) -> None:
    from pyiceberg.types import StringType

    schema = pa.schema([("id", pa.int64()), ("v", pa.int32())])
    table = catalog.create_table("n.t", schema=schema)
    for i in range(12):
        rows = {"id": range(i * 100, i * 100 + 100), "v": range(100)}
        path = tmp_path / f"{i}.parquet"
        pq.write_table(pa.table(rows, schema), path, write_page_index=True)
        table.add_files([f"file://{path}"])
    with table.update_schema() as change:
        change.rename_column("v", "w")
    query = ps.scan(table).prepare(ps.col("id") == ps.param("k"))
    assert query(512).to_pylist() == [{"id": 512, "w": 12}]
    found = few_reads(query, {"k": 512})
    assert found is not None and found.equals(query.bind(512).to_table())
    with table.update_schema() as change:
        change.add_column("z", StringType())
    query = ps.scan(table).prepare(ps.col("id") == ps.param("k"))
    assert query(512).to_pylist() == [{"id": 512, "w": 12, "z": None}]


def test_a_file_is_opened_by_one_read_of_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Footer and page index lie in it; a long footer is read by itself."""
    root = str(tmp_path / "t")
    for i in range(3):
        table = pa.table({"id": range(i * 100, i * 100 + 100), "b": ["x"] * 100})
        if i == 2:  # a long footer
            table = table.replace_schema_metadata({"long": "x" * 9000})
        pq.write_table(table, tmp_path / f"{i}.parquet", write_page_index=True)
    deltalake.write_deltalake(root, pa.table({"id": [-1], "b": ["x"]}))
    log = tmp_path / "t" / "_delta_log" / f"{1:020}.json"
    lines = []
    for i in range(3):
        (tmp_path / f"{i}.parquet").rename(tmp_path / "t" / f"{i}.parquet")
        told = {"numRecords": 100, "minValues": {"id": i * 100}, "maxValues": {"id": i * 100 + 99}, "nullCount": {"id": 0}}  # fmt: skip
        size = (tmp_path / "t" / f"{i}.parquet").stat().st_size
        added = {"path": f"{i}.parquet", "partitionValues": {}, "size": size, "modificationTime": 1}
        added |= {"dataChange": True, "stats": json.dumps(told)}
        lines.append(json.dumps({"add": added}))
    log.write_text("\n".join(lines))
    scan = ps.scan(deltalake.DeltaTable(root))
    ranges: list[tuple[int, int]] = []
    hook_local_reads(monkeypatch, lambda _, asked: ranges.extend(asked))
    ps.clear_cache()
    for i, reads in ((0, 1), (1, 1), (2, 5)):
        ranges.clear()
        query = scan.prepare(ps.col("id") == ps.param("k"))
        found = few_reads(query, {"k": i * 100 + 7})
        assert found is not None and found.to_pydict() == {"id": [i * 100 + 7], "b": ["x"]}
        assert len(ranges) <= reads, ranges
        assert scan.filter(ps.col("id") == i * 100 + 7).to_table().equals(found)


def test_files_with_other_columns_do_not_share_what_was_found_of_them(tmp_path: Path) -> None:
    """Types differ, a column is missing, and their order differs."""
    root = str(tmp_path / "t")
    deltalake.write_deltalake(root, pa.table({"id": pa.array([0], pa.int32()), "b": ["x"]}))
    more = pa.table({"b": ["y"], "id": pa.array([1], pa.int32()), "c": [1.5]})
    deltalake.write_deltalake(root, more, mode="append", schema_mode="merge")
    deltalake.write_deltalake(
        root, pa.table({"id": pa.array([2], pa.int32())}), mode="append", schema_mode="merge"
    )
    for path in (tmp_path / "t").glob("*.parquet"):  # deltalake gives all files one order
        table = pq.read_table(path)
        names = sorted(table.column_names, reverse=table["id"][0].as_py() == 1)
        pq.write_table(table.select(names), path, write_page_index=True)
    scan = ps.scan(deltalake.DeltaTable(root))
    rows = [(0, "x", None), (1, "y", 1.5), (2, None, None)]
    for _ in range(2):
        for id_, b, c in rows:
            for columns in (["id"], ["id", "b", "c"], ["c", "id"], []):
                query = scan.select(columns).prepare(ps.col("id") == ps.param("k"))
                found = few_reads(query, {"k": id_})
                found = query.bind(k=id_).to_table() if found is None else found
                wanted = {"id": id_, "b": b, "c": c}
                assert found.num_rows == 1
                assert found.to_pydict() == {name: [wanted[name]] for name in columns}
        found = few_reads(scan.select(["id"]).prepare(ps.col("b") == ps.param("k")), {"k": "y"})
        assert found is not None and found["id"].to_pylist() == [1]
