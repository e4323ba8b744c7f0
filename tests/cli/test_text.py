"""Text for terminals."""

from __future__ import annotations

import datetime as dt
import json

import pyarrow as pa

from pageseek.cli import text


def test_strip_draws_at_its_place() -> None:
    assert text.strip(0, 1, 0, 10, 10) == "##........"
    assert text.strip(9, 10, 0, 10, 10) == ".........#"
    assert text.strip(0, 10, 0, 10, 10) == "#" * 10
    assert text.strip(None, 3, 0, 10, 4) == "????"
    assert text.strip(-1e308, 0, -1e308, 1e308, 10) == "######...."
    assert text.strip(5, 5, 5, 5, 4) == "####"


def test_places_of_temporal_values_grow_with_time() -> None:
    kinds = [pa.date32(), pa.timestamp("us"), pa.timestamp("ns", "UTC")]
    for kind in kinds:
        low, high = (
            pa.scalar(day, pa.date32()).cast(kind)
            for day in (dt.date(2024, 1, 1), dt.date(2024, 1, 2))
        )
        low_at, high_at = text.place(low), text.place(high)
        assert low_at is not None
        assert high_at is not None
        assert low_at < high_at
    assert text.place(pa.scalar("a")) is None
    assert text.place(pa.scalar(float("nan"))) is None
    assert text.place(pa.scalar(None, pa.int32())) is None


def test_json_takes_what_json_lacks() -> None:
    made = text.to_json({"a": b"\x01", "b": dt.date(2024, 1, 1), "c": float("nan")}, indent=None)
    assert json.loads(made) == {"a": "01", "b": "2024-01-01", "c": "nan"}
