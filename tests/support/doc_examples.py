"""The examples of the README and of docs: blocks of Python and commands, and the outputs that pages show behind them."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
TESTED_ELSEWHERE = {
    "docs/pages.md",
    "docs/pruners.md",
}  # by format/test_parquet_file.py and prune/test_pruners.py
# Run as they stand, in an empty folder; what they print is compared with what they show.
COMPLETE = (
    "README.md",
    "docs/index.md",
    "docs/quickstart.md",
    "docs/example-files.md",
    "docs/filters.md",
    "docs/reading-explain.md",
    "docs/choosing-an-index.md",
    "docs/comparison.md",
    "docs/writing-files.md",
    "docs/howto-service.md",
    "docs/howto-notebook.md",
    "docs/troubleshooting.md",
    "docs/notebooks/why-so-much.md",
    "docs/notebooks/index-for-a-lake.md",
)
# What a page says whose examples run behind those of FILES.
USES_FILES, FILES = (
    "The examples use the [files for the examples](example-files.md).",
    "docs/example-files.md",
)
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
        return self.language == "python" and "pageseek.spark" in self.code


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


def pages() -> dict[str, Path]:
    """Every page with examples that are run here, by its name."""
    paths = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    named = {path.relative_to(ROOT).as_posix(): path for path in paths}
    return {name: path for name, path in named.items() if name not in TESTED_ELSEWHERE}


def with_files() -> list[str]:
    """The pages whose examples run behind those of FILES."""
    return [name for name, path in pages().items() if USES_FILES in path.read_text()]


def examples(spark: bool) -> dict[str, str]:
    """By page its examples as one program: those for Spark, or the others. Pages in COMPLETE and `with_files` have no others here."""
    found = {}
    for name, path in pages().items():
        made = [block for block in blocks(path.read_text()) if block.language == "python"]
        chosen = [block.code for block in made if block.is_for_spark == spark]
        if chosen and (spark or name not in (*COMPLETE, *with_files())):
            found[name] = "\n".join(chosen)
    return found


def assumed(page: str) -> list[str]:
    """The names that a page says its examples assume."""
    said = re.search(r"^The examples assume (.*?)\.$", pages()[page].read_text(), re.M | re.DOTALL)
    return re.findall(r"`([a-z_]+)`", said[1]) if said else []


def printed(page: str, folder: Path, replaced: Mapping[str, str]) -> Iterator[tuple[Block, str]]:
    """Run the blocks of a page one after the other, in a folder that is the current one; yield what each prints."""
    space: dict[str, Any] = {"__name__": "__main__"}
    text = pages()[page].read_text()
    if USES_FILES in text:
        for block in blocks(pages()[FILES].read_text()):
            exec(block.code, space)
    for block in blocks(text):
        if block.is_for_spark:
            continue
        code = block.code
        for said, meant in replaced.items():
            code = code.replace(said, meant)
        if block.language == "sh":
            text = "".join(_command(line, folder) for line in _commands(code))
        else:
            out = io.StringIO()
            place = "\n" * (block.line - 1)  # a traceback names the line of the page
            with contextlib.redirect_stdout(out):
                exec(compile(place + code, page, "exec"), space)
            text = out.getvalue()
        yield block, text.replace(str(folder), HOME)


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
