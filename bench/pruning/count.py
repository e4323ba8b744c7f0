"""What an engine reads, counted from outside: it runs in a child process, whose system calls strace writes down.

Between questions the child asks for the status of a file that does not exist; its name tells which comes next.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
from pageseek.bench.pruning.engines import ENGINES
from pageseek.bench.pruning.pages import PageMap, merged
from pageseek.bench.pruning.queries import QUERIES

__all__ = ["Reads", "child", "watch"]

MARK = "/pageseek-pruning/"
_CALLS = "pread64,preadv,preadv2,read,readv,lseek,newfstatat,stat,statx,mmap"


@dataclass(slots=True)
class Reads:
    """One answer: what was read for it, and what it was. `mapped`: the file was mapped as well, so that reads go
    unseen; polars does so for the footer alone, which is therefore counted as one read.
    """

    ranges: list[tuple[int, int]] = field(default_factory=list)
    mapped: bool = False
    rows: int = -1
    check: int = 0
    error: str = ""

    @property
    def bytes(self) -> int:
        """Requested bytes; bytes that are requested twice count twice."""
        return sum(length for _, length in self.ranges)

    def pages(self, pages: PageMap) -> tuple[int, int, int]:
        """(row groups, data and dictionary pages, rows) that were read."""
        hit = pages.required_leaves(self.ranges)
        groups = len(set(pages.row_group[hit].tolist()))
        rows = 0
        data = hit & (pages.first_row >= 0)
        for group in set(pages.row_group[data].tolist()):
            mine = data & (pages.row_group == group)
            spans = zip(pages.first_row[mine].tolist(), pages.rows[mine].tolist(), strict=True)
            rows += sum(stop - start for start, stop in merged(list(spans)))
        return groups, int(hit.sum()), rows


def watch(engine: str, files: dict[str, Path]) -> dict[tuple[str, str], Reads]:
    """Ask an engine every question of every file, under strace: (layout, question) -> what it read.

    Raises
    ------
    RuntimeError
        strace is not there, or may not trace.
    """
    beside = next(iter(files.values())).parent  # hard links need the same file system
    with tempfile.TemporaryDirectory(dir=beside) as folder:
        log, answers = Path(folder) / "calls", Path(folder) / "answers"
        named = [f"{name}={_links(path, Path(folder) / name)}" for name, path in files.items()]
        command = ["strace", "-f", "--seccomp-bpf", "-y", "-s", "0", "-e", f"trace={_CALLS}",
                   "-o", str(log), sys.executable, "-m", "pageseek.bench.pruning.count",
                   engine, str(answers), *named]  # fmt: skip
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        except FileNotFoundError as error:
            raise RuntimeError("strace is not installed: apt-get install strace") from error
        if done.returncode:
            raise RuntimeError(f"{engine} under strace: {done.stderr.strip()[-2000:]}")
        found = _parse(log, Path(folder))
        for (layout, _), reads in found.items():
            if reads.mapped:
                reads.ranges.append(_footer(files[layout]))
        for line in answers.read_text().splitlines():
            layout, name, rows, check, failed = line.split("\t")
            reads = found[layout, name]
            reads.rows, reads.check, reads.error = int(rows), int(check), failed
    return found


_LINE = re.compile(r"^\d+\s+(\w+)\((.*)\)\s+= (-?\d+)(?:<[^>]*>)?(?: .*)?$")
_FD = re.compile(r"^(\d+)<([^>]*)>(?:\(deleted\))?(?:, )?(.*)$")
_UNFINISHED = re.compile(r"^(\d+)\s+(\w+\(.*) <unfinished \.\.\.>$")
_RESUMED = re.compile(r"^(\d+)\s+<\.\.\. \w+ resumed>(.*)$")


def _footer(path: Path) -> tuple[int, int]:
    with path.open("rb") as file:
        file.seek(-8, os.SEEK_END)
        length = int.from_bytes(file.read(4), "little") + 8
    return path.stat().st_size - length, length


def _links(path: Path, folder: Path) -> Path:
    """A folder with a link to the file for each question, so that the caches of an engine help with no other question."""
    folder.mkdir()
    for query in QUERIES:
        (folder / f"{query.name}.parquet").hardlink_to(path)
    return folder


def _parse(log: Path, folder: Path) -> dict[tuple[str, str], Reads]:
    known = {str(path) for path in folder.resolve().glob("*/*.parquet")}
    found: dict[tuple[str, str], Reads] = {}
    here: Reads | None = None
    place: dict[int, int] = {}  # of a descriptor
    begun: dict[str, str] = {}
    with log.open(errors="replace") as lines:
        for raw in lines:
            line = raw.rstrip("\n")
            if cut := _UNFINISHED.match(line):
                begun[cut[1]] = cut[2]
                continue
            if rest := _RESUMED.match(line):
                line = f"{rest[1]} {begun.pop(rest[1], '')}{rest[2]}"
            if MARK in line:
                name = line.split(MARK, 1)[1].split('"', 1)[0]
                layout, _, query = name.partition("/")
                here = found.setdefault((layout, query), Reads()) if query else None
                continue
            if " mmap(" in line:
                if here is not None and any(f"<{path}>" in line for path in known):
                    here.mapped = True
                continue
            call = _LINE.match(line)
            if call is None:
                continue
            name, inside, answer = call[1], call[2], int(call[3])
            fd = _FD.match(inside)
            if fd is None or fd[2] not in known or answer < 0:
                continue
            number = int(fd[1])
            if name == "lseek":
                place[number] = answer
            elif name in ("pread64", "preadv", "preadv2"):
                at = int(fd[3].rstrip().split(", ")[-1 if name != "preadv2" else -2])
                if here is not None:
                    here.ranges.append((at, answer))
            elif name in ("read", "readv"):
                at = place.get(number, 0)
                place[number] = at + answer
                if here is not None:
                    here.ranges.append((at, answer))
    return found


def child(engine: str, answers: Path, files: dict[str, str]) -> None:
    """Answer all questions, marking each."""
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    ask = ENGINES[engine]
    lines = []
    for layout, path in files.items():
        for query in QUERIES:
            os.path.exists(f"{MARK}{layout}/{query.name}")
            rows, check, error = -1, 0, ""
            try:
                made = ask(f"{path}/{query.name}.parquet", query)
                rows = made.num_rows
                check = sum(made["id"].to_pylist()) if rows else 0
                del made
            except Exception as failure:  # noqa: BLE001 (an engine that cannot answer is shown as such)
                error = f"{type(failure).__name__}: {failure}".replace("\t", " ").replace("\n", " ")
            os.path.exists(f"{MARK}none")
            lines.append(f"{layout}\t{query.name}\t{rows}\t{check}\t{error[:200]}")
    answers.write_text("\n".join(lines))


if __name__ == "__main__":
    child(sys.argv[1], Path(sys.argv[2]), dict(part.split("=", 1) for part in sys.argv[3:]))
