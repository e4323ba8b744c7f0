"""Proofs that queries in Spark have the answers of Spark's own reader.

    python proofs/spark.py [corpus] [sql] [sql-connect] [fuzz] [--predicates 2000] [--folders 500] [--files 1000] [--seed 1]
        [--corpus FOLDER]

Every proof runs in a process of its own, and writes its dated line to docs/proofs.md. Exit code 1 if an answer
differs, or what Spark answers is refused.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections import Counter
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
import spark_corpus
import spark_fuzz
import spark_sql
from results import Failed, Proof, run

ROOT = Path(__file__).resolve().parents[1]
CORPUS = ROOT.parent / "shared" / "conformance" / "corpus" / "valid"
PAGE, TITLE = ROOT / "docs" / "proofs.md", "## Answers in Spark\n"
HEAD = f"""{TITLE}
Results of `python proofs/spark.py`: answers are compared with those of `spark.read.parquet`. *sql*: random predicates of SQL through
`load`, `read` with SQL, `read` with a Column, `load(filter=)`, the format and SQL views, three of them each, in three time zones, with and
without ANSI rules and case sensitivity. *corpus*: all rows, rows of a few predicates, and counts, read by the driver, by
tasks and by Spark's reader. *fuzz*: queries of `load` (columns, figures, groups, limits, joins, unions) over random folders whose files
have other columns, types, fields and cases of names; Spark's reader has the schema of `load`. The command fails if rows differ, or if something is refused that Spark answers.

| proof | date | what was run | found |
|---|---|---|---|
"""
WRONG = "other rows", "refused", "failed", "other types"


def told(prove: partial[tuple[str, Counter[str]]]) -> tuple[str, str]:
    """What was run, and found. Failed: something is wrong, or nothing was compared."""
    ran, counts = prove()
    found = ", ".join(f"{count:,} {name}" for name, count in counts.items() if count)
    if not found or any(counts[name] for name in WRONG):
        raise Failed(found)
    return ran, f"{found}; 0 other rows, 0 refused"


def main(arguments: list[str]) -> int:
    """Run the proofs named, or all."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("proofs", nargs="*", metavar="PROOF")
    parser.add_argument("--predicates", type=int, default=2000)
    parser.add_argument("--folders", type=int, default=500)
    parser.add_argument("--files", type=int, default=1000, help="of the corpus")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--corpus", type=Path, default=CORPUS)
    parser.add_argument("--out", type=Path, default=PAGE)
    given = parser.parse_args(arguments)
    sql = partial(
        spark_sql.prove,
        given.corpus,
        predicates=given.predicates,
        seed=given.seed,
        files=given.files,
    )
    proofs: dict[str, Proof] = {
        "corpus": partial(told, partial(spark_corpus.prove, given.corpus, given.files, given.seed)),
        "sql": partial(told, partial(sql, connect=False)),
        "sql-connect": partial(told, partial(sql, connect=True)),
        "fuzz": partial(told, partial(spark_fuzz.prove, given.folders, given.seed)),
    }
    if len(given.proofs) == 1:
        return run(
            proofs, given.proofs, given.out, TITLE, lambda before: f"{before.rstrip()}\n\n{HEAD}"
        )
    rest = [one for one in arguments if one not in given.proofs]
    codes = [
        subprocess.run([sys.executable, __file__, name, *rest], check=False).returncode
        for name in given.proofs or proofs
    ]
    return max(codes)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
