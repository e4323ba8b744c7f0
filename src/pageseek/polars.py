"""`pageseek.polars.scan`: a LazyFrame of polars that reads the columns and pages which a query needs."""

from __future__ import annotations

from pageseek.engines.polars import scan

__all__ = ["scan"]
