#!/usr/bin/env bash
# The wheel in an environment with the oldest versions that pyproject.toml allows: it must work, and pass tests of all rooms.
# Runs with the environment whose Python is $PYTHON; takes the wheel of tools/wheel.sh, or builds one.
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}
out=build/oldest
rm -rf "$out"
mkdir -p "$out"

if ! ls build/wheel/*.whl > /dev/null 2>&1; then
    "$python" -m build --quiet --wheel --outdir build/wheel .
fi
oldest=$("$python" - <<'PY'
import tomllib

with open("pyproject.toml", "rb") as file:
    needed = tomllib.load(file)["project"]["dependencies"]
print(" ".join(one.replace(">=", "==") for one in needed))
PY
)
echo "with $oldest"
"$python" -m venv "$out/venv"
# shellcheck disable=SC2086  # several packages
"$out/venv/bin/python" -m pip install -qq --disable-pip-version-check build/wheel/*.whl $oldest \
    "pandas>=2.2,<2.3" pytest pytest-timeout hypothesis
(cd "$out" && venv/bin/python ../../tools/smoke.py)
# tests that write their files without what later versions of pyarrow brought
"$out/venv/bin/python" -m pytest -q -p no:cacheprovider \
    tests/core/test_compare.py tests/core/test_decode.py tests/core/test_encodings.py \
    tests/predicate/test_sql.py tests/predicate/test_like.py tests/predicate/test_residuals.py \
    tests/prune/test_pruners.py tests/datasets/test_partitions.py tests/datasets/test_evolution.py
