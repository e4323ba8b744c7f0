"""The public surface: scans, plans, results and errors."""

from __future__ import annotations

import os
import pickle
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek.datasets.file_cache import cache
from support.opened import open_metadata
from support.writer import BYTE_ARRAY, INT32, STRING, Column, write

GROUP, GROUPS = 8, 5


def group(number: int, start: int = 0) -> list[Column]:
    rows = [start + number * GROUP + i for i in range(GROUP)]
    return [
        Column("a", INT32, rows, [3, 5]),
        Column(
            "b",
            BYTE_ARRAY,
            [None if r % 3 == 0 else b"s%d" % r for r in rows],
            [2, 2, 4],
            logical=STRING,
            optional=True,
        ),
        Column("c.d", INT32, [r % 2 for r in rows]),
    ]


def content(start: int = 0) -> bytes:
    return write(*(group(g, start) for g in range(GROUPS)))


def expected(rows: Sequence[int]) -> list[dict[str, Any]]:
    return [{"a": r, "b": None if r % 3 == 0 else f"s{r}", "c.d": r % 2} for r in rows]


ROWS = range(GROUP * GROUPS)


@pytest.fixture
def path(tmp_path: Path) -> str:
    file = tmp_path / "one.parquet"
    file.write_bytes(content())
    return str(file)


# ---- building a scan -----------------------------------------------------------------------------


def test_select_filter_and_limit_chain_in_any_order(path: str) -> None:
    scan = ps.scan(path)
    wanted = [{"b": r["b"], "a": r["a"]} for r in expected([20, 21, 22])]
    a = ps.col("a")
    assert scan.select("b", "a").filter(a >= 20).limit(3).to_table().to_pylist() == wanted
    assert scan.limit(3).filter(a >= 20).select(["b", "a"]).to_table().to_pylist() == wanted
    assert (
        scan.filter(a >= 20).filter([("a", "<", 23)]).select("b", "a").to_table().to_pylist()
        == wanted
    )
    assert scan.filter(None).filter([]).to_table().num_rows == len(ROWS)
    assert scan.to_table().num_rows == len(ROWS), "a scan is not changed by what is built on it"


def test_the_least_limit_wins(path: str) -> None:
    for n in (0, 1, 7, 8, 9, 39, 40, 41):
        assert ps.scan(path, limit=n).to_table().to_pylist() == expected(ROWS[:n])
        assert ps.scan(path).limit(n).limit(100).count_rows() == min(n, 40)
        kept = [r for r in ROWS if r % 2][:n]
        assert ps.read_table(path, filter=ps.col("c.d") == 1, limit=n).to_pylist() == expected(kept)
        assert ps.scan(path, filter=ps.col("c.d") == 1, limit=n).count_rows() == len(kept)


@pytest.mark.parametrize("limit", [-1, -100])
def test_negative_limits_are_refused(path: str, limit: int) -> None:
    with pytest.raises(ValueError, match="limit"):
        ps.scan(path).limit(limit)
    with pytest.raises(ValueError, match="limit"):
        ps.scan(path, limit=limit)
    with pytest.raises(ValueError, match="limit"):
        ps.read_table(path, limit=limit)


def test_columns(path: str) -> None:
    a = ps.col("a")
    assert ps.read_table(path, columns=["b"], filter=a == 4).to_pylist() == [{"b": "s4"}]
    assert ps.read_table(path, columns=["c.d", "a"], filter=a == 4).column_names == ["c.d", "a"]
    twice = ps.read_table(path, columns=["a", "b", "a"], filter=a < 2)
    assert twice.column_names == ["a", "b", "a"]
    assert [c.to_pylist() for c in twice.columns] == [[0, 1], [None, "s1"], [0, 1]]


def test_no_columns_still_have_rows(path: str) -> None:
    for condition, n in ((None, 40), (ps.col("a") < 13, 13), (ps.col("a") < 0, 0)):
        table = ps.read_table(path, columns=[], filter=condition)
        assert (table.num_rows, table.num_columns) == (n, 0)
        batches = list(ps.scan(path, columns=[], filter=condition, batch_size=4).to_batches())
        assert sum(b.num_rows for b in batches) == n
        assert all(b.num_rows <= 4 for b in batches)
        assert ps.scan(path).select().filter(condition).to_table().num_rows == n


@pytest.mark.parametrize("columns", [["nope"], ["A"], ["a", "b.c"]])
def test_columns_that_are_not_there(path: str, columns: list[str]) -> None:
    with pytest.raises(ps.PredicateError, match=r"one\.parquet: no column .* there are 'a'"):
        ps.read_table(path, columns=columns)


def test_names_with_dots_and_duplicates(path: str) -> None:
    assert ps.read_table(path, filter=ps.col("c.d") == 1).num_rows == 20
    doubled = write([Column("a", INT32, [1]), Column("a", INT32, [2]), Column("b", INT32, [3])])
    assert ps.read_table(doubled, columns=["b"]).to_pylist() == [{"b": 3}]
    with pytest.raises(ps.PredicateError, match="2 columns"):
        ps.read_table(doubled, columns=["a"])
    with pytest.raises(ps.PredicateError, match="2 columns"):
        ps.read_table(doubled, filter=ps.col("a") == 1)
    assert [c.to_pylist() for c in ps.read_table(doubled).columns] == [[1], [2], [3]]


@pytest.mark.parametrize(
    ("filters", "rows"),
    [
        ([("a", ">", 36)], [37, 38, 39]),
        ([("a", ">=", 38), ("c.d", "=", 1)], [39]),
        ([[("a", "==", 1)], [("a", "in", [7, 8]), ("b", "!=", "s8")]], [1, 7]),
        ([[("a", "not in", range(1, 40))]], [0]),
        ((("a", "<", 1),), [0]),
        ([("a", " IN ", {3})], [3]),
    ],
)
def test_lists_in_disjunctive_normal_form(path: str, filters: Any, rows: list[int]) -> None:
    assert ps.read_table(path, filter=filters).to_pylist() == expected(rows)
    assert ps.read_table(path, filters=filters).to_pylist() == expected(rows)


@pytest.mark.parametrize(
    "filters",
    [[("a", "~", 1)], [("a", ">")], [[]], [1], "a >", 7, [("a", "=", 1), [("a", "=", 1)]]],
)
def test_filters_of_no_known_form(path: str, filters: Any) -> None:
    with pytest.raises(ps.PredicateError):
        ps.read_table(path, filter=filters)


def test_filter_and_filters_together_are_refused(path: str) -> None:
    with pytest.raises(TypeError, match="not both"):
        ps.read_table(path, filter=[("a", "=", 1)], filters=[("a", "=", 1)])


def test_truth_values_of_conditions_are_refused() -> None:
    a = ps.col("a")
    for careless in (
        lambda: a > 1 and a < 3,
        lambda: not a,
        lambda: bool(a),
        lambda: 1 < a < 3,
    ):
        with pytest.raises(ps.PredicateError):
            careless()
    for careless in (
        lambda: a == (ps.col("b") > 1),
        lambda: (a > 1) & True,
        lambda: a.isin("abc"),
        lambda: ps.col(),
    ):
        with pytest.raises(ps.PredicateError):
            careless()


def test_a_string_method_on_numbers_is_refused(path: str) -> None:
    with pytest.raises(ps.PredicateError, match="prefix"):
        ps.read_table(path, filter=ps.col("a").starts_with("x"))
    assert ps.read_table(
        path, filter=ps.col("b").starts_with("s1") & (ps.col("a") < 12)
    ).to_pylist() == expected([1, 10, 11])


# ---- results -------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 3, 8, 1000])
def test_batches_are_no_larger_than_asked_and_in_file_order(path: str, size: int) -> None:
    batches = list(ps.scan(path, filter=ps.col("c.d") == 0, batch_size=size).to_batches())
    assert all(0 < b.num_rows <= size for b in batches)
    assert [r for b in batches for r in b.to_pylist()] == expected([r for r in ROWS if r % 2 == 0])


def test_readers_and_streams(path: str) -> None:
    scan = ps.scan(path, filter=ps.col("a") > 30)
    assert scan.to_reader().read_all().to_pylist() == expected(ROWS[31:])
    assert pa.table(scan).to_pylist() == expected(ROWS[31:])
    assert pa.RecordBatchReader.from_stream(scan).schema == scan.schema
    empty = ps.scan(path, filter=ps.col("a") > 99)
    assert pa.table(empty).schema == scan.schema
    assert empty.to_reader().read_all().num_rows == 0


def test_streams_reach_polars_and_duckdb(path: str) -> None:
    scan = ps.scan(path, filter=ps.col("a") > 36)
    polars = pytest.importorskip("polars")
    assert polars.DataFrame(scan)["a"].to_list() == [37, 38, 39]
    duckdb = pytest.importorskip("duckdb")
    reader = scan.to_reader()
    assert duckdb.sql("select sum(a) from reader").fetchall() == [(37 + 38 + 39,)]
    del reader


def test_count_rows_without_filter_reads_no_data(path: str) -> None:
    assert ps.scan(path).count_rows() == 40
    assert ps.scan(path).explain().to_dict()["rows"]["total"] == 40


def test_schemas_are_those_of_pyarrow(path: str) -> None:
    assert ps.scan(path).schema == pq.read_schema(path)
    assert open_metadata(path).schema.equals(pq.read_schema(path), check_metadata=True)
    assert ps.read_table(path, filter=ps.col("a") > 99).schema == pq.read_schema(path)
    large = ps.read_table(path, string_type="large")
    assert large.schema.field("b").type == pa.large_string()


def test_large_strings_leave_other_types_of_the_stored_schema_alone() -> None:
    columns = {
        "took": pa.array([1, None], pa.duration("us")),
        "ts": pa.array([1, None], pa.timestamp("us", "Europe/Berlin")),
        "word": pa.array(["x", None]).dictionary_encode(),
        "view": pa.array(["x", None], pa.string_view()),
        "dec": pa.array([1, None], pa.decimal256(9, 2)),
        "s": pa.array(["x", None]),
        "wide": pa.array(["x", None], pa.large_string()),
        "bin": pa.array([b"x", None], pa.binary()),
        "wide bin": pa.array([b"x", None], pa.large_binary()),
        "json": pa.array(["{}", None], pa.json_(pa.string())),
    }
    widened = {
        "s": pa.large_string(),
        "bin": pa.large_binary(),
        "json": pa.json_(pa.large_string()),
    }
    table = pa.table(columns)
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    data = sink.getvalue().to_pybytes()
    assert ps.read_table(data).schema.types == pq.read_table(pa.BufferReader(data)).schema.types
    for condition in (None, ps.col("s") == "x", ps.col("took").is_null()):
        large = ps.read_table(data, filter=condition, string_type="large")
        for name in table.column_names:
            field = large.schema.field(name)
            assert field.type == widened.get(name, table.schema.field(name).type), name
    large = ps.read_table(data, string_type="large")
    large.validate(full=True)
    assert large.to_pylist() == table.to_pylist()


@pytest.mark.parametrize(
    "options",
    [
        {"batch_size": 0},
        {"nan": "odd"},
        {"int96_unit": "s"},
        {"out_of_range": "null"},
        {"limit": 1.5},
        {"limit": float("nan")},
        {"batch_size": 2.0},
        {"string_type": "x"},
        {"columns": "a"},
        {"nope": 1},
    ],
)
def test_options_that_are_wrong(path: str, options: dict[str, Any]) -> None:
    with pytest.raises((ValueError, TypeError)):
        ps.scan(path, **options)


def test_limits_beyond_what_a_file_can_have(path: str) -> None:
    full = ps.read_table(path)
    for huge in (1 << 63, 1 << 64, 10**30):
        assert ps.read_table(path, limit=huge).equals(full)
        assert ps.scan(path, limit=huge).count_rows() == full.num_rows
        assert pa.Table.from_batches(ps.scan(path, batch_size=huge).to_batches()).equals(full)


# ---- sources -------------------------------------------------------------------------------------


def test_every_form_of_source(path: str, tmp_path: Path) -> None:
    data = Path(path).read_bytes()
    folder = str(tmp_path)
    sources = [
        path, Path(path), f"file://{path}", [path], folder, f"{folder}/*.parquet", data, bytearray(data), memoryview(data),
        pa.py_buffer(data), (pafs.LocalFileSystem(), path), (pafs.LocalFileSystem(), folder), (path,),
    ]  # fmt: skip
    for source in sources:
        assert ps.read_table(source, filter=ps.col("a") == 7).to_pylist() == expected([7]), source


def test_files_of_a_directory_come_in_the_order_of_their_names(tmp_path: Path) -> None:
    for name, start in (
        ("b.parquet", 100),
        ("a.parquet", 0),
        ("sub/c.parquet", 200),
        ("_x.parquet", 900),
        (".y.parquet", 900),
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(content(start))
    (tmp_path / "notes.txt").write_text("no data")
    found = ps.read_table(tmp_path, columns=["a"])["a"].to_pylist()
    assert found == [start + r for start in (0, 100, 200) for r in ROWS]
    some = ps.scan(tmp_path, filter=ps.col("a").isin([39, 100, 239]), columns=["a"])
    assert some.to_table()["a"].to_pylist() == [39, 100, 239]
    report = some.explain().to_dict()
    assert report["files"]["total"] == 3


@pytest.mark.parametrize("source", ["/nowhere/x.parquet", "/nowhere/*.parquet", []])
def test_sources_without_a_file(source: Any) -> None:
    with pytest.raises((FileNotFoundError, ValueError)):
        ps.read_table(source)


@pytest.mark.parametrize("source", [7, None, 1.5, {"a": 1}])
def test_sources_of_no_known_form(source: Any) -> None:
    with pytest.raises(TypeError, match="source"):
        ps.scan(source)


def test_files_of_different_types_are_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_bytes(write([Column("x", INT32, [1])]))
    (tmp_path / "b.parquet").write_bytes(write([Column("x", BYTE_ARRAY, [b"1"])]))
    with pytest.raises((ps.PageseekError, TypeError), match=r"b\.parquet.*'x'"):
        ps.read_table(tmp_path)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"PAR1",
        b"PAR1PAR1PAR1",
        b"x" * 100,
        b"PAR1" + b"\xff" * 8 + b"PAR1",
        b"PAR1" + bytes(8) + b"PARE",
    ],
)
def test_what_is_no_parquet_file(data: bytes) -> None:
    with pytest.raises(ps.PageseekError, match="<memory>"):
        ps.read_table(data)


# ---- plans ---------------------------------------------------------------------------------------


def test_plans_are_pickled_and_executed_elsewhere(path: str) -> None:
    for source in (path, (pafs.LocalFileSystem(), path), content()):
        plan = ps.scan(source, filter=ps.col("a").between(5, 12), columns=["b", "a"]).plan()
        again = pickle.loads(pickle.dumps(plan))
        assert (again.files, again.schema) == (plan.files, plan.schema)
        ps.clear_cache()
        rows = [r for batch in again.execute() for r in batch.to_pylist()]
        assert rows == [{"b": r["b"], "a": r["a"]} for r in expected(range(5, 13))]


@pytest.mark.parametrize("parts", [1, 2, 3, 5, 50])
def test_splits_hold_each_row_group_once(path: str, parts: int) -> None:
    for condition in (None, ps.col("c.d") == 1, ps.col("a") > 17, ps.col("a") > 99):
        plan = ps.scan([path, path], filter=condition).plan()
        pieces = plan.split(parts)
        assert len(pieces) <= parts
        owned = [
            (id(f.source), f.source, g.row_group) for p in pieces for f in p.files for g in f.groups
        ]
        assert len(owned) == sum(len(f.groups) for f in plan.files)
        rows = sorted(
            (r["a"], r["b"] or "")
            for p in pieces
            for batch in p.execute()
            for r in batch.to_pylist()
        )
        whole = sorted(
            (r["a"], r["b"] or "") for batch in plan.execute() for r in batch.to_pylist()
        )
        assert rows == whole
        assert sum(p.num_rows for p in pieces) == plan.num_rows
        assert all(p.files for p in pieces)
    with pytest.raises(ValueError, match="split"):
        plan.split(0)


def test_a_split_keeps_file_order_inside_each_part(path: str) -> None:
    for piece in ps.scan(path).plan().split(2):
        rows = [r["a"] for batch in piece.execute() for r in batch.to_pylist()]
        assert rows == sorted(rows)


def test_a_plan_holds_a_schema_once_and_its_parts_none(path: str) -> None:
    plan = ps.scan([path, path]).plan()
    footers = [file.footer for file in plan.files]
    assert footers[0] is not None and footers[0].row_groups == len(plan.files[0].groups)
    assert footers[0].schema is footers[1].schema  # type: ignore[union-attr]
    assert all(file.footer is None for part in plan.split(2) for file in part.files)


def test_a_file_that_changed_after_planning(path: str) -> None:
    plan = ps.scan(path).plan()
    other = Path(path).with_suffix(".new")
    other.write_bytes(content(1000))
    os.replace(other, path)
    with pytest.raises(ps.FileChangedError, match=r"one\.parquet"):
        list(plan.execute())
    assert ps.read_table(path)["a"][0].as_py() == 1000, "a new scan sees the new file"


def test_rows_of_two_versions_never_come_out_of_one_scan(path: str) -> None:
    batches = ps.scan(path).to_batches()
    next(batches)
    with open(path, "r+b") as file:
        file.write(content(1000))  # the same places, other values
    with pytest.raises(ps.FileChangedError):
        next(batches)


def test_bytes_of_another_version_are_not_called_corrupt(path: str) -> None:
    batches = ps.scan(path).to_batches()
    next(batches)
    with open(path, "r+b") as file:
        file.write(b"\xff" * 1000)
    with pytest.raises(ps.FileChangedError):
        next(batches)


def test_files_of_one_name_and_time_on_two_file_systems(tmp_path: Path) -> None:
    for name, value in (("one", 1), ("two", 2)):
        at = tmp_path / name / "x.parquet"
        at.parent.mkdir()
        at.write_bytes(write([Column("a", INT32, [value])]))
        os.utime(at, (1e9, 1e9))
    for name, value in (("one", 1), ("two", 2), ("one", 1)):
        there = pafs.SubTreeFileSystem(str(tmp_path / name), pafs.LocalFileSystem())
        assert ps.read_table((there, "x.parquet"))["a"].to_pylist() == [value]


def test_a_column_has_nulls_if_it_may_have_them_in_any_file(tmp_path: Path) -> None:
    for name, values in (("a", [1, 2]), ("b", [3, None]), ("c", [4, 5])):
        data = write([Column("x", INT32, values)])
        (tmp_path / f"{name}.parquet").write_bytes(data)
    scan = ps.scan(tmp_path)
    assert scan.schema.field("x").nullable
    assert all(batch.schema.field("x").nullable for batch in scan.to_batches())
    assert scan.to_table()["x"].to_pylist() == [1, 2, 3, None, 4, 5]
    assert not ps.read_table(tmp_path / "a.parquet").schema.field("x").nullable


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_fork_while_another_thread_opens_a_file(path: str) -> None:
    with cache._lock:  # as if held by a thread that the child does not have
        child = os.fork()
        if child == 0:
            signal.alarm(20)
            os._exit(0 if ps.read_table(path).num_rows == GROUP * GROUPS else 1)
    assert os.waitpid(child, 0)[1] == 0


@pytest.mark.parametrize("index", [True, False])
@pytest.mark.parametrize("limit", [None, 2])
def test_pages_read_and_pruned_add_up(index: bool, limit: int | None) -> None:
    def one(start: int) -> list[Column]:
        knobs: dict[str, Any] = {"offset_index": index, "column_index": index, "statistics": False}
        rows = [start + i for i in range(8)]
        return [
            Column("a", INT32, rows, [3, 5], **knobs),
            Column("b", INT32, [r % 2 for r in rows], [2, 2, 4], **knobs),
        ]

    data = write(one(0), one(8), one(16))
    for condition in (None, ps.col("a") >= 3, (ps.col("a") == 9) & (ps.col("b") == 0)):
        scan = ps.scan(data, filter=condition, limit=limit)
        pages = scan.explain(analyze=True).to_dict()["pages"]
        assert pages["read"] + sum(pages["pruned_by"].values()) == pages["total"], repr(scan)


def test_a_file_that_changes_while_it_is_read(path: str) -> None:
    batches = ps.scan(path).to_batches()
    next(batches)
    Path(path).write_bytes(content(1000) + b"x")
    with pytest.raises(ps.PageseekError):
        list(batches)


def test_a_file_of_the_same_size_overwritten_is_not_read_from_the_cache(path: str) -> None:
    assert ps.read_table(path, filter=ps.col("a") == 0).num_rows == 1
    before = os.stat(path)
    Path(path).write_bytes(content(50))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns + 1))
    assert ps.read_table(path, filter=ps.col("a") == 0).num_rows == 0
    assert ps.read_table(path, filter=ps.col("a") == 50).num_rows == 1


# ---- reports -------------------------------------------------------------------------------------


def test_explain_as_a_dict(path: str) -> None:
    scan = ps.scan(path, filter=ps.col("a").between(9, 10))
    for analyze in (False, True):
        report = scan.explain(analyze=analyze).to_dict()
        for key in ("files", "row_groups", "pages", "rows"):
            assert {"total", "read", "pruned_by"} <= report[key].keys()
            count = report[key]
            assert count["total"] == count["read"] + sum(count["pruned_by"].values()), key
        assert report["files"]["total"] == 1
        assert report["row_groups"] == {"total": 5, "read": 1, "pruned_by": {"statistics": 4}}
        assert report["rows"]["total"] == 40
        assert {"metadata", "index", "data", "total"} <= report["bytes"].keys()
        assert report["bytes"]["total"] == sum(
            report["bytes"][k] for k in ("metadata", "index", "data")
        )
        assert report["requests"] >= 0
        assert report["waves"] >= 0
        assert isinstance(report["seconds"], dict)
        assert report["leaves"].keys() == {"a", "b", "c.d"}
        for leaf in report["leaves"].values():
            assert leaf["pages"].keys() == {"total", "read"}
            assert {"bytes", "rows_decoded", "dictionary_pages"} <= leaf.keys()
    assert report["rows"]["out"] == 2


def test_explain_counts_pages_and_rows(path: str) -> None:
    report = ps.scan(path, filter=ps.col("a") == 12, columns=["b"]).explain(analyze=True).to_dict()
    assert report["leaves"]["a"]["pages"] == {"total": 2, "read": 1}
    assert report["leaves"]["b"]["pages"] == {"total": 3, "read": 1}
    assert report["leaves"]["b"]["rows_decoded"] == 1


def test_reprs_and_texts_are_for_people(path: str) -> None:
    scan = ps.scan(
        path, columns=["a"], filter=(ps.col("a") > 3) & ~ps.col("b").isin(["x", None]), limit=2
    )
    assert (
        repr(scan) == f"<Scan {path}; columns a; where a > 3 and not (b in ('x', null)); limit 2>"
    )
    text = str(scan.explain())
    assert "would be read" in text
    assert "row groups" in text
    assert "was read" in str(scan.explain(analyze=True))
    assert "40 rows, 5 row groups, 3 leaves" in repr(open_metadata(path))


def test_errors_of_the_package_share_a_base() -> None:
    for kind in (
        ps.CorruptFileError,
        ps.UnsupportedError,
        ps.FileChangedError,
        ps.PredicateError,
        ps.LimitError,
    ):
        assert issubclass(kind, ps.PageseekError)
        assert pickle.loads(pickle.dumps(kind("text"))).args == ("text",)


def test_parameters_without_values_are_an_error_that_names_them(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1, 2]}), tmp_path / "a.parquet", write_page_index=True)
    scan = ps.scan(tmp_path / "a.parquet", filter=ps.col("a") == ps.param("k"))
    with pytest.raises(ps.PredicateError, match=r"param\('k'\) has no value"):
        scan.to_table()


def test_the_error_of_a_filter_has_a_short_traceback(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": [1]}), tmp_path / "a.parquet")
    with pytest.raises(ps.PredicateError, match="did you mean 'id'") as caught:
        ps.read_table(tmp_path / "a.parquet", filter="idd = 3")
    assert len(caught.traceback) <= 8
    assert caught.value.__cause__ is None


def test_a_scan_is_no_list_of_values(path: str) -> None:
    scan = ps.scan(path).select("a")
    remedy = r"Scan is no list of .*\.to_table\(\)\['column'\]"
    with pytest.raises(ps.PredicateError, match=remedy):
        ps.col("a").isin(scan)
    with pytest.raises(
        ps.PredicateError, match=r"a table is no list of values: .*table\['column'\]"
    ):
        ps.col("a").isin(scan.to_table())
    query = scan.prepare(ps.col("a") == ps.param("a"))
    with pytest.raises(TypeError, match=remedy):
        query.many(scan)
    with pytest.raises(ps.PredicateError, match=remedy):
        query.many({"a": scan})
    assert query.many(scan.to_table()).num_rows == GROUP * GROUPS
