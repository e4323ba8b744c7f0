"""`advise`: what it recommends, that its commands run, that it reads little and writes nothing."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek.advice import layout
from pageseek.cli import main
from support.local_reads import hook_local_reads
from support.object_server.server import ObjectServer

N = 120_000
WRITER: dict[str, Any] = {
    "row_group_size": 40_000, "data_page_size": 8_000, "write_batch_size": 500, "use_dictionary": ["category"],
}  # fmt: skip


@pytest.fixture(scope="module")
def table() -> pa.Table:
    random = np.random.default_rng(3)
    return pa.table(
        {
            "id": random.permutation(N),
            "time": np.arange(N),
            "category": random.integers(0, 12, N),
            "odd name": random.permutation(N),
            "x": random.random(N),
            "place": [{"city": int(one)} for one in random.permutation(N)],
            "tags": [[int(one)] for one in range(N)],
        }
    )


@pytest.fixture
def path(table: pa.Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A file in the folder that is the current one."""
    ps.clear_cache()
    monkeypatch.chdir(tmp_path)
    pq.write_table(table, "it's a file.parquet", write_page_index=True, **WRITER)
    return "it's a file.parquet"


def kinds(found: Any) -> list[str]:
    return [item.command.split()[1] for item in found.recommended]


def run(command: str) -> int:
    """A printed command, as a shell would run it."""
    program, *arguments = shlex.split(command)
    assert program == "pageseek"
    return main(arguments)


@pytest.mark.parametrize("column", ["id", "odd name", "place.city"])
def test_the_printed_command_makes_the_query_as_cheap_as_estimated(path: str, column: str) -> None:
    query = ps.col(column) == 77
    advice = ps.advise(path, [(query, ["x"])])
    (item,) = advice.recommended
    assert item.title == f"lookup index of {column}" and not item.rewrites
    before = Path(path).stat().st_size
    assert run(item.command) == 0
    grown = Path(path).stat().st_size - before
    assert grown / 2 < item.adds_bytes < 2 * grown
    ps.clear_cache()
    report = ps.scan(path, columns=["x"], filter=query).explain(analyze=True)
    read = report.bytes["index"] + report.bytes["data"]
    guess = next(one for one in advice.queries[0].candidates if one.kind == "lookup")
    assert read / 2 <= guess.bytes <= 2 * read
    again = ps.advise(path, [(query, ["x"])])
    assert again.recommended == [] and "Nothing to gain" in again.queries[0].note


def test_the_python_of_a_recommendation_runs(path: str) -> None:
    (item,) = ps.advise(path, "id = 77").recommended
    eval(item.python, {"ps": ps})
    assert ("lookup", "id") in {(one.kind, one.column) for one in ps.index.list(path)}


@pytest.mark.parametrize(
    ("kind", "query", "column"),
    [("bitmap", "category = 3", "category"), ("bloom", "id = 77", "id")],
)
def test_the_bytes_that_an_index_adds(kind: str, query: str, column: str, path: str) -> None:
    found = ps.advise(path, [(query, [])]).queries[0]
    guess = next(one.adds_bytes for one in found.candidates if one.kind == kind)
    made = ps.index.attach(path, output="other.parquet", **{kind: [column]})
    grown = made.bytes_after - made.bytes_before
    assert grown / 3 < guess < 3 * grown


def test_few_changes_serve_many_queries(path: str) -> None:
    queries = [(f"id = {N // 2 + i}", ["x"]) for i in range(3)] + [("category = 3", [])]
    titles = [item.title for item in ps.advise(path, queries).recommended]
    assert titles[0] == "lookup index of id"
    assert titles[1:] == ["bitmap index of category"]


def test_a_rewrite_is_recommended_where_no_index_helps(path: str) -> None:
    advice = ps.advise(path, [("x between 0.2 and 0.21", None)])
    (item,) = advice.recommended
    assert item.rewrites and item.adds_bytes == 0
    arguments = shlex.split(item.command)
    assert arguments[:3] == ["pageseek", "rewrite", path] and arguments[-2:] == ["--sort-by", "x"]
    assert item.python == f"ps.rewrite({path!r}, \"it's a file.sorted.parquet\", sort_by=['x'])"


def test_an_order_that_harms_another_query_is_weighed(path: str) -> None:
    one, other = ("x between 0.2 and 0.21", ["id"]), ("time between 100 and 300", ["id"])
    (item,) = ps.advise(path, [one, *[("x between 0.4 and 0.41", ["id"])] * 2, other]).recommended
    assert item.rewrites and "but time between 100 and 300 then takes" in item.why
    assert ps.advise(path, [one, other, other, other]).recommended == []


@pytest.mark.parametrize(
    "query",
    ["time = 500", "time between 100 and 300", "x >= 0", "x > 5", "x is not null"],
)  # fmt: skip
def test_nothing_is_recommended_for_what_is_read_well(path: str, query: str) -> None:
    advice = ps.advise(path, query)
    assert advice.recommended == []
    assert advice.queries[0].note.startswith("Nothing to gain")
    assert "Recommended: nothing" in str(advice)


@pytest.mark.parametrize(
    "query",
    [
        "x < 0.5 or id = 3", "not (id = 4)", "id = time", "5 = any(tags)", "place.city in (1, 2)", "x is null",
        "category = 3 and id > 100 and id < 2000 and x < 0.5", "id = 1 or id = 2", "x = 0.5", "id in (1, 2, null)",
        [("id", ">", 7)], ps.col("place.city") > 7,
    ],
)  # fmt: skip
def test_every_form_of_filter_is_estimated(path: str, query: Any) -> None:
    (found,) = ps.advise(path, [query]).queries
    ps.clear_cache()
    report = ps.scan(path, filter=query).explain(analyze=True)
    read = report.bytes["index"] + report.bytes["data"]
    assert round(found.rows) == report.rows_out
    assert abs(found.bytes - read) < 4_000 or read / 2 <= found.bytes <= 2 * read


def test_with_analyze_what_is_read_is_counted(path: str) -> None:
    (found,) = ps.advise(path, "id = 77", analyze=True).queries
    assert found.measured and "measured" in str(ps.advise(path, "id = 77", analyze=True))
    report = ps.scan(path, filter="id = 77").explain(analyze=True)
    assert found.pages == report.tally()[0].read


def test_nothing_is_written(path: str, tmp_path: Path) -> None:
    before = {one: (one.read_bytes(), one.stat().st_mtime_ns) for one in tmp_path.iterdir()}
    ps.advise(path, ["id = 77", "category = 3", "x < 0.1"], analyze=True)
    ps.advise(path)
    assert before == {one: (one.read_bytes(), one.stat().st_mtime_ns) for one in tmp_path.iterdir()}


@pytest.mark.parametrize("page_index", [True, False])
@pytest.mark.parametrize("most", [0, 300_000, 2_000_000])
def test_no_more_than_the_limit_is_read(
    most: int, page_index: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One row group of two columns that take 8 MB each."""
    n = 1_000_000
    random = np.random.default_rng(1)
    big = pa.table({"a": random.permutation(n), "b": random.integers(0, 1 << 60, n)})
    path = tmp_path / "big.parquet"
    pq.write_table(
        big, path, write_page_index=page_index, use_dictionary=False, compression="none", data_page_size=100_000,
    )  # fmt: skip
    read = 0

    def counted(_: object, ranges: Any) -> None:
        nonlocal read
        read += sum(length for _, length in ranges)

    hook_local_reads(monkeypatch, counted)
    ps.clear_cache()
    advice = ps.advise(
        path,
        ["a = 500000", f"b = {big['b'][77]}", ("a < 1000 and b > 5", ["a"])],
        sample_bytes=most,
    )
    monkeypatch.undo()
    assert advice.sampled_bytes <= most
    assert read <= most + 200_000  # footers, page indexes, page headers
    if most == 0:
        assert "Not sampled" in advice.queries[0].note
    for query in advice.queries[:2]:
        assert 0.5 <= query.rows <= 20
        assert query.bytes > 8_000_000


def test_a_folder_is_advised_as_a_whole(table: pa.Table, tmp_path: Path) -> None:
    folder = tmp_path / "my sales"
    folder.mkdir()
    for i in range(3):
        pq.write_table(table.slice(i * 40_000, 40_000), folder / f"{i}.parquet", write_page_index=True, **WRITER)  # fmt: skip
    advice = ps.advise(folder, [("id = 77", ["x"])])
    assert (advice.num_files, advice.num_rows) == (3, N)
    (item,) = advice.recommended
    assert run(item.command) == 0
    assert all(("lookup", "id") in {(one.kind, one.column) for one in ps.index.list(each)} for each in folder.iterdir())  # fmt: skip


def test_a_table_is_changed_by_commits(table: pa.Table, tmp_path: Path) -> None:
    deltalake = pytest.importorskip("deltalake", reason="pip install 'pageseek[delta]'")
    folder = str(tmp_path / "lake")
    texts = [f"{one:032x}" for one in np.random.default_rng(1).integers(0, 1 << 62, 100_000)]
    deltalake.write_deltalake(folder, pa.table({"text": texts}))
    advice = ps.advise(folder, [(f"text = '{texts[90_000]}'", [])])
    item = next(one for one in advice.queries[0].candidates if one.title == "lookup index of text")
    program, option, code = shlex.split(item.command)
    assert (program, option) == ("python", "-c")
    exec(code, {})
    (file,) = deltalake.DeltaTable(folder).file_uris()
    assert "lookup" in {one.kind for one in ps.index.list(file, table=False)}


def test_remote_files_are_estimated_by_their_wider_requests(table: pa.Table, path: str) -> None:
    pytest.importorskip("obstore", reason="pip install 'pageseek[obstore]'")
    with ObjectServer() as server:
        server.put("web/a.parquet", Path(path).read_bytes())
        url = server.url("web/a.parquet")
        advice = ps.advise(url, [("id = 60000", ["x"])])
        ps.clear_cache()
        report = ps.scan(url, columns=["x"], filter="id = 60000").explain(analyze=True)
    read = report.bytes["index"] + report.bytes["data"]
    # how much more is fetched to save requests depends on the latency that was measured by then
    assert read / 4 <= advice.queries[0].bytes <= 4 * read
    assert url in advice.queries[0].candidates[0].command


def test_bytes_are_a_source(path: str) -> None:
    advice = ps.advise(Path(path).read_bytes(), "id = 77")
    assert advice.recommended[0].command == "pageseek index attach SOURCE --lookup id --in-place"


# -- without queries ----------------------------------------------------------------------------------


def found_in(table: pa.Table, tmp_path: Path, **writer: Any) -> list[str]:
    path = tmp_path / "one.parquet"
    pq.write_table(table, path, **{"write_page_index": True, "compression": "zstd"} | writer)
    return [item.title for item in ps.advise(path).recommended]


def test_a_good_file_has_no_findings(table: pa.Table, tmp_path: Path) -> None:
    assert found_in(table, tmp_path) == []
    assert "laid out well" in str(ps.advise(tmp_path / "one.parquet"))


def test_a_missing_page_index_is_found(table: pa.Table, tmp_path: Path) -> None:
    (found,) = found_in(table.select(["id", "x"]), tmp_path, write_page_index=False)
    assert found == "page index of id, x"


def test_missing_statistics_are_found(table: pa.Table, tmp_path: Path) -> None:
    assert "statistics of time" in found_in(table.select(["id", "time"]), tmp_path, write_statistics=["id"])  # fmt: skip


def test_pages_that_are_too_large_are_found(tmp_path: Path) -> None:
    n = 400_000
    big = pa.table({"a": np.random.default_rng(1).random(n)})
    titles = found_in(
        big, tmp_path, data_page_size=64 << 20, max_rows_per_page=n, use_dictionary=False
    )
    assert titles == ["smaller pages of a"]


def test_tiny_row_groups_are_found(table: pa.Table, tmp_path: Path) -> None:
    assert "larger row groups" in found_in(table.select(["id", "x"]), tmp_path, row_group_size=5_000)  # fmt: skip


def test_what_is_not_compressed_is_found(tmp_path: Path) -> None:
    big = pa.table({"a": np.random.default_rng(1).random(300_000)})
    assert found_in(big, tmp_path, compression="none") == ["compressed pages"]


def test_texts_of_many_values_without_a_filter_are_found(tmp_path: Path) -> None:
    texts = [f"{one:032x}" for one in np.random.default_rng(1).integers(0, 1 << 62, 60_000)]
    assert found_in(pa.table({"a": texts}), tmp_path) == ["Bloom filters of a"]


def test_nearly_sorted_columns_are_found(tmp_path: Path) -> None:
    n = 200_000
    near = np.arange(n) + np.random.default_rng(1).integers(0, 5_000, n)
    both = pa.table({"near": near, "sorted": np.arange(n)})
    titles = found_in(both, tmp_path, row_group_size=20_000, use_dictionary=False)
    assert "rows sorted by near" in titles and "rows sorted by sorted" not in titles


def test_many_small_files_are_found(table: pa.Table, tmp_path: Path) -> None:
    for i in range(20):
        pq.write_table(table.select(["id"]).slice(i * 100, 100), tmp_path / f"{i}.parquet", write_page_index=True)  # fmt: skip
    assert "fewer files" in [item.title for item in ps.advise(tmp_path).recommended]


# -- wrong arguments, and the command -----------------------------------------------------------------


def test_wrong_queries_are_refused(path: str) -> None:
    with pytest.raises(ps.PredicateError, match="nobody"):
        ps.advise(path, "nobody = 5")
    with pytest.raises(ps.PredicateError, match="in place of parameters"):
        ps.advise(path, ps.col("id") == ps.param("k"))
    with pytest.raises(ps.PredicateError, match="needs a filter"):
        ps.advise(path, [None])
    with pytest.raises(ps.PredicateError, match="nowhere"):
        ps.advise(path, [("id = 5", ["nowhere"])])
    with pytest.raises(TypeError, match="belongs into a query"):
        ps.advise(path, "id = 5", columns=["x"])
    with pytest.raises(ValueError, match="sample_bytes=-1"):
        ps.advise(path, "id = 5", sample_bytes=-1)


def test_the_command_prints_advice(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["advise", path, "--filter", "id = 77", "--columns", "x", "--filter", "category = 3", "--columns", ""]) == 0  # fmt: skip
    shown = capsys.readouterr().out
    assert "1. id = 77 (columns x): about 1 row" in shown
    assert "2. category = 3 (rows are counted)" in shown
    assert "$ pageseek index attach 'it'\"'\"'s a file.parquet' --lookup id --in-place" in shown


def test_the_command_prints_json(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["advise", path, "--filter", "id = 77", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    same = json.loads(json.dumps(ps.advise(path, "id = 77").to_dict()))
    assert found["recommended"][0]["command"] == same["recommended"][0]["command"]
    assert found["rows"] == same["rows"] == N
    assert found["queries"][0]["columns"] is None
    assert found["recommended"][0]["command"].startswith("pageseek index attach")


def test_the_command_refuses_columns_without_a_filter(
    path: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["advise", path, "--columns", "x"])
    assert "follows the --filter" in capsys.readouterr().err
    assert main(["advise", path, "--filter", "nobody = 5"]) == 1


def test_rows_of_huge_files_are_not_held(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some row groups stand for all; one that is larger than advise can hold is refused."""
    query = "id between 5000 and 9000"
    before = ps.advise(path, query).queries[0]
    monkeypatch.setattr(layout, "MOST_ROWS", 25_000)
    after = ps.advise(path, query).queries[0]
    assert before.rows / 4 < after.rows < 4 * before.rows
    assert before.bytes / 4 < after.bytes < 4 * before.bytes
    monkeypatch.setattr(layout, "MOST_GROUP_ROWS", 100)
    with pytest.raises(ps.UnsupportedError, match=r"row group 0 has .* rows, more than the 100"):
        ps.advise(path, query)


def test_queries_that_are_none(path: str) -> None:
    one = ps.advise(path, [("id", "=", 77), ("time", ">", 5)])
    assert [len(query.columns or ()) for query in one.queries] == [0]
    assert one.to_dict() == ps.advise(path, [[("id", "=", 77), ("time", ">", 5)]]).to_dict()
    for wrong in (5, {"id": 1}, b"id = 1", ps):
        with pytest.raises(TypeError, match=r"a filter, or a list of filters"):
            ps.advise(path, wrong)


def test_two_columns_together(tmp_path: Path) -> None:
    """Each value has many rows, and the pair has few: a key of both columns serves, unless it is there."""
    random, path = np.random.default_rng(5), tmp_path / "a.parquet"
    rows = {name: random.integers(0, n, 100_000) for name, n in (("shop", 40), ("item", 700))}
    rows["x"] = random.integers(0, 1 << 60, 100_000)
    pq.write_table(
        pa.table(rows), path, data_page_size=4_000, write_batch_size=500, use_dictionary=False
    )
    query = "shop = 7 and item = 9"
    (found,) = ps.advise(path, query).queries
    key = next(one for one in found.candidates if one.kind == "key_lookup")
    assert key.title == "lookup index of shop, item together"
    assert "--lookup '(shop,item)' --in-place" in key.command
    assert f"ps.index.attach({str(path)!r}, lookup=[('shop', 'item')], in_place=True)" == key.python
    assert key.bytes < found.bytes / 4 and key.adds_bytes > 300_000
    for columns in (["shop", "item"], ["item", "shop"]):
        other = tmp_path / f"{columns[0]}.parquet"
        ps.index.attach(path, lookup=[tuple(columns)], output=other)
        (now,) = ps.advise(other, query).queries
        assert "key_lookup" not in [one.kind for one in now.candidates]
    for other_query in ("shop = 7 and item > 9", "shop = 7 and x = 5", "shop = 7 or item = 9"):
        (one,) = ps.advise(path, other_query).queries
        assert "key_lookup" not in [one.kind for one in one.candidates]
