"""Estimates against what is read: of files as they are, and after the change that was estimated has been made."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek.advice import larger_groups
from pageseek.format.file_metadata import FileMetadata
from pageseek.rewriting import encoding, request

N, GROUP = 160_000, 40_000
FULL, SMALL = 32 << 20, 400_000  # bytes of a sample: all that is tested, and a part of it
# writers of pages: the usual ones, small ones, and one page a chunk
USUAL: dict[str, Any] = {}
FINE: dict[str, Any] = {"data_page_size": 8_000, "write_batch_size": 500, "use_dictionary": False}
ONE_PAGE: dict[str, Any] = {"data_page_size": 64 << 20, "max_rows_per_page": N}


def made() -> pa.Table:
    random = np.random.default_rng(7)
    uuids = [f"{one:016x}" for one in random.integers(0, 1 << 62, N)]
    return pa.table(
        {
            "id": random.permutation(N),  # unique, in no order
            "time": np.arange(N),  # sorted
            "late": np.arange(N) + random.integers(0, 5_000, N),  # nearly sorted
            "customer": random.integers(0, N // 20, N),  # about twenty rows each
            "skewed": random.zipf(1.3, N) % 50_000,
            "device": np.repeat(random.permutation(N // 50), 50),  # runs of equal values
            "uuid": uuids,
            "category": random.integers(0, 12, N),
            "shop": np.random.default_rng(8).integers(0, 1_000, N),
            "x": random.random(N),
            "y": random.random(N),
        }
    )


class Case(NamedTuple):
    """A query, with the columns of its result, and the changes to make."""

    query: str
    columns: list[str] | None
    changes: dict[str, list[str]]
    writer: dict[str, Any] = USUAL
    page_index: bool = True


CASES = {
    "unique key": Case("id = 777", None, {"lookup": ["id"], "bloom": ["id"], "sort_by": ["id"]}),
    "unique key, small pages": Case("id = 777", None, {"lookup": ["id"], "sort_by": ["id"]}, FINE),
    "unique key, no page index": Case("id = 777", ["x"], {"lookup": ["id"]}, FINE, False),
    "one page a chunk": Case("id = 777", ["uuid"], {"lookup": ["id"], "bloom": ["id"]}, ONE_PAGE),
    "twenty rows a key": Case("customer = 5", ["x"], {"lookup": ["customer"], "sort_by": ["customer"]}, FINE),
    "runs of a key": Case("device = 5", ["x"], {"lookup": ["device"], "sort_by": ["device"]}, FINE),
    "text": Case("uuid = '{uuid}'", None, {"lookup": ["uuid"], "bloom": ["uuid"], "sort_by": ["uuid"]}, FINE),
    "sorted key": Case("time between 1000 and 1500", None, {"sort_by": ["time"]}, FINE),
    "nearly sorted key": Case("late between 70000 and 70100", None, {"sort_by": ["late"]}, FINE),
    "nearly sorted, no page index": Case("late between 70000 and 70100", ["x"], {"page_index": []}, FINE, False),
    "frequent value of a skewed key": Case("skewed = 7", ["y"], {"lookup": ["skewed"], "sort_by": ["skewed"]}, FINE),
    "rare value of a skewed key": Case("skewed = 40000", ["y"], {"lookup": ["skewed"], "sort_by": ["skewed"]}, FINE),
    "list of keys": Case("customer in (5, 70, 71, 4000)", ["x"], {"lookup": ["customer"], "sort_by": ["customer"]}, FINE),
    "long list of keys": Case(f"customer in ({', '.join(map(str, range(0, 6000, 40)))})", ["x"], {"lookup": ["customer"], "sort_by": ["customer"]}, FINE),
    "few categories, counted": Case("category = 3", [], {"bitmap": ["category"]}),
    "few categories": Case("category = 3", ["x"], {"bitmap": ["category"], "sort_by": ["category"]}, FINE),
    "range": Case("x between 0.2 and 0.201", ["y"], {"sort_by": ["x"]}, FINE),
    "two ranges": Case("x < 0.1 and y < 0.1", None, {"sort_by": ["x"], "cluster_by": ["x", "y"]}, FINE),
    "two keys": Case("category = 3 and device = 5", None, {"key_lookup": ["category", "device"], "lookup": ["device"]}, FINE),
    "two rare keys together": Case("category = 3 and shop = 5", ["x"], {"key_lookup": ["category", "shop"], "bitmap": ["category"]}, FINE),
    "lists of two keys": Case("category in (3, 4) and shop in (5, 9, 70)", ["x"], {"key_lookup": ["category", "shop"]}, FINE),
    "category and key": Case("category = 3 and customer = 5", None, {"bitmap": ["category"], "lookup": ["customer"], "sort_by": ["customer"]}, FINE),
}  # fmt: skip


@pytest.fixture(scope="module")
def table() -> pa.Table:
    return made()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("layouts")


def written(table: pa.Table, path: Path, case: Case, page_index: bool = True) -> Path:
    if not path.exists():
        pq.write_table(
            table, path, row_group_size=GROUP, compression="zstd", write_page_index=page_index, **case.writer
        )  # fmt: skip
    return path


def changed(path: Path, kind: str, columns: list[str]) -> Path:
    """The file with a change made, as the command makes it."""
    target = path.with_suffix(f".{kind}.{'-'.join(columns)}.parquet")
    if kind in ("sort_by", "cluster_by", "page_rows") and not target.exists():
        rewrite: Any = {kind: columns or 1_000}
        ps.rewrite(path, target, **rewrite)
    elif not target.exists():
        indexes = {} if kind == "page_index" else {kind: columns}
        if kind == "key_lookup":
            indexes = {"lookup": [tuple(columns)]}
        ps.index.attach(path, output=target, **indexes)
    return target


def read(path: Path, query: str, columns: list[str] | None) -> tuple[int, int, int]:
    """The bytes and requests that a query took, without the footer, and its rows."""
    ps.clear_cache()
    report = ps.scan(path, columns=columns, filter=query).explain(analyze=True)
    return report.bytes["index"] + report.bytes["data"], report.requests - 2, report.rows_out


def close(guess: float, true: float, least: float, factor: float = 2) -> bool:
    """Within a factor; small figures within `least`."""
    return abs(guess - true) <= least or true / factor <= guess <= factor * true


@pytest.mark.covering(1)
@pytest.mark.parametrize("most", [FULL, SMALL])
@pytest.mark.parametrize("name", CASES)
def test_estimates_are_within_a_factor_of_two(
    name: str, most: int, table: pa.Table, folder: Path
) -> None:
    case = CASES[name]
    query = case.query.format(uuid=table["uuid"][1234])
    writer = [USUAL, FINE, ONE_PAGE].index(case.writer)
    path = written(table, folder / f"{writer}{case.page_index}.parquet", case, case.page_index)
    ps.clear_cache()
    advice = ps.advise(path, [(query, case.columns)], sample_bytes=most)
    (found,) = advice.queries
    assert advice.sampled_bytes <= most
    size, requests, rows = read(path, query, case.columns)
    assert close(found.bytes, size, 4_000), (found.bytes, size)
    assert close(found.requests, requests, 20, 3), (found.requests, requests)
    if most == FULL:
        assert round(found.rows) == rows
    tried = {(one.kind, *one.columns): one for one in found.candidates}
    rewritten = {"page_rows": []} if ("page_rows",) in tried else {}
    for kind, columns in (case.changes | rewritten).items():
        size, requests, _ = read(changed(path, kind, columns), query, case.columns)
        guess = next((one for key, one in tried.items() if key[: 1 + len(columns)] == (kind, *columns)), None)  # fmt: skip
        assert guess is not None, f"{kind} was not tried"
        assert close(guess.bytes, size, 4_000), (kind, guess.bytes, size)
        assert close(guess.requests, requests, 20, 3), (kind, guess.requests, requests)


def test_a_bloom_filter_spares_nearly_all_of_an_absent_value(table: pa.Table, folder: Path) -> None:
    case = CASES["text"]
    path = written(table, folder / "1True.parquet", case)
    absent = "2000000000000000"  # between values that are there
    advice = ps.advise(path, f"uuid = '{absent}'")
    (found,) = advice.queries
    assert round(found.rows) == 0
    filtered = next(one for one in found.candidates if one.kind == "bloom")
    assert filtered.bytes < found.bytes / 10  # some row group in a hundred is read by mistake
    indexed = changed(path, "bloom", ["uuid"])
    assert read(indexed, f"uuid = '{absent}'", None)[0] < found.bytes / 10


def test_what_a_rewrite_is_taken_to_write_is_what_it_writes() -> None:
    assert larger_groups.SMALL_PAGE == request.PAGE_ROWS
    assert larger_groups.USUAL_GROUP == encoding.GROUP_ROWS
    assert larger_groups.MOST_DICTIONARY == encoding.DICTIONARY_BYTES


@pytest.mark.parametrize("codec", ["none", "snappy", "zstd"])
def test_rewrites_of_files_without_dictionaries(codec: str, tmp_path: Path) -> None:
    """A unique text, which zstd makes small, and few values, of which the rewrite makes dictionaries."""
    n, random = 100_000, np.random.default_rng(5)
    path, out = tmp_path / "a.parquet", tmp_path / "b.parquet"
    rows = {
        "k": random.permutation(n),
        "text": [f"a text with the number {one:016d}" for one in random.permutation(n)],
        "few": random.integers(0, 50, n),
    }
    pq.write_table(pa.table(rows), path, compression=codec, use_dictionary=False, row_group_size=40_000)  # fmt: skip
    query = "k between 400 and 420"
    (found,) = ps.advise(path, [query]).queries
    tried = {one.kind: one for one in found.candidates}
    for kind, rewrite in (("sort_by", {"sort_by": ["k"]}), ("page_rows", {"page_rows": 1_000})):
        ps.rewrite(path, out, overwrite=True, **rewrite)  # type: ignore[arg-type]
        size = read(out, query, None)[0]
        # what a codec will make of plain bytes is a guess
        factor = 3 if codec == "none" else 2
        assert close(tried[kind].bytes, size, 4_000, factor), (kind, tried[kind].bytes, size)


def test_row_groups_are_looked_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"a": range(2_000), "b": range(2_000)}), path, row_group_size=10)
    calls = Counter[str]()
    chunks = FileMetadata.chunks

    def counted(self: FileMetadata, leaf: Any) -> Any:
        calls[leaf.name] += 1
        return chunks(self, leaf)

    monkeypatch.setattr(FileMetadata, "chunks", counted)
    assert any("larger row groups" in one.title for one in ps.advise(path).recommended)
    assert max(calls.values()) < 50  # and not 200
