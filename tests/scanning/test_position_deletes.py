"""Files of deletes by position that many data files share are read whole, once."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek.base.report import Report
from pageseek.datasets.deletes import PositionDeletes
from pageseek.scanning.deletes import position_deletes
from pageseek.scanning.deletes.deleted_rows import forget
from pageseek.scanning.deletes.position_deletes import position_rows, rows_by_position
from pageseek.storage import Source

FILES, ROWS = 300, 40


def written(folder: Path, paths: pa.Array, numbers: pa.Array) -> Source:
    at = folder / "deletes.parquet"
    pq.write_table(pa.table({"file_path": paths, "pos": numbers}), at, row_group_size=5_000)
    return Source(str(at))


@pytest.mark.parametrize("most", [position_deletes.MOST_ROWS, 100])
@pytest.mark.parametrize("is_sorted", [True, False])
def test_each_data_file_has_its_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int, is_sorted: bool
) -> None:
    monkeypatch.setattr(position_deletes, "MOST_ROWS", most)
    forget()
    rng = random.Random(1)
    wanted = {
        f"s3://lake/{i}.parquet": sorted(rng.sample(range(10_000), ROWS)) for i in range(FILES)
    }
    pairs = [(path, number) for path, numbers in wanted.items() for number in numbers]
    if not is_sorted:
        rng.shuffle(pairs)
    source = written(tmp_path, pa.array([one for one, _ in pairs]), pa.array([n for _, n in pairs]))
    report, reads = Report(), 0
    plain = position_deletes.read

    def counted(*given: Any) -> pa.Table:
        nonlocal reads
        reads += 1
        return plain(*given)

    monkeypatch.setattr(position_deletes, "read", counted)
    for path in [*wanted, "s3://lake/other.parquet"]:
        deletes = PositionDeletes(source, path)
        for _ in range(2):
            found = rows_by_position(source, "", [deletes], report)
            assert found.rows().tolist() == wanted.get(path, [])
    # read whole after some, or for each data file once
    assert reads == (position_deletes.FEW + 1 if most > FILES * ROWS else FILES + 1)
    forget()


@pytest.mark.parametrize(
    ("paths", "numbers", "why"),
    [
        (pa.array([1, 2]), pa.array([1, 2]), "file_path"),
        (pa.array(["a", "b"]), pa.array([1, None]), "no number"),
        (pa.array(["a", "a"]), pa.array([1, -3]), "deletes row -3"),
        (pa.array(["a", "a"]), pa.array(["x", "y"]), "no whole numbers"),
    ],
)
def test_broken_ones_are_errors_either_way(
    tmp_path: Path, paths: pa.Array, numbers: pa.Array, why: str
) -> None:
    forget()
    source = written(tmp_path, paths, numbers)
    deletes = PositionDeletes(source, "b" if numbers.null_count else "a")
    for i in range(position_deletes.FEW + 3):
        with pytest.raises(ps.CorruptFileError, match=why) as caught:
            position_rows(deletes, Report())
        assert source.path in str(caught.value), i
    forget()


def test_a_row_without_a_path_deletes_nothing(tmp_path: Path) -> None:
    forget()
    source = written(tmp_path, pa.array(["a", None, "b"]), pa.array([1, 2, 3]))
    for _ in range(position_deletes.FEW + 3):
        assert position_rows(PositionDeletes(source, "b"), Report()).rows().tolist() == [3]
    assert np.array_equal(position_rows(PositionDeletes(source, "a"), Report()).rows(), [1])
    forget()
