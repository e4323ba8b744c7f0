"""Runs proofs, and keeps the dated line of each in a table of docs."""

from __future__ import annotations

import datetime as dt
import platform
import sys
import time
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

import pyarrow as pa

import pageseek as ps

COLUMNS = 4  # of the table: proof, date, what was run, found
Proof = Callable[
    [], tuple[str, str]
]  # what was run, and the result; Failed or AssertionError: a violation


class Failed(Exception):
    """The proof found a violation."""


def lines_of(page: Path, title: str, names: Collection[str]) -> dict[str, str]:
    """The lines of earlier proofs, by name, from the page behind a title."""
    text = page.read_text().partition(title)[2].partition("\n## ")[0] if page.exists() else ""
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    found = {line.split("|")[1].strip(): line for line in rows if line.count("|") == COLUMNS + 1}
    return {name: line for name, line in found.items() if name in names}


def run(
    proofs: Mapping[str, Proof],
    chosen: Collection[str],
    page: Path,
    title: str,
    head: Callable[[str], str],
) -> int:
    """Run the chosen proofs, or all; put the line of each into the page. Returns 1 if one failed.

    `title`: the first line of the part that is replaced, which ends with the page or before the next title of this level. `head`:
    from the text before it, all before the lines.
    """
    if unknown := set(chosen) - set(proofs):
        print(
            f"no proof {', '.join(sorted(unknown))}; there are: {', '.join(proofs)}",
            file=sys.stderr,
        )
        return 2
    failed = False
    for name in chosen or proofs:
        start = time.perf_counter()
        print(f"-- {name}", flush=True)
        try:
            ran, found = proofs[name]()
        except (Failed, AssertionError) as error:
            print(f"{name}: FAILED: {error}", flush=True)
            failed = True
            continue
        seconds = time.perf_counter() - start
        where = f"pageseek {ps.__version__}, pyarrow {pa.__version__}, Python {platform.python_version()}"
        print(f"-- {name}: {found} ({seconds:.0f} s)", flush=True)
        lines = lines_of(page, title, proofs)
        lines[name] = f"| {name} | {dt.date.today()}, {where} | {ran}; {seconds:.0f} s | {found} |"
        before, _, rest = page.read_text().partition(title) if page.exists() else ("", "", "")
        _, level, others = rest.partition("\n## ")
        body = "\n".join(lines[known] for known in proofs if known in lines)
        page.write_text(f"{head(before)}{body}\n{level}{others}")
    return int(failed)
