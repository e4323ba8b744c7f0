"""`rewrite`: the rows of the source in another order and layout, checked before the file gets its name."""

from __future__ import annotations

import datetime as dt
import decimal
import importlib
import random
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek.rewriting import sorting
from pageseek.rewriting.encoding import Encoder
from pageseek.rewriting.row_sizes import row_ends

N = 5_000
KEYS = ["i", "small", "u", "f", "f16", "s", "b", "fixed", "flag", "day", "at", "zoned", "time", "dec", "wide", "word", "span", "uid"]  # fmt: skip


def rich(n: int = N, seed: int = 1) -> pa.Table:
    """Columns of many types, with nulls, NaN and ties, in no order."""
    rng = random.Random(seed)

    def some(make: Callable[[], Any]) -> list[Any]:
        return [None if rng.random() < 0.1 else make() for _ in range(n)]

    def words() -> str:
        return rng.choice("äbcd") * rng.randrange(5)

    floats = some(lambda: rng.choice([float("nan"), -0.0, 0.0, float("inf"), rng.gauss(0, 1)]))
    pairs = pa.struct([pa.field("x", pa.int32()), pa.field("y", pa.list_(pa.string()))])
    start = dt.datetime(2024, 1, 1)
    columns = {
        "row": pa.array(range(n), pa.int64()),
        "i": pa.array(some(lambda: rng.randrange(-50, 50)), pa.int64()),
        "small": pa.array(some(lambda: rng.randrange(-9, 9)), pa.int8()),
        "u": pa.array(some(lambda: rng.randrange(2**64)), pa.uint64()),
        "f": pa.array(floats, pa.float64()),
        "f16": pa.array([None if v is None else np.float16(v) for v in floats], pa.float16()),
        "s": pa.array(some(words)),
        "b": pa.array(some(lambda: rng.randbytes(rng.randrange(4))), pa.binary()),
        "fixed": pa.array(some(lambda: rng.randbytes(3)), pa.binary(3)),
        "flag": pa.array(some(lambda: rng.random() < 0.5), pa.bool_()),
        "day": pa.array(some(lambda: start.date() + dt.timedelta(rng.randrange(99))), pa.date32()),
        "at": pa.array(some(lambda: start + dt.timedelta(0, rng.randrange(10**6))), pa.timestamp("ns")),
        "zoned": pa.array(some(lambda: start + dt.timedelta(0, rng.randrange(99))), pa.timestamp("us", "Europe/Rome")),
        "time": pa.array(some(lambda: dt.time(rng.randrange(24))), pa.time64("us")),
        "dec": pa.array(some(lambda: decimal.Decimal(rng.randrange(-999, 999)) / 100), pa.decimal128(9, 2)),
        "wide": pa.array(some(lambda: decimal.Decimal(rng.randrange(10**40))), pa.decimal256(50, 2)),
        "word": pa.array(some(words)).dictionary_encode(),
        "span": pa.array(some(lambda: rng.randrange(99)), pa.duration("ms")),
        "uid": pa.array(some(lambda: uuid.UUID(int=rng.randrange(2**128)).bytes), pa.uuid()),
        "list": pa.array(some(lambda: [rng.choice([None, 1, 2]) for _ in range(rng.randrange(4))]), pa.list_(pa.int32())),
        "pair": pa.array(some(lambda: {"x": rng.choice([None, 3]), "y": rng.choice([None, [], ["p", None]])}), pairs),
        "map": pa.array(some(lambda: [(words(), rng.randrange(9))] * rng.randrange(3)), pa.map_(pa.string(), pa.int64())),
        "three": pa.array(some(lambda: [1, 2, rng.randrange(9)]), pa.list_(pa.int64(), 3)),
        "deep": pa.array(some(lambda: [[{"a": words()}] * rng.randrange(2), None]), pa.list_(pa.list_(pa.struct([("a", pa.string())])))),
        "none": pa.nulls(n),
    }  # fmt: skip
    return pa.table(columns)


@pytest.fixture(scope="module")
def table() -> pa.Table:
    return rich()


@pytest.fixture
def path(table: pa.Table, tmp_path: Path) -> Path:
    made = tmp_path / "in.parquet"
    pq.write_table(table, made, row_group_size=1_700)
    return made


def by_row(found: pa.Table) -> pa.Table:
    return found.take(pc.sort_indices(found["row"]))


def same(found: pa.Table, expected: pa.Table) -> None:
    """Equal to the bit, NaN as well."""
    assert found.schema.equals(expected.schema)
    for name in expected.column_names:
        assert repr(found[name].to_pylist()) == repr(expected[name].to_pylist()), name


def place(value: Any) -> tuple[Any, ...]:
    """The place of a value in ascending order."""
    if value is None:
        return (2,)
    if isinstance(value, float) and value != value:
        return (1,)
    return 0, value.encode() if isinstance(value, str) else value


@pytest.mark.parametrize("key", KEYS)
def test_rows_of_every_type_are_sorted_and_whole(key: str, path: Path, table: pa.Table) -> None:
    out = path.with_name("out.parquet")
    done = ps.rewrite(path, out, sort_by=key, page_rows=100, row_group_rows=2_000)
    found = ps.read_table(out)
    same(by_row(found), ps.read_table(path))
    values = found[key].to_pylist()
    rows = found["row"].to_pylist()
    placed = [(place(v), row) for v, row in zip(values, rows, strict=True)]
    assert placed == sorted(placed)  # rows that tie keep their order
    assert (done.rows, done.row_groups) == (N, 3)
    assert done.pages >= 25 * 3 * 7
    assert pq.ParquetFile(out).schema_arrow.field(key).type == table.schema.field(key).type


@pytest.mark.parametrize("memory", [None, 32 << 20])
def test_several_columns_and_directions(
    memory: int | None, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if memory is not None:
        monkeypatch.setattr(sorting, "PART", 1000)
        monkeypatch.setattr(sorting, "MOST_TOGETHER", 100_000)
    out = path.with_name("out.parquet")
    done = ps.rewrite(path, out, sort_by=["flag", ("f", "descending"), "s"], memory_limit=memory)
    assert bool(done.spilled) == (memory is not None)
    found = ps.read_table(out).select(["flag", "f", "s", "row"]).to_pylist()

    def key(row: dict[str, Any]) -> Any:
        f = row["f"]
        down = place(f) if f is None or f != f else (0, -f)
        return place(row["flag"]), down, place(row["s"]), row["row"]

    assert found == sorted(found, key=key)
    (one,) = {pq.ParquetFile(out).metadata.row_group(0).sorting_columns}
    leaves = pq.ParquetFile(out).schema.names
    assert [(leaves[c.column_index], c.descending, c.nulls_first) for c in one] == [
        ("flag", False, False), ("f", True, False), ("s", False, False),
    ]  # fmt: skip


@pytest.mark.parametrize("how", [{"sort_by": "s"}, {"sort_by": ["flag", "i"]}, {"sort_by": "none"}, {"cluster_by": ["i", "at", "s"]}, {}])  # fmt: skip
def test_spilled_rows_make_the_same_file(
    how: dict[str, Any], path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, other = path.with_name("out.parquet"), path.with_name("other.parquet")
    one = ps.rewrite(path, out, page_rows=64, row_group_rows=1_111, **how)
    monkeypatch.setattr(sorting, "MOST_TOGETHER", 60_000)  # parts of a few rows, cut again
    monkeypatch.setattr("pageseek.rewriting.rewrite.BATCH_ROWS", 300)
    two = ps.rewrite(path, other, page_rows=64, row_group_rows=1_111, threads=1, **how)
    assert not one.spilled
    assert bool(two.spilled) == bool(how)
    assert out.read_bytes() == other.read_bytes()


def test_sizes_of_rows_do_not_depend_on_batches(table: pa.Table) -> None:
    part = table.slice(100, 300)
    ends = row_ends(part)
    assert ends[0] == 0 and ends.size == 301 and (np.diff(ends) > 60).all()
    for cuts in ([1] * 300, [7] * 42 + [6], [0, 299, 0, 1]):
        at, pieces = 0, []
        for n in cuts:
            pieces.append(part.slice(at, n))
            at += n
        assert (row_ends(pa.concat_tables(pieces)) == ends).all()
        alone = [row_ends(one.combine_chunks())[-1] for one in pieces]
        assert (np.cumsum(alone) == ends[np.cumsum(cuts)]).all()
    size = pa.table({"i": pa.array([1, None], pa.int32()), "s": ["abc", ""], "l": [[1, 2], []]})
    assert row_ends(size).tolist() == [0, 4 + 4 + 3 + 4 + 16, 4 + 4 + 3 + 4 + 16 + 4 + 4 + 4]


@pytest.mark.parametrize("how", [{}, {"sort_by": "k"}])
def test_row_groups_of_large_rows_end_before_they_have_their_rows(
    how: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first rows are small, and tell nothing of the others: all texts of a row group have to fit into offsets of 32 bits."""
    path, made = tmp_path / "in.parquet", []
    texts = ["a"] * 600 + ["b" * 2_000] * 400 + ["c" * 200_000] + ["d"] * 100
    pq.write_table(pa.table({"k": range(len(texts)), "s": texts}), path, row_group_size=300)
    module = importlib.import_module("pageseek.rewriting.rewrite")
    monkeypatch.setattr("pageseek.rewriting.request.MOST_BYTES", 100_000)
    monkeypatch.setattr("pageseek.rewriting.request.MOST_TOLD_BYTES", 50_000)
    for memory, batch, told in ((None, 1 << 17, None), (32 << 20, 77, None), (None, 1 << 17, 500)):
        monkeypatch.setattr(module, "BATCH_ROWS", batch)
        out = tmp_path / "out.parquet"
        ps.rewrite(path, out, overwrite=True, memory_limit=memory, row_group_rows=told, **how)
        assert ps.read_table(out).equals(ps.read_table(path))
        groups = [pq.read_metadata(out).row_group(i) for i in range(pq.read_metadata(out).num_row_groups)]  # fmt: skip
        rows = [group.num_rows for group in groups]
        for i, n in enumerate(rows):
            first = sum(rows[:i])
            size = sum(len(text) + 12 for text in texts[first : first + n])
            assert size <= (50_000 if told else 100_000) or (n == 1 and size == 200_012)
        assert len(rows) < 40
        made.append(out.read_bytes())
    assert made[0] == made[1] != made[2]


def test_without_an_order_rows_stay_as_they_lie(path: Path) -> None:
    out = path.with_name("out.parquet")
    ps.rewrite(path, out, page_rows=10)
    same(ps.read_table(out), ps.read_table(path))


@pytest.mark.parametrize("rows", [0, 1])
@pytest.mark.parametrize("how", [{}, {"sort_by": "i"}, {"cluster_by": ["i", "s"]}])
def test_few_rows(rows: int, how: dict[str, Any], path: Path, table: pa.Table) -> None:
    pq.write_table(table[:rows], path)
    out = path.with_name("out.parquet")
    done = ps.rewrite(path, out, indexes={"lookup": ["i"], "bloom": ["s"]}, **how)
    same(ps.read_table(out), ps.read_table(path))
    assert done.rows == rows


def test_footer_keeps_metadata_and_field_ids(tmp_path: Path) -> None:
    inner = pa.field("element", pa.int32(), metadata={"PARQUET:field_id": "9"})
    schema = pa.schema(
        [
            pa.field("a", pa.int64(), nullable=False, metadata={"PARQUET:field_id": "7", "said": "so"}),
            pa.field("l", pa.list_(inner), metadata={"PARQUET:field_id": "8"}),
        ],
        metadata={"mine": "yes"},
    )  # fmt: skip
    path, out = tmp_path / "a.parquet", tmp_path / "b.parquet"
    pq.write_table(pa.table([[3, 1, 2], [[1], None, []]], schema=schema), path)
    ps.index.attach(path, lookup=["a"], distinct=["a"], in_place=True)
    ps.rewrite(path, out, sort_by="a")
    found = pq.read_schema(out)
    assert found.equals(pq.read_schema(path).remove_metadata(), check_metadata=False)
    assert found.field("a").metadata[b"PARQUET:field_id"] == b"7"
    assert found.field("a").metadata[b"said"] == b"so"
    assert found.field("l").type.value_field.metadata[b"PARQUET:field_id"] == b"9"
    assert found.metadata[b"mine"] == b"yes"
    assert b"pageseek.indexes" not in found.metadata
    assert not [one for one in ps.index.list(out) if one.attached]


def test_types_of_files_without_an_arrow_schema_stay(table: pa.Table, tmp_path: Path) -> None:
    path, out = tmp_path / "a.parquet", tmp_path / "b.parquet"
    old = table.select(["row", "i", "s", "list"]).append_column(
        "at", table["at"].cast(pa.timestamp("us")).cast(pa.timestamp("ns"))
    )
    pq.write_table(old, path, store_schema=False, use_deprecated_int96_timestamps=True)
    ps.rewrite(path, out, sort_by="at")
    same(by_row(ps.read_table(out)), ps.read_table(path))
    assert pq.ParquetFile(out).schema.column(4).physical_type == "INT64"


def test_views_at_any_depth_are_sorted(tmp_path: Path) -> None:
    """Arrow takes no rows of views. Polars writes files of them."""
    path, view = tmp_path / "in.parquet", pa.string_view()
    texts = ["b", None, "a" * 40, "", "ü" * 9, "b"]
    pair = pa.struct([("x", view), ("y", pa.list_(pa.binary_view()))])
    table = pa.table({
        "row": range(6),
        "s": pa.array(texts, view),
        "b": pa.array([None if one is None else one.encode() for one in texts], pa.binary_view()),
        "pair": pa.array([None, *[{"x": one, "y": [None, b"q"]} for one in texts[1:]]], pair),
        "large": pa.array([[one] for one in texts], pa.large_list(view)),
        "two": pa.array([[one, None] for one in texts], pa.list_(view, 2)),
        "map": pa.array([[(str(i), one)] for i, one in enumerate(texts)], pa.map_(view, view)),
        "json": pa.ExtensionArray.from_storage(pa.json_(view), pa.array(["{}"] * 6, view)),
    })  # fmt: skip
    pq.write_table(table, path)
    before = ps.read_table(path)
    assert before.schema.field("s").type == view
    for how in ({}, {"sort_by": "s"}, {"sort_by": [("b", "descending")]}, {"cluster_by": ["s", "b"]}):  # fmt: skip
        ps.rewrite(path, tmp_path / "out.parquet", overwrite=True, **how)
        found = ps.read_table(tmp_path / "out.parquet")
        rows = found["row"].to_pylist()
        assert found.schema.equals(before.schema)
        for name in before.column_names:
            values = before[name].to_pylist()
            assert found[name].to_pylist() == [values[row] for row in rows]
        if how == {"sort_by": "s"}:
            assert rows == [3, 2, 0, 5, 4, 1]


@pytest.mark.parametrize("compliant", [True, False])
def test_names_of_nested_leaves_stay(compliant: bool, tmp_path: Path) -> None:
    path, out = tmp_path / "in.parquet", tmp_path / "out.parquet"
    table = pa.table({"a": [[1]], "b": pa.array([[("k", [2])]], pa.map_(pa.string(), pa.large_list(pa.int8())))})  # fmt: skip
    pq.write_table(table, path, use_compliant_nested_type=compliant)
    ps.rewrite(path, out)
    before, after = (pq.read_metadata(one).row_group(0) for one in (path, out))
    for i in range(before.num_columns):
        assert after.column(i).path_in_schema == before.column(i).path_in_schema


def test_many_files_become_one_or_a_folder(tmp_path: Path) -> None:
    for k in range(3):
        folder = tmp_path / "lake" / f"k={k}"
        folder.mkdir(parents=True)
        pq.write_table(pa.table({"id": range(k, 300, 3)}), folder / "a.parquet")
    one = ps.rewrite(tmp_path / "lake", tmp_path / "one.parquet", sort_by="id")
    assert one.files == [str(tmp_path / "one.parquet")]
    assert ps.read_table(one.files[0]).to_pydict() == {"id": list(range(300)), "k": [0, 1, 2] * 100}
    many = ps.rewrite(tmp_path / "lake", tmp_path / "new", sort_by="id", file_rows=128, indexes={"lookup": ["id"]})  # fmt: skip
    assert [Path(name).name for name in many.files] == [f"part-0000{i}.parquet" for i in range(3)]
    assert many.rows == 300
    assert [len(ps.read_table(name)) for name in many.files] == [128, 128, 44]
    assert ps.read_table(tmp_path / "new")["id"].to_pylist() == list(range(300))
    assert all(("lookup", "id") in made.added for made in many.indexes)
    assert ps.scan(tmp_path / "new", filter="id = 77", prune=["lookup"]).count_rows() == 1
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["lake", "new", "one.parquet"]
    with pytest.raises(FileExistsError, match="new folder or an empty one"):
        ps.rewrite(tmp_path / "lake", tmp_path / "new", file_rows=10, overwrite=True)
    with pytest.raises(ValueError, match="in_place=True is of one file, and the source has 3"):
        ps.rewrite(tmp_path / "lake", in_place=True)


def test_in_place_with_indexes(path: Path, table: pa.Table) -> None:
    path.chmod(0o640)
    before = ps.read_table(path)
    done = ps.rewrite(path, in_place=True, sort_by="i", indexes={"lookup": ["u"], "bitmap": ["flag"], "bloom": ["s"]})  # fmt: skip
    same(by_row(ps.read_table(path)), before)
    assert path.stat().st_mode & 0o777 == 0o640
    assert done.files == [str(path)]
    assert done.bytes_after == path.stat().st_size
    found = {(one.kind, one.column) for one in ps.index.list(path) if one.attached}
    assert {("lookup", "u"), ("bitmap", "flag"), ("bloom", "s")} <= found
    assert ps.index.verify(path).ok
    value = table["u"][7].as_py()
    assert ps.scan(path, filter=ps.col("u") == value).count_rows() == 1
    said = str(done)
    for word in ("5,000 rows", "sorted by i", "lookup", "row group", "pages"):
        assert word in said
    assert [entry.name for entry in path.parent.iterdir()] == ["in.parquet"]


def test_codecs_and_pages(path: Path) -> None:
    out = path.with_name("out.parquet")
    ps.rewrite(path, out, sort_by="row", codec="snappy", page_rows=250, row_group_rows=1_000)
    with ps.open(out) as file:
        assert file.chunk(0, "i").codec == "snappy"
        assert file.num_row_groups == 5
        index = file.offset_index(0, "i")
        assert index is not None
        assert index.first_row.tolist()[:4] == [0, 250, 500, 750]
    report = ps.scan(out, filter="row = 2300").select("i").explain(analyze=True).to_dict()
    assert report["leaves"]["row"]["pages"]["read"] == 1


@pytest.mark.parametrize("sort_by", [[], ["thirty"]])
def test_columns_get_dictionaries_that_lookups_can_afford(
    sort_by: list[str], tmp_path: Path
) -> None:
    """Large ones would be read for each row. A column without one is plain in all its pages."""
    n = 1 << 17  # every other row is looked at
    ids = np.random.default_rng(3).permutation(n)
    columns = {
        "unique": ids,
        "text": [f"{one:032x}" for one in ids],
        "thirty": ids // 3,
        "uuid": pa.array([one.tobytes() * 2 for one in ids.astype(np.int64)], pa.binary(16)).cast(pa.uuid()),
        "a.b": ids * 2,
        "turns": np.arange(n) % 20_000,  # every other row has half of the values
        "decimal": pa.array(ids % 20_000, pa.int64()).cast(pa.decimal128(19)).cast(pa.decimal128(9)),
        "short": (ids % 60_000 - 30_000).astype(np.int16),
        "few": ids % 1_000,
        "word": [f"word {one % 500}" for one in ids],
        "no": pa.nulls(n, pa.int64()),
        "half": (ids % 7).astype(np.float16),
        "list": [[one % 9] for one in ids.tolist()],
        "struct": [{"few": one % 9} for one in ids.tolist()],
    }  # fmt: skip
    path, out = tmp_path / "a.parquet", tmp_path / "b.parquet"
    table = pa.table(columns)
    pq.write_table(table, path)
    ps.rewrite(path, out, sort_by=sort_by)
    found = ps.read_table(out)
    assert found.sort_by("unique").equals(ps.read_table(path).sort_by("unique"))
    with ps.open(out) as file:
        coded = {leaf.name for leaf in file.leaves if file.chunk(0, leaf).dictionary_page_offset}
        assert all("PLAIN" in file.chunk(0, leaf).encodings for leaf in file.leaves)
    assert coded - {"list.list.item", "list.list.element"} == {"decimal", "few", "word", "no", "half", "struct.few"}  # fmt: skip
    assert len(coded) == 7  # the list too
    leaves = ps.scan(out, filter='"a.b" = 4712').explain(analyze=True).to_dict()["leaves"]
    assert leaves["unique"]["dictionary_pages"] == 0 and leaves["word"]["dictionary_pages"] == 1


def test_more_rows_a_page_than_a_page_can_have(path: Path) -> None:
    done = ps.rewrite(path, path.with_name("large.parquet"), page_rows=10**20)
    assert done.rows == pq.ParquetFile(path).metadata.num_rows


def test_a_file_that_is_written_wrong_is_deleted(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, write = path.read_bytes(), Encoder.add
    flip = {"values": 0}

    def wrong_values(self: Encoder, rows: pa.Table) -> None:
        at = rows.column_names.index("small")
        values = rows["small"].to_pylist()
        flip["values"] += 1
        if flip["values"] == 1:
            values[5] = 100
        write(self, rows.set_column(at, rows.field(at), pa.chunked_array([pa.array(values, pa.int8())])))  # fmt: skip

    def fewer_rows(self: Encoder, rows: pa.Table) -> None:
        write(self, rows[1:])

    def moved(self: Encoder, rows: pa.Table) -> None:  # one column against the others
        at = rows.column_names.index("row")
        values = rows["row"].combine_chunks()
        values = pa.concat_arrays([values[1:], values[:1]])
        write(self, rows.set_column(at, rows.field(at), pa.chunked_array([values])))

    def elements(self: Encoder, rows: pa.Table) -> None:
        at = rows.column_names.index("deep")
        values = [None if v is None else v[::-1] for v in rows["deep"].to_pylist()]
        write(self, rows.set_column(at, rows.field(at), pa.chunked_array([pa.array(values, rows.field(at).type)])))  # fmt: skip

    def unsorted(self: Encoder, rows: pa.Table) -> None:
        write(self, rows.take([*range(1, len(rows)), 0]))

    for wrong, said in (
        (wrong_values, "column 'small' has other values"),
        (fewer_rows, "4,999 rows in place of 5,000"),
        (moved, "the values of rows have changed places"),
        (elements, "column 'deep' has other values"),
        (unsorted, "row 4,999 is not in order"),
    ):
        monkeypatch.setattr(Encoder, "add", wrong)
        with pytest.raises(ps.RewriteError, match=said):
            ps.rewrite(path, in_place=True, sort_by="day")
        assert path.read_bytes() == before
        assert [entry.name for entry in path.parent.iterdir()] == ["in.parquet"]
    with pytest.raises(ps.RewriteError, match="the values of rows have changed places"):
        ps.rewrite(path, in_place=True)  # without an order, that of the source is checked


def test_a_source_that_is_replaced_meanwhile_stays(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = Encoder.add

    def replaced(self: Encoder, rows: pa.Table) -> None:
        write(self, rows)
        other = path.with_name("other.parquet")
        pq.write_table(pa.table({"other": [1]}), other)
        other.replace(path)

    monkeypatch.setattr(Encoder, "add", replaced)
    with pytest.raises(ps.FileChangedError):
        ps.rewrite(path, in_place=True, sort_by="i")
    assert pq.read_table(path).to_pydict() == {"other": [1]}


def test_wrong_arguments_are_named_before_anything_is_written(path: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.parquet"
    before = path.read_bytes()
    for said, how in (
        ("one of output=PATH and in_place=True", {"output": None}),
        ("one of output=PATH and in_place=True", {"in_place": True}),
        ("give one of them", {"sort_by": "i", "cluster_by": ["i", "s"]}),
        (r"no column 'ii'; did you mean 'i'\? there are 25 names", {"sort_by": "ii"}),
        ("no column 'ii'", {"cluster_by": ["ii", "s"]}),
        ("'list' is list", {"sort_by": "list"}),
        ("stands there twice", {"sort_by": ["i", "i"]}),
        ("ascending or descending", {"sort_by": [("i", "down")]}),
        ("the name of a column, or", {"sort_by": [7]}),
        ("two to 8", {"cluster_by": ["i"]}),
        ("a list of names", {"cluster_by": "i"}),
        ("page_rows=0: at least 1", {"page_rows": 0}),
        ("row_group_rows='x': an integer", {"row_group_rows": "x"}),
        ("memory_limit=5: at least", {"memory_limit": 5}),
        ("codec='zip': one of none", {"codec": "zip"}),
        ("no kind 'blom'; did you mean 'bloom'", {"indexes": {"blom": ["i"]}}),
        (r"indexes=\['id'\]: a dict of kinds", {"indexes": ["id"]}),
        ("compression='zstd': it is called codec here", {"compression": "zstd"}),
        ("sort_by=3: the name of a column, or a list", {"sort_by": 3}),
        ("cluster_by=3: a list of names", {"cluster_by": 3}),
        ("progress=3: True, False, or a function", {"progress": 3}),
        ("threads='x': an integer", {"threads": "x"}),
        ("in_place='no': True or False", {"output": None, "in_place": "no"}),
        ("overwrite=1: True or False", {"overwrite": 1}),
        ("table=int: True or False", {"table": 3}),
        ("no_such", {"indexes": {"bloom": ["no_such"]}}),
        ("cannot have|has no|bitmap", {"indexes": {"bitmap": ["f"]}}),
        ("no option partition=; did you mean partitioning=", {"partition": False}),
        ("there is no such folder", {"spill_folder": str(tmp_path / "nowhere")}),
        ("is a file that is read", {"output": path, "overwrite": True}),
    ):
        with pytest.raises((ValueError, TypeError, OSError, ps.PageseekError), match=said):
            ps.rewrite(path, **{"output": out, **how})
    with pytest.raises(ValueError, match="goes with output=PATH"):
        ps.rewrite(path, in_place=True, overwrite=True)
    out.write_bytes(b"mine")
    with pytest.raises(FileExistsError, match="overwrite=True"):
        ps.rewrite(path, out)
    assert out.read_bytes() == b"mine"
    assert path.read_bytes() == before
    ps.rewrite(path, out, overwrite=True)
    assert ps.scan(out).count_rows() == N
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["in.parquet", "out.parquet"]


@pytest.mark.parametrize("how", [{"sort_by": "a"}, {"cluster_by": ["b", "a"]}, {"indexes": {"lookup": ["a"]}}, {"indexes": {"bitmap": ["none"]}}])  # fmt: skip
def test_errors_name_the_source_and_the_column(how: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "in.parquet"
    columns = [pa.array([1, 2]), pa.array([3, 4]), pa.array([5, 6])]
    pq.write_table(pa.Table.from_arrays(columns, names=["a", "a", "b"]), path)
    with pytest.raises(ps.PredicateError) as caught:
        ps.rewrite(path, tmp_path / "out.parquet", **how)
    said = str(caught.value)
    assert said.startswith(str(path)) and "did you mean 'a'" not in said
    assert ("'none'" if "bitmap" in str(how) else "'a'") in said


def test_rows_without_columns_are_refused(path: Path) -> None:
    pq.write_table(pa.table({"a": [1, 2]}).select([]), path)
    with pytest.raises(ps.UnsupportedError, match="no columns"):
        ps.rewrite(path, in_place=True)


def test_progress_is_told(path: Path) -> None:
    seen: list[ps.Progress] = []
    ps.rewrite(path, path.with_name("out.parquet"), sort_by="i", progress=seen.append)
    told = [now for now in seen if now.stage == "rows"]
    assert told[-1].done == told[-1].total == N
