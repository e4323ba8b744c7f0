"""The log of a Delta table, as it is read beside `deltalake`."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek.base.errors import CorruptFileError
from pageseek.datasets.delta_log import DeltaLog
from pageseek.storage.local import LocalStore
from pageseek.storage.remote import RemoteStore
from pageseek.storage.resolve import Source
from pageseek.storage.urls import of_pair


@pytest.mark.parametrize("mark", ["\u2028", "\u2029", "\x85"])
def test_text_of_the_log_may_have_marks_that_end_lines_in_python_alone(
    tmp_path: Path, mark: str
) -> None:
    """JSON has them raw inside of strings: only a line feed ends an action."""
    log = tmp_path / "_delta_log"
    log.mkdir()
    vector = {"storageType": "i", "pathOrInlineDv": "", "sizeInBytes": 1, "cardinality": 1}
    add = {"path": "a.parquet", "partitionValues": {"p": f"x{mark}y"}, "deletionVector": vector}
    text = json.dumps({"add": add}, ensure_ascii=False) + "\n"
    (log / f"{0:020}.json").write_bytes(text.encode())
    replayed = DeltaLog(Source(str(tmp_path)), "the table").replay(0)
    assert replayed.vectors == {"a.parquet": vector}


@pytest.mark.parametrize(
    "line",
    ["[1]", "1", '{"add":{}}', '{"remove":{}}', '{"add":"x"}', '{"add":{"path":5}}', "{",
     '{"add":{"path":""}}', '{"add":{"path":"a","deletionVector":[]}}', '{"sidecar":{"path":null}}'],
)  # fmt: skip
def test_a_damaged_action_is_an_error_that_names_its_line(tmp_path: Path, line: str) -> None:
    log = tmp_path / "_delta_log"
    log.mkdir()
    (log / f"{0:020}.json").write_text('{"commitInfo":{}}\n\n' + line)
    with pytest.raises(
        CorruptFileError, match=rf"the table: _delta_log/{0:020}.json, line 3: is no"
    ):
        DeltaLog(Source(str(tmp_path)), "the table").replay(0)


def test_a_file_without_a_path_is_an_error_that_names_its_place(tmp_path: Path) -> None:
    deltalake = pytest.importorskip("deltalake")
    deltalake.write_deltalake(tmp_path, pa.table({"a": [1]}))
    log, other = tmp_path / "_delta_log", tmp_path / "other" / "_delta_log"
    lines = (log / f"{0:020}.json").read_text().splitlines()
    at = next(i for i, line in enumerate(lines) if "add" in json.loads(line))
    added = json.loads(lines[at])
    added["add"]["path"] = ""
    lines[at] = json.dumps(added)
    (log / f"{0:020}.json").write_text("\n".join(lines))
    place = rf"Delta table .*_delta_log/{0:020}\.json, line {at + 1}: is no action"
    for table in (tmp_path, str(tmp_path), deltalake.DeltaTable(tmp_path)):
        with pytest.raises(CorruptFileError, match=place):
            ps.scan(table)
    other.mkdir(parents=True)
    rows = pa.table({"add": pa.array([None, {"path": ""}], pa.struct([("path", pa.string())]))})
    name = f"{0:020}.checkpoint.parquet"
    pq.write_table(rows, other / name)
    with pytest.raises(CorruptFileError, match=rf"_delta_log/{name}, row 2: adds a file without"):
        DeltaLog(Source(str(other.parent)), "the table").replay(0)


def test_a_checkpoint_that_lacks_a_part_hides_no_commit(tmp_path: Path) -> None:
    """Else the deletion vectors of commits before it are forgotten, and deleted rows come back."""
    log = tmp_path / "_delta_log"
    log.mkdir()
    vector = {"storageType": "i", "pathOrInlineDv": "", "sizeInBytes": 1, "cardinality": 1}
    add = {"add": {"path": "a.parquet", "deletionVector": vector}}
    (log / f"{0:020}.json").write_text(json.dumps(add))
    (log / f"{1:020}.json").write_text('{"commitInfo":{}}')
    part = log / f"{1:020}.checkpoint.{1:010}.{2:010}.parquet"
    pq.write_table(pa.table({"protocol": pa.array([None], pa.int32())}), part)
    assert DeltaLog(Source(str(tmp_path)), "the table").replay(1).vectors == {"a.parquet": vector}


@pytest.mark.parametrize("far", [False, True])
def test_what_is_removed_is_read_of_a_checkpoint_without_its_other_columns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, far: bool
) -> None:
    log = tmp_path / "_delta_log"
    log.mkdir()
    n = 20_000
    added = [{"path": f"{hashlib.sha256(str(i).encode()).hexdigest()}.parquet"} for i in range(n)]
    removed = [{"path": "x%20y"}, *[None] * (n - 1)]
    path = log / f"{3:020}.checkpoint.parquet"
    pq.write_table(pa.table({"add": added, "remove": removed}), path)
    (log / f"{4:020}.json").write_text('{"remove":{"path":"z"}}\n')
    read: list[int] = []

    def counted(of: Any) -> Any:
        def count(store: Any, ranges: Any, *more: Any) -> Any:
            read.extend(length for _, length in ranges)
            return of(store, ranges, *more)

        return count

    for kind in (LocalStore, RemoteStore):
        monkeypatch.setattr(kind, "read", counted(kind.read))
    root = Source(str(tmp_path))
    if far:
        fsspec = pytest.importorskip("fsspec")
        files, place = of_pair(fsspec.filesystem("file"), str(tmp_path))
        root = Source(place, files)
    assert DeltaLog(root, "the table").removes(4) == ["x%20y", "z"]
    assert sum(read) < path.stat().st_size / 5
