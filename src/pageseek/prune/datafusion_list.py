"""Lists of different values in the form of DataFusion's example: `IDX1`, a length, values with newlines between them.

https://datafusion.apache.org/blog/2025/07/14/user-defined-parquet-indexes. The footer has only an offset, under the key
`distinct_index_offset`: no length, no checksum, no column. A value with a newline stands there as several. A list is
therefore used only for conclusions that hold even then, and only if it lies behind all pages and has the values that the
statistics name. A list that pageseek wrote has an entry of its own (embedded.py) with the column and a checksum.
"""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from pageseek._core import rows
from pageseek._core.bloom import xxh64
from pageseek.base.errors import CorruptFileError, UnsupportedError
from pageseek.format.chunks import chunk_range
from pageseek.format.embedded import InvalidIndexError, Pointer, directory, fingerprint, types_of
from pageseek.format.file_footer import FooterFile
from pageseek.format.file_statistics import FileStatistics
from pageseek.format.schema import Leaf
from pageseek.format.types import BYTE_ARRAY, K_LARGE_BYTES, L_STRING, Options, logical_of
from pageseek.predicate.bound import BoundLeaf

KIND = "distinct_index"
KEY, MAGIC = b"distinct_index_offset", b"IDX1"
LIST_HEAD_BYTES = len(MAGIC) + 8  # bytes before the values
FIRST_READ_BYTES = 4 << 10  # bytes of the first read: most lists are shorter
LONGEST_LIST = 64 << 20  # bytes of a list that is read at most
SPLIT_BYTES = 1 << 20  # bytes of a list that are split into lines at a time


def place(file: FooterFile) -> int | None:
    """Where the list begins, by the footer; None without the key. InvalidIndexError: it cannot lie there."""
    if KEY not in file.key_value_metadata:
        return None
    offset = place_of(file.key_value_metadata[KEY] or b"", file.footer_start)
    for leaf in file.leaves:
        if any(chunk_range(chunk)[1] > offset for chunk in file.chunks(leaf)):
            raise InvalidIndexError("pages lie behind it: they were added later")
    return offset


def place_of(value: bytes, end: int) -> int:
    """Where a list begins, by the value of KEY in a file whose footer begins at `end`. The bytes there are not read."""
    if not value.isdigit() or len(value) > 19:
        raise InvalidIndexError(f"{KEY.decode()} is {value[:40]!r}, not a number")
    offset = int(value)
    if not 4 <= offset <= end - LIST_HEAD_BYTES:
        raise InvalidIndexError(f"{KEY.decode()} is {offset}, where there is no room")
    return offset


def own(file: FooterFile) -> Pointer | None:
    """The entry of a list that pageseek attached: it names the column, and has a checksum."""
    try:
        found = directory(file)
    except InvalidIndexError:  # noted where the other indexes are looked for
        return None
    at = file.key_value_metadata.get(KEY)
    for one in () if found is None else found.pointers:
        if one.kind == KIND and one.leaf is not None and at == b"%d" % one.offset:
            return one
    return None


def column(file: FooterFile, named: str | None) -> Leaf | None:
    """The column of the list: by its entry, else the one that the caller names, else the only one of strings; None where
    there is none of these. InvalidIndexError: the entry does not fit the column, or the name that the caller gives.
    """
    leaf = None if named is None else file.schema_tree.find(named)
    entry = own(file)
    if entry is not None:
        assert entry.leaf is not None
        attached = ".".join(entry.leaf)
        if leaf is not None and leaf.path != entry.leaf:
            raise InvalidIndexError(f"it was attached for {attached!r}, not for {leaf.name!r}")
        leaf = next((one for one in file.leaves if one.path == entry.leaf), None)
        if leaf is None or types_of(leaf) != (entry.physical, entry.logical):
            raise InvalidIndexError(
                f"it was built for {attached!r} of {entry.physical} ({entry.logical})"
            )
    return only_text(file.leaves) if leaf is None else leaf


def only_text(leaves: Iterable[Leaf]) -> Leaf | None:
    """The column of strings, where there is one alone and it is flat."""
    strings = [leaf for leaf in leaves if _is_text(leaf)]
    return strings[0] if len(strings) == 1 and strings[0].flat else None


def _is_text(leaf: Leaf) -> bool:
    return leaf.element.type == BYTE_ARRAY and logical_of(leaf.element)[0] == L_STRING


def length_of(head: memoryview, room: int) -> int:
    """Bytes of the values, by the head before them. InvalidIndexError: it is no such list, or has no room."""
    if head.nbytes < LIST_HEAD_BYTES or head[: len(MAGIC)] != MAGIC:
        raise InvalidIndexError("it does not begin with IDX1")
    length = int.from_bytes(head[len(MAGIC) : LIST_HEAD_BYTES], "little")
    if not length:
        raise InvalidIndexError("it is empty, which may be a list of nothing or of an empty text")
    if length > min(room - LIST_HEAD_BYTES, LONGEST_LIST):
        raise InvalidIndexError(f"it claims {length} bytes, for which there is no room")
    return length


def check_bytes(file: FooterFile, leaf: Leaf, head: memoryview, values: memoryview) -> None:
    """Raise InvalidIndexError if a list that has an entry is not the one that was attached, or has other column chunks."""
    entry = own(file)
    if entry is None:
        return
    data = bytes(head[:LIST_HEAD_BYTES]) + bytes(values)
    if len(data) != entry.length or xxh64(data) != entry.checksum:
        raise InvalidIndexError("its bytes are not those that were attached: the checksum differs")
    if entry.chunks != fingerprint(file, leaf):
        raise InvalidIndexError("it was built from other column chunks: the file was rewritten")


class Listed:
    """The lines of a list: as they are, and without a carriage return at the end, which the writer may have added.

    `only`: the only value; None if there are several lines, or if a carriage return at the end may be the writer's.
    """

    def __init__(self, data: memoryview | bytes) -> None:
        self._text = b"".join((data, b"\n"))
        many = b"\n" in self._text[:-1] or self._text.endswith(b"\r\n")
        self.only = None if many else self._text[:-1]

    @property
    def nbytes(self) -> int:
        """Bytes that are held."""
        return len(self._text)

    def missing(self, asked: Iterable[bytes]) -> set[bytes]:
        """The values that it lacks. Its lines are split piece by piece: all at once would take many times the memory."""
        missing, text, start = set(asked), self._text, 0
        while missing and start < len(text):
            stop = text.index(b"\n", min(start + SPLIT_BYTES, len(text) - 1))
            piece = text[start:stop]
            missing.difference_update(piece.split(b"\n"))
            if b"\r" in piece:
                missing.difference_update(
                    piece.replace(b"\r\n", b"\n").removesuffix(b"\r").split(b"\n")
                )
            start = stop + 1
        return missing

    def has_any(self, asked: frozenset[bytes]) -> bool:
        """Whether it has one of them."""
        text, start = self._text, 0
        while start < len(text):
            stop = text.index(b"\n", min(start + SPLIT_BYTES, len(text) - 1))
            piece = text[start:stop]
            if not asked.isdisjoint(piece.split(b"\n")):
                return True
            if b"\r" in piece:
                lines = piece.replace(b"\r\n", b"\n").removesuffix(b"\r").split(b"\n")
                if not asked.isdisjoint(lines):
                    return True
            start = stop + 1
        return False

    def begins(self, prefix: bytes) -> bool:
        """Whether a line begins with a prefix."""
        return self._text.startswith(prefix) or b"\n" + prefix in self._text[:-1]


def check(file: FileStatistics, leaf: Leaf, listed: Listed) -> None:
    """Raise InvalidIndexError where statistics name a value that the list lacks: it is not the list of the column."""
    lines: dict[bytes, tuple[bytes, int]] = {}  # each with the text that has it, and a row group
    for group in range(file.num_row_groups):
        try:
            values = file.chunk_values(group, leaf, Options())
        except CorruptFileError as error:
            raise InvalidIndexError(str(error)) from error
        for scalar in (values.min, values.max):
            text = None if scalar is None else scalar.as_buffer().to_pybytes()  # it may be no UTF-8
            if text is not None:
                for line in text.split(b"\n"):
                    lines.setdefault(line, (text, group))
    missing = listed.missing(lines) if lines else ()
    for line, (text, group) in lines.items():
        if line in missing:
            raise InvalidIndexError(f"{text[:40]!r} is in row group {group}, and not in the list")


def may_deny(test: BoundLeaf) -> bool:
    """Whether a list of the column of a test may rule out rows for it."""
    known = test.op in (rows.OP_EQ, rows.OP_NE, rows.OP_IN, rows.OP_PREFIX)
    return known and not test.leaf.group and test.leaf.element.type == BYTE_ARRAY


def asked_of(test: BoundLeaf) -> frozenset[bytes]:
    """The literals of a test, made once for all lists; none where no list can rule out rows for it."""
    asked = _literals(test) if may_deny(test) else []
    return frozenset() if any(b"\n" in one for one in asked) else frozenset(asked)


def denies(test: BoundLeaf, asked: frozenset[bytes], listed: Listed) -> bool:
    """Whether no value passes a test, not even one with newlines, which the list has as several. `asked`: the literals of the
    test (`asked_of`).
    """
    if not asked:
        return False
    equal, unequal = (rows.OP_NE, rows.OP_EQ) if test.negate else (rows.OP_EQ, rows.OP_NE)
    if test.op == equal or (test.op == rows.OP_IN and not test.negate):
        return not listed.has_any(asked)
    if test.op == unequal or test.op == rows.OP_IN:  # ruled out if it is the only value
        return listed.only in asked
    if test.op == rows.OP_PREFIX and not test.negate:
        return not any(listed.begins(one) for one in asked)
    return False


def _literals(test: BoundLeaf) -> list[bytes]:
    n, data, ends = test.literals
    if ends is None:
        return []
    offsets = memoryview(ends).cast("q" if test.leaf_type.kind == K_LARGE_BYTES else "i")
    return [data[offsets[i] : offsets[i + 1]] for i in range(n)]


def check_type(leaf: Leaf) -> None:
    """Raise UnsupportedError where a column has no strings."""
    if not _is_text(leaf):
        raise UnsupportedError(
            f"column {leaf.name!r}: DataFusion's form is of strings; use distinct=[...]"
        )


def written(values: pa.Array, leaf: Leaf) -> bytes:
    """The bytes of a list. UnsupportedError: this form cannot hold the values."""
    found = values.to_pylist()
    for value in found:
        if b"\n" in value or value.endswith(b"\r"):
            raise UnsupportedError(
                f"column {leaf.name!r}: {value[:40]!r} has a newline, or ends in a carriage return, which DataFusion's form "
                "cannot tell from the end of a value; use distinct=[...]"
            )
    body = b"\n".join(sorted(found))
    if not body:
        raise UnsupportedError(
            f"column {leaf.name!r}: it has no text, which DataFusion's form cannot tell; use distinct=[...]"
        )
    return MAGIC + len(body).to_bytes(8, "little") + body
