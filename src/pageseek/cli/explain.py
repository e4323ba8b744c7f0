"""`pageseek explain SOURCE`: says what a scan reads, and what rules out the rest."""

from __future__ import annotations

import argparse
from typing import Any

from pageseek.cli import scan, text


def add_parser(commands: Any) -> None:
    """Add the subcommand."""
    made = commands.add_parser(
        "explain", help="what a scan reads and why not more", description=__doc__
    )
    scan.add_source(made)
    made.add_argument("--analyze", action="store_true", help="run the scan and count what happened")
    made.add_argument("--json", action="store_true", help="the report as JSON")
    made.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print the report."""
    report = scan.lazy(options, watched=True).explain(analyze=options.analyze)
    print(text.to_json(report.to_dict()) if options.json else report)
    return 0
