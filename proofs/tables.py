"""Proof that random tables of Delta Lake and Iceberg give the rows of a plain model: deletes of all kinds, renames, partitions that change.

    python proofs/tables.py [delta] [iceberg] [libraries] [--filters N] [--seed N]

*delta*: tables written by hand from the protocol, with column mapping by name and by id, and deletion vectors of all kinds. *iceberg*:
tables whose deletes by position and by equality, and deletion vectors, are written by hand from the specification. *libraries*: tables
that `deltalake` and `pyiceberg` change. The tests that make them run with other seeds: rows, counts and filters are compared. `--filters`
are those of all three together. Exit code 1 if rows differ.
"""

from __future__ import annotations

import argparse
import math
import os
import re
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

from results import Failed, run

ROOT = Path(__file__).parents[1]
PAGE, TITLE = ROOT / "docs" / "proofs.md", "## Random tables of Delta Lake and Iceberg\n"
HEAD = f"""{TITLE}
Results of `python proofs/tables.py`: rows, counts and filters on random tables must be those of a plain model in Python. *delta*: tables
written by hand from the protocol, with column mapping by name and by id, renames, partitions, and deletion vectors in the log and in files.
*iceberg*: tables with deletes by position and by equality, and deletion vectors, of several sequence numbers and partition specifications.
*libraries*: tables that deltalake and pyiceberg append to, delete from, update, compact, rename columns of and repartition; the model
is the table as the library reads it. The command fails if rows differ.

| proof | date | what was run | found |
|---|---|---|---|
"""
# by proof: the tests, the variable that sets how many tables they make, filters of one seed, tables of one, and the share of all filters
KINDS = {
    "delta": ("test_delta_by_hand.py::test_rows_and_filters_equal_a_model", "DELTA_TABLES", 30, 1, 0.45),
    "iceberg": ("test_iceberg_deletes.py::test_rows_and_filters_equal_a_model", "ICEBERG_TABLES", 30, 1, 0.45),
    "libraries": ("test_random_tables.py", "RANDOM_TABLES", 40, 2, 0.1),
}  # fmt: skip
_passed = re.compile(r"(\d+) passed")


def tables(kind: str, wanted: int, first: int) -> tuple[str, str]:
    """Run the tests of a kind for its share of the wanted filters, with seeds from `first` on."""
    test, variable, filters, tables, share = KINDS[kind]
    seeds = math.ceil(wanted * share / filters)
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--basetemp={folder}/t",
             "-o", "tmp_path_retention_policy=none", f"tests/interop/{test}"],
            cwd=ROOT, env={**os.environ, variable: str(seeds), "FIRST_TABLE": str(first)},
            capture_output=True, text=True,
        )  # fmt: skip
    passed = _passed.search(done.stdout)
    if done.returncode or passed is None or int(passed[1]) != seeds * tables:
        raise Failed(done.stdout[-20_000:] + done.stderr[-2_000:])
    return f"seeds from {first}", f"{passed[1]} tables, {seeds * filters:,} filters: all right"


def main(arguments: list[str]) -> int:
    """Run the proofs named, or all."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("proofs", nargs="*", metavar="PROOF")
    parser.add_argument("--filters", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1_000)
    given = parser.parse_args(arguments)
    proofs = {name: partial(tables, name, given.filters, given.seed) for name in KINDS}
    return run(proofs, given.proofs, PAGE, TITLE, lambda before: f"{before.rstrip()}\n\n{HEAD}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
