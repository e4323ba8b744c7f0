"""Files full of NaN, infinities and zeros of both signs, and what conditions on them mean in plain Python.

Four writers, three widths of floats, sorted and not, whole pages and chunks of NaN, nulls, with and without page
index, dictionaries and Bloom filters. Each answer is compared row by row, in both rules for NaN and with every
choice of mechanisms.
"""

from __future__ import annotations

import math
import random
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from datafusion import SessionContext

import pageseek as ps
from pageseek.predicate.operators import OPERATORS

ROWS = 3_000
LITERALS = [0.0, -0.0, 0.5, -0.5, 1.0, math.nan, math.inf, -math.inf, 2.0, -1e300, 1e-45]
PRUNE: list[Any] = [
    True,
    False,
    ["statistics"],
    ["column_index"],
    ["page_headers"],
    ["bloom_filter"],
    ["dictionary"],
]


def table(dice: np.random.Generator) -> pa.Table:
    """Columns of floats, each unusual in its own way."""
    few = np.array([0.0, -0.0, 0.5, -0.5, 1.0, -1.0, math.inf, -math.inf, 2.0])
    some = few[dice.integers(0, len(few), ROWS)]
    nan = np.where(dice.random(ROWS) < 0.1, math.nan, some)
    pages = some.copy()
    pages[ROWS // 3 : 2 * ROWS // 3] = math.nan
    zeros = np.where(dice.random(ROWS) < 0.5, 0.0, -0.0)
    zeros[::97] = math.nan
    columns = {
        "plain": some,
        "sorted": np.sort(nan),  # NaN last
        "down": np.sort(some)[::-1],
        "nan": nan,
        "pages": pages,
        "all": np.full(ROWS, math.nan),
        "zeros": zeros,
        "negative": np.copysign(nan, -1),  # NaN with the sign bit as well
        "holes": nan,
    }
    made: dict[str, pa.Array] = {}
    for name, values in columns.items():
        mask = dice.random(ROWS) < 0.3 if name == "holes" else None
        for kind in (pa.float64(), pa.float32(), pa.float16()):
            narrow = values.astype(kind.to_pandas_dtype())
            made[f"{name}{kind.bit_width}"] = pa.array(narrow, kind, mask=mask)
    made["row"] = pa.array(np.arange(ROWS))
    return pa.table(made)


def written(made: pa.Table, folder: Path) -> Iterator[Path]:
    """The table by every writer that takes it."""
    bloom = {name: {"ndv": 50, "fpp": 0.01} for name in made.column_names if "16" not in name}
    for i, options in enumerate(
        (
            {"write_page_index": True, "use_dictionary": False},
            {"write_page_index": True, "bloom_filter_options": bloom},
            {"use_dictionary": False},
            {"data_page_version": "2.0"},
            {"write_statistics": False},
        )
    ):
        path = folder / f"pyarrow-{i}.parquet"
        how: dict[str, Any] = {"row_group_size": 700, "max_rows_per_page": 90, **options}
        pq.write_table(made, path, **how)
        yield path
    wide = made.select([name for name in made.column_names if "16" not in name])
    path = folder / "duckdb.parquet"
    connection = duckdb.connect()
    connection.register("made", wide)
    connection.execute(f"COPY made TO '{path}' (FORMAT parquet, ROW_GROUP_SIZE 2048)")
    yield path
    path = folder / "polars.parquet"
    frame = pl.from_arrow(wide)
    assert isinstance(frame, pl.DataFrame)
    frame.write_parquet(path, row_group_size=700, statistics="full")
    yield path
    path = folder / "datafusion.parquet"
    SessionContext().from_arrow(made).write_parquet(str(path))
    yield next(path.rglob("*.parquet")) if path.is_dir() else path


def passes(op: str, x: float, y: float, nan: str) -> bool:
    if nan == "spark":
        keys = [(1, 0.0) if v != v else (0, v) for v in (x, y)]
        return OPERATORS[op](keys[0], keys[1])
    return OPERATORS[op](x, y)


def conditions(column: str, kind: Any, dice: random.Random) -> Iterator[tuple[Any, Any]]:
    """Expressions, each with its result for a non-null value under a NaN rule."""
    x = ps.col(column)
    for op, function in OPERATORS.items():
        y = dice.choice(LITERALS)
        yield function(x, y), lambda v, nan, op=op, y=y: passes(op, v, y, nan)
        yield ~function(x, y), lambda v, nan, op=op, y=y: not passes(op, v, y, nan)
    some = dice.sample(LITERALS, 3)
    yield x.isin(some), lambda v, nan: any(passes("=", v, y, nan) for y in some)
    yield ~x.isin(some), lambda v, nan: not any(passes("=", v, y, nan) for y in some)
    yield x.is_nan(), lambda v, nan: v != v
    yield ~x.is_nan(), lambda v, nan: v == v
    low, high = dice.choice(LITERALS), dice.choice(LITERALS)
    yield (
        x.between(low, high),
        lambda v, nan: passes(">=", v, low, nan) and passes("<=", v, high, nan),
    )


def prove(seeds: range) -> tuple[int, int]:
    """(files, comparisons); AssertionError if an answer is wrong."""
    files = asked = 0
    for seed in seeds:
        made = table(np.random.default_rng(seed))
        dice = random.Random(seed)
        with tempfile.TemporaryDirectory() as folder:
            for path in written(made, Path(folder)):
                files += 1
                names = [n for n in pq.read_schema(path).names if n != "row"]
                full = pq.read_table(path)
                numbers = full["row"].to_pylist()
                for name in names:
                    values = full[name].to_pylist()
                    for condition, holds in conditions(name, full.schema.field(name).type, dice):
                        for nan in ("ieee", "spark"):
                            wanted = [
                                row
                                for row, v in zip(numbers, values, strict=True)
                                if v is not None and holds(float(v), nan)
                            ]
                            prune = dice.choice(PRUNE)
                            found = ps.read_table(path, ["row"], condition, nan=nan, prune=prune)
                            asked += 1
                            if found["row"].to_pylist() != wanted:
                                raise AssertionError(
                                    f"seed {seed}, {path.name}: {condition!r}, nan={nan!r}, prune={prune}: "
                                    f"{found.num_rows} rows, {len(wanted)} pass"
                                )
    return files, asked


if __name__ == "__main__":
    print(prove(range(2)))
