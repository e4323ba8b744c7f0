"""Large row groups are read in pieces: the same rows, each once, with little in memory, by several parts."""

from __future__ import annotations

import itertools
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek.base.errors import CorruptFileError
from pageseek.base.report import Report
from pageseek.datasets.file_cache import cache
from pageseek.format.page_index import OffsetIndex
from pageseek.scanning.one_file import division
from pageseek.scanning.plans.scan_plan import ScanPlan

ROWS = 60_000


def table() -> pa.Table:
    """Columns of several widths, nested ones among them."""
    rng = np.random.default_rng(7)
    k = np.arange(ROWS)
    lists = pa.ListArray.from_arrays(
        pa.array(np.r_[0, np.cumsum(k % 4)], pa.int32()),
        pa.array(rng.integers(0, 99, (k % 4).sum())),
    )
    return pa.table({
        "k": k, "x": rng.random(ROWS), "few": pa.array(rng.integers(0, 9, ROWS)).cast(pa.string()),
        "text": [f"text {i} " * (i % 5) if i % 7 else None for i in k], "constant": pa.array([5] * ROWS, pa.int8()),
        "list": lists, "st": pa.StructArray.from_arrays([pa.array(k % 100), lists], ["a", "b"]),
    })  # fmt: skip


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(division, "PIECE_BYTES", 100_000)
    monkeypatch.setattr(division, "WALK_SECONDS", 1.0)  # pages of 1 kB are many


def written(path: Path, **how: Any) -> Path:
    """One row group of small pages."""
    usual = {
        "write_page_index": True,
        "data_page_size": 1_000,
        "write_batch_size": 64,
        "use_dictionary": ["few"],
    }
    pq.write_table(table(), path, row_group_size=ROWS, **{**usual, **how})
    return path


def read(plan: ScanPlan, report: Report | None = None) -> list[pa.Table]:
    """The rows of a plan: a table for each batch."""
    return [pa.Table.from_batches([batch]) for batch in plan.execute(report)]


def scanned(path: Path, *columns: str, filter: Any = None) -> Any:
    made = ps.scan(path, threads=1)
    made = made.select(*columns) if columns else made
    return made if filter is None else made.filter(filter)


LAYOUTS = {
    "pages": {},
    "without an index": {"write_page_index": False},
    "pages of V2": {"data_page_version": "2.0"},
    "uncompressed": {"compression": "none", "use_dictionary": ["few", "constant"]},
    "odd pages": {"data_page_size": 1_777, "write_batch_size": 77},
}  # fmt: skip


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("parts", [1, 3])
def test_each_row_comes_once_in_order_from_pieces(
    tmp_path: Path, small_pieces: None, layout: str, parts: int
) -> None:
    path = written(tmp_path / "one.parquet", **LAYOUTS[layout])
    whole = pq.read_table(path)
    flat = ["k", "x", "few", "text", "constant"]
    columns = flat if layout == "without an index" else whole.column_names
    between = pc.and_(pc.greater_equal(whole["k"], 10_000), pc.less_equal(whole["k"], 50_001))
    filters = {
        None: None,
        ps.col("k").between(10_000, 50_001) & (ps.col("few") != "3"): pc.and_(between, pc.not_equal(whole["few"], "3")),
        ps.col("text").is_null(): pc.is_null(whole["text"]),
    }  # fmt: skip
    for condition, mask in filters.items():
        plan = scanned(path, *columns, filter=condition).plan()
        made = [
            pa.concat_tables(found)
            for part in plan.divide(parts).split(parts)
            if (found := read(part))
        ]
        assert len(made) == parts
        expected = (whole if mask is None else whole.filter(mask)).select(columns)
        found = pa.concat_tables(made).combine_chunks()
        assert found.schema.equals(expected.schema), (found.schema, expected.schema)
        assert found.sort_by("k").equals(expected.combine_chunks())
        assert all(pc.all(pc.greater(np.diff(one["k"]), 0)).as_py() for one in made)


@pytest.mark.parametrize("index", [True, False])
def test_a_batch_has_the_rows_of_one_piece_where_pages_are_known(
    tmp_path: Path, small_pieces: None, index: bool
) -> None:
    path = written(tmp_path / "one.parquet", write_page_index=index)
    batches = read(scanned(path, "k", "x", "text").plan())
    assert max(batch.nbytes for batch in batches) < 250_000
    # the levels of lists tell no rows: without an index a piece would read them whole
    assert (len(read(scanned(path, "k", "list").plan())) > 2) == index


def test_pieces_are_much_larger_than_what_two_of_them_read(
    tmp_path: Path, small_pieces: None
) -> None:
    path = written(
        tmp_path / "one.parquet", data_page_size=16_000, compression="none", use_dictionary=False
    )
    report = Report(analyzed=True)
    found = read(scanned(path, "x", "k").plan().divide(1000), report)
    assert len(found) > 1
    assert report.bytes["data"] < 1.2 * 16 * ROWS
    path = written(
        tmp_path / "other.parquet",
        data_page_size=1 << 20,
        max_rows_per_page=ROWS,
        compression="none",
        use_dictionary=False,
    )
    assert len(read(scanned(path, "x", "k").plan().divide(1000))) == 1


def test_parts_share_a_row_group_among_others(tmp_path: Path) -> None:
    path, whole = tmp_path / "some.parquet", table().select(["k", "x", "text"])
    with pq.ParquetWriter(
        path, whole.schema, write_page_index=True, data_page_size=1_000, use_dictionary=False
    ) as made:
        for start, rows in ((0, 1_000), (1_000, ROWS - 2_000), (ROWS - 1_000, 1_000)):
            made.write_table(whole.slice(start, rows), row_group_size=rows)
    plan = scanned(path).plan()
    parts = plan.divide(4).split(4)
    costs = [part.cost for part in parts]
    assert len(parts) == 4
    assert max(costs) < 1.3 * min(costs)
    assert sum(costs) == pytest.approx(plan.cost, rel=0.01)
    assert (
        pa.concat_tables(itertools.chain(*map(read, parts))).sort_by("k").combine_chunks()
        == whole.combine_chunks()
    )
    assert plan.divide(1) is plan


def test_pieces_end_with_pages_of_the_widest_column(tmp_path: Path) -> None:
    path = written(tmp_path / "one.parquet")
    plan = scanned(path, "k", "text", filter=ps.col("k").between(10_000, 50_000)).plan()
    pieces = plan.divide(3).files[0].groups
    assert len(pieces) == 3
    widest = cache.open(plan.files[0].source, Report(), 1 << 30).offset_indexes[0, 3]
    assert widest is not None
    assert {piece.ranges.bounds[0] for piece in pieces[1:]} <= set(widest.first_row.tolist())


def test_a_row_group_whose_index_was_found_wrong_since_is_not_divided(
    tmp_path: Path, small_pieces: None
) -> None:
    path = written(tmp_path / "one.parquet")
    plan = scanned(path, "k", "text", "few", filter=ps.col("k") >= 30_000).plan()
    assert len(read(plan)) > 1
    file = cache.open(plan.files[0].source, Report(), 1 << 30)
    file.drop_index(0, file.leaves[2])  # by another scan
    found = pa.concat_tables(read(plan))
    assert found["k"].to_pylist() == list(range(30_000, ROWS))


def test_limit_and_row_numbers_of_pieces(tmp_path: Path, small_pieces: None) -> None:
    path = written(tmp_path / "one.parquet")
    plan = scanned(path).with_row_number("n").select("k").filter(ps.col("few") == "3").plan()
    found = pa.concat_tables(read(plan.divide(3)))
    assert found["n"].equals(found["k"])
    plan = scanned(path, "k", filter=ps.col("few") == "3").limit(1_000).plan()
    limited = pa.concat_tables(read(plan))
    assert limited["k"].to_pylist() == found["k"].to_pylist()[:1_000]


def test_the_report_counts_a_divided_row_group_once(tmp_path: Path, small_pieces: None) -> None:
    path = written(tmp_path / "one.parquet")
    report = Report(analyzed=True)
    assert len(read(scanned(path, "k", "x").plan(), report)) > 2
    assert (report.row_groups.read, report.rows.read, report.files.read) == (1, ROWS, 1)
    pages, leaves = report.tally()
    assert pages.total == pages.read == sum(leaf.pages_total for leaf in leaves.values())
    assert leaves["k"].rows_decoded == ROWS


def test_an_index_that_proves_wrong_after_pieces_were_read_is_an_error(
    tmp_path: Path, small_pieces: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path / "one.parquet")
    plan = scanned(path, "k", "x").plan().divide(3)
    file = cache.open(plan.files[0].source, Report(), 1 << 30)
    said = file.offset_indexes[0, 1]
    assert said is not None
    rows = said.first_row.copy()
    rows[said.num_pages // 2 : -1] += (
        10  # from there to the last page, no page has a wrong number of rows
    )
    at, sizes = said.offset.tobytes(), said.compressed_size.tobytes()
    file.offset_indexes[0, 1] = OffsetIndex(said.num_pages, at, sizes, rows.tobytes())
    for _ in range(2):
        with pytest.raises(
            CorruptFileError, match=r"one\.parquet: row group 0: .*was divided by this index"
        ):
            read(plan)
    file.drop_index(0, file.leaves[1])  # as by a scan that needs no pieces
    with pytest.raises(CorruptFileError, match="was divided by this index"):
        read(plan)
    assert pa.concat_tables(read(scanned(path, "k", "x").plan())).equals(table().select(["k", "x"]))


_PEAK = """
import resource, sys
import pageseek as ps
scan = ps.scan(sys.argv[1], threads=int(sys.argv[2]))
if sys.argv[3]:
    scan = scan.filter(sys.argv[3])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
rows = size = last = 0
for batch in scan.to_batches():
    first = batch["k"][0].as_py()
    assert first >= last and batch["t"][0].as_py() == batch["t"][-1].as_py() == "x" * 20_000
    rows, last = rows + batch.num_rows, batch["k"][-1].as_py()
    del batch
print(rows, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss has other units")
@pytest.mark.parametrize(
    ("threads", "groups", "condition"),
    [(1, 1, ""), (2, 1, "k >= 10"), (2, 2, ""), (1, 2, "k >= 10")],
)
def test_codes_of_long_texts_are_read_in_pieces(
    tmp_path: Path, threads: int, groups: int, condition: str
) -> None:
    n = 20_000
    texts = pa.DictionaryArray.from_arrays(np.zeros(n, np.int32), ["x" * 20_000])
    path = tmp_path / "long.parquet"
    pq.write_table(
        pa.table({"k": range(n), "t": texts}), path, row_group_size=n // groups, store_schema=False
    )
    asked = [sys.executable, "-c", _PEAK, str(path), str(threads), condition]
    done = subprocess.run(asked, capture_output=True, text=True, check=True)
    rows, kilobytes = map(int, done.stdout.split())
    assert rows == n - (10 if condition else 0)
    assert kilobytes < 130_000  # 400 MB are written out
