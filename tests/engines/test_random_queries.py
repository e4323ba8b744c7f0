"""duckdb and polars answer the same over pageseek as over their own readers: random queries."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as pads
import pytest

import pageseek as ps
from support.engine_files import Conditions, write

COLUMNS = ("k", "i", "u", "f", "g", "s", "w", "d", "t", "m", "z", "c", "b", "st", "st.x")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("engines")
    write(made)
    return made


def answer(rows: pa.Table, ordered: bool) -> list[str]:
    found = [repr(row) for row in rows.to_pylist()]
    return found if ordered else sorted(found)


def query(of: Conditions) -> tuple[str, bool]:
    """A query with `{}` for its source, and whether its rows have an order."""
    pick = of.pick
    condition, _ = of.condition()
    kind = pick.randrange(6)
    if kind == 0:
        figures = "count(*), count(i), sum(k), min(f), max(f), min(s), max(z), min(d), max(c)"
        return f"select {figures} from {{}} where {condition}", True
    if kind == 1:
        by = pick.choice(["w", "b", "d", "i"])
        return f"select {by}, count(*), sum(u) from {{}} where {condition} group by {by}", False
    chosen = ", ".join(pick.sample(COLUMNS, pick.randrange(1, 5)))
    if kind == 2:
        column = pick.choice(["f desc", "s", "z desc", "c"])
        order = f"order by {column} nulls last, k limit {pick.randrange(1, 30)}"
        return f"select {chosen} from {{}} where {condition} {order}", True
    if kind == 3:
        return f"select {chosen} from {{}} order by k limit 5 offset {pick.randrange(3000)}", True
    return f"select {chosen} from {{}} where {condition}", False


def test_duckdb(folder: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    of, filtered = Conditions(7), 0
    with duckdb.connect() as connection:
        connection.execute("set timezone = 'UTC'")
        connection.register("ours", ps.dataset(folder))
        # its own reader takes the greatest number of the statistics for the greatest value, and NaN is above
        connection.register("whole", pads.dataset(folder).to_table())
        for _ in range(200):
            text, ordered = query(of)
            wanted = connection.sql(text.format("whole")).to_arrow_table()
            found = connection.sql(text.format("ours")).to_arrow_table()
            assert answer(found, ordered) == answer(wanted, ordered), text
            # figures and limits have few rows in any case
            whole = "count(*)" not in text and " limit " not in text
            filtered += whole and 0 < found.num_rows < 3000
    assert filtered > 40


@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
def test_polars(folder: Path, engine: Any) -> None:
    pl = pytest.importorskip("polars")
    of, filtered = Conditions(11), 0
    own = pl.scan_parquet(folder / "*.parquet")
    ours = ps.polars.scan(folder)
    names = [name for name in COLUMNS if name != "st.x"]
    for _ in range(200):
        text, condition = of.condition(pl)
        chosen, kind = of.pick.sample(names, of.pick.randrange(1, 5)), of.pick.randrange(5)
        made, first = [], of.pick.choice((None, None, None, 1500))
        for frame in (own, ours):
            some = (frame if first is None else frame.head(first)).filter(condition)
            if kind == 0:
                some = some.select(pl.len(), pl.sum("k"), pl.max("f").alias("most"), pl.min("s"))
            elif kind == 1:
                some = some.group_by("w").agg(pl.len(), pl.sum("u")).sort("w")
            elif kind == 2:
                some = some.sort("k", descending=True).head(7).select(chosen)
            elif kind == 3:
                some = some.head(11).select(chosen)
            else:
                some = some.select(chosen)
            made.append(some.collect(engine=engine))
        filtered += kind == 4 and 0 < made[1].height < 3000  # others have few rows in any case
        assert made[1].equals(made[0], null_equal=True), text
    assert filtered > 12


def test_polars_over_the_dataset(folder: Path) -> None:
    """polars translates predicates to those of pyarrow, whose NaN and IN differ from its own: here pyarrow's answer counts."""
    pl = pytest.importorskip("polars")
    of, filtered = Conditions(13), 0
    theirs = pl.scan_pyarrow_dataset(pads.dataset(folder))
    ours = pl.scan_pyarrow_dataset(ps.dataset(folder))
    for _ in range(100):
        text, condition = of.condition(pl)
        wanted = theirs.filter(condition).select("k", "f", "s", "z").collect()
        found = ours.filter(condition).select("k", "f", "s", "z").collect()
        assert found.equals(wanted), text
        filtered += 0 < found.height < 3000
    assert filtered > 50
