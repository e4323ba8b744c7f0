from typing import Final, Self

from typing_extensions import Buffer, disjoint_base

from pageseek._core.convert import KIND_WIDTH as KIND_WIDTH
from pageseek.base.errors import CoreError as CoreError

BLOCK: Final[int]
PLACES: Final[int]

_Given = tuple[int, Buffer | None, Buffer | None, Buffer]

def footer_edited(
    data: Buffer,
    places: Buffer,
    dropped: list[bytes],
    added: list[tuple[bytes, bytes]],
    orders: int = 0,
    *,
    max_size: int = ...,
) -> bytes: ...
def offset_index(offset: Buffer, size: Buffer, first_row: Buffer) -> bytes: ...
def column_index(
    null_pages: Buffer,
    least: list[bytes],
    most: list[bytes],
    boundary_order: int,
    null_counts: Buffer | None = None,
    nan_counts: Buffer | None = None,
) -> bytes: ...
def extremes(
    kind: int, width: int, values: _Given, decimal: bool = False
) -> tuple[int, int, int, int]: ...
def hashes(kind: int, width: int, values: _Given) -> bytes: ...

@disjoint_base
class BloomFilter:
    def __new__(cls, blocks: int) -> Self: ...
    @property
    def blocks(self) -> int: ...
    @property
    def inserted(self) -> int: ...
    def insert(self, kind: int, width: int, values: _Given) -> None: ...
    def rate(self) -> float: ...
    def shrink(self, most: float) -> None: ...
    def to_bytes(self) -> bytes: ...
