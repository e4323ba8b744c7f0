"""The queries of the benchmarks: one case each."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from pageseek.bench import generate

Term = tuple[str, str, Any]  # column, operator, value; a filter joins its terms by AND
Filter = tuple[Term, ...]


@dataclass(frozen=True, slots=True)
class Sizes:
    """How large the files are."""

    rows: int = 10_000_000
    group_rows: int = 1_000_000
    wide_columns: int = 5_000
    wide_groups: int = 20
    scale: float = 1.0


QUICK = Sizes(rows=400_000, group_rows=200_000, wide_columns=1_000, wide_groups=8, scale=0.01)
TINY = Sizes(rows=20_000, group_rows=10_000, wide_columns=20, wide_groups=2, scale=0.001)


@dataclass(frozen=True, slots=True)
class Case:
    """One question.

    Attributes
    ----------
    name, question : str
        A short name, and what is asked in words.
    file : {"lookup", "default", "wide", "lineitem"}
        The kind of file.
    columns : tuple of str, optional
        Columns of the answer; None is all.
    filters : tuple of Filter
        One for each round, used in turn; a single empty filter selects every row.
    cold : bool
        Nothing is kept from one round to the next: the file is opened, its metadata parsed. Its
        bytes stay in the page cache of the operating system.
    footer : bool
        Not rows are asked for but the bounds of `columns[0]` in each row group.
    rounds : int
        Rounds at most.
    """

    name: str
    question: str
    file: str
    columns: tuple[str, ...] | None = None
    filters: tuple[Filter, ...] = ((),)
    cold: bool = False
    footer: bool = False
    rounds: int = 40


class Files:
    """The files of one size, made when they are first needed."""

    def __init__(self, folder: Path, sizes: Sizes) -> None:
        self.folder = folder
        self.sizes = sizes

    def path(self, kind: str) -> Path:
        """The file of a kind.

        Raises
        ------
        FileNotFoundError
            What makes the file is not installed.
        """
        sizes = self.sizes
        if kind == "lookup":
            return generate.lookup_file(self.folder, sizes.rows, sizes.group_rows)
        if kind == "default":
            return generate.default_file(self.folder, sizes.rows, sizes.group_rows)
        if kind == "wide":
            return generate.wide_file(self.folder, sizes.wide_columns, sizes.wide_groups)
        return generate.lineitem_file(self.folder, sizes.scale)


def _keys(files: Files, n: int, kind: str = "lookup") -> np.ndarray[Any, Any]:
    """Keys spread over the file at random, the same ones each time."""
    file = pq.ParquetFile(files.path(kind))
    random = np.random.default_rng(generate.SEED)
    groups = random.integers(0, file.num_row_groups, 4).tolist()
    parts = [file.read_row_group(group, ["key"])["key"].to_numpy() for group in groups]
    return random.choice(np.concatenate(parts), n, replace=False)


def _lookup(name: str, kind: str, cold: bool, question: str) -> Callable[[Files], Case]:
    def case(files: Files) -> Case:
        filters = tuple((("key", "=", key),) for key in _keys(files, 40, kind).tolist())
        return Case(name, question, kind, None, filters, cold)

    return case


_LOOKUPS = {
    name: _lookup(name, kind, cold, question)
    for name, kind, cold, question in (
        ("lookup-warm", "lookup", False, "one row by the sorted key, metadata cached"),
        ("lookup-cold", "lookup", True, "one row by the sorted key, file opened for it"),
        ("default-warm", "default", False, "the same, the file with pyarrow's own pages"),
        ("default-cold", "default", True, "the same of that file, opened for it"),
    )
}


def _range(files: Files) -> Case:
    width = files.sizes.rows // 1_000 * generate.KEY_STEP
    filters = tuple(
        (("key", ">=", key), ("key", "<", key + width)) for key in _keys(files, 20).tolist()
    )
    question = "a thousandth of the rows by a range of the sorted key"
    return Case("range", question, "lookup", None, filters, rounds=20)


def _unsorted(files: Files) -> Case:
    random = np.random.default_rng(generate.SEED)
    values = random.integers(0, generate.CUSTOMERS, 8).tolist()
    filters = tuple((("customer", "=", value),) for value in values)
    question = "few rows by a column without order"
    return Case("unsorted", question, "lookup", None, filters, rounds=8)


def _scan_all(files: Files) -> Case:
    return Case("scan-all", "every row, every column", "lookup", rounds=5)


def _scan_two(files: Files) -> Case:
    return Case("scan-two", "every row of two columns", "lookup", ("key", "price"), rounds=9)


def _wide(files: Files) -> Case:
    sizes = files.sizes
    question = f"bounds of one column of {sizes.wide_columns:,} in {sizes.wide_groups} row groups"
    column = f"feature_{sizes.wide_columns // 2:05d}"
    return Case("wide-footer", question, "wide", (column,), cold=True, footer=True, rounds=25)


def _lineitem_key(files: Files) -> Case:
    orders = int(6_000_000 * files.sizes.scale)
    filters = tuple((("l_orderkey", "=", key),) for key in range(1, orders, max(orders // 20, 1)))
    return Case("lineitem-key", "lineitem: one order", "lineitem", None, filters, rounds=20)


_MONTH = (
    ("l_shipdate", ">=", dt.date(1995, 3, 1)),
    ("l_shipdate", "<", dt.date(1995, 4, 1)),
)


def _lineitem_month(files: Files) -> Case:
    columns = ("l_orderkey", "l_extendedprice", "l_shipdate")
    return Case("lineitem-month", "lineitem: one month", "lineitem", columns, (_MONTH,), rounds=7)


def _lineitem_both(files: Files) -> Case:
    orders = int(6_000_000 * files.sizes.scale)
    term = (("l_orderkey", "<", orders // 10),)
    question = "lineitem: one month of the first tenth"
    return Case("lineitem-both", question, "lineitem", None, ((*term, *_MONTH),), rounds=9)


CASES: dict[str, Callable[[Files], Case]] = {
    **_LOOKUPS,
    "range": _range,
    "unsorted": _unsorted,
    "scan-all": _scan_all,
    "scan-two": _scan_two,
    "wide-footer": _wide,
    "lineitem-key": _lineitem_key,
    "lineitem-month": _lineitem_month,
    "lineitem-both": _lineitem_both,
}


def make(names: Sequence[str], files: Files) -> list[tuple[str, Case | None, str]]:
    """Cases by name: (name, case, ""), or (name, None, why it cannot run)."""
    made: list[tuple[str, Case | None, str]] = []
    for name in names:
        try:
            case = CASES[name](files)
            files.path(case.file)
            made.append((name, case, ""))
        except FileNotFoundError as error:
            made.append((name, None, str(error)))
    return made
