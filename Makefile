# The two commands a newcomer needs, and the few a developer adds. Everything is installed into .venv.
#
#   make tour    install what the tour needs and run examples/tour.py
#   make test    install the test extra and run the whole test suite
#   make dev     install for development: an edit in C, Cython or Python is there at the next import (BUILD=release|debug)
#   make test-fast  the tests of what differs from main, for at most a minute
#   make checked the tests of programs and kernels with all checks of kernels on: every finding fails its test
#   make lint    style, spelling, types, generated files
#   make warnings  build all C with -Wall -Wextra -Werror
#   make sanitize   build with AddressSanitizer and UBSan, run every test that reaches the C (SANITIZE=quick: a selection)
#   make tsan    the same with ThreadSanitizer, for what has several threads or processes
#   make nogil PYTHON=python3.14t   eight threads in the bindings and with one object, on a build of Python without the GIL
#   make coverage   which lines of Python and C the suite runs
#   make wheel   build the source distribution and the wheel, and try the wheel in an empty environment
#   make docs    build the site of docs/: pages, gallery, notebooks, API reference (GALLERY=shown: without running the gallery's programs)
#   make cutlass  CUTLASS's matrix product for compute capability 9.0 (fetches 60 MB of headers, compiles for a minute)
#   make ecosystem  programs of packages above CUDA and above the Array API standard: cuTile, Triton, numba, nvmath-python, SciPy, scikit-learn (fetches 460 MB)
#   make headers compare the bindings with all headers of CUDA 12 and 13 (fetches 170 MB more)
#
# PYTHON chooses the interpreter, CUPOLA_DEVICE=auto|cpu|gpu the device, PYTEST_ARGS what else pytest is told, INSTALL_ARGS what else the
# build is told (-Csetup-args=-Dwerror=true: warnings are errors), WHEEL a wheel that is installed instead of building, WORKERS how many
# processes run tests (2).

SHELL := bash
.SHELLFLAGS := -o pipefail -ec

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PYTEST_ARGS ?=
INSTALL_ARGS ?=
WHEEL ?=
TEST_EXTRA ?= test
WORKERS ?= 2
# Each worker begins with tests that lie together, which share what they compile, and takes some of another's when it has none left.
SPREAD = -n $(WORKERS) --dist worksteal
GALLERY ?= executed
BUILD ?= release
SANITIZE ?= whole
SOURCES := $(shell find src bindgen meson.build pyproject.toml tools/private_files.py -type f \
	-not -name '*.pyc' 2>/dev/null)

WARNINGS := build/warnings
# Modules whose stubs are kept by hand.
STUBS = $(shell find src/cupola -name '*.pyi' -not -path '*/bindings/*' | sort | sed -e 's,^src/,,' -e 's,\.pyi$$,,' -e 's,/,.,g')

.PHONY: tour test test-fast checked dev headers warnings lint sanitize tsan nogil cutlass ecosystem coverage wheel docs clean

tour: $(VENV)/.installed-all
	@$(BIN)/python examples/tour.py

test: $(VENV)/.installed-$(TEST_EXTRA)
	@$(BIN)/python -m pytest $(SPREAD) $(PYTEST_ARGS)

# Incremental: meson-python leaves a build folder behind, and importing cupola builds what has changed since.
dev: $(VENV)/bin/python
	@sh tools/check_machine.sh $(PYTHON)
	@case $(BUILD) in release|debug) ;; *) echo "BUILD is release or debug, not $(BUILD)" >&2; exit 1 ;; esac
	@echo "== installing the build tools into $(VENV)"
	@$(INSTALL) $$($(BIN)/python -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["build-system"]["requires"])') | $(PROGRESS)
	@echo "== building cupola ($(BUILD)) in build/$(BUILD): a few minutes the first time"
	@PATH=$(CURDIR)/$(BIN):$$PATH CYTHON=$(CURDIR)/$(BIN)/cython $(INSTALL) --no-build-isolation --no-deps --editable . -Cbuild-dir=build/$(BUILD) \
		-Csetup-args=-Dbuildtype=$(BUILD) -Csetup-args=-Dstrip=false | $(PROGRESS)
	@touch $(VENV)/.editable
	@$(MAKE) --no-print-directory $(VENV)/.installed-dev
	@$(BIN)/python -c 'import cupola; print("cupola is imported from", cupola.__file__)'

headers: $(VENV)/.installed-headers
	@$(BIN)/python -m pytest tests/bindings/test_generated.py tests/cpu/provider/test_libnvrtc.py -k 'real_headers or test_libnvrtc' $(PYTEST_ARGS)

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	git ls-files '*.c' '*.h' '*.cpp' ':!*/pocketfft/*' | xargs $(BIN)/clang-format --dry-run --Werror
	$(BIN)/codespell
	$(BIN)/mypy
	$(BIN)/python -m mypy.stubtest --mypy-config-file pyproject.toml --concise --ignore-disjoint-bases \
		--allowlist tools/stubtest.txt $(STUBS)
	$(BIN)/python -m bindgen emit --check
	$(BIN)/python -m bindgen sample build/typing/sample.py
	$(BIN)/mypy --strict build/typing/sample.py
	$(BIN)/basedpyright --pythonpath $(BIN)/python

# All C, that which Cython makes included. The build folder stays: the next time only what has changed is compiled.
warnings: $(VENV)/.installed-dev
	@export PATH=$(CURDIR)/$(BIN):$$PATH CYTHON=$(CURDIR)/$(BIN)/cython; \
	if [ ! -f $(WARNINGS)/build.ninja ]; then meson setup $(WARNINGS) -Dbuildtype=release -Dwerror=true >/dev/null; fi; \
	ninja --quiet -C $(WARNINGS)

sanitize: $(VENV)/.installed-dev
	PYTHON=$(CURDIR)/$(BIN)/python tools/sanitize.sh address $(SANITIZE) $(PYTEST_ARGS)

tsan: $(VENV)/.installed-dev
	PYTHON=$(CURDIR)/$(BIN)/python tools/sanitize.sh thread $(SANITIZE) $(PYTEST_ARGS)

nogil:
	@$(MAKE) --no-print-directory VENV=build/nogil build/nogil/.installed-test
	@build/nogil/bin/python -c 'import sysconfig; assert sysconfig.get_config_var("Py_GIL_DISABLED"), "this Python has a GIL: make nogil PYTHON=python3.14t"'
	build/nogil/bin/python -m pytest tests/bindings/test_threads.py tests/stress $(PYTEST_ARGS)

# Headers of the version that CUTLASS was written for, beside those that the other tests use.
cutlass: $(VENV)/.installed-test
	@[ -d build/cutlass ] || $(INSTALL) --quiet --no-deps --target build/cutlass "nvidia-cutlass==4.2.*" \
		"nvidia-cuda-cccl==13.0.*" "nvidia-cuda-runtime==13.0.*" "nvidia-cuda-crt==13.0.*"
	@$(BIN)/python -m pytest tests/cpu/programs/test_cutlass.py $(PYTEST_ARGS)

ecosystem: $(VENV)/.installed-ecosystem
	@$(BIN)/python -m pytest $(SPREAD) tests/ecosystem tests/standins/test_cupyx_scipy.py $(PYTEST_ARGS)

test-fast: $(VENV)/.installed-test
	@$(BIN)/python tools/changed_tests.py $(PYTEST_ARGS)

# Tests about the checks themselves, and those of the driver, whose operations wait for each other, are left out. CI runs tests/cpu/programs.
CHECKED ?= tests/core tests/graph tests/bindings tests/numpy tests/ptx tests/cpu/programs tests/cpu/engine tests/cpu/cudart \
	tests/cpu/math tests/cpu/compiler tests/cpu/debugging tests/cpu/observed tests/cpu/provider tests/nccl tests/examples tests/standins \
	tests/test_readme.py tests/test_docstring_examples.py
# Kernels take up to twelve times as long as the limit of a test is meant for.
checked: $(VENV)/.installed-test
	@$(BIN)/python -m pytest $(SPREAD) -o timeout=600 --cupola-check race,init,sync $(CHECKED) $(PYTEST_ARGS)

coverage: $(VENV)/.installed-dev
	PYTHON=$(CURDIR)/$(BIN)/python tools/coverage.sh $(PYTEST_ARGS)

wheel:
	@rm -f dist/.built
	@$(MAKE) --no-print-directory dist/.built
	@PYTHON=$(PYTHON) tools/check_wheel.sh

dist/.built: $(SOURCES)
	@sh tools/check_machine.sh $(PYTHON)
	@PYTHON=$(PYTHON) tools/build_wheel.sh $(INSTALL_ARGS)
	@touch $@

docs: $(VENV)/.installed-docs
	CUPOLA_GALLERY=$(GALLERY) $(BIN)/sphinx-build -q -W -b html docs docs/_build/html
	$(BIN)/python tools/site_look.py --links docs/_build/html
	@echo "open docs/_build/html/index.html"

$(VENV)/bin/python:
	@sh tools/check_machine.sh $(PYTHON)
	@echo "== making $(VENV)"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade pip

INSTALL := $(BIN)/python -m pip install --disable-pip-version-check --progress-bar off
PROGRESS := sed -u -n -e 's/^Collecting/  collecting/p' -e 's/^ *Building/  building/p' -e '/^Successfully/p'

# Built once for all the extras. After `make dev` the import builds what has changed.
$(VENV)/.installed: $(VENV)/bin/python $(or $(WHEEL),$(SOURCES))
	@if [ -e $(VENV)/.editable ]; then \
		:; \
	elif [ -n "$(WHEEL)" ]; then \
		echo "== installing $(WHEEL) into $(VENV)"; \
		$(INSTALL) --no-deps --force-reinstall $(WHEEL) | $(PROGRESS); \
	else \
		sh tools/check_machine.sh $(PYTHON); \
		echo "== building cupola and installing it into $(VENV): compiles, a few minutes"; \
		$(INSTALL) --no-deps . $(INSTALL_ARGS) | $(PROGRESS); \
	fi
	@$(BIN)/python -c "import cupola" && touch $@

$(VENV)/.installed-%: pyproject.toml | $(VENV)/.installed
	@echo "== installing what cupola[$*] needs into $(VENV)"
	@$(INSTALL) "cupola[$*]" | $(PROGRESS)
	@touch $@

clean:
	rm -rf $(VENV) build dist docs/_build
