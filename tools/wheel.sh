#!/usr/bin/env bash
# sdist -> wheel out of the sdist -> audits -> a clean environment, where the wheel must work.
# Runs with the tools of the environment whose Python is $PYTHON.
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}
out=build/wheel
rm -rf "$out"
mkdir -p "$out"

export PAGESEEK_WERROR=1 # a warning in the C core stops the build here, not at a user's
"$python" -m build --quiet --outdir "$out" .
wheel=$(echo "$out"/*.whl)
"$python" -m zipfile --list "$wheel"
PAGESEEK_ARCHIVES=$out "$python" -m pytest -q -m slow tests/test_house.py
"$python" -m twine check --strict "$out"/*
"$python" -m abi3audit --strict --report "$wheel" > "$out/abi3audit.json"
echo "abi3audit --strict: no symbol outside the limited API"
if [[ $(uname) == Linux ]]; then "$python" -m auditwheel show "$wheel"; fi

"$python" -m venv "$out/clean"
"$out/clean/bin/python" -m pip install -qq --disable-pip-version-check "$wheel"
cd "$out" # away from the sources
clean/bin/python ../../tools/smoke.py
