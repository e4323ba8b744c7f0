"""The rows of files that registered catalogs leave, before any file is opened."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pageseek._core import rows
from pageseek.base.errors import PrunerError
from pageseek.prune.registry import catalogs
from pageseek.scanning.requests.request import Request
from pageseek.scanning.requests.row_selection import row_ranges
from pageseek.storage import Source, Sources


class CatalogAnswers:
    """The rows of files that may pass the filter, by each catalog."""

    def __init__(self, said: Sequence[tuple[str, Mapping[str, rows.RowRanges]]]) -> None:
        self._said = said

    @classmethod
    def of(cls, sources: Sources, request: Request) -> CatalogAnswers | None:
        """Ask the catalogs that the request names; None if there are none."""
        registered = catalogs()
        if not registered or request.filter is None:
            return None
        said: list[tuple[str, Mapping[str, rows.RowRanges]]] = []
        names = [source.name for source in sources if source.name not in sources.shared_names]
        for catalog in registered:
            if catalog.name not in request.prune:
                continue
            try:
                found = dict(catalog.select(names, request.filter).items())
                said.append((catalog.name, {k: row_ranges(v) for k, v in found.items()}))
            except Exception as error:
                raise _error(catalog, f"{type(error).__name__}: {error}") from error
            unknown = sorted(map(str, found.keys() - set(names)))
            if unknown:
                raise _error(catalog, f"it speaks of {unknown[0]!r}, which is no file of the scan")
        return cls(said) if said else None

    def rules_out(self, source: Source) -> str | None:
        """The name of a catalog that leaves no row of a file."""
        for name, said in self._said:
            found = said.get(source.name)
            if found is not None and not found:
                return name
        return None

    def rows_of(self, source: Source, num_rows: int) -> list[tuple[str, rows.RowRanges]]:
        """The rows of a file that each catalog leaves, if it knows the file. `num_rows`: of the file."""
        found = [(name, said[source.name]) for name, said in self._said if source.name in said]
        for name, ranges in found:
            if ranges and ranges.bounds[1] > num_rows:
                raise PrunerError(
                    f"{source.name}: catalog {name!r}: it speaks of row {ranges.bounds[1] - 1} of {num_rows}; "
                    "without it (prune=[...]) the file can be read"
                )
        return found


def _error(catalog: Any, what: str) -> PrunerError:
    return PrunerError(
        f"catalog {catalog.name!r}: select(): {what}; without it (prune=[...]) the files can be read"
    )
