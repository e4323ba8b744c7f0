"""The values in the names of folders, typed: one column for each name, over all files.

A type that is not given is the first of int32, int64, date (`2024-01-31`) and text that all values fit. pyarrow infers int32
and text, Spark more types. Numbers with a point and timestamps stay text here: two folders may spell one number in two ways,
and Spark reads a time in the zone of its session; `pageseek.spark` infers as Spark does.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from pageseek.base.errors import UnsupportedError
from pageseek.base.suggest import offered
from pageseek.storage import Source
from pageseek.storage.hive import Inference, Partitions, Types

_INTEGER = re.compile(r"[+-]?[0-9]{1,40}")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


def typed(
    sources: Sequence[Source], given: Types | None, inference: Inference | None = None
) -> tuple[list[Source], pa.Schema]:
    """The sources with typed values of their folders, and the columns of these values.

    Parameters
    ----------
    given : pyarrow.Schema or mapping of names to types, optional
        Types of some of the columns. The others are inferred from all values.

    Raises
    ------
    UnsupportedError
        Two files lie below folders of different columns, or a value is not of its type.
    """
    names = tuple(name for name, _ in sources[0].partitions)
    if inference is not None:
        sources = _with_names(sources, names, inference.folded)
    for source in sources:
        if tuple([name for name, _ in source.partitions]) != names:
            raise UnsupportedError(_differ(sources[0], source))
    types = by_name(given)
    for name in types:
        if name not in names:
            raise UnsupportedError(
                f"partitioning: no folders of the column {name!r}; {offered(name, names)}"
            )
    if len(set(names)) < len(names):
        raise UnsupportedError(f"{sources[0].name}: two folders above it are of one column")
    fields: list[pa.Field] = []
    scalars: list[dict[str | None, pa.Scalar]] = []
    for i, name in enumerate(names):
        known = sources[0].partitions[i][1]
        if isinstance(known, pa.Scalar):  # the file of a table, with types
            fields.append(pa.field(name, known.type))
            scalars.append({})
            continue
        seen: dict[str | None, Source] = {}  # each value -> the first file that has it
        for source in sources:
            seen.setdefault(source.partitions[i][1], source)
        texts = [text for text in seen if text is not None]
        if inference is not None and name not in types:
            kind, values = inference.typed(texts)
            fields.append(pa.field(name, kind))
            known_values: dict[str | None, Any] = dict(zip(texts, values, strict=True))
            scalars.append({text: pa.scalar(known_values.get(text), kind) for text in seen})
            continue
        kind = types.get(name) or _inferred(texts)
        fields.append(pa.field(name, kind))
        value = None if inference is None else inference.value
        scalars.append(
            {text: _scalar(text, kind, name, source.name, value) for text, source in seen.items()}
        )
    if not any(scalars):  # all have types; equal ones, as 0.0 and -0.0, are not to be mixed up
        return list(sources), pa.schema(fields)
    made: dict[Partitions, Partitions] = {}  # files of one folder share one tuple
    out = []
    for source in sources:
        before = source.partitions
        if before not in made:
            pairs = zip(before, scalars, strict=True)
            made[before] = tuple([(n, known.get(v, v)) for (n, v), known in pairs])
        out.append(replace(source, partitions=made[before]))
    return out, pa.schema(fields)


def _with_names(
    sources: Sequence[Source], names: Sequence[str], folded: Callable[[str], str]
) -> Sequence[Source]:
    """The sources with these names of their folders, where theirs are other spellings of them."""
    keys, others = list(map(folded, names)), dict[Partitions, Partitions]()
    for own in dict.fromkeys(source.partitions for source in sources):
        spelled = [name for name, _ in own]
        if spelled != list(names) and list(map(folded, spelled)) == keys:
            others[own] = tuple(zip(names, (value for _, value in own), strict=True))
    if not others:
        return sources
    return [replace(one, partitions=others.get(one.partitions, one.partitions)) for one in sources]


def by_name(given: Types | None) -> dict[str, pa.DataType]:
    """Types that a caller gave, by the names of their columns."""
    if isinstance(given, pa.Schema):
        return {field.name: field.type for field in given}
    return dict(given or {})


def _differ(one: Source, other: Source) -> str:
    said = [
        f"{source.name} is below folders of "
        + (", ".join(repr(name) for name, _ in source.partitions) or "no column")
        for source in (one, other)
    ]
    wanted = "every file has to have the same ones in the same order"
    folded = [[name.lower() for name, _ in source.partitions] for source in (one, other)]
    if folded[0] == folded[1]:
        wanted = "these names differ in case alone: rename the folders of one"
    return f"{said[0]}, and {said[1]}: {wanted}; partitioning=False reads the files without them"


def _inferred(texts: Sequence[str]) -> pa.DataType:
    if not texts:
        return pa.string()
    if all(map(_INTEGER.fullmatch, texts)):
        bits = max(
            int(text).bit_length() if int(text) >= 0 else (~int(text)).bit_length()
            for text in texts
        )
        if bits < 64:
            return pa.int32() if bits < 32 else pa.int64()
    if all(map(_DATE.fullmatch, texts)):
        try:
            pa.array(texts).cast(pa.date32())
        except pa.ArrowException:
            return pa.string()
        return pa.date32()
    return pa.string()


def _scalar(
    text: str | None,
    kind: pa.DataType,
    name: str,
    path: str,
    value: Callable[[str, pa.DataType], Any] | None,
) -> pa.Scalar:
    if text is None:
        return pa.scalar(None, kind)
    try:
        made = text if value is None else value(text, kind)
        if made is not text:
            return pa.scalar(made, kind)
        if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
            return pa.scalar(text.encode(), kind)
        if pa.types.is_integer(kind):
            return pa.scalar(int(text), kind)
        return pa.scalar(text, pa.string()).cast(kind)
    except (pa.ArrowException, ValueError, OverflowError) as error:
        raise UnsupportedError(
            f"{path}: the folder says {name!r} is {text!r}, which is no {kind}: give another type with partitioning="
        ) from error
