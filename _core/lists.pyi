from collections.abc import Sequence
from typing import Self, final

from typing_extensions import Buffer

from pageseek.base.errors import CoreError as CoreError

ENTRY_FIELDS: tuple[str, ...]
NONE: int
SOUND: int
FAR: int
DOUBTFUL: int
UNREAD: int

def cut(data: Buffer, places: Buffer) -> bytes: ...
def find(
    values: Buffer,
    tails: Buffer,
    figures: Buffer,
    figure_size: int,
    parts: Sequence[Buffer],
    longest: int,
    files: Buffer,
) -> bytes: ...

@final
class Lists:
    counts: memoryview
    def __new__(cls, data: Buffer, places: Buffer) -> Self: ...
    def check(self, i: int) -> None: ...
    def values(self) -> bytes: ...
    def exact(self) -> bytes: ...
    def evaluate(
        self, passes: Buffer, null_passes: bool, floats: bool, nan_passes: bool
    ) -> tuple[bytes, bytes]: ...
