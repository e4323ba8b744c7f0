"""Lookup indexes of several columns as one key: rows equal the full read plus filter, and the data decides in the end."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek.format.embedded import directory, types_of_key
from pageseek.index import index_specs, key_builder, lookup_builder, spilled
from pageseek.index.kinds import key_lookup
from support.opened import open_metadata
from support.tiers import rounds

N = 8_000
KEYS: list[Any] = [("tenant", "id"), ("tenant", "id", "s"), ("f", "nest.x")]


@pytest.fixture(scope="module")
def table() -> pa.Table:
    rng = np.random.default_rng(4)
    floats = rng.integers(0, 30, N) / 2
    floats[::40], floats[1::40] = np.nan, -0.0
    nest = [None if i % 17 == 0 else {"x": i % 90} for i in range(N)]
    return pa.table(
        {
            "tenant": pa.array(rng.integers(0, 30, N), pa.int16(), mask=rng.random(N) < 0.05),
            "id": pa.array(rng.integers(0, 400, N), mask=rng.random(N) < 0.05),
            "s": [f"ü{i % 5}" for i in range(N)],
            "f": floats,
            "nest": nest,
            "wide": [f"{i:0300}" for i in range(N)],
        }
    )


@pytest.fixture(scope="module")
def path(table: pa.Table, tmp_path_factory: pytest.TempPathFactory) -> str:
    made = str(tmp_path_factory.mktemp("key") / "a.parquet")
    pq.write_table(table, made, row_group_size=1_900, data_page_size=3_000, compression="none")
    done = ps.index.attach(made, lookup=["id", *KEYS], in_place=True)
    assert {one for one in done.added if "lookup" in one[0]} == {
        ("key_lookup", "tenant, id"),
        ("key_lookup", "tenant, id, s"),
        ("key_lookup", "f, nest.x"),
        ("lookup", "id"),
    }
    return made


def _test(rng: random.Random, name: str) -> Any:
    """`=` or IN of a column."""
    values: list[Any] = {
        "tenant": [*range(31)],
        "id": [*range(402)],
        "s": [f"ü{i}" for i in range(6)],
        "f": [0.0, -0.0, 0.5, 3.0, 99.0, float("nan")],
        "nest.x": [*range(91)],
    }[name]
    column = ps.col(*name.split("."))
    if rng.random() < 0.5:
        return column == rng.choice(values)
    return column.isin([*rng.choices(values, k=rng.randrange(1, 5)), *rng.choice([[], [None]])])


@pytest.mark.parametrize("nan", ["ieee", "spark"])
@pytest.mark.parametrize("prune", [["key_lookup"], True])
def test_rows_equal_the_filter(path: str, prune: Any, nan: str) -> None:
    rng, ruled_out = random.Random(3), 0
    plain = ps.scan(path, prune=False, columns=["id", "wide"], nan=nan)
    scan = ps.scan(path, prune=prune, columns=["id", "wide"], nan=nan)
    tries = rounds(150, 2)
    for _ in range(tries):
        names = list(rng.choice(KEYS))
        rng.shuffle(names)
        condition = _test(rng, names[0])
        for name in names[1:]:
            condition &= _test(rng, name)
        if rng.random() < 0.4:
            other = _test(rng, rng.choice(["id", "s", "tenant"]))
            condition = rng.choice([condition | other, ~condition, condition & ~other, condition & other])  # fmt: skip
        found = scan.filter(condition)
        assert found.to_table() == plain.filter(condition).to_table(), condition
        ruled_out += found.explain().rows.pruned_by.get("key_lookup", 0)
    assert ruled_out > tries * N * 2 // 15


def test_one_page_a_column_is_read(path: str, table: pa.Table) -> None:
    """Neither value alone says much; both together have a row or none."""
    tenants, ids = table["tenant"].to_pylist(), table["id"].to_pylist()
    for row in range(0, N, 400):
        if tenants[row] is None or ids[row] is None:
            continue
        found = ps.col("tenant") == tenants[row], ps.col("id") == ids[row]
        matching = [i for i in range(N) if (tenants[i], ids[i]) == (tenants[row], ids[row])]
        report = ps.scan(
            path, filter=found[0] & found[1], columns=["wide"], prune=["key_lookup"]
        ).explain()
        assert report.rows.read <= len(matching) + 1
    absent = next((t, i) for t in range(30) for i in range(400) if (t, i) not in {*zip(tenants, ids, strict=True)})  # fmt: skip
    both = (ps.col("tenant") == absent[0]) & (ps.col("id") == absent[1])
    scan = ps.scan(path, filter=both, prune=["key_lookup"])
    assert scan.to_table().num_rows == 0
    assert scan.explain().rows.pruned_by.get("key_lookup", 0) >= N - 2 - scan.explain().rows.read


def test_an_index_proves_nothing_of_alternatives(path: str) -> None:
    for condition in ("tenant = 3 or id = 5", "not (tenant = 3 and id = 5)", "tenant = 3", "id = 5", "tenant = 3 and id > 5"):  # fmt: skip
        scan = ps.scan(path, filter=condition, prune=["key_lookup"])
        assert scan.to_table()["wide"] == ps.read_table(path, filter=condition, prune=False)["wide"]
        assert not scan.explain().rows.pruned_by


def test_many_keys_in_few_reads(path: str) -> None:
    condition = ps.col("tenant").isin(range(3)) & ps.col("id").isin(range(0, 400, 3))
    found = ps.scan(path, filter=condition, prune=["key_lookup"])
    assert found.to_table()["wide"] == ps.read_table(path, ["wide"], condition, prune=False)["wide"]


@pytest.mark.parametrize("seed", range(30))
def test_mutated_indexes_change_no_answer(path: str, tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    data = bytearray(Path(path).read_bytes())
    with open_metadata(path) as file:
        found = directory(file)
        assert found is not None
        (one,) = (one for one in found.pointers if one.leaf == ("tenant", "id"))
    for _ in range(rng.choice([1, 40, 900])):
        data[one.offset + rng.randrange(rng.choice([90, one.length]))] = rng.randrange(256)
    other = tmp_path / "a.parquet"
    other.write_bytes(data)
    for i in range(8):
        condition = (ps.col("tenant") == i) & ps.col("id").isin([*range(i * 20, i * 20 + 9)])
        read = ps.read_table(other, ["wide"], condition, prune=["key_lookup"])
        assert read == ps.read_table(other, ["wide"], condition, prune=False)
    assert data == Path(path).read_bytes() or not ps.index.verify(other).ok


def test_verify_list_and_detach(path: str, tmp_path: Path) -> None:
    assert ps.index.verify(path).ok
    listed = [one.column for one in ps.index.list(path) if one.kind == "key_lookup"]
    assert sorted(listed) == ["f, nest.x", "tenant, id", "tenant, id, s"]
    again = ps.index.attach(path, lookup=["id", *KEYS], output=tmp_path / "b.parquet")
    assert not again.added
    again = ps.index.attach(path, lookup=[KEYS[0]], output=tmp_path / "c.parquet", replace=True, page_index=False)  # fmt: skip
    assert list(again.added) == [("key_lookup", "tenant, id")]
    assert ps.index.verify(tmp_path / "c.parquet").ok
    ps.index.detach(tmp_path / "c.parquet", ["key_lookup"], output=tmp_path / "d.parquet")
    assert not any(one.kind == "key_lookup" for one in ps.index.list(tmp_path / "d.parquet"))
    assert ps.index.verify(tmp_path / "d.parquet").ok


def test_verify_finds_an_index_of_other_data(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = key_builder.hashes_of_key
    monkeypatch.setattr(key_builder, "hashes_of_key", lambda several: plain(several)[::-1])
    ps.index.attach(path, lookup=[("id", "s")], output=tmp_path / "a.parquet")
    monkeypatch.undo()
    (found,) = ps.index.verify(tmp_path / "a.parquet").findings
    assert (found.kind, found.column) == ("key_lookup", "id, s")
    assert "which was built again" in found.what


def test_of_very_many_keys_some_are_used(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    condition = "tenant = 3 and id = 7 and f = 2.5 and nest.x = 5"
    wanted = ps.read_table(path, filter=condition, prune=False)
    used = []
    for most in (256, 1):
        monkeypatch.setattr(key_lookup, "MOST_KEYS", most)
        ps.clear_cache()
        scan = ps.scan(path, filter=condition, prune=["key_lookup"])
        assert scan.to_table().equals(wanted)
        used.append(len(key_lookup._keys(open_metadata(path))))
    assert used == [3, 1]


def test_threads_see_all_keys_or_none(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a part of the list, a thread would find one key by its columns, and then read the index of another."""
    file, plain, seen = open_metadata(path), key_lookup.key_leaves, []

    def interrupted(*given: Any) -> Any:
        if not seen:
            seen.append(0)
            seen.append(len(key_lookup._keys(file)))
        return plain(*given)

    monkeypatch.setattr(key_lookup, "key_leaves", interrupted)
    assert len(key_lookup._keys(file)) == seen[1] == 3


def test_verify_reads_no_index_that_is_too_large(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index_specs, "MAX_PAYLOAD_BYTES", 1000)
    found = ps.index.verify(path).findings
    assert {(one.kind, one.column) for one in found} == {("key_lookup", ", ".join(key)) for key in KEYS} | {("lookup", "id")}  # fmt: skip
    assert all("more than the 1,000" in one.what for one in found)
    built = ps.index.attach(path, lookup=KEYS[:1], output=tmp_path / "a.parquet", page_index=False)
    assert list(built.added) == [("key_lookup", "tenant, id")]


def test_an_index_of_other_columns_is_ignored(path: str, table: pa.Table, tmp_path: Path) -> None:
    """A tool writes the rows in another order, and copies the key-value pairs."""
    at = tmp_path / "other.parquet"
    turned = table.take(pa.array(range(N)[::-1]))
    pairs = pq.read_metadata(path).metadata
    with pq.ParquetWriter(at, table.schema, compression="none") as writer:
        writer.write_table(turned, row_group_size=1_900)
        writer.write_table(turned, row_group_size=1_900)
        writer.add_key_value_metadata(pairs)
    condition = "tenant = 3 and id in (5, 6, 7, 8, 9)"
    scan = ps.scan(at, filter=condition, prune=["key_lookup"])
    assert scan.to_table()["wide"] == ps.read_table(at, filter=condition, prune=False)["wide"]
    assert any("lookup index of several columns ignored" in one for one in scan.explain().notes)


def test_what_waits_on_disk_gives_the_same_bytes(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = []
    for held in (1 << 30, 1000):
        monkeypatch.setattr(spilled, "HELD", held)
        other = tmp_path / f"{held}.parquet"
        ps.index.attach(path, lookup=[("s", "tenant")], output=other)
        made.append(other.read_bytes())
    assert made[0] == made[1]


@pytest.mark.parametrize(
    ("lookup", "error", "what"),
    [
        ([("tenant",)], ValueError, "two different columns"),
        ([("id", "id")], ValueError, "two different columns"),
        ([["tenant", "id"]], TypeError, "a tuple of names"),
        ([("tenant", 3)], TypeError, "a tuple of names"),
        ([("tenant", "nope")], ps.PredicateError, "nope"),
        (("tenant", "nope"), ps.PredicateError, "nope"),
        ("id", TypeError, "a list of names"),
    ],
)
def test_wrong_keys(path: str, tmp_path: Path, lookup: Any, error: type, what: str) -> None:
    with pytest.raises(error, match=what):
        ps.index.attach(path, lookup=lookup, output=tmp_path / "b.parquet")
    with pytest.raises(TypeError, match=r"several columns as one key go with lookup"):
        ps.index.attach(path, bitmap=[("tenant", "id")], output=tmp_path / "b.parquet")  # type: ignore[list-item]
    assert not (tmp_path / "b.parquet").exists()


def test_two_names_of_one_column_are_no_key(tmp_path: Path) -> None:
    path = tmp_path / "s.parquet"
    pq.write_table(pa.table({"s": [{"a": 1}]}), path)
    with pytest.raises(ValueError, match=r"\('s', 's.a'\)\]: a key has two different columns"):
        ps.index.attach(path, lookup=[("s", "s.a")], output=tmp_path / "b.parquet")
    assert not (tmp_path / "b.parquet").exists()


def test_a_key_of_one_column_is_none(path: str, tmp_path: Path) -> None:
    """An index of one column, made by the name of the kind, would have the hashes of values, not of keys."""
    with pytest.raises(ValueError, match=r"parameter of its own: lookup=\[\('a', 'b'\)\]"):
        ps.index.attach(path, indexes={"key_lookup": ["id"]}, output=tmp_path / "b.parquet")
    with pytest.raises(ValueError, match="there are: ") as error:
        ps.index.attach(path, indexes={"nope": ["id"]}, output=tmp_path / "b.parquet")
    assert "key_lookup" not in str(error.value)
    file = open_metadata(path)
    found = directory(file)
    assert found is not None
    (pointer,) = [one for one in found.pointers if one.leaf == ("tenant", "id")]
    assert key_lookup.key_leaves(file, pointer) is not None
    for names in (("tenant",), ("tenant", "tenant"), ("tenant", "\ud800"), ("tenant", "nope")):
        leaves = [file.schema_tree.find("tenant")] * len(names)
        physical, logical = types_of_key(leaves)
        other = replace(pointer, leaf=names, physical=physical, logical=logical)
        assert key_lookup.key_leaves(file, other) is None, names


def test_keys_of_many_rows_get_no_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lookup_builder, "MAX_ENTRIES", 1_000)
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"a": [1] * 9_000, "b": [2] * 9_000, "c": range(9_000)}), path, row_group_size=2_000)  # fmt: skip
    done = ps.index.attach(path, lookup=[("a", "b"), ("a", "c")], in_place=True)
    assert [one for one in done.skipped if "very many rows" in one]
    assert {one for one in done.added if one[0] == "key_lookup"} <= {("key_lookup", "a, c")}
    assert ps.index.verify(path).ok


def test_on_the_command_line(path: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from pageseek.cli import main

    done = main(["index", "attach", path, "--lookup", "s,(id,s)", "--output", str(tmp_path / "b.parquet")])  # fmt: skip
    assert done == 0
    assert "id, s" in capsys.readouterr().out
