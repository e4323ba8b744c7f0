"""The benchmarks at small sizes: files, floor, comparison of answers, the command."""

from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pageseek.bench import cli, demo, generate, plots, prepared, startup
from pageseek.bench import engines as race
from pageseek.bench.cases import CASES, TINY, Case, Files, make
from pageseek.bench.floor import Floor
from pageseek.bench.peers import PEERS, Pageseek, Peer, PyArrow, available
from pageseek.bench.pruning import engines, speed
from pageseek.bench.pruning.queries import Query, Term
from pageseek.bench.run import Result, WrongAnswer, interleave, run_case, table

import pageseek as ps
from pageseek.base.workers import WorkerPool, cores
from pageseek.scanning.plans import scheduler, tables
from support.opened import open_metadata

OURS: dict[str, type[Peer]] = {"pageseek": Pageseek, "pyarrow": PyArrow}
PLAIN_CASES = [name for name in CASES if not name.startswith("lineitem")]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    return Files(tmp_path_factory.mktemp("bench"), TINY)


def test_pages_of_the_lookup_file_do_not_line_up(tmp_path: Path) -> None:
    path = generate.lookup_file(tmp_path, 60_000, 60_000)
    with open_metadata(path) as file:
        assert [leaf.name for leaf in file.leaves] == list(generate.LOOKUP_COLUMNS)
        starts: list[tuple[int, ...]] = []
        for name in ("key", "quantity", "note", "city", "amount"):
            offsets = file.offset_index(0, name)
            assert offsets is not None
            starts.append(tuple(offsets.first_row.tolist()))
        index = file.column_index(0, "key")
    assert len(set(starts)) == len(starts)
    assert index is not None
    assert index.boundary_order == "ascending"
    assert np.diff(starts[0])[:-1].tolist() == [20_000] * (len(starts[0]) - 2)


def test_the_default_file_has_pages_of_20_000_rows_that_do_not_line_up(tmp_path: Path) -> None:
    path = generate.default_file(tmp_path, 300_000, 300_000)
    starts: dict[str, list[int]] = {}
    with open_metadata(path) as file:
        for leaf in file.leaves:
            offsets = file.offset_index(0, leaf)
            assert offsets is not None
            starts[leaf.name] = offsets.first_row[:-1].tolist()
            rows = np.diff(offsets.first_row)
            assert int(np.median(rows)) == 20_000
            assert rows.max() <= 20_000
            has_dictionary = file.chunk(0, leaf).dictionary_page_offset > 0
            assert has_dictionary
    assert starts["note"] == list(range(0, 300_000, 20_000))
    # a dictionary that grows beyond 1 MiB is given up, wherever that is
    given_up = [starts[name] for name in ("key", "customer", "at")]
    assert len({tuple(one) for one in given_up}) == 3
    assert starts["note"] not in given_up
    table = generate.lookup_table(300_000)
    assert pq.read_table(path).equals(table.cast(pq.read_schema(path)))


def test_a_file_is_made_once(files: Files) -> None:
    path = files.path("lookup")
    before = path.stat().st_mtime_ns
    assert files.path("lookup") == path
    assert path.stat().st_mtime_ns == before
    assert not [
        other for other in path.parent.iterdir() if other.name.endswith(tuple("0123456789"))
    ]


@pytest.mark.parametrize("name", PLAIN_CASES)
def test_every_case_runs_and_answers_agree(name: str, files: Files) -> None:
    case = CASES[name](files)
    result = run_case(case, files.path(case.file), OURS, budget=0.5)
    assert set(result.seconds) == {"pageseek", "pyarrow"} | (set() if case.footer else {"floor"})
    assert json.loads(json.dumps(result.to_dict()))["case"] == name
    assert name in table([result], ["pageseek", "pyarrow", "floor"])


def test_every_installed_peer_agrees(files: Files) -> None:
    found, _ = available([name for name in PEERS if name not in OURS])
    if not found:
        pytest.skip("no other engine is installed")
    for name in ("lookup-warm", "range", "scan-two"):
        case = CASES[name](files)
        result = run_case(case, files.path(case.file), {**OURS, **found}, floor=False, budget=0.1)
        assert set(result.seconds) == {*OURS, *found}, result.notes


class _Wrong(Pageseek):
    def rows(self, columns: Any, terms: Any) -> pa.Table:
        return super().rows(columns, terms).slice(1)


class _Failing(PyArrow):
    def rows(self, columns: Any, terms: Any) -> pa.Table:
        raise RuntimeError("no such kernel")


def test_a_wrong_answer_is_no_benchmark(files: Files) -> None:
    case = CASES["lookup-warm"](files)
    with pytest.raises(WrongAnswer, match="pageseek and pyarrow differ"):
        run_case(case, files.path("lookup"), {"pageseek": _Wrong, "pyarrow": PyArrow})


def test_an_engine_that_fails_is_left_out(files: Files) -> None:
    case = CASES["lookup-warm"](files)
    peers: dict[str, type[Peer]] = {"pageseek": Pageseek, "pyarrow": _Failing}
    result = run_case(case, files.path("lookup"), peers, floor=False, budget=0.1)
    assert set(result.seconds) == {"pageseek"}
    assert "no such kernel" in result.notes[0]


def test_the_floor_reads_what_a_lookup_needs(tmp_path: Path) -> None:
    path = generate.lookup_file(tmp_path, 60_000, 60_000)
    key = pq.read_table(path, columns=["key"])["key"][30_000].as_py()
    floor = Floor(path, Case("one", "", "lookup", None, ((("key", "=", key),),)))
    (plan,) = floor.plans
    floor.run(0)
    floor.close()
    report = ps.scan(path, filter=ps.col("key") == key).explain(analyze=True).to_dict()
    pages = sum(
        leaf["pages"]["read"] + leaf["dictionary_pages"] for leaf in report["leaves"].values()
    )
    assert plan.pages == len(plan.bodies) == pages
    assert plan.bytes == report["bytes"]["data"]


def test_the_floor_of_an_absent_key_is_one_page(files: Files) -> None:
    path = files.path("lookup")
    keys = pq.read_table(path, columns=["key"])["key"].to_numpy()
    absent = int(np.setdiff1d(np.arange(keys[0], keys[-1]), keys)[50])
    floor = Floor(path, Case("none", "", "lookup", None, ((("key", "=", absent),),)))
    floor.close()
    assert floor.plans[0].pages == 1


def test_rounds_are_interleaved_and_budgeted() -> None:
    order: list[str] = []

    def slow(turn: int) -> None:
        order.append("slow")
        sum(range(200_000))

    times = interleave({"quick": lambda turn: order.append("quick"), "slow": slow}, 8, 1e-6)
    assert order[:4] == ["quick", "slow", "slow", "quick"]
    assert len(times["slow"]) == 3


def test_the_table_keeps_losing_and_silent_peers() -> None:
    result = Result(Case("c", "", "lookup"), {"pageseek": [0.2], "other": [0.1]})
    assert table([result], ["pageseek", "other", "silent"]).splitlines()[1].split() == [
        "c", "200", "ms", "100", "ms", "(0.50x)", "-",
    ]  # fmt: skip


def test_missing_peers_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PEERS["duckdb"], "needs", "no_such_engine")
    found, missing = available(["pageseek", "duckdb"])
    assert list(found) == ["pageseek"]
    assert "pip install" in missing["duckdb"]


def test_a_case_without_its_generator_is_reported(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(generate, "tpchgen", lambda: None)
    ((name, case, why),) = make(["lineitem-key"], files)
    assert (name, case) == ("lineitem-key", None)
    assert "pip install tpchgen-cli" in why


def test_the_command_writes_json(
    files: Files, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out.json"
    arguments = [
        "--size",
        "tiny",
        "--cases",
        "lookup-warm,wide-footer",
        "--peers",
        "pageseek,pyarrow",
    ]
    threads = pa.cpu_count()
    try:
        code = cli.main(
            [*arguments, "--folder", str(files.folder), "--budget", "0.2", "--json", str(out)]
        )
    finally:
        pa.set_cpu_count(threads)
    assert code == 0
    assert "lookup-warm" in capsys.readouterr().out
    record = json.loads(out.read_text())
    assert [result["case"] for result in record["results"]] == ["lookup-warm", "wide-footer"]
    ours = record["results"][0]["peers"]["pageseek"]
    assert len(ours["seconds"]) == ours["rounds"] >= 3 and record["sizes"]["rows"] == TINY.rows
    assert record["machine"]["cores"] and record["versions"]["pyarrow"] == pa.__version__
    drawn = tmp_path / "drawn.svg"
    assert cli.main(["--redraw", str(out), "--plot", str(drawn)]) == 0
    first = drawn.read_bytes()
    assert cli.main(["--redraw", str(out), "--plot", str(drawn)]) == 0
    assert drawn.read_bytes() == first


def test_a_picture_of_results_names_what_was_measured() -> None:
    pytest.importorskip("matplotlib")
    rounds = [0.010, *[0.020] * 9, 0.090]
    peers = {"pageseek": {"median": 0.02, "least": 0.01, "rounds": 11, "seconds": rounds}}
    peers["other"] = {"median": 0.04, "least": 0.03, "rounds": 3}
    record = {
        "date": "2026-11-27", "sizes": dataclasses.asdict(TINY), "versions": {"pageseek": "9.9"},
        "machine": {"cpu": "a fast one", "cores": 7, "system": "S", "python": "3.99"},
        "results": [{"case": "lookup", "peers": peers}],
    }  # fmt: skip
    said = plots.caption(record)
    for words in (
        "3 to 11 interleaved",
        "a fast one, 7 cores",
        "pageseek 9.9",
        f"{TINY.rows:,} rows",
        "2026-11-27",
    ):
        assert words in said
    assert plots.spread(peers["pageseek"]) == (0.020, 0.020)  # neither the quickest nor the slowest
    assert plots.spread(peers["other"]) == (0.03, 0.04)
    assert plots.spread({"seconds": [0.3, 0.1, 0.2]}) == (0.1, 0.3)
    few = {"median": 0.2, "seconds": [0.3, 0.1, 0.2]}
    said = plots.caption(record | {"results": [{"case": "lookup", "peers": {"pageseek": few}}]})
    assert (
        "medians of 3 interleaved rounds, lines reach from the least to the greatest (below 10 rounds)."
        in said
    )
    assert (
        f"wide-footer has {TINY.wide_columns:,} columns in {TINY.wide_groups:,} row groups" in said
    )
    (axes,) = plots.draw(record).axes
    assert [text.get_text() for text in axes.get_yticklabels()] == ["lookup\n20.0 ms"]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["pageseek", "other"]
    places = [line.get_xdata()[0] for line in axes.lines if len(line.get_xdata()) == 1]
    assert places == [1, 2]


GOOD = {"median": 0.2, "least": 0.1, "rounds": 3, "seconds": [0.1, 0.2, 0.3]}
BAD_PEERS: list[tuple[Any, str]] = [
    (GOOD | {"median": 0}, "has no positive 'median'"),
    ({k: v for k, v in GOOD.items() if k != "median"}, "has no positive 'median'"),
    ({"median": 0.2, "rounds": 3}, "has no positive 'least'"),
    ({"median": 0.2, "least": 0.1}, "has no positive 'rounds'"),
    (GOOD | {"seconds": ["x"]}, "has 'seconds' that are no positive numbers"),
    ([], "has no times"),
]


def saved_results(ours: Any = GOOD, other: Any = GOOD, **more: Any) -> str:
    case = {"case": "lookup", "peers": {"pageseek": ours, "other": other}}
    return json.dumps({"versions": {}, "results": [case]} | more)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "no JSON"), ("{}", "no list 'results'"), ("[1]", "no list 'results'"),
        ('{"results": [], "versions": {}}', "no case was measured"),
        ('{"results": [{"peers": {}}], "versions": {}}', "a case has no name"),
        ('{"results": [{"case": "a", "peers": {}}], "versions": {}}', "case 'a' has no pageseek"),
        ('{"results": [{"case": "a", "peers": {}}]}', "no 'versions'"),
        (saved_results(sizes={"rows": 1}), "'sizes' has no 'group_rows'"),
        (saved_results(machine=[1]), "'machine' has no names"),
        *((saved_results(other=peer), f"case 'lookup': other {why}") for peer, why in BAD_PEERS),
        *((saved_results(ours=peer), why) for peer, why in BAD_PEERS),
        ("\udcff", "no JSON"), (None, "no such file or directory; pageseek-bench --json"),
    ],
)  # fmt: skip
def test_what_is_no_result_is_not_drawn(
    text: str | None, why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    saved = tmp_path / "saved.json"
    if text is not None:
        saved.write_bytes(text.encode("utf-8", "surrogateescape"))
    assert cli.main(["--redraw", str(saved), "--plot", str(tmp_path / "x.png")]) == 1
    err = capsys.readouterr().err
    assert f"{saved}: " in err and why in err, err
    assert cli.main(["--redraw", str(saved)]) == 2


def test_the_demonstration_runs_without_spark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(demo, "spark_missing", lambda: ["Java is not installed: install a JRE"])
    assert demo.main(["--rows", "9000", "--folder", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert "Looking up key = " in out
    assert "left out: Java is not installed" in out


def test_the_demonstration_takes_any_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "given.parquet"
    pq.write_table(pa.table({"flag": [True] * 10, "word": [f"w{i}" for i in range(10)]}), path)
    assert demo.main([str(path), "--no-spark"]) == 0
    assert "word = 'w5'" in capsys.readouterr().out


def test_pageseek_is_measured_on_one_thread(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []

    def pool(threads: int, *limits: int) -> WorkerPool:
        made.append(threads)
        return WorkerPool(threads, *limits)

    monkeypatch.setattr(tables, "FEW_VALUES", 0)
    monkeypatch.setattr(tables, "GROUP_VALUES", 0)
    monkeypatch.setattr(tables, "WAVE_ROWS", 0)
    monkeypatch.setattr(scheduler, "WorkerPool", pool)
    monkeypatch.setattr(scheduler, "cores", lambda: 2)
    path = str(files.path("lookup"))
    every = Query("all", Term("key", ">=", 0))
    peer = Pageseek(files.path("lookup"))
    peer.open()
    ways = speed._ways(path, every, cold=True)
    for measured in (
        lambda: peer.rows(None, ()),
        lambda: engines.pageseek(path, every),
        ways["pruned"],
        ways["unpruned"],
    ):
        measured()
    assert made == []
    ps.read_table(path)
    assert made == [2]


def test_engines_race_with_one_thread_and_with_all(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    small = ["--folder", str(tmp_path), "--rows", "9000", "--rounds", "1", "--files", "events"]
    assert race.main([*small, "--engine", "pyarrow"]) == 0
    lines = capsys.readouterr().out.splitlines()
    rows = {line.split(" | ")[0].strip("| "): line for line in lines if line.startswith("|")}
    assert len(rows) == 11 + 2  # with the head; pyarrow takes no rows by number, and gives no views
    assert rows["point lookup, all columns"].count("->") == 3 * (cores() > 1)


def test_an_engine_that_cannot_answer_is_named(tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    pq.write_table(pa.table({"a": [1, 2]}), path)
    engine = race.Engine("pyarrow", 1)
    try:
        assert engine.ask(race.Case("two", path))["count"] == 2
        assert "nothing" in engine.ask(race.Case("none", path, ("nothing",)))["error"]
    finally:
        engine.close()


def test_two_builds_are_asked_in_turn_and_their_rows_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report = tmp_path / "report.json"
    cases = ["--cases", "lookup-warm,lineitem-month,wide-footer", "--size", "tiny"]
    here = ["--against", sys.executable, "--budget", "0.01", "--folder", str(tmp_path)]
    code = cli.main([*cases, *here, "--json", str(report)])
    shown = capsys.readouterr()
    found = json.loads(report.read_text())["results"]
    ways = {(one["case"], one["threads"]) for one in found}
    assert ("lookup-warm", 1) in ways and ("lookup-warm", 0) in ways
    assert ("wide-footer", 1) in ways and all(one["rounds"] >= 5 for one in found)
    assert "this build" in shown.out and code == int(any(one["ratio"] > 1.05 for one in found))


def test_another_build_that_is_none_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--cases", "lookup-warm", "--size", "tiny", "--folder", str(tmp_path)]
    assert cli.main([*options, "--against", str(tmp_path / "nothing")]) == 1
    assert "neither a virtual environment nor a Python" in capsys.readouterr().err


def test_prepared_queries_are_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--folder", str(tmp_path), "--rows", "20000", "--rounds", "1"]
    assert prepared.main([*options, "--table", str(tmp_path / "table.md")]) == 0
    text = (tmp_path / "table.md").read_text()
    assert all(line in text for line in capsys.readouterr().out.splitlines())
    assert text.count("| zstd |") == text.count("| snappy |") == 2


def test_every_first_lookup_finds_its_row(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("duckdb")
    pytest.importorskip("polars")
    options = ["--folder", str(tmp_path), "--rows", "60000", "--rounds", "1"]
    assert startup.main(options) == 0  # a process that finds no row, or several, fails
    shown = capsys.readouterr().out
    path = generate.lookup_file(tmp_path, 60_000).resolve()
    for way in startup.programs(path, 0):
        assert f"| {way} |" in shown
