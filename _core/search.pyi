from collections.abc import Sequence
from typing import Final, Self, TypeAlias, final

from typing_extensions import Buffer

from pageseek.base.errors import CoreError as CoreError

_Literals: TypeAlias = tuple[int, Buffer, Buffer | None]

KIND_BOOL: Final[int]
KIND_I8: Final[int]
KIND_I16: Final[int]
KIND_I32: Final[int]
KIND_I64: Final[int]
KIND_U8: Final[int]
KIND_U16: Final[int]
KIND_U32: Final[int]
KIND_U64: Final[int]
KIND_F16: Final[int]
KIND_F32: Final[int]
KIND_F64: Final[int]
KIND_D128: Final[int]
KIND_D256: Final[int]
KIND_BYTES: Final[int]
KIND_LARGE_BYTES: Final[int]
KIND_FIXED: Final[int]
OP_EQ: Final[int]
OP_NE: Final[int]
OP_LT: Final[int]
OP_LE: Final[int]
OP_GT: Final[int]
OP_GE: Final[int]
OP_IN: Final[int]
OP_PREFIX: Final[int]
OP_IS_NULL: Final[int]
OP_IS_NAN: Final[int]
OP_ALWAYS: Final[int]
OP_NEVER: Final[int]
NAN_IEEE: Final[int]
NAN_SPARK: Final[int]
MAY_TRUE: Final[int]
MAY_FALSE: Final[int]
MAY_NULL: Final[int]

@final
class Lookup:
    def __new__(cls, kind: int, width: int, literals: _Literals, table: bool) -> Self: ...

@final
class RowTests:
    def __new__(
        cls,
        kind: int,
        width: int,
        tests: Sequence[tuple[int, bool, _Literals | Lookup | None, int]],
        keeps: bool,
    ) -> Self: ...
    @property
    def keeps(self) -> bool: ...

def compare(
    kind: int,
    width: int,
    n: int,
    validity: Buffer | None,
    values: Buffer,
    offsets: Buffer | None,
    op: int,
    negate: bool,
    literals: _Literals | Lookup | None = None,
    nan: int = ...,
) -> tuple[bytes, int]: ...
def codes_mask(
    codes: Buffer, validity: Buffer | None, n: int, passes: Buffer
) -> tuple[bytes, int]: ...
def sort_literals(
    kind: int, width: int, n: int, values: Buffer, offsets: Buffer | None = None
) -> bytes: ...
def lower_bound(
    kind: int, width: int, n: int, values: Buffer, offsets: Buffer | None, literal: _Literals
) -> int: ...
def upper_bound(
    kind: int, width: int, n: int, values: Buffer, offsets: Buffer | None, literal: _Literals
) -> int: ...
def locate(
    start: int, stop: int, first_row: Buffer, offset: Buffer, compressed_size: Buffer
) -> list[tuple[int, int, int, int, int]]: ...

@final
class Zones:
    def __new__(
        cls,
        kind: int,
        width: int,
        n: int,
        lower_values: Buffer,
        lower_offsets: Buffer | None,
        upper_values: Buffer,
        upper_offsets: Buffer | None,
        known: Buffer,
        all_null: Buffer | None = None,
        null_counts: Buffer | None = None,
        nan_counts: Buffer | None = None,
        counts: Buffer | None = None,
        claimed_order: int = 0,
    ) -> Self: ...
    @property
    def known(self) -> bytes: ...
    @property
    def order(self) -> int: ...
    def __len__(self) -> int: ...
    def out_of_bounds(self, whole: Zones, i: int) -> int | None: ...
    def probe(
        self, op: int, literals: _Literals | Lookup | None = None, nan: int = ...
    ) -> bytes: ...
