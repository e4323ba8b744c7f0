"""Indexes attached to files of Delta Lake tables through the table: its rows, partitions and statistics stay."""

from __future__ import annotations

import datetime as dt
import json
import os
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek.index import delta_target as room
from support.delta_by_hand import bitmap, encoded, with_vector

deltalake = pytest.importorskip("deltalake", "1.6")
N = 4_000
ROWS = pa.table(
    {
        "id": pa.array(range(N)),
        "k": pa.array([("x y/%=ü", "b", None)[i % 3] for i in range(N)]),
        "d": pa.array([dt.date(2024, 1, 1 + i % 2) for i in range(N)]),
        "on": pa.array([True] * N),
        "t": pa.array([dt.datetime(2024, 1, 1, 12, 0, 0, 1000 * (i % 900)) for i in range(N)], pa.timestamp("us", "UTC")),
        "n": pa.array([dt.datetime(2024, 1, 1, 12)] * N, pa.timestamp("us")),
        "day": pa.array([dt.date(1960, 1, 1) + dt.timedelta(days=i) for i in range(N)]),
        "price": pa.array([Decimal(i) / 100 for i in range(N)], pa.decimal128(12, 2)),
        "real": pa.array([i / 7 for i in range(N)]),
        "text": pa.array([f'"{i % 50:04d}\\' for i in range(N)]),
        "s": pa.array([{"u": i if i % 5 else None} for i in range(N)]),
    }
)  # fmt: skip


KEYS = ["k", "d", "on"]


@pytest.fixture
def root(tmp_path: Path) -> str:
    made = str(tmp_path / "a table")
    deltalake.write_deltalake(made, ROWS, partition_by=KEYS)
    return made


def opened(root: str) -> Any:
    return deltalake.DeltaTable(root)


def sorted_rows(table: Any) -> pa.Table:
    return table.to_pyarrow_table().sort_by("id")


def said(table: Any) -> list[dict[str, Any]]:
    """The log's entries of the files, without their names, sizes and times."""
    found = pa.table(table.get_add_actions()).to_pylist()
    for one in found:
        for name in ("path", "size_bytes", "modification_time"):
            del one[name]
    return sorted(found, key=repr)


def files(table: Any) -> list[str]:
    root = os.path.realpath(unquote(table.table_uri.removeprefix("file://")))
    paths = pa.table(table.get_add_actions())["path"].to_pylist()
    return [os.path.join(root, unquote(path)) for path in paths]


def test_all_files_of_a_table(root: str) -> None:
    table = opened(root)
    before, wanted, names = said(table), sorted_rows(table), files(table)
    assert len(names) == 6
    for path in names:
        made = ps.index.attach(path, bloom=["text"], distinct=["text"], table=table)
        assert made.path != path and os.path.dirname(made.path) == os.path.dirname(path)
        assert os.path.getsize(made.path) == made.bytes_after
    for now in (table, opened(root)):
        assert now.version() == 6
        assert sorted_rows(now).equals(wanted)
        assert said(now) == before
        assert ps.read_table(now).sort_by("id")["price"].equals(wanted["price"])
        assert len(files(now)) == 6
    found = ps.scan(opened(root), filter="text = 'none'", prune=["distinct"])
    report = found.explain(analyze=True).to_dict()
    assert report["row_groups"]["pruned_by"] == {"distinct": 6} and report["rows"]["read"] == 0
    # of the partitions, too
    only = opened(root).to_pyarrow_table(filters=[("k", "=", "x y/%=ü")])
    assert only.num_rows == sum(one == "x y/%=ü" for one in ROWS["k"].to_pylist())
    # the older version is still there
    assert deltalake.DeltaTable(root, version=0).to_pyarrow_table().num_rows == N


def test_names_as_the_table_gives_them(root: str) -> None:
    """The folder of the table with escapes, those of partitions as they are."""
    table, wanted = opened(root), sorted_rows(opened(root))
    names = table.file_uris()
    assert any("a%20table" in name and "k=x%20y" in name for name in names)
    for path in names:
        ps.index.attach(path, bloom=["id"], table=table)
    assert table.version() == len(names) and not set(names) & set(table.file_uris())
    assert sorted_rows(table).equals(wanted)
    assert sorted_rows(opened(root)).num_rows == N


def test_and_taken_out_again(root: str) -> None:
    table = opened(root)
    path = files(table)[0]
    before = Path(path).read_bytes()
    made = ps.index.attach(path, bloom=["id"], table=table)
    back = ps.index.detach(made.path, table=table)
    assert Path(back.path).read_bytes() == before
    assert sorted_rows(opened(root)).num_rows == N


@pytest.mark.parametrize("how", ["compact", "delete", "attach"])
@pytest.mark.parametrize("late", [False, True])
def test_a_file_that_others_take_out_meanwhile(
    root: str, how: str, late: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before the commit, or in the moment of it: rows are never there twice, nor do they come back."""
    deltalake.write_deltalake(root, ROWS, mode="append", partition_by=KEYS)
    table = opened(root)
    path = files(table)[0]
    done: list[str] = []

    def others() -> None:
        if not done:
            done.append(how)
            if how == "compact":
                assert opened(root).optimize.compact()["numFilesRemoved"] == 12
            elif how == "delete":
                opened(root).delete()
            else:
                ps.index.attach(path, bloom=["id"], table=opened(root))

    real = room._stats

    def stats(action: Any) -> str:
        others()
        return real(action)

    if late:
        monkeypatch.setattr(room, "_stats", stats)
    with pytest.raises(ps.FileChangedError, match="taken"):
        ps.index.attach(
            path, bloom=["text"], table=table, progress=lambda _: None if late else others()
        )
    assert done
    named = files(opened(root))
    assert opened(root).version() == 2  # nothing but theirs
    assert opened(root).to_pyarrow_table().num_rows == (0 if how == "delete" else 2 * N)
    written = {str(one) for one in Path(root).rglob("*.parquet")}
    assert written == set(files(deltalake.DeltaTable(root, version=1))) | set(
        named
    )  # ours was deleted


def test_commits_of_others_that_do_no_harm(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    table = opened(root)
    path = files(table)[0]
    real, times = room._stats, [0]

    def stats(action: Any) -> str:
        times[0] += 1
        if times[0] < 3:
            deltalake.write_deltalake(root, ROWS.slice(0, 1), mode="append", partition_by=KEYS)  # fmt: skip
        return real(action)

    monkeypatch.setattr(room, "_stats", stats)
    ps.index.attach(path, bloom=["id"], table=table)
    assert times[0] == 3 and opened(root).to_pyarrow_table().num_rows == N + 2


def test_what_has_everything_is_not_exchanged(root: str) -> None:
    table = opened(root)
    path = files(table)[0]
    made = ps.index.attach(path, table=table)  # its writer left a page index
    assert not made.added and made.path == path and made.bytes_after == made.bytes_before
    assert opened(root).version() == 0 and files(opened(root)) == files(table)


def test_what_is_refused(root: str, tmp_path: Path) -> None:
    table = opened(root)
    path = files(table)[0]
    alone = tmp_path / "x.parquet"
    pq.write_table(ROWS, alone)
    with pytest.raises(ValueError, match="no such file"):
        ps.index.attach(alone, table=table)
    with pytest.raises(TypeError, match=r"table str: a deltalake\.DeltaTable"):
        ps.index.attach(path, table=root)
    with pytest.raises(ValueError, match="beside the old one"):
        ps.index.attach(path, table=table, in_place=True)
    with pytest.raises(ps.UnsupportedError, match=r"table=DeltaTable"):
        ps.index.attach(path, in_place=True)
    assert opened(root).version() == 0
    tracked = str(tmp_path / "tracked")
    deltalake.write_deltalake(tracked, ROWS.select(["id"]))
    log = Path(tracked, "_delta_log", "00000000000000000000.json")
    text = log.read_text().replace('"writerFeatures":["timestampNtz"]', '"writerFeatures":["rowTracking"]')  # fmt: skip
    if "rowTracking" not in text:
        text = text.replace(
            '"minReaderVersion":1,"minWriterVersion":2',
            '"minReaderVersion":1,"minWriterVersion":7,"writerFeatures":["rowTracking","domainMetadata"]',
        )
    log.write_text(text)
    tracking = opened(tracked)
    with pytest.raises(ps.UnsupportedError, match="rowTracking"):
        ps.index.attach(files(tracking)[0], table=tracking)


@pytest.mark.parametrize("late", [False, True])
def test_rows_that_others_delete_meanwhile_by_a_vector(
    root: str, late: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file keeps its path, and the new one would not have the vector: the rows would come back."""
    log = Path(root, "_delta_log")
    names = ["deletionVectors", "timestampNtz"]
    protocol = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": names, "writerFeatures": names}  # fmt: skip
    (log / f"{1:020}.json").write_text(json.dumps({"protocol": protocol}))
    actions = [json.loads(line) for line in (log / f"{0:020}.json").read_text().splitlines()]
    added = next(one["add"] for one in actions if "add" in one)
    bits = bitmap([0, 5])
    vector = {"storageType": "i", "pathOrInlineDv": encoded(bits), "sizeInBytes": len(bits), "cardinality": 2}  # fmt: skip
    removed = {"path": added["path"], "deletionTimestamp": 1, "dataChange": True}
    table = opened(root)

    def others() -> None:
        if not (log / f"{2:020}.json").exists():
            said = [{"remove": removed}, {"add": added | {"deletionVector": vector}}]
            (log / f"{2:020}.json").write_text("\n".join(map(json.dumps, said)))

    real = room._stats

    def stats(action: Any) -> str:
        others()
        return real(action)

    if late:
        monkeypatch.setattr(room, "_stats", stats)
    path = os.path.join(root, unquote(added["path"]))
    with pytest.raises(ps.PageseekError, match=r"deletion vector|taken"):
        ps.index.attach(
            path, bloom=["text"], table=table, progress=lambda _: None if late else others()
        )
    assert opened(root).version() == 2
    assert ps.scan(root).count_rows() == N - 2


@pytest.fixture
def deleting(root: str) -> tuple[str, dict[str, Any]]:
    """A table of which a file has a deletion vector, and the action that added it."""
    log = Path(root, "_delta_log")
    names = ["deletionVectors", "timestampNtz"]
    protocol = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": names, "writerFeatures": names}  # fmt: skip
    actions = [json.loads(line) for line in (log / f"{0:020}.json").read_text().splitlines()]
    added = next(one["add"] for one in actions if "add" in one)
    found = [{"protocol": protocol}, *with_vector(added, [0, 5])]
    (log / f"{1:020}.json").write_text("\n".join(map(json.dumps, found)))
    return root, found[-1]["add"]


def test_a_deletion_vector_goes_with_the_file(deleting: tuple[str, dict[str, Any]]) -> None:
    root, added = deleting
    wanted = ps.read_table(root).sort_by("id")
    assert len(wanted) == N - 2
    table = opened(root)
    path = os.path.join(root, unquote(added["path"]))
    made = ps.index.attach(path, lookup=["id"], table=table)
    assert made.path != path
    for source in (root, table, opened(root)):
        assert ps.read_table(source).sort_by("id").equals(wanted)
    assert table.version() == opened(root).version() == 2
    gone = set(ROWS["id"].to_pylist()) - set(wanted["id"].to_pylist())
    assert ps.scan(root, filter=ps.col("id").isin(list(gone))).count_rows() == 0
    log = Path(root, "_delta_log", f"{2:020}.json").read_text().splitlines()
    _, remove, add = (json.loads(line) for line in log)
    assert remove["remove"]["deletionVector"] == add["add"]["deletionVector"] == added["deletionVector"]  # fmt: skip
    assert os.path.basename(unquote(add["add"]["path"])) == os.path.basename(made.path)
    assert add["add"]["stats"] == added["stats"] and not add["add"]["dataChange"]
    assert add["add"]["size"] == os.path.getsize(made.path) == made.bytes_after
    found = ps.scan(root, filter="id = -1", prune=["lookup"]).explain().to_dict()
    assert found["rows"]["pruned_by"].get("lookup", 0) > 0
    assert len(ps.read_table(root, version=1)) == N - 2 and len(ps.read_table(root, version=0)) == N
    back = ps.index.detach(made.path, table=opened(root))
    assert Path(back.path).read_bytes() == Path(path).read_bytes()
    assert ps.read_table(root).sort_by("id").equals(wanted)


@pytest.mark.parametrize("mapped", [False, True])
def test_a_file_of_a_checkpoint_without_partitions(tmp_path: Path, mapped: bool) -> None:
    """The maps of its actions are empty."""
    root = str(tmp_path / "t")
    deltalake.write_deltalake(root, pa.table({"v": [0, 1, 2, 3]}))
    log = Path(root, "_delta_log")
    first = log / f"{0:020}.json"
    told = {
        name: one[name] for one in map(json.loads, first.read_text().splitlines()) for name in one
    }
    if mapped:
        fields = json.loads(told["metaData"]["schemaString"])
        fields["fields"][0]["metadata"] = {
            "delta.columnMapping.id": 1,
            "delta.columnMapping.physicalName": "v",
        }
        told["metaData"]["schemaString"] = json.dumps(fields)
        told["metaData"]["configuration"] = {
            "delta.columnMapping.mode": "name",
            "delta.columnMapping.maxColumnId": "1",
        }
        told["protocol"] = {"minReaderVersion": 2, "minWriterVersion": 5}
    else:
        names = ["deletionVectors"]
        told["protocol"] = {
            "minReaderVersion": 3,
            "minWriterVersion": 7,
            "readerFeatures": names,
            "writerFeatures": names,
        }
        told["add"] = with_vector(told["add"], [0])[1]["add"]
    first.write_text("\n".join(json.dumps({name: one}) for name, one in told.items()))
    opened(root).create_checkpoint()
    first.unlink()
    wanted = ps.read_table(root)
    assert len(wanted) == 3 + mapped
    path = os.path.join(root, unquote(told["add"]["path"]))
    made = ps.index.attach(path, lookup=["v"], table=opened(root))
    assert made.path != path
    _, remove, add = map(json.loads, (log / f"{1:020}.json").read_text().splitlines())
    assert add["add"]["partitionValues"] == remove["remove"]["partitionValues"] == {}
    assert "tags" not in add["add"] and "tags" not in remove["remove"]
    assert ("deletionVector" in add["add"]) != mapped
    table = opened(root)
    assert table.version() == 1 and len(table.file_uris()) == 1
    for source in (root, table):
        assert ps.read_table(source).equals(wanted)
    # and a rewrite of a table whose maps are empty
    table.create_checkpoint()
    ps.rewrite(opened(root), in_place=True, sort_by="v")
    assert opened(root).version() == 2 and ps.read_table(root).equals(wanted)


@pytest.mark.parametrize("change", ["append", "vector", "remove", "protocol"])
@pytest.mark.parametrize("late", [False, True])
def test_commits_meanwhile_to_a_file_with_a_vector(
    deleting: tuple[str, dict[str, Any]], change: str, late: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, added = deleting
    log = Path(root, "_delta_log", f"{2:020}.json")
    table, before = opened(root), set(Path(root).rglob("*.parquet"))
    removed = with_vector(added, [0])[0]
    names = ["deletionVectors", "timestampNtz", "rowTracking", "domainMetadata"]
    protocol = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": names[:2], "writerFeatures": names}  # fmt: skip
    actions = {
        "append": [{"commitInfo": {}}], "vector": with_vector(added, [0, 5, 7]), "remove": [removed], "protocol": [{"protocol": protocol}],
    }[change]  # fmt: skip

    def others() -> None:
        if not log.exists():
            log.write_text("\n".join(map(json.dumps, actions)))

    real = room.commit_body

    def body(*given: Any) -> bytes:
        others()
        return real(*given)

    if late:
        monkeypatch.setattr(room, "commit_body", body)
    path = os.path.join(root, unquote(added["path"]))

    def attach() -> Any:
        return ps.index.attach(path, bloom=["text"], table=table, progress=lambda _: None if late else others())  # fmt: skip

    if change in ("append", "vector"):
        assert attach().added
        assert opened(root).version() == 3
        assert ps.scan(root).count_rows() == N - (3 if change == "vector" else 2)
        return
    kind, why = (ps.FileChangedError, "taken") if change == "remove" else (ps.UnsupportedError, "rowTracking")  # fmt: skip
    with pytest.raises(kind, match=why):
        attach()
    assert opened(root).version() == 2
    assert set(Path(root).rglob("*.parquet")) == before
