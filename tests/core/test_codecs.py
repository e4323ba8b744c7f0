"""The codecs of the core against pyarrow's compressors and zlib."""

import random
import struct
import zlib

import pyarrow as pa
import pytest
import zstandard

from pageseek._core.codecs import crc32
from pageseek._core.codecs import decompress as core_decompress
from pageseek.base.errors import CoreError
from pageseek.format import codecs

SIZES = [1, 2, 7, 8, 15, 16, 17, 63, 64, 65, 255, 270, 1000, 4096]
BIG = 200_003  # several of Snappy's blocks of 64 KiB


def _patterns():
    rng = random.Random(20)
    words = [b"carefully", b"final", b"deposits", b"haggle", b"quick", b"ironic"]
    return {
        "zeros": lambda n: bytes(n),
        "random": rng.randbytes,
        "int64 sorted": lambda n: struct.pack(f"<{n // 8 + 1}q", *range(n // 8 + 1))[:n],
        "int64 small": lambda n: b"".join(
            rng.randrange(10**6).to_bytes(8, "little") for _ in range(n // 8 + 1)
        )[:n],
        "text": lambda n: b" ".join(rng.choice(words) for _ in range(n // 5 + 1))[:n],
        **{
            f"period {p}": lambda n, p=p: (rng.randbytes(p) * (n // p + 1))[:n]
            for p in range(2, 18)
        },
    }


PATTERNS = _patterns()
PEERS = {"snappy": "snappy", "lz4_raw": "lz4_raw", "lz4": "lz4_raw"}  # lz4: Hadoop, else raw


def compress(codec, plain):
    return pa.Codec(PEERS[codec]).compress(plain, asbytes=True)


def frame(*blocks):
    """One Hadoop frame of several blocks."""
    packed = [compress("lz4_raw", block) for block in blocks]
    head = struct.pack(">I", sum(map(len, blocks)))
    return head + b"".join(struct.pack(">I", len(block)) + block for block in packed)


def decompress(codec, data, size, exact=True):
    return bytes(core_decompress(codec, data, size, exact))


@pytest.mark.parametrize("codec", PEERS)
@pytest.mark.parametrize("pattern", PATTERNS)
def test_whole_block(codec, pattern):
    for size in [*SIZES, BIG]:
        plain = PATTERNS[pattern](size)
        assert decompress(codec, compress(codec, plain), size) == plain


@pytest.mark.parametrize("codec", PEERS)
@pytest.mark.parametrize("pattern", PATTERNS)
def test_every_prefix(codec, pattern):
    plain = PATTERNS[pattern](600)
    packed = compress(codec, plain)
    for size in range(len(plain) + 1):
        assert decompress(codec, packed, size, exact=False) == plain[:size]


@pytest.mark.parametrize("codec", PEERS)
@pytest.mark.parametrize("pattern", ["zeros", "text", "int64 small", "random", "period 3"])
def test_truncated_at_every_byte(codec, pattern):
    packed = compress(codec, PATTERNS[pattern](600))
    for cut in range(len(packed)):
        with pytest.raises(CoreError):
            decompress(codec, packed[:cut], 600)


@pytest.mark.parametrize("codec", PEERS)
def test_size_must_be_exact(codec):
    packed = compress(codec, PATTERNS["text"](600))
    for size in (0, 1, 599, 601, 10_000):
        with pytest.raises(CoreError):
            decompress(codec, packed, size)
    with pytest.raises(CoreError):
        decompress(codec, packed, 601, exact=False)


@pytest.mark.parametrize("codec", PEERS)
def test_byte_after_the_end(codec):
    packed = compress(codec, PATTERNS["text"](600))
    with pytest.raises(CoreError):
        decompress(codec, packed + b"\1", 600)


@pytest.mark.parametrize("codec", PEERS)
def test_empty_block(codec):
    assert decompress(codec, compress(codec, b""), 0) == b""


@pytest.mark.parametrize("codec", PEERS)
def test_damage_is_an_error_or_an_answer(codec):
    rng = random.Random(21)
    packed = compress(codec, PATTERNS["text"](600))
    for _ in range(2000):
        damaged = bytearray(packed)
        damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        try:
            assert len(decompress(codec, bytes(damaged), 600)) == 600
        except CoreError:
            pass


def test_hadoop_frames():
    a, b, c = (PATTERNS[name](n) for name, n in (("text", 700), ("zeros", 90), ("random", 300)))
    plain = a + b + c
    for frames in ([[plain]], [[a, b, c]], [[a], [b], [c]], [[a, b], [c]]):
        packed = b"".join(frame(*blocks) for blocks in frames)
        assert decompress("lz4", packed, len(plain)) == plain
        for size in range(0, len(plain), 7):
            assert decompress("lz4", packed, size, exact=False) == plain[:size]
        for cut in range(0, len(packed), 3):
            with pytest.raises(CoreError):
                decompress("lz4", packed[:cut], len(plain))


@pytest.mark.parametrize("size", [*range(300), BIG])
def test_crc32(size):
    data = PATTERNS["random"](size)
    assert crc32(data) == zlib.crc32(data)
    assert crc32(data, 0xDEADBEEF) == zlib.crc32(data, 0xDEADBEEF)


def test_crc32_in_parts():
    data = PATTERNS["random"](1000)
    for cut in range(0, 1001, 9):
        assert crc32(data[cut:], crc32(data[:cut])) == zlib.crc32(data)


@pytest.mark.parametrize("contexts", [True, False])  # without, as in free-threaded Python
def test_zstd_takes_frames_of_every_kind_and_nothing_else(contexts, monkeypatch):
    if not contexts:
        monkeypatch.setattr(codecs, "_contexts", None)
    plain = b"abc" * 1000
    frame = zstandard.ZstdCompressor().compress(plain)
    streamed = zstandard.ZstdCompressor(write_content_size=False).compressobj()
    unsized = streamed.compress(plain) + streamed.flush()
    _, zstd = codecs.decompressor(codecs.CODECS.index("zstd"))
    for data, size in ((frame, 3000), (unsized, 3000), (frame + frame, 6000)):
        assert bytes(zstd(memoryview(data), size)) == plain * (size // 3000)
    bad = [(frame + b"junk", 3000), (frame[:-3], 3000), (unsized, 2999), (b"x" * 30, 50)]
    bad += [(frame, 3000 + change) for change in (-1, 1)]
    for data, size in bad:
        with pytest.raises(CoreError):
            zstd(memoryview(data), size)
