from collections.abc import Sequence
from typing import Final

from typing_extensions import Buffer

from pageseek.base.errors import CoreError as CoreError

SLOTS: Final[int]

def find(
    blocks: Sequence[tuple[Buffer, int, int, int]], hashes: Buffer, row_bits: int, num_rows: int
) -> bytes: ...
def find_in_each(data: Buffer, places: Buffer, hashes: Buffer) -> tuple[bytes, bytes]: ...
