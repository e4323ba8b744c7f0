"""Files that lookup indexes leave are read together, by the rows that these name: the results equal the full read and the filter."""

from __future__ import annotations

import itertools
import pickle
import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek.scanning.many_files import candidate_rows, file_lookups, joined_files
from support.batch_comparison import check_rows, opened
from support.lookup_files import KEY_OF_TWO, NUMBER, ODD
from support.made_once import MadeOnce
from support.small_files import learn_joined

N = 48
ORDER = "row"  # its values are those of the rows in file order


@pytest.fixture(autouse=True)
def _no_cache() -> Iterator[None]:
    ps.clear_cache()
    yield
    ps.clear_cache()


def table(rng: np.random.Generator, i: int, rows: int) -> pa.Table:
    """Numbers of which a file has some twice, nulls and NaN; texts of few values."""
    number = rng.integers(0, 40_000, rows)
    number[rows // 2 : rows // 2 + rows // 10] = number[: rows // 10]
    real = np.where(rng.random(rows) < 0.05, np.nan, number / 4)
    return pa.table(
        {
            "number": pa.array(number, pa.int64(), mask=rng.random(rows) < 0.03),
            "text": pa.array([f"t{x}" for x in number], pa.string()),
            "real": pa.array(real, mask=rng.random(rows) < 0.03),
            "tenant": pa.array(rng.integers(0, 4, rows), pa.int16()),
            ORDER: np.arange(rows) + i * 100_000,
        }
    )


def write(folder: Path, seed: int, differ: bool) -> pa.Table:
    """Files with lookup indexes, and their rows. `differ`: with other indexes or none, in several row groups, in small pages."""
    rng, choice = np.random.default_rng(seed), random.Random(seed)
    made = []
    for i in range(N):
        rows = choice.choice([0, 1, 40, 1_100, 2_600]) if differ else 900
        path = folder / f"{i:03}.parquet"
        made.append(table(rng, i, rows))
        pq.write_table(
            made[-1],
            path,
            row_group_size=choice.choice([5_000, 700]) if differ else 5_000,
            compression="zstd" if not differ or i % 8 else "gzip",
            use_dictionary=i % 5 > 2,
            data_page_size=2_000 if differ and i % 6 == 5 else 1 << 20,
            write_batch_size=256,
        )
        lookups = ["number", "text", "real", ("tenant", "number")]
        if differ and i % 7 == 2:
            continue
        if differ and i % 7 == 4:
            lookups = ["text"]
        if differ and i % 7 == 6:
            lookups = [("tenant", "number")]
        if rows:
            ps.index.attach(path, page_index=i % 4 == 1, lookup=lookups, in_place=True)
    return pa.concat_tables(made)


Files = Callable[[int, bool], pa.Table]


@pytest.fixture
def files(tmp_path: Path, made_once: MadeOnce) -> Files:
    """Files of a seed in the folder of the test."""
    return lambda seed, differ: made_once(
        (__name__, seed, differ), lambda folder: write(folder, seed, differ), tmp_path
    )


Row = dict[str, Any]


def conditions(rng: random.Random, whole: pa.Table) -> list[tuple[Any, Callable[[Row], bool]]]:
    """Filters, and what Python says of a row."""
    made: list[tuple[Any, Callable[[Row], bool]]] = []
    for n in (3, 40):
        some = [rng.randrange(len(whole)) for _ in range(n)]
        number = {whole["number"][i].as_py() for i in some} | {-7, 50_000}
        text = {whole["text"][i].as_py() for i in some} | {"", "t-1"}
        real = {whole["real"][i].as_py() for i in some} | {0.0, -1.5}
        real = {x for x in real if x == x}
        of_number, of_text = ps.col("number").isin(list(number)), ps.col("text").isin(list(text))
        of_tenant, of_real = ps.col("tenant").isin([0, 2, 9]), ps.col("real").isin(list(real))
        nulls = None in number  # nothing is known not to be among them
        number, real = number - {None}, real - {None}
        made += [
            (of_number, lambda row, v=number: row["number"] in v),
            (of_text, lambda row, v=text: row["text"] in v),
            (of_real, lambda row, v=real: row["real"] in v),
            (of_number & of_tenant, lambda row, v=number: row["number"] in v and row["tenant"] in {0, 2, 9}),
            (of_number & of_text, lambda row, v=number, w=text: row["number"] in v and row["text"] in w),
            (of_number | of_text, lambda row, v=number, w=text: row["number"] in v or row["text"] in w),
            (of_number & (ps.col("real") > 3_000.0), lambda row, v=number: row["number"] in v and (row["real"] or 0) > 3_000),
            (~of_number, lambda row, v=number, n=nulls: not n and row["number"] is not None and row["number"] not in v),
            (of_number & ps.col("real").is_null(), lambda row, v=number: row["number"] in v and row["real"] is None),
        ]  # fmt: skip
    return made


@pytest.mark.parametrize(
    ("seed", "differ"),
    [(1, False), (2, True), pytest.param(3, True, marks=pytest.mark.slow)],
)
def test_rows_are_those_of_the_full_read_and_the_filter(
    tmp_path: Path, files: Files, seed: int, differ: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = files(seed, differ)
    joined, every = learn_joined(monkeypatch), whole.to_pylist()
    for condition, passes in conditions(random.Random(seed), whole):
        wanted = [row[ORDER] for row in every if passes(row)]
        for threads in (1, 2):
            ps.clear_cache()
            for _ in range(2):
                found = ps.read_table(str(tmp_path), filter=condition, threads=threads)
                assert found[ORDER].to_pylist() == wanted, condition
        scan = ps.scan(str(tmp_path), filter=condition)
        assert scan.select(ORDER).to_table()[ORDER].to_pylist() == wanted
        assert scan.count_rows() == len(wanted)
        few = scan.limit(5).to_table()
        assert few[ORDER].to_pylist() == wanted[:5]
        numbered = scan.with_row_number("place").to_table()
        assert numbered[ORDER].to_pylist() == wanted
        assert whole[ORDER].take(numbered["place"]).to_pylist() == wanted
        plan = pickle.loads(pickle.dumps(scan.plan()))
        assert list(itertools.chain(*[b[ORDER].to_pylist() for b in plan.execute()])) == wanted
    assert sum(joined) > N


@pytest.mark.parametrize("differ", [False, True])
def test_plans_leave_no_more_than_those_of_files_opened_one_by_one(
    tmp_path: Path, files: Files, differ: bool
) -> None:
    whole = files(2 if differ else 1, differ)
    for condition, _ in conditions(random.Random(4), whole)[::2]:
        check_rows(ps.scan(str(tmp_path), filter=condition))


def values_of(whole: pa.Table, n: int) -> list[int]:
    """Numbers of which about one file in three has one."""
    numbers = whole["number"].drop_null().unique().to_pylist()
    return [*random.Random(5).sample(numbers, n), -3, 90_000]


def test_files_that_are_left_are_read_as_one(
    tmp_path: Path, files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, joined = files(1, False), learn_joined(monkeypatch)
    some = values_of(whole, 20)
    scan = ps.scan(str(tmp_path), filter=ps.col("number").isin(some))
    found = scan.to_table()
    assert set(found["number"].to_pylist()) == {*some[:-2]}
    assert sum(joined) >= 8 and opened() <= 2  # one is the pattern of the others
    report = scan.explain(analyze=True)
    plan = scan.plan()
    assert opened() <= 3 + len(plan.files)
    for one in (report, plan.report):
        assert one.files.pruned_by["lookup"] == N - one.files.read
        assert one.rows.read + sum(one.rows.pruned_by.values()) == one.rows.total == len(whole)
        # the rows that the index names, not all rows of the files that are left
        assert len(found) <= one.rows.read < 4 * len(found)
    kept = {
        (file.source.path, group.row_group): group for file in plan.files for group in file.groups
    }
    assert sum(group.ranges.num_rows for group in kept.values()) == plan.report.rows.read
    assert {group.by for group in kept.values()} == {"lookup"}
    # what was planned to be read is read
    leaf = report.to_dict()["leaves"]["number"]
    assert leaf["rows_decoded"] == report.rows.read and report.rows_out == len(found)
    assert plan.report.to_dict()["leaves"]["number"]["rows_decoded"] == plan.report.rows.read


def test_a_key_of_two_columns_names_rows(
    tmp_path: Path, files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, joined = files(1, False), learn_joined(monkeypatch)
    some = values_of(whole, 60)
    condition = (ps.col("tenant") == 1) & ps.col("number").isin(some)
    scan = ps.scan(str(tmp_path), filter=condition, prune=["statistics", "key_lookup"])
    found = scan.to_table()
    wanted = [
        row[ORDER] for row in whole.to_pylist() if row["tenant"] == 1 and row["number"] in some
    ]
    assert found[ORDER].to_pylist() == wanted
    assert sum(joined) >= 8 and opened() <= 2
    report = scan.plan().report
    assert report.files.pruned_by["key_lookup"] == N - report.files.read
    assert report.rows.read < 4 * len(found)


def test_small_files_are_read_as_one_where_most_have_a_value(
    tmp_path: Path, files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, joined = files(1, False), learn_joined(monkeypatch)
    asked: list[int] = []
    plain = file_lookups.FileLookups._ask_some

    def noted(self: Any, pairs: Any, *given: Any) -> int:
        asked.append(len(np.unique(pairs.file)))
        return plain(self, pairs, *given)

    monkeypatch.setattr(file_lookups.FileLookups, "_ask_some", noted)
    for most, n in ((4096, 600), (100, 600)):
        monkeypatch.setattr(file_lookups, "MOST_VALUES", most)
        joined.clear()
        ps.clear_cache()
        some = values_of(whole, n)
        found = ps.read_table(str(tmp_path), filter=ps.col("number").isin(some))
        assert set(found["number"].to_pylist()) == {*some[:-2]}
        assert sum(joined) >= N - 2 and opened() <= 2
    assert len(asked) == 1 and asked[0] < N  # a sample; of too many values none is asked


def test_rows_are_kept_of_so_many_only(
    tmp_path: Path, files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = files(2, True)
    condition, passes = conditions(random.Random(8), whole)[9]
    wanted = [row[ORDER] for row in whole.to_pylist() if passes(row)]
    counts = []
    for most, share in ((1 << 20, 8), (1 << 20, 0), (10, 8), (0, 8), (1 << 20, 1 << 40)):
        monkeypatch.setattr(candidate_rows, "MOST_ROWS", most)
        monkeypatch.setattr(candidate_rows, "SHARE", share)
        ps.clear_cache()
        scan = ps.scan(str(tmp_path), filter=condition)
        assert scan.to_table()[ORDER].to_pylist() == wanted
        counts.append(scan.plan().report.rows.read)
    assert counts[0] <= counts[2] <= counts[3] == counts[4]


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("names", [NUMBER, KEY_OF_TWO])
def test_damaged_indexes_among_files_that_are_left(
    tmp_path: Path, files: Files, odd: str, names: tuple[str, ...]
) -> None:
    whole = files(1, False)
    path = tmp_path / "010.parquet"
    if odd == "without":
        pq.write_table(pq.read_table(path), path)
    else:
        ODD[odd](path, names)
    some = values_of(whole, 40)
    own = whole["number"].slice(10 * 900, 900).drop_null().to_pylist()[:5]
    condition = ps.col("number").isin([*some, *own])
    if names != NUMBER:
        condition &= ps.col("tenant").isin([0, 1, 2])
    wanted: Any
    scan = ps.scan(str(tmp_path), filter=condition)
    if odd == "a short file":
        with pytest.raises(ps.PageseekError, match=r"010\.parquet"):
            scan.to_table()
        return
    wanted = [
        row[ORDER]
        for row in whole.to_pylist()
        if row["number"] in {*some, *own} and (names == NUMBER or row["tenant"] < 3)
    ]
    for _ in range(2):
        assert scan.to_table()[ORDER].to_pylist() == wanted


def test_a_file_that_is_replaced_before_its_rows_are_read(
    tmp_path: Path, files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rows that an index names are those of the version that it was read of."""
    whole = files(1, False)
    some = values_of(whole, 40)
    scan = ps.scan(str(tmp_path), filter=ps.col("number").isin(some))
    left = [Path(file.source.path) for file in scan.plan().files]
    victim, read = left[len(left) // 2], joined_files.JoinedStore.read
    rows = pq.read_table(victim)

    def replaced(self: Any, ranges: Sequence[tuple[int, int]]) -> Any:
        if rows.num_rows:
            pq.write_table(rows.slice(1), victim)
        return read(self, ranges)

    monkeypatch.setattr(joined_files.JoinedStore, "read", replaced)
    with pytest.raises(ps.FileChangedError, match=victim.name):
        scan.to_table()
