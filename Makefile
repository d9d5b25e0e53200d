# The two commands to know are `make demo` and `make test`. Both need Python 3.11+, git and make, and set up all the
# rest below .envs/, once. Written for GNU make 3.81, which macOS ships: no .ONESHELL, no .SHELLFLAGS.

FOUND   := $(shell sh scripts/find-python "$(PYTHON)" 2>/dev/null)
VERSION := $(firstword $(FOUND))
ENVS    := .envs/$(VERSION)
TOOL    := $(ENVS)/tool
UV      := sh scripts/uv $(TOOL)
WHEEL   := $(ENVS)/wheel
SOURCES := pyproject.toml README.md LICENSE NOTICE \
           $(shell find recall_core -name __pycache__ -prune -o -print)

# Nobody's own settings may leak into a test run.
unexport PYTHONPATH PYTHONHOME RECALL_DB RECALL_MODEL RECALL_MODELS HF_ENDPOINT
# Tests see what is installed, never the checkout that they are started from.
TESTED  := PYTHONSAFEPATH=1 RECALL_TEST_WHEEL=1 HYPOTHESIS_PROFILE=ci

.PHONY: help demo test lint test-core test-hosts docs clean
.DELETE_ON_ERROR:
# Each environment is kept, although only a chain of rules names it.
.SECONDARY:

help: ## show this help
	@echo "make TARGET [PYTHON=python3.12]"
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-11s %s\n", $$1, $$2 }' Makefile

demo: $(ENVS)/demo/ready ## store some memories and ask for them in three ways
	@$(ENVS)/demo/bin/python examples/demo

test: ## everything that has to pass: lint, the hosts, the core
	@$(MAKE) --no-print-directory lint
	@$(MAKE) --no-print-directory test-hosts
	@$(MAKE) --no-print-directory test-core

lint: $(ENVS)/dev/ready ## style, types and import rules
	$(ENVS)/dev/bin/ruff check .
	$(ENVS)/dev/bin/ruff format --check .
	$(ENVS)/dev/bin/mypy
	$(ENVS)/dev/bin/lint-imports --no-logo

test-core: $(ENVS)/core/installed ## the core on its built wheel, with no framework; ARGS="tests/test_times.py" for a part
	$(TESTED) $(ENVS)/core/bin/python -m pytest --ignore=tests/hosts $(ARGS)

test-hosts: $(ENVS)/hosts/installed $(ENVS)/hermes/installed ## the core beside each framework
	$(TESTED) RECALL_TEST_HOSTS=hosts $(ENVS)/hosts/bin/python -m pytest tests/hosts
	$(UV) pip check --quiet --python $(ENVS)/hosts
	$(TESTED) RECALL_TEST_HOSTS=hermes $(ENVS)/hermes/bin/python -m pytest tests/hosts
	$(UV) pip check --quiet --python $(ENVS)/hermes

docs: $(ENVS)/core/installed ## write the generated parts of the docs anew
	$(ENVS)/core/bin/python tools/generate_cli_docs.py

clean: ## remove all that make made
	rm -rf .envs build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Environments. They are made anew when pyproject.toml changes, so nothing that it no longer names lingers in one.
# The hosts have two: CrewAI and Hermes pin versions of openai and pydantic that exclude each other.

$(ENVS)/demo/ready:   WANTED := --editable .
$(ENVS)/dev/ready:    WANTED := --editable . --group lint
$(ENVS)/core/ready:   WANTED := --requirements pyproject.toml --group test
$(ENVS)/hosts/ready:  WANTED := --requirements pyproject.toml --group hosts
$(ENVS)/hermes/ready: WANTED := --requirements pyproject.toml --group hermes

$(ENVS)/%/ready: $(TOOL)/installed-uv pyproject.toml
	@echo "Setting up $(@D)"
	@$(UV) venv --quiet --clear --python "$(TOOL)/bin/python" $(@D)
	@$(UV) pip install --quiet --python $(@D) $(WANTED)
	@touch $@

$(ENVS)/%/installed: $(ENVS)/%/ready $(WHEEL)/built
	@$(UV) pip install --quiet --python $(@D) --no-deps --reinstall $(WHEEL)/*.whl
	@touch $@

$(WHEEL)/built: $(TOOL)/installed-uv $(SOURCES)
	@echo "Building the wheel"
	@rm -rf $(WHEEL)
	@$(UV) build --quiet --python "$(TOOL)/bin/python" --out-dir $(WHEEL)
	@touch $@

$(TOOL)/installed-uv:
	@sh scripts/find-python "$(PYTHON)" >/dev/null
	@echo "Setting up $(@D) with $(wordlist 2,99,$(FOUND))"
	@rm -rf $(TOOL)
	@"$(wordlist 2,99,$(FOUND))" -m venv $(TOOL) || \
	    { echo "Python could not make an environment; on Debian and Ubuntu: apt install python3-venv" >&2; exit 1; }
	@$(TOOL)/bin/python -m pip install --quiet --disable-pip-version-check "uv>=0.9"
	@touch $@
