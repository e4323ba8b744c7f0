"""Kinds of index that pageseek embeds in files, a file each: build, prune, verify.

They are registered by name, as users' kinds are. Their modules are imported when a file has their key in its footer, or
when an index is built or verified. The modules that build are imported only to build and verify: no scan loads them.

| file | job |
|---|---|
| `distinct` | the distinct values of a column (docs/format.md) |
| `bitmap` | the rows of each value of a column of few values (docs/format.md) |
| `lookup` | the rows of each value of a column of many values, in any order (docs/format.md) |
| `key_lookup` | the rows of each combination of values of several columns (docs/format.md) |
| `trigram` | the blocks of rows that have each three bytes of texts (docs/format.md) |
| `file_bloom` | whether the file has a value at all: one small Bloom filter (docs/format.md) |
| `datafusion_index` | distinct values in the form of DataFusion's example, `IDX1` |
"""

from pageseek.format.embedded import DATAFUSION_KEY, KEY
from pageseek.prune.registry import register_late

register_late(
    "distinct",
    KEY,
    "pageseek.index.kinds.distinct",
    "a list of their different values, attached to the file, proves that none matches",
)
register_late(
    "distinct_index",
    DATAFUSION_KEY,
    "pageseek.index.kinds.datafusion_index",
    "a list of the different values in the file proves that none matches",
)
register_late(
    "file_bloom",
    KEY,
    "pageseek.index.kinds.file_bloom",
    "a Bloom filter of the whole file, attached to it, has none of the values",
)
register_late(
    "lookup",
    KEY,
    "pageseek.index.kinds.lookup",
    "a lookup index, attached to the file, has other rows for the value",
)
register_late(
    "key_lookup",
    KEY,
    "pageseek.index.kinds.key_lookup",
    "a lookup index of several columns, attached to the file, has other rows for the values",
)
register_late(
    "bitmap",
    KEY,
    "pageseek.index.kinds.bitmap",
    "a bitmap index, attached to the file, says which rows match",
)
register_late(
    "trigram",
    KEY,
    "pageseek.index.kinds.trigram",
    "a trigram index, attached to the file, has no row with all parts of the text",
)
