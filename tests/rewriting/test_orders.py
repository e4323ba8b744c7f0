"""Orders of rows: sorted, cut at bounds, clustered; and digests, compared with slow ones in Python."""

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
from pageseek.rewriting import curve
from pageseek.rewriting.digest import Digest, hashes_of
from pageseek.rewriting.orders import OnCurve
from pageseek.rewriting.sort_keys import SortKeys

VALUES = [None, float("nan"), -0.0, 0.0, 1.5, -2.5, float("inf")]


def batch(*columns: Any) -> pa.RecordBatch:
    arrays = [pa.array(c, pa.float64()) for c in columns]
    return pa.RecordBatch.from_arrays(arrays, [str(i) for i in range(len(arrays))])


def key(value: Any, down: bool) -> tuple[Any, ...]:
    if value is None:
        return (2,)
    return (1,) if value != value else (0, -value if down else value)


@pytest.mark.parametrize("down", list(itertools.product([False, True], repeat=2)))
def test_all_pairs_compare_as_they_sort(down: tuple[bool, bool]) -> None:
    pairs = list(itertools.product(VALUES, repeat=2))
    keys = SortKeys(down)
    for one in pairs:
        here = batch(*([v] * len(pairs) for v in one))
        behind, tie = keys.compared(here, batch(*zip(*pairs, strict=True)))
        mine = tuple(map(key, one, down))
        assert behind.tolist() == [mine > tuple(map(key, p, down)) for p in pairs]
        assert tie.tolist() == [mine == tuple(map(key, p, down)) for p in pairs]


@pytest.mark.parametrize("down", [False, True])
def test_cut_at_bounds(down: bool) -> None:
    rng = random.Random(3)
    keys = SortKeys([down])
    for _ in range(200):
        rows = [rng.choice(VALUES) for _ in range(rng.randrange(30))]
        bounds, _ = keys.distinct(
            _sorted(keys, [rng.choice(VALUES) for _ in range(rng.randrange(5))])
        )
        order, ends = keys.cut(batch(rows), bounds)
        at = order.to_pylist()
        assert at == sorted(range(len(rows)), key=lambda i: (key(rows[i], down), i))
        known = [key(b, down) for b in bounds.column(0).to_pylist()]
        parts = np.searchsorted(ends, np.arange(len(rows)), "right").tolist()
        for i, part in zip(at, parts, strict=True):
            mine = key(rows[i], down)
            assert part == 2 * sum(b < mine for b in known) + (mine in known)
        assert keys.disorder(batch([rows[i] for i in at])) is None


def _sorted(keys: SortKeys, values: list[Any]) -> pa.RecordBatch:
    made = batch(values)
    return made.take(keys.sorted(made))


def test_the_first_row_out_of_order_is_found() -> None:
    assert SortKeys([False]).disorder(batch([1, 2, 2, 1, 0])) == 3
    assert SortKeys([True]).disorder(batch([1, 2])) == 1
    assert SortKeys([True]).disorder(batch([None, 2])) == 1
    assert SortKeys([False, True]).disorder(batch([1, 1, 1], [5, 4, 5])) == 2


@pytest.mark.parametrize(("axes", "bits"), [(2, 4), (3, 3), (4, 2), (2, 1), (5, 2)])
def test_the_curve_visits_every_point_step_by_step(axes: int, bits: int) -> None:
    points = np.array(list(itertools.product(range(1 << bits), repeat=axes)), np.uint32)
    places = curve.places([np.ascontiguousarray(c) for c in points.T], bits)
    assert sorted(places.tolist()) == list(range(len(points)))
    steps = np.abs(np.diff(points[np.argsort(places)].astype(int), axis=0))
    assert (steps.sum(axis=1) == 1).all()  # to a neighbour each time


def test_skewed_values_are_spread_evenly() -> None:
    """Half of the rows lie in each half of a column, however far its values are apart."""
    rng = np.random.default_rng(1)
    rows = pa.record_batch({"a": np.exp(rng.normal(0, 20, 20_000)), "b": rng.random(20_000)})
    places = OnCurve(["a", "b"], rows[:5_000]).keys(rows).column(0).to_numpy()
    quarters = np.bincount(places >> 28, minlength=4) / len(places)
    assert np.abs(quarters - 0.25).max() < 0.03


def test_clustered_pages_are_ruled_out_by_each_column(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    n = 100_000
    days = pa.array(rng.integers(0, 3_000, n), pa.int32()).cast(pa.date32())
    table = pa.table({
        "a": pa.array(rng.integers(0, 10**9, n), mask=rng.random(n) < 0.1), "day": days,
        "s": [f"https://example.org/{v:08}" for v in rng.integers(0, 10**8, n)],
    })  # fmt: skip
    plain, out = tmp_path / "a.parquet", tmp_path / "b.parquet"
    pq.write_table(
        table, plain, max_rows_per_page=1_000, write_batch_size=1_000, write_page_index=True
    )
    ps.rewrite(plain, out, cluster_by=["a", "day", "s"])
    filters = {
        "a": "a between 400000000 and 410000000", "day": "day = date '1974-05-01'",
        "s": "s between 'https://example.org/40' and 'https://example.org/401'", "nulls": "a is null",
    }  # fmt: skip
    for name, condition in filters.items():
        column = "a" if name == "nulls" else name
        read = []
        for path in (plain, out):
            scan = ps.scan(path, filter=condition).select(column)
            leaf = scan.explain(analyze=True).to_dict()["leaves"][column]
            read.append(leaf["pages"]["read"])
        assert read[0] == 100
        assert read[1] <= 40, name
        one, two = (ps.read_table(path, filter=condition).sort_by("s") for path in (plain, out))
        assert one.equals(two)


@pytest.mark.parametrize("kind", [
    pa.int8(), pa.bool_(), pa.string(), pa.large_binary(), pa.list_(pa.string()), pa.large_list(pa.int64()),
    pa.list_(pa.int16(), 2), pa.map_(pa.string(), pa.bool_()), pa.struct([("x", pa.int64()), ("y", pa.list_(pa.string()))]),
    pa.dictionary(pa.int8(), pa.string()), pa.decimal128(5, 1), pa.null(), pa.list_(pa.list_(pa.bool_())), pa.string_view(),
])  # fmt: skip
def test_hashes_tell_values_apart_wherever_they_lie(kind: pa.DataType) -> None:
    t, values = pa.types, [None, "a", "", "ab", None, "b", "a"]
    if t.is_large_binary(kind):
        values = [None if v is None else v.encode() for v in values]
    elif t.is_integer(kind) or t.is_decimal(kind):
        values = [None, 1, 0, 2, None, 3, 1]
    elif t.is_boolean(kind):
        values = [None, True, False, False, None, True, True]
    elif t.is_null(kind):
        values = [None] * 7
    elif t.is_map(kind):
        values = [
            None,
            [("a", True)],
            [],
            [("a", None)],
            None,
            [("b", True), ("a", True)],
            [("a", True)],
        ]
    elif t.is_struct(kind):
        values = [
            None,
            {"x": 1, "y": None},
            {"x": 1, "y": []},
            {"x": None, "y": [None]},
            None,
            {"x": 2, "y": ["a"]},
            {"x": 1, "y": None},
        ]
    elif t.is_fixed_size_list(kind):
        values = [None, [1, 2], [2, 1], [None, 1], None, [3, 3], [1, 2]]
    elif t.is_nested(kind):
        a, b = ([True], [False]) if t.is_nested(kind.value_type) else ("a", "b")
        a, b = (1, 2) if t.is_integer(kind.value_type) else (a, b)
        values = [None, [a, b], [], [b, a], None, [None], [a, b]]
    array = pa.array(values, kind)
    found = hashes_of(array).tolist()
    shown = [repr(v) for v in array.to_pylist()]
    assert len(set(found)) == len(set(shown))
    for i, j in itertools.combinations(range(7), 2):
        assert (found[i] == found[j]) == (shown[i] == shown[j])
    for start, stop in itertools.combinations(range(8), 2):
        assert hashes_of(array[start:stop]).tolist() == found[start:stop]
    chunks = [pa.record_batch([array[i:]], ["c"]) for i in (3,)] + [
        pa.record_batch([array[:3]], ["c"])
    ]
    one, two = Digest(chunks[0].schema), Digest(chunks[0].schema)
    one.add(pa.record_batch([array], ["c"]))
    for chunk in chunks:
        two.add(chunk)
    assert one.difference(two) is None
