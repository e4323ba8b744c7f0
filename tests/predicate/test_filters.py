"""Random conditions as expression, SQL and pyarrow expression find the same rows as plain Python."""

from __future__ import annotations

import functools
import io
import itertools
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings

import pageseek as ps
from pageseek.predicate.filters import to_expression
from pageseek.scanning.one_file import group_reader as execute
from support.conditions import (
    DAY,
    OPS,
    PAIRS,
    ROWS,
    Node,
    arrow,
    expression,
    rows,
    sql,
    table,
    trees,
    truth,
)
from support.tiers import examples


@pytest.fixture(autouse=True, scope="module")
def few_rows_as_codes() -> Iterator[None]:
    """Dictionaries are judged in the place of rows however few there are."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(execute, "CODED_ROWS", 1)
        yield


@functools.cache
def made(dictionary: bool = False) -> bytes:
    sink = io.BytesIO()
    pq.write_table(
        table(),
        sink,
        row_group_size=24,
        write_page_index=True,
        use_dictionary=dictionary,
        data_page_size=16,
        write_batch_size=3,
    )
    return sink.getvalue()


def found(condition: Any, nan: str, dictionary: bool = False) -> list[int]:
    scan = ps.scan(made(dictionary), columns=["l", "i"], filter=condition, nan=nan)
    return list(scan.with_row_number("row").to_table()["row"].to_pylist())


@pytest.mark.parametrize("nan", ["ieee", "spark"])
@settings(max_examples=examples(300), deadline=None)
@given(node=trees())
def test_expressions_and_sql_find_what_python_finds(nan: str, node: Node) -> None:
    wanted = [k for k, row in enumerate(rows()) if truth(node, row, nan) is True]
    assert found(expression(node), nan) == wanted
    assert found(expression(node), nan, dictionary=True) == wanted
    assert found(sql(node), nan) == wanted
    assert found(~expression(node), nan) == [
        k for k, row in enumerate(rows()) if truth(node, row, nan) is False
    ]


@settings(max_examples=examples(300), deadline=None)
@given(node=trees(of_arrow=True))
def test_an_expression_of_pyarrow_means_what_pyarrow_says(node: Node) -> None:
    numbered = pq.read_table(io.BytesIO(made())).append_column("row", pa.array(range(ROWS)))
    condition = arrow(node)
    try:
        wanted = numbered.filter(condition)["row"].to_pylist()
    except (pa.ArrowException, TypeError):
        return  # what pyarrow cannot evaluate, a scan may
    for nan in ("ieee", "spark"):
        assert found(condition, nan) == wanted
        assert found(condition, nan, dictionary=True) == wanted


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("nan", ["ieee", "spark"])
def test_every_pair_of_columns(pair: tuple[str, str], nan: str) -> None:
    for op, negate in itertools.product(OPS, [False, True]):
        node: Node = ("cols", pair[0], op, pair[1])
        wanted = [k for k, row in enumerate(rows()) if truth(node, row, nan) is (not negate)]
        test = expression(node)
        for dictionary in (False, True):
            given = found(~test if negate else test, nan, dictionary)
            assert given == wanted, (pair, op, negate)


def test_what_is_understood_of_pyarrow_prunes() -> None:
    known = (pc.field("i") == 2**53 + 1) & (pc.field("d") >= DAY)
    both = known & (pc.field("j") + pc.field("j") > 1)
    for condition in (known, both):
        report = ps.scan(made(), filter=condition).explain()
        assert report.rows.read < ROWS
    assert to_expression(both) is not None
