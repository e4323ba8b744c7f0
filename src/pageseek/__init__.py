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
from pageseek.scan.prepared import PreparedQuery
from pageseek.scan.scan_plan import ScanPlan

if TYPE_CHECKING:
    from pageseek import index as index
    from pageseek import spark as spark
    from pageseek.advice.advising import advise as advise

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
    "save_cache",
    "scan",
    "spark",
    "unregister_pruner",
    "upper_bound",
]

_LATE = ("index", "spark")  # reading needs neither


def __getattr__(name: str) -> Any:
    """`pageseek.index`, `pageseek.spark` and `advise` are imported when they are first used."""
    if name == "advise":
        return importlib.import_module("pageseek.advice.advising").advise
    if name in _LATE:
        return importlib.import_module(f"pageseek.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """The public names. Folders such as `pageseek.scan` are left out: they have to be imported."""
    return sorted(__all__)
