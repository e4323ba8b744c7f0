"""Queries against a store that fails at random, and the memory of a slow reader; `proofs/stores.py` runs more of both."""

from __future__ import annotations

import sys

import pytest

import pageseek as ps
from pageseek.scanning.plans.open_ahead import LEAST_TAIL_BYTES
from support.failing_stores import peaks, run_queries, tails_peak
from support.object_server.server import ObjectServer
from support.remote_files import Way, of_fsspec, over_http, over_s3

SLACK = 16 << 20  # bytes beyond the budget: the batch in hand, threads, connections


@pytest.mark.parametrize("way", [over_http, over_s3, of_fsspec])
def test_queries_of_a_store_in_distress(
    object_server: ObjectServer, way: Way, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pageseek.storage.retry.FIRST_WAIT", 0.01)
    ps.clear_cache()
    found = run_queries(object_server, way, 100, 5)
    assert found.faulty > 10
    assert set(found.ended) <= {"right", "refused"}
    assert found.ended["right"] >= 99


@pytest.mark.skipif(sys.platform != "linux", reason="/proc says how much memory there was")
def test_a_slow_reader_holds_no_more_than_it_may() -> None:
    budgets = [0, 12 << 20]
    for budget, found in peaks(40, budgets, 0.02).items():
        assert found["rows"] == 40 << 16
        assert found["batch"] == 2 << 20
        assert found["peak"] - found["before"] <= budget + SLACK, budget


@pytest.mark.timed
@pytest.mark.skipif(sys.platform != "linux", reason="/proc says how much memory there was")
def test_ends_of_files_that_are_opened_ahead_are_bounded_by_their_bytes() -> None:
    files, size, kept = 48, 3 << 20, 4 << 20
    found = tails_peak(files, size, 0, kept)
    assert found["rows"] == 0
    most = (
        LEAST_TAIL_BYTES + kept + (64 << 20)
    )  # what one takes to be parsed, parts of answers, threads
    assert found["peak"] - found["before"] <= most < files * size
