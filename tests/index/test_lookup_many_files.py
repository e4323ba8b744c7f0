"""Lookup indexes in many files, and together with the other indexes: equal rows, few pages."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek.format.bitmap_form import BitmapDirectory
from pageseek.format.file_metadata import FileMetadata
from pageseek.format.lookup_form import LookupDirectory
from pageseek.scanning.one_file import file_scan

FILES, ROWS = 12, 4_000


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("many")
    rng = np.random.default_rng(4)
    for i in range(FILES):
        keys = rng.integers(0, 30_000, ROWS)
        table = pa.table({"key": keys, "text": [f"t{k % 999}" for k in keys], "at": np.arange(ROWS) + i * ROWS})  # fmt: skip
        path = made / f"{i:02}.parquet"
        pq.write_table(table, path, row_group_size=1_500, data_page_size=1_000)
        if i % 3:  # some have none
            ps.index.attach(path, lookup=["key", "text"], bloom=["key"], in_place=True)
    return made


@pytest.mark.parametrize("threads", [1, 2])
def test_a_folder(folder: Path, threads: int) -> None:
    whole = pq.read_table(folder)
    for key in range(0, 30_000, 631):
        for prune in (True, ["lookup"]):
            scan = ps.scan(str(folder), filter=ps.col("key") == key, threads=threads, prune=prune)
            wanted = whole.filter(pc.equal(whole["key"], key)).sort_by("at")
            assert scan.to_table().sort_by("at").equals(wanted)
            assert scan.count_rows() == wanted.num_rows
            plan = pickle.loads(pickle.dumps(scan.plan()))
            assert sum(batch.num_rows for batch in plan.execute()) == wanted.num_rows
    both = ps.scan(str(folder), filter=(ps.col("text") == "t5") & (ps.col("key") > 20_000))
    wanted = whole.filter(pc.and_(pc.equal(whole["text"], "t5"), pc.greater(whole["key"], 20_000)))
    assert both.count_rows() == wanted.num_rows > 0
    either = ps.scan(str(folder), filter=(ps.col("text") == "t5") | (ps.col("key") == 77))
    wanted = whole.filter(pc.or_(pc.equal(whole["text"], "t5"), pc.equal(whole["key"], 77)))
    assert either.count_rows() == wanted.num_rows > 0
    unlike = ps.scan(str(folder), filter=~(ps.col("text") == "t5"))
    assert unlike.count_rows() == pc.sum(pc.not_equal(whole["text"], "t5")).as_py()


def test_pages_of_other_rows_are_not_read(folder: Path) -> None:
    path = folder / "01.parquet"
    table = pq.read_table(path)
    key = table["key"][1234].as_py()
    rows = np.flatnonzero(table["key"].to_numpy() == key)
    report = ps.scan(path, filter=ps.col("key") == key, prune=["lookup"]).explain(analyze=True)
    assert report.to_dict()["pages"]["read"] <= 3 * 2 * len(rows)
    assert report.rows.pruned_by["lookup"] >= ROWS - len(rows) - 3


def test_many_files_of_one_page_are_opened_for_their_indexes(tmp_path: Path) -> None:
    """By their footers alone no mechanism could add anything: those that list an index of rows are asked all the same."""
    n, files = 500, 30
    for i in range(files):
        path = tmp_path / f"{i}.parquet"
        keys = np.random.default_rng(i).permutation(n)
        rows = pa.table({"key": keys * 2, "wide": [f"{k:0200}" for k in keys]})
        pq.write_table(rows, path, use_dictionary=False, write_statistics=True, compression="none")
        if i % 2:
            ps.index.attach(path, bitmap=["key"], page_index=False, in_place=True)
            assert ps.index.attach(path, lookup=["key"], page_index=False, in_place=True).added
    scan = ps.scan(str(tmp_path), filter=ps.col("key") == 501)
    report = scan.explain()
    assert report.rows.pruned_by.get("lookup", 0) + report.rows.pruned_by.get("bitmap", 0) > 10 * n
    assert scan.to_table().num_rows == 0


def test_filters_are_not_asked_again_beside_a_lookup_index(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for i in range(12):
        path = tmp_path / f"{i:02}.parquet"
        keys = np.random.default_rng(i).permutation(600) * 12 + i
        pq.write_table(pa.table({"key": keys, "row": range(600)}), path, use_dictionary=False)
        ps.index.attach(path, bloom={"key": 1e-5}, lookup=["key"], in_place=True)
    idle, prune = {}, file_scan.prune_pages

    def noted(file: FileMetadata, *given: Any) -> Any:
        idle[Path(file.name).name] = given[-1]
        return prune(file, *given)

    monkeypatch.setattr(file_scan, "prune_pages", noted)
    found = ps.read_table(str(tmp_path), filter=ps.col("key") == 12 * 77 + 5)
    assert found["key"].to_pylist() == [12 * 77 + 5]
    assert idle == {"05.parquet": {"bloom_filter"}}


@pytest.mark.parametrize("threads", [1, 2])
def test_row_groups_share_what_is_decoded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, threads: int
) -> None:
    n = 40_000
    keys = np.random.default_rng(9).permutation(n)
    path = tmp_path / "a.parquet"
    pq.write_table(
        pa.table({"key": keys, "state": keys % 7, "wide": [f"{k:0300}" for k in keys]}),
        path,
        compression="none",
        use_dictionary=False,
        row_group_size=n // 20,
    )
    ps.index.attach(path, lookup=["key"], bitmap=["state"], in_place=True)
    made: list[str] = []
    for form, name in (
        (LookupDirectory, "__init__"),
        (LookupDirectory, "rows"),
        (BitmapDirectory, "__init__"),
    ):
        plain = getattr(form, name)

        def counted(*given: Any, plain: Any = plain, of: str = f"{form.__name__}.{name}") -> Any:
            made.append(of)
            return plain(*given)

        monkeypatch.setattr(form, name, counted)
    ps.clear_cache()
    wanted = [*range(0, n, 8_000)]
    scan = ps.scan(path, threads=threads, prune=["lookup", "bitmap"])
    found = scan.filter(ps.col("key").isin(wanted) & (ps.col("state") == 3)).to_table()
    assert found.num_rows == sum(key % 7 == 3 for key in wanted)
    assert made.count("LookupDirectory.__init__") == made.count("BitmapDirectory.__init__") == 1
    assert made.count("LookupDirectory.rows") == 1


def test_many_values_with_rows_in_most_pages_are_not_looked_up(tmp_path: Path) -> None:
    n, path = 60_000, tmp_path / "a.parquet"
    keys = np.random.default_rng(9).integers(0, 6_000, n) * 2
    wide = [f"{i:0300}" for i in range(n)]
    pq.write_table(pa.table({"key": keys, "wide": wide}), path, data_page_size=20_000, compression="none", use_dictionary=False)  # fmt: skip
    ps.index.attach(path, lookup=["key"], in_place=True)
    for values, used in (
        ([0, 2], True),
        ([*range(0, 1_400, 2)], False),
        ([*range(9_001, 9_141, 2)], True),
    ):
        ps.clear_cache()
        scan = ps.scan(path, filter=ps.col("key").isin(values), prune=["column_index", "lookup"])
        assert scan.to_table()["wide"].to_pylist() == [
            wide[i] for i in np.flatnonzero(np.isin(keys, values))
        ]
        assert ("lookup" in scan.explain().rows.pruned_by) == used


def test_a_row_in_a_small_sample_does_not_speak_for_all_values(tmp_path: Path) -> None:
    """An absent value has a row in 256; among the first 16 of 10,000 values there often is one."""
    n, path, rng = 60_000, tmp_path / "a.parquet", np.random.default_rng(4)
    keys = [f"{number:032x}" for number in rng.integers(0, 1 << 62, n).tolist()]
    pq.write_table(pa.table({"key": keys}), path, max_rows_per_page=1_000, use_dictionary=False, write_page_index=True)  # fmt: skip
    ps.index.attach(path, lookup=["key"], in_place=True)
    for seed in range(25):
        rng = np.random.default_rng(seed)
        absent = [f"{number:032x}" for number in rng.integers(1 << 62, 1 << 63, 10_000).tolist()]
        present = [keys[i] for i in rng.integers(0, n, 10)]
        ps.clear_cache()
        scan = ps.scan(path, filter=ps.col("key").isin(absent + present))
        report = scan.explain(analyze=True)
        assert report.rows.pruned_by.get("lookup", 0) > n // 4, seed
        assert set(scan.to_table()["key"].to_pylist()) == set(present)


def test_values_are_not_looked_up_whose_blocks_are_larger_than_the_pages_that_they_spare(
    tmp_path: Path,
) -> None:
    n, path = 200_000, tmp_path / "a.parquet"
    keys = np.random.default_rng(4).permutation(n).astype(np.int32)
    table = pa.table({"key": keys, "wide": [f"{i:0300}" for i in range(n)]})
    pq.write_table(table, path, use_dictionary=False, data_page_size=2_000, compression="none")
    ps.index.attach(path, lookup=["key"], in_place=True)
    for count, used in ((70, True), (140, False)):
        ps.clear_cache()
        values = [*range(count)]
        scan = ps.scan(path, filter=ps.col("key").isin(values), prune=["column_index", "lookup"])
        assert sorted(scan.to_table()["key"].to_pylist()) == values
        assert ("lookup" in scan.explain(analyze=True).rows.pruned_by) == used
