"""The metadata core, compared with pyarrow and with a slow, simple Thrift decoder."""

from __future__ import annotations

import datetime
import decimal
import io
import pickle
import random
import struct
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pageseek._core import metadata

ABSENT = metadata.ABSENT

# ---- the oracle: Thrift compact protocol, any struct, as {field id: (wire type, value)} ----------

TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT, UUID = range(1, 14)


class Bytes(bytes):
    """A byte string and its offset."""

    at: int


def varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        value |= (data[at] & 0x7F) << shift
        shift += 7
        at += 1
        if data[at - 1] < 0x80:
            return value, at


def zigzag(data: bytes, at: int) -> tuple[int, int]:
    value, at = varint(data, at)
    return value >> 1 ^ -(value & 1), at


def decode(data: bytes, at: int, kind: int, element: bool = False) -> tuple[Any, int]:
    if kind in (TRUE, FALSE):
        return (data[at] == 1, at + 1) if element else (kind == TRUE, at)
    if kind == BYTE:
        return struct.unpack_from("b", data, at)[0], at + 1
    if kind in (I16, I32, I64):
        return zigzag(data, at)
    if kind in (DOUBLE, UUID):
        end = at + (8 if kind == DOUBLE else 16)
        return data[at:end], end
    if kind == BINARY:
        length, at = varint(data, at)
        value = Bytes(data[at : at + length])
        value.at = at
        return value, at + length
    if kind == MAP:
        count, at = varint(data, at)
        kinds, at = (data[at], at + 1) if count else (0, at)
        for i in range(2 * count):
            _, at = decode(data, at, kinds & 15 if i % 2 else kinds >> 4, True)
        return None, at
    if kind in (LIST, SET):
        header = data[at]
        count, at = varint(data, at + 1) if header >> 4 == 15 else (header >> 4, at + 1)
        values = []
        for _ in range(count):
            value, at = decode(data, at, header & 15, True)
            values.append(value)
        return values, at
    assert kind == STRUCT, kind
    fields: dict[int, Any] = {}
    last = 0
    while True:
        header = data[at]
        at += 1
        if header == 0:
            return fields, at
        if header >> 4:
            last += header >> 4
        else:
            last, at = zigzag(data, at)
        fields[last], at = decode(data, at, header & 15)


def with_unknown_fields(data: bytes, rng: random.Random) -> bytes:
    """The struct again, with fields that the format never had in it and in every struct below."""
    return inject(data, 0, STRUCT, rng)[0]


UNKNOWN = {
    TRUE: b"", FALSE: b"", BYTE: b"\x81", I16: b"\x03", I32: b"\xff\xff\x03", I64: b"\xff" * 9 + b"\x01",
    DOUBLE: bytes(8), BINARY: b"\x03abc", LIST: b"\x25\x01\x02", SET: b"\x21\x01\x02",
    MAP: b"\x01\x88\x01k\x01v", STRUCT: b"\x11\x1c\x15\x02\x00\x00", UUID: bytes(16),
}  # fmt: skip


def inject(
    data: bytes, at: int, kind: int, rng: random.Random, element: bool = False
) -> tuple[bytes, int]:
    if kind == LIST:
        header = data[at]
        count, end = varint(data, at + 1) if header >> 4 == 15 else (header >> 4, at + 1)
        out = data[at:end]
        for _ in range(count):
            value, end = inject(data, end, header & 15, rng, True)
            out += value
        return out, end
    if kind != STRUCT:
        _, end = decode(data, at, kind, element)
        return data[at:end], end
    out, last = b"", 0
    union = len(decode(data, at, STRUCT)[0]) < 2  # a second field would change what a union says
    while True:
        if not union and rng.random() < 0.5:
            wire = rng.choice(list(UNKNOWN))
            out += (
                bytes([wire])
                + rng.choice((b"\x00", b"\x05", b"\x7e", b"\xfe\xff\x03"))
                + UNKNOWN[wire]
            )
        header = data[at]
        at += 1
        if header == 0:
            return out + b"\x00", at
        if header >> 4:
            last += header >> 4
        else:
            last, at = zigzag(data, at)
        value, at = inject(data, at, header & 15, rng)
        out += bytes([header & 15, last << 1]) + value  # the long form of a field header


# ---- files ---------------------------------------------------------------------------------------


def example() -> pa.Table:
    n = 300
    rng = random.Random(1)
    some = [i % 7 > 0 for i in range(n)]

    def holes(values: list[Any]) -> list[Any]:
        return [v if keep else None for v, keep in zip(values, some, strict=True)]

    day = datetime.datetime(2024, 5, 1, tzinfo=datetime.UTC)
    return pa.table(
        {
            "i64": pa.array(range(n)),
            "i8": pa.array(holes([i % 100 for i in range(n)]), pa.int8()),
            "u32": pa.array([2**32 - 1 - i for i in range(n)], pa.uint32()),
            "f": pa.array([rng.random() for _ in range(n)]),
            "f16": pa.array(np.arange(n, dtype=np.float16)),
            "bool": pa.array(holes([i % 2 == 0 for i in range(n)])),
            "text": pa.array(holes([f"value {i:04}" for i in range(n)])),
            "none": pa.nulls(n, pa.string()),
            "decimal": pa.array(
                [decimal.Decimal(i).scaleb(-2) for i in range(n)], pa.decimal128(20, 2)
            ),
            "date": pa.array([day.date()] * n),
            "time": pa.array([datetime.time(1, 2, 3)] * n, pa.time64("us")),
            "ms": pa.array([day] * n, pa.timestamp("ms", "UTC")),
            "ns": pa.array([day.replace(tzinfo=None)] * n, pa.timestamp("ns")),
            "fixed": pa.array([b"abcd"] * n, pa.binary(4)),
            "list": pa.array([[i, None, i + 1] if i % 3 else [] for i in range(n)]),
            "nested": pa.array([{"a": i, "b": [{"c": str(i)}]} for i in range(n)]),
            "map": pa.array([[(str(i), i)] for i in range(n)], pa.map_(pa.string(), pa.int64())),
        },
        metadata={"a key": "a value", "empty": ""},
    )


OPTIONS: list[dict[str, Any]] = [
    {
        "write_page_index": True,
        "data_page_size": 100,
        "row_group_size": 120,
        "write_batch_size": 16,
    },
    {"data_page_version": "2.0", "compression": "zstd", "write_page_checksum": True},
    {"use_dictionary": False, "write_statistics": False, "store_schema": False, "version": "1.0"},
    {"write_page_index": True, "sorting_columns": [pq.SortingColumn(0)], "row_group_size": 7},
]


class File:
    def __init__(self, table: pa.Table, unknown: bool = False, **options: Any) -> None:
        sink = io.BytesIO()
        pq.write_table(table, sink, **options)
        self.data = sink.getvalue()
        size = int.from_bytes(self.data[-8:-4], "little")
        self.footer = self.data[-8 - size : -8]
        self.arrow = pq.read_metadata(io.BytesIO(self.data))
        self.oracle, end = decode(self.footer, 0, STRUCT)
        assert end == size
        if unknown:
            self.footer = with_unknown_fields(self.footer, random.Random(2))
            self.oracle, _ = decode(self.footer, 0, STRUCT)
        self.result = metadata.footer(self.footer)
        self.chunks = records(metadata.chunks(self.footer, self.result[7]), metadata.CHUNK_FIELDS)

    def bytes_at(self, offset: int, length: int) -> bytes | None:
        return None if offset == ABSENT else self.footer[offset : offset + length]


def records(data: bytes, fields: tuple[str, ...]) -> list[dict[str, int]]:
    rows = np.frombuffer(data, np.int64).reshape(-1, len(fields)).tolist()
    return [dict(zip(fields, row, strict=True)) for row in rows]


def array(data: bytes | None) -> list[int]:
    assert data is not None
    return np.frombuffer(data, np.int64).tolist()


@pytest.fixture(scope="module", params=range(len(OPTIONS)))
def plain_file(request: pytest.FixtureRequest) -> File:
    return File(example(), **OPTIONS[request.param])


@pytest.fixture(
    scope="module",
    params=[(i, unknown) for i in range(len(OPTIONS)) for unknown in (False, True)],
    ids=lambda param: f"{param[0]}{'-unknown-fields' * param[1]}",
)
def file(request: pytest.FixtureRequest) -> File:
    options, unknown = request.param
    return File(example(), unknown, **OPTIONS[options])


# ---- footer --------------------------------------------------------------------------------------


def test_footer_equals_pyarrow(file: File) -> None:
    version, num_rows, created_by, encryption, schema, n_leaves, *rest = file.result
    groups, offsets, kv, orders = rest
    assert version == (1 if file.arrow.format_version == "1.0" else 2)
    assert num_rows == file.arrow.num_rows
    assert created_by is not None
    assert file.bytes_at(*created_by) == file.arrow.created_by.encode()
    assert encryption is None
    assert n_leaves == file.arrow.num_columns
    assert len(schema) == len(file.oracle[2]) * 8 * len(metadata.SCHEMA_FIELDS)
    assert len(offsets) == 8 * n_leaves * file.arrow.num_row_groups
    assert array(orders) == [1] * n_leaves
    for i, group in enumerate(records(groups, metadata.ROW_GROUP_FIELDS)):
        theirs = file.arrow.row_group(i)
        assert group["num_rows"] == theirs.num_rows
        assert group["total_byte_size"] == theirs.total_byte_size
        assert group["ordinal"] == file.oracle[4][i].get(7, ABSENT)
        assert (group["sorting_offset"] != ABSENT) == bool(theirs.sorting_columns)
        again, end = decode(file.footer, group["offset"], STRUCT)
        assert again == file.oracle[4][i]
        assert end == group["offset"] + group["length"]
    pairs = np.frombuffer(kv, np.int64).reshape(-1, 4).tolist()
    found = {file.bytes_at(a, b): file.bytes_at(c, d) for a, b, c, d in pairs}
    assert found == (file.arrow.metadata or {})


def test_schema_equals_oracle(file: File) -> None:
    simple = {"type": 1, "type_length": 2, "repetition": 3, "num_children": 5, "converted_type": 6}
    simple |= {"scale": 7, "precision": 8, "field_id": 9}
    for i, element in enumerate(records(file.result[4], metadata.SCHEMA_FIELDS)):
        wanted = file.oracle[2][i]
        for name, field in simple.items():
            assert element[name] == wanted.get(field, ABSENT), (i, name)
        assert file.bytes_at(element["name_offset"], element["name_length"]) == wanted[4]
        logical = [element[name] for name in ("logical", "logical_a", "logical_b", "logical_c")]
        if 10 not in wanted:
            assert logical == [ABSENT] * 4
            continue
        ((member, content),) = wanted[10].items()
        content = {field: content[field] for field in sorted(content) if 0 < field < 3}
        if member in (7, 8):
            content = {1: content[1], 2: next(iter(content[2]))}
        parts = [int(content.get(k, ABSENT)) for k in (1, 2)]
        assert logical == [member, *parts, ABSENT]


def test_chunks_equal_pyarrow_and_oracle(file: File) -> None:
    assert len(file.chunks) == file.arrow.num_columns * file.arrow.num_row_groups
    offsets = np.frombuffer(file.result[7], np.uint64).tolist()
    for i, chunk in enumerate(file.chunks):
        theirs = file.arrow.row_group(i // file.arrow.num_columns).column(
            i % file.arrow.num_columns
        )
        wanted, end = decode(file.footer, offsets[i], STRUCT)
        meta = wanted[3]
        assert chunk["end"] == end
        assert chunk["has_metadata"] == 1
        assert chunk["num_values"] == theirs.num_values == meta[5]
        assert chunk["total_compressed_size"] == theirs.total_compressed_size
        assert chunk["total_uncompressed_size"] == theirs.total_uncompressed_size
        assert chunk["data_page_offset"] == theirs.data_page_offset
        assert (chunk["dictionary_page_offset"] != ABSENT) == theirs.has_dictionary_page
        assert (chunk["offset_index_offset"] != ABSENT) == theirs.has_offset_index
        assert (chunk["column_index_offset"] != ABSENT) == theirs.has_column_index
        for name, field in {
            "type": 1, "codec": 4, "index_page_offset": 10, "dictionary_page_offset": 11,
            "bloom_filter_offset": 14, "bloom_filter_length": 15,
        }.items():  # fmt: skip
            assert chunk[name] == meta.get(field, ABSENT), name
        for name, field in {
            "file_offset": 2, "offset_index_offset": 4, "offset_index_length": 5,
            "column_index_offset": 6, "column_index_length": 7,
        }.items():  # fmt: skip
            assert chunk[name] == wanted.get(field, ABSENT), name
        assert chunk["encodings"] == sum(1 << e for e in set(meta[2]))
        pages = [s[3] for s in meta[13] if s[1] in (0, 3) and s[2] in (2, 8)]
        others = [s[3] for s in meta[13] if s[1] in (0, 3) and s[2] not in (2, 8)]
        assert chunk["encoding_stats"] == 1
        assert (chunk["dictionary_data_pages"], chunk["other_data_pages"]) == (
            sum(pages),
            sum(others),
        )
        check_statistics(file.footer, chunk, meta.get(12))
        if theirs.statistics is not None and theirs.statistics.has_null_count:
            assert chunk["statistics_null_count"] == theirs.statistics.null_count


def check_statistics(data: bytes, record: dict[str, int], wanted: dict[int, Any] | None) -> None:
    assert record["statistics_present"] == (wanted is not None)
    wanted = wanted or {}
    for name, field in {"max": 1, "min": 2, "max_value": 5, "min_value": 6}.items():
        offset, length = record[f"statistics_{name}_offset"], record[f"statistics_{name}_length"]
        if field in wanted:
            assert (offset, length) == (wanted[field].at, len(wanted[field]))
            assert data[offset : offset + length] == wanted[field]
        else:
            assert (offset, length) == (ABSENT, ABSENT)
    rest = {
        "null_count": 3,
        "distinct_count": 4,
        "is_max_exact": 7,
        "is_min_exact": 8,
        "nan_count": 9,
    }
    for name, field in rest.items():
        assert record[f"statistics_{name}"] == wanted.get(field, ABSENT), name


def test_chunks_of_some_leaves_and_the_index_of_a_bad_one() -> None:
    file = File(example())
    offsets = np.frombuffer(file.result[7], np.uint64)
    some = records(metadata.chunks(file.footer, offsets[[5, 2]]), metadata.CHUNK_FIELDS)
    assert some == [file.chunks[5], file.chunks[2]]
    assert metadata.chunks(file.footer, b"") == b""
    with pytest.raises(metadata.CoreError, match=r"^chunk 1: ") as caught:
        metadata.chunks(file.footer, np.array([offsets[0], len(file.footer) + 1], np.uint64))
    assert caught.value.status == metadata.INVALID
    with pytest.raises(metadata.CoreError):
        metadata.chunks(file.footer, b"1234567")


def test_any_contiguous_buffer_is_taken() -> None:
    file = File(example())
    for data in (bytearray(file.footer), memoryview(file.footer), pa.py_buffer(file.footer)):
        assert metadata.footer(data) == file.result
    with pytest.raises(BufferError):
        metadata.footer(memoryview(file.footer)[::2])
    with pytest.raises(TypeError):
        metadata.footer("text")


def test_errors_say_what_and_where_and_survive_pickling() -> None:
    with pytest.raises(metadata.CoreError) as caught:
        metadata.footer(b"\x15\x02\x00")
    error = caught.value
    assert (error.status, error.offset) == (metadata.CORRUPT, 3)
    assert error.message == "FileMetaData.schema is missing"
    assert str(error) == "FileMetaData.schema is missing (byte 3)"
    copy = pickle.loads(pickle.dumps(error))
    assert (copy.status, copy.offset, copy.message) == (error.status, error.offset, error.message)
    with pytest.raises(metadata.CoreError) as caught:
        metadata.footer(File(example()).footer, max_arena=1000)
    assert (caught.value.status, caught.value.offset) == (metadata.LIMIT, None)


# ---- page index ----------------------------------------------------------------------------------


def index_bytes(file: File, chunk: dict[str, int], kind: str) -> bytes:
    start = chunk[f"{kind}_offset"]
    return file.data[start : start + chunk[f"{kind}_length"]]


def indexed(file: File) -> list[tuple[dict[str, int], int]]:
    leaves = file.arrow.num_columns
    rows = [file.arrow.row_group(i).num_rows for i in range(file.arrow.num_row_groups)]
    chunks = [(c, rows[i // leaves]) for i, c in enumerate(file.chunks)]
    return [(c, n) for c, n in chunks if c["offset_index_offset"] != ABSENT]


def chunk_range(chunk: dict[str, int]) -> tuple[int, int]:
    starts = [chunk["data_page_offset"], chunk["dictionary_page_offset"]]
    start = min(s for s in starts if s > 0)
    return start, start + chunk["total_compressed_size"]


@pytest.mark.parametrize("unknown", [False, True])
@pytest.mark.parametrize("options", [o for o in OPTIONS if o.get("write_page_index")])
def test_page_index_equals_oracle(options: dict[str, Any], unknown: bool) -> None:
    file = File(example(), **options)
    with_bounds = 0
    rng = random.Random(3)
    for chunk, num_rows in indexed(file):
        data = index_bytes(file, chunk, "offset_index")
        data = with_unknown_fields(data, rng) if unknown else data
        wanted, _ = decode(data, 0, STRUCT)
        n, offset, size, first, unencoded = metadata.offset_index(
            data, num_rows, *chunk_range(chunk)
        )
        pages = zip(array(offset), array(size), array(first), strict=True)
        assert list(pages) == [(page[1], page[2], page[3]) for page in wanted[1]]
        assert n == len(wanted[1])
        assert (unencoded is None) == (2 not in wanted)
        if unencoded is not None:
            assert array(unencoded) == wanted[2]
        if chunk["column_index_offset"] == ABSENT:
            continue
        with_bounds += 1
        data = index_bytes(file, chunk, "column_index")
        data = with_unknown_fields(data, rng) if unknown else data
        wanted, _ = decode(data, 0, STRUCT)
        n, order, nulls, min_at, min_n, max_at, max_n, null_counts, nans = metadata.column_index(
            data
        )
        assert (n, order) == (len(wanted[1]), wanted[4])
        assert list(nulls) == wanted[1]
        for field, at, length in ((2, min_at, min_n), (3, max_at, max_n)):
            ranges = list(zip(array(at), array(length), strict=True))
            assert ranges == [(v.at, len(v)) for v in wanted[field]]
        assert array(null_counts) == wanted[5]
        assert nans is None or array(nans) == wanted[8]
    assert with_bounds > 20


def test_offset_index_that_cannot_be_true_names_the_page() -> None:
    file = File(example(), **OPTIONS[0])
    chunk, num_rows = indexed(file)[0]
    data = index_bytes(file, chunk, "offset_index")
    start, end = chunk_range(chunk)
    n = metadata.offset_index(data, num_rows, start, end)[0]
    for args in ((num_rows, start, end - 1), (1, start, end), (num_rows, end, end + 10)):
        with pytest.raises(metadata.CoreError, match=r"^page \d+ ") as caught:
            metadata.offset_index(data, *args)
        assert caught.value.status == metadata.CORRUPT
    assert n > 1


# ---- page headers --------------------------------------------------------------------------------


def test_page_headers_equal_oracle(plain_file: File) -> None:
    file, rng = plain_file, random.Random(4)
    v1 = {"num_values": 1, "encoding": 2, "def_encoding": 3, "rep_encoding": 4}
    v2 = {"num_values": 1, "num_nulls": 2, "num_rows": 3, "encoding": 4, "def_length": 5}
    v2 |= {"rep_length": 6, "is_compressed": 7}
    dictionary = {"num_values": 1, "encoding": 2, "is_sorted": 3}
    own = {0: (5, v1), 2: (7, dictionary), 3: (8, v2)}
    for chunk in file.chunks:
        at, end = chunk_range(chunk)
        values = 0
        while at < end:
            (header,) = records(metadata.page_header(file.data, at), metadata.PAGE_HEADER_FIELDS)
            wanted, stop = decode(file.data, at, STRUCT)
            longer = with_unknown_fields(file.data[at:stop], rng)
            (again,) = records(metadata.page_header(longer), metadata.PAGE_HEADER_FIELDS)
            moved = [name for name in header if name.endswith("_offset")] + ["header_length"]
            assert again | {name: header[name] for name in moved} == header
            assert again["header_length"] == len(longer)
            assert header["header_length"] == stop - at
            sizes = ("type", "uncompressed_size", "compressed_size", "crc")
            assert [header[name] for name in sizes] == [wanted.get(i, ABSENT) for i in (1, 2, 3, 4)]
            field, names = own[header["type"]]
            for name in ("num_values", "encoding", *v1, *v2, *dictionary):
                assert header[name] == wanted[field].get(names.get(name), ABSENT), name
            check_statistics(file.data, header, wanted[field].get(8 if field == 8 else 5))
            values += header["num_values"] if header["type"] != 2 else 0
            for n in range(stop - at):
                with pytest.raises(metadata.CoreError) as caught:
                    metadata.page_header(file.data[at : at + n])
                assert caught.value.status == metadata.TRUNCATED
            at = stop + header["compressed_size"]
        assert (at, values) == (end, chunk["num_values"])
    with pytest.raises(metadata.CoreError):
        metadata.page_header(b"", 1)


# ---- damage --------------------------------------------------------------------------------------


def read_everything(kind: str, data: bytes) -> None:
    """A result or a CoreError; every range that comes out lies inside of the input."""
    try:
        if kind == "footer":
            result = metadata.footer(data, max_arena=1 << 22)
            for record in records(metadata.chunks(data, result[7]), metadata.CHUNK_FIELDS):
                assert 0 < record["end"] <= len(data)
        elif kind == "column_index":
            result = metadata.column_index(data, max_arena=1 << 22)
            for at, size in zip(array(result[3]), array(result[4]), strict=True):
                assert 0 <= at <= at + size <= len(data)
        elif kind == "offset_index":
            metadata.offset_index(data, 1 << 40, 0, 1 << 40, max_arena=1 << 22)
        else:
            metadata.page_header(data)
    except metadata.CoreError as error:
        sound = error.message and (error.offset is None or 0 <= error.offset <= len(data))
        if not sound:
            raise


@pytest.fixture(scope="module")
def inputs() -> dict[str, bytes]:
    file = File(example().slice(0, 40), **OPTIONS[0])
    chunk = next(c for c, _ in indexed(file) if c["type"] == 6)
    return {
        "footer": file.footer,
        "column_index": index_bytes(file, chunk, "column_index"),
        "offset_index": index_bytes(file, chunk, "offset_index"),
        "page_header": file.data[chunk["data_page_offset"] :][:100],
    }


KINDS = ["footer", "column_index", "offset_index", "page_header"]


@pytest.mark.parametrize("kind", KINDS)
def test_truncation_at_every_byte(kind: str, inputs: dict[str, bytes]) -> None:
    data = inputs[kind]
    read_everything(kind, data)
    for n in range(len(data)):
        read_everything(kind, data[:n])
    if kind == "footer":
        for n in range(0, len(data), 7):
            with pytest.raises(metadata.CoreError) as caught:
                metadata.footer(data[:n])
            assert caught.value.status == metadata.TRUNCATED


@pytest.mark.parametrize("kind", KINDS)
def test_random_damage(kind: str, inputs: dict[str, bytes]) -> None:
    rng = random.Random(kind)
    for _ in range(3000):
        data = bytearray(inputs[kind])
        for _ in range(rng.choice((1, 1, 2, 5, 30))):
            data[rng.randrange(len(data))] = rng.choice((0, 0x19, 0x7F, 0xFF, rng.randrange(256)))
        if rng.random() < 0.2:
            at = rng.randrange(len(data))
            data[at:at] = data[rng.randrange(len(data)) :][: rng.randrange(50)]
        read_everything(kind, bytes(data))


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.binary(max_size=200))
def test_arbitrary_bytes(kind: str, data: bytes) -> None:
    read_everything(kind, data)
