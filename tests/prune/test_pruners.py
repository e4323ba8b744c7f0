"""Users' registered pruners: they prune, are named in reports, and their errors name the place."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek._core.rows import RowRanges
from pageseek.prune import Proof, passing
from pageseek.prune.checked_pruner import CheckedPruner
from pageseek.prune.registry import mechanisms
from support.concurrency import in_threads
from support.pruners import judged

N = 60_000
EVERY, NONE = RowRanges.all(N // 3), RowRanges.empty()


@pytest.fixture(scope="module")
def data() -> bytes:
    """Three row groups of values that nothing else can rule out."""
    sink = io.BytesIO()
    values = [(i * 7919) % 1_000_003 * 2 for i in range(N)]
    table = pa.table({"v": values, "row": range(N)})
    pq.write_table(table, sink, row_group_size=N // 3, use_dictionary=False)
    return sink.getvalue()


class Simple:
    """Gives what it is told to."""

    name: Any = "simple"
    cheap: Any = True

    def __init__(
        self, proof: Any = None, cost: Any = 1, wanted: Any = (), raises: Any = None
    ) -> None:
        self.proof, self.bytes, self.wanted, self.raises = proof, cost, wanted, raises

    def cost(self, site: Any, test: Any) -> Any:
        return self.bytes

    def judge(self, site: Any, tests: Any) -> Any:
        if self.raises is not None:
            raise self.raises
        yield from self.wanted
        return self.proof if isinstance(self.proof, list) else [self.proof] * len(tests)


@pytest.fixture
def register() -> Iterator[Any]:
    made: list[str] = []

    def register(pruner: Any) -> None:
        ps.register_pruner(pruner)
        made.append(pruner.name)

    yield register
    for name in made:
        if name in mechanisms(True):  # else the test took it back
            ps.unregister_pruner(name)


def test_the_documented_index_rules_rows_out(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (root / "docs/pruners.md").read_text()
    (code,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    space: dict[str, Any] = {}
    try:
        exec(compile(code, "docs/pruners.md", "exec"), space)
        shown = capsys.readouterr().out
        line = "rows less: distinct_values, a registered pruner, proves that no row in them matches"
        assert line in shown
        assert line in " ".join(text.split())
        table, users = space["table"], space["users"]
        for prune in (True, ["distinct_values"], ["statistics", "distinct_values", "column_index"]):
            for condition in (
                ps.col("user") == int(users[123_456]),
                ps.col("user").isin([int(users[0]), int(users[-1]), 3]),
                ~(ps.col("user") != int(users[77_000])),
                (ps.col("user") == int(users[5])) | (ps.col("text") == "1" * 20),
                ps.col("user") > int(users.max()) - 5,
            ):
                found = ps.read_table("users.parquet", filter=condition, prune=prune)
                full = ps.read_table("users.parquet", filter=condition, prune=False)
                assert found.equals(full)
                assert found.num_rows
        assert table.equals(pq.read_table("users.parquet"))  # to others the index is not there
        wanted = int(users[9])
        point = ps.scan("users.parquet", filter=ps.col("user") == wanted)
        report = point.explain(analyze=True).to_dict()
        pieces = (users.reshape(-1, 1000) != wanted).all(axis=1).sum()
        assert report["rows"]["pruned_by"] == {"distinct_values": 1000 * pieces}
        assert report["bytes"]["index"] > 0
        damaged = Path("users.parquet").read_bytes().replace(b'"start": "000', b'"start": "999')
        said = ps.scan(damaged, filter=ps.col("user") == wanted).explain(analyze=True)
        assert any("distinct values ignored" in note for note in said.notes), said.notes
        assert said.rows_out == (users == wanted).sum()
    finally:
        ps.unregister_pruner("distinct_values")


def test_a_registered_pruner_is_known_by_its_name(data: bytes, register: Any) -> None:
    with pytest.raises(ps.PredicateError, match="simple"):
        ps.scan(data, prune=["simple"])
    register(Simple(Proof(NONE, NONE)))
    assert "simple" in mechanisms(True)
    scan = ps.scan(data, filter=ps.col("v") == 2 * 7919, prune=["simple"])
    report = scan.explain().to_dict()
    assert report["row_groups"]["pruned_by"] == {"simple": 3}
    assert report["files"]["pruned_by"] == {"simple": 1}
    assert "simple, a registered pruner" in str(scan.explain())
    assert ps.scan(data, filter=ps.col("v") == 2 * 7919, prune=["statistics"]).plan().files
    ps.unregister_pruner("simple")
    assert scan.plan().files  # without it nothing is ruled out


def test_proofs_join_with_those_of_other_mechanisms(data: bytes, register: Any) -> None:
    register(Simple(Proof(RowRanges([(5, 9)]), NONE)))
    plan = ps.scan(data, columns=["row"], filter=ps.col("v") >= 0, prune=["simple"]).plan()
    assert [list(group.ranges) for group in plan.files[0].groups] == [[(5, 9)]] * 3
    assert ps.read_table(data, columns=["row"], filter=ps.col("v") >= 0, prune=["simple"])[
        "row"
    ].to_pylist() == [first + i for first in (0, N // 3, 2 * N // 3) for i in range(5, 9)]


@pytest.mark.parametrize(
    ("pruner", "message"),
    [
        (Simple(raises=ZeroDivisionError("none")), "judge.. raised ZeroDivisionError: none"),
        (Simple(raises=ps.CorruptFileError("bad")), "judge.. raised CorruptFileError: bad"),
        (Simple(cost="much"), "cost.. gave 'much'"),
        (Simple(cost=-1), "cost.. gave -1"),
        (Simple([]), "gave 0, not a list of 1 proofs"),
        (Simple([None, None]), "gave 2, not a list of 1 proofs"),
        (Simple(True), "gave True for .*, not a Proof"),
        (Simple(Proof([(0, 1)], NONE)), "not a Proof"),  # type: ignore[arg-type]
        (Simple(Proof(RowRanges.all(N), NONE)), f"row {N - 1} of {N // 3}"),
        (Simple(Proof(NONE, EVERY)), "must pass and may not"),
        (Simple(Proof(EVERY, EVERY, counted=True)), "counted for .*, where rows are asked"),
        (Simple(wanted=[[(0, 10**9)]]), "1000000000 bytes at byte 0 of a file"),
        (Simple(wanted=[[(-4, 4)]]), "4 bytes at byte -4"),
        (Simple(wanted=[[7]]), r"asked for \[7\]"),
        (Simple(wanted=[3]), "asked for 3"),
        (Simple(wanted=[None]), "asked for None"),
    ],
)
def test_what_a_pruner_does_wrong_names_it_and_the_place(
    data: bytes, register: Any, pruner: Any, message: str
) -> None:
    register(pruner)
    where = rf"<memory>: row group 0: pruner 'simple': .*{message}"
    with pytest.raises(ps.PrunerError, match=where):
        ps.read_table(data, filter=ps.col("v") == 2 * 7919)
    assert ps.read_table(data, filter=ps.col("v") == 2 * 7919, prune=["statistics"]).num_rows


def test_a_judge_that_is_no_generator_is_an_error(data: bytes, register: Any) -> None:
    pruner = Simple()
    pruner.judge = lambda site, tests: [None]  # type: ignore[method-assign]
    register(pruner)
    with pytest.raises(ps.PrunerError, match="gave list, not a generator"):
        ps.read_table(data, filter=ps.col("v") == 2 * 7919)


def test_what_does_not_fit_the_protocol_is_refused() -> None:
    for broken, error, message in [
        (object(), TypeError, "'name' of type str"),
        (Simple, TypeError, "is a class"),
        (type("P", (Simple,), {"cheap": 1})(), TypeError, "'cheap' of type bool"),
        (type("P", (Simple,), {"judge": None})(), TypeError, "has no prune"),
        (type("P", (Simple,), {"name": "two words"})(), ValueError, "no plain word"),
        (type("P", (Simple,), {"name": "bloom_filter"})(), ValueError, "is taken"),
        (type("P", (Simple,), {"name": "statistics"})(), ValueError, "is taken"),
        (type("P", (Simple,), {"name": "limit"})(), ValueError, "is taken"),
    ]:
        with pytest.raises(error, match=message):
            ps.register_pruner(broken)  # type: ignore[arg-type]
    with pytest.raises(
        ValueError, match="no pruner 'bloom_filter' was registered; there are: none"
    ):
        ps.unregister_pruner("bloom_filter")


def test_a_name_is_taken_once_and_the_same_object_is_no_clash(register: Any) -> None:
    one = Simple()
    register(one)
    ps.register_pruner(one)
    with pytest.raises(ValueError, match=r"unregister_pruner\('simple'\) first"):
        ps.register_pruner(Simple())


def test_threads_may_register_at_once() -> None:
    made = [type("P", (Simple,), {"name": f"p{i}"})() for i in range(50)]
    in_threads(len(made), lambda i: ps.register_pruner(made[i]))
    assert {one.name for one in made} <= mechanisms(True)
    for one in made:
        ps.unregister_pruner(one.name)
    assert not {one.name for one in made} & mechanisms(True)


def test_values_are_put_to_a_test_with_the_meaning_of_filters(data: bytes) -> None:
    found: list[list[bool]] = []

    class Asks(Simple):
        def cost(self, site: Any, test: Any) -> int:
            found.append(passing(test, pa.array([9, 1, None, 4, 6]).slice(1)).tolist())
            return 1

    for condition in (
        ps.col("v") == 4,
        ps.col("v") != 4,
        ~(ps.col("v") == 4),
        ps.col("v").isin([1, 6]),
        ps.col("v").is_null(),
        ps.col("v") > 2.5,
    ):
        judged(data, CheckedPruner(Asks()), condition)
    assert found[::3] == [
        [False, False, True, False],
        [True, False, False, True],
        [True, False, False, True],
        [True, False, False, True],
        [False, True, False, False],
        [False, False, True, True],
    ]
