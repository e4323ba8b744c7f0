"""Folders that are tables of Delta Lake and Iceberg: the current version is read, under any name of the folder."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek.datasets.delta_log import chosen_log
from pageseek.datasets.lake_folders import current_metadata
from pageseek.storage.table_folders import kind_here
from support.opened import open_metadata

deltalake = pytest.importorskip("deltalake", reason="pip install 'pageseek[delta]'")
N = 200
OLD = pa.table({"id": pa.array(range(N), pa.int64()), "k": ["x", "y"] * (N // 2)})
NEW = pa.table({"id": pa.array(range(N, 2 * N), pa.int64()), "k": ["x", "y"] * (N // 2)})


def ids(table: pa.Table) -> list[int]:
    return sorted(table["id"].to_pylist())


CURRENT, BARE = ids(NEW), ids(pa.concat_tables([OLD, NEW]))


def delta_in(folder: Path) -> str:
    """A table that was overwritten once: its old files are still there."""
    deltalake.write_deltalake(str(folder), OLD, partition_by=["k"])
    deltalake.write_deltalake(str(folder), NEW, mode="overwrite")
    return str(folder)


@pytest.fixture
def delta(tmp_path: Path) -> str:
    return delta_in(tmp_path / "lake" / "a table")


@pytest.fixture
def iceberg(catalog: Any, tmp_path: Path) -> str:
    from pyiceberg.transforms import IdentityTransform

    table = catalog.create_table("n.t", schema=OLD.schema)
    with table.update_spec() as spec:
        spec.add_field("k", IdentityTransform(), "k")
    table.append(OLD)
    table.overwrite(NEW)
    return str(table.metadata.location).removeprefix("file://")


KINDS = pytest.mark.parametrize("kind", ["delta", "iceberg"])
FORMS: dict[str, Callable[[str], Any]] = {
    "path": str,
    "slash": lambda root: f"{root}/",
    "pathlib": Path,
    "url": lambda root: Path(root).as_uri(),
    "list": lambda root: [root],
    "arrow": lambda root: (pafs.LocalFileSystem(), root),
    "below a subtree": lambda root: (
        pafs.SubTreeFileSystem(os.path.dirname(root), pafs.LocalFileSystem()), os.path.basename(root)
    ),
    "a subtree": lambda root: (pafs.SubTreeFileSystem(root, pafs.LocalFileSystem()), ""),
    "obstore": lambda root: (pytest.importorskip("obstore.store").LocalStore(root), ""),
    "fsspec": lambda root: (pytest.importorskip("fsspec").filesystem("file"), root),
}  # fmt: skip


@KINDS
@pytest.mark.parametrize("form", FORMS)
def test_a_folder_is_its_current_version(
    kind: str, form: str, request: pytest.FixtureRequest
) -> None:
    root = request.getfixturevalue(kind)
    source = FORMS[form](root)
    assert ids(ps.read_table(source)) == CURRENT
    assert ids(ps.read_table(source, table=True)) == CURRENT
    assert ids(ps.read_table(source, table=False, partitioning=False)) == BARE
    found = ps.scan(source, filter="k = 'x' and id > 210").explain().to_dict()
    assert found["files"]["pruned_by"] == {"partition": 1}


@KINDS
def test_explain_names_the_version(kind: str, request: pytest.FixtureRequest) -> None:
    root = request.getfixturevalue(kind)
    said = {
        "delta": f"Delta Lake table {root}: version 1",
        "iceberg": f"Iceberg table {root}: metadata/00003-",
    }[kind]
    for report in (
        ps.scan(root).explain(),
        ps.scan(root).explain(analyze=True),
        ps.scan(root).explain(aggregate=["count"]),
        ps.scan(root).plan().report,
    ):
        (note,) = report.to_dict()["notes"]
        assert note.startswith(said)
        assert note in str(report)
    if kind == "iceberg":
        assert ", snapshot " in note


def test_explain_names_the_version_of_an_object(delta: str, catalog: Any) -> None:
    table = deltalake.DeltaTable(delta, version=0)
    (note,) = ps.scan(table).explain().notes
    assert note.startswith("Delta Lake table file://")
    assert note.endswith("version 0")
    made = catalog.create_table("n.t", schema=OLD.schema)
    assert ps.scan(made).explain().notes == [f"Iceberg table {made.metadata.location}: no snapshot"]
    made.append(OLD)
    first = made.current_snapshot().snapshot_id
    made.append(OLD)
    (note,) = ps.scan(made.scan(snapshot_id=first)).explain().notes
    assert note.endswith(f"snapshot {first}")


@KINDS
@pytest.mark.parametrize("installed", [False, True])
def test_without_its_package(
    kind: str, installed: bool, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = request.getfixturevalue(kind)
    if not installed:
        package = {"delta": "deltalake", "iceberg": "pyiceberg"}[kind]
        for name in [one for one in sys.modules if one.partition(".")[0] == package]:
            monkeypatch.delitem(sys.modules, name)
        monkeypatch.setitem(sys.modules, package, None)
        with pytest.raises(ps.UnsupportedError, match="table=False") as caught:
            ps.read_table(root)
        assert f'pip install "pageseek[{kind}]"' in str(caught.value)
        assert root in str(caught.value)
    assert len(ids(ps.read_table(root, table=False, partitioning=False))) == 2 * N


@KINDS
def test_options_that_a_table_has_itself(kind: str, request: pytest.FixtureRequest) -> None:
    root = request.getfixturevalue(kind)
    for options in ({"partitioning": False}, {"schema": OLD.schema}):
        with pytest.raises(ValueError, match="table=False"):
            ps.read_table(root, **options)


@KINDS
def test_what_lies_inside_is_read_as_it_is_named(kind: str, request: pytest.FixtureRequest) -> None:
    root = Path(request.getfixturevalue(kind))
    files = sorted(root.rglob("*.parquet"))
    note = (
        f"{root} is a table of {'Delta Lake' if kind == 'delta' else 'Iceberg'}: "
        "the files that were named are read, whichever of its versions have them"
    )
    top = root if kind == "delta" else root / "data"
    for source, rows in (
        (files[0], N // 2),
        ([files[0], files[1]], N),
        (top / "k=x", N),
        (f"{top}/k=x/*.parquet", N),
        (f"{root}/**/*.parquet", 2 * N),
    ):
        scan = ps.scan(source, columns=["id"])
        assert scan.count_rows() == rows, source
        assert scan.explain().notes == [note], source
    bare = ps.scan(root, table=False, columns=["id"])
    assert bare.explain().notes == [note]


@KINDS
def test_a_file_elsewhere_is_no_part_of_a_table(kind: str, tmp_path: Path) -> None:
    pq.write_table(OLD, tmp_path / "a.parquet")
    (tmp_path / "metadata").mkdir()
    (tmp_path / "metadata" / "notes.json").write_text("{}")
    (tmp_path / "metadata" / "b.parquet").write_bytes((tmp_path / "a.parquet").read_bytes())
    assert ps.scan(tmp_path).explain().notes == []
    assert ps.read_table(tmp_path).num_rows == 2 * N
    assert kind_here(str(tmp_path)) is None


@KINDS
def test_folders_of_tables_are_refused(kind: str, request: pytest.FixtureRequest) -> None:
    root = request.getfixturevalue(kind)
    lake = os.path.dirname(root)
    deeper = "data/*/*" if kind == "iceberg" else "*/*"
    for source in (lake, os.path.dirname(lake), f"{lake}/*/{deeper}.parquet", [lake], Path(lake)):
        with pytest.raises(ps.UnsupportedError, match="table=False") as caught:
            ps.read_table(source)
        assert root in str(caught.value)
    assert ids(ps.read_table(lake, table=False, columns=["id"])) == BARE
    # a glob that reaches none of its files is none of its business
    pq.write_table(OLD, os.path.join(lake, "beside.parquet"))
    assert ids(ps.read_table(f"{lake}/*.parquet")) == ids(OLD)


@KINDS
def test_a_table_is_read_alone(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    root = request.getfixturevalue(kind)
    pq.write_table(OLD, tmp_path / "one.parquet")
    for source in ([root, root], [str(tmp_path / "one.parquet"), root]):
        with pytest.raises(ps.UnsupportedError, match="alone"):
            ps.read_table(source)


def test_links_to_tables(delta: str, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(delta)
    assert ids(ps.read_table(link)) == CURRENT
    pq.write_table(OLD, tmp_path / "one.parquet")
    with pytest.raises(ps.UnsupportedError, match="link"):
        ps.read_table(tmp_path)


# -- indexes --------------------------------------------------------------------------------------


@KINDS
def test_indexes_of_a_folder(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    root = Path(request.getfixturevalue(kind))
    before = {one: one.read_bytes() for one in root.rglob("*") if one.is_file()}
    for change in (ps.index.attach, ps.index.detach):
        for where in ({"in_place": True}, {"output": tmp_path / "out.parquet"}):
            with pytest.raises(ps.UnsupportedError, match="commit it through the table") as caught:
                change(root, **where)
            assert str(root) in str(caught.value)
    with pytest.raises(ValueError, match="2 files in the current version"):
        ps.index.list(root)
    with pytest.raises(ValueError, match="4 files"):
        ps.index.verify(root, table=False)
    with pytest.raises(ValueError, match="4 files"):
        ps.index.attach(root, table=False, output=tmp_path / "out.parquet")
    assert before == {one: one.read_bytes() for one in root.rglob("*") if one.is_file()}


def test_the_one_file_of_a_table(tmp_path: Path) -> None:
    """The folder has two files, and the table one of them."""
    root = str(tmp_path / "t")
    deltalake.write_deltalake(root, OLD)
    deltalake.write_deltalake(root, NEW, mode="overwrite")
    (current,) = deltalake.DeltaTable(root).file_uris()
    assert ps.index.verify(root).path == f"Delta Lake table {root}: version 1"
    assert all(not one.attached for one in ps.index.list(root))
    with open_metadata(root) as file:
        assert file.name == current
    with pytest.raises(ValueError, match="2"):
        open_metadata(root, table=False)
    table = deltalake.DeltaTable(root)
    done = ps.index.attach(root, table=table, distinct=["k"])
    assert done.added
    assert done.path != current
    assert ids(ps.read_table(root)) == CURRENT
    assert any(one.attached for one in ps.index.list(root))
    assert ids(ps.read_table(root, table=False)) == sorted([*BARE, *CURRENT])
    ps.index.detach(root, table=deltalake.DeltaTable(root))
    assert ids(ps.read_table(root)) == CURRENT


@KINDS
def test_what_was_attached_through_the_table_is_read_once(
    kind: str, request: pytest.FixtureRequest
) -> None:
    root = request.getfixturevalue(kind)
    if kind == "delta":
        table = deltalake.DeltaTable(root)
        files = table.file_uris()
    else:
        table = request.getfixturevalue("catalog").load_table("n.t")
        files = table.inspect.data_files()["file_path"].to_pylist()
    for file in files:
        assert ps.index.attach(file, distinct=["id"], table=table).added
    assert ids(ps.read_table(root)) == CURRENT


# -- Delta Lake -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["a%20b", "a#b?c", "a[1]", "ä ü", "a:b"])
def test_names_that_deltalake_reads_otherwise(delta: str, tmp_path: Path, name: str) -> None:
    """The log is given to it under another name."""
    root = tmp_path / name
    for version in range(2, 12):
        deltalake.write_deltalake(delta, NEW, mode="overwrite")
        if version == 10:
            deltalake.DeltaTable(delta).create_checkpoint()
    for old in range(9):  # as after a while
        os.unlink(os.path.join(delta, "_delta_log", f"{old:020}.json"))
    shutil.copytree(delta, root)
    assert ids(ps.read_table(root)) == CURRENT
    (note,) = ps.scan(root).explain().notes
    assert note == f"Delta Lake table {root}: version 11"


def test_a_log_that_says_nothing(tmp_path: Path) -> None:
    pq.write_table(OLD, tmp_path / "a.parquet")
    log = tmp_path / "_delta_log"
    log.mkdir()
    for text in (None, "", "{"):
        if text is not None:
            (log / f"{0:020}.json").write_text(text)
        with pytest.raises(ps.UnsupportedError, match="table=False"):
            ps.read_table(tmp_path)
    assert ids(ps.read_table(tmp_path, table=False)) == ids(OLD)


@pytest.mark.parametrize("name", ["plain", "copied#"])
def test_the_file_of_a_deletion_vector_is_missing(tmp_path: Path, name: str) -> None:
    root = tmp_path / name
    deltalake.write_deltalake(str(tmp_path / "t"), pa.table({"a": list(range(40))}))
    os.rename(tmp_path / "t", root)
    log = root / "_delta_log" / f"{0:020}.json"
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    for action in actions:
        if "protocol" in action:
            names = ["deletionVectors"]
            action["protocol"] = {
                "minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": names, "writerFeatures": names,
            }  # fmt: skip
        if "add" in action:
            action["add"]["deletionVector"] = {
                "storageType": "u", "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^", "offset": 1,
                "sizeInBytes": 36, "cardinality": 2,
            }  # fmt: skip
    log.write_text("\n".join(map(json.dumps, actions)))
    for checksum in (root / "_delta_log").glob("*.crc"):
        checksum.unlink()
    file = "ab/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin"
    with pytest.raises(FileNotFoundError, match=file):
        ps.read_table(root)
    (root / "ab").mkdir()
    (root / file).write_bytes(b"\1" + bytes(44))
    with pytest.raises(ps.CorruptFileError, match=f"{file} at byte 1: it has 0 bytes there"):
        ps.read_table(root)


def test_a_table_of_both_is_what_its_log_says(delta: str, iceberg: str) -> None:
    shutil.copytree(os.path.join(iceberg, "metadata"), os.path.join(delta, "metadata"))
    (note,) = ps.scan(delta).explain().notes
    assert note.startswith("Delta Lake")


def numbers(*names: str) -> list[str]:
    return [name.replace("N", f"{int(name[1:3]):020}", 1)[:20] + name[3:] for name in names]


def test_what_is_needed_of_a_log() -> None:
    plain = numbers("N00.json", "N01.json", "N02.json")
    assert chosen_log(["_last_checkpoint", "x.json", *plain]) == plain
    assert chosen_log([*plain, *numbers("N01.checkpoint.parquet")]) == numbers(
        "N01.json", "N02.json", "N01.checkpoint.parquet"
    )
    parts = numbers("N02.checkpoint.0000000001.0000000002.parquet", "N02.checkpoint.0000000002.0000000002.parquet")  # fmt: skip
    assert chosen_log([*plain, *parts]) == [plain[2], *parts]
    assert chosen_log([*plain, parts[0]]) == plain  # it is not whole
    second = numbers("N01.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.json")
    side = "_sidecars/3a0d65cd-4056-49b8-937b-95f9e3ee90e5.parquet"
    assert chosen_log([*plain, *second, side]) == [*plain[1:], *second, side]
    assert chosen_log([*plain, *numbers("N00.crc"), "../x.json", side]) == plain


# -- Iceberg --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("names", "hint", "found"),
    [
        (["v1.metadata.json", "v3.metadata.json", "v10.metadata.json"], None, "v10.metadata.json"),
        (["v1.metadata.json", "v3.metadata.json"], "1", "v1.metadata.json"),
        (["v1.metadata.json", "v3.gz.metadata.json"], "3\n", "v3.gz.metadata.json"),
        (["v2.metadata.json", "v3.metadata.json.gz"], None, "v3.metadata.json.gz"),
        (["00001-a.metadata.json", "00010-b.metadata.json", "00009-c.gz.metadata.json"], None, "00010-b.metadata.json"),
        (["00001-a.metadata.json", "00002-b.gz.metadata.json"], "", "00002-b.gz.metadata.json"),
        (["00001-a.metadata.json", "00002-b.metadata.json"], "00001-a", "00001-a.metadata.json"),
        (["00001-a.metadata.json", "00002-b.metadata.json"], "00001-a.metadata.json", "00001-a.metadata.json"),
        (["00001-a.metadata.json", "00002-b.metadata.json"], "1", "00001-a.metadata.json"),
        (["v3.metadata.json", "v3.1.metadata.json", "v3-x.metadata.json"], None, "v3.metadata.json"),
        (["v7.metadata.json", "00007-x.metadata.json"], "7", "v7.metadata.json"),
        (["v1.metadata.json"], "2", None),
        (["v1.metadata.json"], "none", None),
        (["vfinal.metadata.json", "x.json", "snap-1.avro"], None, None),
    ],
)  # fmt: skip
def test_the_current_metadata(names: list[str], hint: str | None, found: str | None) -> None:
    assert current_metadata(["version-hint.text", "snap-9.avro", *names], hint) == found
    assert current_metadata(reversed(names), hint) == found


@pytest.mark.parametrize("hint", [None, "2"])
def test_two_metadata_files_of_one_number(hint: str | None) -> None:
    names = ["00001-a.metadata.json", "00002-b.metadata.json", "00002-c.metadata.json"]
    with pytest.raises(ValueError, match=r"00002-b\.metadata\.json, 00002-c\.metadata\.json"):
        current_metadata(names, hint)


def metadata_files(root: str) -> list[Path]:
    return sorted(Path(root, "metadata").glob("*.metadata.json"))


def test_the_hint_says_which_version(iceberg: str) -> None:
    *_, first, second = metadata_files(iceberg)
    hint = first.with_name("version-hint.text")
    hint.write_text(first.name.removesuffix(".metadata.json"))
    assert ids(ps.read_table(iceberg)) == ids(OLD)
    hint.write_text(second.name)
    assert ids(ps.read_table(iceberg)) == CURRENT
    hint.write_text("7")
    with pytest.raises(ps.UnsupportedError, match=r"version-hint\.text says '7'.*load_table"):
        ps.read_table(iceberg)


@pytest.mark.parametrize("end", [".gz.metadata.json", ".metadata.json.gz"])
def test_compressed_metadata(iceberg: str, end: str) -> None:
    newest = metadata_files(iceberg)[-1]
    made = newest.with_name("v9" + end)
    made.write_bytes(gzip.compress(newest.read_bytes()))
    for one in metadata_files(iceberg):
        if one != made:
            one.unlink()
    assert kind_here(iceberg) == "Iceberg"
    assert ids(ps.read_table(iceberg)) == CURRENT
    whole = made.read_bytes()
    for damaged in (whole[:50], whole[:20] + bytes(30) + whole[50:], b"{}" + whole):
        made.write_bytes(damaged)
        with pytest.raises(ps.CorruptFileError, match="v9"):
            ps.read_table(iceberg)


def test_metadata_that_says_nothing(iceberg: str) -> None:
    newest = metadata_files(iceberg)[-1]
    later = newest.with_name("00009-later.metadata.json")
    later.write_text("{}")
    with pytest.raises(ps.UnsupportedError, match=r"pyiceberg.*table=False"):
        ps.read_table(iceberg)
    later.write_bytes(b"\xff\xfe")
    with pytest.raises(ps.CorruptFileError, match="00009"):
        ps.read_table(iceberg)
    shutil.copy(newest, later)
    assert ids(ps.read_table(iceberg)) == CURRENT
    shutil.copy(newest, newest.with_name("00009-other.metadata.json"))
    with pytest.raises(ps.UnsupportedError, match=r"are of one version.*load_table"):
        ps.read_table(iceberg)


def test_a_manifest_that_is_gone(iceberg: str) -> None:
    for one in Path(iceberg, "metadata").glob("*-m0.avro"):
        one.unlink()
    with pytest.raises(FileNotFoundError, match=r"avro"):
        ps.read_table(iceberg)


@pytest.mark.parametrize("form", ["path", "pathlib", "url", "list", "arrow", "obstore", "fsspec"])
def test_a_metadata_file_is_its_version(iceberg: str, form: str) -> None:
    *_, old, new = metadata_files(iceberg)
    elsewhere = new.with_name("other")
    elsewhere.mkdir()
    for file, rows in ((old, ids(OLD)), (new, CURRENT), (shutil.copy(old, elsewhere), ids(OLD))):
        given = FORMS[form](str(file))
        if form == "obstore":
            store = pytest.importorskip("obstore.store").LocalStore(os.path.dirname(file))
            given = store, os.path.basename(file)
        assert ids(ps.read_table(given)) == rows
        (note,) = ps.scan(given, filter="id = 7").explain().to_dict()["notes"]
        assert note.startswith("Iceberg table ") and os.path.basename(file) in note
    broken = new.with_name("v9.metadata.json")
    broken.write_text("{")
    with pytest.raises(
        ps.UnsupportedError, match=r"v9\.metadata\.json: .*give the folder of the table"
    ):
        ps.read_table(str(broken))
    with pytest.raises(ps.CorruptFileError, match=r"v9\.metadata\.json"):  # not a Parquet file
        ps.read_table(str(broken), table=False)
    with pytest.raises(FileNotFoundError, match=r"v8\.metadata\.json"):
        ps.read_table(str(broken.with_name("v8.metadata.json")))
    with pytest.raises(ps.UnsupportedError, match="is read alone"):
        ps.read_table([str(new), str(new)])
