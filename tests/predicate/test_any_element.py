"""Some element of a list: compared with plain Python in three-valued logic; what the statistics prune."""

from __future__ import annotations

import io
import operator
import random
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek.predicate.expression import Expression

Truth = bool | None


def either(found: list[Truth]) -> Truth:
    return True if True in found else None if None in found else False


def known(test: Callable[[Any], bool]) -> Callable[[Any], Truth]:
    return lambda v: None if v is None else test(v)


def written(table: pa.Table, **options: Any) -> bytes:
    sink = io.BytesIO()
    how: dict[str, Any] = {
        "row_group_size": 40,
        "write_page_index": True,
        "data_page_size": 1,
        "write_batch_size": 5,
        "use_dictionary": False,
    }
    pq.write_table(table, sink, **how | options)
    return sink.getvalue()


RANDOM = random.Random(5)


def some(make: Callable[[], Any], nulls: float = 0.2) -> Any:
    return None if RANDOM.random() < nulls else make()


def listed(make: Callable[[], Any], most: int = 3) -> list[Any]:
    return [make() for _ in range(RANDOM.randint(0, most))]


def rows_of(k: int) -> dict[str, Any]:
    def number() -> Any:
        return some(lambda: k // 10 + RANDOM.randint(0, 3))

    def struct() -> Any:
        return some(lambda: {"price": number(), "name": some(lambda: RANDOM.choice("xyz"))})

    return {
        "k": k,
        "tags": some(lambda: listed(lambda: some(lambda: RANDOM.choice(["x", "xy", "z", ""])))),
        "n": some(lambda: listed(number)),
        "items": some(lambda: listed(struct)),
        "s": some(lambda: {"inner": some(lambda: listed(number))}),
        "deep": some(lambda: listed(lambda: some(lambda: listed(number)))),
        "m": some(lambda: [(c, number()) for c in "ab"[: RANDOM.randint(0, 2)]]),
        "nested": some(lambda: listed(lambda: some(lambda: {"l": some(lambda: listed(number))}))),
    }


ROWS = [rows_of(k) for k in range(200)]
I64 = pa.int64()
SCHEMA = pa.schema(
    {
        "k": I64,
        "tags": pa.list_(pa.string()),
        "n": pa.large_list(I64),
        "items": pa.list_(pa.struct({"price": I64, "name": pa.string()})),
        "s": pa.struct({"inner": pa.list_(I64)}),
        "deep": pa.list_(pa.list_(I64)),
        "m": pa.map_(pa.string(), I64),
        "nested": pa.list_(pa.struct({"l": pa.list_(I64)})),
    }
)
TABLE = pa.Table.from_pylist(ROWS, schema=SCHEMA)
FILE = written(TABLE)


def price(item: Any) -> Any:
    return None if item is None else item["price"]


def over(get: Callable[[dict[str, Any]], Any], test: Callable[[Any], Truth]) -> Any:
    """The truth for a row, of a list of elements, of which one may be a list that is not known: KeyError."""

    def truth(row: dict[str, Any]) -> Truth:
        elements = get(row)
        if elements is None:
            return None
        return either([None if e is MISSING else test(e) for e in elements])

    return truth


MISSING = object()  # a null list in a list: its elements are unknown


def flat(lists: Any) -> Any:
    if lists is None:
        return None
    return [v for inner in lists for v in ([MISSING] if inner is None else inner)]


CASES: list[tuple[Expression, Any]] = []
for op in (operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge):
    for value in (0, 7, 100):
        passes = known(lambda v, op=op, value=value: op(v, value))
        CASES += [
            (op(ps.col("n").any(), value), over(lambda r: r["n"], passes)),
            (
                op(ps.col("items.price").any(), value),
                over(
                    lambda r: (
                        r["items"] and list(map(price, r["items"]))
                        if r["items"] is not None
                        else None
                    ),
                    passes,
                ),
            ),
            (
                op(ps.col("s.inner").any(), value),
                over(lambda r: r["s"] and r["s"]["inner"], passes),
            ),
            (
                op(ps.col("s", "inner").any(), value),
                over(lambda r: r["s"] and r["s"]["inner"], passes),
            ),
            (op(ps.col("deep").any(), value), over(lambda r: flat(r["deep"]), passes)),
            (
                op(ps.col("m.value").any(), value),
                over(lambda r: None if r["m"] is None else [v for _, v in r["m"]], passes),
            ),
            (
                op(ps.col("nested.l").any(), value),
                over(
                    lambda r: (
                        None if r["nested"] is None else flat([e and e["l"] for e in r["nested"]])
                    ),
                    passes,
                ),
            ),
        ]
TAGS = ps.col("tags").any()
tags = lambda r: r["tags"]  # noqa: E731
CASES += [
    (TAGS == "x", over(tags, known(lambda v: v == "x"))),
    (TAGS.isin(["x", "q"]), over(tags, known(lambda v: v in ("x", "q")))),
    (TAGS.isin(["x", None]), over(tags, known(lambda v: v == "x" or None))),
    (TAGS.isin([]), over(tags, lambda _: False)),
    (TAGS == None, over(tags, lambda _: None)),  # noqa: E711
    (TAGS.starts_with("x"), over(tags, known(lambda v: v.startswith("x")))),
    (TAGS.like("x_"), over(tags, known(lambda v: v == "xy"))),
    (TAGS.like("%y"), over(tags, known(lambda v: v.endswith("y")))),
    (TAGS.is_null(), over(tags, lambda v: v is None)),
    (TAGS.is_not_null(), over(tags, lambda v: v is not None)),
    (TAGS.between("x", "xz"), over(tags, known(lambda v: "x" <= v <= "xz"))),
    (ps.col("items.price").any().is_null(), over(lambda r: r["items"], lambda e: price(e) is None)),
]  # fmt: skip


def found(condition: Any, data: bytes = FILE) -> list[int]:
    return list(ps.scan(data, columns=["k"], filter=condition).to_table()["k"].to_pylist())


@pytest.mark.parametrize("number", range(len(CASES)), ids=lambda n: repr(CASES[n][0]))
def test_every_condition_and_its_negation(number: int) -> None:
    condition, truth = CASES[number]
    assert found(condition) == [row["k"] for row in ROWS if truth(row) is True]
    assert found(~condition) == [row["k"] for row in ROWS if truth(row) is False]


def test_together_with_other_conditions_and_as_payload() -> None:
    condition = (ps.col("n").any() > 7) & (ps.col("k") > 50) & (ps.col("items.price").any() < 18)
    scan = ps.scan(FILE, filter=condition)
    wanted = [
        row
        for row in ROWS
        if row["k"] > 50
        and any(v is not None and v > 7 for v in row["n"] or ())
        and any(price(e) is not None and price(e) < 18 for e in row["items"] or ())
    ]
    assert scan.to_table() == pa.Table.from_pylist(wanted, schema=SCHEMA)
    assert scan.limit(3).to_table() == pa.Table.from_pylist(wanted[:3], schema=SCHEMA)
    either = (ps.col("n").any() > 18) | (TAGS == "x")
    assert found(either) == sorted({*found(ps.col("n").any() > 18), *found(TAGS == "x")})


def test_what_cannot_match_is_not_read() -> None:
    report = ps.scan(FILE, filter=ps.col("n").any() == 3).explain()
    assert report.row_groups.read < report.row_groups.total
    assert report.rows.read < 60
    assert ps.scan(FILE, filter=ps.col("n").any() == 1000).explain().row_groups.read == 0
    assert ps.scan(FILE, filter=~(ps.col("n").any() == 3)).explain().rows.read == 200


def test_counts_of_nulls_are_of_values_not_rows() -> None:
    """As many nulls as rows, or more, and yet values."""
    for nulls in (1, 2, 3):
        lists = [[k, *[None] * nulls] for k in range(40)]
        for statistics in (True, False):
            data = written(
                pa.table({"k": range(40), "l": lists}),
                write_statistics=statistics,
                data_page_size=1,
            )
            test = ps.col("l").any()
            assert found(test == 5, data) == [5]
            assert found(test.is_not_null(), data) == list(range(40))
            assert found(test.is_null(), data) == list(range(40))
            assert found(ps.col("l").is_null(), data) == []
    empty = written(pa.table({"k": range(4), "l": pa.array([[], None, [], None], pa.list_(I64))}))
    assert found(ps.col("l").any() == 1, empty) == []
    assert found(~(ps.col("l").any() == 1), empty) == [0, 2]


@pytest.mark.parametrize("nan", ["ieee", "spark"])
def test_nan_by_the_rule_of_the_scan(nan: str) -> None:
    lists = [[float("nan")], [1.0, None], [], None, [2.0, float("nan")]]
    data = written(pa.table({"k": range(5), "l": lists}))
    x = ps.col("l").any()

    def rows(test: Any) -> list[int]:
        return list(ps.read_table(data, filter=test, nan=nan)["k"].to_pylist())

    spark = nan == "spark"
    assert rows(x > 5) == ([0, 4] if spark else [])
    assert rows(x == float("nan")) == ([0, 4] if spark else [])
    assert rows(x.is_nan()) == [0, 4]
    assert rows(~(x > 5)) == ([2] if spark else [0, 2, 4])


@pytest.mark.parametrize(
    ("condition", "words"),
    [
        (ps.col("k").any() == 1, "no list"),
        (ps.col("items").any() == 1, "2 leaves"),
        (ps.col("items.nope").any() == 1, "nothing at the path"),
        (ps.col("nope").any() == 1, "no column 'nope'"),
        (ps.col("tags") == "x", r"any\(\)"),
        (ps.col("tags").any() == 5, "cannot be compared"),
    ],
)
def test_what_has_no_meaning_is_an_error(condition: Any, words: str) -> None:
    with pytest.raises(ps.PageseekError, match=words):
        found(condition)


def test_columns_are_not_compared_with_elements() -> None:
    for wrong in (
        lambda: ps.col("n").any() == ps.col("k"),
        lambda: ps.col("k") < ps.col("n").any(),
    ):
        with pytest.raises(ps.PredicateError, match="values only"):
            wrong()


def test_lists_of_many_layouts() -> None:
    for kind in (pa.list_(I64, 2), pa.list_view(I64), pa.large_list(I64)):
        column = pa.array([[1, 2], None, [3, None]], kind)
        data = written(pa.table({"k": range(3), "l": column}))
        assert found(ps.col("l").any() == 3, data) == [2]
        assert found(~(ps.col("l").any() == 3), data) == [0]
