"""Columns whose values are in the names of folders, as Hive writes them: `year=2024/month=1/part-0.parquet`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias
from urllib.parse import unquote

import pyarrow as pa

from pageseek.base.records import NamedTuple

NULL = "__HIVE_DEFAULT_PARTITION__"
# a name and a value: the text in the name of the folder, or a scalar of Arrow once the types are known
Partition: TypeAlias = tuple[str, Any]
Partitions: TypeAlias = tuple[Partition, ...]
Types: TypeAlias = pa.Schema | Mapping[str, pa.DataType]


class Inference(NamedTuple):
    """Another way to infer types. `typed`: from the texts of a column to its type, and the value of each; `given`: types that
    stay; `value`: of a text, for such a type, or the text itself where that is cast as ever (ValueError: it has none); `folded`: from
    the name of a column to what is equal for names of one column.
    """

    given: Types | None
    typed: Callable[[Sequence[str]], tuple[pa.DataType, Sequence[Any]]]
    value: Callable[[str, pa.DataType], Any]
    folded: Callable[[str], str] = str


class Unquoted(str):
    """A text whose signs the name of its folder has in codes such as `%20`. `raw`: as they stand there."""

    __slots__ = ("raw",)
    raw: str

    @classmethod
    def of(cls, raw: str) -> str:
        """The text of a name; without codes, it is the name itself."""
        text = unquote(raw)
        if text == raw:
            return raw
        made = cls(text)
        made.raw = raw
        return made


def partitions_of(folders: Iterable[str]) -> Partitions:
    """The columns and values in the names of folders, in their order. Names without a `=` have none."""
    made = []
    for folder in folders:
        name, equals, value = folder.partition("=")
        if equals and name:
            text = Unquoted.of(value)
            made.append((unquote(name), None if text == NULL else text))
    return tuple(made)
