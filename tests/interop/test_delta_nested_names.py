"""Columns of a Delta Lake table whose names have dots, beside structs; and columns that only some files have."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from support.delta_by_hand import bitmap, encoded

pytest.importorskip("deltalake", reason="pip install 'pageseek[delta]'")
PHYSICAL = "delta.columnMapping.physicalName"


def field(name: str, kind: Any, number: int = 0) -> dict[str, Any]:
    told = {PHYSICAL: f"col-{number}", "delta.columnMapping.id": number} if number else {}
    return {"name": name, "type": kind, "nullable": True, "metadata": told}


def struct(*fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "struct", "fields": list(fields)}


def table_of(
    root: Path, fields: list[dict[str, Any]], files: list[tuple[pa.Table, dict[str, Any]]]
) -> str:
    """A table of files with their statistics."""
    mapped = bool(fields[0]["metadata"])
    features = ["columnMapping"] if mapped else ["timestampNtz"]
    protocol = {"minReaderVersion": 3, "minWriterVersion": 7} | dict.fromkeys(
        ("readerFeatures", "writerFeatures"), features
    )
    told = {"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": "9"}
    metadata = {
        "id": "0c2c", "format": {"provider": "parquet", "options": {}}, "partitionColumns": [],
        "schemaString": json.dumps(struct(*fields)), "configuration": told if mapped else {}, "createdTime": 1,
    }  # fmt: skip
    actions: list[dict[str, Any]] = [{"protocol": protocol}, {"metaData": metadata}]
    (root / "_delta_log").mkdir(parents=True)
    for i, (rows, stats) in enumerate(files):
        pq.write_table(rows, root / f"{i}.parquet")
        add = {
            "path": f"{i}.parquet", "partitionValues": {}, "size": 1, "modificationTime": 1, "dataChange": True,
            "stats": json.dumps({"numRecords": rows.num_rows} | stats),
        }  # fmt: skip
        actions.append({"add": add})
    (root / "_delta_log" / f"{0:020}.json").write_text("\n".join(map(json.dumps, actions)))
    return str(root)


@pytest.mark.parametrize("mapped", [False, True])
def test_a_name_with_a_dot_is_that_of_the_column(tmp_path: Path, mapped: bool) -> None:
    """The struct `a` has a field `x`, which is not the column `a.x`."""
    ids = (1, 2, 3) if mapped else (0, 0, 0)
    names = ("col-1", "col-2", "col-3") if mapped else ("a", "x", "a.x")
    inner = [{names[1]: 1}, {names[1]: None}]
    rows = pa.table({names[0]: inner, names[2]: ["one", "two"]})
    fields = [field("a", struct(field("x", "long", ids[1])), ids[0]), field("a.x", "string", ids[2])]  # fmt: skip
    table = table_of(tmp_path / "t", fields, [(rows, {})])
    assert ps.read_table(table).to_pylist() == [
        {"a": {"x": 1}, "a.x": "one"}, {"a": {"x": None}, "a.x": "two"}
    ]  # fmt: skip
    assert ps.read_table(table, columns=["a.x"]).to_pylist() == [{"a.x": "one"}, {"a.x": "two"}]
    assert ps.scan(table, filter=ps.col("a.x") == "two").count_rows() == 1
    assert ps.scan(table, filter=ps.col("a", "x") == 1).count_rows() == 1
    found = ps.scan(table).aggregate([("a.x", "max"), (ps.col("a", "x"), "count")])
    assert found.to_pylist() == [{"a.x_max": "two", "a.x_count": 1}]


@pytest.mark.parametrize("other", ["boolean", "long"])
def test_bounds_of_a_column_with_a_dot_are_not_those_of_a_field(tmp_path: Path, other: str) -> None:
    """Statistics of the log are spelt by fields, and `deltalake` joins their names with dots."""
    value = True if other == "boolean" else 1
    inner = pa.array([{"x": value}])
    rows = pa.table({"a": inner, "a.x": [7]})
    stats = {"minValues": {"a.x": 7}, "maxValues": {"a.x": 7}, "nullCount": {"a.x": 0, "a": {"x": 0}}}  # fmt: skip
    if other == "long":
        stats["minValues"]["a"] = stats["maxValues"]["a"] = {"x": 1}  # type: ignore[assignment]
    fields = [field("a", struct(field("x", other))), field("a.x", "long")]
    table = table_of(tmp_path / "t", fields, [(rows, stats)])
    assert ps.scan(table, filter=ps.col("a", "x") == value).count_rows() == 1
    assert ps.scan(table, filter=ps.col("a.x") == 7).count_rows() == 1
    assert ps.scan(table, filter=ps.col("a", "x").is_null()).count_rows() == 0


@pytest.mark.parametrize("mapped", [False, True])
def test_figures_of_columns_that_no_file_has(tmp_path: Path, mapped: bool) -> None:
    """They were added after all files were written, or the files with them are gone."""
    ids = tuple(range(1, 6)) if mapped else (0,) * 5
    inner = [{"col-2" if mapped else "x": 1}, None]
    rows = pa.table({"col-1" if mapped else "s": inner})
    added = field("y", "string", ids[2])
    fields = [field("s", struct(field("x", "long", ids[1]), added), ids[0]), field("n", "date", ids[3]), field("t", struct(field("z", "long", ids[4])), 9 if mapped else 0)]  # fmt: skip
    table = table_of(tmp_path / "t", fields, [(rows, {})])
    figures = ["count", ("s.y", "min"), ("s.x", "max"), ("n", "count"), ("n", "max"), ("t.z", "max")]  # fmt: skip
    found = ps.scan(table).aggregate(figures)
    assert found.to_pylist() == [
        {"count": 2, "s.y_min": None, "s.x_max": 1, "n_count": 0, "n_max": None, "t.z_max": None}
    ]
    assert found.schema.types[1:] == [pa.string(), pa.int64(), pa.int64(), pa.date32(), pa.int64()]
    for wrong in ("no", "s.no", "s.x.no"):
        with pytest.raises(ps.PredicateError, match="no "):
            ps.scan(table).aggregate([(wrong, "max")])
    with pytest.raises(ps.UnsupportedError, match="'s' is nested"):
        ps.scan(table).aggregate([("s", "max")])


def test_a_file_lacks_a_column_with_a_dot_and_has_a_field(tmp_path: Path) -> None:
    fields = [field("a", struct(field("x", "long"))), field("a.x", "long")]
    files = [pa.table({"a": [{"x": 1}]}), pa.table({"a": [{"x": 2}], "a.x": [1]})]
    table = table_of(tmp_path / "t", fields, [(one, {}) for one in files])
    rows = [{"a": {"x": 1}, "a.x": None}, {"a": {"x": 2}, "a.x": 1}]
    assert ps.read_table(table).to_pylist() == rows
    assert ps.read_table(table, columns=["a.x"]).to_pylist() == [{"a.x": None}, {"a.x": 1}]
    assert ps.read_table(table, filter=ps.col("a.x") == 1).to_pylist() == rows[1:]
    assert ps.read_table(table, filter=ps.col("a.x").is_null()).to_pylist() == rows[:1]
    assert ps.read_table(table, filter=ps.col("a", "x") == 1).to_pylist() == rows[:1]
    assert ps.scan(table).aggregate([("a.x", "count")]).to_pylist() == [{"a.x_count": 1}]


@pytest.mark.parametrize("vector", [False, True])
def test_indexes_are_attached_by_the_names_of_the_table(tmp_path: Path, vector: bool) -> None:
    """Files call the columns otherwise. The log keeps what it said of the rows."""
    deltalake = pytest.importorskip("deltalake", "1.6")
    n = 5_000
    rows = pa.table(
        {
            "col-1": range(n),
            "col-2": [{"col-3": f"t{i * 7919 % n}"} for i in range(n)],
            "col-4": [i % 5 for i in range(n)],
        }
    )
    fields = [
        field("id", "long", 1),
        field("s", struct(field("text", "string", 3)), 2),
        field("a few", "long", 4),
    ]
    root = table_of(tmp_path / "t", fields, [(rows, {"minValues": {"col-1": 0}})])
    gone = 0
    if vector:
        log = tmp_path / "t" / "_delta_log" / f"{0:020}.json"
        *actions, added = map(json.loads, log.read_text().splitlines())
        bits, gone = bitmap([3, 4]), 2
        added["add"]["deletionVector"] = {"storageType": "i", "pathOrInlineDv": encoded(bits), "sizeInBytes": len(bits), "cardinality": 2}  # fmt: skip
        for name in ("readerFeatures", "writerFeatures"):
            actions[0]["protocol"][name].append("deletionVectors")
        log.write_text("\n".join(map(json.dumps, [*actions, added])))
    table, wanted = deltalake.DeltaTable(root), ps.read_table(root)
    assert len(wanted) == n - gone
    made = ps.index.attach(
        tmp_path / "t" / "0.parquet", lookup=["s.text", ("id", "a few")], bitmap=["a few"], file_bloom={"id": 0.01},
        bloom=["s.text"], table=table,
    )  # fmt: skip
    assert ("lookup", "col-2.col-3") in made.added and ("bitmap", "col-4") in made.added
    assert ("file_bloom", "col-1") in made.added
    for source in (root, table):
        assert ps.read_table(source).equals(wanted)
        for condition, index in (("s.text = 'no'", "lookup"), ("\"a few\" = 3", "bitmap"), ("id = -5", "file_bloom")):  # fmt: skip
            found = ps.scan(source, filter=condition, prune=[index])
            assert index in found.explain().rows.pruned_by
            assert found.to_table().equals(ps.read_table(source, filter=condition, prune=False))
    added = json.loads((tmp_path / "t" / "_delta_log" / f"{1:020}.json").read_text().splitlines()[2])  # fmt: skip
    assert json.loads(added["add"]["stats"])["minValues"] == {"col-1": 0}
    with pytest.raises(ps.PredicateError, match="no column"):
        ps.index.attach(made.path, lookup=["nothing"], table=deltalake.DeltaTable(root))
    ps.index.detach(made.path, table=table)
    assert ps.read_table(root).equals(wanted)
