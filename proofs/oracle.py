"""Compare answers with two other engines over a sample of the conformance corpus.

The corpus lives beside a checkout, in ../shared/conformance; without it the stage is skipped.
ORACLE_FILES (100) files are taken, spread evenly over the valid ones, ORACLE_FOLDER (corpus/valid) names
another folder; ORACLE_CASES (4) conditions are asked of each column and ORACLE_SEED seeds them.

Errors are allowed for the files in refusals.tsv alone, with the text and the reason given there.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PYTHON = sys.executable
CONFORMANCE = ROOT.parent / "shared" / "conformance"
REFUSALS = Path(__file__).with_name("refusals.tsv")  # file, text of the error, reason
SAMPLE = ROOT / "build" / "oracle"


def main() -> int:
    """Link the sample into one folder and run the oracle on it."""
    if not (CONFORMANCE / "oracle.py").is_file():
        print("skipped: no conformance corpus beside this checkout")
        return 0
    folder = CONFORMANCE / os.environ.get("ORACLE_FOLDER", "corpus/valid")
    files = sorted(folder.rglob("*.parquet"))
    wanted = min(int(os.environ.get("ORACLE_FILES", "100")), len(files))
    shutil.rmtree(SAMPLE, ignore_errors=True)
    SAMPLE.mkdir(parents=True)
    for number in range(wanted):
        path = files[number * len(files) // wanted]
        (SAMPLE / f"{number:04}-{path.name}").symlink_to(path)
    command = [PYTHON, "oracle.py", str(SAMPLE), "--reader", "reader_pageseek:read"]
    command += ["--n", os.environ.get("ORACLE_CASES", "4")]
    command += ["--max-rows", "50000", "--file-seconds", "5"]
    command += ["--seed", os.environ.get("ORACLE_SEED", "1")]
    results = SAMPLE.with_suffix(".jsonl")
    command += ["--out", str(results)]
    environment = os.environ | {"PYTHONDONTWRITEBYTECODE": "1"}
    subprocess.run(command, cwd=CONFORMANCE, env=environment, check=False)
    return verdict([json.loads(line) for line in results.read_text().splitlines()])


def refusals() -> dict[str, str]:
    """The allowed errors of files, by name."""
    lines = REFUSALS.read_text().splitlines()
    entries = [line.split("\t") for line in lines if line and not line.startswith("#")]
    return {name: text for name, text, _reason in entries}


def verdict(cases: list[dict[str, str]]) -> int:
    """Count violations: a wrong answer, a crash, a hang, or an error that is not on the list."""
    bad = [case for case in cases if case["kind"] in ("WRONG", "CRASH", "HANG", "harness-error")]
    errors = [case for case in cases if case["kind"] == "reader-error"]
    allowed = refusals()
    for case in errors:
        text = allowed.get(case["file"].partition("-")[2])  # behind the number in the sample
        if text is None or text not in case["err"]:
            bad.append(case)
    passed = sum(case["kind"] == "pass" for case in cases)
    print(f"oracle: {passed} right, {len(errors)} errors, {len(bad)} bad")
    for case in bad[:20]:
        print(" ", case.get("file"), case["kind"], case.get("why") or case.get("err"))
    return 1 if bad or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
