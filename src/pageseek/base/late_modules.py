"""Modules that few reads need: those of others, and rooms above. They are imported when one of their names is first used.

`pyarrow.compute` makes some hundred functions when it is imported, and `pyarrow.fs` loads the clients of all stores:
they take as long as a hundred lookups in a process that has imported them.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import TYPE_CHECKING, Any, NoReturn

__all__ = [
    "above",
    "compute",
    "dataclasses",
    "fractions",
    "fs",
    "handed_on",
    "hashlib",
    "is_instance",
    "json",
    "names_of_others",
    "npt",
]

# Methods of objects whose work is done by rooms above: the only place where a room names one above it.
ABOVE = {
    "Advice._repr_html_": ("advice.advice_html", "render"),
    "Attached._repr_html_": ("index.results_html", "attached"),
    "AttachedFiles._repr_html_": ("index.results_html", "attached_files"),
    "ParquetFile.__repr__": ("format.file_html", "line"),
    "ParquetFile._repr_html_": ("format.file_html", "render"),
    "ParquetFile.plot": ("pictures", "of_file"),
    "Listed._repr_html_": ("index.results_html", "listed"),
    "Report.__str__": ("base.report_text", "render"),
    "Report._repr_html_": ("base.report_html", "render"),
    "Report.plot": ("pictures", "of_report"),
    "Rewritten._repr_html_": ("rewriting.rewritten_html", "render"),
    "Scan._repr_html_": ("scanning.queries.scan_html", "render"),
    "Scan.prepare": ("scanning.queries.prepared", "PreparedQuery"),
    "Scan.to_duckdb": ("scanning.queries.results", "to_duckdb"),
    "Scan.to_pandas": ("scanning.queries.results", "to_pandas"),
    "Scan.to_polars": ("scanning.queries.results", "to_polars"),
    "Scan.to_pylist": ("scanning.queries.results", "to_pylist"),
    "Scan.write_parquet": ("rewriting.written_scan", "write"),
    "ScanPlan.__repr__": ("scanning.plans.plan_html", "line"),
    "ScanPlan._repr_html_": ("scanning.plans.plan_html", "render"),
    "Verified._repr_html_": ("index.results_html", "verified"),
    "delete_files.read": ("scanning.queries.execution", "Execution"),  # a scan within a scan
}


class _LateModule(ModuleType):
    def __getattr__(self, name: str) -> Any:
        found = getattr(importlib.import_module(self.__name__), name)
        setattr(self, name, found)  # from now on as quick as in the module itself
        return found


if TYPE_CHECKING:
    import dataclasses
    import fractions
    import hashlib
    import json

    import numpy.typing as npt
    from pyarrow import compute, fs
else:
    compute = _LateModule("pyarrow.compute")
    # it imports `inspect`: a fifth of the time of `pageseek --version`
    dataclasses = _LateModule("dataclasses")
    fractions = _LateModule("fractions")
    fs = _LateModule("pyarrow.fs")
    hashlib = _LateModule("hashlib")
    json = _LateModule("json")
    npt = _LateModule("numpy.typing")


def above(method: str) -> Any:
    """The function of a room above that does the work of a method (`ABOVE`)."""
    module, name = ABOVE[method]
    return getattr(importlib.import_module(f"pageseek.{module}"), name)


def handed_on(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """The `__getattr__` of a package that hands on names of its files. `homes`: the file of each, `file:name` where it has another
    name there.

    A package must not import its files when it is imported. To import a file, Python locks it first and its package then. A thread
    that imports the package has locked the package, and would wait for the file.
    """

    def find(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        file, _, there = homes[name].partition(":")
        found = getattr(importlib.import_module(f"{package}.{file}"), there or name)
        setattr(sys.modules[package], name, found)  # from now on it is found without this
        return found

    return find


def names_of_others(owner: str) -> Callable[[Any, str], NoReturn]:
    """The `__getattr__` of a class: names of other libraries are refused with what to write instead (`other_names`)."""

    def refuse(self: Any, name: str) -> NoReturn:
        from pageseek.base.other_names import no_such_name

        raise no_such_name(owner, name, dir(type(self)))

    return refuse


def is_instance(value: object, module: ModuleType, name: str) -> bool:
    """Whether a value is an instance of a class of a late module. Before others import it, no value is."""
    return module.__name__ in sys.modules and isinstance(value, getattr(module, name))
