"""Proof that the releases of Spark give the answers of Spark's own reader: each runs in a virtual environment of its own.

    python proofs/spark_versions.py [3.5 4.0 4.1 4.2 4.3] [--folder DIR] [--wheels DIR]

pip installs pyspark of each release, with pandas and pyarrow, and a wheel of this checkout: the newest of --wheels, or one that is built. A Classic session then goes through
`load`, `read`, the format, SQL, `lookup`, `write` and streams. `--folder` keeps the environments for the next run. Exit code 1 if
an answer differs or fails.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RELEASES = ("3.5", "4.0", "4.1", "4.2", "4.3")
PACKAGES = ("pandas<3", "pyarrow>=21", "numpy", "zstandard")
ROWS = 20_000


def environment(folder: Path, release: str, wheel: Path) -> Path:
    """The Python of an environment with a release."""
    place = folder / release
    python = place / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(place)], check=True)
    pip = [str(python), "-m", "pip", "install", "-q"]
    subprocess.run([*pip, f"pyspark=={release}.*", *PACKAGES], check=True)
    subprocess.run([*pip, "--no-deps", "--force-reinstall", str(wheel)], check=True)
    return python


def built(folder: Path) -> Path:
    """A wheel of this checkout."""
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation"]
    subprocess.run([*command, "-w", str(folder / "wheels"), str(ROOT)], check=True)
    return newest(folder / "wheels")


def newest(folder: Path) -> Path:
    """The last wheel that was put into a folder."""
    return max(folder.glob("pageseek-*.whl"), key=os.path.getmtime)


# -- in a session of the release ------------------------------------------------------------------


def session() -> Any:
    """A local session."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]")
    for key, value in {
        "spark.ui.enabled": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",  # large results come from there
        "spark.sql.session.timeZone": "America/New_York",
        "spark.sql.shuffle.partitions": "2",
    }.items():
        builder = builder.config(key, value)
    made = builder.getOrCreate()
    made.sparkContext.setLogLevel("ERROR")
    return made


def write_files(folder: str) -> None:
    """Four files of many types, with page indexes."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    for i in range(4):
        k = np.arange(i * ROWS // 4, (i + 1) * ROWS // 4)
        inner = pa.StructArray.from_arrays([pa.array(k), pa.array(k % 5)], ["a", "b"])
        table = pa.table(
            {
                "k": k,
                "s": [None if n % 7 == 0 else f"row {n % 900}" for n in k],
                "x": np.where(k % 11 == 0, np.nan, k / 4),
                "d": pa.array(k % 1000, pa.int32()).cast(pa.decimal128(12, 2)),
                "day": pa.array(k % 900, pa.int32()).cast(pa.date32()),
                "t": pa.array(k * 10**6, pa.timestamp("us", "UTC")),
                "n": pa.array(k * 10**6, pa.timestamp("us")),
                "st": inner,
            }
        )
        pq.write_table(
            table, f"{folder}/{i}.parquet", row_group_size=2500, write_page_index=True, data_page_size=4096
        )  # fmt: skip


CONDITIONS = (
    "k = 4711",
    "k in (5, 6, 19999) and s is not null",
    "x = double('nan') and k < 300 or d = 12.0e0 and st.b = 2",
    "t < timestamp '1969-12-31 19:00:09' and n >= timestamp_ntz '1970-01-01'",
    "s like 'row 1_' and day > date '1970-06-01'",
    "upper(s) = 'ROW 7' and k between 100 and 9000",
    "day = '1970-01-20'",
    "k < 0",
)


def checks(spark: Any, folder: str) -> Iterator[tuple[str, Callable[[], bool]]]:
    """What has to be true, by name."""
    from pyspark.sql.functions import col

    import pageseek as ps
    from pageseek.spark import load, lookup, read, register, report, write

    major = int(spark.version.split(".")[0])
    spark.conf.set("spark.sql.parquet.filterPushdown", "false")  # with it, Spark loses rows for NaN
    own = spark.read.parquet(folder)

    def rows(frame: Any) -> list[str]:
        return sorted(map(str, frame.collect()))

    def same(ours: Any, theirs: Any) -> bool:
        return ours.schema.simpleString() == theirs.schema.simpleString() and rows(ours) == rows(
            theirs
        )

    yield "read, everything", lambda: same(read(spark, folder), own)
    for condition in CONDITIONS:
        wanted = own.where(condition).select("x", "s", "st")
        yield (
            f"read, {condition}",
            lambda c=condition, w=wanted: same(read(spark, folder, ["x", "s", "st"], c), w),
        )
    given = (col("k") > 19_990) | col("s").isin("row 3")
    yield (
        "read, a Column",
        lambda: same(read(spark, folder, ["d"], given), own.where(given).select("d")),
    )
    three = read(spark, folder, ["k", "st.a"], (ps.col("k") > 9) & (ps.col("st.b") == 1), limit=3)
    yield "read, an expression and a limit", lambda: three.count() == 3
    yield "read, no columns", lambda: read(spark, folder, [], "k < 10").count() == 10
    keys = spark.createDataFrame([(n, str(n)) for n in range(0, 30_000, 7)], "k long, more string")
    for limit in (1_000_000, 10):
        for how in ("inner", "left", "semi"):
            wanted = (
                own.join(keys, "k", "semi").select("k", "s")
                if how == "semi"
                else keys.join(own.select("k", "s"), "k", how)
            )
            yield (
                f"lookup, {how}, at most {limit} collected",
                lambda h=how, w=wanted, n=limit: same(
                    lookup(spark, folder, keys, "k", ["k", "s"], how=h, broadcast_limit=n), w
                ),
            )
    target = folder + "-written"
    yield "write", lambda: write(own, target, cluster_by="k", bloom=["k"]).rows == ROWS
    yield "write, read back", lambda: same(spark.read.parquet(target), own)
    if major < 4:
        return
    frame = load(spark, folder)
    for condition in CONDITIONS:
        yield (
            f"load, {condition}",
            lambda c=condition: same(
                frame.where(c).select("x", "st.a"), own.where(c).select("x", "st.a")
            ),
        )
    yield (
        "load, by tasks",
        lambda: same(
            load(spark, folder, local=False, native=False).where("k < 3000"), own.where("k < 3000")
        ),
    )
    yield (
        "load, counts",
        lambda: frame.count() == ROWS and frame.where("k >= 1000").count() == ROWS - 1000,
    )
    grouped = [f.groupBy("day").agg({"k": "max", "*": "count"}) for f in (frame, own)]
    yield "load, groups", lambda: same(*grouped)
    joined = [f.join(keys.where("more < '2'"), "k").select("k", "x") for f in (frame, own)]
    yield "load, a join", lambda: same(*joined)
    yield (
        "load, a report",
        lambda: (
            report(_ran(load(spark, folder, local=False, native=False).where("k = 5"))).to_dict()[
                "rows"
            ]["read"]
            > 0
        ),
    )
    register(spark)
    yield (
        "the format",
        lambda: same(
            spark.read.format("pageseek").load(folder).where("k > 19000"), own.where("k > 19000")
        ),
    )
    spark.sql(f"create temporary view v using pageseek options (path '{folder}')")
    yield (
        "a view",
        lambda: same(
            spark.sql("select s, k from v where d = 7"), own.where("d = 7").select("s", "k")
        ),
    )
    yield (
        "a path in SQL",
        lambda: same(
            spark.sql(f"select k from pageseek.`{folder}` where k = 8"),
            own.where("k = 8").select("k"),
        ),
    )

    def streamed() -> bool:
        stream = spark.readStream.format("pageseek").load(folder)
        query = (
            stream.writeStream.format("memory")
            .queryName("streamed")
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination(120)
        return same(spark.table("streamed"), own)

    yield "a stream", streamed


def _ran(frame: Any) -> Any:
    frame.collect()
    return frame


def job(folder: str) -> dict[str, str]:
    """What every check of one release gave: "" is right."""
    found: dict[str, str] = {}
    write_files(folder)
    spark = session()
    every = checks(spark, folder)
    while True:
        try:
            name, check = next(every)
        except StopIteration:
            break
        except Exception:  # noqa: BLE001 (the checks behind it cannot be made)
            found["the checks themselves"] = traceback.format_exc()[-1500:]
            break
        try:
            found[name] = "" if check() else "other rows or types"
        except Exception:  # noqa: BLE001 (shown)
            found[name] = traceback.format_exc()[-1500:]
    with contextlib.suppress(Exception):
        from pageseek.spark.table.shim import fits

        found[f"pyspark {spark.version}, Java table: {fits(spark)}"] = ""
    return found


def main(arguments: list[str]) -> int:
    """Run the releases, or one of them in this process."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("releases", nargs="*", default=list(RELEASES))
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--wheels", type=Path)
    parser.add_argument("--job", help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.job is not None:
        print("ANSWERS " + json.dumps(job(given.job)), flush=True)
        return 0
    failed = False
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.folder or Path(temporary)
        wheel = built(folder) if given.wheels is None else newest(given.wheels)
        for release in given.releases:
            python = environment(folder, release, wheel)
            with tempfile.TemporaryDirectory() as data:
                # outside of the checkout, whose package is not the wheel's
                command = [str(python), str(Path(__file__).resolve()), "--job", data + "/files"]
                os.mkdir(data + "/files")
                done = subprocess.run(
                    command, capture_output=True, text=True, cwd=data, check=False
                )
            said = [line for line in done.stdout.splitlines() if line.startswith("ANSWERS ")]
            found = (
                json.loads(said[0].removeprefix("ANSWERS "))
                if said
                else {"the session": done.stderr[-3000:]}
            )
            wrong = {name: why for name, why in found.items() if why}
            failed |= bool(wrong)
            print(
                f"{release}: {len(found) - len(wrong)} right, {len(wrong)} wrong; {list(found)[-1]}",
                flush=True,
            )
            for name, why in wrong.items():
                print(f"  {name}: {why}", flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
