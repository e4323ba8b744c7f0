"""Are the examples of dask and ray in docs/engines.md right?

    python proofs/clusters.py          both
    python proofs/clusters.py ray      one of them

It needs dask with its DataFrame, and ray (`pip install "dask[dataframe]" ray`). The fence of the page is run as it stands,
over files that are written here; its rows must be those of pyarrow. The result goes into docs/proofs.md, dated.
"""

from __future__ import annotations

import importlib
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import pageseek as ps
from results import Failed, run

DOCS = Path(__file__).resolve().parent.parent / "docs"
PAGE, TITLE = DOCS / "proofs.md", "\n## dask and ray\n"
HEAD = """{before}
## dask and ray

Results of `python proofs/clusters.py`: the examples of [engines.md](engines.md#files-and-parts-elsewhere) are run, in processes that dask
or ray starts. Their rows must be those of pyarrow.

| proof | date | what was run | found |
|---|---|---|---|
"""
ROWS, FILES, PARTS = 200_000, 4, 8
CONDITION = pc.field("v") == 42


def fences(library: str) -> Iterator[str]:
    """The blocks of the page that name a library."""
    text = (DOCS / "engines.md").read_text()
    for block in re.findall(r"```py\n(.*?)```", text, re.DOTALL):
        if re.search(rf"\b{library}\.", block):
            yield block


def lines_for(block: str, library: str) -> str:
    """The lines of a block without those of the other library."""
    other = {"dask": "ray", "ray": "dask"}[library]
    return "\n".join(line for line in block.splitlines() if not line.startswith(f"{other}."))


@contextmanager
def files() -> Iterator[Path]:
    """A folder of files whose filter leaves few rows of each row group."""
    with tempfile.TemporaryDirectory() as root:
        for i in range(FILES):
            first = i * ROWS
            table = pa.table(
                {"k": range(first, first + ROWS), "v": [k * 7 % 1000 for k in range(ROWS)]}
            )
            path = Path(root) / f"{i}.parquet"
            pq.write_table(table, path, row_group_size=50_000, write_page_index=True)
        yield Path(root)


def proof(library: str, found: Any) -> tuple[str, str]:
    """What the fences of a library gave, compared with pyarrow's rows."""
    blocks = [lines_for(block, library) for block in fences(library)]
    if not blocks:
        raise Failed(f"docs/engines.md has no example of {library}")
    with files() as root:
        parts = ps.scan(root).filter("v = 42").plan().split(PARTS)
        names: dict[str, Any] = {
            "pa": pa,
            "parts": parts,
            library: importlib.import_module(library),
        }
        wanted = pq.read_table(root, filters=CONDITION).to_pandas()
        processes = set()
        for block in blocks:
            *before, last = block.rstrip().splitlines()
            exec(compile("\n".join(before), "engines.md", "exec"), names)
            inner = names["frame"]
            names["frame"] = lambda part, inner=inner: inner(part).assign(process=os.getpid())
            made = found(eval(compile(last, "engines.md", "eval"), names))
            processes |= set(made.pop("process"))
            made = made.sort_values("k", ignore_index=True)
            if not made.equals(wanted):
                raise Failed(f"{len(made)} rows, and pyarrow has {len(wanted)}: {block}")
        if os.getpid() in processes:
            raise Failed("a part was read in this process")
    version = names[library].__version__
    return (
        f"{library} {version}, {len(parts)} parts of {FILES} files, {len(processes)} processes",
        f"{len(wanted):,} rows, as pyarrow's",
    )


def by_dask() -> tuple[str, str]:
    """`dask.dataframe.from_map`, in processes."""
    dask = importlib.import_module("dask")
    importlib.import_module("dask.dataframe")
    with dask.config.set(scheduler="processes"):
        return proof("dask", lambda frame: frame.compute())


def by_ray() -> tuple[str, str]:
    """Remote functions of ray."""
    ray = importlib.import_module("ray")
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    try:
        return proof("ray", pd.concat)
    finally:
        ray.shutdown()


def main(chosen: list[str]) -> int:
    """The command."""
    proofs = {"dask": by_dask, "ray": by_ray}
    return run(
        proofs, chosen, PAGE, TITLE, lambda before: HEAD.format(before=before.rstrip() + "\n")
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
