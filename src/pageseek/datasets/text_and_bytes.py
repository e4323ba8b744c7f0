"""A column that a table calls text, in files whose writer did not say that its bytes are text, and the other way round; and UUIDs,
of which a file says no more than that they are 16 bytes.

Both have the same bytes in a file and the same order. Text is checked as it is read.
"""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from pageseek.format.types import Options

_BYTES = frozenset((pa.binary(), pa.large_binary(), pa.binary_view()))
_TEXT = frozenset((pa.string(), pa.large_string(), pa.string_view()))


def as_the_table_says(
    options: Options, columns: Iterable[tuple[str, pa.DataType, pa.DataType]]
) -> Options | None:
    """Options with which text comes out as bytes, and bytes as text, where the table says so; None where they need not change.

    `columns`: for each its name in the file, its type in the file and that in the table.
    """
    told_so = []
    for name, own, told in columns:
        kind = own.value_type if pa.types.is_dictionary(own) else own
        is_uuid = isinstance(told, pa.UuidType) and kind == told.storage_type
        if is_uuid or (kind in _TEXT and told in _BYTES) or (kind in _BYTES and told in _TEXT):
            told_so.append(name)
    return options._replace(as_told=tuple(sorted(told_so))) if told_so else None
