"""Few rows of row groups, all leaves by one thread of the core: the rows, counts and errors are those of reading leaf by leaf."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek._core.points import AVAILABLE
from pageseek._core.rows import RowRanges
from pageseek.format.columns import Part
from pageseek.format.file_metadata import FileMetadata
from pageseek.io.range_requests import DecodePages
from pageseek.scanning.leaves import few_rows
from pageseek.scanning.one_file import group_reader
from pageseek.scanning.requests.steps import ScanContext, Steps
from support.opened import open_metadata
from support.prepared_queries import FLAT, made

pytestmark = [
    pytest.mark.skipif(not AVAILABLE, reason="the core reads no files here"),
    pytest.mark.usefixtures("scans"),
]
GROUPS = 6


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    at = tmp_path_factory.mktemp("few") / "a.parquet"
    written(at)
    return at


@cache
def table() -> pa.Table:
    rows = made().select(FLAT)
    rows = rows.append_column("row", pa.array(range(len(rows))))
    shuffled = random.Random(1).sample(range(len(rows)), len(rows))
    return rows.append_column("key", pa.array([n % 700 for n in shuffled], pa.int32()))


def written(at: Path, **options: Any) -> pa.Table:
    """A file of all types, in six row groups of five pages, some with dictionaries; and its rows."""
    rows = table()
    told: dict[str, Any] = {"use_dictionary": ["d32", "text", "i8", "view"], "compression": "zstd"}
    pq.write_table(
        rows,
        at,
        row_group_size=len(rows) // GROUPS,
        write_page_index=True,
        max_rows_per_page=100,
        **(told | options),
    )
    return rows


class Taken:
    """How many row groups were read so, and how many were not."""

    def __init__(self) -> None:
        self.done = self.left = 0

    def read_few(
        self,
        file: FileMetadata,
        row_group: int,
        parts: list[Part],
        ranges: RowRanges,
        context: ScanContext,
    ) -> Steps[list[pa.Array] | None]:
        found = yield from few_rows.read_few(file, row_group, parts, ranges, context)
        self.done += found is not None
        self.left += found is None
        return found


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> Taken:
    found = Taken()
    monkeypatch.setattr(group_reader, "read_few", found.read_few)
    return found


def leaf_by_leaf(read: Callable[[], Any]) -> Any:
    """What the other way gives."""

    def none(*_: Any) -> Iterator[Any]:
        yield from ()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(group_reader, "read_few", none)
        return read()


def counts(report: ps.Report) -> dict[str, Any]:
    found = report.to_dict()
    return {name: found[name] for name in ("leaves", "bytes", "requests", "rows", "row_groups", "pages")}  # fmt: skip


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("options", [{}, {"string_type": "view"}, {"string_type": "large"}])
def test_rows_and_counts_of_each_type(
    path: Path, taken: Taken, threads: int, options: dict[str, Any]
) -> None:
    keys = pq.read_table(path, columns=["key"])["key"].to_pylist()
    for key in (0, 5, 333, 699, -1):
        scan = ps.scan(path, filter=ps.col("key") == key, threads=threads, **options)
        before = taken.done
        found = scan.to_table()
        assert (taken.done > before) == (key >= 0)
        found.validate(full=True)
        wanted = leaf_by_leaf(scan.to_table)
        assert found.schema.equals(wanted.schema, check_metadata=True)
        assert repr(found.to_pylist()) == repr(wanted.to_pylist())  # NaN
        assert found["row"].to_pylist() == [at for at, one in enumerate(keys) if one == key]
        assert counts(scan.explain(analyze=True)) == leaf_by_leaf(
            lambda scan=scan: counts(scan.explain(analyze=True))
        )
    assert not taken.left


@pytest.mark.parametrize("compression", ["none", "snappy", "zstd", "lz4", "gzip", "brotli"])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_codecs_and_pages(tmp_path: Path, taken: Taken, compression: str, version: str) -> None:
    at = tmp_path / "a.parquet"
    rows = written(at, compression=compression, data_page_version=version).to_pylist()
    for key in range(0, 700, 99):
        found = ps.read_table(at, filter=ps.col("key") == key)
        assert repr(found.to_pylist()) == repr([row for row in rows if row["key"] == key])
    assert taken.done and not taken.left


def test_ranges_of_rows(tmp_path: Path, taken: Taken) -> None:
    """Rows of several pages, runs of rows, and most rows of a row group."""
    at = tmp_path / "a.parquet"
    rows = written(at).to_pylist()
    for keep in (
        lambda n: n % 97 == 0,
        lambda n: n % 500 > 440,
        lambda n: n % 10 > 0,
        lambda n: n % 500 == 499,
    ):
        some = [n for n in range(len(rows)) if keep(n)]
        found = ps.read_table(at, filter=ps.col("row").isin(some))
        assert repr(found.to_pylist()) == repr([rows[n] for n in some])
    assert taken.done


@pytest.mark.parametrize("way", ["many bytes", "a log", "a dictionary", "no index", "one column"])
def test_what_is_read_leaf_by_leaf(
    tmp_path: Path,
    taken: Taken,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    way: str,
) -> None:
    at = tmp_path / "a.parquet"
    rows = written(at).select(["row", "text", "i8", "key"])
    columns, options = ["row", "text", "i8"], {}
    if way == "many bytes":
        monkeypatch.setattr(few_rows, "MOST_BYTES", 100)
    elif way == "a log":
        caplog.set_level(logging.DEBUG, "pageseek.io")
    elif way == "a dictionary":
        options = {"dictionary_columns": ["text"]}
    elif way == "no index":
        pq.write_table(rows, at, row_group_size=500, data_page_size=500)
    else:
        columns = ["row"]
    found = ps.read_table(at, columns, ps.col("key") == 7, **options)
    wanted = rows.filter(pa.compute.equal(rows["key"], 7)).select(columns)
    assert found.to_pylist() == wanted.to_pylist()
    assert not taken.done and (bool(taken.left) or way in ("no index", "one column"))


def damaged(at: Path, column: str, change: Callable[[bytearray, int], None]) -> None:
    """Change bytes of the last page of a column in the second row group."""
    index = open_metadata(at.read_bytes()).offset_index(1, column)
    assert index is not None
    offset = int(index.offset[-1])
    data = bytearray(at.read_bytes())
    change(data, offset)
    at.write_bytes(data)


def _header(data: bytearray, at: int) -> None:
    data[at : at + 4] = b"\xff\xff\xff\xff"


def _body(data: bytearray, at: int) -> None:
    data[at + 40 : at + 60] = bytes(20)


@pytest.mark.parametrize("change", [_header, _body])
@pytest.mark.parametrize("threads", [1, 2])
def test_errors_are_those_of_reading_leaf_by_leaf(
    tmp_path: Path, taken: Taken, change: Callable[[bytearray, int], None], threads: int
) -> None:
    at = tmp_path / "a.parquet"
    rows = written(at, compression="snappy")
    last = rows["key"][2 * (len(rows) // GROUPS) - 1].as_py()
    damaged(at, "large", change)

    def read() -> Any:
        ps.clear_cache()
        try:
            return ps.read_table(at, filter=ps.col("key") == last, threads=threads).num_rows
        except ps.PageseekError as error:
            return type(error), str(error)

    answers = [read(), leaf_by_leaf(read)]
    assert answers[0] == answers[1]
    assert (
        isinstance(answers[0], tuple) or change is _header
    )  # a header is looked for without the index
    assert taken.left


def test_a_file_that_changes(tmp_path: Path, taken: Taken, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file is another one when the rows are known and the payload is read."""
    at = tmp_path / "a.parquet"
    written(at)

    def changed(*given: Any) -> Any:
        with at.open("r+b") as file:
            file.write(b"PAR1")
            file.truncate(at.stat().st_size // 2)
        return taken.read_few(*given)

    monkeypatch.setattr(group_reader, "read_few", changed)
    with pytest.raises(ps.FileChangedError, match=r"a\.parquet"):
        ps.read_table(at, filter=ps.col("key") == 7)


def test_threads_at_once(path: Path, taken: Taken) -> None:
    from concurrent.futures import ThreadPoolExecutor

    keys = pq.read_table(path, columns=["key"])["key"].to_pylist()

    def read(key: int) -> None:
        for threads in (1, 2):
            found = ps.read_table(path, filter=ps.col("key") == key, threads=threads)
            assert found["row"].to_pylist() == [at for at, one in enumerate(keys) if one == key]

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(read, range(40)))
    assert taken.done


def test_long_strings_as_views(tmp_path: Path, taken: Taken) -> None:
    rng = np.random.default_rng(4)
    n = 3_000
    rows = pa.table(
        {
            "key": rng.permutation(n) % 300,
            "row": range(n),
            "long": [None if i % 7 == 0 else f"{i} " * (i % 40) for i in range(n)],
            "short": [str(i) for i in range(n)],
            "none": pa.nulls(n, pa.string()),
        }
    )
    at = tmp_path / "a.parquet"
    pq.write_table(rows, at, row_group_size=600, write_page_index=True, max_rows_per_page=100)
    for key in range(0, 300, 37):
        found = ps.read_table(at, filter=ps.col("key") == key, string_type="view")
        found.validate(full=True)
        assert found.schema.field("long").type == pa.string_view()
        wanted = rows.filter(pa.compute.equal(rows["key"], key))
        assert found.to_pylist() == wanted.to_pylist()
    assert taken.done and not taken.left


@pytest.mark.slow
def test_views_of_several_data_buffers(tmp_path: Path, taken: Taken) -> None:
    """Strings of more than 1 GiB together, of which one lies on both sides of the border."""
    n, text = 290, "x" * 4_000_000
    rows = pa.table({"key": [1] * (n - 1) + [2], "row": range(n), "long": [text] * n})
    at = tmp_path / "a.parquet"
    pq.write_table(
        rows, at, row_group_size=n, write_page_index=True, use_dictionary=False, compression="zstd",
        write_batch_size=1, max_rows_per_page=1, write_statistics=["key", "row"],
    )  # fmt: skip
    condition = (ps.col("key") == 1) | (ps.col("key") == 5)
    found = ps.read_table(at, filter=condition, string_type="view", threads=1)
    assert taken.done and not taken.left
    found.validate(full=True)
    assert set(found["long"].to_pylist()) == {text} and found.num_rows == n - 1


def test_one_page_without_an_index_and_a_task_that_fails(
    tmp_path: Path, taken: Taken, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A leaf of one page needs no index; what a task has read before it failed is counted."""
    at = tmp_path / "a.parquet"
    rows = table().select(["key", "row", "large", "bool"])
    pq.write_table(
        rows, at, row_group_size=500, write_page_index=True, data_page_size=500,
        write_batch_size=50, use_dictionary=False,
    )  # fmt: skip
    assert open_metadata(at.read_bytes()).offset_index(0, "bool").num_pages == 1  # type: ignore[union-attr]
    scan = ps.scan(at, filter=ps.col("key") == 7, threads=1)
    scan.explain(analyze=True)
    found = counts(scan.explain(analyze=True))
    assert taken.done and not taken.left
    assert found == leaf_by_leaf(lambda: counts(scan.explain(analyze=True)))
    wanted = [row for row in rows.to_pylist() if row["key"] == 7]
    assert scan.to_table().to_pylist() == wanted
    task = counts(scan.explain(analyze=True))

    def failing(*given: Any) -> Any:
        """The task is done, and its result is lost."""
        steps = few_rows.read_few(*given)
        try:
            step = next(steps)
            while True:
                answer = yield step
                step = steps.send([None] if isinstance(step, DecodePages) else answer)
        except StopIteration as done:
            return done.value

    monkeypatch.setattr(group_reader, "read_few", failing)
    both = counts(scan.explain(analyze=True))
    assert both["rows"] == task["rows"] and both["pages"] == task["pages"]
    assert both["requests"] > task["requests"]
    payload = sum(leaf["bytes"] for name, leaf in task["leaves"].items() if name != "key")
    assert both["bytes"]["data"] == task["bytes"]["data"] + payload
