from typing import Final

from typing_extensions import Buffer, disjoint_base

from pageseek._core.status import HeaderError as HeaderError
from pageseek._core.status import PageMismatch as PageMismatch
from pageseek.base.errors import CoreError as CoreError

DATA_PAGE: Final[int]
INDEX_PAGE: Final[int]
DICTIONARY_PAGE: Final[int]
DATA_PAGE_V2: Final[int]

@disjoint_base
class PageReader:
    def head(self, data: Buffer, at: int = 0, index_rows: int = -1) -> int: ...
    @property
    def num_values(self) -> int: ...
    @property
    def num_rows(self) -> int: ...
    @property
    def begins_row(self) -> bool: ...
    @property
    def stop(self) -> int: ...
