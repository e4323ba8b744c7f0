"""A user's own kind of index, made of public names only: attached, used, listed, verified and detached."""

from __future__ import annotations

import pickle
import random
import struct
import subprocess
import sys
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek.prune import Proof

N, GROUP, STEP, MODULUS = 20_000, 5_000, 500, 64


class Remainders:
    """For every STEP rows of each row group, which remainders modulo 64 its integers have: 8 bytes."""

    name = "remainders"
    version = 1
    reason = "no row in them has the remainder of the value"

    def build(self, column: ps.index.IndexedColumn) -> Masks:
        if not pa.types.is_integer(column.type):
            raise ps.UnsupportedError(f"column {column.name!r}: remainders are of integers")
        return Masks(column.num_row_groups)

    def load(self, column: ps.index.IndexedColumn, payload: memoryview) -> list[tuple[int, ...]]:
        found, at = [], 0
        for rows in column.group_rows:
            n = -(-rows // STEP)
            found.append(struct.unpack_from(f"<{n}Q", payload, at))
            at += 8 * n
        if at != len(payload):
            raise ValueError(f"{len(payload)} bytes where {at} are due")
        return found

    def answers(self, test: Any) -> bool:
        return ps.index.required_values(test) is not None

    def prune(self, context: Any, tests: Any) -> list[Proof | None]:
        proofs: list[Proof | None] = []
        rows = context.file.group_rows[context.row_group]
        for test in tests:
            index, wanted = context.index(test), ps.index.required_values(test)
            if index is None or wanted is None:
                proofs.append(None)
                continue
            mask = 0
            for value in wanted.to_pylist():
                mask |= 1 << value % MODULUS
            left = [
                (i * STEP, min((i + 1) * STEP, rows))
                for i, bits in enumerate(index[context.row_group])
                if bits & mask
            ]
            proofs.append(Proof(ps.RowRanges(left), ps.RowRanges([])))
        return proofs


class Masks:
    """The builder of one column."""

    def __init__(self, row_groups: int) -> None:
        self.groups: list[bytes] = [b""] * row_groups

    def collect(self) -> Generator[None, Any, bytes]:
        masks: dict[int, int] = {}
        last = -1
        while (page := (yield)) is not None:
            for row, value in enumerate(page.values.to_pylist(), page.first_row):
                last = row // STEP
                bit = 0 if value is None else 1 << value % MODULUS
                masks[last] = masks.get(last, 0) | bit
        return struct.pack(f"<{last + 1}Q", *(masks[i] for i in range(last + 1)))

    def add(self, row_group: int, part: bytes) -> None:
        self.groups[row_group] = part

    def finish(self) -> bytes:
        return b"".join(self.groups)


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    ps.index.register(Remainders())
    yield
    ps.index.unregister("remainders")


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    """Integers that no statistics tell apart: each 500 rows have a few remainders only."""
    draw = random.Random(3)
    values: list[int | None] = []
    for _ in range(N // STEP):
        some = draw.sample(range(MODULUS), 4)
        values += [draw.randrange(10**6) * MODULUS + draw.choice(some) for _ in range(STEP)]
    values[17] = values[9_000] = None
    path = tmp_path / "plain.parquet"
    table = pa.table({"v": values, "n": range(N), "t": [f"{i:x}" for i in range(N)]})
    pq.write_table(
        table, path, row_group_size=GROUP, data_page_size=2_000, write_batch_size=250,
        write_page_index=True, use_dictionary=False,
    )  # fmt: skip
    return path


@pytest.fixture
def indexed(plain: Path, tmp_path: Path) -> Path:
    path = tmp_path / "indexed.parquet"
    made = ps.index.attach(plain, page_index=False, indexes={"remainders": ["v"]}, output=path)
    assert made.added == {("remainders", "v"): N // GROUP}
    return path


def values_of(path: Path) -> list[Any]:
    found: list[Any] = pq.read_table(path)["v"].to_pylist()
    return found


def test_it_prunes_where_statistics_cannot(indexed: Path) -> None:
    value = values_of(indexed)[12_345]
    shown = ps.scan(indexed, filter=ps.col("v") == value).explain(analyze=True)
    report = shown.to_dict()
    assert report["rows"]["pruned_by"]["remainders"] >= N // 2
    assert f"rows less: {Remainders.reason}" in str(shown)
    assert report["rows"]["out"] >= 1
    other = ps.scan(indexed, filter=ps.col("v") > value).explain(analyze=True).to_dict()
    assert "remainders" not in other["rows"]["pruned_by"]


def test_rows_are_those_of_a_full_read_whatever_the_filter(indexed: Path) -> None:
    draw, values = random.Random(5), values_of(indexed)
    for _ in range(60):
        some = [draw.choice(values) or 0, draw.randrange(10**8), draw.choice(values) or 1]
        v, n = ps.col("v"), ps.col("n")
        condition = draw.choice(
            [
                v == some[0], v.isin(some), ~(v != some[0]), v != some[0], v.is_null(),
                (v == some[0]) | (n < 50), (v == some[0]) & (n > draw.randrange(N)),
                ~(v == some[0]) & (n < 700), (v == some[1]) | (v == some[2]),
            ]
        )  # fmt: skip
        prune = draw.choice([True, ["remainders"], ["statistics", "remainders", "column_index"]])
        found = ps.read_table(indexed, filter=condition, prune=prune)
        assert found.equals(ps.read_table(indexed, filter=condition, prune=False)), condition


def test_it_is_listed_verified_and_taken_out(plain: Path, indexed: Path, tmp_path: Path) -> None:
    (entry,) = [one for one in ps.index.list(indexed) if one.kind == "remainders"]
    assert (entry.column, entry.chunks, entry.registered) == ("v", N // GROUP, True)
    assert entry.bytes == 16 + 8 * N // STEP
    done = ps.index.verify(indexed)
    assert done.ok and done.checked["remainders"] == N // GROUP
    assert pq.read_table(indexed).equals(pq.read_table(plain))
    ps.index.detach(indexed, ["remainders"], output=tmp_path / "without.parquet")
    assert (tmp_path / "without.parquet").read_bytes() == plain.read_bytes()


def test_a_damaged_payload_is_noted_and_found_by_verify(indexed: Path) -> None:
    value = values_of(indexed)[12_345]
    right = ps.read_table(indexed, filter=ps.col("v") == value, prune=False)
    data = bytearray(indexed.read_bytes())
    data[data.index(b"PSX1") + 40] ^= 1
    indexed.write_bytes(data)
    ps.clear_cache()
    scan = ps.scan(indexed, filter=ps.col("v") == value)
    assert scan.to_table().equals(right)
    report = scan.explain(analyze=True)
    assert any("'remainders' ignored" in note for note in report.notes), report.notes
    (finding,) = ps.index.verify(indexed).findings
    assert (finding.kind, finding.column) == ("remainders", "v")


def test_a_payload_of_other_data_is_found_by_verify(indexed: Path) -> None:
    """Whole, and wrong: it is built again and compared."""
    find = Masks.finish
    try:
        Masks.finish = lambda self: bytes(len(find(self)))  # type: ignore[method-assign]
        ps.index.attach(
            indexed, page_index=False, indexes={"remainders": ["v"]}, replace=True, in_place=True
        )
    finally:
        Masks.finish = find  # type: ignore[method-assign]
    (finding,) = ps.index.verify(indexed).findings
    assert "built again" in finding.what


def test_without_its_registration_a_file_reads_as_any_other(indexed: Path, tmp_path: Path) -> None:
    value = values_of(indexed)[12_345]
    ps.index.unregister("remainders")
    try:
        report = ps.scan(indexed, filter=ps.col("v") == value).explain(analyze=True)
        assert "remainders" not in report.rows.pruned_by and report.rows_out >= 1
        (entry,) = [one for one in ps.index.list(indexed) if one.kind == "remainders"]
        assert not entry.registered and "not registered" in str(entry)
        assert ps.index.verify(indexed).ok
        ps.index.detach(indexed, output=tmp_path / "without.parquet")
        assert ps.index.list(tmp_path / "without.parquet") != ps.index.list(indexed)
    finally:
        ps.index.register(Remainders())


def test_plans_travel_and_threads_share_it(indexed: Path) -> None:
    values = values_of(indexed)
    scan = ps.scan(indexed, filter=ps.col("v") == values[4_321])
    plan = pickle.loads(pickle.dumps(scan.plan()))
    assert pa.Table.from_batches(plan.execute()).equals(scan.to_table())
    ps.clear_cache()
    with ThreadPoolExecutor(4) as pool:
        found = pool.map(
            lambda i: ps.read_table(indexed, filter=ps.col("v") == values[i]).num_rows,
            range(100, N, 999),
        )
        assert min(found) >= 1


@pytest.mark.parametrize(
    ("kind", "error", "message"),
    [
        (Remainders, TypeError, "is a class"),
        (object(), TypeError, "'name' of type str"),
        (type("K", (), {"name": "two words"})(), ValueError, "no plain word"),
        (type("K", (), {"name": "remainders", "build": print})(), ValueError, "is taken"),
        (type("K", (), {"name": "distinct", "build": print})(), ValueError, "is taken"),
        (type("K", (), {"name": "page_index", "build": print})(), ValueError, "is taken"),
        (type("K", (), {"name": "mine"})(), TypeError, "no build"),
        (type("K", (), {"name": "mine", "build": 3})(), TypeError, "cannot be called"),
        (type("K", (), {"name": "mine", "version": "1", "build": print})(), TypeError, "version"),
    ],
)
def test_what_is_no_kind_is_refused(kind: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        ps.index.register(kind)


def test_an_unknown_kind_or_a_column_that_it_cannot_have(plain: Path, tmp_path: Path) -> None:
    out = tmp_path / "x.parquet"
    with pytest.raises(ValueError, match="'nothing' is not registered; there are: distinct"):
        ps.index.attach(plain, indexes={"nothing": ["v"]}, output=out)
    with pytest.raises(ps.UnsupportedError, match="remainders are of integers"):
        ps.index.attach(plain, indexes={"remainders": ["t"]}, output=out)
    assert not out.exists()


def test_a_scan_imports_nothing_that_builds(plain: Path, tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    ps.index.attach(plain, distinct=["n", "v"], distinct_index="t", output=path)
    code = (
        "import sys, pageseek as ps\n"
        f"ps.read_table({str(path)!r}, filter=(ps.col('v') == 5) | (ps.col('t') == 'zz'))\n"
        "print([m for m in sys.modules if m.startswith('pageseek.index.')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {"pageseek.index.kinds", "pageseek.index.kinds.distinct"}
    loaded |= {"pageseek.index.kinds.datafusion_index"}
    assert set(eval(done.stdout)) <= loaded


def test_a_builder_may_have_attributes_of_its_own(
    plain: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("owner", "members", "chunks_done"):
        monkeypatch.setattr(Masks, name, "of the user", raising=False)
    done = ps.index.attach(plain, indexes={"remainders": ["v"]}, output=tmp_path / "b.parquet")
    assert ("remainders", "v") in done.added
    assert ps.index.verify(tmp_path / "b.parquet").ok
