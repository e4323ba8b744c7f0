"""A million random probes of indexes against a Python dict of the column: present, absent, null, NaN, empty, duplicate, several columns.

    python proofs/probes.py                    all of it, as lines of docs/proofs.md
    python proofs/probes.py single             only some of the proofs
    python proofs/probes.py lists              the parts of `lists` that have no line yet; lists-7: this part, again

`single`: `=` by a prepared scan. `lists-1` and on: IN of 1 to 256 values, each part with data and values of its own seed. `files`: `=` and
IN of a folder of 40 files. Each probe is a value of which the rows are compared, by their numbers, with those that the dict has. The scans
use one kind of index, or all.
"""

from __future__ import annotations

import random
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator
from decimal import Decimal
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from tqdm import tqdm

import pageseek as ps
from results import Failed, lines_of, run

SEED, ROWS, FILES = 17, 120_000, 40
SINGLE, LIST, OF_FILES = 120_000, 40_000, 80_000  # probes
PARTS = 20  # of `lists`: with the others a million probes
COLUMNS = ["i", "small", "f", "s", "b", "d", "t", "few"]
FEW = "small", "few"
KINDS = [["lookup"], ["bloom_filter"], ["file_bloom"], ["bitmap"], ["trigram"], None]
PAGE = Path(__file__).parent.parent / "docs" / "proofs.md"
TITLE = "## Random probes of indexes\n"
_FOLDER = tempfile.TemporaryDirectory(prefix="pageseek-probes-")
Rows = dict[Any, list[int]]


def table(rng: np.random.Generator, n: int) -> pa.Table:
    """Columns without order, with nulls, duplicates, NaN, both zeros, empty and long texts, and texts that are not ASCII."""
    number = rng.integers(0, n * 2, n)
    real = rng.integers(-200, n, n) / 8
    real[rng.random(n) < 0.01], real[rng.random(n) < 0.001] = np.nan, -0.0
    words = [("", "a", "ü", "日本", "\U0001f600", "x" * 300)[i % 6] + str(i // 6) * (i > 5) for i in rng.integers(0, n, n).tolist()]  # fmt: skip
    made = {
        "i": pa.array(number, mask=rng.random(n) < 0.02),
        "small": pa.array(rng.integers(-120, 120, n).astype(np.int8)),
        "f": pa.array(real, from_pandas=False, mask=rng.random(n) < 0.02),
        "s": pa.array(words, mask=rng.random(n) < 0.02),
        "b": pa.array([one.encode("utf-16-le") for one in rng.permutation(words).tolist()], pa.binary()),
        "d": pa.array([Decimal(int(one)).scaleb(-2) for one in rng.integers(-n, n, n)], pa.decimal128(20, 2)),
        "t": pa.array(rng.integers(0, 1 << 40, n), pa.timestamp("us")),
        "few": pa.array([("", "ja", "nein", "ü", None)[i % 5] for i in rng.integers(0, 5, n)]),
        "k1": pa.array(rng.integers(0, 300, n), mask=rng.random(n) < 0.02),
        "k2": pa.array([f"k{i}" if i else "" for i in rng.integers(0, 300, n)]),
    }  # fmt: skip
    return pa.table(made)


def written(path: Path, rows: pa.Table, rng: random.Random) -> None:
    pq.write_table(rows, path, row_group_size=rng.choice([rows.num_rows, 7_919]), data_page_size=8_192, compression="zstd")  # fmt: skip
    plain = [name for name in COLUMNS if name != "few"]
    ps.index.attach(
        path,
        lookup=[*plain, ("k1", "k2")],
        bloom=plain,
        file_bloom=dict.fromkeys(plain, 0.001),
        bitmap=["few", "small"],
        trigram=["s"],
        in_place=True,
    )


@cache
def one_file(seed: int = SEED) -> tuple[str, dict[str, Rows]]:
    path = Path(_FOLDER.name) / f"one-{seed}.parquet"
    rows = table(np.random.default_rng(seed), ROWS)
    written(path, rows, random.Random(seed))
    return str(path), dicts(rows)


@cache
def folder() -> tuple[str, dict[str, Rows]]:
    root, every = Path(_FOLDER.name) / "many", []
    root.mkdir()
    for i in range(FILES):
        every.append(table(np.random.default_rng(SEED + 1 + i), ROWS // FILES))
        written(root / f"{i:03}.parquet", every[-1], random.Random(i))
    return str(root), dicts(pa.concat_tables(every))


def dicts(rows: pa.Table) -> dict[str, Rows]:
    """For each column, and the key, the numbers of the rows of each value. Null and NaN are equal to nothing."""
    made = {}
    for name in (*COLUMNS, "key"):
        found: Rows = defaultdict(list)
        values = (
            list(zip(rows["k1"].to_pylist(), rows["k2"].to_pylist(), strict=True))
            if name == "key"
            else rows[name].to_pylist()
        )
        for i, value in enumerate(values):
            parts = value if name == "key" else (value,)
            if all(part is not None and part == part for part in parts):
                found[value].append(i)
        made[name] = dict(found)
    return made


def absent(name: str, rng: random.Random) -> Any:
    """A value that is as a rule in no row."""
    n = rng.randrange(1 << 40)
    return {
        "i": rng.choice([n, -n, 1 << 62]), "small": rng.choice([-128, 127, 121]), "f": rng.choice([n / 3, -n / 7, float("inf"), float("nan")]),
        "s": rng.choice([f"ü{n}", f"{n}", "x" * 299, "\0"]), "b": n.to_bytes(6, "little") * rng.randrange(1, 3),
        "d": Decimal(n).scaleb(-2), "t": (1 << 41) + n, "few": rng.choice(["Ja", "nei", f"{n}"]), "key": (n, "k1"),
    }[name]  # fmt: skip


def values_of(name: str, known: Rows, rng: random.Random) -> Iterator[Any]:
    """Half of them are there."""
    there = list(known)
    while True:
        value = rng.choice(there) if rng.random() < 0.5 else absent(name, rng)
        if name == "t" and isinstance(value, int):
            value = np.datetime64(value, "us").item()
        yield value


def check(found: pa.Table, wanted: list[int], what: object) -> int:
    rows = found["row"].to_pylist()
    if rows != sorted(wanted):
        raise Failed(f"{what}: rows {rows[:9]} and not {sorted(wanted)[:9]}")
    return len(rows)


def condition(name: str, value: Any) -> Any:
    if name == "key":
        return (ps.col("k1") == value[0]) & (ps.col("k2") == value[1])
    return ps.col(name) == value


def scan_of(source: str, kinds: list[str] | None) -> Any:
    options: dict[str, Any] = {} if kinds is None else {"prune": [*kinds, "statistics"]}
    return ps.scan(source, **options).select().with_row_number("row")


def shares(total: int) -> Iterator[tuple[str, list[str] | None, int]]:
    """Columns and kinds of index, with the probes of each: few of columns whose values have very many rows."""
    weights = {name: 1 if name in FEW else 20 for name in (*COLUMNS, "key")}
    whole = sum(weights.values()) * len(KINDS)
    for name, weight in weights.items():
        for kinds in KINDS:
            yield name, kinds, -(-total * weight // whole)


def single() -> tuple[str, str]:
    source, known = one_file()
    rng, rows, probes = random.Random(SEED), 0, 0
    for name, kinds, n in shares(SINGLE):
        of, values = known[name], values_of(name, known[name], rng)
        scan = scan_of(source, kinds)
        if name == "key":
            ask = scan.prepare((ps.col("k1") == ps.param("a")) & (ps.col("k2") == ps.param("b")))
        else:
            ask = scan.prepare(ps.col(name) == ps.param("a"))
        for _ in range(n):
            value = next(values)
            given = {"a": value[0], "b": value[1]} if name == "key" else {"a": value}
            rows += check(ask(**given), of.get(value, []), (name, kinds, value))
            probes += 1
    return f"seed {SEED}, {ROWS:,} rows, 8 columns and a key of two, {probes:,} probes", f"{rows:,} rows, all right"  # fmt: skip


def in_lists(source: str, known: dict[str, Rows], total: int, seed: int) -> tuple[int, int, int]:
    rng, rows, probes, scans = random.Random(seed), 0, 0, 0
    every = list(shares(total))
    with tqdm(total=sum(n for _, _, n in every), unit="probe", disable=None) as bar:
        for name, kinds, n in every:
            of, values = known[name], values_of(name, known[name], rng)
            scan = scan_of(source, kinds)
            left = n
            while left > 0:
                many = 1 if name == "key" else min(left, rng.choice([1, 2, 16, 17, 100, 256]))
                some = [next(values) for _ in range(many)]
                test = condition(name, some[0]) if many == 1 else ps.col(name).isin([*some, None])
                wanted = {row for value in some for row in of.get(value, [])}
                rows += check(scan.filter(test).to_table(), list(wanted), (name, kinds, some[:4]))
                left, probes, scans = left - many, probes + many, scans + 1
                bar.update(many)
    return rows, probes, scans


def lists(part: int) -> tuple[str, str]:
    seed = SEED + 1_000 + part
    rows, probes, scans = in_lists(*one_file(seed), LIST, seed)
    return f"seed {seed}, {ROWS:,} rows, {probes:,} probes in {scans:,} scans", f"{rows:,} rows, all right"  # fmt: skip


def files() -> tuple[str, str]:
    rows, probes, scans = in_lists(*folder(), OF_FILES, SEED + 2)
    return f"seed {SEED}, {FILES} files, {ROWS:,} rows, {probes:,} probes in {scans:,} scans", f"{rows:,} rows, all right"  # fmt: skip


LISTS = {f"lists-{part}": partial(lists, part) for part in range(1, PARTS + 1)}
PROOFS: dict[str, Callable[[], tuple[str, str]]] = {"single": single, "files": files, **LISTS}


def head(before: str) -> str:
    return f"""{before.rstrip()}

{TITLE}
Results of `python proofs/probes.py`: `=` and IN by lookup indexes, Bloom filters of chunks and of files, bitmaps, trigrams, and all
together, against a Python dict. Half of the values are in the data; there are nulls, NaN, both zeros, empty and long texts, texts that are
not ASCII, duplicates, and a key of two columns. The command fails if rows differ. `lists` is run in {PARTS} parts, each with data and values
of its own seed: `python proofs/probes.py lists` runs those that have no line yet. With all {PARTS} of them there are a million probes.

| proof | date | what was run | found |
|---|---|---|---|
"""


def chosen(names: list[str]) -> list[str]:
    """The proofs to run: for `lists` its parts that have no line yet, so that a run that was stopped goes on."""
    done = lines_of(PAGE, TITLE, LISTS)
    parts = [part for part in LISTS if part not in done]
    return [one for name in names for one in (parts if name == "lists" else [name])]


if __name__ == "__main__":
    names = chosen(sys.argv[1:])
    if sys.argv[1:] and not names:
        print("all parts of lists have a line")
        sys.exit(0)
    sys.exit(run(PROOFS, names, PAGE, TITLE, head))
