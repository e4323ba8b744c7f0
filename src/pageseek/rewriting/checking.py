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
from pageseek.scanning.queries.scan import Scan
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
    made = Check(name, schema, plain_schema, order)
    made.add(scan(list(files), partitioning=False, **options))
    made.finish(expected)


class Check:
    """Files that are read one after the other, in the order of their rows. Parameters are those of `check`."""

    def __init__(
        self, name: str, schema: pa.Schema, plain_schema: pa.Schema, order: Order | None
    ) -> None:
        self._name, self._schema, self._plain, self._order = name, schema, plain_schema, order
        self._found = Digest(schema, in_order=order is None)
        self._before: pa.RecordBatch | None = None

    def add(self, read: Scan) -> None:
        """Read the next files. RewriteError: they have another schema or are not in order."""
        if not read.schema.equals(self._schema):
            raise self._wrong(f"the schema is {_difference(self._schema, read.schema)}")
        for batch in batches_of(read):
            rows = plain(batch, self._plain)
            if self._order is not None:
                self._look(self._order, self._order.keys(rows))
            self._found.add(rows)

    def _look(self, order: Order, keys: pa.RecordBatch) -> None:
        before = self._before
        both = keys if before is None else pa.concat_batches([before, keys])
        at = order.sort_keys.disorder(both)
        if at is not None:
            row = self._found.rows + at - (before is not None)
            raise self._wrong(f"row {row:,} is not in order")
        self._before = keys[-1:] if keys.num_rows else before

    def finish(self, expected: Digest) -> None:
        """All files were read. RewriteError: the rows are not those that were expected."""
        why = expected.difference(self._found)
        if why is not None:
            raise self._wrong(why)

    def _wrong(self, why: str) -> RewriteError:
        return RewriteError(f"{self._name}: {_WRONG}: {why}")


_WRONG = "what was written is not what was read, and was deleted; the source is as it was"


def _difference(wanted: pa.Schema, found: pa.Schema) -> str:
    for field in wanted:
        i = found.get_field_index(field.name)
        if i < 0 or not found.field(i).equals(field):
            return f"another one: column {field.name!r} is {found.field(i) if i >= 0 else 'not there'} in place of {field}"
    return "another one"
