# Every target works in the repository's own .venv, made on first use.
# Another interpreter: make report PYTHON=/path/to/python3.12

PYTHON ?= python3
VENV = .venv
OLDEST = .venv-oldest
RUN = $(VENV)/bin/python
INSTALL = $(RUN) -m ensurepip >/dev/null && $(RUN) -m pip install --disable-pip-version-check --config-settings editable_mode=compat --editable
# The suite runs in as many processes as there are cores, four at most: each takes about 1 GB.
TESTS = -m pytest -q -n auto --maxprocesses 4 --dist worksteal
THREADS = OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 MKL_NUM_THREADS=1

.NOTPARALLEL:
.PHONY: help report quick test fuzz audit mutants chain tables oldest vignettes docs doors wheel validate validate-check bench clean

help:
	@echo "make report     analyse the example surveys, write a page on them to report/ (half a minute)"
	@echo "make quick      lint, format, types, the rules of the house and the fast tests (about a minute)"
	@echo "make test       lint, format, types and the whole test suite (a quarter of an hour on two cores)"
	@echo "make fuzz       hand 100,000 odd cases to each surface of the package (FUZZ=1000 make fuzz: fewer;"
	@echo "                about two hours on two cores)"
	@echo "make audit      privacy losses of every class on neighbours, against what is claimed, and of faults"
	@echo "                that were planted (twenty minutes on two cores)"
	@echo "make mutants    change the trusted rooms in one place at a time: does a test find each change?"
	@echo "                (MUTANTS=420 of 7,000, drawn at random; about an hour on two cores)"
	@echo "make chain      print the code that runs between a data frame and its release (half a minute)"
	@echo "make tables     compile the LaTeX of every kind of table; fail where one is off the page (a minute)"
	@echo "make oldest     run the test suite with the oldest versions that setup.cfg admits, under the"
	@echo "                oldest Python, in .venv-oldest (a quarter of an hour or more)"
	@echo "make vignettes  run the worked examples, write them as pages to build/vignettes/ (a minute or two)"
	@echo "make docs       make the documentation site in build/site/, its links followed (three minutes)"
	@echo "make doors      make report and make docs, each in a fresh clone of what is committed and in an"
	@echo "                environment of its own extra alone, in build/doors/ (ten minutes)"
	@echo "make wheel      build the wheel and the source archive in dist/ (a minute)"
	@echo "make validate   repeat the simulation studies behind docs/validation/ (about four hours)"
	@echo "make validate-check   find the first replicate of each cell again, in some minutes"
	@echo "make bench      time privrank against other packages on the same work (a quarter of an hour)"
	@echo "make clean      remove all that these targets made: .venv, .venv-oldest, and report/ with its"
	@echo "                ledgers (seconds)"
	@echo
	@echo "The first target to run also makes .venv and downloads the dependencies: one to three"
	@echo "minutes on a fast line, up to 2 GB on disk. Later runs install only when setup.cfg or"
	@echo "pyproject.toml has changed. Any Python from 3.11 on: make report PYTHON=python3.12"

# The interpreter comes first below: where it has gone, .venv is made afresh, and the stamps go too.

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

chain: $(RUN) $(VENV)/.installed-dev
	$(RUN) tools/chain.py

tables: $(RUN) $(VENV)/.installed-docs
	$(RUN) tools/latex.py

# Another VENV for the rules below; mypy and ruff look at the sources, not at what is installed.
oldest:
	@$(MAKE) --no-print-directory VENV=$(OLDEST) $(OLDEST)/bin/python $(OLDEST)/.installed-oldest
	$(THREADS) $(OLDEST)/bin/python $(TESTS)

vignettes: $(RUN) $(VENV)/.installed-docs
	$(RUN) tools/vignettes.py vignettes/*.py --out build/vignettes

docs: $(RUN) $(VENV)/.installed-site
	$(THREADS) $(RUN) tools/website.py --out build/site

# What a newcomer does first: environments without the test tools, where nothing has been built.
doors:
	rm -rf build/doors
	git clone --quiet . build/doors/report
	$(MAKE) --no-print-directory -C build/doors/report report
	git clone --quiet . build/doors/docs
	$(MAKE) --no-print-directory -C build/doors/docs docs

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

# A stamp is written only after pip has succeeded, so an interrupted install is taken up again
# (ensurepip mends a .venv that was cut short before it had pip; otherwise it does nothing).
# The install is editable: a change of source alone needs no new one. Its compat mode puts the
# repository on the path, so that a clone named privrank next to a script does not hide the package.

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
	@echo "Installing privrank, its dependencies and the packages it is timed against into $(VENV) ..."
	@$(INSTALL) ".[bench,frames]"
	@touch $@

$(RUN):
	@command -v "$(PYTHON)" >/dev/null 2>&1 || { \
	  echo "privrank needs Python 3.11 or newer, but there is no $(PYTHON) here: install Python, or name one with make PYTHON=/path/to/python3.12." >&2; exit 1; }
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "privrank needs Python 3.11 or newer, but $(PYTHON) is `"$(PYTHON)" --version 2>&1 | head -n 1`: install a newer one, or name it with make PYTHON=/path/to/python3.12." >&2; exit 1; }
	@"$(PYTHON)" -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo "privrank needs Python's venv and ensurepip modules, which $(PYTHON) lacks: on Debian and Ubuntu, sudo apt install python3-venv." >&2; exit 1; }
	@echo "Making a virtual environment in $(VENV) ..."
	@"$(PYTHON)" -m venv --clear $(VENV) || { rm -rf $(VENV); \
	  echo "$(PYTHON) could not make a virtual environment in $(VENV): the lines above say why." >&2; exit 1; }
