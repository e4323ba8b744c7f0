"""Proof of what docs/stores.md promises where things go wrong: files that change while they are read, stores that fail,
readers that are slow. Results go to the end of that page, dated.

    python proofs/stores.py                     every proof: some minutes
    python proofs/stores.py replaced faults     those proofs; the lines of the others stay

Of a file that changes an answer counts as right if it is the whole answer of one version.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pageseek as ps
from results import Failed, run

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
from support import changing_files, failing_stores
from support.object_server.objects import MemoryObjects
from support.object_server.server import ObjectServer
from support.remote_files import Way, of_fsspec, of_pyarrow, over_http, over_s3

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "stores.md"
TITLE = "## Proofs"
HEAD = f"""{TITLE}

Results of `python proofs/stores.py`. *Right*: the whole answer of one version of the file; *changed*: `FileChangedError`;
*refused*: `StoreError`, after all retries; *cut short*: the file was truncated when it was opened, and the error says so. The
command fails on any other outcome. All versions of a file have the same size, and their pages the same places.

| proof | date | what was run | found |
|---|---|---|---|
"""
WAYS: list[tuple[str, Way]] = [
    ("HTTP", over_http), ("S3", over_s3), ("fsspec", of_fsspec), ("pyarrow", of_pyarrow),
]  # fmt: skip
BUDGETS = [0, 16 << 20, 64 << 20]
SLACK = 16 << 20  # bytes beyond the budget: the batch in hand, threads, connections


def _said(name: str, found: Counter[str], most_changed: float = 1.0) -> str:
    total = found.total()
    if set(found) - {"right", "changed", "cut short"} or found["changed"] > most_changed * total:
        raise Failed(f"{name}: {dict(found)}")
    return f"{name}: " + ", ".join(
        f"{n:,} {kind}" for kind, n in sorted(found.items(), reverse=True)
    )


def overwritten(times: int) -> tuple[str, str]:
    """Files on local disk, between batches and at any moment."""
    truth, texts = changing_files.Truth(), []
    with tempfile.TemporaryDirectory() as folder:
        for change in changing_files.CHANGES:
            found = changing_files.local(truth, Path(folder, "a.parquet"), change, times, 21)
            # an open file that another one has replaced is read to its end
            most = 0.0 if change is changing_files.replace else 1.0
            texts.append(_said(change.__name__, found, most))
    return f"{times:,} queries of each kind, on local disk", "; ".join(texts)


def replaced(times: int) -> tuple[str, str]:
    """Objects that are replaced between requests and during them."""
    truth, texts = changing_files.Truth(), []
    for etags in (True, False):
        for name, way in WAYS:
            ps.clear_cache()
            with ObjectServer() as server:
                server.etags = etags
                assert isinstance(server.objects, MemoryObjects)
                server.objects.clock = itertools.count(1_700_000_000).__next__
                found = changing_files.remote(truth, server, way, times, 22)
            texts.append(_said(f"{name}, {'ETag' if etags else 'Last-Modified'}", found))
    return f"{times:,} queries each", "; ".join(texts)


def faults(times: int) -> tuple[str, str]:
    """Stores that answer 503 and cut bodies short."""
    texts = []
    for name, way in (("HTTP", over_http), ("S3", over_s3)):
        ps.clear_cache()
        with ObjectServer() as server:
            found = failing_stores.run_queries(server, way, times, 23)
        text = (
            f"{name}: {found.ended['right']:,} right, {found.ended['refused']} refused, "
            f"{found.faulty} of {found.requests:,} responses faulty, the slowest query {found.slowest:.1f} s"
        )
        strange = set(found.ended) - {"right", "refused"}
        if strange or found.ended["right"] < 0.995 * times or not found.faulty:
            raise Failed(f"{text}; {found.ended}")
        texts.append(text)
    ran = (
        f"{times:,} queries each, default retries; {failing_stores.BUSY:.0%} of answers 503, {failing_stores.CUT:.0%} of "
        "connections cut in the body"
    )
    return ran, "; ".join(texts)


def memory(_: int) -> tuple[str, str]:
    """A reader that is slower than its store."""
    groups, texts = 80, []
    for budget, found in failing_stores.peaks(groups, BUDGETS, 0.03).items():
        more = found["peak"] - found["before"]
        text = f"{budget >> 20} MiB: {more / 2**20:.1f} MiB"
        if more > budget + SLACK or found["rows"] != groups << 16:
            raise Failed(text)
        texts.append(text)
    ran = (
        f"{groups} row groups of 2 MiB, 30 ms for each batch; `max_ahead_bytes`, and the resident memory at its peak "
        "beyond that before"
    )
    return ran, "; ".join(texts)


PROOFS: dict[str, Callable[[int], tuple[str, str]]] = {
    "overwritten": overwritten,
    "replaced": replaced,
    "faults": faults,
    "memory": memory,
}


def main() -> int:
    """Run the proofs named, or all, and write what they found."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("proofs", nargs="*", metavar="PROOF", help=f"of {', '.join(PROOFS)}")
    parser.add_argument("--times", type=int, default=1_000, help="queries of each kind")
    parser.add_argument("--out", type=Path, default=PAGE)
    options = parser.parse_args()
    proofs = {name: partial(proof, options.times) for name, proof in PROOFS.items()}
    return run(
        proofs, options.proofs, options.out, TITLE, lambda before: f"{before.rstrip()}\n\n{HEAD}"
    )


if __name__ == "__main__":
    sys.exit(main())
