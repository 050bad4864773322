# Verbs: `make app` opens the dashboard, `make test` runs the whole suite, `make sample-checkpoint` fine-tunes the
# bundled checkpoint on movie reviews, `make sample-tasks` makes probing tasks of them, `make sample-decoder` downloads a
# small decoder, `make class HOST=name.of.server` opens the dashboard to others, `make ray` installs what corpora need to be scored on several machines. Each does all
# the set-up. `make app RESULTS=folder` opens a results folder.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
export OMP_WAIT_POLICY ?= PASSIVE
# The tests start many processes: each reads what the first one has compiled.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: app audit bench class imports lock packages pages pictures prepared programs quick ray samples soak style test \
    types units sample-checkpoint sample-decoder sample-tasks
# Made beside the dashboard, one after the other, when nothing else needs the processor: the decoder of the second
# riddle, what Laboratory, Compare and the last two lessons open on, then the tasks of Knowledge with what heads tell of
# them. What shows one of them appears once it is there. They stop with the dashboard, and the next start goes on.
KNOWLEDGE := attention_sieve.dashboard.views.knowledge.sample
define MAKE_EXAMPLES
(trap 'kill $$! 2> /dev/null; exit' TERM; \
	for made in "attention_sieve.dashboard.prepare runs" $(KNOWLEDGE) $(KNOWLEDGE); do \
	    OMP_NUM_THREADS=1 nice -n 19 $(BIN)/python -m $$made & wait $$!; done) > $(VENV)/runs.log 2>&1 & \
	runs=$$!; trap 'kill $$runs 2> /dev/null' EXIT INT TERM
endef
app: prepared
	@$(MAKE_EXAMPLES); \
	$(BIN)/streamlit run dashboard/server.py $(if $(RESULTS),-- --results '$(RESULTS)')

# Where it listens, the name under which it is visited, and the checkpoints that it offers (see dashboard/public.py).
ADDRESS ?= 0.0.0.0
PORT ?= 8501
HOST ?= $(shell hostname)
CHECKPOINTS ?= bundled:examples
class: prepared
	$(BIN)/python -m attention_sieve.dashboard.web.class_link $(HOST) $(PORT)
	@$(if $(filter examples,$(subst :, ,$(CHECKPOINTS))),$(MAKE_EXAMPLES);) \
	ATTENTION_SIEVE_PUBLIC=1 ATTENTION_SIEVE_CHECKPOINTS='$(CHECKPOINTS)' $(BIN)/streamlit run dashboard/server.py \
	    --server.address $(ADDRESS) --server.port $(PORT) --server.headless true \
	    --server.maxUploadSize 5 --browser.serverAddress $(HOST) \
	    --server.allowedHosts $(HOST) --server.allowedHosts localhost --server.allowedHosts 127.0.0.1

# One process a core: another one would have its own imports, server and browser, which cost more than it saves.
PROCESSES = $(shell $(PYTHON) -c 'import os; print(min(os.cpu_count(), 4))')
# The unit tests leave the cores idle now and then: imports and types are checked meanwhile, and the pages' samples scored.
# apt-get waits for its downloads while pip works.
# A step that fails keeps no other from running: what it printed last is shown again at the end.
test:
	$(MAKE) -j2 $(VENV)/compiled packages
	$(MAKE) programs
	rm -rf build/steps
	mkdir -p build/steps
	$(MAKE) -j5 $(addprefix build/steps/,style units imports types samples)
	ATTENTION_SIEVE_TEST_SAMPLES='$(SAMPLES)' $(MAKE) build/steps/pages
	@for failed in $$(cd build/steps && ls *.failed 2> /dev/null); do \
	    printf '\nFailed: %s\n' $${failed%.failed}; tail -n 60 build/steps/$${failed%.failed}; done; \
	! ls build/steps/*.failed > /dev/null 2>&1

build/steps/%:
	@{ $(MAKE) $* || touch $@.failed; } 2>&1 | tee $@

# In two minutes: style, imports, types, and the tests of what differs from a commit, by default of what is not committed.
SINCE ?= HEAD
quick: style imports types
	tests=$$($(BIN)/python tests/helpers/changed.py $(SINCE)); \
	[ -z "$$tests" ] || $(BIN)/python -m pytest --numprocesses=$(PROCESSES) --dist=worksteal $$tests

style: $(VENV)/test-installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

# Chromium and nginx, where they are missing: what apt-get has of them, then Playwright's.
packages: $(VENV)/created
	$(BIN)/python -m benchmarks.shared.programs packages

programs: $(VENV)/test-installed
	$(BIN)/python -m benchmarks.shared.programs

units: $(VENV)/test-installed
	$(BIN)/python -m pytest --ignore=tests/browser --numprocesses=$(PROCESSES) --dist=worksteal

imports: $(VENV)/test-installed
	$(BIN)/lint-imports

types: $(VENV)/test-installed
	$(BIN)/mypy

SAMPLES := $(CURDIR)/build/samples
samples: $(VENV)/test-installed
	rm -rf '$(SAMPLES)'
	mkdir -p '$(SAMPLES)'
	ATTENTION_SIEVE_CACHE='$(SAMPLES)' HF_HUB_OFFLINE=1 OMP_NUM_THREADS=1 $(BIN)/python -m attention_sieve.dashboard.prepare \
	    > '$(SAMPLES).log' 2>&1 || { cat '$(SAMPLES).log'; exit 1; }

# A file's tests run in one process, which starts their server once. (With pytest 9.2, groups of pytest-xdist 3.8 are
# silently ignored.)
pages: $(VENV)/test-installed programs
	$(BIN)/python -m pytest tests/browser --numprocesses=$(PROCESSES) --dist=loadfile

# All but those that put under stress rather than measure, and those that want to be told a folder.
BENCHMARKS := $(filter-out benchmarks/shared/% benchmarks/planted/% $(addprefix benchmarks/, serving/soak.py serving/run_kills.py corpora/corpus_kills.py), \
    $(wildcard benchmarks/*/[a-z]*.py))
bench: $(VENV)/test-installed programs
	for module in $(subst /,.,$(BENCHMARKS:.py=)); do $(BIN)/python -m $$module || exit 1; done

soak: $(VENV)/test-installed
	$(BIN)/python -m benchmarks.serving.soak

pictures: $(VENV)/test-installed programs
	$(BIN)/python -m pytest -q tests/browser/pictures.py

# After a change of requirements.txt. torch and the parts of CUDA are left out.
CUDA := torch triton cuda-bindings cuda-pathfinder cuda-toolkit $(addprefix nvidia-, cublas cuda-cupti cuda-nvrtc \
    cuda-runtime cudnn-cu13 cufft cufile curand cusolver cusparse cusparselt-cu13 nccl-cu13 nvjitlink nvshmem-cu13 nvtx)
lock: $(VENV)/installed
	$(BIN)/python -m pip install --quiet uv
	$(BIN)/uv pip compile requirements.txt --output-file requirements.lock --quiet --universal --python-version 3.11 \
	    --generate-hashes --custom-compile-command 'make lock' $(addprefix --no-emit-package , $(CUDA))

# Where there is a network: known vulnerabilities of what is installed, and the licence of each package.
audit: $(VENV)/installed
	$(BIN)/python -m pip install --quiet pip-audit pip-licenses
	$(BIN)/pip-licenses --format=markdown --order=license
	$(BIN)/pip-audit --requirement requirements.lock --require-hashes --disable-pip

sample-checkpoint: $(VENV)/installed
	$(BIN)/python -m attention_sieve sample-checkpoint

sample-decoder: $(VENV)/installed
	$(BIN)/python -m attention_sieve sample-decoder

sample-tasks: $(VENV)/installed
	$(BIN)/python -m attention_sieve sample-tasks

$(VENV)/created:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed; name it with: make PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)
	@touch $@

# Without --no-compile, pip would compile all 23,000 modules on one core, half of the time that it takes.
PIP_INSTALL := $(BIN)/python -m pip install --disable-pip-version-check --quiet --no-compile

# All packages by their hashes; then torch with what its build needs, of which some machines have another build.
$(VENV)/installed: $(VENV)/created requirements.txt requirements.lock
	$(PIP_INSTALL) --require-hashes --no-deps -r requirements.lock
	$(PIP_INSTALL) -r requirements.txt
	@touch $@

$(VENV)/test-installed: $(VENV)/installed tests/requirements.txt requirements-ray.txt
	$(PIP_INSTALL) -r tests/requirements.txt
	@touch $@

# The tests start many processes at once, of which each would compile what it imports. Some modules are of other versions
# of Python, and are left; so are those that hardly any test imports, two fifths of all.
$(VENV)/compiled: $(VENV)/test-installed
	$(BIN)/python -m compileall -qq -j 0 -x '/(tests?|testing|ray|transformers/models)/' $(VENV)/lib || true
	@touch $@

# Ray, for corpora and trials on several machines.
ray: $(VENV)/installed
	$(PIP_INSTALL) -r requirements-ray.txt

# What the first visit shows, and only what the store does not have in the present version.
prepared: $(VENV)/installed
	$(BIN)/python -m attention_sieve.dashboard.prepare
