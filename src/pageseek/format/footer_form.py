"""The body of a `footer` index: where in a large footer the column chunks are described, leaf by leaf (docs/format.md).

With it a file of thousands of columns is opened by the schema and the chunks that are touched. Nothing of it is believed that the
footer does not repeat: the schema by its hash, each chunk by its own, and by the path that it names.
"""

from __future__ import annotations

import re
import struct
from typing import TypeAlias

import numpy as np

from pageseek._core import metadata as core
from pageseek._core.bloom import xxh64
from pageseek.base.errors import CoreError, InvalidIndexError
from pageseek.base.late_modules import npt
from pageseek.base.records import NamedTuple
from pageseek.format.schema import Leaf

KIND, VERSION = "footer", 1
# leaves, row groups, bytes of the footer, where the list of row groups begins in it, where it ends, magic, hash of what lies before it
_END = struct.Struct("<5I4sQ")
_MAGIC = b"PSF1"
GROUP_BYTES = 8 * len(core.ROW_GROUP_FIELDS)
SUM_BYTES = 8
ENTRY_BYTES = 8
_ABSENT = core.ABSENT
NO_STRUCTS = b"\x0c"  # an empty list of structs, in Thrift's compact protocol
_ENTRY = rb'\{"kind":"footer","version":1,"offset":(\d{1,18}),"length":(\d{1,18})\}'
Entries: TypeAlias = "npt.NDArray[np.uint32]"


class FooterEnd(NamedTuple):
    """What the end of the body says, which lies just before the footer.

    Attributes
    ----------
    footer_bytes, before, after : int
        Bytes of the footer; where in it the list of row groups begins; and where what follows that list does.
    schema_hash : int
        XXH64 of what lies before the list.
    groups : bytes
        The records of the row groups, as the core reads them (ROW_GROUP_FIELDS).
    """

    num_leaves: int
    num_groups: int
    footer_bytes: int
    before: int
    after: int
    schema_hash: int
    groups: bytes


def end_bytes(num_groups: int) -> int:
    """The bytes of the end."""
    return num_groups * GROUP_BYTES + _END.size + SUM_BYTES


def body_bytes(num_leaves: int, num_groups: int) -> int:
    """The bytes of a body."""
    return (num_leaves + 1) * num_groups * ENTRY_BYTES + end_bytes(num_groups)


def key_values(footer: memoryview, pairs: bytes) -> dict[bytes, bytes | None]:
    """The key-value pairs of a footer; of equal keys the first. `pairs`: their places, as the core gives them."""
    found: dict[bytes, bytes | None] = {}
    for key, key_length, value, length in struct.iter_unpack("<4q", pairs):
        text = None if value == _ABSENT else bytes(footer[value : value + length])
        found.setdefault(bytes(footer[key : key + key_length]), text)
    return found


def without_groups(footer: memoryview, before: int, after: int) -> bytes:
    """The footer with an empty list of row groups."""
    return b"".join((footer[:before], NO_STRUCTS, footer[after:]))


def body(footer: bytes) -> bytes:
    """The body for a footer. InvalidIndexError: its fields lie in another order than writers put them."""
    view = memoryview(footer)
    try:
        _, num_rows, created_by, encryption, elements, leaves, groups, at, pairs, orders = (
            core.footer(footer)
        )
    except CoreError as error:
        raise InvalidIndexError(error.message) from error
    n = len(groups) // GROUP_BYTES
    if not n or not leaves:
        raise InvalidIndexError("the file has no column chunks")
    records = np.frombuffer(groups, np.int64).reshape(n, -1)
    before = int(records[0, 0]) - _list_head(n)
    after = int(records[-1, :2].sum())
    try:
        rest = core.footer(without_groups(view, before, after))
    except CoreError as error:
        raise InvalidIndexError(
            "the footer has its fields in another order than writers put them"
        ) from error
    moved = after - before - len(NO_STRUCTS)
    if (
        (num_rows, elements, leaves, orders) != (rest[1], rest[4], rest[5], rest[9])
        or (encryption, shifted(rest[2], before, moved)) != (rest[3], created_by)
        or len(pairs) != len(rest[8])
    ):
        raise InvalidIndexError("the footer has its fields in another order than writers put them")
    told = _END.pack(leaves, n, len(footer), before, after, _MAGIC, xxh64(view[:before]))
    end = bytes(groups) + told
    starts = np.frombuffer(at, np.uint64).reshape(n, leaves)
    entries = np.zeros((leaves + 1, n, 2), np.uint32)
    entries[:-1, :, 0] = starts.T
    for group in range(n):
        stops = np.append(starts[group, 1:], np.uint64(_end(footer, starts[group])))
        entries[-1, group, 0] = stops[-1]
        for leaf, (start, stop) in enumerate(
            zip(starts[group].tolist(), stops.tolist(), strict=True)
        ):
            entries[leaf, group, 1] = xxh64(view[start:stop]) & 0xFFFFFFFF
    return b"".join((entries.tobytes(), end, xxh64(end).to_bytes(SUM_BYTES, "little")))


def shifted(place: tuple[int, int] | None, before: int, moved: int) -> tuple[int, int] | None:
    """A place in a footer `without_groups` as one in the whole footer."""
    if place is None or place[0] < before:
        return place
    return place[0] + moved, place[1]


def _list_head(n: int) -> int:
    """The bytes of the head of a list of n structs."""
    return 1 if n < 15 else 1 + (n.bit_length() + 6) // 7


def _end(footer: bytes, starts: npt.NDArray[np.uint64]) -> int:
    """Where the last chunk of a row group ends."""
    record = np.frombuffer(core.chunks(footer, starts[-1:].tobytes()), np.int64)
    return int(record[core.CHUNK_FIELDS.index("end")])


def find_entry(tail: memoryview) -> tuple[int, int] | None:
    """(offset, length) of the body in the file, by the last bytes of the file; None without one."""
    text = bytes(tail)
    at = text.rfind(b'{"kind":"footer"')
    found = None if at < 0 else re.match(_ENTRY, text[at:])
    return None if found is None else (int(found[1]), int(found[2]))


def groups_of(data: memoryview) -> int:
    """How many row groups a body has, by its last bytes. InvalidIndexError: it is none."""
    if data.nbytes < _END.size + SUM_BYTES:
        raise InvalidIndexError("it is cut short")
    found = _END.unpack(data[-_END.size - SUM_BYTES : -SUM_BYTES])
    if found[5] != _MAGIC:
        raise InvalidIndexError("it is none")
    return int(found[1])


def parse_end(data: memoryview, length: int, footer_bytes: int) -> FooterEnd:
    """The end of a body of `length` bytes, by its last bytes, in a file with a footer of some bytes. InvalidIndexError: it is none
    of it.
    """
    n = groups_of(data)
    size = end_bytes(n)
    if data.nbytes < size:
        raise InvalidIndexError("it is cut short")
    data = data[-size:]
    if xxh64(data[:-SUM_BYTES]) != int.from_bytes(data[-SUM_BYTES:], "little"):
        raise InvalidIndexError("the checksum of its end differs")
    groups = bytes(data[: n * GROUP_BYTES])
    leaves, n, told, before, after, _, schema_hash = _END.unpack(data[n * GROUP_BYTES : -SUM_BYTES])
    if length != body_bytes(leaves, n) or not n or not leaves:
        raise InvalidIndexError(f"{leaves} leaves and {n} row groups in {length} bytes")
    if told != footer_bytes or not 0 < before < after < told:
        raise InvalidIndexError(
            f"it is of a footer of {told:,} bytes, and that of the file has {footer_bytes:,}"
        )
    return FooterEnd(leaves, n, told, before, after, schema_hash, groups)


def path_text(leaf: Leaf) -> bytes:
    """How ColumnMetaData.path_in_schema names a leaf (parquet.thrift), in Thrift's compact protocol."""
    names = [name.encode() for name in leaf.path]
    head = bytes([len(names) << 4 | 8]) if len(names) < 15 else b"\xf8" + _varint(len(names))
    return b"\x19" + head + b"".join([_varint(len(name)) + name for name in names])


def _varint(n: int) -> bytes:
    made = bytearray()
    while n >= 0x80:
        made.append(n & 0x7F | 0x80)
        n >>= 7
    return bytes(made) + bytes([n])
