# Verbs: `make app` opens the dashboard, `make test` runs the whole suite, `make sample-checkpoint` fine-tunes the
# bundled checkpoint on movie reviews, `make sample-tasks` makes probing tasks of them. Each does all the set-up.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PREPARED_FROM := requirements.txt $(wildcard dashboard/samples/*) cache/store/keys.py core/roles/sieves.py core/roles/measures.py \
    core/roles/matched_pairs.py core/roles/permuted_keys.py
export OMP_WAIT_POLICY ?= PASSIVE
# The tests start many processes: each reads what the first one has compiled.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: app test bench pictures sample-checkpoint sample-tasks
app: $(VENV)/prepared
	$(BIN)/streamlit run dashboard/server.py

test: $(VENV)/test-installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m pytest --ignore=tests/browser --numprocesses=auto --maxprocesses=4 --dist=worksteal
	$(BIN)/python -m pytest tests/browser --numprocesses=2 --dist=loadfile

bench: $(VENV)/test-installed
	for file in benchmarks/[a-z]*.py; do $(BIN)/python -m benchmarks.$$(basename $$file .py) || exit 1; done

pictures: $(VENV)/test-installed
	$(BIN)/python -m pytest -q tests/browser/pictures.py

sample-checkpoint: $(VENV)/installed
	$(BIN)/python -m core sample-checkpoint

sample-tasks: $(VENV)/installed
	$(BIN)/python -m core sample-tasks

$(VENV)/created:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed; name it with: make PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/installed: $(VENV)/created requirements.txt
	$(BIN)/python -m pip install --disable-pip-version-check --quiet -r requirements.txt
	@touch $@

$(VENV)/test-installed: $(VENV)/installed tests/requirements.txt
	$(BIN)/python -m pip install --disable-pip-version-check --quiet -r tests/requirements.txt
	@touch $@

$(VENV)/prepared: $(VENV)/installed $(PREPARED_FROM)
	$(BIN)/python -m dashboard.prepare
	@touch $@
