"""Proof against files of many writers: answers, hostile files, flipped bits. Results go into docs/corpus.md, dated.

    python proofs/corpus.py                      every proof: two to three hours
    python proofs/corpus.py hostile mutation     those proofs; the lines of the others stay

The corpus lies beside a checkout, in ../shared/conformance. What an oracle, a hostile run or a mutation run counts is
said there. A reader's error counts as one unless the file is in refusals.tsv with the text of the error.
"""

from __future__ import annotations

import argparse
import ast
import builtins
import collections
import json
import os
import random
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import attach
import nan_files
import pageseek as ps
from oracle import CONFORMANCE, PYTHON, ROOT, refusals
from pageseek.base import errors
from results import Failed, run

PAGE = ROOT / "docs" / "corpus.md"
READER = ["--reader", "reader_pageseek:read"]
SEEDS = (7, 8, 9)
ANCHOR = 515 / 4000  # wrong answers for each flip that pyarrow 26 gives without checksums
TITLE = "# Files of many writers"
HEAD = """# Files of many writers

Results of `python proofs/corpus.py`. The corpus has {valid} valid files of 16 projects; generated files
come from five writers. *right*: rows and values equal those of a full read by pyarrow, filtered afterwards, with
DuckDB as a second check. *refused*: a file of `proofs/refusals.tsv`, which gives the reason; the error names the option
that reads it. *wrong*: a flipped bit that changes values, and that nothing in the file reveals;
pyarrow 26 has 515 of these in 4,000 without page checksums. `attach` and `attach-flips` are the proofs of
`attach.py`, on every file of the corpus, including the hostile ones.

| proof | date | what was run | found |
|---|---|---|---|
"""


def call(script: str, *arguments: str) -> tuple[str, int]:
    """Run one of the corpus's scripts; what it printed, and its exit code."""
    environment = os.environ | {"PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [PYTHON, script, *arguments],
        cwd=CONFORMANCE,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    print(done.stdout, end="", flush=True)
    return done.stdout, done.returncode


def ask_oracle(folder: Path, cases: int, seed: int) -> tuple[str, str]:
    """Random conditions on every column of every file."""
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(scratch, "results.jsonl")
        options = ["--n", str(cases), "--seed", str(seed), "--max-rows", "100000"]
        _, code = call("oracle.py", str(folder), *READER, *options, "--out", str(out))
        if not out.exists():
            raise Failed(f"exit {code}")
        found = [json.loads(line) for line in out.read_text().splitlines()]
    kinds = collections.Counter(case["kind"] for case in found)
    allowed = refusals()
    refused, bad = set(), []
    for case in found:
        name = Path(case["file"]).name
        if case["kind"] == "reader-error" and allowed.get(name, "\0") in case["err"]:
            refused.add(name)
        elif case["kind"] in ("WRONG", "CRASH", "HANG", "harness-error", "reader-error"):
            bad.append(case)
    if bad or not kinds["pass"]:
        raise Failed(f"{len(bad)} bad: {bad[:5]}")
    files = len({case["file"] for case in found})
    ran = f"`oracle.py --n {cases} --seed {seed}`, {files} files"
    text = f"{kinds['pass']:,} right; 0 wrong, crashes, hangs"
    if refused:
        text += f"; {len(refused)} files refused"
    if kinds["engines-disagree"]:
        text += f"; {kinds['engines-disagree']} where DuckDB and pyarrow disagree"
    return ran, text


def oracle_valid() -> tuple[str, str]:
    return ask_oracle(CONFORMANCE / "corpus" / "valid", 8, 31)


def oracle_generated() -> tuple[str, str]:
    texts = []
    for seed in SEEDS:
        with tempfile.TemporaryDirectory() as folder:
            environment = os.environ | {"CORPUS_SEED": str(seed)}
            command = [PYTHON, "generate.py", "--out", folder]
            subprocess.run(
                command, cwd=CONFORMANCE, env=environment, check=True, stdout=subprocess.DEVNULL
            )
            texts.append(f"seed {seed}: {ask_oracle(Path(folder), 8, seed)[1]}")
    return "`generate.py`; `oracle.py --n 8`", ". ".join(texts)


def ours(name: str) -> bool:
    """Whether a class of exceptions is pageseek's, or the store's."""
    kind = getattr(errors, name, None) or getattr(builtins, name, None)
    return isinstance(kind, type) and issubclass(kind, (ps.PageseekError, OSError))


def hostile() -> tuple[str, str]:
    """Files made to break readers."""
    folder = str(CONFORMANCE / "corpus" / "hostile")
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(scratch, "results.jsonl")
        options = ["--hostile", "--mem-gib", "4", "--out", str(out)]
        _, code = call("oracle.py", folder, *READER, *options)
        found = [json.loads(line) for line in out.read_text().splitlines()]
    kinds = collections.Counter(case["kind"] for case in found)
    foreign = [
        case
        for case in found
        if case["kind"] == "clean-error" and not ours(case["err"].split(":")[0])
    ]
    strange = set(kinds) - {"clean-error", "returned"}
    if code or strange or foreign:
        raise Failed(f"exit {code}, {strange}, {foreign[:5]}")
    text = f"{kinds['clean-error']} errors of ours, {kinds['returned']} read; 0 crashes, hangs, memory errors"
    return f"`oracle.py --hostile --mem-gib 4`, {len(found)} files", text


def counted(text: str) -> collections.Counter[str]:
    """The counts that a script printed as a dict."""
    found = re.search(r"\{.*?\}", text)
    return collections.Counter(ast.literal_eval(found[0]) if found else {})


def flip(folder: Path, seed: int, most: float) -> tuple[str, str]:
    options = ["--files", str(folder), "--per-file", "200", "--seed", str(seed)]
    text, code = call("mutate.py", *READER, *options)
    kinds = counted(text)
    flips = sum(n for kind, n in kinds.items() if kind != "unreadable-base")
    if code or kinds["foreign-error"] or not flips:
        raise Failed(f"exit {code}: {dict(kinds)}")
    if kinds["WRONG"] > most * flips:
        raise Failed(f"{kinds['WRONG']} wrong answers in {flips} flips")
    found = f"{kinds['clean-error']:,} errors of ours, {kinds['same']:,} the same, {kinds['WRONG']} wrong; 0 other"
    return f"`mutate.py --per-file 200 --seed {seed}`, {flips:,} flips", found


def mutation() -> tuple[str, str]:
    return flip(CONFORMANCE / "corpus" / "valid", 77, ANCHOR)


def mutation_checksums() -> tuple[str, str]:
    """Small files of the corpus, rewritten with a checksum in every page."""
    names = sorted((CONFORMANCE / "corpus" / "valid").glob("*.parquet"))
    random.Random(5).shuffle(names)
    with tempfile.TemporaryDirectory() as folder:
        made = 0
        for path in names:
            if made == 20:
                break
            target = Path(folder, path.name)
            try:
                table = pq.ParquetFile(path).read()
                pq.write_table(table, target, write_page_checksum=True, write_page_index=True)
                ps.read_table(target)
            except (OSError, pa.ArrowException, ps.PageseekError):
                target.unlink(missing_ok=True)
                continue
            if 600 < target.stat().st_size < 60_000 and table.num_rows:
                made += 1
            else:
                target.unlink()
        ran, found = flip(Path(folder), 78, 1 / 400)
    return f"{ran}, in files with a checksum in every page", found


def floats() -> tuple[str, str]:
    """NaN and zeros of both signs, in both rules for NaN."""
    seeds = range(6)
    try:
        files, asked = nan_files.prove(seeds)
    except AssertionError as error:
        raise Failed(str(error)) from error
    return (
        f"`nan_files.py`, {len(seeds)} seeds, {files} files of 4 writers",
        f"{asked:,} right; 0 wrong",
    )


def attached(prove: Callable[[], tuple[str, str]]) -> tuple[str, str]:
    """Indexes attached to every file, and damaged."""
    try:
        return prove()
    except AssertionError as error:
        raise Failed(str(error)) from error


PROOFS: dict[str, Callable[[], tuple[str, str]]] = {
    "oracle": oracle_valid,
    "generated": oracle_generated,
    "hostile": hostile,
    "mutation": mutation,
    "checksums": mutation_checksums,
    "floats": floats,
    "attach": partial(attached, attach.prove),
    "attach-flips": partial(attached, attach.prove_flips),
}


def main() -> int:
    """Run the proofs named, or all, and write what they found."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("proofs", nargs="*", metavar="PROOF", help=f"of {', '.join(PROOFS)}")
    parser.add_argument("--out", type=Path, default=PAGE)
    options = parser.parse_args()
    if not (CONFORMANCE / "oracle.py").is_file():
        print("there is no conformance corpus beside this checkout")
        return 2
    valid = len(list((CONFORMANCE / "corpus" / "valid").glob("*.parquet")))
    return run(PROOFS, options.proofs, options.out, TITLE, lambda _: HEAD.format(valid=valid))


if __name__ == "__main__":
    sys.exit(main())
