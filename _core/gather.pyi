from typing_extensions import Buffer

from pageseek._core.convert import KIND_WIDTH as KIND_WIDTH
from pageseek._core.memory import Block as Block
from pageseek.base.errors import CoreError as CoreError

def gather(
    kind: int,
    width: int,
    n: int,
    validity: Buffer | None,
    values: Buffer,
    offsets: Buffer | None,
    chosen: Buffer,
    count: int,
    *,
    start: int = 0,
    places: bool = False,
) -> tuple[int, int, Block | None, Block | None, Block]: ...
