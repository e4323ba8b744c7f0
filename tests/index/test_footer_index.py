"""The index of a large footer: answers equal those of the whole footer, and little of it is read."""

from __future__ import annotations

import functools
import random
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek._core.bloom import xxh64
from pageseek.format import footer_form as form
from pageseek.format import sparse_footer
from pageseek.format.embedded import directory
from pageseek.index import footer_index
from support.tiers import FULL

LEAVES, GROUPS, ROWS = 400, 6, 40


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Footers of tens of kilobytes are large."""
    monkeypatch.setattr(sparse_footer, "LARGE", 1 << 10)
    monkeypatch.setattr(footer_index, "LARGE", 1 << 10)
    monkeypatch.setattr("pageseek.format.footer.TAIL_BYTES", 20 << 10)
    ps.clear_cache()
    yield
    ps.clear_cache()


def table() -> pa.Table:
    rng = np.random.default_rng(1)
    n = GROUPS * ROWS
    columns: dict[str, pa.Array] = {
        f"c{i:03}": pa.array(np.sort(rng.integers(0, 10_000, n))) for i in range(LEAVES - 5)
    }
    columns["text"] = pa.array([f"t{i:05}" for i in rng.permutation(n)])
    columns["nested"] = pa.array([{"a": i, "b": [i, -i]} for i in range(n)])
    columns["café"] = pa.array([None if i % 3 else i * 0.5 for i in range(n)])
    columns["c1"] = pa.array(range(n))  # the beginning of other names
    return pa.table(columns)


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = str(tmp_path_factory.mktemp("footer") / "plain.parquet")
    pq.write_table(table(), path, row_group_size=ROWS, write_page_index=True, store_schema=False)
    return path


@pytest.fixture
def path(plain: str, tmp_path: Path) -> str:
    made = str(tmp_path / "indexed.parquet")
    found = ps.index.attach(plain, page_index=False, footer=True, output=made)
    assert found.added == {("footer", ""): GROUPS} and not found.skipped
    return made


FILTERS = [
    None,
    "c007 = 5000",
    "c007 between 3000 and 3500 and c200 > 4000",
    "text = 't00077'",
    "nested.a = 77 or c1 = 5",
    '"café" is not null and c390 < 900',
    "c000 in (1, 2, 3) or not (c001 < 9000)",
]
COLUMNS = [None, ["c007"], ["c1", "nested", "café"], []]


def is_sparse(path: str) -> bool:
    """Whether a file is open by parts of its footer."""
    made = ps.open(path)._metadata._sparse
    return made is not None and not made.is_whole


@pytest.mark.parametrize("columns", COLUMNS)
@pytest.mark.parametrize("condition", FILTERS)
def test_rows_are_those_of_the_whole_footer(
    plain: str, path: str, condition: str | None, columns: list[str] | None
) -> None:
    wanted = ps.read_table(plain, filter=condition, columns=columns, prune=False)
    ps.clear_cache()
    assert ps.read_table(path, filter=condition, columns=columns).equals(wanted)
    assert ps.read_table(path, filter=condition, columns=columns).equals(wanted)  # warm
    assert ps.scan(path, filter=condition).count_rows() == wanted.num_rows


def test_all_that_a_file_shows_is_the_same(plain: str, path: str) -> None:
    mine, theirs = ps.open(path), ps.open(plain)
    assert is_sparse(path)
    assert mine.schema == theirs.schema and mine.created_by == theirs.created_by
    assert mine.num_rows == theirs.num_rows and mine.row_groups == theirs.row_groups
    for leaf in ("c007", "nested.b.list.element", "café", "text"):
        assert mine.chunks(leaf) == theirs.chunks(leaf)
        assert mine.statistics(leaf) == theirs.statistics(leaf)
        for group in range(GROUPS):
            assert mine.chunk(group, leaf) == theirs.chunk(group, leaf)
            assert mine.chunk_values(group, leaf) == theirs.chunk_values(group, leaf)
            one, other = mine.offset_index(group, leaf), theirs.offset_index(group, leaf)
            assert (
                one is not None
                and other is not None
                and one.offset.tolist() == other.offset.tolist()
            )
    assert is_sparse(path)
    pairs = dict(mine.key_value_metadata)
    del pairs[b"pageseek.indexes"]
    assert pairs == theirs.key_value_metadata
    for leaf in mine.leaves:  # all of them
        assert mine.chunks(leaf) == theirs.chunks(leaf)
    assert mine._metadata._sparse is not None and mine._metadata._sparse.is_whole


def test_little_is_read_and_counted(path: str, plain: str) -> None:
    size = int.from_bytes(Path(path).read_bytes()[-8:-4], "little")
    report = ps.scan(path, columns=["c007"], filter="c007 = 5000").plan().report
    assert 0 < report.bytes["metadata"] < 20 * 1024 + size // 4  # of it the tail
    ps.clear_cache()
    whole = ps.scan(plain, columns=["c007"], filter="c007 = 5000").plan().report
    assert whole.bytes["metadata"] > size * 0.9


def test_many_columns_read_the_whole_footer_at_once(path: str) -> None:
    names = [f"c{i:03}" for i in range(300)]
    report = ps.scan(path, columns=names).explain(analyze=True)
    size = int.from_bytes(Path(path).read_bytes()[-8:-4], "little")
    assert report.bytes["metadata"] > size and report.requests < 40 + 300 * GROUPS
    assert ps.read_table(path, columns=names).num_columns == 300


def test_other_engines_read_the_file(path: str, plain: str) -> None:
    assert pq.read_table(path).equals(pq.read_table(plain))
    duckdb = pytest.importorskip("duckdb")
    assert (
        duckdb.sql(f"select sum(c007), count(*) from '{path}'").fetchall()
        == duckdb.sql(f"select sum(c007), count(*) from '{plain}'").fetchall()
    )


def test_it_is_listed_verified_and_taken_out(path: str, plain: str, tmp_path: Path) -> None:
    (one,) = (one for one in ps.index.list(path) if one.kind == "footer")
    assert one.column == "" and one.attached and one.registered
    found = ps.index.verify(path)
    assert found.ok and found.checked["footer"] == 1
    before = Path(path).read_bytes()
    assert not ps.index.attach(path, page_index=False, footer=True, in_place=True).added
    assert Path(path).read_bytes() == before
    ps.index.detach(path, ["footer"], in_place=True)
    assert Path(path).read_bytes() == Path(plain).read_bytes()


def test_it_is_that_of_the_new_footer_when_others_come_and_go(path: str, plain: str) -> None:
    ps.index.attach(path, page_index=False, bloom=["text"], bitmap=["c1"], in_place=True)
    assert is_sparse(path) and ps.index.verify(path).ok
    assert ps.read_table(path, filter="text = 't00077'").num_rows == 1
    ps.index.detach(path, ["bloom"], in_place=True)
    ps.clear_cache()
    assert is_sparse(path) and ps.index.verify(path).ok
    kinds = [one.kind for one in ps.index.list(path) if one.attached]
    assert sorted(kinds) == ["bitmap", "footer"]
    assert ps.read_table(path).equals(ps.read_table(plain))
    ps.index.detach(path, in_place=True)
    assert Path(path).read_bytes() == Path(plain).read_bytes()


def test_a_small_footer_gets_none(
    plain: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(footer_index, "LARGE", 10 << 20)
    made = ps.index.attach(plain, page_index=False, footer=True, output=tmp_path / "a.parquet")
    (why,) = made.skipped
    assert not made.added
    assert re.fullmatch(
        r"footer: the footer has 291.\d kB, and less than 10.5 MB are read at once", why
    )
    assert ps.read_table(tmp_path / "a.parquet").equals(ps.read_table(plain))
    with pytest.raises(TypeError, match="footer=1: True or False"):
        ps.index.attach(plain, footer=1, output=tmp_path / "b.parquet")  # type: ignore[arg-type]


def test_a_file_without_row_groups_gets_none(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.ParquetWriter(path, pa.schema([(f"c{i}", pa.int64()) for i in range(900)])).close()
    made = ps.index.attach(path, page_index=False, footer=True, output=tmp_path / "b.parquet")
    assert made.skipped == ["footer: the file has no column chunks"]
    done = ps.rewrite(path, tmp_path / "c.parquet", indexes={"footer": True})
    assert done.rows == 0


def place(path: str) -> tuple[int, int]:
    found = directory(ps.open(path)._metadata)
    assert found is not None
    (one,) = (one for one in found.pointers if one.kind == "footer")
    return one.offset, one.length


def changed(path: str, change: Callable[[bytearray], None]) -> None:
    """Another body of the index, of the same length."""
    offset, length = place(path)
    data = bytearray(Path(path).read_bytes())
    body = data[offset : offset + length]
    change(body)
    assert len(body) == length
    data[offset : offset + length] = body
    Path(path).write_bytes(data)
    ps.clear_cache()


def with_sum(change: Callable[[bytearray], None]) -> Callable[[bytearray], None]:
    """The same with the right checksum of the end."""

    def both(body: bytearray) -> None:
        change(body)
        size = form.end_bytes(GROUPS)
        body[-8:] = xxh64(bytes(body[-size:-8])).to_bytes(8, "little")

    return both


def set_number(at: int, value: int) -> Callable[[bytearray], None]:
    def change(body: bytearray) -> None:
        body[at : at + 4] = value.to_bytes(4, "little")

    return change


@functools.cache
def rows_of(plain: str, condition: str | None, column: str | None) -> pa.Table:
    return ps.read_table(plain, filter=condition, columns=column and [column])


def same_rows(path: str, plain: str) -> None:
    for i, condition in enumerate(FILTERS):
        columns = (None, "c007", "nested")
        for column in columns if FULL else [columns[i % 3]]:
            found = ps.read_table(path, filter=condition, columns=column and [column])
            assert found.equals(rows_of(plain, condition, column))
            ps.clear_cache()


END = form.end_bytes(GROUPS)
DAMAGED: dict[str, Callable[[bytearray], None]] = {
    "all zero": lambda body: body.__setitem__(slice(None), bytes(len(body))),
    "the magic": set_number(-20, 0),
    "the checksum": set_number(-8, 7),
    "rows of a group": set_number(-END + 16, 12),
    "rows of a group, with its checksum": with_sum(set_number(-END + 16, 12)),
    "leaves": with_sum(set_number(-40, LEAVES + 1)),
    "row groups": with_sum(set_number(-36, GROUPS + 1)),
    "very many row groups": set_number(-36, 0xFFFFFFFF),
    "the size of the footer": with_sum(set_number(-32, 77)),
    "where groups begin": with_sum(set_number(-28, 5000)),
    "where groups end": with_sum(set_number(-24, 9000)),
    "the hash of the schema": with_sum(set_number(-16, 9)),
}


@pytest.mark.parametrize("damage", DAMAGED)
def test_a_damaged_end_is_noted_and_the_whole_footer_read(
    path: str, plain: str, damage: str
) -> None:
    changed(path, DAMAGED[damage])
    report = ps.scan(path, filter="c007 = 5000").plan().report
    assert any("its footer index is ignored" in note for note in report.notes)
    assert not is_sparse(path) and not ps.index.verify(path).ok
    same_rows(path, plain)


def test_damaged_entries_are_noted_and_the_whole_footer_read(path: str, plain: str) -> None:
    entries = place(path)[1] - END
    rng = random.Random(2)
    sound = Path(path).read_bytes()

    def swapped(body: bytearray) -> None:  # the chunks of two row groups of one leaf
        at = (7 * GROUPS + 1) * 8
        body[at : at + 16] = body[at + 8 : at + 16] + body[at : at + 8]

    def other_leaf(body: bytearray) -> None:  # a leaf is said to be another, with its right hashes
        at = 7 * GROUPS * 8
        body[at : at + 2 * GROUPS * 8] = body[at + GROUPS * 8 : at + 3 * GROUPS * 8]

    def noise(body: bytearray) -> None:
        for i in range(entries):
            body[i] = rng.randrange(256)

    for change, by in ((swapped, "c007"), (other_leaf, "c007"), (noise, "c007")):
        Path(path).write_bytes(sound)
        changed(path, change)
        report = ps.scan(path, columns=[by], filter=f"{by} = 5000").plan().report
        assert any("its footer index is ignored" in note for note in report.notes), change
        same_rows(path, plain)


def test_bytes_that_are_changed_anywhere_change_no_answer(path: str, plain: str) -> None:
    rng = random.Random(5)
    offset, length = place(path)
    sound = Path(path).read_bytes()
    wanted = ps.read_table(plain, filter="c007 = 5000", columns=["c007", "text"])
    for _ in range(150):
        data = bytearray(sound)
        for _ in range(rng.randrange(1, 4)):
            data[rng.randrange(offset, offset + length)] = rng.randrange(256)
        Path(path).write_bytes(data)
        ps.clear_cache()
        assert ps.read_table(path, filter="c007 = 5000", columns=["c007", "text"]).equals(wanted)


def test_a_footer_that_was_written_anew_by_others(path: str, plain: str, tmp_path: Path) -> None:
    """The index stays where it was, and the footer is another of the same or another length."""
    data = Path(path).read_bytes()
    size = int.from_bytes(data[-8:-4], "little")
    footer = data[-8 - size : -8]
    other = tmp_path / "other.parquet"
    wanted = ps.read_table(plain, filter="c009 >= 5000", columns=["c009", "c1"])
    for new in (
        footer + b"\0" * 9,  # bytes behind it are allowed
        footer.replace(b"c008", b"c0_8"),  # another name in schema and chunks
        footer.replace(b"c007", b"c0_7", 1),  # in the schema alone
    ):
        assert new != footer
        other.write_bytes(data[: -8 - size] + new + len(new).to_bytes(4, "little") + b"PAR1")
        ps.clear_cache()
        scan = ps.scan(other, filter="c009 >= 5000", columns=["c009", "c1"])
        assert any("its footer index is ignored" in note for note in scan.plan().report.notes)
        assert scan.to_table().equals(wanted) and wanted.num_rows


def test_an_index_that_is_cut_short_changes_no_answer(
    path: str, plain: str, tmp_path: Path
) -> None:
    data = Path(path).read_bytes()
    offset, length = place(path)
    cut = tmp_path / "cut.parquet"
    for n in (0, 1, 8, length // 2, length):
        cut.write_bytes(data[:offset] + data[offset + n :])  # bytes of the index are missing
        ps.clear_cache()
        assert ps.read_table(cut, filter="c007 = 5000").equals(
            ps.read_table(plain, filter="c007 = 5000")
        )


def test_an_end_that_lies_about_rows_is_found_out(path: str, plain: str) -> None:
    """The rows of two row groups are exchanged, and all checksums are right."""

    def lie(body: bytearray) -> None:
        at = len(body) - END
        rows = at + 8 * form.core.ROW_GROUP_FIELDS.index("num_rows")
        body[rows : rows + 4] = (ROWS - 1).to_bytes(4, "little")
        other = rows + form.GROUP_BYTES
        body[other : other + 4] = (ROWS + 1).to_bytes(4, "little")

    changed(path, with_sum(lie))
    with pytest.raises(ps.CorruptFileError, match=r"c007.*row group 0|its index has other row"):
        ps.read_table(path, columns=["c007"], filter="c007 >= 0")


def test_in_place_of_a_cache_and_in_remote_stores(path: str, plain: str) -> None:
    wanted = ps.read_table(plain, filter="c007 = 5000")
    data = Path(path).read_bytes()
    assert ps.read_table(data, filter="c007 = 5000").equals(wanted)
    import pyarrow.fs

    assert ps.read_table((pyarrow.fs.LocalFileSystem(), path), filter="c007 = 5000").equals(wanted)


def test_in_a_remote_store(path: str, plain: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import pyarrow.fs

    fsspec = pytest.importorskip("fsspec")
    handler = pyarrow.fs.FSSpecHandler(fsspec.filesystem("file"))
    monkeypatch.setattr(sparse_footer, "LARGE_FAR", 1 << 10)
    far = pyarrow.fs.PyFileSystem(handler)
    size = int.from_bytes(Path(path).read_bytes()[-8:-4], "little")
    for condition in FILTERS[1:]:
        ps.clear_cache()
        scan = ps.scan((far, path), filter=condition, columns=["c007", "text"])
        report = scan.plan().report
        assert (
            report.bytes["metadata"] < 266_000 < size
        )  # of it 250,000 of the tail, which come at once
        assert scan.to_table().equals(
            ps.read_table(plain, filter=condition, columns=["c007", "text"])
        )


def test_files_of_a_folder(path: str, plain: str, tmp_path: Path) -> None:
    folder = tmp_path / "many"
    folder.mkdir()
    for i in range(10):
        shutil.copy(path if i % 2 else plain, folder / f"{i}.parquet")
    found = ps.read_table(str(folder), filter="c007 = 5000", columns=["c007", "text"])
    wanted = ps.read_table(plain, filter="c007 = 5000", columns=["c007", "text"])
    assert found.num_rows == 10 * wanted.num_rows


def test_the_command(plain: str, tmp_path: Path) -> None:
    made = tmp_path / "a.parquet"
    run = subprocess.run(
        [sys.executable, "-m", "pageseek", "index", "attach", plain, "--footer", "--page-index", "none", "--output", made],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    assert "footer: the footer has" in run.stdout  # it is small for the command
