"""What the loggers of the standard library are told: `pageseek.io` each request, `pageseek.storage` each retry, `pageseek.prune`
indexes that are not trusted.

Nothing is printed unless the program sets up logging. While a logger is off, a request costs one look at its level, and no text
is made. pyarrow imports `logging` in any case.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence

from pageseek.base.report import Report, format_size

IO = logging.getLogger("pageseek.io")
PRUNE = logging.getLogger("pageseek.prune")
STORAGE = logging.getLogger("pageseek.storage")
# else Python would print warnings of a program that has not set up logging
logging.getLogger("pageseek").addHandler(logging.NullHandler())
SHOWN = 8  # ranges of a wave


def begun() -> float:
    """The time, if requests are logged; else 0."""
    return time.perf_counter() if IO.isEnabledFor(logging.DEBUG) else 0.0


def requested(
    name: str,
    what: str,
    places: Sequence[tuple[int, int]],
    requests: int,
    began: float,
    nbytes: int | None = None,
) -> None:
    """Log requests that were issued together, and are answered. `began`: as `begun` said.

    `places`: their (offset, length), where they are ranges of the file. A record has all of this as attributes, too.
    """
    if not began:
        return
    ms = (time.perf_counter() - began) * 1000
    size = sum(length for _, length in places) if nbytes is None else nbytes
    ranges = ", ".join(f"{at}+{length}" for at, length in places[:SHOWN])
    if len(places) > SHOWN:
        ranges += f" and {len(places) - SHOWN:,} more"
    IO.debug(
        "%s: %s: %d request%s, %s in %.1f ms%s",
        name, what, requests, "" if requests == 1 else "s", format_size(size), ms, f": bytes {ranges}" if ranges else "",
        extra={"file": name, "what": what, "ranges": list(places), "requests": requests, "nbytes": size, "ms": ms},
    )  # fmt: skip


def looked_up(name: str, row_group: int, rows: int, began: float) -> None:
    """Log a lookup whose pages the core itself has read, so that their ranges are not known here."""
    ms = (time.perf_counter() - began) * 1000
    IO.debug(
        "%s: lookup: pages of %d rows of row group %d, read by the core in %.1f ms",
        name, rows, row_group, ms,
        extra={
            "file": name, "what": "lookup", "row_group": row_group, "ranges": [], "requests": 0, "nbytes": 0, "ms": ms,
        },
    )  # fmt: skip


def again(name: str, what: str, why: str, wait: float) -> None:
    """Log a request that is tried again after a wait."""
    STORAGE.warning(
        "%s: %s: %s; tried again in %.2f s", name, what, why, wait, extra={"file": name}
    )


def not_trusted(text: str, report: Report) -> None:
    """Log why an index is not used, and note it in the report, unless it has the note."""
    if text not in report.notes:
        report.note(text)
        PRUNE.warning("%s", text)
