"""Lookup indexes of many files, asked together: the results equal opening each file by itself."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek.format.embedded import PAYLOAD_HEAD_BYTES
from pageseek.io import tails
from pageseek.scanning.many_files import file_lookups
from support.batch_comparison import check_rows, opened, outcome, same_rows
from support.lookup_files import (
    KEY_OF_TWO,
    KEYS,
    NUMBER,
    ODD,
    N,
    all_blocks,
    damaged,
    num_rows,
    other_entries,
    place,
    table,
    write,
)


@pytest.fixture(autouse=True)
def _no_cache() -> Iterator[None]:
    ps.clear_cache()
    yield
    ps.clear_cache()


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("lookups")
    for i in range(N):
        write(folder / f"{i:03}.parquet", i, ["text"] if i == 9 else None)
    return folder


@pytest.fixture(scope="module")
def keyed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files with indexes of several columns alone; file 9 has one of them."""
    folder = tmp_path_factory.mktemp("keys")
    for i in range(N):
        write(folder / f"{i:03}.parquet", i, KEYS[1:2] if i == 9 else [*KEYS])
    return folder


@pytest.fixture
def folder(kept: Path, tmp_path: Path) -> Path:
    """Files of its own for a test that changes them."""
    return Path(shutil.copytree(kept, tmp_path / "lookups"))


@pytest.fixture
def keyed_folder(keyed: Path, tmp_path: Path) -> Path:
    """Files of its own, as `folder`."""
    return Path(shutil.copytree(keyed, tmp_path / "keys"))


CONDITIONS = [
    "number = 2411",
    "number = -7",
    "number in (2411, 100, 35000)",
    "number in (1, 2, 3, 4, 5, 6, 7, 8, 9)",
    "number in (null, 2411)",
    "number not in (2411, 100)",
    "number <> 2411",
    "number is null",
    "number = 2411 and text = 't2411'",
    "number = 2411 and text = 't2412'",
    "number = 2411 or text = 't99'",
    "number = 2411 or number > 35990",
    "text = 't333'",
    "text = ''",
    "text like 't33%'",
    "real = 100.25",
    "real = 'nan'",
    "real in (0.0, -0.0, 17.5)",
    "not (number = 5)",
    "number in (" + ", ".join(map(str, range(11, 45_000, 97 * N))) + ")",
    "text in (" + ", ".join(f"'t{x}'" for x in range(7, 45_000, 211)) + ")",
]
# tenant and number of a row are 3 and 2411, 1 and 2444, 0 and 3500; there is no row of 2 and 2411
OF_KEYS = [
    "tenant = 3 and number = 2411",
    "number = 2411 and tenant = 2",
    "tenant in (1, 3) and number in (2411, 2444, 3500)",
    "tenant = 3 and number = 2411 and tenant < 5",
    "tenant = 3 and number = 2411 and number <> 2411",
    "tenant = 3 and number = 2411 or number = 3500",
    "number = 3500 and (tenant = 0 or number = 2411)",
    "tenant = 3 or number = -7",
    "tenant = 2 and text <> 't3' or number = 2411 and real > 0",
    "not (tenant = 3 and number = 2411)",
    "not (tenant <> 3 or number <> 2411)",
    "tenant = 3 and number > 35000",
    "tenant is null and number = 2453",
    "tenant in (null, 3) and number in (2411, null)",
    "tenant in (0, 1, 2, 3, 4, 5, 6) and number in (11, 100, 200, 300, 2411, 2444)",
    "tenant = 3 and number in (" + ", ".join(map(str, range(11, 45_000, 97))) + ")",
    "text = 't2411' and real = 602.75 and tenant = 3",
    "text = 't2411' and real = 602.75 and tenant = 3 and number = 2411",
    "text = 't2411' and real = 602.75",
    "text = 't0' and real = -0.0 and tenant = 0",
    "text in ('t0', 't7') and real in (0.0, 'nan') and tenant = 0",
    "text = 't125' and real = 'nan' and tenant = 6",
]


@pytest.mark.parametrize("condition", CONDITIONS)
def test_plans_are_those_of_files_opened_one_by_one(kept: Path, condition: str) -> None:
    check_rows(ps.scan(str(kept), filter=condition))


@pytest.mark.covering(1)
@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.parametrize("prune", [["statistics", "lookup"], ["lookup"]])
def test_plans_by_few_mechanisms(kept: Path, condition: str, prune: list[str]) -> None:
    check_rows(ps.scan(str(kept), filter=condition, prune=prune))


@pytest.mark.parametrize("condition", CONDITIONS)
def test_the_rows_are_those_of_a_whole_read(kept: Path, condition: str) -> None:
    whole = outcome(lambda: ps.read_table(str(kept), filter=condition, prune=False))
    assert same_rows(outcome(lambda: ps.read_table(str(kept), filter=condition)), whole)


@pytest.mark.parametrize("condition", OF_KEYS)
def test_keys_of_several_columns(keyed: Path, condition: str) -> None:
    check_rows(ps.scan(str(keyed), filter=condition))
    check_rows(ps.scan(str(keyed), filter=condition, prune=["key_lookup"]))
    whole = outcome(lambda: ps.read_table(str(keyed), filter=condition, prune=False))
    assert same_rows(outcome(lambda: ps.read_table(str(keyed), filter=condition)), whole)


def test_every_key_is_found(keyed: Path) -> None:
    rng = np.random.default_rng(8)
    for i in (0, 3, 4, 9, 23):  # those of 3 and 23 have many row groups
        made = table(i)
        for name in (KEYS[0][0], KEYS[2][1]):
            places = rng.integers(0, len(made), 6).tolist()
            for value, number in (
                (made[name][j].as_py(), made["number"][j].as_py()) for j in places
            ):
                if value is None:
                    continue
                found = ps.read_table(
                    str(keyed), filter=(ps.col(name) == value) & (ps.col("number") == number)
                )
                assert found.num_rows == made["number"].to_pylist().count(number) > 0
    made = table(3)
    for i in (0, 399, 400, 800, 1_200):  # at the ends of row groups
        row = made.slice(i, 1).to_pylist()[0]
        both = (ps.col("number") == row["number"]) & (ps.col(KEYS[2][1]) == row[KEYS[2][1]])
        assert ps.read_table(str(keyed), filter=both).num_rows > 0


def test_few_files_are_opened_for_a_key(keyed: Path) -> None:
    for condition, value in (
        ("tenant = 3 and number = 2411", "t2411"),
        ("real = 602.75 and tenant = 3 and text = 't2411'", "t2411"),
        ((ps.col("number") == 2411) & (ps.col(KEYS[2][1]) == "ü1"), "t2411"),
        ("tenant = 2 and number = 2411", None),
        ("tenant = 3 and number in (11, 107, 203, 299, 395, 491, 587, 683, 2411)", "t2411"),
    ):
        ps.clear_cache()
        scan = ps.scan(str(keyed), filter=condition)
        report = scan.plan().report
        assert report.files.pruned_by["key_lookup"] >= N - 6 and opened() <= 6, condition
        found = set(scan.to_table()["text"].to_pylist())
        assert (value is None and not found) or value in found
        assert scan.plan().report.bytes["metadata"] == 0


def test_a_smaller_key_is_asked_where_the_larger_one_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for i in range(N):
        keys: list[Any] = [("tenant", "number"), ("tenant", "number", "text")]
        write(tmp_path / f"{i:03}.parquet", i, keys[: 1 + (i < 10)])
    asked, plain = [], file_lookups.FileKeyLookups.ask

    def noted(self: Any, question: Any, needed: Any, reader: Any) -> Any:
        asked.append((len(question), int(needed.sum())))
        return plain(self, question, needed, reader)

    monkeypatch.setattr(file_lookups.FileKeyLookups, "ask", noted)
    condition = "text = 't2411' and tenant = 3 and number = 2411"
    report = check_rows(ps.scan(str(tmp_path), filter=condition)).plan().report
    assert report.files.pruned_by["key_lookup"] >= N - 5
    assert asked[0][0] == 3 and asked[1][0] == 2 and asked[0][1] > asked[1][1] > 10


def test_blocks_that_lie_close_together_are_one_read(
    kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    condition = CONDITIONS[-1]
    wanted = ps.read_table(str(kept), filter=condition, prune=False)
    reads = {}
    for gap in (-1, 0, 1 << 30):
        monkeypatch.setattr(file_lookups, "GAP", gap)
        for some in (*CONDITIONS[-2:], "number in (2411, 100, 35000)"):
            check_rows(ps.scan(str(kept), filter=some))
        scan = ps.scan(str(kept), filter="number in (2411, 100, 35000, 7, 9, 12, 400, 500, 600)")
        scan.plan()
        reads[gap] = scan.plan().report.requests
        assert ps.read_table(str(kept), filter=condition).equals(wanted)
    assert reads[-1] > reads[0] >= reads[1 << 30]


def test_large_blocks_are_read_where_they_spare_more(
    kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_lookups, "SMALL_BLOCKS", 0)
    for doubt, fewest in ((1e-6, 0), (8, N - 5)):
        monkeypatch.setattr(file_lookups, "DOUBT", doubt)
        for condition in CONDITIONS[:4]:
            check_rows(ps.scan(str(kept), filter=condition))
        ps.clear_cache()
        ps.scan(str(kept), filter="number in (2411, 100)").plan()
        assert opened() >= fewest if fewest else opened() <= 8


def test_a_value_of_most_files_is_asked_of_few(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked, plain = [], file_lookups.FileLookups._ask_some

    def noted(self: Any, pairs: Any, *given: Any) -> int:
        asked.append(len(np.unique(pairs.file)))
        return plain(self, pairs, *given)

    monkeypatch.setattr(file_lookups.FileLookups, "_ask_some", noted)
    monkeypatch.setattr(file_lookups, "SAMPLE", 5)
    of_all = [int(table(i)["number"][0].as_py()) for i in range(N) if num_rows(i) and i != 5]
    for numbers, asks in ((of_all, 1), (of_all[:1], 2)):
        asked.clear()
        scan = ps.scan(str(kept), filter=ps.col("number").isin(numbers))
        found = scan.to_table()
        assert found.num_rows == sum(
            table(i)["number"].to_pylist().count(n) for i, n in zip(
                [i for i in range(N) if num_rows(i) and i != 5], numbers, strict=False)
        )  # fmt: skip
        assert len(asked) == asks and asked[0] <= 8


def test_every_value_is_found(kept: Path) -> None:
    rng = np.random.default_rng(8)
    for i in (0, 3, 4, 23):
        numbers = table(i)["number"]
        for value in rng.choice(numbers.to_pylist(), 12).tolist():
            found = ps.read_table(str(kept), filter=ps.col("number") == value)
            assert found.num_rows == numbers.to_pylist().count(value)


@pytest.mark.parametrize("row", [0, 399, 400, 800, 1_200])
def test_rows_at_the_ends_of_row_groups_are_found(kept: Path, row: int) -> None:
    numbers = table(3)["number"].to_pylist()
    found = ps.read_table(str(kept), filter=ps.col("number") == numbers[row])
    assert found.num_rows == numbers.count(numbers[row]) > 0


def test_few_files_are_opened_for_the_value_of_one(
    kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scan = ps.scan(str(kept), filter="number = 2411")
    report = scan.plan().report
    # the first file is opened as the pattern of others, file 7 has no rows, file 9 no index
    assert report.files.pruned_by["lookup"] >= N - 5 and opened() <= 5
    assert report.bytes["index"] < N * 12_000
    assert set(scan.to_table()["text"].to_pylist()) == {"t2411"}
    again = scan.plan().report
    assert again.files.pruned_by["lookup"] == report.files.pruned_by["lookup"]
    assert again.bytes["metadata"] == 0
    # directories are in memory: of each file a block is read
    assert again.bytes["index"] < report.bytes["index"]
    monkeypatch.setattr(file_lookups.FileLookups, "_load", lambda *_: pytest.fail("again"))
    other = ps.scan(str(kept), filter="number = 2435").plan().report
    assert other.files.pruned_by["lookup"] >= N - 5


def test_blocks_of_few_files_are_read_at_a_time(
    kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_lookups, "READ", 30_000)
    for condition in CONDITIONS[:4]:
        check_rows(ps.scan(str(kept), filter=condition))


def test_files_of_many_rows_are_opened(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_lookups, "MOST_ROWS", 3_000)
    for condition in CONDITIONS[:4]:
        check_rows(ps.scan(str(kept), filter=condition))
    ps.scan(str(kept), filter="number = 2411").plan()
    assert opened() > N // 2


def test_files_with_too_many_blocks_together_are_opened(
    kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_lookups, "MOST_PAIRS", N // 2)
    for condition in CONDITIONS[:4]:
        check_rows(ps.scan(str(kept), filter=condition))
    ps.clear_cache()
    ps.scan(str(kept), filter="number = 2411").plan()
    assert opened() > N // 2


def test_more_keys_than_are_listed_are_asked_file_by_file(
    keyed_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_lookups, "MOST_LISTED", 0)
    check_rows(ps.scan(str(keyed_folder), filter="tenant = 3 and number = 2411"))
    ps.clear_cache()
    ps.scan(str(keyed_folder), filter="tenant = 3 and number = 2411", prune=["key_lookup"]).plan()
    assert opened() > N // 2


def test_threads_ask_the_same_indexes(kept: Path) -> None:
    scan, wrong = ps.scan(str(kept)), []

    def ask(seed: int) -> None:
        rng = np.random.default_rng(seed)
        for value in rng.integers(0, 36_000, 12).tolist():
            found = scan.filter(ps.col("number") == value).to_table()["number"].to_pylist()
            numbers = table(value % N)["number"].to_pylist()
            if found != [value] * numbers.count(value):
                wrong.append(value)

    threads = [threading.Thread(target=ask, args=(seed,)) for seed in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert not wrong


def asked_of(at: int, several: bool) -> list[str]:
    """Of a value of another file, of one of file `at`, of many values of both."""
    made = table(at)["number"].to_pylist()
    tenants = table(at)["tenant"].to_pylist()
    i = next(i for i in range(600, 700) if tenants[i] is not None)
    some = ", ".join(map(str, [2411, *made[100:800:40]]))
    found = "number = 2411", f"number = {made[i]}", f"number in ({some})"
    if not several:
        return [*found, "text = 't2411'"]
    every = f"tenant in (0, 1, 2, 3, 4, 5, 6) and {found[2]}"
    return [f"tenant = 3 and {found[0]}", f"tenant = {tenants[i]} and {found[1]}", every]


@pytest.mark.covering(1)
@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize(("at", "names"), [(0, NUMBER), (3, NUMBER), (8, NUMBER), (3, KEY_OF_TWO), (8, KEY_OF_TWO)])  # fmt: skip
def test_an_odd_file_among_many(
    request: pytest.FixtureRequest, odd: str, at: int, names: tuple[str, ...]
) -> None:
    several = len(names) > 1
    changed = request.getfixturevalue("keyed_folder" if several else "folder")
    ODD[odd](changed / f"{at:03}.parquet", names)
    for condition in asked_of(at, several):
        scan = check_rows(ps.scan(str(changed), filter=condition))
        whole = outcome(lambda: ps.read_table(str(changed), filter=condition, prune=False))  # noqa: B023
        assert same_rows(outcome(scan.to_table), whole), condition


@pytest.mark.parametrize(("odd", "told"), [
    ("shorter", "do not lie one behind the other"), ("shorter than its directory", "cut short"),
    ("its fingerprint", "not of these column chunks"),
    ("of other values", "checksum of a block differs"), ("of other values by the blocks", "checksum of its directory"),
    ("of rows behind the last", "names row"),
])  # fmt: skip
@pytest.mark.parametrize("names", [NUMBER, KEY_OF_TWO])
def test_what_is_wrong_is_told(
    request: pytest.FixtureRequest, odd: str, told: str, names: tuple[str, ...]
) -> None:
    changed = request.getfixturevalue("keyed_folder" if len(names) > 1 else "folder")
    ODD[odd](changed / "004.parquet", names)
    report = ps.scan(str(changed), filter=asked_of(4, len(names) > 1)[1]).explain(analyze=True)
    assert "004.parquet" in str(report) and told in str(report)


def test_an_index_of_other_column_chunks_is_told(folder: Path) -> None:
    damaged(9)(folder / "004.parquet", NUMBER)
    report = ps.scan(str(folder), filter="number = 2411").explain()
    assert "004.parquet" in str(report) and "not of these column chunks" in str(report)


def test_a_damaged_block_is_told(folder: Path) -> None:
    all_blocks(folder / "004.parquet", NUMBER)
    value = int(table(4)["number"][900].as_py())
    scan = ps.scan(str(folder), filter=ps.col("number") == value)
    assert scan.to_table().num_rows == table(4)["number"].to_pylist().count(value)
    assert "checksum" in str(scan.explain(analyze=True))


@pytest.mark.parametrize("calls", [(0, 5), (1,), (5,)])
def test_a_file_that_is_replaced_before_its_index_is_read(
    folder: Path, monkeypatch: pytest.MonkeyPatch, calls: tuple[int, ...]
) -> None:
    victim = folder / "006.parquet"
    longer, replacements = tails.TailBatch.longer, 0

    def replaced(self: tails.TailBatch, *given: object) -> object:
        nonlocal replacements
        if replacements in calls:
            pq.write_table(table(11), victim)
        replacements += 1
        return longer(self, *given)  # type: ignore[arg-type]

    monkeypatch.setattr(tails.TailBatch, "longer", replaced)
    numbers = table(11)["number"].to_pylist()
    found = ps.scan(str(folder), filter=ps.col("number") == numbers[900]).to_table()
    assert replacements
    assert found.num_rows == 2 * numbers.count(numbers[900])  # it came after the footers were read


def test_a_column_of_other_width_in_some_files(folder: Path) -> None:
    """Values are asked for as the folder has them, and indexes have those of the file."""
    for i in (2, *range(10, 22)):
        path = folder / f"{i:03}.parquet"
        small = table(i).set_column(0, "number", table(i)["number"].cast(pa.int32()))
        pq.write_table(small, path)
        ps.index.attach(path, page_index=False, lookup=["number"], in_place=True)
    for condition in ("number = 2410", "number = 2402", "number = 5000000000"):
        check_rows(ps.scan(str(folder), filter=condition))
        whole = ps.read_table(str(folder), filter=condition, prune=False)
        assert ps.read_table(str(folder), filter=condition).equals(whole)


def test_a_column_of_a_key_with_other_width_in_some_files(keyed_folder: Path) -> None:
    for i in (2, *range(10, 22)):
        path = keyed_folder / f"{i:03}.parquet"
        small = table(i).set_column(0, "number", table(i)["number"].cast(pa.int32()))
        pq.write_table(small, path)
        ps.index.attach(path, page_index=False, lookup=[KEY_OF_TWO], in_place=True)
    for number in (2410, 2402, 5_000_000_000):
        condition = f"number = {number} and tenant = {number % 7}"
        check_rows(ps.scan(str(keyed_folder), filter=condition))
        whole = ps.read_table(str(keyed_folder), filter=condition, prune=False)
        assert ps.read_table(str(keyed_folder), filter=condition).equals(whole)


def test_a_key_whose_second_column_has_other_pages(tmp_path: Path) -> None:
    """Fingerprints are of the chunks of all columns."""
    folder, other = tmp_path / "keys", tmp_path / "other.parquet"
    folder.mkdir()
    names = "tenant", "number", "text", "real", KEYS[2][1]

    def put(made: pa.Table, where: Path, i: int) -> None:
        pq.write_table(made.select(names), where, row_group_size=(20_000, 400)[i % 4 == 3])
        ps.index.attach(where, page_index=False, lookup=[KEY_OF_TWO], in_place=True)

    for i in range(N):
        put(table(i), folder / f"{i:03}.parquet", i)
    for at in (3, 4):
        path = folder / f"{at:03}.parquet"
        # the chunks of tenants lie where they did, those of numbers do not
        number = pa.array(table(at)["number"].to_numpy() * 12_345 % 99_991)
        put(table(at).set_column(0, "number", number), other, at)
        other_entries(3)(path, KEY_OF_TWO)  # right but for the fingerprint
        (begin, _), (offset, _) = place(other, KEY_OF_TWO), place(path, KEY_OF_TWO)
        data = bytearray(path.read_bytes())
        data[offset : offset + PAYLOAD_HEAD_BYTES] = other.read_bytes()[begin:][:PAYLOAD_HEAD_BYTES]
        path.write_bytes(data)
        for condition in asked_of(at, True):
            scan = check_rows(ps.scan(str(folder), filter=condition))
            assert scan.to_table().equals(ps.read_table(str(folder), filter=condition, prune=False))
