"""Every example of the README and of docs runs as it stands, and prints what the page shows; spark/test_docs.py has those for Spark.

The examples of a page are pasted in order into one session in an empty folder. If a page says that it uses the files for the examples, the
lines that make these come first.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

import pageseek as ps
from support.doc_examples import (
    FILES,
    ROOT,
    blocks,
    difference,
    made_files,
    pages,
    printed,
    stand_ins,
    wrong_outputs,
)

EXTRAS = {
    "datafusion": "bench",
    "deltalake": "delta",
    "duckdb": "bench",
    "fsspec": "fsspec",
    "polars": "bench",
    "pyiceberg": "iceberg",
}


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    yield
    logging.getLogger("pageseek.io").setLevel(logging.NOTSET)  # an example sets it


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """One server for all pages, since stores are kept by URL."""
    pytest.importorskip("obstore", reason="pip install 'pageseek[obstore]'")
    with stand_ins() as made:
        yield made


def test_files_for_the_examples_are_those_of_the_readme() -> None:
    files, _tables = blocks((ROOT / FILES).read_text())
    assert files.code in (ROOT / "README.md").read_text()


def test_no_page_assumes_what_it_does_not_make() -> None:
    texts = {page: (ROOT / page).read_text() for page in {*pages(False), *pages(True)}}
    assert [page for page, text in texts.items() if "The examples assume" in text] == []
    named = [page for page, text in texts.items() if "The examples use" in text]
    assert len(named) >= 10
    assert [page for page in named if not made_files(texts[page])] == []


@pytest.mark.parametrize("page", pages(spark=False))
def test_a_page_runs_as_pasted_in_an_empty_folder_and_prints_what_it_shows(
    page: str, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (ROOT / page).read_text()
    code = "".join(block.code for block in [*made_files(text), *blocks(text)])
    for module, extra in EXTRAS.items():
        if f"import {module}" in code or f"from {module}" in code or f"ps.{module}" in code:
            pytest.importorskip(module, reason=f"pip install 'pageseek[{extra}]'")
    ps.clear_cache()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    assert wrong_outputs(page, printed(page, tmp_path, url)) == ""


@pytest.mark.parametrize(
    ("shown", "said", "same"),
    [
        ("1 row, 20.0 kB\n", "1 row, 21.1 kB\n", True),
        ("1 row, 20.0 kB\n", "1 row, 30.0 kB\n", False),
        ("1 row, 2.0 kB\n", "2 rows, 2.0 kB\n", False),
        ("in 0.9 s\n", "in 1.3 s\n", True),
        ("requests  4\nrows  4\n", "requests  9\nrows  4\n", True),
        ("rows  4\n", "rows  4\nrows  5\n", False),
        ("rows  #####.....  5\n", "rows    ####......  5\n", True),
    ],
)
def test_outputs_are_compared_without_what_machines_decide(
    shown: str, said: str, same: bool
) -> None:
    assert (difference(shown, said) == "") is same
