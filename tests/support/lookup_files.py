"""Files with lookup indexes, of one column and of several, and ways to damage these."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import pageseek as ps
from pageseek._core.bloom import xxh64
from pageseek.base.report import Report
from pageseek.datasets.file_cache import cache
from pageseek.format import lookup_form as form
from pageseek.format.embedded import KEY, PAYLOAD_HEAD_BYTES, directory
from pageseek.storage.resolve import resolve

N = 24
COLUMNS = ["number", "text", "real"]
KEYS = [("tenant", "number"), ("text", "real", "tenant"), ("number", 'weiß]"\\')]
NUMBER, KEY_OF_TWO = ("number",), KEYS[0]


def num_rows(i: int) -> int:
    """From one to five blocks; file 7 has no rows."""
    return 0 if i == 7 else 1_500 + i % 5 * 1_900


def table(i: int) -> pa.Table:
    """Numbers and texts without order, most of them in one file only; file 5 has nulls and NaN."""
    n = num_rows(i)
    number = np.random.default_rng(i).permutation(np.arange(n) * N + i)
    number[1 : n // 10] = number[n // 10 + 1 : 2 * (n // 10)]  # two rows each, but for the first
    made = pa.table({"number": number, "text": [f"t{x}" for x in number], "real": number / 4})
    tenant = pa.array(number % 7, pa.int16(), mask=number % 50 == 3)
    made = made.append_column("tenant", tenant)
    made = made.append_column(KEYS[2][1], pa.array([f"ü{x % 5}" for x in number]))
    if i == 5:
        made = made.set_column(0, "number", pa.array([None, *number[1:].tolist()], pa.int64()))
        made = made.set_column(2, "real", pa.array([float("nan"), *(number[1:] / 4).tolist()]))
    return made


def write(path: Path, i: int, lookup: list[Any] | None = None) -> None:
    pq.write_table(table(i), path, row_group_size=(20_000, 400)[i % 4 == 3])
    names = COLUMNS if lookup is None else lookup
    ps.index.attach(path, page_index=False, lookup=names, in_place=True)


def place(path: Path, names: tuple[str, ...]) -> tuple[int, int]:
    """Where the index of a column, or of a key, lies in a file."""
    file = cache.open(resolve(str(path))[0], Report())
    found = directory(file)
    assert found is not None
    (one,) = (one for one in found.pointers if one.leaf == names)
    return one.offset, one.length


Damage = Callable[[Path, tuple[str, ...]], None]


def damaged(at: int) -> Damage:
    """A byte of the index is another."""

    def spoil(path: Path, names: tuple[str, ...]) -> None:
        offset, length = place(path, names)
        data = bytearray(path.read_bytes())
        data[offset + at % length] ^= 1
        path.write_bytes(data)

    return spoil


def all_blocks(path: Path, names: tuple[str, ...]) -> None:
    """A byte in each two hundred of the blocks is another."""
    offset, length = place(path, names)
    data = bytearray(path.read_bytes())
    for at in range(400, length, 200):
        data[offset + at] ^= 1
    path.write_bytes(data)


def with_right_sums(path: Path, names: tuple[str, ...]) -> None:
    """A head that counts other rows, with its checksum."""
    offset, _ = place(path, names)
    data = bytearray(path.read_bytes())
    at = offset + PAYLOAD_HEAD_BYTES
    head = list(form.HEAD.unpack(data[at : at + form.HEAD.size]))
    head[1] += 1
    made = form.HEAD.pack(*head)[:-8]
    data[at : at + form.HEAD.size] = made + xxh64(made).to_bytes(8, "little")
    path.write_bytes(data)


def other_entries(sums: int, head: int = 0, rows: bool = False) -> Damage:
    """An index that has none of the values, or rows that the file has not, with right checksums: of no part (0), of blocks (1), and of
    the directory (2), and of its head (3). `head`: what becomes another in the fingerprint.
    """

    def spoil(path: Path, names: tuple[str, ...]) -> None:
        offset, length = place(path, names)
        data = bytearray(path.read_bytes())
        at = offset + PAYLOAD_HEAD_BYTES
        entries, num_rows, blocks, bits, *_ = form.HEAD.unpack(data[at : at + form.HEAD.size])
        listed = np.frombuffer(data[at + form.HEAD.size :], form.BLOCK, blocks).copy()
        begin = at + form.directory_bytes(num_rows)
        for i, end in enumerate(listed["end"].tolist()):
            start = begin + (int(listed["end"][i - 1]) if i else 0)
            n = int(listed["entries"][i])
            marks = start + (n + form.SLOTS + 7) // 8
            for j in range(marks + n, begin + end) if rows else range(marks, marks + n):
                data[j] = 255 if rows else data[j] ^ 85
            if sums >= 1:
                listed["checksum"][i] = xxh64(data[start : begin + end]) & 0xFFFFFFFF
        table = listed.tobytes()
        of_listed = (
            xxh64(table) if sums >= 2 else form.HEAD.unpack(data[at : at + form.HEAD.size])[4]
        )
        made = form.HEAD.pack(entries, num_rows, blocks, bits, of_listed, 0)[:-8]
        if sums >= 3:
            data[at : at + form.HEAD.size] = made + xxh64(made).to_bytes(8, "little")
        elif sums == 2:
            data[at : at + len(made)] = made
        data[at + form.HEAD.size : begin] = table
        data[offset + 9] ^= head
        assert len(data) == path.stat().st_size and begin + listed["end"][-1] == offset + length
        path.write_bytes(data)

    return spoil


def of_length(change: Callable[[int], int]) -> Damage:
    """The directory names another length of the index."""

    def spoil(path: Path, names: tuple[str, ...]) -> None:
        offset, length = place(path, names)
        old, new = (b'"offset":%d,"length":%d,' % (offset, n) for n in (length, change(length)))
        longer = len(old) - len(new)  # another number takes these digits
        pairs_replaced(path, lambda v: re.sub(rb'"base":\d+', lambda m: m[0] + b"0" * longer, v.replace(old, new)))  # fmt: skip

    return spoil


def pairs_replaced(path: Path, change: Callable[[bytes], bytes]) -> None:
    value = pq.read_metadata(path).metadata[KEY]
    new = change(value)
    assert new != value and len(new) == len(value)
    path.write_bytes(path.read_bytes().replace(value, new))


def in_pairs(old: bytes, new: bytes) -> Damage:
    """The directory has other text."""
    return lambda path, names: pairs_replaced(path, lambda v: v.replace(old, new))


def renamed(path: Path, names: tuple[str, ...]) -> None:
    """The directory names other columns."""
    listed = json.dumps(names, separators=(",", ":")).encode()
    pairs_replaced(path, lambda v: v.replace(listed, listed.replace(b"number", b"numbex")))


ODD: dict[str, Damage] = {
    "its head": damaged(0),
    "its fingerprint": damaged(9),
    "its number of rows": damaged(PAYLOAD_HEAD_BYTES + 8),
    "a directory of blocks": damaged(PAYLOAD_HEAD_BYTES + form.HEAD.size + 3),
    "its blocks": all_blocks,
    "of other rows": with_right_sums,
    "of other values": other_entries(0),
    "of other values by the blocks": other_entries(1),
    "of other values by the directory": other_entries(2),
    "of other column chunks": other_entries(3, head=1),
    "of rows behind the last": other_entries(3, rows=True),
    "shorter": of_length(lambda n: n - 1),
    "shorter than its directory": of_length(lambda n: 40),
    "longer": of_length(lambda n: n + 1),
    "written otherwise": lambda path, names: pairs_replaced(path, lambda v: v.replace(b',"base":', b', "base":', 1).replace(b'["text"', b'["tex"') if b'["text"' in v else v),
    "of another version": in_pairs(b'lookup","version":1', b'lookup","version":2'),
    "of another column": renamed,
    "before the file": lambda path, names: pairs_replaced(path, lambda v: re.sub(rb'"offset":\d+', lambda m: b'"offset":' + b"3".rjust(len(m[0]) - 9), v)),
    "at another place": lambda path, names: pairs_replaced(path, lambda v: re.sub(rb'"offset":(\d+)', lambda m: b'"offset":%d' % (int(m[1]) - 1), v)),
    "without": lambda path, names: pq.write_table(table(4), path),
    "a short file": lambda path, names: path.write_bytes(path.read_bytes()[:-9]),
}  # fmt: skip
