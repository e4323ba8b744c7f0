"""`pageseek count SOURCE`: the number of rows that pass a filter."""

from __future__ import annotations

import argparse
import json
from typing import Any

from pageseek.cli.arguments import add_source, command
from pageseek.cli.scan import lazy


def add_parser(commands: Any) -> None:
    """Add the subcommand."""
    made = command(
        commands, "count", "count the rows that pass a filter",
        "Counts the rows that pass a filter. Without a filter the footers answer.",
        """pageseek count orders.parquet
        pageseek count 'sales/*.parquet' --where "price < 10" --where "colour = 'red'"
        pageseek count tables/sales --table-version 3""",
        _run,
    )  # fmt: skip
    add_source(made)
    made.add_argument("--json", action="store_true", help="as JSON")


def _run(options: argparse.Namespace) -> int:
    rows = lazy(options, watched=True).count_rows()
    print(json.dumps({"rows": rows}) if options.json else rows)
    return 0
