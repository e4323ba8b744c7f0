"""Features that tables of Delta Lake name (Delta protocol, Valid Feature Names in Table Features), and columns that are variants."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek.base.errors import UnsupportedError
from support.delta_logs import MAPPING, Log, field

deltalake = pytest.importorskip("deltalake", reason="pip install 'pageseek[delta]'")

OF_WRITERS = [
    "appendOnly", "invariants", "checkConstraints", "generatedColumns", "allowColumnDefaults", "changeDataFeed", "identityColumns",
    "rowTracking", "domainMetadata", "icebergCompatV1", "icebergCompatV2", "clustering", "inCommitTimestamp",
    # of drafts of the protocol
    "icebergCompatV3", "icebergWriterCompatV1", "materializePartitionColumns", "checkpointProtection", "one of tomorrow",
]  # fmt: skip
OF_READERS = [
    "columnMapping", "deletionVectors", "timestampNtz", "v2Checkpoint", "vacuumProtocolCheck", "typeWidening", "variantType",
    "variantShredding", "typeWidening-preview", "variantType-preview", "variantShredding-preview",
]  # fmt: skip
# what some ask for
ALSO = {
    "rowTracking": ["domainMetadata"], "clustering": ["domainMetadata"], "icebergCompatV1": ["columnMapping"],
    "icebergCompatV2": ["columnMapping"], "icebergCompatV3": ["columnMapping"], "icebergWriterCompatV1": ["columnMapping"],
    "variantShredding": ["variantType"], "variantShredding-preview": ["variantType"],
}  # fmt: skip


@pytest.mark.parametrize("as_object", [False, True])
@pytest.mark.parametrize("name", [*OF_WRITERS, *OF_READERS])
def test_features_that_concern_no_column(tmp_path: Path, name: str, as_object: bool) -> None:
    names = [name, *ALSO.get(name, ())]
    of_readers = [one for one in names if one in OF_READERS]
    log = Log(tmp_path / "t", [field("a", "long")], features=of_readers, writers=names)
    log.add("0.parquet", pa.table({"a": [1, 2]}))
    source = deltalake.DeltaTable(str(log.root)) if as_object else str(log.root)
    assert ps.scan(source, filter=ps.col("a") > 1).to_pylist() == [{"a": 2}]


@pytest.mark.parametrize("name", ["catalogManaged", "one of tomorrow"])
def test_features_that_deltalake_does_not_have(tmp_path: Path, name: str) -> None:
    log = Log(tmp_path / "t", [field("a", "long")], features=[name])
    log.add("0.parquet", pa.table({"a": [1, 2]}))
    with pytest.raises(
        UnsupportedError, match=r"Delta table .*/t: deltalake \d.*(catalog|tomorrow)"
    ):
        ps.read_table(str(log.root))


VARIANT = pa.struct([("metadata", pa.binary()), ("value", pa.binary())])
ROWS = [{"metadata": b"\1\0\0", "value": b"\x0c\1"}, None, {"metadata": b"\1\0\0", "value": b"\0"}]
SHREDDED = [{"metadata": b"\1\0\0", "value": None, "typed_value": 5}]


def variants(root: Path, rows: list[Any], mode: str = "none") -> Log:
    """A table with a variant at the top, in a struct, in a list and in a map."""
    shredded = rows is SHREDDED
    numbers = {"a": 1, "v": 2, "s": 3, "x": 4, "w": 5, "l": 6, "m": 7}

    def told(name: str, kind: Any) -> dict[str, Any]:
        own = {f"{MAPPING}.id": numbers[name], f"{MAPPING}.physicalName": f"c{numbers[name]}"}
        return field(name, kind, **({} if mode == "none" else own))

    def stored(name: str, kind: pa.DataType) -> pa.Field:
        about = {b"PARQUET:field_id": str(numbers[name]).encode()}
        named = {"none": name, "name": f"c{numbers[name]}", "id": f"other {name}"}[mode]
        return pa.field(named, kind, metadata=about if mode == "id" else None)

    fields = [
        told("a", "long"), told("v", "variant"), told("s", {"type": "struct", "fields": [told("x", "long"), told("w", "variant")]}),
        told("l", {"type": "array", "elementType": "variant", "containsNull": True}),
        told("m", {"type": "map", "keyType": "string", "valueType": "variant", "valueContainsNull": True}),
    ]  # fmt: skip
    features = ["variantType", *(["variantShredding"] if shredded else []), *(["columnMapping"] if mode != "none" else [])]  # fmt: skip
    log = Log(root, fields, features=features, settings={f"{MAPPING}.mode": mode})
    kind = pa.struct([*VARIANT, ("typed_value", pa.int64())]) if shredded else VARIANT
    schema = pa.schema(
        [
            stored("a", pa.int64()), stored("v", kind), stored("s", pa.struct([stored("x", pa.int64()), stored("w", kind)])),
            stored("l", pa.list_(kind)), stored("m", pa.map_(pa.string(), kind)),
        ]
    )  # fmt: skip
    x, w = (one.name for one in schema.field(2).type)
    columns = [range(len(rows)), rows, [{x: i, w: one} for i, one in enumerate(rows)], [[one] for one in rows], [[("k", one)] for one in rows]]  # fmt: skip
    arrays = [pa.array(values, one.type) for values, one in zip(columns, schema, strict=True)]
    log.add("0.parquet", pa.Table.from_arrays(arrays, schema=schema))
    return log


@pytest.mark.parametrize("mode", ["none", "name", "id"])
def test_variants_come_out_as_their_two_parts(tmp_path: Path, mode: str) -> None:
    log = variants(tmp_path / "t", ROWS, mode)
    found = ps.read_table(str(log.root))
    assert found.to_pylist() == [
        {"a": i, "v": one, "s": {"x": i, "w": one}, "l": [one], "m": [("k", one)]}
        for i, one in enumerate(ROWS)
    ]
    pq.write_table(found, tmp_path / "again.parquet")
    assert pq.read_table(tmp_path / "again.parquet").to_pylist() == found.to_pylist()
    narrow = ps.read_table(str(log.root), columns=["s.w.value", "a"], filter="v.value is not null")
    assert narrow.to_pylist() == [
        {"s": {"w": {"value": one["value"]}}, "a": i} for i, one in enumerate(ROWS) if one
    ]
    assert ps.scan(str(log.root), filter="v is null").count_rows() == 1
    assert ps.scan(str(log.root), filter=ps.col("v.value") == b"\0").count_rows() == 1


def test_variants_are_those_of_deltalake(tmp_path: Path) -> None:
    """It gives pyarrow none that are null."""
    at = str(variants(tmp_path / "t", ROWS[:1]).root)
    found, other = ps.read_table(at), deltalake.DeltaTable(at).to_pyarrow_table()
    assert found.column_names == other.column_names and found.to_pylist() == other.to_pylist()


@pytest.mark.parametrize("mode", ["none", "name", "id"])
def test_variants_that_are_shredded_are_refused_where_they_are_read(
    tmp_path: Path, mode: str
) -> None:
    at = str(variants(tmp_path / "t", SHREDDED, mode).root)
    assert ps.read_table(at, columns=["a", "s.x"]).to_pylist() == [{"a": 0, "s": {"x": 0}}]
    assert ps.scan(at, filter="s.x = 0").count_rows() == 1 == ps.scan(at).count_rows()
    for columns in (["v"], ["a", "v.value"], ["s"], ["s.w"], ["s.w.value"], ["l"], ["m"], None):
        with pytest.raises(
            UnsupportedError, match=r"0\.parquet: column '[vslm]': its variants are shredded"
        ):
            ps.read_table(at, columns=columns)
    for condition in (
        ps.col("v.value").is_null(),
        ps.col("s.w.value") == b"\0",
        ps.col("v.metadata") != b"",
    ):
        with pytest.raises(
            UnsupportedError, match=r"0\.parquet: column '[vs]': its variants are shredded"
        ):
            ps.scan(at, filter=condition).count_rows()
