"""Lookup indexes of many files, asked together: the results equal opening each file by itself."""

from __future__ import annotations

import re
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pageseek._core.bloom import xxh64

import pageseek as ps
from pageseek.base.report import Report
from pageseek.datasets.file_cache import cache
from pageseek.format import lookup_form as form
from pageseek.format.embedded import KEY, PAYLOAD_HEAD_BYTES, directory
from pageseek.io import tails
from pageseek.scanning.many_files import file_lookups
from pageseek.storage.resolve import resolve
from support.batch_comparison import check_rows, opened, outcome, rows

N = 24
COLUMNS = ["number", "text", "real"]


@pytest.fixture(autouse=True)
def _no_cache() -> Iterator[None]:
    ps.clear_cache()
    yield
    ps.clear_cache()


def num_rows(i: int) -> int:
    """From one to five blocks; file 7 has no rows."""
    return 0 if i == 7 else 1_500 + i % 5 * 1_900


def table(i: int) -> pa.Table:
    """Numbers and texts without order, most of them in one file only; file 5 has nulls and NaN."""
    n = num_rows(i)
    number = np.random.default_rng(i).permutation(np.arange(n) * N + i)
    number[1 : n // 10] = number[n // 10 + 1 : 2 * (n // 10)]  # two rows each, but for the first
    made = pa.table({"number": number, "text": [f"t{x}" for x in number], "real": number / 4})
    if i == 5:
        made = made.set_column(0, "number", pa.array([None, *number[1:].tolist()], pa.int64()))
        made = made.set_column(2, "real", pa.array([float("nan"), *(number[1:] / 4).tolist()]))
    return made


def write(path: Path, i: int, lookup: list[Any] | None = None) -> None:
    pq.write_table(table(i), path, row_group_size=(20_000, 400)[i % 4 == 3])
    names = COLUMNS if lookup is None else lookup
    ps.index.attach(path, page_index=False, lookup=names, in_place=True)


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("lookups")
    for i in range(N):
        write(folder / f"{i:03}.parquet", i, ["text"] if i == 9 else None)
    return folder


@pytest.fixture
def folder(kept: Path, tmp_path: Path) -> Path:
    """Files of its own for a test that changes them."""
    return Path(shutil.copytree(kept, tmp_path / "lookups"))


CONDITIONS = [
    "number = 2411",
    "number = -7",
    "number in (2411, 100, 35000)",
    "number in (1, 2, 3, 4, 5, 6, 7, 8, 9)",
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
    check_rows(ps.scan(str(kept), filter=condition, prune=["statistics", "lookup"]))
    check_rows(ps.scan(str(kept), filter=condition, prune=["lookup"]))


@pytest.mark.parametrize("condition", CONDITIONS)
def test_the_rows_are_those_of_a_whole_read(kept: Path, condition: str) -> None:
    whole = outcome(lambda: ps.read_table(str(kept), filter=condition, prune=False))
    assert repr(rows(outcome(lambda: ps.read_table(str(kept), filter=condition)))) == repr(
        rows(whole)
    )


def test_every_value_is_found(kept: Path) -> None:
    rng = np.random.default_rng(8)
    for i in (0, 3, 4, 23):
        numbers = table(i)["number"]
        for value in rng.choice(numbers.to_pylist(), 12).tolist():
            found = ps.read_table(str(kept), filter=ps.col("number") == value)
            assert found.num_rows == numbers.to_pylist().count(value)


@pytest.mark.parametrize("row", [0, 399, 400, 800, 1_200])
def test_rows_at_the_ends_of_row_groups_are_found(kept: Path, row: int) -> None:
    numbers = table(3)["number"].to_pylist()
    found = ps.read_table(str(kept), filter=ps.col("number") == numbers[row])
    assert found.num_rows == numbers.count(numbers[row]) > 0


def test_few_files_are_opened_for_the_value_of_one(
    kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scan = ps.scan(str(kept), filter="number = 2411")
    report = scan.plan().report
    # the first file is opened as the pattern of others, file 7 has no rows, file 9 no index
    assert report.files.pruned_by["lookup"] >= N - 5 and opened() <= 5
    assert report.bytes["index"] < N * 12_000
    assert set(scan.to_table()["text"].to_pylist()) == {"t2411"}
    again = scan.plan().report
    assert again.files.pruned_by["lookup"] == report.files.pruned_by["lookup"]
    assert again.bytes["metadata"] == 0
    # directories are in memory: of each file a block is read
    assert again.bytes["index"] < report.bytes["index"]
    monkeypatch.setattr(file_lookups.FileLookups, "_load", lambda *_: pytest.fail("again"))
    other = ps.scan(str(kept), filter="number = 2435").plan().report
    assert other.files.pruned_by["lookup"] >= N - 5


def test_blocks_of_few_files_are_read_at_a_time(
    kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_lookups, "READ", 30_000)
    for condition in CONDITIONS[:4]:
        check_rows(ps.scan(str(kept), filter=condition))


def test_files_of_many_rows_are_opened(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_lookups, "MOST_ROWS", 3_000)
    for condition in CONDITIONS[:4]:
        check_rows(ps.scan(str(kept), filter=condition))
    ps.scan(str(kept), filter="number = 2411").plan()
    assert opened() > N // 2


def test_threads_ask_the_same_indexes(kept: Path) -> None:
    scan, wrong = ps.scan(str(kept)), []

    def ask(seed: int) -> None:
        rng = np.random.default_rng(seed)
        for value in rng.integers(0, 36_000, 12).tolist():
            found = scan.filter(ps.col("number") == value).to_table()["number"].to_pylist()
            numbers = table(value % N)["number"].to_pylist()
            if found != [value] * numbers.count(value):
                wrong.append(value)

    threads = [threading.Thread(target=ask, args=(seed,)) for seed in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert not wrong


def place(path: Path, column: str) -> tuple[int, int]:
    """Where the index of a column lies in a file."""
    file = cache.open(resolve(str(path))[0], Report())
    found = directory(file)
    assert found is not None
    (one,) = (one for one in found.pointers if one.leaf == (column,))
    return one.offset, one.length


def damaged(at: int) -> Callable[[Path], None]:
    """A byte of the index of `number` is another."""

    def spoil(path: Path) -> None:
        offset, length = place(path, "number")
        data = bytearray(path.read_bytes())
        data[offset + at % length] ^= 1
        path.write_bytes(data)

    return spoil


def all_blocks(path: Path) -> None:
    """A byte in each two hundred of the blocks is another."""
    offset, length = place(path, "number")
    data = bytearray(path.read_bytes())
    for at in range(400, length, 200):
        data[offset + at] ^= 1
    path.write_bytes(data)


def with_right_sums(path: Path) -> None:
    """A head that counts other rows, with its checksum."""
    offset, _ = place(path, "number")
    data = bytearray(path.read_bytes())
    at = offset + PAYLOAD_HEAD_BYTES
    head = list(form.HEAD.unpack(data[at : at + form.HEAD.size]))
    head[1] += 1
    made = form.HEAD.pack(*head)[:-8]
    data[at : at + form.HEAD.size] = made + xxh64(made).to_bytes(8, "little")
    path.write_bytes(data)


def pairs_replaced(path: Path, change: Callable[[bytes], bytes]) -> None:
    value = pq.read_metadata(path).metadata[KEY]
    new = change(value)
    assert new != value and len(new) == len(value)
    path.write_bytes(path.read_bytes().replace(value, new))


ODD: dict[str, Callable[[Path], None]] = {
    "its head": damaged(0),
    "its fingerprint": damaged(9),
    "its number of rows": damaged(PAYLOAD_HEAD_BYTES + 8),
    "a directory of blocks": damaged(PAYLOAD_HEAD_BYTES + form.HEAD.size + 3),
    "its blocks": all_blocks,
    "of other rows": with_right_sums,
    "written otherwise": lambda path: pairs_replaced(path, lambda v: v.replace(b',"base":', b', "base":', 1).replace(b'["text"]', b'["tex"]')),
    "of another version": lambda path: pairs_replaced(path, lambda v: v.replace(b'"lookup","version":1', b'"lookup","version":2')),
    "of another column": lambda path: pairs_replaced(path, lambda v: v.replace(b'["number"]', b'["numbex"]')),
    "before the file": lambda path: pairs_replaced(path, lambda v: re.sub(rb'"offset":\d+', lambda m: b'"offset":' + b"3".rjust(len(m[0]) - 9), v)),
    "at another place": lambda path: pairs_replaced(path, lambda v: re.sub(rb'"offset":(\d+)', lambda m: b'"offset":%d' % (int(m[1]) - 1), v)),
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


def test_an_index_of_other_column_chunks_is_told(folder: Path) -> None:
    damaged(9)(folder / "004.parquet")
    report = ps.scan(str(folder), filter="number = 2411").explain()
    assert "004.parquet" in str(report) and "not of these column chunks" in str(report)


def test_a_damaged_block_is_told(folder: Path) -> None:
    all_blocks(folder / "004.parquet")
    value = int(table(4)["number"][900].as_py())
    scan = ps.scan(str(folder), filter=ps.col("number") == value)
    assert scan.to_table().num_rows == table(4)["number"].to_pylist().count(value)
    assert "checksum" in str(scan.explain(analyze=True))


def test_a_file_that_is_replaced_before_its_index_is_read(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    victim = folder / "006.parquet"
    longer, replacements = tails.TailBatch.longer, 0

    def replaced(self: tails.TailBatch, *given: object) -> object:
        nonlocal replacements
        if replacements in (0, 5):
            pq.write_table(table(11), victim)
        replacements += 1
        return longer(self, *given)  # type: ignore[arg-type]

    monkeypatch.setattr(tails.TailBatch, "longer", replaced)
    numbers = table(11)["number"].to_pylist()
    found = ps.scan(str(folder), filter=ps.col("number") == numbers[900]).to_table()
    assert replacements
    assert found.num_rows == 2 * numbers.count(numbers[900])  # it came after the footers were read


def test_a_column_of_other_width_in_some_files(folder: Path) -> None:
    """Values are asked for as the folder has them, and indexes have those of the file."""
    for i in (2, 10):
        path = folder / f"{i:03}.parquet"
        small = table(i).set_column(0, "number", table(i)["number"].cast(pa.int32()))
        pq.write_table(small, path)
        ps.index.attach(path, page_index=False, lookup=["number"], in_place=True)
    for condition in ("number = 2410", "number = 2402", "number = 5000000000"):
        check_rows(ps.scan(str(folder), filter=condition))
        whole = ps.read_table(str(folder), filter=condition, prune=False)
        assert ps.read_table(str(folder), filter=condition).equals(whole)
