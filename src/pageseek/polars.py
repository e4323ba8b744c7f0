"""`pageseek.polars.scan`: a LazyFrame of polars that reads the columns and pages which a query needs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pageseek.engines.polars import scan

__all__ = ["scan"]


if not TYPE_CHECKING:  # type checkers would take any name

    def __getattr__(name: str) -> Any:
        """The error for a name that is not here, with what to write instead."""
        from pageseek.base.other_names import no_such_name

        raise no_such_name("pageseek.polars", name, __all__)


def __dir__() -> list[str]:
    """The public names."""
    return sorted(__all__)
