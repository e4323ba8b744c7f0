"""Run by job.py in a Connect session: queries through the format, compared with Spark's own reader."""

from __future__ import annotations

import datetime as dt
import json
import os
import re
import warnings
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pageseek.spark import load, read, register
from pageseek.spark.sources.asked import Asked
from pageseek.spark.sources.opening import opened

T = dt.datetime(1970, 1, 1, 0, 0, 15, tzinfo=dt.UTC)
CONDITIONS = (
    "k in (4711, 4712, 30000) and s is not null and st.a < 4712",
    "k between 100 and 130 and (s = 'row 110' or k < 103) and not k = 101",
    "s like 'row 47%' and d in (470.10, 47.00) and d is not null",
    "t >= timestamp '1970-01-01 01:00:00' and n < timestamp_ntz '1970-01-01 01:00:10'",
    "day < date '1970-01-03' and x = double('nan')",
    "f = 0.1f and raw = X'0b' and b and list[0] < 3000",
    "day < date '+15364-12-15' and k < 5",
    "k in (5, 6) and not t > timestamp '+15364-12-15 05:00:00Z'",
    "k = -1",
)


def write(spark: Any, directory: str) -> str:
    """Files with values of many types."""
    made = directory + "/many"
    spark.range(0, 20_000, 1, 2).selectExpr(
        "id k", "if(id % 7 = 3, null, 'row ' || id) s", "cast(id / 10 as decimal(9,2)) d",
        "timestamp_micros(id * 1000000) t", "cast(timestamp_micros(id * 1000000) as timestamp_ntz) n",
        "date_add(date '1970-01-01', cast(id % 900 as int)) day", "id % 3 = 0 b",
        "if(id % 11 = 0, double('nan'), id / 4) x", "cast(id % 10 / 10 as float) f",
        "cast(chr(cast(id % 256 as int)) as binary) raw", "named_struct('a', id, 'b', array(id, null)) st",
        "array(id) list", "map('k', id) m",
    ).write.parquet(made)  # fmt: skip
    return made


def compared(spark: Any, directory: str) -> dict[str, Any]:
    """The conditions under which rows differ, and how the source was read."""
    folder = write(spark, directory)
    register(spark)
    own, ours = spark.read.parquet(folder), load(spark, folder)
    view = f"create temporary view far using pageseek options (path '{folder}')"
    spark.sql(view).collect()
    wrong = []
    for i, condition in enumerate(CONDITIONS):
        expected = rows(own.where(condition))
        frames = (ours, spark.read.format("pageseek").load(folder), spark.table("far"))
        if rows(frames[i % 3].where(condition)) != expected:
            wrong.append(condition)
    found: dict[str, Any] = {"wrong": wrong, "rows": len(rows(ours.where(CONDITIONS[0])))}
    found["schema"] = ours.schema == own.schema
    narrow = spark.read.format("pageseek").schema("s string, K long, none int").load(folder)
    found["narrow"] = [list(row) for row in narrow.where("k = 8").collect()]
    asked = load(spark, folder, columns=["t"], filter="t = timestamp '1970-01-01 00:00:09Z'")
    found["option"] = [len(asked.columns), asked.count()]
    found["filters"] = of_columns(spark, folder)
    found["pushed"] = pushed(ours.where("k = 4711 and s = 'row 4711'"))
    found["error"] = error_of(spark, folder + "/none")
    found["shared"] = shared(ours, spark.table("far"))
    narrow = ours.where("k between 5 and 7").selectExpr("st.a")
    found["columns"] = [scanned(narrow), sorted(row[0] for row in narrow.collect())]
    found["streamed"] = streamed(spark, folder)
    found["refused"] = refused(spark, folder)
    found["odd"] = odd(spark, directory)
    found["alike"] = alike(spark, directory)
    found["many"] = many(spark, directory)
    return json.loads(json.dumps(found))


def many(spark: Any, directory: str) -> list[int]:
    """The rows of so many files that several tasks are worth it, and the number of tasks."""
    made = f"{directory}/_many"
    os.makedirs(made)
    for i in range(80):
        pq.write_table(pa.table({"k": [i]}), f"{made}/{i}.parquet")
    frame = load(spark, made)
    at = frame.selectExpr("spark_partition_id() as at").distinct().count()
    return [frame.where("k >= 0").count(), int(at > 1)]


def rows(frame: Any) -> list[str]:
    return sorted(map(str, frame.collect()))


def of_columns(spark: Any, folder: str) -> list[bool]:
    """Whether filters that are Columns, or SQL of which a part is known, give Spark's rows, and rule out rows."""
    from pyspark.sql.functions import col, expr, lit, upper

    day = dt.date(1970, 1, 3)
    own, found = spark.read.parquet(folder), []
    for given, kept in (
        ((col("k") == 4711) | col("s").isin("row 12", "row 13"), 3),
        (~(col("k") >= lit(100)) & (upper(col("s")) != "ROW 4"), 100),
        ((col("day") < day) & col("s").startswith("row 1") & (col("st.a") < lit(10.5)), 11),
        ((col("d") == Decimal("1.50")) & col("t").isNotNull() & (col("t") == T), 1),
        (expr("x = '2.25' and k < 90"), 90),
        ("upper(s) = 'ROW 5' and k < 9 or x = '2.25'", 20_000),
        ("upper(s) = 'ROW 5' and k < 9", 9),
    ):
        wanted = rows(own.where(given).select("K", "x"))
        scan = Asked.of(spark, opened(spark, folder), ["k"], given, pushes=False).scan
        few = scan.count_rows() <= kept
        for ours in (read, load):
            found.append(rows(ours(spark, folder, columns=["K", "x"], filter=given)) == wanted)
        found.append(bool(wanted) and few)
    return found


def pushed(frame: Any) -> bool:
    """Whether Spark leaves no filter behind the scan."""
    return "Filter " not in frame._explain_string(mode="simple")


def shared(ours: Any, view: Any) -> list[int]:
    """Rows of queries of one DataFrame and of one view, each with filters of its own or with none."""
    made = []
    for one in (ours, view):
        small, large = one.where("k < 5"), one.where("k >= 19000")
        counts = [small.count(), one.count(), large.count(), one.where("k % 2 = 0").count()]
        joined = small.select("k").join(one.where("k between 3 and 9").select("k", "s"), "k")
        made += [*counts, small.union(large).count(), joined.count()]
    return made


def scanned(frame: Any) -> str:
    """The columns that Spark asks of the scan."""
    said = frame._explain_string(mode="simple").split("BatchScan ")[1].split("]")[0]
    return re.sub(r"#\d+L?", "#", said)


def streamed(spark: Any, folder: str) -> int:
    """The rows of a stream."""
    source = spark.readStream.format("pageseek").load(folder).select("k", "s")
    sink = source.writeStream.format("parquet").option("checkpointLocation", folder + "-state")
    sink.trigger(availableNow=True).start(folder + "-copy").awaitTermination(120)
    return spark.read.parquet(folder + "-copy").distinct().count()


def refused(spark: Any, folder: str) -> list[Any]:
    """Rows in a session whose server takes no artifacts, and what is said about that."""
    import grpc

    other = spark.newSession()

    def refuse(*_: Any) -> None:
        raise grpc.RpcError("no artifacts")

    other.addArtifacts = refuse
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        made = load(other, folder)
    about = [str(one.message) for one in said if "artifacts" in str(one.message)]
    return [
        len(about),
        made.where("k < 5").count(),
        made.count(),
        load(other, folder, filter="k < 5").count(),
    ]


def odd(spark: Any, directory: str) -> list[Any]:
    """What is read of Variants, and of no column; the error of intervals of months."""
    made = directory + "/odd"
    spark.sql(
        "select id, parse_json('{\"a\": ' || id || '}') v, make_ym_interval(1, cast(id as int)) m from range(5)"
    ).write.parquet(made)
    variants = load(spark, made, columns=["id", "v"]).where("id > 2")
    found = variants.selectExpr("id", "variant_get(v, '$.a', 'int') a").collect()
    none = load(spark, made, columns=[])
    kept = load(spark, made, columns=[], filter="id > 1")
    told = ""
    try:
        load(spark, made).collect()
    except Exception as error:
        told = str(error)
    said = "'m': values of the type interval year to month are not read here" in told
    whole = read(spark, made).where("m = interval '1-3' year to month").count()
    return [sorted(map(list, found)), none.columns, kept.columns, kept.count(), said, whole]


def alike(spark: Any, directory: str) -> list[Any]:
    """What is read of columns and fields whose names differ in case alone."""
    made = f"{directory}/_alike"
    os.makedirs(made)
    pq.write_table(
        pa.table({"X": [2], "x": [3], "a": [{"X": 4, "x": 5, "y": 6}]}), f"{made}/0.parquet"
    )
    frames = [load(spark, made), load(spark, made).where("a.y = 6").selectExpr("a.y")]
    frames += [
        spark.read.format("pageseek").schema(s).load(made) for s in ("x long", "a struct<x: long>")
    ]
    os.makedirs(f"{made}_days/day=5/k=b")
    pq.write_table(pa.table({"id": [1]}), f"{made}_days/day=5/k=b/0.parquet")
    reader = spark.read.format("pageseek").schema("k string, none int, ID long")
    frames.append(reader.load(f"{made}_days").where("day = 5"))
    return [list(map(str, frame.collect()[0])) for frame in frames]


def error_of(spark: Any, path: str) -> bool:
    """Whether the error of a path that does not exist says so."""
    try:
        load(spark, path).count()
    except Exception as error:
        return f"{path}: no such file" in str(error)
    return False
