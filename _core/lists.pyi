from typing import Self, final

from typing_extensions import Buffer

from pageseek.errors import CoreError as CoreError

@final
class Lists:
    counts: memoryview
    def __new__(cls, data: Buffer, places: Buffer) -> Self: ...
    def check(self, i: int) -> None: ...
    def values(self) -> bytes: ...
    def judge(
        self, passes: Buffer, null_passes: bool, floats: bool, nan_passes: bool
    ) -> tuple[bytes, bytes]: ...
