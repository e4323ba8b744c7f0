from collections.abc import Sequence
from typing import Any, Final, TypeAlias

from typing_extensions import disjoint_base

from pageseek._core.decode import LeafDecoder
from pageseek._core.memory import Block
from pageseek._core.points import Batch, PointTask

_Wanted: TypeAlias = Sequence[
    tuple[
        LeafDecoder,
        list[tuple[memoryview, int, int]],
        Any,
        int,
        memoryview | list[bytes] | None,
        bool,
    ]
    | PointTask
]
_Made: TypeAlias = tuple[int, int, Block | None, Block | None, Block]

PARALLEL: Final[bool]

def read_pages(wanted: _Wanted, threads: int = 1) -> list[_Made | Batch | int | None]: ...

@disjoint_base
class PageWork:
    def __init__(self, wanted: _Wanted) -> None: ...
    def begin(self, helpers: int) -> None: ...
    def results(self) -> list[_Made | Batch | int | None]: ...
