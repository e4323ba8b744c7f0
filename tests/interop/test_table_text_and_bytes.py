"""Tables that call a column text, or bytes, of which their files say the other: rows and filters are those of the libraries."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import pageseek as ps

ROWS = [None, b"", b"a", b"ab", "é".encode(), b"x" * 90, b"b", b"a"]


def table_of(root: Path, kind: str, files: list[pa.DataType], values: list[Any] = ROWS) -> Any:
    """A Delta table with a column `c` of a type, which its files store as others, and the number of the row in `id`."""
    deltalake = pytest.importorskip("deltalake", reason="pip install 'pageseek[delta]'")
    (root / "_delta_log").mkdir(parents=True)
    types = {"id": "long", "c": kind}
    fields = [{"name": n, "type": t, "nullable": True, "metadata": {}} for n, t in types.items()]
    actions: list[dict[str, Any]] = [
        {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}},
        {
            "metaData": {
                "id": "6a4c1f1e-2f56-4d8e-8f39-5f7f0c2b6a11", "format": {"provider": "parquet", "options": {}},
                "schemaString": json.dumps({"type": "struct", "fields": fields}), "partitionColumns": [],
                "configuration": {}, "createdTime": 1,
            }
        },
    ]  # fmt: skip
    for i, stored in enumerate(files):
        path = root / f"{i}.parquet"
        ids = range(i * len(values), (i + 1) * len(values))
        data = pa.array(values, pa.binary()).cast(stored)
        pq.write_table(
            pa.table({"id": pa.array(ids, pa.int64()), "c": data}), path, write_page_index=i % 2 == 0,
            store_schema=i % 3 > 0, max_rows_per_page=2, use_dictionary=i % 2 > 0,
        )  # fmt: skip
        size = path.stat().st_size
        added = {"path": path.name, "partitionValues": {}, "size": size, "modificationTime": 1}
        actions.append({"add": added | {"dataChange": True}})
    (root / "_delta_log" / f"{0:020}.json").write_text("\n".join(map(json.dumps, actions)))
    return deltalake.DeltaTable(str(root))


@pytest.mark.parametrize("kind", ["binary", "string"])
@pytest.mark.parametrize("files", [[pa.string()], [pa.binary()], [pa.string(), pa.binary()] * 3])
def test_rows_and_filters_are_those_of_deltalake(
    tmp_path: Path, kind: str, files: list[pa.DataType]
) -> None:
    table = table_of(tmp_path / "t", kind, files)
    arrow = {"binary": pa.binary(), "string": pa.string()}[kind]
    whole = table.to_pyarrow_table().sort_by("id")
    whole = whole.set_column(1, "c", whole["c"].cast(arrow))
    scan = ps.scan(table)
    assert scan.to_table().equals(whole) and scan.schema == whole.schema
    column = ps.col("c")
    for raw in {one for one in ROWS if one is not None}:
        value = raw if kind == "binary" else raw.decode()
        of = pa.scalar(value, arrow)
        for condition, passed in (
            (column == value, pc.equal(whole["c"], of)), (column != value, pc.not_equal(whole["c"], of)),
            (column < value, pc.less(whole["c"], of)), (column >= value, pc.greater_equal(whole["c"], of)),
            (column.isin([value]), pc.is_in(whole["c"], pa.array([value], arrow))),
        ):  # fmt: skip
            wanted = whole.filter(passed)
            assert scan.filter(condition).to_table().equals(wanted), condition
            assert scan.filter(condition).count_rows() == wanted.num_rows
            assert scan.filter(condition).select(["id"]).to_table()["id"].equals(wanted["id"])
    there = sorted(one if kind == "binary" else one.decode() for one in ROWS if one is not None)
    for of_files in (scan, scan.filter(column > there[0])):
        found = of_files.aggregate([("c", "min"), ("c", "max"), ("c", "count")]).to_pylist()[0]
        left = there if of_files is scan else [one for one in there if one > there[0]]
        assert list(found.values()) == [left[0], left[-1], len(left) * len(files)]


def test_bytes_that_are_no_text_are_an_error(tmp_path: Path) -> None:
    table = table_of(tmp_path / "t", "string", [pa.binary()], [b"a", b"\xff", b"b"])
    for scan in (ps.scan(table), ps.scan(table).filter(ps.col("c") != "x")):
        with pytest.raises(ps.CorruptFileError, match=r"0\.parquet: column 'c'.* is not UTF-8"):
            scan.to_table()
    assert ps.read_table(table, columns=["id"])["id"].to_pylist() == [0, 1, 2]


def test_other_types_are_refused_as_before(tmp_path: Path) -> None:
    table = table_of(tmp_path / "t", "long", [pa.string()])
    with pytest.raises(ps.UnsupportedError, match=r"'c' is string, and int64"):
        ps.read_table(table)
    with pytest.raises(ps.UnsupportedError, match=r"'c' is string, and int64"):
        ps.read_table(table, filter=ps.col("c") == 1)


@pytest.mark.parametrize("stored", [pa.string(), pa.binary()])
def test_rows_and_filters_are_those_of_pyiceberg(catalog: Any, tmp_path: Path, stored: Any) -> None:
    """The file calls the column otherwise, too."""
    schema = pa.schema(
        [("id", pa.int64()), ("c", pa.binary() if stored == pa.string() else pa.string())]
    )
    table = catalog.create_table("n.t", schema=schema)
    numbered = [
        pa.field(name, kind, metadata={b"PARQUET:field_id": str(i).encode()})
        for i, (name, kind) in enumerate([("id", pa.int64()), ("other", stored)], 1)
    ]
    data = pa.array(ROWS, pa.binary()).cast(stored)
    rows = pa.table([pa.array(range(len(ROWS))), data], schema=pa.schema(numbered))
    table.append(pa.table([rows["id"], rows["other"].cast(schema.field("c").type)], schema=schema))
    (path,) = [task.file.file_path for task in table.scan().plan_files()]
    pq.write_table(rows, path.removeprefix("file://"), max_rows_per_page=2, write_page_index=True)
    whole = table.scan().to_arrow()
    found = ps.read_table(table)
    assert found["c"].to_pylist() == whole["c"].to_pylist()
    assert found["c"].type == schema.field("c").type
    value = b"a" if stored == pa.string() else "a"
    # pyiceberg filters such files by the types that they have, and fails
    assert ps.read_table(table, filter=ps.col("c") == value)["id"].to_pylist() == [2, 7]
    assert ps.read_table(table, filter=ps.col("c") > value)["id"].to_pylist() == [3, 4, 5, 6]
