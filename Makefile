# Every command a developer or a new user needs. `make help` lists them.
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
FRAMEWORKS := .venv-frameworks
TRACKERS := .venv-trackers
# The certificates of the system, as a company's own authority is often only there.
UV := $(BIN)/uv pip install --quiet --python $(BIN)/python --system-certs --require-hashes
JOBS ?= 2

.PHONY: help setup demo serve test test-frameworks test-trackers test-faults check format bench requirements clean

help:
	@echo "make demo    a registry with published Pythia and DCLM figures on 127.0.0.1:8400"
	@echo "make serve   the same, empty"
	@echo "make test    every test, on SQLite and PostgreSQL"
	@echo "make check   formatter, linter, types"
	@echo "make bench   the benchmarks, one JSON line each"

$(BIN)/uv: requirements/uv.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements/uv.txt
	@touch $@

# What running Cairn needs; our own two distributions are linked, so that an edit is live.
# Compiled now, so that no start of the service has to.
$(VENV)/.serve: $(BIN)/uv requirements/serve.txt pyproject.toml client/pyproject.toml
	$(UV) --compile-bytecode -r requirements/serve.txt
	$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation --offline -e ./client -e .
	@$(BIN)/python -m compileall -q api registry ui migrations demo client/cairn
	@touch $@

$(VENV)/.dev: $(VENV)/.serve requirements/trackers.txt requirements/dev.txt
	$(UV) -r requirements/trackers.txt
	$(UV) -r requirements/dev.txt
	@touch $@

setup: $(VENV)/.dev

demo: $(VENV)/.serve
	$(BIN)/cairn-server demo

serve: $(VENV)/.serve
	$(BIN)/cairn-server serve

test: $(VENV)/.dev
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal -m "not frameworks and not trackers and not faults"

# An environment of its own, with pip: torch is as large as all the rest together, and see requirements/frameworks.txt.
$(FRAMEWORKS)/.ready: requirements/frameworks.txt client/pyproject.toml
	$(PYTHON) -m venv $(FRAMEWORKS)
	$(FRAMEWORKS)/bin/pip install --quiet --disable-pip-version-check -r requirements/frameworks.txt
	$(FRAMEWORKS)/bin/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e ./client
	@touch $@

# Without the conftest of the other tests, which needs the service.
test-frameworks: $(FRAMEWORKS)/.ready
	$(FRAMEWORKS)/bin/python -m pytest --confcutdir=tests/frameworks -m frameworks tests/frameworks

# The full MLflow server, in an environment of its own; the tests themselves run beside the service.
$(TRACKERS)/.ready: $(BIN)/uv requirements/trackers-server.txt
	$(PYTHON) -m venv $(TRACKERS)
	$(BIN)/uv pip install --quiet --python $(TRACKERS)/bin/python --system-certs --require-hashes \
	  -r requirements/trackers-server.txt
	@touch $@

test-trackers: $(VENV)/.dev $(TRACKERS)/.ready
	$(BIN)/python -m pytest -m trackers

test-faults: $(VENV)/.dev
	$(BIN)/python -m pytest -m faults

check: $(VENV)/.dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/mypy -p cairn --python-version 3.10

format: $(VENV)/.dev
	$(BIN)/ruff check --fix --quiet .
	$(BIN)/ruff format --quiet .

bench: $(VENV)/.dev
	$(BIN)/python -m benchmarks

# New pins, with hashes and without the address of any package index.
requirements: $(BIN)/uv
	cd requirements && for name in uv serve trackers trackers-server dev; do \
	  ../$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --upgrade \
	    --no-emit-index-url --no-emit-find-links --no-header --no-annotate $$name.in -o $$name.txt || exit 1; done

clean:
	rm -rf $(VENV) $(FRAMEWORKS) $(TRACKERS) .pytest_cache .mypy_cache .ruff_cache
