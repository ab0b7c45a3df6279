# `make help` lists the targets. Everything runs in .venv, which `make setup` creates.
SHELL := /bin/bash
BIN := .venv/bin
PYTEST := $(BIN)/python -m pytest
# A Spark session keeps one core busy: two files at a time, each file in one process.
# In the order of their names, the files that take minutes come before those of the unit tests, which
# fill the rest of both workers' time; xdist would begin with the files of the most tests.
SIDE_BY_SIDE := -n 2 --dist loadfile --no-loadscope-reorder
COMPILE_FOR := $(BIN)/uv --quiet --no-config pip compile --generate-hashes \
	--custom-compile-command "make lock" --python-version
COMPILE := $(COMPILE_FOR) 3.11

PEER_JARS := $(foreach peer,delta hudi,benchmarks/jars/$(peer)/.fetched)
FLINK := benchmarks/jars/flink/.fetched
DLT := build/venvs/dlt/.installed
SITE := build/venvs/site/.installed site/node_modules/.package-lock.json

SEEDS ?= 200
SEED ?= 0
SIZE ?= short

.DEFAULT_GOAL := help
.PHONY: help setup wheel hudi-jars trino-jars trino-iceberg-jars demo plugins connectors synth nist test test-unit test-spark test-local test-slow test-firehose test-model \
	test-mutations test-faults prove bench bench-full check audit format record record-requests docs site recording lock clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: ## Install Python packages (.venv/) and jars (jars/), all locked; a no-op if up to date
	@./scripts/setup.sh

# A module that is gone would stay in build/lib, and get into the wheel. The Dockerfile takes the one wheel that is there.
wheel: setup ## Build the wheel (dist/), which is used without this repository and without Maven
	@rm -rf build/lib dist/cdclake-*.whl
	@$(BIN)/python -m pip wheel --quiet --no-deps --no-index --no-build-isolation --wheel-dir dist .

hudi-jars: setup ## Fetch Hudi's jars (jars/hudi/, 120 MB), which pipelines with `publish:` and their tests need
	@$(BIN)/python -m scripts.fetch_jars --optional hudi

trino-jars: setup ## Fetch a bare Trino (jars/trino/, 80 MB): tests run Athena's SQL in it
	@$(BIN)/python -m scripts.fetch_jars --optional trino

trino-iceberg-jars: trino-jars ## Fetch Trino's plugin for Iceberg (jars/trino-iceberg/, 280 MB): `verify --reader trino` and `make prove` read lakes with it
	@$(BIN)/python -m scripts.fetch_jars --optional trino-iceberg

demo: setup ## Stream a demo shop into a temporary lake and verify it row by row
	@$(BIN)/cdclake demo

plugins: setup ## Fetch and pack the deployment's packages, all locked; after that and `npm ci`, `npx cdk synth` works offline
	@$(BIN)/python -m scripts.plugins

connectors: setup ## Fetch the built-in plugins of `connectors:` (the Iceberg sink, 150 MB), all locked
	@$(BIN)/python -m scripts.fetch_jars --optional iceberg-sink

synth: plugins connectors node_modules/.package-lock.json ## Write the deployment's templates (cdk.out/) and test them, without an account
	@npx --no-install cdk synth --quiet
	@$(PYTEST) tests/synth

nist: plugins ## Report NIST 800-53 findings of the deployment beyond the gate; always succeeds
	@$(BIN)/python -m scripts.nist_report

# The CDK CLI in the version of package-lock.json; npm updates this file at each installation.
node_modules/.package-lock.json: package-lock.json
	@npm ci --no-audit --no-fund --silent

test: plugins connectors ## Run the default tests: unit, spark and the shorter ones of real local lakes
	@$(PYTEST) $(SIDE_BY_SIDE) -m "not slow and not model and not synth"

test-unit: plugins connectors ## Run the tests that need neither Spark nor a lake
	@$(PYTEST) -m "not spark and not local and not slow and not model and not synth"

test-spark: setup ## Run the tests that need a Spark session
	@$(PYTEST) $(SIDE_BY_SIDE) -m "spark and not slow"

test-local: connectors ## Run the tests on the real local lake, without the slow ones
	@$(PYTEST) -m "local and not slow"

test-slow: connectors ## Run the slow tests, most of them on the real local lake
	@$(PYTEST) -m slow

test-firehose: setup ## Run the recorded events through the local Firehose with injected faults, 100 seeds
	@$(PYTEST) -n 2 -m slow tests/spark/test_firehose_log.py

test-mutations: trino-jars ## Run mutation tests: break the engine on purpose and check that tests fail
	@$(BIN)/python -m tests.mutations.run

test-model: setup ## Run random histories on the real local lake: SEEDS=200 of them, starting with SEED=0
	@CDCLAKE_MODEL_SEEDS=$(SEEDS) CDCLAKE_MODEL_SEED=$(SEED) \
		$(PYTEST) -m model -o log_cli=true -o log_cli_level=INFO

test-faults: setup ## Inject faults into the real local lake; ONLY=F1,F25 for some, SEED=0
	@$(BIN)/python -m tests.faults.run --only "$(ONLY)" --seed $(SEED)

prove: connectors hudi-jars trino-iceberg-jars $(FLINK) ## Run what CI leaves out, in parts that can be interrupted: PART=model, ONLY=name; without PART lists them
	@$(BIN)/python -m tests.proofs.run $(PART) --only "$(ONLY)"

bench: setup $(if $(filter-out buffering views,$(or $(ONLY),all)),$(PEER_JARS)) $(if $(filter P5 full tiny,$(or $(ONLY),$(SIZE))),$(DLT)) $(if $(filter N10 N10a full tiny,$(or $(ONLY),$(SIZE))),$(FLINK)) ## Run a short benchmark, some minutes; ONLY="N1a N7a" for some measures, SIZE=full for results, MINUTES=25 to go on later
	@$(BIN)/python -m benchmarks.run $(SIZE) $(ONLY) $(if $(MINUTES),--minutes $(MINUTES))

bench-full: setup $(PEER_JARS) $(DLT) $(FLINK) ## Run all benchmarks but buffering and views, and write docs/benchmarks.md; needs an idle machine
	@$(BIN)/python -m benchmarks.run full
	@$(BIN)/python -m benchmarks.profile
	@$(BIN)/python -m benchmarks.page

benchmarks/jars/%/.fetched: benchmarks/pom.xml
	@rm -rf $(@D)
	@mvn -B -C -q -f benchmarks/pom.xml -P $* dependency:copy-dependencies \
		-DincludeScope=runtime -DoutputDirectory=$(CURDIR)/$(@D)
	@touch $@

build/venvs/site/.installed: site/requirements.txt
$(DLT): benchmarks/peers/dlt.txt
build/venvs/%/.installed: | setup
	@$(BIN)/python -m venv --clear --without-pip $(@D)
	@VIRTUAL_ENV=$(CURDIR)/$(@D) $(BIN)/uv --quiet --no-config --system-certs pip sync \
		--require-hashes --only-binary :all: $<
	@touch $@

check: setup ## Lint, check the formatting and the types
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

audit: setup ## Ask osv.dev for known vulnerabilities of all locked packages and jars; needs the internet
	@$(BIN)/python -m scripts.audit

format: setup ## Format the Python files
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

record: setup ## Record Debezium's events for tests/recorded/*.sql again; `make record NAMES=types` for one file
	@$(BIN)/python -m tests.recorded.record $(NAMES)

record-requests: hudi-jars ## Record what jobs and functions ask of AWS, for the synth tests; 8 minutes
	@$(BIN)/python -m tests.recorded_requests.record
	@$(BIN)/python -m tests.recorded_requests.record_functions

docs: plugins ## Regenerate the pages that are generated from the code
	@$(BIN)/python -m scripts.types_page
	@$(BIN)/python -m scripts.reading_page
	@$(BIN)/python -m scripts.ways_page
	@$(BIN)/python -m scripts.buffering_page
	@$(BIN)/python -m scripts.jobs_page
	@$(BIN)/python -m scripts.reference_pages
	@$(BIN)/python -m scripts.stacks_diagram
	@$(BIN)/python -m scripts.cost_page
	@$(BIN)/python -m benchmarks.page
	@$(BIN)/python -m scripts.llms_page
	@$(BIN)/python -m tests.proofs.page
	@$(BIN)/python -m tests.recorded_requests.page

site: setup $(SITE) ## Build the docs' site (build/site/html/): strict, with a search that needs no network
	@$(BIN)/python -m scripts.build_site

recording: setup build/venvs/site/.installed ## Record the demo on a terminal as docs/demo.cast, which the site plays; 2 minutes
	@build/venvs/site/bin/python -m scripts.record_demo

site/node_modules/.package-lock.json: site/package-lock.json
	@npm ci --prefix site --no-audit --no-fund --silent

lock: setup ## Update the locked requirements and jars; `make lock UPGRADE=--upgrade` allows newer versions
	@$(BIN)/python -m scripts.fetch_jars --lock
	@$(COMPILE) $(UPGRADE) --group pyproject.toml:bootstrap -o requirements.bootstrap.txt
	@$(COMPILE) $(UPGRADE) --extra dev pyproject.toml -o requirements.lock
	@$(COMPILE) $(UPGRADE) -c requirements.lock requirements.in -o requirements.txt
	@$(COMPILE_FOR) 3.14 $(UPGRADE) --python-platform aarch64-manylinux_2_28 \
		--only-binary :all: lambda/prepare_source/requirements.in \
		-o lambda/prepare_source/requirements.txt
	@$(COMPILE) $(UPGRADE) -c requirements.lock --python-platform x86_64-manylinux_2_28 \
		--only-binary :all: glue_jobs/requirements.in -o glue_jobs/requirements.txt
	@$(COMPILE) $(UPGRADE) --only-binary :all: benchmarks/peers/dlt.in -o benchmarks/peers/dlt.txt
	@$(COMPILE) $(UPGRADE) --only-binary :all: site/requirements.in -o site/requirements.txt

clean: ## Remove everything built and installed, but never the lake (.cdclake, `cdclake down --purge`)
	@rm -rf .venv jars benchmarks/jars node_modules site/node_modules build dist cdk.out *.egg-info
	@rm -rf .pytest_cache .mypy_cache .ruff_cache .hypothesis
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
