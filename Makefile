# Every target uses the .venv of the repository, which the first target creates.
# To choose another interpreter: make report PYTHON=/path/to/python3.12

PYTHON ?= python3
VENV = .venv
OLDEST = .venv-oldest
RUN = $(VENV)/bin/python
INSTALL = $(RUN) -m ensurepip >/dev/null && $(RUN) -m pip install --disable-pip-version-check --config-settings editable_mode=compat --editable
# The suite runs in one process per core, at most four. Each process needs about 1 GB of memory.
TESTS = -m pytest -q -n auto --maxprocesses 4 --dist worksteal
THREADS = OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 MKL_NUM_THREADS=1

.NOTPARALLEL:
.PHONY: help report quick test fuzz audit mutants trusted tables oldest vignettes docs fresh wheel validate validate-check bench clean

help:
	@echo "make report     analyse the example surveys and write an HTML report to report/ (half a minute)"
	@echo "make quick      run linter, formatter, type checker, architecture rules and the fast tests"
	@echo "                (about a minute)"
	@echo "make test       run linter, formatter, type checker and the whole test suite"
	@echo "                (a quarter of an hour on two cores)"
	@echo "make fuzz       pass 100,000 malformed inputs to each entry point of the package"
	@echo "                (FUZZ=1000 make fuzz: fewer; about two hours on two cores)"
	@echo "make audit      compute the privacy loss of every class on neighbouring data sets and compare it"
	@echo "                with its guarantee, and check that planted faults are detected"
	@echo "                (twenty minutes on two cores)"
	@echo "make mutants    change the trusted subpackages in one place at a time and check that a test"
	@echo "                detects each change (MUTANTS=420 of 7,000, drawn at random; about an hour on"
	@echo "                two cores)"
	@echo "make trusted    print the size of the trusted code path: the code that runs between a data frame"
	@echo "                and its release (half a minute)"
	@echo "make tables     compile the LaTeX of every kind of table, and fail if a table is too wide for"
	@echo "                the page (a minute)"
	@echo "make oldest     run the test suite with the oldest versions that setup.cfg permits, under the"
	@echo "                oldest Python, in .venv-oldest (a quarter of an hour or more)"
	@echo "make vignettes  run the tutorials and write them as pages to build/vignettes/ (a minute or two)"
	@echo "make docs       build the documentation site in build/site/ and check its links (three minutes)"
	@echo "make fresh      run make report and make docs, each in a fresh clone of the last commit and in a"
	@echo "                new environment with only the extra that it needs, in build/fresh/ (ten minutes)"
	@echo "make wheel      build the wheel and the source archive in dist/ (a minute)"
	@echo "make validate   repeat the simulation studies of docs/validation/ (about four hours)"
	@echo "make validate-check   repeat the first replicate of each cell of the studies and compare it with"
	@echo "                the stored one (some minutes)"
	@echo "make bench      compare running times of privrank and other packages on the same tasks"
	@echo "                (a quarter of an hour)"
	@echo "make clean      delete everything that these targets made: .venv, .venv-oldest, and report/ with"
	@echo "                its ledgers (seconds)"
	@echo
	@echo "The first target that you run also creates .venv and downloads the dependencies. This takes one"
	@echo "to three minutes on a fast connection, and up to 2 GB on disk. Later runs install only if"
	@echo "setup.cfg or pyproject.toml has changed. Python 3.11 or newer is needed. To choose another"
	@echo "interpreter: make report PYTHON=python3.12"

# Each rule depends on the interpreter first. If it is missing, .venv is created again, which also
# removes the stamps.

report: $(RUN) $(VENV)/.installed-docs
	$(RUN) tools/report.py --out report

test: $(RUN) $(VENV)/.installed-dev
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .
	$(RUN) -m mypy
	$(THREADS) $(RUN) $(TESTS)

quick: $(RUN) $(VENV)/.installed-dev
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .
	$(RUN) -m mypy
	$(THREADS) $(RUN) $(TESTS) -m "not slow"

fuzz: $(RUN) $(VENV)/.installed-dev
	$(THREADS) $(RUN) tools/fuzz.py $(if $(FUZZ),--cases $(FUZZ),--table)

audit: $(RUN) $(VENV)/.installed-bench
	$(THREADS) $(RUN) validation/audit.py

mutants: $(RUN) $(VENV)/.installed-dev
	$(THREADS) $(RUN) tools/mutants.py --mutants $${MUTANTS:-420}

trusted: $(RUN) $(VENV)/.installed-dev
	$(RUN) tools/trusted.py

tables: $(RUN) $(VENV)/.installed-docs
	$(RUN) tools/latex.py

# Use another VENV for the rules below. mypy and ruff are omitted, because they check the sources and
# do not depend on the installed versions.
oldest:
	@$(MAKE) --no-print-directory VENV=$(OLDEST) $(OLDEST)/bin/python $(OLDEST)/.installed-oldest
	$(THREADS) $(OLDEST)/bin/python $(TESTS)

vignettes: $(RUN) $(VENV)/.installed-docs
	$(RUN) tools/vignettes.py vignettes/*.py --out build/vignettes

docs: $(RUN) $(VENV)/.installed-site
	$(THREADS) $(RUN) tools/website.py --out build/site

# Build what a new user builds first, in environments without the test tools and earlier builds.
fresh:
	rm -rf build/fresh
	git clone --quiet . build/fresh/report
	$(MAKE) --no-print-directory -C build/fresh/report report
	git clone --quiet . build/fresh/docs
	$(MAKE) --no-print-directory -C build/fresh/docs docs

wheel: $(RUN) $(VENV)/.installed-dev
	$(RUN) -m build --outdir dist

validate: $(RUN) $(VENV)/.installed-bench
	$(RUN) validation/run_all.py

validate-check: $(RUN) $(VENV)/.installed-bench
	$(RUN) validation/check.py

bench: $(RUN) $(VENV)/.installed-bench
	$(RUN) benchmarks/run.py
	$(RUN) benchmarks/rankings.py
	$(THREADS) $(RUN) benchmarks/uniformity.py
	$(RUN) benchmarks/closeness.py
	$(RUN) benchmarks/aggregation.py
	$(RUN) benchmarks/items.py
	$(THREADS) $(RUN) benchmarks/scale.py

clean:
	rm -rf $(VENV) $(OLDEST) build dist report privrank.egg-info
	rm -rf .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# A stamp is written only after pip has succeeded, so an interrupted installation is repeated.
# ensurepip repairs a .venv that was interrupted before pip was installed. In all other cases it has
# no effect. The installation is editable, so a change of source code needs no new one. Its compat mode
# puts the repository on the path. Without it, a clone named privrank in the folder of a script would
# hide the package.

$(VENV)/.installed-docs: setup.cfg pyproject.toml
	@echo "Installing privrank and its dependencies into $(VENV) (one to three minutes) ..."
	@$(INSTALL) ".[docs]"
	@touch $@

$(VENV)/.installed-site: setup.cfg pyproject.toml
	@echo "Installing privrank, its dependencies and Sphinx into $(VENV) (one to three minutes) ..."
	@$(INSTALL) ".[site]"
	@touch $@ $(VENV)/.installed-docs

$(VENV)/.installed-dev: setup.cfg pyproject.toml
	@echo "Installing privrank, its dependencies and the test tools into $(VENV) (one to three minutes) ..."
	@$(INSTALL) ".[dev]"
	@touch $@ $(VENV)/.installed-docs

$(VENV)/.installed-oldest: setup.cfg pyproject.toml tools/oldest.py
	@$(RUN) tools/oldest.py install_requires test docs >$(VENV)/oldest.txt || { rm -rf $(VENV); exit 1; }
	@echo "Installing privrank and the oldest versions of its dependencies into $(VENV) ..."
	@$(INSTALL) ".[test,docs]" --constraint $(VENV)/oldest.txt
	@touch $@

$(VENV)/.installed-bench: setup.cfg pyproject.toml
	@echo "Installing privrank, its dependencies and the packages it is compared with into $(VENV) ..."
	@$(INSTALL) ".[bench,frames]"
	@touch $@

$(RUN):
	@command -v "$(PYTHON)" >/dev/null 2>&1 || { \
	  echo "privrank needs Python 3.11 or newer, but there is no $(PYTHON) here. Install Python, or choose one with make PYTHON=/path/to/python3.12." >&2; exit 1; }
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "privrank needs Python 3.11 or newer, but $(PYTHON) is `"$(PYTHON)" --version 2>&1 | head -n 1`. Install a newer Python, or choose one with make PYTHON=/path/to/python3.12." >&2; exit 1; }
	@"$(PYTHON)" -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo "privrank needs Python's venv and ensurepip modules, which $(PYTHON) lacks. On Debian and Ubuntu: sudo apt install python3-venv." >&2; exit 1; }
	@echo "Creating a virtual environment in $(VENV) ..."
	@"$(PYTHON)" -m venv --clear $(VENV) || { rm -rf $(VENV); \
	  echo "$(PYTHON) could not create a virtual environment in $(VENV): see the lines above for the reason." >&2; exit 1; }
