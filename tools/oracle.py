"""Compare answers with two other engines over a sample of the conformance corpus.

The corpus lives beside a checkout, in ../shared/conformance; without it the stage is skipped.
ORACLE_FILES (100) files are taken, spread evenly over the valid ones; ORACLE_SEED seeds the
random predicates.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

from steps import PYTHON, ROOT

CONFORMANCE = ROOT.parent / "shared" / "conformance"
SAMPLE = ROOT / "build" / "oracle"


def main() -> int:
    """Link the sample into one folder and run the oracle on it."""
    if not (CONFORMANCE / "oracle.py").is_file():
        print("skipped: no conformance corpus beside this checkout")
        return 0
    files = sorted((CONFORMANCE / "corpus" / "valid").rglob("*.parquet"))
    wanted = min(int(os.environ.get("ORACLE_FILES", "100")), len(files))
    shutil.rmtree(SAMPLE, ignore_errors=True)
    SAMPLE.mkdir(parents=True)
    for number in range(wanted):
        path = files[number * len(files) // wanted]
        (SAMPLE / f"{number:04}-{path.name}").symlink_to(path)
    command = [PYTHON, "oracle.py", str(SAMPLE), "--reader", "reader_pageseek:read"]
    command += ["--n", "4", "--max-rows", "50000", "--file-seconds", "5"]
    command += ["--seed", os.environ.get("ORACLE_SEED", "1")]
    environment = os.environ | {"PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(command, cwd=CONFORMANCE, env=environment).returncode


if __name__ == "__main__":
    sys.exit(main())
