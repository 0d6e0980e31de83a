# The two commands a newcomer needs, and the few a developer adds. Everything is installed into .venv.
#
#   make tour    install what the tour needs and run examples/tour.py
#   make test    install the test extra and run the whole test suite
#   make docs    build the pages of docs/ and the API reference
#   make headers compare the bindings with all headers of CUDA 12 and 13 (fetches 170 MB more)
#
# PYTHON chooses the interpreter, CUPOLA_DEVICE=auto|cpu|gpu the device, PYTEST_ARGS what else pytest is told.

SHELL := bash
.SHELLFLAGS := -o pipefail -ec

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PYTEST_ARGS ?=
SOURCES := $(shell find src bindgen meson.build pyproject.toml tools/private_files.py -type f \
	-not -name '*.pyc' 2>/dev/null)

.PHONY: tour test headers lint asan docs clean

tour: $(VENV)/.installed-all
	@$(BIN)/python examples/tour.py

test: $(VENV)/.installed-test
	@$(BIN)/python -m pytest -n 2 $(PYTEST_ARGS)

headers: $(VENV)/.installed-headers
	@$(BIN)/python -m pytest tests/bindings/test_generated.py $(PYTEST_ARGS)

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m bindgen emit --check
	$(BIN)/python -m bindgen sample build/typing/sample.py
	$(BIN)/mypy --strict build/typing/sample.py
	$(BIN)/basedpyright --pythonpath $(BIN)/python

# The bindings' tests with AddressSanitizer.
asan: $(VENV)/.installed-dev
	PATH=$(CURDIR)/$(BIN):$$PATH PYTHON=$(BIN)/python tools/asan.sh

docs: $(VENV)/.installed-docs
	$(BIN)/sphinx-build -q -W -b html docs docs/_build/html
	@echo "open docs/_build/html/index.html"

$(VENV)/bin/python:
	@sh tools/check_machine.sh $(PYTHON)
	@echo "== making $(VENV)"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade pip

INSTALL := $(BIN)/python -m pip install --disable-pip-version-check --progress-bar off
PROGRESS := sed -u -n -e 's/^Collecting/  collecting/p' -e 's/^ *Building/  building/p' -e '/^Successfully/p'

# Built once for all the extras.
$(VENV)/.installed: $(VENV)/bin/python $(SOURCES)
	@sh tools/check_machine.sh $(PYTHON)
	@echo "== building cupola and installing it into $(VENV): compiles, a few minutes"
	@$(INSTALL) --no-deps . | $(PROGRESS)
	@$(BIN)/python -c "import cupola" && touch $@

$(VENV)/.installed-%: $(VENV)/.installed
	@echo "== installing what cupola[$*] needs into $(VENV)"
	@$(INSTALL) "cupola[$*]" | $(PROGRESS)
	@touch $@

clean:
	rm -rf $(VENV) build dist docs/_build
