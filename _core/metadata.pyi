from collections.abc import Sequence

from typing_extensions import Buffer

from pageseek.base.errors import CoreError as CoreError

ABSENT: int
SUM_FIELD: bytes
SUM_NONE: int
SUM_FITS: int
SUM_DIFFERS: int
TRUNCATED: int
CORRUPT: int
LIMIT: int
UNSUPPORTED: int
NOMEM: int
INVALID: int

SCHEMA_FIELDS: tuple[str, ...]
ROW_GROUP_FIELDS: tuple[str, ...]
CHUNK_FIELDS: tuple[str, ...]
PAGE_HEADER_FIELDS: tuple[str, ...]

def footer(
    data: Buffer, *, max_arena: int = ...
) -> tuple[
    int,  # version
    int,  # num_rows
    tuple[int, int] | None,  # created_by: offset, length
    int | None,  # encryption
    bytes,  # schema
    int,  # n_leaves
    bytes,  # row_groups
    bytes,  # chunk_offsets
    bytes,  # key_values
    bytes,  # column_orders
]: ...
def footers(
    data: Buffer,
    at: Buffer,
    like: tuple[Buffer, Buffer, Buffer, Buffer | None],
    leaves: Buffer,
    most: int,
    keys: Sequence[bytes] = ...,
    *,
    max_arena: int = ...,
) -> tuple[
    memoryview,  # groups
    memoryview,  # stored
    memoryview,  # rows
    memoryview,  # chunks
]: ...
def chunks(data: Buffer, at: Buffer) -> bytes: ...
def chunk_bounds(
    chunks: Buffer, ordered: bool, deprecated: bool
) -> (
    tuple[
        bytes,  # places
        bytes,  # null_counts
        bytes,  # nan_counts
    ]
    | None
): ...
def column_index(
    data: Buffer, *, max_arena: int = ...
) -> tuple[
    int,  # n_pages
    int,  # boundary_order
    bytes,  # null_pages
    bytes,  # min_offset
    bytes,  # min_length
    bytes,  # max_offset
    bytes,  # max_length
    bytes | None,  # null_counts
    bytes | None,  # nan_counts
]: ...
def page_bounds(
    data: Buffer,
    first_row: Buffer,
    required: bool,
    trusted: bool,
    repeated: bool = ...,
    *,
    max_arena: int = ...,
) -> tuple[
    int,  # boundary_order
    bytes,  # null_pages
    bytes,  # places
    bytes | None,  # null_counts
    bytes | None,  # nan_counts
    bytes,  # counts
]: ...
def offset_index(
    data: Buffer,
    num_rows: int,
    chunk_start: int,
    chunk_end: int,
    *,
    max_arena: int = ...,
) -> tuple[
    int,  # n_pages
    bytes,  # offset
    bytes,  # compressed_size
    bytes,  # first_row
    bytes | None,  # unencoded
]: ...
def offset_indexes(
    found: Sequence[tuple[Buffer, int, int]], num_rows: int, *, max_arena: int = ...
) -> list[
    tuple[
        int,  # n_pages
        bytes,  # offset
        bytes,  # compressed_size
        bytes,  # first_row
    ]
    | CoreError
]: ...
def sums(found: Sequence[tuple[Buffer, int, int]]) -> bytes: ...
def page_header(data: Buffer, at: int = 0) -> bytes: ...
