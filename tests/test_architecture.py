"""The house rules: layers, who may import what, no inheritance, a light import."""

import ast
import importlib
import subprocess
import sys
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "privrank"

# A module imports only from lower layers, or from its own layer without a circle. A new module has
# to be placed here before the suite passes.
LAYERS = (
    ("arrays", "budget", "capped", "checks", "counting", "datasets", "distances", "formula")
    + ("gaussian", "kernels", "kernels.compiling", "kernels.orders", "kernels.rankings")
    + ("linkforms", "links", "netnoise", "newton", "noise", "plots", "preflib")
    + ("progress", "radius", "ranknoise", "samplers", "sensitivity", "solvers", "tables")
    + ("zerosum",),
    ("conversion", "covariates", "design", "linear", "losses", "mallows")
    + (
        "noisyerrors",
        "nulls",
        "nulltables",
        "optim",
        "paircounts",
        "release",
        "simulate",
        "tails",
    )
    + ("consensus", "consensus.bayes", "consensus.kemeny", "consensus.orders")
    + ("consensus.pivoting", "consensus.rankintervals", "consensus.rules")
    + ("consensus.statements",)
    + ("encode", "encode.comparisons", "encode.completing")
    + ("encode.frames", "encode.groups", "encode.nulls")
    + ("encode.predictor", "encode.ranks", "encode.samples")
    + ("statistics", "statistics.binary", "statistics.borda", "statistics.categories")
    + ("statistics.classical", "statistics.comparison", "statistics.concordance")
    + ("statistics.fit", "statistics.gram", "statistics.identity", "statistics.impossible")
    + ("statistics.interval",)
    + ("statistics.mallowsnull", "statistics.omnibus", "statistics.onebit", "statistics.orders")
    + ("statistics.pairs", "statistics.permutation", "statistics.smoothing")
    + ("statistics.statistic", "statistics.uniform"),
    (
        "coefficients",
        "contrasts",
        "effects",
        "evidence",
        "inference",
        "plan",
        "power",
        "rankchoice",
        "rankplan",
        "regression",
    )
    + ("mechanisms", "mechanisms.aggregation", "mechanisms.closeness")
    + ("mechanisms.comparisons", "mechanisms.objective", "mechanisms.samples")
    + ("mechanisms.tallies",)
    + ("results", "results.aggregation", "results.btl", "results.closeness", "results.columns")
    + (
        "results.consensustable",
        "results.finding",
        "results.guarantee",
        "results.homogeneity",
        "results.hypotheses",
        "results.pairs",
        "results.ranktest",
        "results.regression",
        "results.topk",
        "results.worthtable",
    ),
    (
        "aggregation",
        "archive",
        "btl",
        "btlregression",
        "closeness",
        "identity",
        "topk",
        "uniformity",
    )
    + ("report", "report.__main__", "report.contents", "report.examples", "report.pages")
    + ("report.spending",),
)
LAYER = {module: number for number, layer in enumerate(LAYERS) for module in layer}

# Each of these libraries has one importer, so that it can be replaced or audited in one place.
ONLY_IMPORTER = {
    "numba": {"kernels.compiling"},
    "opendp": {"noise"},
    "narwhals": {"counting"},
    "statsmodels": {"tables"},
    "patsy": {"formula"},
    "cvxpy": {"optim"},
    "matplotlib": {"plots", "report.contents"},
}
# What an encoded data set holds: filled by its encoder, opened by its mechanism.
COMPARISONS, SAMPLES, GROUPS = {"_pairs", "_answers", "_units"}, {"_rows", "_sizes"}, {"_parts"}
HELD = COMPARISONS | SAMPLES | GROUPS
HEAVY = ("scipy.stats", "statsmodels", "matplotlib", "opendp", "cvxpy", "numba")


def name_of(path):
    """Module name inside the package: ``privrank/results/btl.py`` is ``results.btl``."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


TREES = {
    name_of(path): ast.parse(path.read_text(encoding="utf-8"))
    for path in sorted(PACKAGE.rglob("*.py"))
}
MODULES = sorted(TREES.keys() - {""})


def is_type_checking(node):
    return isinstance(node, ast.If) and ast.unparse(node.test) in (
        "TYPE_CHECKING",
        "typing.TYPE_CHECKING",
    )


def run_time_nodes(tree, *, inside_functions=True):
    """Walk a tree without what only type checkers see, and without function bodies if asked."""
    queue = [tree]
    while queue:
        node = queue.pop()
        yield node
        if is_type_checking(node):
            queue.extend(node.orelse)
        elif inside_functions or not isinstance(node, ast.FunctionDef | ast.Lambda):
            queue.extend(ast.iter_child_nodes(node))


def imports(module, *, inside_functions=True):
    """Dotted names a module imports: ``from a import b`` counts as ``a`` and as ``a.b``."""
    found = set()
    for node in run_time_nodes(TREES[module], inside_functions=inside_functions):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module} uses a relative import"
            found |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def uses(module, library, **where):
    return any(
        name == library or name.startswith(library + ".") for name in imports(module, **where)
    )


def internal_imports(module):
    return {
        name.removeprefix("privrank.")
        for name in imports(module)
        if name.removeprefix("privrank.") in TREES and name != "privrank"
    } - {module}


def test_every_module_is_placed_in_a_layer():
    assert set(MODULES) == LAYER.keys()
    assert len(LAYER) == sum(len(layer) for layer in LAYERS), "a module is listed twice"


@pytest.mark.parametrize("module", MODULES)
def test_a_module_imports_no_higher_layer(module):
    higher = {name for name in internal_imports(module) if LAYER[name] > LAYER[module]}
    assert higher == set()


@pytest.mark.parametrize("module", MODULES)
def test_imports_inside_the_package_name_a_module(module):
    # `from privrank import PrivateBTL` would go round the layers through the lazy __init__
    names = {name for name in imports(module) if name.startswith("privrank.")}
    straight = {name for name in names if name.count(".") == 1}
    assert {name.removeprefix("privrank.") for name in straight} <= LAYER.keys() | {"__version__"}


def test_no_circle_of_imports():
    graph = {module: internal_imports(module) for module in MODULES}
    # importing results.btl runs results/__init__ first, but that is no dependence of the module
    try:
        list(TopologicalSorter(graph).static_order())
    except CycleError as error:
        pytest.fail(f"circle of imports: {error.args[1]}")


@pytest.mark.parametrize(("library", "importers"), ONLY_IMPORTER.items())
def test_only_importer(library, importers):
    found = {module for module in MODULES if uses(module, library)}
    assert found - importers == set()
    assert found, f"nothing imports {library}: drop it from this table and from setup.cfg"


# Routines that may raise on some data or processors. `solvers` falls back on arithmetic that always
# ends; the others below call theirs within `solvers.attempt`, or before anything is spent.
SAFE = {"helmert", "norm"}
MAY_FAIL = {
    "capped": {"minimize", "qr", "svd"},
    "consensus.kemeny": {"LinearConstraint", "milp"},
    "contrasts": {"least_squares"},
    "encode.predictor": {"eigvalsh", "matrix_rank"},
    "optim": {"LinearOperator", "cg", "minimize"},
    "plan": {"minimize_scalar"},
}
SOLVERS = ("scipy.linalg", "scipy.optimize", "scipy.sparse.linalg", "numpy.linalg")


def solver_routines(tree):
    """Names of the libraries' solvers that a module imports, or reaches through numpy."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(SOLVERS):
            yield from (alias.name for alias in node.names)
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.startswith(SOLVERS))
        if isinstance(node, ast.Attribute) and ast.unparse(node).startswith("np.linalg."):
            yield node.attr
        if isinstance(node, ast.Attribute) and ast.unparse(node).startswith("np.polynomial."):
            yield ast.unparse(node)


@pytest.mark.parametrize("module", sorted(set(MODULES) - {"solvers"}))
def test_solvers_that_may_fail_are_reached_where_their_failure_is_met(module):
    found = set(solver_routines(TREES[module])) - SAFE
    assert found == MAY_FAIL.get(module, set())


@pytest.mark.parametrize("module", MODULES)
def test_heavy_libraries_are_imported_when_first_used(module):
    heavy = {library for library in HEAVY if uses(module, library, inside_functions=False)}
    # kernels is nothing but compiled loops: other modules import it inside their functions
    assert heavy == ({"numba"} if module == "kernels.compiling" else set())
    if module.split(".")[0] != "kernels":
        assert not uses(module, "privrank.kernels", inside_functions=False)


def attribute_uses(module, attributes):
    return {
        node.attr
        for node in ast.walk(TREES[module])
        if isinstance(node, ast.Attribute) and node.attr in attributes
    }


@pytest.mark.parametrize("module", MODULES)
def test_only_mechanisms_opens_an_encoded(module):
    used = attribute_uses(module, HELD)
    # encode fills them; reading them anywhere else would be a way round the budget
    opened = {"encode.comparisons": COMPARISONS, "mechanisms.tallies": COMPARISONS}
    opened |= {"encode.samples": SAMPLES, "mechanisms.samples": SAMPLES}
    # samples that are compared are opened with what each of them holds
    opened |= {"encode.groups": GROUPS, "mechanisms.closeness": GROUPS | SAMPLES}
    opened |= {"mechanisms.aggregation": SAMPLES}
    assert used == opened.get(module, set())


@pytest.mark.parametrize("module", ["encode.comparisons", "encode.groups", "encode.samples"])
def test_encode_only_fills_what_it_encodes(module):
    reads = [
        node
        for node in ast.walk(TREES[module])
        if isinstance(node, ast.Attribute) and node.attr in HELD and isinstance(node.ctx, ast.Load)
    ]
    assert reads == []


@pytest.mark.parametrize("module", MODULES)
def test_no_string_opens_an_encoded(module):
    # getattr(encoded, "_pairs") and encoded.__getstate__() would escape the check above
    strings = {
        node.value
        for node in ast.walk(TREES[module])
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    if not module.startswith("encode."):  # which names its slots
        assert not strings & HELD


@pytest.mark.parametrize("module", MODULES)
def test_only_noise_and_mechanisms_draw(module):
    if module in ("noise", "radius", "ranknoise", "zerosum") or module.startswith("mechanisms."):
        return
    drawing = {"draw", "draw_bit", "draw_cells", "draw_one_each", "draw_orders", "draw_permutation"}
    drawing |= {"SystemRandom", "draw_nonzero"}
    if module != "statistics.permutation":  # which deals secret assignments to samples, no noise
        drawing |= {"draw_shuffles", "secret_generator"}
    assert attribute_uses(module, drawing) == set()
    names = {node.id for node in ast.walk(TREES[module]) if isinstance(node, ast.Name)}
    # conversion completes rankings at random: an answer's own noise, nothing that protects it
    allowed = {"conversion": {"draw_orders"}}.get(module, set())
    # `draw` alone is a fair name for simulated numbers
    assert not (names - allowed) & (drawing - {"draw"})


@pytest.mark.parametrize("module", MODULES)
def test_only_noise_uses_random_bits_of_the_system(module):
    if module != "noise":
        assert not uses(module, "secrets") and not uses(module, "random")
        assert "urandom" not in attribute_uses(module, {"urandom"})


@pytest.mark.parametrize("module", MODULES)
def test_no_generator_is_made_outside_the_null_tables(module):
    # A generator of one's own would be noise or calibration nobody can audit. nulltables has the
    # public counter seed; datasets breaks ties of plain rankings, which are not released; simulate
    # draws from models, without data. noise makes one of secret bits for what is no noise.
    made = {"default_rng", "Philox", "PCG64", "SeedSequence", "RandomState", "seed"}
    allowed = {"nulltables": {"Philox", "SeedSequence"}, "datasets": {"default_rng"}}
    allowed |= {"simulate": {"default_rng"}, "noise": {"Philox"}}
    assert attribute_uses(module, made) <= allowed.get(module, set())


@pytest.mark.parametrize("module", MODULES)
def test_only_budget_makes_spendings(module):
    names = {node.id for node in ast.walk(TREES[module]) if isinstance(node, ast.Name)}
    assert module == "budget" or not names & {"Spending"}
    # A fit spends in one place, so that nothing is drawn that was not reserved. The report enters
    # what its archived releases spent when they were made.
    spenders = ("budget", "mechanisms.aggregation", "mechanisms.closeness")
    spenders += ("mechanisms.comparisons",)
    spenders += ("mechanisms.samples", "report.spending")
    assert module in spenders or not attribute_uses(module, {"reserve"})


def test_mechanisms_and_inference_know_no_frames():
    # mechanisms and inference read integers: none needs a frame
    without = ("budget", "evidence", "inference", "noise", "nulls", "optim")
    assert [
        module
        for module in MODULES
        if (module in without or module.startswith("mechanisms")) and uses(module, "pandas")
    ] == []


@pytest.mark.parametrize("module", MODULES)
def test_inference_and_results_see_no_encoded(module):
    if LAYER[module] == 2 and not module.startswith("mechanisms"):
        rooms = {name.partition(".")[0] for name in internal_imports(module)}
        # plan describes what the mechanisms are to do; it sees no counts either
        closed = {"encode", "counting"} | ({"mechanisms"} if module != "plan" else set())
        assert not closed & rooms


@pytest.mark.parametrize("module", ["", *MODULES])
def test_no_class_inherits(module):
    heirs = {
        node.name: [ast.unparse(base) for base in node.bases]
        for node in ast.walk(TREES[module])
        if isinstance(node, ast.ClassDef) and (node.bases or node.keywords)
    }
    exceptions = {"Exception", "UserWarning", "ValueError", "Warning"}
    assert {name: bases for name, bases in heirs.items() if not set(bases) <= exceptions} == {}


@pytest.mark.parametrize("module", ["", *MODULES])
def test_all_names_exist(module):
    loaded = importlib.import_module(f"privrank.{module}".rstrip("."))
    if all(isinstance(node, ast.Expr) for node in TREES[module].body):
        return  # a package that is a docstring offers nothing
    names = list(loaded.__all__)
    assert len(names) == len(set(names))
    assert [name for name in names if not hasattr(loaded, name)] == []


def test_init_names_everything_lazily():
    import privrank

    top = [node for node in TREES[""].body if isinstance(node, ast.Import | ast.ImportFrom)]
    assert {node.module for node in top} <= {"__future__", "importlib", "typing"}
    # what type checkers see is what users get
    checked = {
        alias.asname
        for node in TREES[""].body
        if is_type_checking(node)
        for statement in node.body
        for alias in statement.names
    }
    assert checked == set(privrank.__all__)
    assert set(privrank.__all__) <= set(dir(privrank))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = privrank.nothing


def modules_after(statement):
    script = f"import sys\n{statement}\nprint(*sys.modules, sep='\\n')"
    run = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, cwd=PACKAGE.parent
    )
    assert run.returncode == 0, run.stderr
    return set(run.stdout.split())


def test_import_is_light():
    loaded = modules_after("import privrank; privrank.__version__; dir(privrank)")
    assert not loaded & {"numpy", "pandas", "scipy", "narwhals", *HEAVY}


def test_models_are_imported_without_the_heavy_libraries():
    loaded = modules_after(
        "from privrank import PrivateBTL, PrivateTopK, Budget, Mallows, PlackettLuce, datasets"
    )
    assert not loaded & {"statsmodels", "matplotlib", "opendp", "cvxpy", "numba", "patsy"}
