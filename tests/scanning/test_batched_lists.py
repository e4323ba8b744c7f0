"""Lists of values of many files, evaluated together: the results equal opening each file by itself."""

from __future__ import annotations

import itertools
import os
import random
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek._core import lists
from pageseek._core.bloom import xxh64
from pageseek.base.report import Report
from pageseek.datasets.file_cache import cache
from pageseek.format.embedded import (
    FIGURES,
    KEY,
    Directory,
    EntryForm,
    InvalidIndexError,
    Pointer,
    directory_of,
    framed,
    of_leaf,
)
from pageseek.format.embedded import opened as payload_of
from pageseek.format.value_list import KIND, VERSION
from pageseek.io import tails as ends
from pageseek.scanning.many_files import batched_lists
from pageseek.storage.resolve import resolve
from support.batch_comparison import check_rows, kept_of, opened, same_rows

N = 30
NAN = float("nan")


@pytest.fixture(autouse=True)
def _no_cache() -> Iterator[None]:
    ps.clear_cache()
    yield
    ps.clear_cache()


def table(i: int) -> pa.Table:
    """Strings spread over the alphabet in each file, so that statistics rule out almost nothing."""
    words = ["aa", "zz", *(f"w{(i * 7 + k) % 40:02}" for k in range(4))]
    return pa.table(
        {
            "id": pa.array(range(i * 12, i * 12 + 12), pa.int64()),
            "s": pa.array([words[k % 6] if k != 5 or i % 3 else None for k in range(12)]),
            "f": pa.array(
                [NAN if k == i % 12 and i % 2 else (i * k) % 10 - 5.0 for k in range(12)]
            ),
            "n": pa.array([i % 4 * 10 + k // 6 for k in range(12)], pa.int16()),
        }
    )


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("lists")
    for i in range(N):
        path = folder / f"{i:03}.parquet"
        pq.write_table(table(i), path, row_group_size=(12, 5)[i % 4 == 3])
        ps.index.attach(path, page_index=i % 2 == 0, distinct=["s", "f", "n"], in_place=True)
    return folder


@pytest.fixture
def folder(kept: Path, tmp_path: Path) -> Path:
    """Files of its own for a test that changes them."""
    return Path(shutil.copytree(kept, tmp_path / "lists"))


def check(scan: ps.Scan) -> ps.Scan:
    """Both ways read the same, and count the same."""
    return check_rows(scan, (ps.Scan.to_table, ps.Scan.count_rows))


def same(found: pa.Table, wanted: pa.Table) -> bool:
    """Equal, and NaN equals NaN."""
    return same_rows(found, wanted)


CONDITIONS = [
    "s = 'w07'",
    "s = 'nowhere'",
    "s <> 'aa'",
    "s in ('w07', 'w08', 'nowhere')",
    "s not in ('aa', 'zz')",
    "s like 'w1%'",
    "s is null",
    "s is not null",
    "s > 'w38' and s < 'zz'",
    "f = 3",
    "f > 4.5",
    "f <= -5",
    "f is nan",
    "not (f < 3)",
    "n = 11",
    "n = 11 and s = 'w07'",
    "n = 11 or s = 'w07'",
    "not (n = 11 or s = 'w07')",
    "id < 100 and s = 'w07'",
    "id = 35 and s = 'w07'",
    "id = 35 or f = 3",
]


@pytest.mark.covering(1)
@pytest.mark.parametrize("nan", ["ieee", "spark"])
@pytest.mark.parametrize("condition", CONDITIONS)
def test_plans_are_those_of_files_opened_one_by_one(kept: Path, condition: str, nan: str) -> None:
    check(ps.scan(str(kept), filter=condition, nan=nan))


@pytest.mark.parametrize("condition", CONDITIONS)
def test_the_rows_are_those_of_a_whole_read(kept: Path, condition: str) -> None:
    whole = ps.read_table(str(kept), filter=condition, prune=False)
    assert same(ps.read_table(str(kept), filter=condition), whole)
    assert same(ps.read_table(str(kept), filter=condition), whole)  # by what is kept


@pytest.mark.parametrize("condition", CONDITIONS[:17])
def test_lists_leave_just_the_row_groups_that_have_what_is_asked_for(
    kept: Path, condition: str
) -> None:
    """A condition on one column, all of whose values are known."""
    if " and " in condition or " or " in condition:
        return
    wanted = set()
    for path in sorted(kept.iterdir()):
        for group in range(pq.read_metadata(path).num_row_groups):
            rows = pq.ParquetFile(path).read_row_group(group)
            sink = pa.BufferOutputStream()
            pq.write_table(rows, sink)
            if ps.read_table(sink.getvalue().to_pybytes(), filter=condition).num_rows:
                wanted.add((str(path), group))
    found = kept_of(ps.scan(str(kept), filter=condition).plan())
    first = str(kept / "000.parquet")  # which is opened by itself
    assert found - wanted <= {(first, 0)}
    assert wanted <= found


def test_files_are_passed_over_without_being_opened(kept: Path) -> None:
    report = ps.scan(str(kept), filter="s = 'w07'").plan().report
    assert opened() <= 1 + report.files.read
    gone = report.to_dict()["files"]["pruned_by"]
    assert gone["distinct"] > N // 2
    assert report.row_groups.total == sum(1 if i % 4 != 3 else 3 for i in range(N))
    assert report.bytes["metadata"] <= N * ends.TAIL


def test_ends_are_kept_and_checked(kept: Path, folder: Path) -> None:
    scan = ps.scan(str(folder), filter="s = 'w07'")
    wanted = scan.to_table()
    scan.explain(analyze=True)  # opens what `to_table` has read without opening
    first = scan.explain(analyze=True)
    assert first.bytes["metadata"] == 0  # all is at hand
    assert ps.cache_info().files >= N
    # another file of the same name, which also has the value
    victim = next(
        p
        for p in sorted(folder.iterdir())[1:]
        if ps.read_table(p, filter="s = 'w07'").num_rows == 0
    )
    pq.write_table(
        pa.table(
            {**dict(zip(table(0).column_names, table(0).columns, strict=True)), "s": ["w07"] * 12}
        ),
        victim,
    )
    assert scan.to_table().num_rows == wanted.num_rows + 12
    victim.unlink()
    with pytest.raises(FileNotFoundError):
        scan.to_table()


def test_what_is_kept_is_bounded(kept: Path) -> None:
    before = ps.cache_info().max_bytes
    try:
        ps.scan(str(kept), filter="s = 'w07'").plan()
        assert ps.cache_info().bytes > N * 1000
        ps.resize_cache(20_000)
        assert ps.cache_info().bytes <= 20_000
        ps.resize_cache(0)
        assert ps.cache_info().files == 0
        check(ps.scan(str(kept), filter="s = 'w07'"))
        assert ps.cache_info().files == 0
    finally:
        ps.resize_cache(before)


def stale(path: Path) -> None:
    """The pairs of the old footer, with other data."""
    pairs = pq.read_metadata(path).metadata
    made = table(3).replace_schema_metadata({KEY: pairs[KEY]})
    pq.write_table(made, path)


def flipped(path: Path) -> None:
    """A byte of the list of s."""
    file = cache.open(resolve(str(path))[0], Report())
    pointer = of_leaf(
        file.schema_tree.find("s"),
        KIND,
        VERSION,
        directory_of(file.key_value_metadata[KEY], file.footer_start),
    )
    assert pointer is not None
    data = bytearray(path.read_bytes())
    data[pointer.offset + pointer.length - 1] ^= 1
    path.write_bytes(data)


def other_pairs(change: Callable[[bytes], bytes]) -> Callable[[Path], None]:
    """Another value of the key, of the same length."""

    def spoil(path: Path) -> None:
        value = pq.read_metadata(path).metadata[KEY]
        new = change(value)
        assert len(new) == len(value) and new != value
        path.write_bytes(path.read_bytes().replace(value, new))

    return spoil


ODD: dict[str, Callable[[Path], None]] = {
    "stale": stale,
    "flipped": flipped,
    "no JSON": other_pairs(lambda value: b"[" + value[1:]),
    "of another version": other_pairs(
        lambda value: value.replace(b'"version":1', b'"version":2', 1)
    ),
    "an index of another version": other_pairs(
        lambda value: value.replace(b'"distinct","version":1', b'"distinct","version":2')
    ),
    "far away": other_pairs(lambda value: re.sub(rb'"offset":\d', b'"offset":9', value)),
    "before the file": other_pairs(
        lambda value: re.sub(
            rb'"offset":\d+', lambda m: b'"offset":' + b"3".rjust(len(m[0]) - 9), value
        )
    ),
    "of another column": other_pairs(lambda value: value.replace(b'["s"]', b'["t"]')),
    "another sum": other_pairs(lambda value: re.sub(rb'"xxh64":"....', b'"xxh64":"0000', value)),
    "other chunks": other_pairs(lambda value: re.sub(rb'"chunks":"....', b'"chunks":"0000', value)),
    "written otherwise": other_pairs(
        lambda value: (
            value.replace(b',"base":', b', "base":', 1).replace(b"page_index", b"page_inde", 1)
            if b"page_index" in value
            else value.replace(b',"leaf":["n"]', b', "leaf":["n"]', 1).replace(
                b'"physical":"INT32"', b'"physical":"INT3"', 1
            )
        )
    ),
    "without": lambda path: pq.write_table(table(4), path),
    "damaged": lambda path: path.write_bytes(path.read_bytes()[:-9]),
}


@pytest.mark.covering(1)
@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("at", [0, 2, 8])
def test_an_odd_file_among_many(folder: Path, odd: str, at: int) -> None:
    ODD[odd](folder / f"{at:03}.parquet")
    for condition in ("s = 'w07'", "s = 'zz'", "s = 'nowhere' or f = 3", "s = 'w14'"):
        check(ps.scan(str(folder), filter=condition))


@pytest.fixture
def forgetful(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the footers of files are kept of their tails."""
    read = ends.TailReader.read

    def forgotten(self: ends.TailReader, paths: tuple[str, ...]) -> ends.TailBatch:
        batch = read(self, paths)
        batch.forget_tails()
        return batch

    monkeypatch.setattr(ends.TailReader, "read", forgotten)


@pytest.mark.parametrize("most", [None, 300, 1 << 20])
@pytest.mark.usefixtures("forgetful")
def test_lists_that_do_not_lie_in_the_ends(
    kept: Path, most: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if most is None:
        report = ps.scan(str(kept), filter="s = 'nowhere'").plan().report
        assert report.bytes["index"] > 0 and opened() <= 1
    else:
        monkeypatch.setattr(batched_lists, "LISTS", most)
    for condition in CONDITIONS[:8]:
        check(ps.scan(str(kept), filter=condition))


@pytest.mark.usefixtures("forgetful")
def test_a_file_that_is_replaced_before_its_list_is_read(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    victim = folder / "005.parquet"
    read = batched_lists.read_part
    replacements = 0

    def replaced(path: str, *rest: object) -> bytes:
        nonlocal replacements
        if path == str(victim):
            replacements += 1
            pq.write_table(table(0).slice(0, 3), victim)
            os.utime(victim)
        return read(path, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(batched_lists, "read_part", replaced)
    found = ps.scan(str(folder), filter="s = 'zz'").to_table()
    monkeypatch.undo()
    assert replacements
    assert same(found, ps.read_table(str(folder), filter="s = 'zz'", prune=False))


def test_few_that_are_in_doubt_are_opened(kept: Path) -> None:
    scan = ps.scan(str(kept), filter="id in (100, 101) and s = 'w07'")
    check(scan)
    ps.clear_cache()
    scan.plan()
    assert opened() <= 3


def test_with_the_lists_of_others(folder: Path) -> None:
    """A list in the published form is not judged with others, and prunes all the same."""
    for path in sorted(folder.iterdir())[::3]:
        ps.index.attach(path, page_index=False, distinct_index="s", in_place=True)
    for condition in CONDITIONS[:8]:
        check(ps.scan(str(folder), filter=condition))


@pytest.mark.parametrize(
    "prune",
    [["statistics"], ["distinct"], ["statistics", "distinct"], ["statistics", "dictionary"]],
)
def test_mechanisms_by_themselves(kept: Path, prune: list[str]) -> None:
    for condition in CONDITIONS[::3]:
        check(ps.scan(str(kept), filter=condition, prune=prune))


# ---- where an index is likely to be -----------------------------------------------------------------


def found(
    form: EntryForm, value: bytes | None, tail: bytes, of_chunks: bytes, size: int, end: int
) -> list[int]:
    """The result for one file, whose directory and tail are in the buffers of many."""
    assert len(of_chunks) % FIGURES == 0
    at, length = (-(1 << 63), -(1 << 63)) if value is None else (3, len(value))
    row = [at, length, 5, len(tail), size, end, 1, len(of_chunks) // FIGURES]
    values, tails = b"abc" + (value or b""), b"12345" + tail + b"6"
    given = np.array([row, row], np.int64)
    one, other = form.find(
        memoryview(values), memoryview(tails), bytes(FIGURES) + of_chunks, given
    ).tolist()
    assert one == other
    return list(one)


@pytest.mark.parametrize(
    "odd",
    ['s "quoted" (and) [back\\slashed] é*+?', "1000000000000000", f"{1 << 58}", f"{1 << 59}", ""],
)
def test_what_is_found_at_once_is_what_the_whole_value_says(tmp_path: Path, odd: str) -> None:
    path = tmp_path / "a.parquet"
    columns = {odd: ["a", "b"], "t": [1.5, 2.5], "u": pa.array([1, 2], pa.timestamp("us", "UTC"))}
    pq.write_table(pa.table(columns), path)
    ps.index.attach(path, distinct=[odd, "t", "u"], in_place=True)
    file = cache.open(resolve(str(path))[0], Report())
    value, end, data = file.key_value_metadata[KEY], file.footer_start, path.read_bytes()
    assert value is not None
    figures = bytes(FIGURES)
    for leaf in file.leaves:
        form = EntryForm([leaf], KIND, VERSION)
        wanted = of_leaf(leaf, KIND, VERSION, directory_of(value, end))
        assert wanted is not None and form.parsed(value, end) == wanted
        entry = found(form, value, data[end:], figures, len(data), end)
        assert entry[0] == lists.FAR and form.pointer(entry) == wanted
        entry = found(form, value, data[-2000:], figures, len(data), end)
        assert entry[0] == lists.DOUBTFUL  # its bytes are at hand, and of other chunks
        spaced = value.replace(b'",', b'", ')
        assert found(form, spaced, data, figures, len(data), end)[0] == lists.UNREAD
        assert form.parsed(spaced, end) == wanted
        # it would lie behind the pages
        assert found(form, value, b"", figures, len(data), wanted.offset)[0] == lists.NONE
        assert form.parsed(value, wanted.offset) is None


def test_of_several_the_last_counts() -> None:
    leaf = cache.open(resolve(_bytes())[0], Report()).leaves[0]
    of = [
        Pointer(KIND, VERSION, offset, 20, ("s",), "BYTE_ARRAY", "STRING", offset, 2)
        for offset in (100, 200)
    ]
    form = EntryForm([leaf], KIND, VERSION)
    for order in itertools.permutations(of):
        value = Directory(50, order).to_value()
        assert form.pointer(found(form, value, b"", b"", 2000, 1000)) == order[-1]
        assert of_leaf(leaf, KIND, VERSION, directory_of(value, 1000)) == order[-1]


def test_what_is_told_of_any_directory_and_bytes_is_what_python_tells() -> None:
    """Directories, bodies and fingerprints with something wrong in them, at random."""
    dice = random.Random(1)
    leaf = cache.open(resolve(_bytes())[0], Report()).leaves[0]
    form, seen = EntryForm([leaf], KIND, VERSION), set()
    for _ in range(4000):
        of_chunks = dice.randbytes(FIGURES * dice.randrange(3))
        chunks = xxh64(of_chunks)
        body = framed(dice.randbytes(dice.randrange(40)), dice.choice([chunks, chunks, chunks ^ 1]))
        size, end, tail_from = 400, 300, dice.choice([0, 100, 250, 300, 400])
        data = bytearray(dice.randbytes(size))
        offset = dice.choice([0, 3, 4, 50, 240, 300 - len(body), 301 - len(body), 1 << 59])
        if offset < 300:
            data[offset : offset + len(body)] = body
        length = len(body) if dice.random() < 0.9 else dice.choice([0, 1, 15, 16, 1 << 58])
        sums = xxh64(body) ^ (dice.random() < 0.1), chunks ^ (dice.random() < 0.1)
        pointer = Pointer(KIND, VERSION, offset, length, ("s",), "BYTE_ARRAY", "STRING", *sums)
        value: bytes | None = Directory(50, (pointer,)).to_value()
        assert value is not None
        if dice.random() < 0.5:
            at = dice.randrange(len(value))
            value = value[:at] + dice.choice([b"", b"0", b'"', b"F", b"{"]) + value[at + 1 :]
        elif dice.random() < 0.1:
            value = dice.choice([None, b"", value[:-3], b'{"version":1,"base":', value * 9000])
        entry = found(form, value, bytes(data[tail_from:]), of_chunks, size, end)
        seen.add(entry[0])
        try:
            wanted = form.parsed(value, end)
        except InvalidIndexError:
            assert entry[0] == lists.UNREAD or value is not None  # it may begin as one does
            continue
        if entry[0] == lists.UNREAD:
            continue  # Python has the last word
        if entry[0] == lists.NONE:
            assert wanted is None
            continue
        assert wanted is None or form.pointer(entry) == wanted
        pointer = form.pointer(entry)
        if entry[0] == lists.FAR:
            assert pointer.offset < tail_from
            continue
        there = memoryview(data)[pointer.offset : pointer.offset + pointer.length]
        if entry[0] == lists.SOUND:
            payload_of(pointer, there, chunks)
        else:
            with pytest.raises(InvalidIndexError):
                payload_of(pointer, there, chunks)
    assert seen == {lists.NONE, lists.SOUND, lists.FAR, lists.DOUBTFUL, lists.UNREAD}


@pytest.mark.parametrize("field", range(8))
def test_files_that_lie_outside_of_what_is_given(field: int) -> None:
    leaf = cache.open(resolve(_bytes())[0], Report()).leaves[0]
    form, row = EntryForm([leaf], KIND, VERSION), [0, 4, 0, 4, 100, 90, 0, 1]
    four, one = memoryview(b"1234"), bytes(FIGURES)
    assert form.find(four, four, one, np.array([row], np.int64))[0, 0] == lists.UNREAD
    for wrong in (-1, 101, -(1 << 63) + 1, (1 << 63) - 1):
        if field == 4 and wrong >= 100:
            continue  # a file may be of any size
        row[field] = wrong
        with pytest.raises(lists.CoreError, match="outside"):
            form.find(four, four, one, np.array([row], np.int64))


def _bytes() -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"s": ["a"]}), sink)
    return sink.getvalue().to_pybytes()


# ---- what is kept, and told -------------------------------------------------------------------------


def test_long_tests_are_not_kept_with_lists(kept: Path) -> None:
    scan = ps.scan(str(kept), filter=ps.col("s").isin([f"x{i}" for i in range(3000)]))
    for _ in range(3):
        scan.plan()
    (held,) = cache._batches.values()
    for several in held.made.values():
        for table in several:
            for listed in table.lists.values():
                values = getattr(listed, "_values", None)
                assert values is None or not values._answers


def test_what_is_kept_of_folders_in_turn_is_counted(kept: Path, tmp_path: Path) -> None:
    for i, path in enumerate(sorted(kept.iterdir())):
        folder = tmp_path / f"k={i % 10}"
        folder.mkdir(exist_ok=True)
        shutil.copy(path, folder)
    before = ps.cache_info().max_bytes
    try:
        ps.resize_cache(60_000)
        for i in range(1, 10):
            ps.scan(str(tmp_path), filter=f"k >= {i} and s = 'w07'").count_rows()
            taken = sum(batch.nbytes for batch in cache._batches.values())
            assert taken <= ps.cache_info().bytes <= 60_000
    finally:
        ps.resize_cache(before)


def test_a_limit_on_footers_is_asked_again(kept: Path) -> None:
    """Files of several row groups have longer footers than the first."""
    sizes = [int.from_bytes(path.read_bytes()[-8:-4], "little") for path in sorted(kept.iterdir())]
    limit = max(sizes[:3])
    assert sizes[3] > limit
    ps.scan(str(kept), filter="s = 'nowhere'").plan()
    with pytest.raises(ps.PageseekError, match=r"003\.parquet"):
        ps.scan(str(kept), filter="s = 'nowhere'", max_metadata_bytes=limit).plan()


def test_progress_counts_files_that_are_passed_over(kept: Path) -> None:
    told: list[ps.Progress] = []
    ps.scan(str(kept), filter="s = 'nowhere'", progress=told.append).to_table()
    files = [one for one in told if one.stage == "files"]
    assert (files[-1].done, files[-1].total) == (N, N)


def test_links_that_lead_nowhere_are_no_files(folder: Path) -> None:
    (folder / "circle.parquet").symlink_to(folder / "circle.parquet")
    (folder / "gone.parquet").symlink_to(folder / "nothing")
    (folder / "long.parquet").symlink_to("x" * 300)
    deep = folder
    for _ in range(3):
        deep = deep / "d"
        deep.mkdir()
    shutil.copy(folder / "007.parquet", deep / "z.parquet")
    assert ps.scan(str(folder)).count_rows() == 12 * (N + 1)
