"""The leaf decoder alone: skipping equals reading and discarding, batches add up, truncated pages raise errors."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import pageseek as ps
from pageseek._core.decode import TAKE_DONE, TAKE_PAGE, CoreError
from support.pages import (
    KINDS,
    PLAIN,
    RLE_DICTIONARY,
    Kind,
    N,
    Page,
    arrow,
    cases,
    decoder_of,
    entries_of,
    page_of,
    read_pages,
    rows_of,
    sampled_cases,
)
from support.writer import INT32, hybrid, plain


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
        assert whole == [kind.wanted(v) for v in rows]
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
        decoder = decoder_of(kind, encoding, optional)
        found = read_pages(decoder, pages, ranges(*chosen), kind, size)
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


@sampled_cases
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
            ps.LeafDecoder(kind.leaf_type, 0, 0).dictionary(data[:length], len(entries))
    with pytest.raises(CoreError):
        ps.LeafDecoder(kind.leaf_type, 0, 0).dictionary(data, -1)


def test_output_beyond_the_limit_is_refused() -> None:
    decoder = ps.LeafDecoder(KINDS[2].leaf_type, 0, 0, max_output=64)
    with pytest.raises(CoreError, match="limit"):
        decoder.begin(ranges((0, 9)))
    with pytest.raises(CoreError):
        ps.LeafDecoder(KINDS[2].leaf_type, 0, 0).begin(ranges((0, 1 << 62)))


@pytest.mark.parametrize("pairs", [[(3, 1)], [(5, 6), (1, 2)], [(0, 5), (4, 6)], [(-1, 4)]])
def test_selections_that_are_none(pairs: list[tuple[int, int]]) -> None:
    with pytest.raises(CoreError):
        ps.LeafDecoder(KINDS[1].leaf_type, 0, 0).begin(ranges(*pairs))


def test_calls_in_a_wrong_order_are_errors() -> None:
    kind = KINDS[1]
    decoder = ps.LeafDecoder(kind.leaf_type, 0, 0)
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
        (0, 0, 3, 0, 0, 0, 0),
        (1, 0, 4 + 10, 0, 0, 0, 0),
        (7, -1, 16, -1, 0, 0, 0),
        (9, 0, 3, 0, 0, 0, 0),
        (1, 0, 12, 0, 0, 0, 39),
        (1, 0, 4, 0, 0, 0, -1),
        (7, 1 << 30, 16, 1 << 30, 0, 0, 0),
    ],
)
def test_forms_that_do_not_exist(form: tuple[int, ...]) -> None:
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
            decoder = ps.LeafDecoder(KINDS[1].leaf_type, 0, 0)
            decoder.dictionary(plain(INT32, entries), 700)
            page = Page(body, None, 1, RLE_DICTIONARY, n, 0)
            assert read(decoder, page, (start, stop), kind=KINDS[1]) == values[start:stop]
