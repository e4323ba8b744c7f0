"""What the footer says of the values of column chunks, as far as it can be believed.

Source: parquet.thrift (Statistics, ColumnOrder).
"""

from __future__ import annotations

import struct
from typing import Any

import pyarrow as pa

from pageseek._core import rows
from pageseek.base.errors import placed
from pageseek.format.bounds import Bounds, ChunkValues, declares_values, usable_statistics
from pageseek.format.file_footer import FooterFile
from pageseek.format.schema import Leaf
from pageseek.format.statistics import declared_bounds, zone_statistics
from pageseek.format.types import ABSENT, FLOAT_KINDS, LeafType, Options


class FileStatistics(FooterFile):
    """One file of one version with the statistics of its row groups."""

    def __init__(self, *args: Any) -> None:
        """The parameters are those of FooterFile."""
        self._group_bounds: dict[tuple[int, Options], Bounds | None] = {}
        self._usable: dict[int, tuple[bool, bool]] = {}  # by leaf
        super().__init__(*args)

    def group_zones(self, leaf: Leaf, options: Options) -> rows.Zones | None:
        """The statistics of a leaf's chunks as zones, one a row group; None if there are none."""
        found = self._bounds_of_groups(leaf, options)
        return None if found is None else found.zones

    def _bounds_of_groups(self, leaf: Leaf, options: Options) -> Bounds | None:
        key = leaf.index, options
        if key not in self._group_bounds:
            self._group_bounds[key] = self._make_bounds(leaf, self.leaf_type(leaf, options))
        return self._group_bounds[key]

    def _make_bounds(self, leaf: Leaf, leaf_type: LeafType) -> Bounds | None:
        bounds, counts = self.usable_statistics(leaf)
        if not bounds or leaf_type.is_null:
            return None
        table, writer = self.chunk_table(leaf), self.writer
        found = zone_statistics(table, self._footer, leaf, leaf_type, self._orders, writer, counts)
        return None if found is None else self._bounds(leaf, leaf_type, *found)

    def chunk_values(
        self, row_group: int, leaf: Leaf | str, options: Options | None = None
    ) -> ChunkValues:
        """The statistics of one column chunk, as far as they can be believed (parquet.thrift, Statistics)."""
        leaf, options = self._resolve(leaf), options or Options()
        chunk = self._chunk(row_group, leaf)
        found = self._bounds_of_groups(leaf, options)
        leaf_type, total = self.leaf_type(leaf, options), chunk.num_values
        nulls = self.null_count(row_group, leaf)
        nans: int | None = 0
        if leaf_type.kind in FLOAT_KINDS:
            nans = chunk.statistics_nan_count
            nans = nans if found is not None and 0 <= nans <= total else None
        pair = None if found is None else found.pair(row_group)
        numbers = None if nulls is None or nans is None else total - nulls - nans
        if (numbers is not None and numbers < 0) or (
            pair is not None and (numbers == 0 or nulls == total)
        ):
            return ChunkValues()  # they contradict each other
        if pair is None:
            return ChunkValues(null_count=nulls, nan_count=nans)
        lower, upper = pair
        unsaid = ABSENT if declares_values(leaf, leaf_type) else None
        return ChunkValues(
            lower,
            upper,
            lower if chunk.statistics_is_min_exact in (1, unsaid) else None,
            upper if chunk.statistics_is_max_exact in (1, unsaid) else None,
            nulls,
            nans,
        )

    def null_count(self, row_group: int, leaf: Leaf) -> int | None:
        """The nulls of a column chunk, including those of empty lists; None if they are not known."""
        if leaf.max_def == 0:
            return 0
        chunk = self._chunk(row_group, leaf)
        count: int = chunk.statistics_null_count
        told = chunk.statistics_present == 1 and self.usable_statistics(leaf)[1]
        return count if told and 0 <= count <= chunk.num_values else None

    def usable_statistics(self, leaf: Leaf) -> tuple[bool, bool]:
        """Whether bounds can be used, and whether counts of nulls can (bounds.py)."""
        found = self._usable.get(leaf.index)
        if found is None:
            arrow = self.writer.arrow
            stored = self.schema_tree.stored_field(leaf.top, leaf.path[0]) if arrow else None
            found = self._usable[leaf.index] = usable_statistics(leaf, arrow, stored)
        return found

    def _chunk_bounds(self, leaf: Leaf, leaf_type: LeafType) -> tuple[bytes, bytes, bytes] | None:
        """The places of trusted bounds in the footer, counts of nulls and of NaN; None without statistics."""
        table = self.chunk_table(leaf)
        return declared_bounds(table, self._footer, leaf, leaf_type, self._orders, self.writer)

    def _bounds(
        self,
        leaf: Leaf,
        leaf_type: LeafType,
        places: bytes,
        nulls: bytes | None,
        nans: bytes | None,
    ) -> Bounds:
        n = self.num_row_groups
        counts = struct.pack(f"{n}q", *self.group_rows)
        with placed(f"{self.name}: column {leaf.name!r}: statistics"):
            return Bounds(
                leaf_type,
                self._footer,
                places,
                n,
                None,
                nulls,
                nans,
                counts,
                0,
                self.max_metadata_bytes,
            )

    def statistics(self, leaf: Leaf | str) -> tuple[pa.Array, pa.Array]:
        """The least and greatest value of a column in each row group, as the Parquet schema types them;
        null where nothing can be trusted.
        """
        leaf = self._resolve(leaf)
        leaf_type = self.schema_tree.parquet_leaf_type(leaf)
        places = (
            self._chunk_bounds(leaf, leaf_type)
            or (struct.pack("<q", ABSENT) * 4 * self.num_row_groups,)
        )[0]
        found = self._bounds(leaf, leaf_type, places, None, None)
        return found.lower, found.upper
