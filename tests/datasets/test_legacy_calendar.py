"""Dates and timestamps in Spark's legacy calendar: `explain` notes the files that it opens anyway."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek.datasets import legacy_calendar

VERSION, DATETIME, INT96 = (
    b"org.apache.spark.version", b"org.apache.spark.legacyDateTime", b"org.apache.spark.legacyINT96",
)  # fmt: skip
ZONE = b"org.apache.spark.timeZone"
DAY = dt.date(1500, 1, 1)
TABLE = pa.table(
    {
        "n": [1, 2],
        "day": [DAY, DAY],
        "at": pa.array([dt.datetime(1800, 1, 1)] * 2, pa.timestamp("us", "UTC")),
        "local": pa.array([dt.datetime(1800, 1, 1)] * 2, pa.timestamp("us")),
    }
)


def written(path: Path, pairs: dict[bytes, bytes], int96: bool = False) -> str:
    table = TABLE.replace_schema_metadata(pairs)
    pq.write_table(table, path, use_deprecated_int96_timestamps=int96)
    return str(path)


def noted(source: object, columns: list[str] | None = None, condition: str | None = None) -> int:
    scan = ps.scan(source, columns=columns, filter=condition)
    found = [scan.explain(analyze=analyze).notes for analyze in (False, True)]
    assert found[0] == found[1]
    assert all("old calendar of Spark" in note for note in found[0])
    return len(found[0])


@pytest.mark.parametrize(
    ("pairs", "days", "instants"),
    [
        ({VERSION: b"3.5.0", DATETIME: b""}, 1, 0),
        ({VERSION: b"3.5.0", INT96: b""}, 0, 1),
        ({VERSION: b"3.5.0"}, 0, 0),
        ({VERSION: b"2.4.8"}, 1, 1),
        ({VERSION: b"3.0.1"}, 0, 1),
        ({DATETIME: b"", INT96: b""}, 0, 0),  # no Spark has signed it
    ],
)
def test_explain_notes_the_old_calendar(
    tmp_path: Path, pairs: dict[bytes, bytes], days: int, instants: int
) -> None:
    path = written(tmp_path / "a.parquet", pairs)
    assert noted(path) == noted(path, ["day"]) == noted(path, ["at"]) == days
    assert noted(path, ["n"]) == 0
    assert noted(path, ["local"]) == 0  # Spark before 3.4 has no such type
    assert noted(path, ["n"], "day < date '2000-01-01'") == days
    int96 = written(tmp_path / "b.parquet", pairs, int96=True)
    assert noted(int96, ["at"]) == instants
    assert noted(int96, ["day"]) == days


def test_no_file_is_opened_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for i in range(20):
        written(tmp_path / f"{i:02}.parquet", {VERSION: b"2.4.8"})
    scan = ps.scan(str(tmp_path), filter="n > 5")
    ps.clear_cache()
    scan.explain()
    noting, before = ps.cache_info().files, ps.cache_info().misses
    monkeypatch.setattr(legacy_calendar, "calendar_note", lambda *_: None)
    ps.clear_cache()
    scan.explain()
    assert (ps.cache_info().files, ps.cache_info().misses) == (noting, before)


def test_every_time_zone_of_many_files_is_known(tmp_path: Path) -> None:
    for i in range(30):
        pairs = {VERSION: b"3.5.0", ZONE: (b"Asia/Kolkata", b"UTC", b"Europe/Paris")[i % 3]}
        if i % 3:
            pairs[DATETIME] = b""
        written(tmp_path / f"{i:02}.parquet", pairs)
    assert noted(str(tmp_path)) == 2  # one for each way that files are written
    assert ps.scan(str(tmp_path)).plan().report.old_zones == {"UTC", "Europe/Paris"}
    assert noted(str(tmp_path), ["n"]) == 0


def test_files_behind_others_without_dates_tell_their_zones(tmp_path: Path) -> None:
    for i in range(40):
        if i < 20:
            pq.write_table(pa.table({"n": [i]}), tmp_path / f"{i:02}.parquet")
        else:
            zone = (b"Asia/Kolkata", b"UTC")[i % 2]
            written(tmp_path / f"{i:02}.parquet", {VERSION: b"3.5.0", DATETIME: b"", ZONE: zone})
    assert ps.scan(str(tmp_path)).plan().report.old_zones == {"UTC", "Asia/Kolkata"}
