"""Kinds of index that pageseek embeds in files, a file each: build, prune, verify.

They are registered by name in `pageseek.prune.built_in_kinds`. Their modules are imported when a file has their key in its footer, or
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
