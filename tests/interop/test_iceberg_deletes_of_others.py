"""Tables as other writers than pyiceberg leave them: deletes by columns that files lack, by odd numbers, by times of an old type;
nulls that are not counted; and the numbers of rows beside deleted ones.
"""

from __future__ import annotations

import datetime as dt
import io
import json
import struct
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from fsspec.implementations.memory import MemoryFileSystem

import pageseek as ps
from pageseek.base.report import Report
from pageseek.datasets.deletes import EqualityDeletes, KeyField
from pageseek.scanning.deletes import equality_deletes
from pageseek.scanning.deletes.delete_files import as_plain, opened
from pageseek.scanning.deletes.deleted_rows import deleted_rows
from pageseek.storage import Source
from pageseek.storage.resolve import resolve

pytest.importorskip("pyiceberg", "0.10")

from pyiceberg.table import StaticTable

from support.iceberg_written import Written, column, ided, rows_of, struct_of

I32 = pa.int32()
OF_P, OF_I, OF_V = column(1, "p", "int"), column(2, "i", "int"), column(3, "v", "int")
BY_P = [(1, "p", "identity", "int")]


def numbers(table: str) -> list[int]:
    """The column `i` of the rows that are left."""
    found: list[int] = ps.read_table(table, columns=["i"])["i"].to_pylist()
    return found


def test_a_column_of_the_partition_that_files_lack_and_the_scan_leaves_out(tmp_path: Path) -> None:
    written = Written(tmp_path, [[OF_P, OF_I, OF_V]], specs=[BY_P])
    files = [ided("i", I32, 2), ided("v", I32, 3)]
    keys = [ided("p", I32, 1), ided("i", I32, 2)]
    for p in (5, 6, None):
        written.add(rows_of(files, [1, 2, 3], [10, 20, 30]), partition=(p,))
    written.values(rows_of(keys, [5, None, 5], [2, 1, 7]), [1, 2], 2, partition=(5,))
    written.values(rows_of(keys, [None, 5], [2, 3]), [1, 2], 2, partition=(None,))
    table = StaticTable.from_metadata(f"{written.commit()}/metadata/v1.metadata.json")
    some = table.scan(selected_fields=("i", "v"))
    for source in (table, some):
        assert ps.read_table(source, columns=["i"])["i"].to_pylist() == [1, 3, 1, 2, 3, 1, 3]
        assert ps.scan(source).count_rows() == 7
        assert ps.scan(source).filter("i = 2").count_rows() == 1


def test_a_column_of_the_partition_that_was_dropped(tmp_path: Path) -> None:
    written = Written(tmp_path, [[OF_P, OF_I], [OF_I]], specs=[BY_P, []])
    for p, rows in ((5, [1, 2]), (6, [3]), (None, [4])):
        written.add(rows_of([ided("i", I32, 2)], rows), partition=(p,))
    for p in (5, None):
        written.values(rows_of([ided("p", I32, 1)], [p]), [1], 2, partition=(p,))
    assert numbers(written.commit()) == [3]


def test_a_field_of_the_partition_in_a_struct(tmp_path: Path) -> None:
    s = struct_of(column(10, "x", "int"), column(11, "y", "int"))
    written = Written(
        tmp_path, [[column(1, "s", s), OF_I]], specs=[[(10, "s.x", "identity", "int")]]
    )
    stored = ided("s", pa.struct([ided("y", I32, 11)]), 1)
    written.add(rows_of([stored, ided("i", I32, 2)], [{"y": 1}, {"y": 2}], [1, 2]), partition=(5,))
    key = ided("s", pa.struct([ided("x", I32, 10)]), 1)
    rows = rows_of([key, ided("i", I32, 2)], [{"x": 5}, {"x": 6}], [2, 1])
    written.values(rows, [10, 2], 2, partition=(5,))
    assert numbers(written.commit()) == [1]


def test_every_nan_is_deleted_by_one(tmp_path: Path) -> None:
    """The reference reader has one NaN, and zeros of two signs."""
    written = Written(tmp_path, [[column(1, "d", "double"), OF_I]])
    nan = struct.unpack("<d", struct.pack("<Q", 0xFFF8_0000_0000_0000))[0]
    values = pa.array(np.array([np.nan, nan, 0.0, -0.0, 1.0]))
    schema = pa.schema([ided("d", pa.float64(), 1), ided("i", I32, 2)])
    written.add(pa.Table.from_arrays([values, pa.array(range(5), I32)], schema=schema))
    written.values(rows_of([schema.field(0)], [float("nan"), 0.0]), [1], 2)
    assert numbers(written.commit()) == [3, 4]


def test_nanoseconds_of_int96(tmp_path: Path) -> None:
    written = Written(tmp_path, [[column(1, "t", "timestamp_ns"), OF_I]], version=3)
    schema = pa.schema([ided("t", pa.timestamp("ns"), 1), ided("i", I32, 2)])
    first = 1_700_000_000_000_000_000
    moments = pa.array([first, first + 1, first + 2, first + 1000]).cast(pa.timestamp("ns"))
    rows = pa.Table.from_arrays([moments, pa.array(range(4), I32)], schema=schema)
    entry = written.add(rows)
    pq.write_table(rows, entry.url.removeprefix("file://"), use_deprecated_int96_timestamps=True)
    written.values(rows.select(["t"]).slice(0, 1), [1], 2)
    assert numbers(written.commit()) == [1, 2, 3]


@pytest.mark.parametrize(("deleted", "left"), [(8, [1, 2, 3]), (None, [])])
def test_a_column_that_the_mapping_of_names_leaves_out(
    tmp_path: Path, deleted: int | None, left: list[int]
) -> None:
    """It is null in files without ids, whatever column has its name."""
    mapping = json.dumps([{"field-id": 2, "names": ["i"]}])
    written = Written(tmp_path, [[OF_I, OF_V]], properties={"schema.name-mapping.default": mapping})
    written.add(pa.table({"i": pa.array([1, 2, 3], I32), "v": pa.array([7, 8, 9], I32)}))
    written.values(rows_of([ided("v", I32, 3)], [deleted]), [3], 2)
    assert numbers(written.commit()) == left


def test_nulls_of_structs_that_a_manifest_does_not_count(tmp_path: Path) -> None:
    """Some writers count the nulls of a number in a struct only where the struct is there."""
    s = struct_of(column(10, "f", "double"))
    written = Written(tmp_path, [[column(1, "s", s), OF_I]])
    fields = [ided("s", pa.struct([ided("f", pa.float64(), 10)]), 1), ided("i", I32, 2)]
    rows = rows_of(fields, [{"f": 1.0}, None], [1, 2])
    written.add(rows, null_value_counts={10: 0}, value_counts={10: 1})
    written.add(rows, null_value_counts={10: 0})
    written.add(rows.slice(0, 1), null_value_counts={10: 0}, value_counts={10: 1})
    scan = ps.scan(written.commit())
    for condition in ("s.f is null", "s.f is null and i = 2", "not (s.f is not null)"):
        plan = scan.filter(condition).explain(analyze=True)
        assert scan.filter(condition).to_table()["i"].to_pylist() == [2, 2]
        assert plan.files.pruned_by.get("log") == 1  # where all values are counted


def test_rows_are_taken_by_their_numbers_among_those_that_are_left(tmp_path: Path) -> None:
    written = Written(tmp_path, [[OF_I]])
    entry = written.add(rows_of([ided("i", I32, 2)], range(10)))
    written.positions([(entry, 1), (entry, 2)], 2)
    dataset = ps.dataset(written.commit())
    whole = dataset.to_table()
    for wanted in ([0, 3], [3, 1, 3], [7]):
        assert dataset.take(wanted).equals(whole.take(wanted))
        assert dataset.take(wanted, filter=ds.field("i") >= 0).equals(whole.take(wanted))
    (fragment,) = dataset.get_fragments()
    assert fragment.take([1, 7])["i"].to_pylist() == [3, 9]
    for number in (8, 9):
        with pytest.raises(IndexError, match=rf"no row {number}, the dataset has 8"):
            dataset.take([number])


@pytest.mark.parametrize(
    ("plain", "view"), [(pa.string(), pa.string_view()), (pa.binary(), pa.binary_view())]
)
def test_values_that_are_stored_as_views(
    tmp_path: Path, plain: pa.DataType, view: pa.DataType
) -> None:
    word = [b"a", b"b", None] if plain == pa.binary() else ["a", "b", None]
    name = "binary" if plain == pa.binary() else "string"
    for at, (ours, theirs) in enumerate([(plain, view), (view, plain), (view, view)]):
        written = Written(tmp_path / str(at), [[column(1, "k", name), OF_I]])
        kinds = [ided("k", ours, 1), ided("i", I32, 2)]
        written.add(rows_of(kinds, [*word, word[0], None], [1, 2, 3, 4, 5]))
        written.values(rows_of([ided("k", theirs, 1)], [word[1], None]), [1], 2)
        assert numbers(written.commit()) == [1, 4]


@pytest.mark.parametrize("unit", ["s", "ms", "us"])
def test_times_that_a_finer_unit_does_not_hold(tmp_path: Path, unit: str) -> None:
    """They equal no value of it, whether rows or deletes have them; null still equals null."""
    day, far = dt.datetime(2024, 1, 1), dt.datetime(9999, 1, 1)
    ns, coarse = pa.timestamp("ns"), pa.timestamp(unit)
    both = [column(1, "t", "timestamp_ns"), OF_I]
    written = Written(tmp_path / "deletes", [both], version=3)
    kinds = [ided("t", ns, 1), ided("i", I32, 2)]
    written.add(rows_of(kinds, [day, None, dt.datetime(2024, 1, 2)], [1, 2, 3]))
    written.values(rows_of([ided("t", coarse, 1)], [far, day]), [1], 2)
    written.values(rows_of([ided("t", ns, 1)], [dt.datetime(2024, 1, 3)]), [1], 3)
    assert numbers(written.commit()) == [2, 3]
    if unit == "s":  # no file has this unit
        return
    rows = Written(tmp_path / "rows", [both], version=3)
    kinds = [ided("t", coarse, 1), ided("i", I32, 2)]
    rows.add(rows_of(kinds, [far, None, day, dt.datetime(1, 1, 1)], [1, 2, 3, 4]))
    key = [ided("t", ns, 1), ided("i", I32, 2)]
    rows.values(rows_of(key, [day, None, None], [3, 1, 4]), [1, 2], 2)
    assert numbers(rows.commit()) == [1, 2, 4]


PATHS = {
    "dictionary": lambda paths: paths.dictionary_encode(),
    "view": lambda paths: paths.cast(pa.string_view()),
    "large": lambda paths: paths.cast(pa.large_string()),
}


@pytest.mark.parametrize("kind", PATHS)
@pytest.mark.parametrize("files", [3, 6])  # of more than four, a file of deletes is read whole
@pytest.mark.parametrize("number", [pa.int64(), pa.int32(), pa.uint64(), pa.uint16()])
def test_positions_of_other_types(
    tmp_path: Path, kind: str, files: int, number: pa.DataType
) -> None:
    ps.clear_cache()
    written = Written(tmp_path, [[OF_I]])
    data = [written.add(rows_of([ided("i", I32, 2)], range(10))) for _ in range(files)]
    paths = PATHS[kind](pa.array([one.url for one in data]))
    written.add(pa.table({"file_path": paths, "pos": pa.array([1] * files, number)}), 2, content=1)
    assert numbers(written.commit()) == [0, *range(2, 10)] * files


@pytest.mark.parametrize("files", [3, 6])
def test_positions_that_are_no_numbers(tmp_path: Path, files: int) -> None:
    for at, (position, why) in enumerate(
        [
            (pa.array([1.0] * files), "no whole numbers"),
            (pa.array([None] * files, pa.int64()), "has no number"),
            (pa.array([2**64 - 1] * files, pa.uint64()), "deletes row -1"),
        ]
    ):
        ps.clear_cache()
        written = Written(tmp_path / str(at), [[OF_I]])
        data = [written.add(rows_of([ided("i", I32, 2)], range(10))) for _ in range(files)]
        paths = pa.array([one.url for one in data])
        written.add(pa.table({"file_path": paths, "pos": position}), 2, content=1)
        with pytest.raises(ps.CorruptFileError, match=why):
            ps.read_table(written.commit())


def test_deletes_are_kept_for_one_version_of_a_data_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also in a store, which is not asked for the versions of files of deletes."""
    monkeypatch.setattr(equality_deletes, "stamp", lambda _: None)
    written = Written(tmp_path, [[OF_I]])
    kind = [ided("i", I32, 2)]
    data = written.add(rows_of(kind, [1, 2, 3, 4]))
    written.values(rows_of(kind, [1]), [2], 2)
    table = written.commit()
    assert numbers(table) == [2, 3, 4]
    pq.write_table(rows_of(kind, [4, 3, 2, 1]), data.url.removeprefix("file://"))
    assert numbers(table) == [4, 3, 2]


class Undated(MemoryFileSystem):  # type: ignore[misc]
    """A store that tells of a file only its size."""

    protocol = "undated"
    cachable = False

    def info(self, path: str, **options: Any) -> dict[str, Any]:
        found = super().info(path, **options)
        return {name: found[name] for name in ("name", "size", "type")}


def test_a_store_that_tells_no_version_has_its_deletes_looked_up_each_time() -> None:
    files = Undated()
    key, number = ided("k", I32, 1), ided("i", I32, 2)

    def put(name: str, rows: pa.Table) -> Source:
        data = io.BytesIO()
        pq.write_table(rows, data, compression="none", use_dictionary=False)
        files.pipe_file(name, data.getvalue())
        return resolve((files, name))[0]

    deletes = EqualityDeletes(put("/deletes", rows_of([key], [5])), (KeyField(1, "k"),))
    for keys, gone in (([5, 6, 7], [0]), ([7, 6, 5], [2]), ([6, 5, 7], [1])):
        data = put("/data", rows_of([key, number], keys, range(3)))
        file = opened(data, Report())
        assert not file.store.version.dated
        found = deleted_rows(replace(data, deletes=(deletes,)), file, Report())
        assert found.rows().tolist() == gone


def test_a_data_file_that_is_replaced_while_its_deletes_are_looked_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = Written(tmp_path, [[OF_I]])
    kind = [ided("i", I32, 2)]
    data = Path(written.add(rows_of(kind, [1, 2, 3])).url.removeprefix("file://"))
    written.values(rows_of(kind, [1]), [2], 2)
    table = written.commit()
    plain = equality_deletes.read

    def replaced(*given: Any) -> pa.Table:
        if given[0].name.endswith(data.name):
            pq.write_table(rows_of(kind, [3, 2, 1]), tmp_path / "new")
            (tmp_path / "new").replace(data)
        return plain(*given)

    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(equality_deletes, "read", replaced)
        with pytest.raises(ps.FileChangedError, match="replaced while its deleted rows"):
            ps.read_table(table)
    assert numbers(table) == [3, 2]


def test_dates_and_times_of_day_that_a_finer_unit_does_not_hold(tmp_path: Path) -> None:
    day, far = dt.datetime(2024, 1, 1), dt.date(9999, 12, 31)
    written = Written(tmp_path / "dates", [[column(1, "t", "timestamp_ns"), OF_I]], version=3)
    rows = rows_of([ided("t", pa.timestamp("ns"), 1), ided("i", I32, 2)], [day, None], [1, 2])
    written.add(rows)
    written.values(rows_of([ided("t", pa.date32(), 1)], [far, day.date()]), [1], 2)
    assert numbers(written.commit()) == [2]
    far_us = pa.array([1 << 62, 3_600_000_000], pa.int64()).view(pa.time64("us"))
    found, lost = equality_deletes._widened([far_us], pa.time64("ns"), resolve(tmp_path)[0])
    assert found.to_pylist() == [None, dt.time(1)] and lost.tolist() == [True, False]


def test_plain_columns() -> None:
    words = pa.array(["a", None, "b", "a"])
    for made in (
        words.cast(pa.string_view()),
        words.dictionary_encode(),
        pa.DictionaryArray.from_arrays(
            words.dictionary_encode().indices, pa.array(["a", "b"], pa.string_view())
        ),
    ):
        found = as_plain(pa.chunked_array([made, made.slice(1, 2)]))
        assert found.type in (pa.string(), pa.large_string())
        assert found.to_pylist() == ["a", None, "b", "a", None, "b"]
        assert as_plain(pa.chunked_array([], made.type)).type == found.type


def test_a_time_beyond_a_unit_is_no_null_beside_another_column(tmp_path: Path) -> None:
    far, both = dt.datetime(9999, 1, 1), [OF_I, column(1, "t", "timestamp_ns")]
    written = Written(tmp_path, [both], version=3)
    kinds = [ided("i", I32, 2), ided("t", pa.timestamp("ns"), 1)]
    written.add(rows_of(kinds, [1, 2], [None, None]))
    key = [ided("i", I32, 2), ided("t", pa.timestamp("us"), 1)]
    written.values(rows_of(key, [1, 2], [far, None]), [2, 1], 2)
    assert numbers(written.commit()) == [1]
