from typing import Self, final

from typing_extensions import Buffer

from pageseek.base.errors import CoreError as CoreError

@final
class Held:
    def __new__(cls, data: Buffer | None) -> Self: ...
