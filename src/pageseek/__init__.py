"""pageseek reads from Apache Parquet files exactly what an answer needs."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pageseek import aio as aio
    from pageseek import index as index
    from pageseek import polars as polars
    from pageseek import spark as spark
    from pageseek._core.decode import LeafDecoder
    from pageseek._core.rows import RowRanges
    from pageseek.advice.advising import advise
    from pageseek.api import (
        CacheInfo,
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
        AccessDeniedError,
        CorruptFileError,
        FileChangedError,
        KindError,
        LimitError,
        MissingPackageError,
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
    from pageseek.engines.arrow_dataset import dataset
    from pageseek.format.parquet_file import ParquetFile
    from pageseek.predicate.expression import Column, Expression, col
    from pageseek.predicate.parameters import param
    from pageseek.predicate.search import lower_bound, upper_bound
    from pageseek.prune.registry import register_pruner, unregister_pruner
    from pageseek.rewriting.rewrite import rewrite
    from pageseek.rewriting.rewritten import Rewritten
    from pageseek.scanning.plans.scan_plan import ScanPlan
    from pageseek.scanning.queries.prepared import PreparedQuery

__all__ = [
    "AccessDeniedError",
    "CacheInfo",
    "Column",
    "CorruptFileError",
    "Expression",
    "FileChangedError",
    "KindError",
    "LeafDecoder",
    "LimitError",
    "MissingPackageError",
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
    "aio",
    "cache_info",
    "clear_cache",
    "col",
    "dataset",
    "index",
    "load_cache",
    "lower_bound",
    "open",
    "param",
    "polars",
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

# Where each name is defined. A name is imported when it is first used: importing pageseek alone loads nothing else.
_ROOMS = {
    "_core.decode": ("LeafDecoder",),
    "_core.rows": ("RowRanges",),
    "advice.advising": ("advise",),
    "api": (
        "CacheInfo", "Scan", "cache_info", "clear_cache", "load_cache", "open", "read_table",
        "resize_cache", "save_cache", "scan",
    ),
    "base.errors": (
        "AccessDeniedError", "CorruptFileError", "FileChangedError", "KindError", "LimitError", "MissingPackageError",
        "PageseekError", "PredicateError", "PrunerError", "RewriteError", "StoreError", "UnsupportedError",
    ),
    "base.progress": ("Progress",),
    "base.report": ("Report",),
    "base.version": ("__version__",),
    "engines.arrow_dataset": ("dataset",),
    "format.parquet_file": ("ParquetFile",),
    "predicate.expression": ("Column", "Expression", "col"),
    "predicate.parameters": ("param",),
    "predicate.search": ("lower_bound", "upper_bound"),
    "prune.registry": ("register_pruner", "unregister_pruner"),
    "rewriting.rewrite": ("rewrite",),
    "rewriting.rewritten": ("Rewritten",),
    "scanning.queries.prepared": ("PreparedQuery",),
    "scanning.plans.scan_plan": ("ScanPlan",),
}  # fmt: skip
_WHERE = {name: room for room, names in _ROOMS.items() for name in names}


if not TYPE_CHECKING:  # type checkers would take any name

    def __getattr__(name: str) -> Any:
        """Import what is used for the first time."""
        if name in ("aio", "index", "polars", "spark"):
            return importlib.import_module(f"pageseek.{name}")
        if name not in _WHERE:
            from pageseek.base.other_names import no_such_name

            raise no_such_name("pageseek", name, __all__)
        module = importlib.import_module(f"pageseek.{_WHERE[name]}")
        found = globals()[name] = getattr(module, "open_file" if name == "open" else name)
        return found


def __dir__() -> list[str]:
    """The public names. Folders such as `pageseek.scanning` are left out: they have to be imported."""
    return sorted(__all__)
