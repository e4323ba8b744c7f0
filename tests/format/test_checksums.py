"""Checksums of attached page indexes and Bloom filters: altered indexes are ignored with a reason, and answers stay right."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek._core import bloom as bloom_core
from pageseek.format.checksums import FIELD, PIECE_BYTES
from pageseek.format.embedded import KEY, directory
from pageseek.format.types import ABSENT
from pageseek.predicate.bound import BoundLeaf
from pageseek.prune import pruner_stage
from pageseek.prune.bloom_filter import BloomPruner
from pageseek.prune.protocol import Price, PruneContext
from support.attaching import as_by_others, table, with_directory, written
from support.bloom import xxh64
from support.opened import open_metadata
from support.tiers import FULL, rounds

SEED = 20
PARTS = "offset", "column"


class Place(NamedTuple):
    """Where a structure lies, and the first byte of its chunk."""

    start: int
    stop: int
    chunk: int


def places(path: Path, part: str) -> dict[tuple[str, int], Place]:
    """By column and row group the place of its "offset" or "column" index, or of its "bloom" filter."""
    found = {}
    with open_metadata(path) as file:
        for leaf in file.leaves:
            for group, chunk in enumerate(file.chunks(leaf)):
                if part == "bloom":
                    at, size = chunk.bloom_filter_offset, chunk.bloom_filter_length
                elif part == "offset":
                    at, size = chunk.offset_index_offset, chunk.offset_index_length
                else:
                    at, size = chunk.column_index_offset, chunk.column_index_length
                if at == ABSENT:
                    continue
                first, other = chunk.data_page_offset, chunk.dictionary_page_offset
                first = other if 0 < other < first else first
                found[leaf.name, group] = Place(at, at + size, first)
    return found


def entries(path: Path, kind: str) -> list[dict[str, Any]]:
    with open_metadata(path) as file:
        said = json.loads(file.key_value_metadata[KEY] or b"")
    return [one for one in said["indexes"] if one["kind"] == kind]


def flips(data: bytes, at: int) -> Iterator[bytes]:
    """The data with each bit of one byte flipped, one after another; or with one of its bits, as the tier has it."""
    for bit in range(8) if FULL else [at % 8]:
        broken = bytearray(data)
        broken[at] ^= 1 << bit
        yield bytes(broken)


class Asked:
    """A question, its answer, and what it notes of a file that is damaged."""

    def __init__(self, data: bytes, condition: Any, prune: Any) -> None:
        self.condition, self.prune = condition, prune
        self.wanted = ps.read_table(data, filter=condition, prune=False)

    def notes(self, data: bytes) -> list[str]:
        """The notes of a scan whose answer was compared."""
        scan = ps.scan(data, filter=self.condition, prune=self.prune, threads=1)
        report = scan.explain(analyze=True)
        assert scan.to_table().equals(self.wanted)
        return list(report.notes)


# ---- page indexes


@pytest.fixture(scope="module")
def paged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two row groups of four pages; one column ascends, one is mixed and has nulls."""
    path = tmp_path_factory.mktemp("paged") / "x.parquet"
    n = 800
    mixed = pa.array([i * 37 % 500 for i in range(n)], mask=np.arange(n) % 9 == 0)
    data = pa.table({"id": pa.array(range(n)), "mixed": mixed})
    pq.write_table(data, path, row_group_size=400, max_rows_per_page=100, use_dictionary=False)
    ps.index.attach(path, in_place=True)
    return path


@pytest.mark.parametrize("part", PARTS)
def test_a_page_index_ends_with_its_checksum(paged: Path, part: str) -> None:
    """As docs/format.md has it, by another XXH64."""
    data = paged.read_bytes()
    found = places(paged, part)
    assert len(found) == 4
    for start, stop, chunk in found.values():
        made = data[start:stop]
        assert made[-30:-25] == b"\x08\xfe\xff\x03\x18"  # field 32767, binary of 24 bytes
        assert made[-25:-9] == bytes.fromhex("4860305d61b64c5eae9464b9c8664164") == FIELD[5:]
        assert int.from_bytes(made[-9:-1], "little") == xxh64(made[:-9]) ^ chunk
        assert made[-1:] == b"\0"
    (entry,) = entries(paged, "page_index")
    assert entry["sums"] is True


@pytest.mark.parametrize("part", PARTS)
def test_every_bit_of_a_page_index(paged: Path, part: str) -> None:
    data = paged.read_bytes()
    place = places(paged, part)["id", 1]
    asked = Asked(data, ps.col("id").isin([433, 434, 701]), ["column_index"])
    assert asked.notes(data) == []
    for at in range(place.start, place.stop):
        for broken in flips(data, at):
            (note,) = asked.notes(broken)
            assert f"'id', row group 1: {part} index ignored: " in note
            assert "the checksum" in note


def test_what_was_attached_prunes_as_before(paged: Path) -> None:
    scan = ps.scan(paged, filter=ps.col("id") == 433, prune=["column_index"])
    found = scan.explain(analyze=True).to_dict()
    assert found["leaves"]["id"]["pages"]["read"] == 1
    assert found["leaves"]["mixed"]["pages"]["read"] == 1


QUESTIONS = [
    ps.col("id").between(433, 440), ps.col("mixed") == 74, ps.col("mixed").is_null() & (ps.col("id") > 650),
    ps.col("mixed") > 495, ~(ps.col("id") < 790), ps.col("mixed") == 501,
]  # fmt: skip


@pytest.mark.parametrize("fill", ["zeros", "garbage", "elsewhere"])
def test_damaged_blocks_of_page_indexes(paged: Path, fill: str) -> None:
    """From a few damaged bytes to all, checksums included."""
    data = paged.read_bytes()
    (entry,) = entries(paged, "page_index")
    start, stop = entry["offset"], entry["offset"] + entry["length"]
    asked = [Asked(data, one, ["column_index"]) for one in QUESTIONS]
    dice = random.Random(SEED)
    told, sizes, tries = 0, (4, 9, 30, 64, 100, 4096), rounds(25, 2)
    for size in sizes:
        for _ in range(tries):
            at = dice.randrange(max(start - size + 1, start), stop)
            end = min(at + size, stop)
            block = bytes(end - at)
            if fill == "garbage":
                block = dice.randbytes(end - at)
            elif fill == "elsewhere":  # what lies in another place of the same
                other = dice.randrange(start, stop - (end - at) + 1)
                block = data[other : other + end - at]
            broken = data[:at] + block + data[end:]
            notes = [note for one in asked for note in one.notes(broken)]
            told += bool(notes)
            assert bool(notes) == (broken != data)
    assert told > len(sizes) * tries * 2 // 3


@pytest.mark.parametrize("part", PARTS)
def test_the_index_of_another_chunk_is_found_out(tmp_path: Path, part: str) -> None:
    """Two of the same size, whole, each in the place of the other."""
    path = tmp_path / "x.parquet"
    n = 400
    data = {"a": np.arange(n) % 200 + 10**6, "b": np.arange(n) % 200 + 2 * 10**6}
    first = ["x" * 60] * n  # so that the offsets of both have as many digits
    rows = pa.table({"first": first, **data})
    knobs: dict[str, Any] = {
        "max_rows_per_page": 50,
        "use_dictionary": False,
        "compression": "none",
    }
    pq.write_table(rows, path, **knobs)
    ps.index.attach(path, in_place=True)
    content, found = path.read_bytes(), places(path, part)
    a, b = found["a", 0], found["b", 0]
    assert a.stop - a.start == b.stop - b.start
    swapped = bytearray(content)
    swapped[a.start : a.stop], swapped[b.start : b.stop] = (
        content[b.start : b.stop],
        content[a.start : a.stop],
    )
    asked = Asked(content, ps.col("a") == 10**6 + 120, ["column_index"])
    assert asked.notes(content) == []
    assert any("the checksum differs" in note for note in asked.notes(bytes(swapped)))


def test_an_index_of_the_earlier_form_is_used(paged: Path, tmp_path: Path) -> None:
    """Without checksums, and without a word of them in the directory."""
    path = tmp_path / "x.parquet"
    path.write_bytes(paged.read_bytes())
    without_sums(path, ["page_index"])
    scan = ps.scan(path, filter=ps.col("id") == 433, prune=["column_index"])
    report = scan.explain(analyze=True)
    assert report.notes == []
    assert report.to_dict()["leaves"]["id"]["pages"]["read"] == 1
    assert ps.index.verify(path).ok
    # where the directory has them, their absence says that the index was altered
    with_directory(path, lambda one: one.update(sums=True) if one["kind"] == "page_index" else None)
    report = ps.scan(path, filter=ps.col("id") == 433, prune=["column_index"]).explain(analyze=True)
    assert any("the checksum that it was attached with is not there" in n for n in report.notes)
    assert any("is not there" in one.what for one in ps.index.verify(path).findings)


def without_sums(path: Path, kinds: list[str]) -> None:
    """Indexes as earlier versions wrote them, without checksums: a structure ends with an unknown field."""
    data = bytearray(path.read_bytes())
    if "page_index" in kinds:
        for part in PARTS:
            for _, stop, _ in places(path, part).values():
                data[stop - 25 : stop - 1] = b"\x55" * 24
    path.write_bytes(data)
    with_directory(path, lambda one: one.pop("sums", None) if one["kind"] in kinds else None)


def test_a_checksum_holds_without_the_directory(paged: Path, tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    path.write_bytes(paged.read_bytes())
    as_by_others(path)
    data = bytearray(path.read_bytes())
    asked = Asked(bytes(data), ps.col("id") == 433, ["column_index"])
    assert asked.notes(bytes(data)) == []
    place = places(path, "column")["id", 1]
    data[place.start + 20] ^= 4
    (note,) = asked.notes(bytes(data))
    assert "column index ignored" in note


def test_an_index_of_somebody_who_wrote_the_file_anew_is_used(tmp_path: Path) -> None:
    """The directory was copied: what lies at its places now has no checksum, and was not attached."""
    path = tmp_path / "x.parquet"
    data = pa.table({"id": range(20_000), "text": [f"t{i % 7_000}" for i in range(20_000)]})
    pq.write_table(data, path, max_rows_per_page=500, use_dictionary=False)
    ps.index.attach(path, bloom=["text"], in_place=True)
    with open_metadata(path) as file:
        said = json.loads(file.key_value_metadata[KEY] or b"")
    for one in said["indexes"]:
        one["offset"], one["length"] = 4, 60_000
    pairs = {KEY: json.dumps(said)}
    knobs: dict[str, Any] = {"write_page_index": True, "bloom_filter_options": {"text": True}}
    pq.write_table(
        data.replace_schema_metadata(pairs),
        path,
        max_rows_per_page=500,
        compression="none",
        **knobs,
    )
    with open_metadata(path) as file:
        size = file.footer_start
    for one in said["indexes"]:
        one["length"] = size - 4
    pairs = {KEY: json.dumps(said)}
    pq.write_table(
        data.replace_schema_metadata(pairs),
        path,
        max_rows_per_page=500,
        compression="none",
        **knobs,
    )
    for condition, mechanism in (
        (ps.col("id") == 433, "column_index"),
        (ps.col("text") == "t12x", "bloom_filter"),
    ):
        report = ps.scan(path, filter=condition, prune=[mechanism]).explain(analyze=True)
        assert report.notes == []
        found = report.to_dict()
        assert (
            mechanism in found["rows"]["pruned_by"] or mechanism in found["row_groups"]["pruned_by"]
        )


def test_offset_indexes_that_are_read_for_pages_are_checked(paged: Path) -> None:
    """Also where no column index is: `take`, an aggregate, the file's own `offset_index`."""
    data = bytearray(paged.read_bytes())
    place = places(paged, "offset")["mixed", 0]
    data[place.start + 5] ^= 1
    with open_metadata(bytes(data)) as file:
        assert file.offset_index(0, "mixed") is None and file.column_index(0, "mixed") is None
        assert file.offset_index(1, "mixed") is not None
    broken = bytes(data)
    wanted = pq.read_table(paged)
    assert ps.scan(broken).take([3, 250, 790]).to_table().equals(wanted.take([3, 250, 790]))
    scan = ps.scan(broken, filter=ps.col("id") == 250)
    assert scan.to_table().equals(wanted.slice(250, 1))
    assert any("'mixed'" in note for note in scan.explain(analyze=True).notes)


# ---- Bloom filters

VALUES = 30_000


@pytest.fixture(scope="module", params=["small", "large"])
def filtered(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two row groups with filters that are read whole, or piece by piece."""
    path = tmp_path_factory.mktemp("filtered") / f"{request.param}.parquet"
    distinct = 500 if request.param == "small" else VALUES // 2
    ids = [i % distinct * 2 + (i >= VALUES // 2) for i in range(VALUES)]
    pq.write_table(pa.table({"id": ids}), path, row_group_size=VALUES // 2, use_dictionary=False)
    ps.index.attach(path, page_index=False, bloom={"id": 0.05}, in_place=True)
    return path


def test_a_filter_is_followed_by_its_checksums(filtered: Path) -> None:
    data = filtered.read_bytes()
    (entry,) = entries(filtered, "bloom")
    assert entry["sums"] == PIECE_BYTES == 512
    found = sorted(places(filtered, "bloom").values())
    end = entry["offset"]
    for start, stop, chunk in found:
        assert start == end
        head, size = bloom_core.header(data[start:stop])
        assert head + size == stop - start
        key = xxh64(data[start : start + head]) ^ chunk
        cuts = [*range(start + head, stop, PIECE_BYTES), stop]
        sums = [xxh64(data[a:b]) ^ key for a, b in pairwise(cuts)]
        end = stop + 8 * len(sums)
        assert data[stop:end] == b"".join(one.to_bytes(8, "little") for one in sums)
    assert end == entry["offset"] + entry["length"]


def spots(path: Path, value: int, group: int) -> dict[str, range]:
    """Where the header, the piece of a value and its sum lie."""
    data = path.read_bytes()
    start, stop, _ = places(path, "bloom")["id", group]
    head, size = bloom_core.header(data[start:stop])
    hashes = np.array([xxh64(value.to_bytes(8, "little"))], np.uint64).tobytes()
    (block,) = np.frombuffer(bloom_core.places(hashes, size), np.uint64).tolist()
    piece = block // PIECE_BYTES
    at = start + head + PIECE_BYTES * piece
    return {
        "header": range(start, start + head),
        "block": range(start + head + block, start + head + block + 32),
        "piece": range(at, min(at + PIECE_BYTES, stop)),
        "sum": range(stop + 8 * piece, stop + 8 * piece + 8),
    }


@pytest.mark.covering(1)
@pytest.mark.parametrize("value", [3, 2])
@pytest.mark.parametrize("spot", ["header", "block", "piece", "sum"])
def test_every_bit_of_a_filter_that_is_looked_at(
    filtered: Path, spot: str, value: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A filter of a value that exists: with one bit less it would seem absent."""
    monkeypatch.setattr(pruner_stage, "DOUBT", 0)
    data = filtered.read_bytes()
    group = value % 2
    asked = Asked(data, ps.col("id") == value, ["bloom_filter"])
    assert asked.notes(data) == []
    region = list(spots(filtered, value, group)[spot])
    if spot == "piece":
        region = random.Random(SEED).sample(region, 60)
    for at in region:
        for broken in flips(data, at):
            (note,) = asked.notes(broken)
            assert f"'id', row group {group}: Bloom filter ignored: " in note


def test_bits_all_over_the_filters(filtered: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pruner_stage, "DOUBT", 0)
    data = filtered.read_bytes()
    (entry,) = entries(filtered, "bloom")
    dice = random.Random(SEED)
    whole = [Asked(data, ps.col("id") == value, ["bloom_filter"]) for value in (2, 3, 10**6)]
    many = ps.col("id").isin([2, 3, 44, 45, 10**6])
    for _ in range(rounds(150, 3)):
        at = dice.randrange(entry["offset"], entry["offset"] + entry["length"])
        broken = bytearray(data)
        broken[at] ^= 1 << dice.randrange(8)
        for one in (*whole, Asked(data, many, ["bloom_filter"])):
            one.notes(bytes(broken))
        assert [one.kind for one in ps.index.verify(bytes(broken)).findings][:1] == ["bloom"]


@pytest.mark.covering(1)
@pytest.mark.parametrize("fill", ["zeros", "garbage", "elsewhere"])
def test_damaged_blocks_of_filters(
    filtered: Path, fill: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pruner_stage, "DOUBT", 0)
    data = filtered.read_bytes()
    (entry,) = entries(filtered, "bloom")
    start, stop = entry["offset"], entry["offset"] + entry["length"]
    dice = random.Random(SEED)
    values = [*range(0, 40, 1 if FULL else 3), 10**6]
    asked = [Asked(data, ps.col("id") == value, ["bloom_filter"]) for value in values]
    told = 0
    sizes = (32, 512, 4096, stop - start)
    for size in sizes:
        for _ in range(5):
            at = max(dice.randrange(start - size + 1, stop), start)
            end = min(at + size, stop)
            block = bytes(end - at)
            if fill == "garbage":
                block = dice.randbytes(end - at)
            elif fill == "elsewhere":
                other = dice.randrange(start, stop - (end - at) + 1)
                block = data[other : other + end - at]
            broken = data[:at] + block + data[end:]
            told += sum(bool(one.notes(broken)) for one in asked)
    assert told > len(values) // 2


@pytest.mark.timed
def test_filters_prune_as_before_and_read_little(
    filtered: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pruner_stage, "DOUBT", 0)
    for value, left in ((3, 1), (2, 1), (10**6, 0)):
        ps.clear_cache()
        scan = ps.scan(filtered, filter=ps.col("id") == value, prune=["bloom_filter"])
        found = scan.explain(analyze=True).to_dict()
        assert found["row_groups"]["read"] == left and not scan.explain(analyze=True).notes
        assert found["bytes"]["index"] <= 2 * 4096
        if filtered.name == "large.parquet":
            assert found["bytes"]["index"] <= 2 * (64 + PIECE_BYTES + 8)
        assert found["waves"] == 3 + (left > 0)  # the end, the footer, the filters; pages


def test_what_a_filter_costs_is_what_is_read(
    filtered: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pruner_stage, "DOUBT", 0)
    pruner, seen = BloomPruner.price, []

    def price(self: BloomPruner, site: PruneContext, test: BoundLeaf) -> Price | None:
        found = pruner(self, site, test)
        seen.append(0 if found is None else found.fetched)
        return found

    monkeypatch.setattr(BloomPruner, "price", price)
    for values in ([10**6], [10**6 + 2 * i for i in range(3)], [10**6 + 2 * i for i in range(30)]):
        ps.clear_cache()
        seen.clear()
        scan = ps.scan(filtered, filter=ps.col("id").isin(values), prune=["bloom_filter"])
        read = scan.explain(analyze=True).to_dict()["bytes"]["index"]
        assert 0.5 * max(seen) < read / 2 <= max(seen)  # of two row groups


def test_filters_of_the_earlier_form_are_used(filtered: Path, tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    path.write_bytes(filtered.read_bytes())
    with_directory(path, lambda one: one.pop("sums"))
    scan = ps.scan(path, filter=ps.col("id") == 3, prune=["bloom_filter"])
    found = scan.explain(analyze=True).to_dict()
    assert found["row_groups"]["read"] == 1
    if filtered.name == "large.parquet":
        assert found["bytes"]["index"] < 2 * (64 + 32)
    assert ps.index.verify(path).ok


@pytest.mark.parametrize("sums", [0, 31, 33, 1023, 32, 1 << 40, -1024, True, "1024", None, 2.5])
def test_an_entry_whose_sums_make_no_sense(
    filtered: Path, tmp_path: Path, sums: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a wrong number the filters are doubtful; anything else makes no entry, and the filters count as the writer's."""
    monkeypatch.setattr(pruner_stage, "DOUBT", 0)
    path = tmp_path / "x.parquet"
    path.write_bytes(filtered.read_bytes())
    with_directory(path, lambda one: one.update(sums=sums))
    data = path.read_bytes()
    notes = Asked(data, ps.col("id") == 3, ["bloom_filter"]).notes(data)
    number = isinstance(sums, int) and sums != 0
    assert len(notes) == (2 if number else 0)
    assert all("Bloom filter ignored: " in note and "checksum" in note for note in notes)
    assert ps.index.list(path)
    findings = ps.index.verify(path).findings
    assert len(findings) == (2 if number else 0 if sums == 0 else 1)


# ---- what else knows of them


def everything(path: Path) -> Path:
    """A file of many types with all that can be attached."""
    written(path, table().select(["id", "number", "text", "real", "list"]))
    ps.index.attach(
        path, bloom=["id", "text"], distinct=["text"], distinct_index="text", in_place=True
    )
    return path


def test_verify_names_what_was_altered(tmp_path: Path) -> None:
    path = everything(tmp_path / "x.parquet")
    assert ps.index.verify(path).ok
    data = path.read_bytes()
    dice = random.Random(SEED)
    kinds = {"offset": "page_index", "column": "page_index", "bloom": "bloom"}
    for part, kind in kinds.items():
        found = places(path, part)
        for (name, group), place in dice.sample(sorted(found.items()), 4):
            middle = dice.randrange(place.start + 40, place.stop)
            for at in (place.start, place.stop - 1, middle):
                broken = bytearray(data)
                broken[at] ^= 1 << dice.randrange(8)
                wrong = ps.index.verify(bytes(broken)).findings
                assert {(one.kind, one.column, one.row_group) for one in wrong} == {
                    (kind, name, group)
                }
                # a header that cannot be read says so, and nothing more is known of its filter
                assert any("attached" in one.what for one in wrong) or at == place.start, wrong


def test_all_that_was_attached_goes_again(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    plain = written(
        tmp_path / "plain.parquet", table().select(["id", "number", "text", "real", "list"])
    )
    path.write_bytes(plain.read_bytes())
    ps.index.attach(path, bloom=["id"], in_place=True)
    ps.index.attach(path, bloom=["text"], page_index=False, in_place=True)
    ps.index.attach(path, bloom=["id", "text"], replace=True, in_place=True)
    assert ps.index.verify(path).ok
    for kind in ("bloom", "page_index"):
        assert all(one.attached for one in ps.index.list(path) if one.kind == kind)
    with open_metadata(path) as file:
        found = directory(file)
    assert found is not None
    assert [one.sums for one in found.pointers if one.kind == "bloom"] == [PIECE_BYTES] * 3
    ps.index.detach(path, ["bloom"], in_place=True)
    assert ps.index.verify(path).ok and not entries(path, "bloom")
    assert [one["sums"] for one in entries(path, "page_index")] == [True, True]
    ps.index.detach(path, in_place=True)
    assert path.read_bytes() == plain.read_bytes()


def test_sums_of_what_is_replaced_go_with_it(tmp_path: Path) -> None:
    path = everything(tmp_path / "x.parquet")
    data = bytearray(path.read_bytes())
    place = places(path, "column")["id", 0]
    data[place.start + 9] ^= 1
    path.write_bytes(data)
    condition = ps.col("id") == 777
    assert ps.scan(path, filter=condition, prune=["column_index"]).explain(analyze=True).notes
    ps.index.attach(path, page_index=["id"], replace=True, in_place=True)
    report = ps.scan(path, filter=condition, prune=["column_index"]).explain(analyze=True)
    assert not report.notes and ps.index.verify(path).ok


def test_nothing_is_asked_of_the_directory_without_need(
    paged: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A scan that prunes by a page index, or reads all, parses no JSON."""

    def refuse(*_: object, **__: object) -> Any:
        raise AssertionError("parsed")

    monkeypatch.setattr(import_module("pageseek.format.embedded").json, "loads", refuse)
    data = paged.read_bytes()
    assert ps.read_table(data).num_rows == 800
    prune: Callable[..., Any] = ps.read_table
    assert (
        prune(data, filter=ps.col("id") == 433, prune=["statistics", "column_index"]).num_rows == 1
    )
