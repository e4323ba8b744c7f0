"""Page bodies decompressed: one function a codec, each yielding exactly the bytes that the page declares.

Source: Compression.md.
"""

from __future__ import annotations

import functools
import zlib
from collections.abc import Callable

import pyarrow as pa

from pageseek._core import decode as core
from pageseek.errors import CorruptFileError, LimitError, UnsupportedError, from_core
from pageseek.metadata import CODECS

Decompress = Callable[[memoryview, int, str], "memoryview | pa.Buffer | core.Block | bytes"]


def _own(codec: str, data: memoryview, size: int, where: str) -> core.Block:
    try:
        return core.decompress(codec, data, size)
    except core.CoreError as error:
        raise from_core(error, f"{where}: {codec}") from error


def _uncompressed(data: memoryview, size: int, where: str) -> memoryview:
    if data.nbytes != size:
        raise CorruptFileError(f"{where}: the page declares {size} bytes and has {data.nbytes}")
    return data


@functools.cache
def _codec(name: str) -> pa.Codec:
    return pa.Codec(name)


def _zstd(data: memoryview, size: int, where: str) -> pa.Buffer:
    if size > data.nbytes * 40_000 + 1024:  # a repeated-byte block of 128 KiB takes four bytes
        raise CorruptFileError(f"{where}: {data.nbytes} zstd bytes cannot hold {size}")
    try:
        out = _codec("zstd").decompress(data, size)
    except MemoryError as error:
        raise LimitError(f"{where}: no memory for {size} bytes") from error
    except (OSError, ValueError, pa.ArrowException) as error:
        raise CorruptFileError(f"{where}: zstd: {error}") from error
    if len(out) != size:
        raise CorruptFileError(f"{where}: the page declares {size} bytes, zstd holds {len(out)}")
    return out


def _gzip(data: memoryview, size: int, where: str) -> bytes:
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
                raise CorruptFileError(f"{where}: gzip holds more than the {size} bytes that the page declares")
            if not member.eof:
                raise CorruptFileError(f"{where}: gzip ends after {have} of {size} bytes")
            rest = member.unused_data
    except zlib.error as error:
        raise CorruptFileError(f"{where}: gzip: {error}") from error
    if have != size:
        raise CorruptFileError(f"{where}: the page declares {size} bytes, gzip holds {have}")
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _brotli(data: memoryview, size: int, where: str) -> bytes:
    try:
        with pa.CompressedInputStream(pa.BufferReader(data), "brotli") as stream:
            out: bytes = stream.read(size + 1)
    except MemoryError as error:
        raise LimitError(f"{where}: no memory for {size} bytes") from error
    except (OSError, ValueError, pa.ArrowException) as error:
        raise CorruptFileError(f"{where}: brotli: {error}") from error
    if len(out) != size:
        raise CorruptFileError(f"{where}: the page declares {size} bytes, brotli holds {len(out)} or more")
    return out


_BY_NAME: dict[str, Decompress] = {
    "uncompressed": _uncompressed,
    "snappy": functools.partial(_own, "snappy"),
    "lz4": functools.partial(_own, "lz4"),
    "lz4_raw": functools.partial(_own, "lz4_raw"),
    "gzip": _gzip,
    "brotli": _brotli,
    "zstd": _zstd,
}


def decompressor(codec: int, where: str) -> Decompress:
    """The function for a CompressionCodec of parquet.thrift."""
    name = CODECS[codec] if 0 <= codec < len(CODECS) else str(codec)
    found = _BY_NAME.get(name)
    if found is None:
        raise UnsupportedError(f"{where}: compression codec {name} is not supported")
    return found
