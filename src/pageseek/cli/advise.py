"""`pageseek advise SOURCE`: what would make filters cheaper, estimated by a sample. Nothing is written."""

from __future__ import annotations

import argparse
from typing import Any

from pageseek.cli import text
from pageseek.cli.arguments import SOURCE, add_table, command, count, names, sources


def add_parser(commands: Any) -> None:
    """Add the subcommand."""
    made = command(
        commands, "advise", "what would make filters cheaper, and the command for it",
        "Says what would make filters cheaper, estimated by a sample. Nothing is written.",
        """pageseek advise orders.parquet
        pageseek advise orders.parquet --where "o_custkey = 42" --columns o_orderkey --analyze
        pageseek advise 'sales/*.parquet' --filter "id = 4711" --filter "day = date '2024-01-31'" """,
        run,
    )  # fmt: skip
    made.add_argument("source", nargs="+", help=SOURCE)
    made.add_argument(
        "--filter", "--where", dest="queries", action=_Filter, metavar="SQL",
        help='a query, such as "a = 1"; repeatable. Without any, the footers tell what would help every query',
    )  # fmt: skip
    made.add_argument(
        "--columns", dest="queries", action=_Columns, metavar="A,B",
        help='columns of the result of the query before (default: all; "" for none: its rows are counted)',
    )  # fmt: skip
    made.add_argument("--sample-bytes", type=count, metavar="N", help="bytes of data that are read for the estimates, at most (default: 33554432)")  # fmt: skip
    made.add_argument("--analyze", action="store_true", help="run the queries, and count what they read now")  # fmt: skip
    made.add_argument("--json", action="store_true", help="as JSON")
    add_table(made)
    made.set_defaults(queries=[])


class _Filter(argparse.Action):
    """Begins a query."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option: Any = None) -> None:
        namespace.queries = [*namespace.queries, (values, None)]


class _Columns(argparse.Action):
    """The columns of the query before."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option: Any = None) -> None:
        if not namespace.queries:
            parser.error("--columns follows the --filter that it belongs to")
        query, before = namespace.queries[-1]
        namespace.queries = [*namespace.queries[:-1], (query, [*(before or ()), *names(values)])]


def run(options: argparse.Namespace) -> int:
    """Print the advice."""
    from pageseek.advice.advising import SAMPLE, advise  # late: other commands do not need it

    found = advise(
        sources(options.source),
        options.queries or None,
        sample_bytes=SAMPLE if options.sample_bytes is None else options.sample_bytes,
        analyze=options.analyze,
        table=options.table,
    )
    print(text.to_json(found.to_dict()) if options.json else text.safe(str(found)))
    return 0
