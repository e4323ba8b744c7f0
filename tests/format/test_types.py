"""Types of leaves equal pyarrow's, for every annotation and stored Arrow schema; options that change them."""

from __future__ import annotations

import base64
import io
import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek.format.types import Options
from support.writer import (
    BOOLEAN,
    BYTE_ARRAY,
    DATE,
    DOUBLE,
    FIXED,
    FLOAT,
    FLOAT16,
    I32,
    INT32,
    INT64,
    INT96,
    STRING,
    Column,
    Struct,
    decimal,
    integer,
    timestamp,
    write,
)

DAY = b"\1" + b"\0" * 7 + (2440588 + 3).to_bytes(4, "little")
VALUES: dict[int, list[Any]] = {
    BOOLEAN: [True, None, False],
    INT32: [1, None, -2],
    INT64: [1, None, -2],
    INT96: [DAY, None, DAY],
    FLOAT: [1.5, None, -0.25],
    DOUBLE: [1.5, None, -0.25],
    BYTE_ARRAY: [b"{}", None, b"ab"],
}
LEAVES = [(p, None) for p in range(7)] + [(FIXED, n) for n in (1, 2, 3, 12, 16, 17, 32)]
ENUM, UUID, JSON, BSON, NULL = {4: {}}, {14: {}}, {12: {}}, {13: {}}, {11: {}}
VARIANT, GEOMETRY, GEOGRAPHY = {16: {}}, {17: {}}, {18: {}}
DIGITS = ((0, 1), (2, 5), (0, 9), (2, 10), (0, 18), (3, 19), (10, 38), (10, 39), (0, 76), (0, 77))


def time(unit: int, utc: bool) -> Struct:
    return {7: {1: utc, 2: {unit: {}}}}


def annotations() -> Iterator[dict[str, Any]]:
    """Every annotation, valid for its physical type or not, and some unknown ones."""
    yield {}
    plain = [STRING, {2: {}}, {3: {}}, ENUM, DATE, {9: {}}, NULL, JSON, BSON, UUID, FLOAT16]
    plain += [VARIANT, GEOMETRY, GEOGRAPHY, {19: {}}, {25: {}}]
    plain += [integer(bits, signed) for bits in (7, 8, 16, 32, 64) for signed in (True, False)]
    plain += [time(unit, utc) for unit in (1, 2, 3, 4) for utc in (True, False)]
    plain += [timestamp(u, utc) for u in ("ms", "us", "ns") for utc in (True, False)]
    for logical in plain:
        yield {"logical": logical}
    for scale, precision in DIGITS:
        yield {"logical": {5: {1: I32(scale), 2: I32(precision)}}}
        yield {"converted": 5, "scale": scale, "precision": precision}
    for converted in (*range(26), 99, -1):
        yield {"converted": converted}


def leaf(physical: int, length: int | None, **how: Any) -> Column:
    values = VALUES.get(physical) or [bytes(range(length or 0)), None, b"\xff" * (length or 0)]
    how |= {"statistics": False, "column_index": False}
    return Column("x", physical, values, type_length=length, **how)


def pyarrow_reads(data: bytes) -> pa.Table | None:
    """The schema that pyarrow reads from a file; None if it refuses."""
    try:
        return pq.ParquetFile(io.BytesIO(data)).read()
    except (OSError, pa.ArrowException):
        return None


def check(data: bytes, case: Any) -> bool:
    """Ours is theirs where both read a file; False where pyarrow does not."""
    theirs = pyarrow_reads(data)
    try:
        ours = ps.read_table(data, out_of_range="keep")
    except ps.PageseekError:
        assert theirs is None, case
        return False
    ours.validate()
    if theirs is None:
        return False
    assert ours.schema.equals(theirs.schema, check_metadata=True), case
    if not ours.equals(theirs):  # NaN
        assert repr(ours.to_pylist()) == repr(theirs.to_pylist()), case
    return True


@pytest.mark.parametrize(("physical", "length"), LEAVES)
def test_annotations_give_the_types_of_pyarrow(physical: int, length: int | None) -> None:
    agreed = sum(check(write([leaf(physical, length, **how)]), how) for how in annotations())
    assert agreed >= 20


ZONES = (None, "UTC", "Europe/Berlin", "+02:00")
STORED = [
    pa.int8(), pa.int64(), pa.uint32(), pa.float16(), pa.float64(), pa.bool_(), pa.null(), pa.string(), pa.large_string(),
    pa.string_view(), pa.binary(), pa.large_binary(), pa.binary_view(), pa.binary(3), pa.date32(), pa.date64(),
    pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns"),
    *[pa.timestamp(unit, zone) for unit in ("s", "ms", "us", "ns") for zone in ZONES],
    *[pa.duration(unit) for unit in ("s", "ms", "us", "ns")],
    pa.decimal32(5, 2), pa.decimal32(9, 0), pa.decimal64(5, 2), pa.decimal64(18, 3), pa.decimal128(5, 2),
    pa.decimal256(5, 2), pa.decimal256(38, 10), pa.decimal256(50, 1),
    *[pa.dictionary(index, value, ordered) for index in (pa.int8(), pa.uint32(), pa.int64())
      for value in (pa.string(), pa.large_binary(), pa.int64()) for ordered in (False, True)],
    pa.json_(pa.string()), pa.json_(pa.large_string()), pa.bool8(), pa.opaque(pa.string(), "t", "v"),
    pa.opaque(pa.int32(), "t", "v"), pa.opaque(pa.large_binary(), "t", "v"), pa.opaque(pa.decimal256(5, 2), "t", ""),
    pa.opaque(pa.dictionary(pa.int32(), pa.string()), "t", "v"), pa.opaque(pa.duration("s"), "t", ""),
    pa.list_(pa.int32()), pa.struct({"a": pa.int32()}), pa.month_day_nano_interval(),
]  # fmt: skip
ANNOTATED: list[tuple[int, int | None, Any]] = [
    *[(physical, length, None) for physical, length in LEAVES],
    *[(BYTE_ARRAY, None, logical) for logical in (STRING, ENUM, JSON, BSON, GEOMETRY)],
    (FIXED, 2, FLOAT16),
    (INT32, None, integer(8, True)),
    (INT32, None, integer(32, False)),
    (INT32, None, DATE),
    (INT32, None, time(1, True)),
    (INT64, None, time(3, False)),
    *[(INT64, None, timestamp(u, utc)) for u in ("ms", "us", "ns") for utc in (True, False)],
    *[(p, n, decimal(5, 2)["logical"]) for p, n in ((INT32, None), (FIXED, 3), (BYTE_ARRAY, None))],
    (INT64, None, decimal(18, 3)["logical"]),
    (FIXED, 16, decimal(38, 10)["logical"]),
]


@pytest.mark.covering(2)
@pytest.mark.parametrize(("physical", "length", "logical"), ANNOTATED)
def test_stored_schemas_change_what_pyarrow_lets_them(
    physical: int, length: int | None, logical: Any
) -> None:
    for stored in STORED:
        field = pa.field("x", stored, metadata={"kept": "yes"})
        blob = base64.b64encode(pa.schema([field]).serialize().to_pybytes())
        data = write([leaf(physical, length, logical=logical)], key_values={b"ARROW:schema": blob})
        assert check(data, stored)


def test_types_that_contradict_the_stored_schema_stay_those_of_parquet() -> None:
    for physical, length, logical, stored, wanted in (
        (BYTE_ARRAY, None, JSON, pa.uuid(), pa.json_(pa.string())),
        (FIXED, 16, UUID, pa.json_(pa.string()), pa.uuid()),
    ):
        blob = base64.b64encode(pa.schema({"x": stored}).serialize().to_pybytes())
        column = leaf(physical, length, logical=logical)
        data = write([column], key_values={b"ARROW:schema": blob})
        assert ps.read_table(data).schema.types == [wanted]


class Registered(pa.ExtensionType):  # type: ignore[misc]
    """A type of this process, whose code a file must not run."""

    made = 0

    def __init__(self) -> None:
        super().__init__(pa.int64(), "pageseek.tests")

    def __arrow_ext_serialize__(self) -> bytes:
        return b"how"

    @classmethod
    def __arrow_ext_deserialize__(cls, storage: pa.DataType, text: bytes) -> Registered:
        cls.made += 1
        return cls()


def test_extension_types_of_others_are_their_storage_and_keep_their_name() -> None:
    array = pa.ExtensionArray.from_storage(Registered(), pa.array([1, None]))
    sink = io.BytesIO()
    pq.write_table(pa.table({"x": array}), sink)
    unknown = pq.read_schema(io.BytesIO(sink.getvalue()))
    pa.register_extension_type(Registered())
    try:
        made = Registered.made
        table = ps.read_table(sink.getvalue())
        assert Registered.made == made
    finally:
        pa.unregister_extension_type("pageseek.tests")
    assert table.schema.equals(unknown, check_metadata=True)
    assert table.schema.field("x").metadata[b"ARROW:extension:name"] == b"pageseek.tests"


@pytest.mark.parametrize("encoding", ["plain", "dictionary", "split", "delta-strings"])
def test_timestamps_of_twelve_bytes(encoding: str) -> None:
    numbers = [0, 1, -1, None, (1 << 63) - 1, -(1 << 63)] * 40
    values = [None if v is None else v.to_bytes(12, "little", signed=True) for v in numbers]
    how: dict[str, Any] = {
        "type_length": 12,
        "logical": timestamp("us", True),
        "encodings": encoding,
    }
    data = write([Column("x", FIXED, values, **how)])
    table = ps.read_table(data)
    assert table.schema.field("x").type == pa.timestamp("us", "UTC")
    assert table["x"].cast(pa.int64()).to_pylist() == numbers
    if encoding in ("plain", "dictionary"):
        assert table.equals(pq.read_table(io.BytesIO(data)))
    some = ps.read_table(data, filter=ps.col("x").is_null())
    assert some["x"].null_count == len(some) == 40
    values[7] = (1 << 63).to_bytes(12, "little", signed=True)
    with pytest.raises(ps.LimitError, match=r"column 'x'.*12 bytes does not fit 64 bits"):
        ps.read_table(write([Column("x", FIXED, values, **how)]))


# ---- options -------------------------------------------------------------------------------------


def words() -> pa.Table:
    rng = np.random.default_rng(5)
    texts = [None if i % 7 == 0 else f"w{rng.integers(40)} " * (i % 5) for i in range(500)]
    table = pa.table({"s": pa.array(texts), "b": pa.array(texts).cast(pa.binary())})
    table = table.append_column("large", table["s"].cast(pa.large_string()))
    table = table.append_column("view", table["s"].cast(pa.string_view()))
    table = table.append_column("word", table["s"].combine_chunks().dictionary_encode())
    storage = pa.array(["{}" if i % 3 else None for i in range(500)])
    table = table.append_column("j", pa.ExtensionArray.from_storage(pa.json_(), storage))
    table = table.append_column("n", pa.array(range(500)))
    return table.append_column("fixed", pa.array([b"abc"] * 500, pa.binary(3)))


def as_file(table: pa.Table, **layout: Any) -> bytes:
    sink = io.BytesIO()
    pq.write_table(
        table, sink, row_group_size=200, data_page_size=400, write_page_index=True, **layout
    )
    return sink.getvalue()


CONDITIONS = [
    None,
    ps.col("s") == "w3 ",
    ps.col("s").is_null(),
    (ps.col("s") > "w2") & (ps.col("n") < 90),
]


@pytest.mark.parametrize("dictionary", [True, False])
def test_strings_come_out_as_views(dictionary: bool) -> None:
    data = as_file(words(), use_dictionary=dictionary)
    view, binary = pa.string_view(), pa.binary_view()
    for condition in CONDITIONS:
        found = ps.read_table(data, filter=condition, string_type="view")
        found.validate(full=True)
        assert found.schema == ps.scan(data, string_type="view").schema
        coded = pa.dictionary(pa.int32(), pa.string())
        js = pa.json_(view)
        assert found.schema.types == [view, binary, view, view, coded, js, pa.int64(), pa.binary(3)]
        assert found.to_pylist() == ps.read_table(data, filter=condition).to_pylist()
        batches = list(
            ps.scan(data, filter=condition, string_type="view", batch_size=33).to_batches()
        )
        assert pa.Table.from_batches(batches, found.schema).equals(found)


def test_few_views_do_not_keep_many_alive() -> None:
    data = as_file(pa.table({"s": [f"a text of some length {i}" * 20 for i in range(20_000)]}))
    for options in ({}, {"limit": 3}):
        found = ps.read_table(
            data, filter=ps.col("s").isin([f"a text of some length {i}" * 20 for i in (7, 40)]),
            string_type="view", **options,
        )  # fmt: skip
        assert len(found) == 2
        assert sum(b.size for c in found["s"].chunks for b in c.buffers() if b) < 8192
    assert ps.read_table(data, limit=3, string_type="view").nbytes < 8192


@pytest.mark.parametrize("dictionary", [True, False])
@pytest.mark.parametrize("string_type", ["string", "large", "view"])
def test_columns_come_out_as_dictionaries(dictionary: bool, string_type: str) -> None:
    data = as_file(words(), use_dictionary=dictionary)
    names = ["s", "b", "large", "view", "word"]
    theirs = pq.read_table(io.BytesIO(data), read_dictionary=names)
    scan = ps.scan(data, dictionary_columns=names, string_type=string_type)
    for name in names:
        assert scan.schema.field(name).type == theirs.schema.field(name).type
    for condition in CONDITIONS:
        found = scan.filter(condition).to_table()
        found.validate(full=True)
        assert found.schema == scan.schema
        assert found.to_pylist() == ps.read_table(data, filter=condition).to_pylist()
    if string_type == "string":
        assert (
            ps.read_table(data, dictionary_columns=names).cast(theirs.schema).to_pylist()
            == theirs.to_pylist()
        )


def test_codes_come_out_with_the_dictionary_of_the_file() -> None:
    data = as_file(words(), use_dictionary=True)
    names = ["s", "b", "large", "view", "word"]
    theirs = pq.ParquetFile(io.BytesIO(data), read_dictionary=names).read(columns=names)
    ours = ps.read_table(data, columns=names, dictionary_columns=names)
    assert ours.schema.types == theirs.schema.types
    for name in names:  # pyarrow joins row groups, of which each has its own dictionary
        assert ours[name].num_chunks == 3
        assert ours[name].unify_dictionaries().equals(theirs[name].unify_dictionaries())
    few = ps.read_table(data, columns=["s"], filter=ps.col("n") == 8, dictionary_columns=["s"])
    (chunk,) = few["s"].chunks
    assert len(chunk.dictionary) == 1


def coded(values: list[Any], **how: Any) -> bytes:
    how = {"logical": STRING, "encodings": "dictionary", "pages": [2, 3, len(values) - 5]} | how
    return write(
        [Column("x", BYTE_ARRAY, values, **how), Column("n", INT32, list(range(len(values))))]
    )


@pytest.mark.parametrize("condition", [None, ps.col("n") > 2, ps.col("x") == "b"])
def test_codes_that_cannot_be_kept_are_read_as_values(condition: Any) -> None:
    values = [b"a", b"b", None, b"c", b"b", None, b"a", b"b"]

    def all_codes(meta: Struct) -> None:
        meta[13] = [{1: I32(0), 2: I32(8), 3: I32(3)}]

    mixed = ["dictionary", "plain", "dictionary"]
    for how in (
        {"encodings": mixed},
        {"encodings": mixed, "edit_chunk": all_codes},  # the statistics of encodings lie
        {"dictionary": [b"a", b"c", b"b", b"b", b"a"]},
        {"dictionary": [b"a", b"c", b"\xff", b"b"]},  # not text, and no row has it
        {"dictionary": [b"z", b"a", b"c", b"b"], "version": 2, "codec": "zstd"},
    ):
        data = coded(values, **how)
        plain = ps.read_table(data, filter=condition)
        found = ps.read_table(data, filter=condition, dictionary_columns=["x"])
        found.validate(full=True)
        assert found.to_pylist() == plain.to_pylist()
        assert pa.types.is_dictionary(found["x"].type)
        for options in ({}, {"dictionary_columns": ["x"]}):
            report = ps.scan(data, filter=condition, **options).explain(analyze=True).to_dict()
            assert (
                report["pages"]
                == ps.scan(data, filter=condition).explain(analyze=True).to_dict()["pages"]
            )


def test_faults_of_codes_are_those_of_values() -> None:
    values = [b"a", b"b", None, b"c", b"b", None, b"a", b"b"]
    for how in (
        {"edit_body": lambda page, body: body[:-1] + b"\x7f" if page == 2 else body},
        {"edit_body": lambda page, body: body[:-2] if page == 1 else body},
        {"dictionary": [b"a", b"\xff", b"c", b"b"], "values": [b"\xff", *values]},
        {"edit_bytes": lambda page, body: body[:-1] if page == -1 else body},
    ):
        data = coded(how.pop("values", values), **how)
        with pytest.raises(ps.CorruptFileError) as plain:
            ps.read_table(data)
        with pytest.raises(ps.CorruptFileError) as kept:
            ps.read_table(data, dictionary_columns=["x"])
        assert str(kept.value) == str(plain.value)


def test_dictionaries_over_pages_that_fall_back_to_plain() -> None:
    values = [b"a", b"b", None, b"c", b"a", b"zz", b"b", None]
    column = Column(
        "x", BYTE_ARRAY, values, pages=[3, 2, 3], logical=STRING,
        encodings=["dictionary", "plain", "dictionary"],
    )  # fmt: skip
    (found,) = ps.read_table(write([column]), dictionary_columns=["x"])["x"].chunks
    assert found.dictionary.to_pylist() == ["a", "b", "c", "zz"]
    assert found.to_pylist() == [None if v is None else v.decode() for v in values]


def test_dictionary_columns_that_cannot_be() -> None:
    data = as_file(words())
    with pytest.raises(ps.PredicateError, match="no column 'nope'; there are 's', 'b'"):
        ps.read_table(data, dictionary_columns=["s", "nope"])
    for name in ("n", "fixed", "j"):
        with pytest.raises(ps.UnsupportedError, match=f"{name!r} cannot come out as a dictionary"):
            ps.read_table(data, columns=["s"], dictionary_columns=[name])
    with pytest.raises(TypeError, match="a list of names"):
        ps.scan(data, dictionary_columns="s")


@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize("index", [pa.int8(), pa.uint16(), pa.int64()])
def test_dictionaries_keep_their_codes_type_and_their_order(
    index: pa.DataType, ordered: bool
) -> None:
    codes = pa.array([1, None, 0, 1], index)
    array = pa.DictionaryArray.from_arrays(codes, pa.array(["a", "b"]), ordered=ordered)
    data = as_file(pa.table({"x": array}))
    assert ps.read_table(data)["x"].type == array.type
    assert ps.read_table(data)["x"].to_pylist() == array.to_pylist()
    assert ps.read_table(data, filter=ps.col("x") == "b")["x"].to_pylist() == ["b", "b"]


def test_more_values_than_the_stored_codes_can_tell_apart_name_the_remedy() -> None:
    schema = pa.schema({"x": pa.dictionary(pa.int8(), pa.string())})
    blob = base64.b64encode(schema.serialize().to_pybytes())
    values = [str(i).encode() for i in range(200)]
    column = Column("x", BYTE_ARRAY, values, logical=STRING)
    data = write([column], key_values={b"ARROW:schema": blob})
    with pytest.raises(
        ps.LimitError, match=r"column 'x'.*200 distinct values.*dictionary_columns="
    ):
        ps.read_table(data)
    assert len(ps.read_table(data, dictionary_columns=["x"])) == 200


def test_options_are_part_of_a_plan() -> None:
    options = [
        Options(string_type=t, dictionary_columns=d)
        for t, d in itertools.product(("view", "large"), ((), ("s",)))
    ]
    assert len(set(options)) == 4
