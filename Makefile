# Two commands do everything on a machine with Python 3.11 or later, make and gcc:
#   make demo   lint, trace and report the segmentation sample
#   make test   ruff, mypy and the tests
# and `make test-all` asks more of each, `make fuzz SECONDS=3600` looks for what they miss.

# The tests start a hundred programs of ours: each would compile all that it imports anew.
unexport PYTHONDONTWRITEBYTECODE

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
TORCH ?= torch==2.13.0

.PHONY: demo test test-all check fuzz docs site clean

demo: $(VENV)/ready
	$(BIN)/python samples/demo.py

# mypy is a test of the tests: it would need one processor alone, for half a minute. By its own name pytest does not look for
# plugins in this folder, where the package is one: it would rewrite the asserts of all of it, in each process.
test: $(VENV)/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pytest -n 3 --dist loadgroup --no-loadscope-reorder $(PYTEST)

# The slow ones, too, and all random examples that each test names.
test-all: $(VENV)/ready
	SYNCSCOPE_EFFORT=1 $(BIN)/pytest -n 2 -m '' --timeout 7200 $(PYTEST)

check: $(VENV)/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# What takes long and finds little: on demand, for as long as you like. First all tests, the slow ones too, with more random
# examples, then damaged sources and recordings.
fuzz: $(VENV)/ready
	SYNCSCOPE_EFFORT=$(or $(EFFORT),5) $(BIN)/pytest -n 2 -m '' --timeout 7200 $(PYTEST)
	$(BIN)/python tests/fuzz_lint.py --seconds $(or $(SECONDS),600)
	$(BIN)/python tests/fuzz_traces.py --seconds $(or $(SECONDS),600)

docs: $(VENV)/ready
	$(BIN)/syncscope explain --all > docs/rules.md
	$(BIN)/python benchmarks/measured_page.py

# torch comes first and pinned: a plain `torch` would bring gigabytes of CUDA libraries.
$(VENV)/ready: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade pip
	$(BIN)/pip install --quiet "$(TORCH)"
	PYTHONWARNINGS=ignore $(BIN)/pip install --quiet --editable ".[trace,opencl,tensorboard,fleet,dev]"
	touch $@

# The documentation as pages, in build/site: open index.html; it asks the network for nothing, its search works from the file.
site: $(VENV)/ready
	PYTHONWARNINGS=ignore $(BIN)/pip install --quiet "zensical>=0.0.70"
	$(BIN)/python -m zensical build --strict

clean:
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache
