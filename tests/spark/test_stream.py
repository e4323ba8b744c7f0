"""Streams of folders that grow: every row once, over restarts and kills."""

from __future__ import annotations

import io
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pageseek.base.errors import FileChangedError, UnsupportedError
from pageseek.spark import load, read, register
from pageseek.spark.datasource.growing import Growing
from pageseek.spark.datasource.planning import Planning
from pageseek.spark.session.settings import ToldSession
from support.moto_s3 import moto

JOB = Path(__file__).with_name("stream_job.py")
DAY = 86_400
ROWS = 100


def add(folder: Path, number: int, place: str = "") -> Path:
    """A file that appears whole."""
    k = range(number * ROWS, (number + 1) * ROWS)
    hidden, name = folder / f"_{number}", folder / place / f"{number:04}.parquet"
    name.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"k": k, "x": [n / 2 for n in k]}), hidden)
    hidden.rename(name)
    return name


def names(growing: Growing, start: dict[str, str], end: dict[str, str]) -> list[str]:
    return [source.path for source in growing.between(start, end)]


@pytest.mark.parametrize("seed", range(8))
def test_each_file_is_in_one_batch_over_restarts_in_any_order_of_times(
    tmp_path: Path, seed: int
) -> None:
    rng = random.Random(seed)
    growing, start, taken, there = Growing(str(tmp_path)), {}, [], []
    now = 1_700_000_000
    for i in range(60):
        now += rng.choice((0, 60, DAY))
        for n in range(rng.randrange(3)):  # up to six days late, as files that are moved are
            path = tmp_path / f"{rng.random()}-{i}-{n}.parquet"
            path.touch()
            late = now - rng.choice((0, 0, 1, DAY, 6 * DAY))
            os.utime(path, (late, late))
            there.append(str(path))
        if rng.random() < 0.3:  # a restart, which may have another age, long enough for all
            growing = Growing(str(tmp_path), age=rng.choice(("6d", "7d", "12d", "9w")))
        end = growing.latest(start, rng.choice((None, 1, 2)))
        if rng.random() < 0.3:  # the batch is planned again after a restart
            growing = Growing(str(tmp_path))
        taken += names(growing, start, end)
        start = end
    taken += names(growing, start, growing.latest(start, None))
    assert sorted(taken) == sorted(there)
    assert len(start) <= 12


@pytest.mark.parametrize(("before", "after"), [("7d", "1d"), ("1d", "7d"), ("3h", "2h")])
def test_another_age_after_a_restart_repeats_and_loses_no_file(
    tmp_path: Path, before: str, after: str
) -> None:
    def at(seconds: int) -> str:
        path = tmp_path / f"{seconds}.parquet"
        path.touch()
        os.utime(path, (seconds, seconds))
        return str(path)

    now = 1_790_000_000
    first = [at(now - 30 * DAY), at(now - 2 * DAY), at(now)]
    end = Growing(str(tmp_path), age=before).latest({}, None)
    assert sorted(names(Growing(str(tmp_path), age=before), {}, end)) == first
    growing, start, taken = Growing(str(tmp_path), age=after), end, []
    assert growing.latest(start, None) == start
    made = []
    for i in range(1, 40):  # each an hour later
        made.append(at(now + i * 3_600))
        end = growing.latest(start, None)
        taken += names(growing, start, end)
        start = end
    assert taken == made


def test_files_that_were_forgotten_do_not_come_again_where_spark_asks_without_an_offset(
    tmp_path: Path,
) -> None:
    growing, start = Growing(str(tmp_path), age="5d"), {}
    for day in range(15):  # the first three groups of five days are full
        path = tmp_path / f"{day}.parquet"
        path.touch()
        os.utime(path, (day * DAY, day * DAY))
        start = growing.latest(start, None)
    end = Growing(str(tmp_path), age="3d").latest({}, None)  # its second group has days 3, 4 and 5
    for day in (0, 13):
        (tmp_path / f"{day}.parquet").unlink()
    assert names(Growing(str(tmp_path), age="3d"), start, end) == []


def test_an_offset_that_was_asked_for_without_a_start_does_not_go_back(tmp_path: Path) -> None:
    def file(seconds: int) -> None:
        path = tmp_path / f"{seconds}.parquet"
        path.touch()
        os.utime(path, (seconds, seconds))

    start: dict[str, str] = {}
    growing = Growing(str(tmp_path), age="10s")
    for seconds in (1_000, 1_100):
        file(seconds)
        start = growing.latest(start, None)
    file(1_200)
    restarted = Growing(str(tmp_path), age="1000s")
    end = restarted.latest({}, None)
    assert names(restarted, start, end) == [str(tmp_path / "1200.parquet")]
    after = restarted.joined(start, end)
    assert int(after["since"]) >= int(start["since"]) > int(end["since"])
    file(1_050)  # too late for the age that there was
    assert restarted.latest(after, None) == after


def test_an_offset_of_a_store_names_the_files_that_are_there(tmp_path: Path) -> None:
    store = fsspec.filesystem("memory")
    source = (store, f"{tmp_path}/in")
    start: dict[str, str] = {}
    for i in range(4):
        store.pipe(f"{tmp_path}/in/{i}.parquet", b"x")
        end = Growing(source, age="1s").latest(start, None)
        assert [s.path.rpartition("/")[2] for s in Growing(source).between(start, end)] == [
            f"{i}.parquet"
        ]
        assert Growing(source).latest(end, None) == end
        store.rm(f"{tmp_path}/in/0.parquet") if i == 2 else None
        start = end
    assert list(start) == ["untimed"]
    assert len(start["untimed"]) == 32  # three files of eight bytes, in base 64


def test_a_folder_of_several_that_is_empty_hides_no_files_of_the_others(tmp_path: Path) -> None:
    first, second = (tmp_path / name for name in ("a", "b"))
    for folder in (first, second):
        folder.mkdir()
        (folder / "1.parquet").touch()
    growing = Growing([str(first), str(second)])
    start = growing.latest({}, None)
    (first / "1.parquet").unlink()
    (second / "2.parquet").touch()
    end = growing.latest(start, None)
    assert names(growing, start, end) == [str(second / "2.parquet")]


def test_files_whose_names_a_stream_cannot_tell_apart_are_refused() -> None:
    pytest.importorskip("obstore")
    with pytest.raises(UnsupportedError, match=r"http://x/a.*called so.*queries"):
        Growing(["http://x/a?id=1", "http://x/a?id=2"]).listed()
    assert len(Growing(["http://x/a?id=1", "http://x/b?id=1"]).listed()) == 2


def test_the_offset_of_an_earlier_version_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").touch()
    with pytest.raises(UnsupportedError, match=r"earlier version.*new one"):
        Growing(str(tmp_path)).latest({"2959": "AAAAAAAAAAA="}, None)


def test_an_offset_stays_the_same_where_nothing_is_new_and_forgets_old_files(
    tmp_path: Path,
) -> None:
    growing, start = Growing(str(tmp_path), age="1d"), {}
    for day in range(30):
        path = tmp_path / f"{day}.parquet"
        path.touch()
        os.utime(path, (day * DAY, day * DAY))
        end = growing.latest(start, None)
        assert names(growing, start, end) == [str(path)]
        assert growing.latest(end, None) == end
        start = end
    assert sum(len(marks) for key, marks in start.items() if key != "since") < 4 * 12
    old = tmp_path / "old.parquet"
    old.touch()
    os.utime(old, (DAY, DAY))
    assert growing.latest(start, None) == start  # older than maxFileAge
    # where Spark asks without an offset, old files do not come again
    assert names(growing, start, Growing(str(tmp_path), age="1d").latest({}, None)) == []


def test_a_file_that_is_gone_before_its_batch_is_read_is_named_as_a_change(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    path.touch()
    end = Growing(str(tmp_path)).latest({}, None)
    path.unlink()
    with pytest.raises(FileChangedError, match="1 of 1 files of this batch"):
        Growing(str(tmp_path)).between({}, end)


@pytest.mark.parametrize("age", ["0d", "soon", "7"])
def test_options_are_checked(age: str) -> None:
    with pytest.raises(UnsupportedError, match="maxFileAge"):
        Growing("/x", age=age)
    with pytest.raises(UnsupportedError, match="maxFilesPerTrigger"):
        Growing("/x", most="0")


def test_a_stream_of_a_table_with_a_log_is_refused(tmp_path: Path) -> None:
    deltalake = pytest.importorskip("deltalake")
    table = str(tmp_path / "delta")
    for values in ([1], [2]):
        deltalake.write_deltalake(table, pa.table({"a": values}), mode="overwrite")
    session = ToldSession("4.3.0", {})

    def listed(**options: str) -> Any:
        return Planning.of(session, options, pushes=False).growing().listed()

    with pytest.raises(UnsupportedError, match=r"delta: this is a table of Delta Lake.*own stream"):
        listed(path=table)
    assert len(listed(path=table, table="false")) == 2
    assert listed(path=str(tmp_path / "none")) == {}


@pytest.mark.spark
@pytest.mark.parametrize(("name", "value"), [("maxFilesPerTrigger", "0"), ("maxFileAge", "soon")])
def test_wrong_options_are_found_before_a_stream_starts(
    spark: Any, tmp_path: Path, name: str, value: str
) -> None:
    register(spark)
    pq.write_table(pa.table({"k": [1]}), tmp_path / "a.parquet")
    with pytest.raises(Exception, match=f"option '{name}' cannot be '{value}'"):
        spark.readStream.format("pageseek").option(name, value).load(str(tmp_path))


@pytest.mark.spark
def test_a_batch_of_many_files_is_read_by_several_tasks(spark: Any, tmp_path: Path) -> None:
    register(spark)
    (tmp_path / "in").mkdir()
    for i in range(80):
        pq.write_table(pa.table({"k": [i]}), tmp_path / "in" / f"{i}.parquet")
    stream = spark.readStream.format("pageseek").load(str(tmp_path / "in"))
    writer = stream.writeStream.format("parquet").trigger(availableNow=True)
    writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
    writer.start(str(tmp_path / "out")).awaitTermination()
    assert spark.read.parquet(str(tmp_path / "out")).count() == 80
    assert len(list((tmp_path / "out").glob("*.parquet"))) > 1


@pytest.mark.spark
def test_a_stream_reads_what_its_options_leave_and_only_new_files(
    spark: Any, tmp_path: Path
) -> None:
    register(spark)
    folder, seen = tmp_path / "in", []
    folder.mkdir()
    for i in range(2):
        add(folder, i, f"p={i}")
    reader = spark.readStream.format("pageseek").option("filter", "k >= 50 and p < 5")
    frame = reader.option("columns", '["p", "k"]').load(str(folder))
    assert frame.columns == ["p", "k"]

    def run() -> list[tuple[int, int]]:
        """The rows that a run of the stream gives."""
        before = len(seen)
        query = (
            frame.where("k % 10 = 0")
            .writeStream.foreachBatch(lambda batch, number: seen.extend(batch.collect()))
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        return sorted(map(tuple, seen[before:]))

    assert run() == [(k // ROWS, k) for k in range(50, 200, 10)]
    add(folder, 3, "p=3")
    add(folder, 9, "p=9")
    assert run() == [(3, k) for k in range(300, 400, 10)]


def test_an_empty_folder_of_several_is_passed_over_where_a_schema_is_given(tmp_path: Path) -> None:
    from pyspark.sql.types import LongType, StructField, StructType

    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    pq.write_table(pa.table({"k": [1]}), tmp_path / "b" / "1.parquet")
    schema = StructType([StructField("k", LongType())])

    def planned(*names: str, given: Any = schema) -> list[int]:
        paths = json.dumps([str(tmp_path / name) for name in names])
        planning = Planning.of(ToldSession("4.3.0", {}), {"paths": paths}, False, None, given)
        assert planning.schema().names == ["k"]
        return planning.scan(schema).to_table()["k"].to_pylist()

    assert planned("a", "b") == [1]
    assert planned("a", "a") == []
    with pytest.raises(FileNotFoundError, match=r"no \.parquet file"):
        planned("a", "b", given=None)


@pytest.mark.spark
def test_a_stream_may_begin_with_nothing_in_a_store_and_a_query_may_not(
    spark: Any, tmp_path: Path
) -> None:
    register(spark)
    with moto() as bucket:
        options = {"storage_options": json.dumps(bucket.options)}
        query = spark.read.format("pageseek").options(**options).schema("k long")
        query = query.load("s3://bucket/in/")
        with pytest.raises(Exception, match=r"s3://bucket/in/: no \.parquet file"):
            query.count()
        found = []
        made = io.BytesIO()
        pq.write_table(pa.table({"k": [7]}), made)
        bucket.put(made.getvalue(), "full/p=1/a.parquet")
        both = json.dumps(["s3://bucket/full/", "s3://bucket/in/"])
        frame = spark.readStream.format("pageseek").options(**options, paths=both)
        assert frame.schema("k long").load().columns == ["k", "p"]
        for i in range(2):
            frame = spark.readStream.format("pageseek").options(**options).schema("k long")
            writer = frame.load("s3://bucket/in/").writeStream.trigger(availableNow=True)
            writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
            writer.foreachBatch(
                lambda batch, _: found.extend(row.k for row in batch.collect())
            ).start().awaitTermination()
            assert found == [7] * i
            bucket.put(made.getvalue(), "in/a.parquet")


@pytest.mark.spark
def test_what_a_stream_of_spark_has_written_is_read_as_spark_reads_it(
    spark: Any, tmp_path: Path
) -> None:
    register(spark)
    first, sink, last = (tmp_path / name for name in ("in", "sink 1%", "out"))
    first.mkdir()
    spark.conf.set("spark.sql.streaming.fileSink.log.compactInterval", "3")

    def run(frame: Any, name: str, output: Path) -> None:
        writer = frame.writeStream.format("parquet").partitionBy("p")
        writer = writer.option("checkpointLocation", str(tmp_path / name))
        writer.trigger(availableNow=True).start(str(output)).awaitTermination()

    try:
        for i in range(5):
            names = pa.array([f"a/{i % 2} %", None])
            pq.write_table(pa.table({"k": [i, i + 10], "p": names}), first / f"{i}.parquet")
            run(spark.readStream.schema("k long, p string").parquet(str(first)), "c1", sink)
            stray = next(sink.rglob("part-*.parquet"))
            stray.with_name(f"part-stray{i}.parquet").write_bytes(stray.read_bytes())
            wanted = sorted(map(str, spark.read.parquet(str(sink)).collect()))
            for frame in (
                load(spark, str(sink)),
                read(spark, str(sink)),
                spark.read.format("pageseek").load(str(sink)),
            ):
                assert sorted(map(str, frame.collect())) == wanted
            run(spark.readStream.format("pageseek").load(str(sink)), "c2", last)
            assert sorted(map(str, load(spark, str(last)).collect())) == wanted
        assert (sink / "_spark_metadata" / "2.compact").is_file()
    finally:
        spark.conf.unset("spark.sql.streaming.fileSink.log.compactInterval")


@pytest.mark.spark
@pytest.mark.slow
def test_a_driver_that_is_killed_goes_on_where_it_was(spark: Any, tmp_path: Path) -> None:
    folder, output = tmp_path / "in", tmp_path / "out"
    folder.mkdir()
    paths = [str(folder), str(tmp_path / "checkpoint"), str(output)]
    rng, made = random.Random(7), 0

    def begin(until: str) -> subprocess.Popen[bytes]:
        environment = {**os.environ, "PYSPARK_PYTHON": sys.executable}
        command = [sys.executable, str(JOB), *paths, until]
        with open(tmp_path / "log", "ab") as log:
            return subprocess.Popen(
                command, env=environment, stdout=log, stderr=log, start_new_session=True
            )

    def batches() -> int:
        done = tmp_path / "checkpoint" / "commits"
        return len(list(done.glob("[0-9]*"))) if done.is_dir() else 0

    for _ in range(2):
        running, before, until = begin("forever"), batches(), time.monotonic() + 120
        while batches() < before + 3 and time.monotonic() < until:
            add(folder, made, f"p={made % 2}")
            made += 1
            time.sleep(0.5)
        time.sleep(rng.random())
        os.killpg(running.pid, signal.SIGKILL)
        running.wait()
        assert batches() >= before + 3, (tmp_path / "log").read_text()[-3000:]
    assert begin("once").wait(240) == 0, (tmp_path / "log").read_text()[-3000:]
    found = spark.read.parquet(str(output)).select("k", "p").collect()
    assert sorted(map(tuple, found)) == [(k, k // ROWS % 2) for k in range(made * ROWS)]
