"""`python -m support.random_arguments LOG SEED SECONDS MEMORY`: calls all that the extension modules of pageseek._core have with wild
arguments: of the wrong type, at the ends of what a type holds, of the right shape and absurd, in any order.

Every call is written to LOG before it is made; the last line of a process that died names it. Any Exception will do for
an answer but SystemError, and one that Python could not raise. With the same SEED come the same calls.
"""

from __future__ import annotations

import faulthandler
import os
import resource
import sys
import threading
import time
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pageseek._core import decode, memory, page_tasks
from support.random_argument_data import (
    AGAIN,
    CHUNKS,
    CLASSES,
    FUNCTIONS,
    LOG,
    POOL,
    R,
    any_value,
    note,
    prepare,
)
from support.random_argument_shapes import SHAPES, of_decoder
from support.random_argument_values import damaged, selection

HANG = 60  # seconds that no call may take
made_calls: dict[
    str, list[int]
] = {}  # of each, how many came back, and how many of these with an answer


def target() -> tuple[str, Callable[..., Any]]:
    """Something to call, and its name."""
    kind = R.randrange(10)
    if kind < 4:
        module, name = R.choice(FUNCTIONS)
        return f"{module.__name__.rpartition('.')[2]}.{name}", getattr(module, name)
    if kind < 6 or not POOL:
        cls = R.choice(CLASSES)
        return f"{cls.__module__.rpartition('.')[2]}.{cls.__name__}", cls
    one = R.choice(POOL)
    cls = type(one)
    names = [n for n in dir(cls) if not n.startswith("__") or n in SPECIAL]
    plain = [n for n in names if n not in SPECIAL]
    name = R.choice(plain if plain and R.random() < 0.9 else names)
    home = next(base for base in cls.__mro__ if name in vars(base))
    if isinstance(
        vars(home)[name], (property, types.GetSetDescriptorType, types.MemberDescriptorType)
    ):
        return (
            f"{cls.__module__.rpartition('.')[2]}.{cls.__name__}.{name} (read)",
            lambda *_, **__: getattr(one, name),
        )
    return f"{cls.__module__.rpartition('.')[2]}.{cls.__name__}.{name}", getattr(one, name)


SPECIAL = {
    "__and__", "__or__", "__sub__", "__xor__", "__eq__", "__hash__", "__len__", "__iter__", "__contains__", "__bool__",
    "__repr__", "__reduce__", "__reduce_ex__", "__setstate_cython__", "__reduce_cython__", "__init__", "__buffer__",
}  # fmt: skip


def step() -> None:
    name, called = target()
    shape = SHAPES.get(name.replace("decode.LeafDecoder.head", "pages.PageReader.head"))
    arguments: Any = ()
    named: dict[str, Any] = {}
    if shape is not None and R.random() < 0.9:
        arguments = shape()
        if (
            len(arguments) == 2
            and isinstance(arguments[0], tuple)
            and isinstance(arguments[1], dict)
        ):
            arguments, named = arguments
        arguments = tuple(any_value() if R.random() < 0.04 else one for one in arguments)
        named = {key: any_value() if R.random() < 0.04 else one for key, one in named.items()}
    elif R.random() < 0.6:
        arguments = tuple(any_value() for _ in range(R.choice((0, 1, 1, 2, 3, 7))))
    if name in ("rows.RowRanges.rows", "rows.RowRanges.split"):
        found = getattr(called, "__self__", None)
        if found is not None and found.num_rows > 1 << 20:
            return
    call(name, called, arguments, named)


def call(
    name: str, called: Callable[..., Any], arguments: tuple[Any, ...], named: dict[str, Any]
) -> None:
    note(name, arguments, named)
    counts = made_calls.setdefault(name, [0, 0])
    try:
        result = called(*arguments, **named)
        counts[1] += 1
    except SystemError:
        raise
    except Exception as error:
        result = error
        str(error)
    counts[0] += 1
    use(result)


def use(result: Any) -> None:
    """Look at every byte of what came back, and keep some of it."""
    if isinstance(result, memory.Block):
        sum(bytes(memoryview(result))[:: 64 if len(result) > 1 << 16 else 1])
    if isinstance(result, (tuple, list)):
        for part in result[:10]:
            use(part)
    elif type(result) in CLASSES:
        POOL.append(result)
        if len(POOL) > 60:
            del POOL[R.randrange(len(POOL))]


def session() -> None:
    """A decoder, made and used as it should be, but for what now and then is not."""
    (core, max_def, max_rep, nesting_levels, codec), chunk, page, dictionary, n = R.choice(CHUNKS)
    arguments, how = (
        of_decoder()
        if R.random() < 0.2
        else ((core, max_def, max_rep), {"nesting_levels": nesting_levels, "codec": codec})
    )
    how["likely_rows"] = R.choice((0, 1, 7))
    note("decode.LeafDecoder", arguments, how)
    try:
        decoder = decode.LeafDecoder(*arguments, **how)
    except Exception:
        return
    POOL.append(decoder)
    place = 0
    for _ in range(R.randrange(4, 30)):
        kind = R.randrange(16)
        name, given = "begin", ()
        if kind <= 1:
            given = selection(), R.choice((1 << 40, 1, 5)), R.choice((0, 0, 1000))
        elif kind <= 4:
            name, given = "head", (damaged(chunk) if R.random() < 0.2 else chunk, place, -1)
        elif kind == 5:
            name, given = "head", (page, 0, n if not nesting_levels else -1)
        elif kind <= 8:
            name, given = "take", (R.choice((0, decoder.row)), True)
        elif kind == 9:
            name = "take_dictionary"
        elif kind == 10:
            name, given = "read_page", (page, 0, n, selection(), 0, dictionary)
        elif kind == 11:
            name = R.choice(("finish", "resume", "end", "release", "nesting_levels", "entries"))
        elif kind == 12:
            name = "finish"
        elif kind == 13:
            name, given = "head", (dictionary or page, 0, -1)
        elif kind == 14:
            step()
            continue
        else:
            pages = [(page, 0, n)] * R.choice((1, 1, 2, 3))
            one = decoder, pages, selection(), 0, dictionary, R.random() < 0.2
            call("page_tasks.read_pages", page_tasks.read_pages, ([one], 1), {})
            continue
        try:
            call(f"decode.LeafDecoder.{name}", getattr(decoder, name), given, {})
        finally:
            place = decoder.stop if name == "take" and 0 <= decoder.stop < len(chunk) else place
    if len(POOL) > 60:
        del POOL[R.randrange(len(POOL))]


def together(seconds: float) -> None:
    """Two threads that repeatedly use one decoder, and other objects."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        threads = [threading.Thread(target=steps, args=(20,)) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


failed: list[BaseException] = []


def steps(n: int) -> None:
    try:
        for _ in range(n):
            try:
                session() if R.random() < 0.1 else step()
            except MemoryError:  # of what this module makes
                POOL.clear()
    except BaseException as error:
        failed.append(error)


def main() -> None:
    """Half of the time alone, half of it side by side."""
    path, seed, seconds, limit = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4])
    LOG[0] = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND)
    faulthandler.enable()
    sys.unraisablehook = lambda args: failed.append(
        SystemError(f"unraisable: {args.exc_value!r} {args.object!r}")
    )
    prepare()
    AGAIN.append(step)
    if limit:
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + limit,) * 2)
    R.seed(seed)
    began, written = time.monotonic(), 0
    while time.monotonic() - began < seconds * 0.7:
        faulthandler.dump_traceback_later(HANG, exit=True)
        steps(50)
        if failed:
            raise failed[0]
        written = os.fstat(LOG[0]).st_size
        if written > 1 << 24:
            os.ftruncate(LOG[0], 0)
    faulthandler.dump_traceback_later(HANG + seconds, exit=True)
    together(seconds * 0.3)
    if failed:
        raise failed[0]
    for name in sorted(set(SHAPES) - set(made_calls)):
        sys.stdout.write(f"not called: {name}\n")
    for name, (came, answered) in sorted(made_calls.items()):
        sys.stdout.write(f"{name}: {came} calls, {answered} answers\n")


if __name__ == "__main__":
    main()
