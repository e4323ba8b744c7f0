"""`pageseek schema`: columns and their types."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.command import run

NESTED = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("tags", pa.list_(pa.string())),
        pa.field("pairs", pa.map_(pa.string(), pa.int32())),
        pa.field("place", pa.struct([pa.field("x", pa.float64()), pa.field("day", pa.date32())])),
        pa.field("kind", pa.dictionary(pa.int32(), pa.string())),
    ]
)


@pytest.fixture
def nested(tmp_path: Path) -> str:
    row = {"id": 1, "tags": ["a"], "pairs": [("k", 1)], "place": None, "kind": "z"}
    made = tmp_path / "nested.parquet"
    pq.write_table(pa.Table.from_pylist([row], NESTED), made)
    return str(made)


def test_nesting_is_indented_and_leaves_have_their_parquet_types(
    nested: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = run(capsys, "schema", nested)
    assert code == 0
    lines = out.splitlines()
    assert lines[0].split() == ["column", "type", "null", "stored", "as"]
    assert lines[2].split() == ["id", "int64", "no", "INT64"]
    assert [line for line in lines if line.startswith("  ")] == [
        line for line in lines if line.split()[0] in ("element", "key", "value", "x", "day")
    ]
    assert next(line for line in lines if "day" in line).split()[1:] == ["date32[day]", "yes", "INT32", "(DATE)"]  # fmt: skip
    assert next(line for line in lines if "key" in line).split()[2] == "no"


def test_json_has_children_and_physical_types(
    nested: str, capsys: pytest.CaptureFixture[str]
) -> None:
    found = {
        field["name"]: field for field in json.loads(run(capsys, "schema", nested, "--json")[1])
    }
    assert list(found) == NESTED.names
    assert found["id"] == {
        "name": "id", "type": "int64", "nullable": False, "physical_type": "INT64", "logical_type": "NONE",
    }  # fmt: skip
    assert [child["name"] for child in found["pairs"]["children"]] == ["key", "value"]
    (element,) = found["tags"]["children"]
    day = found["place"]["children"][1]
    # a path in the file has names of its own for lists: their leaves are found all the same
    assert (day["physical_type"], element["physical_type"]) == ("INT32", "BYTE_ARRAY")


def test_several_files_have_one_schema(
    nested: str, path: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pq.write_table(pa.table({"id": [1], "more": [2.5]}), tmp_path / "other.parquet")
    out = run(capsys, "schema", nested, str(tmp_path / "other.parquet"))[1]
    assert "more" in out and "stored as" not in out
    out = run(capsys, "schema", path, "--arrow")[1]
    assert "scattered: int64" in out
