"""Nested columns through the public API: selections are of rows, not values, and only the needed leaves are read."""

from __future__ import annotations

import itertools
import tempfile
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek.format.columns import output
from pageseek.format.nesting import OPTIONAL, REPEATED
from pageseek.format.types import Options
from support.opened import open_metadata

ROWS: list[dict[str, Any]] = [
    {"l": [1, 2], "s": {"a": 1, "b": "x"}, "m": [("k", 1)], "d": [{"x": [1, 2], "y": "a"}, None]},
    {"l": None, "s": None, "m": None, "d": None},
    {"l": [], "s": {"a": None, "b": "y"}, "m": [], "d": []},
    {"l": [3, None], "s": {"a": 2, "b": None}, "m": [("a", None), ("b", 3)], "d": [{"x": None, "y": None}]},
    {"l": [4, 5, 6], "s": {"a": 3, "b": "z"}, "m": [("c", 4)], "d": [{"x": [], "y": "q"}, {"x": [5], "y": "r"}]},
    {"l": [7], "s": {"a": 4, "b": "w"}, "m": [("d", 5)], "d": [{"x": [None], "y": "s"}]},
]  # fmt: skip
TYPES = {
    "l": pa.list_(pa.int32()),
    "s": pa.struct([("a", pa.int64()), ("b", pa.string())]),
    "m": pa.map_(pa.string(), pa.int32()),
    "d": pa.list_(pa.struct([("x", pa.list_(pa.int32())), ("y", pa.string())])),
}
TABLE = pa.table(
    {"id": pa.array(range(len(ROWS)))}
    | {name: pa.array([row[name] for row in ROWS], kind) for name, kind in TYPES.items()}
)
LAYOUTS: dict[str, dict[str, Any]] = {
    "one page": {},
    "version 2": {"data_page_version": "2.0"},
    "page index": {"write_page_index": True},
    "small pages": {"data_page_size": 1, "write_batch_size": 1},
    "small indexed pages": {"data_page_size": 1, "write_batch_size": 1, "write_page_index": True},
    "small pages of version 2": {
        "data_page_size": 1, "write_batch_size": 1, "data_page_version": "2.0"
    },
    "two row groups": {"row_group_size": 4, "write_page_index": True},
}  # fmt: skip


def written(table: pa.Table, **options: Any) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, **options)
    return bytes(sink.getvalue())


@pytest.fixture(params=LAYOUTS, scope="module")
def data(request: pytest.FixtureRequest) -> bytes:
    return written(TABLE, **LAYOUTS[request.param])


def check(found: pa.Table, wanted: pa.Table) -> None:
    found.validate(full=True)
    assert found.schema.equals(wanted.schema)
    assert found.to_pylist() == wanted.to_pylist()
    assert found.equals(wanted)


def test_every_set_of_rows_is_that_of_the_full_read(data: bytes) -> None:
    check(ps.read_table(data), TABLE)
    for n in range(len(ROWS) + 1):
        for chosen in itertools.combinations(range(len(ROWS)), n):
            found = ps.read_table(data, filter=ps.col("id").isin(chosen))
            check(found, TABLE.take(pa.array(chosen, pa.int64())))


def test_leaves_of_structs_are_tested(data: bytes) -> None:
    check(ps.read_table(data, filter=ps.col("s", "a") >= 2), TABLE.take([3, 4, 5]))
    check(ps.read_table(data, filter=ps.col("s.a").is_null()), TABLE.take([1, 2]))
    found = ps.read_table(data, columns=["s"], filter=ps.col("s.b") != "x", limit=2)
    check(found, TABLE.take([2, 4]).select(["s"]))
    both = (ps.col("s.a") > 1) & (ps.col("s.b") < "y")
    check(ps.read_table(data, columns=["l", "s"], filter=both), TABLE.take([5]).select(["l", "s"]))


@pytest.mark.parametrize("name", TYPES)
def test_groups_are_tested_for_null(data: bytes, name: str) -> None:
    check(ps.read_table(data, filter=ps.col(name).is_null()), TABLE.take([1]))
    both = ps.col(name).is_not_null() & (ps.col("id") > 2)
    check(ps.read_table(data, filter=both), TABLE.take([3, 4, 5]))
    either = ps.col(name).is_null() | (ps.col("id") == 4)
    check(ps.read_table(data, columns=[name], filter=either), TABLE.take([1, 4]).select([name]))
    with pytest.raises(ps.PredicateError, match="nested"):
        ps.read_table(data, filter=ps.col(name) == 1)


def test_conditions_below_lists_are_refused_by_name(data: bytes) -> None:
    with pytest.raises(ps.UnsupportedError, match="'d' is a list"):
        ps.read_table(data, filter=ps.col("d", "y") == "a")


@pytest.mark.parametrize(
    "columns",
    [["s.a"], ["s.b", "id", "s.a"], ["d.list.element.x"], ["m.key_value.key"], ["l.list.element"]],
)
def test_projection_is_that_of_pyarrow(data: bytes, columns: list[str]) -> None:
    source = pq.ParquetFile(pa.BufferReader(data))
    names = list(dict.fromkeys(column.split(".")[0] for column in columns))
    wanted = source.read(columns=columns).select(names)
    check(ps.read_table(data, columns=columns), wanted)
    check(ps.read_table(data, columns=columns, filter=ps.col("id") > 2), wanted.slice(3))
    leaves = ps.scan(data, columns=columns).explain().to_dict()["leaves"]
    assert sorted(leaves) == sorted(wanted_paths(source, columns))


def wanted_paths(source: pq.ParquetFile, columns: list[str]) -> list[str]:
    leaves = [source.schema.column(i).path for i in range(len(source.schema))]
    return [leaf for leaf in leaves if any(f"{leaf}.".startswith(f"{c}.") for c in columns)]


def test_the_scaffolding_of_lists_may_be_left_out(data: bytes) -> None:
    assert ps.read_table(data, columns=["d.y"]).column("d").to_pylist() == [
        None if row["d"] is None else [None if e is None else {"y": e["y"]} for e in row["d"]]
        for row in ROWS
    ]
    with pytest.raises(ps.PredicateError, match=r"'d\.z'"):
        ps.read_table(data, columns=["d.z"])
    with pytest.raises(ps.PredicateError, match=r"'z\.y'"):
        ps.read_table(data, columns=["z.y"])


def test_a_column_with_a_dot_in_its_name_comes_before_a_path() -> None:
    table = pa.table(
        {"s.a": [1, 2], "s": [{"a": 3, "b": 0}, {"a": 4, "b": 0}], "t.u": [{"v": 5}, {"v": 6}]}
    )
    data = written(table)
    assert ps.read_table(data, columns=["s.a"]).to_pydict() == {"s.a": [1, 2]}
    assert ps.read_table(data, columns=["s.b"]).to_pydict() == {"s": [{"b": 0}, {"b": 0}]}
    assert ps.read_table(data, columns=["t.u.v"]).to_pydict() == {"t.u": [{"v": 5}, {"v": 6}]}
    assert ps.read_table(data, columns=["s.b"], filter=ps.col("s", "a") == 4).num_rows == 1
    assert ps.read_table(data, filter=ps.col("s.a") == 2).num_rows == 1


def test_a_scan_reads_the_pages_of_the_rows_in_each_leaf() -> None:
    n = 4000
    table = pa.table(
        {
            "id": pa.array(range(n)),
            "few": pa.array([[i] * (i % 3) for i in range(n)], pa.list_(pa.int64())),
            "many": pa.array([[i] * 20 for i in range(n)], pa.list_(pa.int64())),
        }
    )
    data = written(table, data_page_size=4096, write_page_index=True, use_dictionary=False)
    scan = ps.scan(data).filter(ps.col("id") == 1234)
    report = scan.explain(analyze=True).to_dict()
    assert all(leaf["pages"]["read"] == 1 for leaf in report["leaves"].values())
    assert all(leaf["pages"]["total"] > 2 for leaf in report["leaves"].values())
    check(scan.to_table(), table.slice(1234, 1))


def test_rows_span_pages_where_nothing_indexes_them() -> None:
    lists = [list(range(i * 100, i * 100 + 100)) for i in range(5)] + [[], None, [1]]
    table = pa.table({"id": range(8), "l": pa.array(lists, pa.list_(pa.int64()))})
    data = written(table, data_page_size=64, write_batch_size=7, use_dictionary=False)
    for i in range(8):
        check(ps.read_table(data, filter=ps.col("id") == i), table.slice(i, 1))
    check(ps.read_table(data, filter=ps.col("id").isin([0, 1, 4, 7])), table.take([0, 1, 4, 7]))


def test_batches_and_counts(data: bytes) -> None:
    batches = list(ps.scan(data, batch_size=2).to_batches())
    check(pa.Table.from_batches(batches), TABLE)
    assert ps.scan(data).filter(ps.col("l").is_not_null()).count_rows() == 5
    check(ps.read_table(data, limit=3), TABLE.slice(0, 3))
    assert open_metadata(data).schema.equals(TABLE.schema)


def test_null_counts_of_dictionaries_inside_structs_are_not_believed() -> None:
    """Arrow C++ leaves the nulls of the structs around a dictionary array out of its statistics."""
    text = pa.dictionary(pa.int32(), pa.string())
    rows = [{"f": "a"}, None, None, {"f": "b"}]
    for kind in (pa.struct([("f", text)]), pa.struct([("f", pa.string())])):
        table = pa.table({"c": pa.array(rows, kind), "i": range(4)})
        for options in ({"write_page_index": True}, {}, {"store_schema": False}):
            data = written(table, **options)
            for condition, wanted in (
                (ps.col("c", "f").is_null(), [1, 2]),
                (ps.col("c", "f").is_not_null(), [0, 3]),
                (ps.col("c", "f") >= "a", [0, 3]),
                (~(ps.col("c", "f") >= "b"), [0]),
            ):
                found = ps.read_table(data, columns=["i"], filter=condition)
                assert found["i"].to_pylist() == wanted, (kind, options, condition)


def test_statistics_of_dictionaries_of_old_arrow_are_not_believed() -> None:
    table = pa.table({"s": pa.array(["a", "b", "zzz"]).dictionary_encode()})
    data = written(table)
    version = pa.__version__.encode()
    made = data.index(b"parquet-cpp-arrow version " + version) + len(b"parquet-cpp-arrow version ")
    old = data[:made] + b"9." + b"0" * (len(version) - 2) + data[made + len(version) :]
    assert ps.scan(data).filter(ps.col("s") == "zzzz").plan().files == ()
    assert len(ps.scan(old).filter(ps.col("s") == "zzzz").plan().files) == 1
    plain = written(pa.table({"s": ["a", "b", "zzz"]}))
    old = plain.replace(
        b"parquet-cpp-arrow version " + version,
        b"parquet-cpp-arrow version 9." + b"0" * (len(version) - 2),
    )
    assert ps.scan(old).filter(ps.col("s") == "zzzz").plan().files == ()


@pytest.mark.parametrize("runs", [1, 3000])
@pytest.mark.parametrize("string_type", ["string", "view"])
@pytest.mark.parametrize("value", ["text", 7, [1], {"x": "y"}, ["a"]], ids=repr)
def test_fixed_size_lists_with_nulls(value: Any, string_type: str, runs: int) -> None:
    rows = [[value, None], None, None, [value, value]] * runs
    kind = pa.list_(pa.infer_type([value]), 2)
    found = ps.read_table(written(pa.table({"v": pa.array(rows, kind)})), string_type=string_type)
    found.validate(full=True)
    assert found["v"].to_pylist() == rows


def test_a_null_in_a_list_of_enormous_size_is_a_limit() -> None:
    table = pa.table({"v": pa.array([None], pa.list_(pa.int8(), (1 << 28) + 1))})
    with pytest.raises(ps.LimitError, match="column 'v"):
        ps.read_table(
            written(pa.table({"v": pa.array([None], pa.list_(pa.int8()))}).cast(table.schema))
        )


def test_dotted_names_in_filters_are_found_as_in_columns() -> None:
    table = pa.table(
        {
            "a.b": [{"c": 1}, {"c": 2}],
            "a": [{"b.c": 3, "d": {"e.f": 5}}, {"b.c": 4, "d": {"e.f": 6}}],
        }
    )
    data = written(table)
    assert ps.read_table(data, filter=ps.col("a.b.c") == 2).num_rows == 1
    assert ps.read_table(data, filter=ps.col("a", "b.c") == 4).num_rows == 1
    assert ps.read_table(data, filter=ps.col("a.d.e.f") == 6).num_rows == 1
    with pytest.raises(ps.PredicateError, match="no field 'x'"):
        ps.read_table(data, filter=ps.col("a.x") == 6)


def test_the_nulls_of_a_leaf_are_no_rung_of_its_ladder() -> None:
    """They are the nulls of its values: a leaf that is not repeated, in groups that never are null, is a flat one."""
    optional, required = (pa.field("x", pa.int32(), nullable) for nullable in (True, False))
    for item in (optional, required):
        schema = pa.schema(
            [
                pa.field("s", pa.struct([item]), nullable=False),
                pa.field("n", pa.struct([item])),
                pa.field("l", pa.list_(item), nullable=False),
            ]
        )
        rows = {"s": [{"x": 1}], "n": [{"x": 2}], "l": [[3]]}
        file = open_metadata(written(pa.table(rows, schema=schema)))
        columns, _ = output(file, None, Options())
        nesting_levels_of_each = [
            part.nesting_levels for column in columns for part in column.parts
        ]
        assert nesting_levels_of_each == [(), ((OPTIONAL, 1, 0),), ((REPEATED, 1, 1),)]


def test_dotted_names_inside_structs_are_tried_in_every_way() -> None:
    inner = pa.struct([("c", pa.int64()), ("x", pa.int64())])
    both = pa.struct([("a", pa.struct([("b.c", pa.int64()), ("b.y", pa.int64())])), ("a.b", inner)])
    rows = [{"a": {"b.c": i, "b.y": -i}, "a.b": {"c": i + 10, "x": i * i}} for i in range(4)]
    table = pa.table({"s": pa.array(rows, both)})
    data = written(table)
    for path, values in (("s.a.b.y", [0, -1, -2, -3]), ("s.a.b.x", [0, 1, 4, 9])):
        for i, value in enumerate(values):
            check(ps.read_table(data, filter=ps.col(path) == value), table.slice(i, 1))
        found = ps.read_table(data, columns=[path])["s"].combine_chunks().flatten()
        assert found[0].flatten()[0].to_pylist() == values
    with pytest.raises(ps.PredicateError, match=r"'s.a.b.c' are 2 fields; .*part by part"):
        ps.read_table(data, filter=ps.col("s.a.b.c") == 1)
    check(ps.read_table(data, filter=ps.col("s", "a", "b.c") == 2), table.slice(2, 1))
    check(ps.read_table(data, filter=ps.col("s", "a.b", "c") == 12), table.slice(2, 1))
    projected = ps.read_table(data, columns=["s.a.b.c"]).schema.field("s").type
    assert [f.name for f in projected] == ["a", "a.b"]  # a column of both
    for path in ("s.a.b.z", "s.a.b.c.", "s.", "s.a."):
        with pytest.raises(ps.PredicateError, match="has no field"):
            ps.read_table(data, filter=ps.col(path) == 1)
    with pytest.raises(ps.PredicateError, match=r"has no field 'a\.b\.c'"):
        ps.read_table(data, filter=ps.col("s", "a.b.c") == 1)


def test_files_may_differ_in_what_may_be_null_inside(tmp_path: Any) -> None:
    strict = pa.struct([pa.field("a", pa.int64(), nullable=False), ("l", pa.list_(pa.int8()))])
    loose = pa.struct([("a", pa.int64()), ("l", pa.list_(pa.int8()))])
    pq.write_table(pa.table({"s": pa.array([{"a": 1, "l": [2]}], strict)}), tmp_path / "0.parquet")
    pq.write_table(
        pa.table({"s": pa.array([{"a": None, "l": None}], loose)}), tmp_path / "1.parquet"
    )
    found = ps.read_table(str(tmp_path))
    assert found.schema.field("s").type == loose
    assert found["s"].to_pylist() == [{"a": 1, "l": [2]}, {"a": None, "l": None}]
    pq.write_table(pa.table({"s": [{"a": "x", "l": [1]}]}), tmp_path / "2.parquet")
    with pytest.raises(ps.UnsupportedError, match="column 's'"):
        ps.read_table(str(tmp_path))


def test_a_struct_that_is_tested_for_null_and_wanted_is_read_once() -> None:
    n = 1000
    kind = pa.struct([("a", pa.int64()), ("b", pa.int64())])
    rows = [None if i % 3 == 0 else {"a": i, "b": -i} for i in range(n)]
    table = pa.table({"s": pa.array(rows, kind)})
    data = written(table, data_page_size=512, write_batch_size=64, use_dictionary=False)
    scan = ps.scan(data).filter(ps.col("s").is_not_null())
    plain = ps.scan(data).explain(analyze=True).to_dict()
    report = scan.explain(analyze=True).to_dict()
    assert report["bytes"]["data"] == plain["bytes"]["data"]
    assert report["leaves"]["s.a"]["pages"] == plain["leaves"]["s.a"]["pages"]
    check(scan.to_table(), table.filter(pa.array([row is not None for row in rows])))


def test_lists_of_a_writer_that_understated_its_chunks() -> None:
    """parquet-mr before 1.2.9 left a header out of the size of a chunk: more is fetched, not more is read."""
    table = pa.table({"l": pa.array([[1, 2], None, [], [3]] * 50), "m": pa.array([[4]] * 200)})
    data = written(table, compression="none")
    name = f"parquet-cpp-arrow version {pa.__version__}".encode()
    old = data.replace(name, b"parquet-mr version 1.2.8".ljust(len(name)))
    assert open_metadata(old).writer.understates_chunks
    check(ps.read_table(old), table)
    check(ps.read_table(old, columns=["l"], limit=3), table.select(["l"]).slice(0, 3))


@pytest.mark.parametrize("depth", [61, 62, 63, 90])
def test_types_deeper_than_the_streams_of_arrow(depth: int) -> None:
    """Arrow C++ imports 64 levels of a schema, its root and leaves among them; what need not pass there has no limit."""
    kind, value = pa.int32(), 7
    for _ in range(depth):
        kind, value = pa.struct([("f", kind)]), {"f": value}
    table = pa.table({"a": pa.array([value, None, value], kind)})
    scan = ps.scan(written(table))
    check(scan.to_table(), table)
    check(pa.Table.from_batches(scan.to_batches()), table)
    check(pa.Table.from_batches(scan.plan().execute()), table)
    check(scan.to_reader().read_all(), table)
    check(scan.filter(ps.col("a." + ".".join("f" * depth)) == 7).to_table(), table.take([0, 2]))
    if depth <= 62:
        check(pa.table(scan), table)
    else:
        with pytest.raises(pa.ArrowInvalid, match="Recursion level"):  # of the one who imports
            pa.table(scan)


def test_files_that_differ_in_nulls_inside_maps_and_lists_of_fixed_size() -> None:
    def kinds(nullable: bool) -> pa.Schema:
        return pa.schema(
            {
                "m": pa.map_(pa.int8(), pa.field("v", pa.int32(), nullable)),
                "f": pa.list_(pa.field("element", pa.int16(), nullable), 2),
            }
        )

    rows = [{"m": [(1, 2)], "f": [3, 4]}, {"m": [], "f": [5, 6]}]
    with tempfile.TemporaryDirectory() as folder:
        for name, nullable in (("a", False), ("b", True)):
            table = pa.Table.from_pylist(rows, kinds(nullable))
            pq.write_table(table, f"{folder}/{name}.parquet")
        found = ps.read_table(folder)
        found.validate(full=True)
        assert found.to_pylist() == rows * 2
        assert [f.type.field(0).nullable for f in found.schema if f.name == "f"] == [True]
        longer = pa.table({"m": [None], "f": [[1, 2, 3]]}).cast(
            pa.schema({"m": kinds(True).field("m").type, "f": pa.list_(pa.int16(), 3)})
        )
        pq.write_table(longer, f"{folder}/c.parquet")
        found = ps.read_table(folder)  # sizes that differ: a list of any
        found.validate(full=True)
        assert found.to_pylist() == [*rows * 2, {"m": None, "f": [1, 2, 3]}]
        assert pa.types.is_list(found.schema.field("f").type)


@pytest.mark.parametrize("kept", range(1, 10))
def test_scattered_rows_of_lists_across_the_words_of_a_mask(kept: int) -> None:
    """Lists that end anywhere in a word, or go over several; chosen ones and others."""
    lengths = [150 if i % 37 == 5 else i * 7 % 41 for i in range(3000)]
    rows = [list(range(n)) if i % 11 else None for i, n in enumerate(lengths)]
    table = pa.table({"id": range(3000), "l": pa.array(rows, pa.list_(pa.int32()))})
    data = written(table, max_rows_per_page=700, data_page_size=1 << 20, write_page_index=True)
    wanted = [i for i in range(3000) if i * 13 % 9 < kept and i % 2]
    found = ps.read_table(data, filter=ps.col("id").isin(wanted))
    check(found, table.take(pa.array(wanted)))
