"""The files that the statistics of a table's log rule out, before any file is opened."""

from __future__ import annotations

from itertools import compress

from pageseek.base.errors import PredicateError
from pageseek.predicate.bind import bind
from pageseek.prune import prune_groups
from pageseek.prune.registry import LOG
from pageseek.scan.request import Request
from pageseek.storage import Sources


def ruled_out_by_log(sources: Sources, request: Request) -> frozenset[str]:
    """The names of files in which no row passes the filter, as the log says."""
    bounds = sources.bounds
    if bounds is None or request.filter is None or LOG not in request.prune:
        return frozenset()
    try:
        bound = bind(request.filter, bounds, request.nan)
    except PredicateError:  # raised again, with the name of a file, where one is opened
        return frozenset()
    may = prune_groups(bounds, bound, request.options).may
    names = (source.name for source in sources)
    return frozenset(compress(names, (not one for one in may)))
