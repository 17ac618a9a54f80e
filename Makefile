# Every target does its own set-up and is quick the second time. Settings: QUERENT_CACHE (downloads),
# QUERENT_TARGET_DIR (compiled code; outside the checkout, so that clones share it). Debug builds name the whole
# workspace, since `-p` resolves other features and would compile the dependencies a second time.

SHELL := /bin/bash
export QUERENT_CACHE ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/querent
export QUERENT_TARGET_DIR ?= $(QUERENT_CACHE)/target
export QUERENT_MODELS_DIR ?= $(QUERENT_CACHE)/models
export QUERENT_PYTHON ?= $(QUERENT_CACHE)/venv/bin/python
export QUERENT_NODE ?= $(QUERENT_CACHE)/node
# The protocols' published pages, which are not part of the repository; tests of their examples are ignored without them.
export QUERENT_REFERENCE ?= $(wildcard $(abspath ../shared/reference))
export CARGO_TARGET_DIR := $(QUERENT_TARGET_DIR)
export PATH := $(PATH):$(HOME)/.cargo/bin
setup := ./scripts/setup.sh

.PHONY: console console-bars store-scan typescript-client help demo demo-cluster test test-llm record bench eval fuzz crash run-kills cluster-crash simulate soak bars io-faults sql-oracles table-changes policy-properties damaged-inputs kql-diff clients formatting docs lint timings serve build pgo wheel deb

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-17s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: ## ask a question of real data, from nothing: import, serve, ask, check; SERVE=1 leaves the console open
	@./scripts/demo.sh $(if $(SERVE),--serve)

demo-cluster: ## a coordinator and two workers on this machine: queries over the flights, compared with one server's
	@./scripts/demo_cluster.sh

test: ## all tests, from nothing
	@$(setup) system postgres data embed static clients s3 checks
	cargo test --workspace --no-fail-fast

test-llm: ## the agent cases against the live small model
	@$(setup) system embed clients llm
	QUERENT_TEST_LLM=live cargo test --workspace --test it -- models::cases --nocapture --test-threads=1

record: ## record the small model's streams again, after a change of the prompt
	@$(setup) system embed clients llm
	QUERENT_TEST_LLM=record cargo test --workspace --test it -- models::cases --nocapture --test-threads=1

bench: ## benchmarks in a release build; CELL=engine|tpch|clickbench|joins|memory|startup|agent|catalog|index|recall|vectors|kql|graph|sse|flight|import|cluster for one; ALLOCATOR=jemalloc|snmalloc PEERS=polars,chdb,datafusion, of a cluster ballista
	@$(setup) system embed static bench questions $(if $(or $(PEERS),$(QUERENT_BENCH_PEERS)),peers)
	QUERENT_BENCH_PEERS=$(or $(PEERS),$(QUERENT_BENCH_PEERS)) cargo run --release -p querent-benches $(if $(ALLOCATOR),--features $(ALLOCATOR)) -- $(if $(CELL),run $(CELL),all)

store-scan: ## the first scan of a table in an object store with the disk's cache warm, against local files; ROWS=2000000
	@$(setup) system clients s3
	cargo build --release -p querent-flight --bin querent --features mimalloc
	QUERENT_BINARY=$(QUERENT_TARGET_DIR)/release/querent $(QUERENT_PYTHON) benches/store_scan.py --rows $(or $(ROWS),2000000)

eval: ## questions put to a model and judged by their rows; MODEL=name of an Ollama model, QUESTIONS=200, SETS=spider,flights,logs,unanswerable,unanswerable-spider FORM=types=off,joins=clauses
	MODEL=$(MODEL) QUERENT_EVAL_QUESTIONS=$(or $(QUESTIONS),200) QUERENT_EVAL_SETS=$(SETS) QUERENT_EVAL_FORM=$(FORM) ./scripts/eval.sh

fuzz: ## fuzz for an hour (FUZZ_SECONDS); TARGET=kql_parse|sql_authorize|kql_plan|http_bodies|imported_files|flight_calls; needs a nightly compiler and cargo-fuzz
	@cargo +nightly fuzz --version >/dev/null 2>&1 || { echo "please install: rustup toolchain install nightly; cargo install cargo-fuzz"; exit 1; }
	cd fuzz && cargo +nightly fuzz run $(if $(filter-out kql_parse,$(TARGET)),--features server) $(or $(TARGET),kql_parse) -- \
		-max_total_time=$(or $(FUZZ_SECONDS),3600) -dict=kql.dict -timeout=$(if $(filter-out kql_parse,$(TARGET)),60,5)

damaged-inputs: ## the same checks without a fuzzer, on damaged copies of the tests' own inputs; TIMES=100
	@$(setup) system
	QUERENT_DAMAGED_INPUTS=$(or $(TIMES),100) cargo test --workspace --test it -- damaged_inputs:: --nocapture

crash: ## kill a server in the middle of everything, over and over, and look what became of it; KILLS=500
	@$(setup) system clients
	cargo build --workspace --bin querent
	QUERENT_BINARY=$(QUERENT_TARGET_DIR)/debug/querent $(QUERENT_PYTHON) tests/faults/crash.py --kills $(or $(KILLS),500)

run-kills: ## kill a server in the middle of the agent's runs, in every protocol, and read them back; KILLS=100
	@$(setup) system clients
	cargo build --workspace --bin querent
	QUERENT_BINARY=$(QUERENT_TARGET_DIR)/debug/querent $(QUERENT_PYTHON) tests/faults/run_kills.py --kills $(or $(KILLS),100)

cluster-crash: ## kill a worker in the middle of queries, over and over, and look what its coordinator answers; KILLS=100
	@$(setup) system clients
	cargo build --workspace --bin querent
	QUERENT_BINARY=$(QUERENT_TARGET_DIR)/debug/querent $(QUERENT_PYTHON) tests/faults/cluster_crash.py --kills $(or $(KILLS),100)

simulate: ## what servers that share a catalog agree on, simulated with its faults; SEEDS=100000; SEED=7 for one, with what happened in it
	@$(setup) system
	QUERENT_SIM_SEEDS=$(or $(SEEDS),100000) $(if $(SEED),QUERENT_SIM_SEED=$(SEED)) cargo test --workspace --lib -- store::simulation --nocapture

soak: ## keep a server busy with everything at once for half an hour (SOAK_SECONDS), and look whether it grows
	@$(setup) system clients
	cargo build --workspace --bin querent
	QUERENT_BINARY=$(QUERENT_TARGET_DIR)/debug/querent $(QUERENT_PYTHON) tests/faults/soak.py --seconds $(or $(SOAK_SECONDS),1800)

bars: ## a server beyond its bounds: goodput, neighbours, clients that go, runs out of time; BAR=overload|neighbour|drops|budget for one
	@$(setup) system clients
	cargo build --workspace --bin querent
	QUERENT_BINARY=$(QUERENT_TARGET_DIR)/debug/querent $(QUERENT_PYTHON) tests/faults/bars.py $(or $(BAR),all)

io-faults: ## full and read-only disks, torn files, cut connections; ONLY=disk,readonly,limit,torn,cuts
	@$(setup) system clients
	cargo build --workspace --bin querent
	QUERENT_BINARY=$(QUERENT_TARGET_DIR)/debug/querent $(QUERENT_PYTHON) tests/faults/io_faults.py $(if $(ONLY),--only $(ONLY))

sql-oracles: ## random SQL against DuckDB's answers, and against itself asked in another way; CASES=2000 SEED=1 ONLY=forms,changed
	@$(setup) system clients
	cargo build --workspace --bin querent
	QUERENT_BINARY=$(QUERENT_TARGET_DIR)/debug/querent $(QUERENT_PYTHON) tests/faults/sql_oracles.py --cases $(or $(CASES),2000) --seed $(or $(SEED),1) $(if $(ONLY),--only $(ONLY))

table-changes: ## random statements that make and change tables against DuckDB's, also in its lake; SEQUENCES=100 STEPS=60 SEED=1
	@$(setup) system clients
	cargo build --workspace --bin querent
	QUERENT_BINARY=$(QUERENT_TARGET_DIR)/debug/querent $(QUERENT_PYTHON) tests/faults/table_changes.py --lake --sequences $(or $(SEQUENCES),100) --steps $(or $(STEPS),60) --seed $(or $(SEED),1)

policy-properties: ## a caller's answers against those over what it sees, of many random policies; CASES=100000 SEED=0
	@$(setup) system
	QUERENT_POLICY_CASES=$(or $(CASES),100000) QUERENT_POLICY_SEED=$(or $(SEED),0) cargo test --workspace --test it -- policies::property --nocapture

kql-diff: ## write the page of Kusto's functions; needs the folder of KQL cases (QUERENT_KQL_CASES)
	QUERENT_WRITE_KQL_DIFF=1 cargo test --workspace --lib -- tests::inventory

clients: ## the newest version of each client library, tested, and larger suites of them; writes docs/clients.md; SUITES=1 for the suites only
	@$(setup) system data embed static clients
	cargo build --workspace --bin querent
	python3 scripts/clients.py $(if $(SUITES),--suites)

formatting:
	cargo fmt --all --check

docs:
	RUSTDOC=$(CURDIR)/scripts/rustdoc.sh cargo test --workspace --doc

lint: ## formatting, lints and docs
	@$(setup) system
	@$(MAKE) --no-print-directory formatting
	cargo clippy --workspace --all-targets -- -D warnings
	RUSTDOCFLAGS='-D warnings' cargo doc --workspace --no-deps --quiet

timings: ## what a debug build of the binary costs, unit by unit: a page in the target folder's cargo-timings
	@$(setup) system
	cargo build --workspace --bin querent --timings

serve: ## a server on ./querent-data
	@$(setup) system embed
	QUERENT_EMBED_MODEL_PATH=$${QUERENT_EMBED_MODEL_PATH:-$(QUERENT_MODELS_DIR)/all-minilm-l6-v2} \
	ORT_DYLIB_PATH=$${ORT_DYLIB_PATH:-$(QUERENT_MODELS_DIR)/ort/libonnxruntime.so} \
	cargo run --bin querent -- serve

console-bars: ## the console in Chromium against its bars: first paint, scripts, a million rows, words of an answer; TIMES=1
	@$(setup) system data embed clients
	QUERENT_CONSOLE_TIMES=$(or $(TIMES),1) QUERENT_TOKEN_BAR=$$((50 * $(or $(TIMES),1))) cargo test --workspace --test it -- \
		console::words console::the_console_is_there --nocapture --test-threads=1

console: ## the console's files from their sources, flight/console/dist; needs Node.js 20 and npm
	cd flight/console && npm ci --no-audit --no-fund && npm run build

typescript-client: ## the client package of the HTTP routes, clients/typescript, of the server's OpenAPI document
	@$(setup) system clients
	QUERENT_WRITE_CLIENT=1 cargo test --workspace --test it -- clients::the_generated_client

build: ## the released binary: full optimisation, mimalloc
	@$(setup) system
	cargo build --release -p querent-flight --bin querent --features mimalloc
	@echo "built $(QUERENT_TARGET_DIR)/release/querent"

pgo: ## the released binary, optimised by counts of the suites' queries: two builds, in a target folder of their own
	@$(setup) system bench
	@./scripts/pgo.sh

wheel: ## the Python wheel, installed and asked in a new environment; WHEEL_PROFILE=dev uses the debug build
	@$(setup) system
	@./scripts/wheel.sh $(QUERENT_TARGET_DIR)/wheels

deb: build ## the Debian package of the released binary
	@./scripts/deb.sh $(QUERENT_TARGET_DIR)/release/querent $(QUERENT_TARGET_DIR)/debian
