"""`pageseek count`: how many rows pass."""

from __future__ import annotations

import json

import pytest

from support.command import ROWS, run


def test_rows_are_counted_with_and_without_a_filter(
    path: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(capsys, "count", path) == (0, f"{ROWS}\n", "")
    assert run(capsys, "count", path, "--where", "id < 10", "--where", "id > 3")[1] == "6\n"
    out = run(capsys, "count", path, "--where", "name is null", "--json")[1]
    assert json.loads(out) == {"rows": ROWS // 100}
    assert run(capsys, "count", path, "--where", "id < 0")[1] == "0\n"
