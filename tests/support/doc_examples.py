"""The examples of the README and of docs: blocks of Python and commands, and the outputs that pages show behind them.

usage: python -m support.doc_examples PAGE URL ANSWERS

Runs a page in the current folder, with its blocks for Spark. What the blocks print goes to the file ANSWERS as JSON. URL is what `stand_ins`
yields.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from unittest import mock

from support.object_server.server import ObjectServer

ROOT = Path(__file__).resolve().parents[2]
TESTED_ELSEWHERE = {
    "docs/pages.md",
    "docs/pruners.md",
}  # by format/test_parquet_file.py and prune/test_pruners.py
FILES = "docs/example-files.md"
# What pages say whose examples run behind blocks of FILES, and behind how many of them.
USES = {
    "The examples use the [files for the examples](example-files.md).": 1,
    "The examples use the [files and tables for the examples](example-files.md#tables).": 2,
}
SERVER = "https://example.org/"
FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```\n?", re.DOTALL | re.MULTILINE)
HOME = "/home/you/demo"  # stands for the folder in which a page was run


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block. `output` is where the block stands that shows what this one prints."""

    language: str
    code: str
    line: int
    output: tuple[int, int] | None

    @property
    def is_for_spark(self) -> bool:
        return (
            self.language == "python"
            and re.search(r"\b(pageseek\.|py)spark\b", self.code) is not None
        )


def blocks(text: str) -> list[Block]:
    """The blocks of Python and of commands of a page."""
    found = list(FENCE.finditer(text))
    made = []
    for match, behind in zip(found, [*found[1:], None], strict=False):
        shows = behind is not None and behind[1] == "text"
        shows = shows and not text[match.end() : behind.start()].strip()  # type: ignore[union-attr]
        place = behind.span(2) if shows and behind is not None else None
        if match[1] in ("python", "sh"):
            line = text.count("\n", 0, match.start(2)) + 1
            made.append(Block(match[1], match[2], line, place))
    return made


def pages(spark: bool) -> list[str]:
    """The pages with examples in Python: those with examples for Spark, or those with others."""
    found = []
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))):
        name = path.relative_to(ROOT).as_posix()
        made = [block for block in blocks(path.read_text()) if block.language == "python"]
        if name not in TESTED_ELSEWHERE and any(block.is_for_spark == spark for block in made):
            found.append(name)
    return found


def made_files(text: str) -> list[Block]:
    """The blocks of FILES behind which the examples of a page run."""
    used = max((number for said, number in USES.items() if said in text), default=0)
    return blocks((ROOT / FILES).read_text())[:used]


@contextlib.contextmanager
def stand_ins() -> Iterator[str]:
    """An object server in place of the reader's buckets and of SERVER, with the files for the examples.

    URLs of S3 lead to it by the environment. Yields the URL that takes the place of SERVER.
    """
    with tempfile.TemporaryDirectory() as name, ObjectServer() as server:
        folder = Path(name)
        files, tables = blocks((ROOT / FILES).read_text())
        with contextlib.chdir(folder):
            _run(files.code, FILES, space := {})
            if find_spec("deltalake") and find_spec("pyiceberg"):
                _run(tables.code, FILES, space)
                space["catalog"].close()
        orders, sales = (
            (folder / "orders.parquet").read_bytes(),
            (folder / "sales/00.parquet").read_bytes(),
        )
        for key, data in (
            ("lake/orders.parquet", orders),
            ("bucket/sales/a.parquet", sales),
            ("public-bucket/a.parquet", sales),
            ("web/sales.parquet", sales),
            ("web/a.parquet", sales),
        ):
            server.put(key, data)
        for path in (folder / "tables").rglob("*"):
            if path.is_file():
                server.put(f"lake/{path.relative_to(folder / 'tables')}", path.read_bytes())
        environment = {
            "AWS_ENDPOINT": server.endpoint,
            "AWS_ALLOW_HTTP": "true",
            "AWS_ACCESS_KEY_ID": "any",
            "AWS_SECRET_ACCESS_KEY": "any",
        }
        with mock.patch.dict(os.environ, environment):
            yield server.url("web/")


def printed(page: str, folder: Path, url: str, spark: bool = False) -> Iterator[tuple[Block, str]]:
    """Run the blocks of a page one after the other, in a folder that is the current one; yield what each prints.

    Blocks for Spark are left out unless `spark` is true. `url` is what `stand_ins` yields.
    """
    space: dict[str, Any] = {"__name__": "__main__"}
    text = (ROOT / page).read_text()
    try:
        for block in made_files(text):
            _run(block.code, FILES, space)
        for block in blocks(text):
            if block.is_for_spark and not spark:
                continue
            code = block.code.replace(SERVER, url)
            if block.language == "sh":
                said = "".join(_command(line, folder) for line in _commands(code))
            else:
                place = "\n" * (block.line - 1)  # a traceback names the line of the page
                said = _run(place + code, page, space)
            yield block, said.replace(str(folder), HOME)
    finally:
        if "catalog" in space:
            space["catalog"].close()


def printed_with_spark(page: str, folder: Path, url: str) -> list[tuple[Block, str]]:
    """The same with the blocks for Spark, in a process of its own, since a session keeps the folder in which it began."""
    paths = [str(ROOT / "tests"), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(paths),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    with tempfile.TemporaryDirectory() as beside:
        answers = Path(beside) / "answers.json"
        command = [sys.executable, "-m", "support.doc_examples", page, url, str(answers)]
        done = subprocess.run(
            command,
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        if done.returncode:
            raise AssertionError(f"{page}\nexit code {done.returncode}\n{done.stderr[-6000:]}")
        said = json.loads(answers.read_text())
    return list(zip(blocks((ROOT / page).read_text()), said, strict=True))


def _run(code: str, page: str, space: dict[str, Any]) -> str:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(code, page, "exec"), space)
    return out.getvalue()


def _commands(code: str) -> list[str]:
    lines = code.replace("\\\n", " ").splitlines()
    return [line for line in lines if line.startswith("pageseek ")]


def _command(line: str, folder: Path) -> str:
    command = [sys.executable, "-m", *shlex.split(line, comments=True)]
    run = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if run.returncode:
        raise AssertionError(f"{line}\nexit code {run.returncode}\n{run.stdout}{run.stderr}")
    return run.stdout


BYTES = re.compile(r"(\d[\d,.]*) (B|kB|MB|GB)\b")
UNITS = {"B": 1.0, "kB": 1e3, "MB": 1e6, "GB": 1e9}
LOOSE = (
    (re.compile(r"^ *(requests|time) .*$", re.MULTILINE), r"\1"),  # how quick a machine is decides
    (re.compile(r"[#.]{10,}"), "BAR"),
    (re.compile(r"part-\d+-[\w.-]+\.parquet"), "FILE"),  # the name has the time, and a random part
    (re.compile(r"\d[\d,.]* (ms|us|s)\b"), "TIME"),
    (re.compile(r"\d+\.\d+\.\d+"), "VERSION"),
    (re.compile(r"[ -]{2,}"), "  "),  # the widths of columns follow those of numbers
    (re.compile(r" +$", re.MULTILINE), ""),
)


def difference(shown: str, said: str) -> str:
    """What a page shows and what its example prints, where they differ; "" if they tell the same.

    Times, versions and requests are left out, and sizes may differ by a sixth and 1 kB, since libraries compress in
    different ways.
    """
    texts, sizes = [], []
    for text in (shown, said):
        sizes.append([float(n.replace(",", "")) * UNITS[unit] for n, unit in BYTES.findall(text)])
        text = BYTES.sub("SIZE", text)
        for pattern, plain in LOOSE:
            text = pattern.sub(plain, text)
        texts.append(text.strip().splitlines())
    for ours, theirs in zip(*texts, strict=False):
        if ours != theirs:
            return f"shown:   {ours}\nprinted: {theirs}"
    if len(texts[0]) != len(texts[1]):
        return f"{len(texts[0])} lines are shown, {len(texts[1])} printed"
    for one, other in zip(*sizes, strict=True):
        if abs(one - other) > max(one, other) / 6 + 1_000:
            return f"shown: {one:,.0f} bytes, printed: {other:,.0f} bytes"
    return ""


def wrong_outputs(page: str, answers: Iterable[tuple[Block, str]]) -> str:
    """Where a page shows something else than its examples print; "" if nowhere."""
    text, wrong = (ROOT / page).read_text(), []
    for block, said in answers:
        if block.output:
            first, stop = block.output
            if found := difference(text[first:stop], said):
                wrong.append(f"{page}, line {block.line}: {found}")
    remedy = "python tools/outputs.py writes what the examples print"
    return "\n".join([*wrong, remedy]) if wrong else ""


def main(page: str, url: str, answers: str) -> None:
    """Run a page with its blocks for Spark, and write what the blocks print."""
    made = [said for _, said in printed(page, Path.cwd(), url, spark=True)]
    Path(answers).write_text(json.dumps(made))


if __name__ == "__main__":
    main(*sys.argv[1:])
