"""The parts of pageseek.spark that need no Spark: types, batches, packing, the task function."""

from __future__ import annotations

import datetime as dt
import os
import pickle
import socket
import subprocess
import sys
import zlib
from decimal import Decimal
from pathlib import Path
from typing import Any

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek.format.columns import output
from pageseek.format.types import Options
from pageseek.spark import reader
from pageseek.spark.columns.types import to_wire, wire_schema, wire_type
from pageseek.spark.session.settings import ToldSession
from pageseek.spark.sources import opening
from pageseek.spark.tasks.sizing import (
    BYTES_PER_SECOND,
    FILE_SECONDS,
    TASKS_PER_CORE,
    UNKNOWN_PARALLELISM,
    parallelism_of,
    task_count,
    work,
)
from pageseek.spark.tasks.task import acknowledge_at_once, make_task, pack, run
from support.opened import open_metadata

CONVERSIONS = [
    (pa.uint8(), pa.int16(), [0, 255], [0, 255]),
    (pa.uint16(), pa.int32(), [0, 65535], [0, 65535]),
    (pa.uint32(), pa.int64(), [0, 2**32 - 1], [0, 2**32 - 1]),
    (pa.uint64(), pa.decimal128(20, 0), [0, 2**64 - 1], [Decimal(0), Decimal(2**64 - 1)]),
    (pa.float16(), pa.float32(), [1.5, -0.0], [1.5, -0.0]),
    (pa.binary(2), pa.binary(), [b"ab", b"cd"], [b"ab", b"cd"]),
    (pa.string_view(), pa.large_string(), ["a", "é" * 20], ["a", "é" * 20]),
    (pa.binary_view(), pa.large_binary(), [b"a", b"b" * 20], [b"a", b"b" * 20]),
    (pa.large_string(), pa.large_string(), ["a", "b"], ["a", "b"]),
    (pa.decimal256(10, 2), pa.decimal128(10, 2), [Decimal("1.25")] * 2, [Decimal("1.25")] * 2),
    (pa.date64(), pa.date32(), [dt.date(1969, 12, 31)] * 2, [dt.date(1969, 12, 31)] * 2),
    (pa.time32("ms"), pa.time64("ns"), [1, 86_399_999], [1_000_000, 86_399_999_000_000]),
    (pa.time64("us"), pa.time64("ns"), [1, 2], [1000, 2000]),
    (pa.timestamp("ms"), pa.timestamp("us"), [-1, 1], [-1000, 1000]),
    (pa.timestamp("ns"), pa.timestamp("us"), [-1, 1999], [-1, 1]),
    (pa.timestamp("ns", "Europe/Paris"), pa.timestamp("us", "UTC"), [-1001, -1000], [-2, -1]),
    (pa.timestamp("us", "+03:00"), pa.timestamp("us", "UTC"), [-1, 1], [-1, 1]),
    (pa.duration("ns"), pa.duration("us"), [-1, 1999], [-1, 1]),
    (pa.duration("ms"), pa.duration("us"), [-1, 1], [-1000, 1000]),
    (pa.null(), pa.null(), [None, None], [None, None]),
]


def plain(array: pa.Array) -> list[object]:
    temporal = pa.types.is_temporal(array.type) and not pa.types.is_date(array.type)
    return (array.view(pa.int64()) if temporal else array).to_pylist()


@pytest.mark.parametrize(
    ("kind", "wire", "given", "wanted"), CONVERSIONS, ids=lambda v: str(v)[:24]
)
def test_columns_become_what_the_jvm_takes(kind, wire, given, wanted):
    assert wire_type(kind) == wire
    array = pa.array([*given, None, *given], kind).slice(1)  # an offset, and a null
    batch = pa.RecordBatch.from_arrays([array], ["c"])
    out = to_wire(batch, pa.schema([pa.field("c", wire)]), "f")
    out.validate(full=True)
    assert plain(out.column(0)) == [wanted[1], None, *wanted]


def test_dictionaries_and_extensions_give_their_values():
    words = pa.array(["a", "b", "a", None]).dictionary_encode()
    raw = pa.array([b"x" * 16] * 4, pa.binary(16))
    ids = pa.ExtensionArray.from_storage(pa.uuid(), raw)
    wire = pa.schema({"w": wire_type(words.type), "u": wire_type(ids.type)})
    assert wire.types == [pa.string(), pa.binary()]
    out = to_wire(pa.RecordBatch.from_arrays([words, ids], ["w", "u"]), wire, "f")
    assert out.to_pydict() == {"w": ["a", "b", "a", None], "u": [b"x" * 16] * 4}


@pytest.mark.parametrize("large", [False, True])
def test_bytes_become_text_unchecked(large):
    kind, wire = (pa.large_binary(), pa.large_string()) if large else (pa.binary(), pa.string())
    given = pa.array([b"a", b"\xff\xc3", None], kind)
    out = to_wire(pa.RecordBatch.from_arrays([given], ["e"]), pa.schema({"e": wire}), "f")
    assert out.column(0).type == wire
    assert out.column(0).cast(kind).equals(given)


@pytest.mark.parametrize("kept", [True, False])
def test_nanoseconds_of_a_day_are_kept_where_spark_has_them(kept, monkeypatch):
    monkeypatch.setattr("pageseek.spark.columns.types.has_nanos", lambda: kept)
    times = pa.array([1, 1999, None], pa.time64("ns"))
    inside = pa.StructArray.from_arrays([times], ["t"])
    batch = pa.RecordBatch.from_arrays([times, inside], ["t", "s"])
    out = to_wire(batch, batch.schema, "f")
    wanted = [1, 1999, None] if kept else [0, 1000, None]
    assert plain(out.column("t")) == plain(out.column("s").field("t")) == wanted


def test_instants_before_the_earliest_nanoseconds_stay_right():
    edge = pa.array([-(2**63), 2**63 - 1], pa.timestamp("ns"))
    batch = pa.RecordBatch.from_arrays([edge], ["t"])
    out = to_wire(batch, pa.schema({"t": pa.timestamp("us")}), "f")
    assert plain(out.column(0)) == [-(2**63) // 1000, (2**63 - 1) // 1000]


def test_a_value_beyond_sparks_range_names_file_and_column():
    batch = pa.RecordBatch.from_arrays([pa.array([2**62], pa.timestamp("ms"))], ["when"])
    with pytest.raises(
        ps.UnsupportedError, match=r"x\.parquet: column 'when': a value of timestamp"
    ):
        to_wire(batch, pa.schema({"when": pa.timestamp("us")}), "x.parquet")


def test_a_decimal_beyond_38_digits_names_file_column_and_remedy(tmp_path: Path):
    path = tmp_path / "wide.parquet"
    pq.write_table(pa.table({"n": [1], "wide": pa.array([1], pa.decimal256(39, 0))}), path)
    file = open_metadata(path)
    with pytest.raises(
        ps.UnsupportedError, match=r"wide\.parquet: column 'wide'.*38 digits.*name the columns"
    ):
        wire_schema(output(file, None, Options())[0], str(path))


def test_nested_batches_and_their_slices_are_converted_below() -> None:
    when = dt.datetime(2024, 5, 6, 7, 8, 9, 123456)
    kind = pa.struct(
        [
            ("u", pa.list_(pa.uint8())),
            ("t", pa.timestamp("ns")),
            ("f", pa.list_(pa.float16(), 2)),
            ("m", pa.map_(pa.string(), pa.dictionary(pa.int32(), pa.string()))),
            ("l", pa.large_list(pa.struct([("d", pa.date64())]))),
        ]
    )
    one = {
        "u": [1, None],
        "t": when,
        "f": [0.5, None],
        "m": [("k", "v"), ("n", None)],
        "l": [{"d": None}, None],
    }
    rows = [one, None, {"u": [], "t": None, "f": None, "m": [], "l": []}, dict.fromkeys(one), one]
    wire = pa.struct(
        [
            ("u", pa.list_(pa.field("element", pa.int16()))),
            ("t", pa.timestamp("us")),
            ("f", pa.list_(pa.field("element", pa.float32()))),
            ("m", pa.map_(pa.string(), pa.string())),
            ("l", pa.list_(pa.field("element", pa.struct([("d", pa.date32())])))),
        ]
    )
    batch = pa.RecordBatch.from_arrays([pa.array(rows, kind)], ["c"])
    for start in range(len(rows)):
        out = to_wire(batch.slice(start), pa.schema({"c": wire}), "f")
        out.validate(full=True)
        assert out.column(0).to_pylist() == rows[start:]


@pytest.fixture
def table_path(tmp_path: Path) -> Path:
    path = tmp_path / "t.parquet"
    table = pa.table({"k": range(1000), "u": pa.array(range(1000), pa.uint32())})
    pq.write_table(table, path, row_group_size=100, write_page_index=True)
    return path


def test_a_part_is_executed_from_its_bytes(table_path: Path):
    plan = ps.scan(table_path, filter=ps.col("k") >= 250, limit=500).plan()
    wire = pa.schema({"k": pa.int64(), "u": pa.int64()})
    (part,) = plan.split(1)
    out = pa.Table.from_batches(run(pack(part, wire), ps.__version__))
    assert out.schema.equals(wire)
    assert out["u"].to_pylist() == list(range(250, 750))


def test_the_task_yields_the_parts_of_its_ids(table_path: Path):
    plan = ps.scan(table_path).plan()
    wire = pa.schema({"k": pa.int64(), "u": pa.int64()})
    parts = [pack(part, wire) for part in plan.split(4)]
    task = make_task(parts, None)
    ids = pa.RecordBatch.from_pydict({"id": [3, 1]})
    one = list(task(iter([ids])))
    two = [b for part in (3, 1) for b in run(parts[part], ps.__version__)]
    assert pa.Table.from_batches(one).equals(pa.Table.from_batches(two))
    assert list(task(iter([]))) == []


def test_a_task_reads_its_input_to_the_end_first(table_path: Path):
    plan = ps.scan(table_path, limit=1).plan()
    parts = [pack(plan, pa.schema({"k": pa.int64(), "u": pa.int64()}))]
    ids = iter([pa.RecordBatch.from_pydict({"id": [0]})] * 3)
    assert next(make_task(parts, None)(ids)).num_rows == 1
    assert list(ids) == []


@pytest.mark.skipif(not hasattr(socket, "TCP_QUICKACK"), reason="an option of Linux")
def test_the_sockets_of_a_worker_acknowledge_at_once():
    option = socket.IPPROTO_TCP, socket.TCP_QUICKACK
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()) as one,
        server.accept()[0] as other,
    ):
        other.setblocking(False)
        for end in (one, other):
            end.setsockopt(*option, 0)
        before = len(os.listdir("/proc/self/fd"))
        acknowledge_at_once()
        assert [end.getsockopt(*option) for end in (one, other)] == [1, 1]
        assert [end.getblocking() for end in (one, other)] == [True, False]
        assert len(os.listdir("/proc/self/fd")) == before


def test_rows_without_columns_travel_as_a_column_of_nulls(table_path: Path):
    plan = ps.scan(table_path, columns=[]).plan()
    batches = list(run(pack(plan, pa.schema([])), ps.__version__))
    assert {batch.num_columns for batch in batches} == {1}
    assert sum(batch.num_rows for batch in batches) == 1000


def test_another_version_in_the_executor_is_refused(table_path: Path):
    part = pack(ps.scan(table_path).plan(), pa.schema({"k": pa.int64(), "u": pa.int64()}))
    with pytest.raises(ps.PageseekError, match=r"the driver has pageseek 0\.0\.7"):
        next(run(part, "0.0.7"))


def test_a_file_that_is_gone_says_what_to_do(table_path: Path):
    part = pack(ps.scan(table_path).plan(), pa.schema({"k": pa.int64(), "u": pa.int64()}))
    table_path.unlink()
    with pytest.raises(FileNotFoundError) as caught:
        next(run(part, ps.__version__))
    assert str(table_path) in str(caught.value)
    assert "Put it where every node sees it" in str(caught.value)
    assert "make the DataFrame again by load or read" in str(caught.value)


def test_shipped_plans_leave_the_schema_metadata_behind(tmp_path: Path):
    path = tmp_path / "m.parquet"
    schema = pa.schema({"k": pa.int64()}, metadata={"note": "x" * 10_000})
    pq.write_table(pa.table({"k": [1]}, schema=schema), path)
    plan = ps.scan(path).plan()
    data = zlib.decompress(pack(plan, pa.schema({"k": pa.int64()})))
    assert len(data) < 5_000 < len(pickle.dumps(plan))


def test_small_plans_get_one_task_and_do_not_ask_for_cores(table_path: Path):
    def never() -> int:
        raise AssertionError("asked")

    assert task_count(ps.scan(table_path).plan(), 1000, never) == 1


def test_large_plans_get_tasks_by_work_up_to_a_multiple_of_the_cores(table_path: Path):
    from dataclasses import replace

    plan = ps.scan(table_path).plan()
    (file,) = plan.files
    found = []
    for seconds in (0.1, 0.2, 1.6, 1000):
        cost = int(seconds * BYTES_PER_SECOND / len(file.groups))
        groups = tuple(g._replace(cost=cost) for g in file.groups)
        big = replace(plan, files=(replace(file, groups=groups),))
        assert work(big, 0) == pytest.approx(seconds + FILE_SECONDS, rel=0.01)
        found.append((task_count(big, 0, lambda: 2), task_count(big, 0, lambda: 8)))
        there = replace(file.source, filesystem=fsspec.filesystem("memory"))
        far = replace(big, files=(replace(big.files[0], source=there),))
        assert work(far, 0) > 3 * seconds
    assert found == [(1, 1), (2, 2), (2, 8), (2 * TASKS_PER_CORE, 8 * TASKS_PER_CORE)]


@pytest.mark.parametrize(
    ("settings", "cores"),
    [
        ({"spark.sql.leafNodeDefaultParallelism": "3"}, 3),
        ({"spark.executor.instances": "2", "spark.executor.cores": "4"}, 8),
        ({"spark.master": "local[5]"}, 5),
        ({}, UNKNOWN_PARALLELISM),
    ],
)
def test_the_cores_of_a_session_are_known_by_what_a_worker_is_told(
    settings: dict[str, str], cores: int
) -> None:
    told: Any = ToldSession("4.3.0", settings)
    assert parallelism_of(told) == cores


def test_a_setting_that_a_worker_is_not_told_is_an_error_without_a_default() -> None:
    from pyspark.errors import PySparkException

    told = ToldSession("4.3.0", {"a": "1"})
    assert [told.get("a"), told.get("a", None), told.get("b", None), told.get("b", "2")] == [
        "1", "1", None, "2",
    ]  # fmt: skip
    with pytest.raises(PySparkException, match="b is not known"):
        told.get("b")


def test_a_task_computes_on_the_core_that_spark_gave_it(
    table_path: Path, monkeypatch: pytest.MonkeyPatch
):
    class Planned(Exception):
        pass

    def planned(_, **options):
        raise Planned(options["threads"])

    monkeypatch.setattr(opening, "scan", planned)
    monkeypatch.setattr(opening, "check_session", lambda given: None)
    with pytest.raises(Planned, match="1"):
        reader.read(None, str(table_path), partitioning=False)
    with pytest.raises(Planned, match="3"):
        reader.read(None, str(table_path), partitioning=False, threads=3)


def test_parts_of_a_split_are_never_empty(table_path: Path):
    parts = ps.scan(table_path, columns=[]).plan().split(3)
    assert sorted(part.num_rows for part in parts) == [300, 300, 400]


def test_pageseek_and_its_spark_room_import_without_pyspark():
    code = "import sys, pageseek, pageseek.spark.tasks.task; sys.exit('pyspark' in sys.modules or 'pandas' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_file_that_an_executor_does_not_see_is_named_with_a_remedy(tmp_path: Path):
    path = tmp_path / "gone.parquet"
    pq.write_table(pa.table({"k": [1]}), path)
    part = pack(ps.scan(path).plan(), pa.schema({"k": pa.int64()}))
    path.unlink()
    with pytest.raises(FileNotFoundError, match=r"gone\.parquet.*every node sees it"):
        list(run(part, ps.__version__))


def test_a_file_that_has_changed_says_what_to_do(table_path: Path):
    part = pack(ps.scan(table_path).plan(), pa.schema({"k": pa.int64(), "u": pa.int64()}))
    table_path.write_bytes(table_path.read_bytes()[:-1] + b"1")
    with pytest.raises(ps.FileChangedError, match=r"changed after .*make the DataFrame again"):
        next(run(part, ps.__version__))


def test_a_task_imports_nothing_of_the_drivers():
    code = (
        "import sys, pageseek.spark.tasks.task\n"
        "print([n for n in sys.modules if n.startswith('pageseek.spark.') and n.split('.')[2] not in "
        "('tasks', 'calendar', 'columns', 'session')])"
    )
    run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert run.stdout == "[]\n"


def test_public_names_are_functions_whatever_was_imported_before():
    code = (
        "import importlib, pkgutil, pageseek.spark as spark\n"
        "for one in pkgutil.walk_packages(spark.__path__, 'pageseek.spark.'): importlib.import_module(one.name)\n"
        "assert dir(spark) == sorted(spark.__all__)\n"
        "print([n for n in spark.__all__ if not callable(getattr(spark, n)) or getattr(spark, n).__name__ != n])\n"
        "try: spark.nothing\n"
        "except AttributeError as error: print(error)"
    )
    run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert run.stdout == "[]\nmodule 'pageseek.spark' has no attribute 'nothing'\n"
