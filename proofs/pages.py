"""Proof that pageseek reads exactly the pages that an answer needs, on ten million rows whose pages do not line up.

Every query is counted twice: by a wrapper around the store, which sees what bytes were asked for, and by the
report of `explain(analyze=True)`. What they must show comes from pyarrow's data and from an offset index decoded
by a reader of its own (tests/support/page_truth.py). Then TPC-H lineitem against pyarrow, locally and in Spark.

    python proofs/pages.py                     makes its files in a folder and keeps them
    python proofs/pages.py --markdown FILE     writes the result as a page of the documentation
"""

from __future__ import annotations

import argparse
import datetime as dt
import os
import platform
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pageseek.bench import generate

import pageseek as ps
from pageseek._core import metadata as core
from pageseek.scanning.requests import steps as decode
from pageseek.storage.local import LocalStore

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
from support.page_truth import Pages, read_pages
from support.store_log import Log

SEED = 41
MONTH = dt.date(1995, 3, 1), dt.date(1995, 4, 1)


# -- the file ---------------------------------------------------------------------------------


def proof_file(folder: Path, rows: int, group_rows: int) -> Path:
    """The lookup file of the benchmarks, with every fifth key a duplicate of the one before it."""
    path = folder / f"proof-{rows}-{group_rows}.parquet"
    if path.exists():
        return path
    folder.mkdir(parents=True, exist_ok=True)
    dice = np.random.default_rng(SEED)
    last, writer = 0, None
    for start in range(0, rows, group_rows):
        n = min(group_rows, rows - start)
        steps = np.where(dice.random(n) < 0.2, 0, dice.integers(1, 20, n))
        key = last + np.cumsum(steps)
        last = int(key[-1])
        table = generate.lookup_table(n, 0, SEED + start).set_column(0, "key", pa.array(key))
        if writer is None:
            writer = pq.ParquetWriter(
                path.with_suffix(".part"),
                table.schema,
                compression="zstd",
                use_dictionary=["city"],
                write_page_index=True,
                data_page_size=generate.PAGE_BYTES,
                write_batch_size=500,
                max_rows_per_page=1_000_000,
            )
        writer.write_table(table, row_group_size=group_rows)
    assert writer is not None
    writer.close()
    path.with_suffix(".part").replace(path)
    return path


# -- counting ---------------------------------------------------------------------------------


COUNTED = ", counted"


@contextmanager
def watched() -> Iterator[tuple[Log, list[int]]]:
    """The reads of the store, and the sizes of the decompressed page bodies."""
    log, inflated = Log(), []
    read, find, begin = LocalStore.read, decode.decompressor, decode.prefix_of

    def logged(store: LocalStore, ranges: Sequence[tuple[int, int]]) -> Any:
        log.ranges.extend(ranges)
        return read(store, ranges)

    def counting(codec: int) -> Any:
        name, function = find(codec)

        def counted(data: memoryview, size: int) -> Any:
            assert function is not None
            inflated.append(size)
            return function(data, size)

        # by a name that the core does not know it has to ask
        return (name + COUNTED, counted) if function else (name, None)

    def counting_prefix(codec: str) -> Any:
        function, step = begin(codec.removesuffix(COUNTED))

        def counted(data: memoryview, size: int, out: Any) -> Any:
            assert function is not None
            inflated.append(size)
            return function(data, size, out)

        return counted if function else None, step

    LocalStore.read, decode.decompressor = logged, counting  # type: ignore[method-assign]
    decode.prefix_of = counting_prefix
    try:
        yield log, inflated
    finally:
        LocalStore.read, decode.decompressor = read, find  # type: ignore[method-assign]
        decode.prefix_of = begin


class Proof:
    """The file, the truth about it, and the lines of the result."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.pages, self.indexes = read_pages(path)
        self.key = pq.read_table(path, columns=["key"])["key"].to_numpy()
        self.file = pq.ParquetFile(path)
        self.lines: list[tuple[str, str, str]] = []

    def expect(self, scan: ps.Scan, rows: dict[str, Any], what: object) -> tuple[int, int]:
        """Run the query; both counts must show the pages of these rows, column by column. Returns (pages, bytes)."""
        ps_log, inflated = self.log
        ps_log.clear()
        inflated.clear()
        report = scan.explain(analyze=True).to_dict()
        total = 0
        for name, pages in self.pages.items():
            wanted = pages.of_rows(rows.get(name, ()))
            asked = pages.required_leaves(ps_log.ranges)
            assert asked == wanted, f"{what}: {name}: pages {asked} asked, {wanted} hold the rows"
            leaf = report["leaves"].get(name)
            counted = leaf["pages"]["read"] if leaf else 0
            assert counted == len(wanted), f"{what}: {name}: the report has {counted}"
            if leaf and sum(leaf["pages"].values()):
                known = leaf["pages"]["total"]
                assert known <= len(pages), f"{what}: {name}: {known} pages of {len(pages)}"
            total += len(wanted)
        asked_bytes = sum(n for _, n in ps_log.ranges)
        assert report["requests"] == len(ps_log.ranges), what
        assert report["bytes"]["total"] == asked_bytes, what
        dictionaries = sum(leaf["dictionary_pages"] for leaf in report["leaves"].values())
        assert len(inflated) == total + dictionaries, f"{what}: {len(inflated)} decompressed"
        for unit in ("files", "row_groups", "pages", "rows"):
            count = report[unit]
            assert count["read"] + sum(count["pruned_by"].values()) == count["total"], (what, unit)
        return total, asked_bytes

    def rows_of(self, low: int, high: int) -> range:
        """The rows whose key lies in [low, high]."""
        return range(
            *(int(np.searchsorted(self.key, v, s)) for v, s in ((low, "left"), (high, "right")))
        )

    def line(self, what: str, shown: str, figures: str) -> None:
        self.lines.append((what, shown, figures))
        print(f"{what}: {shown}; {figures}", flush=True)

    # -- the cases --

    def lookups(self, what: str, keys: Sequence[int], key_pages: int) -> None:
        """Each key reads exactly the pages of its rows in every column, and this many of the key column."""
        most = dict.fromkeys(self.pages, 0)
        least = dict.fromkeys(self.pages, 10**9)
        total = 0
        for key in keys:
            rows = self.rows_of(key, key)
            counts = {name: len(pages.of_rows(rows)) for name, pages in self.pages.items()}
            assert counts["key"] == key_pages, (what, key, counts)
            total += self.expect(
                ps.scan(self.path, filter=ps.col("key") == key),
                dict.fromkeys(self.pages, rows),
                key,
            )[1]
            for name, n in counts.items():
                most[name], least[name] = max(most[name], n), min(least[name], n)
        if set(most.values()) == {1}:
            shown = "exactly one page of each of the 8 columns"
        else:
            others = [n for n in most if n != "key"]
            shown = (
                f"exactly {key_pages} pages of the key column; of the others those of the rows, "
                f"{min(least[n] for n in others)} to {max(most[n] for n in others)}"
            )
        self.line(what, shown, f"{len(keys):,} queries, {total / len(keys) / 1e3:,.0f} kB each")

    def answers(self, keys: Sequence[int]) -> None:
        """The rows, compared with pyarrow's."""
        starts = np.cumsum(
            [0]
            + [self.file.metadata.row_group(i).num_rows for i in range(self.file.num_row_groups)]
        )
        checked = 0
        for group in range(self.file.num_row_groups):
            table = self.file.read_row_group(group)
            first, stop = int(starts[group]), int(starts[group + 1])
            for key in keys:
                rows = self.rows_of(key, key)
                if first <= rows.start and rows.stop <= stop:
                    wanted = table.slice(rows.start - first, len(rows))
                    assert ps.read_table(self.path, filter=ps.col("key") == key).equals(wanted), key
                    checked += 1
        self.line("the answers to the same keys", "equal pyarrow's rows", f"{checked:,} queries")

    def absent(self, dice: np.random.Generator) -> None:
        """Absent keys read no page if the bounds of pages exclude them, else one page of the key column."""
        first = self.pages["key"].first_row
        outside = [-1, int(self.key[-1]) + 1, 1 << 62]
        between = [
            int(self.key[row]) - 1 for row in first[1:] if self.key[row] - self.key[row - 1] > 1
        ]
        for key in (*outside, *between):
            self.expect(ps.scan(self.path, filter=ps.col("key") == key), {}, key)
        self.line(
            "absent keys, outside and between pages",
            "no page",
            f"{len(outside) + len(between):,} queries",
        )
        rows = dice.integers(1, len(self.key), 4_000)
        inside = [int(r) for r in rows if self.key[r] - self.key[r - 1] > 1 and r not in first][
            :1_000
        ]
        for row in inside:
            self.expect(
                ps.scan(self.path, filter=ps.col("key") == int(self.key[row]) - 1),
                {"key": [row]},
                row,
            )
        self.line(
            "absent keys, inside the bounds of a page",
            "that page of the key column, none of the others",
            f"{len(inside):,} queries",
        )

    def ranges(self, dice: np.random.Generator) -> None:
        """Ranges of keys: in every column exactly the pages that hold them."""
        n, pages, most = 0, 0, 0
        for width in (1, 10, 1_000, 50_000, 400_000, len(self.key) // 4):
            for start in dice.integers(0, len(self.key) - width, 20 if width <= 50_000 else 3):
                low, high = int(self.key[start]), int(self.key[start + width - 1])
                rows = self.rows_of(low, high)
                found, _ = self.expect(
                    ps.scan(self.path, filter=ps.col("key").between(low, high)),
                    dict.fromkeys(self.pages, rows),
                    (low, high),
                )
                n, pages, most = n + 1, pages + found, max(most, len(rows))
        self.line(
            "ranges of keys",
            "exactly the pages that hold the range",
            f"{n} queries of up to {most:,} rows, {pages:,} pages in all",
        )

    def unsorted(self, dice: np.random.Generator) -> None:
        """A filter on a column in no order: of the others only pages of rows that pass."""
        customer = pq.read_table(self.path, columns=["customer"])["customer"].to_numpy()
        all_rows = np.arange(len(customer))
        pages = 0
        chosen = dice.integers(0, generate.CUSTOMERS, 10)
        for value in chosen.tolist():
            rows = np.flatnonzero(customer == value)
            found, _ = self.expect(
                ps.scan(self.path, filter=ps.col("customer") == value),
                dict.fromkeys(self.pages, rows) | {"customer": all_rows},
                value,
            )
            pages += found - len(self.pages["customer"])
        every = sum(len(p) for name, p in self.pages.items() if name != "customer")
        self.line(
            "a filter on a column in no order",
            "all pages of that column, of the other 7 only those with a row that passes",
            f"{len(chosen)} queries, {pages / len(chosen):,.0f} of {every:,} pages each",
        )

    def full(self) -> None:
        """No filter: no request for an index, and none parsed."""
        names = ("offset_indexes", "page_bounds")
        kept = {name: getattr(core, name) for name in names}

        def refuse(*_: object, **__: object) -> None:
            raise AssertionError("an index was parsed")

        for columns in (["key", "city"], None):
            ps.clear_cache()
            self.log[0].clear()
            for name in names:
                setattr(core, name, refuse)
            try:
                read = sum(b.num_rows for b in ps.scan(self.path, columns=columns).to_batches())
            finally:
                for name, function in kept.items():
                    setattr(core, name, function)
            assert read == len(self.key)
            asked = [
                (at, n)
                for at, n in self.log[0].ranges
                if any(at < i + m and i < at + n for i, m in self.indexes)
            ]
            assert not asked, asked
        self.line("scans without a filter", "no request for an index, none parsed", "2 queries")

    def run(self) -> None:
        dice = np.random.default_rng(SEED)
        first = self.pages["key"].first_row
        values, at, counts = np.unique(self.key, return_index=True, return_counts=True)
        single = dict(zip(values[counts == 1].tolist(), at[counts == 1].tolist(), strict=True))
        keys = dice.choice(np.array(list(single)), 1_000, replace=False).tolist()
        ends = [row for f in first for row in (f - 1, f) if row >= 0] + [len(self.key) - 1]
        at_ends = [int(self.key[row]) for row in ends if int(self.key[row]) in single]
        across = [int(self.key[row]) for row in first[1:] if self.key[row] == self.key[row - 1]]
        with watched() as self.log:
            ps.scan(self.path, filter=ps.col("key") == -1).to_table()
            self.lookups("random keys", keys, 1)
            self.lookups("keys in the first and last row of a page", at_ends, 1)
            self.lookups("duplicates across the end of a page", across, 2)
            self.absent(dice)
            self.ranges(dice)
            self.unsorted(dice)
            self.full()
        self.answers(keys)


# -- lineitem ---------------------------------------------------------------------------------


def plain(table: pa.Table) -> pa.Table:
    """String views as strings, since pyarrow's filter refuses views, and Spark returns strings."""
    return table.cast(
        pa.schema(
            [f.with_type(pa.string()) if f.type == pa.string_view() else f for f in table.schema]
        )
    ).replace_schema_metadata(None)


def lineitem(path: Path, scale: float, spark: Any, line: Callable[[str, str, str], None]) -> None:
    """Three conditions, equal to pyarrow's answers."""
    table = plain(pq.read_table(path))
    keys, dates = pc.field("l_orderkey"), pc.field("l_shipdate")
    key, date = ps.col("l_orderkey"), ps.col("l_shipdate")
    chosen = pc.max(table["l_orderkey"]).as_py() // 3
    while not pc.any(pc.equal(table["l_orderkey"], chosen)).as_py():
        chosen += 1
    month = (date >= MONTH[0]) & (date < MONTH[1])
    in_month = (dates >= MONTH[0]) & (dates < MONTH[1])
    cases = {
        f"l_orderkey = {chosen}": (key == chosen, keys == chosen),
        "a month of l_shipdate": (month, in_month),
        "that month of the orders to the key": (
            month & (key <= chosen),
            in_month & (keys <= chosen),
        ),
    }
    for what, (ours, theirs) in cases.items():
        wanted = table.filter(theirs)
        assert plain(ps.read_table(path, filter=ours)).equals(wanted), what
        where = "equal to pyarrow's, locally"
        if spark is not None:
            from pageseek.spark import read

            rows = [tuple(row) for row in read(spark, str(path), filter=ours).collect()]
            expected = list(zip(*(column.to_pylist() for column in wanted.columns), strict=True))
            assert sorted(rows) == sorted(expected), what
            where += " and in Spark"
        line(f"lineitem, scale {scale:g}: {what}", where, f"{wanted.num_rows:,} rows")


def spark_session() -> Any:
    """A local session, or None, saying why."""
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    try:
        from pyspark.sql import SparkSession

        session = (
            SparkSession.builder.master("local[2]")
            .appName("proof")
            .config("spark.ui.enabled", "false")
            .config("spark.ui.showConsoleProgress", "false")
            .config("spark.driver.memory", "2g")
            .getOrCreate()
        )
        session.sparkContext.setLogLevel("ERROR")
        return session
    except Exception as error:  # noqa: BLE001 - whatever it is, the rest can be shown
        print(f"no Spark: {error}", file=sys.stderr)
        return None


def markdown(
    lines: Sequence[tuple[str, str, str]], path: Path, pages: dict[str, Pages], seconds: float
) -> str:
    size = path.stat().st_size / 1e6
    counts = ", ".join(f"{name} {len(found):,}" for name, found in pages.items())
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return f"""# Proofs

What `python proofs/pages.py --markdown docs/proofs.md` found on {dt.date.today().isoformat()}, with
pageseek {ps.__version__}, pyarrow {pa.__version__}, Python {platform.python_version()}, in {seconds:,.0f} s.
The command fails if either count finds another number of pages in any column.

The file has {pq.ParquetFile(path).metadata.num_rows:,} rows sorted by `key`, every fifth a duplicate, 8 columns,
{pq.ParquetFile(path).num_row_groups} row groups, zstd, {size:,.0f} MB. The pages of its columns begin at different rows. Pages: {counts}.

Each query is counted twice: by a wrapper around the store, which sees the requested bytes, and by the report of
`explain(analyze=True)`. Both must agree on pages, requests and bytes, and as many page bodies must be
decompressed. pyarrow's data, and the offset index as an independent reader decodes it, tell which pages hold a row
(`tests/support/page_truth.py`). Metadata is cached, except in scans without a filter.

| query | read | figures |
|---|---|---|
{table}
"""


def main() -> int:
    """Run it all."""
    made = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    made.add_argument(
        "--folder", type=Path, default=generate.default_folder(), help="where the files are kept"
    )
    made.add_argument("--rows", type=int, default=10_000_000)
    made.add_argument("--scales", type=float, nargs="*", default=[0.1, 1.0], help="of lineitem")
    made.add_argument("--no-spark", action="store_true")
    made.add_argument("--markdown", type=Path, metavar="FILE")
    options = made.parse_args()
    path = proof_file(options.folder, options.rows, max(options.rows // 10, 1))
    start = time.perf_counter()
    proof = Proof(path)
    proof.run()
    session = None if options.no_spark or not options.scales else spark_session()
    for scale in options.scales:
        lineitem(generate.lineitem_file(options.folder, scale), scale, session, proof.line)
    if session is not None:
        session.stop()
    seconds = time.perf_counter() - start
    if options.markdown:
        others = options.markdown.read_text() if options.markdown.exists() else ""
        own = markdown(proof.lines, path, proof.pages, seconds)
        options.markdown.write_text(own + "".join(others.partition("\n## ")[1:]))
    print(f"all shown, in {seconds:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
