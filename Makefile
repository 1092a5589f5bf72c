# Every command a person or CI runs. The first two need nothing but Python 3.11 or newer; they set up .venv themselves.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
BENCH_STAMP := $(VENV)/.bench_installed
ENGINE_SOURCES := cvm/instructions.toml $(shell find cvm/engine -name '*.cpp' -o -name '*.h' -o -name '*.py' -o -name CMakeLists.txt)
TOOLS_STAMP := $(VENV)/.tools_installed
SANITIZED := build/sanitize
NO_ENGINE := the engine was not built, everything runs on the reference; CVM_REQUIRE_ENGINE=1 make setup shows why

.PHONY: demo test setup check lint types format slow conformance fuzz bench sanitize wheels clean

demo: setup  ## convert a real MXNet checkpoint, measure it, prove it, run it and replay it
	$(BIN)/python -m benchmarks.demo

test: setup  ## the fast tests
	$(BIN)/pytest -q

setup: $(STAMP)

$(STAMP): pyproject.toml $(ENGINE_SOURCES)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@$(BIN)/python -c 'import cvm._engine' 2>/dev/null || echo 'setup: $(NO_ENGINE)' >&2
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

sanitize: setup $(TOOLS_STAMP)  ## the engine's tests on a build that finds reads and writes out of bounds and undefined behaviour
	PATH="$(CURDIR)/$(BIN):$$PATH" cmake -S cvm/engine -B $(SANITIZED) -G Ninja -DCMAKE_CXX_COMPILER=g++ -DCMAKE_BUILD_TYPE=Release \
	  -DCVM_SANITIZE=ON -DPython_EXECUTABLE="$(CURDIR)/$(BIN)/python"
	PATH="$(CURDIR)/$(BIN):$$PATH" cmake --build $(SANITIZED)
	LD_PRELOAD="$$(g++ -print-file-name=libasan.so) $$(g++ -print-file-name=libstdc++.so)" ASAN_OPTIONS=detect_leaks=0 \
	  CVM_ENGINE=$$(ls $(SANITIZED)/_engine*.so) $(BIN)/pytest -q tests/cvm/engine

$(TOOLS_STAMP): $(STAMP)
	$(BIN)/pip install --quiet --disable-pip-version-check cmake nanobind ninja
	touch $(TOOLS_STAMP)

wheels: setup  ## dist/: a wheel for this platform that needs no compiler, and the sources
	CVM_REQUIRE_ENGINE=1 $(BIN)/python -m build --outdir dist .

clean:
	rm -rf $(VENV) demo build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
