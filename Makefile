# Each target does its own set-up, so each works first on a fresh machine with
# Python >= 3.11, Node >= 20 and a C compiler.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
EXTRAS := worker,gguf,cuda,postgres,s3,stripe,servers,dev
STATIC := parsyn/hub/static/index.html
WEB_SOURCES := $(shell find webui -type f -not -path '*/node_modules/*' -not -name 'types.gen.ts' -not -name '*.tsbuildinfo' 2>/dev/null)
WIRE_SOURCES := $(shell find parsyn/wire -name '*.py' 2>/dev/null)
TESTS ?= tests
ARGS ?=

.PHONY: setup webui demo test lint format check-web bench faults dist constraints clean

setup: $(VENV)/.ready webui

$(VENV)/.ready: setup.cfg requirements/constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q -c requirements/constraints.txt "setuptools>=77" wheel
	$(BIN)/python -m pip install -q -c requirements/constraints.txt -e ".[$(EXTRAS)]"
	touch $@

webui: $(STATIC)

webui/node_modules/.ready: webui/package.json webui/package-lock.json
	cd webui && npm ci --no-audit --no-fund --loglevel=error
	touch $@

$(STATIC): $(VENV)/.ready webui/node_modules/.ready $(WEB_SOURCES) $(WIRE_SOURCES)
	cd webui && PATH="$(CURDIR)/$(BIN):$$PATH" npm run --silent build
	touch $@

# The main job: serve, fine-tune a small real model, chat with it, export it. ARGS=--exit stops there.
demo: setup
	$(BIN)/parsyn demo $(ARGS)

lint: $(VENV)/.ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

check-web: webui
	cd webui && npm run --silent check
	cd webui && npm run --silent test

# Everything; ends with pytest's summary. TESTS=tests/rows runs a part. The browser gets a run of its
# own, and is run even if the first one failed, so that one look shows all that is wrong.
RUNNER := $(BIN)/python -m pytest -q -n 2 --dist loadfile
ifeq ($(TESTS),tests)
test: setup lint check-web
	failed=0; \
	$(RUNNER) tests --ignore=tests/browser $(ARGS) || failed=1; \
	$(RUNNER) tests/browser $(ARGS) || failed=1; \
	exit $$failed
else
test: setup lint check-web
	$(BIN)/python -m pytest $(TESTS) $(ARGS)
endif

format: $(VENV)/.ready
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# Every fault case; the last line before pytest's summary says what was lost or doubled.
# ARGS=--fault-case=sqlite:17 repeats one.
faults: setup
	$(BIN)/python -m pytest -q tests/faults --every-fault $(ARGS)

bench: setup
	$(BIN)/python bench/run.py $(ARGS)

dist: setup
	rm -rf dist build
	$(BIN)/python -m build --outdir dist
	$(BIN)/shiv -q --extend-pythonpath -c parsyn -o dist/parsyn.pyz --compressed dist/parsyn-*.whl

constraints: $(VENV)/.ready
	$(BIN)/python -m pip freeze --exclude-editable | sed -E 's/^torch==([0-9.]+).*/torch==\1/' | grep -v '^certifi=' | sort -f > requirements/constraints.new
	(head -2 requirements/constraints.txt; cat requirements/constraints.new) > requirements/constraints.both
	mv requirements/constraints.both requirements/constraints.txt
	rm requirements/constraints.new

clean:
	rm -rf build dist parsyn/hub/static .mypy_cache .ruff_cache .pytest_cache
