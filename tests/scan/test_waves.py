"""On a remote store, pages that are needed and pages that may be needed are requested together if another round trip would cost more."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek.format.footer import TAIL_BYTES
from pageseek.storage.local import LocalStore
from support.store_log import Log

GROUPS, ROWS = 4, 20_000
FILTERS = [
    ps.col("id") == 31_234,
    (ps.col("v") < 500) & (ps.col("w") > 900_000),
    (ps.col("v") < 500) & ps.col("s.a").is_null() & (ps.col("text") > "5"),
    ps.col("s").is_null() & (ps.col("v") < 9_000),
    (ps.col("v") < 300) | (ps.col("w") < 300),
    ps.col("tags").any() == "t7",
    ps.col("w").is_null(),
]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    random = np.random.default_rng(5)
    n = GROUPS * ROWS
    numbers = random.integers(0, 1_000_000, (2, n))
    table = pa.table(
        {
            "id": np.arange(n),
            "v": numbers[0],
            "w": pa.array(numbers[1], mask=random.random(n) < 0.01),
            "text": np.char.mod("%09d", random.integers(0, 1 << 30, n)),
            "s": pa.array([None if i % 11 == 0 else {"a": None if i % 7 == 0 else i} for i in range(n)]),
            "tags": pa.array([[f"t{i % 13}"] * (i % 3) for i in range(n)]),
        }
    )  # fmt: skip
    made = tmp_path_factory.mktemp("waves") / "a.parquet"
    pq.write_table(
        table, made, row_group_size=ROWS, max_rows_per_page=1_000, write_page_index=True,
        write_batch_size=100,
    )  # fmt: skip
    return str(made)


@pytest.fixture
def far(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    monkeypatch.setattr(LocalStore, "latency", 0.02)
    monkeypatch.setattr(LocalStore, "bandwidth", request.param)
    ps.clear_cache()


def report(path: str, **how: Any) -> dict[str, Any]:
    found: dict[str, Any] = ps.scan(path, **how).explain(analyze=True).to_dict()
    return found


@pytest.mark.parametrize("far", [1e9, 5e6, 50.0], indirect=True)
@pytest.mark.parametrize("columns", [None, ["id"], ["v", "s"], []], ids=str)
@pytest.mark.parametrize("condition", FILTERS, ids=str)
def test_answers_and_counts_are_the_same(
    far: None, path: str, columns: Any, condition: Any, log: Log
) -> None:
    for limit in (None, 5):
        ps.clear_cache()
        expected = ps.read_table(path, columns, condition, limit, prune=False, threads=1)
        log.clear()
        for threads in (1, 3):
            assert ps.read_table(path, columns, condition, limit, threads=threads) == expected
        log.clear()
        found = report(path, columns=columns, filter=condition, limit=limit)
        read = sum(length for _, length in log.ranges)
        assert found["rows"]["out"] == expected.num_rows
        wanted = sum(leaf["bytes"] for leaf in found["leaves"].values())
        data = found["bytes"]["data"]
        assert wanted - TAIL_BYTES <= data <= read  # some came with the footer
        if LocalStore.bandwidth == 50:  # no gap is worth its bytes
            assert data <= wanted


def data_waves(path: str, **how: Any) -> int:
    ps.read_table(path, **how)  # metadata and index are then at hand
    waves: int = report(path, threads=1, **how)["waves"]
    return waves


POINT = (ps.col("id") == 31_234) & (ps.col("v") >= 0)


@pytest.mark.parametrize("far", [1e9], indirect=True)
def test_a_warm_lookup_is_one_wave_where_bytes_are_cheap(far: None, path: str) -> None:
    assert data_waves(path, filter=POINT) == 1


@pytest.mark.parametrize("far", [50.0], indirect=True)
def test_what_may_not_be_needed_waits_where_bytes_are_dear(far: None, path: str) -> None:
    assert data_waves(path, filter=POINT) == 3
    assert data_waves(path, filter=POINT & (ps.col("v") < 0)) == 0


@pytest.mark.parametrize("far", [1e9], indirect=True)
def test_row_groups_wait_together(far: None, path: str) -> None:
    everywhere = ps.col("v") < 900_000
    ps.read_table(path, filter=everywhere)
    waves = []
    for _ in range(4):  # a busy machine may answer one request before it sends the next
        found = report(path, filter=everywhere, threads=1)
        assert found["row_groups"]["read"] == GROUPS
        waves.append(found["waves"])
    assert min(waves) < GROUPS
