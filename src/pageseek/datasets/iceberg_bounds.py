"""The statistics in the manifests of an Iceberg table as bounds (Iceberg specification, Manifests and Appendix D)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from pageseek.datasets.file_bounds import ColumnBounds, FileBounds, Path
from pageseek.datasets.table_fields import TableField

# numbers of fixed size, as they lie in bounds; a shorter one is of a narrower type of before
_NUMBERS: Mapping[pa.DataType, tuple[str, ...]] = {
    pa.int32(): ("<i4",),
    pa.int64(): ("<i8", "<i4"),
    pa.float32(): ("<f4",),
    pa.float64(): ("<f8", "<f4"),
    pa.date32(): ("<i4",),
}
_BYTES_OF_DATE = 4
_OF_DAY = {"us": 86_400_000_000, "ns": 86_400_000_000_000}


def iceberg_bounds(
    files: Sequence[Any],
    schema: pa.Schema,
    fields: Sequence[TableField],
    unlike: Collection[int] = (),
) -> FileBounds | None:
    """The bounds of data files of `pyiceberg`; None without files. `unlike`: fields whose bounds are no values of them."""
    if not files:
        return None
    num_rows = np.array(_counts([file.record_count for file in files]), np.int64)

    def column(path: Path) -> ColumnBounds | None:
        number = _id(fields, path)
        kind = _type(schema, path)
        if number is None or kind is None:
            return None
        ends = []
        malformed: set[int] = set()
        for told in ("lower_bounds", "upper_bounds"):
            texts = [(getattr(file, told) or {}).get(number) for file in files]
            if number in unlike:
                texts = [None] * len(files)
            values = _values(texts, kind)
            if values is None:
                return None
            ends.append(values)
            lost = np.asarray(values.is_null()) & np.array([text is not None for text in texts])
            malformed.update(np.flatnonzero(lost).tolist())
        counts = [_nulls(file, number, len(path) > 1) for file in files]
        nulls = pa.array(_counts(counts), pa.int64())
        return ColumnBounds(ends[0], ends[1], nulls, tuple(sorted(malformed)))

    names = [file.file_path for file in files]
    return FileBounds(schema, num_rows, column, "the manifests of the table", names)


def _nulls(file: Any, number: int, inside: bool) -> int | None:
    """The nulls of a field; None if they are not told. `inside`: of a struct, whose own nulls some writers leave out."""
    if inside and (file.value_counts or {}).get(number) != file.record_count:
        return None
    found: int | None = (file.null_value_counts or {}).get(number)
    return found


def _counts(told: Iterable[int | None]) -> list[int | None]:
    """Counts, those that can be none as -1: pyiceberg gives a negative number as one beyond 64 bits with a sign."""
    return [one if one is None or 0 <= one < 1 << 63 else -1 for one in told]


def _values(texts: Sequence[bytes | None], kind: pa.DataType) -> pa.Array | None:
    """Bounds of a type; null where there is none, or the bytes are no value of the type."""
    t = pa.types
    if t.is_string(kind) or t.is_binary(kind):
        if t.is_binary(kind):
            return pa.array(texts, kind)
        return pa.array([None if text is None else _text(text) for text in texts], kind)
    if t.is_decimal128(kind):
        return _decimals(texts, kind)
    numbers = pa.int64() if t.is_timestamp(kind) or t.is_time64(kind) else kind
    formats = _NUMBERS.get(numbers) if not t.is_time64(kind) else _NUMBERS[pa.int64()][:1]
    if formats is None:
        return None
    sizes = {np.dtype(one).itemsize: np.dtype(one) for one in formats}
    found = [
        None
        if text is None or len(text) not in sizes
        else np.frombuffer(text, sizes[len(text)])[0].item()
        for text in texts
    ]
    if t.is_timestamp(kind):
        found = _moments(found, texts, kind)
    made = pa.array(found, _plain(numbers))
    return made if made.type == kind else made.cast(kind)


def _moments(
    found: Sequence[int | None], texts: Sequence[bytes | None], kind: pa.TimestampType
) -> list[int | None]:
    """Bounds of timestamps; those of four bytes are days, from when the column had dates."""
    of_day = _OF_DAY[kind.unit]
    made: list[int | None] = []
    for number, text in zip(found, texts, strict=True):
        if number is not None and text is not None and len(text) == _BYTES_OF_DATE:
            # a column with a zone never had dates
            number = number * of_day if kind.tz is None else None
            if number is not None and not -1 << 63 <= number < 1 << 63:
                number = None
        made.append(number)
    return made


def _text(text: bytes) -> str | None:
    try:
        return text.decode()
    except UnicodeDecodeError:  # cut inside of a character
        return None


def _plain(kind: pa.DataType) -> pa.DataType:
    return pa.int32() if kind == pa.date32() else kind


def _decimals(texts: Iterable[bytes | None], kind: pa.DataType) -> pa.Array:
    """Unscaled numbers, the most significant byte first, in as few bytes as they need."""
    raw, limit = bytearray(), 10**kind.precision
    there = []
    for text in texts:
        number, fits = 0, text is not None and 0 < len(text) <= 16
        if fits and text is not None:
            number = int.from_bytes(text, "big", signed=True)
            fits = abs(number) < limit
        there.append(fits)
        number = number if fits else 0
        raw += number.to_bytes(16, "little", signed=True)
    validity = pa.array(there, pa.bool_()).buffers()[1]
    return pa.Array.from_buffers(kind, len(there), [validity, pa.py_buffer(bytes(raw))])


def _id(fields: Sequence[TableField], path: Path) -> int | None:
    number = None
    for name in path:
        field = next((one for one in fields if one.name == name), None)
        if field is None:
            return None
        number, fields = field.id, field.children
    return number


def _type(schema: pa.Schema, path: Path) -> pa.DataType | None:
    kind = schema.field(path[0]).type
    for name in path[1:]:
        if not pa.types.is_struct(kind):
            return None
        kind = kind.field(name).type
    return kind
