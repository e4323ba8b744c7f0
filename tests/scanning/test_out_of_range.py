"""Values outside of their Arrow type: a decimal with too many digits, a time outside of a day."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import pytest

import pageseek as ps
from pageseek._core.decode import LeafDecoder
from pageseek._core.rows import RowRanges
from pageseek.base.errors import CORRUPT, CoreError
from support.writer import BYTE_ARRAY, FIXED, I32, INT32, INT64, Column, Struct, decimal, write

DAY = {1: 86_400_000, 2: 86_400_000_000, 3: 86_400_000_000_000}


def physical_value(physical: int, length: int, value: int) -> Any:
    if physical in (INT32, INT64):
        return value
    size = length if physical == FIXED else max((value.bit_length() + 8) // 8, 1)
    return value.to_bytes(size, "big", signed=True)


def column(physical: int, length: int, values: list[int | None], **how: Any) -> Column:
    made = [None if v is None else physical_value(physical, length, v) for v in values]
    return Column("x", physical, made, type_length=length or None, statistics=False, **how)


FORMS = [(INT32, 0), (INT64, 0), (FIXED, 4), (FIXED, 9), (FIXED, 16), (FIXED, 17), (FIXED, 32)]


@pytest.mark.parametrize(("physical", "length"), [*FORMS, (BYTE_ARRAY, 0)])
@pytest.mark.parametrize("encoding", ["plain", "dictionary"])
def test_decimals_keep_to_their_digits(physical: int, length: int, encoding: str) -> None:
    bits = 8 * ({INT32: 4, INT64: 8, BYTE_ARRAY: 32}.get(physical) or length)
    for digits in (1, 2, 9, 10, 18, 19, 20, 37, 38, 39, 57, 75, 76):
        if digits > len(str(2 ** (bits - 1) - 1)) - 1:
            break
        most = 10**digits - 1
        how = {**decimal(digits, 0), "encodings": encoding}
        for wrong in (most + 1, -most - 1, 2 ** (bits - 1) - 1, -(2 ** (bits - 1))):
            for values in ([most, None, -most, 0], [most, None, -most, wrong]):
                data = write([column(physical, length, values, **how)])
                if wrong in values and abs(wrong) > most:
                    with pytest.raises(
                        ps.CorruptFileError,
                        match=f"'x'.*({digits} digits.*out_of_range|does not fit)",
                    ):
                        ps.read_table(data)
                    if encoding == "dictionary" and abs(wrong) >= 2**127:
                        continue  # a dictionary is converted whole
                    read = ps.read_table(data, limit=3)  # rows that are not read are not judged
                else:
                    read = ps.read_table(data)
                read.validate(full=True)
                wanted = [None if v is None else Decimal(v) for v in values[: read.num_rows]]
                assert read["x"].to_pylist() == wanted


def test_any_integer_fits_as_many_digits_as_it_may_have() -> None:
    for physical, bits, digits in ((INT32, 32, 10), (INT64, 64, 19)):
        values = [-(2 ** (bits - 1)), 2 ** (bits - 1) - 1, None]
        how: dict[str, Any] = {"converted": 5, "scale": 0, "precision": digits}
        read = ps.read_table(write([column(physical, 0, values, **how)]))
        read.validate(full=True)
        assert read["x"].to_pylist() == [None if v is None else Decimal(v) for v in values]


@pytest.mark.parametrize("unit", [1, 2, 3])
def test_times_lie_within_a_day(unit: int) -> None:
    logical: Struct = {7: {1: True, 2: {unit: {}}}}
    physical = INT32 if unit == 1 else INT64
    fine: list[int | None] = [0, DAY[unit] - 1, None]
    read = ps.read_table(write([column(physical, 0, fine, logical=logical)]))
    read.validate(full=True)
    assert read["x"][0].as_py() == datetime.time(0)
    for wrong in (-1, DAY[unit], 2**31 - 1 if unit == 1 else 2**63 - 1):
        data = write([column(physical, 0, [*fine, wrong], logical=logical)])
        with pytest.raises(ps.CorruptFileError, match=r"column 'x'.*value 3 .*time of day"):
            ps.read_table(data)
        assert ps.read_table(data, limit=3).equals(read)


def test_what_lies_under_a_null_is_not_judged() -> None:
    """A dense block leaves what it likes in the places of nulls."""
    values: list[int | None] = [7 if i % 3 else None for i in range(5000)]
    values[1000] = None
    read = ps.read_table(write([column(INT32, 0, values, **decimal(1, 0))]))
    read.validate(full=True)
    assert read["x"].null_count == values.count(None)


def test_structs_and_lists_are_judged_too() -> None:
    body = b"".join(v.to_bytes(4, "little") for v in (5, 99, 100))
    levels = bytes([2 << 1, 0, 1 << 1, 1, 3 << 1, 1])  # repetition 0 0 1, definition 1 1 1
    for digits, fine in ((3, True), (2, False)):
        decoder = LeafDecoder((INT32, 0, 12, 0, 0, 0, digits), 1, 1, nesting_levels=((1, 1, 1),))
        decoder.begin(RowRanges.all(2))
        decoder.page(body, levels, 2, 0, 3, 3, 3, 0, 2, 4, 2, 0)
        if fine:
            assert decoder.finish()[0] == 3
        else:
            with pytest.raises(CoreError, match=r"value 2 .* has more than the 2 digits") as e:
                decoder.finish()
            assert e.value.status == CORRUPT


def test_a_flipped_precision_is_an_error_of_the_file() -> None:
    data = write([column(INT32, 0, [1, 12345, None], **decimal(5, 2))])

    def precise(digits: int) -> bytes:
        def edit(element: Struct) -> None:
            element[8], element[10] = I32(digits), {5: {1: I32(2), 2: I32(digits)}}

        return write([column(INT32, 0, [1, 12345, None], **decimal(5, 2), edit_element=edit)])

    assert ps.read_table(data)["x"].to_pylist() == [Decimal("0.01"), Decimal("123.45"), None]
    with pytest.raises(ps.CorruptFileError, match=r"value 1 .* 4 digits .*out_of_range") as error:
        ps.read_table(precise(4))
    assert "page 0 at byte 4" in str(error.value)
    kept = ps.read_table(precise(4), out_of_range="keep")
    kept.validate()
    assert kept.schema.field("x").type.precision == 4
    assert kept["x"].to_pylist() == [Decimal("0.01"), Decimal("123.45"), None]


def test_of_several_pages_none_is_named() -> None:
    values: list[int | None] = [1, 2, 3, 1000, 5, 6]
    data = write([column(INT32, 0, values, **decimal(2, 0), pages=[2, 2, 2])])
    with pytest.raises(ps.CorruptFileError, match="row group 0: value 3 of"):
        ps.read_table(data)
    with pytest.raises(ps.CorruptFileError, match=r"page 1 at byte .* value 1 of"):
        ps.read_table(data, filter=ps.col("x") > 900)
