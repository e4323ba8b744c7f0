"""Delta and byte-stream encodings: valid streams of writers, invalid ones, hostile ones."""

from __future__ import annotations

import io
import itertools
import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek._core.decode import TAKE_DONE, TAKE_FULL, CoreError
from support.encodings import (
    BYTE_STREAM_SPLIT,
    DELTA_BINARY_PACKED,
    DELTA_BYTE_ARRAY,
    DELTA_LENGTH_BYTE_ARRAY,
    Delta,
    delta,
    delta_lengths,
    delta_strings,
    stream_split,
    varint,
    zigzag,
)
from support.oracle import agree
from support.pages import KINDS, Kind, Page, arrow
from support.writer import (
    BYTE_ARRAY,
    DOUBLE,
    FIXED,
    FLOAT,
    I32,
    INT32,
    INT64,
    STRING,
    Column,
    Struct,
    decimal,
    write,
)

KIND = {kind.name: kind for kind in KINDS}
CUTS = [Delta(minis, per) for minis, per in ((1, 8), (3, 8), (4, 32), (1, 256), (7, 40), (2, 1024))]


def read(
    kind: Kind, encoding: int, body: bytes, n: int, *pairs: tuple[int, int], **how: Any
) -> list[Any]:
    decoder = ps.LeafDecoder(kind.leaf_type, 0, 0, **how)
    decoder.begin(np.array(pairs or [(0, n)], np.int64))
    assert Page(body, None, 1, encoding, n, 0).hand(decoder) == TAKE_DONE
    return arrow(kind, decoder.finish())


def numbers(n: int) -> dict[str, list[int]]:
    dice = np.random.default_rng(n)
    top = 1 << 63
    return {
        "steady": [5 - 3 * i for i in range(n)],
        "equal": [9] * n,
        "random": dice.integers(-top, top - 1, n).tolist(),
        "extremes": [(top - 1, -top, 0)[i % 3] for i in range(n)],
        "bursts": [int(i % 50 == 0) << i % 60 for i in range(n)],
    }


@pytest.mark.parametrize("how", CUTS, ids=str)
@pytest.mark.parametrize("name", numbers(1))
def test_blocks_of_any_shape_are_skipped_and_read(how: Delta, name: str) -> None:
    for n in (1, 2, 9, 33, 2500):
        values = numbers(n)[name]
        for knobs in (how, how._replace(pad=True, unneeded=64, cut=True, extra=3)):
            body = delta(values, knobs)
            for at in {0, 1, 7, 8, 9, 31, 32, 33, n // 2, 1024, 1025, n - 1}:
                if at < n:
                    found = read(KIND["int64"], DELTA_BINARY_PACKED, body, n, (at, n))
                    assert found == values[at:]
            some = [(i, i + 1) for i in range(0, n, 5)]
            assert read(KIND["int64"], DELTA_BINARY_PACKED, body, n, *some) == values[::5]


def test_differences_of_32_bits_wrap_around() -> None:
    values = [(1 << 31) - 1, -(1 << 31), 0, -1, 1, -(1 << 31), (1 << 31) - 1] * 40
    for how in (Delta(bits=32), Delta(bits=64), Delta(2, 8, 32)):
        body = delta(values, how)
        assert read(KIND["int32"], DELTA_BINARY_PACKED, body, 280) == values
        assert read(KIND["int32"], DELTA_BINARY_PACKED, body, 280, (133, 280)) == values[133:]


def words(n: int) -> dict[str, list[bytes]]:
    dice = np.random.default_rng(n)
    long = b"/usr/share/some/long/path/that/all/of/them/have/in/common/"
    return {
        "empty": [b""] * n,
        "paths": [long + b"%06d" % i for i in range(n)],
        "growing": [b"a" * (i % 300) for i in range(n)],
        "unlike": [dice.bytes(int(dice.integers(0, 90))) for _ in range(n)],
        "one long": [b"q" * 5000 if i % 700 == 3 else b"q" for i in range(n)],
    }


@pytest.mark.parametrize("encoding", [DELTA_LENGTH_BYTE_ARRAY, DELTA_BYTE_ARRAY])
@pytest.mark.parametrize("name", words(1))
def test_byte_strings_of_any_shape_are_skipped_and_read(encoding: int, name: str) -> None:
    for n, how in itertools.product((1, 2, 40, 3000), (Delta(), Delta(3, 8, pad=True, unneeded=7))):
        values = words(n)[name]
        encode = delta_lengths if encoding == DELTA_LENGTH_BYTE_ARRAY else delta_strings
        body = encode(values, how)
        for kind in (KIND["long string"], KIND["large string"]):
            for at in {0, 1, 31, n // 2, 1023, 1024, 1025, 2049, n - 1}:
                if at < n:
                    assert read(kind, encoding, body, n, (at, n)) == values[at:]
            for step in (2, 7, 300):
                some = [(i, i + 1) for i in range(0, n, step)]
                assert read(kind, encoding, body, n, *some) == values[::step]


def test_strings_that_share_less_than_they_could() -> None:
    values = words(200)["paths"]
    for share in (0, 1, 40):
        body = delta_strings(values, share=share)
        assert read(KIND["string"], DELTA_BYTE_ARRAY, body, 200) == values


@pytest.mark.parametrize("width", [0, 1, 2, 3, 4, 5, 7, 8, 9, 12, 15, 16, 17, 24, 33, 100])
def test_split_streams_of_any_width(width: int) -> None:
    kind = Kind("any", (FIXED, width, 16, width, 0, 0, 0), [], ())
    for n in (1, 2, 127, 128, 129, 2100):
        values = [np.random.default_rng(i).bytes(width) for i in range(n)]
        body = stream_split(b"".join(values), width)
        for at in {0, 1, 63, 64, n - 1}:
            if at < n:
                assert read(kind, BYTE_STREAM_SPLIT, body, n, (at, n)) == values[at:]
        for step in (2, 3, 9):
            some = [(i, i + 1) for i in range(0, n, step)]
            assert read(kind, BYTE_STREAM_SPLIT, body, n, *some) == values[::step]
        if width:
            for wrong in (body[:-1], body + b"\0", body + bytes(width)):
                with pytest.raises(CoreError, match="do not hold"):
                    read(kind, BYTE_STREAM_SPLIT, wrong, n, (0, 1))


# ---- faults --------------------------------------------------------------------------------------


def raw_delta(first: int, least: int, n: int, width: int = 0) -> bytes:
    """One miniblock without a body, of n values or more."""
    size = max((n + 7) // 8 * 8, 8)
    return varint(size) + varint(1) + varint(n) + zigzag(first) + zigzag(least) + bytes([width])


FAULTS: list[tuple[str, int, bytes, str]] = [
    ("int64", DELTA_BINARY_PACKED, b"", "cut short"),
    ("int64", DELTA_BINARY_PACKED, raw_delta(1, 1, 3), "values are wanted where"),
    ("int64", DELTA_BINARY_PACKED, raw_delta(1, 1, 4, 65), "65 bits"),
    ("int64", DELTA_BINARY_PACKED, raw_delta(1, 1, 4, 8), "ends in a miniblock of 8 bits"),
    ("long string", DELTA_LENGTH_BYTE_ARRAY, raw_delta(1, 0, 4) + b"abc", "byte strings have .* bytes, the page has"),
    ("long string", DELTA_LENGTH_BYTE_ARRAY, raw_delta(-1, 0, 4) + b"abc", "the page has"),
    ("long string", DELTA_LENGTH_BYTE_ARRAY, raw_delta(1, -1, 4) + b"abc", "the page has"),
    ("long string", DELTA_LENGTH_BYTE_ARRAY, raw_delta(1 << 31, 0, 4), "the page has 0"),
    ("long string", DELTA_LENGTH_BYTE_ARRAY, raw_delta(0, 0, 3), "values are wanted where"),
    ("long string", DELTA_BYTE_ARRAY, raw_delta(0, 0, 4), "cut short"),
    ("long string", DELTA_BYTE_ARRAY, raw_delta(1, 0, 4) + raw_delta(1, 0, 4) + b"abcd", "shares 1 bytes with one of 0"),
    ("long string", DELTA_BYTE_ARRAY, raw_delta(0, 2, 4) + raw_delta(1, 0, 4) + b"abcd", "shares 2 bytes with one of 1"),
    ("long string", DELTA_BYTE_ARRAY, raw_delta(0, -1, 4) + raw_delta(1, 0, 4) + b"abcd", "shares 4294967295 bytes"),
    ("long string", DELTA_BYTE_ARRAY, raw_delta(0, 0, 3) + raw_delta(1, 0, 4) + b"abcd", "values are wanted where"),
    ("fixed", DELTA_BYTE_ARRAY, delta_strings([b"abc", b"abq", b"ab", b"abc"]), "value of 2 bytes where all have 3"),
    ("decimal", DELTA_BYTE_ARRAY, delta_strings([b"a" * 17] * 4), "decimal of 17 bytes"),
    ("decimal", DELTA_LENGTH_BYTE_ARRAY, delta_lengths([b"a" * 17] * 4), "decimal of 17 bytes"),
    ("double", BYTE_STREAM_SPLIT, bytes(31), "31 bytes of 8 streams do not hold 4 values"),
    ("wide decimal", BYTE_STREAM_SPLIT, stream_split(b"\x01" * 280, 70), "decimal of 70 bytes"),
    ("double", DELTA_BINARY_PACKED, b"", "encoding 5 is not one for values of physical type 5"),
    ("int64", DELTA_BYTE_ARRAY, b"", "encoding 7 is not one"),
    ("fixed", DELTA_LENGTH_BYTE_ARRAY, b"", "encoding 6 is not one"),
    ("string", BYTE_STREAM_SPLIT, b"", "encoding 9 is not one"),
    ("bool", BYTE_STREAM_SPLIT, b"", "encoding 9 is not one"),
    ("double", 10, b"", "encoding 10, ALP, is not supported"),
    ("double", 11, b"", "encoding 11 is unknown"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "encoding", "body", "message"), FAULTS)
def test_a_fault_is_told_in_either_form_of_a_selection(
    name: str, encoding: int, body: bytes, message: str
) -> None:
    for pairs in ([(0, 4)], [(0, 1), (2, 4)]):
        with pytest.raises(CoreError, match=message) as caught:
            read(KIND[name], encoding, body, 4, *pairs)
        assert caught.value.offset is None or caught.value.offset <= len(body)
    decoder = ps.LeafDecoder(KIND[name].leaf_type, 0, 0)
    decoder.begin((b"\xff\xff", 0, 4))
    with pytest.raises(CoreError, match=message):
        Page(body, None, 1, encoding, 4, 0).hand(decoder)


def test_only_values_that_are_selected_are_judged() -> None:
    body = delta_strings([b"abc", b"ab", b"abq", b"a", b"xyz"])
    some = [(i, i + 1) for i in (0, 2, 4)]
    assert read(KIND["fixed"], DELTA_BYTE_ARRAY, body, 5, *some) == [b"abc", b"abq", b"xyz"]
    body = delta_lengths([b"ok", b"\xff", b"fine"])
    some = [(0, 1), (2, 3)]
    assert read(KIND["string"], DELTA_LENGTH_BYTE_ARRAY, body, 3, *some) == [b"ok", b"fine"]
    with pytest.raises(CoreError, match="UTF-8"):
        read(KIND["string"], DELTA_LENGTH_BYTE_ARRAY, body, 3)


def test_values_behind_those_of_the_page_do_not_matter() -> None:
    assert read(KIND["int64"], DELTA_BINARY_PACKED, delta([3, 1, 4, 1, 5]), 3) == [3, 1, 4]
    body = delta_strings([b"ab", b"abc", b"b"])
    assert read(KIND["string"], DELTA_BYTE_ARRAY, body, 2) == [b"ab", b"abc"]


def test_a_page_of_a_few_bytes_may_claim_any_number_of_values() -> None:
    """The output has exactly the selected rows, and no more memory is allocated."""
    n = (1 << 31) - 1
    body = raw_delta(7, 1, n)
    assert read(KIND["int64"], DELTA_BINARY_PACKED, body, n, (0, 2), (5000, 5002)) == [
        7, 8, 5007, 5008,
    ]  # fmt: skip
    with pytest.raises(CoreError, match="limit"):
        read(KIND["int64"], DELTA_BINARY_PACKED, body, n, max_output=1 << 20)
    body = raw_delta(0, 0, n) * 2
    found = read(KIND["string"], DELTA_BYTE_ARRAY, body, n, (0, 1), (10**6, 10**6 + 1))
    assert found == [b"", b""]


def test_a_value_repeated_a_million_times_is_bounded_by_the_output() -> None:
    n, long = 1 << 20, b"x" * 50_000
    size = varint(1 << 20) + varint(1 << 15) + varint(n)  # 2^15 miniblocks of 32 values
    first = bytes([16]) + bytes((1 << 15) - 1)
    steps = struct.pack("<I", 50_000) + bytes(60)  # the second value differs from the first
    shared = size + zigzag(0) + zigzag(0) + first + steps
    up = struct.pack("<32H", 0, *[50_000] * 31)
    own = size + zigzag(50_000) + zigzag(-50_000) + bytes([16] * (1 << 15))
    own += up + struct.pack("<H", 50_000) * 32 * ((1 << 15) - 1)
    body = shared + own + long
    for pairs in ([(0, n)], [(i, i + 1) for i in range(0, n, 2)]):
        with pytest.raises(CoreError, match="limit of 10000000"):
            read(KIND["long string"], DELTA_BYTE_ARRAY, body, n, *pairs, max_output=10_000_000)
    found = read(KIND["long string"], DELTA_BYTE_ARRAY, body, n, (n - 2, n))
    assert found == [long] * 2


# ---- whole files ---------------------------------------------------------------------------------


def columns(encoded: Sequence[tuple[str, Struct]], n: int, **how: Any) -> list[Column]:
    made: dict[str, Column] = {}
    cuts = [n // 3, 1, n - n // 3 - 1]
    for name, knobs in encoded:
        made[name] = Column(name, pages=cuts, **knobs, **how)
    return list(made.values())


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize(
    "how", [Delta(), Delta(1, 32), Delta(3, 8, extra=2, pad=True, unneeded=9)], ids=str
)
def test_files_read_alike_by_pyarrow_and_under_filters(version: int, how: Delta) -> None:
    n = 60
    missing = [i % 7 in (2, 3) for i in range(n)]

    def some(values: Sequence[Any]) -> list[Any]:
        return [None if m else v for v, m in zip(values, missing, strict=True)]

    texts = [b"name %03d" % (i // 4) for i in range(n)]
    table = [
        ("id", {"physical": INT64, "values": list(range(n)), "encodings": "delta"}),
        ("x", {"physical": INT32, "values": some([i * i % 91 - 40 for i in range(n)]), "encodings": "delta"}),
        ("l", {"physical": BYTE_ARRAY, "values": some(texts), "encodings": "delta-lengths", "logical": STRING}),
        ("s", {"physical": BYTE_ARRAY, "values": some(texts), "encodings": "delta-strings", "logical": STRING}),
        ("f", {"physical": FIXED, "type_length": 8, "values": some(texts), "encodings": "delta-strings"}),
        ("d", {"physical": DOUBLE, "values": some([i / 8 for i in range(n)]), "encodings": "split"}),
        ("r", {"physical": FLOAT, "values": some([i / 8 for i in range(n)]), "encodings": "split"}),
        ("i", {"physical": INT32, "values": some(list(range(n))), "encodings": "split"}),
        ("p", {"physical": FIXED, "type_length": 5, "encodings": "split",
               "values": some([(i * 1001).to_bytes(5, "big") for i in range(n)]), **decimal(9, 2)}),
    ]  # fmt: skip
    for codec in ("uncompressed", "zstd"):
        data = write(columns(table, n, version=version, codec=codec, delta=how))
        whole = ps.read_table(data)
        if how.per_mini % 32 == 0 and how.minis * how.per_mini % 128 == 0:
            assert pq.read_table(io.BytesIO(data)).equals(whole)
        for row in (0, 19, 20, 21, 59):
            assert ps.read_table(data, filter=ps.col("id") == row).equals(whole.slice(row, 1))
        odd = ps.col("id").isin(list(range(1, n, 2)))
        assert ps.read_table(data, filter=odd).equals(whole.take(list(range(1, n, 2))))
        texts_of = whole["s"].to_pylist()
        found = ps.read_table(data, filter=ps.col("s") >= "name 010", columns=["l"])
        assert found["l"].to_pylist() == [v for v in texts_of if v is not None and v >= "name 010"]


@pytest.mark.parametrize("encodings", ["delta", "split"])
@pytest.mark.parametrize("version", [1, 2])
def test_pages_of_nulls_need_no_values_at_all(encodings: str, version: int) -> None:
    for empty in (False, True):
        data = write(
            [
                Column(
                    "x", INT32, [None, None, 1, None], [2, 1, 1], encodings=encodings, version=version,
                    edit_body=lambda page, body, empty=empty: body if page == 1 or not empty else b"",
                ),
                Column("row", INT64, list(range(4))),
            ]
        )  # fmt: skip
        agree(data, 1)


def test_alp_is_refused_where_such_a_page_is_read_and_only_there() -> None:
    def last(page: int, header: Struct) -> None:
        if page == 1:
            header[5][2] = I32(10)

    data = write(
        [
            Column("x", DOUBLE, [1.0, 2.0, 3.0], [2, 1], edit_header=last),
            Column("row", INT64, [0, 1, 2]),
        ]
    )
    assert ps.read_table(data, columns=["row"]).num_rows == 3
    assert ps.read_table(data, filter=ps.col("row") == 1)["x"].to_pylist() == [2.0]
    with pytest.raises(ps.UnsupportedError, match=r"column 'x', .*page 1 .*ALP"):
        ps.read_table(data)


def test_output_in_batches_goes_on_inside_a_delta_page() -> None:
    n, selection = 4000, np.array([(i, i + 2) for i in range(0, 4000, 3)], np.int64)
    values = words(n)["paths"]
    wanted = [values[i] for a, b in selection.tolist() for i in range(a, min(b, n))]
    selection[-1, 1] = min(selection[-1, 1], n)
    decoder = ps.LeafDecoder(KIND["string"].leaf_type, 0, 0)
    decoder.begin(selection, 700)
    state = Page(delta_strings(values), None, 1, DELTA_BYTE_ARRAY, n, 0).hand(decoder)
    found = []
    while state == TAKE_FULL:
        found += arrow(KIND["string"], decoder.finish())
        decoder.begin(selection, 700)
        state = decoder.resume()
    assert found + arrow(KIND["string"], decoder.finish()) == wanted


def test_plain_and_split_pages_share_a_chunk() -> None:
    values = [i / 4 for i in range(30)]
    kinds = ["plain", "split", "dictionary"]
    data = write([Column("x", DOUBLE, values, [10, 10, 10], encodings=kinds)])
    assert ps.read_table(data)["x"].to_pylist() == values
