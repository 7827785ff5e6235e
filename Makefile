# Every target makes the virtual environment and installs what it needs by itself.
VENV := .venv
PY := $(VENV)/bin/python
BENCH := .venv-bench
# The frameworks with an adapter: an environment, a requirements file and a folder of tests each.
ADAPTERS := langgraph langchain openai_agents google_adk mcp pydantic_ai agent_framework
# Those whose own tests are run too: they come with the source distribution only.
SUITES := langgraph openai_agents
SUITES_LONG := langgraph langgraph_engine
STAMP := $(VENV)/.installed
# The demo needs much less than the tests; where these are installed, it uses what is there.
RUN := $(if $(wildcard $(STAMP)),$(VENV),.venv-run)

# The engines that the contract suite runs on, and three processes, since fault tests mostly wait.
ENGINES := holdfast.testing.inmemory:InMemoryHarness tests.engines.postgres:PostgresHarness \
	tests.engines.redis:RedisHarness tests.engines.hybrid:HybridHarness \
	tests.engines.objects:DiskHarness
# The same engines in other versions, through other connections, and those of single contracts.
ENGINES_ALL := $(ENGINES) tests.engines.owned:OwnedHarness \
	tests.engines.postgres:Postgres16Harness tests.engines.postgres:BorrowedPoolHarness \
	tests.engines.redis:RedisClusterHarness \
	tests.engines.hybrid:HybridClusterHarness tests.engines.objects:S3Harness \
	tests.engines.objects:S3PostgresHarness tests.engines.age:AgeHarness \
	tests.engines.sealed:SealedInMemoryHarness tests.engines.sealed:SealedPostgresHarness
# The hybrid with everything flushed, cold, or committed before each call: only in the long run.
ENGINES_LONG := $(ENGINES_ALL) tests.engines.hybrid:FlushedHybridHarness tests.engines.hybrid:ColdHybridHarness \
	tests.engines.hybrid:CommittedHybridHarness
PYTEST := $(PY) -m pytest -n 3 --dist worksteal
# Python compiles what is imported; to compile all that is installed takes longer.
INSTALL := install --quiet --disable-pip-version-check --no-compile

.PHONY: setup run site test test-all test-rest test-frameworks test-adapters test-citus test-suites test-peers test-long check bench bench-publish lock docs clean

$(STAMP): requirements/dev.txt pyproject.toml
	@test -x $(PY) || python3 -m venv $(VENV)
	$(PY) -m pip $(INSTALL) --require-hashes -r requirements/dev.txt
	$(PY) -m pip $(INSTALL) --no-deps --no-build-isolation -e .
	@touch $@

setup: $(STAMP)  ## make the virtual environment

.venv-run/.installed: requirements/demo.txt pyproject.toml
	@test -x .venv-run/bin/python || python3 -m venv .venv-run
	.venv-run/bin/python -m pip $(INSTALL) --require-hashes -r requirements/demo.txt
	.venv-run/bin/python -m pip $(INSTALL) --no-deps --no-build-isolation -e .
	@touch $@

run: $(RUN)/.installed  ## the demo: an agent that survives kill -9 (a tour of every contract: examples/tour.py)
	$(RUN)/bin/holdfast demo

test: $(STAMP)  ## every promise on the five main engines, in a few minutes
	$(PYTEST) $(ENGINES:%=--engine %) --machine-steps=100 --fast

test-all: $(STAMP) test-frameworks  ## all tests: every engine, hostile input, faults, mutants, benchmarks, docs
	$(PYTEST) $(ENGINES_ALL:%=--engine %)

test-rest: $(STAMP) test-frameworks  ## what `make test-all` runs beyond `make test`; both together are all tests
	$(PYTEST) $(ENGINES_ALL:%=--engine %) $(ENGINES:%=--tested %)

.venv-%/.installed: requirements/%.txt pyproject.toml | $(STAMP)
	@test -x .venv-$*/bin/python || python3 -m venv --without-pip .venv-$*
	$(PY) -m pip --python .venv-$*/bin/python $(INSTALL) --require-hashes -r requirements/$*.txt
	$(PY) -m pip --python .venv-$*/bin/python $(INSTALL) --no-deps --no-build-isolation -e .
	@touch $@

build/suites/%/.fetched: requirements/%-suite.txt .venv-%/.installed
	@rm -rf $(@D) && mkdir -p $(@D)
	$(PY) -m pip --python .venv-$*/bin/python download --quiet --disable-pip-version-check --require-hashes --no-deps --no-binary :all: --no-build-isolation -r requirements/$*-suite.txt -d $(@D)
	tar xzf $(@D)/*.tar.gz -C $(@D) --strip-components 1 --wildcards '*/tests' '*/pyproject.toml'
	@touch $@

test-frameworks: $(STAMP)  ## the adapters and their peers, two environments at a time
	$(MAKE) -j 2 --output-sync $(ADAPTERS:%=test-adapter-%) test-peers

test-adapters: $(STAMP)  ## the adapters, each with its framework in an environment of its own
	$(MAKE) -j 2 --output-sync $(ADAPTERS:%=test-adapter-%)

test-adapter-%: .venv-%/.installed
	.venv-$*/bin/python -m pytest tests/adapters/$*

$(SUITES:%=test-adapter-%): test-adapter-%: build/suites/%/.fetched

# Not only steps on the way: an environment is made once.
.PRECIOUS: .venv-%/.installed build/suites/%/.fetched

test-peers: $(BENCH)/.installed  ## the adapters beside the frameworks' own stores, untimed
	$(BENCH)/bin/python -m pytest tests/bench/test_adapter_peers.py

test-citus: $(STAMP)  ## the contract suite on the cluster that HOLDFAST_CITUS_URL names; not part of test-all
	$(PY) -m pytest src/holdfast/testing tests/engines/test_postgres_distribution.py --engine tests.engines.citus:CitusHarness --fast $(ARGS)

test-suites: $(STAMP) $(SUITES_LONG:%=build/suites/%/.fetched)  ## the frameworks' own tests on the adapters; figures: docs/reference/framework-suites.json
	$(PY) scripts/framework_suites.py

test-long: $(STAMP) test-suites  ## the same with ten times the Hypothesis steps and the long fault runs
	$(PYTEST) $(ENGINES_LONG:%=--engine %) --machine-steps=10000 --long

check: $(STAMP)  ## linters and types
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/ruff check .
	$(VENV)/bin/mypy
	$(VENV)/bin/lint-imports
	$(MAKE) -s site

site: $(STAMP)  ## the documentation as a site, with its links checked: build/site/index.html
	$(VENV)/bin/zensical build -f mkdocs.yml
	PYTHONPATH=. $(PY) scripts/site_links.py build/site

$(BENCH)/.installed: requirements/peers.txt pyproject.toml | $(STAMP)
	@test -x $(BENCH)/bin/python || python3 -m venv --without-pip $(BENCH)
	@# Also as constraints: pip 23.2 does not apply the pin of a package to its extras.
	$(PY) -m pip --python $(BENCH)/bin/python $(INSTALL) --require-hashes -r requirements/peers.txt -c requirements/peers.txt
	$(PY) -m pip --python $(BENCH)/bin/python $(INSTALL) --no-deps --no-build-isolation -e .
	@touch $@

bench: $(BENCH)/.installed  ## every benchmark, beside the peers: build/bench/index.html (QUICK=1, DATA=folder)
	$(BENCH)/bin/holdfast bench all --report build/bench $(if $(QUICK),--quick) $(if $(DATA),--data $(DATA))

bench-publish: bench $(STAMP)  ## the same, and put its figures and charts into README and docs (GROWTH=1)
	$(if $(GROWTH),$(BENCH)/bin/holdfast bench growth --report build/bench)
	cp build/bench/*.json build/bench/*.png docs/benchmarks/
	PYTHONPATH=. $(PY) scripts/generate_docs.py

lock: ## pin requirements/*.txt again, with hashes and without an index address (needs uv)
	cd requirements && uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-annotate --no-header runtime.in -o runtime.txt
	cd requirements && uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-annotate --no-header dev.in -o dev.txt
	cd requirements && uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-annotate --no-header demo.in -o demo.txt
	cd requirements && uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-annotate --no-header peers.in -o peers.txt
	cd requirements && for one in $(ADAPTERS) langgraph_engine; do uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-annotate --no-header $$one.in -o $$one.txt; done

docs: $(STAMP)  ## write the generated parts of README and docs again
	PYTHONPATH=. $(PY) scripts/generate_docs.py

clean:
	rm -rf $(VENV) .venv-* build .pytest_cache .mypy_cache .ruff_cache .hypothesis
