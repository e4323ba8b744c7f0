"""Proofs of several mechanisms about the same tests, combined over AND, OR and NOT TRUE."""

from __future__ import annotations

import io
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import pageseek as ps
from pageseek._core.rows import RowRanges
from pageseek.base.report import Report
from pageseek.format.columns import tested as leaf_at
from pageseek.format.types import Options
from pageseek.predicate.bind import bind
from pageseek.predicate.bound import tests_of as judged_of
from pageseek.prune import Proof, PruneContext
from pageseek.prune.accumulator import ProofAccumulator
from pageseek.prune.row_groups import GroupProof
from support.opened import open_metadata

N = 100


def accumulator(condition: Any) -> tuple[ProofAccumulator, list[Any]]:
    sink = io.BytesIO()
    pq.write_table(pa.table({"a": range(N), "b": range(N)}), sink)
    file, options = open_metadata(sink.getvalue()), Options()
    bound = bind(condition, lambda path: leaf_at(file, path, options))
    site = PruneContext(file, 0, RowRanges.all(N), options, Report())
    return ProofAccumulator(site, bound, GroupProof(b"\1", b"\0")), judged_of(bound)


def proof(may: tuple[int, int], must: tuple[int, int] = (0, 0)) -> Proof:
    return Proof(RowRanges([may]), RowRanges([must] if must[0] < must[1] else []))


def test_two_proofs_of_a_test_are_joined() -> None:
    found, tests = accumulator(ps.col("a") > 3)
    assert found.add(tests, [proof((0, 60), (0, 10))])
    assert list(found.fully_matched) == [(0, 10)]
    assert found.add(tests, [proof((5, 100), (50, 55))])
    assert list(found.context.ranges) == [(5, 60)]
    assert list(found.fully_matched) == [(5, 10), (50, 55)]
    assert not found.add(tests, [None])
    assert not found.add(tests, [proof((0, 100))])  # nothing new
    assert list(found.context.ranges) == [(5, 60)]


def test_and_takes_what_both_leave_and_or_what_either_does() -> None:
    a, b = ps.col("a") > 3, ps.col("b") > 3
    proofs = [proof((0, 60), (0, 30)), proof((40, 100), (40, 50))]
    both, tests = accumulator(a & b)
    both.add(tests, proofs)
    assert list(both.context.ranges) == [(40, 60)]
    assert not both.fully_matched
    either, tests = accumulator(a | b)
    either.add(tests, proofs)
    assert list(either.context.ranges) == [(0, 100)]
    assert list(either.fully_matched) == [(0, 30), (40, 50)]


def test_only_tests_that_may_matter_are_open() -> None:
    a, b = ps.col("a") > 3, ps.col("b") > 3
    found, tests = accumulator(a | b)
    assert found.open(tests[:1]) == tests[:1]  # with a denial of the other it would matter
    found.add(tests, [proof((0, 0)), None])
    assert found.open(tests) == tests[1:]
    found.add(tests, [None, proof((0, N), (0, N))])
    assert found.open(tests) == []
