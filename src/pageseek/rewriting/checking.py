"""What was written is read again, and compared with what was read, before it gets its name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from pageseek.api import scan
from pageseek.base.errors import RewriteError
from pageseek.rewriting.digest import Digest
from pageseek.rewriting.encoding import plain
from pageseek.rewriting.orders import Order
from pageseek.rewriting.reading import batches_of
from pageseek.storage import Source


def check(
    files: Sequence[Source],
    name: str,
    schema: pa.Schema,
    plain_schema: pa.Schema,
    expected: Digest,
    order: Order | None,
    **options: Any,
) -> None:
    """Read files, and compare them with the source.

    Parameters
    ----------
    files
        In the order of their rows.
    name : str
        What they are called in errors.
    schema, plain_schema
        Of the source, and with values in place of dictionaries.
    expected : Digest
        Of the rows that were read.
    order : Order or None
        The order of the rows; None where it is that of the source.
    **options
        Of `scan`.

    Raises
    ------
    RewriteError
        The files differ from the source.
    """
    found = Digest(schema, in_order=order is None)
    read = scan(list(files), partitioning=False, **options)
    if not read.schema.equals(schema):
        raise RewriteError(f"{name}: {_WRONG}: the schema is {_difference(schema, read.schema)}")
    before: pa.RecordBatch | None = None
    for batch in batches_of(read):
        rows = plain(batch, plain_schema)
        if order is not None:
            keys = order.keys(rows)
            both = keys if before is None else pa.concat_batches([before, keys])
            at = order.sort_keys.disorder(both)
            if at is not None:
                row = found.rows + at - (before is not None)
                raise RewriteError(f"{name}: {_WRONG}: row {row:,} is not in order")
            before = keys[-1:] if keys.num_rows else before
        found.add(rows)
    why = expected.difference(found)
    if why is not None:
        raise RewriteError(f"{name}: {_WRONG}: {why}")


_WRONG = "what was written is not what was read, and was deleted; the source is as it was"


def _difference(wanted: pa.Schema, found: pa.Schema) -> str:
    for field in wanted:
        i = found.get_field_index(field.name)
        if i < 0 or not found.field(i).equals(field):
            return f"another one: column {field.name!r} is {found.field(i) if i >= 0 else 'not there'} in place of {field}"
    return "another one"
