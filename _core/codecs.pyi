from collections.abc import Callable
from typing import Final, Self, final

from typing_extensions import Buffer

from pageseek._core.memory import Block
from pageseek.base.errors import CoreError as CoreError

def use_zstd(functions: tuple[int, ...] | None) -> None: ...
def use_zlib(functions: tuple[int, ...] | None) -> None: ...
def use_brotli(functions: tuple[int, ...] | None) -> None: ...
def crc32(data: Buffer, crc: int = 0) -> int: ...
def decompress(codec: str, data: Buffer, size: int, exact: bool = True) -> Block: ...

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
