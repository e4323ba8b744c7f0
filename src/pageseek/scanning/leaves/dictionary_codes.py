"""Dictionary codes of a chunk, kept as codes: the strings of its dictionary are made once, not for every row."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from pageseek._core import decode as core
from pageseek.base.errors import UNSUPPORTED
from pageseek.format.types import INT32, K_I32, LeafType, to_arrow

CODES = LeafType((INT32, 0, K_I32, 0, 0, 0, 0), pa.int32(), pa.int32())


class CodesDecoder:
    """Stands in for a LeafDecoder: its output is codes, which `arrow` joins with the dictionary.

    For the core the codes are numbers with a dictionary in which code i means i. CoreError: a page is damaged or has no
    codes. The caller then reads the strings themselves.
    """

    def __init__(self, leaf_type: LeafType, max_def: int, bare: bool = False, **how: Any) -> None:
        """`bare`: codes come out alone; `entries` has their values."""
        self._leaf_type = leaf_type
        self.bare = bare
        self._decoder = core.LeafDecoder(CODES.core, max_def, 0, codes_only=True, **how)
        self._texts = core.LeafDecoder(leaf_type.core, 0, 0, **how)
        self._data: tuple[Any, int] = b"", 0
        self.entries = pa.nulls(0, leaf_type.storage)  # pa.array would import pandas

    def __getattr__(self, name: str) -> Any:
        return getattr(self._decoder, name)

    def head(self, data: Any, at: int = 0, index_rows: int = -1) -> int:
        self._data = data, at
        return self._decoder.head(data, at, index_rows)

    def take_dictionary(self) -> None:
        texts = self._texts
        texts.head(*self._data)
        n = texts.num_values
        self.entries = to_arrow(self._leaf_type, *texts.entries())
        if not self.bare and len(self.entries.unique()) < n:
            raise core.CoreError(UNSUPPORTED, None, "an entry of the dictionary is there twice")
        self._decoder.dictionary(np.arange(n, dtype=np.int32), n)

    def release(self) -> None:
        self._decoder.release()
        self._texts.release()
        self._data = b"", 0

    def arrow(self, n: int, null_count: int, validity: Any, values: Any, whole: bool) -> pa.Array:
        """Codes and their dictionary, reduced to the entries in use unless this is the `whole` chunk."""
        buffers = [None if validity is None else pa.py_buffer(validity), pa.py_buffer(values)]
        codes = pa.Array.from_buffers(pa.int32(), n, buffers, null_count)
        if self.bare:
            return codes
        entries = self.entries
        if not whole or n < len(entries):
            used = codes.dictionary_encode()
            codes, entries = used.indices, entries.take(used.dictionary)
        return pa.DictionaryArray.from_arrays(codes, entries, safe=False)
