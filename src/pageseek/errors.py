"""Errors of pageseek: each says the file, the place and, where there is one, the remedy."""

from __future__ import annotations

from typing import Protocol

__all__ = [
    "CorruptFileError",
    "FileChangedError",
    "LimitError",
    "PageseekError",
    "PredicateError",
    "UnsupportedError",
    "from_core",
]


class PageseekError(Exception):
    """Base of every error that pageseek raises on its own account."""


class CorruptFileError(PageseekError):
    """The bytes of a file contradict the format or one another."""


class UnsupportedError(PageseekError):
    """The file or the request is legal, and pageseek cannot do it (yet)."""


class LimitError(PageseekError):
    """A size goes beyond a limit or beyond memory."""


class FileChangedError(PageseekError):
    """A file is no longer the version that was opened or planned."""


class PredicateError(PageseekError, ValueError):
    """A filter does not fit the columns that it names."""


class _Core(Protocol):
    status: int
    offset: int | None
    message: str


_STATUS: dict[int, type[PageseekError]] = {
    1: CorruptFileError,
    2: CorruptFileError,
    3: LimitError,
    4: UnsupportedError,
    5: LimitError,
}


def from_core(error: _Core, where: str, base: int | None = None) -> PageseekError:
    """The public error for a kernel's; `base` is the place in the file of the kernel's byte 0."""
    kind = _STATUS.get(error.status, PageseekError)
    byte = "" if error.offset is None or base is None else f" at byte {base + error.offset}"
    return kind(f"{where}{byte}: {error.message}")
