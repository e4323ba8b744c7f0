"""Sources as users of pyarrow, pandas and fsspec have them: open files, iterators, datasets, fragments, filesystems."""

from __future__ import annotations

import io
import os
import pickle
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek.storage.file_objects import FileObject, FileObjectStore

fsspec = pytest.importorskip("fsspec")
TABLE = pa.table({"a": range(3000), "k": ["x", "y", None] * 1000})
LAST = TABLE.slice(2990)


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    pq.write_table(TABLE, "a.parquet", row_group_size=500, write_page_index=True)
    return str(tmp_path / "a.parquet")


class Watched(io.FileIO):
    """A file that counts the bytes read of it."""

    taken = 0

    def readinto(self, into: Any) -> int | None:
        n = super().readinto(into)
        self.taken += n or 0
        return n

    def read(self, size: int | None = -1) -> bytes:
        data = super().read(size) or b""
        self.taken += len(data)
        return data


def memory(path: str) -> Any:
    made = fsspec.filesystem("memory")
    made.pipe("given/a.parquet", Path(path).read_bytes())
    return made


OPEN: dict[str, Callable[[str], Any]] = {
    "file": lambda path: open(path, "rb"),  # noqa: SIM115
    "raw file": lambda path: open(path, "rb", buffering=0),  # noqa: SIM115
    "BytesIO": lambda path: io.BytesIO(Path(path).read_bytes()),
    "OSFile": lambda path: pa.OSFile(path),
    "memory_map": lambda path: pa.memory_map(path),
    "BufferReader": lambda path: pa.BufferReader(Path(path).read_bytes()),
    "file of fsspec": lambda path: memory(path).open("given/a.parquet"),
}
OTHERS: dict[str, Callable[[str], Any]] = {
    "fsspec.open": lambda path: fsspec.open(path),
    "fsspec.open, not local": lambda path: memory(path) and fsspec.open("memory://given/a.parquet"),
    "URL in a URL": lambda path: memory(path) and "simplecache::memory://given/a.parquet",
    "fsspec.open_files": lambda path: fsspec.open_files(path),
    "Buffer": lambda path: pa.py_buffer(Path(path).read_bytes()),
    "memoryview": lambda path: memoryview(Path(path).read_bytes()),
    "generator": lambda path: (one for one in [path]),
    "Path.glob": lambda path: Path(path).parent.glob("*.parquet"),
    "array": lambda path: np.array([path]),
    "keys": lambda path: {path: 1}.keys(),
    "file://": lambda path: Path(path).as_uri(),
    "dataset": lambda path: ds.dataset(path),
    "fragment": lambda path: next(ds.dataset(path).get_fragments()),
    "fragments": lambda path: ds.dataset(path).get_fragments(),
    "fragment of bytes": lambda path: ds.ParquetFileFormat().make_fragment(
        pa.py_buffer(Path(path).read_bytes())
    ),
    "all row groups": lambda path: next(ds.dataset(path).get_fragments()).subset(
        row_group_ids=range(6)
    ),
    "ParquetDataset": lambda path: pq.ParquetDataset(path),
    "ParquetFile": lambda path: ps.open(path),
}


@pytest.mark.parametrize("kind", [*OPEN, *OTHERS])
def test_the_rows_of_a_source(kind: str, path: str) -> None:
    given = {**OPEN, **OTHERS}[kind](path)
    assert ps.read_table(given, filter="a >= 2990").equals(LAST)
    if kind in OPEN:
        given.close()


@pytest.mark.parametrize("kind", OPEN)
def test_an_open_file_stays_open_and_where_it_stood(kind: str, path: str) -> None:
    file = OPEN[kind](path)
    file.seek(77)
    scan = ps.scan(file)
    assert scan.count_rows() == 3000
    assert scan.to_table().equals(TABLE)
    assert ps.open(file).num_rows == 3000
    assert scan.prepare("a = :k").many([5, 1])["a"].to_pylist() == [5, 1]
    assert not file.closed
    assert file.tell() == 77
    file.close()


def test_an_open_file_is_read_by_ranges(path: str) -> None:
    pq.write_table(
        pa.table({"a": range(300_000), "b": np.random.default_rng(1).random(300_000)}),
        path,
        row_group_size=10_000,
    )
    with Watched(path) as file:
        assert ps.read_table(file, filter="a = 150000").num_rows == 1
        assert 0 < file.taken < os.path.getsize(path) / 4


def test_threads_share_an_open_file(path: str) -> None:
    with open(path, "rb") as file, ThreadPoolExecutor(8) as pool:
        scan = ps.scan(file, threads=2)
        found = list(pool.map(lambda i: scan.filter("a = ?", [i]).to_table(), range(0, 3000, 50)))
    assert [one["a"].to_pylist() for one in found] == [[i] for i in range(0, 3000, 50)]


class Yielding(io.BytesIO):
    """Lets other threads come between a seek and the read behind it."""

    def seek(self, offset: int, whence: int = 0) -> int:
        found = super().seek(offset, whence)
        time.sleep(1e-4)
        return found


def test_scans_of_one_open_file_take_turns(path: str) -> None:
    """Each scan seeks and reads the same object: the ranges of one may not become those of another."""
    file = Yielding(Path(path).read_bytes())
    with ThreadPoolExecutor(4) as pool:
        keys = [i * 37 % TABLE.num_rows for i in range(60)]
        found = pool.map(lambda key: ps.read_table(file, filter=f"a = {key}"), keys)
        assert [one["a"].to_pylist() for one in found] == [[key] for key in keys]


@pytest.mark.parametrize("kind", ["open", "BytesIO"])
def test_an_object_that_is_written_over_is_no_mixture(kind: str, path: str) -> None:
    before = Path(path).read_bytes()
    after = before[:-100] + bytes(92) + before[-8:]
    if kind == "open":
        file: Any = open(path, "rb")  # noqa: SIM115
    else:
        file = io.BytesIO(before)
    batches = ps.scan(file, batch_size=100).to_batches()
    next(batches)
    if kind == "open":
        with open(path, "r+b") as other:
            other.write(after)
    else:
        file.getbuffer()[:] = after
    with pytest.raises(ps.FileChangedError, match="changed while it was being read; open it again"):
        list(batches)
    file.close()


class Slow(io.BytesIO):
    """Waits before each read, as files of a store do."""

    reads = 0

    def read(self, size: int | None = -1) -> bytes:
        self.reads += 1
        time.sleep(0.01)
        return super().read(size)


def test_a_slow_object_is_read_in_few_reads(path: str) -> None:
    file = Slow(Path(path).read_bytes())
    assert ps.read_table(file).equals(TABLE)
    assert file.reads < 8


def test_several_open_files_and_paths_are_one_source(path: str) -> None:
    with open(path, "rb") as file:
        data = io.BytesIO(file.read())
        found = ps.read_table([file, path, data], columns=["a"])
    assert found["a"].to_pylist() == [*range(3000)] * 3


class Pipe(io.RawIOBase):
    """A stream that cannot seek."""

    def __init__(self, data: bytes) -> None:
        self._data = io.BytesIO(data)

    def readable(self) -> bool:
        return True

    def readinto(self, into: Any) -> int:
        return self._data.readinto(into)


def test_a_stream_that_cannot_seek_is_read_wholly(path: str) -> None:
    assert ps.read_table(Pipe(Path(path).read_bytes()), filter="a >= 2990").equals(LAST)


class Short(io.BytesIO):
    """Gives fewer bytes than asked, as raw files may."""

    def read(self, size: int | None = -1) -> bytes:
        return super().read(100 if size is None or size < 0 else min(size, 100))


class Broken(io.BytesIO):
    def read(self, size: int | None = -1) -> bytes:
        raise KeyError("of its own")


class Texts(io.BytesIO):
    def read(self, size: int | None = -1) -> Any:
        return "x" * (size or 0)


def test_short_reads_are_continued(path: str) -> None:
    assert ps.read_table(Short(Path(path).read_bytes())).equals(TABLE)


@pytest.mark.parametrize("kind", [Broken, Texts])
def test_errors_of_a_file_object_are_ours(kind: type, path: str) -> None:
    with pytest.raises(ps.StoreError, match=rf"<{kind.__name__}>: "):
        ps.read_table(kind(Path(path).read_bytes()))


def test_a_file_object_that_becomes_shorter(path: str) -> None:
    data = io.BytesIO(Path(path).read_bytes())
    store = FileObjectStore(FileObject(data, "<BytesIO>"))
    store.check()
    data.truncate(4000)
    with pytest.raises(ps.FileChangedError, match="<BytesIO>: the file changed"):
        store.check()
    with pytest.raises(
        ps.StoreError, match="<BytesIO>: 1000 bytes asked at 3500, the file object gave 500"
    ):
        store.read([(3500, 1000)])
    with pytest.raises(OSError, match="bytes asked at"):
        store.read([(store.size, 1)])
    with pytest.raises(ps.CorruptFileError, match="<BytesIO>: ends in"):
        ps.read_table(data)


def test_open_files_that_cannot_be_read(path: str) -> None:
    words = "open as text; open it with mode 'rb'"
    with open(path, encoding="latin-1") as text, pytest.raises(TypeError, match=words):
        ps.scan(text)
    with open("new", "wb") as out, pytest.raises(TypeError, match="open for writing alone"):
        ps.scan(out)
    file = open(path, "rb")  # noqa: SIM115
    scan = ps.scan(file)
    file.close()
    with pytest.raises(ps.StoreError, match=r"a\.parquet: .* it is closed: keep it open"):
        scan.to_table()
    with pytest.raises(ValueError, match="is closed; keep it open"):
        ps.scan(file)
    with pytest.raises(TypeError, match="<BytesIO>: an open file object cannot be sent"):
        pickle.dumps(ps.scan(io.BytesIO(Path(path).read_bytes())))


def test_a_tilde_is_the_home_of_the_user(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", os.path.dirname(path))
    monkeypatch.setenv("USERPROFILE", os.path.dirname(path))
    for source in ("~/a.parquet", Path("~/a.parquet"), "~/*.parquet"):
        assert ps.scan(source).count_rows() == 3000
    os.mkdir("~")
    with open("~/a.parquet", "wb") as out:  # pyarrow would write into the home
        pq.write_table(TABLE.slice(0, 5), out)
    assert ps.scan("~/a.parquet").count_rows() == 5  # a folder of that name


# ---- datasets


def rows(table: pa.Table) -> list[Any]:
    return sorted(table.select(["a", "k"]).to_pylist(), key=lambda row: row["a"])


@pytest.mark.parametrize("flavor", ["hive", None])
def test_the_folders_of_a_dataset_are_columns(flavor: str | None, tmp_path: Path) -> None:
    """Also where their names say no more than the value."""
    given = ds.partitioning(pa.schema([("k", pa.string())]), flavor=flavor)
    ds.write_dataset(TABLE, tmp_path / "lake", format="parquet", partitioning=given)
    dataset = ds.dataset(tmp_path / "lake", partitioning=given)
    assert rows(ps.read_table(dataset)) == rows(TABLE)
    scan = ps.scan(dataset, filter="k = 'x' and a < 100")
    assert rows(scan.to_table()) == [row for row in rows(TABLE) if row["k"] == "x" and row["a"] < 100]  # fmt: skip
    assert scan.explain(analyze=True).to_dict()["files"]["total"] == 3
    assert ps.scan(dataset, filter="k is null").count_rows() == 1000


def test_folders_that_a_dataset_does_not_know_are_no_columns(tmp_path: Path) -> None:
    (tmp_path / "k=1").mkdir()
    pq.write_table(TABLE.select(["a"]), tmp_path / "k=1/a.parquet")
    assert ps.scan(ds.dataset(tmp_path, format="parquet")).schema.names == ["a"]
    assert ps.scan(ds.dataset(tmp_path, partitioning="hive")).schema.names == ["a", "k"]


def test_a_column_of_a_dataset_that_files_have_and_folders_too_is_refused(tmp_path: Path) -> None:
    """Here of the files of one folder, and there the value that the folder has for all rows."""
    (tmp_path / "x").mkdir()
    pq.write_table(TABLE.select(["a"]), tmp_path / "x/a.parquet")
    pq.write_table(TABLE, tmp_path / "b.parquet")
    given = ds.partitioning(pa.schema([("k", pa.string())]))
    with pytest.raises(ps.UnsupportedError, match=r"b\.parquet: .* value of 'k' for other files"):
        ps.scan(ds.dataset(tmp_path, partitioning=given))


def test_a_dataset_of_datasets(path: str) -> None:
    one = ds.dataset(path)
    assert ps.scan(ds.dataset([one, one])).count_rows() == 6000


def test_what_a_scan_would_leave_out_of_a_dataset_is_refused(path: str) -> None:
    dataset = ds.dataset(path)
    fragment = next(dataset.get_fragments())
    csv = ds.dataset(path, format="csv", schema=TABLE.schema)
    for source, words in (
        (dataset.filter(ds.field("a") > 5), "a filter of its own .* as filter="),
        (fragment.subset(row_group_ids=[1]), "a fragment of 1 of 6 row groups: give the path"),
        (pq.ParquetDataset(path, filters=[("a", ">", 5)]), "filters of its own"),
        (ds.dataset(TABLE), "InMemoryDataset: it has no files"),
        (csv, "a fragment of csv, not of Parquet"),
        (fsspec.open(path, compression="gzip"), r"compressed as a whole \(gzip\)"),
    ):
        with pytest.raises(ps.UnsupportedError, match=words):
            ps.scan(source)


def test_what_is_no_source(path: str) -> None:
    pandas = pytest.importorskip("pandas")
    for source, words in (
        (None, "source NoneType: a path, a URL"),
        (5, "source int: a path, a URL"),
        ({path}, r"set: a set has no order.*sorted\("),
        ({path: 1}, "dict: give a list of the keys"),
        (TABLE, "pyarrow.Table: its rows are in memory already"),
        (pandas.Series([path]), r"pandas.Series: give its .tolist\(\)"),
        (ps.scan(path), "pageseek.Scan: a scan goes on by its methods"),
        (pq.ParquetFile(path), "ParquetFile: it does not tell its path"),
    ):
        with pytest.raises(TypeError, match=words):
            ps.scan(source)


# ---- filesystem=


def test_paths_on_a_filesystem(path: str, tmp_path: Path) -> None:
    made, local = memory(path), pafs.LocalFileSystem()
    for source, filesystem in (
        (path, local),
        (Path(path), local),
        ("a.parquet", pafs.SubTreeFileSystem(str(tmp_path), local)),
        ("given/a.parquet", made),
        ("memory://given/a.parquet", made),
        ("given", made),
    ):
        assert ps.scan(source, filesystem=filesystem).count_rows() == 3000
        assert ps.read_table(source, filesystem=filesystem, filter="a >= 2990").equals(LAST)
    assert ps.scan(["given/a.parquet"] * 2, filesystem=made).count_rows() == 6000
    assert ps.open("given/a.parquet", filesystem=made).num_rows == 3000


def test_filesystems_that_are_none(path: str) -> None:
    made = memory(path)
    for source, filesystem, words in (
        (path, "s3", "filesystem='s3': a filesystem of pyarrow"),
        (path, 5, "filesystem: int is no filesystem"),
        ((made, "given/a.parquet"), made, "has one already"),
        (b"PAR1", made, "the source bytes has no path"),
    ):
        with pytest.raises(TypeError, match=words):
            ps.scan(source, filesystem=filesystem)


def test_two_colons_are_no_url_in_a_url(path: str) -> None:
    with pytest.raises(FileNotFoundError, match="a::b: no such file"):
        ps.scan("a::b")
    os.rename(path, "simplecache::x")
    assert ps.scan("simplecache::x").count_rows() == 3000
