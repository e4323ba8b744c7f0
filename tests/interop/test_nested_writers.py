"""Nested files of other writers: every row equals pyarrow's, with filters and without."""

from __future__ import annotations

import datetime as dt
import json
import random
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import pageseek as ps

N = 1200


def maybe(dice: random.Random, value: Any) -> Any:
    return None if dice.random() < 0.12 else value


@pytest.fixture(scope="module")
def table() -> pa.Table:
    dice = random.Random(7)

    def some(make: Callable[[], Any], most: int = 4) -> list[Any]:
        return [make() for _ in range(dice.randrange(most))]

    def number() -> Any:
        return maybe(dice, dice.randrange(90))

    def text() -> Any:
        return maybe(dice, "é word"[: dice.randrange(7)])

    def inner(i: int) -> Any:
        return maybe(
            dice, {"x": maybe(dice, i // 3), "s": maybe(dice, {"y": text(), "z": i % 2 == 0})}
        )

    struct = pa.struct(
        [("x", pa.int64()), ("s", pa.struct([("y", pa.string()), ("z", pa.bool_())]))]
    )
    deep = pa.list_(pa.struct([("a", pa.int32()), ("b", pa.list_(pa.string()))]))
    columns: dict[str, tuple[pa.DataType, list[Any]]] = {
        "s": (struct, [inner(i) for i in range(N)]),
        "l": (pa.list_(pa.int64()), [maybe(dice, some(number)) for _ in range(N)]),
        "ll": (
            pa.list_(pa.list_(pa.string())),
            [maybe(dice, some(lambda: maybe(dice, some(text)))) for _ in range(N)],
        ),
        "d": (
            deep,
            [
                maybe(
                    dice, some(lambda: maybe(dice, {"a": number(), "b": maybe(dice, some(text))}))
                )
                for _ in range(N)
            ],
        ),
        "m": (
            pa.map_(pa.string(), pa.int32()),
            [
                maybe(dice, [(f"k{k}", number()) for k in range(dice.randrange(4))])
                for _ in range(N)
            ],
        ),
    }
    return pa.table(
        {"id": pa.array(range(N), pa.int64())}
        | {name: pa.array(values, kind) for name, (kind, values) in columns.items()}
    )


FILTERS: list[tuple[ps.Expression, pc.Expression]] = [
    (ps.col("id") == 777, pc.field("id") == 777),
    (ps.col("id").between(390, 520), (pc.field("id") >= 390) & (pc.field("id") <= 520)),
    (ps.col("id").isin(list(range(0, N, 3))), pc.field("id").isin(list(range(0, N, 3)))),
    (ps.col("s", "x") == 200, pc.field("s", "x") == 200),
    (ps.col("s.x") > 300, pc.field("s", "x") > 300),
    (
        ps.col("s", "s", "y").isin(["é w", ""]) & (ps.col("s.x") < 150),
        pc.field("s", "s", "y").isin(["é w", ""]) & (pc.field("s", "x") < 150),
    ),
    (ps.col("s.s.z").is_null(), pc.is_null(pc.field("s", "s", "z"))),
    (
        ps.col("l").is_null() & ps.col("s.s").is_not_null(),
        pc.is_null(pc.field("l")) & pc.is_valid(pc.field("s", "s")),
    ),
]


def check(path: Path, wanted: pa.Table | None = None) -> None:
    """Ours is pyarrow's table, or one of the same values; of row sets too."""
    theirs = pq.read_table(path)
    ours = ps.read_table(path)
    ours.validate(full=True)
    assert ours.schema.types == theirs.schema.types
    assert ours.equals(theirs)
    if wanted is not None:
        assert json.dumps(ours.to_pylist(), default=str) == json.dumps(
            wanted.to_pylist(), default=str
        )
    for mine, other in FILTERS:
        found, due = ps.read_table(path, filter=mine), theirs.filter(other)
        assert found.num_rows
        assert found.equals(due), repr(mine)
    few = ps.read_table(path, columns=["d", "s.s.y"], filter=ps.col("id") > N - 50)
    assert few.column("d").equals(theirs.column("d").slice(N - 49))
    found = ps.scan(path, batch_size=97).filter(ps.col("s.x") > 100).to_batches()
    assert pa.Table.from_batches(found).equals(theirs.filter(pc.field("s", "x") > 100))


HOW: dict[str, dict[str, Any]] = {
    "as it comes": {},
    "no dictionary": {"use_dictionary": False},
    "item": {"use_compliant_nested_type": False, "write_page_index": True},
    "uncompressed": {"compression": "NONE"},
    "several row groups": {"row_group_size": 333},
    "deltas": {"use_dictionary": False, "use_byte_stream_split": False, "column_encoding": {
        "id": "DELTA_BINARY_PACKED",
        "l.list.element": "DELTA_BINARY_PACKED",
        "ll.list.element.list.element": "DELTA_BYTE_ARRAY",
        "d.list.element.b.list.element": "DELTA_LENGTH_BYTE_ARRAY",
    }},
}  # fmt: skip


@pytest.mark.parametrize("index", [False, True])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("how", HOW)
def test_pyarrow(table: pa.Table, tmp_path: Path, how: str, version: str, index: bool) -> None:
    path = tmp_path / "t.parquet"
    options = {"data_page_size": 700, "write_batch_size": 64, "write_page_index": index}
    pq.write_table(table, path, **options | {"data_page_version": version} | HOW[how])
    check(path, table)
    names = {pq.ParquetFile(path).schema.column(i).path for i in range(8)}
    assert ("l.list.item" if how == "item" else "l.list.element") in names


def test_large_lists_views_and_lists_of_a_fixed_size(tmp_path: Path) -> None:
    dice = random.Random(5)
    rows = [maybe(dice, [maybe(dice, i), i + 1]) for i in range(N)]
    kinds = {
        "large": pa.large_list(pa.int32()),
        "fixed": pa.list_(pa.int32(), 2),
        "strings": pa.large_list(pa.large_string()),
        "required": pa.list_(pa.field("element", pa.int32(), nullable=False)),
    }
    columns = {
        name: pa.array(rows, kind) for name, kind in kinds.items() if name in ("large", "fixed")
    }
    texts = [None if row is None else [None if v is None else str(v) for v in row] for row in rows]
    columns["strings"] = pa.array(texts, kinds["strings"])
    full = [None if row is None else [v or 0 for v in row] for row in rows]
    columns["required"] = pa.array(full, kinds["required"])
    table = pa.table({"id": range(N)} | columns)
    for version in ("1.0", "2.0"):
        path = tmp_path / "t.parquet"
        pq.write_table(
            table, path, data_page_size=500, write_batch_size=50, data_page_version=version
        )
        theirs = pq.read_table(path)
        assert ps.read_table(path).equals(theirs)
        for low in range(0, N, 171):
            found = ps.read_table(path, filter=ps.col("id").between(low, low + 20))
            found.validate(full=True)
            assert found.equals(theirs.slice(low, 21))


LEAVES: dict[str, tuple[pa.DataType, Callable[[int], Any]]] = {
    **{
        str(kind): (kind, lambda i, kind=kind: i % 100 if "u" in str(kind) else i % 100 - 50)
        for kind in (
            pa.int8(), pa.int16(), pa.int32(), pa.int64(),
            pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64(),
        )
    },
    "decimal of 5": (pa.decimal128(5, 2), lambda i: Decimal(i * 7 - 3000).scaleb(-2)),
    "decimal of 20": (pa.decimal128(20, 4), lambda i: Decimal(i * 10**15 - 7).scaleb(-4)),
    "decimal of 40": (pa.decimal256(40, 3), lambda i: Decimal(i * 10**30 - 7).scaleb(-3)),
    "float16": (pa.float16(), lambda i: i / 4),
    "float32": (pa.float32(), lambda i: i / 8),
    "float64": (pa.float64(), lambda i: i / 16),
    "bool": (pa.bool_(), lambda i: i % 3 == 0),
    "date": (pa.date32(), lambda i: dt.date(2020, 1, 1) + dt.timedelta(i)),
    "date64": (pa.date64(), lambda i: dt.date(2020, 1, 1) + dt.timedelta(i)),
    "time32": (pa.time32("ms"), lambda i: dt.time(i % 24, i % 60)),
    "time64": (pa.time64("us"), lambda i: dt.time(i % 24, i % 60, 1, i)),
    **{
        f"timestamp {unit} {zone}": (
            pa.timestamp(unit, zone),
            lambda i, zone=zone: dt.datetime(2024, 1, 1, tzinfo=dt.UTC if zone else None)
            + dt.timedelta(seconds=i),
        )
        for unit in ("s", "ms", "us", "ns")
        for zone in (None, "UTC")
    },
    "duration": (pa.duration("us"), lambda i: dt.timedelta(seconds=i)),
    "fixed": (pa.binary(5), lambda i: b"%5d" % (i % 700)),
    "string": (pa.string(), lambda i: "né"[: i % 3] * (i % 5)),
    "large string": (pa.large_string(), lambda i: "ab" * (i % 5)),
    "binary": (pa.binary(), lambda i: b"\0\xff" * (i % 4)),
    "large binary": (pa.large_binary(), lambda i: b"\1" * (i % 4)),
    "string view": (pa.string_view(), lambda i: "a longer piece of text"[: i % 23]),
    "dictionary": (pa.dictionary(pa.int32(), pa.string()), lambda i: ["red", "green", "blue"][i % 3]),
    "null": (pa.null(), lambda i: None),
}  # fmt: skip


@pytest.mark.parametrize("name", LEAVES)
def test_lists_of_every_leaf(name: str, tmp_path: Path) -> None:
    kind, make = LEAVES[name]
    dice = random.Random(name)
    n = 500
    rows = [
        maybe(dice, [maybe(dice, make(i + k)) for k in range(dice.randrange(4))]) for i in range(n)
    ]
    values = pa.array([v for row in rows if row for v in row], kind)
    offsets = [0]
    for row in rows:
        offsets.append(offsets[-1] + len(row or ()))
    lists = pa.ListArray.from_arrays(
        pa.array(offsets, pa.int32()), values, mask=pa.array([row is None for row in rows])
    )
    structs = pa.StructArray.from_arrays(
        [lists, pa.array(range(n), pa.int32())],
        ["l", "i"],
        mask=pa.array([i % 9 == 4 for i in range(n)]),
    )
    table = pa.table({"id": range(n), "l": lists, "s": structs})
    for version, index, use_dictionary in (
        ("1.0", True, True),
        ("2.0", False, False),
        ("1.0", False, False),
    ):
        path = tmp_path / f"{version}{index}.parquet"
        pq.write_table(
            table, path, data_page_version=version, write_page_index=index,
            use_dictionary=use_dictionary, data_page_size=300, write_batch_size=40,
        )  # fmt: skip
        theirs = pq.read_table(path)
        ours = ps.read_table(path)
        ours.validate(full=True)
        assert ours.schema.types == theirs.schema.types
        assert same(ours, theirs)
        values_of = theirs.to_pylist()
        for chosen in ([3], list(range(100, 300)), list(range(0, n, 2)), [0, 250, n - 1]):
            found = ps.read_table(path, filter=ps.col("id").isin(chosen))
            found.validate(full=True)
            assert found.to_pylist() == [values_of[i] for i in chosen]


def same(ours: pa.Table, theirs: pa.Table) -> bool:
    """Equal, or of dictionaries of another order."""
    return ours.equals(theirs) or ours.to_pylist() == theirs.to_pylist()


def test_duckdb(table: pa.Table, tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    for version, size in (("V1", 100_000), ("V2", 500)):
        path = tmp_path / f"{version}.parquet"
        connection = duckdb.connect()
        connection.register("t", table)
        connection.execute(
            f"COPY t TO '{path}' (FORMAT parquet, PARQUET_VERSION {version}, ROW_GROUP_SIZE {size})"
        )
        check(path, table)


def test_polars(table: pa.Table, tmp_path: Path) -> None:
    polars = pytest.importorskip("polars")
    frame = polars.from_arrow(table.drop_columns(["m"]))  # it has no maps
    for size in (None, 700):
        path = tmp_path / "t.parquet"
        frame.write_parquet(path, data_page_size=size, use_pyarrow=False)
        check(path, table.drop_columns(["m"]))
