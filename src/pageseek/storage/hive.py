"""Columns whose values are in the names of folders, as Hive writes them: `year=2024/month=1/part-0.parquet`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias
from urllib.parse import unquote

import pyarrow as pa

NULL = "__HIVE_DEFAULT_PARTITION__"
# a name, and its value: as the folder spells it, or once the types are known as a scalar of Arrow
Partition: TypeAlias = tuple[str, Any]
Partitions: TypeAlias = tuple[Partition, ...]
Types: TypeAlias = pa.Schema | Mapping[str, pa.DataType]


def partitions_of(folders: Iterable[str]) -> Partitions:
    """What the names of folders say, in their order; those without a `=` say nothing."""
    made = []
    for folder in folders:
        name, equals, value = folder.partition("=")
        if equals and name:
            text = unquote(value)
            made.append((unquote(name), None if text == NULL else text))
    return tuple(made)
