"""Footers of many files, some of which are not like the others: plans equal those of opening each file by itself."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek.io import tails as ends_of_files
from pageseek.scanning.many_files import footer_batches as footer_batches
from pageseek.scanning.many_files import footer_table
from support.batch_comparison import N, check, one_by_one, opened, outcome, planned, simple
from support.writer import DOUBLE, I32, I64, INT32, Column, Struct, write


@pytest.fixture(autouse=True)
def _no_cache() -> Iterator[None]:
    ps.clear_cache()
    yield
    ps.clear_cache()


def with_an_odd_one(folder: Path, at: int, change: Callable[[Path], None]) -> ps.Scan:
    simple(folder, 130)
    change(folder / f"{at:05}.parquet")
    return ps.scan(str(folder))


def wider(path: Path) -> None:
    pq.write_table(pa.table({"id": [1, 5], "k": pa.array([1, 2], pa.int64()), "new": [1, 2]}), path)


def narrower(path: Path) -> None:
    pq.write_table(pa.table({"id": pa.array([5, 6], pa.int8())}), path)


def unfit(path: Path) -> None:
    pq.write_table(pa.table({"id": ["a"], "k": [1]}), path)


def by_another_writer(path: Path) -> None:
    values = Column("id", INT32, [5, 6], optional=False)
    path.write_bytes(write([values], created_by=b"parquet-mr version 1.2.0"))


def empty(path: Path) -> None:
    pq.write_table(pq.read_table(path).slice(0, 0), path)


def of_many_groups(path: Path) -> None:
    pq.write_table(pa.concat_tables([pq.read_table(path)] * 5), path, row_group_size=7)


def described(path: Path) -> None:
    table = pq.read_table(path)
    pq.write_table(table.replace_schema_metadata({"about": "x" * 9000}), path)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-20])


def garbled(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[-60:-12] = bytes(48)
    path.write_bytes(data)


def tiny(path: Path) -> None:
    path.write_bytes(b"PAR1")


def long_footer_claimed(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[:-8] + (1 << 30).to_bytes(4, "little") + b"PAR1")


def gone(path: Path) -> None:
    path.unlink()
    path.symlink_to(path.with_suffix(".nowhere"))


def encrypted(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-4] + b"PARE")


def outside(path: Path) -> None:
    def edit(meta: Struct) -> None:
        meta[9] = type(meta[9])(1 << 40)

    numbers = Column("id", INT32, [5, 6], optional=False, edit_chunk=edit)
    path.write_bytes(write([numbers]))


def of_rows_that_are_not_there(path: Path) -> None:
    def edit(footer: Struct) -> None:
        footer[3] = type(footer[3])(99)

    path.write_bytes(write([Column("id", INT32, [5, 6], optional=False)], edit_footer=edit))


ODD_ONES = [
    wider, narrower, unfit, by_another_writer, empty, of_many_groups, described, cut, garbled, tiny,
    long_footer_claimed, encrypted, outside, of_rows_that_are_not_there,
]  # fmt: skip


@pytest.mark.covering(1)
@pytest.mark.parametrize("change", ODD_ONES, ids=lambda change: str(change.__name__))
@pytest.mark.parametrize("at", [0, 1, 77, 129])
def test_an_odd_file_among_many(tmp_path: Path, at: int, change: Callable[[Path], None]) -> None:
    scan = with_an_odd_one(tmp_path, at, change)
    for condition in (None, "id = 5", "id = 5000", "id >= 1200"):
        one = scan if condition is None else scan.filter(condition)
        found = planned(one), planned(one.select("id").limit(3))
        with one_by_one():
            assert found == (planned(one), planned(one.select("id").limit(3)))
        found = outcome(one.select("id").to_table)
        with one_by_one():
            assert found == outcome(one.select("id").to_table)
    if change in (wider, described, of_many_groups):
        ps.clear_cache()
        scan.plan()
        assert opened() <= 3


def meta(number: int, value: Any) -> Callable[[Struct], None]:
    """A field of a ColumnChunk's metadata becomes another."""

    def edit(chunk: Struct) -> None:
        chunk[3][number] = value

    return edit


DAMAGE: dict[str, Callable[[Struct], Any]] = {
    "in another file": lambda chunk: chunk.update({1: b"other.parquet"}),
    "encrypted": lambda chunk: chunk.update({8: {1: {}}}),
    "without metadata": lambda chunk: chunk.pop(3),
    "of another type": meta(1, I32(DOUBLE)),
    "of other values": meta(5, I64(3)),
    "behind the end": meta(9, I64(1 << 40)),
    "before the start": meta(9, I64(2)),
    "too long": meta(7, I64(1 << 20)),
    "much too long": meta(7, I64((1 << 63) - 1)),
    "of negative size": meta(7, I64(-5)),
    "with a dictionary outside": meta(11, I64(1)),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_chunk_among_many(tmp_path: Path, damage: str) -> None:
    for i in range(N):
        x = Column("x", INT32, [i, i + 1], optional=False)
        y = Column("y", INT32, [i, i + 1], optional=False)
        if i == 30:
            y.edit_column = DAMAGE[damage]
        (tmp_path / f"{i:02}.parquet").write_bytes(write([x, y]))
    scan = ps.scan(str(tmp_path))
    with pytest.raises(ps.PageseekError, match=r"30\.parquet.*'y'"):
        scan.plan()
    for condition in (None, "x = 5", "x >= 30", "y = 31", "y >= 0"):
        check(scan if condition is None else scan.filter(condition))
    check(scan.select("x"))


def test_a_file_that_is_gone(tmp_path: Path) -> None:
    scan = simple(tmp_path)
    (tmp_path / "00020.parquet").unlink()
    with pytest.raises(FileNotFoundError, match="00020"):
        scan.plan()
    assert scan.limit(100).to_table().num_rows == 100  # those before are enough


def test_files_of_several_kinds_in_turns(tmp_path: Path) -> None:
    for i in range(200):
        names = ["id", "a", "b", "c"][: 1 + i % 4]
        pq.write_table(pa.table({name: [i, i + 1] for name in names}), tmp_path / f"{i:03}.parquet")
    scan = ps.scan(str(tmp_path))
    check(scan)
    check(scan.filter("c = 7 or id = 2"))
    ps.clear_cache()
    scan.filter("id = -1").plan()
    assert opened() == 4


def test_files_that_all_differ_are_no_reason_to_read_ahead(tmp_path: Path) -> None:
    for i in range(150):
        pq.write_table(pa.table({"id": [i], f"c{i}": [i]}), tmp_path / f"{i:03}.parquet")
    scan = ps.scan(str(tmp_path))
    check(scan.filter("id = 7"))
    with one_by_one():
        alone = scan.filter("id = 7").explain().requests
    assert scan.filter("id = 7").explain().requests < alone + 100  # many are left alone


def test_stored_schemas_that_differ_in_remarks_only(tmp_path: Path) -> None:
    when = pa.timestamp("us", "Europe/Berlin")
    for i in range(60):
        fields = [
            pa.field("id", pa.int64()),
            pa.field("t", when if i % 20 != 7 else pa.timestamp("us", "UTC")),
        ]
        if i == 33:
            fields[0] = fields[0].with_metadata({"about": "it"})
        schema = pa.schema(fields, {"pandas": f'{{"stop": {i**9}}}'})
        table = pa.table(
            {"id": [i, i + 1], "t": pa.array([i, None], pa.int64()).cast(fields[1].type)},
            schema=schema,
        )
        pq.write_table(table, tmp_path / f"{i:02}.parquet")
    scan = ps.scan(str(tmp_path)).select("id")
    check(scan)
    check(scan.filter("id = 12"))
    ps.clear_cache()
    scan.filter("id = -1").plan()
    assert opened() == 3  # one of each zone, and the one with a remark on a column
    check(ps.scan(str(tmp_path)))


def test_long_footers_are_read_again_only_once(tmp_path: Path) -> None:
    for i in range(30):
        pq.write_table(
            pa.table({f"column_{k}": [i] for k in range(200)}), tmp_path / f"{i}.parquet"
        )
    scan = ps.scan(str(tmp_path)).select("column_7")
    check(scan)
    ps.clear_cache()
    assert scan.explain().requests <= 30 + 3


def test_one_long_footer_does_not_make_all_reads_long(tmp_path: Path) -> None:
    noise = random.Random(0).randbytes(50_000)
    for i in range(60):
        table = pa.table({"id": [i, i + 1], "b": [noise, noise[::-1]]})
        if i == 5:
            table = table.replace_schema_metadata({"about": "x" * 30_000})
        pq.write_table(table, tmp_path / f"{i:02}.parquet")
    report = ps.scan(str(tmp_path)).explain()
    assert report.bytes["metadata"] < 60 * ends_of_files.TAIL + 10 * 90_000


def test_of_small_files_that_are_read_whole_one_is_opened(tmp_path: Path) -> None:
    scan = simple(tmp_path)
    assert scan.to_table().num_rows == 10 * N
    assert opened() == 1


def test_more_row_groups_than_there_is_room_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for i in range(20):
        pq.write_table(
            pa.table({"id": range(i, i + 10), "x": [1] * 10}),
            tmp_path / f"{i:02}.parquet",
            row_group_size=10 if i % 5 else 1,
        )
    monkeypatch.setattr(footer_table, "RECORDS", 22)
    scan = ps.scan(str(tmp_path))
    check(scan)
    check(scan.filter("id = 12"))
