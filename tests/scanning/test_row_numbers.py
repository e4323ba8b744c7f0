"""`with_row_number` gives row numbers in the files under any pruning; `take` selects by them."""

from __future__ import annotations

import io
import itertools
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps

N = 5_000


def table(seed: int = 1) -> pa.Table:
    random = np.random.default_rng(seed)
    return pa.table(
        {
            "id": np.arange(N) * 2,
            "v": pa.array(random.integers(0, 50, N), mask=random.random(N) < 0.1),
            "s": [f"text {i % 91}" for i in range(N)],
            "l": [[i] * (i % 3) for i in range(N)],
        }
    )


def written(path: Path, made: pa.Table, **options: Any) -> str:
    pq.write_table(
        made,
        path,
        row_group_size=1_300,
        write_page_index=True,
        max_rows_per_page=100,
        **options,
    )
    return str(path)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    return written(tmp_path_factory.mktemp("rows") / "a.parquet", table())


FILTERS: dict[str, Any] = {
    "none": None,
    "first row group pruned": ps.col("id") >= 3_000,
    "one row": ps.col("id") == 7_002,
    "pages of two columns": (ps.col("id") < 6_000) & (ps.col("v") == 7),
    "disjoint ranges in the first row group": (ps.col("id") < 20) | (ps.col("id") > 9_000),
    "scattered": ps.col("v") < 3,
    "payload": ps.col("s") == "text 5",
    "nothing": ps.col("id") == 1,
}


def keeps(name: str, row: dict[str, Any]) -> bool:
    v = row["v"]
    return {
        "none": True,
        "first row group pruned": row["id"] >= 3_000,
        "one row": row["id"] == 7_002,
        "pages of two columns": row["id"] < 6_000 and v == 7,
        "disjoint ranges in the first row group": row["id"] < 20 or row["id"] > 9_000,
        "scattered": v is not None and v < 3,
        "payload": row["s"] == "text 5",
        "nothing": False,
    }[name]


@pytest.mark.covering(2)
@pytest.mark.parametrize("name", FILTERS)
@pytest.mark.parametrize("prune", [True, False, ["statistics"], ["column_index"]])
@pytest.mark.parametrize("limit", [None, 40])
def test_numbers_are_places_in_the_file(
    path: str, name: str, prune: Any, limit: int | None
) -> None:
    rows = table().to_pylist()
    wanted = [{"row": i, **row} for i, row in enumerate(rows) if keeps(name, row)][:limit]
    found = ps.scan(path, filter=FILTERS[name], prune=prune, limit=limit).with_row_number()
    assert found.to_table().to_pylist() == wanted
    assert found.schema.names == ["row", "id", "v", "s", "l"]
    only = found.select().to_table()
    assert only.column_names == ["row"]
    assert only["row"].to_pylist() == [row["row"] for row in wanted]


@pytest.mark.parametrize("name", FILTERS)
def test_taken_rows_are_those_of_the_table(path: str, name: str) -> None:
    rows = table().to_pylist()
    random = np.random.default_rng(5)
    for numbers in (
        [],
        [0],
        [N - 1],
        [1_299, 1_300],
        [7, 7, 3],
        random.integers(0, N, 300).tolist(),
        list(range(N)),
    ):
        wanted = [rows[i] for i in sorted(set(numbers)) if keeps(name, rows[i])]
        for prune in (True, False):
            scan = ps.scan(path, filter=FILTERS[name], prune=prune).take(numbers)
            assert scan.to_table().to_pylist() == wanted
            assert scan.count_rows() == len(wanted)


def test_rows_are_numbered_through_all_files(tmp_path: Path) -> None:
    made = [table(seed) for seed in range(3)]
    for i, one in enumerate(made):
        written(tmp_path / f"{i}.parquet", one)
    rows = pa.concat_tables(made).to_pylist()
    scan = ps.scan(str(tmp_path), filter=ps.col("v") == 11).with_row_number("n")
    wanted = [{"n": i, **row} for i, row in enumerate(rows) if row["v"] == 11]
    assert scan.to_table().to_pylist() == wanted
    parts = scan.plan().split(4)
    assert len(parts) > 1
    found = [
        row
        for part in parts
        for batch in pickle.loads(pickle.dumps(part)).execute()
        for row in batch.to_pylist()
    ]
    assert sorted(found, key=lambda row: row["n"]) == wanted
    numbers = [0, N - 1, N, 2 * N + 1_300, 3 * N - 1]
    taken = ps.scan(str(tmp_path)).take(np.array(numbers)).with_row_number()
    assert taken.to_table().to_pylist() == [{"row": i, **rows[i]} for i in numbers]


def test_take_reads_only_the_pages_of_its_rows(path: str) -> None:
    report = ps.scan(path).take([1_350]).explain(analyze=True).to_dict()
    assert report["row_groups"]["read"] == 1
    assert report["row_groups"]["pruned_by"] == {"take": 3}
    assert report["leaves"]["id"]["pages"]["read"] == 1
    assert report["rows"]["out"] == 1
    assert report["pages"]["pruned_by"].keys() == {"take"}


def test_taking_twice_takes_what_is_in_both(path: str) -> None:
    scan = ps.scan(path).take([1, 2, 3]).take([3, 2, 9]).with_row_number()
    assert scan.to_table()["row"].to_pylist() == [2, 3]


def test_an_index_that_proves_wrong_leaves_only_the_rows_asked_for() -> None:
    from support.writer import I64, INT64, Column, write

    def shifted(offsets: Any) -> None:
        offsets[1][1][3] = I64(3)  # the second page begins at row 2

    values = list(range(6))
    for edit in (None, shifted):
        columns = [Column("x", INT64, values, [2, 2, 2], edit_offset_index=edit)]
        found = ps.scan(write(columns)).take([1, 5]).with_row_number().to_table()
        assert found.to_pylist() == [{"row": 1, "x": 1}, {"row": 5, "x": 5}]


@pytest.mark.parametrize(
    ("numbers", "error", "text"),
    [
        ([N], IndexError, f"no row {N}, the source has {N}"),
        ([-1], IndexError, "row -1: rows are counted from 0"),
        ([1.5], TypeError, "a list of integers"),
        ([[1]], TypeError, "a list of integers"),
        ([1 << 63], IndexError, "no source has so many rows"),
    ],
)
def test_what_cannot_be_taken_is_said(path: str, numbers: Any, error: Any, text: str) -> None:
    with pytest.raises(error, match=text):
        ps.scan(path).take(numbers).to_table()


def test_a_name_that_is_taken_is_refused(path: str) -> None:
    with pytest.raises(ps.PredicateError, match=r"'id'.*there is a column of this name"):
        ps.scan(path).with_row_number("id").to_table()


def test_bytes_are_numbered_too() -> None:
    sink = io.BytesIO()
    pq.write_table(table(), sink, row_group_size=100)
    numbers = itertools.chain.from_iterable(
        batch["row"].to_pylist()
        for batch in ps.scan(sink.getvalue(), batch_size=33).with_row_number().to_batches()
    )
    assert list(numbers) == list(range(N))


def test_a_limit_ends_the_counting_of_rows(tmp_path: Path) -> None:
    for i in range(2):
        written(tmp_path / f"{i}.parquet", table(i))
    scan = ps.scan(str(tmp_path)).take([0, N + 50]).with_row_number()
    assert scan.to_table()["row"].to_pylist() == [0, N + 50]
    assert scan.limit(1).to_table()["row"].to_pylist() == [0]
    assert scan.limit(0).count_rows() == 0
    with pytest.raises(IndexError):
        ps.scan(str(tmp_path)).take([2 * N]).to_table()
    for wrong in (1.5, "1"):
        with pytest.raises(TypeError, match="limit"):
            scan.limit(wrong)  # type: ignore[arg-type]
