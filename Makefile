# Everything a newcomer needs: `make run` and `make test`. Each makes its own virtual environment.
PYTHON ?= python3
SCENARIO ?= scenarios/quickstart.yaml
VENV := .venv
BIN := $(VENV)/bin

.PHONY: run test notebook bench clean

run: $(VENV)/.installed
	$(BIN)/gesim run $(SCENARIO)

test: $(VENV)/.installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m pytest -q -n auto --dist worksteal

notebook: $(VENV)/.installed-notebooks
	$(BIN)/jupyter lab notebooks

bench: $(VENV)/.installed-test
	$(BIN)/python benchmarks/driver.py

clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install -q -e .
	touch $@

$(VENV)/.installed-test: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install -q -e '.[test]'
	touch $(VENV)/.installed $@

$(VENV)/.installed-notebooks: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install -q -e '.[notebooks]'
	touch $(VENV)/.installed $@
