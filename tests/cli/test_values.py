"""Values that Python does not hold: far dates, nanoseconds, names that occur twice, bounds that are no UTF-8."""

from __future__ import annotations

import datetime as dt
import json
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pageseek.cli.values import plain
from support.command import run

FAR = 2**62


def numbers(kind: pa.DataType, *values: int | None) -> pa.Array:
    wide = pa.int32() if kind.bit_width == 32 else pa.int64()
    return pa.array(values, wide).view(kind)


@pytest.mark.parametrize(
    ("kind", "value", "said"),
    [
        (pa.timestamp("us"), FAR, f"{FAR} us"),
        (pa.timestamp("us", "UTC"), FAR, f"{FAR} us"),
        (pa.timestamp("us", "Europe/Berlin"), FAR, f"{FAR} us"),
        (pa.timestamp("us", "No/Where"), 1_500, "1970-01-01T00:00:00.001500+00:00"),
        (pa.timestamp("us", "+05:30"), 0, "1970-01-01T05:30:00+05:30"),
        (pa.timestamp("ns", "UTC"), 1, "1970-01-01T00:00:00.000000001+00:00"),
        (pa.timestamp("s"), 253_402_300_800, "10000-01-01T00:00:00"),
        (pa.date32(), 2**30, f"{2**30} days"),
        (pa.date32(), 0, "1970-01-01"),
        (pa.time64("ns"), 3, "00:00:00.000000003"),
        (pa.time64("us"), -1, "-1 us"),
        (pa.duration("s"), FAR, "53375995583650 days, 7:45:04"),
    ],
)
def test_times_are_text_whatever_their_number(kind: pa.DataType, value: int, said: str) -> None:
    assert plain(numbers(kind, value, None)) == [said, None]


def test_durations_are_as_python_writes_them() -> None:
    for n in (-1, 0, 1_500, 86_400 * 10**6, 5 * 10**12):
        assert plain(numbers(pa.duration("us"), n)) == [str(dt.timedelta(microseconds=n))]


def test_times_within_lists_structs_and_maps_are_text() -> None:
    day, said = dt.date(2024, 1, 1), "2024-01-01"
    inner = pa.list_(pa.list_(pa.date32()))
    kind = pa.struct([("m", pa.map_(pa.string(), pa.date32())), ("l", inner), ("n", pa.int8())])
    rows = [
        {"m": [("a", day)], "l": [[day, None], None, []], "n": 1},
        None,
        {"m": None, "l": None, "n": None},
    ]
    made = [{"m": [("a", said)], "l": [[said, None], None, []], "n": 1}, None, rows[2]]
    values = pa.array(rows, kind)
    assert [plain(values[i:]) for i in range(4)] == [made[i:] for i in range(4)]
    pairs = pa.array([[day, day], None, [day, None]], pa.list_(pa.date32(), 2))
    assert plain(pairs[1:]) == [None, [said, None]]
    assert plain(pa.array([day, None]).dictionary_encode()) == [said, None]


def written(tmp_path: Path, table: pa.Table) -> str:
    made = str(tmp_path / "made.parquet")
    pq.write_table(table, made, write_page_index=True, store_schema=True)
    return made


@pytest.mark.parametrize("kind", [pa.timestamp("us"), pa.date32(), pa.timestamp("us", "UTC")])
def test_far_times_are_shown_by_every_command(
    kind: pa.DataType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    far = 2**30 if kind.bit_width == 32 else FAR
    moments = numbers(kind, far, far)
    path = written(tmp_path, pa.table({"a": moments, "l": pa.array([[1], []], pa.list_(kind))}))
    for arguments in (["head"], ["scan"], ["scan", "--json"], ["inspect"], ["inspect", "--column", "a"], ["inspect", "--json"]):  # fmt: skip
        code, out, err = run(capsys, *arguments, path)
        assert (code, err) == (0, "") and str(far) in out, (arguments, out, err)
    code, out, err = run(capsys, "scan", path, "--format", "csv")
    assert code == 1 and "'a'" in err and str(far) in err and "<value" not in out


def test_nanoseconds_need_no_pandas(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    kinds = {"a": pa.timestamp("ns"), "b": pa.time64("ns"), "c": pa.duration("ns")}
    path = written(tmp_path, pa.table({n: numbers(kind, 1) for n, kind in kinds.items()}))
    code, out, _ = run(capsys, "scan", path, "--json")
    a, b = "1970-01-01T00:00:00.000000001", "00:00:00.000000001"
    assert code == 0 and json.loads(out) == {"a": a, "b": b, "c": "0:00:00.000000001"}
    for command in ("scan", "inspect"):
        code, out, _ = run(capsys, command, path)
        assert code == 0 and a.replace("T", " ")[:20] in out and b in out


@pytest.mark.parametrize("form", ["jsonl", "csv", "table"])
def test_names_that_occur_twice_lose_no_value(
    form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one, two = pa.array([1]), pa.array([3])
    path = written(tmp_path, pa.Table.from_arrays([one, two], ["a", "a"]))
    code, out, err = run(capsys, "scan", path, "--format", form)
    if form == "jsonl":
        assert (code, out) == (1, "") and "several columns have the name 'a'" in err
    else:
        assert code == 0 and "1" in out and "3" in out
    twice: Any = pa.StructArray.from_arrays([one, two], ["x", "x"])
    for values in (twice, pa.ListArray.from_arrays(pa.array([0, 1], pa.int32()), twice)):
        path = written(tmp_path, pa.table({"s": values}))
        code, out, err = run(capsys, "scan", path, "--format", form)
        assert (code, out) == (1, ""), out
        assert "column 's': several fields of a struct have the name 'x'" in err


def test_bounds_that_are_no_utf8_are_hexadecimal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = Path(written(tmp_path, pa.table({"a": ["xyz", "xyz"]})))
    body = path.read_bytes()
    start = body.rindex(b"PAR1", 0, 8) + 4  # of the data; the bounds are behind
    cut = body.index(b"xyz", start) + 3
    path.write_bytes(body[:cut] + body[cut:].replace(b"xyz", b"xy\xe6"))
    for arguments in (["inspect"], ["inspect", "--column", "a"], ["inspect", "--json"]):
        code, out, err = run(capsys, *arguments, str(path))
        assert (code, err) == (0, "") and "7879e6" in out, (arguments, err)


@pytest.mark.parametrize("command", ["scan", "inspect"])
def test_numbers_are_shown_whole(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    long = Decimal("-1234567890123456789012345678.1234567890")
    columns = {
        "a": pa.array([1234567.89]),
        "b": pa.array([-2.2250738585072014e-308]),
        "c": pa.array([0.1], pa.float32()),
        "d": pa.array([0.1], pa.float16()),
        "e": pa.array([long]),
    }
    path = written(tmp_path, pa.table(columns))
    code, out, _ = run(capsys, command, path)
    assert code == 0 and "  0.1  " in out
    for said in ("1234567.89", "-2.2250738585072014e-308", str(long)):
        assert said in out.split()
    assert "0.100000001" not in out and "0.0999" not in out
