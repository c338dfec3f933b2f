# Each door works from a clean clone: the virtual environment is made on first use.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
KERNELS := $(wildcard src/clew/kernels/*.py)
# Some tests wait for a server or a browser: one process more than there are cores keeps the cores busy.
PYTEST := $(BIN)/python -m pytest -n $(shell expr $$(getconf _NPROCESSORS_ONLN) + 1)
# Many tests start Python again: it keeps compiled modules, even where the environment says not to.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: demo test test-rest test-all check format bench bench-questions bench-load bench-page bench-scale clean

# What clew itself needs, with the commands that the demo suggests; tests and benchmarks add the tools of developers.
$(VENV)/installed: pyproject.toml setup.py $(KERNELS)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[app,plot]'
	touch $@

# Not built on top of the above: each editable install compiles the kernels.
$(VENV)/ready: pyproject.toml setup.py $(KERNELS)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	touch $(VENV)/installed $@

demo: $(VENV)/installed  ## cluster a bundled data set without and with knowledge
	$(BIN)/clew demo

test: $(VENV)/ready  ## all tests but the slow ones, with a sample of the cases of grids; minutes
	$(PYTEST)

test-all: test test-rest  ## everything

test-rest: $(VENV)/ready  ## what make test leaves out: every case, the slow tests, and more examples
	$(PYTEST) --thorough -m "sampled or slow or hypothesis"

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

bench-scale: $(VENV)/ready  ## how time and memory of fits, questions, reviews and projects grow with their size
	$(BIN)/python -m benchmarks.scale

clean:  ## remove everything that was built
	rm -rf $(VENV) build dist src/*.egg-info src/clew/kernels/*.so .pytest_cache .mypy_cache .ruff_cache
