"""`advise`: trigrams, Bloom filters of whole files, places in footers, larger row groups, and what comes first."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek.base.report import format_size
from pageseek.cli import main

N = 100_000
WRITER: dict[str, Any] = {
    "data_page_size": 20_000, "write_batch_size": 500, "use_dictionary": False, "write_page_index": True,
}  # fmt: skip


@pytest.fixture(scope="module")
def table() -> pa.Table:
    random = np.random.default_rng(1)
    words = ["".join(map(chr, word)) for word in random.integers(97, 123, (2_000, 7)).tolist()]
    words[1_990:] = [f"é{word}" for word in words[1_990:]]
    texts = [
        " ".join(words[i] for i in some) for some in random.integers(0, 2_000, (N, 3)).tolist()
    ]
    texts[5_000] = "my needle of silver"
    x = random.random(N)
    nearly = np.argsort(np.sort(x) + random.integers(0, 100, N) / 700)
    return pa.table(
        {"id": random.permutation(N), "text": texts, "x": x, "nearly": np.sort(x)[nearly]}
    )


def run(command: str) -> None:
    program, *arguments = shlex.split(command)
    assert program == "pageseek"
    assert main(arguments) == 0


def read(source: Path, query: Any, columns: list[str]) -> tuple[int, int]:
    ps.clear_cache()
    report = ps.scan(source, columns=columns, filter=query).explain(analyze=True)
    return report.bytes["index"] + report.bytes["data"], report.requests


def close(guess: float, true: float, least: float = 4_000) -> bool:
    return abs(guess - true) <= least or true / 2 <= guess <= 2 * true


@pytest.mark.parametrize(
    "query", ["text like '%needle of%'", ps.col("text").starts_with("my need")]
)
@pytest.mark.parametrize("sample", [32 << 20, 400_000])
def test_trigrams_for_parts_of_texts(
    table: pa.Table, tmp_path: Path, query: Any, sample: int
) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(table, path, **WRITER)
    advice = ps.advise(path, [(query, ["id"])], sample_bytes=sample)
    (item,) = advice.recommended
    assert item.title == "trigram index of text" and "--trigram text" in item.command
    assert item.python.endswith("trigram=['text'], in_place=True)")
    guess = next(one for one in advice.queries[0].candidates if one.kind == "trigram")
    before = path.stat().st_size
    run(item.command)
    grown = path.stat().st_size - before
    assert grown / 2 <= item.adds_bytes <= 2 * grown
    size, requests = read(path, query, ["id"])
    # with few rows of a sample it is not known in which blocks a part of a text is
    assert close(guess.bytes, size, 100_000) and guess.requests <= 3 * requests
    assert size < advice.queries[0].bytes / 4
    assert "trigram" not in [one.kind for one in ps.advise(path, query).queries[0].candidates]


@pytest.mark.parametrize("query", ["text like '%ne%'", "text ilike '%needle%'", "not text like '%needle%'"])  # fmt: skip
def test_trigrams_are_not_tried_for_what_they_cannot_find(
    table: pa.Table, tmp_path: Path, query: str
) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(table.slice(0, 5_000), path, **WRITER)
    assert "trigram" not in [one.kind for one in ps.advise(path, query).queries[0].candidates]


def test_filters_of_whole_files(table: pa.Table, tmp_path: Path) -> None:
    for i in range(16):
        pq.write_table(table.slice(i * 6_000, 6_000), tmp_path / f"{i:02}.parquet", **WRITER)
    query = f"id = {table['id'][3].as_py()}"
    advice = ps.advise(tmp_path, [(query, ["x"])])
    item = guess = next(one for one in advice.queries[0].candidates if one.kind == "file_bloom")
    assert item.title == "Bloom filters of whole files for id" and not item.rewrites
    before = sum(one.stat().st_size for one in tmp_path.iterdir())
    run(item.command)
    grown = sum(one.stat().st_size for one in tmp_path.iterdir()) - before
    assert grown / 2 <= item.adds_bytes <= 2 * grown
    ps.clear_cache()
    report = ps.scan(tmp_path, columns=["x"], filter=query).explain(analyze=True)
    size = report.bytes["data"] + report.bytes["index"]
    assert size > 16 * 6_000 and close(guess.bytes, size, 15_000)
    assert abs(guess.requests - (report.requests - 16)) <= 6
    kinds = [one.kind for one in ps.advise(tmp_path, query).queries[0].candidates]
    assert "file_bloom" not in kinds
    one_file = ps.advise(tmp_path / "00.parquet", query).queries[0]
    assert "file_bloom" not in [one.kind for one in one_file.candidates]


def test_filters_of_whole_files_are_enough(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Nothing more is recommended to files whose filters rule out all but one of them."""
    keys = np.random.default_rng(4).integers(0, 1 << 50, 120_000)
    for i in range(40):
        some = keys[i * 3_000 : (i + 1) * 3_000]
        rows = {"k": some, "text": [f"{one:0100x}" for one in some]}
        pq.write_table(pa.table(rows), tmp_path / f"{i:02}.parquet", **WRITER)
    query = f"k = {keys[5]}"
    (item,) = ps.advise(tmp_path, query).recommended
    assert item.title == "Bloom filters of whole files for k"
    run(item.command)
    ps.clear_cache()
    advice = ps.advise(tmp_path, query)
    assert advice.recommended == []
    assert not caplog.records  # of the sample, which has no such filter
    now = advice.queries[0]
    assert now.requests > 40
    assert all(one.requests > 40 for one in now.candidates)


def test_places_in_footers_of_many_columns(tmp_path: Path) -> None:
    path = tmp_path / "wide.parquet"
    columns = {f"a_column_{i}": pa.array([1, 2, 3, 4]) for i in range(1_500)}
    pq.write_table(pa.table(columns), path, row_group_size=1, write_page_index=True)
    query = ("a_column_3 = 1", ["a_column_5"])
    for advice in (ps.advise(path), ps.advise(path, [query])):
        item = advice.recommended[-1]
        assert item.title == "places of the chunks in the footer" and not item.rewrites
        assert item.python.endswith("footer=True, in_place=True)")
        opening = advice.opening
        assert opening is not None and opening.candidate.kind == "footer"
        told = advice.to_dict()["opening"]
        assert told["before"] == {"bytes": opening.bytes, "requests": 2}
        assert told["candidates"][0]["bytes"] < opening.bytes / 2
        lines = str(advice).split("Opening a file")[1].splitlines()[3:5]
        assert [line.split()[-1] for line in lines] == [
            "2",
            f"+{format_size(item.adds_bytes)}".split()[-1],
        ]
        assert "Opening a file" in advice._repr_html_()
    # all columns are read: so is the footer
    assert ps.advise(path, query[0]).recommended == []
    assert ps.advise(path, query[0]).opening is None
    assert abs(opening.bytes - pq.read_metadata(path).serialized_size) < 10
    ps.clear_cache()
    assert "a footer has" in item.why and "by 4 requests" in item.why
    guess = float(item.why.split("about ")[1].split(" kB")[0]) * 1_000
    before = path.stat().st_size
    run(item.command)
    assert (path.stat().st_size - before) / 2 <= item.adds_bytes
    ps.clear_cache()
    report = ps.scan(path, filter=query[0], columns=query[1]).explain(analyze=True)
    assert close(guess, report.bytes["metadata"])
    assert ps.advise(path).recommended == []


def test_larger_row_groups_spare_requests(table: pa.Table, tmp_path: Path) -> None:
    path, out = tmp_path / "a.parquet", tmp_path / "b.parquet"
    pq.write_table(table, path, row_group_size=1_000, **WRITER)
    query, columns = "x >= 0", ["id"]  # an order would spare little
    advice = ps.advise(path, [(query, columns)])
    (item,) = advice.recommended
    assert item.title == "row groups of 1,000,000 rows" and item.rewrites
    assert item.python.endswith("row_group_rows=1000000)")
    guess = next(one for one in advice.queries[0].candidates if one.kind == "row_group_rows")
    run(item.command.replace(shlex.quote(str(tmp_path / "a.rewritten.parquet")), str(out)))
    size, requests = read(out, query, columns)
    assert close(guess.bytes, size) and guess.requests <= 3 * requests
    assert not [one for one in ps.advise(out, query).queries[0].candidates if one.kind == "row_group_rows"]  # fmt: skip


@pytest.mark.parametrize("query", ["id > 100", "text > 'b'", "few = 'value 7'"])
def test_values_of_small_dictionaries_do_not_vanish(query: str, tmp_path: Path) -> None:
    """Row groups whose dictionaries hold nearly all of their bytes, and dictionaries that are equal in all of them."""
    random, n = np.random.default_rng(1), 20_000
    rows = {
        "id": random.permutation(n),
        "text": [random.bytes(100).hex() for _ in range(n)],
        "few": [f"value {i}" for i in random.integers(0, 300, n)],
    }
    path, out = tmp_path / "a.parquet", tmp_path / "b.parquet"
    pq.write_table(pa.table(rows), path, row_group_size=1_000, write_page_index=True)
    columns = [query.split()[0], "text"]
    (found,) = ps.advise(path, [(query, columns)]).queries
    guess = next(one for one in found.candidates if one.kind == "row_group_rows")
    ps.rewrite(path, out, row_group_rows=1_000_000)
    assert close(guess.bytes, read(out, query, columns)[0])


def test_what_leaves_least_comes_first(table: pa.Table, tmp_path: Path) -> None:
    """A page index would leave a part of the pages, an order next to none."""
    path = tmp_path / "a.parquet"
    pq.write_table(table, path, **{**WRITER, "write_page_index": False})
    query = "nearly between 0.5 and 0.502"
    advice = ps.advise(path, [(query, ["id", "x"])])
    left = {one.kind: one.bytes for one in advice.queries[0].candidates}
    assert left["sort_by"] < left["page_index"] / 2 < advice.queries[0].bytes / 2
    assert advice.recommended[0].title == "rows sorted by nearly"


NAMES = ["a,b", "-q", "(z)", 'say "x"', " y", "x=1", "t:desc", "--lookup", "it's"]


@pytest.mark.parametrize("name", NAMES)
def test_commands_take_every_name(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    """Of candidates too: the command does what the call in Python does."""
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(2)
    table = pa.table(
        {name: random.permutation(30_000) % 1_500, "s": random.integers(0, 50, 30_000)}
    )
    one = ps.col(name)
    pq.write_table(table, "-a.parquet", **WRITER)
    queries = [one == 7, (one == 7) & (ps.col("s") == 5), (one < 900) & (ps.col("s") < 10)]
    found = {
        candidate.kind: candidate
        for query in ps.advise("-a.parquet", queries).queries
        for candidate in query.candidates
        if name in candidate.columns
    }
    assert {"lookup", "bloom", "sort_by", "key_lookup", "cluster_by"} <= found.keys()
    for kind, candidate in found.items():
        pq.write_table(table, "-a.parquet", **WRITER)
        for output in tmp_path.glob("-a.*.parquet"):
            output.unlink()
        shell(candidate.command)
        if candidate.rewrites:
            (output,) = tmp_path.glob("-a.*.parquet")
            first = pq.read_table(output)[name].to_numpy()[:20].max()
            assert first < 1_000 and (kind != "sort_by" or first == 0)
        else:
            kinds = {(there.kind, there.column) for there in ps.index.list("-a.parquet")}
            assert kind in {there for there, _ in kinds}


def shell(command: str) -> None:
    if command.startswith("python -c "):
        exec(shlex.split(command)[2], {})
    else:
        run(command)


def test_outputs_of_several_commands_differ(tmp_path: Path) -> None:
    random, n = np.random.default_rng(1), 60_000
    near = np.arange(n) + random.integers(0, 5_000, n)
    rows = {"a": near, "b": near + random.integers(0, 5_000, n), "x": random.random(n)}
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table(rows), path, row_group_size=3_000, **WRITER | {"write_statistics": ["a", "b"]})  # fmt: skip
    rewrites = [one for one in ps.advise(path).recommended if one.rewrites]
    outputs = [shlex.split(one.command)[4] for one in rewrites]
    assert [Path(one).name for one in outputs] == [
        "a.rewritten.parquet", "a.rewritten-2.parquet", "a.sorted.parquet", "a.sorted-2.parquet",
    ]  # fmt: skip
    assert all(repr(output) in one.python for one, output in zip(rewrites, outputs, strict=True))
    for one in rewrites:
        run(one.command)


def test_a_name_that_is_empty_has_a_command_of_python(tmp_path: Path) -> None:
    near = np.arange(N) + np.random.default_rng(1).integers(0, 5_000, N)
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"": near}), path, row_group_size=10_000, **WRITER)
    (item,) = [one for one in ps.advise(path).recommended if "sorted" in one.title]
    shell(item.command)
    assert pq.read_table(tmp_path / "a.sorted.parquet")[0].to_numpy()[0] == near.min()
