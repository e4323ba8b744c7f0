"""Indexes of pageseek that lie inside a Parquet file: where the footer says that they are, and whether they are its own.

The form is that of docs/format.md. Whatever does not fit it is no index: nothing here trusts a file.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from pageseek._core import lists
from pageseek._core.bloom import xxh64
from pageseek.base.records import dataclass
from pageseek.format.chunks import Chunk
from pageseek.format.file_footer import FooterFile
from pageseek.format.page_index import int64s
from pageseek.format.schema import Leaf
from pageseek.format.types import PHYSICAL_NAMES, logical_name

KEY = b"pageseek.indexes"
DATAFUSION_KEY = b"distinct_index_offset"  # of a list in the form of DataFusion's example
KEYS = KEY, DATAFUSION_KEY  # that tell of lists of values, one way or the other
VERSION = 1  # of what is written under the key
MAGIC = b"PSX1"
HEAD = 16  # bytes: magic, four of zero, and the fingerprint of the chunks
LONGEST = 1 << 20  # bytes of the value that are looked at
PAGE_INDEX, BLOOM = "page_index", "bloom"  # kinds that Parquet itself knows
FREE = "free"  # kind of bytes whose index was taken out or replaced
_CHUNK = [
    Chunk._fields.index(name)
    for name in (
        "data_page_offset", "dictionary_page_offset", "total_compressed_size", "num_values"
    )
]  # fmt: skip
FIGURES = 8 * (1 + len(_CHUNK))


class InvalidIndexError(Exception):
    """What was read contradicts the format, or itself: it proves nothing."""


@dataclass(frozen=True, slots=True)
class Pointer:
    """Where the bytes of an index lie. Of one that Parquet itself knows, whose places the column chunks tell, that is all
    but for its `sums` (checksums.py): True where page indexes end with one, of Bloom filters the bytes that each is of; 0
    where there are none.

    `leaf`: the path of its column. `checksum`: of the bytes. `chunks`: the fingerprint of the column chunks that it was
    built from.
    """

    kind: str
    version: int
    offset: int
    length: int
    leaf: tuple[str, ...] | None = None
    physical: str = ""
    logical: str = ""
    checksum: int = 0
    chunks: int = 0
    sums: int = 0

    def holds(self, offset: int) -> bool:
        """Whether a byte of the file is one of these."""
        return self.offset <= offset < self.offset + self.length

    def freed(self) -> Pointer:
        """The same bytes, without an index."""
        return Pointer(FREE, 1, self.offset, self.length)

    def to_json(self) -> dict[str, Any]:
        made: dict[str, Any] = {
            "kind": self.kind,
            "version": self.version,
            "offset": self.offset,
            "length": self.length,
        }
        if self.sums:
            made["sums"] = self.sums
        if self.leaf is not None:
            made |= {
                "leaf": list(self.leaf),
                "physical": self.physical,
                "logical": self.logical,
                "xxh64": f"{self.checksum:016x}",
                "chunks": f"{self.chunks:016x}",
            }
        return made


@dataclass(frozen=True, slots=True)
class Directory:
    """All indexes of a file that were attached. `base`: the bytes that it had before the first, without its footer.
    `orders`: its column_orders were added then, too. `chunks`: the fingerprint of all its column chunks, where it is known.
    `left_out`: entries that are of no use, each by its kind, the path of its column, and why.
    """

    base: int
    pointers: tuple[Pointer, ...] = ()
    orders: bool = False
    chunks: int | None = None
    left_out: tuple[tuple[str, tuple[str, ...], str], ...] = ()

    def to_value(self) -> bytes:
        """What stands under KEY."""
        made: dict[str, Any] = {"version": VERSION, "base": self.base}
        if self.orders:
            made["orders"] = True
        if self.chunks is not None:
            made["chunks"] = f"{self.chunks:016x}"
        made["indexes"] = [pointer.to_json() for pointer in self.pointers]
        return json.dumps(made, separators=(",", ":"), ensure_ascii=False).encode()


def directory(file: FooterFile) -> Directory | None:
    """What the footer lists; None where it has no such key.

    Raises
    ------
    InvalidIndexError
        It is there, and is not what this version knows.
    """
    pairs = file.key_value_metadata
    return directory_of(pairs[KEY], file.footer_start) if KEY in pairs else None


def directory_of(value: bytes | memoryview | None, end: int, kind: str | None = None) -> Directory:
    """The same by what stands under KEY in a file whose footer begins at `end`; of one `kind` of index only, if given."""
    if value is None or len(value) > LONGEST:
        raise InvalidIndexError(f"{KEY.decode()} has no value, or a very long one")
    try:
        found = json.loads(str(value, "utf-8"))
        version, base, listed = found["version"], found["base"], found["indexes"]
        chunks = int(found["chunks"], 16) if "chunks" in found else None
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise InvalidIndexError(f"{KEY.decode()} is damaged: {error}") from error
    if version != VERSION or type(version) is not int:
        raise InvalidIndexError(f"{KEY.decode()} is of version {version!r}, which is not known")
    if type(base) is not int or not isinstance(listed, list):
        raise InvalidIndexError(f"{KEY.decode()} is damaged")
    orders = found.get("orders") is True
    if kind is not None:
        listed = [one for one in listed if isinstance(one, dict) and one.get("kind") == kind]
    pointers, left_out = [], []
    for one in listed:  # an entry that makes no sense is of no use, nor does it spoil the others
        try:
            pointers.append(_pointer(one, end))
        except InvalidIndexError as error:
            left_out.append((*_named(one), str(error)))
    return Directory(base, tuple(pointers), orders, chunks, tuple(left_out))


def merged(pointers: Collection[Pointer]) -> list[Pointer]:
    """The same, with those of kind FREE that touch each other made one."""
    made: list[Pointer] = []
    free = sorted((one for one in pointers if one.kind == FREE), key=lambda one: one.offset)
    for one in free:
        if made and one.offset <= made[-1].offset + made[-1].length:
            start = made[-1].offset
            stop = max(start + made[-1].length, one.offset + one.length)
            made[-1] = Pointer(FREE, 1, start, stop - start)
        else:
            made.append(one)
    return [*(one for one in pointers if one.kind != FREE), *made]


def uncovered(found: Directory, end: int) -> list[tuple[int, int]]:
    """Where bytes lie between the base and `end`, the place of the footer, that no entry speaks of: they are of others."""
    made, at = [], found.base
    for one in sorted(found.pointers, key=lambda one: one.offset):
        if one.offset > at:
            made.append((at, one.offset))
        at = max(at, one.offset + one.length)
    return [*made, (at, end)] if at < end else made


def _pointer(one: Any, end: int) -> Pointer:
    """What an entry says. InvalidIndexError where it makes no sense."""
    try:
        kind, version, offset, length = one["kind"], one["version"], one["offset"], one["length"]
        if type(kind) is not str or not type(version) is type(offset) is type(length) is int:
            raise InvalidIndexError("its entry is damaged")
        if offset < 4 or not 0 < length <= end - offset:
            raise InvalidIndexError(
                f"{length} bytes at byte {offset}, which do not lie before the footer: the file was written anew, or cut"
            )
        if "leaf" not in one:
            sums = one.get("sums", 0)
            if type(sums) not in (bool, int):
                raise InvalidIndexError("its entry is damaged")
            return Pointer(kind, version, offset, length, sums=sums)
        leaf, types = _names(one["leaf"]), (one["physical"], one["logical"])
        checksum, chunks = int(one["xxh64"], 16), int(one["chunks"], 16)
        return Pointer(kind, version, offset, length, leaf, *types, checksum, chunks)
    except (KeyError, TypeError, ValueError) as error:
        raise InvalidIndexError("its entry is damaged") from error


def _names(path: Any) -> tuple[str, ...]:
    made = tuple(path)
    if not all(type(name) is str for name in made):
        raise TypeError(f"{made!r} is no path")
    return made


def _named(one: Any) -> tuple[str, tuple[str, ...]]:
    """The kind and the column of an entry, as far as it tells."""
    try:
        return str(one["kind"]), _names(one["leaf"])
    except (KeyError, TypeError):
        return "", ()


def of_leaf(
    leaf: Leaf,
    kind: str,
    version: int,
    found: Directory | None,
    types: tuple[str, str] | None = None,
) -> Pointer | None:
    """The index of a kind, and of a version that is known, that a column has, if it was built for a column of such `types`;
    the last of several.
    """
    if found is None:
        return None
    types = types_of(leaf) if types is None else types
    for one in reversed(found.pointers):
        known = one.leaf == leaf.path and (one.kind, one.version) == (kind, version)
        if known and (one.physical, one.logical) == types:
            return one
    return None


def why_none(leaf: Leaf, kind: str, version: int, found: Directory | None) -> str | None:
    """Why a column has no index of a kind (`of_leaf`) although an entry names it; None where no entry does."""
    if found is None:
        return None
    for one in reversed(found.pointers):
        if one.leaf == leaf.path and one.kind == kind:
            if one.version != version:
                return f"it is of version {one.version}, which is not known"
            return f"it was built for a column of {one.physical} ({one.logical})"
    for of_kind, path, why in reversed(found.left_out):
        if path == leaf.path and of_kind == kind:
            return why
    return None


class EntryForm:
    """How the entry of a column's index reads where `attach` wrote it, so that many are found without parsing JSON.

    What is found that way is a pointer like any other: the checksum and the fingerprint say whether it holds.
    """

    def __init__(self, leaf: Leaf, kind: str, version: int) -> None:
        self.leaf, self.kind, self.version = leaf, kind, version
        self.types = types_of(leaf)
        base, offset, length, checksum, chunks = 1 << 57, 1 << 58, 1 << 59, 0x1 << 60, 0x2 << 60
        entry = Pointer(kind, version, offset, length, leaf.path, *self.types, checksum, chunks)
        head, _, rest = Directory(base, (entry,)).to_value().partition(b"%d" % base)
        rest = rest[rest.index(b"{") : rest.rindex(b"]")]
        # the name of the column stands between the first two and the others, and may be a number
        before_offset, _, rest = rest.partition(b"%d" % offset)
        before_length, _, rest = rest.partition(b"%d" % length)
        rest, _, behind = rest.rpartition(b"%016x" % chunks)
        before_checksum, _, before_chunks = rest.rpartition(b"%016x" % checksum)
        self.parts = head, before_offset, before_length, before_checksum, before_chunks, behind

    def find(
        self,
        values: memoryview,
        tails: memoryview,
        of_chunks: bytes,
        files: npt.NDArray[np.int64],
    ) -> npt.NDArray[np.int64]:
        """Of each of several files lists.ENTRY_FIELDS. `files`: as `lists.find` takes them; `of_chunks`: `figures`."""
        found = lists.find(
            values, tails, of_chunks, FIGURES, self.parts, LONGEST, np.ascontiguousarray(files)
        )
        return np.frombuffer(found, np.int64).reshape(-1, len(lists.ENTRY_FIELDS))

    def parsed(self, value: bytes | memoryview | None, end: int) -> Pointer | None:
        """The index by the whole directory of a file whose footer begins at `end`. InvalidIndexError: as of `directory_of`."""
        known = directory_of(value, end, self.kind)
        return of_leaf(self.leaf, self.kind, self.version, known, self.types)

    def pointer(self, entry: Sequence[int]) -> Pointer:
        """The same by an entry that was found."""
        _, offset, length, checksum, chunks = entry
        sums = checksum % (1 << 64), chunks % (1 << 64)
        return Pointer(self.kind, self.version, offset, length, self.leaf.path, *self.types, *sums)


def types_of(leaf: Leaf) -> tuple[str, str]:
    """How a pointer names the types of a column."""
    return PHYSICAL_NAMES[leaf.element.type], logical_name(leaf.element)


def fingerprint(file: FooterFile, leaf: Leaf) -> int:
    """Of the chunks of a column: the rows of each row group, and where its values lie in the file.

    Who writes a file anew, or puts several together, lays them elsewhere.
    """
    table = int64s(file.declared_chunks(leaf)).reshape(-1, len(Chunk._fields))
    return xxh64(figures(file.group_rows, table))


def fingerprint_of_all(file: FooterFile) -> int:
    """The same of the chunks of all columns."""
    tables = (
        int64s(file.declared_chunks(leaf)).reshape(-1, len(Chunk._fields)) for leaf in file.leaves
    )
    return xxh64(b"".join([figures(file.group_rows, table) for table in tables]))


def figures(counts: Sequence[int], table: npt.NDArray[np.int64]) -> bytes:
    """What a fingerprint is of, FIGURES bytes a row group: its rows, and some of the record of its chunk."""
    rows = np.array(counts, np.int64).reshape(-1, 1)
    return np.concatenate([rows, table[:, _CHUNK]], axis=1).astype("<i8").tobytes()


def framed(payload: bytes, chunks: int) -> bytes:
    """The bytes of an index as they stand in the file."""
    return b"".join((MAGIC, bytes(4), chunks.to_bytes(8, "little"), payload))


def opened(pointer: Pointer, data: memoryview, chunks: int) -> memoryview:
    """The payload of an index. InvalidIndexError where the bytes are others than were attached, or are not of these chunks."""
    if data.nbytes != pointer.length or data.nbytes < HEAD:
        raise InvalidIndexError(f"{data.nbytes} bytes where {pointer.length} are due")
    if xxh64(data) != pointer.checksum:
        raise InvalidIndexError("its bytes are not those that were attached: the checksum differs")
    if data[:8] != MAGIC + bytes(4):
        raise InvalidIndexError("it does not begin as an index does")
    if pointer.chunks != chunks or int.from_bytes(data[8:HEAD], "little") != chunks:
        raise InvalidIndexError("it was built from other column chunks: the file was written anew")
    return data[HEAD:]
