"""Files without a page index, pruned by page headers: the same rows, with fewer pages read."""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek.format import page_headers as headers
from pageseek.format.types import Options
from pageseek.io.range_requests import answered
from pageseek.prune import pruner_stage
from support.opened import open_metadata
from support.writer import BYTE_ARRAY, DOUBLE, I32, I64, INT64, STRING, Column, Struct, write

N = 6_000


@pytest.fixture(autouse=True)
def always(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Small files are walked as well."""
    monkeypatch.setattr(headers, "FEWEST", 0)
    monkeypatch.setattr(headers, "PAGE_SECONDS", 0)
    monkeypatch.setattr(pruner_stage, "DOUBT", 0)
    yield
    ps.clear_cache()


def table() -> pa.Table:
    random = np.random.default_rng(9)
    return pa.table(
        {
            "id": np.arange(N),
            "v": pa.array(random.integers(0, 1000, N), mask=random.random(N) < 0.2),
            "f": pa.array(np.where(random.random(N) < 0.05, np.nan, np.sort(random.random(N)))),
            "s": [f"{i // 50:05d} text" for i in range(N)],
            "l": [[i] * (i % 4) for i in range(N)],
            "r": [{"x": i // 10, "y": None if i % 7 else f"y{i}"} for i in range(N)],
        }
    )


CONDITIONS: dict[str, Any] = {
    "point": ps.col("id") == 2_345,
    "range": (ps.col("id") >= 100) & (ps.col("id") < 900),
    "or": (ps.col("id") < 30) | (ps.col("s") == "00099 text"),
    "nulls": ps.col("v").is_null() & (ps.col("id") > 5_900),
    "floats": ps.col("f") > 0.97,
    "not floats": ~(ps.col("f") < 0.97),
    "nan": ps.col("f").is_nan() & (ps.col("id") < 500),
    "below a struct": ps.col("r.x") == 77,
    "nothing": ps.col("id") == 2_345.5,
    "text": ps.col("s").starts_with("0007"),
}


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("dictionary", [True, False])
@pytest.mark.parametrize("nan", ["ieee", "spark"])
def test_rows_are_those_of_a_full_read(version: str, dictionary: bool, nan: str) -> None:
    sink = io.BytesIO()
    pq.write_table(
        table(), sink, row_group_size=2_500, max_rows_per_page=120, data_page_version=version,
        use_dictionary=dictionary,
    )  # fmt: skip
    for name, condition in CONDITIONS.items():
        for columns in (None, ["l"], []):
            full = ps.read_table(sink.getvalue(), columns, condition, prune=False, nan=nan)
            for prune in (["page_headers"], ["statistics", "page_headers"], True):
                found = ps.read_table(sink.getvalue(), columns, condition, prune=prune, nan=nan)
                assert str(found.to_pylist()) == str(full.to_pylist()), name
                assert found.schema == full.schema


def test_only_pages_that_may_match_are_read(tmp_path: Path) -> None:
    path = str(tmp_path / "a.parquet")
    pq.write_table(table(), path, row_group_size=2_000, max_rows_per_page=100)
    report = ps.scan(path, filter=ps.col("id") == 2_345).explain(analyze=True).to_dict()
    for name in ("id", "v", "f", "s", "r.x", "r.y"):
        assert report["leaves"][name]["pages"] == {"total": 20, "read": 1}, name
    assert report["rows"]["pruned_by"] == {"statistics": 4_000, "page_headers": 1_900}
    assert report["bytes"]["data"] < 0.4 * report["bytes"]["file"]
    again = ps.scan(path, filter=ps.col("id") == 2_346).explain(analyze=True).to_dict()
    assert again["bytes"]["index"] == 0  # what was found is kept with the file


def test_without_statistics_in_the_headers_the_walk_ends(tmp_path: Path) -> None:
    path = str(tmp_path / "a.parquet")
    pq.write_table(table(), path, max_rows_per_page=100, write_statistics=False)
    scan = ps.scan(path, columns=["id"], filter=ps.col("id") == 7, prune=["page_headers"])
    report = scan.explain(analyze=True).to_dict()
    assert report["bytes"]["index"] <= 2 * headers.WINDOW, report
    assert report["rows"]["out"] == 1


def test_what_passed_tells_which_pages_of_the_rest_are_read(tmp_path: Path) -> None:
    """No statistics anywhere: the rows that passed the filter lie in few pages of the payload."""
    path = str(tmp_path / "a.parquet")
    pq.write_table(
        table(), path, row_group_size=2_000, max_rows_per_page=100, write_statistics=False
    )
    condition = (ps.col("id") >= 2_345) & (ps.col("id") < 2_400)
    read = {}
    for prune in (True, ["column_index"], False):
        scan = ps.scan(path, filter=condition, prune=prune)
        report = scan.explain(analyze=True).to_dict()
        assert report["rows"]["out"] == 55
        read[str(prune)] = report["leaves"]["s"]["bytes"]
        whole = ps.read_table(path, filter=condition, prune=False)
        assert str(scan.to_table().to_pylist()) == str(whole.to_pylist())
        ps.clear_cache()
    assert read["True"] < 0.4 * read["False"]
    assert read["['column_index']"] == read["False"]


def with_bounds(values: list[Any], size: int, pack: Any, then: Any = None) -> Any:
    """An edit of page headers that adds statistics to them."""

    def edit(page: int, header: Struct) -> None:
        if page >= 0:
            part = values[page * size : (page + 1) * size]
            known = [v for v in part if v is not None]
            header[5][5] = {
                3: I64(len(part) - len(known)),
                5: pack(max(known)),
                6: pack(min(known)),
            }
        if then is not None:
            then(page, header)

    return edit


def columns(then: Any = None) -> list[Column]:
    ids = list(range(60))
    names = [None if i % 5 == 0 else b"%03d" % i for i in ids]
    none: dict[str, Any] = {"column_index": False, "offset_index": False}
    packed = struct.Struct("<q").pack
    return [
        Column("id", INT64, ids, [10] * 6, edit_header=with_bounds(ids, 10, packed, then), **none),
        Column(
            "s", BYTE_ARRAY, names, [6] * 10, logical=STRING,
            edit_header=with_bounds(names, 6, bytes), **none,
        ),
        Column("d", DOUBLE, [float(i) for i in ids], [60], **none),
    ]  # fmt: skip


def shorter(page: int, header: Struct) -> None:
    if page == 2:
        header[5][1] = I32(9)


def longer(page: int, header: Struct) -> None:
    if page == 2:
        header[5][1] = I32(11)


def no_such_page(page: int, header: Struct) -> None:
    if page == 2:
        header[1] = I32(1)


def far(page: int, header: Struct) -> None:
    if page == 2:
        header[3] = I32(1 << 30)


@pytest.mark.parametrize("edit", [None, shorter, longer, no_such_page, far])
def test_headers_that_lie_are_no_worse_than_without_them(edit: Any) -> None:
    data = write(columns(edit))
    for condition in (ps.col("id") == 33, ps.col("s") == "033", ps.col("id") < 12):
        answers = []
        for prune in (False, ["page_headers"], True):
            try:
                answers.append(ps.read_table(data, filter=condition, prune=prune).to_pylist())
            except ps.CorruptFileError:
                answers.append(None)
        if edit is None:
            assert answers[0]
        if answers[0] is not None:
            assert answers[1:] == answers[:1] * 2


def test_the_walk_costs_nothing_on_far_stores() -> None:
    sink = io.BytesIO()
    pq.write_table(table(), sink, max_rows_per_page=100)
    with open_metadata(sink.getvalue()) as file:
        leaf = file.leaves[0]
        assert headers.walking_bytes(file, 0, leaf, 1.0) is not None
        file.store.latency = 0.02
        assert headers.walking_bytes(file, 0, leaf, 1.0) is None


def test_what_a_walk_finds_is_not_taken_after_the_headers_have_shown_to_lie(tmp_path: Path) -> None:
    """Two scans of a file: one has dropped what headers say of a chunk while the other was still reading them."""
    path = str(tmp_path / "a.parquet")
    pq.write_table(table(), path, row_group_size=2_000, max_rows_per_page=100)
    file = open_metadata(path)
    leaf = file.schema_tree.leaves[0]
    data = memoryview(Path(path).read_bytes())
    for drops in (False, True):

        def read(wanted: Sequence[tuple[int, int]], drops: bool = drops) -> list[memoryview]:
            if drops:
                file.drop_index(1, leaf)
            return [data[at : at + n] for at, n in wanted]

        answered(headers.walk(file, int(drops), leaf, tested=False), read)
        assert file.was_walked(int(drops), leaf)
        assert (file.offset_indexes.get((int(drops), leaf.index)) is None) == drops
        assert (file.header_index(int(drops), leaf, Options()) is None) == drops


def test_what_was_found_serves_every_option(tmp_path: Path) -> None:
    path = str(tmp_path / "a.parquet")
    pq.write_table(table(), path, row_group_size=2_000, max_rows_per_page=100)
    counts = []
    for options in ({}, {"string_type": "large"}, {"string_type": "view"}, {}):
        scan = ps.scan(path, columns=["id", "s"], filter=ps.col("s") == "00099 text", **options)
        report = scan.explain(analyze=True).to_dict()
        counts.append(report["leaves"]["s"]["pages"]["read"])
        assert set(report["rows"]["pruned_by"]) == {"statistics", "page_headers"}
        assert report["rows"]["out"] == 50
    assert counts == [1, 1, 1, 1]
    alone = ps.scan(path, filter=ps.col("id") == 7, prune=["column_index"]).explain().to_dict()
    assert not alone["rows"]["pruned_by"]


def test_a_walk_ends_where_there_are_more_pages_than_were_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(tmp_path / "a.parquet")
    pq.write_table(table(), path, max_rows_per_page=10, use_dictionary=False)
    monkeypatch.setattr(headers, "likely_pages", lambda chunk: 5.0)
    scan = ps.scan(path, columns=["id"], filter=ps.col("id") == 7, prune=["page_headers"])
    report = scan.explain(analyze=True).to_dict()
    assert report["rows"]["out"] == 1
    assert report["requests"] < 40
    again = scan.explain(analyze=True).to_dict()
    assert again["bytes"]["index"] == 0  # it is not tried again


def test_not_true_prunes_where_the_column_is_wanted_as_well() -> None:
    sink = io.BytesIO()
    made = pa.table({"x": np.arange(N), "k": np.arange(N) < N - 50})
    pq.write_table(made, sink, max_rows_per_page=100, write_page_index=True)
    for columns in (["x"], ["x", "k"]):
        scan = ps.scan(sink.getvalue(), columns=columns, filter="k is not true")
        report = scan.explain(analyze=True).to_dict()
        assert report["rows"]["read"] == 100
        assert report["rows"]["out"] == 50
