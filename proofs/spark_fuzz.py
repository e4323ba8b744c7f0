"""Random queries of `load` over random folders have the answers of Spark's own reader.

Files of a folder have different columns in different orders, narrower types, other fields of structs and, where case does not
matter, names in another case; some folders are partitioned. A query has a random filter, and then columns, an aggregation, a
group-by, a limit, a join, a union or the first rows by an order. Spark's reader gets the schema of `load`.
"""

from __future__ import annotations

import collections
import random
import tempfile
import time
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pageseek.spark import load
from pageseek.spark.table import native
from spark_sessions import session
from support.random_sql import leaves_of, predicate
from support.sql_comparison import ANSI, CASE, MANY_VALUES, WAYS, ZONE
from support.sql_doors import ORACLE, quoted, settings

ZONES = "UTC", "America/New_York", "Asia/Kolkata"
QUERIES = 6  # of a folder
_NAN = float("nan")

# name -> the types that files may have, from narrow to wide, and a value by a number
Kind = tuple[tuple[pa.DataType, ...], Callable[[int], Any]]
KINDS: dict[str, Kind] = {
    "small": ((pa.int8(), pa.int16(), pa.int32()), lambda n: n % 7 - 3),
    "whole": ((pa.int32(), pa.int64()), lambda n: n * 37 % 1009 - 500),
    "real": ((pa.float32(), pa.float64()), lambda n: [_NAN, 0.0, -0.0, n % 50 / 4][n % 4]),
    "price": ((pa.decimal128(9, 2),), lambda n: Decimal(n % 400 - 100).scaleb(-2)),
    "text": ((pa.string(),), lambda n: ["", "a_b", f"row {n % 90}", "é"][n % 4]),
    "flag": ((pa.bool_(),), lambda n: n % 3 == 0),
    "day": ((pa.date32(),), lambda n: n % 800 - 400),
    "at": ((pa.timestamp("us", "UTC"),), lambda n: n * 3_600_000_017 - 10**12),
    "local": ((pa.timestamp("us"),), lambda n: n * 7_200_000_000),
    "raw": ((pa.binary(),), lambda n: bytes([n % 256, n % 3])),
}  # fmt: skip


def write_folder(rng: random.Random, folder: Path, any_case: bool) -> None:
    """A folder of one to four files."""
    names = rng.sample(sorted(KINDS), rng.randint(3, 7))
    parts = rng.choice(([], [], ["part"], ["part", "sub"]))
    nested, listed = rng.random() < 0.7, rng.random() < 0.4
    start = 0
    for i in range(rng.randint(1, 4)):
        rows = rng.choice((1, 30, 400, 1500))
        numbers = [*range(start, start + rows)]
        start += rows if rng.random() < 0.8 else rows // 2
        missing = rng.choice((0.0, 0.1, 0.6))
        here = [name for name in names if i == 0 or rng.random() < 0.8]

        def value(make: Callable[[int], Any], n: int, missing: float = missing) -> Any:
            return None if rng.random() < missing else make(n)

        columns = {"id": pa.array(numbers, pa.int64())}
        for name in here:
            kinds, make = KINDS[name]
            columns[name] = pa.array([value(make, n) for n in numbers], rng.choice(kinds))
        if nested:
            fields = [("a", pa.int64()), ("b", pa.struct([("c", pa.string()), ("d", pa.int32())]))]
            fields = fields if i == 0 else rng.sample(fields, rng.randint(1, 2))
            kind = pa.struct(fields)
            cells = [
                value(lambda n: {"a": n % 40, "b": {"c": f"c{n % 9}", "d": n}}, n) for n in numbers
            ]
            columns["st"] = pa.array([_kept(cell, kind) for cell in cells], kind)
            if listed:
                lists = [value(lambda n: [{"a": n, "b": None}] * (n % 3), n) for n in numbers]
                columns["items"] = pa.array(
                    [None if cells is None else [_kept(c, kind) for c in cells] for cells in lists],
                    pa.list_(kind),
                )
        order = [*columns]
        if i:
            rng.shuffle(order)
        told = {n: _other_case(rng, n) if any_case and i else n for n in order}
        table = pa.table({told[name]: columns[name] for name in order})
        # the first file, which says how columns are spelled, has all of them
        values = [rng.randint(0, 2) if i else 0 for _ in parts]
        below = folder.joinpath(*[f"{p}={v}" for p, v in zip(parts, values, strict=True)])
        below.mkdir(parents=True, exist_ok=True)
        pq.write_table(
            table,
            below / f"{i}.parquet",
            row_group_size=rng.choice((200, 10_000)),
            data_page_size=rng.choice((256, 1 << 20)),
            write_batch_size=16,
            write_page_index=rng.random() < 0.8,
            use_dictionary=rng.random() < 0.6,
            compression=rng.choice(("snappy", "zstd", "none")),
        )


def _kept(cell: Any, kind: pa.DataType) -> Any:
    return None if cell is None else {field.name: cell[field.name] for field in kind}


def _other_case(rng: random.Random, name: str) -> str:
    return rng.choice((name, name.upper(), name.capitalize()))


def query(rng: random.Random, frame: Any, leaves: Any) -> tuple[str, Callable[[Any], Any]]:
    """A query on any frame of these columns, and what it is."""
    condition = predicate(rng, leaves) if rng.random() < 0.85 else "true"
    names = [quoted(name) for name in frame.columns]
    plain = [leaf for leaf in leaves if leaf.kind in ("number", "string", "date", "timestamp")]
    leaf = rng.choice(plain)
    kind = rng.choice(
        ("columns", "columns", "leaves", "figures", "groups", "join", "keys", "union", "first")
    )
    if kind == "columns":
        chosen = rng.sample(names, rng.randint(1, len(names)))
        how = f"select {chosen}", lambda f: f.select(*chosen)
    elif kind == "leaves":
        some = [one.name for one in rng.sample(leaves, min(3, len(leaves)))]
        how = f"leaves {some}", lambda f: f.selectExpr(*(f"{n} c{i}" for i, n in enumerate(some)))
    elif kind == "figures":
        made = [
            "count(1)",
            f"count({leaf.name})",
            f"min({leaf.name})",
            f"max({leaf.name})",
            "sum(id)",
        ]
        chosen = rng.sample(made, rng.randint(1, 5))
        how = f"figures {chosen}", lambda f: f.selectExpr(*chosen)
    elif kind == "groups":
        by = rng.choice(plain)
        how = (
            f"group by {by.name}: {leaf.name}",
            lambda f: f.selectExpr(f"{by.name} g", "id", f"{leaf.name} v").groupBy("g").agg(
                {"id": "sum", "v": "max", "*": "count"}
            ),
        )  # fmt: skip
    elif kind in ("join", "keys"):
        step, most = rng.choice((3, 100, 700)), rng.choice((50, 5000))

        def joined(f: Any) -> Any:
            keys = f.sparkSession.range(0, most, step).selectExpr("id as key")
            keys = keys.where("key % 2 = 0") if kind == "keys" else keys
            return f.join(keys, f["id"] == keys["key"], how_join).select("id", leaf_alias)

        how_join = rng.choice(("inner", "left", "left_semi", "left_anti"))
        from pyspark.sql.functions import expr

        leaf_alias = expr(leaf.name).alias("v")
        how = f"{how_join} {kind} of {most} by {step}", joined
    elif kind == "union":
        other = predicate(rng, leaves)
        how = f"union with {other}", lambda f: f.select(*names).union(f.where(other).select(*names))
    else:
        how = f"first by {leaf.name}", lambda f: f.orderBy(*_order(leaf.name)).limit(7).select("id")
    said, after = how
    return f"where {condition}; {said}", lambda f: after(f.where(condition))


def _order(name: str) -> list[Any]:
    from pyspark.sql.functions import expr

    return [expr(name).desc(), expr("id")]


def rows(frame: Any) -> collections.Counter[str] | Exception:
    """How often each row comes, or the error."""
    try:
        return collections.Counter(map(repr, frame.collect()))
    except Exception as error:  # noqa: BLE001 (both readers may refuse a query)
        return error


def ask_folder(spark: Any, folder: str, rng: random.Random, counts: Any) -> list[str]:
    """The queries that have other answers."""
    wrong = []
    way = rng.choice(WAYS)
    native.MANY_VALUES = 0 if way.get("native") else MANY_VALUES
    ours = load(spark, folder, **way)
    own = spark.read.schema(ours.schema).parquet(folder)
    leaves = leaves_of(own)
    for _ in range(QUERIES):
        said, ask = query(rng, ours, leaves)
        with settings(spark, ORACLE):
            expected = rows(ask(own)) if _fits(ask, own) else None
        if expected is None or isinstance(expected, Exception):
            counts["refused by Spark"] += 1
            continue
        found = rows(ask(ours))
        counts["queries"] += 1
        counts["rows"] += expected.total()
        if isinstance(found, Exception):
            counts["refused"] += 1
            wrong.append(f"{way} {said}: refused: {str(found)[:500]}")
        elif found != expected:
            counts["other rows"] += 1
            more, fewer = found - expected, expected - found
            wrong.append(
                f"{way} {said}: {more.total()} more, {fewer.total()} fewer: {[*more, *fewer][:2]}"
            )
        if rng.random() < 0.2:
            few = ours.limit(5).collect()
            every = rows(own)
            counts["limits"] += 1
            if not isinstance(every, Exception) and (
                len(few) != min(5, every.total()) or collections.Counter(map(repr, few)) - every
            ):
                counts["other rows"] += 1
                wrong.append(f"{way} limit(5): {few[:2]}")
    return wrong


def _fits(ask: Callable[[Any], Any], frame: Any) -> bool:
    """Whether Spark takes a query at all."""
    try:
        ask(frame)
        return True
    except Exception:  # noqa: BLE001 (types that do not fit)
        return False


def prove(folders: int, seed: int) -> tuple[str, collections.Counter[str]]:
    """Ask the queries: what was run, and what was counted. Prints what is wrong."""
    start, counts = time.perf_counter(), collections.Counter[str]()
    spark = session()
    for number in range(folders):
        rng = random.Random(f"fuzz {seed} {number}")
        case = rng.choice(("true", "false"))
        wanted = {ZONE: rng.choice(ZONES), ANSI: rng.choice(("true", "false")), CASE: case}
        with tempfile.TemporaryDirectory() as folder:
            write_folder(rng, Path(folder), case == "false")
            with settings(spark, wanted):
                wrong = ask_folder(spark, folder, rng, counts)
        for one in wrong:
            print(f"WRONG folder {number} {wanted} {one}", flush=True)
        if number % 10 == 9:
            print(f"{time.perf_counter() - start:.0f} s: {number + 1}: {dict(counts)}", flush=True)
    native.MANY_VALUES = MANY_VALUES
    spark.stop()
    return f"seed {seed}, {folders:,} folders", counts
