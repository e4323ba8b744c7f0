"""Any set of mechanisms on any file: the rows equal a full read followed by the filter."""

from __future__ import annotations

import functools
import io
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pageseek as ps
from pageseek.format import page_headers as headers
from pageseek.prune import pruner_stage
from pageseek.scanning.one_file import group_filter, group_reader, row_group
from support.conditions import VALUES, Node, expression, rows, table, trees, truth
from support.tiers import examples

NAMES = ("statistics", "column_index", "page_headers", "bloom_filter", "dictionary", "distinct")
HASHED = {name: {"ndv": 20, "fpp": 0.01} for name in "ijufgmsrdt"}
FILES: dict[str, dict[str, Any]] = {
    "page index": {"write_page_index": True, "use_dictionary": False},
    "page index, dictionaries": {"write_page_index": True},
    "headers": {"use_dictionary": False},
    "headers, V2": {"data_page_version": "2.0"},
    "Bloom filters": {"bloom_filter_options": HASHED, "use_dictionary": False},
    "everything": {"bloom_filter_options": HASHED, "write_page_index": True},
    "nothing": {"write_statistics": False, "use_dictionary": False},
    "dictionaries alone": {"write_statistics": False},
    "some statistics": {"write_statistics": ["i", "f", "s"], "write_page_index": True},
    "attached": {"write_statistics": False, "use_dictionary": False, "data_page_version": "2.0"},
    "attached to dictionaries": {},
}


@pytest.fixture(autouse=True, scope="module")
def always() -> Iterator[None]:
    """Every way that only pays in large files is gone in small ones, too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(group_reader, "CODED_ROWS", 1)
        for stage in (group_filter, row_group):
            patch.setattr(stage, "FIRST_STEP", 5)
        patch.setattr(pruner_stage, "DOUBT", 0)
        patch.setattr(headers, "FEWEST", 0)
        patch.setattr(headers, "PAGE_SECONDS", 0)
        yield


@functools.cache
def written(name: str) -> bytes:
    sink = io.BytesIO()
    pq.write_table(
        table(), sink, row_group_size=24, data_page_size=16, write_batch_size=3, **FILES[name]
    )
    if not name.startswith("attached"):
        return sink.getvalue()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.parquet"
        path.write_bytes(sink.getvalue())
        ps.index.attach(path, bloom=list(HASHED), distinct=[*HASHED, "b"], in_place=True)
        assert ps.index.verify(path).ok
        return path.read_bytes()


PRUNE = st.one_of(
    st.just(True),
    st.sampled_from(NAMES).map(lambda name: [name]),
    st.lists(st.sampled_from(NAMES), unique=True),
)


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("nan", ["ieee", "spark"])
@settings(max_examples=examples(60), deadline=None)
@given(
    node=trees(),
    prune=PRUNE,
    columns=st.one_of(st.none(), st.lists(st.sampled_from(list(VALUES)), unique=True)),
    limit=st.one_of(st.none(), st.integers(0, 40)),
)
def test_rows_are_those_of_plain_python(
    name: str, nan: str, node: Node, prune: Any, columns: list[str] | None, limit: int | None
) -> None:
    wanted = [k for k, row in enumerate(rows()) if truth(node, row, nan) is True]
    scan = ps.scan(written(name), columns=columns, filter=expression(node), nan=nan, prune=prune)
    assert scan.count_rows() == len(wanted)
    found = (scan if limit is None else scan.limit(limit)).with_row_number().to_table()
    assert found["row"].to_pylist() == wanted[:limit]
    full = table().take(pa.array(wanted[:limit], pa.int64()))
    for column in found.column_names[1:]:
        assert str(found[column].to_pylist()) == str(full[column].to_pylist()), column


@pytest.mark.parametrize("name", FILES)
@settings(max_examples=examples(40), deadline=None)
@given(node=trees(), prune=PRUNE, limit=st.one_of(st.none(), st.integers(0, 40)))
def test_counts_add_up(name: str, node: Node, prune: Any, limit: int | None) -> None:
    scan = ps.scan(written(name), filter=expression(node), prune=prune, limit=limit)
    report = scan.explain(analyze=True).to_dict()
    for unit in ("files", "row_groups", "rows", "pages"):
        count = report[unit]
        assert count["total"] == count["read"] + sum(count["pruned_by"].values()), (unit, count)
        assert all(n > 0 for n in count["pruned_by"].values()), count
    assert report["rows"]["total"] == len(rows())


FIGURES: list[list[Any]] = [
    ["count"],
    [("i", "max")],
    [("f", "min"), ("s", "max")],
    ["count", ("i", "count"), ("f", "max")],
]


@pytest.mark.parametrize("name", FILES)
@settings(max_examples=examples(40), deadline=None)
@given(
    node=st.one_of(st.none(), trees()),
    prune=PRUNE,
    figures=st.sampled_from(FIGURES),
    limit=st.one_of(st.none(), st.integers(0, 40)),
)
def test_counts_of_aggregates_add_up(
    name: str, node: Node | None, prune: Any, figures: list[Any], limit: int | None
) -> None:
    condition = None if node is None else expression(node)
    scan = ps.scan(written(name), filter=condition, prune=prune, limit=limit)
    for analyze in (False, True):
        report = scan.explain(analyze, aggregate=figures).to_dict()
        for unit in ("files", "row_groups", "rows", "pages"):
            count = report[unit]
            assert count["total"] == count["read"] + sum(count["pruned_by"].values()), (unit, count)
            assert all(n > 0 for n in count["pruned_by"].values()), count
    plain = ps.scan(written(name), filter=condition, prune=False, limit=limit)
    assert str(scan.aggregate(figures).to_pylist()) == str(plain.aggregate(figures).to_pylist())
