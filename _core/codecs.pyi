from pageseek._core.memory import Block
from typing_extensions import Buffer

from pageseek.errors import CoreError as CoreError

def crc32(data: Buffer, crc: int = 0) -> int: ...
def decompress(codec: str, data: Buffer, size: int, exact: bool = True) -> Block: ...
