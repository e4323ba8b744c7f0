"""One file as its footer has it: schema, row groups, column chunks and their statistics, parsed as they are touched.

Sources: parquet.thrift (FileMetaData, RowGroup, ColumnChunk, Statistics).
"""

from __future__ import annotations

import itertools
from bisect import bisect_right
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import pyarrow as pa

from pageseek._core import metadata as core
from pageseek.base.errors import CoreError, CorruptFileError, PageseekError, from_core
from pageseek.base.late_modules import npt
from pageseek.base.limits import DEFAULT
from pageseek.base.report import Report, counted
from pageseek.format.chunks import (
    CHUNK,
    Chunk,
    PlacedChunks,
    RowGroup,
    all_declared_pages,
    chunk_range,
    declared_pages,
    records,
    refusal,
    sound_chunks,
)
from pageseek.format.footer import read_footer
from pageseek.format.footer_form import key_values
from pageseek.format.nesting import Node, build
from pageseek.format.page_index import int64s
from pageseek.format.schema import Leaf, Schema, lazy
from pageseek.format.types import ABSENT, LeafType, Options
from pageseek.format.writers import Writer, writer_of
from pageseek.storage import RemoteStore, Source, Store

MANY_GROUPS = 8  # row groups from which the chunks of a leaf are parsed together
OBJECTS = 8 << 10  # bytes, about, of the Python objects of an open file


class FooterFile:
    """One file of one version as its footer has it: schema, row groups, column chunks and their statistics.

    Attributes
    ----------
    key_value_metadata : dict
        The key-value pairs of the footer; of equal keys the first.
    """

    def __init__(
        self,
        source: Source,
        store: Store,
        report: Report | None = None,
        max_metadata_bytes: int = DEFAULT.max_metadata_bytes,
        tail: bytes | memoryview | None = None,
    ) -> None:
        self.source = source
        self.max_metadata_bytes = max_metadata_bytes
        self.store = store
        self.name = store.name
        report = report or Report()
        try:
            self._footer, self._tail, opened = read_footer(store, report, max_metadata_bytes, tail)
            try:
                parsed = (
                    opened.parsed
                    if opened
                    else core.footer(self._footer, max_arena=max_metadata_bytes)
                )
            except CoreError as error:
                raise from_core(error, f"{self.name}: footer", self.footer_start) from error
        except PageseekError:
            store.check()  # the bytes may be of another version
            raise
        if store.version.strong:  # the store tells without a request
            store.check()
        (
            _,
            self.num_rows,
            self._created_by,
            encryption,
            elements,
            self.num_leaves,
            groups,
            at,
            pairs,
            self._stated_orders,
        ) = parsed
        self.is_encrypted = encryption is not None and encryption != ABSENT
        if self.is_encrypted:
            report.note(f"{self.name}: some columns are encrypted")
        self._groups = groups
        self.group_rows = (
            memoryview(groups)
            .cast("q")[RowGroup._fields.index("num_rows") :: len(RowGroup._fields)]
            .tolist()
        )
        if self.group_rows and min(self.group_rows) < 0:
            i, n = next((i, n) for i, n in enumerate(self.group_rows) if n < 0)
            raise CorruptFileError(f"{self.name}: row group {i} has {n} rows")
        if self.num_rows != sum(self.group_rows):
            report.note(
                f"{self.name}: the footer counts {self.num_rows} rows, its row groups another number"
            )
            self.num_rows = sum(self.group_rows)
        # row group by row group
        self._chunk_at = opened.sparse.at.reshape(-1).data if opened else memoryview(at).cast("Q")
        self._sparse = opened.sparse if opened else None
        self.key_value_metadata = opened.pairs if opened else key_values(self._footer, pairs)
        self._orders = memoryview(self._stated_orders).cast("q")
        if len(self._orders) != self.num_leaves:  # it cannot be told which leaves they are of
            self._orders = self._orders[:0]
        self._chunk_tables: dict[int, bytes] = {}
        self._chunks: dict[tuple[int, int], Any] = {}
        self._checked: dict[tuple[int, int], tuple[Any, int, int]] = {}
        self._single: dict[
            int, bytes
        ] = {}  # by leaf: for each row group, whether its chunk has one page
        self._reads = Report()  # of parts of a large footer, until a scan counts them
        self._parsed = 0  # bytes of indexes and tables that were parsed since
        self._nodes: dict[tuple[int, Options], Node] = {}
        self.outputs: dict[Any, Any] = {}  # of columns.output
        self.of_pairs: dict[bytes, Any] = {}  # what was made of key-value pairs
        self._keep_end()
        stored = self.key_value_metadata.get(b"ARROW:schema")
        self.schema_tree = Schema.shared(elements, self.num_leaves, self._footer, stored, self.name)

    @lazy
    def columns_key(self) -> tuple[bytes, bytes, bytes | None]:
        """The bytes that describe the columns. They are equal for files with the same columns."""
        elements, names = self.schema_tree.elements, self.schema_tree.names_end
        return (
            elements,
            bytes(self._footer[:names]),
            self.key_value_metadata.get(b"ARROW:schema"),
        )

    @lazy
    def schema_key(self) -> tuple[bytes, bytes, bytes, bytes | None]:
        """The bytes that files with the same Parquet schema and writer share, for `core.footers`."""
        elements, names, _ = self.columns_key
        writer = None
        if self._created_by is not None:
            offset, length = self._created_by
            writer = bytes(self._footer[offset : offset + length])
        return names, elements, self._stated_orders, writer

    @property
    def orders(self) -> memoryview:
        """The ColumnOrder of each leaf, as field ids of that union; empty unless the footer has one for each leaf."""
        return self._orders

    def adopt_columns(self, other: Schema) -> None:
        """Share the schema of another file with the same columns."""
        self.schema_tree = other.of(self.name)

    # -- opening ------------------------------------------------------------------------------

    @property
    def footer_start(self) -> int:
        """The offset of the footer. All else in the file lies before it."""
        return self.store.size - 8 - self._footer.nbytes

    @property
    def footer(self) -> memoryview:
        """The bytes of FileMetaData, and what may lie behind it."""
        if self._sparse is not None:
            self._sparse.complete(self._reads)
        return self._footer

    def count_reads(self, report: Report) -> None:
        """Count what was read of a large footer since this was last called."""
        if self._sparse is None:
            return
        reads, self._reads = self._reads, Report()
        report.add_spent(reads)
        if self._sparse.why:
            report.note(f"{self.name}: {self._sparse.why}")

    def _load(self, row_groups: Sequence[int], leaves: Sequence[Leaf]) -> None:
        """Read chunk metadata of a footer of which parts were read."""
        if self._sparse is not None:
            self._sparse.load(row_groups, leaves, self._reads)

    @property
    def has_orders(self) -> bool:
        """Whether the footer has column_orders, even for too few leaves."""
        return bool(self._stated_orders)

    @property
    def tail(self) -> memoryview:
        """The last bytes of the file, which were read at open."""
        return self._tail

    def to_fetch(self, offset: int, length: int) -> int:
        """The bytes of a range that a request would fetch: 0 if the tail holds all of it."""
        return 0 if offset >= self.store.size - self._tail.nbytes else length

    def _keep_end(self) -> None:
        """Of a remote file: learn how long the tails of files in its folder are, and keep no more of its own tail unless that
        is the whole file.
        """
        if self._sparse is not None or not isinstance(self.store, RemoteStore):
            return
        size, start = self.store.size, min(self._index_start(), self.footer_start)
        self.store.learn_tail(size - start)
        begins = size - self._tail.nbytes
        if 0 < begins < start and 2 * (size - start) < self._tail.nbytes:
            self._tail = memoryview(bytes(self._tail[start - begins :]))
            if size - self._tail.nbytes <= self.footer_start:
                at = self._tail.nbytes - 8 - self._footer.nbytes
                self._footer = self._tail[at : at + self._footer.nbytes]

    def _index_start(self) -> int:
        """The offset of the page index. Writers put it before the footer, the index of the first chunk first."""
        if not self.group_rows or not self.num_leaves:
            return self.store.size
        try:
            chunk: Any = Chunk._make(
                CHUNK.unpack(core.chunks(self._footer, bytes(self._chunk_at[:1])))
            )
        except CoreError:  # reading the chunk raises it
            return self.store.size
        places = [chunk.column_index_offset, chunk.offset_index_offset]
        return min((at for at in places if at != ABSENT and at >= 4), default=self.store.size)

    @property
    def end(self) -> bytes:
        """The last bytes that hold footer and page index, for `Known`; of a footer of which parts were read, those parts are read again."""
        if self._sparse is not None:
            return bytes(self._tail)
        start = min(self._index_start(), self.footer_start)
        begins = self.store.size - self._tail.nbytes
        if begins <= self.footer_start:
            return bytes(self._tail[max(start - begins, 0) :])
        return b"".join((self._footer, self._footer.nbytes.to_bytes(4, "little"), b"PAR1"))

    @property
    def end_bytes(self) -> int:
        """The bytes at the end that were read to open the file."""
        if self._sparse is not None:
            return self._tail.nbytes + self._sparse.nbytes
        within = self._tail.nbytes > self._footer.nbytes + 8
        return self._tail.nbytes + (0 if within else self._footer.nbytes)

    @property
    def nbytes(self) -> int:
        """About the memory that the file holds: bytes that were read, and what was parsed of them."""
        return (
            OBJECTS
            + self._tail.nbytes
            + (
                self._sparse.nbytes
                if self._sparse is not None
                else self._footer.nbytes + len(self._chunk_at) * 8
            )
            + self._parsed
        )

    def close(self) -> None:
        self.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}: {counted(self.num_rows, 'row')}, {counted(self.num_row_groups, 'row group')}, {self.num_leaves} {'leaf' if self.num_leaves == 1 else 'leaves'}>"

    # -- footer -------------------------------------------------------------------------------

    @property
    def num_row_groups(self) -> int:
        return len(self.group_rows)

    def first_row(self, row_group: int) -> int:
        """The number in the file of the first row of a row group."""
        return self._first_rows[row_group]

    def row_group_of(self, row: int) -> int:
        """The row group of a row of the file."""
        return bisect_right(self._first_rows, row) - 1

    def key_of(self, row_group: int) -> tuple[str, int]:
        """What names a row group in reports."""
        return self.name, row_group

    @lazy
    def _first_rows(self) -> list[int]:
        return list(itertools.accumulate(self.group_rows, initial=0))

    @lazy
    def row_groups(self) -> list[Any]:
        """The row groups, as records of RowGroup. Absent fields are None."""
        found = records(RowGroup, self._groups)
        return [one._make([None if n == ABSENT else n for n in one]) for one in found]

    @property
    def leaves(self) -> list[Leaf]:
        """Primitive columns, in file order."""
        return self.schema_tree.leaves

    @lazy
    def created_by(self) -> str | None:
        """The writer's name, where the footer has one."""
        if self._created_by is None:
            return None
        offset, length = self._created_by
        return bytes(self._footer[offset : offset + length]).decode("utf-8", "replace")

    @lazy
    def writer(self) -> Writer:
        """Who wrote the file."""
        return writer_of(self.created_by)

    def node(self, index: int, options: Options) -> Node:
        """A top-level field as a tree of Arrow fields."""
        key = index, options
        found = self._nodes.get(key)
        if found is None:
            tree = self.schema_tree
            found = build(tree, index, options, tree.stored_field(index, tree.field(index).name))
            self._nodes[key] = found
        return found

    def leaf_type(self, leaf: Leaf, options: Options) -> LeafType:
        """How a leaf is decoded."""
        if leaf.flat:
            return self.schema_tree.leaf_type(leaf, options)
        root = self.node(leaf.top, options)
        node = next(n for n in root.leaf_nodes() if n.first_leaf == leaf.index)
        assert node.leaf_type is not None
        return node.leaf_type

    @lazy
    def schema_metadata(self) -> dict[bytes, bytes]:
        """The key-value pairs that belong to the Arrow schema."""
        return {k: v or b"" for k, v in self.key_value_metadata.items() if k != b"ARROW:schema"}

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of the file, as read with default options."""
        tree, options = self.schema_tree, Options()
        fields = [
            self.node(i, options).field
            if (leaf := tree.flat_leaf(i)) is None
            else tree.flat_column(leaf, options)[1]
            for i in range(tree.num_fields)
        ]
        return pa.schema(fields, metadata=self.schema_metadata or None)

    # -- column chunks -------------------------------------------------------------------------

    def chunks(self, leaf: Leaf) -> list[Any]:
        """The column chunks of a leaf, one a row group."""
        return records(Chunk, self.chunk_table(leaf))

    def chunk_table(self, leaf: Leaf) -> bytes:
        """The column chunks of a leaf as the core has them, a record for each row group."""
        found = self._chunk_tables.get(leaf.index)
        if found is None:
            self._load(range(self.num_row_groups), [leaf])
            at = self._chunk_at[leaf.index :: self.num_leaves]
            found = self._chunk_tables[leaf.index] = self._read_chunks(at, leaf)
        return found

    def declared_chunks(self, leaf: Leaf) -> bytes:
        """The column chunks of a leaf as the footer has them, even where the writer is known to be wrong."""
        self._load(range(self.num_row_groups), [leaf])
        try:
            return core.chunks(self._footer, bytes(self._chunk_at[leaf.index :: self.num_leaves]))
        except CoreError as error:
            raise from_core(error, f"{self.name}: column {leaf.name!r}: chunk metadata") from error

    def _chunk(self, row_group: int, leaf: Leaf) -> Any:
        """One column chunk, as the footer has it."""
        found = self._chunks.get((row_group, leaf.index))
        if found is None:
            table = self._chunk_tables.get(leaf.index)
            if table is None:  # a lookup parses one row group only
                self._load([row_group], [leaf])
                at = row_group * self.num_leaves + leaf.index
                found = Chunk._make(
                    CHUNK.unpack(self._read_chunks(self._chunk_at[at : at + 1], leaf))
                )
            else:
                found = Chunk._make(CHUNK.unpack_from(table, row_group * CHUNK.size))
            self._chunks[row_group, leaf.index] = found
        return found

    def load_chunks(self, row_group: int, leaves: Sequence[Leaf]) -> None:
        """Parse the column chunks of several leaves at once."""
        self._load([row_group], leaves)
        missing, places = [], bytearray()
        group = row_group * self.num_leaves
        for leaf in leaves:
            if (row_group, leaf.index) not in self._chunks:
                missing.append(leaf)
                places += self._chunk_at[group + leaf.index : group + leaf.index + 1]
        if len(missing) < 2:
            return
        try:
            data = self._read_chunks(places)
        except CoreError:
            return  # read one by one, the error names the column
        for leaf, values in zip(missing, CHUNK.iter_unpack(data), strict=True):
            self._chunks[row_group, leaf.index] = Chunk._make(values)

    def _read_chunks(self, at: bytearray | memoryview, leaf: Leaf | None = None) -> bytes:
        try:
            data = core.chunks(self._footer, bytes(at))
        except CoreError as error:
            if leaf is None:
                raise
            base = self.store.size - 8 - self._footer.nbytes
            raise from_core(
                error, f"{self.name}: column {leaf.name!r}: chunk metadata", base
            ) from error
        self._parsed += 4 * len(data)  # with the objects that they become
        return self._corrected(data) if self.writer.understates_chunks else data

    def _corrected(self, data: bytes) -> bytes:
        """Enlarge chunks whose writer left the dictionary page's header out of their size (PARQUET-816)."""
        table = int64s(data).reshape(-1, len(Chunk._fields)).copy()
        end = self.store.size - 8 - self._footer.nbytes
        starts = np.array([chunk_range(chunk)[0] for chunk in records(Chunk, data)])
        size = table[:, Chunk._fields.index("total_compressed_size")]
        size[:] = np.minimum(size + 100, end - starts)
        return table.tobytes()

    def chunk(self, row_group: int, leaf: Leaf) -> Any:
        """One column chunk, checked: it is readable, and lies inside this file."""
        return (self._checked.get((row_group, leaf.index)) or self.placed_chunk(row_group, leaf))[0]

    def placed_chunk(self, row_group: int, leaf: Leaf) -> tuple[Any, int, int]:
        """The checked column chunk with its first byte, and the byte after its last."""
        found = self._checked.get((row_group, leaf.index))
        if found is not None:
            return found
        chunk = self._chunks.get((row_group, leaf.index)) or self._chunk(row_group, leaf)
        start, stop = chunk_range(chunk)
        if (
            chunk.crypto != ABSENT
            or not chunk.has_metadata
            or chunk.file_path_length not in (ABSENT, 0)
            or chunk.type != leaf.element.type
            or (leaf.max_rep == 0 and chunk.num_values != self.group_rows[row_group])
            or not 4 <= start <= stop <= self.store.size
        ):
            where = f"{self.name}: column {leaf.name!r}, row group {row_group}"
            raise refusal(where, leaf, chunk, self.group_rows[row_group])
        made = self._checked[row_group, leaf.index] = chunk, start, stop
        return made

    def placed_chunks(self, row_groups: Sequence[int], leaves: Sequence[Leaf]) -> PlacedChunks:
        """The checked column chunks of some leaves in some row groups."""
        sizes, unpacked, codecs, ranges = [], [], [], []
        for leaf in leaves:
            placed = [self.placed_chunk(number, leaf) for number in row_groups]
            own = [stop - start for _, start, stop in placed]
            sizes.append(own)
            unpacked.append([chunk.total_uncompressed_size for chunk, _, _ in placed])
            codecs.append({chunk.codec for chunk, _, _ in placed})
            ranges += [(start, size) for (_, start, _), size in zip(placed, own, strict=True)]
        return PlacedChunks(sizes, unpacked, codecs, ranges)

    def figures(self, leaf: Leaf) -> npt.NDArray[np.int64]:
        """The column chunks of a leaf, a row each, with the fields of Chunk."""
        return int64s(self.chunk_table(leaf)).reshape(-1, len(Chunk._fields))

    def lie_before(self, leaf: Leaf, end: int) -> bool:
        """Whether all chunks of a leaf that have rows can be read, and end before some byte."""
        rows = np.array(self.group_rows, np.int64)
        found = sound_chunks(self.figures(leaf), leaf.element.type, leaf.max_rep > 0, rows, end)
        return bool((found.sound | (rows == 0)).all())

    def has_one_page(self, row_group: int, leaf: Leaf) -> bool:
        """Whether the footer says that a chunk has a single data page: there is none to leave out."""
        known = self._single.get(leaf.index)
        if known is not None:
            return known[row_group] != 0
        placed = self._checked.get((row_group, leaf.index))
        if placed is None:
            try:
                placed = self.placed_chunk(row_group, leaf)
            except PageseekError:  # the scan raises it when it reads the chunk
                return False
        return declared_pages(placed[0]) == 1

    def have_one_page(self, row_groups: Sequence[int], leaf: Leaf) -> bool:
        """Whether the footer says so of all chunks of a leaf in these row groups."""
        if len(row_groups) >= MANY_GROUPS and leaf.index not in self._single:
            try:
                pages = all_declared_pages(self.figures(leaf))
                self._single[leaf.index] = (pages == 1).tobytes()
            except CorruptFileError:
                return False
        for group in row_groups:  # noqa: SIM110 (of one, `all` of a generator would cost more)
            if not self.has_one_page(group, leaf):
                return False
        return True

    def _resolve(self, leaf: Leaf | str) -> Leaf:
        return leaf if isinstance(leaf, Leaf) else self.schema_tree.find(leaf)
