"""Functions that Spark ships to an executor, where they call the pageseek that is installed there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa

from pageseek.base.errors import PageseekError
from pageseek.base.version import __version__

Task = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def shipped(module: str, name: str, python_path: str | None, *arguments: Any) -> Task:
    """A function for `mapInArrow` that calls the function `name` of `module` with its batches, the version that the driver has, and the
    arguments.

    It is shipped by value: an executor that cannot import pageseek says so in a sentence of ours. The arguments are therefore
    bytes, numbers and tuples of them, which need no pageseek to be unpickled.
    """
    version = __version__

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import importlib
        import sys

        if python_path is not None and python_path not in sys.path:
            sys.path.insert(0, python_path)
        try:
            found = importlib.import_module(module)
        except ImportError as error:
            raise ImportError(
                f"this executor's Python, {sys.executable}, cannot import pageseek ({error}): install pageseek "
                "on every node, or ship an environment that has it and name its Python in PYSPARK_PYTHON"
            ) from error
        yield from getattr(found, name)(batches, version, *arguments)

    return task


def check_version(version: str) -> None:
    """Refuse to run what another version has planned.

    Raises
    ------
    PageseekError
        The driver has another version of pageseek.
    """
    if version != __version__:
        raise PageseekError(
            f"the driver has pageseek {version}, this executor {__version__}: install the same on both"
        )
