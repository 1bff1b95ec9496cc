# Everything a contributor runs. Each target prepares what it needs: `make test` works in a fresh
# clone on a machine that has only Python 3.11 or later.

BIN := .venv/bin
ARGS ?=
WORKERS ?= auto
FUZZ_SECONDS ?= 600
KILLS ?= 200
OPENMSMQ_BACKUP_SECONDS ?= 600
REPETITIONS ?= 20
FAILOVERS ?= 100
POWER_CUTS ?= 50
KILLS_TRANSFER ?= 100
HTTP_KILLS ?= 50
HTTP_MESSAGES ?= 5000
DRIVER_KILLS ?= 20
MANAGER_KILLS ?= 5
HISTORIES ?= 200
TWO_PHASE_KILLS ?= 500
FORMATS ?= parquet,delta,iceberg
EXAMPLES ?= 10000
SEEDS ?= 2000
HOSTILE_SEEDS ?= 20000
REMOTE_SEEDS ?= 20000
REPLICATION_SEEDS ?= 50000
FIRST_SEED ?= 0
SPARK_VERSIONS ?= 4.2.0 4.2.1 4.3.0

.DEFAULT_GOAL := help
.PHONY: archive samba postgres nginx openpgm crash-http chromium mermaid site pictures console-pictures help demo tour spark-crash test test-fast test-spark-versions check lint types contracts format conformance compiled wheel two-phase-crash test-compiled bench floods bench-peers fuzz crash backup-load failover model mutants sim sim-hostile sim-remote sim-replication coverage setup java clean walk

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: setup ## An enterprise of queue managers, a fault, and what Spark makes of it
	$(BIN)/python -m scripts.demo $(ARGS)

pictures: .venv/.installed chromium mermaid ## Look at the report, the console and the site in Chromium: build/*-pictures
	$(BIN)/python -m pytest tests/spark/test_report_pictures.py \
		tests/console/test_console_pictures.py tests/docs/test_site.py $(ARGS)

console-pictures: .venv/.installed chromium ## Make the pictures of the console in docs/guides/console anew
	OPENMSMQ_CONSOLE_PICTURES=docs $(BIN)/python -m pytest tests/console/test_console_pictures.py $(ARGS)

site: .venv/.installed mermaid ## Build the site of the documentation, to be read without a network: build/site
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet $(ARGS)
	@echo "site: build/site/index.html"

tour: .venv/.installed ## Show what one queue manager can do, and two, step by step
	$(BIN)/python -m scripts.tour $(ARGS)

test: setup samba postgres nginx openpgm chromium mermaid archive ## Run all tests (ARGS="-k name" narrows them)
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup $(ARGS)

test-fast: .venv/.installed ## What one runs while editing: no Spark, Samba, processes that are killed; fewer examples
	OPENMSMQ_MODEL_EXAMPLES=20 $(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup \
		--hypothesis-profile=fast -m "not slow and not spark and not directory" \
		tests/unit tests/property tests/transfer tests/cli tests/contracts tests/test_*.py $(ARGS)

# What says the same of either core (planted defects, what a command refuses) is left to `make test`;
# a compiled function cannot be exchanged for a defective one anyway.
# Of `api` and `runtime` those run that import a compiled module: tests/test_compiled.py knows them.
test-compiled: compiled ## Run the tests of the core and of servers with the compiled core
	PYTHONPATH=build/compiled $(BIN)/python -m pytest -n $(WORKERS) \
		-o pythonpath="build/compiled ." -k "not planted_defect" tests/contracts tests/property \
		tests/runtime/test_transfer_processes.py tests/runtime/test_telemetry.py \
		tests/runtime/test_transfer_hostile.py tests/runtime/test_store_crash.py \
		tests/scenarios tests/transfer tests/unit/manager tests/unit/protocol tests/unit/storage \
		tests/unit/api/test_framing.py tests/unit/runtime/test_turn_file.py \
		tests/unit/runtime/api/test_outflow.py tests/unit/runtime/telemetry \
		tests/unit/runtime/active_directory/test_resolving.py \
		tests/unit/runtime/api/test_accounts.py tests/unit/runtime/rpc/test_elsewhere.py \
		tests/unit/runtime/rpc/test_desk.py tests/unit/runtime/rpc/test_connection.py \
		tests/unit/runtime/test_server.py tests/unit/runtime/test_start_errors.py \
		tests/unit/remote/test_elsewhere.py tests/unit/wire/rpc \
		tests/unit/runtime/multicast tests/unit/runtime/http $(ARGS)

test-spark-versions: $(SPARK_VERSIONS:%=test-spark-%) ## Run the tests of reading, streaming and writing with each Spark we promise

test-spark-%: setup
	scripts/test-spark $* $(ARGS)

check: lint types contracts test ## Run everything that must pass before a change goes in

lint: .venv/.installed ## Check style and formatting
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: .venv/.installed ## Check types
	$(BIN)/mypy

contracts: .venv/.installed ## Check which package may import which
	$(BIN)/lint-imports --no-logo --no-cache

format: .venv/.installed ## Format the code and fix what can be fixed
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

walk: .venv/.installed ## Walk one message through the running code (ARGS=--files lists the way)
	$(BIN)/python -m scripts.walk $(ARGS)

conformance: .venv/.installed ## Count the statements of the specifications that tests show (ARGS=--sections)
	$(BIN)/python -m tests.conformance.report $(ARGS)

compiled: .venv/.installed ## Compile the core, as wheels have it, into build/compiled
	@scripts/ensure-compiler
	$(BIN)/python scripts/compile_core.py

wheel: compiled ## Build a wheel for this platform with the compiled core, into dist
	OPENMSMQ_COMPILE=1 $(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir dist .

bench: compiled ## Measure speed, as ratios within one run, with the compiled core
	PYTHONPATH=build/compiled:. $(BIN)/python -m bench $(ARGS)

floods: compiled ## Flood a queue manager of 64 MiB quota and 300 MiB memory, and see what is left for honest peers
	PYTHONPATH=build/compiled:. $(BIN)/python -m bench floods $(ARGS)

bench-peers: .venv/.installed ## Install the brokers that bench compares with
	scripts/apt-install rabbitmq-server redis-server
	scripts/setup dev,bench

fuzz: .venv/.installed-fuzz ## Feed the decoders bad bytes for FUZZ_SECONDS (600)
	$(BIN)/python tests/fuzz/run.py --seconds $(FUZZ_SECONDS) $(ARGS)

crash: .venv/.installed ## Kill a queue manager under load KILLS (200) times, cut its power POWER_CUTS (50) times
	OPENMSMQ_KILLS=$(KILLS) OPENMSMQ_POWER_CUTS=$(POWER_CUTS) \
		OPENMSMQ_TRANSFER_KILLS=$(KILLS_TRANSFER) \
		$(BIN)/python -m pytest tests/crash tests/runtime/test_store_crash.py $(ARGS)

crash-http: .venv/.installed nginx ## Kill queue managers HTTP_KILLS (50) times while HTTP_MESSAGES (5000) go over HTTPS and nginx
	OPENMSMQ_HTTP_KILLS=$(HTTP_KILLS) OPENMSMQ_HTTP_MESSAGES=$(HTTP_MESSAGES) \
		$(BIN)/python -m pytest tests/crash/test_http_crash.py -s -o timeout=0 $(ARGS)

backup-load: .venv/.installed ## Back a queue manager up under load REPETITIONS (20) times in OPENMSMQ_BACKUP_SECONDS (600)
	OPENMSMQ_BACKUP_SECONDS=$(OPENMSMQ_BACKUP_SECONDS) OPENMSMQ_BACKUP_REPETITIONS=$(REPETITIONS) \
		$(BIN)/python -m pytest tests/crash/test_backups.py -s -o timeout=0 $(ARGS)

failover: postgres .venv/.installed ## Kill, stop and cut off the primary of a pair FAILOVERS (100) times under load
	FAILOVERS=$(FAILOVERS) $(BIN)/python -m pytest tests/failover/test_failover.py -s -o timeout=0 $(ARGS)

spark-crash: setup ## Kill Spark's driver DRIVER_KILLS (20) times and the queue manager MANAGER_KILLS (5) times; play HISTORIES (200)
	OPENMSMQ_DRIVER_KILLS=$(DRIVER_KILLS) OPENMSMQ_MANAGER_KILLS=$(MANAGER_KILLS) \
		OPENMSMQ_HISTORIES=$(HISTORIES) OPENMSMQ_FORMATS=$(FORMATS) \
		$(BIN)/python -m pytest tests/spark/test_exactly_once.py tests/spark/test_histories.py -s -o timeout=0 $(ARGS)

two-phase-crash: .venv/.installed postgres ## Kill program, queue manager or database TWO_PHASE_KILLS (500) times in the middle of two-phase commits
	OPENMSMQ_TWO_PHASE_KILLS=$(TWO_PHASE_KILLS) $(BIN)/python -m pytest tests/xa/test_kills.py -s -o timeout=0 $(ARGS)

model: .venv/.installed ## Compare the queue manager with a simple model, EXAMPLES (10000) times
	OPENMSMQ_MODEL_EXAMPLES=$(EXAMPLES) $(BIN)/python -m pytest tests/property -n $(WORKERS) \
		-o timeout=0 $(ARGS)

mutants: .venv/.installed ## Plant every known defect into the core and see the simulator notice each
	$(BIN)/python -m pytest -n $(WORKERS) tests/sim/test_mutants.py $(ARGS)

sim: .venv/.installed ## Run SEEDS (2000) simulated enterprises from FIRST_SEED (0) on all cores
	$(BIN)/openmsmq sim run --first-seed $(FIRST_SEED) --seeds $(SEEDS) $(ARGS)

sim-hostile: compiled ## The same beside an adversary that forges any packet, HOSTILE_SEEDS (20000) in all modes
	PYTHONPATH=build/compiled $(BIN)/openmsmq sim run --hostile --first-seed $(FIRST_SEED) --seeds $(HOSTILE_SEEDS) $(ARGS)

sim-remote: compiled ## The same with readers on other computers that die, give up and come too late, REMOTE_SEEDS (20000)
	PYTHONPATH=build/compiled $(BIN)/openmsmq sim run --remote-readers --first-seed $(FIRST_SEED) --seeds $(REMOTE_SEEDS) $(ARGS)

sim-replication: compiled ## One queue manager on several computers and two databases, REPLICATION_SEEDS (50000)
	PYTHONPATH=build/compiled $(BIN)/openmsmq sim replication --first-seed $(FIRST_SEED) --seeds $(REPLICATION_SEEDS) $(ARGS)

coverage: .venv/.installed ## Measure branch coverage: all of the core, most of the rest
	$(BIN)/coverage run -m pytest $(ARGS)
	$(BIN)/coverage report --fail-under=90
	$(BIN)/coverage report --fail-under=100 --include='src/openmsmq/model/*,src/openmsmq/wire/*'

setup: .venv/.installed java ## Prepare the virtual environment and Java

samba:
	@scripts/ensure-samba

postgres:
	@scripts/ensure-postgres

nginx:
	@scripts/ensure-nginx

openpgm:
	@scripts/ensure-openpgm

java:
	@scripts/ensure-java

chromium:
	@scripts/ensure-chromium
	@scripts/ensure-axe

mermaid:
	@scripts/ensure-mermaid

# Spark starts in less than half of the time with it; nothing needs it.
archive: setup
	@$(BIN)/python scripts/archive_java.py

.venv/.installed: pyproject.toml constraints.txt scripts/setup
	scripts/setup dev
	@touch $@

.venv/.installed-fuzz: .venv/.installed
	scripts/setup dev,fuzz
	@touch $@

clean: ## Remove the virtual environment and everything else that is generated
	rm -rf .venv dist build htmlcov .coverage .coverage.* .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find src tests bench scripts -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true
