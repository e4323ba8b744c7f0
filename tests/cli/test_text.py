"""Text for terminals."""

from __future__ import annotations

import datetime as dt
import json

from pageseek.cli import text


def test_strip_draws_at_its_place() -> None:
    assert text.strip(0, 1, 0, 10, 10) == "##........"
    assert text.strip(9, 10, 0, 10, 10) == ".........#"
    assert text.strip(0, 10, 0, 10, 10) == "#" * 10
    assert text.strip(None, 3, 0, 10, 4) == "????"
    assert text.strip(-1e308, 0, -1e308, 1e308, 10) == "######...."
    assert text.strip(5, 5, 5, 5, 4) == "####"


def test_strips_of_large_integers_are_exact() -> None:
    least = 2**63
    for i in range(10):
        made = text.strip(least + 10 * i, least + 10 * i + 9, least, least + 99, 10)
        assert made == "." * i + "#" + "." * (9 - i)


def test_infinite_ends_are_marked_at_the_edge() -> None:
    inf = float("inf")
    assert text.strip(5.0, inf, 0.0, 10.0, 10) == ".....####>"
    assert text.strip(-inf, 1.0, 0.0, 10.0, 10) == "<#........"
    assert text.strip(-inf, inf, 0.0, 10.0, 4) == "<##>"
    assert text.strip(inf, inf, 0.0, 10.0, 4) == "...>"
    assert text.strip(-inf, -inf, -1e308, 1e308, 4) == "<..."


def test_json_takes_what_json_lacks() -> None:
    made = text.to_json({"a": b"\x01", "b": dt.date(2024, 1, 1), "c": float("nan")}, indent=None)
    assert json.loads(made) == {"a": "01", "b": "2024-01-01", "c": "nan"}
