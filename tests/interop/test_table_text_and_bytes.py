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
from pageseek.datasets.told_types import as_the_table_says
from pageseek.format.types import Options

ROWS = [None, b"", b"a", b"ab", "é".encode(), b"x" * 90, b"b", b"a"]


def table_of(
    root: Path, kind: str, files: list[pa.DataType], values: list[Any] = ROWS, added: str = ""
) -> Any:
    """A Delta table with a column `c` of a type, which its files store as others, and the number of the row in `id`.

    `added`: a column of text that no file has.
    """
    deltalake = pytest.importorskip("deltalake", reason="pip install 'pageseek[delta]'")
    (root / "_delta_log").mkdir(parents=True)
    types = {"id": "long", "c": kind} | ({added: "string"} if added else {})
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
        add = {"path": path.name, "partitionValues": {}, "size": size, "modificationTime": 1}
        actions.append({"add": add | {"dataChange": True}})
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


LAYOUTS = [
    pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string()),
    pa.binary(), pa.large_binary(), pa.binary_view(), pa.dictionary(pa.int32(), pa.binary()),
]  # fmt: skip


@pytest.mark.parametrize("kind", ["binary", "string"])
@pytest.mark.parametrize("string_type", ["string", "large", "view"])
def test_layouts_of_files_beside_a_column_that_they_lack(
    tmp_path: Path, kind: str, string_type: Any
) -> None:
    values = [b"a", b"ab", None, b"b"]
    table = table_of(tmp_path / "t", kind, LAYOUTS, values, "new")
    scan = ps.scan(table, string_type=string_type)
    there = [one.decode() if one is not None and kind == "string" else one for one in values]
    rows = [{"id": i, "c": there[i % 4], "new": None} for i in range(4 * len(LAYOUTS))]
    found = scan.to_table()
    assert found.to_pylist() == rows and found.schema == scan.schema
    value = "ab" if kind == "string" else b"ab"
    for condition in (ps.col("c") == value, ps.col("c").isin([value]), ps.col("c").starts_with(value)):  # fmt: skip
        assert scan.filter(condition).to_table().to_pylist() == rows[1::4]
        assert scan.filter(condition).count_rows() == len(LAYOUTS)


WRAPPED = {
    "struct": lambda kind: {"type": "struct", "fields": [{"name": "y", "type": kind, "nullable": True, "metadata": {}}]},
    "list": lambda kind: {"type": "array", "elementType": kind, "containsNull": True},
    "map": lambda kind: {"type": "map", "keyType": kind, "valueType": kind, "valueContainsNull": True},
}  # fmt: skip


def wrapped(values: pa.Array, ways: tuple[str, ...], name: str) -> pa.Array:
    """Each value in structs, lists or maps, the outermost first. One more row, the third, has none."""
    for how in reversed(ways[1:]):
        values = _wrapped(values, how, name, [*range(len(values) + 1)])
    if ways[0] == "struct":
        values = pa.concat_arrays([values[:2], values[:1], values[2:]])
    return _wrapped(values, ways[0], name, [0, 1, 2, *range(2, len(values) + 1)])


def _wrapped(values: pa.Array, how: str, name: str, ends: list[int]) -> pa.Array:
    if how == "struct":
        none = [i == 2 and len(ends) > len(values) + 1 for i in range(len(values))]
        return pa.StructArray.from_arrays([values], [name], mask=pa.array(none))
    if how == "list":
        return pa.ListArray.from_arrays(pa.array(ends, pa.int32()), values)
    return pa.MapArray.from_arrays(pa.array(ends, pa.int32()), values, values)


@pytest.mark.parametrize("kind", ["binary", "string"])
@pytest.mark.parametrize("ways", [("struct",), ("list",), ("map",), ("list", "struct"), ("struct", "list")])  # fmt: skip
@pytest.mark.parametrize("string_type", ["string", "view"])
def test_inside_of_structs_lists_and_maps(
    tmp_path: Path, kind: str, ways: tuple[str, ...], string_type: Any
) -> None:
    """The struct of files has another name for the field, by column mapping, where it is the outermost."""
    deltalake = pytest.importorskip("deltalake", reason="pip install 'pageseek[delta]'")
    values = [b"a", b"ab", b"b", "é".encode() * 30]
    told: Any = kind
    for how in reversed(ways):
        told = WRAPPED[how](told)
    own = {"delta.columnMapping.id": 1, "delta.columnMapping.physicalName": "c"}
    fields = [{"name": "C", "type": told, "nullable": True, "metadata": own}]
    if ways[0] == "struct":
        inner = {"delta.columnMapping.id": 2, "delta.columnMapping.physicalName": "z"}
        told["fields"][0]["metadata"] = inner
    elif ways[-1] == "struct":
        inner = {"delta.columnMapping.id": 2, "delta.columnMapping.physicalName": "y"}
        told["elementType"]["fields"][0]["metadata"] = inner
    root = tmp_path / "t"
    (root / "_delta_log").mkdir(parents=True)
    features = ["columnMapping"]
    actions: list[dict[str, Any]] = [
        {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": features, "writerFeatures": features}},
        {
            "metaData": {
                "id": "0c2c", "format": {"provider": "parquet", "options": {}}, "partitionColumns": [], "createdTime": 1,
                "schemaString": json.dumps({"type": "struct", "fields": fields}),
                "configuration": {"delta.columnMapping.mode": "name"},
            }
        },
    ]  # fmt: skip
    layouts = [one for one in LAYOUTS if one not in (pa.string_view(), pa.binary_view())]
    expected = []
    for i, stored in enumerate(layouts):
        array = pa.array(values, pa.binary()).cast(stored)
        array = wrapped(array, ways, "z" if ways[0] == "struct" else "y")
        model = pa.array(values, pa.binary() if kind == "binary" else pa.string())
        expected += wrapped(model, ways, "y").to_pylist()
        pq.write_table(
            pa.table({"c": array}), root / f"{i}.parquet", store_schema=i % 3 > 0, max_rows_per_page=2, write_page_index=i % 2 == 0,
        )  # fmt: skip
        add = {"path": f"{i}.parquet", "partitionValues": {}, "size": 9, "modificationTime": 1}
        actions.append({"add": add | {"dataChange": True}})
    (root / "_delta_log" / f"{0:020}.json").write_text("\n".join(map(json.dumps, actions)))
    scan = ps.scan(deltalake.DeltaTable(str(root)), string_type=string_type)
    found = scan.to_table()
    order = [row for i in reversed(range(len(layouts))) for row in expected[i * 5 : i * 5 + 5]]
    assert found["C"].to_pylist() in (expected, order) and found.schema == scan.schema
    value = "ab" if kind == "string" else b"ab"
    column = ps.col("C.y" if "struct" in ways else "C")
    some: Any = column.any() if "list" in ways else column
    for condition in (some == value, some.isin([value])) if ways != ("map",) else ():
        assert scan.filter(condition).count_rows() == len(layouts)
        assert scan.filter(condition).to_table()["C"].to_pylist() == [expected[1]] * len(layouts)
    if ways == ("struct",):
        assert scan.select(["C.y"]).to_table()["C"].to_pylist() in (expected, order)
        least = scan.aggregate([("C.y", "min"), ("C.y", "count")]).to_pylist()[0]
        assert list(least.values()) == [value[:1], 4 * len(layouts)]


def test_a_neighbour_whose_name_differs_in_case_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    pq.write_table(pa.table({"A": pa.array([b"x"]), "a": pa.array([b"x"])}), path)
    with ps.open(path) as opened:
        file = opened._metadata
        options = as_the_table_says(Options(), [(("a",), pa.binary(), pa.string())])
        assert options is not None
        made = [
            file.leaf_type(leaf, options).type for leaf in map(file.schema_tree.find, ("A", "a"))
        ]
    assert made == [pa.binary(), pa.string()]


def test_bytes_that_are_no_text_are_an_error(tmp_path: Path) -> None:
    table = table_of(tmp_path / "t", "string", [pa.binary()], [b"a", b"\xff", b"b"])
    for scan in (ps.scan(table), ps.scan(table).filter(ps.col("c") != "x")):
        with pytest.raises(ps.CorruptFileError, match=r"0\.parquet: column 'c'.* is not UTF-8"):
            scan.to_table()
    assert ps.read_table(table, columns=["id"])["id"].to_pylist() == [0, 1, 2]
    with pytest.raises(ps.CorruptFileError, match=r"0\.parquet: column 'c'.* max .* is not UTF-8"):
        ps.scan(table).aggregate([("c", "max")])
    assert ps.scan(table).aggregate([("c", "min")]).to_pylist() == [{"c_min": "a"}]


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
