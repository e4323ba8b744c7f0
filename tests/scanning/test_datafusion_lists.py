"""Many files with lists in the form of DataFusion's example, whose lists are read together: as if each were opened by itself."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek.io import tails
from pageseek.scanning.many_files import batched_lists
from support.batch_comparison import kept_of, one_by_one, opened, outcome

N = 16
CONDITIONS = [
    "s = 'w07'",
    "s = 'nowhere'",
    "s <> 'aa'",
    "s in ('w07', 'w08', 'nowhere')",
    "s not in ('aa', 'zz')",
    "s like 'w1%'",
    "s is null",
    "n = 5 and s = 'w07'",
    "n = 5 or s = 'w07'",
    "not (n = 5 or s = 'w07')",
]


@pytest.fixture(autouse=True)
def _no_cache() -> Iterator[None]:
    ps.clear_cache()
    yield
    ps.clear_cache()


def table(i: int) -> pa.Table:
    """Strings that lie far apart in each file; all strings of some files are equal."""
    words = ["aa"] if i % 5 == 4 else ["aa", "zz", *(f"w{(i * 7 + k) % 40:02}" for k in range(4))]
    s = [words[k % len(words)] if k != 5 or i % 3 else None for k in range(12)]
    return pa.table({"n": [i % 8] * 12, "s": s})


def foreign(path: Path) -> None:
    """Without the entry that names the column of the list."""
    data = path.read_bytes()
    assert data.count(b"pageseek.indexes") == 1
    path.write_bytes(data.replace(b"pageseek.indexes", b"pageseek.unknown"))


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("lists")
    for i in range(N):
        path = folder / f"{i:03}.parquet"
        pq.write_table(table(i), path, row_group_size=(12, 5)[i % 4 == 3])
        ps.index.attach(path, page_index=False, distinct_index="s", in_place=True)
        if i % 2:
            foreign(path)
    return folder


@pytest.fixture
def folder(kept: Path, tmp_path: Path) -> Path:
    """Files of its own for a test that changes them."""
    return Path(shutil.copytree(kept, tmp_path / "lists"))


def check(scan: ps.Scan) -> None:
    """Both ways read the same; together no more is left than one by one."""
    found, again = outcome(scan.to_table), outcome(scan.to_table)
    plan = outcome(scan.plan)
    with one_by_one():
        assert found == again == outcome(scan.to_table)
        other = outcome(scan.plan)
    if isinstance(plan, tuple):
        assert plan == other
    else:
        assert kept_of(plan) <= kept_of(other)


@pytest.mark.covering(1)
@pytest.mark.parametrize("named", [None, "s", "n", "nowhere"])
@pytest.mark.parametrize("condition", CONDITIONS)
def test_rows_are_those_of_files_opened_one_by_one(
    kept: Path, condition: str, named: str | None
) -> None:
    check(ps.scan(str(kept), filter=condition, distinct_index=named))


def test_files_are_passed_over_without_being_opened(kept: Path) -> None:
    # statistics rule out files whose strings are all equal
    for condition, least in (("s = 'w07'", N // 2), ("s = 'nowhere'", N - 3)):
        ps.clear_cache()
        report = ps.scan(str(kept), filter=condition).plan().report
        assert opened() <= 1 + report.files.read
        assert report.to_dict()["files"]["pruned_by"]["distinct_index"] >= least
        assert report.row_groups.total == sum(1 if i % 4 != 3 else 3 for i in range(N))


def rewritten(old: bytes, new: bytes) -> Callable[[Path], None]:
    """Other bytes in the list, or in its entry."""

    def change(path: Path) -> None:
        data = path.read_bytes()
        assert old in data and len(old) == len(new)
        at = data.rindex(old)
        path.write_bytes(data[:at] + new + data[at + len(old) :])

    return change


ODD: dict[str, Callable[[Path], None]] = {
    "no list": lambda path: pq.write_table(table(3), path),
    "no magic": rewritten(b"IDX1", b"IDX2"),
    "another value": rewritten(b"aa\n", b"bb\n"),
    "offset": rewritten(b"distinct_index_offset", b"distinct_index_Offset"),
}


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("at", [2, 7])
def test_an_odd_file_among_many(folder: Path, odd: str, at: int) -> None:
    ODD[odd](folder / f"{at:03}.parquet")
    for condition in ("s = 'w07'", "s = 'bb'", "s = 'nowhere'", "s = 'w14'", "s = 'aa'"):
        check(ps.scan(str(folder), filter=condition))


@pytest.mark.parametrize("most", [100, 1 << 20])
def test_lists_that_do_not_lie_in_the_tails(
    kept: Path, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = tails.TailReader.read

    def forgotten(self: tails.TailReader, paths: tuple[str, ...]) -> tails.TailBatch:
        batch = read(self, paths)
        batch.forget_tails()
        return batch

    monkeypatch.setattr(tails.TailReader, "read", forgotten)
    monkeypatch.setattr(batched_lists, "LISTS", most)
    for condition in CONDITIONS[:4]:
        check(ps.scan(str(kept), filter=condition))
    ps.clear_cache()
    report = ps.scan(str(kept), filter="s = 'nowhere'").plan().report
    assert report.bytes["index"] > 0
    assert (opened() <= 1) is (most > 100)
