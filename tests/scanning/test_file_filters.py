"""Bloom filters of whole files, probed together for many files: the results equal opening each file by itself."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek.base.report import Report
from pageseek.datasets.file_cache import cache
from pageseek.format import file_bloom_form as form
from pageseek.format.embedded import KEY, PAYLOAD_HEAD_BYTES, directory
from pageseek.format.file_metadata import FileMetadata
from pageseek.io import tails
from pageseek.scanning.many_files import file_filters, footer_batches, homogeneous_files
from pageseek.scanning.one_file import file_scan
from pageseek.storage.resolve import resolve
from support.batch_comparison import check_rows, opened, outcome, same_rows

N, ROWS = 24, 1_500


@pytest.fixture(autouse=True)
def _no_cache() -> Iterator[None]:
    ps.clear_cache()
    yield
    ps.clear_cache()


def table(i: int) -> pa.Table:
    """Numbers and texts without order, each in one file only; file 5 has nulls and NaN, and file 7 no rows."""
    number = np.random.default_rng(i).permutation(np.arange(ROWS) * N + i)
    made = pa.table(
        {
            "number": number,
            "text": [f"t{n}" for n in number],
            "real": (number / 4).astype(np.float64),
        }
    )
    if i == 5:
        made = made.set_column(0, "number", pa.array([None, *number[1:].tolist()], pa.int64()))
        made = made.set_column(2, "real", pa.array([float("nan"), *(number[1:] / 4).tolist()]))
    return made.slice(0, 0) if i == 7 else made


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("filters")
    for i in range(N):
        path = folder / f"{i:03}.parquet"
        pq.write_table(table(i), path, row_group_size=(ROWS, 400)[i % 4 == 3])
        rates = {"number": 1e-4, "text": 1e-4, "real": 1e-4} if i != 9 else {"text": 1e-4}
        ps.index.attach(path, page_index=False, file_bloom=rates, in_place=True)
    return folder


@pytest.fixture
def folder(kept: Path, tmp_path: Path) -> Path:
    """Files of its own for a test that changes them."""
    return Path(shutil.copytree(kept, tmp_path / "filters"))


CONDITIONS = [
    "number = 2411",
    "number = -7",
    "number in (2411, 100, 35000)",
    "number in (null, 2411)",
    "number not in (2411, 100)",
    "number <> 2411",
    "number is null",
    "number = 2411 and text = 't2411'",
    "number = 2411 and text = 't2412'",
    "number = 2411 or text = 't99'",
    "number = 2411 or number > 35990",
    "text = 't333'",
    "text = ''",
    "text like 't33%'",
    "real = 100.25",
    "real = 'nan'",
    "real in (0.0, -0.0, 17.5)",
    "not (number = 5)",
]


@pytest.mark.parametrize("condition", CONDITIONS)
def test_plans_are_those_of_files_opened_one_by_one(kept: Path, condition: str) -> None:
    check_rows(ps.scan(str(kept), filter=condition))
    check_rows(ps.scan(str(kept), filter=condition, prune=["statistics", "file_bloom"]))


@pytest.mark.parametrize("condition", CONDITIONS)
def test_the_rows_are_those_of_a_whole_read(kept: Path, condition: str) -> None:
    whole = outcome(lambda: ps.read_table(str(kept), filter=condition, prune=False))
    assert same_rows(outcome(lambda: ps.read_table(str(kept), filter=condition)), whole)


def test_one_file_is_opened_for_the_value_of_one(kept: Path) -> None:
    scan = ps.scan(str(kept), filter="number = 2411")
    report = scan.plan().report
    gone = report.files.pruned_by
    # the first file is opened as the pattern of others, file 7 has no rows, file 9 has no filter
    assert gone["file_bloom"] >= N - 4 and opened() <= 4
    assert report.bytes["index"] > 0  # the filters do not lie within the shortest tails
    assert scan.to_table()["text"].to_pylist() == ["t2411"]
    again = scan.plan().report
    assert again.files.pruned_by["file_bloom"] == gone["file_bloom"]
    assert again.bytes["index"] == 0 == again.bytes["metadata"]  # all is in memory


@pytest.mark.parametrize(
    ("condition", "idle"),
    [
        ("number = 2411", True),
        ("number = 2411 and real > 0", True),
        # of `or` a filter has denied one side, which the other mechanisms of the file have to know
        ("number = 2411 or text = 't99'", False),
    ],
)
def test_a_filter_that_left_a_file_is_not_asked_again(
    folder: Path, condition: str, idle: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    # with several pages a chunk and a page index, the file is opened to be pruned further
    path = folder / "011.parquet"
    pq.write_table(table(11), path, data_page_size=1_000, write_batch_size=100)
    rates = {"number": 1e-4, "text": 1e-4, "real": 1e-4}
    ps.index.attach(path, file_bloom=rates, in_place=True)
    found, prune = {}, file_scan.prune_pages

    def noted(file: FileMetadata, *given: Any) -> Any:
        found[Path(file.name).name] = given[-1]
        return prune(file, *given)

    monkeypatch.setattr(file_scan, "prune_pages", noted)
    monkeypatch.setattr(homogeneous_files, "SMALL_GROUP_BYTES", 0)  # none is small
    read = ps.read_table(str(folder), filter=condition)
    assert 2411 in read["number"].to_pylist()
    assert found["011.parquet"] == ({"file_bloom"} if idle else set())


def test_filters_near_the_end_are_read_with_the_footers(
    kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(footer_batches, "FEWEST_FILES", 4)
    for condition in CONDITIONS:
        check_rows(ps.scan(str(kept), filter=condition))
    ps.clear_cache()
    report = ps.scan(str(kept), filter="number = 2411").plan().report
    assert report.files.pruned_by["file_bloom"] >= N - 4
    assert (
        report.requests <= N + 6
    )  # each file is opened once, but for the first, and some that have rows
    # where statistics decide about the first file, or filters prove nothing, they are not read
    for condition in ("number = -7", "number > 5", "number is null"):
        ps.clear_cache()
        assert ps.scan(str(kept), filter=condition, prune=["statistics", "file_bloom"]).plan().report.bytes["metadata"] < N * 6_000  # fmt: skip


def test_many_values_are_not_asked_for(kept: Path) -> None:
    few, many = (list(range(2411, 2411 + N * n, N)) for n in (256, 257))
    assert "file_bloom" in ps.scan(str(kept), filter=ps.col("number").isin(few)).plan().report.files.pruned_by  # fmt: skip
    assert "file_bloom" not in ps.scan(str(kept), filter=ps.col("number").isin(many)).plan().report.files.pruned_by  # fmt: skip
    check_rows(ps.scan(str(kept), filter=ps.col("number").isin(few)))
    check_rows(ps.scan(str(kept), filter=ps.col("number").isin(many)))


def test_filters_beyond_the_limit_are_read_with_their_files(
    kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for most in (100, 9_000, 30_000):
        monkeypatch.setattr(file_filters, "FILTERS", most)
        for condition in CONDITIONS[:4]:
            check_rows(ps.scan(str(kept), filter=condition))


def test_few_files_at_once(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_filters, "AT_ONCE", 3)
    for condition in CONDITIONS[:4]:
        check_rows(ps.scan(str(kept), filter=condition))


def place(path: Path, column: str) -> tuple[int, int]:
    """Where the filter of a column lies in a file."""
    file = cache.open(resolve(str(path))[0], Report())
    found = directory(file)
    assert found is not None
    (one,) = (one for one in found.pointers if one.leaf == (column,))
    return one.offset, one.length


def damaged(at: int) -> Callable[[Path], None]:
    """A byte of the filter of `number` is another."""

    def spoil(path: Path) -> None:
        offset, length = place(path, "number")
        data = bytearray(path.read_bytes())
        data[offset + at % length] ^= 1
        path.write_bytes(data)

    return spoil


def with_right_sums(change: Callable[[bytearray], None]) -> Callable[[Path], None]:
    """Another body of `number`, of the same length, whose checksum the directory has."""

    def spoil(path: Path) -> None:
        offset, length = place(path, "number")
        data = bytearray(path.read_bytes())
        old = form.xxh64(bytes(data[offset : offset + length]))
        body = data[offset + PAYLOAD_HEAD_BYTES : offset + length]
        change(body)
        data[offset + PAYLOAD_HEAD_BYTES : offset + length] = body
        new = form.xxh64(bytes(data[offset : offset + length]))
        path.write_bytes(bytes(data).replace(b"%016x" % old, b"%016x" % new))

    return spoil


def blocks_set(n: int) -> Callable[[bytearray], None]:
    def change(body: bytearray) -> None:
        body[:4] = n.to_bytes(4, "little")

    return change


def pairs_replaced(path: Path, change: Callable[[bytes], bytes]) -> None:
    value = pq.read_metadata(path).metadata[KEY]
    new = change(value)
    assert new != value and len(new) == len(value)
    path.write_bytes(path.read_bytes().replace(value, new))


ODD: dict[str, Callable[[Path], None]] = {
    "its head": damaged(0),
    "its fingerprint": damaged(9),
    "its number of blocks": damaged(PAYLOAD_HEAD_BYTES),
    "its bits": damaged(-7),
    "no blocks": with_right_sums(blocks_set(0)),
    "many blocks": with_right_sums(blocks_set(0xFFFFFFFF)),
    "a block more": with_right_sums(lambda body: blocks_set(int.from_bytes(body[:4], "little") + 1)(body)),
    "written otherwise": lambda path: pairs_replaced(path, lambda v: v.replace(b',"base":', b', "base":', 1).replace(b'"REAL', b'"REA').replace(b'["text"]', b'["tex"]')),
    "of another version": lambda path: pairs_replaced(path, lambda v: v.replace(b'"file_bloom","version":1', b'"file_bloom","version":2')),
    "of another column": lambda path: pairs_replaced(path, lambda v: v.replace(b'["number"]', b'["numbex"]')),
    "before the file": lambda path: pairs_replaced(path, lambda v: re.sub(rb'"offset":\d+', lambda m: b'"offset":' + b"3".rjust(len(m[0]) - 9), v)),
    "without": lambda path: pq.write_table(table(4), path),
    "a short file": lambda path: path.write_bytes(path.read_bytes()[:-9]),
}  # fmt: skip


@pytest.mark.covering(1)
@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("at", [0, 3, 8])
def test_an_odd_file_among_many(folder: Path, odd: str, at: int) -> None:
    ODD[odd](folder / f"{at:03}.parquet")
    for condition in ("number = 2411", f"number = {N * 7 + at}", "text = 't2411'"):
        check_rows(ps.scan(str(folder), filter=condition))


@pytest.mark.parametrize("odd", ODD)
def test_an_odd_file_whose_filter_is_read_with_its_footer(
    folder: Path, odd: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(footer_batches, "FEWEST_FILES", 4)
    for at in (0, 3):
        ODD[odd](folder / f"{at:03}.parquet")
        for condition in ("number = 2411", f"number = {N * 7 + at}"):
            check_rows(ps.scan(str(folder), filter=condition))


def test_a_file_that_is_replaced_before_its_filter_is_read(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    victim = folder / "006.parquet"
    longer, replacements = tails.TailBatch.longer, 0

    def replaced(self: tails.TailBatch, *given: object) -> object:
        nonlocal replacements
        if not replacements:
            pq.write_table(table(11), victim)
            os.utime(victim)
        replacements += 1
        return longer(self, *given)  # type: ignore[arg-type]

    monkeypatch.setattr(tails.TailBatch, "longer", replaced)
    value = int(table(11)["number"][3].as_py())
    found = ps.scan(str(folder), filter=ps.col("number") == value).to_table()
    assert replacements
    assert found.num_rows == 2  # it has come after the footers were read, and is seen


def test_a_column_of_other_width_in_some_files(folder: Path) -> None:
    """Values are asked for as the folder has them, and filters have those of the file."""
    for i in (2, 10):
        path = folder / f"{i:03}.parquet"
        small = table(i).set_column(0, "number", table(i)["number"].cast(pa.int32()))
        pq.write_table(small, path)
        ps.index.attach(path, page_index=False, file_bloom={"number": 1e-4}, in_place=True)
    for condition in ("number = 2410", "number = 2402", "number = 5000000000"):
        check_rows(ps.scan(str(folder), filter=condition))
        whole = ps.read_table(str(folder), filter=condition, prune=False)
        assert ps.read_table(str(folder), filter=condition).equals(whole)


def test_filters_of_chunks_are_asked_of_the_few_files_that_are_left(tmp_path: Path) -> None:
    """Filters of files are often wrong here; by their footers alone these files of one page would be read."""
    for i in range(32):
        path = tmp_path / f"{i:02}.parquet"
        keys = np.random.default_rng(i).permutation(12_800)[:400] * 2
        pq.write_table(pa.table({"key": keys}), path, use_dictionary=False)
        ps.index.attach(path, page_index=False, file_bloom={"key": 0.05}, bloom={"key": 1e-5}, in_place=True)  # fmt: skip
    by_chunk = 0
    for key in range(101, 301, 2):
        report = ps.scan(str(tmp_path), filter=ps.col("key") == key).plan().report
        by_chunk += report.files.pruned_by.get("bloom_filter", 0)
        assert report.files.pruned_by["file_bloom"] > 16
    assert by_chunk > 3
