from typing import Final, TypeAlias, final

from typing_extensions import Buffer

from pageseek._core.codecs import CodecSettings as CodecSettings
from pageseek._core.leaf import CoreCall
from pageseek.base.errors import CoreError as CoreError

AVAILABLE: Final[bool]
MAX_TESTS: Final[int]

_Leaf: TypeAlias = tuple[
    tuple[int, int, int, int, int, int, int],
    int,
    int,
    CodecSettings,
    bytes,
    bytes,
    bytes,
    int,
    int,
    bool,
]
_Test: TypeAlias = tuple[int, int, bool, int, tuple[int, bytes, bytes | None]]

@final
class Batch:
    @property
    def address(self) -> int: ...
    @property
    def num_rows(self) -> int: ...

@final
class PointReader:
    def __new__(cls, leaves: list[_Leaf], output: list[int]) -> PointReader: ...
    def read(
        self,
        fd: int,
        ranges: Buffer,
        tests: list[_Test],
        limit: int,
        most: int,
        threads: int = 1,
    ) -> Batch | None: ...

@final
class PointTask(CoreCall):
    def __new__(
        cls,
        reader: PointReader,
        fd: int,
        keeps_open: object,
        ranges: Buffer,
        most: int,
        cost: int,
    ) -> PointTask: ...
    @property
    def counts(self) -> list[tuple[int, int, int]]: ...
    @property
    def requests(self) -> int: ...
