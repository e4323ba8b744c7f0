"""The commands in docs/command-line.md: run, and compared with what the page shows. Run as a script, this rewrites the page."""

from __future__ import annotations

import contextlib
import datetime as dt
import io
import os
import re
import shlex
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import pageseek as ps
from pageseek.cli import main

PAGE = Path(__file__).resolve().parents[2] / "docs" / "command-line.md"
BLOCK = re.compile(r"(?<=^```console\n).*?(?=^```$)", re.DOTALL | re.MULTILINE)
# what other machines and other versions of libraries show differently
CHANGING = (
    (re.compile(r"(?m)^(  bytes +)[#.]+"), r"\1"),
    (re.compile(r"(?m)^  time .*$"), "  time"),
    (re.compile(r"[\d.,]+ (B|kB|MB)\b"), "SIZE"),
    (re.compile(r"written by .*"), "written by"),
    (re.compile(r"parquet-cpp-arrow [\d.]+"), "parquet-cpp-arrow"),
    (re.compile(r"-{2,}"), "--"),
    (re.compile(r" +"), " "),
)
N = 10_000
COUNTRIES = "DE", "FR", "JP", "US"


def make_files(folder: Path) -> None:
    """The files of the page."""
    orders = pa.table(
        {
            "id": pa.array(range(N), pa.int64()),
            "customer": pa.array([i * 7919 % 1_009 for i in range(N)], pa.int32()),
            "country": [COUNTRIES[i * 31 % 4] for i in range(N)],
            "day": [dt.date(2024, 1, 1) + dt.timedelta(days=i // 100) for i in range(N)],
            "price": [None if i % 50 == 0 else i * 37 % 9_973 / 100 for i in range(N)],
            "note": [None if i % 3 else f"parcel {i * 17 % N:05d}" for i in range(N)],
        }
    )
    pq.write_table(
        orders, folder / "orders.parquet", write_page_index=True, row_group_size=2_500, data_page_size=1,
        write_batch_size=500, use_dictionary=False,
    )  # fmt: skip
    (folder / "sales").mkdir()
    for month in range(3):
        part = orders.slice(month * 3_000, 3_000).select(["id", "country", "price"])
        pq.write_table(part, folder / f"sales/{month + 1:02}.parquet", write_page_index=True)


@contextlib.contextmanager
def files() -> Iterator[None]:
    """While the block runs, the current folder has the files."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        make_files(Path(folder))
        os.chdir(folder)
        try:
            yield
        finally:
            os.chdir(before)


def output(command: str) -> str:
    """What a command prints to a pipe, errors too."""
    words = shlex.split(command)
    assert words[0] == "pageseek", command
    ps.clear_cache()  # as a process of its own begins
    seen = io.StringIO()
    with (
        contextlib.redirect_stdout(seen),
        contextlib.redirect_stderr(seen),
        contextlib.suppress(SystemExit),
    ):
        main(words[1:])
    return seen.getvalue().replace(f"{Path.cwd()}/", "").replace(os.path.realpath(".") + "/", "")


def rerun(page: str) -> str:
    """The page with what its commands print now."""

    def block(found: re.Match[str]) -> str:
        commands = [line for line in found[0].splitlines() if line.startswith("$ ")]
        return "".join(f"{command}\n{output(command[2:])}" for command in commands)

    with files():
        return BLOCK.sub(block, page)


def steady(page: str) -> str:
    """The page without what changes."""
    for pattern, instead in CHANGING:
        page = pattern.sub(instead, page)
    return page


if __name__ == "__main__":
    PAGE.write_text(rerun(PAGE.read_text()))
    with files():
        for line in re.findall(r"(?m)^pageseek (.* --plot .*)$", PAGE.read_text()):
            *words, name = shlex.split(line)
            (PAGE.parent / "images").mkdir(exist_ok=True)
            main([*words, str(PAGE.parent / "images" / name), "--overwrite"])
