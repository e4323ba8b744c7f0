"""Empty, unusual, damaged or lying pages: the right rows, or an error with the place."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable
from typing import Any

import pytest

import pageseek as ps
from support.oracle import agree
from support.writer import (
    BOOLEAN,
    BYTE_ARRAY,
    DOUBLE,
    I32,
    I64,
    INT32,
    INT64,
    STRING,
    Column,
    Struct,
    hybrid,
    plain,
    thrift,
    write,
)

X = [1, 3, None, 5, 5, None, None, 8, 9, 2]
CUTS = [2, 1, 2, 2, 2, 1]
CODECS = ("uncompressed", "snappy", "gzip", "brotli", "zstd", "lz4_raw")


def make(
    values: list[Any] = X, cuts: list[int] | None = CUTS, physical: int = INT32, **knobs: Any
) -> bytes:
    return write(
        [
            Column("x", physical, values, cuts, **knobs),
            Column("row", INT64, list(range(len(values)))),
        ]
    )


def rows(data: bytes, row: int) -> list[Any]:
    found = ps.read_table(data, columns=["x"], filter=ps.col("row") == row)
    return found["x"].to_pylist()


def header(
    number: int, field: int, value: Any, page: int | None = None
) -> Callable[[int, Struct], None]:
    """Set a field of the data page header (5: V1, 8: V2) or, with number 0, of the page header."""

    def edit(at: int, made: Struct) -> None:
        if page is None or at == page:
            (made if number == 0 else made[number])[field] = value

    return edit


# ---- bodies that are empty -----------------------------------------------------------------------


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("encodings", ["plain", "dictionary"])
def test_pages_of_nulls_only(codec: str, version: int, encodings: str) -> None:
    data = make(
        [None, None, 1, None, None, None],
        [2, 1, 3],
        codec=codec,
        version=version,
        encodings=encodings,
    )
    agree(data, 1)
    text = make(
        [None, b"a", None], [1, 1, 1], BYTE_ARRAY, codec=codec, version=version, encodings=encodings
    )
    assert ps.read_table(text)["x"].to_pylist() == [None, b"a", None]


def test_a_page_of_nulls_without_even_the_width_of_codes() -> None:
    for version in (1, 2):
        data = make(
            [None, None, 1],
            [2, 1],
            encodings="dictionary",
            version=version,
            edit_body=lambda page, body: b"" if page == 0 else body,
        )
        agree(data, 1)


@pytest.mark.parametrize("codec", CODECS[1:])
def test_an_empty_v2_body_may_be_a_compressed_nothing(codec: str) -> None:
    import pyarrow as pa

    nothing = pa.Codec(codec).compress(b"", asbytes=True)
    levels = hybrid([0, 0], 1)
    data = make(
        [None, None], [2], codec=codec, version=2, edit_bytes=lambda page, _: levels + nothing
    )
    assert ps.read_table(data)["x"].to_pylist() == [None, None]


def test_is_compressed_absent_means_compressed_and_false_means_not() -> None:
    def absent(_: int, made: Struct) -> None:
        del made[8][7]

    agree(make(version=2, codec="snappy", edit_header=absent), 1, 5)

    def off(page: int, made: Struct) -> None:
        if page >= 0:
            made[8][7] = False

    raw = [None if v is None else v for v in X]

    def uncompressed(page: int, _: bytes) -> bytes:
        start = sum(CUTS[:page])
        part = raw[start : start + CUTS[page]]
        return hybrid([int(v is not None) for v in part], 1) + plain(
            INT32, [v for v in part if v is not None]
        )

    agree(make(version=2, codec="snappy", edit_header=off, edit_bytes=uncompressed), 1, 5)


def test_chunks_of_a_dictionary_page_alone() -> None:
    data = write(
        [Column("x", INT32, [], [], encodings=[], optional=True), Column("row", INT64, [])]
    )
    assert ps.read_table(data).num_rows == 0


# ---- checksums -----------------------------------------------------------------------------------


def corrupt(page: int, **knobs: Any) -> bytes:
    """A page whose bytes changed after the checksum was taken."""
    column = Column("x", INT32, list(range(10)), [2] * 5, crc=True, **knobs)
    data = bytearray(write([column, Column("row", INT64, list(range(10)))]))
    place = column.made.dictionary if page < 0 else column.made.pages[page]
    assert place is not None
    data[place[0] + place[1] - 1] ^= 1
    return bytes(data)


@pytest.mark.parametrize("version", [1, 2])
def test_a_wrong_checksum_of_a_selected_page_is_an_error_that_names_it(version: int) -> None:
    data = corrupt(2, version=version)
    with pytest.raises(ps.CorruptFileError, match=r"column 'x'.*page 2.*byte \d+.*checksum"):
        rows(data, 5)
    with pytest.raises(ps.CorruptFileError, match="checksum"):
        ps.read_table(data)


@pytest.mark.parametrize("offset_index", [True, False])
def test_a_wrong_checksum_of_a_skipped_page_is_not_noticed(offset_index: bool) -> None:
    data = corrupt(2, offset_index=offset_index)
    assert [rows(data, row) for row in (0, 1, 2, 3, 6, 9)] == [[0], [1], [2], [3], [6], [9]]


def test_a_wrong_checksum_of_the_dictionary() -> None:
    data = corrupt(-1, encodings=["dictionary", "plain", "plain", "plain", "plain"])
    assert rows(data, 5) == [5]
    with pytest.raises(ps.CorruptFileError, match=r"dictionary page at byte 4.*checksum"):
        rows(data, 0)


# ---- dictionaries --------------------------------------------------------------------------------


def test_fallback_to_plain_inside_a_chunk() -> None:
    for encodings in (
        ["dictionary"] * 3 + ["plain"] * 3,
        ["plain", "dictionary"] * 3,
        ["old-dictionary"] * 6,
    ):
        for version in (1, 2):
            for offset_index in (True, False):
                agree(
                    make(encodings=encodings, version=version, offset_index=offset_index), 1, 5, 9
                )


def test_codes_of_no_width() -> None:
    for packed in (False, True):
        agree(make([7, 7, None, 7], [2, 2], encodings="dictionary", packed=packed), 7, 1)


@pytest.mark.parametrize("width", [1, 2, 7, 8, 9, 15, 16, 17, 24, 31, 32])
@pytest.mark.parametrize("packed", [True, False])
def test_codes_of_every_width(width: int, packed: bool) -> None:
    values = [i % 2 for i in range(40)]
    data = make(
        values, [20, 20], encodings="dictionary", code_width=width, packed=packed, dictionary=[0, 1]
    )
    assert ps.read_table(data)["x"].to_pylist() == values
    assert rows(data, 33) == [1]


def test_entries_that_are_unused_or_repeated() -> None:
    values = [5, 6, 5]
    data = make(values, [3], encodings="dictionary", dictionary=[9, 5, 5, 6, 7])
    assert ps.read_table(data)["x"].to_pylist() == values


def test_an_empty_dictionary_under_pages_of_nulls() -> None:
    data = make([None, None], [1, 1], encodings="dictionary", dictionary=[], optional=True)
    agree(data, 1)


@pytest.mark.parametrize("physical", [INT32, BYTE_ARRAY])
def test_codes_beyond_the_dictionary(physical: int) -> None:
    values = [0, 1, 2] if physical == INT32 else [b"a", b"b", b"c"]
    body = bytes([4]) + hybrid([1, 12, 0], 4, packed=True)
    data = make(values, [3], physical, encodings="dictionary", edit_body=lambda page, _: body)
    with pytest.raises(ps.CorruptFileError, match=r"column 'x'.*dictionary index 12 >= 3"):
        ps.read_table(data)


@pytest.mark.parametrize("width", [33, 64, 255])
def test_codes_wider_than_an_index(width: int) -> None:
    data = make(
        [1, 2], [2], encodings="dictionary", edit_body=lambda page, body: bytes([width]) + body[1:]
    )
    with pytest.raises(ps.CorruptFileError, match="bit width"):
        ps.read_table(data)


@pytest.mark.parametrize("count", [-1, 4, 1 << 30])
def test_dictionaries_that_claim_more_than_they_hold(count: int) -> None:
    def edit(page: int, made: Struct) -> None:
        if page < 0:
            made[7][1] = I32(count)

    with pytest.raises(ps.CorruptFileError):
        ps.read_table(make([1, 2, 3], [3], encodings="dictionary", edit_header=edit))


def test_dictionary_codes_in_a_chunk_without_dictionary() -> None:
    data = make(
        [1, 2],
        [2],
        edit_header=header(5, 2, I32(8)),
        edit_body=lambda *_: b"\1" + hybrid([0, 1], 1),
    )
    with pytest.raises(ps.CorruptFileError, match="no dictionary page"):
        ps.read_table(data)


# ---- levels --------------------------------------------------------------------------------------


def test_levels_in_the_legacy_bit_packed_encoding() -> None:
    values = [1, None, 3, 4, None, None, 7, 8, 9, None]
    bits = [int(v is not None) for v in values]
    packed = bytes(sum(bit << 7 - i for i, bit in enumerate(bits[at : at + 8])) for at in (0, 8))
    stored = packed + plain(INT32, [v for v in values if v is not None])

    def edit(_: int, made: Struct) -> None:
        made[2] = made[3] = I32(len(stored))
        made[5][3] = made[5][4] = I32(4)

    data = make(values, [10], edit_header=edit, edit_bytes=lambda *_: stored)
    assert ps.read_table(data)["x"].to_pylist() == values
    assert [rows(data, i) for i in range(10)] == [[v] for v in values]


def test_the_padding_of_the_last_packed_group_may_be_cut() -> None:
    values = list(range(11))
    data = make(
        values,
        [11],
        encodings="dictionary",
        packed=True,
        edit_body=lambda page, body: body if page < 0 else body[:-2],
    )
    assert ps.read_table(data)["x"].to_pylist() == values


@pytest.mark.parametrize("nulls", [-1, 0, 2, 11, 1 << 30])
def test_null_counts_of_v2_headers_that_are_wrong(nulls: int) -> None:
    """Writers have put -1 there, and 0; the levels decide. More nulls than values is a contradiction."""
    data = make(X, [10], version=2, edit_header=header(8, 2, I32(nulls)))
    if nulls <= 3:
        assert ps.read_table(data)["x"].to_pylist() == X
    else:
        with pytest.raises(ps.CorruptFileError):
            ps.read_table(data)


@pytest.mark.parametrize("count", [0, 9, 11, 1 << 30])
def test_row_counts_of_v2_headers_that_are_wrong(count: int) -> None:
    with pytest.raises(ps.CorruptFileError):
        ps.read_table(make(X, [10], version=2, edit_header=header(8, 3, I32(count))))


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("count", [-(1 << 31), -1, 9, 11, 20, (1 << 31) - 1])
@pytest.mark.parametrize("offset_index", [True, False])
def test_value_counts_of_headers_that_are_wrong(
    version: int, count: int, offset_index: bool
) -> None:
    def edit(page: int, made: Struct) -> None:
        for number in (5, 8):
            if number in made:
                made[number][1] = I32(count)
                if number == 8:
                    made[number][3] = I32(count)

    data = make(list(range(10)), [10], version=version, edit_header=edit, offset_index=offset_index)
    with pytest.raises(ps.CorruptFileError, match="column 'x'"):
        ps.read_table(data)
    with pytest.raises(ps.CorruptFileError, match="column 'x'"):
        rows(data, 9)


@pytest.mark.parametrize("length", [-1, 1 << 20, (1 << 31) - 1])
@pytest.mark.parametrize("field", [5, 6])
def test_level_lengths_of_v2_headers_that_are_wrong(field: int, length: int) -> None:
    with pytest.raises(ps.CorruptFileError):
        ps.read_table(make(version=2, edit_header=header(8, field, I32(length))))


# ---- sizes ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("change", [-1, 1, 1000])
@pytest.mark.parametrize("version", [1, 2])
def test_pages_decompress_to_exactly_the_size_they_declare(
    codec: str, change: int, version: int
) -> None:
    def edit(_: int, made: Struct) -> None:
        made[2] = I32(made[2] + change)

    data = make(list(range(100)), [100], codec=codec, version=version, edit_header=edit)
    with pytest.raises(ps.CorruptFileError, match="column 'x'"):
        ps.read_table(data)


@pytest.mark.parametrize("codec", CODECS)
def test_pages_that_claim_gigabytes(codec: str) -> None:
    data = make(codec=codec, edit_header=header(0, 2, I32((1 << 31) - 1)))
    with pytest.raises((ps.CorruptFileError, ps.LimitError)):
        ps.read_table(data)


@pytest.mark.parametrize("size", [-1, 0, 1, 1 << 20, (1 << 31) - 1])
@pytest.mark.parametrize("offset_index", [True, False])
def test_stored_sizes_that_are_wrong(size: int, offset_index: bool) -> None:
    data = make(edit_header=header(0, 3, I32(size), page=1), offset_index=offset_index)
    with pytest.raises(ps.CorruptFileError):
        ps.read_table(data)


@pytest.mark.parametrize("rows_here", [4, 9, 11, 1 << 40])
@pytest.mark.parametrize("cuts", [[10], [4, 6]])
def test_a_row_group_that_has_other_rows_than_its_columns(rows_here: int, cuts: list[int]) -> None:
    def edit(_: int, group: Struct) -> None:
        group[3] = I64(rows_here)

    columns = [Column("x", INT32, list(range(10)), cuts), Column("row", INT64, list(range(10)))]
    data = write(columns, edit_group=edit)
    with pytest.raises(ps.PageseekError):
        ps.read_table(data)


@pytest.mark.parametrize("number", [5, 6, 7, 9, 11])
@pytest.mark.parametrize("value", [-(1 << 63) + 1, -1, 0, 3, 1 << 20, (1 << 63) - 1])
def test_offsets_and_sizes_of_chunks_that_are_wrong(number: int, value: int) -> None:
    def edit(meta: Struct) -> None:
        meta[number] = I64(value)

    for encodings in ("plain", "dictionary"):
        data = make(encodings=encodings, edit_chunk=edit)
        for condition in (None, ps.col("x") == 5):
            try:
                found = ps.read_table(data, filter=condition)
            except ps.PageseekError:
                continue
            assert found["row"].to_pylist() == (list(range(10)) if condition is None else [3, 4])


# ---- what is not supported -----------------------------------------------------------------------


@pytest.mark.parametrize("encoding", [5, 6, 7, 10, 4, 99, -1])
def test_other_encodings_are_an_error_only_where_the_column_is_read(encoding: int) -> None:
    data = make(edit_header=header(5, 2, I32(encoding)))
    assert ps.read_table(data, columns=["row"]).num_rows == 10
    with pytest.raises(
        (ps.UnsupportedError, ps.CorruptFileError), match=r"column 'x'.*(ncoding|delta)"
    ):
        ps.read_table(data)


@pytest.mark.parametrize("codec", [3, 8, -1])
def test_other_codecs_are_an_error_only_where_the_column_is_read(codec: int) -> None:
    data = make(edit_chunk=lambda meta: meta.update({4: I32(codec)}))
    assert ps.read_table(data, columns=["row"]).num_rows == 10
    with pytest.raises(ps.UnsupportedError, match=r"column 'x'.*codec"):
        ps.read_table(data)


def test_text_that_is_not_utf8() -> None:
    data = make([b"fine", b"\xff\xfe", b"good"], [1, 1, 1], BYTE_ARRAY, logical=STRING)
    assert rows(data, 0) == ["fine"]
    with pytest.raises(ps.CorruptFileError, match=r"column 'x'.*UTF-8"):
        rows(data, 1)


@pytest.mark.parametrize("packed", [True, False])
def test_booleans_in_rle(packed: bool) -> None:
    values = [True, False, None, True, True, None, False, True, True]
    for version in (1, 2):
        data = make(values, [4, 5], BOOLEAN, encodings="rle", packed=packed, version=version)
        agree(data, True, False)


# ---- any byte may be wrong -----------------------------------------------------------------------


def samples() -> dict[str, bytes]:
    text = Column(
        "x",
        BYTE_ARRAY,
        [b"aa", None, b"bb", b"aa"],
        [2, 2],
        logical=STRING,
        encodings="dictionary",
        codec="snappy",
    )
    return {
        "plain": make([1, None, 3], [2, 1], crc=False),
        "v2": make([1.5, 2.5, None], [1, 2], DOUBLE, version=2, codec="zstd"),
        "text": write(
            [text, Column("row", INT32, [0, 1, 2, 3], [3, 1])], key_values={b"k": b"v", b"e": None}
        ),
    }


@pytest.mark.parametrize("name", samples())
def test_a_file_cut_at_any_byte_is_an_error(name: str) -> None:
    data = samples()[name]
    for length in range(len(data)):
        with pytest.raises(ps.PageseekError):
            ps.read_table(data[:length])


@pytest.mark.parametrize("name", samples())
def test_any_byte_of_a_file_may_be_wrong(name: str) -> None:
    """An answer or a PageseekError, and nothing else, for any byte."""
    data = samples()[name]
    dice = random.Random(name)
    condition = ps.col("row") <= 1
    for at in range(len(data)):
        for value in {
            data[at] ^ 1 << dice.randrange(8),
            dice.randrange(256),
            dice.choice((0, 0x7F, 0x80, 0xFF)),
        }:
            changed = data[:at] + bytes([value]) + data[at + 1 :]
            for condition_here in (None, condition):
                try:
                    ps.read_table(changed, filter=condition_here)
                except ps.PageseekError:
                    pass
                except Exception as error:
                    raise AssertionError(f"byte {at} = {value}: {type(error).__name__}") from error


def test_unknown_fields_in_every_header_are_passed_over() -> None:
    odd = {30: {1: [b"x"], 2: True}, 31: b"y" * 200, 32: I64(-5)}
    data = make(
        edit_header=lambda page, made: made.update(odd),
        edit_chunk=lambda meta: meta.update(odd),
        edit_column_index=lambda index: index.update(odd),
        edit_offset_index=lambda index: index.update(odd),
        edit_element=lambda element: element.update(odd),
    )
    agree(data, 1, 5)
    assert len(thrift(odd)) > 200


def test_values_cut_short_in_every_codec() -> None:
    for codec in CODECS:
        data = make(list(range(50)), [50], codec=codec, edit_body=lambda page, body: body[:-1])
        with pytest.raises(ps.CorruptFileError, match="column 'x'"):
            ps.read_table(data)
        assert rows(data, 3) == [3]


def test_lengths_of_strings_that_leave_the_page() -> None:
    def edit(_: int, body: bytes) -> bytes:
        return body[:5] + struct.pack("<I", 1 << 30) + body[9:]

    with pytest.raises(ps.CorruptFileError, match="column 'x'"):
        ps.read_table(make([b"a", b"b", b"c"], [3], BYTE_ARRAY, edit_body=edit))
