"""Files of a remote store are opened several at a time, and returned in order."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek.base.report import Report
from pageseek.format.file_metadata import FileMetadata
from pageseek.scanning.plans.open_ahead import (
    FILES_AHEAD,
    FILES_AHEAD_OF_LIMIT,
    FileOpener,
    open_each,
)
from pageseek.storage import Source, Sources
from support.concurrency import InFlight, slow_local_reads

FILES, WAIT = 40, 0.05


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> list[Source]:
    folder = tmp_path_factory.mktemp("opening")
    for i in range(FILES):
        pq.write_table(pa.table({"i": [i, -i]}), folder / f"{i:03}.parquet")
    return [Source(str(path)) for path in sorted(folder.iterdir())]


@pytest.fixture
def far(monkeypatch: pytest.MonkeyPatch) -> Iterator[InFlight]:
    """Local files, as if they were remote; counts the reads."""
    counts = slow_local_reads(monkeypatch, WAIT)
    monkeypatch.setattr(Source, "far", True)
    monkeypatch.setattr(Sources, "far", True)
    ps.clear_cache()
    yield counts
    ps.clear_cache()


def names(files: Iterator[FileMetadata]) -> list[str]:
    return [Path(file.name).stem for file in files]


def opened(
    sources: Sequence[Source], report: Report, limit: int | None = None
) -> Iterator[FileMetadata]:
    opener = FileOpener(ps.scan(str(sources[0].path), limit=limit)._request)
    opener.expect(lambda: sources)
    try:
        for source in sources:
            yield opener.open(source, report)
    finally:
        opener.close()


DUE = [f"{i:03}" for i in range(FILES)]


def test_near_files_are_opened_as_they_are_asked_for(sources: list[Source]) -> None:
    ps.clear_cache()
    report = Report()
    files = opened(sources, report)
    next(files)
    before = report.requests
    next(files)
    assert report.requests == 2 * before
    assert names(files) == DUE[2:]


@pytest.mark.timed
def test_distant_files_wait_together(sources: list[Source], far: InFlight) -> None:
    report, start = Report(), time.monotonic()
    assert names(opened(sources, report)) == DUE
    assert time.monotonic() - start < FILES * WAIT / 2
    assert 4 < far.most <= FILES_AHEAD
    assert report.requests == FILES
    assert report.waves == 1
    assert report.bytes["metadata"] == sum(Path(source.path).stat().st_size for source in sources)


def test_few_are_opened_in_vain(sources: list[Source], far: InFlight) -> None:
    report = Report()
    files = opened(sources, report, 1)
    next(files)
    files.close()  # type: ignore[attr-defined]
    assert far.most <= FILES_AHEAD_OF_LIMIT


def test_an_error_comes_in_its_turn(sources: list[Source], far: InFlight, tmp_path: Path) -> None:
    bad = tmp_path / "bad.parquet"
    bad.write_bytes(b"PAR1 is no footer PAR2")
    files = opened([*sources[:3], Source(str(bad)), *sources[3:]], Report())
    assert [Path(next(files).name).stem for _ in range(3)] == DUE[:3]
    with pytest.raises(ps.CorruptFileError, match=r"bad\.parquet"):
        next(files)


def test_each_file_comes_or_its_error(sources: list[Source], far: InFlight, tmp_path: Path) -> None:
    """A file that fails does not keep others from being opened several at a time."""
    bad = [Source(str(tmp_path / f"{name}.parquet")) for name in ("bad", "missing")]
    Path(bad[0].path).write_bytes(b"PAR1 is no footer PAR2")
    given = [*sources[:20], *bad, *sources[20:]]
    found = list(open_each(given))
    assert [source for source, _ in found] == given
    files = [file for _, file in found if isinstance(file, FileMetadata)]
    assert [Path(file.name).stem for file in files] == DUE and far.most > 4
    errors = [file for _, file in found if isinstance(file, Exception)]
    assert [type(error) for error in errors] == [ps.CorruptFileError, FileNotFoundError]


def test_a_store_that_does_not_answer_ends_it(
    sources: list[Source], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise ps.StoreError("no answer")

    ps.clear_cache()
    monkeypatch.setattr(Source, "open", refuse)
    with pytest.raises(ps.StoreError):
        next(open_each(sources))


def test_a_scan_of_many_files_is_planned_so(sources: list[Source], far: InFlight) -> None:
    found = ps.read_table(list(sources), filter=ps.col("i") == 17)
    assert found.to_pydict() == {"i": [17]}
    assert far.most > 4
