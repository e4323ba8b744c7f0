"""Lookup indexes: rows by value equal the full read plus filter, whatever the type, and whatever happens to the index."""

from __future__ import annotations

import datetime as dt
import random
import tracemalloc
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pageseek._core import hash_blocks
from pageseek._core.bloom import xxh64

import pageseek as ps
from pageseek.base.errors import CoreError
from pageseek.format import lookup_form
from pageseek.format.embedded import InvalidIndexError, directory, framed
from pageseek.index import bitmap_builder, lookup_builder, payloads, spilled, stored_indexes
from pageseek.prune.kind import IndexedColumn
from support import writer
from support.batch_comparison import same_rows
from support.opened import open_metadata
from support.tiers import FULL, rounds

N, GROUP = 9_000, 2_500
Make = Callable[[random.Random], Any]
TYPES: dict[str, tuple[pa.DataType, Make]] = {
    "i8": (pa.int8(), lambda r: r.randrange(-128, 128)),
    "u16": (pa.uint16(), lambda r: r.randrange(1 << 16)),
    "i32": (pa.int32(), lambda r: r.randrange(-(1 << 31), 1 << 31)),
    "u64": (pa.uint64(), lambda r: r.randrange(1 << 64)),
    "i64": (pa.int64(), lambda r: r.choice([r.randrange(2000), r.randrange(-(1 << 63), 1 << 63)])),
    "f32": (pa.float32(), lambda r: r.choice([0.0, -0.0, float("nan"), r.randrange(900) / 4])),
    "f64": (pa.float64(), lambda r: r.choice([0.0, -0.0, float("nan"), float("inf"), r.random()])),
    "s": (pa.string(), lambda r: r.choice(["", "ü" * r.randrange(40), f"{r.random()}", "a\0b"])),
    "b": (pa.binary(), lambda r: r.randbytes(r.randrange(3))),
    "fixed": (pa.binary(16), lambda r: r.randrange(4000).to_bytes(16, "little")),
    "d": (pa.date32(), lambda r: dt.date(1960, 1, 1) + dt.timedelta(r.randrange(9000))),
    "t": (pa.timestamp("us", "UTC"), lambda r: dt.datetime(2020, 1, 1, tzinfo=dt.UTC) + dt.timedelta(microseconds=r.randrange(5000))),
    "time": (pa.time64("us"), lambda r: dt.time(1, 2, 3, r.randrange(5000))),
    "m": (pa.decimal128(20, 3), lambda r: Decimal(r.randrange(-3000, 3000)) / 1000),
}  # fmt: skip


@pytest.fixture(scope="module")
def table() -> pa.Table:
    rng = random.Random(1)
    columns = {"row": pa.array(range(N))}
    for name, (kind, make) in TYPES.items():
        values = [None if rng.random() < 0.1 else make(rng) for _ in range(N)]
        columns[name] = pa.array(values, kind)
    return pa.table(columns)


@pytest.fixture(scope="module")
def path(table: pa.Table, tmp_path_factory: pytest.TempPathFactory) -> str:
    made = str(tmp_path_factory.mktemp("lookup") / "a.parquet")
    pq.write_table(table, made, row_group_size=GROUP, data_page_size=500, use_dictionary=["s"])
    done = ps.index.attach(made, lookup=list(TYPES), in_place=True)
    assert not any("lookup" in one for one in done.skipped)
    assert {name for kind, name in done.added if kind == "lookup"} == set(TYPES)
    return made


@pytest.mark.parametrize("name", list(TYPES))
def test_rows_by_value_equal_the_filter(path: str, table: pa.Table, name: str) -> None:
    kind, make = TYPES[name]
    rng = random.Random(2)
    scan = ps.scan(path, prune=["lookup"], columns=["row", name])
    whole = table.select(["row", name])
    ruled_out, tries = 0, rounds(60, 2)
    for i in range(tries):
        value = table[name][rng.randrange(N)].as_py() if i % 2 else make(rng)
        if value is None:
            continue
        scalar = pa.scalar(value, kind)
        found = scan.filter(ps.col(name) == value)
        assert same_rows(found.to_table(), whole.filter(pc.equal(whole[name], scalar))), value
        ruled_out += found.explain().rows.pruned_by.get("lookup", 0)
        some = [value, make(rng), make(rng), None]
        listed = pa.array([one for one in some if one is not None and one == one], kind)
        wanted = whole.filter(pc.fill_null(pc.is_in(whole[name], value_set=listed), False))
        if not pa.types.is_floating(kind):  # zeros of both signs and NaN, which is_in tells apart
            assert same_rows(scan.filter(ps.col(name).isin(some)).to_table(), wanted), some
        unequal = scan.filter(~(ps.col(name) != value)).to_table()
        assert same_rows(unequal, whole.filter(pc.equal(whole[name], scalar)))
    assert ruled_out > tries * N // 3
    null = scan.filter(ps.col(name).is_null())
    assert null.count_rows() == table[name].null_count
    assert "lookup" not in null.explain().rows.pruned_by


@pytest.mark.parametrize("nan", ["ieee", "spark"])
@pytest.mark.parametrize("name", ["f32", "f64"])
def test_zeros_and_nan(path: str, table: pa.Table, name: str, nan: str) -> None:
    zeros = pc.sum(pc.equal(table[name], 0.0)).as_py()
    scan = ps.scan(path, nan=nan, prune=["lookup"])
    for zero in (0.0, -0.0):
        assert scan.filter(ps.col(name) == zero).count_rows() == zeros > 100
    nans = pc.sum(pc.is_nan(table[name])).as_py()
    for condition in (
        ps.col(name) == float("nan"),
        ps.col(name).isin([float("nan"), 1e300]),
    ):
        assert scan.filter(condition).count_rows() == (nans if nan == "spark" else 0)


@pytest.mark.parametrize("options", [{"string_type": "view"}, {"dictionary_columns": ["s"]}])
def test_other_types_of_output(path: str, table: pa.Table, options: dict[str, Any]) -> None:
    scan = ps.scan(path, columns=["row", "s"], prune=["lookup"], **options)
    for row in range(0, N, 600):
        value = table["s"][row].as_py()
        if value is not None:
            found = scan.filter(ps.col("s") == value)
            assert found.to_table()["row"].to_pylist() == np.flatnonzero(
                pc.fill_null(pc.equal(table["s"], value), False).to_numpy()
            ).tolist()  # fmt: skip
            assert found.explain().rows.pruned_by.get("lookup", 0) > 0


@pytest.mark.parametrize("lookup", [["i64"], [("i64", "flag2")]])
def test_tests_of_columns_without_hashes(tmp_path: Path, lookup: Any) -> None:
    path = tmp_path / "a.parquet"
    n = 3_000
    table = pa.table({"i64": range(n), "flag2": [i % 7 for i in range(n)], "flag": [i % 2 == 0 for i in range(n)], "null": pa.nulls(n), "list": [[i] for i in range(n)], "row": [{"a": i} for i in range(n)]})  # fmt: skip
    pq.write_table(table, path, row_group_size=1_000)
    ps.index.attach(path, lookup=lookup, in_place=True)
    flag, key, other = ps.col("flag") == True, ps.col("i64") == 8, ps.col("flag2") == 1  # noqa: E712
    conditions = [flag, flag & key, flag & key & other, ps.col("flag").isin([False]) | key, ~flag & other]  # fmt: skip
    conditions += [ps.col("null").is_null() & key, ps.col("list").any() == 8, ps.col("row").is_null() | key]  # fmt: skip
    for condition in conditions:
        wanted = ps.read_table(path, filter=condition, prune=False)
        for prune in (True, ["lookup", "key_lookup"]):
            assert ps.read_table(path, filter=condition, prune=prune).equals(wanted), condition


@pytest.mark.parametrize("at", [0, 1])
def test_many_values_beside_a_row_group_without_rows(tmp_path: Path, at: int) -> None:
    """The bytes of all chunks are counted to see whether many values are worth it. A chunk without pages lies nowhere."""
    path, n = tmp_path / "a.parquet", 2_000
    data = pa.table({"a": [i * 7919 % n for i in range(n)], "row": range(n)})
    with pq.ParquetWriter(path, data.schema, use_dictionary=False) as made:
        for some in [data.slice(0, n // 2)] * at + [data.slice(0, 0), data.slice(at * n // 2)]:
            made.write_table(some)
    assert pq.ParquetFile(path).metadata.row_group(at).num_rows == 0
    ps.index.attach(path, lookup=["a"], in_place=True)
    asked = list(range(0, n, 20))
    wanted = data.filter(pc.field("a").isin(asked))
    assert ps.read_table(path, filter=ps.col("a").isin(asked)).equals(wanted)


def test_one_block_is_read(tmp_path: Path) -> None:
    n = 300_000
    keys = np.random.default_rng(1).permutation(n)
    path = str(tmp_path / "a.parquet")
    pq.write_table(pa.table({"k": keys, "row": range(n)}), path, row_group_size=50_000)
    size = Path(path).stat().st_size
    done = ps.index.attach(path, lookup=["k"], page_index=False, in_place=True)
    assert done.bytes_after - size < 5 * n
    scan = ps.scan(path)
    assert scan.filter(ps.col("k") == 5).to_table()["row"].to_pylist() == [
        int(np.flatnonzero(keys == 5)[0])
    ]
    report = scan.filter(ps.col("k") == 77).explain()
    assert report.to_dict()["bytes"]["index"] < 12_000
    assert report.rows.pruned_by["lookup"] >= n - 10
    false, absent = 0, rounds(2_000, 2)
    for key in range(n, n + rounds(2_000, 20)):
        false += scan.filter(ps.col("k") == key).plan().num_rows
    assert false == 0  # beyond the bounds
    spread = str(tmp_path / "b.parquet")
    pq.write_table(pa.table({"k": keys * 2}), spread, row_group_size=n, use_dictionary=False)
    ps.index.attach(spread, lookup=["k"], in_place=True)
    scan = ps.scan(spread)
    candidates = sum(
        scan.filter(ps.col("k") == 2 * i + 1).plan().num_rows > 0 for i in range(absent)
    )
    assert candidates <= absent / 100  # 1 in 256 expected


def test_mutated_and_cut_indexes_change_no_answer(
    path: str, table: pa.Table, tmp_path: Path
) -> None:
    listed = directory(open_metadata(path))
    assert listed is not None
    (entry,) = [one for one in listed.pointers if one.kind == "lookup" and one.leaf == ("i32",)]
    data = bytearray(Path(path).read_bytes())
    rng, at = random.Random(3), tmp_path / "m.parquet"
    ignored = 0
    places = [*range(entry.offset, entry.offset + 60)]
    places += [
        rng.randrange(entry.offset, entry.offset + entry.length) for _ in range(rounds(240, 3))
    ]
    for place in places:
        mutated = bytearray(data)
        mutated[place] ^= 1 << rng.randrange(8)
        at.write_bytes(mutated)
        ps.clear_cache()
        for row in (5, N - 1):
            value = table["i32"][row].as_py()
            found = ps.scan(at, columns=["row"], filter=ps.col("i32") == value, prune=["lookup"])
            wanted = [] if value is None else np.flatnonzero(pc.fill_null(pc.equal(table["i32"], value), False)).tolist()  # fmt: skip
            assert found.to_table()["row"].to_pylist() == wanted
            ignored += any("lookup index ignored" in note for note in found.explain().notes)
    assert ignored > len(places) // 5


def test_every_byte_of_the_block_of_a_value_counts(tmp_path: Path) -> None:
    path, at = tmp_path / "a.parquet", tmp_path / "b.parquet"
    keys = np.random.default_rng(8).permutation(60)
    pq.write_table(pa.table({"k": keys}), path, row_group_size=20)
    ps.index.attach(path, lookup=["k"], page_index=False, in_place=True)
    listed = directory(open_metadata(str(path)))
    assert listed is not None
    (entry,) = listed.pointers
    data = path.read_bytes()
    assert entry.length < 1_000
    for place in range(entry.offset, entry.offset + entry.length, 1 if FULL else 3):
        mutated = bytearray(data)
        mutated[place] ^= 1 << place % 8
        at.write_bytes(mutated)
        ps.clear_cache()
        for key in (5, 17):
            scan = ps.scan(at, filter=ps.col("k") == key, prune=["lookup"])
            assert scan.count_rows() == 1, place
        assert any("lookup index ignored" in note for note in scan.explain().notes), place


def test_an_index_of_another_file_is_ignored(path: str, table: pa.Table, tmp_path: Path) -> None:
    at = tmp_path / "other.parquet"
    pairs = pq.read_metadata(path).metadata
    assert b"pageseek.indexes" in pairs
    swapped = table.take(pa.array(list(range(N))[::-1]))
    with pq.ParquetWriter(at, table.schema) as writer:
        writer.write_table(swapped, row_group_size=GROUP)
        writer.write_table(swapped, row_group_size=GROUP)
        writer.add_key_value_metadata(pairs)
    value = table["i64"][3].as_py()
    found = ps.scan(at, filter=ps.col("i64") == value, prune=["lookup"])
    assert found.count_rows() == 2 * pc.sum(pc.equal(table["i64"], value)).as_py()
    assert any("ignored" in note for note in found.explain().notes)


def test_what_lies_on_disk_meanwhile_gives_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(tmp_path / "a.parquet")
    values = pa.array([None if i % 7 == 0 else f"v{i * 7919 % 60_000}" for i in range(60_000)])
    pq.write_table(pa.table({"s": values}), path, row_group_size=7_000)
    made = []
    for held in (1 << 30, 1000):
        monkeypatch.setattr(spilled, "HELD", held)
        monkeypatch.setattr(lookup_builder, "PART_BLOCKS", 256 if held > 1000 else 3)
        ps.index.attach(path, lookup=["s"], output=str(tmp_path / "b.parquet"), overwrite=True)
        made.append((tmp_path / "b.parquet").read_bytes())
    assert made[0] == made[1]


def test_what_is_given_up_reads_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, to = tmp_path / "a.parquet", tmp_path / "b.parquet"
    pq.write_table(pa.table({"same": [7] * 9_000, "id": range(9_000)}), path, row_group_size=1_000)
    collected = {"lookup": 0, "bitmap": 0}
    for kind, builder in (("lookup", lookup_builder.LookupBuilder), ("bitmap", bitmap_builder.BitmapBuilder)):  # fmt: skip

        def counted(self: Any, kind: str = kind, plain: Any = builder.collect) -> Any:
            collected[kind] += 1
            return plain(self)

        monkeypatch.setattr(builder, "collect", counted)
    monkeypatch.setattr(lookup_builder, "MAX_ENTRIES", 2_500)
    monkeypatch.setattr(bitmap_builder, "MAX_VALUES", 1_500)
    done = ps.index.attach(path, lookup=["same"], bitmap=["id"], page_index=False, output=to, threads=1)  # fmt: skip
    assert len(done.skipped) == 2 and not done.added
    assert collected == {"lookup": 3, "bitmap": 2}


def test_many_indexes_share_the_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What all of them hold is limited: then their entries wait in files, and no index is given up."""
    path, to = tmp_path / "a.parquet", tmp_path / "b.parquet"
    rng = np.random.default_rng(2)
    table = pa.table({f"c{i}": rng.integers(0, 1000, 3_000) for i in range(6)})
    table = table.append_column("s", pa.array([f"text {i}" for i in range(3_000)]))
    pq.write_table(table, path, row_group_size=500)
    wanted: dict[str, Any] = {"lookup": [*table.column_names, ("c0", "c1"), ("c1", "s")], "trigram": ["s"], "file_bloom": ["c3"]}  # fmt: skip
    ps.index.attach(path, output=to, **wanted)
    before, spills = to.read_bytes(), 0
    spill = spilled.SpilledEntries.spill

    def counted(self: spilled.SpilledEntries) -> None:
        nonlocal spills
        spills += 1
        spill(self)

    monkeypatch.setattr(spilled.SpilledEntries, "spill", counted)
    monkeypatch.setattr(payloads, "LISTED", 40_000)
    done = ps.index.attach(path, output=to, overwrite=True, **wanted)
    assert not done.skipped
    assert to.read_bytes() == before
    assert spills > 20
    spills = 0
    monkeypatch.setattr(stored_indexes, "MAX_BUILDING_BYTES", 40_000)
    assert ps.index.verify(to).ok
    assert spills > 20


def test_an_index_is_held_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spilled, "HELD", 1000)
    monkeypatch.setattr(lookup_builder, "PART_BLOCKS", 4)
    n = 600_000
    column = IndexedColumn(cast("Any", None), cast("Any", None), [n])
    builder = lookup_builder.LookupBuilder(column)
    hashes = np.random.default_rng(1).integers(0, 1 << 63, n, dtype=np.uint64) << np.uint64(1)
    builder.add(0, builder.entries(hashes, np.arange(n)))
    del hashes
    tracemalloc.start()
    body = framed(builder.finish(), 5)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(body) > 3 * n
    assert peak < 1.6 * len(body)


@pytest.mark.parametrize(("most", "n", "right"), [(40, 40, True), (39, 40, False), (40, 41, False)])  # fmt: skip
def test_directories_of_too_many_entries_are_refused(
    monkeypatch: pytest.MonkeyPatch, most: int, n: int, right: bool
) -> None:
    hashes = np.random.default_rng(1).integers(0, 1 << 63, n, dtype=np.uint64)
    block = lookup_form.block_bytes(hashes, np.arange(n) % 40, 6)
    start = lookup_form.directory_of([(len(block), n, 5)], n, 40)
    monkeypatch.setattr(lookup_form, "MAX_ENTRIES", most)
    made = start, 40, len(start) + len(block)
    if right:
        assert lookup_form.LookupDirectory(memoryview(start), *made[1:]).num_blocks == 1
    else:
        with pytest.raises(InvalidIndexError, match=f"{n} in one block, of 40 rows"):
            lookup_form.LookupDirectory(memoryview(start), *made[1:])


def test_verify_list_and_detach(path: str, tmp_path: Path, table: pa.Table) -> None:
    assert ps.index.verify(path).ok
    plain, indexed = str(tmp_path / "a.parquet"), str(tmp_path / "b.parquet")
    pq.write_table(table.select(["row", "i64"]), plain)
    ps.index.attach(plain, lookup=["i64"], output=indexed)
    (entry,) = [one for one in ps.index.list(indexed) if one.kind == "lookup"]
    assert entry.column == "i64"
    ps.index.detach(indexed, in_place=True)
    assert Path(indexed).read_bytes() == Path(plain).read_bytes()


def test_what_gets_no_index(tmp_path: Path) -> None:
    path, to = str(tmp_path / "a.parquet"), str(tmp_path / "b.parquet")
    n = 700_000
    lists = pa.array([[1]] * n)
    pq.write_table(pa.table({"same": [1] * n, "flag": [True] * n, "list": lists, "null": pa.nulls(n, pa.int32())}), path)  # fmt: skip
    done = ps.index.attach(path, lookup=["same", "null"], output=to, page_index=False)
    assert any("very many rows" in one for one in done.skipped)
    found = ps.scan(to, filter=ps.col("null") == 4)
    assert found.count_rows() == 0
    for name, why in (("flag", "bool"), ("list.list.element", "lies in a list")):
        with pytest.raises(ps.UnsupportedError, match=why):
            ps.index.attach(path, lookup=[name], output=to, overwrite=True)
    with pytest.raises(TypeError, match="a list of names"):
        ps.index.attach(path, lookup="same", output=to, overwrite=True)


@pytest.mark.parametrize("lookup", ["a", ("a", "s")])
@pytest.mark.parametrize("rows", [1 << 33, 1 << 44, (1 << 63) - 1])
def test_a_footer_that_claims_very_many_rows(tmp_path: Path, rows: int, lookup: Any) -> None:
    """The blocks of the index are counted before a page is read."""
    claimed = {"edit_chunk": lambda chunk: chunk.update({5: writer.I64(rows)})}
    columns = [writer.Column("a", 2, [1, 2], **claimed), writer.Column("s", 6, [b"a", b"b"], **claimed)]  # fmt: skip
    path = tmp_path / "a.parquet"
    path.write_bytes(
        writer.write(
            columns,
            edit_footer=lambda footer: footer.update({3: writer.I64(rows)}),
            edit_group=lambda i, group: group.update({3: writer.I64(rows)}),
        )
    )
    with pytest.raises(ps.CorruptFileError, match="rows"):
        ps.index.attach(path, lookup=[lookup], output=tmp_path / "b.parquet")


def test_types_that_the_writer_gave_the_columns(tmp_path: Path) -> None:
    """The file stores the Arrow type of its writer, which scans give; indexes are of the Parquet type."""
    numbers = np.arange(3_000)
    table = pa.table({
        "d256": pa.array([Decimal(i) / 4 for i in range(3_000)], pa.decimal256(10, 2)),
        "long": pa.array([Decimal(i) / 4 for i in range(3_000)], pa.decimal256(50, 2)),
        "duration": pa.array(numbers, pa.duration("us")),
        "seconds": pa.array(numbers, pa.timestamp("s")),
        "date64": pa.array([dt.date(2000, 1, 1) + dt.timedelta(i) for i in range(3_000)], pa.date64()),
        "u32": pa.array(numbers, pa.uint32()),
        "large": pa.array(map(str, numbers), pa.large_string()),
        "dictionary": pa.array([str(i % 700) for i in range(3_000)]).dictionary_encode(),
        "half": pa.array((numbers % 500).astype(np.float16)),
        "zone": pa.array(numbers * 1000, pa.timestamp("us", "Europe/Berlin")),
        "small": pa.array(numbers % 100, pa.uint8()),
    })  # fmt: skip
    for version in ("1.0", "2.6"):
        path = str(tmp_path / f"{version}.parquet")
        pq.write_table(table, path, version=version, row_group_size=1_000)
        done = ps.index.attach(path, lookup=table.column_names, in_place=True)
        assert not any("lookup" in one for one in done.skipped)
        for name in table.column_names:
            values = ps.read_table(path, columns=[name])[name]
            for i in (0, 5, 1_234, 2_999):
                found = ps.scan(path, prune=["lookup"], filter=ps.col(name) == values[i])
                wanted = ps.scan(path, prune=False, filter=ps.col(name) == values[i])
                assert found.count_rows() == wanted.count_rows() > 0, (name, version)
                assert found.explain().rows.pruned_by.get("lookup", 0) > 1_000, (name, version)


def found_in(data: bytes, n: int, hashes: np.ndarray[Any, Any], bits: int) -> list[int]:
    block = data, n, xxh64(data) & 0xFFFFFFFF, len(hashes)
    rows = hash_blocks.find([block], np.ascontiguousarray(hashes), bits, 1 << bits)
    return np.frombuffer(rows, np.int64).tolist()


def test_every_entry_of_a_block_is_found() -> None:
    rng = np.random.default_rng(6)
    for n, bits in ((0, 1), (1, 7), (5, 8), (2_048, 20), (9_000, 33), (2_048, 40)):
        hashes = rng.integers(0, 1 << 63, n, dtype=np.uint64)
        hashes[: n // 3] = hashes[n // 3 : 2 * (n // 3)]  # two rows each
        rows = rng.integers(0, 1 << bits, n)
        data = lookup_form.block_bytes(hashes, rows, bits)
        assert len(data) == lookup_form.block_size(n, bits)
        for i in range(0, n, 7):
            found = found_in(data, n, hashes[i : i + 1], bits)
            like = hashes % (1 << 19) == hashes[i] % (1 << 19)  # the bits that an entry has
            assert sorted(found) == sorted(rows[like].tolist())
        assert sorted(found_in(data, n, np.unique(hashes), bits)) == sorted(rows.tolist())


@pytest.mark.parametrize("several", [1, 3, 20])
def test_a_block_of_each_of_several_files(several: int) -> None:
    rng = np.random.default_rng(8)
    parts, places, wanted, at = [], [], [], 0
    hashes = np.sort(rng.integers(0, 1 << 63, 700, dtype=np.uint64))
    for i, (n, bits) in enumerate(((700, 10), (3, 4), (0, 7), (500, 33), (700, 20))):
        rows = rng.integers(0, 1 << bits, n)
        data = lookup_form.block_bytes(hashes[:n], rows, bits)
        parts.append(data)
        asked = 1 + i % 2, several  # each block is asked for hashes of its own
        places.append([at, len(data), n, xxh64(data) & 0xFFFFFFFF, bits, 1 << bits, *asked])
        wanted.append(found_in(data, n, hashes[asked[0] : sum(asked)], bits))
        at += len(data)
    data = b"".join(parts)
    told, found = hash_blocks.find_in_each(data, np.array(places), hashes)
    assert np.frombuffer(told, np.int64).tolist() == list(map(len, wanted))
    assert np.frombuffer(found, np.int64).tolist() == [row for one in wanted for row in one]
    assert any(wanted)
    # another number of bytes, entries, checksum, bits, and rows, each in a block of its own
    for i, (field, value) in enumerate(((1, 4), (2, -1), (3, 5), (4, 0), (5, 1))):
        other = np.array(places)
        other[:, field] = np.where(np.arange(5) == i, value, other[:, field])
        counts = np.frombuffer(hash_blocks.find_in_each(data, other, hashes)[0], np.int64)
        expected = list(map(len, wanted))
        expected[i] = -1 if wanted[i] or field != 5 else 0
        assert counts.tolist() == expected, field
    for outside in ([-1, 4], [0, -4], [1, at], [at + 1, 0]):
        with pytest.raises(CoreError, match="block 0 lies outside"):
            hash_blocks.find_in_each(data, np.array([[*outside, 1, 1, 1, 1, 0, 1]]), hashes)
    for outside in ([-1, 4], [0, -4], [1, 700], [701, 0]):
        with pytest.raises(CoreError, match="of 700"):
            hash_blocks.find_in_each(data, np.array([[0, 1, 1, 1, 1, 1, *outside]]), hashes)


def test_several_blocks_are_asked_at_once() -> None:
    rng = np.random.default_rng(7)
    blocks, hashes, wanted = [], [], []
    for n in (3, 0, 500, 1):
        mine = np.sort(rng.integers(0, 1 << 63, n, dtype=np.uint64))
        rows = rng.permutation(1 << 9)[:n]
        data = lookup_form.block_bytes(mine, rows, 9)
        asked = mine[::2]
        blocks.append((data, n, xxh64(data) & 0xFFFFFFFF, len(asked)))
        hashes.append(asked)
        wanted.append(found_in(data, n, asked, 9))
        assert len(wanted[-1]) >= len(asked)
    every = np.concatenate(hashes)
    found = np.frombuffer(hash_blocks.find(blocks, every, 9, 512), np.int64).tolist()
    assert found == [row for one in wanted for row in one]
    for wrong in (every[:-1], np.append(every, every[:1])):
        with pytest.raises(CoreError, match="hashes for 4 blocks"):
            hash_blocks.find(blocks, wrong, 9, 512)
    with pytest.raises(CoreError, match="checksum"):
        hash_blocks.find([*blocks[:-1], (*blocks[-1][:2], 1, 1)], every, 9, 512)
    with pytest.raises(CoreError, match="it names row"):
        hash_blocks.find(blocks, every, 9, 100)
