"""Tables of Iceberg as its versions 1 and 3 have them, where pyiceberg knows version 2 alone; written by hand, from the specification."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek.datasets.iceberg_metadata import NOTHING, for_pyiceberg

pytest.importorskip("pyiceberg", "0.10")

from support.iceberg_written import (  # fmt: skip
    COUNTS,
    Written,
    column,
    ided,
    list_of,
    rows_of,
    struct_of,
)

# -- version 1 ------------------------------------------------------------------------------------


def _of_version_1(folder: Path, **told: object) -> Written:
    """A table of two files in two partitions, of which the manifest has the values."""
    schema = [column(1, "i", "int"), column(2, "p", "string")]
    specs = [[(2, "p", "identity", "string")]]
    table = Written(folder, [schema], 1, specs, **told)  # type: ignore[arg-type]
    for i, p in enumerate("ab"):
        table.add(rows_of([ided("i", pa.int32(), 1)], [i]), partition=(p,))
    return table


@pytest.mark.parametrize("inline", [False, True])
def test_a_table_of_version_1_has_no_more_than_that_requires(tmp_path: Path, inline: bool) -> None:
    """No counts, no sequence numbers, no list of schemas and partitionings; or no list of manifests at all."""
    folder = _of_version_1(tmp_path, inline=inline, counts=()).commit()
    assert ps.read_table(folder).to_pylist() == [{"i": 0, "p": "a"}, {"i": 1, "p": "b"}]
    one = ps.scan(folder, filter="p = 'b'")
    assert one.to_table()["i"].to_pylist() == [1]
    assert one.explain().to_dict()["files"]["read"] == 1


def test_manifests_in_a_snapshot_are_of_the_partitioning_that_they_name(tmp_path: Path) -> None:
    schema = [column(1, "i", "int"), column(2, "p", "string")]
    specs: list[list[tuple[int, str, str, object]]] = [[], [(2, "p", "identity", "string")]]
    table = Written(tmp_path, [schema], 1, specs, inline=True)
    both = [ided("i", pa.int32(), 1), ided("p", pa.string(), 2)]
    table.add(rows_of(both, [1], ["x"]))
    table.add(rows_of(both[:1], [2]), spec=1, partition=("y",))
    assert ps.read_table(table.commit()).to_pylist() == [{"i": 1, "p": "x"}, {"i": 2, "p": "y"}]
    files = ps.scan(str(tmp_path), filter="p = 'x'").explain().to_dict()["files"]
    assert files["read"] == 1


@pytest.mark.parametrize("counts", [(), (None,), COUNTS[:2], [None, *COUNTS[1:]]])
@pytest.mark.parametrize("version", [1, 2])
def test_a_list_of_manifests_may_lack_counts(
    tmp_path: Path, version: int, counts: Sequence[str | None]
) -> None:
    """A table that was upgraded from version 1 keeps such lists."""
    table = Written(tmp_path, [[column(1, "i", "int")]], version, counts=counts)
    for i in range(3):
        table.add(rows_of([ided("i", pa.int32(), 1)], [i]))
    if version == 2:
        table.positions([(table.entries[1], 0)], 2)
    expected = [0, 2] if version == 2 else [0, 1, 2]
    assert ps.read_table(table.commit())["i"].to_pylist() == expected
    assert ps.scan(str(tmp_path), filter="i = 2").count_rows() == 1


# -- timestamps -----------------------------------------------------------------------------------

WHEN = dt.datetime(2024, 1, 2, 3, 4, 5, 678901)
MICROS = 1_704_164_645_678_901
TYPES = {"timestamp": None, "timestamptz": "UTC", "timestamp_ns": None, "timestamptz_ns": "UTC"}
UTC_MICROS = pa.timestamp("us", "UTC")


def _filter(kind: str, operator: str) -> str:
    return f"t {operator} timestamp '2024-01-02 03:04:05.678901{'Z' if TYPES[kind] else ''}'"


def _add_times(table: Written, kind: pa.DataType | None, values: Sequence[object]) -> None:
    """A file with the columns `i` and `t`. `kind`: None: INT96."""
    of_file = kind or pa.timestamp("us")
    fields = [ided("i", pa.int32(), 1), ided("t", of_file, 2)]
    rows = rows_of(fields, range(len(values)), values)
    entry = table.add(rows)
    if kind is None:
        pq.write_table(
            rows, entry.url.removeprefix("file://"), use_deprecated_int96_timestamps=True
        )


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("other", [None, "timestamp", "timestamptz"])
def test_timestamps_have_the_zone_that_the_table_says(
    tmp_path: Path, kind: str, other: str | None
) -> None:
    """The numbers are those of the file, as in Iceberg's own readers, also for INT96, which has no zone."""
    schema = [column(1, "i", "int"), column(2, "t", kind)]
    if other is not None:
        schema.append(column(3, "u", other))
    table = Written(tmp_path, [schema], 3)
    for own in (None, pa.timestamp("us"), UTC_MICROS, pa.timestamp("us", "Europe/Berlin")):
        _add_times(table, own, [WHEN, None, WHEN + dt.timedelta(microseconds=1)])
    folder, n = table.commit(), len(table.entries)
    found = ps.read_table(folder)["t"]
    assert found.type == pa.timestamp("ns" if kind.endswith("ns") else "us", TYPES[kind])
    assert found.cast(UTC_MICROS).cast(pa.int64()).to_pylist() == [MICROS, None, MICROS + 1] * n
    scan = ps.scan(folder)
    for operator, rows in (("=", 1), (">", 1), (">=", 2), ("<", 0)):
        assert scan.filter(_filter(kind, operator)).count_rows() == rows * n
    assert scan.filter("t is null").count_rows() == n
    figures = scan.aggregate([("t", "max"), ("t", "count")])
    assert figures["t_max"].cast(UTC_MICROS).cast(pa.int64()).to_pylist() == [MICROS + 1]
    prepared = scan.prepare(ps.col("t") == ps.param("k"))
    moment = WHEN.replace(tzinfo=dt.UTC) if TYPES[kind] else WHEN
    assert prepared(k=moment)["i"].to_pylist() == [0] * n


def test_timestamps_inside_of_structs_and_lists_have_the_zone_of_the_table(tmp_path: Path) -> None:
    inside = struct_of(column(3, "t", "timestamp"), column(4, "l", list_of(5, "timestamptz")))
    table = Written(tmp_path, [[column(1, "s", inside)]])
    for own in (pa.timestamp("us"), UTC_MICROS):
        kind = pa.struct([ided("t", own, 3), ided("l", pa.list_(ided("element", own, 5)), 4)])
        table.add(rows_of([ided("s", kind, 1)], [{"t": WHEN, "l": [WHEN, None]}, None]))
    folder, moment = table.commit(), WHEN.replace(tzinfo=dt.UTC)
    expected = [{"s": {"t": WHEN, "l": [moment, None]}}, {"s": None}]
    assert ps.read_table(folder).to_pylist() == expected * 2
    assert ps.read_table(folder, columns=["s.t"])["s"].to_pylist() == [{"t": WHEN}, None] * 2
    assert ps.scan(folder, filter=ps.col("s.t") == WHEN).count_rows() == 2
    assert ps.scan(folder, filter=ps.col("s.l").any() == moment).count_rows() == 2


def test_timestamps_of_another_kind_are_compared_by_deletes_and_partitions(tmp_path: Path) -> None:
    schema = [column(1, "i", "int"), column(2, "t", "timestamp")]
    table = Written(tmp_path, [schema])
    for own in (None, pa.timestamp("us"), UTC_MICROS):
        _add_times(table, own, [WHEN, None, WHEN.replace(year=2020)])
    for own in (pa.timestamp("us"), UTC_MICROS):
        table.values(rows_of([ided("t", own, 2)], [WHEN.replace(year=2020 + 4 * (own == UTC_MICROS))]), [2], 2)  # fmt: skip
    assert ps.read_table(table.commit())["i"].to_pylist() == [1] * 3


def test_nanoseconds_are_no_timestamps_of_microseconds(tmp_path: Path) -> None:
    """The specification has them in columns of nanoseconds alone. pyiceberg refuses them elsewhere, too."""
    table = Written(tmp_path, [[column(1, "i", "int"), column(2, "t", "timestamp")]])
    _add_times(table, pa.timestamp("ns", "UTC"), [WHEN])
    folder = table.commit()
    assert ps.read_table(folder, columns=["i"]).num_rows == 1
    for condition in (None, "t is not null", _filter("timestamp", "=")):
        with pytest.raises(ps.UnsupportedError, match=r"0\.parquet: column 't' is timestamp\[ns\], and timestamp\[us\]"):  # fmt: skip
            ps.read_table(folder, columns=["t"], filter=condition)


@pytest.mark.parametrize("kind", ["timestamp_ns", "timestamptz_ns"])
def test_int96_has_the_nanoseconds_of_a_column_that_has_them(tmp_path: Path, kind: str) -> None:
    table = Written(tmp_path, [[column(1, "i", "int"), column(2, "t", kind)]], 3)
    number = MICROS * 1000 + 123
    path = table.add(rows_of([ided("i", pa.int32(), 1)], [0])).url.removeprefix("file://")
    times = pa.array([number], pa.timestamp("ns"))
    fields = pa.schema([ided("i", pa.int32(), 1), ided("t", times.type, 2)])
    rows = pa.Table.from_arrays([pa.array([0], pa.int32()), times], schema=fields)
    pq.write_table(rows, path, use_deprecated_int96_timestamps=True)
    assert ps.read_table(table.commit())["t"].cast(pa.int64()).to_pylist() == [number]


@pytest.mark.parametrize("kind", ["timestamp_ns", "timestamptz_ns"])
def test_defaults_and_partitions_of_nanoseconds(tmp_path: Path, kind: str) -> None:
    utc = kind == "timestamptz_ns"
    text = f"2024-01-02T03:04:05.678901234{'+00:00' if utc else ''}"
    default = column(3, "d", kind, initial_default=text, write_default=text)
    avro = {"type": "long", "logicalType": "timestamp-nanos", "adjust-to-utc": utc}
    schema = [column(1, "i", "int"), column(2, "t", kind), default]
    table = Written(tmp_path, [schema], 3, [[(2, "t", "identity", avro)]])
    number = MICROS * 1000 + 234
    for i, value in enumerate((number, number + 1, None)):
        table.add(rows_of([ided("i", pa.int32(), 1)], [i]), partition=(value,))
    folder = table.commit()
    found = ps.read_table(folder)
    assert found["t"].cast(pa.int64()).to_pylist() == [number, number + 1, None]
    assert found["d"].cast(pa.int64()).to_pylist() == [number] * 3
    literal = text.removesuffix("+00:00") + ("Z" if utc else "")
    same = ps.scan(folder, filter=f"t = timestamp '{literal}'")
    assert same.to_table()["i"].to_pylist() == [0]
    assert same.explain().to_dict()["files"]["read"] == 1
    assert ps.scan(folder, filter=f"d = timestamp '{literal}'").count_rows() == 3
    assert ps.scan(folder, filter=f"d > timestamp '{literal}'").count_rows() == 0


def test_a_default_that_is_no_moment_is_an_error(tmp_path: Path) -> None:
    schema = [column(1, "i", "int"), column(2, "d", "timestamp_ns", initial_default="9999-01-01T00:00:00")]  # fmt: skip
    table = Written(tmp_path, [schema], 3)
    table.add(rows_of([ided("i", pa.int32(), 1)], [1]))
    with pytest.raises(ps.UnsupportedError, match="default of 'd': the table says '9999"):
        ps.read_table(table.commit())


# -- types and transforms of version 3 ------------------------------------------------------------


@pytest.mark.parametrize("told", ["variant", "interval_month", "geometry_collection<x>"])
def test_columns_beside_one_of_a_type_that_is_not_read(tmp_path: Path, told: str) -> None:
    inside = struct_of(column(4, "v", told), column(5, "x", "int"))
    schema = [column(1, "i", "int"), column(2, "v", told), column(3, "s", inside)]
    table = Written(tmp_path, [schema], 3)
    of_file = pa.struct([("metadata", pa.binary()), ("value", pa.binary())])
    one = {"metadata": b"\1\0\0", "value": b"\0"}
    s = pa.struct([ided("v", of_file, 4), ided("x", pa.int32(), 5)])
    fields = [ided("i", pa.int32(), 1), ided("v", of_file, 2), ided("s", s, 3)]
    lower = {1: (1).to_bytes(4, "little"), 2: b"\0"}
    table.add(rows_of(fields, [1], [one], [{"v": one, "x": 2}]), lower_bounds=lower, upper_bounds=lower)  # fmt: skip
    scan = ps.scan(table.commit())
    found = scan.select("i", "s.x").filter(ps.col("s.x") == 2).to_table()
    assert found.to_pylist() == [{"i": 1, "s": {"x": 2}}]
    assert scan.count_rows() == scan.filter("s is not null").count_rows() == 1
    for columns, path in ((None, "v"), (["v"], "v"), (["v.value"], "v"), (["s"], "s.v"), (["i", "s.v"], "s.v")):  # fmt: skip
        with pytest.raises(ps.UnsupportedError, match=rf"0\.parquet: column '{path}' is {told} in the table"):  # fmt: skip
            ps.read_table(str(tmp_path), columns=columns)
    for condition in (ps.col("v") == b"\0", ps.col("v").is_null(), ps.col("s", "v", "value") == b"\0"):  # fmt: skip
        with pytest.raises(ps.UnsupportedError, match=f"is {told} in the table"):
            scan.select("i").filter(condition).to_table()
    with pytest.raises(ps.UnsupportedError, match=f"is {told} in the table"):
        scan.aggregate([("v", "min")])


def test_columns_whose_names_a_column_that_is_not_read_begins_with(tmp_path: Path) -> None:
    schema = [column(1, "a", "long"), column(2, "a.b", "variant"), column(3, "a.b.c", "long")]
    table = Written(tmp_path, [schema], 3)
    table.add(rows_of([ided("a", pa.int64(), 1), ided("a.b.c", pa.int64(), 3)], [1, 2], [3, 4]))
    scan = ps.scan(table.commit())
    found = scan.select("a", "a.b.c").filter((ps.col("a") == 2) & (ps.col("a.b.c") == 4)).to_table()
    assert found.to_pylist() == [{"a": 2, "a.b.c": 4}]
    with pytest.raises(ps.UnsupportedError, match=r"column 'a\.b' is variant in the table"):
        scan.select("a.b").to_table()


def test_a_column_that_is_not_read_is_no_binary_by_its_partition(tmp_path: Path) -> None:
    schema = [column(1, "i", "long"), column(2, "o", "interval_month")]
    table = Written(tmp_path, [schema], 3, [[(2, "o", "identity", "bytes")]])
    table.add(rows_of([ided("i", pa.int64(), 1)], [1]), partition=(b"x",))
    scan = ps.scan(table.commit())
    assert scan.select("i").to_table().to_pylist() == [{"i": 1}]
    for read in (
        lambda: scan.to_table(),
        lambda: scan.select("o").to_table(),
        lambda: scan.select("i").filter(ps.col("o") == b"x").count_rows(),
        lambda: scan.aggregate([("o", "min")]),
    ):
        with pytest.raises(ps.UnsupportedError, match="'o' is interval_month in the table"):
            read()


@pytest.mark.parametrize(
    "told", ["geometry", "geometry(srid:4326)", "geography", "geography(srid:4326, spherical)"]
)
def test_shapes_are_binary_and_their_bounds_are_none(tmp_path: Path, told: str) -> None:
    """Bounds of shapes are points, in another form than the values, which are WKB."""
    table = Written(tmp_path, [[column(1, "g", told)]], 3)
    shape = b"\1\1\0\0\0" + bytes(16)
    corner = {1: bytes(16)}
    rows = rows_of([ided("g", pa.binary(), 1)], [shape, None])
    table.add(rows, lower_bounds=corner, upper_bounds=corner, null_value_counts={1: 1})
    scan = ps.scan(table.commit())
    assert scan.to_table()["g"].to_pylist() == [shape, None]
    assert scan.filter(ps.col("g") == shape).count_rows() == 1
    figures = scan.aggregate([("g", "min"), ("g", "count")]).to_pylist()
    assert figures == [{"g_min": shape, "g_count": 1}]


@pytest.mark.parametrize(
    "told",
    [
        {"source-id": 1, "transform": "later[7]"},
        {"source-id": 1, "transform": "bucketV9[7]"},
        {"source-ids": [1], "transform": "bucket[4]"},
        {"source-ids": [1, 2], "transform": "bucket[4]"},
        {"source-ids": [2, 1], "transform": "identity"},
    ],
)
def test_transforms_that_are_not_known_rule_out_no_files(
    tmp_path: Path, told: dict[str, object]
) -> None:
    """Not even those of known names, if they are of several columns. Deletes of a partition are for its files alone, nevertheless."""
    schema = [column(1, "i", "int"), column(2, "p", "string")]
    table = Written(tmp_path, [schema], 3, [[(1, "x", "identity", "int")]])
    fields = [ided("i", pa.int32(), 1), ided("p", pa.string(), 2)]
    for part in (5, 6):
        table.add(rows_of(fields, [1, 2], ["a", "b"]), partition=(part,))
    table.values(rows_of(fields[:1], [2]), [1], 2, partition=(6,))
    order = {"source-ids": [1, 2], "transform": "zorder", "direction": "asc", "null-order": "nulls-first"}  # fmt: skip
    folder = table.commit()
    path = tmp_path / "metadata" / "v1.metadata.json"
    metadata = json.loads(path.read_text())
    metadata["partition-specs"][0]["fields"] = [{"field-id": 1000, "name": "x", **told}]
    metadata |= {"sort-orders": [{"order-id": 1, "fields": [order]}], "default-sort-order-id": 1}
    path.write_text(json.dumps(metadata))
    assert ps.read_table(folder)["i"].to_pylist() == [1, 2, 1]
    for condition, rows in (("i = 1", 2), ("p = 'b'", 1), ("i = 5", 0)):
        assert ps.scan(folder, filter=condition).count_rows() == rows


@pytest.mark.parametrize("default", [{}, None])
def test_defaults_of_structs_are_those_of_their_fields(tmp_path: Path, default: object) -> None:
    """In files without the struct; where the default is none, the struct is null (Iceberg specification, Default values)."""
    deep = struct_of(column(5, "z", "string", initial_default="far"))
    fields = [column(3, "x", "int", initial_default=7), column(4, "d", deep, initial_default=default), column(6, "y", "int")]  # fmt: skip
    schema = [column(1, "i", "int"), column(2, "s", struct_of(*fields), initial_default={})]
    table = Written(tmp_path, [schema], 3)
    table.add(rows_of([ided("i", pa.int32(), 1)], [0]))
    kind = pa.struct([ided("x", pa.int32(), 3), ided("y", pa.int32(), 6)])
    table.add(rows_of([ided("i", pa.int32(), 1), ided("s", kind, 2)], [1, 2], [{"x": 1, "y": 2}, None]))  # fmt: skip
    folder = table.commit()
    far = None if default is None else {"z": "far"}
    missing = {"x": 7, "d": far, "y": None}
    assert ps.read_table(folder)["s"].to_pylist() == [missing, {"x": 1, "d": far, "y": 2}, None]
    inner = [missing["x"], 1, None]
    found = ps.read_table(folder, columns=["i", "s.x"])
    assert [one and one["x"] for one in found["s"].to_pylist()] == inner
    z = ps.read_table(folder, columns=["s.d.z"])["s"].to_pylist()
    assert z == [{"d": far}, {"d": far}, None]
    scan = ps.scan(folder)
    for condition, ids in (
        (ps.col("s.x") == 7, [0]),
        (ps.col("s", "x") == 7, [0]),
        (ps.col("s.x") < 7, [1]),
        (ps.col("s.y").is_null(), [0, 2]),
        (ps.col("s.x").is_null(), [2]),
    ):
        assert scan.filter(condition).to_table()["i"].to_pylist() == ids, condition
    figures = scan.aggregate([("s.x", "max"), ("s.x", "count")]).to_pylist()
    assert figures == [{"s.x_max": 7, "s.x_count": 2}]
    assert scan.prepare(ps.col("s.x") == ps.param("k"))(k=7)["i"].to_pylist() == [0]
    with pytest.raises(ps.PredicateError):
        scan.filter("s.other = 1").to_table()
    with pytest.raises(ps.UnsupportedError, match="'s', which is not in the file, is struct"):
        scan.filter("s is null").to_table()


@pytest.mark.parametrize(
    "text",
    [
        "", "{", "[]", "null", "7", '{"snapshots": 7}', '{"schemas": [{"fields": [{}]}]}', '{"partition-specs": [{}]}',
        '{"partition-specs": [{"fields": [{"transform": 7}]}]}', '{"sort-orders": [7]}', "[" * 100_000,
    ],
)  # fmt: skip
def test_metadata_that_are_malformed_are_left_to_pyiceberg(tmp_path: Path, text: str) -> None:
    """It says what is wrong with them."""
    assert for_pyiceberg(text) == (text, NOTHING)
    (tmp_path / "metadata").mkdir()
    (tmp_path / "metadata" / "v1.metadata.json").write_text(text)
    with pytest.raises(ps.UnsupportedError, match=r"pyiceberg .* cannot tell which files it has"):
        ps.scan(str(tmp_path))


def test_metadata_that_pyiceberg_takes_stay_as_they_are(tmp_path: Path) -> None:
    inside = struct_of(column(2, "a", "decimal(9, 2)"), column(3, "l", list_of(4, "fixed[7]")))
    kinds = "boolean int long float double date time timestamp timestamptz timestamp_ns timestamptz_ns string uuid binary unknown"  # fmt: skip
    schema = [column(1, "s", inside), *(column(5 + i, f"c{i}", kind) for i, kind in enumerate(kinds.split()))]  # fmt: skip
    transforms = ["identity", "void", "year", "month", "day", "hour", "bucket[16]", "truncate[3]"]
    spec = [(6, f"p{i}", transform, "int") for i, transform in enumerate(transforms)]
    Written(tmp_path, [schema], 3, [spec]).commit()
    text = (tmp_path / "metadata" / "v1.metadata.json").read_text()
    assert for_pyiceberg(text) == (text, NOTHING)
    assert len(ps.scan(str(tmp_path)).schema) == len(schema)
