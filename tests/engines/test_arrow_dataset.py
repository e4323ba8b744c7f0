"""A dataset of pyarrow over a scan: the methods of pyarrow's, with the same answers."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pads
import pyarrow.parquet as pq
import pytest

import pageseek as ps

F = pc.field
N = 2_000
TABLE = pa.table(
    {
        "k": range(N),
        "v": [k % 7 for k in range(N)],
        "s": [None if k % 5 == 0 else f"s{k % 40}" for k in range(N)],
        "st": [{"x": k % 3, "y": {"z": str(k)}} for k in range(N)],
    }
)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("dataset") / "a.parquet"
    pq.write_table(TABLE, made, row_group_size=500, write_page_index=True)
    return made


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files that differ in their columns, in folders with values."""
    made = tmp_path_factory.mktemp("folder")
    for day in ("2024-01-01", "2024-01-02"):
        (made / f"day={day}").mkdir()
    pq.write_table(TABLE.select(["k", "v"]), made / "day=2024-01-01" / "a.parquet")
    pq.write_table(TABLE.select(["k", "s"]), made / "day=2024-01-02" / "b.parquet")
    return made


def both(path: Path) -> tuple[Any, pads.Dataset]:
    return ps.dataset(path), pads.dataset(path)


def test_it_is_a_dataset(path: Path) -> None:
    ours, theirs = both(path)
    assert isinstance(ours, pads.Dataset)
    assert ours.schema.equals(theirs.schema, check_metadata=True)
    assert ours.files == theirs.files
    assert ours.partition_expression.equals(theirs.partition_expression)
    assert "a.parquet" in repr(ours)


QUESTIONS: dict[str, Callable[[Any], Any]] = {
    "all": lambda d: d.to_table(),
    "columns": lambda d: d.to_table(columns=["s", "k"]),
    "a column twice": lambda d: d.to_table(columns=["k", "k"]),
    "a path": lambda d: d.to_table(columns=["st.y.z", "k"]),
    "a field and its struct": lambda d: d.to_table(columns=["st.x", "st"]),
    "filter": lambda d: d.to_table(filter=(F("k") < 700) & (F("v") == 3)),
    "filter of another column": lambda d: d.to_table(columns=["s"], filter=F("k") == 700),
    "no row": lambda d: d.to_table(filter=F("k") < 0),
    "expressions": lambda d: d.to_table(
        columns={"twice": F("k") * 2, "x": F("st", "x"), "one": pc.scalar(1)}, filter=F("v") == 1
    ),
    "new names": lambda d: d.to_table(columns={"key": F("k"), "text": F("s")}),
    "an expression without columns": lambda d: d.to_table(columns={"one": pc.scalar(1)}),
    "expressions of no row": lambda d: d.to_table(columns={"o": F("k") + 1}, filter=F("k") < 0),
    "head": lambda d: d.head(13, columns=["k"]),
    "head of a filter": lambda d: d.head(3, filter=F("v") == 2),
    "take": lambda d: d.take([5, 1999, 5, 0]),
    "take of a filter": lambda d: d.take(pa.array([3, 1]), columns=["k"], filter=F("v") == 2),
    "take nothing": lambda d: d.take(pa.array([], pa.int64()), columns=["k"]),
    "filtered": lambda d: d.filter(F("k") > 10).filter(F("v") == 2).to_table(columns=["k"]),
    "filtered and filter": lambda d: d.filter(F("k") > 10).to_table(filter=F("v") == 2),
    "batches": lambda d: pa.Table.from_batches(d.to_batches(columns=["k"], batch_size=100)),
    "reader": lambda d: d.scanner(columns=["k"], filter=F("v") == 2).to_reader().read_all(),
    "one thread": lambda d: d.to_table(use_threads=False, batch_readahead=2, cache_metadata=True),
    "sort_by": lambda d: d.sort_by([("v", "descending"), ("k", "ascending")]).to_table(),
    "replace_schema": lambda d: d.replace_schema(
        pa.schema([("new", pa.int8()), ("k", pa.int64())])
    ).to_table(),
    "a later page": lambda d: d.take(np.arange(600, 610), columns=["k"]),
}  # fmt: skip


@pytest.mark.parametrize("name", QUESTIONS)
def test_the_answer_is_that_of_pyarrow(path: Path, name: str) -> None:
    ours, theirs = (QUESTIONS[name](dataset) for dataset in both(path))
    assert ours.combine_chunks().equals(theirs.combine_chunks()), name


def test_counts(path: Path) -> None:
    ours, theirs = both(path)
    for how in ({}, {"filter": F("v") == 3}, {"filter": F("k") < 0}):
        assert ours.count_rows(**how) == theirs.count_rows(**how)
    assert ours.to_table(columns=[]).num_rows == N
    assert sum(batch.num_rows for batch in ours.to_batches(columns=[])) == N


def test_a_scanner_can_be_asked_again(path: Path) -> None:
    scanner = ps.dataset(path).scanner(columns=["k"], filter=F("v") == 3)
    assert scanner.projected_schema == pa.schema([("k", pa.int64())])
    assert scanner.dataset_schema.names == TABLE.schema.names
    wanted = TABLE.filter(F("v") == 3).select(["k"])
    for _ in range(2):
        assert scanner.to_table() == wanted
        assert pa.table(scanner) == wanted
        assert scanner.count_rows() == wanted.num_rows
        assert scanner.head(2) == wanted.slice(0, 2)


def test_options_of_pyarrows_reader_that_mean_something_here(path: Path) -> None:
    scan = ps.dataset(path).scanner(use_threads=False, batch_size=7, fragment_readahead=3).scan
    assert (scan._request.threads, scan._request.batch_size) == (1, 7)
    assert ps.dataset(path, threads=3).scanner(memory_pool=None).scan._request.threads == 3


def test_batches_are_as_small_as_asked(path: Path) -> None:
    for columns in (["k"], {"k": F("k") + 0}):
        sizes = [b.num_rows for b in ps.dataset(path).to_batches(columns=columns, batch_size=300)]
        assert max(sizes) <= 300 and sum(sizes) == N


def test_a_join_reads_both_sides(path: Path) -> None:
    flat = ["k", "v"]
    other = pads.InMemoryDataset(pa.table({"k": [5, 6], "w": ["a", "b"]}))
    ours = ps.dataset(path, columns=flat)
    joined = ours.join(other, "k", join_type="inner").to_table().sort_by("k")
    assert joined.to_pylist() == [{"k": 5, "v": 5, "w": "a"}, {"k": 6, "v": 6, "w": "b"}]
    again = ours.join(ps.dataset(path, columns=flat, filter="k < 3"), "k", join_type="left semi")
    assert again.to_table().num_rows == 3
    left = pads.InMemoryDataset(pa.table({"k": [10, 20]}))
    with pytest.raises(ps.UnsupportedError, match=r"dataset\.to_table"):
        left.join(ours, "k")


def test_joins_by_nearness(path: Path) -> None:
    ours = ps.dataset(path, columns=["k", "v"])
    right = pads.InMemoryDataset(pa.table({"k": [4], "v": [5], "w": ["x"]}))
    joined = ours.join_asof(right, on="k", by="v", tolerance=-1)
    assert [row["k"] for row in joined.to_table().to_pylist() if row["w"]] == [5]


@pytest.mark.parametrize(
    "reach",
    [
        lambda d: pads.Scanner.from_dataset(d),
        lambda d: pads.UnionDataset(d.schema, [d]),
        lambda d: pads.dataset([d, pads.dataset(TABLE)]),
    ],
)
def test_whoever_goes_past_its_methods_gets_an_error_and_no_rows(path: Path, reach: Any) -> None:
    with pytest.raises((ps.UnsupportedError, pa.ArrowTypeError), match=r"read by its own"):
        reach(ps.dataset(path))


def test_pyarrow_writes_it(path: Path, tmp_path: Path) -> None:
    pads.write_dataset(ps.dataset(path, filter="v = 3"), tmp_path / "out", format="parquet")
    written = pq.read_table(tmp_path / "out")  # pyarrow's writer keeps no order
    assert written.sort_by("k") == TABLE.filter(F("v") == 3).sort_by("k")


def test_files_with_other_columns_have_one_schema(folder: Path) -> None:
    dataset = ps.dataset(folder)
    assert dataset.schema.names == ["k", "v", "s", "day"]
    first = F("day") == pa.scalar("2024-01-01").cast(pa.date32())
    # only one file is opened, and the columns are those of both
    found = dataset.to_table(filter=first & (F("k") == 3))
    assert found.schema.types == dataset.schema.types
    assert found.drop_columns("day").to_pylist() == [{"k": 3, "v": 3, "s": None}]
    one, two = dataset.get_fragments()
    assert pads.get_partition_keys(one.partition_expression).keys() == {"day"}
    assert one.to_table().schema == two.to_table().schema == dataset.to_table().schema
    assert [f.path for f in dataset.get_fragments(filter=first)] == [one.path]
    assert one.physical_schema.names == ["k", "v"]


def test_fragments_have_the_columns_that_were_chosen(tmp_path: Path) -> None:
    pq.write_table(pa.table({"k": pa.array([1, 2], pa.int32())}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"k": [3], "new": ["x"]}), tmp_path / "b.parquet")
    for columns in (["k", "new"], ["k"], ["new"], ["new", "k"]):
        for dataset in (
            ps.dataset(tmp_path, columns=columns),
            ps.dataset(ps.scan(tmp_path).select(columns)),
            ps.dataset(tmp_path, columns=columns, filter="k > 0"),
        ):
            wanted = dataset.to_table()
            assert wanted.schema.names == columns
            assert wanted.num_rows == 3
            parts = [fragment.to_table() for fragment in dataset.get_fragments()]
            assert pa.concat_tables(parts) == wanted


def test_chosen_columns_where_others_have_no_type_in_common(tmp_path: Path) -> None:
    pq.write_table(pa.table({"k": [1], "o": [1], "f": [5]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"k": [3], "o": ["x"], "f": [6]}), tmp_path / "b.parquet")
    dataset = ps.dataset(tmp_path, columns=["k"], filter="f > 5")
    parts = [fragment.to_table() for fragment in dataset.get_fragments()]
    assert pa.concat_tables(parts).to_pylist() == dataset.to_table().to_pylist() == [{"k": 3}]


def test_a_chosen_column_of_files_that_the_filter_leaves_out(folder: Path) -> None:
    dataset = ps.dataset(folder, columns=["s", "k"], filter="day = '2024-01-01' and k < 2")
    rows = [{"s": None, "k": 0}, {"s": None, "k": 1}]
    assert dataset.to_table().to_pylist() == rows
    assert [row for f in dataset.get_fragments() for row in f.to_table().to_pylist()] == rows


def test_fields_of_a_struct_that_a_scan_has_chosen(path: Path) -> None:
    scan = ps.scan(path).select("st.y", "k")
    wanted = scan.to_table()
    dataset = ps.dataset(scan)
    assert dataset.to_table() == pa.table(dataset) == wanted
    assert dataset.to_table(columns=["st"]) == wanted.select(["st"])
    assert dataset.to_table(columns=["st.y.z"])["z"].to_pylist()[7] == "7"
    assert dataset.to_table(
        columns={"z": F("st", "y", "z"), "all": F("st")}, filter=F("k") == 7
    ) == pa.table({"z": ["7"], "all": pa.array([{"y": {"z": "7"}}])})
    with pytest.raises(ps.PredicateError, match="no column 'x' in 'st'"):
        dataset.to_table(columns=["st.x"])


def test_fragments_are_the_dataset(path: Path) -> None:
    dataset = ps.dataset(path)
    (fragment,) = dataset.get_fragments()
    assert fragment.to_table() == TABLE
    assert fragment.num_row_groups == 4
    condition = (F("k") >= 400) & (F("k") < 600)
    parts = fragment.split_by_row_group()
    assert [part.count_rows() for part in parts] == [500] * 4
    assert pa.concat_tables(part.to_table(filter=condition) for part in parts) == TABLE.filter(
        condition
    )
    one = fragment.subset(row_group_ids=[2])
    assert one.row_groups[0].index == 2
    assert one.head(1, columns=["k"])["k"].to_pylist() == [1000]
    assert one.take([1], columns=["k"])["k"].to_pylist() == [1001]
    other = one.scanner(pa.schema([("n", pa.int8()), ("k", pa.int64())])).head(1)
    assert other.to_pylist() == [{"n": None, "k": 1000}]
    assert sum(b.num_rows for b in one.to_batches(batch_size=100)) == 500
    assert one.subset(row_group_ids=[1]).to_table() == TABLE.slice(500, 500)  # as pyarrow's
    assert "row groups [2]" in repr(one)
    with pytest.raises(IndexError, match="there is no row group 4, the file has 4"):
        fragment.subset(row_group_ids=[4])
    for call in (fragment.subset, lambda _, schema: dataset.replace_schema(schema)):
        with pytest.raises(TypeError, match=r"schema=\{'k': 1\}: a pyarrow.Schema"):
            call("k > 3", schema={"k": 1})


def test_row_groups_that_a_filter_leaves(path: Path) -> None:
    (fragment,) = ps.dataset(path).get_fragments()
    (theirs,) = pads.dataset(path).get_fragments()

    def numbers(made: Any) -> list[int]:
        return [group.index for group in made.row_groups]

    for condition in (F("k") >= 1400, (F("k") == 3) | (F("k") == 1600), F("k") < 0):
        one, other = fragment.subset(condition), theirs.subset(condition)
        assert numbers(one) == [group.id for group in other.row_groups]
        assert one.to_table() == other.to_table()  # with all rows of the row groups
        parts = fragment.split_by_row_group(condition)
        assert [numbers(part) for part in parts] == [[i] for i in numbers(one)]
    some = fragment.subset(row_group_ids=[0, 2])
    assert numbers(some.subset(F("k") >= 600)) == [2]
    assert numbers(some.subset("k >= 600")) == [2]
    assert [numbers(part) for part in some.split_by_row_group("k >= 600")] == [[2]]
    wider = pa.schema([("k", pa.int64()), ("new", pa.int8())])
    assert numbers(fragment.subset((F("k") > 1500) & F("new").is_null(), wider)) == [3]
    assert fragment.subset(F("new").is_valid(), wider).count_rows() == 0
    assert fragment.subset(F("k") > 1500, wider).to_table() == TABLE.slice(1500)
    for wrong in ({}, {"filter": F("k") > 1, "row_group_ids": [1]}, {"schema": wider, "row_group_ids": [1]}):  # fmt: skip
        with pytest.raises(ValueError, match="subset: "):
            fragment.subset(**wrong)
    with pytest.raises(ps.PredicateError, match="no column 'new'"):
        fragment.subset(F("new").is_valid())


def test_row_groups_of_a_file_that_changed(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"k": range(40)}), path, row_group_size=10)
    (fragment,) = ps.dataset(path).get_fragments()
    last = fragment.split_by_row_group()[3]
    assert last.to_table()["k"].to_pylist() == list(range(30, 40))
    assert pickle.loads(pickle.dumps(last)).head(1)["k"].to_pylist() == [30]
    assert pa.Table.from_batches(last.to_batches(batch_size=3)) == last.to_table()
    pq.write_table(pa.table({"k": range(100, 135)}), path, row_group_size=7)
    for read in (
        last.to_table, last.count_rows, lambda: last.head(1), lambda: last.take([0]), lambda: last.row_groups,
        lambda: list(last.to_batches()), lambda: pa.table(last.scanner()), lambda: last.count_rows(F("k") == 3),
        lambda: last.subset(row_group_ids=[0]), last.split_by_row_group, lambda: last.subset(F("k") == 3), lambda: last.to_table(filter=F("k") < 0),
        lambda: list(last.to_batches(filter=F("k") < 0)),
    ):  # fmt: skip
        with pytest.raises(
            ps.FileChangedError, match=r"a\.parquet: the file changed after its row"
        ):
            read()
    assert fragment.count_rows() == 35


def test_where_no_file_may_have_rows_there_is_a_fragment_without_rows(
    path: Path, folder: Path
) -> None:
    for source in (path, folder):
        (fragment,) = ps.dataset(source).get_fragments(filter=F("k") == -1)
        assert fragment.count_rows() == fragment.to_table().num_rows == 0
        assert fragment.to_table().schema == ps.dataset(source).schema


@pytest.mark.parametrize("query", ["order by k", "limit 3", ""], ids=["order", "limit", "all"])
def test_datafusion_finds_no_row(path: Path, query: str) -> None:
    datafusion = pytest.importorskip("datafusion")
    context = datafusion.SessionContext()
    context.register_dataset("d", ps.dataset(path, columns=["k", "v"]))
    assert context.sql(f"select * from d where k = -1 {query}").to_pylist() == []
    numbered = "select k, row_number() over (order by k) from d where k = -1"
    assert context.sql(numbered).to_pylist() == []


def test_it_travels(path: Path) -> None:
    dataset = ps.dataset(path).filter(F("v") == 3)
    wanted = TABLE.filter(F("v") == 3)
    again = pickle.loads(pickle.dumps(dataset))
    assert isinstance(again, pads.Dataset)
    assert again.to_table() == wanted
    (fragment,) = pickle.loads(pickle.dumps(list(dataset.get_fragments())))
    assert fragment.to_table() == wanted


def test_threads_share_it(path: Path) -> None:
    dataset = ps.dataset(path)
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda k: dataset.to_table(filter=F("k") == k), range(0, N, 50)))
    assert pa.concat_tables(found)["k"].to_pylist() == list(range(0, N, 50))


def test_a_file_that_changed_since_the_schema_was_told(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"k": [1, 2]}), path)
    dataset = ps.dataset(path)
    assert dataset.schema.names == ["k"]
    pq.write_table(pa.table({"k": [1, 2, 3]}), path)
    assert dataset.count_rows() == 3
    pq.write_table(pa.table({"k": ["a"]}), path)
    for read in (
        dataset.to_table, lambda: list(dataset.to_batches()), lambda: dataset.head(1),
        lambda: dataset.to_table(filter=F("k") == 1), lambda: dataset.count_rows("k = 1"),
    ):  # fmt: skip
        with pytest.raises(ps.FileChangedError, match="'k' is string now, and was int64"):
            read()


def test_a_stream_has_the_types_that_were_told(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"k": pa.array([1], pa.int32())}), path)
    dataset = ps.dataset(path)
    told = dataset.schema
    pq.write_table(pa.table({"k": ["one"]}), path)
    for read in (
        lambda: pa.table(dataset),
        lambda: pa.RecordBatchReader.from_stream(dataset, schema=told),
    ):
        with pytest.raises(ps.FileChangedError, match="'k' is string now, and was int32"):
            read()


def test_a_file_whose_columns_changed_since_the_schema_was_told(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"k": [1], "w": [2]}), path)
    dataset = ps.dataset(path)
    assert dataset.schema.names == ["k", "w"]
    pq.write_table(pa.table({"new": [0], "w": [4], "k": [3]}), path)
    wanted = pa.table({"k": [3], "w": [4]})
    for read in (dataset.to_table, lambda: pa.table(dataset), lambda: dataset.head(1)):
        assert read() == wanted
    pq.write_table(pa.table({"k": [3]}), path)
    for read in (
        dataset.to_table, lambda: pa.table(dataset), lambda: dataset.head(1), lambda: dataset.take([0]),
        lambda: dataset.count_rows(F("w") == 4), lambda: list(dataset.to_batches(["w"])),
    ):  # fmt: skip
        with pytest.raises(ps.FileChangedError, match="column 'w' is not there now"):
            read()
    assert dataset.to_table(columns=["k"]).to_pylist() == [{"k": 3}]


def test_columns_of_one_name_that_changed(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    arrays = [pa.array([1]), pa.array(["a"])]
    pq.write_table(pa.Table.from_arrays(arrays, names=["x", "x"]), path)
    dataset = ps.dataset(path)
    assert dataset.to_table().num_columns == 2
    for changed in (arrays[::-1], arrays[:1]):
        pq.write_table(pa.Table.from_arrays(changed, names=["x"] * len(changed)), path)
        with pytest.raises(ps.FileChangedError, match="the columns are"):
            dataset.to_table()


def test_a_struct_with_two_fields_of_one_name(tmp_path: Path) -> None:
    struct = pa.StructArray.from_arrays([pa.array([1]), pa.array(["a"])], names=["x", "x"])
    made = pa.table({"st": struct})
    pq.write_table(made, tmp_path / "a.parquet")
    assert ps.dataset(tmp_path / "a.parquet").to_table() == made


def test_libraries_of_the_stream_protocol_read_it(path: Path) -> None:
    dataset = ps.dataset(path)
    assert pa.table(dataset) == TABLE
    views = pa.RecordBatchReader.from_stream(
        dataset.scanner(columns={"s": F("s")}), schema=pa.schema([("s", pa.string_view())])
    )
    assert views.schema.field("s").type == pa.string_view()
    assert views.read_all()["s"].to_pylist() == TABLE["s"].to_pylist()


@pytest.mark.parametrize(
    ("ask", "kind", "says"),
    [
        (lambda d: d.to_table(columns=["q"]), ps.PredicateError, "no column 'q'"),
        (lambda d: d.to_table(columns={"x": F("q")}), ps.PredicateError, "no column 'q'"),
        (lambda d: d.to_table(columns=["st.q"]), ps.PredicateError, "no column 'q' in 'st'"),
        (lambda d: d.to_table(columns={"x": F("s") + 1}), ps.PredicateError, "pyarrow: "),
        (lambda d: d.to_table(columns={"x": 1}), TypeError, "expressions of pyarrow"),
        (lambda d: d.to_table(columns="k"), TypeError, "a list of names"),
        (lambda d: d.to_table(filter=F("q") == 1), ps.PredicateError, "no column 'q'"),
        (lambda d: d.to_table(columns=["__filename"]), ps.UnsupportedError, "get_fragments"),
        (lambda d: d.to_table(batch=1), TypeError, "no argument 'batch'"),
        (lambda d: d.to_table(batch_size=0), ValueError, "at least 1"),
        (lambda d: d.take([-1]), IndexError, "no row -1"),
        (lambda d: d.take([N]), IndexError, f"no row {N}"),
        (lambda d: d.take([9], filter=F("k") < 3), IndexError, "the filter leaves 3"),
        (lambda d: d.take([1.5]), TypeError, "integers"),
    ],
)
def test_errors(path: Path, ask: Any, kind: type[Exception], says: str) -> None:
    with pytest.raises(kind, match=says):
        ask(ps.dataset(path))


def test_what_no_engine_could_filter_is_refused(path: Path) -> None:
    with pytest.raises(ps.UnsupportedError, match="limit"):
        ps.dataset(path, limit=3)  # type: ignore[call-arg]
    with pytest.raises(ps.UnsupportedError, match="with_row_number"):
        ps.dataset(ps.scan(path).with_row_number())
    with pytest.raises(TypeError, match="threads: give options to the scan"):
        ps.dataset(ps.scan(path), threads=1)
    with pytest.raises(ps.UnsupportedError, match="numbers"):
        list(ps.dataset(ps.scan(path).take([1])).get_fragments())


def test_a_column_of_folders_keeps_its_type(folder: Path) -> None:
    dataset = ps.dataset(folder)
    schema = pa.schema([("day", pa.string()), ("k", pa.int64())])
    (fragment, _) = dataset.get_fragments()
    for give in (dataset.replace_schema, fragment.scanner):
        with pytest.raises(ps.UnsupportedError, match="column 'day' of the folders is date32"):
            give(schema)
    made = dataset.replace_schema(pa.schema([("day", pa.date32()), ("k", pa.int64())]))
    assert made.to_table(filter="day = '2024-01-02' and k = 3").column_names == ["day", "k"]
    assert (
        ps.dataset(folder, partitioning={"day": pa.string()}).schema.field("day").type
        == pa.string()
    )


def test_a_column_that_is_called_as_a_path(tmp_path: Path) -> None:
    made = pa.table({"a": [{"b": {"c": 1}, "d": 2}], "a.b": [{"c": 7}]})
    pq.write_table(made, tmp_path / "a.parquet")
    for columns in (
        {"x": F("a", "b")}, {"x": F("a", "b", "c")}, {"x": F("a", "b", "c"), "y": F("a.b")}, {"x": F("a", "d")},
        {"x": F("a")}, {"y": F("a.b")}, ["a.b"], ["a"], ["a", "a.b"],
    ):  # fmt: skip
        ours, theirs = (d.to_table(columns=columns) for d in both(tmp_path / "a.parquet"))
        assert ours == theirs


def test_a_dataset_of_a_dataset(path: Path) -> None:
    dataset = ps.dataset(path, columns=["k"]).filter(F("v") == 3)
    assert ps.dataset(dataset).to_table() == dataset.to_table()
    with pytest.raises(TypeError, match="columns: give options"):
        ps.dataset(dataset, columns=["k"])
    with pytest.raises(TypeError, match="a dataset goes on by its methods"):
        ps.scan(dataset)
    pytest.importorskip("polars")
    assert ps.polars.scan(dataset).collect().height == dataset.count_rows()


def test_two_columns_of_one_name(tmp_path: Path) -> None:
    made = pa.Table.from_arrays([pa.array([1]), pa.array(["a"])], names=["x", "x"])
    pq.write_table(made, tmp_path / "a.parquet")
    twice = ps.dataset([str(tmp_path / "a.parquet")] * 2)
    assert twice.to_table() == pa.concat_tables([made, made])
    assert [fragment.to_table() for fragment in twice.get_fragments()] == [made, made]
    dataset = ps.dataset(tmp_path / "a.parquet")
    assert dataset.to_table() == made
    for columns in (["x"], {"y": F("x")}):
        with pytest.raises(ps.PredicateError, match="2 columns have the name 'x'"):
            dataset.to_table(columns=columns)


def test_errors_of_a_file_name_its_place_through_an_engine(path: Path, tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    data = bytearray(path.read_bytes())
    data[4:40] = b"\xff" * 36
    (tmp_path / "bad.parquet").write_bytes(data)
    with duckdb.connect() as connection:
        connection.register("d", ps.dataset(tmp_path / "bad.parquet"))
        with pytest.raises(duckdb.Error, match="column 'k', row group 0, page 0 at byte 4"):
            connection.sql("from d").fetchall()
        assert connection.sql("select k from d where k = 1999").fetchall() == [(1999,)]


def test_the_expression_of_a_fragment_is_true_for_its_rows(tmp_path: Path) -> None:
    deltalake = pytest.importorskip("deltalake", reason="pip install 'pageseek[delta]'")
    values = [1.5, float("nan"), None, -0.0]
    rows = pa.table({"p": pa.array(values, pa.float64()), "k": range(4)})
    deltalake.write_deltalake(str(tmp_path / "t"), rows, partition_by=["p"])
    fragments = list(ps.dataset(tmp_path / "t").get_fragments())
    assert len(fragments) == 4
    for fragment in fragments:
        assert fragment.to_table(filter=fragment.partition_expression).num_rows == 1
        others = [one for one in fragments if one is not fragment]
        assert not any(
            one.to_table(filter=fragment.partition_expression).num_rows for one in others
        )
