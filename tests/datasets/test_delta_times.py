"""Which version of a Delta Lake table was current at a moment."""

from __future__ import annotations

import datetime as dt
import json

import pytest

import pageseek as ps
from pageseek.datasets.delta_times import version_at

NAMES = [f"{i:020}.json" for i in range(6)]


def at(seconds: float, own: dict[int, object], files: list[float]) -> int:
    """The version at a moment. `own`: times that commits tell, in milliseconds; `files`: those of their files, in seconds."""

    def read(name: str) -> bytes:
        told = own.get(int(name[:20]))
        info = {} if told is None else {"inCommitTimestamp": told}
        return json.dumps({"commitInfo": info}).encode() + b"\n{}"

    moment = dt.datetime.fromtimestamp(seconds, dt.UTC)
    return version_at(moment, dict(zip(NAMES, files, strict=True)), read, "t")


def test_commits_tell_their_times_from_one_version_on() -> None:
    own = {2: 3_000, 3: 4_000, 4: 5_000, 5: 6_000}
    plain, copied = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [9.0] * 6
    for files in (plain, copied):  # in a copied log all files are new
        assert [at(t, own, files) for t in (3, 4.5, 5.999, 7)] == [2, 3, 4, 5]
    assert at(2.5, own, plain) == 1
    assert at(1.5, own, [1.0, 1.0, 9.0, 9.0, 9.0, 9.0]) == 1
    with pytest.raises(ps.UnsupportedError, match="before the first commit of the log"):
        at(2.5, own, copied)


def test_times_of_files_alone() -> None:
    files = [1.0, 3.0, 2.0, 4.0, 5.0, 6.0]  # one is older than that before it
    assert [at(t, {}, files) for t in (1, 2.5, 3, 4.5, 99)] == [0, 0, 2, 3, 5]
    assert at(3, {5: "x"}, files) == at(3, {5: float("inf")}, files) == 2
