"""Two files with columns of many types, and random conditions over them in SQL and for polars."""

from __future__ import annotations

import datetime as dt
import random
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

N = 1_500  # rows of a file
DAY, NOON = dt.date(2024, 1, 1), dt.datetime(2024, 1, 1, 12)
UTC = dt.UTC
COMPARISONS = ("=", "<>", "<", "<=", ">", ">=")


def rows(first: int, seed: int) -> pa.Table:
    """Rows whose key `k` counts from `first`; every other column has nulls."""
    pick = random.Random(seed)

    def some(made: Any) -> list[Any]:
        return [None if pick.random() < 0.1 else made(i) for i in range(first, first + N)]

    return pa.table(
        {
            "k": pa.array(range(first, first + N), pa.int64()),
            "i": pa.array(some(lambda i: i // 7 % 97), pa.int32()),
            "u": pa.array(some(lambda i: i % 50), pa.uint16()),
            "f": some(lambda i: pick.choice([float("nan"), 0.0, -0.0, float("inf"), i / 8, -i / 3])),
            "g": pa.array(some(lambda i: pick.choice([float("nan"), 0.5, 0.1, i / 4])), pa.float32()),
            "s": some(lambda i: f"name {i % 40:03}"),
            "w": some(lambda _: pick.choice(["red", "green", "blue", "", "a%b", "é"])),
            "d": some(lambda i: DAY + dt.timedelta(i // 10)),
            "t": pa.array(some(lambda i: NOON + dt.timedelta(hours=i)), pa.timestamp("us")),
            "m": pa.array(some(lambda i: NOON + dt.timedelta(hours=i)), pa.timestamp("ms")),
            "z": pa.array(
                some(lambda i: NOON.replace(tzinfo=UTC) + dt.timedelta(minutes=i)), pa.timestamp("us", "UTC")
            ),
            "c": pa.array(some(lambda i: Decimal(i) / 4), pa.decimal128(12, 2)),
            "b": some(lambda _: pick.random() < 0.5),
            "st": some(lambda i: {"x": i % 9, "y": None if i % 4 == 0 else f"y{i % 5}"}),
        }
    )  # fmt: skip


def write(folder: Path) -> pa.Table:
    """Write the files with small row groups and pages; return all rows."""
    parts = [rows(0, 1), rows(N, 2)]
    for at, part in enumerate(parts):
        pq.write_table(
            part, folder / f"{at}.parquet", row_group_size=500, write_batch_size=50, max_rows_per_page=100,
            write_page_index=True,
        )  # fmt: skip
    return pa.concat_tables(parts)


class Conditions:
    """Random conditions, each in SQL and for polars."""

    def __init__(self, seed: int) -> None:
        self.pick = random.Random(seed)

    def value(self, column: str) -> tuple[str, Any]:
        """A literal near the values of a column."""
        n = self.pick.randrange(-5, 2 * N + 5)
        if column == "k":
            return str(n), n
        if column in "iu":
            return str(n % 100), n % 100
        if column in "fg":
            number = self.pick.choice([0.0, 0.5, 2.0, float(n % 300), n / 8])
            return f"{number}::double", number
        if column in "sw":
            text = self.pick.choice(["red", "", "a%b", "é", f"name {n % 45:03}"])
            return f"'{text}'", text
        if column == "d":
            day = DAY + dt.timedelta(n // 10)
            return f"date '{day}'", day
        if column in "tm":
            moment = NOON + dt.timedelta(hours=n)
            return f"timestamp '{moment}'", moment
        if column == "z":
            instant = NOON.replace(tzinfo=UTC) + dt.timedelta(minutes=n)
            return f"timestamptz '{instant}'", instant
        if column == "c":
            number = Decimal(n) / 4
            return f"{number}", number
        return f"{n % 10}", n % 10  # st.x

    def one(self, pl: Any) -> tuple[str, Any]:
        """A condition on one column; its second form is None without polars."""
        column = self.pick.choice("kkkiufgswdtmzcb") if self.pick.random() < 0.95 else "st.x"
        nested = column == "st.x"
        col = None
        if pl is not None:
            col = pl.col("st").struct.field("x") if nested else pl.col(column)
        kind = self.pick.randrange(8)
        if kind == 0:
            absent = self.pick.random() < 0.5
            made = None if col is None else (col.is_null() if absent else col.is_not_null())
            return f"{column} is {'' if absent else 'not '}null", made
        if column == "b":
            return "b", col
        if kind == 1:
            values = [self.value(column) for _ in range(self.pick.randrange(1, 5))]
            made = None if col is None else col.is_in([value for _, value in values])
            return f"{column} in ({', '.join(text for text, _ in values)})", made
        if kind == 2:
            (low, one), (high, other) = self.value(column), self.value(column)
            made = None if col is None else col.is_between(pl.lit(one), pl.lit(other))
            return f"{column} between {low} and {high}", made
        if kind == 3 and column in "sw":
            begin = self.pick.choice(["name 0", "r", "", "a%"])
            made = None if col is None else col.str.starts_with(begin)
            return f"starts_with({column}, '{begin}')", made
        if kind == 4 and column in "sw":
            inside = self.pick.choice(["e", "03", "%"])
            made = None if col is None else col.str.contains(inside, literal=True)
            if inside == "%":
                return f"contains({column}, '{inside}')", made
            return f"{column} like '%{inside}%'", made
        op = self.pick.choice(COMPARISONS)
        text, value = self.value(column)
        made = None
        if col is not None:
            made = {
                "=": col.eq, "<>": col.ne, "<": col.lt, "<=": col.le, ">": col.gt, ">=": col.ge,
            }[op](pl.lit(value))  # fmt: skip
        return f"{column} {op} {text}", made

    def condition(self, pl: Any = None, depth: int = 2) -> tuple[str, Any]:
        """Conditions joined by AND, OR and NOT."""
        kind = self.pick.randrange(4) if depth else 3
        if kind == 3:
            return self.one(pl)
        text, one = self.condition(pl, depth - 1)
        if kind == 2 and self.pick.random() < 0.5:
            return f"not ({text})", None if one is None else ~one
        other_text, other = self.condition(pl, depth - 1)
        word = "or" if kind == 1 else "and"
        both = None
        if one is not None:
            both = one | other if kind == 1 else one & other
        return f"({text}) {word} ({other_text})", both
