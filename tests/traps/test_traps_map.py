"""The list of mistakes of other readers: each is listed once, with existing tests."""

from __future__ import annotations

import ast
import functools
import itertools
from pathlib import Path

import pytest

REASON = 3  # the column that says why there is no test
RANGES = ((1, 12), (20, 31), (40, 48), (50, 54), (60, 73))
IDS = [
    *map(str, range(1, 98)),
    *(f"T-{n}" for n in itertools.chain(*(range(a, b + 1) for a, b in RANGES))),
]


def lines(root: Path) -> list[list[str]]:
    text = (root / "tests" / "traps.tsv").read_text(encoding="utf-8")
    return [line.split("\t") for line in text.splitlines()]


@functools.cache
def functions(path: Path) -> frozenset[str]:
    """The tests of a file, which is parsed and not imported: it may need what is not installed."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return frozenset(node.name for node in tree.body if isinstance(node, kinds))


def test_every_trap_is_there_once_and_in_order(root: Path) -> None:
    assert [line[0] for line in lines(root)] == IDS


def test_every_trap_has_words_and_tests_or_a_reason(root: Path) -> None:
    for trap, words, tests, *reason in lines(root):
        assert 5 <= len(words.split()) <= 10, trap
        if tests == "-":
            assert len(reason) == 1 and reason[0].strip(), f"{trap}: why is there no test?"
        else:
            assert tests.split() and not reason, trap


@pytest.mark.parametrize("trap", IDS)
def test_tests_of_a_trap_exist(root: Path, trap: str) -> None:
    (line,) = (line for line in lines(root) if line[0] == trap)
    nodes = [] if line[2] == "-" else line[2].split(" ")
    assert len(set(nodes)) == len(nodes), "a test is named twice"
    for node in nodes:
        name, found, function = node.partition("::")
        path = root / name
        assert found, node
        assert path.is_file() and path.is_relative_to(root / "tests"), node
        assert function.startswith("test_") and function in functions(path), node
    for word in " ".join(line[REASON:]).replace("(", " ").replace(")", " ").split():
        if word.startswith("test_"):
            assert any(word in functions(path) for path in (root / "tests").rglob("test_*.py")), (
                word
            )
