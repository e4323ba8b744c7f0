"""Errors of pageseek. Each names the file, the place and, where there is one, the remedy."""

from __future__ import annotations

from typing import Any


class PageseekError(Exception):
    """Base of every error that pageseek raises on its own account."""


class CorruptFileError(PageseekError):
    """The bytes of a file contradict the format or one another."""


class UnsupportedError(PageseekError):
    """The file or the request is legal, but pageseek does not support it."""


class LimitError(PageseekError):
    """A size goes beyond a limit or beyond memory."""


class FileChangedError(PageseekError):
    """A file is no longer the version that was opened or planned."""


class StoreError(PageseekError, OSError):
    """A store did not answer after all tries, or answered with something else. A missing file is a FileNotFoundError, as the
    operating system raises it.
    """


class AccessDeniedError(PageseekError, PermissionError):
    """A store does not let the caller in, or no credentials were found. Local files that may not be read raise the
    PermissionError of the operating system.
    """


class MissingPackageError(PageseekError, ImportError):
    """Another package is needed for this, and is not installed. The message has the command that installs it."""


class PredicateError(PageseekError, ValueError):
    """A filter does not fit the columns that it names.

    Attributes
    ----------
    at : int or None
        The character at fault in a filter in SQL, to which the message points; else None.
    """

    at: int | None = None


class NoColumnError(PredicateError):
    """A file has no column of a name. In a dataset whose other files have it, its values are null.

    `offer`: the names that there are; its text is made when the error is shown.
    """

    def __init__(self, text: str = "", offer: object = None) -> None:
        super().__init__(text)
        self._offer = offer

    def __str__(self) -> str:
        text = super().__str__()
        return text if self._offer is None else f"{text}; {self._offer}"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self),), {"at": self.at}


class PrunerError(PageseekError):
    """A registered pruner raised an error, or gave an impossible answer."""


class KindError(PageseekError):
    """A registered kind of index raised an error while an index was built or verified."""


class RewriteError(PageseekError):
    """A rewritten file is not what was read. It was deleted, and the source is as it was."""


class InvalidIndexError(Exception):
    """An index contradicts its format, or itself: it proves nothing. Whoever reads it catches this."""


class CoreError(PageseekError):
    """A kernel refused its input. For input from a file, an error that names the place is raised instead.

    Attributes
    ----------
    status : int
        ps_status of pageseek.h: 1 truncated, 2 corrupt, 3 limit, 4 unsupported, 5 out of memory, 6 invalid argument.
    offset : int or None
        Byte at fault, counted from the start of the buffer; None where none is.
    message : str
        One sentence without a full stop.
    """

    def __init__(self, status: int, offset: int | None, message: str) -> None:
        super().__init__(status, offset, message)  # all three, so that it can be pickled
        self.status = status
        self.offset = offset
        self.message = message

    def __str__(self) -> str:
        return self.message if self.offset is None else f"{self.message} (byte {self.offset})"


CORRUPT, LIMIT, UNSUPPORTED, NO_MEMORY = 2, 3, 4, 5  # ps_status of pageseek.h
LESS_AT_A_TIME = "; read fewer columns or rows at a time, by to_batches(), or with fewer threads"
_STATUS: dict[int, type[PageseekError]] = {
    1: CorruptFileError,
    2: CorruptFileError,
    3: LimitError,
    4: UnsupportedError,
    NO_MEMORY: LimitError,
}


def from_core(error: CoreError, where: str, base: int | None = None) -> PageseekError:
    """The public error for an error of a kernel. `base`: the offset in the file of the kernel's byte 0."""
    kind = _STATUS.get(error.status, PageseekError)
    byte = "" if error.offset is None or base is None else f" at byte {base + error.offset}"
    remedy = LESS_AT_A_TIME if error.status == NO_MEMORY else ""
    return kind(f"{where}{byte}: {error.message}{remedy}")


class placed:  # noqa: N801 - a context manager, as a class since that is quicker than a generator
    """Add the place to errors that kernels raise in the block."""

    __slots__ = ("_where",)

    def __init__(self, where: str) -> None:
        self._where = where

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, CoreError):
            raise from_core(error, self._where) from error
