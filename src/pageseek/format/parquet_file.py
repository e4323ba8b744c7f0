"""The file that `pageseek.open` gives: its row groups, column chunks and pages for users."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, Self

import pyarrow as pa

from pageseek._core.decode import LeafDecoder
from pageseek.base.arguments import whole
from pageseek.base.errors import UnsupportedError
from pageseek.base.late_modules import above, names_of_others
from pageseek.base.records import dataclass
from pageseek.base.tracebacks import short_traceback
from pageseek.format.bounds import ChunkValues
from pageseek.format.chunks import CODECS
from pageseek.format.codecs import decompressor
from pageseek.format.file_metadata import FileMetadata
from pageseek.format.page_index import ColumnIndex, OffsetIndex
from pageseek.format.schema import Leaf
from pageseek.format.types import ABSENT, PHYSICAL_NAMES, Options, logical_name, to_arrow
from pageseek.storage.store import ClosedStore

# parquet.thrift, Encoding; there is no 1
_ENCODINGS = (
    "PLAIN", "1", "PLAIN_DICTIONARY", "RLE", "BIT_PACKED", "DELTA_BINARY_PACKED",
    "DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY", "RLE_DICTIONARY", "BYTE_STREAM_SPLIT",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class LeafColumn:
    """A leaf of the schema: a column that has values of its own (parquet.thrift, SchemaElement).

    Attributes
    ----------
    index : int
        Its position among the leaves, from 0.
    name : str
        Its path with dots, as filters take it.
    physical_type, logical_type : str
        The types of the format; "NONE" where there is no logical type.
    type : pyarrow.DataType
        The type in which its values come out.
    max_definition_level, max_repetition_level : int
        Both are 0 for a required column outside of lists.
    """

    index: int
    name: str
    path: tuple[str, ...]
    physical_type: str
    logical_type: str
    type: pa.DataType
    max_definition_level: int
    max_repetition_level: int


@dataclass(frozen=True, slots=True)
class RowGroup:
    """A row group (parquet.thrift, RowGroup). Sizes are bytes; None if the footer has none."""

    index: int
    first_row: int
    num_rows: int
    total_byte_size: int | None
    total_compressed_size: int | None

    if not TYPE_CHECKING:
        __getattr__ = names_of_others("RowGroup")


@dataclass(frozen=True, slots=True)
class ColumnChunk:
    """A column chunk (parquet.thrift, ColumnMetaData). A field that the footer does not have is None.

    Attributes
    ----------
    codec, encodings : str, tuple of str
        "zstd", ("PLAIN", "RLE_DICTIONARY"); a number if the format has no name for it.
    num_values : int
        Nulls and the slots of empty lists included.
    compressed_size, uncompressed_size : int
        Bytes, page headers included.
    data_page_offset, dictionary_page_offset : int
        Bytes from the start of the file.
    null_count : int or None
        That of the statistics, whether it can be used or not.
    column_index, offset_index : (int, int) or None
        Offset and length in bytes.
    bloom_filter_offset : int or None
    """

    row_group: int
    column: str
    codec: str
    encodings: tuple[str, ...]
    num_values: int
    compressed_size: int
    uncompressed_size: int
    data_page_offset: int
    dictionary_page_offset: int | None
    has_statistics: bool
    null_count: int | None
    column_index: tuple[int, int] | None
    offset_index: tuple[int, int] | None
    bloom_filter_offset: int | None


class ParquetFile:
    """One version of one file: schema, row groups, statistics and page index, parsed when they are first used.

    A column is given by its name, by a dotted path, or as a `LeafColumn`. Safe to share between threads. Use it in a
    `with` block, or call `close`.

    Attributes
    ----------
    name : str
    size : int
        Bytes.
    num_rows, num_row_groups, num_leaves : int
    """

    __slots__ = ("_metadata", "name", "num_leaves", "num_row_groups", "num_rows", "size")

    if not TYPE_CHECKING:  # which knows by itself what a file has
        __getattr__ = names_of_others("ParquetFile")

    def __init__(self, metadata: FileMetadata) -> None:
        self._metadata = metadata
        self.name: str = metadata.name
        self.size: int = metadata.store.size
        self.num_rows: int = metadata.num_rows
        self.num_row_groups: int = metadata.num_row_groups
        self.num_leaves: int = metadata.num_leaves

    @property
    @short_traceback
    def schema(self) -> pa.Schema:
        """The Arrow schema of the file, as `read_table` gives it with default options."""
        return self._metadata.schema

    @property
    def created_by(self) -> str | None:
        """The writer's name for itself."""
        return self._metadata.created_by

    @property
    def key_value_metadata(self) -> Mapping[bytes, bytes | None]:
        """The footer's key-value pairs; the first of equal keys."""
        return self._metadata.key_value_metadata

    @property
    def is_encrypted(self) -> bool:
        """Whether some columns are encrypted. They cannot be read; the others can."""
        return bool(self._metadata.is_encrypted)

    @property
    def footer_offset(self) -> int:
        """The byte at which the footer begins."""
        return self._metadata.footer_start

    @property
    @short_traceback
    def leaves(self) -> list[LeafColumn]:
        """The leaves of the schema, in file order."""
        return [self._shown(leaf) for leaf in self._metadata.leaves]

    @short_traceback
    def leaf(self, column: str | LeafColumn) -> LeafColumn:
        """One leaf, by its name. PredicateError: no leaf has this name, or several have it."""
        return self._shown(self._leaf(column))

    @property
    @short_traceback
    def row_groups(self) -> list[RowGroup]:
        """The row groups, in file order."""
        file = self._metadata
        return [
            RowGroup(
                i,
                file.first_row(i),
                file.group_rows[i],
                _known(group.total_byte_size),
                _known(group.total_compressed_size),
            )
            for i, group in enumerate(file.row_groups)
        ]

    @short_traceback
    def chunk(self, row_group: int, column: str | LeafColumn) -> ColumnChunk:
        """One column chunk. IndexError: no such row group. CorruptFileError: the footer's entry for it is impossible."""
        return self.chunks(column)[self._row_group(row_group)]

    @short_traceback
    def chunks(self, column: str | LeafColumn) -> list[ColumnChunk]:
        """The chunks of a column, one for each row group."""
        file, leaf = self._metadata, self._leaf(column)
        made = []
        for i, chunk in enumerate(file.chunks(leaf)):
            made.append(
                ColumnChunk(
                    i,
                    leaf.name,
                    _name(CODECS, chunk.codec),
                    _encodings(chunk.encodings),
                    chunk.num_values,
                    chunk.total_compressed_size,
                    chunk.total_uncompressed_size,
                    chunk.data_page_offset,
                    _known(chunk.dictionary_page_offset),
                    chunk.statistics_present == 1,
                    _known(chunk.statistics_null_count),
                    file.index_range("column", i, leaf),
                    file.index_range("offset", i, leaf),
                    _known(chunk.bloom_filter_offset),
                )
            )
        return made

    @short_traceback
    def chunk_values(self, row_group: int, column: str | LeafColumn) -> ChunkValues:
        """The statistics of a column chunk, as far as they can be used."""
        return self._metadata.chunk_values(self._row_group(row_group), self._leaf(column))

    @short_traceback
    def statistics(self, column: str | LeafColumn) -> tuple[pa.Array, pa.Array]:
        """The least and greatest value of a column in each row group; null without statistics that can be used."""
        return self._metadata.statistics(self._leaf(column))

    @short_traceback
    def offset_index(self, row_group: int, column: str | LeafColumn) -> OffsetIndex | None:
        """The places of the data pages of a column chunk (parquet.thrift, OffsetIndex); None without one."""
        return self._metadata.offset_index(self._row_group(row_group), self._leaf(column))

    @short_traceback
    def column_index(self, row_group: int, column: str | LeafColumn) -> ColumnIndex | None:
        """Bounds and null counts of the pages of a column chunk (parquet.thrift, ColumnIndex); None without one."""
        return self._metadata.column_index(self._row_group(row_group), self._leaf(column))

    @short_traceback
    def decoder(self, row_group: int, column: str | LeafColumn) -> LeafDecoder:
        """A decoder for the pages of a column chunk that the caller fetches (docs/pages.md).

        Raises
        ------
        UnsupportedError
            The column lies in a struct or list: its pages make arrays only together with others.
        """
        file, leaf = self._metadata, self._leaf(column)
        if not leaf.flat:
            raise UnsupportedError(
                f"{self.name}: column {leaf.name!r} is nested; a decoder by hand takes top-level columns"
            )
        chunk = file.chunk(self._row_group(row_group), leaf)
        codec, decompress = decompressor(chunk.codec)
        return LeafDecoder(
            file.leaf_type(leaf, Options()).core,
            leaf.max_def,
            0,
            codec=codec,
            decompress=decompress,
            lsb_levels=file.writer.lsb_levels,
            always_compressed=file.writer.always_compressed,
        )

    @short_traceback
    def to_array(self, column: str | LeafColumn, decoded: tuple[Any, ...]) -> pa.Array:
        """The result of `LeafDecoder.finish` as an Arrow array over the same memory."""
        leaf_type = self._metadata.leaf_type(self._leaf(column), Options())
        made = to_arrow(leaf_type, *decoded)
        if isinstance(leaf_type.type, pa.BaseExtensionType):
            return pa.ExtensionArray.from_storage(leaf_type.type, made)
        return made

    @short_traceback
    def plot(
        self,
        columns: Sequence[str | LeafColumn] | None = None,
        path: str | os.PathLike[str] | None = None,
    ) -> Any:
        """A picture of the bounds of the pages of columns over the numbers of their rows, by matplotlib: it shows whether a column
        is clustered. Returns the figure, which is written to `path` (png, svg, pdf) if there is one.
        """
        return above("ParquetFile.plot")(self, columns, path)

    def close(self) -> None:
        """Close the file. What was parsed before remains; what has to be read then is a ValueError."""
        self._metadata.close()
        self._metadata.store = ClosedStore(self._metadata.store)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            f"{self.name}: an open file cannot be pickled: pickle its name, and open it where it is used"
        )

    def __repr__(self) -> str:
        return f"<ParquetFile {above('ParquetFile.__repr__')(self)}>"

    def _repr_html_(self) -> str:
        shown: str = above("ParquetFile._repr_html_")(self)
        return shown

    def _leaf(self, column: str | LeafColumn) -> Leaf:
        if isinstance(column, LeafColumn):
            return self._metadata.schema_tree.leaf(column.index)
        return self._metadata.schema_tree.find(column)

    def _row_group(self, row_group: int) -> int:
        if not 0 <= (row_group := whole("row_group", row_group)) < self.num_row_groups:
            raise IndexError(
                f"{self.name}: no row group {row_group}; there are {self.num_row_groups}"
            )
        return row_group

    def _shown(self, leaf: Leaf) -> LeafColumn:
        return LeafColumn(
            leaf.index,
            leaf.name,
            leaf.path,
            _name(PHYSICAL_NAMES, leaf.element.type),
            logical_name(leaf.element),
            self._metadata.leaf_type(leaf, Options()).type,
            leaf.max_def,
            leaf.max_rep,
        )


def _known(value: int) -> int | None:
    return None if value == ABSENT else value


def _name(names: Sequence[str], number: int) -> str:
    """The name of a number of the format; the number itself if it has none."""
    return names[number] if 0 <= number < len(names) else str(number)


def _encodings(bits: int) -> tuple[str, ...]:
    return tuple(_name(_ENCODINGS, e) for e in range(62) if bits >= 0 and bits >> e & 1)
