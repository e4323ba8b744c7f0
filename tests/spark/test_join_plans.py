"""Joins with sides of 100 MB are planned as those of Spark's own reader, or better: what is broadcast is small."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pageseek.spark import load, read

pytestmark = pytest.mark.spark
ROWS, MB = 1_200_000, 1 << 20
BROADCAST = "BroadcastHashJoin"
Opened = Callable[[str], Any]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`large` has 100 MB, `other` 50 MB with the same keys, `small` a hundred rows."""
    made, rng, k = tmp_path_factory.mktemp("plans"), np.random.default_rng(1), np.arange(ROWS)
    numbers = {f"x{i}": rng.random(ROWS) for i in range(9)}
    texts = pa.array(rng.integers(1 << 50, 1 << 60, ROWS)).cast(pa.string())
    large = pa.table({"k": k, **numbers, "s": texts})
    how = {"row_group_size": ROWS // 10, "use_dictionary": False, "write_page_index": True}
    pq.write_table(large, made / "large.parquet", **how)
    other = pa.table({"k": rng.permutation(ROWS), "y": rng.random(ROWS), "w": texts})
    pq.write_table(other, made / "other.parquet", **how)
    pq.write_table(other.slice(0, 100), made / "small.parquet")
    assert (made / "large.parquet").stat().st_size > 95 * MB
    return made


def doors(spark: Any, folder: Path) -> dict[str, Opened]:
    """The ways to open a file of the folder, Spark's own reader first."""
    return {
        "native": lambda name: spark.read.parquet(f"{folder}/{name}.parquet"),
        "load": lambda name: load(spark, f"{folder}/{name}.parquet"),
        "tasks": lambda name: load(spark, f"{folder}/{name}.parquet", local=False, native=False),
        "read": lambda name: read(spark, f"{folder}/{name}.parquet"),
    }


def kind(frame: Any) -> str:
    """The join of a plan, and the side that is broadcast; after an action, of the plan that ran."""
    plan = frame._jdf.queryExecution().executedPlan().toString().partition("== Initial Plan ==")[0]
    joins = re.findall(r"(\w+Join)\b(?:.*?(BuildLeft|BuildRight))?", plan)
    assert len(joins) == 1, plan
    return " ".join(joins[0]).strip()


def joined(opened: Opened, own: Opened, left: str, right: str, how: str) -> Any:
    """Two files as one: "large where k < 1000" is a file and a filter. What is not `large` is read by Spark."""
    sides = []
    for said in (left, right):
        name, _, condition = said.partition(" where ")
        frame = (opened if name == "large" else own)(name)
        frame = frame.select("k", "x1", "x2", "s") if name == "large" else frame
        sides.append(frame.where(condition) if condition else frame)
    return sides[0].join(sides[1], "k", how)


@pytest.mark.parametrize(
    ("left", "right", "how"),
    [
        ("large", "other", "inner"),
        ("other", "large", "inner"),
        ("large", "small", "inner"),
        ("small", "large", "inner"),
        ("large", "small", "left"),
        ("small", "large", "left"),
        ("large", "small", "full"),
        ("large", "small", "anti"),
        ("small", "large", "semi"),
        ("large where x1 < 0.5", "other", "inner"),
        ("large where pmod(k, 100003) = 5", "other", "inner"),
        ("large where k < 1000", "small", "inner"),
        ("large where x1 < 0.5", "small", "inner"),
    ],
)
def test_a_side_of_100_mb_is_joined_as_that_of_sparks_own_reader(
    spark: Any, folder: Path, left: str, right: str, how: str
) -> None:
    opened = doors(spark, folder)
    own = opened.pop("native")
    wanted = kind(joined(own, own, left, right, how))
    for door, ours in opened.items():
        assert kind(joined(ours, own, left, right, how)) == wanted, door


@pytest.mark.parametrize("how", ["inner", "right"])
def test_a_side_of_which_a_filter_leaves_little_is_broadcast_at_once(
    spark: Any, folder: Path, how: str
) -> None:
    """Spark's reader learns only as it runs that little is left: its files are as large as before."""
    opened = doors(spark, folder)
    own = opened.pop("native")
    left, right = "large where k < 1000", "other"
    assert kind(joined(own, own, left, right, how)) == "SortMergeJoin"
    for door, ours in opened.items():
        made = joined(ours, own, left, right, how)
        assert kind(made) == f"{BROADCAST} BuildLeft", door
    assert made.count() == (1000 if how == "inner" else ROWS)


@pytest.mark.parametrize("condition", ["true", "k < 100000"])
def test_what_compresses_well_is_not_broadcast_by_its_bytes_in_the_file(
    spark: Any, tmp_path: Path, condition: str
) -> None:
    """A tenth of these rows has 2 MB in the file, and 200 MB in the memory of a join."""
    rng, n = np.random.default_rng(2), 1_000_000
    texts = pa.array([f"{i:04}" * 500 for i in range(200)])
    few = pa.DictionaryArray.from_arrays(pa.array(rng.integers(0, 200, n), pa.int32()), texts)
    table = pa.table({"k": np.arange(n), "text": few, "x": rng.random(n), "y": rng.random(n)})
    path = tmp_path / "texts.parquet"
    pq.write_table(
        table, path, row_group_size=n // 10, use_dictionary=["text"], write_page_index=True, store_schema=False,
    )  # fmt: skip
    assert path.stat().st_size < 25 * MB
    others = spark.range(0, 1 << 40).withColumnRenamed("id", "k")
    native = spark.read.parquet(str(path)).where(condition).select("k", "text")
    assert kind(others.join(native, "k")) == "SortMergeJoin"
    for ours in (
        load(spark, str(path)).where(condition).select("k", "text"),
        load(spark, str(path), local=False, native=False).where(condition).select("k", "text"),
        read(spark, str(path), ["k", "text"], condition),
    ):
        assert kind(others.join(ours, "k")) == "SortMergeJoin"
    assert kind(others.join(load(spark, str(path)).where(condition).select("k"), "k")).startswith(
        BROADCAST if condition != "true" else "SortMergeJoin"
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("large", "other"),
        ("large where x1 < 0.5", "other"),
        ("large where k < 1000", "other"),
        ("small", "large"),
    ],
)
def test_joins_of_100_mb_run_and_give_sparks_rows(
    spark: Any, folder: Path, left: str, right: str
) -> None:
    opened = doors(spark, folder)
    own, wanted = opened["native"], None
    for door, ours in opened.items():
        made = joined(ours, own, left, right, "inner").selectExpr(
            "count(*)", "bit_xor(xxhash64(*))"
        )
        found = made.collect()[0][:]
        ran = kind(made).partition(" ")[0]
        wanted = wanted or (found, ran)
        assert (found, ran) == wanted, door
