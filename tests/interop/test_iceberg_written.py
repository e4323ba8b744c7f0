"""Tables of Iceberg that are written by hand, from the specification: what pyiceberg cannot write."""

from __future__ import annotations

import datetime as dt
import struct
import uuid
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pageseek as ps
from pageseek.datasets.table_versions import AsOf

pytest.importorskip("pyiceberg", "0.10")

from support.iceberg_written import (  # fmt: skip
    DATE,
    PATH_ID,
    POSITION_ID,
    Written,
    column,
    ided,
    list_of,
    rows_of,
    struct_of,
)


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        (["s.a"], [{"s": {"a": None}}, {"s": None}]),
        (["s.a", "s.bb"], [{"s": {"a": None, "bb": 2}}, {"s": None}]),
        (["s.i.a"], [{"s": {"i": {"a": None}}}, {"s": None}]),
        (["s.i.new"], [{"s": {"i": {"new": None}}}, {"s": None}]),
        (["s.bb", "s.i.a"], [{"s": {"i": {"a": None}, "bb": 2}}, {"s": None}]),
        (["l.element.a"], [{"l": [{"a": None, "b": 6}, None]}, {"l": None}]),
    ],
)
def test_a_field_that_was_dropped_and_added_again_is_another_one(
    tmp_path: Path, columns: list[str], expected: list[dict[str, Any]]
) -> None:
    """Also if it is read alone: what is read instead, to tell where the structs are null, has its name in the file."""
    old = [
        column(1, "s", struct_of(column(2, "a", "int"), column(3, "b", "int"), column(4, "i", struct_of(column(5, "a", "int"))))),
        column(6, "l", list_of(7, struct_of(column(8, "a", "int"), column(9, "b", "int")))),
    ]  # fmt: skip
    inner = struct_of(column(11, "a", "int"), column(12, "new", "int"))
    now = [
        column(1, "s", struct_of(column(10, "a", "int"), column(4, "i", inner), column(3, "bb", "int"))),
        column(6, "l", list_of(7, struct_of(column(13, "a", "int"), column(9, "b", "int")))),
    ]  # fmt: skip
    table = Written(tmp_path, [old, now])
    deep = ided("i", pa.struct([ided("a", pa.int32(), 5)]), 4)
    s = pa.struct([ided("a", pa.int32(), 2), ided("b", pa.int32(), 3), deep])
    of_list = pa.struct([ided("a", pa.int32(), 8), ided("b", pa.int32(), 9)])
    table.add(
        rows_of(
            [ided("s", s, 1), ided("l", pa.list_(ided("element", of_list, 7)), 6)],
            [{"a": 1, "b": 2, "i": {"a": 3}}, None],
            [[{"a": 5, "b": 6}, None], None],
        )
    )
    assert ps.read_table(table.commit(), columns=columns).to_pylist() == expected


@pytest.mark.parametrize("unit", ["us", "ns"])
def test_bounds_of_a_column_that_had_dates_are_days(tmp_path: Path, unit: str) -> None:
    kind = {"us": "timestamp", "ns": "timestamp_ns"}[unit]
    table = Written(tmp_path, [[column(1, "d", "date")], [column(1, "d", kind)]], version=3)
    days = [dt.date(2024, 1, 1), dt.date(2024, 1, 2), dt.date(9999, 1, 1)]
    for day in days[: 2 if unit == "ns" else 3]:
        number = struct.pack("<i", (day - dt.date(1970, 1, 1)).days)
        rows = rows_of([ided("d", pa.date32(), 1)], [day])
        table.add(rows, lower_bounds={1: number}, upper_bounds={1: number})
    when = dt.datetime(2024, 1, 2)
    far = struct.pack("<q", 10**18)
    told = pa.array([when], pa.timestamp(unit)).cast(pa.int64())[0].as_py()
    table.add(
        rows_of([ided("d", pa.timestamp(unit), 1)], [when]),
        lower_bounds={1: struct.pack("<q", told)}, upper_bounds={1: far},
    )  # fmt: skip
    scan = ps.scan(table.commit())
    assert scan.filter("d = timestamp '2024-01-01 00:00:00'").count_rows() == 1
    one = scan.filter("d = timestamp '2024-01-02 00:00:00'")
    assert one.count_rows() == 2
    assert one.explain().to_dict()["files"]["read"] == 2
    assert scan.filter("d >= timestamp '2024-01-01 00:00:00'").count_rows() == len(table.entries)


def test_bounds_that_are_no_values_and_counts_that_are_none(tmp_path: Path) -> None:
    schema = [column(1, "i", "int"), column(2, "p", "decimal(9,2)"), column(3, "t", "time")]
    table = Written(tmp_path, [schema])
    fields = [ided("i", pa.int32(), 1), ided("p", pa.decimal128(9, 2), 2), ided("t", pa.time64("us"), 3)]  # fmt: skip
    rows = rows_of(fields, [1, None], [Decimal(1), None], [dt.time(1), None])
    wide = b"\x7f" * 16
    short = struct.pack("<i", 7)
    for told in (
        {"null_value_counts": {1: -1, 2: -3}},
        {"null_value_counts": {1: -1}, "lower_bounds": {1: short}, "upper_bounds": {1: short}},
        {"lower_bounds": {2: wide}, "upper_bounds": {2: wide}},
        {"lower_bounds": {3: short}, "upper_bounds": {3: short}},
        {"record_count": -1},
    ):
        table.add(rows, **told)
    scan, n = ps.scan(table.commit()), len(table.entries)
    for condition in ("i = 1", "i is null", "p = 1", "p is null", "t is null", "t = time '01:00:00'"):  # fmt: skip
        assert scan.filter(condition).count_rows() == n, condition
    assert scan.count_rows() == 2 * n


def test_a_file_with_two_deletion_vectors_is_refused(tmp_path: Path) -> None:
    table = Written(tmp_path, [[column(1, "i", "int")]], version=3)
    fields = [ided("i", pa.int32(), 1)]
    first, second = table.add(rows_of(fields, range(9))), table.add(rows_of(fields, range(9)))
    table.vector(first, [1, 2], 2)
    assert ps.scan(table.commit()).count_rows() == 16
    table.vector(second, [1], 2)
    table.vector(second, [2], 3)
    with pytest.raises(ps.CorruptFileError, match=r"1\.parquet: the table has several deletion vectors of it.*3\.puffin and .*4\.puffin"):  # fmt: skip
        ps.scan(table.commit()).count_rows()


def test_a_partition_of_dates_that_became_timestamps_is_refused(tmp_path: Path) -> None:
    schemas = [[column(1, "d", kind), column(2, "i", "int")] for kind in ("date", "timestamp")]
    table = Written(tmp_path, schemas, 3, [[(1, "d", "identity", DATE)]])
    table.add(rows_of([ided("i", pa.int32(), 2)], [1]), partition=(19_723,))
    with pytest.raises(ps.UnsupportedError, match=r"0\.parquet lies in a partition of 'd'"):
        ps.scan(table.commit())


def test_a_column_of_unknown_type_is_null_whatever_files_have(tmp_path: Path) -> None:
    inside = struct_of(column(3, "u", "unknown"), column(4, "i", "int"))
    table = Written(tmp_path, [[column(1, "u", "unknown"), column(2, "s", inside)]], version=3)
    s = pa.struct([ided("u", pa.int32(), 3), ided("i", pa.int32(), 4)])
    table.add(rows_of([ided("u", pa.int64(), 1), ided("s", s, 2)], [1], [{"u": 2, "i": 3}]))
    folder = table.commit()
    assert ps.read_table(folder).to_pylist() == [{"u": None, "s": {"u": None, "i": 3}}]
    assert ps.read_table(folder, columns=["u"], filter="u is null").num_rows == 1


@pytest.mark.parametrize("kind", [pa.decimal32(5, 1), pa.decimal64(12, 1)])
def test_equality_deletes_by_short_decimals(tmp_path: Path, kind: pa.DataType) -> None:
    table = Written(tmp_path, [[column(1, "p", f"decimal({kind.precision},1)")]])
    fields = [ided("p", kind, 1)]
    table.add(rows_of(fields, [Decimal("1.5"), Decimal("2.5"), None]))
    table.values(rows_of(fields, [Decimal("2.5")]), [1], 2)
    assert ps.read_table(table.commit())["p"].to_pylist() == [Decimal("1.5"), None]
    table.values(rows_of([ided("p", pa.decimal128(kind.precision, 1), 1)], [None]), [1], 2)
    assert ps.read_table(table.commit())["p"].to_pylist() == [Decimal("1.5")]


@pytest.mark.parametrize("told", ["string", "binary"])
@pytest.mark.parametrize(
    "kind",
    [
        pa.string(),
        pa.binary_view(),
        pa.dictionary(pa.int8(), pa.large_string()),
        pa.dictionary(pa.int8(), pa.binary()),
    ],
)
def test_equality_deletes_of_text_that_a_file_calls_bytes(
    tmp_path: Path, kind: pa.DataType, told: str
) -> None:
    """And the reverse; also where files of deletes, which are read together, differ."""
    table = Written(tmp_path, [[column(1, "id", "int"), column(2, "c", told)]])
    fields = [ided("id", pa.int32(), 1), ided("c", kind, 2)]
    values: list[Any] = [b"a", "é".encode(), None, b"", b"b"]
    if kind == pa.string() or kind == pa.dictionary(pa.int8(), pa.large_string()):
        values = [None if one is None else one.decode() for one in values]
    table.add(rows_of(fields, range(5), values), 1)
    table.values(rows_of([ided("c", pa.binary(), 2)], [b"a", None]), [2], 2)
    text = table.values(rows_of([ided("c", pa.string(), 2)], ["é", "x"]), [2], 2)
    assert ps.read_table(table.commit())["id"].to_pylist() == [3, 4]
    assert ps.scan(str(tmp_path), filter=ps.col("id") > 1).count_rows() == 2
    table.entries = [one for one in table.entries if one.told["content"] == 0 or one is text]
    assert ps.read_table(table.commit())["id"].to_pylist() == [0, 2, 3, 4]


def test_files_of_deletes_in_place_of_others_of_their_name(tmp_path: Path) -> None:
    """What was read of a file of deletes is not used for another file of its name."""
    for numbers in ([0], [1, 2]):
        table = Written(tmp_path, [[column(1, "i", "int")]], version=3)
        fields = [ided("i", pa.int32(), 1)]
        a, b, c = (table.add(rows_of(fields, range(4))) for _ in range(3))
        table.vector(a, numbers, 2)
        table.positions([(b, number) for number in numbers], 2)
        table.values(rows_of(fields, numbers), [1], 2)
        del c
        found = ps.read_table(table.commit())["i"].to_pylist()
        assert found == [i for i in range(4) if i not in numbers] * 3


def test_a_moment_is_a_whole_number_of_milliseconds() -> None:
    """By floats, some would be a millisecond less, and so the snapshot before."""
    asked: list[int] = []

    class Snapshot:
        snapshot_id = 7

    class Table:
        def snapshot_as_of_timestamp(self, moment: int) -> Snapshot:
            asked.append(moment)
            return Snapshot()

    epoch = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
    moments = [n * 1_234_567 + 999 for n in range(1, 2_000)]
    for moment in moments:
        at = epoch + dt.timedelta(milliseconds=moment, microseconds=moment % 2 * 999)
        assert AsOf.of(None, at, None).iceberg(Table(), "t") == 7
    assert asked == moments


def test_a_manifest_that_was_cut_is_an_error(tmp_path: Path) -> None:
    """Behind a block an Avro file may end, and so may one that was cut there."""
    table = Written(tmp_path, [[column(1, "i", "int")]])
    for i in range(3):
        table.add(rows_of([ided("i", pa.int32(), 1)], [i]))
    folder = table.commit()
    assert ps.scan(folder).count_rows() == 3
    (manifest,) = tmp_path.glob("metadata/*-m0.avro")
    data, sync = manifest.read_bytes(), bytes(range(16))
    manifest.write_bytes(data[: data.index(sync) + len(sync)])
    with pytest.raises(ps.CorruptFileError, match=r"m0\.avro: the manifest has 0 files, and 3 by the manifest list"):  # fmt: skip
        ps.scan(folder)


def test_uuids_of_which_a_file_does_not_say_so(tmp_path: Path) -> None:
    """As older writers have them: 16 bytes. They are compared as UUIDs, beside a file that says so."""
    table = Written(tmp_path, [[column(1, "u", "uuid")]])
    values = [uuid.UUID(int=i << 100).bytes for i in range(50)]
    table.add(rows_of([ided("u", pa.binary(16), 1)], [*values, None]))
    table.add(rows_of([ided("u", pa.uuid(), 1)], [*values, None]))
    folder, one = table.commit(), uuid.UUID(int=7 << 100)
    assert ps.read_table(folder)["u"].to_pylist().count(one) == 2
    for condition in (ps.col("u") == one, ps.col("u").isin([one]), f"u = X'{one.hex}'", f"u = '{one}'"):  # fmt: skip
        assert ps.read_table(folder, filter=condition)["u"].to_pylist() == [one] * 2
    assert ps.scan(folder).filter(ps.col("u") < one).count_rows() == 14
    assert ps.scan(folder).filter("u is null").count_rows() == 2
    assert ps.scan(folder).aggregate(["count", ("u", "min")]).num_rows == 1
    prepared = ps.scan(folder).prepare(ps.col("u") == ps.param("k"))
    assert prepared(k=one).num_rows == 2


def test_uuids_inside_of_structs_and_lists(tmp_path: Path) -> None:
    kind = struct_of(column(2, "u", "uuid"), column(3, "l", list_of(4, "uuid")))
    table = Written(tmp_path, [[column(1, "s", kind)]])
    values = [uuid.UUID(int=i << 100) for i in range(20)]
    for own in (pa.binary(16), pa.uuid()):
        inside = pa.struct([ided("u", own, 2), pa.field("l", pa.list_(ided("element", own, 4)), metadata={"PARQUET:field_id": "3"})])  # fmt: skip
        rows = [{"u": one.bytes, "l": [one.bytes, None]} for one in values]
        storage = pa.struct([("u", pa.binary(16)), ("l", pa.list_(pa.binary(16)))])
        made = pa.array([*rows, None], storage)
        if own != pa.binary(16):
            lists = made.field(1)
            elements = pa.ExtensionArray.from_storage(own, lists.values)
            parts = [
                pa.ExtensionArray.from_storage(own, made.field(0)),
                pa.ListArray.from_arrays(lists.offsets, elements, type=inside.field(1).type),
            ]
            made = pa.StructArray.from_arrays(parts, fields=list(inside), mask=made.is_null())
        else:
            made = made.cast(inside)
        table.add(pa.Table.from_arrays([made], schema=pa.schema([ided("s", inside, 1)])))
    folder, one = table.commit(), values[7]
    expected = [{"u": one, "l": [one, None]}]
    assert ps.read_table(folder)["s"].to_pylist().count(expected[0]) == 2
    for condition in (ps.col("s.u") == one, ps.col("s.l").any() == one):
        assert ps.read_table(folder, filter=condition)["s"].to_pylist() == expected * 2
    assert ps.read_table(folder, columns=["s.u"]).num_rows == 42


@pytest.mark.parametrize(
    ("path", "position"),
    [
        (ided("file_path", pa.string(), PATH_ID), ided("pos", pa.int64(), POSITION_ID)),
        (ided("where.it lies", pa.string(), PATH_ID), ided("pos2", pa.int64(), POSITION_ID)),
        (ided("pos", pa.string(), PATH_ID), ided("file_path", pa.int64(), POSITION_ID)),
        (pa.field("file_path", pa.string()), pa.field("pos", pa.int64())),
        (ided("of", pa.large_string(), PATH_ID), pa.field("pos", pa.int64(), nullable=False)),
    ],
)
@pytest.mark.parametrize("has_rows", [False, True])
def test_columns_of_deletes_by_position_are_those_of_their_field_ids(
    tmp_path: Path, path: pa.Field, position: pa.Field, has_rows: bool
) -> None:
    """Or, in a file without these ids, of the names in the specification; also beside the deleted rows."""
    table = Written(tmp_path, [[column(1, "pos", "int")]])
    files = [table.add(rows_of([ided("pos", pa.int32(), 1)], range(3))) for _ in range(7)]
    row = ided("row", pa.struct([ided("pos", pa.int32(), 1)]), 2147483544)
    fields = [path, position, *([row] if has_rows else [])]
    deleted = [{"pos": i % 3} for i in range(7)] if has_rows else None
    table.positions([(one, i % 3) for i, one in enumerate(files)], 2, fields, deleted)
    found = ps.scan(table.commit())
    assert found.to_table()["pos"].to_pylist() == [1, 2, 0, 2, 0, 1] * 2 + [1, 2]
    assert found.filter("pos = 1").count_rows() == 5


def test_deletes_by_position_without_positions_are_an_error(tmp_path: Path) -> None:
    table = Written(tmp_path, [[column(1, "i", "int")]])
    file = table.add(rows_of([ided("i", pa.int32(), 1)], range(3)))
    table.positions([(file, 0)], 2, [ided("file_path", pa.string(), PATH_ID), ided("p", pa.int64(), 7)])  # fmt: skip
    with pytest.raises(ps.CorruptFileError, match=r"1\.parquet: it deletes rows by their numbers: .*no column 'pos'"):  # fmt: skip
        ps.read_table(table.commit())
