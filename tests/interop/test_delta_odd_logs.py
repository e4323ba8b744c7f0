"""What logs of Delta Lake say in ways that `deltalake` reads otherwise than the protocol means."""

from __future__ import annotations

import datetime as dt
import decimal
import json
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek.base.errors import CorruptFileError, UnsupportedError
from pageseek.datasets.delta_text import any_doubtful, highest
from pageseek.datasets.widened_partitions import respelt
from support.delta_by_hand import bitmap, encoded
from support.delta_logs import MAPPING, Log, field

deltalake = pytest.importorskip("deltalake", reason="pip install 'pageseek[delta]'")


def bounds(low: Any, high: Any) -> dict[str, Any]:
    return {
        "numRecords": 1, "minValues": {"a": low}, "maxValues": {"a": high}, "nullCount": {"a": 0}
    }  # fmt: skip


@pytest.mark.parametrize("ascii_alone", [True, False])
@pytest.mark.parametrize("text", ["z", "é", "\U0001f600", "a\U00020000b", "\U0010ffff" * 3])
@pytest.mark.parametrize("kind", ["string", "binary"])
@pytest.mark.parametrize("mapped", [False, True])
def test_characters_that_are_spelt_as_two_escapes(
    tmp_path: Path, text: str, ascii_alone: bool, kind: str, mapped: bool
) -> None:
    own = {f"{MAPPING}.id": 2, f"{MAPPING}.physicalName": "c2"} if mapped else {}
    made = {f"{MAPPING}.id": 1, f"{MAPPING}.physicalName": "a"} if mapped else {}
    features = ["columnMapping"] if mapped else []
    settings = {f"{MAPPING}.mode": "name"} if mapped else {}
    fields = [field("a", "string", **made), field("p", kind, **own)]
    log = Log(tmp_path / "t", fields, ["p"], features, settings)
    name = "c2" if mapped else "p"
    for i, one in enumerate((text, "", None)):
        table = pa.table({"a": [text + str(i)]})
        stats = bounds(text + str(i), text + str(i))
        log.add(f"{i}.parquet", table, {name: one}, stats, ascii_alone)
    value = text if kind == "string" else text.encode()
    scan = ps.scan(str(log.root))
    expected = [{"a": text + str(i), "p": None if i else value} for i in range(3)]
    assert sorted(scan.to_pylist(), key=str) == sorted(expected, key=str)
    assert scan.filter(ps.col("p") == value).to_pylist() == expected[:1]
    assert scan.filter(ps.col("a") == text + "1").to_pylist() == expected[1:2]
    assert scan.filter(ps.col("a") >= text + "2").to_pylist() == expected[2:]


def test_the_greatest_texts_that_others_stand_for() -> None:
    texts = pa.array(["a\U0001f600\U0002f600", None, "b\U000fffff", ""])
    assert highest(texts).to_pylist() == ["a\U0002f600\U0002f600", None, "b\U0010ffff", ""]
    sure = pa.array(["é\U00020000", None])
    assert highest(sure) is sure and not any_doubtful(sure) and not any_doubtful(sure[1:])


@pytest.mark.parametrize("value", [0.1, -0.1, 0.7, 1e-40, 3.4e38])
@pytest.mark.parametrize("inside", [False, True])
def test_bounds_of_floats_that_are_doubles_now(tmp_path: Path, value: float, inside: bool) -> None:
    """The log has the shortest decimal number that means the float, as Spark writes it."""
    told = {"delta.typeChanges": [{"fromType": "float", "toType": "double"}]}
    kind: Any = {"type": "struct", "fields": [field("x", "double", **told)]} if inside else "double"
    fields = [field("a", kind, **({} if inside else told))]
    log = Log(tmp_path / "t", fields, features=["typeWidening"])
    column: pa.Array = pa.array([value], pa.float32())
    real = column[0].as_py()
    if inside:
        column = pa.StructArray.from_arrays([column], ["x"])
    said: Any = {"x": value} if inside else value
    stats = bounds(said, said) | {"nullCount": {"a": {"x": 0} if inside else 0}}
    log.add("0.parquet", pa.table({"a": column}), stats=stats)
    name = "a.x" if inside else "a"
    scan = ps.scan(str(log.root))
    for condition in (ps.col(name) == real, ps.col(name) >= real, ps.col(name) <= real):
        assert scan.filter(condition).count_rows() == 1
    for condition in (ps.col(name) > real, ps.col(name) < real, ps.col(name) > real + abs(real)):
        assert scan.filter(condition).count_rows() == 0


@pytest.mark.parametrize("features", [None, [], ["columnMapping"]])
@pytest.mark.parametrize("mode", ["none", "name", "", None])
def test_columns_are_mapped_where_the_protocol_of_the_table_says_so(
    tmp_path: Path, features: list[str] | None, mode: str | None
) -> None:
    settings = {} if mode is None else {f"{MAPPING}.mode": mode}
    fields = [
        field("a", "long", **{f"{MAPPING}.id": 1, f"{MAPPING}.physicalName": "b"}),
        field("b", "long", **{f"{MAPPING}.id": 2, f"{MAPPING}.physicalName": "a"}),
    ]
    log = Log(tmp_path / "t", fields, features=features, settings=settings)
    stats: dict[str, Any] = {"numRecords": 1}
    stats |= {name: {"a": 1, "b": 2} for name in ("minValues", "maxValues")}
    log.add("0.parquet", pa.table({"a": [1], "b": [2]}), stats=stats)
    if features and mode == "":
        with pytest.raises(UnsupportedError, match=r"columnMapping\.mode='' is not known"):
            ps.scan(str(log.root)).to_pylist()
        return
    row = {"a": 2, "b": 1} if features and mode == "name" else {"a": 1, "b": 2}
    scan = ps.scan(str(log.root))
    assert scan.to_pylist() == [row]
    for name, value in row.items():
        assert scan.filter(ps.col(name) == value).to_pylist() == [row]
        assert scan.filter(ps.col(name) == 3 - value).to_pylist() == []


@pytest.mark.parametrize("enabled", [0, 2, 9])
@pytest.mark.parametrize("as_object", [False, True])
def test_the_times_of_commits_are_their_own(tmp_path: Path, enabled: int, as_object: bool) -> None:
    """Commits have times of their own from one version on, and their files are newer than all of them."""
    log = Log(tmp_path / "t", [field("a", "long")])
    for i in range(3):
        log.add(f"{i}.parquet", pa.table({"a": [i]}))
    for i, path in enumerate(sorted((log.root / "_delta_log").iterdir())):
        if i >= enabled:
            told = {"commitInfo": {"inCommitTimestamp": 10_000 * (i + 1)}}
            path.write_text(json.dumps(told) + "\n" + path.read_text())
        seconds = 10 * (i + 1) if i < enabled < 9 else 1000 + 10 * (i + 1)
        os.utime(path, (seconds, seconds))
    source = deltalake.DeltaTable(str(log.root)) if as_object else str(log.root)
    late = 1000 if enabled == 9 else 0
    for seconds, num_rows in ((10, 0), (19, 0), (20, 1), (35, 2), (40, 3), (5000, 3)):
        moment = dt.datetime.fromtimestamp(late + seconds, dt.UTC)
        assert ps.scan(source, timestamp=moment).count_rows() == num_rows
    with pytest.raises(UnsupportedError, match="before the first commit"):
        ps.scan(source, timestamp=dt.datetime.fromtimestamp(late + 9, dt.UTC))


@pytest.mark.parametrize("removed", ["./0.parquet", "%30.parquet", "0.parquet", None])
@pytest.mark.parametrize("checkpoint", [False, True])
def test_a_file_whose_vector_changes_is_there_once(
    tmp_path: Path, removed: str | None, checkpoint: bool
) -> None:
    """`deltalake` tells files apart by their vectors: an older one that was removed by another spelling is still there for it."""
    log = Log(tmp_path / "t", [field("a", "long")], features=["deletionVectors"])
    pq.write_table(pa.table({"a": range(5)}), log.root / "0.parquet")
    action = {"path": "0.parquet", "partitionValues": {}, "size": 9, "modificationTime": 1, "dataChange": True}  # fmt: skip

    def added(*rows: int) -> dict[str, Any]:
        data = bitmap(rows)
        vector = {"storageType": "i", "pathOrInlineDv": encoded(data), "sizeInBytes": len(data)}
        return {"add": action | {"deletionVector": vector | {"cardinality": len(rows)}}}

    log.commit(added(0))
    if checkpoint:
        deltalake.DeltaTable(str(log.root)).create_checkpoint()
    gone = {"path": removed, "deletionTimestamp": 1, "dataChange": True}
    log.commit(*([] if removed is None else [{"remove": gone}]), added(0, 3))
    scan = ps.scan(str(log.root))
    assert scan.to_pylist() == [{"a": 1}, {"a": 2}, {"a": 4}] and scan.count_rows() == 3
    if removed is None:
        deltalake.DeltaTable(str(log.root)).create_checkpoint()
        with pytest.raises(CorruptFileError, match=r"adds '0\.parquet' and '0.parquet'"):
            ps.scan(str(log.root)).to_pylist()


D, DAY = decimal.Decimal, dt.datetime(2024, 1, 2)
WIDENED = {
    "integer to long": ("long", "5", "6000000000", 5, 6_000_000_000),
    "integer to double": ("double", "5", "6.5", 5.0, 6.5),
    "integer to decimal": ("decimal(12,2)", "5", "6.25", D("5.00"), D("6.25")),
    "long to decimal": ("decimal(22,1)", "-5", "6.5", D("-5.0"), D("6.5")),
    "decimal to a larger scale": ("decimal(12,4)", "1.25", "1.1234", D("1.2500"), D("1.1234")),
    "date to timestamp_ntz": ("timestamp_ntz", "2024-01-02", "2024-01-02 03:04:05.678", DAY, dt.datetime(2024, 1, 2, 3, 4, 5, 678_000)),
}  # fmt: skip


@pytest.mark.parametrize("mapped", [False, True])
@pytest.mark.parametrize("case", WIDENED.values(), ids=WIDENED.keys())
def test_values_of_partitions_whose_type_was_widened(
    tmp_path: Path, case: tuple[str, str, str, Any, Any], mapped: bool
) -> None:
    kind, first, then, before, after = case
    told: dict[str, Any] = {"delta.typeChanges": [{"fromType": "?", "toType": kind}]}
    own: dict[str, Any] = {}
    if mapped:
        told |= {f"{MAPPING}.id": 2, f"{MAPPING}.physicalName": "c2"}
        own = {f"{MAPPING}.id": 1, f"{MAPPING}.physicalName": "a"}
    log = Log(
        tmp_path / "t", [field("a", "long", **own), field("p", kind, **told)], ["p"],
        ["typeWidening", "timestampNtz", *(["columnMapping"] if mapped else [])],
        {f"{MAPPING}.mode": "name"} if mapped else {},
    )  # fmt: skip
    name = "c2" if mapped else "p"
    for i, text in enumerate((first, then, None, first)):
        log.add(f"{i}.parquet", pa.table({"a": [i]}), {name: text})
    log.commit({"remove": {"path": "3.parquet", "deletionTimestamp": 1, "dataChange": True}})
    scan = ps.scan(str(log.root))
    expected = [{"a": 0, "p": before}, {"a": 1, "p": after}, {"a": 2, "p": None}]
    assert sorted(scan.to_pylist(), key=str) == sorted(expected, key=str)
    report = scan.filter(ps.col("p") == before).explain(analyze=True).to_dict()
    assert (report["rows"]["out"], report["files"]["read"]) == (1, 1)
    assert scan.filter(ps.col("p") == after).to_pylist() == expected[1:2]
    assert scan.filter(ps.col("p").is_null()).to_pylist() == expected[2:]


def test_a_value_of_a_widened_partition_that_is_none_of_its_type(tmp_path: Path) -> None:
    told = {"delta.typeChanges": [{"fromType": "integer", "toType": "decimal(12,2)"}]}
    fields = [field("a", "long"), field("p", "decimal(12,2)", **told)]
    log = Log(tmp_path / "t", fields, ["p"], ["typeWidening"])
    log.add("0.parquet", pa.table({"a": [0]}), {"p": "five"})
    with pytest.raises(UnsupportedError, match=r"deltalake .*'five' as 'decimal\(12,2\)'"):
        ps.scan(str(log.root)).to_table()


def test_values_of_widened_partitions_in_checkpoints(tmp_path: Path) -> None:
    told = {"delta.typeChanges": [{"fromType": "integer", "toType": "decimal(12,2)"}]}
    fields = [field("a", "long"), field("p", "decimal(12,2)", **told)]
    log = Log(tmp_path / "t", fields, ["p"], ["typeWidening"])
    for i in range(3):
        log.add(f"{i}.parquet", pa.table({"a": [i]}), {"p": f"{i}.00"})
    deltalake.DeltaTable(str(log.root)).create_checkpoint()
    (made,) = (log.root / "_delta_log").glob("*.parquet")
    # as the writer of before had spelt them
    data = respelt(made.name, made.read_bytes(), {"p": lambda text: text.removesuffix(".00")})
    made.write_bytes(data)
    for commit in sorted((log.root / "_delta_log").glob("*.json"))[:-1]:
        commit.unlink()
    with pytest.raises(Exception, match="parse value"):
        deltalake.DeltaTable(str(log.root))
    log.add("3.parquet", pa.table({"a": [3]}), {"p": "3"})
    scan = ps.scan(str(log.root))
    expected = [{"a": i, "p": D(f"{i}.00")} for i in range(4)]
    assert sorted(scan.to_pylist(), key=str) == expected
    assert scan.filter(ps.col("p") == D(2)).to_pylist() == expected[2:3]
