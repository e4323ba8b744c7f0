from pageseek._core.decode import KIND_WIDTH as KIND_WIDTH
from pageseek._core.decode import Block as Block
from pageseek._core.search import CoreError as CoreError
from typing_extensions import Buffer

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
