"""Columns whose values are in the names of folders, as Hive writes them: `year=2024/month=1/part-0.parquet`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias
from urllib.parse import unquote

import pyarrow as pa

NULL = "__HIVE_DEFAULT_PARTITION__"
# a name and a value: the text in the name of the folder, or a scalar of Arrow once the types are known
Partition: TypeAlias = tuple[str, Any]
Partitions: TypeAlias = tuple[Partition, ...]
Types: TypeAlias = pa.Schema | Mapping[str, pa.DataType]


def partitions_of(folders: Iterable[str]) -> Partitions:
    """The columns and values in the names of folders, in their order. Names without a `=` have none."""
    made = []
    for folder in folders:
        name, equals, value = folder.partition("=")
        if equals and name:
            text = unquote(value)
            made.append((unquote(name), None if text == NULL else text))
    return tuple(made)
