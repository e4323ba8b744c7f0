from typing import Final, TypeAlias, final

from typing_extensions import Buffer

from pageseek._core.leaf import LeafBuffers
from pageseek._core.memory import Block
from pageseek._core.rows import RowRanges
from pageseek._core.status import PageMismatch as PageMismatch
from pageseek.base.errors import CoreError as CoreError

_Made: TypeAlias = tuple[int, int, Block | None, Block | None, Block]

TAKE_PAGE: Final[int]
TAKE_DONE: Final[int]
TAKE_FULL: Final[int]
TAKE_DICTIONARY: Final[int]

@final
class LeafDecoder(LeafBuffers):
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
    def take(self, first_row: int, whole: bool = True) -> int: ...
    def entries(self) -> tuple[int, int, Block | None, Block | None, Block]: ...
    def take_dictionary(self) -> None: ...
    def read_page(
        self,
        data: Buffer,
        first_row: int,
        rows: int,
        ranges: Buffer | tuple[Buffer, int, int],
        hint: int = 0,
        dictionary: Buffer | None = None,
    ) -> _Made | int: ...
    def release(self) -> None: ...
    def resume(self) -> int: ...
    def finish(self) -> _Made: ...
    def end(self) -> int: ...
    def nesting_levels(self) -> list[tuple[int, int, Block | None, Block | None]]: ...
