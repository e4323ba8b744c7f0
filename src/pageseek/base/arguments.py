"""Arguments that callers give, checked. An error names the argument, its value and what is wanted."""

from __future__ import annotations

import operator
import os
from collections.abc import Mapping
from typing import Any


def whole(name: str, value: Any) -> int:
    """An integer that a caller gave under a name; TypeError where it is none."""
    if isinstance(value, bool):  # an int to Python, and never a number that was meant
        raise TypeError(f"{name}={value!r}: an integer")
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(f"{name}={shown(value)}: an integer") from None


def seconds(name: str, value: Any) -> float:
    """A number of seconds."""
    try:
        if not isinstance(value, (bool, str, bytes)):
            return float(value)
    except (TypeError, ValueError, OverflowError):
        pass
    raise TypeError(f"{name}={shown(value)}: a number of seconds") from None


def check_flag(name: str, value: Any) -> None:
    """TypeError unless the value is True or False, also of numpy."""
    if isinstance(value, bool) or type(value).__name__ in ("bool", "bool_"):
        return
    raise TypeError(f"{name}={shown(value)}: True or False")


def check_progress(value: Any) -> None:
    """TypeError unless `progress` is True, False or a function."""
    if not isinstance(value, bool) and not callable(value):
        raise TypeError(
            f"progress={shown(value)}: True, False, or a function that takes a pageseek.Progress"
        )


def check_storage_options(value: Any) -> None:
    """TypeError unless `storage_options` is a mapping or None."""
    if value is not None and not isinstance(value, Mapping):
        # without the value, which may be a secret
        raise TypeError(
            f"storage_options={type(value).__name__}: a dict of the names and values of options"
        )


def check_column(name: str, value: Any) -> None:
    """TypeError unless the value is the name of a column, or None."""
    if value is not None and not isinstance(value, str):
        raise TypeError(f"{name}={shown(value)}: the name of one column")


def number_of_threads(value: Any) -> int | None:
    """`threads`: a positive number, or None."""
    if value is not None and (value := whole("threads", value)) < 1:
        raise ValueError(f"threads={value}: at least 1")
    made: int | None = value
    return made


def local_path(name: str, value: Any) -> str:
    """The path of a local file."""
    try:
        return os.fsdecode(value)
    except TypeError:
        raise TypeError(f"{name}={shown(value)}: a path") from None


def refuse_others(given: Mapping[str, Any], function: Any, name: str, writes: bool = False) -> None:
    """TypeError for an option that a function does not have. `name`: its public name. `writes`: it writes a file."""
    if given:
        from pageseek.base.habits import refuse  # late: no right call needs it

        options = function.__kwdefaults__ or {}
        refuse(given, [one for one in options if one not in given], name, writes)


def shown(value: Any) -> str:
    """A value for a message: whole if it is short, else its type."""
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001 - the value is a caller's, and may have any repr
        return type(value).__name__
    return text if len(text) <= 80 else type(value).__name__
