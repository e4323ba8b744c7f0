"""Verdicts on zones, as they are read: which outcome of a comparison passes, and whether some or all rows have it."""

from __future__ import annotations

from pageseek._core import rows

# the outcome of the comparison for which a row passes a test, by whether the test is negated
PASSES = rows.MAY_TRUE, rows.MAY_FALSE
# by an outcome, tables from the verdict on a zone to 1 where some of its rows may have it, or all have it
SOME = {outcome: bytes(int(v & outcome != 0) for v in range(256)) for outcome in PASSES}
ALL = {outcome: bytes(int(v == outcome) for v in range(256)) for outcome in PASSES}
