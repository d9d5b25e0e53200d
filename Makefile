# The two commands to know are `make demo` and `make test`. Both need Python 3.11+, git and make, and set up all the
# rest below .envs/, once. Written for GNU make 3.81, which macOS ships: no .ONESHELL, no .SHELLFLAGS.

FOUND   := $(shell sh scripts/find-python "$(PYTHON)" 2>/dev/null)
VERSION := $(firstword $(FOUND))
ENVS    := .envs/$(VERSION)
TOOL    := $(ENVS)/tool
UV      := sh scripts/uv $(TOOL)
WHEEL   := $(ENVS)/wheel
SOURCES := pyproject.toml README.md LICENSE NOTICE \
           $(shell find recall_core integrations -name __pycache__ -prune -o -name tests -prune -o -print)

# The adapters: each folder of integrations/ with a pyproject.toml. The hosts of one exclude those of the others, so it
# has an environment of its own.
ADAPTERS := $(patsubst integrations/%/pyproject.toml,%,$(wildcard integrations/*/pyproject.toml))
env_of    = $(if $(filter hermes,$(1)),hermes,hosts)
in_env    = $(foreach adapter,$(ADAPTERS),$(if $(filter $(1),$(call env_of,$(adapter))),$(adapter)))
wanted_by = $(foreach adapter,$(1),--requirements integrations/$(adapter)/pyproject.toml \
              --group integrations/$(adapter)/pyproject.toml:test)
wheels_of = $(WHEEL)/dualrecall-*.whl $(foreach adapter,$(1),$(WHEEL)/dualrecall_$(adapter)-*.whl)

# Nobody's own settings may leak into a test run.
unexport PYTHONPATH PYTHONHOME PYTHONDONTWRITEBYTECODE RECALL_DB RECALL_MODEL RECALL_MODELS HF_ENDPOINT
# Tests see what is installed, never the checkout that they are started from.
TESTED  := PYTHONSAFEPATH=1 RECALL_TEST_WHEEL=1 HYPOTHESIS_PROFILE=ci

.PHONY: help demo test lint lint-adapters test-core test-hosts test-mcp test-adapters test-floors docs clean
.PHONY: $(ADAPTERS:%=lint-%) $(ADAPTERS:%=test-%) $(ADAPTERS:%=test-floors-%)
.DELETE_ON_ERROR:
# Each environment is kept, although only a chain of rules names it.
.SECONDARY:

help: ## show this help
	@echo "make TARGET [PYTHON=python3.12]"
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-13s %s\n", $$1, $$2 }' Makefile

demo: $(ENVS)/demo/ready ## store some memories and ask for them in three ways
	@$(ENVS)/demo/bin/python examples/demo

test: ## everything that has to pass: lint, the hosts and their adapters, the core
	@$(MAKE) --no-print-directory lint
	@$(MAKE) --no-print-directory lint-adapters
	@$(MAKE) --no-print-directory $(ENVS)/core/installed
	@echo "The core's tests run beside those of the hosts, and tell how they went when both have ended"
	@$(MAKE) --no-print-directory test-core >$(ENVS)/core.log 2>&1 & core=$$!; \
	    $(MAKE) --no-print-directory test-hosts && \
	    $(MAKE) --no-print-directory test-mcp && \
	    $(MAKE) --no-print-directory test-adapters; hosts=$$?; \
	    wait $$core; core=$$?; cat $(ENVS)/core.log; exit $$((hosts + core))

lint: $(ENVS)/dev/ready ## style, types and import rules
	$(ENVS)/dev/bin/ruff check .
	$(ENVS)/dev/bin/ruff format --check .
	$(ENVS)/dev/bin/mypy
	$(ENVS)/dev/bin/lint-imports --no-logo

lint-adapters: $(ADAPTERS:%=lint-%) ## types and import rules of the adapters, against their hosts

$(ADAPTERS:%=lint-%): lint-%: $(ENVS)/dev/ready
	$(ENVS)/dev/bin/mypy --python-executable $(ENVS)/$(call env_of,$*)/bin/python integrations/$*/recall_$*
	cd integrations/$* && PYTHONPATH=. ../../$(ENVS)/dev/bin/lint-imports --no-logo

test-core: $(ENVS)/core/installed ## the core on its built wheel, with no framework; ARGS="tests/test_times.py" for a part
	$(TESTED) $(ENVS)/core/bin/python -m pytest --ignore=tests/hosts --ignore=tests/mcp_server $(ARGS)

test-hosts: $(ENVS)/hosts/installed $(ENVS)/hermes/installed ## the core beside each framework
	$(TESTED) RECALL_TEST_HOSTS=hosts $(ENVS)/hosts/bin/python -m pytest tests/hosts
	$(UV) pip check --quiet --python $(ENVS)/hosts
	$(TESTED) RECALL_TEST_HOSTS=hermes $(ENVS)/hermes/bin/python -m pytest tests/hosts
	$(UV) pip check --quiet --python $(ENVS)/hermes

test-mcp: $(ENVS)/mcp/installed $(ENVS)/hosts/installed ## the MCP server with both majors of the SDK
	$(TESTED) $(ENVS)/mcp/bin/python -m pytest $(if $(ARGS),$(ARGS),tests/mcp_server)
	$(TESTED) $(ENVS)/hosts/bin/python -m pytest $(if $(ARGS),$(ARGS),tests/mcp_server)

test-adapters: $(ADAPTERS:%=test-%) ## each adapter on its built wheel, beside the newest hosts; test-langchain for one

$(foreach adapter,$(call in_env,hosts),lint-$(adapter) test-$(adapter)): $(ENVS)/hosts/installed
$(foreach adapter,$(call in_env,hermes),lint-$(adapter) test-$(adapter)): $(ENVS)/hermes/installed

$(ADAPTERS:%=test-%): test-%:
	$(TESTED) $(ENVS)/$(call env_of,$*)/bin/python -m pytest -c integrations/$*/pyproject.toml \
	    $(if $(ARGS),$(ARGS),integrations/$*/tests)

test-floors: $(ADAPTERS:%=test-floors-%) ## each adapter beside the oldest hosts that it says it works with

$(ADAPTERS:%=test-floors-%): test-floors-%: $(ENVS)/floors-%/installed
	$(TESTED) $(ENVS)/floors-$*/bin/python -m pytest -c integrations/$*/pyproject.toml \
	    $(if $(ARGS),$(ARGS),integrations/$*/tests)
	$(UV) pip check --quiet --python $(ENVS)/floors-$*

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
$(ENVS)/mcp/ready:    WANTED := --requirements pyproject.toml --group mcp
$(ENVS)/hosts/ready:  WANTED := --requirements pyproject.toml --group hosts $(call wanted_by,$(call in_env,hosts))
$(ENVS)/hermes/ready: WANTED := --requirements pyproject.toml --group hermes $(call wanted_by,$(call in_env,hermes))

$(ENVS)/core/installed:   WHEELS := $(call wheels_of,)
$(ENVS)/mcp/installed:    WHEELS := $(call wheels_of,)
$(ENVS)/hosts/installed:  WHEELS := $(call wheels_of,$(call in_env,hosts))
$(ENVS)/hermes/installed: WHEELS := $(call wheels_of,$(call in_env,hermes))

# Every adapter's floors in an environment of their own.
$(ADAPTERS:%=$(ENVS)/floors-%/ready): $(ENVS)/floors-%/ready: $(TOOL)/installed-uv pyproject.toml integrations/%/pyproject.toml
	@echo "Setting up $(@D)"
	@$(UV) venv --quiet --clear --python "$(TOOL)/bin/python" $(@D)
	@$(UV) pip install --quiet --python $(@D) --resolution lowest-direct $(call wanted_by,$*)
	@touch $@

$(ADAPTERS:%=$(ENVS)/floors-%/installed): $(ENVS)/floors-%/installed: $(ENVS)/floors-%/ready $(WHEEL)/built
	@$(UV) pip install --quiet --python $(@D) --no-deps --reinstall $(call wheels_of,$*)
	@touch $@

$(ENVS)/%/ready: $(TOOL)/installed-uv pyproject.toml $(ADAPTERS:%=integrations/%/pyproject.toml)
	@echo "Setting up $(@D)"
	@$(UV) venv --quiet --clear --python "$(TOOL)/bin/python" $(@D)
	@$(UV) pip install --quiet --python $(@D) $(WANTED)
	@touch $@

$(ENVS)/%/installed: $(ENVS)/%/ready $(WHEEL)/built
	@$(UV) pip install --quiet --python $(@D) --no-deps --reinstall $(WHEELS)
	@touch $@

$(WHEEL)/built: $(TOOL)/installed-uv $(SOURCES)
	@echo "Building the wheels"
	@rm -rf $(WHEEL)
	@for project in . $(ADAPTERS:%=integrations/%); do \
	    $(UV) build --quiet --python "$(TOOL)/bin/python" --out-dir $(WHEEL) $$project || exit 1; \
	done
	@touch $@

$(TOOL)/installed-uv:
	@sh scripts/find-python "$(PYTHON)" >/dev/null
	@echo "Setting up $(@D) with $(wordlist 2,99,$(FOUND))"
	@rm -rf $(TOOL)
	@"$(wordlist 2,99,$(FOUND))" -m venv $(TOOL) || \
	    { echo "Python could not make an environment; on Debian and Ubuntu: apt install python3-venv" >&2; exit 1; }
	@$(TOOL)/bin/python -m pip install --quiet --disable-pip-version-check --timeout 60 --retries 8 "uv>=0.9"
	@touch $@
