"""What a scan gives beside tables and batches: for pandas, polars, DuckDB, as Python's values, and as a file."""

from __future__ import annotations

import gc
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from support.object_server.server import ObjectServer
from support.remote_files import s3_options

N = 1_000
ROWS = pa.table(
    {
        "id": range(N),
        "word": [f"w{i % 7}" if i % 5 else None for i in range(N)],
        "real": np.arange(N) / 8,
        "tags": [[i, i + 1] if i % 3 else None for i in range(N)],
    }
)
FIRST = ps.col("id") < 10


@pytest.fixture
def path(tmp_path: Path) -> str:
    pq.write_table(ROWS, tmp_path / "a.parquet", row_group_size=300, write_page_index=True)
    return str(tmp_path / "a.parquet")


def one_column(tmp_path: Path, values: pa.Array) -> str:
    path = tmp_path / "one.parquet"
    pq.write_table(pa.table({"fine": [0] * len(values), "c": values}), path)
    return str(path)


# ---- a loop


def test_a_loop_is_one_over_batches(path: str) -> None:
    scan = ps.scan(path, filter=ps.col("id") < 700, batch_size=100)
    batches = list(scan)
    assert batches == list(scan.to_batches())
    assert pa.Table.from_batches(batches).equals(scan.to_table())
    assert next(iter(scan)).num_rows == 100


def test_libraries_take_a_scan_for_a_table_and_not_for_a_list(path: str) -> None:
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    duckdb = pytest.importorskip("duckdb")
    scan = ps.scan(path, filter=FIRST)
    table = scan.to_table()
    assert pa.table(scan).equals(table)
    assert pl.DataFrame(scan).equals(pl.from_arrow(table))
    assert pl.from_arrow(scan).struct.unnest().equals(pl.from_arrow(table))
    assert duckdb.from_arrow(scan).fetchall() == duckdb.from_arrow(table).fetchall()
    if hasattr(pd.DataFrame, "from_arrow"):
        assert pd.DataFrame.from_arrow(scan).equals(table.to_pandas())
    for wrong in (np.asarray, np.array, pd.DataFrame):
        with pytest.raises(TypeError, match=r"to_pandas\(\)"):
            wrong(scan)
    with pytest.raises(TypeError, match=r"count_rows\(\)"):
        5 in scan  # noqa: B015
    with pytest.raises(TypeError, match="len"):
        len(scan)  # type: ignore[arg-type]
    assert bool(scan)


# ---- the forms


def test_all_forms_have_the_rows_of_the_table(path: str) -> None:
    for package in ("pandas", "polars", "duckdb"):
        pytest.importorskip(package)
    scan = ps.scan(path, filter=FIRST)
    table = scan.to_table()
    assert table.num_rows == 10
    assert scan.to_pylist() == table.to_pylist()
    assert scan.to_pandas().equals(table.to_pandas())
    assert scan.to_polars().to_dicts() == table.to_pylist()
    relation = scan.to_duckdb()
    assert relation.columns == table.column_names
    assert [dict(zip(relation.columns, row, strict=True)) for row in relation.fetchall()] == table.to_pylist()  # fmt: skip


def test_no_rows_and_no_columns(path: str) -> None:
    pytest.importorskip("pandas")
    pytest.importorskip("polars")
    pytest.importorskip("duckdb")
    none = ps.scan(path, filter=ps.col("id") < 0)
    assert none.to_pylist() == []
    assert none.to_pandas().shape == (0, 4)
    assert none.to_polars().shape == (0, 4)
    assert none.to_duckdb().fetchall() == []
    bare = ps.scan(path).select()
    assert bare.to_pylist() == [{}] * N
    assert bare.to_pandas().shape == (N, 0)
    assert bare.to_polars().width == 0
    with pytest.raises(ps.UnsupportedError, match="without columns: select one"):
        bare.to_duckdb()


def test_head_count_and_columns(path: str) -> None:
    scan = ps.scan(path, filter=ps.col("id") >= 500)
    assert scan.head().equals(scan.to_table().slice(0, 5))
    assert scan.head(2)["id"].to_pylist() == [500, 501]
    assert scan.limit(1).head(4).num_rows == 1
    assert scan.count() == scan.count_rows() == 500
    assert scan.columns == ROWS.column_names
    assert scan.select("real", "id").with_row_number("n").columns == ["n", "real", "id"]


@pytest.mark.parametrize(
    ("package", "give"),
    [
        ("pandas", ps.Scan.to_pandas),
        ("polars", ps.Scan.to_polars),
        ("duckdb", ps.Scan.to_duckdb),
    ],
)
def test_a_missing_package_is_named_with_its_command(
    path: str, monkeypatch: pytest.MonkeyPatch, package: str, give: Any
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ps.MissingPackageError, match=f"pip install {package}") as caught:
        give(ps.scan(path))
    assert isinstance(caught.value, ImportError) and caught.value.name == package


# ---- the schema


def test_a_given_schema_needs_no_file(path: str) -> None:
    given = pa.schema([("id", pa.int64()), ("word", pa.string()), ("more", pa.date32())])
    scan = ps.scan([path], schema=given).select("more", "id")
    os.unlink(path)
    assert scan.schema.equals(pa.schema([("more", pa.date32()), ("id", pa.int64())]))
    assert scan.columns == ["more", "id"]
    with pytest.raises(FileNotFoundError):  # the first file tells which columns there are
        ps.scan([path, path], schema=given).select("other").schema  # noqa: B018


def test_a_table_has_its_schema_without_a_file(tmp_path: Path) -> None:
    deltalake = pytest.importorskip("deltalake", reason="pip install 'pageseek[delta]'")
    folder = tmp_path / "t"
    deltalake.write_deltalake(str(folder), ROWS.select(["id", "word"]))
    scan = ps.scan(str(folder), filter=FIRST)
    wanted = scan.to_table().schema
    for file in folder.glob("*.parquet"):
        file.unlink()
    assert scan.schema.equals(wanted)
    assert ps.scan(str(folder)).select("word").columns == ["word"]


# ---- pandas


@pytest.fixture
def indexed(tmp_path: Path) -> str:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"a": range(6), "b": list("uvwxyz"), "day": list("mtwtfs")})
    frame.index = pd.Index(list("fedcba"), name="key")
    frame.to_parquet(tmp_path / "indexed.parquet")
    return str(tmp_path / "indexed.parquet")


def test_the_index_of_pandas_is_kept(indexed: str) -> None:
    pd = pytest.importorskip("pandas")
    whole = pd.read_parquet(indexed)
    assert ps.scan(indexed).to_pandas().equals(whole)
    assert ps.scan(indexed, filter="a > 3").to_pandas().equals(whole[whole.a > 3])
    for columns in (["b"], ["b", "a"], ["key", "a"], []):
        found = ps.scan(indexed, columns=columns).to_pandas()
        wanted = pq.read_table(indexed, columns=columns, use_pandas_metadata=True).to_pandas()
        assert found.equals(wanted) and found.index.equals(wanted.index)
        assert found.index.name == "key"
    plain = ps.scan(indexed, columns=["b"]).to_pandas(ignore_metadata=True)
    assert list(plain.columns) == ["b"] and list(plain.index) == list(range(6))


def test_several_levels_of_an_index(tmp_path: Path) -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"k": [1, 1, 2], "l": ["x", "y", "x"], "v": [5, 6, 7], "w": [1, 2, 3]})
    frame = frame.set_index(["k", "l"])
    frame.to_parquet(tmp_path / "a.parquet")
    found = ps.scan(tmp_path / "a.parquet").select("v").filter("w < 3").to_pandas()
    assert found.equals(frame[["v"]][:2])


def test_a_range_is_the_index_of_whole_files_only(tmp_path: Path) -> None:
    """Ten rows of two files are not the rows 100 to 109 of the first."""
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"a": range(10)}, index=pd.RangeIndex(100, 110))
    paths = [tmp_path / f"{i}.parquet" for i in range(2)]
    for one in paths:
        frame.to_parquet(one)
    assert ps.scan(paths[0]).to_pandas().equals(frame)
    assert list(ps.scan(paths[0], filter="a > 6").to_pandas().index) == [0, 1, 2]
    assert list(ps.scan(paths, filter="a < 5").to_pandas().index) == list(range(10))


@pytest.mark.parametrize(
    "said",
    [b"{", b"[]", b"\xff", b'{"index_columns": {"a": 1}}', b'{"index_columns": [[], 7, "gone"]}', b'{"columns": 3}'],
)  # fmt: skip
def test_what_a_file_says_of_pandas_may_be_nonsense(tmp_path: Path, said: bytes) -> None:
    pytest.importorskip("pandas")
    path = tmp_path / "a.parquet"
    pq.write_table(
        pa.table({"a": [1, 2], "b": [3, 4]}).replace_schema_metadata({b"pandas": said}), path
    )
    for scan in (ps.scan(path), ps.scan([path, path])):
        assert scan.select("a").to_pandas()["a"].tolist() == [1, 2] * len(scan.sources)


def test_options_of_pandas(path: str) -> None:
    pd = pytest.importorskip("pandas")
    found = ps.scan(path, filter=FIRST).to_pandas(types_mapper=pd.ArrowDtype)
    assert found["id"].dtype == pd.ArrowDtype(pa.int64())
    with pytest.raises(TypeError, match="no_such"):
        ps.scan(path).to_pandas(no_such=1)
    alone = ps.scan(path, columns=["real"], limit=300)
    assert (
        alone.to_pandas(zero_copy_only=True, split_blocks=True)["real"].to_list()
        == ROWS["real"][:300].to_pylist()
    )
    with pytest.raises(
        ps.UnsupportedError, match=r"zero_copy_only=True\): .*; leave the option out"
    ):
        ps.scan(path).to_pandas(zero_copy_only=True)


def test_a_value_that_python_lacks_names_its_column(tmp_path: Path) -> None:
    path = one_column(tmp_path, pa.array([0, 1 << 30], pa.int32()).cast(pa.date32()))
    with pytest.raises(ps.UnsupportedError, match=r"column 'c' of type date32.*to_table\(\)"):
        ps.scan(path).to_pylist()
    assert ps.scan(path).select("fine").to_pylist() == [{"fine": 0}] * 2


# ---- polars and DuckDB


@pytest.mark.parametrize("nested", [False, True])
def test_types_that_others_lack_are_refused_by_name(tmp_path: Path, nested: bool) -> None:
    pytest.importorskip("polars")
    pytest.importorskip("duckdb")
    wide = pa.decimal256(50, 2)
    values = pa.array([[1]], pa.list_(wide)) if nested else pa.array([1], wide)
    scan = ps.scan(one_column(tmp_path, values))
    with pytest.raises(ps.UnsupportedError, match=r"column 'c' of type .*polars has no decimal256"):
        scan.to_polars()
    with pytest.raises(ps.UnsupportedError, match=r"column 'c' of type .*DuckDB has no decimal256"):
        scan.to_duckdb()
    half = ps.scan(one_column(tmp_path, pa.array([np.float16(1)], pa.float16())))
    assert half.to_polars()["c"].to_list() == [1.0]
    with pytest.raises(ps.UnsupportedError, match="DuckDB has no halffloat"):
        half.to_duckdb()


def test_a_name_that_stands_twice(tmp_path: Path) -> None:
    pytest.importorskip("polars")
    path = tmp_path / "a.parquet"
    pq.write_table(pa.Table.from_arrays([pa.array([1]), pa.array([2])], ["a", "a"]), path)
    for give in (ps.Scan.to_polars, ps.Scan.to_pylist):
        with pytest.raises(ps.UnsupportedError, match="several columns have the name 'a'"):
            give(ps.scan(path))


def test_a_relation_joins_others_and_lasts(path: str) -> None:
    duckdb = pytest.importorskip("duckdb")
    with pytest.raises(TypeError, match=r"duckdb.connect\(\) gives"):
        ps.scan(path).to_duckdb("names.db")
    with duckdb.connect() as connection:
        connection.execute("create table names as select 3 as id, 'three' as name")
        relation = ps.scan(path, filter=FIRST).to_duckdb(connection)
        gc.collect()
        for _ in range(2):
            found = relation.join(connection.table("names"), "id").fetchall()
            assert [row[-1] for row in found] == ["three"]
        query = "select count(*), max(id) from rows"
        assert relation.query("rows", query).fetchall() == [(10, 9)]


# ---- files


def test_a_file_has_the_rows(path: str, tmp_path: Path) -> None:
    scan = ps.scan(path, filter=ps.col("real") >= 20).limit(700)
    to = tmp_path / "new.parquet"
    assert scan.write_parquet(to, page_rows=50, row_group_rows=200) == 700
    assert ps.read_table(to).equals(scan.to_table())
    assert pq.read_table(to).equals(scan.to_table())
    with ps.open(to) as file:
        assert [group.num_rows for group in file.row_groups] == [200, 200, 200, 100]
        offsets = file.offset_index(0, "id")
        assert offsets is not None and offsets.num_pages == 4
        assert {file.chunk(0, leaf).codec for leaf in file.leaves} == {"zstd"}
    assert sorted(os.listdir(tmp_path)) == ["a.parquet", "new.parquet"]


def test_a_file_of_no_rows_or_other_choices(path: str, tmp_path: Path) -> None:
    to = tmp_path / "new.parquet"
    none = ps.scan(path, filter=ps.col("id") < 0)
    assert none.write_parquet(to, codec="snappy") == 0
    assert ps.read_table(to).schema.equals(none.schema)
    taken = ps.scan(path).take([7, 999]).with_row_number("n").select("word", "id")
    assert taken.write_parquet(to, overwrite=True) == 2
    assert ps.read_table(to).equals(taken.to_table())
    coded = ps.scan(path, dictionary_columns=["word"], string_type="view")
    assert coded.write_parquet(to, overwrite=True) == N
    assert ps.read_table(to)["word"].to_pylist() == ROWS["word"].to_pylist()
    with pytest.raises(ps.UnsupportedError, match="without columns"):
        ps.scan(path).select().write_parquet(to, overwrite=True)


def test_a_file_may_replace_the_one_that_is_read(path: str) -> None:
    with pytest.raises(FileExistsError, match="overwrite=True"):
        ps.scan(path, filter=FIRST).write_parquet(path)
    assert ps.read_table(path).equals(ROWS)
    assert ps.scan(path, filter=FIRST).write_parquet(path, overwrite=True) == 10
    assert ps.read_table(path).equals(ROWS.slice(0, 10))


def test_a_failure_leaves_nothing(path: str, tmp_path: Path) -> None:
    data = bytearray(Path(path).read_bytes())
    with ps.open(path) as file:
        at = file.chunk(2, "id").data_page_offset
    data[at : at + 8] = b"\xff" * 8
    Path(path).write_bytes(data)
    with pytest.raises(ps.PageseekError, match=r"a\.parquet"):
        ps.scan(path).write_parquet(tmp_path / "new.parquet", row_group_rows=100)
    assert os.listdir(tmp_path) == ["a.parquet"]


def test_places_that_are_refused(path: str, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(ps.UnsupportedError, match="folder: name a file in it"):
        ps.scan(path).write_parquet(tmp_path / "folder")
    assert os.listdir(tmp_path / "folder") == []
    deltalake = pytest.importorskip("deltalake", reason="pip install 'pageseek[delta]'")
    deltalake.write_deltalake(str(tmp_path / "t"), ROWS.select(["id"]))
    with pytest.raises(ps.UnsupportedError, match="table"):
        ps.scan(path).write_parquet(tmp_path / "t" / "new.parquet")
    with pytest.raises(ValueError, match="codec='lzo'"):
        ps.scan(path).write_parquet(tmp_path / "new.parquet", codec="lzo")


def test_a_file_in_a_store(path: str, object_server: ObjectServer) -> None:
    pytest.importorskip("obstore", reason="pip install 'pageseek[obstore]'")
    object_server.put("bucket/other.parquet", b"")
    options = s3_options(object_server)
    scan, to = ps.scan(path, filter=FIRST), "s3://bucket/t/new.parquet"
    assert scan.write_parquet(to, storage_options=options) == 10
    puts = [one for one in object_server.log.requests("bucket/t/new.parquet") if one.method == "PUT"]  # fmt: skip
    assert len(puts) == 1 and puts[0].headers.get("if-none-match") == "*"
    assert ps.read_table(to, storage_options=options).equals(scan.to_table())
    with pytest.raises(FileExistsError, match="overwrite=True"):
        scan.write_parquet(to, storage_options=options)
    assert scan.limit(3).write_parquet(to, storage_options=options, overwrite=True) == 3
    assert ps.read_table(to, storage_options=options).num_rows == 3


def test_the_index_of_pandas_is_written(indexed: str, tmp_path: Path) -> None:
    pd = pytest.importorskip("pandas")
    to = tmp_path / "new.parquet"
    ps.scan(indexed, filter="a > 3").write_parquet(to)
    assert list(pd.read_parquet(to).index) == ["b", "a"]
    ranged = pd.DataFrame({"a": range(4)}, index=pd.RangeIndex(10, 14))
    ranged.to_parquet(indexed)
    ps.scan(indexed).write_parquet(to, overwrite=True)
    assert pd.read_parquet(to).equals(ranged)
    ps.scan([indexed, indexed], filter="a < 2").write_parquet(to, overwrite=True)
    assert list(pd.read_parquet(to).index) == [0, 1, 2, 3]


def test_metadata_of_pandas_that_no_parser_takes(tmp_path: Path) -> None:
    """Deep brackets end the parsers of Python and of pyarrow with a RecursionError."""
    pytest.importorskip("pandas")
    deep = pa.table({"a": range(10)}).replace_schema_metadata({"pandas": b"[" * 100_000})
    path = tmp_path / "deep.parquet"
    pq.write_table(deep, path)
    scan = ps.scan(path, filter="a < 3")
    for options in ({}, {"ignore_metadata": True}):
        assert scan.to_pandas(**options)["a"].tolist() == [0, 1, 2]
    assert scan.write_parquet(tmp_path / "out.parquet") == 3


def test_a_row_number_with_the_name_of_the_index(tmp_path: Path) -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"a": [5, 6]}, index=pd.Index([7, 8], name="idx"))
    path = tmp_path / "pandas.parquet"
    frame.to_parquet(path)
    found = ps.scan(path, columns=["a"]).with_row_number("idx").to_pandas()
    assert found.reset_index()[["idx", "a"]].values.tolist() == [[0, 5], [1, 6]]


@pytest.mark.parametrize("kind", [pa.list_view(pa.int64()), pa.large_list_view(pa.string())])
def test_views_of_lists_are_written(kind: pa.DataType, tmp_path: Path) -> None:
    values = pa.array(
        [[1, 2], None, [], [3]] if "int" in str(kind) else [["a"], None, [], ["b", "c"]], kind
    )
    pq.write_table(pa.table({"l": values}), tmp_path / "a.parquet")
    scan = ps.scan(tmp_path / "a.parquet")
    assert scan.write_parquet(tmp_path / "b.parquet") == 4
    assert ps.read_table(tmp_path / "b.parquet")["l"].to_pylist() == values.to_pylist()


@pytest.mark.parametrize("condition", [None, "id = 2"])
def test_with_a_limit_the_schema_is_that_of_the_rows(tmp_path: Path, condition: Any) -> None:
    first = pa.table({"id": pa.array([1, 4], pa.int32()), "a": [1, 2]})
    second = pa.table({"id": [2, 9], "b": ["x", "y"]})
    paths = [tmp_path / "0.parquet", tmp_path / "1.parquet"]
    for path, table in zip(paths, (first, second), strict=True):
        pq.write_table(table, path)
    scan = ps.scan(paths, filter=condition).limit(1)
    wanted = first.slice(0, 1) if condition is None else scan.to_table()
    assert scan.schema == wanted.schema
    names = ["id", "a"] if condition is None else ["id", "a", "b"]
    assert scan.columns == wanted.column_names == names
    for rows in (scan.to_table(), pa.table(scan), pa.Table.from_batches(scan.to_batches())):
        assert rows.equals(wanted)
    assert scan.write_parquet(tmp_path / "out.parquet") == 1
    assert pq.read_table(tmp_path / "out.parquet").equals(wanted)
    assert ps.scan(paths).limit(0).schema == ps.scan(paths).limit(0).to_table().schema
