"""The leaf decoder after an error, or after its pages are freed: it requires the pages again, and never uses freed memory."""

from __future__ import annotations

import gc
import sys
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import pageseek as ps
from pageseek._core.decode import TAKE_DONE, TAKE_FULL, TAKE_PAGE, CoreError
from support.pages import KINDS, RLE_DICTIONARY, Kind, Page, arrow, decoder_of, entries_of
from support.writer import I32, INT64, Struct, hybrid, plain, thrift

N = 4_000
INT = next(kind for kind in KINDS if kind.name == "int64")
STRING = next(kind for kind in KINDS if kind.name == "string")


def ranges(*pairs: tuple[int, int]) -> bytes:
    return np.array(pairs, np.int64).tobytes()


def page(codec: str, version: int = 1) -> bytes:
    """A page of the numbers up to N, with its header."""
    body = plain(INT64, range(N))
    packed = body if codec == "uncompressed" else pa.Codec(codec).compress(body, asbytes=True)
    header: Struct = {1: I32(0), 2: I32(len(body)), 3: I32(len(packed))}
    if version == 1:
        header[5] = {1: I32(N), 2: I32(0), 3: I32(3), 4: I32(3)}
    else:
        header[1] = I32(3)
        header[8] = {1: I32(N), 2: I32(0), 3: I32(N), 4: I32(0), 5: I32(0), 6: I32(0)}
        header[8][7] = codec != "uncompressed"
    return thrift(header) + packed


def numbers(finished: tuple[Any, ...]) -> list[int]:
    return np.frombuffer(finished[4], np.int64).tolist()


def codes(values: list[int]) -> Page:
    return Page(bytes([6]) + hybrid(values, 6, True), None, 1, RLE_DICTIONARY, len(values), -1)


@pytest.mark.parametrize("codec", ["uncompressed", "snappy", "lz4_raw"])
@pytest.mark.parametrize("version", [1, 2])
def test_a_page_that_is_gone_is_asked_for_again(codec: str, version: int) -> None:
    for gone in ("released", "another header", "no header"):
        decoder = ps.LeafDecoder(INT.leaf_type, 0, 0, codec=codec)
        decoder.begin(ranges((0, 10)))
        decoder.head(page(codec, version))
        assert decoder.take(0) == TAKE_DONE
        assert numbers(decoder.finish()) == list(range(10))
        if gone == "released":
            decoder.release()
        elif gone == "another header":
            decoder.head(page(codec, version))
        else:
            with pytest.raises(CoreError):
                decoder.head(b"")
        gc.collect()
        decoder.begin(ranges((20, 30)))
        assert decoder.resume() == TAKE_PAGE
        decoder.head(page(codec, version))
        assert decoder.take(0) == TAKE_DONE
        assert numbers(decoder.finish()) == list(range(20, 30))


@pytest.mark.parametrize("codec", ["uncompressed", "snappy", "lz4_raw"])
def test_later_rows_of_a_page_of_which_a_prefix_was_needed(codec: str) -> None:
    decoder = ps.LeafDecoder(INT.leaf_type, 0, 0, codec=codec)
    decoder.head(page(codec))
    decoder.begin(ranges((0, 10)))
    assert decoder.take(0) == TAKE_DONE
    decoder.finish()
    decoder.begin(ranges((2000, 2003)))
    assert decoder.resume() == TAKE_DONE
    assert numbers(decoder.finish()) == [2000, 2001, 2002]


def test_take_needs_a_header_that_was_read() -> None:
    decoder = ps.LeafDecoder(INT.leaf_type, 0, 0, codec="snappy")
    decoder.begin(ranges((0, 10)))
    whole = page("snappy")
    for bad in (b"", whole[:3], whole[:-1]):  # the last one tells of bytes that are not there
        for call in (lambda: decoder.take(0), decoder.take_dictionary):
            with pytest.raises(CoreError):
                decoder.head(bad)
            with pytest.raises(CoreError, match="before head"):
                call()
    decoder.head(whole)
    decoder.release()
    with pytest.raises(CoreError, match="before head"):
        decoder.take(0)


def test_a_refused_selection_replaces_the_one_before() -> None:
    decoder = ps.LeafDecoder(INT.leaf_type, 0, 0, codec="snappy")
    decoder.begin(ranges(*((i, i + 1) for i in range(0, 2000, 2))))
    with pytest.raises(CoreError):
        decoder.begin(ranges((5, 3)))
    gc.collect()
    decoder.head(page("snappy"))
    with pytest.raises(CoreError, match="before begin"):
        decoder.take(0)


def test_after_a_fault_no_row_comes_from_the_middle_of_a_page() -> None:
    n, entries = 3000, entries_of(STRING)
    values = [i % len(entries) for i in range(n)]
    bad = [*values[:1500], 63, *values[1501:]]
    wanted = ((0, 1000), (1400, 1600), (1700, 1800))
    decoder = decoder_of(STRING, RLE_DICTIONARY, False)
    decoder.begin(ranges(*wanted))
    with pytest.raises(CoreError, match="dictionary index 63"):
        codes(bad).hand(decoder)
    done = arrow(STRING, decoder.finish())
    decoder.begin(ranges(*wanted))
    assert decoder.resume() == TAKE_PAGE
    assert codes(values).hand(decoder) == TAKE_DONE
    rows = done + arrow(STRING, decoder.finish())
    assert rows == [entries[values[i]] for a, b in wanted for i in range(a, b)]


@pytest.mark.parametrize("kind", [INT, STRING], ids=lambda kind: kind.name)
def test_a_refused_dictionary_replaces_the_one_before(kind: Kind) -> None:
    decoder = decoder_of(kind, RLE_DICTIONARY, False)
    decoder.begin(ranges((0, 40)), 10)
    values = [i % len(entries_of(kind)) for i in range(40)]
    assert codes(values).hand(decoder) == TAKE_FULL
    decoder.finish()
    for n in (-1, 1000):
        with pytest.raises(CoreError):
            decoder.dictionary(b"x" * 40, n)
        gc.collect()
        assert not decoder.has_dictionary
        decoder.begin(ranges((10, 40)))
        assert decoder.resume() == TAKE_PAGE
        with pytest.raises(CoreError, match="without a dictionary"):
            codes(values).hand(decoder)
    decoder.dictionary(plain(kind.physical, entries_of(kind)), len(entries_of(kind)))
    assert codes(values).hand(decoder) == TAKE_DONE


def test_a_decoder_in_a_cycle_gives_its_buffers_back() -> None:
    told: list[Any] = []
    before, sys.unraisablehook = sys.unraisablehook, told.append
    try:
        for codec in ("uncompressed", "snappy"):
            data = bytearray(page(codec))
            rows = bytearray(ranges((0, 10)))
            cycle: list[Any] = [ps.LeafDecoder(INT.leaf_type, 0, 0, codec=codec)]
            cycle.append(cycle)
            cycle += [memoryview(rows), memoryview(data)]
            cycle[0].begin(cycle[2])
            cycle[0].head(cycle[3])
            assert cycle[0].take(0) == TAKE_DONE
            del cycle
            gc.collect()
            data.append(0)  # BufferError while somebody holds it
            rows.append(0)
    finally:
        sys.unraisablehook = before
    assert told == []
