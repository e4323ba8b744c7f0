"""The command `pageseek-bench`, which is `pageseek bench` as well."""

from __future__ import annotations

import argparse
import dataclasses
import datetime as dt
import json
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import pyarrow as pa
from pageseek.bench import against, generate
from pageseek.bench.cases import CASES, QUICK, TINY, Files, Sizes, make
from pageseek.bench.peers import PEERS, available
from pageseek.bench.plots import draw, load
from pageseek.bench.run import Result, WrongAnswer, machine, run_case, table

from pageseek.pictures.figures import save

SIZES = {"full": Sizes(), "quick": QUICK, "tiny": TINY}


def parser() -> argparse.ArgumentParser:
    """Options of the command."""
    made = argparse.ArgumentParser(
        prog="pageseek-bench",
        description="Times pageseek, other engines and the floor on the same questions, one thread each.",
    )
    size = made.add_mutually_exclusive_group()
    size.add_argument(
        "--quick",
        action="store_const",
        const="quick",
        dest="size",
        default="full",
        help="small files",
    )
    size.add_argument(
        "--size", choices=SIZES, default="full", help="size of the files (default: %(default)s)"
    )
    made.add_argument(
        "--cases",
        type=_names(CASES),
        default=list(CASES),
        metavar="A,B",
        help=f"of: {', '.join(CASES)}",
    )
    made.add_argument(
        "--peers",
        type=_names(PEERS),
        default=list(PEERS),
        metavar="A,B",
        help=f"of: {', '.join(PEERS)}",
    )
    made.add_argument("--no-floor", action="store_true", help="leave the floor out")
    made.add_argument(
        "--folder", type=Path, default=generate.default_folder(), help="where the files are kept"
    )
    made.add_argument(
        "--budget", type=float, metavar="SECONDS", help="time of a case (default: 60, quick: 5)"
    )
    made.add_argument(
        "--against",
        type=Path,
        metavar="VENV",
        help="instead of other engines, ask another build of pageseek, in turn: the virtual environment that has it",
    )
    made.add_argument(
        "--json", type=Path, metavar="FILE",
        help="write the results, with every round, the machine, the versions and the sizes of the files",
    )  # fmt: skip
    made.add_argument(
        "--plot", type=Path, metavar="FILE",
        help="draw the results, as png, svg or pdf by its ending (needs matplotlib)",
    )  # fmt: skip
    made.add_argument(
        "--redraw", type=Path, metavar="JSON", help="measure nothing: with --plot, draw what --json has written"
    )  # fmt: skip
    return made


def _names(known: Iterable[str]) -> Callable[[str], list[str]]:
    names = list(known)

    def parse(text: str) -> list[str]:
        chosen = [name.strip() for name in text.split(",") if name.strip()]
        unknown = [name for name in chosen if name not in names]
        if unknown or not chosen:
            raise argparse.ArgumentTypeError(
                f"{', '.join(unknown) or text!r}: choose from {', '.join(names)}"
            )
        return chosen

    return parse


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmarks: 0, or 1 when peers disagree."""
    options = parser().parse_args(arguments)
    budget = (
        options.budget if options.budget is not None else (60.0 if options.size == "full" else 5.0)
    )
    if options.redraw is not None:
        return _redraw(options)
    if options.against is not None:
        return _against(options, budget)
    pa.set_cpu_count(1)
    found, missing = available(options.peers)
    versions = {name: peer.version() for name, peer in found.items()}
    print("peers: " + ", ".join(f"{name} {version}" for name, version in versions.items()))
    for name, why in missing.items():
        print(f"left out: {name}: {why}")
    files = Files(options.folder, SIZES[options.size])
    results: list[Result] = []
    failed = False
    for name, case, why in make(options.cases, files):
        if case is None:
            print(f"left out: case {name}: {why}")
            continue
        print(f"{name}: {case.question}", flush=True)
        try:
            result = run_case(case, files.path(case.file), found, not options.no_floor, budget)
        except WrongAnswer as error:
            failed = True
            print(f"pageseek-bench: {error}", file=sys.stderr)
            continue
        results.append(result)
        for note in result.notes:
            print(f"  {note}")
    names = [*found, *([] if options.no_floor else ["floor"])]
    print("\nmedians; in brackets the median in units of pageseek's\n")
    print(table(results, names))
    record = {
        "date": dt.date.today().isoformat(),
        "size": options.size,
        "sizes": dataclasses.asdict(files.sizes),
        "machine": machine(),
        "versions": versions,
        "missing": missing,
        "results": [result.to_dict() for result in results],
    }
    if options.json is not None:
        options.json.write_text(json.dumps(record) + "\n")
    if options.plot is not None and results:
        try:
            save(draw(record), options.plot)
        except ImportError as error:
            print(f"no plot: {error}")
    return int(failed)


def _redraw(options: argparse.Namespace) -> int:
    """Draw saved results."""
    if options.plot is None:
        print("pageseek-bench: --redraw goes with --plot FILE", file=sys.stderr)
        return 2
    try:
        save(draw(load(options.redraw)), options.plot)
    except (ImportError, OSError, ValueError) as error:
        print(f"pageseek-bench: {error}", file=sys.stderr)
        return 1
    print(f"{options.plot}: drawn")
    return 0


def _against(options: argparse.Namespace, budget: float) -> int:
    """Time two builds: 0, or 1 where a case is slower in this one, or the rows differ."""
    files = Files(options.folder, SIZES[options.size])
    made = make(options.cases, files)
    cases = [(case, files.path(case.file)) for _, case, _ in made if case is not None]
    for name, case, why in made:
        if case is None:
            print(f"left out: case {name}: {why}")
    try:
        found = against.duel(cases, options.against, budget)
    except (AssertionError, FileNotFoundError, RuntimeError) as error:
        print(f"pageseek-bench: {error}", file=sys.stderr)
        return 1
    print("\nmedians; the ratio is the median of the rounds, this build in units of the other\n")
    print(against.table(found))
    if options.json is not None:
        record = {
            "date": dt.date.today().isoformat(),
            "size": options.size,
            "machine": machine(),
            "results": [one.to_dict() for one in found],
        }
        options.json.write_text(json.dumps(record, indent=1) + "\n")
    return int(any(one.ratio > against.SLOWER for one in found))


if __name__ == "__main__":
    sys.exit(main())
