"""Random nested types, rows, pages and selections: the reader returns what was written."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pageseek as ps
from pageseek.format.nesting import Node, assemble
from support.nested_pages import (
    FITTING,
    Layout,
    LeafPages,
    decoder_of,
    drive,
    file_of,
    parts_of,
    row_cuts,
)
from support.nesting import Shredded, node_of, shred
from support.tiers import examples

LEAVES = (
    pa.int32(),
    pa.int64(),
    pa.bool_(),
    pa.float64(),
    pa.string(),
    pa.binary(),
    pa.binary(3),
    pa.decimal128(20, 3),
    pa.decimal128(5, 2),
)


@st.composite
def fields(draw: st.DrawFn, depth: int, name: str = "c") -> pa.Field:
    """A field nested in at least one list or struct, and at most `depth` of them."""
    nullable = draw(st.booleans())
    kind = draw(st.sampled_from(("list", "struct", "map")))

    def inner(of: str) -> pa.Field:
        if depth > 1 and draw(st.booleans()):
            return draw(fields(depth - 1, of))
        return pa.field(of, draw(st.sampled_from(LEAVES)), draw(st.booleans()))

    if kind == "list":
        return pa.field(name, pa.list_(inner("element")), nullable)
    if kind == "struct":
        children = [inner(f"f{i}") for i in range(draw(st.integers(1, 3)))]
        return pa.field(name, pa.struct(children), nullable)
    key = pa.field("key", draw(st.sampled_from((pa.string(), pa.int32()))), False)
    return pa.field(name, pa.map_(key, inner("value")), nullable)


def value_of(field: pa.Field, dice: random.Random, size: int) -> Any:
    """A value of a field; lists have up to `size` elements or so."""
    t, kind = pa.types, field.type
    if field.nullable and dice.random() < 0.2:
        return None
    if t.is_struct(kind):
        return {child.name: value_of(child, dice, size) for child in kind}
    if t.is_list(kind) or t.is_map(kind):
        n = dice.choice((0, 1, 1, 2, size, size * dice.randrange(1, 4)))
        if t.is_list(kind):
            return [value_of(kind.value_field, dice, size) for _ in range(n)]
        return [
            (value_of(kind.key_field, dice, size), value_of(kind.item_field, dice, size))
            for _ in range(n)
        ]
    if t.is_integer(kind):
        return dice.randrange(-40, 40)
    if t.is_boolean(kind):
        return dice.random() < 0.5
    if t.is_floating(kind):
        return dice.randrange(-9, 9) / 4
    if t.is_decimal(kind):
        return Decimal(dice.randrange(-999, 999)).scaleb(-kind.scale)
    if t.is_fixed_size_binary(kind):
        return dice.randbytes(1) * 3
    text = "abcdé"[: dice.randrange(6)] * dice.choice((1, 1, 1, 4))
    return text if t.is_string(kind) else text.encode()


def layout_of(levels: Shredded, physical: int, dice: random.Random) -> tuple[Layout, bool]:
    """A layout, and whether its pages begin with rows."""
    whole = dice.random() < 0.5
    n = len(levels.reps)
    places = row_cuts(levels) if whole else list(range(1, n))
    few = dice.randrange(min(len(places), 12) + 1)
    encodings = ["plain", *FITTING[physical], *(["dictionary"] if physical else [])]
    made = Layout(
        tuple(sorted(dice.sample(places, few))),
        dice.choice((1, 2)),
        tuple(dice.choices(encodings, k=dice.randrange(1, 4))),
        dice.choice(("uncompressed", "snappy", "zstd", "lz4_raw")),
        dice.random() < 0.5,
        dice.random() < 0.6,
        dice.random() < 0.5,
        dice.random() < 0.3,
    )
    return made, whole


def masks_of(n: int, dice: random.Random) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Rows in runs, or scattered with any density, or a tail."""
    how = dice.randrange(4)
    numbers = np.random.default_rng(dice.randrange(1 << 30))
    if how == 0:
        return np.arange(n) >= dice.randrange(n + 1)
    if how == 1:
        edges = np.sort(numbers.integers(0, n + 1, dice.randrange(1, 12)))
        return np.searchsorted(edges, np.arange(n), side="right") % 2 == 1
    mask = numbers.random(n) < dice.choice((0.02, 0.3, 0.5, 0.7, 0.95))
    if how == 3:  # runs and scattered rows in turns
        mask |= np.arange(n) // 700 % 2 == 1
    return mask


def selection_of(mask: np.ndarray[Any, np.dtype[np.bool_]], base: int, bits: bool) -> Any:
    if bits:
        return np.packbits(mask, bitorder="little").tobytes(), base, len(mask)
    edges = np.diff(np.concatenate([[0], mask.astype(np.int8), [0]]))
    pairs = np.stack([np.flatnonzero(edges == 1), np.flatnonzero(edges == -1)], axis=1) + base
    return pairs.astype(np.int64).tobytes()


def batches(
    node: Node, rows: Sequence[Any], mask: Any, size: int, dice: random.Random
) -> Iterator[pa.Array]:
    """The output of decoders for a selection of rows, whose leaves have different pages."""
    n = len(rows)
    shredded = shred(node, rows)
    middle = dice.randrange(n + 1)
    halves = [(0, n)] if dice.random() < 0.5 else [(0, middle), (middle, n)]
    chosen = [selection_of(mask[a:b], a, dice.random() < 0.5) for a, b in halves]
    readers = []
    for part in parts_of(node):
        levels = shredded[part.leaf.index]
        layout, whole = layout_of(levels, int(part.leaf.element.type), dice)
        made = LeafPages(node, part, levels, layout)
        pages = made.pages()
        indexed = whole and dice.random() < 0.7
        readers.append(
            drive(
                decoder_of(part, codec=layout.codec),
                part,
                pages,
                *chosen,
                indexed=indexed,
                dictionary=made.dictionary,
                max_rows=size,
                wanted=[mask[p.first : p.first + p.rows].any() for p in pages] if indexed else None,
            )
        )
    for decoded in zip(*readers, strict=True):
        by_leaf = dict(zip((part.leaf.index for part in parts_of(node)), decoded, strict=True))
        yield assemble(node, by_leaf)


def check_reading(field: pa.Field, n: int, seed: int, longest: int) -> None:
    dice = random.Random(seed)
    node = node_of(field.type, field.nullable)
    rows = [value_of(field, dice, longest) for _ in range(n)]
    array = pa.array(rows, field.type)
    mask = masks_of(n, dice)
    wanted = array.filter(pa.array(mask))
    sizes = [1 << 62]
    if dice.random() < 0.7:
        sizes.append(dice.randrange(max(n // 8, 1), n + 2))
    for size in sizes:
        made = list(batches(node, rows, mask, size, dice))
        for batch in made:
            batch.validate(full=True)
            assert len(batch) <= size
        assert pa.chunked_array(made).combine_chunks().equals(wanted)


seeds = st.integers(0, 1 << 32)


@settings(max_examples=examples(150), deadline=None)
@given(fields(4), st.integers(0, 40), seeds)
def test_small_tables(field: pa.Field, n: int, seed: int) -> None:
    check_reading(field, n, seed, 3)


@settings(max_examples=examples(12), deadline=None)
@given(fields(2), st.integers(1000, 5000), seeds)
def test_blocks_of_scattered_rows(field: pa.Field, n: int, seed: int) -> None:
    check_reading(field, n, seed, 2)


@settings(max_examples=examples(10), deadline=None)
@given(fields(2), st.integers(10, 40), seeds)
def test_rows_longer_than_a_block(field: pa.Field, n: int, seed: int) -> None:
    check_reading(field, n, seed, 40)


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(fields(3), min_size=1, max_size=3), st.integers(1, 150), seeds)
def test_files(columns: list[pa.Field], n: int, seed: int) -> None:
    dice = random.Random(seed)
    named = [field.with_name(f"c{i}") for i, field in enumerate(columns)]
    schema = pa.schema([pa.field("id", pa.int64(), False), *named])
    rows: dict[str, Any] = {"id": range(n)}
    rows |= {field.name: [value_of(field, dice, 3) for _ in range(n)] for field in named}
    layouts = [layout_of(Shredded([0] * n, [0] * n, []), 2, dice)[0]]
    for field in named:
        node = node_of(field.type, field.nullable)
        shredded = shred(node, rows[field.name])
        for part in parts_of(node):
            levels = shredded[part.leaf.index]
            layouts.append(layout_of(levels, int(part.leaf.element.type), dice)[0])
    data = file_of(schema, rows, layouts)
    table = pa.table(rows, schema=schema)
    assert ps.read_table(data).equals(table)
    for _ in range(3):
        mask = masks_of(n, dice)
        chosen = np.flatnonzero(mask)
        wanted = table.filter(pa.array(mask))
        scan = ps.scan(data, batch_size=dice.randrange(1, n + 2))
        found = scan.filter(ps.col("id").isin(chosen.tolist()))
        assert found.to_table().equals(wanted)
        assert pa.Table.from_batches(found.to_batches(), schema).equals(wanted)
        some = dice.sample(schema.names, dice.randrange(1, len(schema.names) + 1))
        limit = dice.randrange(n + 1)
        found = ps.scan(data, columns=some, limit=limit).filter(ps.col("id").isin(chosen.tolist()))
        assert found.to_table().equals(wanted.select(some).slice(0, limit))


@settings(max_examples=examples(60), deadline=None)
@given(st.integers(1, 60), seeds)
def test_filters_on_leaves_of_structs(n: int, seed: int) -> None:
    """Each conjunct takes rows away from what the one before has decoded, ladders included."""
    dice = random.Random(seed)
    inner = pa.struct([pa.field("y", pa.string()), pa.field("z", pa.list_(pa.int32()))])
    kind = pa.struct([pa.field("x", pa.int32()), pa.field("s", inner), pa.field("r", inner, False)])
    field = pa.field("c", kind)
    schema = pa.schema([pa.field("id", pa.int64(), False), field])
    rows = {"id": range(n), "c": [value_of(field, dice, 2) for _ in range(n)]}
    node = node_of(kind)
    shredded = shred(node, rows["c"])
    layouts = [layout_of(Shredded([0] * n, [0] * n, []), 2, dice)[0]]
    for part in parts_of(node):
        levels = shredded[part.leaf.index]
        layouts.append(layout_of(levels, int(part.leaf.element.type), dice)[0])
    data = file_of(schema, rows, layouts)
    table = pa.table(rows, schema=schema)
    path, truths = {}, {}
    for name in ("id", "c", "c.x", "c.s", "c.s.y", "c.s.z", "c.r", "c.r.y", "c.r.z"):
        path[name] = list(map(lambda row, name=name: reach(row, name), table.to_pylist()))
    tests = [
        (ps.col(name).is_null() if null else ps.col(name).is_not_null(), name, null)
        for name in path
        for null in (True, False)
    ]
    for _ in range(8):
        parts = []
        keep = [True] * n
        for test, name, null in dice.sample(tests, dice.randrange(1, 4)):
            low = dice.randrange(n)
            either = dice.random() < 0.6
            parts.append(test | (ps.col("id") >= low) if either else test)
            keep = [
                k and ((value is None) == null or (either and i >= low))
                for i, (k, value) in enumerate(zip(keep, path[name], strict=True))
            ]
        if dice.random() < 0.5:
            least = dice.randrange(-20, 20)
            parts.append(ps.col("c", "x") >= least)
            keep = [
                k and v is not None and v >= least for k, v in zip(keep, path["c.x"], strict=True)
            ]
        truths["filter"] = keep
        condition = parts[0]
        for part_ in parts[1:]:
            condition &= part_
        columns = dice.choice((None, ["c"], ["id"], ["c.x", "id"], ["c.s.y"]))
        found = ps.read_table(data, columns=columns, filter=condition)
        wanted = ps.read_table(data, columns=columns).filter(pa.array(keep))
        assert found.equals(wanted), repr(condition)


def reach(row: dict[str, Any], name: str) -> Any:
    value: Any = row
    for step in name.split("."):
        value = None if value is None else value[step]
    return value


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("as_bitmap", [False, True])
def test_skipping_is_reading_from_there_on(version: int, as_bitmap: bool) -> None:
    kind = pa.list_(pa.list_(pa.string()))
    node = node_of(kind)
    (part,) = parts_of(node)
    dice = random.Random(version)
    field = pa.field("c", kind)
    rows = [value_of(field, dice, 3) for _ in range(60)]
    array = pa.array(rows, kind)
    levels = shred(node, rows)[part.leaf.index]
    cuts = tuple(sorted(dice.sample(range(1, len(levels.reps)), 9)))
    pages = LeafPages(node, part, levels, Layout(cuts, version)).pages()
    for n, size in itertools.product(range(61), (1 << 62, 1, 7)):
        chosen = selection_of(np.ones(60 - n, np.bool_), n, as_bitmap)
        found = [
            assemble(node, {part.leaf.index: made})
            for made in drive(decoder_of(part), part, pages, chosen, indexed=False, max_rows=size)
        ]
        assert pa.chunked_array(found).combine_chunks().equals(array.slice(n))
