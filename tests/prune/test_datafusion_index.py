"""Lists of values in DataFusion's form: used if they are sound, from any writer, and ignored in doubt."""

from __future__ import annotations

import struct
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek._core import build
from pageseek._core.bloom import xxh64
from pageseek.format.embedded import KEY as ENTRIES
from pageseek.format.embedded import Directory, Pointer, fingerprint, types_of
from pageseek.index.footer_edit import new_footer
from pageseek.prune import pruner_stage
from pageseek.prune.datafusion_list import KEY as PUBLISHED
from support.failing_stores import measured
from support.opened import open_metadata

VALUES = ["foo", "bar", "baz"]


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """A list is worth reading in the smallest of files."""
    monkeypatch.setattr(pruner_stage, "DOUBT", 0)


def others(
    path: Path, values: list[str] | None = None, data: pa.Table | None = None, **knobs: Any
) -> Path:
    """A file as the example of DataFusion lays it out: the list behind the pages, its offset under a key.

    `knobs`: magic, length, offset, body.
    """
    given = VALUES if values is None else values
    plain = path.with_suffix(".plain")
    table = (
        pa.table({"category": given * 50, "n": range(50 * len(given))}) if data is None else data
    )
    pq.write_table(table, plain, row_group_size=40, write_statistics=knobs.get("statistics", False))
    whole = plain.read_bytes()
    body = knobs.get("body", "\n".join(given).encode())
    with open_metadata(plain) as file:
        end = file.footer_start
    index = knobs.get("magic", b"IDX1") + struct.pack("<Q", knobs.get("length", len(body))) + body
    # the writer lays the list between the pages and the footer, which tells where
    with open_metadata(plain) as file:
        n = file.num_row_groups * file.num_leaves * build.PLACES
        places = struct.pack(f"<{n}q", *[-(1 << 63)] * n)
        offset = knobs.get("offset", end)
        value = offset if isinstance(offset, bytes) else b"%d" % offset
        footer = new_footer(file, places, [], [(b"distinct_index_offset", value)])
    path.write_bytes(whole[:end] + index + footer + struct.pack("<I", len(footer)) + b"PAR1")
    return path


def pruned(path: Path, condition: Any, **options: Any) -> tuple[int, bool, list[str]]:
    """Rows found, whether the list ruled all out, notes."""
    scan = ps.scan(path, filter=condition, prune=["distinct_index"], **options)
    report = scan.explain(analyze=True)
    wanted = ps.read_table(path, filter=condition, prune=False)
    assert scan.to_table().equals(wanted)
    return wanted.num_rows, report.to_dict()["bytes"]["data"] == 0, report.notes


CATEGORY = ps.col("category")


@pytest.mark.parametrize(
    ("condition", "ruled_out"),
    [
        (CATEGORY == "rare", True),
        (CATEGORY == "foo", False),
        (CATEGORY.isin(["rare", "fo", "food"]), True),
        (CATEGORY.isin(["rare", "baz"]), False),
        (CATEGORY.starts_with("x"), True),
        (CATEGORY.starts_with("ba"), False),
        (~(CATEGORY != "rare"), True),
        ((CATEGORY == "rare") & (ps.col("n") > 3), True),
        ((CATEGORY == "rare") | (ps.col("n") == 3), False),
        (CATEGORY != "foo", False),
        (CATEGORY > "zzz", False),  # what a newline hides is not known
        (CATEGORY == "rare\nfoo", False),
        (CATEGORY.is_null(), False),
    ],
    ids=str,
)
@pytest.mark.parametrize("kind", ["string", "large", "view"])
def test_a_list_of_others_is_used(
    tmp_path: Path, condition: Any, ruled_out: bool, kind: str
) -> None:
    path = others(tmp_path / "x.parquet")
    rows, out, notes = pruned(path, condition, string_type=kind) if kind == "string" else (
        0, ps.scan(path, filter=condition, prune=["distinct_index"], string_type=kind)
        .explain(analyze=True).to_dict()["bytes"]["data"] == 0, [],
    )  # fmt: skip
    assert out is ruled_out
    assert not notes
    assert not (rows and out)


def test_one_value_denies_others(tmp_path: Path) -> None:
    path = others(tmp_path / "x.parquet", ["only"])
    assert pruned(path, CATEGORY != "only")[1]
    assert not pruned(path, CATEGORY != "other")[1]
    assert pruned(path, ~CATEGORY.isin(["only", "other"]))[1]


def test_nulls_are_no_values(tmp_path: Path) -> None:
    data = pa.table({"category": ["a", None] * 50, "n": range(100)})
    path = others(tmp_path / "x.parquet", ["a"], data)
    assert pruned(path, CATEGORY.is_null())[0] == 50
    assert pruned(path, CATEGORY == "b")[:2] == (0, True)


@pytest.mark.parametrize("condition", [CATEGORY == "a\nb", CATEGORY == "a", CATEGORY.isin(["a\nb", "z"]), CATEGORY > "a", CATEGORY.starts_with("a\n"), CATEGORY != "a", CATEGORY.like("a%b")], ids=str)  # fmt: skip
def test_newlines_in_values(tmp_path: Path, condition: Any) -> None:
    """The list has "a" and "0" where the file has "a\\n0": what it hides is never ruled out."""
    data = pa.table({"category": ["a\nb", "a\n0", "c\r"] * 20, "n": range(60)})
    path = others(tmp_path / "x.parquet", data=data, body=b"a\nb\na\n0\nc\r")
    pruned(path, condition)


@pytest.mark.covering(2)
@pytest.mark.parametrize(
    "values",
    [
        ["a\na"],
        ["a", "a\na"],
        ["\n"],
        ["", "\n"],
        ["a\r"],
        ["a\r", "a\r\na"],
        ["a", "a\r"],
        ["b\r\na"],
    ],
    ids=repr,
)
@pytest.mark.parametrize("ending", ["", "\n", "\r\n", "\r"], ids=repr)
@pytest.mark.parametrize("statistics", [False, True])
def test_lines_that_are_not_what_they_seem(
    tmp_path: Path, values: list[str], ending: str, statistics: bool
) -> None:
    """A line may be a part of a value, or a value and a carriage return of the writer's: what passes is never denied."""
    for separator in ("\n", "\r\n"):
        body = (separator.join(values) + ending).encode()
        path = others(tmp_path / "a.parquet", values, body=body, statistics=statistics)
        for text in ("a", "", "a\r", "b", "b\r"):
            for condition in (
                text == CATEGORY, text != CATEGORY, CATEGORY.isin([text]), ~CATEGORY.isin([text, "q"]),
                CATEGORY.starts_with(text), ~CATEGORY.starts_with(text),
            ):  # fmt: skip
                pruned(path, condition)


def test_statistics_that_are_no_text(tmp_path: Path) -> None:
    """Bounds of strings may be bytes of anything; they are compared as such."""
    offsets = pa.array([b"z\xff", b"mm", b"a"] * 50, pa.binary()).buffers()
    data = pa.table({"category": pa.Array.from_buffers(pa.string(), 150, offsets), "n": range(150)})
    how: dict[str, Any] = {"filter": CATEGORY == "b", "columns": ["n"], "prune": ["distinct_index"]}
    for body, rows in ((b"z\xff\nmm\na", 0), (b"mm\na", 150)):
        path = others(tmp_path / "a.parquet", data=data, body=body, statistics=True)
        plan = ps.scan(path, **how).plan()
        assert plan.num_rows == rows
        assert any("not in the list" in note for note in plan.report.notes) == bool(rows)


def test_a_list_of_others_is_kept(tmp_path: Path) -> None:
    path = others(tmp_path / "a.parquet")
    before = pq.read_metadata(path).metadata[b"distinct_index_offset"]
    made = ps.index.attach(path, page_index=False, distinct_index="category", in_place=True)
    assert not made.added and "replace=True" in made.skipped[0]
    assert pq.read_metadata(path).metadata[b"distinct_index_offset"] == before
    made = ps.index.attach(path, page_index=False, distinct_index="category", replace=True, in_place=True)  # fmt: skip
    assert made.added
    assert pq.read_metadata(path).metadata[b"distinct_index_offset"] != before


def test_the_column_has_to_be_known(tmp_path: Path) -> None:
    data = pa.table({"category": VALUES * 20, "other": ["o"] * 60})
    path = others(tmp_path / "x.parquet", data=data)
    assert not pruned(path, CATEGORY == "rare")[1]  # of two columns of strings
    assert pruned(path, CATEGORY == "rare", distinct_index="category")[1]
    assert not pruned(path, ps.col("other") == "o", distinct_index="category")[1]


@pytest.mark.parametrize(
    "knobs",
    [
        {"magic": b"IDX2"},
        {"length": 1 << 40},
        {"length": 10**4},
        {"offset": 4},
        {"offset": 10**9},
        {"offset": b"12x"},
        {"offset": b""},
        {"body": b""},
        {"statistics": True, "body": b"bar\nbaz"},
    ],
    ids=str,
)
def test_what_is_not_right_is_ignored(tmp_path: Path, knobs: dict[str, Any]) -> None:
    path = others(tmp_path / "x.parquet", **knobs)
    rows, out, notes = pruned(path, CATEGORY == "baz")
    assert rows == 50
    assert not out
    assert any("IDX1 index" in note for note in notes)


def test_row_groups_that_were_added_behind_it(tmp_path: Path) -> None:
    """A list that lies before pages does not speak of them."""
    path = others(tmp_path / "x.parquet", offset=4)
    assert any("added later" in note for note in pruned(path, CATEGORY == "baz")[2])


def test_attached_and_taken_out(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"k": [*VALUES, None] * 100, "n": range(400)}), path, row_group_size=90)
    before = path.read_bytes()
    done = ps.index.attach(path, page_index=False, distinct_index="k", in_place=True)
    assert done.added == {("distinct_index", "k"): 5}
    with open_metadata(path) as file:
        offset = int(file.key_value_metadata[b"distinct_index_offset"] or b"")
    body = path.read_bytes()[offset:]
    assert body[:4] == b"IDX1"
    (length,) = struct.unpack("<Q", body[4:12])
    assert body[12 : 12 + length] == b"bar\nbaz\nfoo"
    assert pruned(path, ps.col("k") == "rare")[1]
    assert not pruned(path, ps.col("k") == "baz")[1]
    assert [one.kind for one in ps.index.list(path)] == ["distinct_index"]
    ps.index.detach(path, in_place=True)
    assert path.read_bytes() == before


@pytest.mark.parametrize("value", ["a\nb", "a\r"])
def test_what_the_form_cannot_say_is_refused(tmp_path: Path, value: str) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"k": ["a", value], "n": [1, 2]}), path)
    before = path.read_bytes()
    with pytest.raises(ps.UnsupportedError, match="newline"):
        ps.index.attach(path, distinct_index="k", in_place=True)
    with pytest.raises(ps.UnsupportedError, match="of strings"):
        ps.index.attach(path, distinct_index="n", in_place=True)
    assert path.read_bytes() == before


EXAMPLE = {"a": ["foo", "bar", "foo"], "b": ["baz", "qux"], "c": ["foo", "quux", "quux"]}


def example(folder: Path, moved: dict[str, bytes] | None = None) -> Path:
    """Files as the published example writes them: while the writer is open, the list goes behind the pages, and its offset
    into the footer.

    `moved`: by file, what stands in the footer instead.
    """
    folder.mkdir()
    for name, values in EXAMPLE.items():
        table = pa.table({"category": values})
        with (folder / f"{name}.parquet").open("wb") as sink:
            writer = pq.ParquetWriter(sink, table.schema)
            writer.write_table(table)
            offset = sink.tell()
            payload = "\n".join(dict.fromkeys(values)).encode()
            sink.write(b"IDX1" + len(payload).to_bytes(8, "little") + payload)
            said = (moved or {}).get(name, b"%d" % offset)
            writer.add_key_value_metadata({b"distinct_index_offset": said})
            writer.close()
    return folder


@pytest.mark.parametrize(
    ("condition", "read", "rows"),
    [
        (CATEGORY == "foo", ["a", "c"], 3),
        (CATEGORY == "qux", ["b"], 1),
        (CATEGORY == "quux", ["c"], 2),
        (CATEGORY.isin(["bar", "baz"]), ["a", "b"], 2),
        (CATEGORY == "corge", [], 0),
    ],
    ids=str,
)
def test_the_published_example(tmp_path: Path, condition: Any, read: list[str], rows: int) -> None:
    """Whole files are passed over, and of them nothing but the list is read."""
    folder = example(tmp_path / "lake")
    assert pq.read_table(folder)["category"].to_pylist() == [
        value for values in EXAMPLE.values() for value in values
    ]
    scan = ps.scan(folder, filter=condition, prune=["distinct_index"])
    report = scan.explain(analyze=True)
    found = report.to_dict()
    out = len(EXAMPLE) - len(read)
    assert found["files"] == {
        "total": 3, "read": len(read), "pruned_by": {"distinct_index": out} if out else {},
    }  # fmt: skip
    assert not report.notes
    if not read:
        assert found["bytes"]["data"] == 0
    answer = scan.to_table()
    assert answer.num_rows == rows
    assert answer.equals(ps.read_table(folder, filter=condition, prune=False))


@pytest.mark.parametrize("moved", [b"", b"-1", b"0", b"3", b"4", b"63", b"61", b"100", b"1000000000000", b"99999999999999999999", b"0x3e", b"62.0", b" 62"])  # fmt: skip
def test_the_published_example_with_offsets_that_dangle(tmp_path: Path, moved: bytes) -> None:
    """A list that is not where the footer says is ignored, in its file only."""
    folder = example(tmp_path / "lake", {"b": moved})
    for value, others in (("foo", 2), ("qux", 0), ("corge", 0)):
        ps.clear_cache()
        scan = ps.scan(folder, filter=value == CATEGORY, prune=["distinct_index"])
        report = scan.explain(analyze=True)
        assert report.to_dict()["files"]["read"] == 1 + others
        assert [note for note in report.notes if "b.parquet" in note and "IDX1" in note]
        assert scan.to_table().equals(ps.read_table(folder, filter=value == CATEGORY, prune=False))


def with_entry(path: Path, **other: Any) -> None:
    """The list has an entry of its own, as of those that were attached: its column, a checksum. `other`: what it says else."""
    with open_metadata(path) as file:
        column = file.schema_tree.find("category")
        at = int(file.key_value_metadata[PUBLISHED] or b"")
        data = path.read_bytes()[: file.footer_start]
        entry = Pointer(
            "distinct_index", 1, at, len(data) - at, column.path, *types_of(column),
            xxh64(data[at:]), fingerprint(file, column),
        )  # fmt: skip
        told = Directory(at, (replace(entry, **other),)).to_value()
        n = file.num_row_groups * file.num_leaves * build.PLACES
        places = struct.pack(f"<{n}q", *[-(1 << 63)] * n)
        footer = new_footer(file, places, [ENTRIES], [(ENTRIES, told)])
    path.write_bytes(data + footer + struct.pack("<I", len(footer)) + b"PAR1")


def test_an_entry_names_the_column(tmp_path: Path) -> None:
    data = pa.table({"category": VALUES * 50, "other": ["x", "y", "z"] * 50})
    path = others(tmp_path / "x.parquet", data=data)
    assert not pruned(path, ps.col("category") == "nope")[1]  # of two columns of strings
    with_entry(path)
    assert pruned(path, ps.col("category") == "nope") == (0, True, [])
    assert pruned(path, ps.col("other") == "y") == (50, False, [])
    rows, out, notes = pruned(path, ps.col("other") == "y", distinct_index="other")
    assert (rows, out) == (50, False)
    assert "it was attached for 'category', not for 'other'" in notes[0]
    assert ps.index.verify(path).checked["distinct_index"] == 4
    (listed,) = ps.index.list(path)
    assert (listed.kind, listed.column, listed.attached) == ("distinct_index", "category", True)


@pytest.mark.parametrize(
    ("other", "why"),
    [
        ({"chunks": 5}, "built from other column chunks"),
        ({"logical": "ENUM"}, "it was built for 'category' of BYTE_ARRAY (ENUM)"),
        ({"leaf": ("gone",)}, "it was built for 'gone'"),
        ({"length": 20}, "the checksum differs"),
    ],
)
def test_an_entry_that_does_not_fit(tmp_path: Path, other: dict[str, Any], why: str) -> None:
    path = others(tmp_path / "x.parquet")
    assert pruned(path, ps.col("category") == "nope")[1]
    with_entry(path, **other)
    rows, out, notes = pruned(path, ps.col("category") == "foo")
    assert (rows, out) == (50, False)
    assert len(notes) == 1 and why in notes[0], notes


def test_a_list_with_an_entry_that_was_altered_is_ignored(tmp_path: Path) -> None:
    """Each byte of the entry is changed: no row is lost."""
    path = others(tmp_path / "x.parquet")
    with_entry(path)
    whole = path.read_bytes()
    with open_metadata(path) as file:
        begin, end = int(file.key_value_metadata[PUBLISHED] or b""), file.footer_start
    assert end - begin > 20
    for at in range(begin, end):
        data = bytearray(whole)
        data[at] ^= 1
        path.write_bytes(data)
        for value in VALUES:
            rows, out, notes = pruned(path, ps.col("category") == value)
            assert (rows, out, len(notes)) == (50, False, 1), (at, value, notes)


@pytest.mark.parametrize("text", [b"a", b"", b"a\r", b"\r", b"a\nb\r\nc", b"\n", b"\n\na\r\r", b"x\r\n", b"aa\nab\nb\r\nb"])  # fmt: skip
@pytest.mark.parametrize("piece", [1, 2, 1 << 20])
def test_lines_are_those_of_the_text(
    text: bytes, piece: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However it is cut into pieces."""
    from pageseek.prune import datafusion_list as published

    monkeypatch.setattr(published, "SPLIT_BYTES", piece)
    listed, lines = published.Listed(memoryview(text)), text.split(b"\n")
    values = {*lines, *(line[:-1] for line in lines if line.endswith(b"\r"))}
    asked = [b"", b"a", b"b", b"aa", b"a\r", b"\r", b"\r\r", b"c", b"x\r", b"x", b"b\r", b"a\r\r"]
    assert listed.missing(asked) == set(asked) - values
    assert listed.only == (text if len(lines) == len(values) == 1 else None)
    for one in asked:
        assert listed.begins(one) is any(value.startswith(one) for value in values)


@pytest.mark.skipif(sys.platform != "linux", reason="the peak of a process is read from /proc")
def test_a_long_list_takes_little_memory(tmp_path: Path) -> None:
    """Not one object for each of its lines, and no more values of a chunk than fit."""
    found = measured("support.datafusion_index_peak", str(tmp_path / "x.parquet"))
    assert found["lines"] == 4_000_000
    assert found["peak"] - found["before"] < 3 * found["bytes"] + (100 << 20), found
