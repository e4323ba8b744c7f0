"""Rows selected elsewhere, by numbers in the whole source or in each file: only these are read."""

from __future__ import annotations

import pickle
import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps

FILES, ROWS = 12, 900


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("selected")
    for i in range(FILES):
        table = pa.table(
            {"file": [i] * ROWS, "at": np.arange(ROWS), "v": np.arange(ROWS) * 7 % 100}
        )
        pq.write_table(
            table, folder / f"{i:02}.parquet", row_group_size=400, write_page_index=True,
            max_rows_per_page=50,
        )  # fmt: skip
    return folder


def found(scan: ps.Scan) -> list[tuple[int, int]]:
    table = scan.select("file", "at").to_table()
    return list(zip(table["file"].to_pylist(), table["at"].to_pylist(), strict=True))


def ranges(rng: random.Random) -> ps.RowRanges:
    cuts = sorted(rng.sample(range(ROWS + 1), 2 * rng.randint(1, 4)))
    return ps.RowRanges(list(zip(cuts[::2], cuts[1::2], strict=True)))


def numbers(taken: ps.RowRanges) -> set[int]:
    return {row for first, last in taken for row in range(first, last)}


@pytest.mark.covering(2)
@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("condition", [None, ps.col("v") < 30, ps.col("at") >= 450])
def test_rows_of_each_file(folder: Path, seed: int, condition: Any) -> None:
    rng = random.Random(seed)
    files = rng.sample(range(FILES), rng.randint(0, FILES))
    selection = {folder / f"{i:02}.parquet": ranges(rng) for i in files}
    expected = [
        (i, row)
        for i in sorted(files)
        for row in sorted(numbers(selection[folder / f"{i:02}.parquet"]))
        if condition is None or (row * 7 % 100 < 30 if "v" in repr(condition) else row >= 450)
    ]
    scan = ps.scan(folder, filter=condition)
    assert found(scan.take(selection)) == expected
    assert scan.take(selection).count_rows() == len(expected)
    plan = pickle.loads(pickle.dumps(scan.plan(selection)))
    assert sum(batch.num_rows for batch in plan.execute()) == len(expected)
    limited = scan.take(selection).limit(17)
    assert found(limited) == expected[:17]
    numbered = scan.take(selection).with_row_number("n").to_table()
    assert numbered["n"].to_pylist() == [i * ROWS + row for i, row in expected]


@pytest.mark.parametrize("seed", range(6))
def test_ranges_through_all_files(folder: Path, seed: int) -> None:
    rng = random.Random(seed)
    cuts = sorted(rng.sample(range(FILES * ROWS + 1), 8))
    taken = ps.RowRanges(list(zip(cuts[::2], cuts[1::2], strict=True)))
    expected = [divmod(row, ROWS) for row in sorted(numbers(taken))]
    assert found(ps.scan(folder).take(taken)) == expected
    assert found(ps.scan(folder).take(sorted(numbers(taken)))) == expected
    by_file = {folder / "03.parquet": ps.RowRanges.all(ROWS)}
    assert found(ps.scan(folder).take(taken).take(by_file)) == [
        one for one in expected if one[0] == 3
    ]


def test_other_files_and_pages_are_not_read(folder: Path) -> None:
    ps.clear_cache()
    scan = ps.scan(folder).take({folder / "05.parquet": [410, 411]})
    report = scan.explain(analyze=True).to_dict()
    assert report["files"] == {"total": FILES, "read": 1, "pruned_by": {"take": FILES - 1}}
    assert all(leaf["pages"]["read"] == 1 for leaf in report["leaves"].values())
    assert ps.cache_info().files == 1


def test_no_row_of_a_file(folder: Path) -> None:
    path = str(folder / "00.parquet")
    for scan in (ps.scan(path), ps.scan(path, filter="v = 3", columns=["v"])):
        nothing = scan.take({path: []})
        assert nothing.to_table() == scan.limit(0).to_table()
        assert list(nothing.to_batches()) == []
        assert nothing.count_rows() == 0
        assert nothing.schema == scan.schema


def test_selections_that_make_no_sense(folder: Path) -> None:
    scan, name = ps.scan(folder), folder / "05.parquet"
    with pytest.raises(ValueError, match=r"'nowhere.parquet' is no file of this scan"):
        scan.take({"nowhere.parquet": [1]})
    with pytest.raises(
        IndexError, match=r"05.parquet: take: there is no row 900, the file has 900"
    ):
        scan.take({name: ps.RowRanges([(0, ROWS + 1)])}).to_table()
    with pytest.raises(TypeError, match="RowRanges"):
        scan.take({name: ["a"]})
    with pytest.raises(IndexError, match="counted from 0"):
        scan.take({name: [-1]})
    assert found(scan.take({})) == []
    assert "2 rows taken of 1 file" in repr(scan.take({name: [1, 2]}))
