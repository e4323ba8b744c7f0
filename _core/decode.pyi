from collections.abc import Callable
from typing import Final, Self, TypeAlias, final

from pageseek._core.rows import RowRanges
from typing_extensions import Buffer

from pageseek.errors import CoreError as CoreError

_Form: TypeAlias = tuple[int, int, int, int, int, int, int]

TAKE_PAGE: Final[int]
TAKE_DONE: Final[int]
TAKE_FULL: Final[int]
TAKE_DICTIONARY: Final[int]
DATA_PAGE: Final[int]
INDEX_PAGE: Final[int]
DICTIONARY_PAGE: Final[int]
DATA_PAGE_V2: Final[int]
KIND_WIDTH: Final[tuple[int, ...]]

class HeaderError(CoreError): ...
class PageMismatch(CoreError): ...

@final
class Block(Buffer):
    def __new__(cls, size: int | None = None) -> Self: ...
    def __len__(self) -> int: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...

def crc32(data: Buffer, crc: int = 0) -> int: ...
def decompress(codec: str, data: Buffer, size: int, exact: bool = True) -> Block: ...
def convert_bounds(
    form: _Form, data: Buffer, places: Buffer, n: int
) -> tuple[Block, Block | None, Block, Block | None, Block]: ...

@final
class LeafDecoder:
    def __new__(
        cls,
        form: _Form,
        max_def: int,
        max_rep: int,
        max_output: int = ...,
        lsb_levels: bool = False,
        codec: str = "uncompressed",
        decompress: Callable[[memoryview, int], Buffer] | None = None,
        rungs: tuple[tuple[int, int, int], ...] = (),
        levels_only: bool = False,
        max_page: int = ...,
        likely_rows: int = 0,
        always_compressed: bool = False,
        codes_only: bool = False,
        prefix: Callable[[memoryview, int, Block], None] | None = None,
        step: int = 1,
    ) -> Self: ...
    @property
    def has_dictionary(self) -> bool: ...
    @property
    def row(self) -> int: ...
    def dictionary(self, data: Buffer, n: int) -> None: ...
    def begin(
        self,
        selection: RowRanges | Buffer | tuple[Buffer, int, int],
        max_rows: int = ...,
        hint: int = 0,
    ) -> None: ...
    def page(
        self,
        body: Buffer,
        levels: Buffer | None,
        version: int,
        encoding: int,
        def_encoding: int,
        rep_encoding: int,
        num_values: int,
        num_nulls: int,
        num_rows: int,
        rep_length: int,
        def_length: int,
        first_row: int,
        partial: bool = False,
        whole: bool = True,
    ) -> int: ...
    def head(self, data: Buffer, at: int = 0, index_rows: int = -1) -> int: ...
    @property
    def num_values(self) -> int: ...
    @property
    def num_rows(self) -> int: ...
    @property
    def begins_row(self) -> bool: ...
    @property
    def page_rows(self) -> int: ...
    @property
    def rows(self) -> int: ...
    @property
    def stop(self) -> int: ...
    def take(self, first_row: int, whole: bool = True) -> int: ...
    def take_dictionary(self) -> None: ...
    def read_page(
        self,
        data: Buffer,
        first_row: int,
        rows: int,
        ranges: Buffer | tuple[Buffer, int, int],
        hint: int = 0,
    ) -> tuple[int, int, Block | None, Block | None, Block] | int: ...
    def release(self) -> None: ...
    def resume(self) -> int: ...
    def finish(self) -> tuple[int, int, Block | None, Block | None, Block]: ...
    def end(self) -> int: ...
    def rungs(self) -> list[tuple[int, int, Block | None, Block | None]]: ...
