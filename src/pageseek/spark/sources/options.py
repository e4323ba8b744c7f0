"""Options as text, as `spark.read.format("pageseek").option(...)` and SQL take them, and the sources that they name."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from pageseek.base.errors import UnsupportedError
from pageseek.base.suggest import offered

_FILE = re.compile("^file:/+")
_TRUTH = {"true": True, "false": False}


@dataclass(frozen=True)
class TextOptions:
    """What the options of a table say.

    Attributes
    ----------
    source : str or list of str
        What is read.
    table : dict
        Options of `load` itself: local, native, tasks, python_path, columns, filter.
    scan : dict
        Options of `pageseek.scan`.
    other : dict of str
        Those in `others`, as text.
    """

    source: str | list[str]
    table: dict[str, Any] = field(default_factory=dict)
    scan: dict[str, Any] = field(default_factory=dict)
    other: dict[str, str] = field(default_factory=dict)


def parsed(given: Mapping[str, str], others: tuple[str, ...] = ()) -> TextOptions:
    """What options say. Their names are those of `load`, in any case.

    Parameters
    ----------
    given : mapping of str to str
        With `path`, or `paths`, a JSON list.
    others : tuple of str
        Further names, whose values remain text.

    Raises
    ------
    UnsupportedError
        An option does not exist, or its value is not one of it.
    """
    sources: list[str] = []
    table: dict[str, Any] = {}
    scan: dict[str, Any] = {}
    other: dict[str, str] = {}
    for name, text in given.items():
        key = name.lower()
        if key == "path":
            sources.insert(0, _local(text))
        elif key == "paths":
            sources += map(_local, _list(text))
        elif key in _SPARKS or key.startswith("option."):
            continue
        elif key in others:
            other[key] = text
        elif key in _TABLE:
            table[key] = _value(key, text, _TABLE[key])
        elif key in _SCAN:
            scan[key] = _value(key, text, _SCAN[key])
        else:
            known = ["path", "paths", *_TABLE, *_SCAN, *others]
            instead = _OF_PARQUET.get(key) or offered(key, known)
            raise UnsupportedError(f"option {name!r} does not exist: {instead}")
    if not sources:
        raise UnsupportedError(
            "no path: name one in load(...), or as the option `path`. Over Connect, tables do not hand theirs on: make a temporary view"
        )
    return TextOptions(sources[0] if len(sources) == 1 else sources, table, scan, other)


def check_names(options: Mapping[str, Any]) -> None:
    """Refuse options of Spark's own reader, and say what there is instead."""
    for name in options:
        instead = _OF_PARQUET.get(name.lower())
        if instead is not None:
            raise UnsupportedError(f"option {name!r} does not exist: {instead}")


def as_text(source: Any, options: Mapping[str, Any]) -> dict[str, str]:
    """Options of `load` as texts, which `parsed` understands; those that are None are left out.

    Raises
    ------
    UnsupportedError
        The source, or an option, has no text.
    """
    if isinstance(source, (str, os.PathLike)):
        made = {"path": os.fspath(source)}
    elif isinstance(source, (list, tuple)) and all(
        isinstance(one, (str, os.PathLike)) for one in source
    ):
        made = {"paths": json.dumps([os.fspath(one) for one in source])}
    else:
        raise UnsupportedError(
            f"a source of {type(source).__name__} cannot be sent to the server as text: use pageseek.spark.read, "
            "which plans in this process, and name columns and filter"
        )
    for name, value in options.items():
        if value is None:
            continue
        key = name.lower()
        if key not in _TABLE and key not in _SCAN:
            raise TypeError(f"{name} is no option of load")
        made[key] = _text(key, value)
    return made


def _local(path: str) -> str:
    """A path of this machine without the `file:` that Spark's catalog writes before it."""
    return _FILE.sub("/", path)


def _text(key: str, value: Any) -> str:
    if key == "partitioning" and not isinstance(value, bool):
        pairs = value if isinstance(value, pa.Schema) else dict(value).items()
        value = {
            n: str(t)
            for n, t in ((p.name, p.type) if isinstance(p, pa.Field) else p for p in pairs)
        }
    if isinstance(value, str):
        return value
    try:
        return json.dumps(list(value) if isinstance(value, (tuple, set, frozenset)) else value)
    except TypeError:
        raise UnsupportedError(
            f"{key}={value!r} cannot be sent to the server as text: use pageseek.spark.read, which plans in this process"
        ) from None


def _value(key: str, text: str, kind: Callable[[str], Any]) -> Any:
    try:
        return kind(text)
    except (ValueError, KeyError, TypeError) as error:
        raise UnsupportedError(f"option {key!r} cannot be {text!r}: {error}") from error


def _whole(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ValueError("an integer") from None


def _seconds(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError("a number of seconds") from None


def _bool(text: str) -> bool:
    if text.lower() not in _TRUTH:
        raise ValueError("true or false")
    return _TRUTH[text.lower()]


def _list(text: str) -> list[str]:
    """A JSON list of texts, or texts between commas."""
    if not text.lstrip().startswith("["):
        return [part.strip() for part in text.split(",") if part.strip()]
    made = json.loads(text)
    if not all(isinstance(one, str) for one in made):
        raise ValueError("a list of texts")
    return list(made)


def _object(text: str) -> dict[str, Any]:
    made = json.loads(text)
    if not isinstance(made, dict):
        raise ValueError('a JSON object, {"name": value}')
    return made


def _bool_or_list(text: str) -> bool | list[str]:
    return _TRUTH[text.lower()] if text.lower() in _TRUTH else _list(text)


def _types(text: str) -> bool | dict[str, pa.DataType]:
    if text.lower() == "false":
        return False
    return {name: pa.type_for_alias(kind) for name, kind in _object(text).items()}


def _number_or_text(text: str) -> int | str:
    return int(text) if text.isascii() and text.isdigit() else text


_TABLE: dict[str, Callable[[str], Any]] = {
    "local": _bool,
    "native": _bool,
    "tasks": _whole,
    "python_path": str,
    "columns": _list,
    "filter": str,
}
_SCAN: dict[str, Callable[[str], Any]] = {
    "nan": str,
    "int96_unit": str,
    "string_type": str,
    "dictionary_columns": _list,
    "out_of_range": str,
    "prune": _bool_or_list,
    "distinct_index": str,
    "batch_size": _whole,
    "threads": _whole,
    "max_ahead_bytes": _whole,
    "max_page_bytes": _whole,
    "max_output_bytes": _whole,
    "max_metadata_bytes": _whole,
    "partitioning": _types,
    "table": _bool,
    "version": _whole,
    "timestamp": str,
    "snapshot": _number_or_text,
    "storage_options": _object,
    "retries": _whole,
    "timeout": _seconds,
}
# What Spark itself adds for a table of its catalog
_SPARKS = frozenset(
    ("owner", "provider", "external", "is_managed_location", "table_type", "comment", "location")
)
# Options of Spark's own reader of Parquet, and what there is instead
_EVERY = "a file that is missing, or cannot be read, always fails the query"
_CHANGED = (
    "filter by _metadata.file_modification_time, which rules out files before they are opened"
)
_CALENDAR = "set spark.sql.parquet.{}RebaseModeInRead in the session"
_OF_PARQUET = {
    "mergeschema": "files that have other columns are always read together; what a file lacks is null",
    "recursivefilelookup": "folders are always read at any depth; partitioning=false makes no columns of their names",
    "pathglobfilter": "give a glob as the path, such as /lake/**/*.parquet",
    "basepath": "give the folder itself, or a glob: columns are the names of folders below its part without wildcards",
    "modifiedbefore": _CHANGED,
    "modifiedafter": _CHANGED,
    "ignorecorruptfiles": _EVERY,
    "ignoremissingfiles": _EVERY,
    "datetimerebasemode": _CALENDAR.format("datetime"),
    "int96rebasemode": _CALENDAR.format("int96"),
}
