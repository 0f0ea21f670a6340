# Two commands for a fresh machine, each doing its own set-up:
#   make demo   sample films, a library, a search, three questions with evidence, all offline after set-up
#   make test   the tests, in two processes
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
DEMO   ?= demo

.PHONY: demo test lint check clean

demo: $(READY)
	$(BIN)/kinodex demo $(DEMO)

test: $(READY)
	$(BIN)/python -m pytest -n 2 --dist loadfile

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

check: lint test

# uv where it is there, else venv and pip; both install the tested versions of constraints.txt.
$(READY): pyproject.toml constraints.txt
	@if command -v uv >/dev/null 2>&1; then \
	  uv venv --allow-existing --python $(PYTHON) $(VENV) && \
	  uv pip install --python $(BIN)/python -c constraints.txt -e '.[dev]'; \
	else \
	  $(PYTHON) -m venv $(VENV) && \
	  $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'; \
	fi
	@touch $@

clean:
	rm -rf $(VENV) $(DEMO)
