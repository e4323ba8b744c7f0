"""`detach` removes what was attached, and keeps what other tools have added since."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pageseek._core import build

import pageseek as ps
from pageseek.format.embedded import FREE, KEY, directory
from pageseek.index.footer_edit import new_footer
from support.attaching import as_by_others
from support.opened import open_metadata

BLOB = b"BLOB of another tool" * 9


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    path = tmp_path / "plain.parquet"
    n = 3_000
    data = pa.table({"id": np.arange(n), "text": [f"name-{i % 40}" for i in range(n)]})
    pq.write_table(data, path, row_group_size=1_000, data_page_size=500, write_batch_size=100)
    return path


@pytest.fixture
def path(plain: Path, tmp_path: Path) -> Path:
    made = tmp_path / "x.parquet"
    made.write_bytes(plain.read_bytes())
    return made


def with_theirs(
    path: Path, key: bytes = b"their.offset", body: bytes = BLOB, whole: bool = False
) -> int:
    """A tool lays bytes of its own before the footer, and a key that tells where; `whole`: it leaves the old footer, too."""
    data = path.read_bytes()
    with open_metadata(path) as file:
        places = struct.pack("<q", -(1 << 63)) * (
            file.num_row_groups * file.num_leaves * build.PLACES
        )
        at = len(data) if whole else file.footer_start
        footer = new_footer(file, places, [key], [(key, b"%d" % at)])
    path.write_bytes(data[:at] + body + footer + struct.pack("<I", len(footer)) + b"PAR1")
    return at


def said(path: Path) -> dict[bytes, bytes]:
    with open_metadata(path) as file:
        return dict(file.key_value_metadata)


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("whole", [False, True])
def test_bytes_of_others_stay_where_they_are(
    path: Path, plain: Path, again: bool, whole: bool
) -> None:
    ps.index.attach(path, distinct=["text"], in_place=True)
    at = with_theirs(path, whole=whole)
    if again:
        ps.index.attach(path, page_index=False, bloom=["id"], in_place=True)
    done = ps.index.detach(path, in_place=True)
    assert any(
        f"to {at + len(BLOB):,} are of nothing that was attached" in one for one in done.skipped
    )
    told = said(path)
    assert KEY not in told and told[b"their.offset"] == b"%d" % at
    data = path.read_bytes()
    assert data[at : at + len(BLOB)] == BLOB
    with open_metadata(path) as file:
        assert file.footer_start == at + len(BLOB)  # what was attached behind it is gone
        assert file.offset_index(0, "id") is None
    assert not ps.index.list(path)
    assert ps.index.verify(path).ok
    assert ps.read_table(path).equals(pq.read_table(plain))
    ps.index.attach(path, distinct=["text"], in_place=True)  # theirs is before the base now
    assert not ps.index.detach(path, in_place=True).skipped
    assert path.read_bytes() == data


def test_indexes_of_others_stay(path: Path, plain: Path) -> None:
    """A page index that another tool has put behind ours, which column chunks name."""
    ps.index.attach(path, page_index=False, distinct=["text"], in_place=True)
    ps.index.attach(path, page_index=["id"], in_place=True)
    whole = said(path)[KEY]
    with open_metadata(path) as file:
        found = directory(file)
        assert found is not None
        (ours,) = [one for one in found.pointers if one.kind == "distinct"]
        (theirs,) = [one for one in found.pointers if one.kind == "page_index"]
        places = struct.pack("<q", -(1 << 63)) * (
            file.num_row_groups * file.num_leaves * build.PLACES
        )
        entry = b',{"kind":"page_index","version":1,"offset":%d,"length":%d,"sums":true}' % (
            theirs.offset,
            theirs.length,
        )
        assert entry in whole
        footer = new_footer(file, places, [KEY], [(KEY, whole.replace(entry, b""))])
        data = path.read_bytes()[: file.footer_start]
    path.write_bytes(data + footer + struct.pack("<I", len(footer)) + b"PAR1")
    done = ps.index.detach(path, in_place=True)
    assert done.skipped
    assert path.read_bytes()[: len(data)] == data
    (left,) = ps.index.list(path)
    assert (left.kind, left.attached) == ("page_index", False)
    assert ours.offset < theirs.offset and ps.index.verify(path).checked["page_index"] == 3


def test_the_list_of_others_keeps_its_key(path: Path) -> None:
    ps.index.attach(path, page_index=False, distinct_index="text", in_place=True)
    body = b"\n".join(b"name-%d" % i for i in range(40))
    at = with_theirs(path, b"distinct_index_offset", b"IDX1" + struct.pack("<Q", len(body)) + body)
    ps.index.detach(path, in_place=True)
    assert said(path)[b"distinct_index_offset"] == b"%d" % at
    found = ps.index.verify(path)
    assert found.ok and found.checked["distinct_index"] == 3


@pytest.mark.parametrize(
    "order", [["distinct", "bloom", "page_index"], ["page_index", "distinct", "bloom"]]
)
def test_one_after_the_other_leaves_nothing(path: Path, plain: Path, order: list[str]) -> None:
    """Bytes of what was taken out, or replaced, are known as such until the last goes."""
    how: dict[str, Any] = {"bloom": ["id"], "distinct": ["text", "id"]}
    ps.index.attach(path, **how, in_place=True)
    ps.index.attach(path, **how, replace=True, in_place=True)
    for kind in order:
        assert not ps.index.detach(path, [kind], in_place=True).skipped
        if kind != order[-1]:
            with open_metadata(path) as file:
                found = directory(file)
                assert found is not None and FREE in {one.kind for one in found.pointers}
            assert kind not in {one.kind for one in ps.index.list(path)}
            assert ps.index.verify(path).ok
            with pytest.raises(ValueError, match="no index of kind"):
                ps.index.detach(path, [FREE], in_place=True)
    assert path.read_bytes() == plain.read_bytes()


@pytest.mark.parametrize("element", [0x00, 0x03, 0x0C])
def test_a_file_without_row_groups_is_as_it_was(tmp_path: Path, element: int) -> None:
    """Their list is empty, and writers name any type as that of its elements."""
    path = tmp_path / "x.parquet"
    with pq.ParquetWriter(path, pa.schema({"n": pa.int64()})):
        pass
    data = path.read_bytes()
    rows, groups = b"\x16\x00", b"\x19%c"  # an I64 of zero, and a list
    assert data.count(rows + groups % 0x0C) == 1
    data = data.replace(rows + groups % 0x0C, rows + groups % element)
    path.write_bytes(data)
    ps.index.attach(path, distinct=["n"], output=tmp_path / "a.parquet")
    ps.index.detach(tmp_path / "a.parquet", output=tmp_path / "b.parquet")
    assert (tmp_path / "b.parquet").read_bytes() == data


def test_lists_that_are_taken_out_are_told(path: Path) -> None:
    ps.index.attach(path, distinct=["id", "text"], distinct_index="text", in_place=True)
    done = ps.index.detach(path, in_place=True)
    assert done.added == {
        ("page_index", "id"): -3, ("page_index", "text"): -3, ("distinct", "id"): -3,
        ("distinct", "text"): -3, ("distinct_index", "text"): -3,
    }  # fmt: skip
    told = str(done).removeprefix(str(path))
    assert "3 chunks taken out" in told and "-3" not in told


def test_kinds_are_a_list(path: Path) -> None:
    ps.index.attach(path, in_place=True)
    with pytest.raises(TypeError, match="kinds='page_index': a list of names"):
        ps.index.detach(path, "page_index", in_place=True)


def test_a_file_to_which_nothing_was_attached_stays_as_it_is(path: Path) -> None:
    before = path.stat().st_ino, path.read_bytes()
    done = ps.index.detach(path, in_place=True)
    assert (done.bytes_before, done.bytes_after) == (len(before[1]), len(before[1]))
    assert (path.stat().st_ino, path.read_bytes()) == before


def test_a_list_of_another_writer_is_listed(path: Path) -> None:
    ps.index.attach(path, page_index=False, distinct_index="text", in_place=True)
    (mine,) = ps.index.list(path)
    as_by_others(path)
    (theirs,) = ps.index.list(path)
    assert mine.attached and not theirs.attached
    assert (mine.kind, mine.column, mine.bytes) == (theirs.kind, theirs.column, theirs.bytes)


def test_a_list_that_is_built_anew_stands_for_the_old_one(path: Path) -> None:
    for _ in range(3):
        ps.index.attach(path, page_index=False, distinct=["id"], distinct_index="text", replace=True, in_place=True)  # fmt: skip
    assert sorted(one.kind for one in ps.index.list(path)) == ["distinct", "distinct_index"]
    assert ps.index.verify(path).ok


def test_a_list_that_is_damaged_is_built_anew(path: Path) -> None:
    ps.index.attach(path, page_index=False, distinct=["text"], in_place=True)
    with open_metadata(path) as file:
        found = directory(file)
        assert found is not None
        (pointer,) = found.pointers
    good = path.read_bytes()
    data = bytearray(good)
    data[pointer.offset + pointer.length - 1] ^= 1
    path.write_bytes(data)
    assert not ps.index.verify(path).ok
    done = ps.index.attach(path, page_index=False, distinct=["text"], in_place=True)
    assert done.added == {("distinct", "text"): 3}
    assert "its list of distinct values is given up" in done.skipped[0]
    assert "the checksum differs" in done.skipped[0]
    assert ps.index.verify(path).ok
    again = ps.index.attach(path, page_index=False, distinct=["text"], in_place=True)
    assert not again.added and not again.skipped


def test_options_that_list_lacks_are_named(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=r"index.list: there is no option kind=|no option kind="):
        ps.index.list(tmp_path / "a.parquet", kind="bloom")  # type: ignore[call-arg]
