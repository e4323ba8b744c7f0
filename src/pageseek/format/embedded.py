"""Indexes of pageseek inside a Parquet file: where they lie by the footer, and whether they belong to it.

The form is that of docs/format.md. Bytes that do not fit it are no index: nothing here trusts a file.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from pageseek._core import lists
from pageseek._core.bloom import xxh64
from pageseek.base.errors import InvalidIndexError as InvalidIndexError
from pageseek.base.late_modules import json, npt
from pageseek.base.records import dataclass
from pageseek.format.chunks import Chunk
from pageseek.format.file_footer import FooterFile
from pageseek.format.page_index import int64s
from pageseek.format.schema import Leaf
from pageseek.format.types import logical_name, physical_name

KEY = b"pageseek.indexes"
DATAFUSION_KEY = b"distinct_index_offset"  # of a list in the form of DataFusion's example
VERSION = 1  # of the value of KEY
MAGIC = b"PSX1"
PAYLOAD_HEAD_BYTES = 16  # bytes: magic, four of zero, and the fingerprint of the chunks
MAX_DIRECTORY_BYTES = 1 << 20  # bytes of the value of KEY beyond which it is not parsed
SHARED = 128  # files whose entries are worth a thread
PAGE_INDEX, BLOOM = "page_index", "bloom"  # kinds that Parquet itself defines
KEY_LOOKUP = "key_lookup"  # kind of an index of several columns together
FREE = "free"  # kind of bytes whose index was detached or replaced
_CHUNK = [
    Chunk._fields.index(name)
    for name in (
        "data_page_offset", "dictionary_page_offset", "total_compressed_size", "num_values"
    )
]  # fmt: skip
FIGURES = 8 * (1 + len(_CHUNK))  # bytes for each row group that a fingerprint is of


@dataclass(frozen=True, slots=True)
class Pointer:
    """The entry of an index in the directory. `offset`, `length`: where its bytes lie.

    Attributes
    ----------
    leaf : tuple of str or None
        The path of its column; of KEY_LOOKUP the names of its columns. None for a kind that Parquet itself defines: column chunks tell where it lies.
    physical, logical : str
        The types of the column.
    checksum : int
        That of the bytes.
    chunks : int
        The fingerprint of the column chunks that it was built from.
    sums : int
        Checksums of a kind that Parquet itself defines (checksums.py): True if page indexes end with one; for Bloom filters
        the bytes that each checksum is of; 0 without any.
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

    @property
    def column(self) -> str:
        """The name of its column, or the names; "" without any."""
        return (", " if self.kind == KEY_LOOKUP else ".").join(self.leaf or ())

    def holds(self, offset: int) -> bool:
        """Whether a byte of the file belongs to the index."""
        return self.offset <= offset < self.offset + self.length

    def freed(self) -> Pointer:
        """An entry of kind FREE for the bytes."""
        return Pointer(FREE, 1, self.offset, self.length)

    def to_json(self) -> dict[str, Any]:
        """The entry, as docs/format.md has it."""
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
    """All indexes that were attached to a file.

    Attributes
    ----------
    base : int
        The bytes of the file before the first index, without its footer.
    orders : bool
        Whether column_orders were added with the indexes.
    chunks : int or None
        The fingerprint of all column chunks, if it is known.
    left_out : tuple of (kind, path of the column, why)
        Entries that are damaged.
    """

    base: int
    pointers: tuple[Pointer, ...] = ()
    orders: bool = False
    chunks: int | None = None
    left_out: tuple[tuple[str, tuple[str, ...], str], ...] = ()

    def to_value(self) -> bytes:
        """The value of KEY."""
        made: dict[str, Any] = {"version": VERSION, "base": self.base}
        if self.orders:
            made["orders"] = True
        if self.chunks is not None:
            made["chunks"] = f"{self.chunks:016x}"
        made["indexes"] = [pointer.to_json() for pointer in self.pointers]
        return json.dumps(made, separators=(",", ":"), ensure_ascii=False).encode()


def directory(file: FooterFile) -> Directory | None:
    """The directory in the footer; None without one. InvalidIndexError: it is damaged, or of an unknown version."""
    pairs, made = file.key_value_metadata, file.of_pairs
    if KEY not in pairs:
        return None
    if KEY not in made:  # every pruner of every column asks
        try:
            made[KEY] = directory_of(pairs[KEY], file.footer_start)
        except InvalidIndexError as error:
            made[KEY] = str(error)
    found = made[KEY]
    if isinstance(found, str):
        raise InvalidIndexError(found)
    return found  # type: ignore[no-any-return]


def directory_of(value: bytes | memoryview | None, end: int, kind: str | None = None) -> Directory:
    """The directory by the value of KEY in a file whose footer begins at `end`; with `kind`, that kind of index only."""
    if value is None or len(value) > MAX_DIRECTORY_BYTES:
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
    for one in listed:  # a damaged entry does not spoil the others
        try:
            pointers.append(_pointer(one, end))
        except InvalidIndexError as error:
            left_out.append((*_named(one), str(error)))
    return Directory(base, tuple(pointers), orders, chunks, tuple(left_out))


def merged(pointers: Collection[Pointer]) -> list[Pointer]:
    """Entries, with those of kind FREE joined if they touch or overlap."""
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
    """(start, stop) of the bytes from the base to `end`, where the footer begins, that no entry covers: others wrote them."""
    made, at = [], found.base
    for one in sorted(found.pointers, key=lambda one: one.offset):
        if one.offset > at:
            made.append((at, one.offset))
        at = max(at, one.offset + one.length)
    return [*made, (at, end)] if at < end else made


def _pointer(one: Any, end: int) -> Pointer:
    """An entry of the directory. InvalidIndexError: it is damaged."""
    try:
        kind, version, offset, length = one["kind"], one["version"], one["offset"], one["length"]
        if type(kind) is not str or not type(version) is type(offset) is type(length) is int:
            raise InvalidIndexError("its entry is damaged")
        if offset < 4 or not 0 < length <= end - offset:
            raise InvalidIndexError(
                f"{length} bytes at byte {offset}, which do not lie before the footer: the file was rewritten, or cut"
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
    """The kind and the column of a damaged entry, if it tells them."""
    try:
        return str(one["kind"]), _names(one["leaf"])
    except (KeyError, TypeError):
        return "", ()


def of_leaf(leaf: Leaf, kind: str, version: int, found: Directory | None) -> Pointer | None:
    """The last index of a kind and version that a column has, if it was built for a column of these types."""
    return _latest(leaf.path, types_of(leaf), kind, version, found)


def _latest(
    names: tuple[str, ...],
    types: tuple[str, str],
    kind: str,
    version: int,
    found: Directory | None,
) -> Pointer | None:
    """The last entry of a kind and version with these names and types."""
    if found is None:
        return None
    for one in reversed(found.pointers):
        known = one.leaf == names and (one.kind, one.version) == (kind, version)
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
    """The text of the entry of an index, as `attach` writes it: it is found in many files without parsing JSON.

    An entry that is found this way is checked as any other, by its checksum and fingerprint.
    """

    def __init__(self, leaves: Sequence[Leaf], kind: str, version: int) -> None:
        """`leaves`: its columns, of which only a KEY_LOOKUP has several."""
        self.kind, self.version = kind, version
        of_key = kind == KEY_LOOKUP
        self.names = tuple([leaf.name for leaf in leaves]) if of_key else leaves[0].path
        self.types = types_of_key(leaves)
        base, offset, length, checksum, chunks = 1 << 57, 1 << 58, 1 << 59, 0x1 << 60, 0x2 << 60
        entry = Pointer(kind, version, offset, length, self.names, *self.types, checksum, chunks)
        head, _, rest = Directory(base, (entry,)).to_value().partition(b"%d" % base)
        rest = rest[rest.index(b"{") : rest.rindex(b"]")]
        # the name of the column, which may be a number, stands between the first two numbers and the others
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
        threads: int = 1,
    ) -> npt.NDArray[np.int64]:
        """lists.ENTRY_FIELDS for each of several files. `files`: as `lists.find` takes them; `of_chunks`: `figures`."""
        from pageseek.base.in_parts import in_parts  # late: for many files

        every = np.ascontiguousarray(files)

        def found(begin: int, stop: int) -> bytes:
            some = every[begin:stop]
            return lists.find(
                values, tails, of_chunks, FIGURES, self.parts, MAX_DIRECTORY_BYTES, some
            )

        made = b"".join(in_parts(found, len(every), threads, SHARED))
        return np.frombuffer(made, np.int64).reshape(-1, len(lists.ENTRY_FIELDS))

    def parsed(self, value: bytes | memoryview | None, end: int) -> Pointer | None:
        """The index by the value of KEY in a file whose footer begins at `end`, as `directory_of` reads it."""
        known = directory_of(value, end, self.kind)
        return _latest(self.names, self.types, self.kind, self.version, known)

    def pointer(self, entry: Sequence[int]) -> Pointer:
        """The index by ENTRY_FIELDS."""
        _, offset, length, checksum, chunks = entry
        sums = checksum % (1 << 64), chunks % (1 << 64)
        return Pointer(self.kind, self.version, offset, length, self.names, *self.types, *sums)


def types_of(leaf: Leaf) -> tuple[str, str]:
    """The physical and logical type of a column, as entries name them."""
    return physical_name(leaf.element.type), logical_name(leaf.element)


def fingerprint(file: FooterFile, leaf: Leaf) -> int:
    """The hash of the rows of each row group, and of where the values of a column lie in the file.

    Software that rewrites a file, or joins several, lays them elsewhere.
    """
    return xxh64(_figures_of(file, leaf))


def fingerprint_of_key(file: FooterFile, leaves: Sequence[Leaf]) -> int:
    """The fingerprint of several columns together."""
    return xxh64(b"".join([_figures_of(file, leaf) for leaf in leaves]))


def types_of_key(leaves: Sequence[Leaf]) -> tuple[str, str]:
    """The physical and logical types of several columns, as the entry of their index names them."""
    physical, logical = zip(*[types_of(leaf) for leaf in leaves], strict=True)
    return "+".join(physical), "+".join(logical)


def fingerprint_of_all(file: FooterFile) -> int:
    """The fingerprint of all columns together."""
    return fingerprint_of_key(file, file.leaves)


def _figures_of(file: FooterFile, leaf: Leaf) -> bytes:
    table = int64s(file.declared_chunks(leaf)).reshape(-1, len(Chunk._fields))
    return figures(file.group_rows, table)


def figures(counts: Sequence[int], table: npt.NDArray[np.int64]) -> bytes:
    """The bytes that a fingerprint is of, FIGURES for each row group: its rows, and some fields of its chunk's record."""
    rows = np.array(counts, np.int64).reshape(-1, 1)
    return np.concatenate([rows, table[:, _CHUNK]], axis=1).astype("<i8").tobytes()


def framed(payload: bytes | bytearray, chunks: int) -> bytearray:
    """The bytes of an index in the file. A bytearray is extended, since it may be large."""
    made = payload if isinstance(payload, bytearray) else bytearray(payload)
    made[:0] = MAGIC + bytes(4) + chunks.to_bytes(8, "little")
    return made


def opened(pointer: Pointer, data: memoryview, chunks: int) -> memoryview:
    """The payload of an index. InvalidIndexError: its bytes are not those attached, or it is not of these chunks."""
    if data.nbytes != pointer.length or data.nbytes < PAYLOAD_HEAD_BYTES:
        raise InvalidIndexError(f"{data.nbytes} bytes where {pointer.length} are due")
    if xxh64(data) != pointer.checksum:
        raise InvalidIndexError("its bytes are not those that were attached: the checksum differs")
    if data[:8] != MAGIC + bytes(4):
        raise InvalidIndexError("it does not begin as an index does")
    if pointer.chunks != chunks or int.from_bytes(data[8:PAYLOAD_HEAD_BYTES], "little") != chunks:
        raise InvalidIndexError("it was built from other column chunks: the file was rewritten")
    return data[PAYLOAD_HEAD_BYTES:]
