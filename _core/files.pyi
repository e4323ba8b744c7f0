from collections.abc import Iterable
from typing import Final, final

from typing_extensions import Buffer

AVAILABLE: Final[bool]
FIELDS: Final[tuple[str, ...]]

@final
class Names:
    n: Final[int]
    def __new__(cls, paths: Iterable[str]) -> Names: ...

def seen(names: Names, start: int, stop: int) -> bytes: ...
def read_ends(
    names: Names, start: int, stop: int, places: Buffer, into: Buffer, behind: Buffer | None = None
) -> bytes: ...
