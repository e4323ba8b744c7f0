from typing import Any, Final, TypeAlias

from pageseek._core.decode import LeafDecoder
from pageseek._core.memory import Block

_Made: TypeAlias = tuple[int, int, Block | None, Block | None, Block]

PARALLEL: Final[bool]

def read_pages(
    wanted: list[
        tuple[LeafDecoder, list[tuple[memoryview, int, int]], Any, int, memoryview | None, bool]
    ],
    threads: int = 1,
) -> list[_Made | int | None]: ...
