from collections.abc import Callable
from typing import Any, Final, Self, TypeAlias, final

from pageseek._core.memory import Block
from pageseek._core.pages import PageReader as PageReader
from pageseek._core.rows import RowRanges
from typing_extensions import Buffer

from pageseek.base.errors import CoreError as CoreError

_Form: TypeAlias = tuple[int, int, int, int, int, int, int]
_Made: TypeAlias = tuple[int, int, Block | None, Block | None, Block]

PARALLEL: Final[bool]
TAKE_PAGE: Final[int]
TAKE_DONE: Final[int]
TAKE_FULL: Final[int]
TAKE_DICTIONARY: Final[int]
utf8_scan: Final[str]

@final
class CodecSettings:
    own: Final[bool]
    def __new__(
        cls,
        codec: str,
        decompress: Callable[[memoryview, int], Buffer] | None,
        prefix: Callable[[memoryview, int, Block], None] | None,
        step: int,
        max_output: int,
        max_page: int,
        lsb_levels: bool,
        always_compressed: bool,
    ) -> Self: ...

@final
class LeafDecoder(PageReader):
    def __new__(
        cls,
        form: _Form,
        max_def: int,
        max_rep: int,
        max_output: int = ...,
        lsb_levels: bool = False,
        codec: str = "uncompressed",
        decompress: Callable[[memoryview, int], Buffer] | None = None,
        nesting_levels: tuple[tuple[int, int, int], ...] = (),
        levels_only: bool = False,
        max_page: int = ...,
        max_values: int = ...,
        likely_rows: int = 0,
        always_compressed: bool = False,
        codes_only: bool = False,
        prefix: Callable[[memoryview, int, Block], None] | None = None,
        step: int = 1,
        codec_settings: CodecSettings | None = None,
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
    @property
    def page_rows(self) -> int: ...
    @property
    def rows(self) -> int: ...
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

def read_pages(
    wanted: list[tuple[LeafDecoder, tuple[Any, ...], bool]], threads: int = 1
) -> list[_Made | int | None]: ...
