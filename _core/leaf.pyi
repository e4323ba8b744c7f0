from collections.abc import Callable
from typing import Final, Self, TypeAlias

from typing_extensions import Buffer, disjoint_base

from pageseek._core.codecs import CodecSettings
from pageseek._core.memory import Block
from pageseek._core.pages import PageReader
from pageseek._core.search import RowTests
from pageseek.base.errors import CoreError as CoreError

_Form: TypeAlias = tuple[int, int, int, int, int, int, int]

utf8_scan: Final[str]

@disjoint_base
class LeafBuffers(PageReader):
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
        passes: bool = False,
        entries_only: bool = False,
        tests: RowTests | None = None,
    ) -> Self: ...
    dictionary_pages: int
    pages_read: int
    pages_seen: int
    @property
    def tests(self) -> RowTests | None: ...
    @property
    def passing(self) -> tuple[int, int, Buffer] | None: ...
    @property
    def has_dictionary(self) -> bool: ...
    @property
    def row(self) -> int: ...
    @property
    def page_rows(self) -> int: ...
    @property
    def rows(self) -> int: ...

@disjoint_base
class CoreCall: ...
