# Two commands matter: `make demo` and `make test`. Both set up .venv by themselves.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SOURCES := pyproject.toml

# Noise of BLAS threads on small problems costs more than it gains in tests.
export OPENBLAS_NUM_THREADS ?= 2
# To compile all tests anew takes each process that runs them ten seconds.
export PYTHONDONTWRITEBYTECODE :=

# Each takes a half of the tests in their order, so that what files share is made once; who is
# done first takes over half of what the other has left.
WORKERS := -n 2 --dist worksteal
SEEDS ?= 1,2,3,4,5,6,7,8,9,10

# What `make demo` hands to the command, as an option of the same name; the last ones are yes or no.
OF_DEMO := TEXT PERSON EPSILON DELTA BUDGET RAISE_BUDGET TOPICS WORDS STOP_WORDS VOCABULARY OUTPUT \
	DELIMITER QUOTING ENCODING
SWITCHES := SHARES FORECAST ANYWAY OPEN
# A variable that nothing reads is a mistake: with `PERSONS=author` nobody would be protected.
KNOWN := $(OF_DEMO) $(SWITCHES) INPUT PYTHON OPENBLAS_NUM_THREADS TESTS NEWEST TENTH SEEDS MOVIELENS VERSIONS
UNKNOWN := $(filter-out $(KNOWN),$(foreach v,$(.VARIABLES),$(if $(findstring command,$(origin $v)),$v)))
$(if $(UNKNOWN),$(error $(UNKNOWN): no such variable. Known are $(KNOWN)))

.PHONY: demo test coverage test-nightly test-slow audit mistakes bench peers papers papers-check docs docs-check docs-versions docs-links docs-serve dist test-oldest test-newest test-upstream oldest-environment newest-environment versions lint types clean help

help:
	@echo "make demo [INPUT=posts.csv TEXT=column PERSON=column EPSILON=4 BUDGET=8 TOPICS=10 OUTPUT=folder]"
	@echo "          and as further options of sktensor-dp topics: $(OF_DEMO) $(SWITCHES)"
	@echo "make papers [MOVIELENS=folder of ua.base and ua.test] | papers-check"
	@echo "make docs | docs-check | docs-versions VERSIONS='0.1.0 main' | docs-links | docs-serve | dist"
	@echo "make test-oldest | test-newest | test-upstream [TESTS=tests/tensor NEWEST=python3.13] | versions"
	@echo "make test | coverage | test-nightly | test-slow | audit | mistakes | bench | peers | lint | types | clean"

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "Python 3.11 or newer is needed; name one: make PYTHON=python3.12 ..."; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: $(BIN)/python $(SOURCES)
	@echo "Installing sktensor_dp and what the demo needs into $(VENV) ..."
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[demo]'
	@touch $@

$(VENV)/.dev: $(BIN)/python $(SOURCES)
	@echo "Installing sktensor_dp and what its tests need into $(VENV) ..."
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[demo,tests,lint]'
	@touch $@

$(VENV)/.bench: $(VENV)/.dev
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[bench]'
	@touch $@

lower = $(shell echo $1 | tr A-Z_ a-z-)
yes = $(if $(filter 1 yes true,$($1)),--$(call lower,$1))$(if \
	$(filter-out 1 yes true 0 no false,$($1)),$(error $1 must be yes or no, got $($1)))

# Real text to private topics; without INPUT the texts are docstrings of installed packages.
demo: $(VENV)/.demo
	@$(BIN)/sktensor-dp topics $(if $(INPUT),"$(INPUT)") \
		$(foreach v,$(OF_DEMO),$(if $($v),--$(call lower,$v)="$($v)")) \
		$(foreach v,$(SWITCHES),$(call yes,$v))

# What is asked of a browser, of type checkers and of the scripts of papers has targets of its own.
BROWSER_TESTS = tests/docs/test_site_in_a_browser.py tests/test_topic_page_browser.py
TYPE_TESTS = tests/test_readme_types.py
PAPER_TESTS = tests/papers
ELSEWHERE = $(BROWSER_TESTS) $(TYPE_TESTS) $(PAPER_TESTS)

# Contracts, laws, faults of ledgers, attained bounds, doctests and the core of an example.
test: $(VENV)/.dev
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -q $(WORKERS) -m "not nightly" $(addprefix --ignore=,$(ELSEWHERE))

# Which lines and branches of the package `make test` runs; what other processes run is not counted.
coverage: $(VENV)/.dev
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -q $(WORKERS) -m "not nightly" \
		$(addprefix --ignore=,$(ELSEWHERE)) --cov --cov-report=term --cov-report=xml

# The tests that `make test` leaves out, or the tenth of them that a digit names.
test-nightly: $(VENV)/.dev
	$(if $(TENTH),SKTENSOR_DP_TEST_TENTH=$(TENTH)) OPENBLAS_NUM_THREADS=1 \
		$(BIN)/python -m pytest -q $(WORKERS) -m nightly $(addprefix --ignore=,$(ELSEWHERE))

# All tests over many seeds of their randomness; any of 0 to 99 has to pass.
test-slow: $(VENV)/.dev
	SKTENSOR_DP_TEST_SEEDS="$(SEEDS)" SKTENSOR_DP_TEST_NOISE=secret OPENBLAS_NUM_THREADS=1 \
		$(BIN)/python -m pytest -q $(WORKERS) tests

# Which of the mistakes listed in tests/mistakes the tests catch; goes on where it was stopped.
mistakes: $(VENV)/.dev
	OPENBLAS_NUM_THREADS=1 PYTHONPATH=tests $(BIN)/python -m mistakes --jobs 2

# One table over the catalogue of releases: replay, sensitivities, laws, audits.
audit: $(VENV)/.dev
	@cd tests && OPENBLAS_NUM_THREADS=1 PYTHONPATH=..:.:support ../$(BIN)/python -m contracts.audit

$(VENV)/.docs: $(VENV)/.dev
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[docs]'
	@touch $@

# The documentation site, in docs/_build/html, in about six minutes; a warning is an error.
docs: $(VENV)/.docs
	$(BIN)/python -m sphinx -b html -W --keep-going docs docs/_build/html
	@echo "Open docs/_build/html/index.html"

# The site and the page of topics in a browser, at the width of a phone and of a desk; needs Chromium.
docs-check: docs
	CI=true OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -q $(WORKERS) $(BROWSER_TESTS)

# Sites of several commits with a menu to choose among them, in docs/_build/versions.
docs-versions: $(VENV)/.docs
	$(BIN)/python docs/_extensions/several_versions.py $(VERSIONS)

# Links that lead out of the site, listed with the pages that have them; they are not followed.
docs-links: $(BIN)/python
	@$(BIN)/python docs/_extensions/outward_links.py

docs-serve: docs
	$(BIN)/python -m http.server --bind 127.0.0.1 --directory docs/_build/html 8000

# The same tests with the lowest versions that the metadata allow, and on the newest Python at
# hand with what pip installs. TESTS= names a part of them.
NEWEST ?= $(shell v=$$(pyenv versions --bare 2>/dev/null | grep -E '^3\.[0-9]+\.[0-9]+$$' | \
	sort -V | tail -1); [ -n "$$v" ] && echo "$$(pyenv prefix $$v)/bin/python" || echo "$(PYTHON)")
FAST = -m "not nightly" $(addprefix --ignore=,$(ELSEWHERE))

oldest-environment: $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check 'uv>=0.5'
	mkdir -p build
	$(BIN)/uv pip compile --quiet --resolution lowest-direct --extra tests pyproject.toml -o build/oldest.txt
	$(BIN)/uv venv --quiet --allow-existing --python $(BIN)/python $(VENV)-oldest
	$(BIN)/uv pip install --quiet --python $(VENV)-oldest -r build/oldest.txt
	$(BIN)/uv pip install --quiet --python $(VENV)-oldest --no-deps -e .

newest-environment:
	$(NEWEST) -m venv $(VENV)-newest
	$(VENV)-newest/bin/python -m pip install --quiet --disable-pip-version-check --upgrade \
		--upgrade-strategy eager -e '.[tests]'

test-oldest: oldest-environment
	OPENBLAS_NUM_THREADS=1 $(VENV)-oldest/bin/python -m pytest -q $(WORKERS) $(FAST) $(TESTS)

test-newest: newest-environment
	OPENBLAS_NUM_THREADS=1 $(VENV)-newest/bin/python -m pytest -q $(WORKERS) $(FAST) $(TESTS)

# The same tests with last night's numpy, scipy, scikit-learn and pandas, which warn of what will change.
UPSTREAM = https://pypi.anaconda.org/scientific-python-nightly-wheels/simple
test-upstream:
	$(NEWEST) -m venv $(VENV)-upstream
	$(VENV)-upstream/bin/python -m pip install --quiet --disable-pip-version-check -e '.[tests]'
	$(VENV)-upstream/bin/python -m pip install --quiet --disable-pip-version-check --upgrade --pre \
		--index-url $(UPSTREAM) numpy scipy scikit-learn pandas
	OPENBLAS_NUM_THREADS=1 $(VENV)-upstream/bin/python -m pytest -q $(WORKERS) $(FAST) $(TESTS)

# The tables of docs/versions.md, from the metadata and the environments of the three runs.
versions: $(VENV)/.dev oldest-environment newest-environment
	$(BIN)/python docs/_extensions/versions.py $(BIN)/python $(VENV)-oldest/bin/python $(VENV)-newest/bin/python

# Wheel and source distribution. The wheel is tried in an empty environment: alone, and with
# [plots,frames] by the scripts of three people.
dist: $(BIN)/python
	rm -rf dist $(VENV)-dist
	$(BIN)/python -m pip install --quiet --disable-pip-version-check 'build>=1.2' 'twine>=6'
	$(BIN)/python -m build --outdir dist .
	$(BIN)/python -m twine check --strict dist/*
	$(PYTHON) -m venv $(VENV)-dist
	$(VENV)-dist/bin/python -m pip install --quiet --disable-pip-version-check dist/*.whl
	cd dist && ../$(VENV)-dist/bin/python ../tests/smoke.py
	$(VENV)-dist/bin/python -m pip install --quiet --disable-pip-version-check \
		"$$(ls dist/*.whl)[plots,frames]"
	cd dist && ../$(VENV)-dist/bin/python ../tests/smoke_people.py
	rm -rf $(VENV)-dist

bench: $(VENV)/.bench
	$(BIN)/python -m benchmarks

# Beside other libraries, in an environment that has them all.
peers: $(BIN)/python
	$(BIN)/python -m venv $(VENV)-peers
	$(VENV)-peers/bin/python -m pip install --quiet --disable-pip-version-check -e '.[bench,frames]' diffprivlib
	$(VENV)-peers/bin/python -m benchmarks peers

# Every figure and table in docs/papers, from the beginning.
papers: $(VENV)/.demo
	@$(BIN)/python papers/redraw.py $(if $(MOVIELENS),--movielens "$(MOVIELENS)")

# Every script of these, on little data.
papers-check: $(VENV)/.dev
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -q $(WORKERS) $(PAPER_TESTS)

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/codespell sktensor_dp docs examples paper papers benchmarks tests *.md
	$(BIN)/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(BIN)/check-jsonschema --builtin-schema custom.github-workflows-require-timeout .github/workflows/*.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.citation-file-format CITATION.cff
	$(BIN)/check-jsonschema --builtin-schema vendor.dependabot .github/dependabot.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.github-issue-config .github/ISSUE_TEMPLATE/config.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.github-issue-forms .github/ISSUE_TEMPLATE/*_*.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.readthedocs .readthedocs.yaml

# Of the package, and of the readme's code as its users check theirs.
types: $(VENV)/.dev
	$(BIN)/mypy
	$(BIN)/python -m pytest -q $(TYPE_TESTS)

clean:
	rm -rf $(VENV) build dist demo-output docs/_build docs/gallery docs/reference/generated .pytest_cache .mypy_cache .ruff_cache
