"""The leaf decoder alone: skips are reads thrown away, batches add up, and no cut page gets past it."""

from __future__ import annotations

import itertools
import struct
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest
from pageseek._core.decode import TAKE_DONE, TAKE_FULL, TAKE_PAGE, CoreError

import pageseek as ps
from support.writer import BOOLEAN, BYTE_ARRAY, FIXED, INT32, INT64, INT96, hybrid, plain

PLAIN, RLE, RLE_DICTIONARY = 0, 3, 8


class Kind(NamedTuple):
    name: str
    form: tuple[int, int, int, int, int, int]
    values: list[Any]
    encodings: tuple[int, ...]

    @property
    def physical(self) -> int:
        return self.form[0]


N = 21
KINDS = [
    Kind("bool", (BOOLEAN, 0, 0, 0, 0, 0), [i % 3 == 0 for i in range(N)], (PLAIN, RLE)),
    Kind("int32", (INT32, 0, 3, 0, 0, 0), [i * 7 % 5 for i in range(N)], (PLAIN, RLE_DICTIONARY)),
    Kind("int64", (INT64, 0, 4, 0, 0, 0), [i * 7 % 5 << 40 for i in range(N)], (PLAIN, RLE_DICTIONARY)),
    Kind("int8", (INT32, 0, 1, 0, 0, 0), [i * 11 % 9 - 4 for i in range(N)], (PLAIN, RLE_DICTIONARY)),
    Kind("string", (BYTE_ARRAY, 0, 14, 0, 0, 1), [b"x" * (i % 4) + b"%d" % (i % 6) for i in range(N)], (PLAIN, RLE_DICTIONARY)),
    Kind("large string", (BYTE_ARRAY, 0, 15, 0, 0, 0), [b"y" * (i * 9 % 40) for i in range(N)], (PLAIN, RLE_DICTIONARY)),
    Kind("fixed", (FIXED, 3, 16, 3, 0, 0), [b"%03d" % (i % 8) for i in range(N)], (PLAIN, RLE_DICTIONARY)),
    Kind("decimal", (BYTE_ARRAY, 0, 12, 0, 0, 0), [bytes([i % 4 + 1]) * (i % 4 + 1) for i in range(N)], (PLAIN, RLE_DICTIONARY)),
    Kind("int96", (INT96, 0, 4, 0, 3, 0), [struct.pack("<qI", i % 4, 2_440_588) for i in range(N)], (PLAIN, RLE_DICTIONARY)),
]  # fmt: skip
CASES = [
    pytest.param(kind, encoding, nulls, version, id=f"{kind.name}-{encoding}-{nulls}-v{version}")
    for kind in KINDS
    for encoding in kind.encodings
    for nulls in ("required", "none", "some", "all")
    for version in (1, 2)
]
cases = pytest.mark.parametrize(("kind", "encoding", "nulls", "version"), CASES)


class Page(NamedTuple):
    """What LeafDecoder.page takes, but for the first row."""

    body: bytes
    levels: bytes | None
    version: int
    encoding: int
    num_values: int
    num_nulls: int

    def hand(self, decoder: ps.LeafDecoder, first: int = 0, partial: bool = False) -> int:
        v2 = self.version == 2
        state = decoder.page(
            self.body, self.levels, self.version, self.encoding, RLE, RLE, self.num_values,
            self.num_nulls if v2 else -1, self.num_values if v2 else -1,
            0, len(self.levels or b""), first, partial,
        )  # fmt: skip
        assert isinstance(state, int)
        return state


def rows_of(kind: Kind, nulls: str) -> list[Any]:
    keep = {
        "required": lambda _: True,
        "none": lambda _: True,
        "some": lambda i: i % 5 not in (0, 3),
        "all": lambda _: False,
    }
    return [v if keep[nulls](i) else None for i, v in enumerate(kind.values)]


def page_of(
    kind: Kind,
    encoding: int,
    rows: Sequence[Any],
    optional: bool,
    version: int,
    packed: bool = False,
) -> Page:
    present = [v for v in rows if v is not None]
    if encoding == RLE_DICTIONARY:
        entries = entries_of(kind)
        width = max((len(entries) - 1).bit_length(), 1)
        body = bytes([width]) + hybrid([entries.index(v) for v in present], width, packed)
    elif encoding == RLE:
        runs = hybrid([int(v) for v in present], 1, packed)
        body = struct.pack("<I", len(runs)) + runs
    else:
        body = plain(kind.physical, present)
    levels = hybrid([int(v is not None) for v in rows], 1, packed) if optional else b""
    nulls = len(rows) - len(present)
    if version == 2:
        return Page(body, levels, 2, encoding, len(rows), nulls)
    return Page(
        (struct.pack("<I", len(levels)) + levels if optional else b"") + body,
        None,
        1,
        encoding,
        len(rows),
        nulls,
    )


def entries_of(kind: Kind) -> list[Any]:
    return list(dict.fromkeys(kind.values))


def decoder_of(kind: Kind, encoding: int, optional: bool) -> ps.LeafDecoder:
    decoder = ps.LeafDecoder(kind.form, int(optional), 0)
    if encoding == RLE_DICTIONARY:
        entries = entries_of(kind)
        decoder.dictionary(plain(kind.physical, entries), len(entries))
    return decoder


TYPES = {
    0: pa.bool_(),
    1: pa.int8(),
    3: pa.int32(),
    4: pa.int64(),
    12: pa.decimal128(38, 0),
    14: pa.binary(),
    15: pa.large_binary(),
}


def arrow(kind: Kind, finished: tuple[Any, ...]) -> list[Any]:
    n, null_count, validity, offsets, values = finished
    made = TYPES.get(kind.form[2], pa.binary(3))
    buffers = [
        b if b is None else pa.py_buffer(b)
        for b in ((validity, values) if offsets is None else (validity, offsets, values))
    ]
    array = pa.Array.from_buffers(made, n, buffers, null_count)
    array.validate(full=True)
    found: list[Any] = array.to_pylist()
    assert sum(v is None for v in found) == null_count
    return found


def ranges(*pairs: tuple[int, int]) -> np.ndarray[Any, Any]:
    return np.array(pairs, np.int64).reshape(-1, 2)


def read(
    decoder: ps.LeafDecoder, page: Page, *pairs: tuple[int, int], kind: Kind, **how: Any
) -> list[Any]:
    decoder.begin(ranges(*pairs))
    assert page.hand(decoder, **how) == TAKE_DONE
    return arrow(kind, decoder.finish())


@cases
def test_skip_and_read_is_read_and_cut(kind: Kind, encoding: int, nulls: str, version: int) -> None:
    optional, rows = nulls != "required", rows_of(kind, nulls)
    for packed in (False, True):
        page = page_of(kind, encoding, rows, optional, version, packed)
        whole = read(decoder_of(kind, encoding, optional), page, (0, N), kind=kind)
        assert [v is None for v in whole] == [v is None for v in rows]
        if kind.name in ("bool", "int32", "int64", "int8", "string", "large string", "fixed"):
            assert whole == rows
        for n in range(N):
            assert read(decoder_of(kind, encoding, optional), page, (n, N), kind=kind) == whole[n:]
        for start, stop in ((0, 1), (3, 4), (7, 9), (8, 16), (20, 21)):
            assert (
                read(decoder_of(kind, encoding, optional), page, (start, stop), kind=kind)
                == whole[start:stop]
            )
        some = [(1, 2), (4, 9), (10, 11), (17, 20)]
        found = read(decoder_of(kind, encoding, optional), page, *some, kind=kind)
        assert found == [v for start, stop in some for v in whole[start:stop]]


@cases
def test_batches_of_any_size_add_up(kind: Kind, encoding: int, nulls: str, version: int) -> None:
    optional, rows = nulls != "required", rows_of(kind, nulls)
    cuts = (0, 4, 5, 13, N)
    pages = [
        page_of(kind, encoding, rows[a:b], optional, version) for a, b in itertools.pairwise(cuts)
    ]
    chosen = [(0, 3), (4, 6), (9, 18), (19, N)]
    whole = read(
        decoder_of(kind, encoding, optional),
        page_of(kind, encoding, rows, optional, version),
        *chosen,
        kind=kind,
    )
    for size in (1, 2, 3, 5, 8, N):
        decoder, found, feed = (
            decoder_of(kind, encoding, optional),
            [],
            iter(zip(cuts, pages, strict=False)),
        )
        selection = ranges(*chosen)
        decoder.begin(selection, size)
        state = TAKE_PAGE
        while state != TAKE_DONE:
            if state == TAKE_FULL:
                part = arrow(kind, decoder.finish())
                assert len(part) == size
                found += part
                decoder.begin(selection, size)
                state = decoder.resume()
            else:
                first, page = next(feed)
                state = page.hand(decoder, first)
        found += arrow(kind, decoder.finish())
        assert found == whole


@cases
def test_pages_without_a_selected_row_need_not_be_handed(
    kind: Kind, encoding: int, nulls: str, version: int
) -> None:
    optional, rows = nulls != "required", rows_of(kind, nulls)
    page = page_of(kind, encoding, rows, optional, version)
    decoder = decoder_of(kind, encoding, optional)
    decoder.begin(ranges((100, 101), (1000, 1002)))
    assert page.hand(decoder, 100) == TAKE_PAGE
    assert page.hand(decoder, 990) == TAKE_DONE
    whole = read(decoder_of(kind, encoding, optional), page, (0, N), kind=kind)
    assert arrow(kind, decoder.finish()) == [whole[0], *whole[10:12]]


@cases
def test_a_page_cut_at_any_byte_is_an_error_or_was_not_needed(
    kind: Kind, encoding: int, nulls: str, version: int
) -> None:
    optional, rows = nulls != "required", rows_of(kind, nulls)
    for packed in (False, True):
        page = page_of(kind, encoding, rows, optional, version, packed)
        whole = read(decoder_of(kind, encoding, optional), page, (0, N), kind=kind)
        for length in range(len(page.body)):
            for chosen, wanted in (((0, N), whole), ((0, 2), whole[:2])):
                try:
                    found = read(
                        decoder_of(kind, encoding, optional),
                        page._replace(body=page.body[:length]),
                        chosen,
                        kind=kind,
                    )
                except CoreError:
                    continue
                assert found == wanted, "a short page gave other values"
        for length in range(len(page.levels or b"")):
            short = page._replace(levels=(page.levels or b"")[:length])
            with pytest.raises(CoreError):
                read(decoder_of(kind, encoding, optional), short, (0, N), kind=kind)


@pytest.mark.parametrize("kind", KINDS[1:], ids=lambda kind: kind.name)
def test_a_dictionary_cut_at_any_byte_is_an_error(kind: Kind) -> None:
    entries = entries_of(kind)
    data = plain(kind.physical, entries)
    for length in range(len(data)):
        with pytest.raises(CoreError):
            ps.LeafDecoder(kind.form, 0, 0).dictionary(data[:length], len(entries))
    with pytest.raises(CoreError):
        ps.LeafDecoder(kind.form, 0, 0).dictionary(data, -1)


def test_output_beyond_the_limit_is_refused() -> None:
    decoder = ps.LeafDecoder(KINDS[2].form, 0, 0, max_output=64)
    with pytest.raises(CoreError, match="limit"):
        decoder.begin(ranges((0, 9)))
    with pytest.raises(CoreError):
        ps.LeafDecoder(KINDS[2].form, 0, 0).begin(ranges((0, 1 << 62)))


@pytest.mark.parametrize("pairs", [[(3, 1)], [(5, 6), (1, 2)], [(0, 5), (4, 6)], [(-1, 4)]])
def test_selections_that_are_none(pairs: list[tuple[int, int]]) -> None:
    with pytest.raises(CoreError):
        ps.LeafDecoder(KINDS[1].form, 0, 0).begin(ranges(*pairs))


def test_calls_in_a_wrong_order_are_errors() -> None:
    kind = KINDS[1]
    decoder = ps.LeafDecoder(kind.form, 0, 0)
    page = page_of(kind, PLAIN, kind.values, False, 1)
    with pytest.raises(CoreError):
        decoder.finish()
    with pytest.raises(CoreError):
        decoder.resume()
    with pytest.raises(CoreError):
        page.hand(decoder)
    assert read(decoder, page, (5, 7), kind=kind) == kind.values[5:7]
    with pytest.raises(CoreError, match="ends at row"):
        read(decoder, page_of(kind, PLAIN, kind.values[:3], False, 1), (10, 11), kind=kind)


@pytest.mark.parametrize(
    "form",
    [
        (0, 0, 3, 0, 0, 0),
        (1, 0, 4 + 10, 0, 0, 0),
        (7, -1, 16, -1, 0, 0),
        (9, 0, 3, 0, 0, 0),
        (7, 1 << 30, 16, 1 << 30, 0, 0),
    ],
)
def test_forms_that_do_not_exist(form: tuple[int, int, int, int, int, int]) -> None:
    with pytest.raises(CoreError):
        ps.LeafDecoder(form, 0, 0)


def test_long_runs_and_many_codes() -> None:
    """Past the batches in which codes are unpacked, at starts that are no multiple of anything."""
    n = 5000
    values = np.random.default_rng(3).integers(0, 700, n).tolist()
    entries = list(range(700))
    for packed in (True, False):
        body = bytes([10]) + hybrid(values, 10, packed)
        for start, stop in ((0, n), (1, n), (1023, 1026), (2047, 4099), (4999, 5000)):
            decoder = ps.LeafDecoder(KINDS[1].form, 0, 0)
            decoder.dictionary(plain(INT32, entries), 700)
            page = Page(body, None, 1, RLE_DICTIONARY, n, 0)
            assert read(decoder, page, (start, stop), kind=KINDS[1]) == values[start:stop]
