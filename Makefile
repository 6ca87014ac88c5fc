# `make demo` and `make test` set up everything themselves: they need python3 (3.11 or later, with venv), OpenSSH's client and make.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
DEMO_READY := $(VENV)/.ready-demo

# What starts hundreds of processes must not compile every file for each of them.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo test test-share test-all quick desk ui lint docs bench reproduce lock dist versions clean

help:  ## list the targets
	@echo "Release Pipeline. The targets:"
	@awk -F':.*## ' '/^[a-z-]+:.*## / {printf "  make %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# uv does in seconds what pip does in minutes. It comes with pip as one wheel where it is missing; where it
# cannot fetch anything (a mirror that only pip knows), pip goes on. Every file is what its lock says.
UV_LOCK := deploy/uv.lock
define install
{ uv=$$(command -v uv || echo $(BIN)/uv); \
  [ -x "$$uv" ] || $(BIN)/pip install $(PIP) -r $(UV_LOCK); \
  UV_HTTP_RETRIES=1 "$$uv" pip install --quiet --python $(BIN)/python --no-deps --require-hashes -r $(1) 2>/dev/null; } || \
  $(BIN)/pip install $(PIP) -r $(1)
endef
PIP := --quiet --disable-pip-version-check --require-hashes --no-deps

# What the demo needs, in half a minute; the rest, for tests, lint and pages, is added to it when it is needed.
$(DEMO_READY): deploy/demo.lock $(UV_LOCK) pyproject.toml $(wildcard packages/*/pyproject.toml)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || \
	  { echo "Python 3.11 or later is needed and $(PYTHON) is not that: install it, or name one with 'make PYTHON=python3.12 ...'." >&2; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || \
	  { echo "$(PYTHON) has no venv: install the package python3-venv (apt-get install python3-venv), then run make again." >&2; exit 1; }
	@command -v ssh-keygen >/dev/null || \
	  { echo "There is no ssh-keygen: install OpenSSH's client (apt-get install openssh-client), then run make again." >&2; exit 1; }
	@echo "Setting up $(VENV) with the locked dependencies (once) ..."
	@rm -rf $(VENV)
	@$(PYTHON) -m venv $(VENV)
	@$(call install,deploy/demo.lock)
	@$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation \
	  --editable . --editable packages/analyst
	@touch $(DEMO_READY)

$(READY): $(DEMO_READY) requirements.lock
	@echo "Adding what tests, lint and pages need (once) ..."
	@$(call install,requirements.lock)
	@touch $(READY)

# What a bare `dagster dev` or `dg dev` in the checkout shows after it: the demo, with its own records. Dagster reads the file itself.
DEMO_ENV = \# of make demo
demo: $(DEMO_READY)  ## the whole chain on embedded public data: one release published, one refused, one to review
	@$(BIN)/release-pipeline demo
	@[ -e .env ] || printf '%s\n' '$(DEMO_ENV)' 'RELEASE_PIPELINE_HOME=$${RELEASE_PIPELINE_HOME:-$(CURDIR)/demo}' \
	  'DAGSTER_HOME=$${DAGSTER_HOME:-$(CURDIR)/demo/dagster}' >.env

TEST = $(BIN)/pytest --numprocesses auto --dist loadfile --no-loadscope-reorder
test: $(READY)  ## run the tests that every change needs: all but the files in tests/long.txt
	$(TEST) --long none

SHARES = 8
test-share: $(READY)  ## run an eighth of the files in tests/long.txt, another one each day (SHARE=3: the fourth)
	$(TEST) tests --long $(or $(SHARE),$(shell expr $$(date +%s) / 86400 % $(SHARES)))/$(SHARES)

test-all: $(READY)  ## run all tests: an hour on two cores
	$(TEST)

# Left out: whatever is marked slow or statistical, what is compared with brute force (tests/oracles) or held for any input
# (tests/property), the papers' experiments, and all of tests/integration but one release: processes, crashes, races, Dagster, the UI.
# Types are checked of the files that changed since the last commit: `make lint` checks all, in a minute and a half of its own.
# Two chains side by side, for two processors; the second says what it found after the first.
CHANGED = { git diff --name-only --diff-filter=d HEAD; git ls-files --others --exclude-standard; } | \
  grep -E '^(release_pipeline|experiments)/.*\.py$$' | sort -u
BESIDE = tests/unit/report tests/unit/store
QUICK = $(BIN)/pytest -q -m "not slow and not statistical" --hypothesis-profile quick
quick: $(READY)  ## about a minute on two cores: style, types of what changed, unit tests, one release end to end; `make test` has the rest
	@$(BIN)/ruff check . && $(BIN)/ruff format --check .
	@said=$$(mktemp); trap 'rm -f "$$said"' EXIT; \
	{ changed=$$($(CHANGED)); types=0; [ -z "$$changed" ] || { $(BIN)/pyright $$changed; types=$$?; }; \
	  $(QUICK) tests/architecture $(BESIDE) release_pipeline tests/integration/test_end_to_end.py && \
	  exit $$types; } >"$$said" 2>&1 & second=$$!; \
	$(QUICK) $(BESIDE:%=--ignore %) --ignore tests/unit/experiments tests/unit; first=$$?; \
	wait $$second; second=$$?; cat "$$said"; exit $$((first || second))

desk: $(DEMO_READY)  ## the demo's desk: pages for five people in a browser, to play the story of docs/desk.md (after make demo; PORT=8800: at another port)
	@$(BIN)/release-pipeline desk --home demo $(if $(PORT),--port $(PORT))

ui: $(DEMO_READY)  ## the Dagster UI of the demo, at the link that it prints (after make demo)
	@$(BIN)/release-pipeline ui --home demo

lint: $(READY)  ## style, types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright

# A folder of this name may be somebody's site, with a vault: only what was made here is taken away.
NO_OTHER_SITE = [ ! -e site ] || [ -f site/objects.inv ] || { echo "site/ was not made by 'make docs': move it away." >&2; exit 1; }

# Every warning is an error: a link that leads nowhere, a page that nothing leads to, a docstring that is no text.
docs: $(READY)  ## the site of docs/, in site/: open site/index.html, no network needed
	@$(NO_OTHER_SITE)
	@rm -rf site build/docs   # parts are made from the program, which Sphinx does not look at: nothing old may stay
	@$(BIN)/python -m sphinx --quiet --fail-on-warning --keep-going --conf-dir docs --doctree-dir build/docs . site
	@echo "site/index.html"

bench: $(READY)  ## measure speed and memory as ratios against named baselines
	$(BIN)/python -m experiments.benchmarks

reproduce: $(READY)  ## the papers' experiments measured again, into the folder reproduction (SHORT=1: a part of them, in a minute)
	$(BIN)/python -m experiments.papers $(if $(SHORT),--quick)

dist: $(READY)  ## build wheels and source archives of what is committed into dist/, the same bytes each time, and look at them
	@$(BIN)/python deploy/make_dist.py

LOCKED = --universal --python-version 3.11 --no-emit-index-url --generate-hashes --no-annotate --no-header --upgrade
lock:  ## refresh requirements.lock from pyproject.toml, and the locks that are made of it (needs uv)
	uv pip compile pyproject.toml --extra demo --extra dev --extra docs $(LOCKED) \
	  --no-emit-package release-pipeline-analyst -o requirements.lock
	echo 'uv>=0.9' | uv pip compile - $(LOCKED) -o $(UV_LOCK)
	$(BIN)/python deploy/make_lock.py

versions:  ## the oldest and the newest Python and Dagster, each in an environment of its own (needs nox, and both Pythons)
	nox

clean:  ## remove what make made
	@$(NO_OTHER_SITE)
	rm -rf $(VENV) demo site build dist .pytest_cache .ruff_cache .hypothesis
	! grep -qsx '$(DEMO_ENV)' .env || rm .env
	find docs experiments release_pipeline tests -name __pycache__ -prune -exec rm -rf {} +
