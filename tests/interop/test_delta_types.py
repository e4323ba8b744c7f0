"""Columns of a Delta Lake table whose type was widened: files of before have the narrower type (Delta protocol, Type Widening)."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from support.delta_logs import wrapped

pytest.importorskip("deltalake", reason="pip install 'pageseek[delta]'")

D = Decimal
DAYS = [dt.date(2020, 1, 1), dt.date(1969, 12, 31)]
MIDNIGHTS = [dt.datetime(2020, 1, 1), dt.datetime(1969, 12, 31)]
NOON = dt.datetime(2020, 1, 1, 12)
# the type of before and its values; the type in the log, that of Arrow, the same values, and one that only it has
WIDENINGS = [
    (pa.int8(), [1, -128], "short", pa.int16(), [1, -128], 300),
    (pa.int8(), [1, -128], "integer", pa.int32(), [1, -128], 70_000),
    (pa.int8(), [1, -128], "long", pa.int64(), [1, -128], 2**40),
    (pa.int16(), [1, -300], "integer", pa.int32(), [1, -300], 70_000),
    (pa.int16(), [1, -300], "double", pa.float64(), [1.0, -300.0], 0.5),
    (pa.int32(), [1, -(2**31)], "long", pa.int64(), [1, -(2**31)], 2**40),
    (pa.int32(), [1, -(2**31)], "double", pa.float64(), [1.0, -(2.0**31)], 0.5),
    (pa.float32(), [0.1, -1.5], "double", pa.float64(), [0.10000000149011612, -1.5], 1e300),
    (pa.int8(), [1, -128], "decimal(10,0)", pa.decimal128(10, 0), [D(1), D(-128)], D(10**9)),
    (pa.int32(), [1, -7], "decimal(12,2)", pa.decimal128(12, 2), [D("1.00"), D("-7.00")], D("0.25")),
    (pa.int64(), [1, -7], "decimal(22,1)", pa.decimal128(22, 1), [D("1.0"), D("-7.0")], D("0.5")),
    (pa.decimal128(5, 2), [D("1.25"), D("-7")], "decimal(10,4)", pa.decimal128(10, 4), [D("1.25"), D("-7")], D("0.0001")),
    (pa.decimal128(9, 2), [D("1.25"), D("-7")], "decimal(30,2)", pa.decimal128(30, 2), [D("1.25"), D("-7")], D("1e25")),
    (pa.date32(), DAYS, "timestamp_ntz", pa.timestamp("us"), MIDNIGHTS, NOON),
]  # fmt: skip


def table_of(root: Path, kind: str, files: list[pa.Array], stats: bool) -> str:
    """A table of one column `a`, also inside of a struct, a list and a map."""

    def field(name: str, kind: Any) -> dict[str, Any]:
        return {"name": name, "type": kind, "nullable": True, "metadata": {}}

    array = {"type": "array", "elementType": kind, "containsNull": True}
    pairs = {"type": "map", "keyType": "string", "valueType": kind, "valueContainsNull": True}
    fields = [
        field("a", kind), field("s", {"type": "struct", "fields": [field("x", kind)]}), field("l", array), field("m", pairs)
    ]  # fmt: skip
    features = ["typeWidening", "timestampNtz"]
    actions: list[dict[str, Any]] = [
        {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": features, "writerFeatures": features}},
        {
            "metaData": {
                "id": "0c2c", "format": {"provider": "parquet", "options": {}}, "partitionColumns": [],
                "schemaString": json.dumps({"type": "struct", "fields": fields}), "configuration": {}, "createdTime": 1,
            }
        },
    ]  # fmt: skip
    (root / "_delta_log").mkdir(parents=True)
    for i, values in enumerate(files):
        pq.write_table(wrapped(values), root / f"{i}.parquet")
        told: dict[str, Any] = {"numRecords": len(values)}
        if stats:
            rows = values.drop_null().to_pylist()
            low, high = (
                one if isinstance(one, int | float) else str(one) for one in (min(rows), max(rows))
            )
            told |= {
                "minValues": {"a": low},
                "maxValues": {"a": high},
                "nullCount": {"a": values.null_count},
            }
        add = {
            "path": f"{i}.parquet",
            "partitionValues": {},
            "size": 1,
            "modificationTime": 1,
            "dataChange": True,
        }
        actions.append({"add": add | {"stats": json.dumps(told)}})
    (root / "_delta_log" / f"{0:020}.json").write_text("\n".join(map(json.dumps, actions)))
    return str(root)


def test_moments_that_files_do_not_call_moments(tmp_path: Path) -> None:
    """Early releases of delta-rs wrote them so; all readers take them as UTC."""
    moments = [dt.datetime(2020, 1, 1, 12, 0, 0, 5), dt.datetime(1969, 12, 31), None]
    files = [
        pa.array(moments, pa.timestamp("us")),
        pa.array(moments[:1], pa.timestamp("us", "UTC")),
    ]
    root = table_of(tmp_path / "t", "timestamp", files, False)
    found = ps.read_table(root)
    kind = pa.timestamp("us", "UTC")
    assert found.equals(wrapped(pa.array([*moments, moments[0]], kind)).cast(found.schema))
    assert found.schema.field("a").type == kind
    for column in (ps.col("a"), ps.col("s.x"), ps.col("l").any()):
        moment = dt.datetime(2020, 1, 1, 12, 0, 0, 5, dt.UTC)
        assert ps.scan(root, filter=column == moment).count_rows() == 2
    local = table_of(tmp_path / "n", "timestamp_ntz", files[:1], False)
    assert ps.read_table(local)["a"].to_pylist() == moments


@pytest.mark.parametrize("stats", [False, True])
@pytest.mark.parametrize("case", range(len(WIDENINGS)))
def test_a_wider_type(tmp_path: Path, case: int, stats: bool) -> None:
    narrow, old, kind, wide, same, new = WIDENINGS[case]
    files = [pa.array([*old, None], narrow), pa.array([new], wide)]
    root = table_of(tmp_path / "t", kind, files, stats)
    found = ps.read_table(root)
    expected = pa.array([*same, None, new], wide)
    assert found.equals(wrapped(expected).cast(found.schema))
    assert found.schema.field("a").type == wide
    for value, n in ((same[0], 1), (same[1], 1), (new, 1)):
        for column in (ps.col("a"), ps.col("s.x"), ps.col("l").any()):
            assert ps.scan(root, filter=column == value).count_rows() == n, (column, value)
    assert ps.scan(root, filter="a is null").count_rows() == 1
    above = sum(value > same[1] for value in (*same, new))
    assert ps.scan(root, filter=ps.col("a") > same[1]).count_rows() == above
