"""What a caller of `rewrite` asks for, checked before the source is read."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import closing
from typing import Any

import pyarrow as pa

from pageseek.base.arguments import shown, whole
from pageseek.base.errors import NoColumnError, PageseekError
from pageseek.base.suggest import offered
from pageseek.index.attaching import attach
from pageseek.index.local_target import LocalTarget
from pageseek.rewriting.encoding import MOST_BYTES, MOST_TOLD_BYTES, Encoder
from pageseek.rewriting.layout import CODECS, PAGE_ROWS, Layout
from pageseek.rewriting.sink import Sink
from pageseek.rewriting.sort_keys import sortable_type

WAYS = ("ascending", "descending")
LEAST_MEMORY = 32 << 20
MOST_PAGE_ROWS = (1 << 31) - 1  # a page counts its values in 32 bits
MOST_CLUSTERED = 8  # columns; of more, each has too little of the order
INDEXES = ("page_index", "bloom", "distinct", "lookup", "bitmap", "trigram", "file_bloom")
PARAMETERS = ("footer", "distinct_index", "indexes")  # of `attach`, beside those of kinds
# options of `scan` that say how the source is read
OPTIONS = (
    "int96_unit", "out_of_range", "partitioning", "schema", "version", "timestamp", "snapshot", "retries", "timeout",
    "max_page_bytes", "max_output_bytes", "max_metadata_bytes",
)  # fmt: skip


def sort_columns(sort_by: Any) -> list[tuple[str, bool]]:
    """The columns of `sort_by`, and whether descending."""
    if not isinstance(sort_by, Iterable):
        raise TypeError(f"sort_by={shown(sort_by)}: the name of a column, or a list of them")
    given = [sort_by] if isinstance(sort_by, str) else list(sort_by)
    made = []
    for one in given:
        name, way = (one, WAYS[0]) if isinstance(one, str) else _pair(one)
        if way not in WAYS:
            raise ValueError(f"sort_by: {name!r} is to be {way!r}: ascending or descending")
        made.append((name, way == WAYS[1]))
    _refuse_twice("sort_by", [name for name, _ in made])
    return made


def _pair(one: Any) -> tuple[str, Any]:
    if isinstance(one, tuple | list) and len(one) == 2 and isinstance(one[0], str):
        return one[0], one[1]
    raise TypeError(f"sort_by: {one!r}: the name of a column, or (name, 'descending')")


def cluster_columns(cluster_by: Any) -> list[str]:
    """The columns of `cluster_by`."""
    made = list(cluster_by) if isinstance(cluster_by, Iterable) else [cluster_by]
    if isinstance(cluster_by, str) or not all(isinstance(one, str) for one in made):
        raise TypeError(f"cluster_by={shown(cluster_by)}: a list of names of columns")
    if made and not 2 <= len(made) <= MOST_CLUSTERED:
        raise ValueError(
            f"cluster_by: {len(made)} columns: it takes two to {MOST_CLUSTERED}; for one column, say sort_by"
        )
    _refuse_twice("cluster_by", made)
    return made


def _refuse_twice(what: str, names: Sequence[str]) -> None:
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"{what}: {twice[0]!r} stands there twice")


def number(name: str, value: Any, least: int = 1) -> int:
    """A whole number that is large enough."""
    made = whole(name, value)
    if made < least:
        raise ValueError(f"{name}={made}: at least {least}")
    return made


def codec_named(codec: Any) -> str:
    """A codec that can be written."""
    name = codec.lower() if isinstance(codec, str) else codec
    if name in ("uncompressed", None):
        name = "none"
    if name not in CODECS:
        raise ValueError(f"codec={codec!r}: one of {', '.join(CODECS)}")
    if name != "none" and not pa.Codec.is_available("lz4_raw" if name == "lz4" else name):
        raise ValueError(f"codec={codec!r}: this build of pyarrow has it not")
    return str(name)


def layout_of(
    page_rows: int | None, group_rows: int | None, codec: Any, by: Sequence[tuple[str, bool]]
) -> Layout:
    """The layout of numbers that were checked; None stands for the usual one."""
    most = MOST_BYTES if group_rows is None else MOST_TOLD_BYTES
    rows = min(page_rows or PAGE_ROWS, MOST_PAGE_ROWS)
    return Layout(rows, group_rows or 0, codec_named(codec), most, tuple(by))


def check_options(options: Mapping[str, Any], own: Collection[str]) -> None:
    """Raise TypeError for an option that does not exist. `own`: those of `rewrite` itself."""
    others = {name: value for name, value in options.items() if name not in OPTIONS}
    if others:
        from pageseek.base.habits import refuse  # late: no right call needs it

        refuse(others, [*own, *OPTIONS], "rewrite", writes=True)


def indexes_of(given: Any) -> dict[str, Any]:
    """The parameters of `attach` that a caller gave as `indexes`."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise TypeError(
            f"indexes={shown(given)}: a dict of kinds of indexes and their columns, such as {{'bitmap': ['state']}}"
        )
    for name in given:
        if name not in INDEXES and name not in PARAMETERS:
            raise TypeError(f"indexes: there is no kind {name!r}; {offered(str(name), INDEXES)}")
    return dict(given)


def check_columns(schema: pa.Schema, what: str, names: Sequence[str], source: str) -> None:
    """Raise where the source lacks a column, or a column has no order."""
    for name in names:
        if schema.names.count(name) != 1:
            if name in schema.names:
                raise NoColumnError(
                    f"{source}: {what}: several columns have the name {name!r}, and it does not say which is meant"
                )
            first, _, way = name.rpartition(" ")
            if first in schema.names and what == "sort_by":
                raise NoColumnError(
                    f"{source}: {what}: no column {name!r}; {way} is no part of a name: write ({first!r}, 'descending') for that order"
                )
            raise NoColumnError(
                f"{source}: {what}: no column {name!r}; {offered(name, schema.names)}"
            )
        sortable_type(schema.field(name).type, name)


def try_indexes(schema: pa.Schema, layout: Layout, indexes: Mapping[str, Any], source: str) -> None:
    """Raise where a column cannot have an index: what would fail at the end fails here, with a file without rows. `source`: what errors
    name in its place.
    """
    with tempfile.TemporaryDirectory(prefix="pageseek-") as folder:
        path = os.path.join(folder, "empty.parquet")
        with closing(LocalTarget(path, None)) as target:
            Encoder(Sink(target), schema, layout).close()
            target.commit(lambda: None)
        try:
            attach(path, output=os.path.join(folder, "out.parquet"), **indexes)
        except PageseekError as error:
            raise type(error)(str(error).replace(path, source)) from None
