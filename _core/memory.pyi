from typing import Self, final

from typing_extensions import Buffer

from pageseek.errors import CoreError as CoreError

@final
class Block(Buffer):
    def __new__(cls, size: int | None = None) -> Self: ...
    def __len__(self) -> int: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...
