"""Filters over plain Python rows: the slow version of a pruned read."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import pageseek as ps

Row = dict[str, Any]
Predicate = tuple[Any, ...]  # (op, column, literal) | ("not", p) | ("and" | "or", p, q)

OPS = ("=", "!=", "<", "<=", ">", ">=")


def layouts(n: int) -> Iterator[tuple[int, ...]]:
    """Every composition of n rows into pages."""
    for cuts in itertools.product((False, True), repeat=n - 1):
        ends = [i + 1 for i, cut in enumerate(cuts) if cut]
        yield tuple(b - a for a, b in itertools.pairwise([0, *ends, n]))


def leaves(name: str, values: Sequence[Any], beside: Sequence[Any]) -> list[Predicate]:
    """All tests of a column with its own values and neighbouring ones."""
    literals = [*sorted({v for v in values if v is not None}), *beside]
    made: list[Predicate] = [(op, name, v) for op in OPS for v in literals]
    made += [("in", name, pair) for pair in itertools.combinations(literals, 2)]
    return [*made, ("in", name, ()), ("in", name, (literals[0], None)), ("is null", name, None)]


def build(p: Predicate) -> ps.Expression:
    if p[0] == "not":
        return ~build(p[1])
    if p[0] == "and":
        return build(p[1]) & build(p[2])
    if p[0] == "or":
        return build(p[1]) | build(p[2])
    op, name, literal = p
    column = ps.col(name)
    return {
        "=": lambda: column == literal,
        "!=": lambda: column != literal,
        "<": lambda: column < literal,
        "<=": lambda: column <= literal,
        ">": lambda: column > literal,
        ">=": lambda: column >= literal,
        "in": lambda: column.isin(literal),
        "is null": column.is_null,
    }[op]()


def truth(p: Predicate, row: Row) -> bool | None:
    """SQL's three-valued logic, row by row."""
    if p[0] == "not":
        inner = truth(p[1], row)
        return None if inner is None else not inner
    if p[0] in ("and", "or"):
        both = (truth(p[1], row), truth(p[2], row))
        decisive = p[0] == "or"
        if decisive in both:
            return decisive
        return None if None in both else not decisive
    op, name, literal = p
    value = row[name]
    if op == "is null":
        return value is None
    if op == "in":
        if len(literal) == 0:
            return False
        if value is None:
            return None
        found = any(value == v for v in literal)
        return True if found else None if None in literal else False
    if value is None:
        return None
    return {
        "=": value == literal,
        "!=": value != literal,
        "<": value < literal,
        "<=": value <= literal,
        ">": value > literal,
        ">=": value >= literal,
    }[op]


def agree(data: Any, *literals: Any, column: str = "x", **options: Any) -> list[Row]:
    """Pruned reads equal a full read followed by the filter, for every test of `column` against `literals`.

    Gives the rows of the full read.
    """
    rows = ps.read_table(data, **options).to_pylist()
    tests: list[Predicate] = [(op, column, v) for op in OPS for v in literals]
    tests += [("in", column, (v,)) for v in literals]
    tests += [
        ("in", column, literals),
        ("in", column, (*literals[:1], None)),
        ("is null", column, None),
    ]
    for p in tests:
        for q in (p, ("not", p)) if p[0] in ("=", "<", "in", "is null") else (p,):
            wanted = [repr(row) for row in rows if truth(q, row) is True]
            found = [
                repr(row) for row in ps.read_table(data, filter=build(q), **options).to_pylist()
            ]
            assert found == wanted, f"{build(q)!r}"
    return rows


def pages_read(data: Any, condition: ps.Expression, column: str = "x") -> int:
    """How many pages of a column a filtered read decodes."""
    report = ps.scan(data, filter=condition).explain(analyze=True).to_dict()
    leaf = report["leaves"].get(column)
    return leaf["pages"]["read"] if leaf else 0


def notes(data: Any, condition: ps.Expression) -> str:
    """The notes of a filtered read about the file."""
    return " | ".join(ps.scan(data, filter=condition).explain(analyze=True).notes)


def rows(data: bytes, condition: Any, **options: Any) -> list[int]:
    """The values of the column `row` in the rows that pass."""
    found: list[int] = ps.read_table(data, ["row"], condition, **options)["row"].to_pylist()
    return found


def groups_read(data: Any, condition: Any) -> int:
    """How many row groups a plan keeps."""
    read = ps.scan(data, filter=condition).explain().to_dict()["row_groups"]["read"]
    assert isinstance(read, int)
    return read
