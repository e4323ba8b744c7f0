"""The partitions of a table that are rewritten: those whose values pass a filter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pageseek.api import scan
from pageseek.base.errors import NoColumnError, PageseekError
from pageseek.rewriting.table_rewrite import Group, TableRewrite

_ROW = "\0row"  # no column of a table is called so


def chosen(
    table: TableRewrite, groups: Sequence[Group], where: Any, types: Mapping[str, pa.DataType]
) -> list[Group]:
    """The groups whose partitions pass the filter.

    Parameters
    ----------
    where
        As the filter of `scan`, of partition columns only.
    types : mapping
        The types of the table's columns.

    Raises
    ------
    NoColumnError
        The filter names another column.
    PageseekError
        It is no filter of these columns.
    ValueError
        The table has no partition columns.
    """
    said = f"where={where!r}" if isinstance(where, str) else f"where={where}"
    values = [table.partition(group) for group in groups]
    common = set.intersection(*map(set, values)) if values else set()
    names = sorted(common & set(types))
    if values and not names:
        raise ValueError(
            f"{said}: {table.name} has no partition columns that all of its files have; without where= all of it is rewritten"
        )
    if not values:
        return []
    rows = pa.table({name: pa.array([one[name] for one in values], types[name]) for name in names})
    sink = pa.BufferOutputStream()
    pq.write_table(rows, sink)
    try:
        found = scan(sink.getvalue().to_pybytes(), filter=where).with_row_number(_ROW).to_table()
    except NoColumnError as error:
        raise NoColumnError(
            f"{table.name}: {said} may name partition columns only: {', '.join(names)} ({_told(error)})"
        ) from None
    except PageseekError as error:
        raise type(error)(f"{table.name}: {said}: {_told(error)}") from None
    return [groups[i] for i in found[_ROW].to_pylist()]


def _told(error: PageseekError) -> str:
    """What is wrong with the filter. The file of the partitions' values, and parameters, are of a scan only."""
    told = str(error).replace("<memory>: ", "")
    if "params=" in told:
        return "it has a parameter: write its value into the filter"
    return told
