"""A limit ends the work early, also inside a row group; conditions are evaluated in the order that is fastest."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek._core import rows
from pageseek.predicate.bound import Bound, BoundAnd, BoundConst, BoundOr, leaves_of
from pageseek.scanning.leaves.decoded_columns import DecodedColumns
from pageseek.scanning.one_file import group_filter, group_reader, row_group
from pageseek.scanning.requests.condition_order import (
    BLOCK,
    EACH,
    FIRST_GROUPS,
    Learned,
    blocks_of,
    likely_share,
)

pytestmark = pytest.mark.usefixtures("scans")

N = 4_000


def made(index: bool = True) -> tuple[pa.Table, bytes]:
    random = np.random.default_rng(3)
    table = pa.table(
        {
            "id": np.arange(N),
            "v": pa.array(random.integers(0, 40, N), mask=random.random(N) < 0.1),
            "s": [f"s{i % 13}" for i in range(N)],
            "l": [[i] * (i % 3) for i in range(N)],
        }
    )
    sink = io.BytesIO()
    pq.write_table(table, sink, row_group_size=1_500, max_rows_per_page=70, write_page_index=index)
    return table, sink.getvalue()


CONDITIONS: dict[str, tuple[Any, Any]] = {
    "few": (ps.col("v") == 7, lambda row: row["v"] == 7),
    "most": (ps.col("v") >= 2, lambda row: row["v"] is not None and row["v"] >= 2),
    "two": (
        (ps.col("v") < 20) & (ps.col("s") == "s3"),
        lambda row: row["v"] is not None and row["v"] < 20 and row["s"] == "s3",
    ),
    "half of them proven": (
        (ps.col("id") >= 100) & (ps.col("id") < 3_000),
        lambda row: 100 <= row["id"] < 3_000,
    ),
    "none": ((ps.col("v") == 3) & (ps.col("v") == 4), lambda row: False),
    "null": (ps.col("v").is_null(), lambda row: row["v"] is None),
}


@pytest.mark.covering(2)
@pytest.mark.parametrize("name", CONDITIONS)
@pytest.mark.parametrize("index", [True, False])
@pytest.mark.parametrize("columns", [None, ["l"], ["v"], []])
def test_the_first_rows_are_those_of_the_whole(
    monkeypatch: pytest.MonkeyPatch, name: str, index: bool, columns: Any
) -> None:
    for stage in (group_filter, row_group):
        monkeypatch.setattr(stage, "FIRST_STEP", 50)
    monkeypatch.setattr(group_reader, "CODED_ROWS", 0)
    table, data = made(index)
    condition, keeps = CONDITIONS[name]
    names = table.column_names if columns is None else columns
    wanted = [{k: row[k] for k in names} for row in table.to_pylist() if keeps(row)]
    for limit in (0, 1, 2, 7, 40, 300, 1_499, 1_500, 3_000, N):
        found = ps.read_table(data, columns, condition, limit=limit)
        assert found.num_rows == len(wanted[:limit])
        assert found.to_pylist() == wanted[:limit]


def test_pages_behind_the_limit_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    for stage in (group_filter, row_group):
        monkeypatch.setattr(stage, "FIRST_STEP", 70)
    _, data = made()
    scan = ps.scan(data, columns=["id", "v"], filter=ps.col("v") >= 2, limit=5)
    report = scan.explain(analyze=True).to_dict()
    assert report["rows"]["out"] == 5
    assert report["row_groups"]["read"] == 1
    assert report["leaves"]["v"]["pages"]["read"] <= 2
    assert report["leaves"]["id"]["pages"]["read"] == 1
    pages = report["pages"]
    assert pages["pruned_by"]["limit"] > 10
    assert pages["read"] + sum(pages["pruned_by"].values()) == pages["total"]


def test_bytes_of_a_page_are_fetched_once(monkeypatch: pytest.MonkeyPatch) -> None:
    for stage in (group_filter, row_group):
        monkeypatch.setattr(stage, "FIRST_STEP", 70)
    _, data = made()
    whole = ps.scan(data, columns=["id", "v"], filter=ps.col("v") >= 0).explain(analyze=True)
    early = ps.scan(data, columns=["id", "v"], filter=ps.col("v") >= 0, limit=50)
    report = early.explain(analyze=True).to_dict()
    assert report["leaves"]["v"]["bytes"] < whole.to_dict()["leaves"]["v"]["bytes"] / 3


def test_what_rules_out_much_for_little_comes_first() -> None:
    cheap, dear = BoundConst(True), BoundConst(True)
    learned = Learned()
    sizes = {id(cheap): 1.0, id(dear): 20.0}
    parts = [dear, cheap]

    def order() -> list[int]:
        return learned.order(parts, lambda part: sizes[id(part)])[0]

    assert order() == [1, 0]
    learned.note(1, (10, 1), (0, 0), 1.0)  # too few rows to say anything
    assert order() == [1, 0]
    learned.note(1, (100_000, 98), (100_000, 98), 0.01)  # cheap, and lets everything through
    learned.note(0, (100_000, 98), (10, 5), 0.02)
    assert order() == [0, 1]
    learned.note(0, (1_000_000, 980), (1_000_000, 980), 0.2)
    learned.note(1, (10_000_000, 9_800), (0, 0), 1.0)
    assert order() == [1, 0]


def test_comparisons_of_one_column_of_numbers_are_one_condition(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    evaluated: set[str] = set()
    decoding: set[str] = set()  # what the core tests as it decodes
    evaluate, tests = DecodedColumns.evaluate, group_reader.row_tests

    def names(bound: Bound) -> str:
        return " and ".join(test.leaf.name for test in leaves_of(bound))

    def noted(self: DecodedColumns, bound: Bound, n: int) -> Any:
        evaluated.add(names(bound))
        return evaluate(self, bound, n)

    def tested(condition: Bound, *rest: Any) -> Any:
        decoding.add(names(condition))
        return tests(condition, *rest)

    monkeypatch.setattr(DecodedColumns, "evaluate", noted)
    monkeypatch.setattr(group_reader, "row_tests", tested)
    table, data = made()
    found = ps.read_table(
        data, filter="v >= 2 and s >= 's2' and v < 20 and s < 's7' and v != 5", prune=[]
    )
    assert decoding == {"v and v and v", "s"}
    assert evaluated == {"s"}  # strings that passed are compared again
    assert found.to_pylist() == [
        row
        for row in table.to_pylist()
        if row["v"] in {2, 3, 4, *range(6, 20)} and "s2" <= row["s"] < "s7"
    ]


def test_rows_side_by_side_spare_more_than_rows_strewn_about() -> None:
    learned, parts = Learned(), [BoundConst(True), BoundConst(True)]
    learned.note(0, (100_000, 98), (3_000, 98), 0.01)  # a few in every page
    # judged on what the first left, which does not make it dearer
    learned.note(1, (3_000, 98), (150, 6), 0.015)
    assert learned.order(parts, lambda _: 8.0)[0] == [1, 0]


@pytest.mark.parametrize("n", [1, BLOCK - 1, BLOCK, BLOCK + 1, 10 * BLOCK + 5])
def test_blocks_of_rows(n: int) -> None:
    every = rows.RowRanges.all(n)
    assert blocks_of(every, n) == -(-n // BLOCK)
    assert blocks_of(rows.RowRanges.empty(), n) == 0
    assert blocks_of(every.head(1), n) == 1
    last = rows.RowRanges.from_rows([n - 1])
    assert blocks_of(last, n) == 1
    if n > BLOCK:
        middle = rows.RowRanges.from_rows([BLOCK - 1, BLOCK])
        assert blocks_of(middle, n) == 2


def test_shares_are_guessed_until_they_are_known() -> None:
    yes, no = BoundConst(True), BoundConst(False)
    assert likely_share(BoundAnd((yes, no))) == 0
    assert likely_share(BoundOr((yes, no))) == 1


def test_the_order_is_learned_from_row_group_to_row_group() -> None:
    n = 80_000
    random = np.random.default_rng(1)
    a = random.integers(0, 1000, n)
    table = pa.table({"a": a, "b": np.where(random.random(n) < 0.999, 500, a)})
    sink = io.BytesIO()
    pq.write_table(
        table, sink, row_group_size=10_000, max_rows_per_page=100, write_page_index=True,
        use_dictionary=False, compression="none",
    )  # fmt: skip
    # by the guess, both are equal; b lets nearly nothing through
    condition = (ps.col("a") >= 3) & (ps.col("b") < 500)
    scan = ps.scan(sink.getvalue(), columns=[], filter=condition, prune=False)
    leaves = scan.explain(analyze=True).to_dict()["leaves"]
    assert leaves["a"]["rows_decoded"] < n / 4
    assert leaves["b"]["rows_decoded"] > n / 2


def test_a_settled_order_is_measured_now_and_then() -> None:
    learned, parts = Learned(), [BoundConst(True), BoundConst(True)]
    measured = [learned.order(parts, lambda _: 8.0)[1] for _ in range(3 * EACH + FIRST_GROUPS)]
    assert all(measured[:FIRST_GROUPS])
    assert sum(measured[FIRST_GROUPS:]) == 3
    learned.note(0, (100_000, 98), (99_000, 98), 1.0)  # dear, and rules out little
    learned.note(1, (100_000, 98), (100, 1), 0.001)
    orders = [learned.order(parts, lambda _: 8.0)[0] for _ in range(EACH)]
    assert orders[-1] == [1, 0]  # the order is learned nevertheless
