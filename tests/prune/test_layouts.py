"""All page layouts of tiny columns under predicates, compared with a loop over the rows."""

from __future__ import annotations

import io
import itertools
import random
from collections.abc import Sequence
from typing import Any

import pyarrow.parquet as pq
import pytest

import pageseek as ps
from support.oracle import Predicate, Row, build, layouts, leaves, truth
from support.tiers import each_part, in_part
from support.writer import BYTE_ARRAY, DOUBLE, INT32, INT64, STRING, Column, write


def sample(pool: Sequence[Predicate], n: int, dice: random.Random) -> list[Predicate]:
    """Leaves, negated leaves, and trees of two levels."""

    def leaf() -> Predicate:
        p = dice.choice(pool)
        return ("not", p) if dice.random() < 0.3 else p

    def tree() -> Predicate:
        inner: Predicate = (dice.choice(("and", "or")), leaf(), leaf())
        if dice.random() < 0.3:
            inner = ("not", inner)
        return inner if dice.random() < 0.6 else (dice.choice(("and", "or")), inner, leaf())

    return [leaf() if i % 2 else tree() for i in range(n)]


def check(data: bytes, p: Predicate, table: list[Row], columns: list[str] | None = None) -> None:
    wanted = [row for row in table if truth(p, row) is True]
    found = ps.read_table(data, columns=columns, filter=build(p))
    names = list(table[0]) if columns is None else columns
    assert found.num_rows == len(wanted), f"{build(p)!r}"
    assert found.to_pylist() == [{k: row[k] for k in names} for row in wanted], f"{build(p)!r}"


DATA: dict[str, tuple[list[Any], list[Any], dict[str, Any]]] = {
    "ascending": ([1, 2, 2, 4, 7], [b"b", b"a", None, b"b", b"c"], {}),
    "descending with nulls": ([9, None, 5, 5, None], [None, b"", b"", b"zz", None], {"version": 2}),
    "runs of nulls": ([None, None, 3, None, None], [b"k", b"k", b"k", None, None], {"version": 1}),
    "unordered": (
        [3, -1, 4, None, 0],
        [b"x", b"aa", b"x", b"a", b"\xc3\xa9"],
        {"encodings": "dictionary"},
    ),
    "deltas": ([8, None, -1, -1, 30], [b"ab", b"abc", None, b"b", b""], {"encodings": "delta"}),
    "all null": ([None] * 5, [b"a", None, None, None, b"a"], {"packed": True, "codec": "snappy"}),
}


@each_part
@pytest.mark.parametrize("name", DATA)
def test_every_layout_of_two_columns_answers_like_a_loop(name: str, part: str) -> None:
    a, b, how = DATA[name]
    table = [
        {"a": x, "p": i * 10, "b": None if y is None else y.decode()}
        for i, (x, y) in enumerate(zip(a, b, strict=True))
    ]
    pool = leaves("a", a, [-5, 3, 99]) + leaves("b", [r["b"] for r in table], ["", "bb", "~"])
    dice = random.Random(name)
    cuts = list(layouts(5))
    for k, (of_a, of_p) in enumerate(itertools.product(cuts, cuts)):
        if not in_part(part, k, 5):  # a number that shares no factor with those of the turns below
            continue
        of_b = cuts[(k * 7 + k // 16) % 16]
        how_here = dict(how)
        text = how.get("encodings", "plain")
        if text == "delta":
            text = ("delta-lengths", "delta-strings")[k % 2]
        if how.get("encodings") == "dictionary" and k % 3 == 0:
            how_here["encodings"] = text = "plain"
        of_text = how_here | {"encodings": text}
        data = write(
            [
                Column("a", INT32, a, of_a, optional=True, **how_here),
                Column("p", INT64, [r["p"] for r in table], of_p, **how_here),
                Column("b", BYTE_ARRAY, b, of_b, optional=True, logical=STRING, **of_text),
            ]
        )
        if k % 4 == 0:
            assert pq.read_table(io.BytesIO(data)).to_pylist() == table, (
                "the writer made no valid file"
            )
        for i, p in enumerate(sample(pool, 3, dice)):
            check(data, p, table, (None, ["p"], ["b", "p"])[i])


def test_every_predicate_of_one_layout() -> None:
    a, b = [4, None, 2, 2, 8, None], [1.5, 0.0, None, -2.0, 0.0, None]
    table = [{"a": x, "b": y, "p": i} for i, (x, y) in enumerate(zip(a, b, strict=True))]
    data = write(
        [
            Column("a", INT64, a, [2, 1, 3]),
            Column("b", DOUBLE, b, [1, 1, 2, 2]),
            Column("p", INT32, list(range(6)), [3, 3]),
        ]
    )
    pool = leaves("a", a, [0, 3, 9]) + leaves("b", b, [-9.0, 1.0])
    for p in pool:
        check(data, p, table)
        check(data, ("not", p), table)
    dice = random.Random(5)
    for p, q in dice.sample(list(itertools.product(pool, pool)), 600):
        joined = ("not", (dice.choice(("and", "or")), p, q))
        check(data, joined if dice.random() < 0.3 else joined[1], table, ["p"])


@pytest.mark.parametrize("seed", range(4))
def test_three_columns_of_six_rows_with_parts_of_the_index_missing(seed: int) -> None:
    dice = random.Random(seed)
    cuts = list(layouts(6))
    for _ in range(60):
        a = [dice.choice([None, 0, 1, 2, 3]) for _ in range(6)]
        b = [dice.choice([None, 0.0, -0.0, 1.0, 2.5]) for _ in range(6)]
        if dice.random() < 0.5:
            a = sorted(v for v in a if v is not None)
            a += [None] * (6 - len(a))
        table = [{"a": x, "b": y, "p": i} for i, (x, y) in enumerate(zip(a, b, strict=True))]

        def knobs(*more: str) -> dict[str, Any]:
            return {
                "pages": dice.choice(cuts),
                "column_index": dice.random() < 0.8,
                "offset_index": dice.random() < 0.8,
                "statistics": dice.random() < 0.8,
                "null_count": dice.random() < 0.7,
                "version": dice.choice((1, 2)),
                "encodings": dice.choice(("plain", "dictionary", *more)),
                "codec": dice.choice(("uncompressed", "snappy", "zstd", "gzip", "lz4_raw")),
                "packed": dice.random() < 0.5,
                "crc": dice.random() < 0.5,
            }

        data = write(
            [
                Column("a", INT32, a, optional=True, **knobs("delta", "split")),
                Column("b", DOUBLE, b, optional=True, **knobs("split")),
                Column("p", INT64, list(range(6)), **knobs("delta", "split")),
            ]
        )
        pool = leaves("a", a, [5, -1]) + leaves("b", b, [0.5, 9.0])
        for p in sample(pool, 5, dice):
            check(data, p, table, dice.choice((None, ["p"], ["p", "b"])))


@pytest.mark.parametrize("cut", list(layouts(4)))
def test_row_groups_and_pages_together(cut: tuple[int, ...]) -> None:
    a = [1, 5, 5, 9]
    groups = [
        [
            Column("a", INT32, [v + g for v in a], cut),
            Column("p", INT64, [g * 10 + i for i in range(4)], cut[::-1]),
        ]
        for g in range(3)
    ]
    table = [{"a": v + g, "p": g * 10 + i} for g in range(3) for i, v in enumerate(a)]
    data = write(*groups)
    assert pq.read_table(io.BytesIO(data)).to_pylist() == table
    for p in leaves("a", [r["a"] for r in table], [0, 4, 20]):
        check(data, p, table)
        check(data, ("not", p), table, ["p"])


def test_predicate_and_payload_pages_that_do_not_line_up_stay_aligned() -> None:
    """The last selected row lies in a page of the predicate that begins inside a page of the payload."""
    data = write(
        [
            Column("key", INT32, [1, 1, 0, 0, 1], [2, 2, 1]),
            Column("payload", INT32, [0, 10, 20, 30, 40], [3, 2]),
        ]
    )
    found = ps.read_table(data, columns=["payload"], filter=ps.col("key") == 1)
    assert found["payload"].to_pylist() == [0, 10, 40]


def test_rows_with_nulls_before_the_selected_ones_are_skipped_as_rows() -> None:
    values = [None, 1, None, None, 2, None, 3, 4]
    for pages in layouts(8):
        data = write(
            [Column("k", INT32, list(range(8)), [1] * 8), Column("v", INT32, values, pages)]
        )
        for row, value in enumerate(values):
            assert ps.read_table(data, columns=["v"], filter=ps.col("k") == row)[
                "v"
            ].to_pylist() == [value]
