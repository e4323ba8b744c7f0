from typing import Final

from typing_extensions import Buffer

from pageseek._core.memory import Block
from pageseek.base.errors import CoreError as CoreError

KIND_WIDTH: Final[tuple[int, ...]]

def convert_bounds(
    form: tuple[int, int, int, int, int, int, int], data: Buffer, places: Buffer, n: int
) -> tuple[Block, Block | None, Block, Block | None, Block]: ...
