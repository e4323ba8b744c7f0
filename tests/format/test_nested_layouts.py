"""All page layouts of tiny nested tables, and all sets of their rows, compared with the meaning of the levels."""

from __future__ import annotations

import io
import itertools
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek.format.nesting import Decoded, Node
from support.nested_pages import (
    FITTING,
    Layout,
    LeafPages,
    PageOf,
    decoder_of,
    drive,
    file_of,
    parts_of,
    row_cuts,
    same,
)
from support.nesting import Shredded, decode_slowly, node_of, shred

INT = pa.int32()
STRUCT = pa.struct([pa.field("a", INT), pa.field("b", pa.string())])


def required(kind: pa.DataType) -> pa.Field:
    return pa.field("element", kind, nullable=False)


# (type, whether the column may be null, rows to make tables of): missing, empty and null apart at every level
LADDERS: dict[str, tuple[pa.DataType, bool, list[Any]]] = {
    "struct": (STRUCT, True, [None, {"a": None, "b": None}, {"a": 1, "b": "x"}, {"a": 2, "b": ""}]),
    "required struct of structs": (
        pa.struct([pa.field("s", STRUCT), pa.field("c", pa.bool_(), nullable=False)]),
        False,
        [
            {"s": None, "c": True},
            {"s": {"a": 1, "b": None}, "c": False},
            {"s": {"a": None, "b": "é"}, "c": True},
        ],
    ),
    "list of required": (pa.list_(required(INT)), True, [None, [], [1], [2, 3], [4, 5, 6]]),
    "required list of required": (pa.list_(required(pa.string())), False, [[], ["a"], ["", "bc"]]),
    "list of optional": (pa.list_(INT), True, [None, [], [None], [1, None], [None, 2, 3]]),
    "list of lists": (
        pa.list_(pa.list_(INT)),
        True,
        [None, [], [None], [[]], [[1, None], None, [2]], [[], [3]]],
    ),
    "required lists of lists": (
        pa.list_(required(pa.list_(required(pa.int64())))),
        False,
        [[], [[]], [[1], [2, 3]], [[], [4], []]],
    ),
    "list of structs of lists": (
        pa.list_(pa.struct([pa.field("x", pa.list_(INT)), pa.field("y", pa.string())])),
        True,
        [
            None,
            [],
            [None, {"x": None, "y": "a"}, {"x": [3], "y": "c"}],
            [{"x": [1, None], "y": None}],
            [{"x": [], "y": "b"}, {"x": [2], "y": ""}],
        ],
    ),
    "struct of lists": (
        pa.struct([pa.field("l", pa.list_(pa.bool_())), pa.field("r", pa.list_(required(INT)))]),
        True,
        [
            None,
            {"l": None, "r": []},
            {"l": [], "r": None},
            {"l": [True, None], "r": [1]},
            {"l": [False], "r": [2, 3, 4]},
        ],
    ),
    "map": (
        pa.map_(pa.string(), INT),
        True,
        [None, [], [("a", None)], [("a", 1), ("b", 2)], [("", 3), ("a", None), ("c", 4)]],
    ),
    "map of lists": (
        pa.map_(INT, pa.list_(pa.string())),
        True,
        [None, [], [(1, None), (2, [])], [(3, ["x", None])], [(4, ["y"]), (5, ["z", ""])]],
    ),
    "list of lists of lists": (
        pa.list_(pa.list_(pa.list_(INT))),
        True,
        [None, [], [[[]]], [[[1], None, [2, None]], []], [None, [None, [3]]]],
    ),
}
ROWS = 4  # of the largest tables


def tables(pool: Sequence[Any], every: int) -> Iterator[tuple[int, ...]]:
    """All tables of up to ROWS rows, and a sample of the largest ones."""
    for n in range(1, ROWS):
        yield from itertools.product(range(len(pool)), repeat=n)
    yield from itertools.islice(itertools.product(range(len(pool)), repeat=ROWS), 0, None, every)


def cuts_of(places: Sequence[int], most: int, dice: random.Random) -> Iterator[tuple[int, ...]]:
    """All subsets, or some of them that are not alike."""
    if 1 << len(places) <= most:
        for n in range(len(places) + 1):
            yield from itertools.combinations(places, n)
        return
    yield tuple(places)
    for _ in range(most - 1):
        yield tuple(place for place in places if dice.random() < 0.4)


def selection(mask: Sequence[int], as_bitmap: bool) -> Any:
    bits = np.array(mask, np.bool_)
    if as_bitmap:
        return np.packbits(bits, bitorder="little").tobytes(), 0, len(bits)
    edges = np.diff(np.concatenate([[0], bits.astype(np.int8), [0]]))
    return np.stack([np.flatnonzero(edges == 1), np.flatnonzero(edges == -1)], axis=1).tobytes()


@dataclass
class Truth:
    """The expected output of a decoder for rows of a pool."""

    node: Node
    leaf: int
    pool: list[Any]

    def __post_init__(self) -> None:
        self.of = cache(self._of)
        self.levels = cache(self._levels)

    def _levels(self, rows: tuple[int, ...]) -> Shredded:
        return shred(self.node, [self.pool[i] for i in rows])[self.leaf]

    def _of(self, rows: tuple[int, ...]) -> Decoded:
        return decode_slowly(self.node, self.leaf, self.levels(rows))


def test_the_pools_tell_every_level_apart() -> None:
    for kind, nullable, pool in LADDERS.values():
        node = node_of(kind, nullable)
        for number, (_, defs, _) in shred(node, pool).items():
            (leaf,) = [leaf for leaf in node.leaves() if leaf.index == number]
            assert set(defs) == set(range(leaf.max_def + 1))


@pytest.mark.parametrize("name", LADDERS)
def test_sets_of_rows_of_layouts(name: str) -> None:
    check_layouts(name, (8, 6, 2, 2), every=11)


@pytest.mark.slow
@pytest.mark.parametrize("name", LADDERS)
def test_every_set_of_rows_of_every_layout(name: str) -> None:
    check_layouts(name, (64, 32, 16, 8), every=1)


def check_layouts(name: str, most: Sequence[int], every: int) -> None:
    """All row sets of the tables of some nesting levels; the number of rows limits the layouts of each."""
    kind, nullable, pool = LADDERS[name]
    node = node_of(kind, nullable)
    dice = random.Random(name)
    turn = 0
    for part in parts_of(node):
        truth = Truth(node, part.leaf.index, pool)
        physical = int(part.leaf.element.type)
        encodings = ["plain", *FITTING[physical], *(["dictionary"] if physical else [])]
        for rows in tables(pool, every):
            levels = truth.levels(rows)
            for inside in (False, True):
                places = range(1, len(levels.reps)) if inside else row_cuts(levels)
                for cuts in cuts_of(list(places), most[len(rows) - 1], dice):
                    turn += 1
                    layout = Layout(
                        cuts,
                        1 if inside else 1 + turn % 2,
                        (encodings[turn // 2 % len(encodings)], encodings[turn % len(encodings)]),
                        "snappy" if turn % 5 == 0 else "uncompressed",
                        packed=turn % 3 == 0,
                    )
                    made = LeafPages(node, part, levels, layout)
                    check_row_sets(made, truth, rows, turn, indexed=not inside)


def check_row_sets(
    made: LeafPages, truth: Truth, rows: tuple[int, ...], turn: int, indexed: bool
) -> None:
    pages, dictionary = made.pages(), made.dictionary
    masks = list(itertools.product((0, 1), repeat=len(rows)))
    for k, mask in enumerate(masks):
        if len(rows) >= ROWS - 1 and (k + turn) % 2:
            continue
        levels_only = (turn + k) % 7 == 0 and bool(made.part.nesting_levels)
        decoder = decoder_of(made.part, levels_only=levels_only, codec=made.layout.codec)
        wanted = wanted_pages(pages, mask) if indexed else None
        (found,) = drive(
            decoder,
            made.part,
            pages,
            selection(mask, k % 2 == 0),
            indexed=indexed,
            dictionary=dictionary,
            wanted=wanted,
            levels_only=levels_only,
        )
        chosen = tuple(itertools.compress(rows, mask))
        assert same(found, truth.of(chosen), not levels_only), (rows, made.layout, mask)


def wanted_pages(pages: Sequence[PageOf], mask: Sequence[int]) -> list[bool]:
    return [any(mask[page.first : page.first + page.rows]) for page in pages]


@pytest.mark.covering(1)
@pytest.mark.parametrize("name", LADDERS)
def test_files_of_leaves_whose_pages_do_not_line_up(name: str) -> None:
    kind, nullable, pool = LADDERS[name]
    dice = random.Random(name)
    schema = pa.schema([pa.field("id", pa.int64(), False), pa.field("c", kind, nullable)])
    node = node_of(kind, nullable)
    leaves = parts_of(node)
    for turn in range(60):
        rows = [dice.randrange(len(pool)) for _ in range(ROWS)]
        values = [pool[i] for i in rows]
        table = pa.table({"id": range(ROWS), "c": values}, schema=schema)
        shredded = shred(node, values)
        layouts = [Layout(tuple(sorted(dice.sample(range(1, ROWS), dice.randrange(ROWS)))))]
        for part in leaves:
            levels = shredded[part.leaf.index]
            version, inside = dice.choice([(1, False), (1, True), (2, False), (2, True)])
            places = list(range(1, len(levels.reps))) if inside else row_cuts(levels)
            physical = int(part.leaf.element.type)
            encodings = ["plain", *FITTING[physical], *(["dictionary"] if physical else [])]
            layouts.append(
                Layout(
                    tuple(place for place in places if dice.random() < 0.5),
                    version,
                    tuple(dice.choices(encodings, k=2)),
                    dice.choice(["uncompressed", "snappy", "zstd"]),
                    dice.random() < 0.5,
                    dice.random() < 0.6,
                    dice.random() < 0.5,
                    dice.random() < 0.5,
                )
            )
        data = file_of(schema, {"id": range(ROWS), "c": values}, layouts)
        if turn % 6 == 0:
            read = pq.read_table(io.BytesIO(data))
            assert read.to_pylist() == table.to_pylist(), "the writer made no valid file"
        assert ps.read_table(data).equals(table)
        for mask in dice.sample(list(itertools.product((0, 1), repeat=ROWS)), 4):
            chosen = list(itertools.compress(range(ROWS), mask))
            found = ps.read_table(data, filter=ps.col("id").isin(chosen))
            found.validate(full=True)
            assert found.equals(table.take(pa.array(chosen, pa.int64()))), (rows, layouts, mask)
