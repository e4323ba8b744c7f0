"""Indexes attached to existing files: data and answers stay, and fewer pages are read."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek._core import bloom as core_bloom
from pageseek.format.embedded import KEY, directory
from pageseek.index import Attached
from support.attaching import end_of_data, same, table, written
from support.opened import open_metadata
from support.tiers import FULL


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("attach") / "plain.parquet")


@pytest.fixture(scope="module")
def indexed(plain: Path) -> Path:
    out = plain.with_name("indexed.parquet")
    made = ps.index.attach(
        plain, bloom=["number", "text", "point.x"], distinct=["text", "flag", "day", "real", "code"],
        output=out,
    )  # fmt: skip
    assert isinstance(made, Attached)
    return out


def test_every_byte_of_data_stays_where_it_was(plain: Path, indexed: Path) -> None:
    before, after = plain.read_bytes(), indexed.read_bytes()
    end = end_of_data(plain)
    assert after[:end] == before[:end]
    assert len(after) > len(before)


def test_others_read_what_they_read_before(plain: Path, indexed: Path) -> None:
    wanted = pq.read_table(plain)
    assert same(pq.read_table(indexed).replace_schema_metadata(wanted.schema.metadata), wanted)
    assert same(ps.read_table(indexed), ps.read_table(plain))
    before, after = pq.read_metadata(plain), pq.read_metadata(indexed)
    assert after.schema.equals(before.schema)
    assert after.created_by == before.created_by
    kept = {k: v for k, v in after.metadata.items() if k != b"pageseek.indexes"}
    assert kept == before.metadata


@pytest.mark.parametrize("nan", [True, False])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_the_page_index_is_that_of_pyarrow(tmp_path: Path, version: str, nan: bool) -> None:
    data = table().drop_columns(["list"])
    if not nan:
        for name in ("real", "single"):
            at, zero = data.column_names.index(name), pa.scalar(0.5, data[name].type)
            values = pc.if_else(pc.is_nan(data[name]), zero, data[name])
            data = data.set_column(at, name, values)
        data = data.drop_columns(["half"])
    ours = written(tmp_path / "plain.parquet", data, data_page_version=version)
    theirs = written(
        tmp_path / "theirs.parquet", data, data_page_version=version, write_page_index=True
    )
    ps.index.attach(ours, in_place=True)
    with open_metadata(ours) as mine, open_metadata(theirs) as other:
        for leaf in other.leaves:
            for group in range(other.num_row_groups):
                a, b = mine.offset_index(group, leaf), other.offset_index(group, leaf)
                assert a is not None and b is not None
                assert a.first_row.tolist() == b.first_row.tolist()
                x, y = mine.column_index(group, leaf), other.column_index(group, leaf)
                if nan and leaf.path[0] in ("real", "single", "half"):
                    assert x is None and y is not None  # others make too much of bounds without NaN
                    continue
                assert (x is None) == (y is None), leaf.name
                if x is None or y is None:
                    continue
                assert x.null_counts is not None and y.null_counts is not None
                assert x.null_counts.tolist() == y.null_counts.tolist(), leaf.name
                assert x.null_pages.tolist() == y.null_pages.tolist()
                if leaf.path[0] != "long":  # ours are cut
                    assert x.lower.equals(y.lower), leaf.name
                    assert x.upper.equals(y.upper), leaf.name
                    assert x.boundary_order == y.boundary_order, leaf.name


QUESTIONS = [
    ps.col("id") == 777,
    ps.col("down").between(-3000, -2990),
    ps.col("number") > 999_000,
    ps.col("number").is_null() & (ps.col("id") < 100),
    ps.col("unsigned") > 4_294_000_000,
    ps.col("small") == 199,
    ps.col("real") > 3.0,
    ps.col("real").is_nan(),
    ps.col("single") == 0.0,
    ps.col("half") < -3,
    ps.col("text") == "name-17",
    ps.col("text").starts_with("name-29"),
    ps.col("text") == "name-x",
    ps.col("text").isin(["name-1", "nobody"]),
    ps.col("long") == "é" * 60 + "0007",
    ps.col("code") == b"0042",
    ps.col("flag") == True,  # noqa: E712
    ps.col("when") < dt.datetime(2020, 1, 1, 2),
    ps.col("day") == dt.date(2020, 2, 1),
    ps.col("day") != dt.date(2020, 2, 1),
    ps.col("price") < Decimal("-24.9"),
    ps.col("wide") > 999_500,
    ps.col("none").is_not_null(),
    ps.col("point.x") == 4321,
    ~(ps.col("text") < "name-9"),
]


@pytest.mark.parametrize("question", QUESTIONS, ids=str)
def test_answers_are_those_of_the_plain_file(plain: Path, indexed: Path, question: Any) -> None:
    wanted = ps.read_table(plain, filter=question, prune=False)
    assert same(ps.read_table(indexed, filter=question), wanted)
    for mechanism in ("column_index", "bloom_filter", "distinct"):
        found = ps.read_table(indexed, filter=question, prune=[mechanism])
        assert same(found, wanted), mechanism


def test_pages_are_left_out(plain: Path, indexed: Path) -> None:
    before = ps.scan(plain, filter=ps.col("id") == 777).explain(analyze=True).to_dict()
    after = ps.scan(indexed, filter=ps.col("id") == 777).explain(analyze=True).to_dict()
    assert after["leaves"]["text"]["pages"]["read"] == 1
    assert after["bytes"]["data"] < before["bytes"]["data"] / 3


def test_lists_rule_out_the_whole_file(indexed: Path) -> None:
    found = ps.scan(indexed, filter=ps.col("code") == b"9999").explain(analyze=True).to_dict()
    assert found["bytes"]["data"] == 0
    # statistics know that too; a value between the bounds only the list denies
    between = ps.col("day").isin([dt.date(2020, 1, 1)]) & (ps.col("text") == "name-170x")
    found = ps.scan(indexed, filter=between, prune=["distinct"]).explain(analyze=True).to_dict()
    assert found["row_groups"]["pruned_by"] == {"distinct": 3}
    assert found["bytes"]["data"] == 0


def test_lists_prove_that_all_rows_pass(tmp_path: Path) -> None:
    data = pa.table({"k": ["a", "c"] * 500, "v": range(1000)})
    path = written(tmp_path / "x.parquet", data, write_statistics=False, use_dictionary=False)
    ps.index.attach(path, distinct=["k"], in_place=True)
    scan = ps.scan(path, columns=["v"], filter=ps.col("k") != "b", prune=["distinct"])
    assert scan.count_rows() == 1000
    found = scan.explain(analyze=True).to_dict()
    assert found["leaves"]["k"]["pages"]["read"] == 0


def test_detached_is_as_it_was(plain: Path, indexed: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.parquet"
    ps.index.detach(indexed, output=out)
    assert out.read_bytes() == plain.read_bytes()


def test_one_kind_is_taken_out(indexed: Path, plain: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.parquet"
    ps.index.detach(indexed, ["bloom"], output=out)
    assert {one.kind for one in ps.index.list(out)} == {"page_index", "distinct"}
    assert ps.index.verify(out).ok
    ps.index.detach(out, ["page_index", "distinct"], in_place=True)
    assert out.read_bytes() == plain.read_bytes()
    with pytest.raises(ValueError, match="no index of kind 'bloom'"):
        ps.index.detach(out, ["bloom"], in_place=True)


def test_attached_one_after_the_other(plain: Path, tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    path.write_bytes(plain.read_bytes())
    ps.index.attach(path, page_index=False, distinct=["text"], in_place=True)
    ps.index.attach(path, page_index=["id"], in_place=True)
    ps.index.attach(path, page_index=False, bloom={"text": 0.001}, distinct=["flag"], in_place=True)
    kinds = {(one.kind, one.column) for one in ps.index.list(path)}
    assert kinds == {
        ("distinct", "text"),
        ("distinct", "flag"),
        ("page_index", "id"),
        ("bloom", "text"),
    }
    assert ps.index.verify(path).ok
    ps.index.detach(path, in_place=True)
    assert path.read_bytes() == plain.read_bytes()


def test_verified(indexed: Path) -> None:
    found = ps.index.verify(indexed)
    assert found.ok, str(found)
    assert found.checked["page_index"] == 3 * 20
    assert found.checked["bloom"] == 9
    assert found.checked["distinct"] == 15


def test_what_is_there_is_kept(tmp_path: Path) -> None:
    path = written(tmp_path / "x.parquet", write_page_index=True)
    before = path.read_bytes()
    made = ps.index.attach(path, in_place=True)
    assert not made.added
    assert path.read_bytes() == before
    made = ps.index.attach(path, page_index=["id"], replace=True, in_place=True)
    assert made.added == {("page_index", "id"): 3}
    assert ps.index.verify(path).ok


@pytest.mark.parametrize("digits", [38, 39])
def test_decimals_that_others_read_as_doubles_have_no_filter(tmp_path: Path, digits: int) -> None:
    """DuckDB would ask for the bytes of the DOUBLE."""
    kind = pa.decimal128(38, 2) if digits == 38 else pa.decimal256(39, 2)
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"d": pa.array([Decimal("-1.25"), None, Decimal("9.50")], kind)}), path)
    if digits == 39:
        with pytest.raises(ps.UnsupportedError, match="DECIMAL of more than 38 digits"):
            ps.index.attach(path, bloom=["d"], in_place=True)
        return
    assert ps.index.attach(path, bloom=["d"], in_place=True).added["bloom", "d"] == 1


def test_rows_that_span_pages(tmp_path: Path) -> None:
    """Pages of version 1 may end within a row: such a chunk gets no page index, and says why."""
    data = pa.table(
        {"id": range(2000), "list": pa.array([list(range(i % 40)) for i in range(2000)])}
    )
    path = written(tmp_path / "x.parquet", data, data_page_version="1.0", write_batch_size=64)
    made = ps.index.attach(path, in_place=True)
    assert ("page_index", "id") in made.added
    assert pq.read_table(path).equals(data)
    assert ps.index.verify(path).ok
    question = ps.col("id").between(100, 110)
    assert ps.read_table(path, filter=question).equals(data.slice(100, 11))


def test_other_readers_prune(indexed: Path, plain: Path) -> None:
    found = ds.dataset(indexed).to_table(filter=ds.field("id") == 777)
    assert found.equals(ds.dataset(plain).to_table(filter=ds.field("id") == 777))


def test_a_stale_index_is_ignored(indexed: Path, tmp_path: Path) -> None:
    """A writer that keeps the key, as pyarrow does, lays the data elsewhere."""
    path = tmp_path / "x.parquet"
    data = pq.read_table(indexed)
    with open_metadata(indexed) as file:  # as pyarrow does for other keys
        data = data.replace_schema_metadata(dict(file.key_value_metadata))
    changed = data.set_column(
        data.schema.get_field_index("text"), "text", pa.array(["new"] * data.num_rows)
    )
    pq.write_table(changed, path, row_group_size=5_000)
    scan = ps.scan(path, filter=ps.col("text") == "new", prune=["distinct"])
    report = scan.explain(analyze=True)
    assert any("ignored" in note for note in report.notes)
    assert scan.count_rows() == data.num_rows


def test_damaged_bodies_are_ignored(indexed: Path, tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    whole = bytearray(indexed.read_bytes())
    with open_metadata(indexed) as file:
        found = directory(file)
    assert found is not None
    wanted = ps.read_table(indexed, filter=ps.col("text") == "name-17", prune=False)
    for pointer in found.pointers:
        if pointer.kind != "distinct":
            continue
        for at in range(pointer.offset, pointer.offset + pointer.length, 7 if FULL else 21):
            broken = bytearray(whole)
            broken[at] ^= 0x41
            path.write_bytes(broken)
            scan = ps.scan(path, filter=ps.col("text") == "name-17", prune=["distinct"])
            notes = scan.explain(analyze=True).notes
            assert same(scan.to_table(), wanted)
            if pointer.leaf == ("text",):
                assert any("ignored" in note for note in notes)
            if at > pointer.offset + 200:
                break


def test_progress_is_told(plain: Path, tmp_path: Path) -> None:
    seen: list[ps.Progress] = []
    ps.index.attach(plain, page_index=["id"], output=tmp_path / "x", progress=seen.append)
    assert [(one.stage, one.done, one.total) for one in seen] == [
        ("column chunks", i + 1, 3) for i in range(3)
    ]


def test_what_has_everything_stays_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"a": range(1000), "b": [b"x" * 100 for _ in range(1000)]}), path)
    how: dict[str, Any] = {"bloom": ["a"], "distinct": ["b"]}
    first = ps.index.attach(path, **how, in_place=True)
    assert first.added and first.bytes_after > first.bytes_before
    before = path.stat()
    again = ps.index.attach(path, **how, in_place=True)
    now = path.stat()
    assert not again.added and again.bytes_after == again.bytes_before == now.st_size
    assert (now.st_ino, now.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    # elsewhere it is a file like any other
    other = tmp_path / "b.parquet"
    ps.index.attach(path, **how, output=other)
    assert pq.read_table(other) == pq.read_table(path)
    assert list(tmp_path.iterdir()) in ([path, other], [other, path])


def test_what_cannot_be_added_leaves_the_file_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"a": range(70_000)}), path)
    before = path.stat()
    made = ps.index.attach(path, page_index=False, distinct=["a"], in_place=True)
    assert not made.added and "more than 65,536" in made.skipped[0]
    now = path.stat()
    assert made.bytes_after == now.st_size == before.st_size
    assert (now.st_ino, now.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert list(tmp_path.iterdir()) == [path]


# ---- what others make of indexes


def test_a_chunk_with_nan_has_no_bounds_of_pages(tmp_path: Path) -> None:
    """Engines that call NaN the greatest value would pass over a page for its upper bound, which leaves NaN out."""
    path = tmp_path / "a.parquet"
    values = np.arange(4_000.0)
    values[7] = np.nan
    pq.write_table(pa.table({"f": values, "g": values}), path, row_group_size=2_000, data_page_size=1_000, write_batch_size=100, use_dictionary=False)  # fmt: skip
    made = ps.index.attach(path, in_place=True)
    assert sum("NaN" in why for why in made.skipped) == 2
    with open_metadata(path) as file:
        for leaf in file.leaves:
            assert file.offset_index(0, leaf) is not None
            assert file.column_index(0, leaf) is None
            assert file.column_index(1, leaf) is not None
    assert ps.index.verify(path).ok


@pytest.mark.parametrize("kind", ["float16", "float32", "float64"])
@pytest.mark.parametrize("sign", [0.0, -0.0])
def test_bloom_filters_have_both_zeros(tmp_path: Path, kind: str, sign: float) -> None:
    """Readers that ask for the bytes of one find a chunk that has the other."""
    path = tmp_path / "a.parquet"
    values = np.array([1.5, sign, -2.5, 3.0], kind)
    pq.write_table(pa.table({"f": values}), path, use_dictionary=False)
    ps.index.attach(path, page_index=False, bloom={"f": 1e-6}, in_place=True)
    data = path.read_bytes()
    with open_metadata(path) as file:
        (chunk,) = file.chunks(file.leaves[0])
        at = chunk.bloom_filter_offset
        start, size = core_bloom.header(memoryview(data)[at : at + chunk.bloom_filter_length])
    bits = data[at + start : at + start + size]

    def has(value: float) -> bool:
        of = core_bloom.xxh64(np.array([value], kind).tobytes())
        block = ((of >> 32) * (size // 32) >> 32) * 32
        salts = (0x47B6137B, 0x44974D91, 0x8824AD5B, 0xA2B7289D, 0x705495C7, 0x2DF1424B, 0x9EFC4947, 0x5C6BFB31)  # fmt: skip
        words = np.frombuffer(bits[block : block + 32], "<u4")
        key = of & 0xFFFFFFFF
        return all(
            int(w) >> ((key * s & 0xFFFFFFFF) >> 27) & 1 for w, s in zip(words, salts, strict=True)
        )

    assert has(0.0) and has(-0.0) and has(1.5) and has(-2.5)
    assert not has(7.25) and not has(-1.5)


def test_what_was_attached_to_another_file_is_given_up(tmp_path: Path) -> None:
    """The pair was copied: by it nothing is known, nothing listed, and nothing taken out."""
    path = tmp_path / "a.parquet"
    data = pa.table({"c": ["a", "b", "c"] * 1000})
    pq.write_table(data, path)
    ps.index.attach(path, distinct=["c"], bloom=["c"], in_place=True)
    pairs = pq.read_metadata(path).metadata
    fresh = pa.table({"c": ["x", "y"] * 900}).replace_schema_metadata({KEY: pairs[KEY]})
    pq.write_table(fresh, path, write_page_index=True)
    before = path.read_bytes()
    assert not any(one.attached for one in ps.index.list(path))
    with pytest.raises(ValueError, match="no index of kind"):
        ps.index.detach(path, ["distinct"], in_place=True)
    ps.index.detach(path, output=tmp_path / "b.parquet")
    with open_metadata(tmp_path / "b.parquet") as file:
        assert KEY not in file.key_value_metadata
        assert file.column_index(0, "c") is not None and len(file.orders) == 1
    made = ps.index.attach(path, distinct=["c"], in_place=True)
    assert made.added == {("distinct", "c"): 1} and "rewritten" in made.skipped[0]
    assert ps.index.verify(path).ok
    assert ps.scan(path, filter="c = 'a'").plan().report.row_groups.read == 0
    assert path.read_bytes()[: end_of_data(path) // 2] == before[: end_of_data(path) // 2]


def test_lists_of_all_columns_have_a_limit_together(
    plain: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The column that does not fit is left out by name; in a call of its own it is listed."""
    monkeypatch.setattr(import_module("pageseek.index.payloads"), "LISTED", 4_000)
    out, again = tmp_path / "a.parquet", tmp_path / "b.parquet"
    made = ps.index.attach(plain, distinct=["flag", "text", "day"], page_index=False, output=out)
    assert set(made.added) == {("distinct", "flag"), ("distinct", "text")}
    (why,) = made.skipped
    assert "'day'" in why and "together; list those of fewer columns at a time" in why
    made = ps.index.attach(out, distinct=["day"], page_index=False, output=again)
    assert set(made.added) == {("distinct", "day")} and not made.skipped
    assert ps.index.verify(again).ok
