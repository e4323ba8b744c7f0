"""Files with different columns: the answer equals reading each file, casting it to the joined schema, and filtering."""

from __future__ import annotations

import datetime as dt
import itertools
import pickle
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek.datasets.widening import holds, joined_type, widened
from support.tiers import each_part, in_part

C = ps.col("c")
DAY, STAMP = dt.date(2024, 1, 31), dt.datetime(2024, 1, 31, 12)
# values of each type, with those that only it has: they become files of one column
VALUES: dict[pa.DataType, list[Any]] = {
    pa.int8(): [-128, -1, 0, 1, 3, 127, None],
    pa.int16(): [-32768, 0, 3, 128, None],
    pa.int32(): [-(2**31), 0, 3, 2**31 - 1, None],
    pa.int64(): [-(2**63), 0, 3, 2**53 + 1, 2**63 - 1, None],
    pa.uint8(): [0, 3, 255, None],
    pa.uint16(): [0, 3, 65535, None],
    pa.uint32(): [0, 3, 2**32 - 1, None],
    pa.uint64(): [0, 3, 2**64 - 1, None],
    pa.float16(): [np.float16(0.1), np.float16(3), np.float16("nan"), None],
    pa.float32(): [0.1, 3.0, -0.0, float("nan"), float("inf"), None],
    pa.float64(): [0.1, 3.0, 3.5, float("nan"), -1e300, None],
    pa.decimal128(5, 2): [Decimal("3.00"), Decimal("-1.25"), Decimal("999.99"), None],
    pa.decimal128(20, 4): [Decimal("3.0000"), Decimal("0.1000"), Decimal("1e15"), None],
    pa.decimal256(50, 1): [Decimal("3.0"), Decimal("1e40"), None],
    pa.date32(): [DAY, dt.date(1969, 12, 31), None],
    pa.timestamp("ms"): [STAMP, dt.datetime(2024, 1, 31), None],
    pa.timestamp("us"): [STAMP, STAMP + dt.timedelta(microseconds=1), None],
    pa.timestamp("us", "UTC"): [STAMP, None],
    pa.timestamp("ms", "Europe/Berlin"): [STAMP, None],
    pa.time32("ms"): [dt.time(12, 30), None],
    pa.time64("us"): [dt.time(12, 30, 0, 1), dt.time(12, 30), None],
    pa.string(): ["3", "", "abc", None],
    pa.large_string(): ["abc", "b", None],
    pa.string_view(): ["abc", "x", None],
    pa.dictionary(pa.int8(), pa.string()): ["abc", "d", None],
    pa.binary(): [b"abc", b"", None],
    pa.binary(3): [b"abc", b"abz", None],
    pa.bool_(): [True, False, None],
    pa.null(): [None, None],
}
LITERALS: list[Any] = [
    0, 3, -1, 127, 128, 300, 2**31, 2**53 + 1, 2**63, 2**64, -(2**63),
    0.1, 3.5, 3.0, float("nan"), float(np.float32(0.1)), Decimal("3.00"), Decimal("0.1"), Decimal("1e15"),
    DAY, STAMP, STAMP.replace(tzinfo=dt.UTC), dt.time(12, 30), "abc", "3", b"abc", True,
]  # fmt: skip


def array_of(kind: pa.DataType) -> pa.Array:
    values = VALUES[kind]
    if pa.types.is_dictionary(kind):
        return pa.array(values, kind.value_type).dictionary_encode().cast(kind)
    return pa.array(values, kind)


def write(path: Path, table: pa.Table, **options: Any) -> str:
    pq.write_table(table, path, store_decimal_as_integer=False, **options)
    return str(path)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[pa.DataType, str]:
    root = tmp_path_factory.mktemp("types")
    return {
        kind: write(
            root / f"{i}.parquet",
            pa.table({"n": pa.array(range(len(VALUES[kind]))), "c": array_of(kind)}),
        )
        for i, kind in enumerate(VALUES)
    }


CONDITIONS = [
    *(op(v) for v in LITERALS for op in (C.__eq__, C.__lt__)),
    C != 3,
    C >= 0.1,
    C.isin([3, 2**63, 0.1]), C.isin(["abc", "b"]), ~C.isin([3, 128]), C.is_null(), ~C.is_null(), C.is_nan(),
    ~(C < 3), ~(C == 0.1), C.like("a%c"), C.starts_with("ab"), (C > 3) | C.is_null(), ~((C > 3) & (C < 2**40)),
]  # fmt: skip


def answer(source: Any, condition: Any, **options: Any) -> Any:
    try:
        return ps.read_table(source, filter=condition, **options)
    except ps.PredicateError:
        return "refused"


def same(one: Any, other: Any) -> bool:
    if isinstance(one, str) or isinstance(other, str):
        return isinstance(one, str) and isinstance(other, str)
    return bool(
        one.schema.types == other.schema.types
        and repr(one.to_pylist()) == repr(other.to_pylist())  # NaN is not equal to itself
    )


@each_part
@pytest.mark.parametrize("nan", ["ieee", "spark"])
def test_every_pair_of_types_and_every_condition(
    files: dict[pa.DataType, str], nan: str, part: str, tmp_path: Path
) -> None:
    pairs = 0
    for i, (a, b) in enumerate(itertools.combinations(VALUES, 2)):
        a, b = (a, b) if i % 2 else (b, a)
        kind = joined_type(a, b)
        both = [files[a], files[b]]
        if kind is None:
            with pytest.raises(ps.UnsupportedError, match=r"column 'c' is .* no type holds"):
                ps.read_table(both)
            continue
        pairs += 1
        if nan == "spark" and i % 8:
            continue
        cast = pa.table(
            {
                "n": pa.array([*range(len(VALUES[a])), *range(len(VALUES[b]))]),
                "c": pa.chunked_array([widened(array_of(k), kind) for k in (a, b)], kind),
            }
        )
        whole = write(tmp_path / "whole.parquet", cast)
        assert same(ps.read_table(both), cast), (a, b)
        for number, condition in enumerate(CONDITIONS):
            turn = i // 8 if nan == "spark" else i  # of the pairs that are tried
            if not in_part(part, number, 8, offset=turn):
                continue
            ours, expected = (answer(s, condition, nan=nan) for s in (both, whole))
            if isinstance(ours, str) and not isinstance(expected, str):
                raise AssertionError((a, b, condition))
            if pa.types.is_null(a) or pa.types.is_null(b):  # what is of no type takes any literal
                continue
            assert same(ours, expected), (a, b, condition, ours, expected)
    assert pairs > 60


ARROW = [
    pc.field("c") > 3, pc.field("c") == 0.1, pc.field("c") * 2 > 127, pc.field("c") + 100 < 3,
    ~(pc.field("c") == 3), pc.field("c").is_null(), pc.field("c").isin([3, 128]), pc.field("c").is_nan(),
]  # fmt: skip


def test_filters_of_pyarrow_see_the_joined_type(
    files: dict[pa.DataType, str], tmp_path: Path
) -> None:
    numbers = [k for k in VALUES if pa.types.is_integer(k) or pa.types.is_floating(k)]
    for a, b in itertools.permutations(numbers, 2):
        kind = joined_type(a, b)
        if kind is None or pa.types.is_float16(a) or pa.types.is_float16(b):
            continue
        arrays = [widened(array_of(k), kind) for k in (a, b)]
        whole = write(tmp_path / "w.parquet", pa.table({"c": pa.chunked_array(arrays, kind)}))
        for condition in ARROW:
            both = [files[a], files[b]]
            try:
                expected = pq.read_table(whole).filter(condition)["c"].to_pylist()
            except pa.ArrowException:
                continue
            found = ps.read_table(both, columns=["c"], filter=condition)["c"].to_pylist()
            assert repr(found) == repr(expected), (a, b, condition)


def test_numbers_of_sql_are_rounded_as_in_the_joined_type(tmp_path: Path) -> None:
    a = write(tmp_path / "a.parquet", pa.table({"c": pa.array([3, 4], pa.int32())}))
    b = write(tmp_path / "b.parquet", pa.table({"c": pa.array([3.0, 4.0])}))
    for text, n in (("c = 3.00000000000000000001", 1), ("c in (3.00000000000000000001, 7)", 1)):
        assert ps.read_table([a, b], filter=text).num_rows == 2 * n
        assert ps.read_table([a, a], filter=text).num_rows == 0


def test_a_struct_and_a_field_of_it_in_one_filter(tmp_path: Path) -> None:
    rows = [{"x": 1, "y": "a"}, {"x": 2, "y": "a"}, None]
    a = write(tmp_path / "a.parquet", pa.table({"st": rows}))
    dotted = pa.table({"st": rows, "st.x": [5, 1, 1]})
    for other in (pa.table({"st": rows}), pa.table({"k": [1]})):
        both = [a, write(tmp_path / "b.parquet", other)]
        n = 1 if "k" in other.column_names else 2
        for condition in (pc.field("st").is_valid(), pc.struct_field(pc.field("st"), [1]) == "a"):
            found = ps.scan(both, columns=["st"], filter=condition).filter("st.x = 1").to_table()
            assert found["st"].to_pylist() == [rows[0]] * n
    both = [write(tmp_path / f"{name}.parquet", dotted) for name in "cd"]
    condition = pc.struct_field(pc.field("st"), [1]) == "a"
    for other_test in ('"st.x" = 1', pc.field("st.x") + 1 == 2):
        found = ps.scan(both, columns=["st"], filter=condition).filter(other_test).to_table()
        assert found["st"].to_pylist() == [rows[1]] * 2
    found = ps.read_table(both, columns=["st"], filter=condition & (pc.field("st.x") + 1 == 2))
    assert found["st"].to_pylist() == [rows[1]] * 2


def test_a_column_with_a_dot_in_its_name_beside_a_field_of_that_path(tmp_path: Path) -> None:
    a = write(tmp_path / "a.parquet", pa.table({"id": [1, 2], "a": [{"x": 1}, {"x": 2}]}))
    b = write(tmp_path / "b.parquet", pa.table({"id": [3, 4], "a.x": [1, 7]}))
    top, field, name = ps.col("a.x"), ps.col("a", "x"), pc.field("a.x")
    cases: list[tuple[Any, list[int]]] = [
        (top == 1, [3]), (top.is_null(), [1, 2]), (top != 1, [4]), (top.isin([1, 2]), [3]),
        ("\"a.x\" = 1", [3]), (name == 1, [3]), (name + 1 == 2, [3]), (field == 1, [1]),
        (field.is_null(), [3, 4]), (top == field, []), ((top == 7) | (field == 2), [2, 4]),
    ]  # fmt: skip
    many = [write(tmp_path / f"c{i}.parquet", pq.read_table(a)) for i in range(20)]
    for files in ([a, b], [b, a], [*many, a, b]):
        scan, copies = ps.scan(files), len(files) - 1
        for condition, ids in cases:
            found = scan.filter(condition).to_table()["id"].to_pylist()
            assert sorted(found) == sorted(i for i in ids for _ in range(copies if i < 3 else 1)), (
                condition
            )
            assert scan.filter(condition).count_rows() == len(found)
        for path, low, high, n in ((top, 1, 7, 2), (field, 1, 2, 2 * copies)):
            figures = scan.aggregate([(path, "min"), (path, "max"), (path, "count")])
            assert list(figures.to_pylist()[0].values()) == [low, high, n]
        query = scan.prepare(top == ps.param("k"))
        assert query(k=1)["id"].to_pylist() == query.many([1])["id"].to_pylist() == [3]
        assert not query(k=2).num_rows
    inside = write(tmp_path / "d.parquet", pa.table({"id": [1], "a": [{"b": {"c": 5}}]}))
    wide = write(tmp_path / "e.parquet", pa.table({"id": [2], "a.b": [{"c": 5}]}))
    for schema in (None, pa.unify_schemas([pq.read_schema(inside), pq.read_schema(wide)])):
        assert ps.read_table([inside, wide], filter='"a.b.c" = 5', schema=schema)[
            "id"
        ].to_pylist() == [2]


@pytest.mark.parametrize("layout", ["string", "large", "view"])
def test_texts_that_a_schema_calls_binary_are_read_and_filtered_as_bytes(
    tmp_path: Path, layout: Any
) -> None:
    words = ["", "a", "ab", "é", "\U0001f600", "\uffffx", None] * 6
    nested = {
        "l": [[w, "x"] if w else None for w in words],
        "st": [{"x": w, "y": w} for w in words],
        "i": range(len(words)),
    }
    text = pa.table({"s": words, **nested})
    order = np.argsort([w or "" for w in words], kind="stable")
    raw = pa.table({"s": pa.array([w and w.encode() for w in words], pa.binary()), **nested})
    files = [
        write(tmp_path / "a.parquet", text.take(order), row_group_size=10, write_page_index=True),
        write(tmp_path / "b.parquet", raw),
        write(tmp_path / "c.parquet", text.set_column(0, "s", text["s"].dictionary_encode())),
    ]
    inner = pa.struct([("x", pa.binary()), ("y", pa.string())])
    types = {"s": pa.large_binary(), "l": pa.list_(pa.binary()), "st": inner, "i": pa.int64()}
    schema = pa.schema(list(types.items()))
    for source in (files, files[0], files[2]):
        scan = ps.scan(source, schema=schema, string_type=layout)
        rows = scan.to_table()
        assert rows.schema.types == schema.types
        rows = rows.to_pylist()
        copies = 3 if source is files else 1
        assert sum(row["s"] == b"ab" for row in rows) == 6 * copies
        for value in (b"ab", b"\xc3\xa9", b"\xef\xbf"):
            s, x, hexed = ps.col("s"), ps.col("st", "x"), f"X'{value.hex()}'"
            cases: list[tuple[Any, Any]] = [
                (s == value, lambda r, v=value: r["s"] == v),
                (f"s > {hexed}", lambda r, v=value: r["s"] is not None and r["s"] > v),
                ([("s", "in", [value, b"q"])], lambda r, v=value: r["s"] == v),
                (pc.field("s") <= pa.scalar(value), lambda r, v=value: r["s"] is not None and r["s"] <= v),
                (x == value, lambda r, v=value: r["st"]["x"] == v),
                (ps.col("l").any() == value, lambda r, v=value: v in (r["l"] or ())),
            ]  # fmt: skip
            for condition, holds_for in cases:
                found = ps.scan(source, schema=schema, string_type=layout, filter=condition)
                want = [row for row in rows if holds_for(row)]
                assert found.to_table().to_pylist() == want, condition
                assert found.count_rows() == len(want)
            query = scan.prepare(s == ps.param("k"))
            assert query(k=value).to_pylist() == [row for row in rows if row["s"] == value]
        assert scan.aggregate([("s", "max"), ("st.x", "min")]).to_pylist() == [
            {"s_max": "\U0001f600".encode(), "st.x_min": b""}
        ]
        with pytest.raises(ps.PredicateError, match=r"'s' of type .*binary"):
            scan.filter("s = 'ab'").to_table()
    mixed = pa.schema([("l", pa.list_(pa.struct([("x", pa.binary()), ("y", pa.string())])))])
    other = write(tmp_path / "d.parquet", pa.table({"l": [[{"x": "a", "y": "b"}]]}))
    with pytest.raises(ps.UnsupportedError, match=r"'l'.*does not hold"):
        ps.read_table(other, schema=mixed)


# -- columns ------------------------------------------------------------------------------------


@pytest.fixture
def grown(tmp_path: Path) -> list[str]:
    """a, b | b, a, new | a, s: added, dropped, in another order, structs with and without a field."""
    tables = [
        pa.table({"a": pa.array([1, 2, 3], pa.int32()), "b": ["x", None, "z"]}),
        pa.table(
            {
                "b": ["p", "q"],
                "a": pa.array([2**40, None], pa.int64()),
                "new": [1.5, None],
                "s": pa.array([{"u": 1}, None], pa.struct([("u", pa.int8())])),
            }
        ),
        pa.table(
            {
                "a": pa.array([7], pa.int8()),
                "s": pa.array(
                    [{"v": "w", "u": 300}], pa.struct([("v", pa.string()), ("u", pa.int16())])
                ),
                "l": pa.array([[{"k": 1}]], pa.list_(pa.struct([("k", pa.int32())]))),
            }
        ),
    ]
    return [write(tmp_path / f"{i}.parquet", table) for i, table in enumerate(tables)]


ROWS = [
    {"a": 1, "b": "x", "new": None, "s": None, "l": None},
    {"a": 2, "b": None, "new": None, "s": None, "l": None},
    {"a": 3, "b": "z", "new": None, "s": None, "l": None},
    {"a": 2**40, "b": "p", "new": 1.5, "s": {"u": 1, "v": None}, "l": None},
    {"a": None, "b": "q", "new": None, "s": None, "l": None},
    {"a": 7, "b": None, "new": None, "s": {"u": 300, "v": "w"}, "l": [{"k": 1}]},
]


def test_columns_added_dropped_and_reordered(grown: list[str]) -> None:
    table = ps.read_table(grown)
    assert table.schema == pa.schema(
        [
            ("a", pa.int64()),
            ("b", pa.string()),
            ("new", pa.float64()),
            ("s", pa.struct([("u", pa.int16()), ("v", pa.string())])),
            ("l", pa.list_(pa.struct([("k", pa.int32())]))),
        ]
    )
    assert table.to_pylist() == ROWS
    assert ps.scan(grown).schema == table.schema
    assert ps.read_table(grown[::-1]).schema.names == ["a", "s", "l", "b", "new"]


@pytest.mark.parametrize(
    ("condition", "places"),
    [
        (ps.col("new") > 1, [3]),
        (~(ps.col("new") > 2), [3]),
        (ps.col("new").is_null(), [0, 1, 2, 4, 5]),
        (~ps.col("new").is_null(), [3]),
        (ps.col("new").isin([]), []),
        (~ps.col("new").isin([]), [0, 1, 2, 3, 4, 5]),
        (~ps.col("new").isin([1.5, None]), []),
        ((ps.col("new") > 1) | (ps.col("a") < 2), [0, 3]),
        ((ps.col("new") > 1) & (ps.col("a") < 2), []),
        (~((ps.col("new") > 1) & (ps.col("a") < 2)), [1, 2, 3, 5]),
        (ps.col("new") < ps.col("a"), [3]),
        (ps.col("a") < ps.col("new"), []),
        (ps.col("s").is_null(), [0, 1, 2, 4]),
        (ps.col("s.v") == "w", [5]),
        (ps.col("s.v").is_null(), [0, 1, 2, 3, 4]),
        (ps.col("s.u") >= 1, [3, 5]),
        (ps.col("l.k").any() == 1, [5]),
        (~(ps.col("l.k").any() == 2), [5]),
        (pc.field("new") > 1, [3]),
        (pc.field("new").is_null(), [0, 1, 2, 4, 5]),
        (pc.field("new") + pc.field("a") > 0, [3]),
        (pc.is_valid(pc.field("s", "v")), [5]),
        ("new is null and not (b like 'z%')", [0, 4]),
        ("(new > 1) is not true", [0, 1, 2, 4, 5]),
        ("new is nan", []),
    ],
)
def test_a_missing_column_is_null(grown: list[str], condition: Any, places: list[int]) -> None:
    expected = [ROWS[i] for i in places]
    assert ps.read_table(grown, filter=condition).to_pylist() == expected
    for parts in (1, 3):
        plan = pickle.loads(pickle.dumps(ps.scan(grown, filter=condition).plan()))
        found = [row for part in plan.split(parts) for b in part.execute() for row in b.to_pylist()]
        assert sorted(map(repr, found)) == sorted(map(repr, expected))
    scan = ps.scan(grown, filter=condition)
    assert scan.count_rows() == len(places)
    assert scan.with_row_number().to_table()["row"].to_pylist() == places
    assert scan.limit(1).to_table().num_rows == min(1, len(places))


@pytest.mark.parametrize(
    "columns",
    [
        ["new"],
        ["l", "a"],
        ["s.v"],
        ["s.u"],
        ["s.v", "b", "s.u"],
        ["s", "new", "new"],
        [],
        ["l.k", "s.v"],
    ],
)
def test_selected_columns(grown: list[str], columns: list[str]) -> None:
    table = ps.read_table(grown, columns=columns)
    names = list(dict.fromkeys(name.split(".")[0] for name in columns))
    assert list(dict.fromkeys(table.schema.names)) == names
    inside = {
        name.split(".")[0]: [n.split(".")[1] for n in columns if n.startswith(f"{name[0]}.")]
        for name in columns
    }
    for i, row in enumerate(zip(*table.to_pydict().values(), strict=True)):
        for name, value in zip(table.to_pydict(), row, strict=True):
            expected = ROWS[i][name]
            if name == "s" and "s" not in columns and isinstance(expected, dict):
                expected = {key: expected[key] for key in value}
                assert set(value) == set(inside["s"])
            assert value == expected
    assert table.num_rows == len(ROWS)


def test_missing_columns_prune_files(grown: list[str]) -> None:
    files = ps.scan(grown, filter="new > 1").explain().to_dict()["files"]
    assert files == {"total": 3, "read": 1, "pruned_by": {"filter": 2}}


@pytest.mark.parametrize("condition", [ps.col("a") == 1, "a = 1"], ids=str)
def test_a_condition_that_does_not_fit_one_file_names_it(tmp_path: Path, condition: Any) -> None:
    fits = write(tmp_path / "fits.parquet", pa.table({"a": [1, 2], "b": [1, 2]}))
    other = write(tmp_path / "other.parquet", pa.table({"a": ["1", "2"], "b": [1, 2]}))
    for action in ("to_table", "count_rows", "explain", "plan"):
        scan = ps.scan([fits, other], columns=["b"], filter=condition)
        with pytest.raises(ps.PredicateError, match=r"^.*other\.parquet: column 'a'") as caught:
            getattr(scan, action)()
        assert "fits.parquet" not in str(caught.value)
        assert caught.value.at == (4 if isinstance(condition, str) else None)


def test_names_that_no_file_has(grown: list[str]) -> None:
    for scan in (ps.scan(grown, columns=["zz"]), ps.scan(grown, filter="a = 1 or zz = 1")):
        with pytest.raises(ps.PredicateError, match="no column 'zz'"):
            scan.to_table()
    with pytest.raises(ps.PredicateError, match="zz"):
        ps.read_table(grown, filter=ps.col("s.zz") == 1)
    assert ps.read_table(grown, columns=["new"], limit=1).to_pylist() == [{"new": None}]


def test_aggregates_over_files_that_differ(grown: list[str]) -> None:
    figures = [
        "count",
        ("a", "min"),
        ("a", "max"),
        ("new", "count"),
        ("new", "max"),
        ("s.u", "max"),
        ("s.v", "min"),
    ]
    expected = {
        "count": 6, "a_min": 1, "a_max": 2**40, "new_count": 1, "new_max": 1.5, "s.u_max": 300, "s.v_min": "w",
    }  # fmt: skip
    for sources in (grown, grown[::-1]):
        table = ps.scan(sources).aggregate(figures)
        assert table.to_pylist() == [expected]
        assert table.schema.field("a_max").type == pa.int64()
        assert ps.scan(sources, filter="a > 2").aggregate(
            ["count", ("new", "max"), ("a", "min")]
        ).to_pylist() == [{"count": 3, "new_max": 1.5, "a_min": 3}]


# -- a schema that is given ---------------------------------------------------------------------


def test_a_given_schema(grown: list[str]) -> None:
    schema = pa.schema(
        [
            ("new", pa.float64()),
            ("never", pa.date32()),
            ("a", pa.int64()),
            ("s", pa.struct([("v", pa.large_string())])),
        ]
    )
    table = ps.read_table(grown, schema=schema)
    assert table.schema == schema
    assert table.to_pylist() == [
        {"new": r["new"], "never": None, "a": r["a"], "s": r["s"] and {"v": r["s"]["v"]}}
        for r in ROWS
    ]
    assert ps.read_table(grown[0], schema=schema).to_pylist()[0] == {
        "new": None,
        "never": None,
        "a": 1,
        "s": None,
    }
    assert ps.read_table(
        grown, schema=schema, columns=["s.v", "a"], filter="never is null and a = 7"
    ).to_pylist() == [{"s": {"v": "w"}, "a": 7}]
    with pytest.raises(ps.PredicateError, match="no column 'b' in the schema"):
        ps.read_table(grown, schema=schema, filter="b = 'x'")
    with pytest.raises(ps.PredicateError, match="no column 'b' in the schema"):
        ps.read_table(grown, schema=schema, columns=["b"])
    for narrow in (pa.int32(), pa.float64(), pa.string()):
        with pytest.raises(
            ps.UnsupportedError, match=r"column 'a' is int\d+, and .* does not hold"
        ):
            ps.read_table(grown, schema=pa.schema([("a", narrow)]))
    with pytest.raises(ps.UnsupportedError, match="does not hold"):
        ps.read_table(grown, schema=pa.schema([("a", pa.int32())]), columns=[], filter="a = 2")
    with pytest.raises(TypeError, match=r"pyarrow\.Schema"):
        ps.scan(grown, schema=["a"])  # type: ignore[arg-type]


def test_a_value_beyond_the_joined_unit(tmp_path: Path) -> None:
    a = write(tmp_path / "a.parquet", pa.table({"t": pa.array([10**15], pa.timestamp("ms"))}))
    b = write(tmp_path / "b.parquet", pa.table({"t": pa.array([1], pa.timestamp("ns"))}))
    with pytest.raises(
        ps.UnsupportedError, match=r"a\.parquet: column 't': a value does not fit timestamp\[ns\]"
    ):
        ps.read_table([a, b])
    assert ps.read_table([a, b], filter="t < timestamp '1980-01-01'").num_rows == 1


def test_lists_maps_and_null_ability(tmp_path: Path) -> None:
    deep = pa.list_(pa.struct([("k", pa.int8())]))
    wide = pa.large_list(pa.struct([("j", pa.string()), ("k", pa.int32())]))
    m8, m64 = pa.map_(pa.string(), pa.int8()), pa.map_(pa.string(), pa.int64())
    one = pa.table(
        {
            "l": pa.array([None, [], [{"k": 1}, None]], deep),
            "m": pa.array([[("a", 1)], None, []], m8),
        },
        schema=pa.schema([pa.field("l", deep), pa.field("m", m8)]),
    )
    two = pa.table(
        {"l": pa.array([[{"j": "x", "k": 2}]], wide), "m": pa.array([[("b", 300)]], m64)}
    )
    three = pa.table(
        {"i": pa.array([1], pa.int32())}, schema=pa.schema([pa.field("i", pa.int32(), False)])
    )
    paths = [write(tmp_path / f"{i}.parquet", t) for i, t in enumerate((one, two, three))]
    table = ps.read_table(paths)
    assert table.schema.field("l").type.value_type.names == ["k", "j"]
    assert table.schema.field("i").nullable
    assert table["l"].to_pylist() == [
        None,
        [],
        [{"k": 1, "j": None}, None],
        [{"k": 2, "j": "x"}],
        None,
    ]
    assert table["m"].to_pylist() == [[("a", 1)], None, [], [("b", 300)], None]
    assert ps.read_table([paths[2]] * 2).schema.field("i").nullable is False


def test_widening_is_symmetric_and_holds_both() -> None:
    for a, b in itertools.combinations(VALUES, 2):
        kind = joined_type(a, b)
        other = joined_type(b, a)
        assert (kind is None) == (other is None), (a, b)
        if kind is not None:
            assert kind == other, (a, b)
            assert holds(kind, a) and holds(kind, b), (a, b, kind)
            assert joined_type(kind, a) == kind


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        (["s.i.n"], [{"i": {"n": None}}, {"i": None}, None]),
        (["s.a", "s.i.n"], [{"a": 1, "i": {"n": None}}, {"a": 2, "i": None}, None]),
        (["s.i.j.m"], [{"i": {"j": {"m": None}}}, {"i": None}, None]),
        (["s.b", "s.i.x"], [{"i": {"x": 3}, "b": None}, {"i": None, "b": None}, None]),
        (["s.b", "s.i.n", "s.i.j.m"], [{"i": {"j": {"m": None}, "n": None}, "b": None}, {"i": None, "b": None}, None]),
    ],
)  # fmt: skip
def test_a_struct_around_a_field_that_a_file_lacks_is_null_where_it_is_null(
    tmp_path: Path, columns: list[str], expected: list[Any]
) -> None:
    inner = pa.struct([("x", pa.int32()), ("j", pa.struct([("z", pa.int32())]))])
    first = pa.array(
        [{"a": 1, "i": {"x": 3, "j": {"z": 4}}}, {"a": 2, "i": None}, None],
        pa.struct([("a", pa.int32()), ("i", inner)]),
    )
    inner = pa.struct([("n", pa.int32()), ("j", pa.struct([("m", pa.int32())]))])
    second = pa.array([{"i": None, "b": 1}], pa.struct([("i", inner), ("b", pa.int32())]))
    pq.write_table(pa.table({"s": first}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"s": second}), tmp_path / "2.parquet")
    found = ps.read_table(tmp_path, columns=columns)["s"].to_pylist()[:3]
    assert found == expected
