"""Selections of many short runs: both forms and every kernel, compared with rows of a list."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pageseek as ps
from pageseek._core.decode import TAKE_DONE, CoreError
from pageseek._core.rows import RowRanges
from support.pages import (
    KINDS,
    PLAIN,
    RLE_DICTIONARY,
    Kind,
    Mask,
    Page,
    Selection,
    arrow,
    decoder_of,
    entries_of,
    masks,
    page_of,
    read_pages,
    rows_of,
    sampled_cases,
)
from support.tiers import examples
from support.writer import hybrid, plain

FEW = 9  # rows of which every subset is tried


def as_pairs(mask: Mask, base: int = 0) -> Selection:
    edges = np.diff(np.concatenate([[0], mask.astype(np.int8), [0]]))
    pairs = np.stack([np.flatnonzero(edges == 1), np.flatnonzero(edges == -1)], axis=1)
    return (pairs + base).astype(np.int64)


def as_bits(mask: Mask, base: int = 0) -> Selection:
    return np.packbits(mask, bitorder="little").tobytes(), base, len(mask)


def as_bits_within(mask: Mask, base: int = 0) -> Selection:
    """The bitmap begins at a row that no byte begins with, and goes on behind the last one."""
    lead = min(base, 3)
    wide = np.concatenate([np.zeros(lead, np.bool_), mask, np.zeros(13, np.bool_)])
    return np.packbits(wide, bitorder="little").tobytes(), base - lead, len(wide)


FORMS = (as_pairs, as_bits, as_bits_within)


def chosen(values: Sequence[Any], mask: Mask) -> list[Any]:
    return list(itertools.compress(values, mask))


@sampled_cases
def test_every_selection_of_a_few_rows(kind: Kind, encoding: int, nulls: str, version: int) -> None:
    optional, rows = nulls != "required", rows_of(kind, nulls)[:FEW]
    page = page_of(kind, encoding, rows, optional, version, packed=version == 2)
    whole = read_pages(
        decoder_of(kind, encoding, optional), [page], as_pairs(np.ones(FEW, np.bool_)), kind
    )
    assert [v is None for v in whole] == [v is None for v in rows]
    for subset in range(1, 1 << FEW):
        mask = np.array([subset >> i & 1 for i in range(FEW)], np.bool_)
        form = FORMS[subset % 3]
        found = read_pages(decoder_of(kind, encoding, optional), [page], form(mask), kind)
        assert found == chosen(whole, mask), f"{subset:b}"


def long_rows(kind: Kind, nulls: str, n: int, seed: int) -> list[Any]:
    dice = np.random.default_rng(seed)
    values = [kind.values[i] for i in dice.integers(0, len(kind.values), n)]
    if seed % 2:  # stretches of equals, and of nulls
        values = sorted(values[: n // 2], key=repr) + values[n // 2 :]
    share = {"required": 0.0, "none": 0.0, "some": 0.3, "all": 1.0}[nulls]
    missing = dice.random(n) < share
    if seed % 3 == 0 and nulls == "some":
        missing = np.sort(missing)
    return [None if m else v for v, m in zip(values, missing, strict=True)]


@sampled_cases
def test_long_pages_of_every_density(kind: Kind, encoding: int, nulls: str, version: int) -> None:
    n, optional = 2600, nulls != "required"
    for seed in range(3):
        dice = np.random.default_rng(seed)
        rows = long_rows(kind, nulls, n, seed)
        cuts = np.unique(np.concatenate([[0, n], dice.integers(0, n, (0, 1, 5)[seed])])).tolist()
        pages = [
            page_of(kind, encoding, rows[a:b], optional, version, packed=bool(seed % 2))
            for a, b in itertools.pairwise(cuts)
        ]
        whole = read_pages(
            decoder_of(kind, encoding, optional), pages, as_pairs(np.ones(n, np.bool_)), kind
        )
        for i, mask in enumerate(masks(n, dice)):
            selection = FORMS[(i + seed) % 3](mask)
            for size in (1 << 62, 777, 100)[: 1 + (i % 3)]:
                found = read_pages(
                    decoder_of(kind, encoding, optional), pages, selection, kind, size
                )
                assert found == chosen(whole, mask)


@settings(max_examples=examples(300), deadline=None)
@given(st.data())
def test_any_page_and_any_selection(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(KINDS))
    encoding = data.draw(st.sampled_from(kind.encodings))
    nulls = data.draw(st.sampled_from(("required", "none", "some", "all")))
    version, packed = data.draw(st.sampled_from((1, 2))), data.draw(st.booleans())
    n, seed = data.draw(st.integers(1, 1500)), data.draw(st.integers(0, 5))
    base = data.draw(st.integers(0, 200))
    dice = np.random.default_rng(seed)
    mask = dice.random(n) < data.draw(st.sampled_from((0.01, 0.2, 0.5, 0.8)))
    for _ in range(data.draw(st.integers(0, 3))):
        at, size = data.draw(st.integers(0, n)), data.draw(st.integers(0, 300))
        mask[at : at + size] = data.draw(st.booleans())
    if not mask.any():
        return
    rows = long_rows(kind, nulls, n, seed)
    page = page_of(kind, encoding, rows, nulls != "required", version, packed)
    whole = read_pages(
        decoder_of(kind, encoding, nulls != "required"),
        [page],
        as_pairs(np.ones(n, np.bool_)),
        kind,
    )
    for form in FORMS:
        decoder = decoder_of(kind, encoding, nulls != "required")
        found = read_pages(decoder, [page], form(mask, base), kind, first=base)
        assert found == chosen(whole, mask)


@sampled_cases
def test_a_page_cut_at_any_byte_gives_no_other_values(
    kind: Kind, encoding: int, nulls: str, version: int
) -> None:
    """Only what lies before the last selected row is looked at, in either form of a selection."""
    optional, rows = nulls != "required", rows_of(kind, nulls)
    page = page_of(kind, encoding, rows, optional, version, packed=True)
    mask = np.arange(len(rows)) % 2 == 0
    mask[len(rows) // 2 :] = False
    whole = read_pages(decoder_of(kind, encoding, optional), [page], as_pairs(mask), kind)
    for length in range(len(page.body) + 1):
        outcomes = []
        for form in FORMS:
            cut = page._replace(body=page.body[:length])
            try:
                found = read_pages(decoder_of(kind, encoding, optional), [cut], form(mask), kind)
            except CoreError:
                outcomes.append(False)
            else:
                assert found == whole
                outcomes.append(True)
        assert len(set(outcomes)) == 1


def test_a_faulty_value_matters_only_to_the_rows_that_hold_it() -> None:
    """Dictionary indexes, UTF-8 and conversions are judged for what is selected alone."""
    n = 400
    odd = np.arange(n) % 2 == 1
    kinds = {kind.name: kind for kind in KINDS}

    def attempt(kind: Kind, page: Page, mask: Mask, dictionary: bool) -> list[list[Any]]:
        out = []
        for form in FORMS:
            decoder = ps.LeafDecoder(kind.leaf_type, 0, 0)
            if dictionary:
                entries = entries_of(kind)
                decoder.dictionary(plain(kind.physical, entries), len(entries))
            out.append(read_pages(decoder, [page], form(mask), kind))
        return out

    for name in ("int32", "string", "int8", "fixed"):
        codes = [31 if i % 2 else 1 for i in range(n)]
        body = bytes([5]) + hybrid(codes, 5, True)
        page = Page(body, None, 1, RLE_DICTIONARY, n, 0)
        good = attempt(kinds[name], page, ~odd, True)
        assert good == [[entries_of(kinds[name])[1]] * (n // 2)] * 3
        with pytest.raises(CoreError, match="dictionary index 31"):
            attempt(kinds[name], page, odd, True)

    values = [b"\xff" if i % 2 else b"ok" for i in range(n)]
    page = Page(plain(kinds["string"].physical, values), None, 1, PLAIN, n, 0)
    assert attempt(kinds["string"], page, ~odd, False) == [[b"ok"] * (n // 2)] * 3
    with pytest.raises(CoreError, match="UTF-8"):
        attempt(kinds["string"], page, odd, False)

    wide = [b"\x55" * (17 if i % 2 else 1) for i in range(n)]
    page = Page(plain(kinds["decimal"].physical, wide), None, 1, PLAIN, n, 0)
    assert [len(found) for found in attempt(kinds["decimal"], page, ~odd, False)] == [n // 2] * 3
    with pytest.raises(CoreError, match="decimal"):
        attempt(kinds["decimal"], page, odd, False)

    stamps = [b"\xff" * 7 + (b"\x7f" if i % 2 else b"\0") + b"\xff" * 4 for i in range(n)]
    page = Page(b"".join(stamps), None, 1, PLAIN, n, 0)
    with pytest.raises(CoreError, match="INT96"):
        attempt(kinds["int96"], page, odd, False)


def test_nothing_is_read_behind_the_last_selected_row() -> None:
    kind, n = KINDS[1], 3000
    page = page_of(kind, PLAIN, [7] * n, False, 1)
    mask = np.arange(n) % 3 == 0
    mask[1500:] = False
    for form in FORMS:
        for rows in (1498, 1499):
            decoder = ps.LeafDecoder(kind.leaf_type, 0, 0)
            decoder.begin(form(mask))
            prefix = page._replace(body=page.body[: 4 * rows])
            if rows == 1498:
                assert prefix.hand(decoder, 0, True) == TAKE_DONE
                assert arrow(kind, decoder.finish()) == [7] * 500
        short = page._replace(body=page.body[: 4 * 1497])
        decoder = ps.LeafDecoder(kind.leaf_type, 0, 0)
        decoder.begin(form(mask))
        with pytest.raises(CoreError, match="page ends before value"):
            short.hand(decoder, 0, True)


def test_output_beyond_the_limit_is_refused_in_either_form() -> None:
    kind = next(kind for kind in KINDS if kind.name == "string")
    mask = np.arange(2000) % 2 == 0
    page = page_of(kind, PLAIN, [b"x" * 100] * 2000, False, 1)
    for form in FORMS:
        decoder = ps.LeafDecoder(kind.leaf_type, 0, 0, max_output=50_000)
        decoder.begin(form(mask))
        with pytest.raises(CoreError, match="limit of 50000"):
            page.hand(decoder)


def test_a_bitmap_that_is_none_is_refused() -> None:
    decoder = ps.LeafDecoder(KINDS[1].leaf_type, 0, 0)
    for selection in ((b"\xff", 0, 9), (b"\xff", -1, 8), (b"\xff", 1 << 63, 8), (b"", 0, -1)):
        with pytest.raises((CoreError, OverflowError)):
            decoder.begin(selection)
    with pytest.raises(CoreError):
        decoder.begin((b"\xff", (1 << 63) - 4, 8))
    with pytest.raises(TypeError):
        decoder.begin(3)


def test_row_ranges_are_taken_as_they_are() -> None:
    kind = KINDS[1]
    rows = [i % 5 for i in range(4000)]
    page = page_of(kind, PLAIN, rows, False, 1)
    dice = np.random.default_rng(2)
    makers: list[Callable[[Mask], RowRanges]] = [
        lambda mask: RowRanges.from_rows(np.flatnonzero(mask)),
        lambda mask: RowRanges.from_bitmap(np.packbits(mask, bitorder="little"), 0, len(mask)),
        lambda mask: RowRanges.all(len(mask)).refine(np.packbits(mask, bitorder="little")),
    ]
    for mask in masks(4000, dice):
        for make in makers:
            for selection in (make(mask), make(mask).buffers):
                decoder = ps.LeafDecoder(kind.leaf_type, 0, 0)
                assert read_pages(decoder, [page], selection, kind) == chosen(rows, mask)
