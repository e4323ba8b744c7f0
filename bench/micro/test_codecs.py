"""Pages decompressed by the core's own decoders, beside pyarrow's for the same bytes.

    pytest bench/micro/test_codecs.py --benchmark-timer=time.thread_time

`rows` of the table are bytes here: a million of them a second are a megabyte.
"""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from pageseek._core.codecs import decompress

PAGE = 1 << 20
WORDS = [
    "carefully",
    "final",
    "deposits",
    "haggle",
    "quick",
    "ironic",
    "the",
    "furiously",
    "slyly",
    "regular",
]
R = random.Random(1)


def _texts(one: Callable[[], str]) -> bytes:
    """A PLAIN page of byte strings."""
    made = bytearray()
    while len(made) < PAGE:
        text = one().encode()
        made += len(text).to_bytes(4, "little") + text
    return bytes(made)


def _event() -> str:
    name = uuid.UUID(int=R.getrandbits(128)).hex
    return (
        f'{{"id":{R.randrange(10**6)},"kind":"{R.choice(["click", "view", "buy"])}","user":{{"name":"{name[:9]}",'
        f'"mail":"{name[9:19]}@example.com"}},"value":{R.random():.6f},"at":"2024-0{R.randrange(1, 9)}-11T08:00:00Z",'
        f'"token":"{name}"}}'
    )


def _prices() -> list[int]:
    return [int(one) for one in np.random.default_rng(2).integers(90_000, 10_500_000, PAGE // 8)]


PAGES: dict[str, Callable[[], bytes]] = {
    "decimal-int64": lambda: np.array(_prices()).tobytes(),
    "decimal-fixed-7": lambda: b"".join(one.to_bytes(7, "big") for one in _prices()),
    "decimal-fixed-16": lambda: b"".join(one.to_bytes(16, "big") for one in _prices()),
    "date": lambda: np.random.default_rng(3).integers(8_000, 10_500, PAGE // 4, "i4").tobytes(),
    "sorted-int64": lambda: np.arange(PAGE // 8).tobytes(),
    "double": lambda: np.random.default_rng(4).random(PAGE // 8).tobytes(),
    "comment": lambda: _texts(lambda: " ".join(R.choices(WORDS, k=R.randrange(2, 6)))),
    "uuid": lambda: _texts(lambda: str(uuid.UUID(int=R.getrandbits(128)))),
    "json": lambda: _texts(_event),
}


@pytest.mark.parametrize("codec", ["snappy", "lz4_raw"])
@pytest.mark.parametrize("page", PAGES)
def test_a_page(benchmark: Any, compare: Any, codec: str, page: str) -> None:
    plain = PAGES[page]()
    peer = pa.Codec(codec)
    packed = peer.compress(plain, asbytes=True)
    benchmark.group = f"{page} {codec}"
    found = compare(
        lambda: decompress(codec, packed, len(plain)),
        lambda: peer.decompress(packed, len(plain)),
        len(plain),
    )
    assert bytes(found) == plain
