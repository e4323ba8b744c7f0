"""An ignored index is reported: every scan that would have used it says why."""

from __future__ import annotations

import json
import struct
from array import array
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek._core import build
from pageseek.format.embedded import KEY
from pageseek.format.types import ABSENT
from pageseek.index.footer_edit import COLUMN_PLACE, OFFSET_PLACE, new_footer
from pageseek.prune.datafusion_list import KEY as PUBLISHED
from support.attaching import as_by_others
from support.opened import open_metadata

ROWS = 40_000
ABSENT_VALUE = ps.col("kind") == "k50x"  # between the bounds, so that statistics say nothing
ABSENT_NUMBER = ps.col("number") == 501


@pytest.fixture
def indexed(tmp_path: Path) -> Path:
    """Two columns of one row group, with lists of values and a page index."""
    path = tmp_path / "x.parquet"
    data = pa.table(
        {
            "kind": [f"k{i % 100}" for i in range(ROWS)],
            "number": [i * 37 % 1000 * 2 for i in range(ROWS)],
        }
    )
    pq.write_table(data, path, max_rows_per_page=2_000, use_dictionary=False, compression="none")
    ps.index.attach(path, distinct=["kind"], distinct_index="kind", in_place=True)
    return path


def notes(path: Path, condition: ps.Expression, prune: list[str]) -> list[str]:
    """The notes of two scans; the second has the file from the cache."""
    ps.clear_cache()
    first, second = (
        ps.scan(path, filter=condition, prune=prune).explain(analyze=True).notes for _ in range(2)
    )
    assert first == second
    assert ps.read_table(path, filter=condition).num_rows == 0
    return list(first)


def with_footer(
    path: Path,
    places: dict[int, tuple[int, int]] | None = None,
    key: bytes = b"",
    value: bytes = b"",
) -> None:
    """Other places of the page index of `number`, another value of a key."""
    with open_metadata(path) as file:
        n = file.num_row_groups * file.num_leaves * build.PLACES
        made = array("q", [ABSENT]) * n
        at = file.schema_tree.find("number").index * build.PLACES
        for place, (offset, length) in (places or {}).items():
            made[at + place], made[at + place + 1] = offset, length
        footer = new_footer(file, made, [key] if key else [], [(key, value)] if key else [])
        data = path.read_bytes()[: file.footer_start]
    path.write_bytes(data + footer + struct.pack("<I", len(footer)) + b"PAR1")


def entry_lie(change: Callable[[dict[str, Any]], Any]) -> Callable[[Path], None]:
    def plant(path: Path) -> None:
        with open_metadata(path) as file:
            said = json.loads(file.key_value_metadata[KEY] or b"")
        change(next(one for one in said["indexes"] if one["kind"] == "distinct"))
        with_footer(path, key=KEY, value=json.dumps(said).encode())

    return plant


def altered(path: Path) -> None:
    with open_metadata(path) as file:
        said = json.loads(file.key_value_metadata[KEY] or b"")
    at = next(one["offset"] for one in said["indexes"] if one["kind"] == "distinct") + 20
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


def written_anew(path: Path) -> None:
    """By a writer that copies the pairs of the footer: nothing lies where they point."""
    with open_metadata(path) as file:
        kept = {KEY: file.key_value_metadata[KEY]}
    data = pq.read_table(path).replace_schema_metadata(kept)
    pq.write_table(data, path, compression="zstd")


LISTS: dict[str, tuple[Callable[[Path], None], str]] = {
    "altered": (altered, "the checksum differs"),
    "rewritten": (written_anew, "do not lie before the footer: the file was rewritten"),
    "of a later version": (entry_lie(lambda one: one.update(version=2)), "version 2, which is not known"),
    "of another type": (entry_lie(lambda one: one.update(logical="ENUM")), "for a column of BYTE_ARRAY (ENUM)"),
    "without a checksum": (entry_lie(lambda one: one.pop("xxh64")), "its entry is damaged"),
    "no JSON": (lambda path: with_footer(path, key=KEY, value=b"{"), "embedded indexes ignored"),
}  # fmt: skip


@pytest.mark.parametrize("what", LISTS)
def test_why_a_list_is_not_used_is_said_by_every_scan(indexed: Path, what: str) -> None:
    assert notes(indexed, ABSENT_VALUE, ["distinct"]) == []
    plant, why = LISTS[what]
    plant(indexed)
    (note,) = notes(indexed, ABSENT_VALUE, ["distinct"])
    assert str(indexed) in note and why in note, note
    assert "'kind'" in note or what == "no JSON", note


@pytest.mark.parametrize(
    ("value", "why"), [(b"999999999", "no room"), (b"4", "pages lie behind it"), (b"x", "not a number")]
)  # fmt: skip
def test_why_a_published_list_is_not_used_is_said_by_every_scan(
    indexed: Path, value: bytes, why: str
) -> None:
    assert notes(indexed, ABSENT_VALUE, ["distinct_index"]) == []
    with_footer(indexed, key=PUBLISHED, value=value)
    (note,) = notes(indexed, ABSENT_VALUE, ["distinct_index"])
    assert "IDX1 index ignored" in note and why in note, note


def test_why_the_bytes_of_a_published_list_are_not_used_is_said_by_every_scan(
    indexed: Path,
) -> None:
    with open_metadata(indexed) as file:
        at = int(file.key_value_metadata[PUBLISHED] or b"")
    with_footer(indexed, key=PUBLISHED, value=b"%d" % (at + 1))
    (note,) = notes(indexed, ABSENT_VALUE, ["distinct_index"])
    assert "'kind': IDX1 index ignored: it does not begin with IDX1" in note


def test_a_published_list_of_one_of_several_columns_asks_for_its_name(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    data = {
        "kind": [f"k{i % 100}" for i in range(ROWS)],
        "other": ["a"] * ROWS,
        "n": range(0, 2 * ROWS, 2),
    }
    pq.write_table(pa.table(data), path, use_dictionary=False)
    ps.index.attach(path, page_index=False, distinct_index="kind", in_place=True)
    as_by_others(path)
    (note,) = notes(path, ABSENT_VALUE, ["distinct_index"])
    assert "IDX1 index ignored: it does not say whose values it has: distinct_index= does" in note
    assert notes(path, ps.col("n") == 5, ["distinct_index"]) == []
    named = ps.scan(path, filter=ABSENT_VALUE, prune=["distinct_index"], distinct_index="kind")
    told = named.explain(analyze=True)
    assert told.notes == [] and told.row_groups.pruned_by == {"distinct_index": 1}


@pytest.mark.parametrize(
    ("place", "which"), [(COLUMN_PLACE, "column index"), (OFFSET_PLACE, "offset index")]
)
@pytest.mark.parametrize(
    ("at", "why"), [((1 << 40, 99), "99 bytes at byte 1099511627776 have no room in the file"), ((4, 30), "")]
)  # fmt: skip
def test_why_a_page_index_is_not_used_is_said_by_every_scan(
    indexed: Path, place: int, which: str, at: tuple[int, int], why: str
) -> None:
    assert notes(indexed, ABSENT_NUMBER, ["column_index"]) == []
    with_footer(indexed, {place: at})
    (note,) = notes(indexed, ABSENT_NUMBER, ["column_index"])
    assert f"'number', row group 0: {which} ignored: {why}" in note, note


def test_a_dictionary_with_a_fault_that_only_its_end_shows_is_named(tmp_path: Path) -> None:
    # all entries are taken before UTF-8 is checked: a second try has to begin anew
    path = tmp_path / "text.parquet"
    table = pa.table({"s": [f"abcdef{i % 8}" for i in range(8000)]})
    pq.write_table(table, path, compression="none", write_statistics=False)
    path.write_bytes(path.read_bytes().replace(b"abcdef3", b"\xffbcdef3", 1))
    scan = ps.scan(path, filter=ps.col("s") == "nope", prune=["dictionary"])
    (note,) = scan.explain().notes
    assert "dictionary ignored: value 3 of the selected rows is not UTF-8" in note
