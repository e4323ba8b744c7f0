"""Tables of Delta Lake that were moved or cleaned up after they were opened: errors name the table, the file and the remedy."""

from __future__ import annotations

import datetime as dt
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
import pyarrow.fs as pafs
import pytest

import pageseek as ps
from pageseek.base.errors import UnsupportedError
from support.delta_by_hand import bitmap, encoded
from support.delta_logs import Log, field

deltalake = pytest.importorskip("deltalake", reason="pip install 'pageseek[delta]'")


def table(root: Path, features: list[str] | None = None) -> Log:
    log = Log(root, [field("a", "long")], features=features)
    for i in range(2):
        log.add(f"{i}.parquet", pa.table({"a": [3 * i, 3 * i + 1, 3 * i + 2]}))
    return log


def delete(log: Log, *rows: int, file: UUID | None = None) -> None:
    """Delete rows of a file by a vector, in the log or in a file, which is not written."""
    data = bitmap(rows)
    vector = {"storageType": "i", "pathOrInlineDv": encoded(data)}
    if file is not None:
        vector = {"storageType": "u", "pathOrInlineDv": encoded(file.bytes), "offset": 1}
    vector |= {"sizeInBytes": len(data), "cardinality": len(rows)}
    gone = {"path": "0.parquet", "deletionTimestamp": 1, "dataChange": True}
    added = {"path": "0.parquet", "partitionValues": {}, "size": 9, "modificationTime": 1, "dataChange": True}  # fmt: skip
    log.commit({"remove": gone}, {"add": added | {"deletionVector": vector}})


READS: dict[str, Callable[[ps.Scan], Any]] = {
    "to_table": lambda scan: scan.to_table(),
    "to_batches": lambda scan: list(scan.to_batches()),
    "a filter": lambda scan: scan.filter(ps.col("a") == 4).to_table(),
    "count_rows": lambda scan: scan.filter(ps.col("a") >= 0).count_rows(),
    "aggregate": lambda scan: scan.aggregate([("a", "max")]),
    "explain": lambda scan: scan.explain(),
    "plan": lambda scan: scan.plan(),
    "prepare": lambda scan: scan.prepare(ps.col("a") == ps.param("k"))(1),
}
GONE = r"{}: no such file, though Delta table .*/t/? has it: if the table was moved, .*VACUUM"


@pytest.mark.parametrize("was_read", [False, True])
@pytest.mark.parametrize("as_object", [False, True])
@pytest.mark.parametrize("read", READS.values(), ids=READS.keys())
def test_a_data_file_that_is_gone(
    tmp_path: Path, read: Callable[[ps.Scan], Any], as_object: bool, was_read: bool
) -> None:
    root = table(tmp_path / "t").root
    scan = ps.scan(deltalake.DeltaTable(str(root)) if as_object else str(root))
    if was_read:  # the file is open in the cache
        assert scan.count_rows() == 6 == scan.to_table().num_rows
    (root / "0.parquet").unlink()
    with pytest.raises(FileNotFoundError, match=GONE.format(r"t/0\.parquet")):
        read(scan)


def test_a_plan_whose_file_is_gone(tmp_path: Path) -> None:
    root = table(tmp_path / "t").root
    plan = pickle.loads(pickle.dumps(ps.scan(str(root)).plan()))
    (root / "0.parquet").unlink()
    with pytest.raises(FileNotFoundError, match=GONE.format(r"t/0\.parquet")):
        list(plan.execute())


@pytest.mark.parametrize("features", [None, ["deletionVectors"]])
@pytest.mark.parametrize("moment", [None, dt.datetime(2100, 1, 1)])
def test_a_table_that_was_moved(
    tmp_path: Path, features: list[str] | None, moment: dt.datetime | None
) -> None:
    root = table(tmp_path / "t", features).root
    opened = deltalake.DeltaTable(str(root))
    root.rename(tmp_path / "other")
    with pytest.raises(FileNotFoundError, match=GONE.format("t/_delta_log")):
        ps.scan(opened, timestamp=moment)
    with pytest.raises(UnsupportedError, match=r"Delta table .*/t/: deltalake .*does not exist"):
        ps.scan(opened, version=1)
    assert ps.scan(str(tmp_path / "other")).count_rows() == 6


def test_a_deletion_vector_that_is_gone(tmp_path: Path) -> None:
    log, number = table(tmp_path / "t", ["deletionVectors"]), UUID(int=5)
    delete(log, 1, file=number)
    with pytest.raises(FileNotFoundError, match=GONE.format(f"deletion_vector_{number}.bin")):
        ps.read_table(str(log.root))


def test_a_version_that_its_log_does_not_tell_any_more(tmp_path: Path) -> None:
    """Deleted rows would come back: only the log has their numbers."""
    log = table(tmp_path / "t", ["deletionVectors"])
    delete(log, 1)
    opened = deltalake.DeltaTable(str(log.root))
    assert ps.scan(opened).count_rows() == 5
    log.add("2.parquet", pa.table({"a": [9]}))
    deltalake.DeltaTable(str(log.root)).create_checkpoint()
    for commit in (log.root / "_delta_log").glob("*.json"):
        commit.unlink()
    with pytest.raises(
        UnsupportedError,
        match=r"/t/: its log does not tell version 3 any more.*0\.json is not there: open",
    ):
        ps.scan(opened).count_rows()
    assert ps.scan(str(log.root)).count_rows() == 6


@pytest.mark.parametrize("version", [3, 99, 10**9, 2**63 - 1])
@pytest.mark.parametrize("way", ["folder", "object", "store"])
def test_a_version_that_the_log_does_not_have_yet(tmp_path: Path, way: str, version: int) -> None:
    log = table(tmp_path / "t")
    newest = deltalake.DeltaTable(log.root).version()
    source: Any = str(log.root)
    if way == "object":
        source = deltalake.DeltaTable(log.root, version=newest - 1)
    elif way == "store":
        source = (pafs.LocalFileSystem(), source)
    said = rf"version={version} is not in the log, whose newest is {newest}: give version={newest}"
    with pytest.raises(UnsupportedError, match=said):
        ps.scan(source, version=version)
    assert ps.scan(source, version=newest).count_rows() == 6
