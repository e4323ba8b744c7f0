"""Does an installed pageseek work? Imports the core, and reads a small file where it can."""

from __future__ import annotations

import importlib
import importlib.resources
import sys
import tempfile
from pathlib import Path


def main() -> int:
    """Return 0 when the installed package works."""
    import pageseek

    here = Path(pageseek.__file__).parent
    assert Path(sys.prefix).resolve() in here.resolve().parents, f"not the installed one: {here}"
    core = importlib.resources.files("pageseek") / "_core"
    names = sorted(
        {item.name.split(".")[0] for item in core.iterdir() if item.name.endswith((".so", ".pyd"))}
    )
    for name in names:
        importlib.import_module(f"pageseek._core.{name}")
    print(f"pageseek {pageseek.__version__}, core: {', '.join(names) or 'none'}")
    import pyarrow as pa
    import pyarrow.parquet as pq

    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "smoke.parquet")
        table = pa.table({"id": range(100_000), "name": [f"n{i}" for i in range(100_000)]})
        pq.write_table(table, path, write_page_index=True, data_page_size=4096)
        answer = pageseek.read_table(path, filter=pageseek.col("id") == 77_777)
        assert answer.to_pylist() == [{"id": 77_777, "name": "n77777"}], answer
    print("one row out of 100,000 found")
    return 0


if __name__ == "__main__":
    sys.exit(main())
