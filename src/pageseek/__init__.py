"""pageseek reads from Apache Parquet files exactly what an answer needs."""

import importlib
from typing import TYPE_CHECKING, Any

from pageseek._core.decode import LeafDecoder
from pageseek._core.rows import RowRanges
from pageseek.api import (
    CacheInfo,
    ParquetFile,
    Scan,
    cache_info,
    clear_cache,
    load_cache,
    read_table,
    resize_cache,
    save_cache,
    scan,
)
from pageseek.api import open_file as open
from pageseek.base.errors import (
    CorruptFileError,
    FileChangedError,
    KindError,
    LimitError,
    PageseekError,
    PredicateError,
    PrunerError,
    RewriteError,
    StoreError,
    UnsupportedError,
)
from pageseek.base.progress import Progress
from pageseek.base.report import Report
from pageseek.base.version import __version__
from pageseek.predicate.expression import Column, Expression, col
from pageseek.predicate.parameters import param
from pageseek.predicate.search import lower_bound, upper_bound
from pageseek.prune import register_pruner, unregister_pruner
from pageseek.scanning.prepared import PreparedQuery
from pageseek.scanning.scan_plan import ScanPlan

if TYPE_CHECKING:
    from pageseek import index as index
    from pageseek import spark as spark
    from pageseek.advice.advising import advise
    from pageseek.rewriting.rewrite import rewrite
    from pageseek.rewriting.rewritten import Rewritten

__all__ = [
    "CacheInfo",
    "Column",
    "CorruptFileError",
    "Expression",
    "FileChangedError",
    "KindError",
    "LeafDecoder",
    "LimitError",
    "PageseekError",
    "ParquetFile",
    "PredicateError",
    "PreparedQuery",
    "Progress",
    "PrunerError",
    "Report",
    "RewriteError",
    "Rewritten",
    "RowRanges",
    "Scan",
    "ScanPlan",
    "StoreError",
    "UnsupportedError",
    "__version__",
    "advise",
    "cache_info",
    "clear_cache",
    "col",
    "index",
    "load_cache",
    "lower_bound",
    "open",
    "param",
    "read_table",
    "register_pruner",
    "resize_cache",
    "rewrite",
    "save_cache",
    "scan",
    "spark",
    "unregister_pruner",
    "upper_bound",
]

# reading needs none of them: modules, and functions and classes with their modules
_LATE = {
    "index": "", "spark": "", "advise": "advice.advising", "rewrite": "rewriting.rewrite", "Rewritten": "rewriting.rewritten",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    """Modules, functions and classes of _LATE are imported when they are first used."""
    if name not in _LATE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if not _LATE[name]:
        return importlib.import_module(f"pageseek.{name}")
    found = getattr(importlib.import_module(f"pageseek.{_LATE[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    """The public names. Folders such as `pageseek.scan` are left out: they have to be imported."""
    return sorted(__all__)
