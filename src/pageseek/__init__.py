"""pageseek reads from Apache Parquet files exactly what an answer needs."""

import importlib
from typing import TYPE_CHECKING, Any

from pageseek._core.decode import LeafDecoder
from pageseek._core.rows import RowRanges
from pageseek.cache import CacheInfo
from pageseek.entry import (
    cache_info,
    clear_cache,
    load_cache,
    read_table,
    resize_cache,
    save_cache,
    scan,
)
from pageseek.entry import open_file as open
from pageseek.errors import (
    CorruptFileError,
    FileChangedError,
    LimitError,
    PageseekError,
    PredicateError,
    PrunerError,
    StoreError,
    UnsupportedError,
)
from pageseek.metadata import ParquetFile
from pageseek.plan import ScanPlan
from pageseek.predicate.expression import Expression, col
from pageseek.progress import Progress
from pageseek.prune import register_pruner, unregister_pruner
from pageseek.report import Report
from pageseek.scan import Scan
from pageseek.search import lower_bound, upper_bound

if TYPE_CHECKING:
    from pageseek import index as index

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """`pageseek.index` is imported when it is asked for: who only reads does without."""
    if name == "index":
        return importlib.import_module("pageseek.index")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "CacheInfo",
    "CorruptFileError",
    "Expression",
    "FileChangedError",
    "LeafDecoder",
    "LimitError",
    "PageseekError",
    "ParquetFile",
    "PredicateError",
    "Progress",
    "PrunerError",
    "Report",
    "RowRanges",
    "Scan",
    "ScanPlan",
    "StoreError",
    "UnsupportedError",
    "cache_info",
    "clear_cache",
    "col",
    "index",
    "load_cache",
    "lower_bound",
    "open",
    "read_table",
    "register_pruner",
    "resize_cache",
    "save_cache",
    "scan",
    "unregister_pruner",
    "upper_bound",
]
