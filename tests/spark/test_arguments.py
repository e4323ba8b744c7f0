"""What stands where a session of Spark is wanted: an error says so, before anything else is looked at."""

from __future__ import annotations

import traceback
from typing import Any

import pytest

from pageseek.base.errors import UnsupportedError
from pageseek.spark import aggregate, attach_index, load, lookup, optimize, read, register
from pageseek.spark.sources.options import parsed


@pytest.mark.parametrize("given", [None, "t.parquet", 3])
def test_no_session(given: Any) -> None:
    for call, more in (
        (load, ["t.parquet"]),
        (read, ["t.parquet"]),
        (lookup, ["t.parquet", [1], "id"]),
        (aggregate, ["t.parquet", ["count"]]),
        (attach_index, ["t.parquet"]),
        (optimize, ["t"]),
        (register, []),
    ):
        with pytest.raises(TypeError, match="a session of Spark is wanted first, not ") as caught:
            call(given, *more)  # type: ignore[operator]
        assert f"not {type(given).__name__}, such as " in str(caught.value)
        ours = [
            one
            for one in traceback.extract_tb(caught.value.__traceback__)
            if "src/pageseek" in one.filename
        ]
        assert len(ours) == 1


def test_options_as_text() -> None:
    for name, text, wanted in (
        ("threads", "x", "option 'threads' cannot be 'x': an integer"),
        ("timeout", "soon", "option 'timeout' cannot be 'soon': a number of seconds"),
    ):
        with pytest.raises(UnsupportedError) as caught:
            parsed({"path": "t.parquet", name: text})
        assert str(caught.value) == wanted
