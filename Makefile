# Each door works from a clean clone: the virtual environment is made on first use.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
KERNELS := $(wildcard src/clew/kernels/*.py)

.PHONY: demo test check format bench bench-questions bench-load bench-page clean

$(VENV)/ready: pyproject.toml setup.py $(KERNELS)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet -e '.[dev]'
	touch $@

demo: $(VENV)/ready  ## cluster a bundled data set without and with knowledge
	$(BIN)/clew demo

test: $(VENV)/ready  ## all tests
	$(BIN)/python -m pytest -n auto

check: $(VENV)/ready  ## format, lint, types, import contract
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/ready  ## write code the way `check` wants it
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(VENV)/ready  ## speed, memory and quality, beside scikit-learn
	$(BIN)/python -m benchmarks

bench-questions: $(VENV)/ready  ## what questions are worth, for every strategy
	$(BIN)/python -m benchmarks.questions

bench-load: $(VENV)/ready  ## twenty people who answer at once, over HTTP
	$(BIN)/python -m benchmarks.load

bench-page: $(VENV)/ready  ## the page in a browser: first card, next card, the map
	$(BIN)/python -m benchmarks.page

clean:  ## remove everything that was built
	rm -rf $(VENV) build dist src/*.egg-info src/clew/kernels/*.so .pytest_cache .mypy_cache .ruff_cache
