# `make` lists the targets. Needs Python 3.11+, a C compiler and make; the rest is installed
# into $(VENV), or reported with its remedy.
PYTHON ?= python3
VENV ?= .venv
EXTRAS ?= dev,spark,bench,docs
STAGES ?=
export FUZZ_SECONDS ?= 30

BIN := $(VENV)/bin
RUN := PYTHON=$(abspath $(BIN)/python)
PIP := $(BIN)/python -m pip --disable-pip-version-check -qq
.DEFAULT_GOAL := help
.PHONY: help need venv jar install build demo check test test-all lint format ctest arm64 fuzz wheel oracle bench-quick site clean

help: ## this list
	@grep -E '^[a-z-]+:.*## ' $(firstword $(MAKEFILE_LIST)) | sed 's/:.*## /\t/' | expand -t 14

need: ## check the requirements outside of Python; install them if possible
	@PYTHON=$(PYTHON) bash tools/need.sh cc venv clang java jdk

venv: $(VENV)/.dev ## the development environment, the package in it as editable

$(BIN)/python:
	@PYTHON=$(PYTHON) bash tools/need.sh cc venv
	$(PYTHON) -m venv $(VENV)
	$(PIP) install --upgrade pip "setuptools>=77" "cython>=3.1"

$(VENV)/.dev: pyproject.toml | $(BIN)/python
	@echo "installing into $(VENV), with what the tests need: a few minutes"
	$(PIP) install --no-build-isolation --editable ".[$(EXTRAS)]"
	@touch $@

install: | $(BIN)/python ## build the package and install it into $(VENV), as a user would
	@if [ -e $(VENV)/.dev ]; then $(MAKE) --no-print-directory build; \
	else echo "installing into $(VENV): a minute or two, Spark and pyarrow are large" && $(PIP) install ".[spark]"; fi

build: $(VENV)/.dev ## compile what changed, in place
	$(BIN)/python setup.py --quiet build_clib build_ext --inplace

demo: install ## install, then look rows up in a file made for it, locally and in Spark
	@bash tools/need.sh java || echo "demo: goes on without Spark"
	$(BIN)/python -m pageseek.bench.demo

test: build ## install, then run every test; STAGES="lint unit" runs only those
	@$(RUN) $(BIN)/python tools/check.py $(STAGES)

test-all: build ## every test in Python, also the slow ones, with all random examples: an hour or two
	PAGESEEK_TESTS=full $(BIN)/python -m pytest -q -n 2 --dist worksteal -m "not spark and not cluster" tests
	PAGESEEK_TESTS=full $(BIN)/python -m pytest -q -n 2 --dist loadfile -m "spark or cluster" tests/spark

check: build ## about a minute: static checks, and the tests of the changed folders
	@$(RUN) $(BIN)/python tools/quick.py

lint: build ## every static check
	@$(BIN)/python tools/lint.py

format: $(VENV)/.dev ## rewrite Python and C as the formatters want them
	$(BIN)/ruff check --fix --exit-zero --quiet .
	$(BIN)/ruff format .
	$(BIN)/clang-format -i $(wildcard _core/*.h _core/c/*.[ch] _core/tests/*.[ch])

ctest: ## C tests under sanitizers
	@bash tools/ctest.sh

arm64: ## C tests for 64-bit ARM, under qemu: minutes
	@bash tools/arm64.sh

fuzz: ## FUZZ_SECONDS of libFuzzer for each target
	@bash tools/fuzz.sh

wheel: $(VENV)/.dev ## sdist, wheel from it, audits, smoke test in a clean environment
	@$(RUN) bash tools/wheel.sh

jar: $(VENV)/.dev ## compile the Java table for Spark into the jar that is committed
	@bash tools/need.sh jdk
	@$(BIN)/python tools/jar.py

oracle: build ## answers against two other engines, on a sample of the conformance corpus
	@$(BIN)/python proofs/oracle.py

bench-quick: build ## the benchmark cases, small
	$(BIN)/pageseek-bench --quick

site: build ## the documentation as a site, in build/site
	@$(BIN)/python tools/build_site.py

clean: ## remove what was built; the environment stays
	rm -rf build dist *.egg-info _core/*.so _core/*.pyd
	find . -name __pycache__ -not -path './.venv*' -prune -exec rm -rf {} +
