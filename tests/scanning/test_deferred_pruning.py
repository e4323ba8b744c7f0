"""Plans of a great many files leave the indexes of most to who reads them: the same rows, and as little is read."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek.scanning.one_file import division
from pageseek.scanning.plans import planner
from pageseek.spark.tasks.metrics import joined
from pageseek.spark.tasks.task import new_report
from support.object_server.server import ObjectServer

FILES, ROWS, EXAMINED = 24, 4_000, 5
CONDITIONS: dict[str, ps.Expression] = {
    "a word that a third of the dictionaries has": ps.col("word") == "w1",
    "a word within the bounds that no file has": ps.col("word") == "w0z",
    "rows of one page of each file": ps.col("n") < 100,
    "both": (ps.col("n").between(700, 900)) & (ps.col("word") == "w2"),
    "either": (ps.col("n") == 5) | (ps.col("word") == "w0z"),
    "some files by their statistics, others by their pages": (ps.col("k") < ROWS * 20) & (ps.col("n") > 3_900),
    "all rows of some files": ps.col("k") < ROWS * 15 + 7,
}  # fmt: skip


def table(i: int) -> pa.Table:
    n = np.arange(ROWS)
    words = ["w0", f"w{i % 3}", "w9"]
    return pa.table({"k": n + i * ROWS, "n": n, "word": [words[j] for j in n % 3], "x": n / 7})


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("many")
    for i in range(FILES):
        pq.write_table(
            table(i), made / f"{i:02}.parquet", row_group_size=ROWS // 2, use_dictionary=["word"], write_page_index=True,
            data_page_size=1024, write_batch_size=128,
        )  # fmt: skip
    return made


@pytest.fixture(params=["files", "objects"])
def source(request: pytest.FixtureRequest, folder: Path, object_server: ObjectServer) -> Any:
    if request.param == "files":
        return str(folder)
    for path in sorted(folder.iterdir()):
        object_server.put(f"b/{path.name}", path.read_bytes())
    return [object_server.url(f"b/{path.name}") for path in sorted(folder.iterdir())]


def counted_cuts(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Learns the number of cuts of each row group that is divided from now on."""
    cuts: list[int] = []
    pieces = division._pieces

    def counting(*how: Any) -> Any:
        made = pieces(*how)
        cuts.append(len(made) - 1)
        return made

    monkeypatch.setattr(division, "_pieces", counting)
    return cuts


@pytest.mark.covering(2)
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("condition", CONDITIONS.values(), ids=CONDITIONS.keys())
def test_a_plan_that_defers_gives_the_rows_and_pages_of_one_that_does_not(
    monkeypatch: pytest.MonkeyPatch, source: Any, threads: int, condition: ps.Expression
) -> None:
    scan = ps.scan(source, threads=threads).filter(condition)
    whole = scan.plan()
    monkeypatch.setattr(planner, "MOST_EXAMINED", EXAMINED)
    ps.clear_cache()
    plan = scan.plan()
    open_groups = [group for file in plan.files for group in file.groups if not group.pages_pruned]
    if "k" not in str(condition):
        assert len(open_groups) >= FILES - EXAMINED
    assert all(group.pages_pruned for file in whole.files for group in file.groups)
    assert plan.num_rows >= whole.num_rows
    assert all(group.cost > 0 for file in plan.files for group in file.groups)
    wanted = scan.to_table()
    read = scan.explain(analyze=True).to_dict()
    for piece_bytes, parts in [(20_000, 1), (20_000, 3), (division.PIECE_BYTES, 1)]:
        monkeypatch.setattr(division, "PIECE_BYTES", piece_bytes)
        cuts = counted_cuts(monkeypatch)
        found, reports = [], []
        for part in plan.divide(parts).split(parts):
            reports.append(new_report())
            found += pickle.loads(pickle.dumps(part)).execute(reports[-1])
        made = pa.Table.from_batches(found, wanted.schema).sort_by("k")
        assert made.equals(wanted.sort_by("k"))
        said = joined(plan.report, reports).to_dict()
        assert said["leaves"].keys() == read["leaves"].keys()
        for name, leaf in said["leaves"].items():
            pages, whole_pages = leaf["pages"]["read"], read["leaves"][name]["pages"]["read"]
            # a page at a cut is read with both pieces
            assert whole_pages <= pages <= whole_pages + sum(cuts), name
        assert said["row_groups"]["read"] == read["row_groups"]["read"]


def test_fewer_files_are_examined_for_long_lists_of_a_lookup(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    n = np.random.default_rng(3).permutation(3_000)
    for i in range(6):
        path = tmp_path / f"{i}.parquet"
        pq.write_table(pa.table({"n": n, "m": n}), path, max_rows_per_page=500)
        ps.index.attach(path, lookup=["n"], in_place=True)
    monkeypatch.setattr(planner, "MOST_EXAMINED", 4)
    monkeypatch.setattr(planner, "VALUES_LIKE_A_FILE", 100)
    lists = ((1, 4, "n"), (100, 2, "n"), (250, 2, "n"), (900, 1, "n"), (900, 4, "m"))
    for values, examined, name in lists:
        ps.clear_cache()
        plan = ps.scan(tmp_path, threads=1).filter(ps.col(name).isin([*range(values)])).plan()
        done = [all(group.pages_pruned for group in file.groups) for file in plan.files]
        assert done == [True] * examined + [False] * (6 - examined), (values, name)
        found = pa.Table.from_batches(list(plan.execute()))[name].to_pylist()
        assert sorted(found) == sorted([*range(values)] * 6)


def test_files_that_the_reader_rules_out_are_counted_as_such(
    monkeypatch: pytest.MonkeyPatch, folder: Path
) -> None:
    monkeypatch.setattr(planner, "MOST_EXAMINED", EXAMINED)
    plan = ps.scan(folder, threads=1).filter(ps.col("word") == "w0z").plan()
    assert len(plan.files) == FILES - EXAMINED
    report = new_report()
    assert list(plan.execute(report)) == []
    said = joined(plan.report, [report]).to_dict()
    assert said["files"] == {"total": FILES, "read": 0, "pruned_by": {"dictionary": FILES}}


@pytest.mark.parametrize(
    "ask",
    [
        lambda scan: scan.limit(FILES * ROWS).plan(),
        lambda scan: scan.take([5, 70_000]).plan(),
    ],
)
def test_plans_that_choose_rows_do_not_defer(
    monkeypatch: pytest.MonkeyPatch, folder: Path, ask: Callable[[Any], Any]
) -> None:
    monkeypatch.setattr(planner, "MOST_EXAMINED", 0)
    plan = ask(ps.scan(folder).filter(ps.col("n") < 1_500))
    rows = pa.Table.from_batches(list(plan.execute()))["n"].to_pylist()
    assert max(rows) < 1_500
    assert len(rows) == (1_500 * FILES if plan.request.limit else 1)
