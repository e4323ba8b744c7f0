"""Page bodies decompressed: one function for each codec, which returns exactly the bytes that the page declares.

Failures are CoreError, as those of the kernels, so that the caller adds file, column and page once.
Source: Compression.md.
"""

from __future__ import annotations

import functools
import importlib
import sys
import threading
import zlib
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from pageseek._core import codecs as core
from pageseek._core.memory import Block
from pageseek.base.errors import CORRUPT, LIMIT, UNSUPPORTED, CoreError
from pageseek.format.chunks import CODECS

Decompress = Callable[[memoryview, int], "pa.Buffer | bytes"]


def _corrupt(message: str) -> CoreError:
    return CoreError(CORRUPT, None, message)


def _no_memory(size: int) -> CoreError:
    return CoreError(LIMIT, None, f"no memory for {size} bytes")


@functools.cache
def _codec(name: str) -> pa.Codec:
    return pa.Codec(name)


@functools.cache
def _zstandard() -> Any:
    """The package that decompresses where the system has no libzstd."""
    return importlib.import_module("zstandard")


def _addresses(names: tuple[str, ...], functions: tuple[str, ...]) -> tuple[Any, list[int]] | None:
    """The first of these libraries that the system has, and the addresses of functions in it; None without one."""
    for name in names:
        try:
            ctypes = importlib.import_module("ctypes")  # a Python may have been built without
            library = ctypes.CDLL(name)
            found = [ctypes.cast(library[one], ctypes.c_void_p).value or 0 for one in functions]
        except (OSError, AttributeError, ImportError):
            continue
        if all(found):
            return library, found
    return None


_FUNCTIONS = (
    "createDCtx", "freeDCtx", "DCtx_reset", "decompressDCtx", "decompressStream",
    "getFrameContentSize", "findFrameCompressedSize", "isError", "DCtx_setParameter",
)  # fmt: skip


def _libzstd() -> tuple[int, ...] | None:
    """The addresses of the functions of the system's libzstd, which the core calls; None without that library.

    Most Linux systems have it for their package managers. On others zstandard is called from Python for each page.
    """
    names = ("libzstd.so.1", "libzstd.1.dylib")
    found = _addresses(names, tuple(f"ZSTD_{one}" for one in (*_FUNCTIONS, "versionNumber")))
    if found is None:
        return None
    library, addresses = found
    version = library.ZSTD_versionNumber()
    if version < 10400:  # 1.4.0
        return None
    if not 10405 <= version < 10600:  # parameters may have another meaning
        addresses[_FUNCTIONS.index("DCtx_setParameter")] = 0
    return tuple(addresses[:-1])


def _library(names: tuple[str, ...], *functions: str) -> tuple[int, ...] | None:
    """The addresses of functions of a library of the system, whose versions all have the same. None without it: Python
    decompresses each page then.
    """
    found = _addresses(names, functions)
    return None if found is None else tuple(found[1])


LIBZSTD = _libzstd()
ZLIB = _library(
    ("libz.so.1", "libz.1.dylib"), "inflateInit2_", "inflate", "inflateReset", "inflateEnd"
)
LIBBROTLI = _library(
    ("libbrotlidec.so.1", "libbrotlidec.1.dylib"), "BrotliDecoderCreateInstance",
    "BrotliDecoderDestroyInstance", "BrotliDecoderDecompressStream",
)  # fmt: skip
core.use_zstd(LIBZSTD)
core.use_zlib(ZLIB)
core.use_brotli(LIBBROTLI)


class _Contexts(threading.local):
    """Decompression contexts of one thread: a context serves one at a time. Each is made when it is first used."""

    @functools.cached_property
    def zstd(self) -> Any:
        return _zstandard().ZstdDecompressor().decompress

    @functools.cached_property
    def stream(self) -> Any:
        return _zstandard().ZstdDecompressor().stream_reader


# zstandard keeps a decompression context; pyarrow makes one for every page. A free-threaded interpreter does not import it,
# as that would bring the interpreter's lock back.
_contexts = _Contexts() if getattr(sys, "_is_gil_enabled", lambda: True)() else None


def _zstd(data: memoryview, size: int) -> pa.Buffer | bytes:
    if size > data.nbytes * 40_000 + 1024:  # a repeated-byte block of 128 KiB takes four bytes
        raise _corrupt(f"{data.nbytes} zstd bytes cannot hold {size}")
    try:
        if _contexts is not None:
            try:  # -1: the frame does not say
                if _zstandard().frame_content_size(data) in (size, -1):
                    made: bytes = _contexts.zstd(data, size, False, False)  # nothing may follow it
                    if len(made) == size > 0:
                        return made
            except _zstandard().ZstdError:
                pass
        out = _codec("zstd").decompress(data, size)  # several frames, or a fault
    except MemoryError as error:
        raise _no_memory(size) from error
    except (OSError, ValueError, pa.ArrowException) as error:
        raise _corrupt(f"zstd: {error}") from error
    if len(out) != size:
        raise _corrupt(f"the page declares {size} bytes, zstd holds {len(out)}")
    return out


def _zstd_prefix(data: memoryview, size: int, out: Block) -> None:
    """Fill `out` with the first bytes of one zstd frame that says it holds `size`, block by block.

    A frame that does not state its size could make the decoder hold a window of any size.
    """
    if _contexts is None or size > data.nbytes * 40_000 + 1024:
        raise _corrupt("not to be read in part")
    try:
        if _zstandard().frame_content_size(data) == size and _contexts.stream(data).readinto(
            out
        ) == len(out):
            return
    except (_zstandard().ZstdError, MemoryError) as error:
        raise _corrupt(f"zstd: {error}") from error
    raise _corrupt("zstd ends early")


def _gzip(data: memoryview, size: int) -> bytes:
    parts: list[bytes] = []
    have = 0
    rest: bytes | memoryview = data
    try:
        while len(rest):  # members may follow one another
            member = zlib.decompressobj(wbits=47)
            part = member.decompress(rest, size - have + 1)
            have += len(part)
            parts.append(part)
            if have > size:
                raise _corrupt(f"gzip holds more than the {size} bytes that the page declares")
            if not member.eof:
                raise _corrupt(f"gzip ends after {have} of {size} bytes")
            rest = member.unused_data
    except zlib.error as error:
        raise _corrupt(f"gzip: {error}") from error
    if have != size:
        raise _corrupt(f"the page declares {size} bytes, gzip holds {have}")
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _brotli(data: memoryview, size: int) -> bytes:
    try:
        with pa.CompressedInputStream(pa.BufferReader(data), "brotli") as stream:
            parts: list[bytes] = []
            left, step = size + 1, 1 << 20  # the declared size is not allocated at once
            while left and (part := stream.read(min(step, left))):
                parts.append(part)
                left, step = left - len(part), 2 * step
    except MemoryError as error:
        raise _no_memory(size) from error
    except (OSError, ValueError, pa.ArrowException) as error:
        raise _corrupt(f"brotli: {error}") from error
    out = parts[0] if len(parts) == 1 else b"".join(parts)
    if len(out) != size:
        raise _corrupt(f"the page declares {size} bytes, brotli holds {len(out)} or more")
    return out


OWN = ("uncompressed", "snappy", "lz4", "lz4_raw")  # decoded by the core
_BY_NAME: dict[str, Decompress] = {"gzip": _gzip, "brotli": _brotli, "zstd": _zstd}
ZSTD_BLOCK = 1 << 17  # the largest block (RFC 8878, 3.1.1.2.4): decoding can stop between blocks
Prefix = Callable[[memoryview, int, Block], None]


_PREFIX: dict[str, tuple[Prefix | None, int]] = {
    "zstd": (_zstd_prefix if _contexts is not None else None, ZSTD_BLOCK)
}


def prefix_of(codec: str) -> tuple[Prefix | None, int]:
    """A function that decodes only the first bytes of a page, None without one; and the bytes at which it can stop."""
    return _PREFIX.get(codec, (None, 1))


def decompressor(codec: int) -> tuple[str, Decompress | None]:
    """The name of a CompressionCodec of parquet.thrift, and its function unless the core decodes it."""
    name = CODECS[codec] if 0 <= codec < len(CODECS) else str(codec)
    found = _BY_NAME.get(name)
    if found is None and name not in OWN:
        raise CoreError(UNSUPPORTED, None, f"compression codec {name} is not supported")
    return name, found
