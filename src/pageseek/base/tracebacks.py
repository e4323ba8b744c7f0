"""Short tracebacks: an error that pageseek raises on purpose shows one frame of pageseek, that of the public function.

Below a public function lie up to fifteen frames that say nothing to its caller. `short_traceback` leaves them out of errors that
are raised on purpose. All other errors are bugs, and keep the traceback that they would have without the decorator.
`PAGESEEK_TRACEBACK=full` in the environment keeps all tracebacks.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Generator
from functools import wraps
from types import CodeType, TracebackType
from typing import Any, TypeVar

from pageseek.base.errors import KindError, PageseekError, PrunerError

__all__ = ["short_traceback", "shorten"]

F = TypeVar("F", bound=Callable[..., Any])

VARIABLE = "PAGESEEK_TRACEBACK"  # in the environment
# Code between a public function and the place of an error. A frame of any other package is that of a caller's function.
_BELOW = frozenset({"pageseek", "pyarrow", *sys.stdlib_module_names})
_GENERATOR, _COROUTINE = 0x20, 0x80  # inspect.CO_GENERATOR, CO_COROUTINE; inspect is slow to import
# Places in bytecode are even: an odd one marks a traceback that was made here.
_MARK = 1


def short_traceback(function: F) -> F:
    """A public function whose errors have a short traceback: a plain function, a generator or a coroutine.

    Functions that call each other may all be decorated: the outermost one is shown.
    """
    inmost: Any = function
    while hasattr(inmost, "__wrapped__"):
        inmost = inmost.__wrapped__
    code: CodeType = inmost.__code__
    call: Any
    if code.co_flags & _COROUTINE:

        @wraps(function)
        async def call(*args: Any, **options: Any) -> Any:
            try:
                return await function(*args, **options)
            except Exception as error:
                _settle(error, code)
                raise

    elif code.co_flags & _GENERATOR:

        @wraps(function)
        def call(*args: Any, **options: Any) -> Any:
            return _each(function(*args, **options), code)

    else:

        @wraps(function)
        def call(*args: Any, **options: Any) -> Any:
            try:
                return function(*args, **options)
            except Exception as error:
                _settle(error, code)
                raise  # adds no frame

    call.__kwdefaults__ = inmost.__kwdefaults__  # by which `scan` knows the names of its options
    made: F = call
    return made


def _each(made: Generator[Any, Any, Any], code: CodeType) -> Generator[Any, Any, Any]:
    try:
        return (yield from made)
    except Exception as error:
        _settle(error, code)
        raise


def _settle(error: Exception, code: CodeType) -> None:
    """Take the frame of the decorator out of a traceback, and shorten it. `code`: that of the public function."""
    trace = error.__traceback__
    error.__traceback__ = None if trace is None else trace.tb_next
    shorten(error, code)


def shorten(error: Exception, code: CodeType | None = None) -> None:
    """Shorten the traceback of an error that a public function has caught, and will raise again.

    The error remains the same object. Tracebacks are not changed but replaced, since others may refer to them.

    Parameters
    ----------
    error : Exception
    code : CodeType, optional
        That of the public function; the first frame is shown unless given.
    """
    trace = shown = error.__traceback__
    if trace is None or os.environ.get(VARIABLE) == "full" or not _is_on_purpose(error, trace):
        return
    while shown is not None and code is not None and shown.tb_frame.f_code is not code:
        shown = shown.tb_next
    shown = shown or trace
    place = shown.tb_lasti | _MARK
    error.__traceback__ = TracebackType(None, shown.tb_frame, place, shown.tb_lineno)
    _hide_causes(error)


def _is_on_purpose(error: Exception, trace: TracebackType) -> bool:
    """Whether pageseek raised the error by a statement, or the operating system did; no function of the caller took part.

    KeyError, TypeError and others that the interpreter or numpy raises by itself are bugs, as are failed assertions.
    """
    if isinstance(
        error, (StopIteration, StopAsyncIteration, AssertionError, NotImplementedError)
    ) or _first_outside(trace):
        return False
    last = _last(trace)
    if last.tb_lasti > 0 and last.tb_lasti & _MARK:
        return True  # shortened by a public function that this one called
    return isinstance(error, (PageseekError, OSError)) or _is_raised_by_us(last)


def _is_raised_by_us(trace: TracebackType) -> bool:
    """Whether the frame is at a `raise` of pageseek."""
    from opcode import opmap  # late: only errors need it

    code, at = trace.tb_frame.f_code.co_code, trace.tb_lasti
    return (
        _package(trace) == "pageseek" and 0 <= at < len(code) and code[at] == opmap["RAISE_VARARGS"]
    )


def _hide_causes(error: Exception) -> None:
    """Show only those causes of an error that say more than its message, and without frames of pageseek.

    A cause that is not shown remains the `__context__`. What the caller was handling when it called pageseek stays as it is.
    """
    shown: BaseException = error
    seen = {id(error)}
    while (cause := _cause(shown)) is not None:
        first, hidden = cause, False
        while cause is not None and _is_ours(cause) and not _adds(cause, shown):
            if id(cause) in seen:
                return
            seen.add(id(cause))
            cause, hidden = _cause(cause), True
        if hidden:
            shown.__context__ = first if cause is None else cause
            shown.__cause__ = None
            shown.__suppress_context__ = cause is None
        if cause is None or not _is_ours(cause) or id(cause) in seen:
            return
        seen.add(id(cause))
        cause.__traceback__ = _first_outside(cause.__traceback__)
        shown = cause


def _cause(error: BaseException) -> BaseException | None:
    """The error that is shown above another one."""
    if error.__cause__ is not None or error.__suppress_context__:
        return error.__cause__
    return error.__context__


def _is_ours(cause: BaseException) -> bool:
    """Whether an error was caught by pageseek, and not by its caller."""
    trace = cause.__traceback__
    return trace is None or _package(trace) in _BELOW


def _adds(cause: BaseException, error: BaseException) -> bool:
    """Whether a cause is of others, and says what the message of the error does not."""
    if isinstance(error, (PrunerError, KindError)):
        return True  # the traceback leads to the code of the caller
    if isinstance(cause, PageseekError) or str(cause) in str(error):
        return False
    if isinstance(cause, OSError):
        return True
    trace = cause.__traceback__
    if trace is not None and _package(_last(trace)) != "pageseek":
        return True
    return type(cause).__module__.partition(".")[0] not in ("builtins", "pageseek")


def _first_outside(trace: TracebackType | None) -> TracebackType | None:
    """The traceback from the first frame on that is no frame of pageseek or of what it is built upon."""
    while trace is not None and _package(trace) in _BELOW:
        trace = trace.tb_next
    return trace


def _last(trace: TracebackType) -> TracebackType:
    while trace.tb_next is not None:
        trace = trace.tb_next
    return trace


def _package(trace: TracebackType) -> str:
    """The package that has the code of a frame."""
    return str(trace.tb_frame.f_globals.get("__name__", "")).partition(".")[0]
