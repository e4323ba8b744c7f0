"""Fixtures of the tests of scans."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pageseek._core import codecs as core

from pageseek.format import codecs
from pageseek.scanning.many_files import homogeneous_files


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small row groups are put to all mechanisms, as large ones are: those of other files are not read with them."""
    monkeypatch.setattr(homogeneous_files, "SMALL_GROUP_ROWS", 0)


@pytest.fixture(params=[True, False], ids=["libzstd", "zstandard"])
def library(request: pytest.FixtureRequest) -> Iterator[bool]:
    """zstd by the system's libzstd, and by the package zstandard; True for the first."""
    if request.param and codecs.LIBZSTD is None:
        pytest.skip("this system has no libzstd")
    core.use_zstd(codecs.LIBZSTD if request.param else None)
    yield request.param
    core.use_zstd(codecs.LIBZSTD)
