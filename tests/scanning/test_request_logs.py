"""The exact requests to a server, by its own log: which pages, how many requests, and how many of them sequential."""

from __future__ import annotations

import io
import itertools
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as pads
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek.format.checksums import PIECE_BYTES
from pageseek.storage import endpoint as endpoints
from support.attaching import with_directory
from support.object_requests import ObjectRequests, Place
from support.object_server.server import ObjectServer
from support.page_truth import Pages, Reader, read_pages
from support.remote_files import (
    GROUPS,
    PATH,
    ROWS,
    Way,
    content,
    of_pyarrow,
    over_http,
    over_s3,
    table,
)

WAIT = 0.08  # seconds that the server delays each request: concurrent requests overlap
NEAR, FAR = (
    (0.002, 1e6),
    (0.05, 1e8),
)  # bytes that a wait is worth: 2 kB, less than a page, and 5 MB
ROW = 12_345  # in the third row group of four; the tail ends in the last
Model = Callable[[tuple[float, float]], None]


@pytest.fixture
def server(object_server: ObjectServer) -> ObjectServer:
    ps.clear_cache()
    object_server.put(PATH, content())
    object_server.latency = WAIT
    return object_server


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> Model:
    """Other figures of latency and bandwidth than those that are assumed."""

    def set_to(figures: tuple[float, float]) -> None:
        monkeypatch.setattr(endpoints, "LATENCY", figures[0])
        monkeypatch.setattr(endpoints, "BANDWIDTH", figures[1])
        monkeypatch.setattr(endpoints, "_known", {})
        ps.clear_cache()

    return set_to


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Pages]:
    path = tmp_path_factory.mktemp("logs") / "a.parquet"
    path.write_bytes(content())
    return read_pages(path)[0]


def of_rows(pages: Pages, *rows: int) -> list[Place]:
    return [(int(pages.offset[i]), int(pages.size[i])) for i in pages.of_rows(rows)]


def merged(places: list[Place]) -> list[Place]:
    """Pages that touch are one request."""
    made: list[Place] = []
    for at, n in sorted(places):
        if made and sum(made[-1]) == at:
            made[-1] = (made[-1][0], made[-1][1] + n)
        else:
            made.append((at, n))
    return made


def read(
    server: ObjectServer, way: Way, path: str = PATH, **how: Any
) -> tuple[pa.Table, ObjectRequests]:
    server.log.reset()
    found = ps.read_table(**way(server), **how)
    return found, ObjectRequests(server, path)


WAYS = [over_http, over_s3]
ONE = ps.col("id") == ROW


# ---- lookups


@pytest.mark.timed
@pytest.mark.parametrize("way", WAYS)
def test_a_lookup_where_bytes_are_dear(
    server: ObjectServer, way: Way, known: Model, pages: dict[str, Pages]
) -> None:
    """Tail, pages of the filter, pages of the payload: exactly these, in three waves; warm in two, without the tail."""
    known(NEAR)
    due = {name: of_rows(found, ROW) for name, found in pages.items()}
    for tails in (1, 0):
        found, asked = read(server, way, filter=ONE)
        assert found == table().slice(ROW, 1)
        assert len(asked.tails) == tails and asked.records[:tails] == asked.tails
        assert asked.places == merged([at for places in due.values() for at in places])
        assert asked.others[0].range == "bytes={}-{}".format(*_ends(due["id"]))
        assert asked.depth == 2 + tails
        assert asked.confirmations == []


def _ends(places: list[Place]) -> tuple[int, int]:
    return places[0][0], sum(places[-1]) - 1


@pytest.mark.timed
@pytest.mark.parametrize("way", WAYS)
def test_a_lookup_where_a_wait_is_dear(
    server: ObjectServer, way: Way, known: Model, pages: dict[str, Pages]
) -> None:
    """The pages of the payload come with those of the filter: two waves, warm one, and nothing before or behind them."""
    known(FAR)
    due = [at for found in pages.values() for at in of_rows(found, ROW)]
    for tails in (1, 0):
        found, asked = read(server, way, filter=ONE)
        assert found == table().slice(ROW, 1)
        assert len(asked.tails) == tails and not asked.confirmations
        assert asked.depth == 1 + tails
        assert asked.covers(due)
        assert asked.places[0][0] == min(due)[0]
        assert sum(asked.places[-1]) == sum(max(due))
        assert asked.outside(due) <= FAR[0] * FAR[1]
        assert len(asked.places) <= len(due)


@pytest.mark.parametrize("way", WAYS)
def test_a_lookup_in_vain(server: ObjectServer, way: Way, known: Model) -> None:
    known(NEAR)
    for key in (-1, GROUPS * ROWS):
        found, asked = read(server, way, filter=ps.col("id") == key)
        assert not found.num_rows
        assert asked.places == [] and len(asked.records) == 1
    assert [one.status for one in asked.confirmations] == [304]


@pytest.mark.timed
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("low", "high"), [(7_000, 7_999), (9_400, 10_600), (4_999, 5_000), (1_000, 14_999)]
)
def test_a_range_takes_the_pages_that_hold_it_and_no_byte_more(
    server: ObjectServer, way: Way, known: Model, pages: dict[str, Pages], low: int, high: int
) -> None:
    """Of the filter's column only pages whose bounds do not decide it: those that contain an end of the range."""
    known(NEAR)
    rows = range(low, high + 1)
    first = pages["id"].first_row
    tested = [row for row in (low, high + 1) if row not in first]
    due = of_rows(pages["id"], *tested) + of_rows(pages["v"], *rows)
    found, asked = read(server, way, columns=["v"], filter=ps.col("id").between(low, high))
    assert found == table().select(["v"]).slice(low, len(rows))
    assert asked.places == merged(due)
    assert asked.depth == (3 if tested else 2)


@pytest.mark.parametrize("way", WAYS)
def test_what_a_filter_rules_out_row_by_row_takes_no_payload(
    server: ObjectServer, way: Way, known: Model, pages: dict[str, Pages]
) -> None:
    known(NEAR)
    values = table()["v"].to_numpy()
    row = int(np.argsort(values)[3])  # the fourth least: the bounds of few pages are below it
    least = ps.col("v") <= int(values[row])
    rows = np.flatnonzero(values <= values[row])
    found, asked = read(server, way, columns=["id", "v"], filter=least)
    assert found == table().select(["id", "v"]).take(rows)
    tail = asked.size - asked.tails[0].sent  # pages that came with it are not requested again
    minima = np.minimum.reduceat(values, pages["v"].first_row)
    low = [i for i, least in enumerate(minima) if least <= values[row]]
    tested = [(int(pages["v"].offset[i]), int(pages["v"].size[i])) for i in low]
    due = [at for at in tested + of_rows(pages["id"], *rows) if at[0] < tail]
    assert asked.places == merged(due)


# ---- other requests before the pages


def bloomed(groups: int, **how: Any) -> tuple[bytes, pa.Table]:
    random = np.random.default_rng(2)
    n = groups * 4_000
    made = pa.table({"key": random.permutation(n) * 3, "text": np.char.mod("%080d", np.arange(n))})
    file = io.BytesIO()
    pq.write_table(
        made, file, row_group_size=4_000, compression="none", use_dictionary=False,
        write_page_index=True, max_rows_per_page=500, write_batch_size=500, **how,
    )  # fmt: skip
    return file.getvalue(), made


@pytest.mark.timed
@pytest.mark.parametrize("way", WAYS)
def test_bloom_filters_are_one_wave_of_heads_and_blocks(
    server: ObjectServer, way: Way, known: Model, tmp_path: Path
) -> None:
    known(NEAR)
    data, whole = bloomed(8, bloom_filter_options={"key": {"ndv": 4_000, "fpp": 1e-4}})
    (tmp_path / "b.parquet").write_bytes(data)
    chunks = read_pages(tmp_path / "b.parquet")[0]
    filters = filters_of(data)
    server.put(PATH, data)
    row = 13_000
    asking = ps.col("key") == whole["key"][row].as_py()
    report = ps.scan(**way(server), filter=asking).explain(analyze=True).to_dict()
    assert report["rows"]["out"] == 1
    assert report["row_groups"]["pruned_by"] == {"bloom_filter": 7}
    asked = ObjectRequests(server, PATH)
    end = sum(filters[-1])
    probes = [at for at in asked.places if filters[0][0] <= at[0] and sum(at) <= end]
    # of each filter its head and one block, which may lie so that it comes with the head of the next
    assert len(filters) <= len(probes) <= 2 * len(filters)
    assert sum(length for _, length in probes) < sum(length for _, length in filters) / 8
    assert all(any(at <= start < at + n for at, n in probes) for start, _ in filters)
    # the pages of the one row group that is left: those of the key, and one of the payload
    key = of_rows(chunks["key"], *range(12_000, 16_000))
    assert asked.places == sorted(probes + merged(key) + of_rows(chunks["text"], row))
    assert asked.depth == 4  # tail, filters, key, payload


@pytest.mark.timed
@pytest.mark.parametrize("way", WAYS)
def test_attached_bloom_filters_are_one_wave_with_their_checksums(
    server: ObjectServer, way: Way, known: Model, tmp_path: Path
) -> None:
    known(NEAR)
    data, whole = bloomed(8)
    path = tmp_path / "b.parquet"
    # the list lies behind the filters, so that they do not come with the end of the file
    ps.index.attach(data, bloom={"key": 1e-4}, distinct=["text"], output=path)
    data = path.read_bytes()
    with_directory(path, lambda one: one.pop("sums", None))
    filters = filters_of(data)
    end = sum(filters[-1]) + 8 * -(-filters[-1][1] // PIECE_BYTES)
    asking = ps.col("key") == whole["key"][13_000].as_py()
    depths = []
    # of each filter its head, the piece with one block, and the checksum of that
    for content_, parts, size in ((data, 3, PIECE_BYTES + 8), (path.read_bytes(), 2, 32)):
        server.put(PATH, content_)
        seen = []
        for _ in range(4):  # a busy machine sends requests of a wave one after the other
            ps.clear_cache()
            server.log.reset()
            report = ps.scan(**way(server), filter=asking).explain(analyze=True).to_dict()
            assert report["rows"]["out"] == 1 and not report["notes"]
            assert report["row_groups"]["pruned_by"] == {"bloom_filter": 7}
            asked = ObjectRequests(server, PATH)
            probes = [at for at in asked.places if filters[0][0] <= at[0] and sum(at) <= end]
            assert len(filters) <= len(probes) <= parts * len(filters)
            between = len(probes) * (NEAR[0] * NEAR[1]) / 8
            read = sum(length for _, length in probes)
            assert len(filters) * size < read <= len(filters) * (20 + size) + between
            seen.append(asked.depth)
        depths.append(min(seen))
    assert depths[0] == depths[1]


def filters_of(data: bytes) -> list[Place]:
    """The Bloom filters of the first column, by the footer."""
    length = int.from_bytes(data[-8:-4], "little")
    footer = Reader(data[-8 - length : -8]).struct()
    return [(group[1][0][3][14], group[1][0][3][15]) for group in footer[4]]


@pytest.mark.timed
@pytest.mark.parametrize("way", WAYS)
def test_each_dictionary_that_is_asked_is_one_request_of_one_wave(
    server: ObjectServer, way: Way, known: Model
) -> None:
    """The dictionary of every row group; then the pages of the only row group with the value, without the dictionary."""
    known(NEAR)
    n, groups = 60_000, 6
    random = np.random.default_rng(4)
    kinds = np.concatenate([random.integers(0, 40, n) * groups + i for i in range(groups)])
    made = pa.table({"kind": kinds * 1_000, "text": np.char.mod("%040d", np.arange(n * groups))})
    file = io.BytesIO()
    pq.write_table(
        made, file, row_group_size=n, compression="none", use_dictionary=["kind"],
        write_page_index=True, max_rows_per_page=20_000, write_batch_size=1_000,
    )  # fmt: skip
    server.put(PATH, file.getvalue())
    groups_of = pq.read_metadata(file)
    wanted = 7 * groups + 3
    server.log.reset()
    scan = ps.scan(**way(server), columns=["kind"], filter=ps.col("kind") == wanted * 1_000)
    report = scan.explain(analyze=True).to_dict()
    assert report["rows"]["out"] == int((kinds == wanted).sum())
    assert report["row_groups"]["pruned_by"] == {"dictionary": 5}
    asked = ObjectRequests(server, PATH)
    due: list[Place] = []
    for i in range(groups):
        chunk = groups_of.row_group(i).column(0)
        start, pages = chunk.dictionary_page_offset, chunk.data_page_offset
        due.append((start, pages - start))
        if i == 3:
            due.append((pages, start + chunk.total_compressed_size - pages))
    assert asked.places == sorted(due)
    assert asked.depth == 3  # tail, dictionaries, pages


# ---- many files


@pytest.mark.timed
@pytest.mark.parametrize("way", WAYS)
def test_one_row_of_a_hundred_files(server: ObjectServer, way: Way, known: Model) -> None:
    """Of each file the tail; of the one that has the row its pages. Nothing twice, nothing of the others. Warm, the
    versions of the others are confirmed beside its pages.
    """
    known(NEAR)
    files, n = 100, 12_000
    server.latency = 0.01
    for i in range(files):
        rows = np.arange(i * n, (i + 1) * n)
        file = io.BytesIO()
        pq.write_table(
            pa.table({"id": rows, "v": rows * 7 % 1_001}), file, compression="none",
            use_dictionary=False, write_page_index=True, max_rows_per_page=1_000,
            write_batch_size=1_000,
        )  # fmt: skip
        server.put(f"bucket/many/{i:03}.parquet", file.getvalue())
    names = [f"bucket/many/{i:03}.parquet" for i in range(files)]
    given = way(server)
    if way is over_http:
        given["source"] = [server.url(name) for name in names]
    else:
        given["source"] = [f"s3://{name}" for name in names]
    wanted = 42 * n + 1_234  # in the second page
    for cold in (True, False):
        server.log.reset()
        found = ps.read_table(**given, filter=ps.col("id") == wanted)
        assert found.to_pylist() == [{"id": wanted, "v": wanted * 7 % 1_001}]
        for i, name in enumerate(names):
            asked = ObjectRequests(server, name)
            assert len(asked.tails) == cold, name
            assert len(asked.others) == (2 if i == 42 else 0), name
            assert len(asked.confirmations) == (not cold and i != 42), name
            assert len(asked.records) == (2 + cold if i == 42 else 1), name
        assert server.log.in_flight() <= endpoints.IN_FLIGHT
        assert server.log.waves() < files / 3  # many at a time, on a machine that is busy too


# ---- everything


def plain(groups: int, rows: int = 80_000) -> bytes:
    random = np.random.default_rng(0)
    made = pa.table({f"c{i}": random.integers(0, 1 << 60, rows) for i in range(4)})
    file = io.BytesIO()
    pq.write_table(
        made, file, row_group_size=-(-rows // groups), compression="none", use_dictionary=False,
        write_page_index=True,
    )  # fmt: skip
    return file.getvalue()


def arrow(server: ObjectServer, columns: list[str] | None) -> pa.Table:
    filesystem = of_pyarrow(server)["source"][0]
    return pads.dataset(PATH, filesystem=filesystem, format="parquet").to_table(columns=columns)


@pytest.mark.parametrize("columns", [None, ["c1"], ["c0", "c2"]], ids=str)
@pytest.mark.parametrize("groups", [1, 4, 20, 200, 800])
def test_no_filter_takes_no_more_requests_than_pyarrow(
    server: ObjectServer, known: Model, groups: int, columns: list[str] | None
) -> None:
    known((0.02, 1e8))
    server.latency = 0.0
    server.put(PATH, plain(groups))
    server.log.reset()
    wanted = arrow(server, columns)
    theirs = len(server.log)
    for way in WAYS:
        ps.clear_cache()
        found, asked = read(server, way, columns=columns)
        assert found == wanted
        assert len(asked.tails) == 1
        assert len(asked.records) <= theirs


@pytest.mark.timed
@pytest.mark.parametrize("way", WAYS)
def test_row_groups_next_to_each_other_share_requests(
    server: ObjectServer, way: Way, known: Model
) -> None:
    """As few as take no longer to come than another wait; never all in one, and no byte twice."""
    known((0.02, 1e8))
    server.latency = 4 * WAIT  # on a busy machine, the requests of a wave begin far apart
    data = plain(40)
    server.put(PATH, data)
    found, asked = read(server, way)
    assert found == pq.read_table(io.BytesIO(data))
    assert 4 <= len(asked.places) <= 5
    assert max(length for _, length in asked.places) <= 0.02 * 1e8
    assert asked.places[0][0] == 4
    for (at, length), (following, _) in itertools.pairwise(asked.places):
        assert at + length == following
    assert asked.size - asked.tails[0].sent <= sum(asked.places[-1])
    assert asked.depth == 2
    # nor where there is no room for what they hold
    found, asked = read(server, way, max_ahead_bytes=len(data) // 10)
    assert len(asked.places) > 30


def of_columns(data: bytes, columns: list[str]) -> list[list[Place]]:
    """Where the chunks of columns lie, row group by row group."""
    metadata = pq.read_metadata(io.BytesIO(data))
    made = []
    for i in range(metadata.num_row_groups):
        chunks = [metadata.row_group(i).column(at) for at in range(metadata.num_columns)]
        wanted = [chunk for chunk in chunks if chunk.path_in_schema in columns]
        made.append([(c.data_page_offset, c.total_compressed_size) for c in wanted])
    return made


@pytest.mark.timed
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("columns", [["c1"], ["c0", "c2"], ["c3", "c0"]], ids=str)
def test_what_lies_between_the_chunks_of_some_columns_is_read_over_where_a_request_costs_more(
    server: ObjectServer, way: Way, known: Model, columns: list[str]
) -> None:
    data = plain(40)
    server.put(PATH, data)
    groups = of_columns(data, columns)
    chunks = [at for places in groups for at in places]
    size, wait = sum(length for _, length in chunks), 0.02 * 1e8
    wanted = pq.read_table(io.BytesIO(data), columns=columns)

    known((0.02, 1e8))  # a hole of 48 kB is worth less than a sixteenth of a wait
    found, asked = read(server, way, columns=columns)
    assert found == wanted
    assert len(asked.places) == 4 and asked.depth == 2
    assert asked.covers(chunks)
    assert max(length for _, length in asked.places) <= wait
    assert {at for at, _ in asked.places} <= {at for at, _ in chunks}
    assert {sum(at) for at in asked.places} <= {sum(at) for at in chunks}
    # of a single file the bytes of a wait for each request, at most
    assert asked.outside(chunks) <= min(4 * wait, 40 * wait / 16)

    found, asked = read(server, way, columns=columns, max_ahead_bytes=4 * size // 10)
    assert found == wanted
    assert len(asked.places) > 30  # no room for what they hold, and the holes

    known((0.02, 1e6))  # a hole takes longer than a wait
    found, asked = read(server, way, columns=columns)
    assert found == wanted
    kept = asked.size - asked.tails[0].sent  # what came with the tail may have been let go of
    due = [at for places in groups for at in merged(places) if sum(at) <= kept]
    assert [at for at in asked.places if sum(at) <= kept] == due


@pytest.mark.parametrize("way", WAYS)
def test_a_hole_between_row_groups_is_read_over_up_to_a_sixteenth_of_a_wait(
    server: ObjectServer, way: Way, known: Model
) -> None:
    data = plain(40)
    server.put(PATH, data)
    places = [at for (at,) in of_columns(data, ["c1"])]
    hole = max(at - sum(before) for before, (at, _) in itertools.pairwise(places))
    for gap, shared in ((16 * hole, True), (16 * hole - 32, False)):
        known((0.02, gap / 0.02 + 1))
        _, asked = read(server, way, columns=["c1"])
        assert (len(asked.places) < 10) == shared


@pytest.mark.parametrize("way", WAYS)
def test_tiny_row_groups_are_one_request(server: ObjectServer, way: Way, known: Model) -> None:
    """To go on with one while others are under way would save less than a further request costs."""
    known((0.02, 1e8))
    data = plain(40, 8_000)
    server.put(PATH, data)
    read(server, way)  # which shows how long a tail is
    ps.clear_cache()
    _, asked = read(server, way, columns=["c1"])
    kept = asked.size - asked.tails[0].sent
    assert len(asked.places) == (kept > of_columns(data, ["c1"])[0][0][0])


@pytest.mark.timed
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("columns", [None, ["c1"]], ids=str)
def test_a_plan_that_is_executed_elsewhere_shares_requests_as_well(
    server: ObjectServer, way: Way, known: Model, columns: list[str] | None
) -> None:
    known((0.02, 1e8))
    data = plain(40)
    server.put(PATH, data)
    wanted = pq.read_table(io.BytesIO(data), columns=columns)
    _, asked = read(server, way, columns=columns)
    there, scan = asked.places, ps.scan(**way(server))
    shipped = pickle.dumps((scan if columns is None else scan.select(*columns)).plan())
    for parts in (1, 2):
        tables = []
        for part in pickle.loads(shipped).split(parts):
            ps.clear_cache()
            server.log.reset()
            tables.append(pa.Table.from_batches(part.execute()))
            asked = ObjectRequests(server, PATH)
            assert len(asked.tails) == 1 and asked.depth == 2
            if parts == 1:
                assert asked.places == there
            else:
                assert len(asked.places) <= 10
        assert pa.concat_tables(tables).sort_by("c1") == wanted.sort_by("c1")


@pytest.mark.parametrize("way", WAYS)
def test_row_groups_of_which_nothing_is_tested_share_requests_beside_others(
    server: ObjectServer, way: Way, known: Model
) -> None:
    """By the footer every row of them passes; of the last, of which that is not so, the key is read as well."""
    known((0.02, 1e8))
    n = 80_000
    made = pa.table({"id": np.arange(n), "v": np.random.default_rng(0).integers(0, 1 << 60, n)})
    file = io.BytesIO()
    pq.write_table(
        made, file, row_group_size=n // 40, compression="none", use_dictionary=False,
    )  # fmt: skip
    server.put(PATH, file.getvalue())
    condition = ps.col("id") < n - 1_000
    found, asked = read(server, way, columns=["v"], filter=condition)
    assert found == made.select(["v"]).slice(0, n - 1_000)
    assert len(asked.places) <= 6


@pytest.mark.parametrize("way", WAYS)
def test_rows_before_damage_come_where_requests_are_shared(
    server: ObjectServer, way: Way, known: Model
) -> None:
    known((0.02, 1e8))
    data = bytearray(plain(40))
    chunk = pq.read_metadata(io.BytesIO(data)).row_group(13).column(2)
    at = chunk.data_page_offset
    data[at : at + 40] = b"\xff" * 40
    server.put(PATH, bytes(data))
    batches, seen = ps.scan(**way(server)).to_batches(), []
    with pytest.raises(ps.CorruptFileError, match="row group 13"):
        seen.extend(batch.num_rows for batch in batches)
    assert sum(seen) == 13 * 2_000
    assert len(server.log) <= 6
