"""Versions of many files in a folder of a store: one listing tells them in place of a question about each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

import pageseek as ps
from pageseek.datasets.confirmed import asked_once
from pageseek.storage import listed_versions
from pageseek.storage.listed_versions import FEWEST, OTHERS, is_same
from pageseek.storage.store import Version
from support.object_server.faults import Rule, status
from support.object_server.server import ObjectServer
from support.remote_files import content, s3_options

pytest.importorskip("obstore", reason="pip install 'pageseek[obstore]'")
FILES = FEWEST


@pytest.fixture
def server(object_server: ObjectServer) -> Iterator[ObjectServer]:
    body = content(0)
    for i in range(FILES):
        object_server.put(f"bucket/t/day={i % 2}/{i}.parquet", body)
    ps.clear_cache()
    listed_versions._failed.clear()
    yield object_server
    ps.clear_cache()
    listed_versions._failed.clear()


def planned(server: ObjectServer, source: Any = "s3://bucket/t/") -> tuple[Counter[str], int]:
    """The requests of one planning, by their kind, and the rows that it leaves."""
    scan = ps.scan(source, storage_options=s3_options(server))
    server.log.reset()
    with asked_once():
        rows = scan.filter("seed = 0").plan().num_rows
    kinds = {200: "listing", 206: "end", 304: "question", 403: "refused", 503: "refused"}
    return Counter(kinds[record.status] for record in server.log.records()), rows


def test_one_listing_confirms_all_files_of_folders(server: ObjectServer) -> None:
    found, rows = planned(server)
    assert found == {"end": FILES}
    assert planned(server) == ({"listing": 1}, rows)
    assert rows > 0


def test_in_one_planning_the_folder_is_listed_once(server: ObjectServer) -> None:
    planned(server)
    scan = ps.scan("s3://bucket/t/", storage_options=s3_options(server))
    server.log.reset()
    with asked_once():
        plans = [scan.filter(f"seed = {i}").plan().num_rows for i in range(2)]
    assert [record.status for record in server.log.records()] == [200]
    assert plans[0] > plans[1] == 0


def test_a_file_that_has_changed_is_opened_anew(server: ObjectServer) -> None:
    _, rows = planned(server)
    server.put("bucket/t/day=0/0.parquet", content(1))
    found, left = planned(server)
    assert found == {"listing": 1, "end": 1}
    assert left == rows - rows // FILES


def test_few_files_are_asked_for_one_by_one(server: ObjectServer) -> None:
    few = [f"s3://bucket/t/day={i % 2}/{i}.parquet" for i in range(FILES - 1)]
    planned(server, few)
    assert planned(server, few)[0] == {"question": FILES - 1}


@pytest.mark.parametrize("code", [403, 503])
def test_a_listing_that_fails_is_not_tried_again(server: ObjectServer, code: int) -> None:
    every = [f"s3://bucket/t/day={i % 2}/{i}.parquet" for i in range(FILES)]
    _, rows = planned(server, every)
    server.faults = Rule(status(code), ranged=False)
    assert planned(server, every) == ({"refused": 1, "question": FILES}, rows)
    assert planned(server, every) == ({"question": FILES}, rows)
    server.faults = None
    listed_versions._failed.clear()  # as if it were later
    assert planned(server, every) == ({"listing": 1}, rows)


def test_a_listing_begins_at_the_files_and_ends_with_them(server: ObjectServer) -> None:
    body = content(0)
    for i in range(1_200):  # more than one answer of the store has
        for name in "ac":
            server.put(f"bucket/many/{name}{i:05}", b"")
    for i in range(FILES):
        server.put(f"bucket/many/b{i:05}.parquet", body)
    found = [f"s3://bucket/many/b{i:05}.parquet" for i in range(FILES)]
    planned(server, found)
    assert planned(server, found)[0] == {"listing": 1}


def test_a_listing_ends_where_many_other_files_lie_between(server: ObjectServer) -> None:
    every = [f"s3://bucket/t/day={i % 2}/{i}.parquet" for i in range(FILES)]
    _, rows = planned(server, every)
    for i in range(FILES * OTHERS * 10):
        server.put(f"bucket/t/day=0/{i:05}", b"")
    found, left = planned(server, every)
    # one file is named before the others
    assert (found["listing"], found["question"], left) == (1, FILES - 1, rows)


@pytest.mark.parametrize(
    ("listed", "same"),
    [
        (Version(5, '"a"', True), True),
        (Version(5, "a", True), True),
        (Version(5, '"b"', True), False),
        (Version(6, '"a"', True), False),
        (Version(5, 'W/"a"', False), False),
    ],
)
def test_a_listed_version_is_the_known_one_by_its_tag_and_size(listed: Version, same: bool) -> None:
    assert is_same(listed, Version(5, '"a"', True)) is same
