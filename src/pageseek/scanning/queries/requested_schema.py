"""The types that a consumer of a stream of Arrow asks for: given where they hold all values exactly."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa

from pageseek.base.errors import UnsupportedError
from pageseek.datasets.widening import holds, widened
from pageseek.scanning.queries.execution import Execution

_LAYOUTS = {
    pa.string(): "string", pa.binary(): "string", pa.large_string(): "large", pa.large_binary(): "large",
    pa.string_view(): "view", pa.binary_view(): "view",
}  # fmt: skip


def as_requested(execution: Execution, capsule: object) -> pa.RecordBatchReader:
    """A stream with the types of a requested schema. A column whose values that type may not hold keeps its own, as the
    PyCapsule protocol allows.

    Raises
    ------
    UnsupportedError
        The schema has other columns.
    """
    wanted = pa.Schema._import_from_c_capsule(capsule)
    layouts = {_LAYOUTS[field.type] for field in wanted if field.type in _LAYOUTS}
    if len(layouts) == 1:  # the core makes them so
        options = execution.request.options._replace(string_type=layouts.pop())
        execution = replace(execution, request=replace(execution.request, options=options))
    return with_types(execution.reader(), wanted)


def with_types(reader: pa.RecordBatchReader, wanted: pa.Schema) -> pa.RecordBatchReader:
    """A stream with the types of a schema, as far as these hold all values; errors of `as_requested`."""
    own = reader.schema
    if own.names != wanted.names:
        raise UnsupportedError(
            f"requested_schema has the columns {wanted.names}, the scan {own.names}: a stream cannot have others; "
            "choose columns with select()"
        )
    fields = [
        ours.with_type(theirs.type) if _fits(theirs.type, ours.type) else ours
        for ours, theirs in zip(own, wanted, strict=True)
    ]
    target = pa.schema(fields, own.metadata)
    if target.types == own.types:
        return reader
    return pa.RecordBatchReader.from_batches(target, _converted(reader, target))


def _converted(reader: pa.RecordBatchReader, target: pa.Schema) -> Iterator[pa.RecordBatch]:
    for batch in reader:
        made = []
        for array, field in zip(batch.columns, target, strict=True):
            try:
                made.append(widened(array, field.type))
            except pa.ArrowException as error:
                raise UnsupportedError(
                    f"column {field.name!r}: a value does not fit {field.type}, which the requested schema has: {error}"
                ) from error
        yield pa.RecordBatch.from_arrays(made, schema=target)


def _fits(wanted: pa.DataType, kind: pa.DataType) -> bool:
    """Whether a type holds all values of another one, and no field of a struct is lost."""
    return wanted == kind or (_keeps_values(wanted, kind) and holds(wanted, kind))


def _keeps_values(wanted: pa.DataType, kind: pa.DataType) -> bool:
    if pa.types.is_struct(kind) or pa.types.is_struct(wanted):
        if not (pa.types.is_struct(kind) and pa.types.is_struct(wanted)):
            return False
        if [field.name for field in kind] != [field.name for field in wanted]:
            return False
    if kind.num_fields != wanted.num_fields:
        return False
    if pa.types.is_integer(kind) and pa.types.is_floating(wanted):
        return bool(kind.bit_width < wanted.bit_width)  # others may be rounded
    return all(
        _keeps_values(wanted.field(i).type, kind.field(i).type) for i in range(kind.num_fields)
    )
