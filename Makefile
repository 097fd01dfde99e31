# `make demo` and `make test` set up everything they need. PYTHON names the interpreter to start from (3.11 or newer).
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
export PYTHONDONTWRITEBYTECODE =

.DEFAULT_GOAL := help
.PHONY: help install compile demo check peers test test-interpreted test-long lint types docs site screenshots lock wheels chart bench soak instructions clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-16s %s\n", $$1, $$2}'

# An environment is complete when .created exists, or when its pip runs. If `python -m venv` is interrupted (Debian without python3-venv,
# Ctrl-C), it leaves a python without pip. This target then creates the environment again.
$(VENV)/.created:
	@$(PYTHON) -c 'import sys; sys.exit("flagsvc needs Python 3.11 or newer, this is " + sys.version.split()[0]) if sys.version_info < (3, 11) else None'
	@if ! $(BIN)/python -m pip --version > /dev/null 2>&1; then \
	  echo "creating $(VENV)"; \
	  $(PYTHON) -m venv --clear $(VENV) || { rm -rf $(VENV); exit 1; }; \
	fi
	@touch $@

$(VENV)/.installed: requirements/dev.txt pyproject.toml $(VENV)/.created
	@echo "installing $$(grep -c '==' requirements/dev.txt) pinned packages into $(VENV), up to a minute the first time"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.txt
	@FLAGSVC_PURE=1 $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

# make rebuilds the compiled engine when one of its sources is newer. setup.py decides whether it compiles at all. If it does not,
# the next call of make tries again. A failed build ends make only under CI=true or REQUIRE_ALL=1; otherwise the engine stays
# interpreted. Lines that setup.py itself prints are shown at once, all other output is in the log.
COMPILED := $(addprefix src/flagsvc/,$(shell sed -e 's/\#.*//' src/flagsvc/compiled.txt))
LOG := $(VENV)/compile.log
$(VENV)/.compiled: $(VENV)/.installed setup.py src/flagsvc/compiled.txt $(COMPILED)
	@find src -name '*.so' -delete
	@{ $(BIN)/python setup.py --quiet build_ext --inplace 2>&1; echo $$? > $(LOG).code; } | tee $(LOG) \
	  | while IFS= read -r line; do case $$line in "flagsvc: "*) echo "$$line" ;; esac; done
	@if [ "$$(cat $(LOG).code)" = 0 ]; then \
	  grep -q 'stays interpreted' $(LOG) || touch $@; \
	else \
	  find src -name '*.so' -delete; \
	  tail -n 15 $(LOG); \
	  if [ "$$CI" = true ] || [ "$$REQUIRE_ALL" = 1 ]; then exit 1; fi; \
	  echo "the build failed ($(LOG)): the engine stays interpreted (about ten times slower)"; \
	fi

# Half of the time of the whole suite is waiting, so it runs in twice as many processes as cores. The limit is the number of processes
# that have ports of their own (tests/support/processes.py). The tests of `make check` do not wait, so it uses one process per core.
CORES := $(shell nproc 2> /dev/null || echo 2)
WORKERS ?= $(shell n=$$(( 2 * $(CORES) )); echo $$(( n < 8 ? n : 8 )))
PYTEST := $(BIN)/python -m pytest --dist loadfile --no-loadscope-reorder
# DATABASES: tests of single modules of the flag server on its databases. INTERPRETED_ONLY: tests of packages without a compiled module; they
# run once, interpreted.
DATABASES := tests/integration/store tests/integration/server tests/integration/pages
INTERPRETED_ONLY := $(addprefix tests/unit/,benchmarks cli core http/client process server settings) \
  $(addprefix tests/unit/proxy/,configuration pages tokens workers)

install: $(VENV)/.compiled ## create .venv, install the pinned packages, compile the engine if there is a C compiler

compile: $(VENV)/.compiled ## compile the engine again if a source of it changed

demo: install ## start a flag server with example flags and a proxy on it, show a first answer
	@$(BIN)/python examples/demo.py

check: $(VENV)/.installed ## check a change in two minutes: lint, types, and the tests that need no program beside Python, interpreted
	$(BIN)/ruff check . && $(BIN)/ruff format --check .
	$(BIN)/mypy
	FLAGSVC_INTERPRETED=1 $(PYTEST) -n $(WORKERS) -m 'not long and not programs' --hypothesis-profile check tests/house tests/unit tests/contracts tests/conformance tests/wire $(DATABASES) $(ARGS)

# Each test runs in one of the two halves. A test whose result may depend on compiled modules runs in both.
test: install $(VENV)/.site test-interpreted ## run all tests except the long ones; a test whose program is missing is skipped (REQUIRE_ALL=1: it fails)
	$(PYTEST) -n $(WORKERS) -rsfE --half compiled $(addprefix --ignore=,$(INTERPRETED_ONLY)) $(ARGS)

peers: $(VENV)/.installed ## fetch the npm packages that tests run beside ours, so that no test waits for them
	@PYTHONPATH=tests $(BIN)/python -m support.peers

# The programs that tests start write no bytecode, nor do the tests whose coverage is counted: it would be made at each start (0.5 CPU s).
test-interpreted: $(VENV)/.installed ## run the tests of single packages on the Python sources; print the coverage of each package beside its floor
	@mkdir -p .cache
	@$(BIN)/python -m compileall -q src
	FLAGSVC_INTERPRETED=1 $(PYTEST) -n $(WORKERS) -rsfE --half sources --coverage .cache/coverage.json \
	  tests/unit tests/contracts tests/conformance $(DATABASES)
	$(BIN)/python tests/support/coverage_floors.py .cache/coverage.json
	FLAGSVC_INTERPRETED=1 $(PYTEST) -n $(WORKERS) -rsfE tests/property/test_property_front.py tests/property/test_property_tags.py tests/property/test_query_twin.py

test-long: install ## run the long tests: differential (EDGE=PROGRAM: also beside Unleash Edge), fuzzing (FUZZ_SECONDS=60: seconds for each target), faults, kills, twice the generated inputs
	$(BIN)/python -m pytest -m 'long or hypothesis' --hypothesis-profile long $(ARGS)

lint: $(VENV)/.installed ## run ruff: style and formatting
	$(BIN)/ruff check . && $(BIN)/ruff format --check .

types: $(VENV)/.installed ## run mypy, strict
	$(BIN)/mypy

docs: install ## write the generated reference pages
	$(BIN)/python docs/generate.py

$(VENV)/.site: requirements/docs.txt $(VENV)/.installed
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/docs.txt
	@touch $@

# The page of all versions lists the folders that are there.
site: $(VENV)/.site ## build the site of the documentation into build/site/VERSION (VERSION=main: another name)
	$(BIN)/python -m sphinx --quiet --fail-on-warning --keep-going -c docs -d build/doctrees . \
	  build/site/$(or $(VERSION),$(shell sed -n 's/^VERSION = "\(.*\)"/\1/p' src/flagsvc/core/version.py))

screenshots: install ## take the pictures in docs/screenshots/ again (Chromium)
	$(BIN)/python docs/screenshots.py

# Extras stay in the pins: the pip of Python 3.11 does not apply a pin of `psycopg` to `psycopg[binary]`, and takes a newer release.
lock: $(VENV)/.created ## pin the requirements again, with hashes
	$(BIN)/uv pip compile --quiet --universal --no-strip-extras --python-version 3.11 --generate-hashes --no-header --no-annotate -o requirements/runtime.txt requirements/runtime.in
	$(BIN)/uv pip compile --quiet --universal --no-strip-extras --python-version 3.11 --generate-hashes --no-header --no-annotate -c requirements/runtime.txt -o requirements/dev.txt requirements/dev.in
	$(BIN)/uv pip compile --quiet --universal --no-strip-extras --python-version 3.11 --generate-hashes --no-header --no-annotate -c requirements/dev.txt -o requirements/build.txt requirements/build.in
	$(BIN)/uv pip compile --quiet --universal --no-strip-extras --python-version 3.11 --generate-hashes --no-header --no-annotate -c requirements/dev.txt -o requirements/release.txt requirements/release.in
	$(BIN)/uv pip compile --quiet --universal --no-strip-extras --python-version 3.11 --generate-hashes --no-header --no-annotate -c requirements/dev.txt -o requirements/docs.txt requirements/docs.in

bench: install ## measure the proxy, the reference and Unleash Edge (QUICK=1: two minutes; EDGE=BINARY: another Edge)
	@$(BIN)/python benchmarks/proxy.py $(if $(QUICK),--quick) $(if $(EDGE),--edge "$(EDGE)") $(ARGS)

soak: install ## run one worker under load and failures (MINUTES=30)
	@$(BIN)/python benchmarks/soak.py --minutes $(or $(MINUTES),30) $(ARGS)

wheels: $(VENV)/.installed ## build source distribution and wheels into dist/, and test each (PYTHONS=…: for which; TWICE=1: compare two builds; PURE=1)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/release.txt
	$(BIN)/python release/wheels.py $(if $(TWICE),--twice) $(if $(PURE),--pure) $(PYTHONS)

CHART ?= dist/chart
chart: ## put the Helm chart into dist/chart/, with dashboards and alerts
	@rm -rf $(CHART)/flagsvc && mkdir -p $(CHART) && cp -R deploy/helm/flagsvc $(CHART)/ && mkdir $(CHART)/flagsvc/files
	@cp -R deploy/observe/alerts deploy/observe/dashboards $(CHART)/flagsvc/files/

instructions: install ## record how many instructions the engine takes (valgrind); a test compares them
	$(BIN)/python benchmarks/instructions.py --record

clean: ## remove everything that make built or downloaded
	rm -rf $(VENV) build dist .cache src/*.egg-info
	find . -name '*.so' -delete -o -name __pycache__ -type d -prune -exec rm -rf {} +
