"""The kinds of index that pageseek embeds in files, by name: a new one is a line here and a file in `pageseek.index.kinds`.

A module is imported when a file has the key of its kind in the footer, or when an index is built or verified.
"""

from __future__ import annotations

from pageseek.base.records import NamedTuple
from pageseek.format.embedded import DATAFUSION_KEY, KEY


class BuiltIn(NamedTuple):
    """A kind of this package.

    `key`: files that have such an index have it in their footers. `module`: its object KIND is the kind. `reason`: the
    sentence of `explain` for what it ruled out.
    """

    name: str
    key: bytes
    module: str
    reason: str


BUILT_IN = (
    BuiltIn(
        "distinct",
        KEY,
        "pageseek.index.kinds.distinct",
        "a list of their different values, attached to the file, proves that none matches",
    ),
    BuiltIn(
        "distinct_index",
        DATAFUSION_KEY,
        "pageseek.index.kinds.datafusion_index",
        "a list of the different values in the file proves that none matches",
    ),
    BuiltIn(
        "file_bloom",
        KEY,
        "pageseek.index.kinds.file_bloom",
        "a Bloom filter of the whole file, attached to it, has none of the values",
    ),
    BuiltIn(
        "lookup",
        KEY,
        "pageseek.index.kinds.lookup",
        "a lookup index, attached to the file, has other rows for the value",
    ),
    BuiltIn(
        "key_lookup",
        KEY,
        "pageseek.index.kinds.key_lookup",
        "a lookup index of several columns, attached to the file, has other rows for the values",
    ),
    BuiltIn(
        "bitmap",
        KEY,
        "pageseek.index.kinds.bitmap",
        "a bitmap index, attached to the file, says which rows match",
    ),
    BuiltIn(
        "trigram",
        KEY,
        "pageseek.index.kinds.trigram",
        "a trigram index, attached to the file, has no row with all parts of the text",
    ),
)
