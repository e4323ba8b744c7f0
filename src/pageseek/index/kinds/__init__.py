"""Kinds of index that pageseek embeds in files, a file each: build, prune, verify.

They are registered by name as users' kinds are. The module of one is imported when a file has its key in the footer, or
when an index is built or verified; what builds is imported later still, so that no scan loads it.

| file | job |
|---|---|
| `distinct` | the different values of a column (docs/format.md) |
| `datafusion_index` | the same in the form of DataFusion's example, `IDX1` |
"""

from pageseek.format.embedded import DATAFUSION_KEY, KEY
from pageseek.prune.registry import register_late

register_late("distinct", KEY, "pageseek.index.kinds.distinct")
register_late("distinct_index", DATAFUSION_KEY, "pageseek.index.kinds.datafusion_index")
