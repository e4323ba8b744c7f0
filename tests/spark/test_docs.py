"""The pages with examples for Spark run as they stand, in a session of their own, and print what they show."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.doc_examples import pages, printed_with_spark, stand_ins, wrong_outputs

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    pytest.importorskip("obstore", reason="pip install 'pageseek[obstore]'")
    with stand_ins() as made:
        yield made


@pytest.mark.parametrize("page", pages(spark=True))
def test_a_page_runs_as_pasted_in_an_empty_folder_and_prints_what_it_shows(
    page: str, url: str, spark_ready: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    assert wrong_outputs(page, printed_with_spark(page, tmp_path, url)) == ""
