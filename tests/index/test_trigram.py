"""Trigram indexes: LIKE and prefixes by the pieces of texts equal the full read plus filter, whatever happens to the index."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek.format import trigram_form as form
from pageseek.format.embedded import directory
from pageseek.index import spilled, trigram_builder
from support.opened import open_metadata
from support.tiers import rounds

N, GROUP = 7_000, 3_000
ALPHABET = ["a", "b", "c", "%", "_", "\\", "é", "日", "\ufffd", "\0", "x"]


def _text(rng: random.Random) -> str | None:
    if rng.random() < 0.1:
        return None
    return "".join(rng.choices(ALPHABET, k=rng.choice([0, 1, 2, 3, 5, 12, 40])))


@pytest.fixture(scope="module")
def table() -> pa.Table:
    rng = random.Random(5)
    texts = [_text(rng) for _ in range(N)]
    raw = [
        None if text is None else text.encode() + rng.choice([b"", b"\xff", b"\xc3"])
        for text in texts
    ]
    return pa.table({"row": range(N), "s": texts, "b": pa.array(raw, pa.binary()), "large": pa.array(texts, pa.large_string()), "wide": [f"{i:0400}" for i in range(N)]})  # fmt: skip


def written(table: pa.Table, folder: Path, names: list[str]) -> str:
    """A file with indexes of these columns."""
    made = str(folder / "a.parquet")
    pq.write_table(
        table,
        made,
        row_group_size=GROUP,
        data_page_size=700,
        use_dictionary=["large"],
        write_batch_size=37,
    )
    done = ps.index.attach(made, trigram=names, in_place=True)
    assert {name for kind, name in done.added if kind == "trigram"} == set(names)
    return made


@pytest.fixture(scope="module")
def path(table: pa.Table, tmp_path_factory: pytest.TempPathFactory) -> str:
    return written(table, tmp_path_factory.mktemp("trigram"), ["s", "b", "large"])


@pytest.fixture(scope="module")
def with_one(table: pa.Table, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A file with one index. `verify` builds those that are intact again, which takes most of its time."""
    return written(table, tmp_path_factory.mktemp("one"), ["s"])


def _pattern(rng: random.Random, values: list[Any]) -> str:
    """A pattern of pieces of a value, which may be in it, of others, and of wildcards."""
    text = rng.choice(values) or ""
    text = text if isinstance(text, str) else text.decode("latin-1")
    pieces = []
    for _ in range(rng.choice([1, 1, 2, 3])):
        start = rng.randrange(len(text) + 1)
        piece = text[start : start + rng.choice([1, 3, 4, 6])]
        if rng.random() < 0.2:
            piece = "".join(rng.choices(ALPHABET, k=4))
        pieces.append("".join("\\" + one if one in "%_\\" else one for one in piece))
        pieces.append(rng.choice(["%", "%", "_", "_%"]))
    return rng.choice(["", "%", "%"]) + "".join(pieces)[: None if rng.random() < 0.8 else -1]


@pytest.mark.parametrize("prune", [["trigram"], True])
@pytest.mark.parametrize("name", ["s", "b", "large"])
def test_rows_equal_the_filter(path: str, table: pa.Table, name: str, prune: Any) -> None:
    rng, ruled_out = random.Random(7), 0
    values = table[name].to_pylist()
    plain = ps.scan(path, prune=False, columns=["row", "wide"])
    scan = ps.scan(path, prune=prune, columns=["row", "wide"])
    tries = rounds(120, 2)
    for _ in range(tries):
        pattern: Any = _pattern(rng, values)
        if pattern.endswith("\\") and (len(pattern) - len(pattern.rstrip("\\"))) % 2:
            pattern += "\\"
        if name == "b":
            pattern = pattern.encode("latin-1", "ignore")
        condition = ps.col(name).like(pattern)
        condition = rng.choice([condition, ~condition, condition & (ps.col("row") > 900), condition | (ps.col("row") < 40), ~(condition & (ps.col("row") > 9))])  # fmt: skip
        found = scan.filter(condition)
        rows = found.to_table()
        assert rows == plain.filter(condition).to_table(), condition
        assert found.count_rows() == rows.num_rows
        ruled_out += found.explain().rows.pruned_by.get("trigram", 0)
    assert ruled_out > tries * N // 120


@pytest.mark.parametrize("text", ["a", "xab", "日é", "aé日x", "\ufffdab", ""])
def test_prefixes_and_equal_texts(path: str, table: pa.Table, text: str) -> None:
    texts = table["s"].to_pylist()
    for condition, wanted in (
        (ps.col("s").starts_with(text), [t is not None and t.startswith(text) for t in texts]),
        (ps.col("s") == text, [t == text for t in texts]),
        (ps.col("s") != text, [t is not None and t != text for t in texts]),
    ):
        found = ps.read_table(path, ["row"], condition, prune=["trigram"])["row"].to_pylist()
        assert found == np.flatnonzero(wanted).tolist()


@pytest.mark.parametrize(
    "options", [{"string_type": "view"}, {"dictionary_columns": ["s"]}, {"threads": 1}]
)
def test_other_types_of_output(path: str, options: dict[str, Any]) -> None:
    found = ps.read_table(path, ["row", "s"], "s like '%abc%'", prune=["trigram"], **options)
    whole = ps.read_table(path, ["row", "s"], "s like '%abc%'", prune=False)
    assert found["row"] == whole["row"]


@pytest.mark.parametrize("n", [100_000, pytest.param(1_000_000, marks=pytest.mark.slow)])
def test_few_pages_are_read_for_a_rare_text(tmp_path: Path, n: int) -> None:
    rng, path = np.random.default_rng(3), tmp_path / "a.parquet"
    words = np.array(["".join(rng.choice(list("etaoinshrdlu"), rng.integers(2, 9))) for _ in range(500)])  # fmt: skip
    texts = [" ".join(some) for some in words[rng.integers(0, 500, (n, 6))]]
    for i in rng.integers(0, n, 5):
        texts[i] = texts[i][:9] + "Kx7qWz" + texts[i][9:]
    pq.write_table(pa.table({"text": texts}), path, data_page_size=16_000, use_dictionary=False)
    ps.index.attach(path, trigram=["text"], in_place=True)
    scan = ps.scan(path, filter="text like '%Kx7qWz%'")
    report = scan.explain()
    assert scan.to_table()["text"].to_pylist() == [t for t in texts if "Kx7qWz" in t]
    pages = report.to_dict()["pages"]
    assert pages["read"] <= 5 < 0.1 * pages["total"]
    assert report.rows.pruned_by["trigram"] >= n - 10 * form.BLOCK_ROWS


@pytest.mark.parametrize("seed", range(40))
def test_mutated_indexes_change_no_answer(with_one: str, tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    data = bytearray(Path(with_one).read_bytes())
    with open_metadata(with_one) as file:
        found = directory(file)
        assert found is not None
        (one,) = (one for one in found.pointers if one.kind == "trigram" and one.leaf == ("s",))
    for _ in range(rng.choice([1, 30, 3000])):
        at = rng.choice([rng.randrange(300), rng.randrange(one.length)])
        data[one.offset + at % one.length] = rng.randrange(256)
    other = tmp_path / "a.parquet"
    other.write_bytes(data)
    for text in ("aé日", "xab", "ccc"):
        condition = ps.col("s").like(f"%{text}%")
        read = ps.read_table(other, ["row"], condition, prune=["trigram"])
        assert read == ps.read_table(other, ["row"], condition, prune=False)
    assert not ps.index.verify(other).ok


def test_what_waits_on_disk_and_other_parts_give_the_same_answers(
    path: str, table: pa.Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bodies = set()
    for held in (1 << 30, 1000):
        monkeypatch.setattr(spilled, "HELD", held)
        made = str(tmp_path / f"{held}.parquet")
        ps.index.attach(path, trigram=["s"], output=made, replace=True)
        with open_metadata(made) as file:
            found = directory(file)
            assert found is not None
            one = [one for one in found.pointers if one.kind == "trigram" and one.leaf == ("s",)][
                -1
            ]
        bodies.add(Path(made).read_bytes()[one.offset : one.offset + one.length])
        assert ps.index.verify(made).ok
    assert len(bodies) == 1


def test_every_piece_of_every_text_is_found() -> None:
    """All blocks and slots of texts of all lengths, which lie one behind the other, also across pieces that are hashed at a time."""
    rng = random.Random(1)
    for piece in (3, 5, 1 << 20):
        texts = [rng.randbytes(rng.randrange(9)) for _ in range(40)]
        data = np.frombuffer(b"".join(texts), np.uint8)
        ends = np.concatenate([[0], np.cumsum([len(text) for text in texts])])
        present = np.zeros(trigram_builder.SLOTS + 1, np.uint8)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(trigram_builder, "PIECE", piece)
            trigram_builder._mark(present, data, ends)
        wanted: set[int] = set()
        for text in texts:
            wanted |= set(form.slots_of(np.frombuffer(text, np.uint8)).tolist()) if len(text) > 2 else set()  # fmt: skip
        assert set(np.flatnonzero(present[:-1]).tolist()) == wanted


def test_what_gets_no_index(path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ps.UnsupportedError, match=r"'row': int64 is no text.*trigram"):
        ps.index.attach(path, trigram=["row"], output=tmp_path / "b.parquet")
    monkeypatch.setattr(trigram_builder, "MAX_BODY_BYTES", 1000)
    made = ps.index.attach(path, trigram=["s"], output=tmp_path / "b.parquet", replace=True)
    assert any("trigram" in one and "more than" in one for one in made.skipped)
    assert not any(kind == "trigram" for kind, _ in made.added)
    monkeypatch.undo()
    ps.index.attach(path, trigram=["s"], output=tmp_path / "b.parquet", replace=True, overwrite=True)  # fmt: skip
    listed = directory(open_metadata(str(tmp_path / "b.parquet")))
    assert listed is not None
    (size,) = [one.length - 16 for one in listed.pointers if one.leaf == ("s",)]
    for most, skipped in ((size, False), (size - 1, True)):  # all of it counts
        monkeypatch.setattr(trigram_builder, "MAX_BODY_BYTES", most)
        made = ps.index.attach(path, trigram=["s"], output=tmp_path / "b.parquet", replace=True, overwrite=True)  # fmt: skip
        assert any("trigram" in one for one in made.skipped) == skipped


def test_verify_list_and_detach(path: str, tmp_path: Path) -> None:
    assert ps.index.verify(path).ok
    assert {one.column for one in ps.index.list(path) if one.kind == "trigram"} == {"s", "b", "large"}  # fmt: skip
    ps.index.detach(path, ["trigram"], output=tmp_path / "b.parquet")
    assert not any(one.kind == "trigram" for one in ps.index.list(tmp_path / "b.parquet"))


def test_many_files_are_opened_for_their_indexes(tmp_path: Path) -> None:
    for i in range(25):
        path = tmp_path / f"{i}.parquet"
        pq.write_table(pa.table({"s": [f"part {i * 300 + k:06}" for k in range(300)], "wide": ["x" * 900] * 300}), path, compression="none", use_dictionary=False)  # fmt: skip
        ps.index.attach(path, trigram=["s"], page_index=False, in_place=True)
    scan = ps.scan(str(tmp_path), filter="s like '%004211%'")
    assert scan.to_table()["s"].to_pylist() == ["part 004211"]
    assert scan.explain().rows.pruned_by["trigram"] > 22 * 300


@pytest.mark.parametrize("kind", ["distinct", "bitmap"])
def test_patterns_by_indexes_of_values(tmp_path: Path, kind: str) -> None:
    """Indexes that hold the values decide LIKE, too."""
    n, path = 4_000, tmp_path / "a.parquet"
    states = [f"state {i * 7 // n}" if i % 90 else None for i in range(n)]
    pq.write_table(pa.table({"row": range(n), "s": states}), path, row_group_size=500, use_dictionary=False)  # fmt: skip
    ps.index.attach(path, indexes={kind: ["s"]}, in_place=True)
    for pattern in ("%te 3", "%e 9%", "%tate%", "st%5", "_tate 2"):
        like = ps.col("s").like(pattern)
        for condition in (like, ~like):
            scan = ps.scan(path, filter=condition, columns=["row"], prune=[kind])
            assert scan.to_table() == ps.read_table(path, ["row"], condition, prune=False)
            ruled_out = scan.explain().rows.pruned_by.get(kind, 0)
            assert ruled_out > 0 or condition is not like or "tate%" in pattern
    if kind == "bitmap":
        report = ps.scan(path, filter=ps.col("s").like("%te 3"), prune=[kind]).explain(analyze=True)
        assert ps.scan(path, filter=ps.col("s").like("%te 3")).count_rows() == states.count(
            "state 3"
        )
        assert report.rows.read == states.count("state 3")
