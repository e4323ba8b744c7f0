"""Fixtures of the tests of scans."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pageseek._core import codecs as core
from pageseek.format import codecs


@pytest.fixture(params=[True, False], ids=["libzstd", "zstandard"])
def library(request: pytest.FixtureRequest) -> Iterator[bool]:
    """zstd by the system's libzstd, and by the package zstandard; True for the first."""
    if request.param and codecs.LIBZSTD is None:
        pytest.skip("this system has no libzstd")
    core.use_zstd(codecs.LIBZSTD if request.param else None)
    yield request.param
    core.use_zstd(codecs.LIBZSTD)
