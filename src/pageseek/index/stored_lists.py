"""The lists of values that a file has, brought to be held against its data."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from pageseek.base.errors import CoreError, PageseekError
from pageseek.format.embedded import (
    Directory,
    InvalidIndexError,
    Pointer,
    fingerprint,
    of_leaf,
    opened,
    why_none,
)
from pageseek.format.file_metadata import FileMetadata
from pageseek.format.schema import Leaf
from pageseek.format.value_list import KIND as DISTINCT
from pageseek.format.value_list import VERSION, Distinct
from pageseek.index import distinct_builder as distinct
from pageseek.index.attach import PUBLISHED
from pageseek.prune.datafusion_list import (
    HEAD,
    Listed,
    check_bytes,
    check_type,
    column,
    length_of,
    place,
)

KEPT, LONGEST = (
    128 << 20,
    32 << 20,
)  # bytes of lists that are held, and of one; `attach` writes less than 10 MB
Wrong = Callable[[str, str, str], None]  # (kind, column, what)


class Lists:
    """The lists of values of a file. Of our own, those that do not fit into KEPT bytes are read anew for each chunk."""

    def __init__(
        self, file: FileMetadata, found: Directory | None, named: str | None, wrong: Wrong
    ) -> None:
        """`named`: the column of a list in the published form; `wrong` is told of lists that make no sense."""
        self._file = file
        self._pointers: dict[int, Pointer] = {}
        self._kept: dict[int, Distinct] = {}
        held = 0
        for leaf in file.leaves:
            pointer = of_leaf(leaf, DISTINCT, VERSION, found)
            if pointer is None:
                why = why_none(leaf, DISTINCT, VERSION, found)
                if why is not None and not _is_left_out(leaf, found):
                    wrong(DISTINCT, leaf.name, why)
                continue
            try:
                made = self._read(leaf, pointer)
                made.array(file.schema_tree.parquet_leaf_type(leaf))
            except (InvalidIndexError, CoreError, PageseekError) as error:
                wrong(DISTINCT, leaf.name, str(error))
                continue
            self._pointers[leaf.index] = pointer
            if held + pointer.length <= KEPT:
                held += pointer.length
                self._kept[leaf.index] = made
        self._text_leaf, self._texts = _published(file, named, wrong)

    def of(self, leaf: Leaf) -> Distinct | None:
        """The one of a column."""
        if leaf.index in self._kept or leaf.index not in self._pointers:
            return self._kept.get(leaf.index)
        return self._read(leaf, self._pointers[leaf.index])

    def texts(self, leaf: Leaf) -> Listed | None:
        """The one in the published form."""
        return self._texts if leaf.index == self._text_leaf else None

    def _read(self, leaf: Leaf, pointer: Pointer) -> Distinct:
        if pointer.length > LONGEST:
            raise InvalidIndexError(
                f"its {pointer.length:,} bytes are more than the {LONGEST:,} that are held against data"
            )
        distinct.check(leaf)
        (data,) = self._file.store.read([(pointer.offset, pointer.length)])
        body = opened(pointer, memoryview(data), fingerprint(self._file, leaf))
        return Distinct.of(body, self._file.num_row_groups)


def _is_left_out(leaf: Leaf, found: Directory | None) -> bool:
    """Whether what is wrong with the entry was said of the directory."""
    return found is not None and any(path == leaf.path for _, path, _ in found.left_out)


def _published(file: FileMetadata, named: str | None, wrong: Wrong) -> tuple[int, Listed | None]:
    """The leaf that a list in the published form is of, and the list; -1 where there is none."""
    leaf: Leaf | None = None
    try:
        offset, leaf = place(file), column(file, named)
        if offset is None or leaf is None:
            return -1, None
        check_type(leaf)
        (head,) = file.store.read([(offset, HEAD)])
        length = length_of(memoryview(head), file.footer_start - offset)
        (data,) = file.store.read([(offset + HEAD, length)])
        check_bytes(file, leaf, memoryview(head), memoryview(data))
        return leaf.index, Listed(memoryview(data))
    except InvalidIndexError as error:
        wrong(PUBLISHED, named or ("" if leaf is None else leaf.name), str(error))
        return -1, None


def values_of(found: Distinct, leaf: Leaf) -> pa.Array:
    """As the file has them."""
    kind = distinct.type_of(leaf)
    if found.ends is not None:
        buffers = [None, pa.py_buffer(found.ends.astype(np.int32)), pa.py_buffer(found.values)]
        return pa.Array.from_buffers(kind, found.n, buffers)
    if pa.types.is_boolean(kind):
        return pa.array(np.frombuffer(found.values, np.uint8).astype(bool))
    return pa.Array.from_buffers(kind, found.n, [None, pa.py_buffer(found.values)])
