"""Bloom filters of column chunks, probed together for many files: the results equal opening each file by itself."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek._core import bloom
from pageseek._core import build as core
from pageseek.base.errors import CoreError
from pageseek.format.checksums import filter_key
from pageseek.format.file_metadata import FileMetadata
from pageseek.format.types import ABSENT
from pageseek.scanning.many_files import chunk_filters, footer_batches, homogeneous_files
from pageseek.scanning.many_files.footer_table import FooterTable
from pageseek.scanning.one_file import file_scan
from support.batch_comparison import check_rows, opened, outcome, same_rows

N, ROWS = 24, 900
COLUMNS = ["number", "small", "text", "real"]


@pytest.fixture(autouse=True)
def _no_cache() -> Iterator[None]:
    ps.clear_cache()
    yield
    ps.clear_cache()


def table(i: int) -> pa.Table:
    """Values without order, each in one file only; file 5 has nulls and NaN, file 7 no rows, file 8 only nulls."""
    number = np.random.default_rng(i).permutation(np.arange(ROWS) * N + i)
    made = pa.table(
        {
            "number": number,
            "small": pa.array((number % 30_000).astype(np.int16)),
            "text": [f"t{n}" for n in number],
            "real": (number / 4).astype(np.float64),
        }
    )
    if i == 5:
        made = made.set_column(0, "number", pa.array([None, *number[1:].tolist()], pa.int64()))
        made = made.set_column(3, "real", pa.array([float("nan"), *(number[1:] / 4).tolist()]))
    if i == 8:
        made = made.set_column(0, "number", pa.nulls(ROWS, pa.int64()))
    return made.slice(0, 0) if i == 7 else made


def write(folder: Path, i: int) -> Path:
    """Every third file has filters of pyarrow, every third attached ones, and others both kinds by column; file 9 has none."""
    path = folder / f"{i:03}.parquet"
    own = {0: COLUMNS, 1: [], 2: ["text"]}[i % 3]
    options = {name: {"ndv": ROWS, "fpp": 1e-4} for name in own} if i != 9 else {}
    size = (ROWS, 300)[i % 4 == 3]
    pq.write_table(table(i), path, row_group_size=size, bloom_filter_options=options or None)
    if i != 9:
        ps.index.attach(
            path, page_index=i % 2 == 0, bloom=dict.fromkeys(COLUMNS, 1e-4), in_place=True
        )
    return path


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("filters")
    for i in range(N):
        write(folder, i)
    return folder


@pytest.fixture
def folder(kept: Path, tmp_path: Path) -> Path:
    """Files of its own for a test that changes them."""
    return Path(shutil.copytree(kept, tmp_path / "filters"))


CONDITIONS = [
    "number = 2411",
    "number = -7",
    "number in (2411, 100, 21000)",
    "number in (null, 2411)",
    "number not in (2411, 100)",
    "not (number <> 2411)",
    "number <> 2411",
    "number is null",
    "number = 2411 and text = 't2411'",
    "number = 2411 and text = 't2412'",
    "number = 2411 or text = 't99'",
    "number = 2411 or number > 21500",
    "small = 2411",
    "small = 70000",
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
    check_rows(ps.scan(str(kept), filter=condition, prune=["statistics", "bloom_filter"]))


@pytest.mark.parametrize("condition", CONDITIONS)
def test_the_rows_are_those_of_a_whole_read(kept: Path, condition: str) -> None:
    whole = outcome(lambda: ps.read_table(str(kept), filter=condition, prune=False))
    found = outcome(lambda: ps.read_table(str(kept), filter=condition))
    assert same_rows(found, whole)


def test_one_file_is_opened_for_the_value_of_one(kept: Path) -> None:
    scan = ps.scan(str(kept), filter="number = 2411")
    report = scan.plan().report
    gone = report.files.pruned_by
    # the first file is opened as the pattern of others, file 7 has no rows, file 8 no values, file 9 no filter
    assert gone["bloom_filter"] >= N - 5 and opened() <= 5
    assert scan.to_table()["text"].to_pylist() == ["t2411"]
    again = scan.plan().report
    assert again.files.pruned_by["bloom_filter"] == gone["bloom_filter"]
    assert again.bytes["index"] < report.bytes["index"] // 4  # most are in memory


@pytest.mark.parametrize(
    ("condition", "idle"),
    [
        ("number = 2412", True),
        ("number = 2412 and text in ({})", False),  # the list is asked of each file
        ("number = 2412 or text = 't99'", False),
    ],
)
def test_a_filter_that_left_a_file_is_not_asked_again(
    kept: Path, condition: str, idle: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, prune = {}, file_scan.prune_pages

    def noted(file: FileMetadata, *given: Any) -> Any:
        found[Path(file.name).name] = given[-1]
        return prune(file, *given)

    monkeypatch.setattr(file_scan, "prune_pages", noted)
    monkeypatch.setattr(homogeneous_files, "SMALL_GROUP_BYTES", 0)  # none is small
    texts = ", ".join([f"'t{n}'" for n in (2412, *range(40))])
    table = ps.read_table(str(kept), filter=condition.format(texts))
    assert 2412 in table["number"].to_pylist()
    assert found["012.parquet"] == ({"bloom_filter"} if idle else set())


def test_filters_near_the_end_are_read_with_the_footers(
    kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(footer_batches, "FEWEST_FILES", 4)
    for condition in CONDITIONS:
        check_rows(ps.scan(str(kept), filter=condition))
    ps.clear_cache()
    report = ps.scan(str(kept), filter="number = 2411").plan().report
    assert report.files.pruned_by["bloom_filter"] >= N - 5
    assert report.requests <= N + 12


def test_only_the_bytes_of_filters_are_read(tmp_path: Path) -> None:
    """Behind the filters lies a lookup index, which is larger."""
    for i in range(N):
        pq.write_table(table(i), path := tmp_path / f"{i:03}.parquet")
        ps.index.attach(path, page_index=False, bloom=["number"], in_place=True)
        ps.index.attach(path, page_index=False, lookup=["text"], in_place=True)
    report = ps.scan(str(tmp_path), filter="number = 2411").plan().report
    assert report.files.pruned_by["bloom_filter"] >= N - 5
    assert report.bytes["index"] < N * 2_500  # each filter has 2,048 bytes


def test_large_filters_and_many_values_are_left_to_their_files(
    kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    many = list(range(2411, 2411 + N * 17, N))
    check_rows(ps.scan(str(kept), filter=ps.col("number").isin(many)))
    check_rows(ps.scan(str(kept), filter=ps.col("number").isin(many[:16])))
    for name, most in (("LONGEST_END", 6_000), ("ENDS", 9_000), ("ENDS", 60_000)):
        monkeypatch.setattr(chunk_filters, name, most)
        for condition in CONDITIONS[:4]:
            check_rows(ps.scan(str(kept), filter=condition))


def change(path: Path, where: Callable[[ps.ParquetFile], int], to: bytes) -> None:
    """Other bytes at a place of a file."""
    with ps.open(path) as file:
        at = where(file)
    data = bytearray(path.read_bytes())
    data[at : at + len(to)] = to
    path.write_bytes(data)


def filter_at(file: ps.ParquetFile) -> int:
    found = file.chunk(0, "number").bloom_filter_offset
    assert found is not None
    return found


ODD: dict[str, Callable[[Path], None]] = {
    "its header": lambda path: change(path, filter_at, b"\x00\x00\x00"),
    "its size": lambda path: change(path, lambda file: filter_at(file) + 1, b"\xc0\x02"),
    "its bits": lambda path: change(path, lambda file: filter_at(file) + 40, b"\xff" * 8),
    "all of its bits": lambda path: change(path, lambda file: filter_at(file) + 20, bytes(1_000)),
    "without": lambda path: pq.write_table(table(4), path),
    "a short file": lambda path: path.write_bytes(path.read_bytes()[:-9]),
    "its checksums": lambda path: change(path, lambda file: filter_at(file) + 2_100, b"\xff" * 600),
}


@pytest.mark.covering(1)
@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("at", [0, 1, 3, 4, 10])
def test_an_odd_file_among_many(folder: Path, odd: str, at: int) -> None:
    path = folder / f"{at:03}.parquet"
    if odd == "all of its bits" and at % 3 == 0:
        pytest.skip("a filter without checksums that has lost bits cannot be told from a sound one")
    ODD[odd](path)
    # values that are there: bits that are set may let more pass, and no bit of a checked filter is believed
    there = int(table(at)["number"][3].as_py())
    for condition in (f"number = {there}", "number = 2411", "text = 't2411'"):
        check_rows(ps.scan(str(folder), filter=condition))


@pytest.mark.parametrize("odd", ODD)
def test_an_odd_file_whose_filters_are_read_with_its_footer(
    folder: Path, odd: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(footer_batches, "FEWEST_FILES", 4)
    for at in (1, 4):
        ODD[odd](folder / f"{at:03}.parquet")
        there = int(table(at)["number"][3].as_py())
        for condition in (f"number = {there}", "number = 2411"):
            check_rows(ps.scan(str(folder), filter=condition))


def test_checksums_of_several_filters() -> None:
    made = core.BloomFilter(8).to_bytes()
    header, bits = bloom.header(made)
    filters = np.array([[len(made) - bits, bits, 64]] * 3, np.int64)
    key = filter_key(made[:header], 77)
    sums = bloom.pieces(made[header:], 64, key)
    data = made + sums
    keys = np.array([key, key ^ 1, key], np.uint64)
    assert bloom.sound(data, filters, keys) == b"\1\0\1"
    for wrong in ([-1, bits, 64], [header, bits + 8, 64], [header, bits, 0], [header, bits, 32]):
        with pytest.raises(CoreError, match="outside"):
            bloom.sound(data, np.array([wrong], np.int64), keys[:1])


def test_text_that_lies_in_two_directories_is_in_none() -> None:
    """Directories are searched together, one behind the other."""
    values = [
        b'{"kind":"bl',
        b'oom"}{"kind":"bloom"}',
        b'"kind"',
        b':"bloom"',
        b"",
        b'"kind":"bloom"',
    ]
    stops = np.cumsum([len(one) for one in values])
    table = object.__new__(FooterTable)
    table.members, table.data = np.arange(6), memoryview(b"".join(values))
    table.pairs = np.full((6, 3, 2), ABSENT)
    table.pairs[:, 1] = np.stack(
        [stops - [len(one) for one in values], [len(one) for one in values]], axis=1
    )
    assert table.names(["bloom"]).tolist() == [False, True, False, False, False, True]


def test_a_filter_of_other_values_is_not_believed_where_it_has_checksums(folder: Path) -> None:
    """The filter of another file, of the same size, in the place of an attached one."""
    one, other = folder / "001.parquet", folder / "004.parquet"
    with ps.open(one) as first, ps.open(other) as second:
        begin, end = filter_at(first), filter_at(second)
    size = 1_500
    data = other.read_bytes()[end : end + size]
    made = bytearray(one.read_bytes())
    made[begin : begin + size] = data
    one.write_bytes(made)
    for there in table(1)["number"][:8].to_pylist():
        ps.clear_cache()
        assert ps.read_table(str(folder), filter=f"number = {there}").num_rows == 1
    check_rows(ps.scan(str(folder), filter=f"number = {there}"))
