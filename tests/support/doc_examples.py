"""The examples in Python of the README and of docs."""

from __future__ import annotations

import re
from pathlib import Path

TESTED_ELSEWHERE = {
    "pages.md",
    "pruners.md",
}  # by format/test_parquet_file.py and prune/test_pruners.py


def examples(spark: bool) -> dict[str, str]:
    """By page its examples as one program: those for Spark, or the others."""
    root = Path(__file__).resolve().parents[2]
    found = {}
    for path in [root / "README.md", *sorted((root / "docs").glob("*.md"))]:
        blocks = re.findall(r"```python\n(.*?)```", path.read_text(), re.DOTALL)
        chosen = [block for block in blocks if ("pageseek.spark" in block) == spark]
        if chosen and path.name not in TESTED_ELSEWHERE:
            found[path.name] = "\n".join(chosen)
    return found
