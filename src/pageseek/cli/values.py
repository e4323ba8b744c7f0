"""Values of Arrow as plain Python values. Dates, times and durations become text: Python's own hold fewer of them."""

from __future__ import annotations

import itertools
import re
from typing import Any

import numpy as np
import pyarrow as pa

from pageseek.base.errors import UnsupportedError

BEYOND = "<value out of range"  # as Arrow writes what no calendar or clock shows
UNITS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
NEAR = 62_000_000_000  # seconds from 1970 that are surely within the calendar: to the year 5
ZERO = re.compile(r"\.0+(?=$|[+-])")
OFFSET = re.compile(r"(?<=[+-]\d\d)(?=\d\d$)")


def plain(values: pa.Array, table: bool = False) -> list[Any]:
    """The values. `table`: moments as a table shows them, else in ISO 8601. A text that is no UTF-8 is hexadecimal.

    What has no place in the calendar or on the clock is its number with the unit.
    """
    kind, types = values.type, pa.types
    if table and (types.is_float32(kind) or types.is_float16(kind)):
        # the shortest text that is the number in its own width
        narrow = np.float32 if types.is_float32(kind) else np.float16
        return [n if n is None else float(str(narrow(n))) for n in values.to_pylist()]
    if not _odd(kind):
        return list(values.to_pylist())
    if isinstance(values, pa.ExtensionArray):
        return plain(values.storage, table)
    if types.is_dictionary(kind):
        return plain(values.dictionary_decode(), table)
    if _is_text(kind):
        return _texts(values)
    if types.is_map(kind):
        pairs = pa.struct([("key", kind.key_type), ("value", kind.item_type)])
        made = plain(values.cast(pa.list_(pairs)), table)
        return [m if m is None else [(one["key"], one["value"]) for one in m] for m in made]
    if types.is_struct(kind):
        names = [kind.field(i).name for i in range(kind.num_fields)]
        parts = [plain(part, table) for part in values.flatten()]
        rows = (dict(zip(names, row, strict=True)) for row in zip(*parts, strict=True))
        known = values.is_valid().to_pylist()
        return [row if is_known else None for row, is_known in zip(rows, known, strict=True)]
    if kind.num_fields:  # lists
        import pyarrow.compute as pc

        inner = iter(plain(values.flatten(), table))
        lengths = pc.list_value_length(values).to_pylist()
        return [n if n is None else list(itertools.islice(inner, n)) for n in lengths]
    if types.is_duration(kind):
        numbers = values.cast(pa.int64()).to_pylist()
        return [n if n is None else _duration(n, kind.unit) for n in numbers]
    return _moments(values, table)


def refuse_twice(schema: pa.Schema, columns: bool) -> None:
    """Raise UnsupportedError where the fields of a struct have one name; `columns`: or columns of the schema."""
    if columns:
        name = _twice(schema.names)
        if name is not None:
            raise UnsupportedError(
                f"several columns have the name {name!r}, and an object of JSON has each name once; write another --format"
            )
    for field in schema:
        name = _twice_within(field.type)
        if name is not None:
            raise UnsupportedError(
                f"column {field.name!r}: several fields of a struct have the name {name!r}, which text and JSON show once; write --format arrow or parquet"
            )


def _twice(names: list[str]) -> str | None:
    return next((name for i, name in enumerate(names) if name in names[:i]), None)


def _twice_within(kind: pa.DataType) -> str | None:
    if isinstance(kind, pa.BaseExtensionType):
        return _twice_within(kind.storage_type)
    fields = [kind.field(i) for i in range(kind.num_fields)]
    if pa.types.is_struct(kind) and (name := _twice([f.name for f in fields])) is not None:
        return name
    return next((n for f in fields if (n := _twice_within(f.type)) is not None), None)


def _is_text(kind: pa.DataType) -> bool:
    types = pa.types
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def _odd(kind: pa.DataType) -> bool:
    """Whether Python has no value for each of a type."""
    if isinstance(kind, pa.BaseExtensionType):
        return _odd(kind.storage_type)
    if pa.types.is_dictionary(kind):
        return _odd(kind.value_type)
    if _is_text(kind) or (pa.types.is_temporal(kind) and not pa.types.is_interval(kind)):
        return True
    return any(_odd(kind.field(i).type) for i in range(kind.num_fields))


def _texts(values: pa.Array) -> list[str | None]:
    try:
        return list(values.to_pylist())
    except UnicodeDecodeError:  # such as a bound that is cut
        return [_text(one.as_buffer()) if one.is_valid else None for one in values]


def _text(value: pa.Buffer) -> str:
    found: bytes = value.to_pybytes()
    try:
        return found.decode()
    except UnicodeDecodeError:
        return found.hex()


def _moments(values: pa.Array, table: bool) -> list[str | None]:
    kind = values.type
    zoned = pa.types.is_timestamp(kind) and kind.tz is not None
    bare = values.cast(pa.timestamp(kind.unit)) if zoned else values
    made = bare.cast(pa.string()).to_pylist()
    unit = "days" if pa.types.is_date32(kind) else "ms" if pa.types.is_date64(kind) else kind.unit
    wide = pa.int32() if kind.bit_width == 32 else pa.int64()
    beyond = {i for i, one in enumerate(made) if one is not None and one.startswith(BEYOND)}
    if zoned:
        try:  # texts of zones are wrong, not refused, beyond the calendar
            made = values.cast(pa.string()).to_pylist()
        except pa.ArrowInvalid:  # no zone of this machine
            made = [one if one is None else f"{one}Z" for one in made]
    numbers = values.cast(wide) if beyond else None
    found: list[str | None] = []
    for i, one in enumerate(made):
        if one is None:
            found.append(None)
        elif i in beyond and numbers is not None:
            found.append(f"{numbers[i].as_py()} {unit}")
        else:
            said = ZERO.sub("", one.replace("Z", "+00:00"))
            said = OFFSET.sub(":", said) if zoned else said
            found.append(said.removesuffix("+00:00") if table else said.replace(" ", "T"))
    return found


def refuse_beyond(name: str, values: pa.Array, form: str) -> None:
    """Raise UnsupportedError where a date or time has no text."""
    import pyarrow.compute as pc

    kind, types = values.type, pa.types
    if not types.is_temporal(kind):
        return
    numbers = values.cast(pa.int32() if kind.bit_width == 32 else pa.int64())
    ends = pc.min_max(numbers).as_py()
    if ends["min"] is None:
        return
    unit = 1 if types.is_date(kind) else UNITS[kind.unit]
    least, most = (0, 86_399 * unit) if types.is_time(kind) else (-NEAR * unit, NEAR * unit)
    if types.is_date32(kind):
        least, most = -NEAR // 86_400, NEAR // 86_400
    if least <= ends["min"] and ends["max"] <= most:  # nearly always; to ask the texts takes longer
        return
    if types.is_timestamp(kind):
        values = values.cast(pa.timestamp(kind.unit))
    for place, said in enumerate(values.cast(pa.string()).to_pylist()):
        if said is not None and said.startswith(BEYOND):
            raise UnsupportedError(
                f"column {name!r} of type {kind}: {numbers[place]} is beyond the calendar or the clock of {form}; write another --format"
            )


def _duration(number: int, unit: str) -> str:
    """As Python writes a timedelta, of any length."""
    seconds, rest = divmod(number, UNITS[unit])
    days, second = divmod(seconds, 86_400)
    said = f"{second // 3600}:{second // 60 % 60:02}:{second % 60:02}"
    if rest:
        digits = len(str(UNITS[unit])) - 1
        said += f".{rest:0{digits}}"
    return f"{days} {'day' if abs(days) == 1 else 'days'}, {said}" if days else said
