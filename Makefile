# Every command a person or CI runs. The first two need nothing but Python 3.11 or newer; they set up .venv themselves.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
BENCH_STAMP := $(VENV)/.bench_installed

.PHONY: demo test setup check lint types format slow conformance fuzz bench clean

demo: setup  ## convert a real MXNet checkpoint, measure it, prove it, run it and replay it
	$(BIN)/python -m benchmarks.demo

test: setup  ## the fast tests
	$(BIN)/pytest -q

setup: $(STAMP)

$(STAMP): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $(STAMP)

check: lint types  ## what a change must pass besides the tests

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: setup
	$(BIN)/mypy

format: setup
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

slow: setup  ## the tests that read large models or run for minutes
	$(BIN)/pytest -q -m slow

conformance: setup  ## the vectors of every instruction
	$(BIN)/pytest -q tests/conformance

fuzz: setup  ## hostile files, in full
	$(BIN)/pytest -q -m slow tests/cvm/test_fuzz.py

bench: $(BENCH_STAMP)  ## our engine against its peers, in one run; BENCH="--models resnet50_v1 --json F" chooses
	$(BIN)/python -m benchmarks.bench $(BENCH)

$(BENCH_STAMP): $(STAMP)
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[bench]'
	touch $(BENCH_STAMP)

clean:
	rm -rf $(VENV) demo build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
