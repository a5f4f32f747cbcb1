# Everything here needs only Python 3.11 or newer, make and a package registry.
PYTHON ?= python3
BIN := .venv/bin
STAMPS := .venv/stamps
PYTEST := $(BIN)/python -m pytest --quiet --numprocesses=auto --dist=loadgroup --max-worker-restart=1
QUICK := --ignore=tests/engines --ignore=tests/hardening
# Many tests start programs, which would compile the sources anew each time.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo demo-eval test coverage engines hardening installed lint ruff mypy pyright quick format conformance view view-check browser fuzz bench scale bundle docs sample constraints clean

help: ## list the commands
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/make \1\t\2/p' Makefile | expand -t 18

demo: $(STAMPS)/run ## start the server on the bundled graph and walk one question through its tools
	@$(BIN)/python -m kg_server.demo

demo-eval: $(STAMPS)/dev ## ask the agents 20 questions about a fictional world, with gold answers for a model: a table and a picture
	@out=$$(mktemp -d) && $(BIN)/kg-sextant eval suite benchmarks/world/suite.toml --model gold --out $$out && \
	$(BIN)/kg-sextant eval plot $$out/oda $$out/graph-counselor $$out/tools --out $$out

test: ruff ## run lint, types and tests; engines and hardening run the slow ones
	@echo "Checking types and testing …"
	@$(MAKE) --no-print-directory --jobs=3 mypy pyright quick

quick: $(STAMPS)/dev
	@$(PYTEST) $(QUICK)

coverage: $(STAMPS)/dev ## run the same tests and print the lines that none of them reaches (at least 95 % covered)
	@$(PYTEST) $(QUICK) --cov --cov-report=term

engines: $(STAMPS)/dev ## test over real SPARQL engines (tools/install_engines.sh brings them, and PostgreSQL for make test)
	@echo "Testing over engines …"
	@$(PYTEST) tests/engines

hardening: $(STAMPS)/dev ## probe with hostile graphs, damaged stores, lost services and floods
	@echo "Probing …"
	@$(PYTEST) tests/hardening --ignore-glob='*/test_installed*.py'

installed: $(STAMPS)/dev ## install in a fresh home and run what the pages show, and as tasks of inspect_ai (needs a package index)
	@$(PYTEST) tests/hardening/test_installed*.py

lint: ruff ## check formatting, lint and types
	@$(MAKE) --no-print-directory --jobs=2 mypy pyright

ruff: $(STAMPS)/dev
	@echo "Checking format and lint …"
	@$(BIN)/ruff format --quiet --check .
	@$(BIN)/ruff check --quiet .

mypy: $(STAMPS)/dev
	@$(BIN)/mypy --no-error-summary

pyright: $(STAMPS)/dev
	@$(BIN)/pyright --pythonpath $(BIN)/python

format: $(STAMPS)/dev ## rewrite the code as ruff wants it
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

conformance: $(STAMPS)/dev ## run the official conformance suite against the server (needs npm)
	@PYTHONPATH=tests $(BIN)/python -m conformance.run

view: server/view/node_modules/.installed ## build the page that draws graphs from server/view (needs npm)
	@npm --prefix server/view run --silent build

view-check: server/view/node_modules/.installed ## lint and test the page's source, and compare it with the built page
	@npm --prefix server/view run --silent check

browser: $(STAMPS)/dev server/view/node_modules/.installed ## test the page in Chromium, which tools/install_engines.sh brings (needs npm)
	@npm --prefix server/view run --silent browser

server/view/node_modules/.installed: server/view/package.json
	@npm --prefix server/view install --silent --no-package-lock --ignore-scripts --no-audit --no-fund
	@touch $@

fuzz: $(STAMPS)/dev ## make 10,000 generated calls and ask 5,000 questions about tables, where make hardening has fewer
	@$(BIN)/python -m pytest --quiet --generated-calls=10000 tests/hardening/test_generated_calls.py
	@$(BIN)/python -m pytest --quiet --generated-questions=5000 tests/hardening/test_generated_tables.py

bench: $(STAMPS)/dev ## measure against the targets, beside peers (needs ../shared/data)
	@$(BIN)/python -m benchmarks

scale: $(STAMPS)/dev ## measure graphs of 1, 5 and 20 million statements, beside peers (needs ../shared/data)
	@$(BIN)/python -m benchmarks --only scale

bundle: $(STAMPS)/dev ## write the bundle for desktop assistants, dist/kg-sextant.mcpb
	@$(BIN)/python tools/build_bundle.py

docs: $(STAMPS)/dev ## write what the pages take from the code: outputs, examples, settings
	@$(BIN)/python tools/update_docs.py

sample: $(STAMPS)/dev ## build the bundled graphs again (needs ../shared/data)
	@$(BIN)/python tools/build_sample.py

constraints: ## pin the newest versions that work together in constraints.txt
	@$(PYTHON) tools/update_constraints.py

clean: ## remove everything that make created
	@rm -rf server/view/node_modules server/view/dist .venv .mypy_cache .pytest_cache .ruff_cache .hypothesis .coverage .coverage.* dist

$(STAMPS)/run: pyproject.toml constraints.txt tools/set_up.py
	@$(PYTHON) tools/set_up.py
	@mkdir -p $(STAMPS) && touch $@

$(STAMPS)/dev: pyproject.toml constraints.txt tools/set_up.py
	@$(PYTHON) tools/set_up.py --dev
	@mkdir -p $(STAMPS) && touch $(STAMPS)/run $@
