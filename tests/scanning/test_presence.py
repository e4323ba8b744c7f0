"""Nulls of a struct or list: the levels of a leaf below tell them, never the statistics of that leaf."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek.base.report import Report

N = 600
ROWS = 100  # of a page


def written(table: pa.Table, **options: Any) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, **options)
    return bytes(sink.getvalue())


def check(data: bytes, name: str) -> None:
    """IS NULL and IS NOT NULL of a column, alone and with other conditions, give the rows that Arrow gives."""
    table = pq.read_table(pa.BufferReader(data))
    half = pc.greater_equal(table["id"], N // 2)
    low = pc.less(pc.struct_field(table["s"], "a"), N // 3)
    late, small = ps.col("id") >= N // 2, ps.col("s", "a") < N // 3
    for mask, test in (
        (table[name].is_null(), ps.col(name).is_null()),
        (table[name].is_valid(), ps.col(name).is_not_null()),
    ):
        for rows, condition in (
            (mask, test),
            (pc.invert(mask), ~test),
            (pc.and_(mask, half), test & late),
            (pc.or_(mask, half), test | late),
            (pc.and_kleene(mask, low), test & small),  # whose statistics and page index are at hand
            (pc.or_kleene(mask, low), test | small),
        ):
            for columns in (None, ["id"]):
                wanted = table.filter(rows).select(columns or table.column_names)
                assert ps.read_table(data, columns=columns, filter=condition).equals(wanted)


FIRST = {  # the leaf that stands for the group
    "always null": lambda i: None,
    "never null": lambda i: i,
    "sometimes null": lambda i: i if i % 3 else None,
    "null in some pages": lambda i: None if i // ROWS % 2 else i,
    "null in some row groups": lambda i: None if i >= N // 2 else i,
}


@pytest.mark.covering(2)
@pytest.mark.parametrize("layout", ["statistics", "page index"])
@pytest.mark.parametrize("first", FIRST)
@pytest.mark.parametrize("rows", ["never", "in some pages", "sometimes", "always"])
def test_statistics_of_a_leaf_say_nothing_of_its_group(first: str, rows: str, layout: str) -> None:
    missing = {
        "never": lambda i: False,
        "in some pages": lambda i: i // ROWS % 3 == 1,
        "sometimes": lambda i: i % 5 == 2,
        "always": lambda i: True,
    }[rows]
    structs = [None if missing(i) else {"a": FIRST[first](i), "b": i} for i in range(N)]
    lists = [None if missing(i) else [FIRST[first](i)] * (i % 3) for i in range(N)]
    table = pa.table(
        {
            "id": pa.array(range(N)),
            "s": pa.array(structs, pa.struct([("a", pa.int64()), ("b", pa.int64())])),
            "l": pa.array(lists, pa.list_(pa.int64())),
        }
    )
    data = written(
        table,
        row_group_size=N // 2,
        write_page_index=layout == "page index",
        max_rows_per_page=ROWS,
        use_dictionary=False,
    )
    check(data, "s")
    check(data, "l")


LAYOUTS: dict[str, dict[str, Any]] = {
    "no index": {"data_page_size": 512, "write_batch_size": 64},
    "page index": {"max_rows_per_page": ROWS, "write_page_index": True},
}
layouts = pytest.mark.parametrize("layout", LAYOUTS)


def report_of(data: bytes, **how: Any) -> dict[str, Any]:
    found: dict[str, Any] = ps.scan(data, **how).explain(analyze=True).to_dict()
    return found


def sizes(data: bytes, leaf: int) -> tuple[int, int]:
    """The bytes of a leaf's dictionary page and of all its pages in the first row group, by pyarrow."""
    chunk = pq.read_metadata(pa.BufferReader(data)).row_group(0).column(leaf)
    start = chunk.dictionary_page_offset
    return chunk.data_page_offset - start if start else 0, chunk.total_compressed_size


@pytest.mark.parametrize("lists", [False, True])
def test_presence_needs_no_dictionary(lists: bool) -> None:
    kind = pa.struct([("a", pa.list_(pa.string()) if lists else pa.string())])
    value = (lambda i: [f"text {i % 50}"]) if lists else (lambda i: f"text {i % 50}")
    structs = [None if i % 7 == 0 else {"a": value(i)} for i in range(N)]
    table = pa.table({"id": range(N), "s": pa.array(structs, kind)})
    data = written(table, **LAYOUTS["page index"])
    dictionary, size = sizes(data, 1)
    assert dictionary > 200
    name = "s.a.list.element" if lists else "s.a"
    whole, some = ps.col("s").is_null(), ps.col("s").is_null() & (ps.col("id") < ROWS)
    leaf = report_of(data, columns=["id"], filter=whole)["leaves"][name]
    assert (leaf["bytes"], leaf["dictionary_pages"]) == (size - dictionary, 0)
    planned = ps.scan(data, columns=["id"], filter=whole).explain().to_dict()["leaves"][name]
    assert planned["bytes"] == leaf["bytes"]
    leaf = report_of(data, columns=["id"], filter=some)["leaves"][name]
    assert leaf["pages"] == {"total": N // ROWS, "read": 1} and leaf["dictionary_pages"] == 0
    found = ps.read_table(data, columns=["id"], filter=some)
    assert found["id"].to_pylist() == list(range(0, ROWS, 7))


@layouts
def test_the_cheapest_leaf_of_each_row_group_tells(layout: str) -> None:
    half = N // 2
    kind = pa.struct([("a", pa.string()), ("b", pa.list_(pa.string())), ("c", pa.string())])
    structs = [
        None
        if i % 5 == 1
        else {
            "a": f"{i}" * (9 if i < half else 1),
            "b": [f"{i}" * (1 if i < half else 9)],
            "c": f"{i}" * 9,
        }
        for i in range(N)
    ]
    table = pa.table({"id": range(N), "s": pa.array(structs, kind)})
    data = written(
        table, row_group_size=half, use_dictionary=False, compression="none", **LAYOUTS[layout]
    )
    footer = pq.read_metadata(pa.BufferReader(data))
    group_0, group_1 = (
        [footer.row_group(g).column(i).total_compressed_size for i in (1, 2, 3)] for g in (0, 1)
    )
    assert min(group_0) == group_0[1] and min(group_1) == group_1[0]
    for condition, rows in (
        (ps.col("s").is_null(), table["s"].is_null()),
        (ps.col("s").is_not_null(), table["s"].is_valid()),
    ):
        how = {"columns": ["id"], "filter": condition}
        assert ps.read_table(data, **how).equals(table.select(["id"]).filter(rows))
        leaves = report_of(data, **how)["leaves"]
        read = {name: leaf["bytes"] for name, leaf in leaves.items() if name != "id"}
        assert read == {"s.a": group_1[0], "s.b.list.element": group_0[1]}
        # a larger one that is wanted is read for the rows that pass
        leaves = report_of(data, **how | {"columns": ["id", "s.c"]})["leaves"]
        assert set(leaves) == {"id", "s.a", "s.b.list.element", "s.c"}


@layouts
@pytest.mark.parametrize("dictionary", [False, True])
def test_a_list_that_is_tested_and_wanted_is_fetched_once(layout: str, dictionary: bool) -> None:
    lists = [None if i % 5 == 1 else [f"text {j % 9}" for j in range(i % 4)] for i in range(N)]
    structs = [{"l": value} for value in lists]
    kinds = {"l": pa.list_(pa.string()), "s": pa.struct([("l", pa.list_(pa.string()))])}
    table = pa.table(
        {"l": pa.array(lists, kinds["l"]), "s": pa.array(structs, kinds["s"]), "id": range(N)}
    )
    data = written(table, use_dictionary=dictionary, row_group_size=N // 2, **LAYOUTS[layout])
    for condition, rows in (
        (ps.col("l").is_null(), table["l"].is_null()),
        (ps.col("l").is_not_null() & ps.col("s", "l").is_not_null(), table["l"].is_valid()),
        (ps.col("s", "l").is_null() & (ps.col("id") <= N // 2), table["l"].is_null()),
    ):
        found = ps.read_table(data, filter=condition)
        wanted = table.filter(rows)
        assert found.equals(
            wanted.filter(pc.less_equal(wanted["id"], N // 2))
            if "id" in repr(condition)
            else wanted
        )
        plain, report = report_of(data), report_of(data, filter=condition)
        assert report["bytes"]["data"] <= plain["bytes"]["data"]
        assert report["pages"]["total"] == plain["pages"]["total"]
        for name in ("l.list.element", "s.l.list.element"):
            pages, leaf = report["leaves"][name]["pages"], plain["leaves"][name]
            assert pages["total"] == leaf["pages"]["total"]
            assert pages["read"] <= pages["total"]
            assert report["leaves"][name]["bytes"] <= leaf["bytes"]
            assert report["leaves"][name]["rows_decoded"] <= N
        light = ps.scan(data, filter=condition)
        counts = Report(chunks=None)
        assert sum(map(len, light.plan().execute(counts))) == len(found)
        for name, pages in (
            (n, counts.tally()[1][n]) for n in ("l.list.element", "s.l.list.element")
        ):
            assert pages.pages_read <= pages.pages_total <= plain["leaves"][name]["pages"]["total"]


def test_a_small_leaf_tells_even_where_a_large_one_is_wanted() -> None:
    """The large one is then read for the rows that pass alone."""
    rows = [None if i == 4321 else {"big": b"%032d" % i, "tiny": i % 2} for i in range(9000)]
    kind = pa.struct({"big": pa.binary(), "tiny": pa.int8()})
    data = written(
        pa.table({"s": pa.array(rows, kind)}), max_rows_per_page=1000, write_page_index=True
    )
    for columns in (["s.big"], ["s"], ["s.tiny"]):
        scan = ps.scan(data, columns=columns, filter=ps.col("s").is_null())
        report = scan.explain(analyze=True).to_dict()
        assert report["leaves"]["s.tiny"]["pages"]["read"] == 9
        if "s.big" in report["leaves"]:
            assert report["leaves"]["s.big"]["pages"]["read"] == 1
        assert scan.to_table().num_rows == 1
