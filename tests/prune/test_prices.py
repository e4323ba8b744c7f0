"""The price of a mechanism is what must be fetched for it: bytes in memory are free, and `explain` names unused mechanisms."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek._core import rows
from pageseek.format import footer
from pageseek.prune import Price, PruneContext
from pageseek.prune.bloom_filter import BloomPruner
from pageseek.storage.local import LocalStore
from support import batch_comparison

CATEGORY = ps.col("category")
WORDS = ["alpha", "omega", *(f"w{i:02}" for i in range(40))]


@pytest.fixture(autouse=True)
def _no_cache() -> Iterator[None]:
    ps.clear_cache()
    yield
    ps.clear_cache()


def published(
    path: Path, table: pa.Table, statistics: bool = True, said: bytes | None = None
) -> Path:
    """A file with a list of the values of `category`, laid as the published example lays it. `said`: of its offset."""
    with path.open("wb") as sink:
        writer = pq.ParquetWriter(sink, table.schema, write_statistics=statistics)
        writer.write_table(table)
        offset = sink.tell()
        body = "\n".join(dict.fromkeys(table["category"].to_pylist())).encode()
        sink.write(b"IDX1" + len(body).to_bytes(8, "little") + body)
        told = b"%d" % offset if said is None else said
        writer.add_key_value_metadata({b"distinct_index_offset": told})
        writer.close()
    return path


def table(i: int, n: int = 300) -> pa.Table:
    """Words spread over the alphabet in each file, so that statistics rule out nothing, and one that only this file has."""
    words = [f"only{i:03}", "alpha", "zulu", *(WORDS[2 + (i * 7 + k) % 40] for k in range(n - 3))]
    return pa.table({"category": words, "n": range(n), "x": [k * 0.7 for k in range(n)]})


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("lake")
    for i in range(100):
        published(folder / f"{i:03}.parquet", table(i))
    return folder


@pytest.fixture
def far(monkeypatch: pytest.MonkeyPatch) -> None:
    """Local files with the latency of remote ones: the last 64 kB come with the footer."""
    monkeypatch.setattr(LocalStore, "latency", 0.05)
    monkeypatch.setattr(LocalStore, "bandwidth", 1e8)


def explained(source: Any, condition: Any, **options: Any) -> tuple[dict[str, Any], str]:
    report = ps.scan(source, filter=condition, **options).explain(analyze=True)
    return report.to_dict(), str(report)


@pytest.mark.parametrize("statistics", [True, False])
@pytest.mark.parametrize("waited", [False, True])
def test_lists_of_files_of_a_few_rows_are_asked(
    tmp_path: Path, statistics: bool, waited: bool, request: pytest.FixtureRequest
) -> None:
    if waited:
        request.getfixturevalue("far")
    files = {"a": ["alpha", "omega"], "b": ["bravo", "yankee"], "c": ["alpha", "zulu"]}
    for name, words in files.items():
        data = pa.table({"category": words * 4})
        published(tmp_path / f"{name}.parquet", data, statistics)
    found, _ = explained(tmp_path, CATEGORY == "bravo")
    assert found["files"]["read"] == 1, found["files"]
    found, _ = explained(tmp_path, CATEGORY == "omega")
    assert found["files"]["read"] == 1, found["files"]
    found, _ = explained(tmp_path, CATEGORY == "nowhere")
    assert found["files"]["read"] == 0 and found["bytes"]["data"] == 0


def test_the_example_of_three_files(tmp_path: Path) -> None:
    """As published, with every mechanism at hand: of three files only those are read that have the value."""
    files = {"a": ["foo", "bar", "foo"], "b": ["baz", "qux"], "c": ["foo", "quux", "quux"]}
    for name, words in files.items():
        published(tmp_path / f"{name}.parquet", pa.table({"category": words}), statistics=False)
    for value, read in (("foo", 2), ("qux", 1), ("quux", 1), ("corge", 0)):
        found, _ = explained(tmp_path, value == CATEGORY)
        assert found["files"]["read"] == read, value


def test_lists_of_many_files_come_with_their_footers(lake: Path) -> None:
    found, _ = explained(lake, CATEGORY == "only050")
    assert found["files"] == {"total": 100, "read": 1, "pruned_by": {"distinct_index": 99}}
    assert found["row_groups"]["pruned_by"] == {"distinct_index": 99}
    assert found["rows"]["pruned_by"] == {"distinct_index": 99 * 300}
    # an end of each file, and what is read of one
    assert found["requests"] <= 100 + 6
    assert ps.read_table(lake, filter=CATEGORY == "only050")["n"].to_pylist() == [0]


def test_many_files_whose_lists_say_nothing_of_a_test_are_not_opened(
    lake: Path, tmp_path: Path
) -> None:
    """A list of one column says nothing of another: as much is read as of files without."""
    for i in range(100):
        pq.write_table(table(i), tmp_path / f"{i:03}.parquet")
    for condition in (ps.col("n") == 7, CATEGORY > "w"):
        ps.clear_cache()
        found, plain = (
            explained(folder, condition, prune=["statistics", "distinct_index"])[0]
            for folder in (lake, tmp_path)
        )
        assert found["files"]["read"] == plain["files"]["read"] == 100
        assert found["requests"] == plain["requests"]


CONDITIONS: list[Callable[[], Any]] = [
    lambda: CATEGORY == "only003",
    lambda: CATEGORY == "w05",
    lambda: CATEGORY.isin(["only003", "only017", "nowhere"]),
    lambda: CATEGORY.starts_with("only01"),
    lambda: CATEGORY != "w05",
    lambda: ~(CATEGORY != "only003"),
    lambda: (CATEGORY == "only003") | (ps.col("n") == 5),
    lambda: (CATEGORY == "nowhere") & (ps.col("n") < 5),
    lambda: CATEGORY > "only003",
    lambda: CATEGORY.is_null(),
]


@pytest.mark.parametrize("condition", range(len(CONDITIONS)))
@pytest.mark.parametrize("only", [True, False])
def test_many_files_together_say_what_each_says(tmp_path: Path, condition: int, only: bool) -> None:
    """Damaged lists, lists that dangle, and files without one among them."""
    for i in range(20):
        path = tmp_path / f"{i:03}.parquet"
        said = {4: b"4", 7: b"x", 9: b"99999"}.get(i)
        if i == 5:
            pq.write_table(table(i, 30), path)
        else:
            published(path, table(i, 30), i % 2 == 0, said)
        if i in (11, 12):
            data = path.read_bytes()
            other = {11: (b"IDX1", b"IDX7"), 12: (b"alpha\nzulu", b"alphb\nzulu")}[i]
            path.write_bytes(data.replace(*other) if i == 11 else swap_last(data, *other))
        if i in (13, 14):
            ps.index.attach(
                path, page_index=False, distinct_index="category", replace=True, in_place=True
            )
        if i == 14:
            ps.index.attach(path, page_index=False, distinct=["category"], in_place=True)
    prune: Any = ["statistics", "distinct_index"] if only else True
    scan = ps.scan(tmp_path, filter=CONDITIONS[condition](), prune=prune)
    together = scan.plan()
    with batch_comparison.one_by_one():
        alone = scan.plan()
    for count in ("files", "row_groups", "rows"):
        assert getattr(together.report, count) == getattr(alone.report, count), count
    assert batch_comparison.kept_of(together) == batch_comparison.kept_of(alone)
    assert set(together.report.notes) == set(alone.report.notes)
    assert scan.to_table().equals(
        ps.read_table(tmp_path, filter=CONDITIONS[condition](), prune=False)
    )


def swap_last(data: bytes, old: bytes, new: bytes) -> bytes:
    """With the last place of a text changed."""
    head, _, rest = data.rpartition(old)
    return head + new + rest


def test_what_came_with_the_end_of_the_file_costs_nothing(tmp_path: Path, far: None) -> None:
    """A Bloom filter, a dictionary, a list: the tail of a small remote file has them all."""
    for kind, name in (
        ("bloom", "bloom_filter"),
        ("distinct", "distinct"),
        ("dictionary", "dictionary"),
    ):
        path = tmp_path / f"{kind}.parquet"
        pq.write_table(table(1), path)
        if kind != "dictionary":
            ps.index.attach(path, page_index=False, in_place=True, **{kind: ["category"]})
        found, _ = explained(path, CATEGORY == "nowhere", prune=[name])
        assert found["row_groups"]["pruned_by"] == {name: 1}, found
        assert found["bytes"]["data"] == found["bytes"]["index"] == 0
        assert not found["not_asked"]


def test_what_is_not_worth_its_wait_is_named(
    tmp_path: Path, far: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(footer, "TAIL_BYTES", 8)
    path = published(tmp_path / "x.parquet", table(1), statistics=False)
    found, text = explained(path, CATEGORY == "nowhere", prune=["distinct_index"])
    assert found["row_groups"]["read"] == 1
    why = found["not_asked"]["distinct_index"]
    assert "after a wait of 50.0 ms" in why and "may prove nothing" in why
    assert f"distinct_index was not asked: {why}" in text
    assert "_" not in why  # words, no names of variables


def test_a_dictionary_that_is_no_smaller_than_its_pages_is_named(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"category": ["foo", "bar", "foo"]}), path, write_statistics=False)
    found, _ = explained(path, CATEGORY == "baz")
    assert list(found["not_asked"]) == ["dictionary"]
    assert "of 1 row group it would read" in found["not_asked"]["dictionary"]


def test_many_small_dictionaries_that_are_not_read_are_named(tmp_path: Path) -> None:
    for i in range(20):
        data = pa.table({"category": ["foo", "bar", f"{i}", "foo"]})
        pq.write_table(data, tmp_path / f"{i:02}.parquet")
    found, _ = explained(tmp_path, CATEGORY == "baz")
    assert found["files"]["read"] == 20
    assert "row groups it would read" in found["not_asked"]["dictionary"]


def test_what_ruled_out_nothing_is_left_out_and_named(tmp_path: Path) -> None:
    """A sample of the row groups is tried."""
    path = tmp_path / "x.parquet"
    data = pa.table({"category": [f"v{i % 7}" for i in range(64_000)], "n": range(64_000)})
    pq.write_table(data, path, row_group_size=1000, write_statistics=False)
    found, _ = explained(path, CATEGORY == "v3", prune=["dictionary"])
    assert found["row_groups"]["read"] == 64
    assert found["not_asked"]["dictionary"] == (
        "56 row groups were left out, since it ruled out nothing of others"
    )


def test_a_list_of_the_whole_file_is_weighed_against_all_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No row group alone is worth the wait for it, all together are."""
    monkeypatch.setattr(LocalStore, "latency", 1e-4)
    monkeypatch.setattr(LocalStore, "bandwidth", 1e8)
    monkeypatch.setattr(footer, "TAIL_BYTES", 8)
    path = tmp_path / "x.parquet"
    data = pa.table({"category": [f"v{i:05}" for i in range(40_000)], "n": range(40_000)})
    few = data.set_column(0, "category", pa.array([f"v{i % 50:02}" for i in range(40_000)]))
    pq.write_table(few, path, row_group_size=2000, write_statistics=False)
    ps.index.attach(path, page_index=False, distinct=["category"], in_place=True)
    found, _ = explained(path, CATEGORY == "nowhere", prune=["distinct"])
    assert found["row_groups"]["pruned_by"] == {"distinct": 20}, found["not_asked"]


def test_a_price_may_be_a_number(tmp_path: Path) -> None:
    """Pruners of others give bytes, or a price."""
    path = tmp_path / "x.parquet"
    pq.write_table(table(1), path)

    class Given:
        name, cheap = "given", True
        price: Any = 0

        def cost(self, site: PruneContext, test: Any) -> Any:
            assert site.to_fetch(0, 4) == 4 and site.to_fetch(site.file.footer_start, 4) == 0
            return self.price

        def judge(self, site: PruneContext, tests: Any) -> Any:
            none = rows.RowRanges.empty()
            return [ps.prune.Proof(none, none)] * len(tests)
            yield

    given = Given()
    ps.register_pruner(given)
    try:
        for price, read in (
            (0, 0),
            (Price(0), 0),
            (1 << 30, 1),
            (Price(1 << 30), 1),
            (Price(0, 9, False, 5), 1),
        ):
            given.price = price
            found, _ = explained(path, CATEGORY == "nowhere", prune=["given"])
            assert found["row_groups"]["read"] == read
            assert bool(found["not_asked"]) == bool(read)
    finally:
        ps.unregister_pruner("given")


def test_prices_follow_what_is_in_memory(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(table(1), path)
    ps.index.attach(path, page_index=False, bloom=["category"], in_place=True)
    seen: list[Price | None] = []

    class Watched(BloomPruner):
        name = "watched"

        def price(self, site: PruneContext, test: Any) -> Price | None:
            seen.append(super().price(site, test))
            return seen[-1]

    watched = Watched()
    ps.register_pruner(watched)
    try:
        for whole in (False, True):
            ps.clear_cache()
            seen.clear()
            source: Any = path
            if whole:
                ps.clear_cache()
                LocalStore.latency = 0.05
            try:
                explained(source, CATEGORY == "nowhere", prune=["watched"])
            finally:
                LocalStore.latency = 0.0
            price = seen[-1]
            assert price is not None and price.pays
            assert (price.fetched == 0) is whole
    finally:
        ps.unregister_pruner("watched")
