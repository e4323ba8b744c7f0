"""Counts, minima and maxima: right by any proof, and with no unnecessary read."""

from __future__ import annotations

import io
import math
import uuid
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from support.writer import BYTE_ARRAY, DOUBLE, I64, STRING, Column, Struct, write

N = 3_000


def table(seed: int = 0) -> pa.Table:
    random = np.random.default_rng(seed)
    floats = random.normal(size=N)
    floats[random.random(N) < 0.1] = np.nan
    holes = random.random(N) < 0.2
    return pa.table(
        {
            "id": np.arange(N) + seed * N,
            "i": pa.array(random.integers(-1000, 1000, N), mask=holes),
            "u": random.integers(0, 1 << 63, N).astype(np.uint64) * 2,
            "f": pa.array(floats, mask=random.random(N) < 0.1),
            "h": floats.astype(np.float16),
            "s": pa.array([f"s{i}é" for i in random.integers(0, 10_000, N)], mask=holes),
            "d": pa.array([Decimal(int(v)) / 100 for v in random.integers(-(10**6), 10**6, N)]),
            "b": random.random(N) < 0.5,
            "t": pa.array(random.integers(0, 10**15, N), pa.timestamp("us", "UTC")),
            "e": pa.array(random.integers(-(10**6), 10**6, N), pa.duration("ms")),
            "n": pa.nulls(N, pa.int32()),
            "c": pa.array([f"c{i % 7}" for i in range(N)]).dictionary_encode(),
            "r": [{"x": int(v), "y": {"z": f"z{v}"}} for v in random.integers(0, 99, N)],
            "a.b": random.integers(0, 9, N),
            "l": [[i] for i in range(N)],
        }
    )


LEAVES = ["id", "i", "u", "f", "h", "s", "d", "b", "t", "e", "n", "c", "r.x", "r.y.z", "a.b"]
FILTERS: dict[str, Any] = {
    "none": (None, lambda row: True),
    "proven": (ps.col("id") >= 0, lambda row: True),
    "half": (ps.col("id") >= 1_234, lambda row: row["id"] >= 1_234),
    "few": (ps.col("i") == 7, lambda row: row["i"] == 7),
    "nothing": (ps.col("id") < 0, lambda row: False),
}


def values(rows: list[dict[str, Any]], leaf: str) -> list[Any]:
    if leaf == "r.x":
        return [row["r"]["x"] for row in rows]
    if leaf == "r.y.z":
        return [row["r"]["y"]["z"] for row in rows]
    return [row[leaf] for row in rows]


def key(value: Any) -> Any:
    return value.encode() if isinstance(value, str) else value


def truth(rows: list[dict[str, Any]], leaf: str, function: str, nan: str) -> Any:
    known = [v for v in values(rows, leaf) if v is not None]
    if function == "count":
        return len(known)
    numbers = [v for v in known if not (isinstance(v, float) and math.isnan(v))]
    if nan == "spark" and function == "max" and len(numbers) < len(known):
        return math.nan
    if not numbers:
        return math.nan if known else None
    return (min if function == "min" else max)(numbers, key=key)


def written(made: pa.Table, **options: Any) -> bytes:
    sink = io.BytesIO()
    how: dict[str, Any] = {"row_group_size": 900, "max_rows_per_page": 100, **options}
    pq.write_table(made, sink, **how)
    return sink.getvalue()


@pytest.mark.covering(2)
@pytest.mark.parametrize(
    "options",
    [{"write_page_index": True}, {}, {"write_statistics": False}, {"data_page_version": "2.0"}],
    ids=str,
)
@pytest.mark.parametrize("nan", ["ieee", "spark"])
@pytest.mark.parametrize("name", FILTERS)
def test_figures_are_those_of_the_rows(options: dict[str, Any], nan: str, name: str) -> None:
    made = table()
    data = written(made, **options)
    condition, keeps = FILTERS[name]
    rows = [row for row in made.to_pylist() if keeps(row)]
    asked: list[Any] = ["count"]
    asked += [(leaf, function) for leaf in LEAVES for function in ("count", "min", "max")]
    found = ps.scan(data, filter=condition, nan=nan).aggregate(asked)
    assert found.num_rows == 1
    assert found["count"].to_pylist() == [len(rows)]
    for leaf in LEAVES:
        for function in ("count", "min", "max"):
            (value,) = found[f"{leaf}_{function}"].to_pylist()
            wanted = truth(rows, leaf, function, nan)
            assert str(value) == str(wanted), (leaf, function)
            alone = ps.scan(data, filter=condition, nan=nan).aggregate([(leaf, function)])
            assert str(alone.to_pylist()) == str([{f"{leaf}_{function}": wanted}])
    for leaf in ("id", "t", "s", "f"):
        assert found[f"{leaf}_min"].type == made.schema.field(leaf).type


@pytest.mark.parametrize("limit", [0, 1, 950, N])
def test_only_rows_within_the_limit_count(limit: int) -> None:
    made = table()
    rows = made.to_pylist()[:limit]
    found = ps.scan(written(made), limit=limit).aggregate(["count", ("i", "min"), ("i", "max")])
    assert found.to_pylist() == [
        {
            "count": limit,
            "i_min": truth(rows, "i", "min", "ieee"),
            "i_max": truth(rows, "i", "max", "ieee"),
        }
    ]


def test_rows_taken_count_alone() -> None:
    made = table()
    rows = made.to_pylist()
    numbers = [3, 1_000, 2_999]
    found = ps.scan(written(made)).take(numbers).aggregate(["count", ("u", "max"), ("s", "min")])
    chosen = [rows[i] for i in numbers]
    assert found.to_pylist() == [
        {
            "count": 3,
            "u_max": truth(chosen, "u", "max", "ieee"),
            "s_min": truth(chosen, "s", "min", "ieee"),
        }
    ]


def data_bytes(monkeypatch: pytest.MonkeyPatch, path: str, figures: list[Any], **how: Any) -> int:
    """Bytes of pages that were read for figures."""
    from pageseek.io.fetch import Fetcher

    read = Fetcher.read
    total = 0

    def counted(self: Fetcher, ranges: Any, kind: str, later: bool = False) -> Any:
        nonlocal total
        total += sum(length for _, length in ranges) if kind == "data" else 0
        return read(self, ranges, kind, later)

    monkeypatch.setattr(Fetcher, "read", counted)
    ps.scan(path, **how).aggregate(figures)
    return total


def test_statistics_answer_where_they_are_exact(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = str(tmp_path / "a.parquet")
    Path(path).write_bytes(written(table(), write_page_index=True))
    figures = ["count", ("id", "min"), ("id", "max"), ("i", "count"), ("t", "max"), ("d", "min")]
    assert data_bytes(monkeypatch, path, figures) == 0
    assert data_bytes(monkeypatch, path, figures, filter=ps.col("id") >= 0) == 0
    some = data_bytes(monkeypatch, path, ["count", ("id", "max")], filter=ps.col("id") >= 1_000)
    assert 0 < some < 6_000  # of one row group of four


def test_a_least_value_takes_a_page(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = str(tmp_path / "a.parquet")
    texts = [f"{i:06d}" + "x" * 100 for i in range(5_000)]  # too long for exact statistics
    pq.write_table(
        pa.table({"s": texts}), path, row_group_size=2_500, max_rows_per_page=100,
        use_dictionary=False, compression="none", write_page_index=True,
    )  # fmt: skip
    found = ps.scan(path).aggregate([("s", "min")]).to_pylist()
    assert found == [{"s_min": texts[0]}]
    # pyarrow's own statistics are whole: told to be shortened, they are bounds
    assert data_bytes(monkeypatch, path, [("s", "min"), ("s", "max")]) <= 4 * 100 * 120


def test_shortened_bounds_are_no_answer() -> None:
    def shortened(chunk: Struct) -> None:
        statistics = chunk[12]
        statistics[5], statistics[6] = b"m", b"a"
        statistics[7] = statistics[8] = False

    texts = [b"abc", b"apple", b"lemon"]
    data = write([Column("s", BYTE_ARRAY, texts, logical=STRING, edit_chunk=shortened)])
    found = ps.scan(data).aggregate([("s", "min"), ("s", "max")])
    assert found.to_pylist() == [{"s_min": "abc", "s_max": "lemon"}]


def test_zeros_of_both_signs_are_equal() -> None:
    for row in ([0.0, -0.0], [-0.0, 0.0], [0.0], [-0.0]):
        for prune in (True, False):
            scan = ps.scan(write([Column("x", DOUBLE, row)]), prune=prune)
            found = scan.aggregate([("x", "min"), ("x", "max")])
            assert str(found.to_pylist()) == "[{'x_min': 0.0, 'x_max': 0.0}]"


def test_extension_types_come_out_as_they_are() -> None:
    ids = [uuid.UUID(int=i * 7 % 5) for i in range(5)]
    made = pa.table({"k": pa.array([i.bytes for i in ids], pa.binary(16)).cast(pa.uuid())})
    found = ps.scan(written(made)).aggregate([("k", "min"), ("k", "max"), ("k", "count")])
    assert found["k_min"].type == pa.uuid()
    assert found.to_pylist() == [{"k_min": min(ids), "k_max": max(ids), "k_count": 5}]


def test_many_files_are_one(tmp_path: Path) -> None:
    made = [table(seed) for seed in range(3)]
    for i, one in enumerate(made):
        pq.write_table(one, tmp_path / f"{i}.parquet")
    found = ps.scan(str(tmp_path)).aggregate(["count", ("id", "max"), ("id", "min")])
    assert found.to_pylist() == [{"count": 3 * N, "id_max": 3 * N - 1, "id_min": 0}]


def test_files_with_integers_and_floats_are_compared_exactly(tmp_path: Path) -> None:
    pq.write_table(pa.table({"x": pa.array([16777216.0], pa.float32())}), tmp_path / "a.parquet")
    numbers = pa.array([16777215, 16777217], pa.int32())
    pq.write_table(pa.table({"x": numbers}), tmp_path / "b.parquet")
    found = ps.scan(tmp_path).aggregate([("x", "min"), ("x", "max")])
    assert found.to_pylist() == [{"x_min": 16777215.0, "x_max": 16777217.0}]


@pytest.mark.parametrize("pages", [False, True])
@pytest.mark.parametrize("prune", [True, False])
def test_files_with_instants_of_other_units_and_zones(
    tmp_path: Path, pages: bool, prune: bool
) -> None:
    """Arrow compares none of another zone and another unit, and none that the finer unit does not hold."""
    files = [([5, 7], "us", "UTC"), ([-3, 4], "ns", "America/New_York"), ([0, 10**18], "us", "UTC")]
    for i, (numbers, unit, zone) in enumerate(files):
        made = pa.table({"a": pa.array(numbers, pa.timestamp(unit, zone))})
        pq.write_table(made, tmp_path / f"{i}.parquet", version="2.6", write_page_index=pages)
    figures = [("a", "min"), ("a", "max")]
    first = [tmp_path / "0.parquet", tmp_path / "1.parquet"]
    low, high = ps.scan(first, prune=prune).aggregate(figures).columns
    assert low.type == high.type == pa.timestamp("ns", "UTC")
    assert (low[0].value, high[0].value) == (-3, 7000)
    with pytest.raises(ps.UnsupportedError, match=r"'a': (the max|a value) does not fit .*\[ns"):
        ps.scan(tmp_path, prune=prune).aggregate(figures)


def test_files_with_dates_beyond_the_times_of_others_are_refused(tmp_path: Path) -> None:
    pq.write_table(pa.table({"x": pa.array([-719162], pa.date32())}), tmp_path / "a.parquet")
    times = pa.array([0], pa.timestamp("ns"))
    pq.write_table(pa.table({"x": times}), tmp_path / "b.parquet")
    with pytest.raises(ps.PageseekError):
        ps.scan(tmp_path).aggregate([("x", "min")])


@pytest.mark.parametrize(
    ("asked", "error", "text"),
    [
        (["sum"], ps.PredicateError, "'count', or a pair"),
        ([("id", "sum")], ps.PredicateError, "one of count, min, max"),
        ([("none", "min")], ps.PredicateError, "none"),
        ([("l", "min")], ps.UnsupportedError, "nested"),
        ([("r", "count")], ps.UnsupportedError, "nested"),
        ([("id", "min"), ("id", "min")], ps.PredicateError, "twice"),
        ([(3, "min")], ps.PredicateError, "no column"),
    ],
)
def test_what_cannot_be_told_is_refused(asked: Any, error: Any, text: str) -> None:
    with pytest.raises(error, match=text):
        ps.scan(written(table())).aggregate(asked)


def test_a_column_can_be_given_as_one() -> None:
    found = ps.scan(written(table())).aggregate([(ps.col("r", "x"), "max"), (ps.col("id"), "min")])
    assert found.column_names == ["r.x_max", "id_min"]


def test_a_path_is_not_a_name_with_a_dot() -> None:
    made = pa.table(
        {
            "a.b": [100, 200, 300],
            "a": pa.array([{"b": 1}, {"b": 2}, {"b": 3}]),
            "x": pa.array([{"p": {"q.r": 1}}, {"p": {"q.r": 5}}, {"p": {"q.r": 3}}]),
            "y.p": pa.array([{"q": 1}, {"q": 7}, {"q": 9}]),
            "m": [1, 2, 3],
        }
    )
    data = written(made)
    figures = [(ps.col("a", "b"), "max")]
    assert ps.scan(data).aggregate(figures).to_pylist() == [{"a.b_max": 3}]
    scan = ps.scan(data, filter=ps.col("m") <= 2)
    assert scan.aggregate(figures).to_pylist() == [{"a.b_max": 2}]
    assert scan.aggregate([("a.b", "max")]).to_pylist() == [{"a.b_max": 200}]
    assert scan.aggregate([("x.p.q.r", "max")]).to_pylist() == [{"x.p.q.r_max": 5}]
    assert scan.aggregate([("y.p.q", "max")]).to_pylist() == [{"y.p.q_max": 7}]


def test_what_cannot_be_read_has_no_figures() -> None:
    def more(chunk: Struct) -> None:
        chunk[5] = I64(20)

    data = write([Column("x", DOUBLE, [1.0, 2.0], edit_chunk=more)])
    with pytest.raises(ps.CorruptFileError, match="20 values in 2 rows"):
        ps.scan(data).aggregate([("x", "count")])


def test_without_statistics_the_values_are_read(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = str(tmp_path / "a.parquet")
    Path(path).write_bytes(written(table()))
    figures = [("id", "min"), ("id", "max")]
    assert data_bytes(monkeypatch, path, figures) == 0
    assert data_bytes(monkeypatch, path, figures, prune=False) > 1_000
