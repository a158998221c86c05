# Two commands do everything on a fresh machine: `make demo` and `make test`. Both set up .venv first, once.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: demo test test-slow check benchmark architectures lock clean help

help: ## say what can be made
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

$(READY): requirements.txt requirements-dev.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Veedor needs Python 3.11 or newer; this is $$($(PYTHON) --version). Name another: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	@$(PYTHON) tools/check_pango.py
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Installing the pinned packages into $(VENV): about 2 GB, two to five minutes, once."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.txt -r requirements-dev.txt
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

demo: $(READY) ## train a small biased classifier, register it, audit it
	@$(BIN)/veedor demo

test: $(READY) ## run the tests (minutes)
	$(BIN)/python -m pytest -m "not slow"

test-slow: $(READY) ## run the tests that take longer
	$(BIN)/python -m pytest -m slow

check: $(READY) ## format, lint, types, import contracts
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

benchmark: $(READY) ## time a whole audit of 2,000 texts: make benchmark MODEL=folder TARGET=label
	$(BIN)/python benchmarks/audit.py $(MODEL) --target $(TARGET)

architectures: $(READY) ## measure what is seen of each text architecture; writes docs/architectures.md
	$(BIN)/python -m tools.architectures

lock: $(READY) ## write the pins again from what is installed
	$(BIN)/python tools/lock.py

clean: ## remove what the commands above made
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache demo
