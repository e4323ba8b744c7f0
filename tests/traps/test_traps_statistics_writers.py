"""Statistics of writers that are known to be wrong, and of others: a pruned read equals a full one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pageseek as ps
from support.bounds import BARE, groups_read, one, stats
from support.opened import open_metadata
from support.oracle import agree
from support.writer import (
    BYTE_ARRAY,
    FIXED,
    INT32,
    STRING,
    Column,
    Struct,
    integer,
    plain_value,
    write,
)

# ---- their writers ---------------------------------------------------------------------------------


def old_bounds(low: Any, high: Any, physical: int = BYTE_ARRAY) -> Callable[[Struct], None]:
    made = [plain_value(physical, v) for v in (low, high)]
    return stats(min=made[0], max=made[1], min_value=None, max_value=None)


LIARS = [
    b"parquet-mr version 1.6.0 (build abc)",
    b"parquet-mr version 1.7.0",
    b"parquet-mr version 1.8.0-SNAPSHOT",
    b"parquet-mr version 1.8.0rc4",
    b"parquet-mr version 1.5.0-cdh5.4.9",
    b"parquet-mr version 1.5.0-SNAPSHOT",
    b"parquet-mr version 1.5.0",
    b"parquet-mr version 1.4.9-cdh5.5.0",
    b"parquet-mr",
    b"parquet-mr version ",
    b"parquet-mr version unknown",
    b"",
    None,
]


HONEST = [
    b"parquet-mr version 1.8.0 (build 123)",
    b"parquet-mr version 1.5.0-cdh5.5.0 (build 1)",
    b"parquet-mr version 1.5.0-cdh5.10.2",
    b"parquet-mr version 1.13.1",
    b"impala version 2.2.0-cdh5.4.0 (build x)",
]


@pytest.mark.parametrize("physical", [BYTE_ARRAY, FIXED])
@pytest.mark.parametrize("created_by", [*LIARS, *HONEST], ids=str)
def test_40_bounds_of_byte_strings_that_were_other_values(
    created_by: bytes | None, physical: int
) -> None:
    length = 1 if physical == FIXED else None
    edit = old_bounds(b"q", b"q", physical)
    lying = Column("x", physical, [b"a", b"z"], type_length=length, edit_chunk=edit, **BARE)
    data = write([lying, Column("row", INT32, [0, 1])], created_by=created_by)
    found = ps.read_table(data, filter=ps.col("x") == b"a").num_rows
    assert found == (1 if created_by in LIARS else 0), (
        "a plausible lie of an honest writer is believed"
    )
    numbers = Column("x", INT32, [1, 2], edit_chunk=old_bounds(1, 2, INT32), **BARE)
    assert groups_read(write([numbers], created_by=created_by), ps.col("x") == 9) == 0


def test_40_new_bounds_of_a_writer_without_a_name() -> None:
    """No version that garbled byte strings could write the new fields."""
    for created_by in (None, b"", b"Polars"):
        made = write([Column("x", BYTE_ARRAY, [b"a", b"c"], **BARE)], created_by=created_by)
        assert groups_read(made, ps.col("x") == b"x") == 0
    named = write([Column("x", BYTE_ARRAY, [b"a"], **BARE)], created_by=b"parquet-mr version 1.7.0")
    assert groups_read(named, ps.col("x") == b"x") == 1


@pytest.mark.parametrize(
    ("created_by", "old"),
    [
        (b"parquet-cpp version 1.2.9", True),
        (b"parquet-cpp version 1.3.0-SNAPSHOT", True),
        (b"parquet-cpp version 1.3.0", False),
        (b"parquet-cpp-arrow version 1.0.0", False),
        (b"parquet-mr version 1.9.9 (build 5)", True),
        (b"parquet-mr version 1.10.0 (build 5)", False),
        (b"parquet-mr version 1.10.1", False),
    ],
)
def test_41_orders_that_are_not_signed_only_where_bounds_are_equal(
    created_by: bytes, old: bool
) -> None:
    signed = write([Column("x", INT32, [1, 3], **BARE)], created_by=created_by)
    assert groups_read(signed, ps.col("x") == 9) == 0
    for physical, values, logical, other in (
        (FIXED, [b"a", b"c"], None, b"x"),
        (INT32, [1, 3], integer(32, False), 9),
    ):
        knobs = {"logical": logical, "type_length": 1 if physical == FIXED else None, **BARE}
        two = write([Column("x", physical, values, **knobs)], created_by=created_by)
        assert groups_read(two, ps.col("x") == other) == old
        one_value = write([Column("x", physical, values[:1], **knobs)], created_by=created_by)
        assert groups_read(one_value, ps.col("x") == other) == 0
        assert groups_read(one_value, ps.col("x") == values[0]) == 1


def test_42_deprecated_bounds_that_are_equal_bound_in_every_order() -> None:
    text = one(BYTE_ARRAY, [b"b", b"b"], logical=STRING, edit_chunk=old_bounds(b"b", b"b"), **BARE)
    assert groups_read(text, ps.col("x") == "a") == 0
    agree(text, "a", "b", "c")
    span = one(
        FIXED,
        [b"\0" * 12],
        type_length=12,
        converted=21,
        edit_chunk=old_bounds(b"\1" * 12, b"\1" * 12, FIXED),
        **BARE,
    )
    assert groups_read(span, ps.col("x") == b"\0" * 12) == 1, "intervals have none"


def test_31_66_truncated_bounds_of_another_writer(conformance: Path) -> None:
    path = conformance / "corpus" / "valid" / "pqtest__binary_truncated_min_max.parquet"
    if not path.exists():
        pytest.skip(f"the corpus has no {path.name}")
    file = open_metadata(path)
    for leaf in file.leaves:
        made = file.chunk_values(0, leaf)
        values = ps.read_table(path, columns=[leaf.name])[leaf.name].drop_null().to_pylist()
        for found, right in ((made.min, min(values)), (made.max, max(values))):
            assert found is None or found.as_py() == right, leaf.name


def test_44_total_order_and_nan_counts_of_another_writer(conformance: Path) -> None:
    path = conformance / "corpus" / "valid" / "pqtest__floating_orders_nan_count.parquet"
    if not path.exists():
        pytest.skip(f"the corpus has no {path.name}")
    table = ps.read_table(path)
    for name in table.column_names:
        values = [float(v) for v in table[name].to_pylist() if v is not None]
        for literal in (*{v for v in values if v == v}, -1e9, 1e4):
            for test, wanted in (
                (ps.col(name) >= literal, [v for v in values if v >= literal]),
                (ps.col(name) < literal, [v for v in values if v < literal]),
                (ps.col(name) == literal, [v for v in values if v == literal]),
            ):
                assert ps.read_table(path, columns=[name], filter=test).num_rows == len(wanted)
        nans = sum(v != v for v in values)
        assert ps.read_table(path, columns=[name], filter=ps.col(name).is_nan()).num_rows == nans
        spark = ps.read_table(path, columns=[name], filter=ps.col(name) > 1e30, nan="spark")
        assert spark.num_rows == sum(v != v or v > 1e30 for v in values)


@pytest.mark.parametrize("length", ["1", "2", "4"])
def test_67_t30_bounds_that_another_writer_cut_short(tmp_path: Path, length: str) -> None:
    """Inside characters, after U+10FFFF and after 0xff, where nothing greater of that length exists."""
    datafusion = pytest.importorskip("datafusion")
    words = [
        "",
        "a",
        "é",
        "éé",
        "€€",
        "\U0010ffff",
        "\U0010ffff" * 3,
        "\uffff\uffff",
        "\x7f\x7f",
        "zzz",
    ]
    bits = [
        b"",
        b"\xff",
        b"\xff" * 2,
        b"\xff" * 5,
        b"\xfe\xff\xff",
        b"\x00" * 5,
        b"\xff\x00",
        b"a",
        b"\xc3",
        b"\xff" * 9,
    ]
    made = pa.table({"x": words, "b": pa.array(bits, pa.binary()), "row": pa.array(range(10))})
    context = datafusion.SessionContext()
    context.from_arrow(made, name="t")
    path = tmp_path / "f.parquet"
    context.sql(
        f"COPY (SELECT * FROM t ORDER BY row) TO '{path}' STORED AS PARQUET OPTIONS "
        f"('statistics_truncate_length' '{length}', 'column_index_truncate_length' '{length}', "
        "'statistics_enabled' 'page', 'data_page_row_count_limit' '2', 'write_batch_size' '2')"
    ).collect()
    data = path.read_bytes()
    agree(data, *words[1:8])
    agree(data, *bits[1:7], column="b")
    for name, values in (("x", words), ("b", bits)):
        for prefix in values:
            test = ps.col(name).starts_with(prefix)
            wanted = [i for i, v in enumerate(values) if v.startswith(prefix)]  # type: ignore[attr-defined]
            assert ps.read_table(data, ["row"], test)["row"].to_pylist() == wanted, prefix
        figures = ps.scan(data).aggregate([(name, "min"), (name, "max")]).to_pylist()
        key = str.encode if name == "x" else bytes
        assert list(figures[0].values()) == [min(values, key=key), max(values, key=key)]


ODD = [
    "cudf__trailing_nans",
    "drill__decimal_dictionary",
    "drill__int96_dict_change",
    "drill__uint_types",
    "drill__varlenDecimal",
    "duckdb__bug10148-wide-decimal-stats",
    "duckdb__float16",
    "duckdb__nan-float",
    "duckdb__signed_stats",
    "duckdb__unsigned_stats",
    "duckdb__varchar_stats",
    "impala__int64_timestamps_nano",
    "pqtest__byte_array_decimal",
    "pqtest__fixed_length_decimal",
    "pqtest__fixed_length_decimal_legacy",
]


@pytest.mark.parametrize("name", ODD)
def test_40_50_63_statistics_of_other_writers_deny_no_value(conformance: Path, name: str) -> None:
    path = conformance / "corpus" / "valid" / f"{name}.parquet"
    if not path.exists():
        pytest.skip(f"the corpus has no {path.name}")
    tried = 0
    for leaf in open_metadata(path).leaves:
        if len(leaf.path) > 1 or leaf.max_rep:
            continue
        options: dict[str, Any] = {"columns": [leaf.name], "int96_unit": "us"}
        values = ps.read_table(path, **options)[0].combine_chunks().slice(0, 400)
        for value in values.unique().drop_null()[:8]:
            x = ps.col(leaf.name)
            for test in (x == value, x <= value, x > value, ~(x != value), x.isin([value, None])):
                full = ps.read_table(path, filter=test, prune=False, **options)
                found = ps.read_table(path, filter=test, **options)
                assert str(found.to_pylist()) == str(full.to_pylist()), test
                tried += 1
            nan = value.as_py() != value.as_py() if pa.types.is_floating(value.type) else False
            assert nan or ps.read_table(path, filter=x == value, **options).num_rows
    assert tried
