"""Bloom filters of whole files: absent values rule out the file, and no value that is there is ever missed."""

from __future__ import annotations

import itertools
import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek.format import file_bloom_form as form
from pageseek.format.embedded import directory
from pageseek.index import file_bloom_builder, spilled
from support.opened import open_metadata

N = 6_000


@pytest.fixture(scope="module")
def table() -> pa.Table:
    rng = np.random.default_rng(3)
    floats = rng.integers(0, 4_000, N) / 4
    floats[::50], floats[1::50], floats[2::50] = np.nan, -0.0, 0.0
    return pa.table(
        {
            "i": pa.array(rng.permutation(N) * 3, mask=rng.random(N) < 0.1),
            "s": [None if i % 11 == 0 else f"ü{i * 7}" for i in range(N)],
            "f": floats,
            "small": pa.array(rng.integers(0, 40, N) * 2, pa.int8()),
        }
    )


@pytest.fixture(scope="module")
def path(table: pa.Table, tmp_path_factory: pytest.TempPathFactory) -> str:
    made = str(tmp_path_factory.mktemp("file_bloom") / "a.parquet")
    pq.write_table(table, made, row_group_size=2_000, data_page_size=900)
    ps.index.attach(
        made, file_bloom={"i": 0.01, "s": 0.001, "f": 0.01, "small": 0.1}, in_place=True
    )
    return made


def _is_ruled_out(path: Any, condition: Any) -> bool:
    scan = ps.scan(path, filter=condition, prune=["file_bloom"])
    whole = ps.read_table(path, filter=condition, prune=False)
    assert repr(scan.to_table().to_pylist()) == repr(whole.to_pylist())
    return scan.explain().row_groups.pruned_by.get("file_bloom", 0) == 3


@pytest.mark.parametrize("name", ["i", "s", "f", "small"])
def test_no_value_is_missed(path: str, table: pa.Table, name: str) -> None:
    for value in table[name].unique().to_pylist()[:: 1 if name == "small" else 40]:
        if value is not None and value == value:
            assert not _is_ruled_out(path, ps.col(name) == value)


@pytest.mark.parametrize(("name", "rate"), [("i", 0.01), ("s", 0.001)])
def test_absent_values_rule_out_the_file(
    path: str, table: pa.Table, name: str, rate: float
) -> None:
    absent: list[Any] = [3 * k + 1 for k in range(0, 6_000, 6)]
    if name == "s":
        absent = [f"ü{7 * k + 1}" for k in range(1_000)]
    assert not {*absent} & {*table[name].to_pylist()}
    wrong = []
    for value in absent:
        scan = ps.scan(path, filter=ps.col(name) == value, prune=["file_bloom"])
        if scan.explain().row_groups.pruned_by.get("file_bloom", 0) < 3:
            wrong.append(value)
        assert scan.count_rows() == 0
    assert len(wrong) <= 1_000 * rate * 2.5 + 1
    few = [value for value in absent if value not in wrong][:100]
    assert _is_ruled_out(path, ps.col(name).isin(few))


def test_zeros_nan_and_other_tests(path: str) -> None:
    for condition in ("f = 0.0", "f = -0.0", "f > 1e9", "i != 1", "i is null", "i = 1 or s = 'ü7'"):
        assert not _is_ruled_out(path, condition)
    assert not _is_ruled_out(path, ps.col("f") == float("nan"))
    assert _is_ruled_out(path, "i = 4 and s = 'ü7'")
    assert _is_ruled_out(path, "i = 4 or s = 'ü8'")


@pytest.mark.parametrize("seed", range(30))
def test_mutated_filters_change_no_answer(path: str, tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    data = bytearray(Path(path).read_bytes())
    with open_metadata(path) as file:
        found = directory(file)
        assert found is not None
        (one,) = (one for one in found.pointers if one.kind == "file_bloom" and one.leaf == ("i",))
    for _ in range(rng.choice([1, 40, 900])):
        data[one.offset + rng.randrange(rng.choice([34, one.length]))] = rng.choice(
            [0, rng.randrange(256)]
        )
    other = tmp_path / "a.parquet"
    other.write_bytes(data)
    for value in (*range(0, 900, 90), 1, 4):
        _is_ruled_out(other, ps.col("i") == value)
    assert data == Path(path).read_bytes() or not ps.index.verify(other).ok


def test_verify_finds_missing_values(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert ps.index.verify(path).ok
    plain = form.bits_of
    monkeypatch.setattr(file_bloom_builder, "bits_of", lambda hashes: plain(hashes)[:, :7])
    other = tmp_path / "a.parquet"
    ps.index.attach(path, file_bloom=["i"], output=other, replace=True)
    monkeypatch.undo()
    found = ps.index.verify(other)
    assert [one.column for one in found.findings][:1] == ["i"]
    assert "are not in it" in found.findings[0].what


def test_pages_without_values_are_right(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    table = pa.table({"i": pa.nulls(300, pa.int32()), "f": [float("nan")] * 300, "n": pa.nulls(300)})  # fmt: skip
    pq.write_table(table, path, row_group_size=100, data_page_size=100, write_batch_size=10)
    ps.index.attach(path, file_bloom=["i", "f"], in_place=True)
    assert ps.index.verify(path).ok
    assert _is_ruled_out(path, ps.col("i") == 1)


def test_what_waits_on_disk_gives_the_same_filter(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = set()
    for held, at_once in itertools.product((1 << 30, 100), (1 << 18, 500, 1)):
        monkeypatch.setattr(spilled, "HELD", held)
        monkeypatch.setattr(file_bloom_builder, "AT_ONCE", at_once)
        other = tmp_path / f"{held}.parquet"
        ps.index.attach(path, file_bloom=["s"], output=other, replace=True, overwrite=True)
        made.add(other.read_bytes())
    assert len(made) == 1


def test_the_filter_of_no_row_group_is_empty(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"i": pa.array([], pa.int64())}), path)
    ps.index.attach(path, file_bloom=["i"], in_place=True)
    assert ps.index.verify(path).ok
    assert ps.read_table(path, filter="i = 1").num_rows == 0


def test_wrong_options(path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = tmp_path / "b.parquet"
    with pytest.raises(ValueError, match="'i': a false-positive rate of 2"):
        ps.index.attach(path, file_bloom={"i": 2}, output=other)
    with pytest.raises(TypeError, match=r"file_bloom='i': a list of names"):
        ps.index.attach(path, file_bloom="i", output=other)
    with pytest.raises(ps.PageseekError, match="nope"):
        ps.index.attach(path, file_bloom=["nope"], output=other)
    assert not other.exists()
    monkeypatch.setattr(file_bloom_builder, "MAX_BODY_BYTES", 1000)
    made = ps.index.attach(path, file_bloom=["i"], output=other, replace=True)
    assert any("Bloom filter of the file of 'i'" in one for one in made.skipped)


def test_many_files_without_the_value_are_left_by_their_filters(tmp_path: Path) -> None:
    for i in range(30):
        path = tmp_path / f"{i:02}.parquet"
        keys = np.random.default_rng(i).permutation(400) * 30 + i
        pq.write_table(pa.table({"key": keys, "wide": [f"{k:0300}" for k in keys]}), path, use_dictionary=False)  # fmt: skip
        ps.index.attach(path, file_bloom=["key"], page_index=False, in_place=True)
    scan = ps.scan(str(tmp_path), filter=ps.col("key") == 30 * 77 + 11)
    assert scan.to_table()["key"].to_pylist() == [30 * 77 + 11]
    assert scan.explain().row_groups.pruned_by["file_bloom"] >= 27
