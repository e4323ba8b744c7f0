"""Arrays of nulls, as large as the limits allow."""

from __future__ import annotations

import pyarrow as pa

from pageseek.base.errors import LimitError
from pageseek.base.limits import DEFAULT


def null_bytes(kind: pa.DataType) -> int:
    """Bytes that a null of a type takes up in the largest of its buffers: a schema may claim any width."""
    if isinstance(kind, pa.BaseExtensionType):
        return null_bytes(kind.storage_type)
    if pa.types.is_fixed_size_list(kind):
        return int(kind.list_size) * null_bytes(kind.value_type)
    if pa.types.is_struct(kind):
        return max((null_bytes(kind.field(i).type) for i in range(kind.num_fields)), default=0)
    return int(kind.byte_width) if pa.types.is_fixed_size_binary(kind) else 8


def nulls(n: int, kind: pa.DataType, where: str) -> pa.Array:
    """An array of nulls. LimitError, which begins with `where`: they take more than max_output_bytes."""
    if n * null_bytes(kind) > DEFAULT.max_output_bytes:
        raise LimitError(
            f"{where}: {n} nulls of type {kind} take more than {DEFAULT.max_output_bytes} bytes; "
            "read fewer rows at a time"
        )
    try:
        return pa.nulls(n, kind)
    except (MemoryError, pa.ArrowMemoryError) as error:
        raise LimitError(f"{where}: {error}") from error
