"""When files were written, as filesystems of fsspec say it in their own ways."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

from pageseek.storage.fsspec_files import _seconds

AT = dt.datetime(2024, 1, 31, 12, tzinfo=dt.UTC)


@pytest.mark.parametrize(
    "info",
    [
        {"mtime": AT.timestamp()},
        {"LastModified": AT},
        {"created": AT.replace(tzinfo=None)},
        {"last_modified": "2024-01-31T13:00:00+01:00"},
        {"modified": "yesterday", "updated": "2024-01-31T12:00:00+00:00"},
    ],
)
def test_the_same_moment(info: dict[str, Any]) -> None:
    assert _seconds(info) == AT.timestamp()


def test_none_is_known() -> None:
    assert _seconds({"size": 5, "created": None, "modified": "yesterday"}) is None
