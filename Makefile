# Needs only Python 3.11+ and make; everything else goes into .venv
PYTHON ?= $(shell for p in python3.14 python3.13 python3.12 python3.11 python3 python; do \
	command -v $$p >/dev/null 2>&1 && $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	&& echo $$p && break; done)
VENV := .venv
BIN := $(VENV)/bin
SOURCES := pyproject.toml setup.py requirements-dev.txt constraints.txt $(wildcard src/maskwright/kernels/*.c src/maskwright/kernels/*.h)

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-long test-minimum dist-test lock sbom check bench bench-large docs site experiments experiments-quick clean

help:  ## what there is
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | awk -F'\t' '{printf "  make %-18s %s\n", $$1, $$2}'

setup: $(VENV)/dev  ## everything for development, in .venv

demo: $(VENV)/run  ## the main job on the bundled Adult table
	@$(BIN)/maskwright demo

# Tests start many processes: the sources are compiled once, also where Python is told not to keep what it compiled
test test-long: export PYTHONDONTWRITEBYTECODE =

# Where the tests are that nothing may run beside: collecting all the others takes longer than running these
ALONE = $(shell grep -rl --include=test_*.py 'mark\.alone' tests)

test: $(VENV)/dev  ## some of every kind of test (docs/testing.md)
	$(BIN)/python -m pytest -n auto --costs -m "not alone and not long"
	$(BIN)/python -m pytest --costs -m "alone and not long" $(ALONE)

# A tenth of the repetitions of one part: make test-long LONG=0.1 TESTS=tests/faults
LONG = 1
test-long: $(VENV)/dev  ## all tests, with hundreds of thousands of random cases and faults (hours)
	MASKWRIGHT_TEST_LONG=$(LONG) $(BIN)/python -m pytest -n auto --costs -m "not alone" $(TESTS)
	$(if $(TESTS),,MASKWRIGHT_TEST_LONG=$(LONG) $(BIN)/python -m pytest --costs -m alone $(ALONE))

test-minimum: $(VENV)/dev  ## the least versions of pyproject.toml, installed into build/minimum and tested
	$(BIN)/python -m supply.minimum

dist-test: $(VENV)/made  ## build sdist and wheel, and install them where there is no compiler
	$(BIN)/python -m supply.distribution

lock: $(VENV)/dev  ## lock the versions for development anew (requirements-dev.txt)
	$(BIN)/python -m supply.lock --upgrade

sbom: $(VENV)/dev  ## a software bill of materials (CycloneDX), into build/sbom.json
	$(BIN)/python -m supply.parts build/sbom.json

check: $(VENV)/dev  ## style, types, direction of imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(VENV)/dev  ## speed against peers and against the physical limit
	@missed=0; for script in benchmarks/bench_*.py "benchmarks/bench_scale.py --rows 10000000 --pass-through" \
		"benchmarks/bench_scale.py --rows 1000000 --format csv"; do \
		echo "== $$script"; $(BIN)/python $$script || missed=1; done; exit $$missed

bench-large: $(VENV)/dev  ## a hundred million rows, with and without columns that pass through (two hours, 15 GB of disk)
	@$(BIN)/python benchmarks/bench_scale.py --rows 1000000 10000000 100000000
	@$(BIN)/python benchmarks/bench_scale.py --rows 100000000 --pass-through
	@$(BIN)/python benchmarks/bench_scale.py --rows 1000000 10000000 100000000 --few

docs: $(VENV)/dev  ## rebuild the generated pages of docs/
	$(BIN)/python docs/build.py
	$(BIN)/python docs/attack_pictures.py
	$(BIN)/python -m supply.parts

site: $(VENV)/dev  ## the documentation as a site with search, into build/site/ (every link is checked)
	$(BIN)/python -m supply.site

experiments: $(VENV)/dev  ## the figures of the five papers, into docs/papers/ (half an hour)
	$(BIN)/python -m experiments.run

experiments-quick: $(VENV)/dev  ## the same with fewer repetitions, into build/papers/ (three minutes)
	$(BIN)/python -m experiments.run --quick --out build/papers

clean:  ## remove what was built
	rm -rf $(VENV) build dist src/*.egg-info maskwright-demo

# pip is part of a fresh environment; uv is used where it is installed, because it is faster
$(VENV)/made:
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed; say where it is: make PYTHON=/path/to/python3"; exit 1; }
	@if command -v uv >/dev/null 2>&1; then uv venv -q --seed --python $(PYTHON) $(VENV); else $(PYTHON) -m venv $(VENV); fi
	@touch $@

$(VENV)/run: $(VENV)/made $(SOURCES)
	@echo "installing into $(VENV) (once) ..."
	@if command -v uv >/dev/null 2>&1; then uv pip install -q --python $(BIN)/python -c constraints.txt -e .; \
	else $(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -e .; fi
	@touch $@

$(VENV)/dev: $(VENV)/made $(SOURCES)
	@echo "installing into $(VENV) (once) ..."
	@if command -v uv >/dev/null 2>&1; then uv pip install -q --python $(BIN)/python --require-hashes -r requirements-dev.txt && \
	uv pip install -q --python $(BIN)/python --no-deps -e .; \
	else $(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements-dev.txt && \
	$(BIN)/python -m pip install -q --disable-pip-version-check --no-deps -e .; fi
	@touch $(VENV)/run $@
