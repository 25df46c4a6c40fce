"""Architecture: the order of the subpackages, permitted imports, and limits on size.

Each rule is checked for all modules at once. A rule also checks how much it examined, and fails if
it finds nothing to examine.
"""

import ast
import dataclasses
import importlib
import subprocess
import sys
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest
from measuring import statements

from privrank.encode.encoded import Encoded, EncodedChoices, EncodedGroups, EncodedSample

PACKAGE = Path(__file__).parents[2] / "privrank"

# A subpackage imports from itself and from the subpackages above it in this list. The modules of
# the public classes, at the top level of the package, count as one: "entry points".
SUBPACKAGES = (
    "util",
    "kernels",
    "distributions",
    "privacy",
    "release",
    "hypotheses",
    "bradley_terry",
    "consensus",
    "plans",
    "encode",
    "mechanisms",
    "published",
    "results",
    "local",
    "entry points",
    "power",
    "reporting",
)
TRUSTED = {"privacy", "encode", "mechanisms", "published"}
ENTRY_POINTS = {"aggregation", "archive", "btl", "closeness", "datasets", "identity"}
ENTRY_POINTS |= {"pooling", "topk", "uniformity"}

# Modules of one family have the same name in several subpackages. All other names are unique.
FAMILIES = {"aggregation", "btl", "choices", "closeness", "comparisons", "samples"}
FAMILIES |= {"base", "pooling", "topk"}

# Each of these libraries has one importer, so that it can be replaced or audited in one place.
ONLY_IMPORTER = {
    "numba": {"kernels"},
    "opendp": set(),
    "narwhals": {"encode.coding", "encode.frames"},
    "jinja2": {"results.tables"},
    "patsy": {"util.formula"},
    "cvxpy": {"bradley_terry.fit"},
    "matplotlib": {"results.plots"},
    "tqdm": {"util.workers"},
}
HEAVY = ("scipy.stats", "statsmodels", "matplotlib", "cvxpy", "numba", "tqdm")

# What an encoded data set holds: filled by its encoder, opened by its mechanism.
COMPARISONS = {"_pairs", "_parts", "_units", "_loose", "_ties"}
SAMPLES, GROUPS, PAIRED = {"_rows", "_people"}, {"_parts"}, {"_partners"}
CHOICES = {"_totals", "_version", "_ahead"}
HELD = COMPARISONS | SAMPLES | GROUPS | PAIRED | CHOICES
OPENED = {
    "mechanisms.choices": CHOICES,
    "mechanisms.closeness": GROUPS | PAIRED | {"_rows"},
    "mechanisms.samples": SAMPLES | GROUPS | PAIRED,
    "mechanisms.tallies": COMPARISONS,
}

LARGEST_MODULE, LARGEST_FUNCTION = 300, 30  # in statements
# Functions that are larger still, with the size that they may not exceed.
LARGER = {
    "bradley_terry.fit.minimise": 42,
    "bradley_terry.scoretests._search": 36,
    "consensus.orders._by_programme": 43,
    "kernels.search.stationary_direction": 36,
    "plans.aggregation.plan_aggregation": 40,
}


def name_of(path):
    """Module name inside the package: ``privrank/results/btl.py`` is ``results.btl``."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


PATHS = {name_of(path): path for path in sorted(PACKAGE.rglob("*.py"))}
TREES = {name: ast.parse(path.read_text(encoding="utf-8")) for name, path in PATHS.items()}
MODULES = sorted(TREES.keys() - {""})


def subpackage_of(module):
    first = module.partition(".")[0]
    return first if first in SUBPACKAGES else "entry points"


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
    """Dotted names a module imports: ``a.b`` for each name, and ``a`` unless all are modules."""
    found = set()
    for node in run_time_nodes(TREES[module], inside_functions=inside_functions):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module} uses a relative import"
            full = {f"{node.module}.{alias.name}" for alias in node.names}
            inside = {name for name in full if name.removeprefix("privrank.") in TREES}
            found |= full | ({node.module} if full - inside else set())
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


def attributes(module):
    return {node.attr for node in ast.walk(TREES[module]) if isinstance(node, ast.Attribute)}


def names(module):
    return {node.id for node in ast.walk(TREES[module]) if isinstance(node, ast.Name)}


def test_every_module_is_in_a_subpackage_or_is_an_entry_point():
    assert {module for module in MODULES if "." not in module} - set(SUBPACKAGES) == ENTRY_POINTS
    assert {subpackage_of(module) for module in MODULES} == set(SUBPACKAGES)


def test_modules_of_one_name_are_of_one_family():
    last = [path.stem for path in PATHS.values() if path.stem != "__init__"]
    assert {name for name in last if last.count(name) > 1} == FAMILIES


def test_a_subpackage_imports_only_from_subpackages_above_it():
    arrows = [(module, other) for module in MODULES for other in internal_imports(module)]
    assert len(arrows) > 300
    upward = [
        (module, other)
        for module, other in arrows
        if SUBPACKAGES.index(subpackage_of(other)) > SUBPACKAGES.index(subpackage_of(module))
    ]
    assert upward == []


def test_results_import_no_mechanism():
    results = [module for module in MODULES if subpackage_of(module) == "results"]
    imported = {other for module in results for other in internal_imports(module)}
    assert len(imported) > 20
    assert {other for other in imported if subpackage_of(other) in TRUSTED - {"privacy"}} == set()


def test_imports_inside_the_package_name_a_module():
    # `from privrank import PrivateBTL` would bypass the order of subpackages by the lazy __init__
    allowed = set(SUBPACKAGES) | ENTRY_POINTS | {"__version__"}
    straight = [
        (module, name)
        for module in MODULES
        for name in imports(module)
        if name.startswith("privrank.") and name.count(".") == 1
    ]
    assert len(straight) > 10
    assert [pair for pair in straight if pair[1].removeprefix("privrank.") not in allowed] == []


def test_no_circle_of_imports():
    graph = {module: internal_imports(module) for module in MODULES}
    try:
        assert len(list(TopologicalSorter(graph).static_order())) == len(MODULES)
    except CycleError as error:
        pytest.fail(f"circle of imports: {error.args[1]}")


# Circles that run-time imports at the top of modules do not show, and why each is there.
CIRCLES = {
    frozenset(
        {
            *(f"local.{name}" for name in ("kinds", "protocols", "tally")),
        }
    ): "`Protocol.tally` is the curator's, whose libraries a client must not load",
}


def named_modules(module):
    """Modules of the package that a module imports anywhere, for types alone, or by a string."""
    found = set()
    for node in ast.walk(TREES[module]):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            full = {f"{node.module}.{alias.name}" for alias in node.names}
            inside = {name for name in full if name.removeprefix("privrank.") in TREES}
            found |= inside | ({node.module} if full - inside else set())
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.add(node.value)
    whole = {name.removeprefix("privrank.") for name in found if name.startswith("privrank.")}
    return (whole & TREES.keys()) - {module}


def reached(graph):
    """What can be reached from each module."""
    found = {}
    for module in graph:
        queue, seen = [module], set()
        while queue:
            fresh = graph[queue.pop()] - seen
            seen |= fresh
            queue.extend(fresh)
        found[module] = seen
    return found


def circles(graph):
    """The largest sets of modules that can all be reached from each other."""
    after = reached(graph)
    return {
        frozenset({module, *(other for other in after[module] if module in after[other])})
        for module in graph
        if module in after[module]
    }


def test_circles_of_types_strings_and_functions_are_those_listed():
    graph = {module: named_modules(module) for module in MODULES}
    graph[""] = set()
    assert sum(map(len, graph.values())) > sum(len(internal_imports(m)) for m in MODULES)
    assert circles(graph) == set(CIRCLES)
    # a new one would be seen
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}) == {frozenset("abc")}


def test_each_library_has_one_importer():
    for library, importers in ONLY_IMPORTER.items():
        assert {module for module in MODULES if uses(module, library)} == importers, library


def test_the_privacy_subpackage_imports_only_numerical_libraries():
    permitted = {"privrank", "numpy", "scipy", *sys.stdlib_module_names}
    modules = [module for module in MODULES if subpackage_of(module) == "privacy"]
    assert len(modules) > 5
    for module in modules:
        assert {name.partition(".")[0] for name in imports(module)} <= permitted, module


# What runs on a respondent's device: NumPy, the standard library and these modules alone.
CLIENT = {"client", "kinds", "protocols"}
LENT = {"privacy", "privacy.noise", "util", "util.arrays", "util.checks"}


def test_the_client_needs_only_numpy():
    client = {f"local.{module}" for module in CLIENT}
    assert client < set(MODULES)
    for module in client | LENT:
        assert internal_imports(module) <= client | LENT, module
        packages = {name.partition(".")[0] for name in imports(module)}
        assert packages <= {"numpy", "privrank", *sys.stdlib_module_names}, module


def test_files_and_functions_are_within_limits_of_size():
    functions = {
        f"{module}.{node.name}": statements(node)
        for module in MODULES
        for node in ast.walk(TREES[module])
        if isinstance(node, ast.FunctionDef)
    }
    assert len(functions) > 500
    assert {m for m in MODULES if statements(TREES[m]) > LARGEST_MODULE} == set()
    large = {name: size for name, size in functions.items() if size > LARGEST_FUNCTION}
    assert large.keys() == LARGER.keys()
    assert {name for name, size in large.items() if size > LARGER[name]} == set()


# Routines that may raise on some data or processors. `util.solvers` falls back on arithmetic that
# always ends; the others below call theirs within `solvers.with_fallback`, or before anything is
# spent: Gauss's rules are computed on import.
SAFE = {"block_diag", "helmert", "norm"}
MAY_FAIL = {
    "bradley_terry.contrasts": {"least_squares"},
    "bradley_terry.fit": {
        "LinearOperator",
        "cg",
        "minimize",
        "np.polynomial.hermite_e",
        "np.polynomial.hermite_e.hermegauss",
    },
    "bradley_terry.modelmatrix": {"eigvalsh", "matrix_rank"},
    "consensus.orders": {"LinearConstraint", "milp", "minimize"},
    "mechanisms.capped": {"minimize", "qr", "svd"},
    "plans.comparisons": {"minimize_scalar"},
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


def test_solvers_that_may_fail_are_reached_where_their_failure_is_met():
    found = {
        module: set(solver_routines(TREES[module])) - SAFE
        for module in MODULES
        if module != "util.solvers"
    }
    assert {module: routines for module, routines in found.items() if routines} == MAY_FAIL


def test_data_classes_of_the_trusted_subpackages_are_immutable():
    held = [
        kind
        for subpackage in ("privacy", "mechanisms", "encode")
        for path in (PACKAGE / subpackage).glob("[a-z]*.py")
        for kind in vars(importlib.import_module(f"privrank.{subpackage}.{path.stem}")).values()
        if isinstance(kind, type) and dataclasses.is_dataclass(kind)
        if kind.__module__.startswith(f"privrank.{subpackage}.")
    ]
    assert len(held) > 30
    for kind in held:
        assert kind.__dataclass_params__.frozen and "__slots__" in vars(kind), kind


def test_heavy_libraries_are_imported_when_first_used():
    heavy = {
        (module, library)
        for module in MODULES
        for library in HEAVY
        if uses(module, library, inside_functions=False)
    }
    # kernels is nothing but compiled loops: other modules import it inside their functions
    assert heavy == {("kernels", "numba")}
    early = [m for m in MODULES if uses(m, "privrank.kernels", inside_functions=False)]
    assert {subpackage_of(module) for module in early} == {"kernels"}


def test_only_mechanisms_open_encoded_data():
    found = {module: attributes(module) & HELD for module in MODULES}
    assert {module: held for module, held in found.items() if held} == OPENED
    # an encoder fills what it encodes; reading it there would be a way round the budget
    assert "encode" not in {subpackage_of(module) for module in OPENED}
    kinds = (Encoded, EncodedSample, EncodedGroups, EncodedChoices)
    fields = {field.name for kind in kinds for field in dataclasses.fields(kind)}
    assert {name for name in fields if name.startswith("_")} == HELD


def test_no_string_opens_encoded_data():
    # getattr(encoded, "_pairs") and encoded.__getstate__() would escape the check above
    strings = {
        node.value
        for module in MODULES
        for node in ast.walk(TREES[module])
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    assert "net wins" in strings and strings & HELD == set()


def test_encoded_data_are_passed_only_to_trusted_subpackages():
    types = {"Encoded", "EncodedSample", "EncodedGroups", "EncodedChoices"}
    found = {
        subpackage_of(module)
        for module in MODULES
        if {name.rpartition(".")[2] for name in imports(module)} & types
    }
    # plans of surveys encode simulated answers, and do not open them
    assert found == {"encode", "mechanisms", "entry points", "power"}
    assert found <= TRUSTED | {"entry points", "power"}


def test_inference_imports_neither_encoders_nor_mechanisms():
    # what computes from a release, or prints it, reaches neither encoders nor mechanisms
    blind = set(SUBPACKAGES[: SUBPACKAGES.index("encode")])
    modules = [module for module in MODULES if subpackage_of(module) in blind]
    assert len(modules) > 40
    for module in modules:
        assert not {subpackage_of(name) for name in internal_imports(module)} & (
            TRUSTED - {"privacy"}
        )


def test_only_privacy_and_mechanisms_draw():
    drawing = {"draw", "draw_bit", "draw_cells", "draw_one_each", "draw_orders", "draw_permutation"}
    drawing |= {
        "SystemRandom",
        "draw_nonzero",
        "draw_shuffles",
        "secret_generator",
    }
    # conversion completes rankings at random: an answer's own noise, nothing that protects it
    allowed = {"encode.rankingforms": {"draw_orders"}}
    looked = 0
    for module in MODULES:
        if subpackage_of(module) in TRUSTED - {"encode"}:
            continue
        looked += 1
        assert not attributes(module) & drawing, module
        # `draw` alone is a fair name for simulated numbers
        assert not (names(module) - allowed.get(module, set())) & (drawing - {"draw"}), module
    assert looked > 50


def test_only_noise_and_responses_use_random_bits_of_the_system():
    systems = {
        module
        for module in MODULES
        if uses(module, "secrets") or uses(module, "random") or "urandom" in attributes(module)
    }
    assert systems == {"privacy.draws", "privacy.noise", "local.protocols"}


def test_only_a_client_draws_reports():
    assert {module for module in MODULES if "secure" in attributes(module)} == {"local.protocols"}


def test_no_generator_is_made_outside_the_null_tables():
    # A generator of one's own would be noise or calibration nobody can audit. nulls has the
    # public counter seed; simulate draws from models, without data, and breaks ties of plain
    # rankings, which are not released. draws makes one of secret bits for what is no noise.
    made = {"default_rng", "Philox", "PCG64", "SeedSequence", "RandomState", "seed"}
    found = {module: attributes(module) & made for module in MODULES}
    assert {module: makers for module, makers in found.items() if makers} == {
        "hypotheses.nulls": {"Philox", "SeedSequence"},
        "distributions.simulate": {"default_rng"},
        "privacy.draws": {"Philox"},
    }


def test_a_fit_spends_in_one_place():
    spending = {module for module in MODULES if "Spending" in names(module)}
    assert spending == {"privacy.accounting", "privacy.budget"}
    assert {module for module in MODULES if "reserve" in attributes(module)} == {"mechanisms.spend"}


def test_mechanisms_and_inference_do_not_import_pandas():
    numerical = {"privacy", "hypotheses", "consensus", "mechanisms", "published"}
    modules = [module for module in MODULES if subpackage_of(module) in numerical]
    assert len(modules) > 20
    assert [module for module in modules if uses(module, "pandas")] == []


def test_no_class_inherits():
    heirs = {
        (module, node.name): [ast.unparse(base) for base in node.bases]
        for module in ["", *MODULES]
        for node in ast.walk(TREES[module])
        if isinstance(node, ast.ClassDef) and (node.bases or node.keywords)
    }
    exceptions = {"Exception", "UserWarning", "ValueError", "Warning"}
    found = {name: bases for name, bases in heirs.items() if not set(bases) <= exceptions}
    # the ledger's table is printed by a subpackage that the ledger does not import
    assert found.pop(("results.ledger", "Budget")) == ["Ledger"]
    # the noise of a vector is calibrated in the same way for answers to offered sets
    assert found.pop(("privacy.offered", "OfferedSensitivity")) == ["UnitSensitivity"]
    # a summary is of one release or of several that are pooled
    assert found.pop(("results.base", "Summarised")) == ["ABC"]
    assert found.pop(("results.base", "Result")) == ["Summarised"]
    assert found.pop(("results.pooled", "PooledResult")) == ["Summarised"]
    # a fit is stated by coefficient and by item
    assert found.pop(("results.btl", "BTLResult")) == ["CoefficientResult"]
    # hypotheses are tested one by one, or all at once
    assert found.pop(("results.hypotheses", "LinearHypotheses")) == ["ABC"]
    hypotheses = [found.pop(name) for name in list(found) if name[0] == "results.hypotheses"]
    assert hypotheses == [["LinearHypotheses"]] * 2
    # choices from sets have the scores of comparisons, edge by edge, in all their uses
    assert found.pop(("bradley_terry.choices", "ChoiceScore")) == ["ScoreFunction"]
    # contest covariates give scores another matrix than predictors
    assert found.pop(("bradley_terry.linear", "ContestPredictor")) == ["LinearPredictor"]
    # a protocol says what is asked and which values a ranking favours; the response is one
    assert found.pop(("local.protocols", "Protocol")) == ["ABC"]
    # a number that says its error; a design whose one answer is found from all others
    assert found.pop(("power.base", "Estimate")) == ["float"]
    assert found.pop(("power.base", "Power")) == ["ABC"]
    designs = {name: found.pop(name) for name in list(found) if name[0].startswith("power.")}
    kinds = {"Power", "ComparisonPower", "TestPower", "OneSamplePower"}
    assert {base for bases in designs.values() for base in bases} <= kinds
    protocols = {name: found.pop(name) for name in list(found) if name[0].startswith("local.")}
    assert {tuple(bases) for bases in protocols.values()} <= {("Protocol",), ("Asking",)}
    assert {module.partition(".")[0] for module, _ in found} == {"results"}
    assert {tuple(bases) for bases in found.values()} == {("Result",)}


def test_all_names_exist():
    looked = 0
    for module in MODULES:
        loaded = importlib.import_module(f"privrank.{module}")
        if all(isinstance(node, ast.Expr) for node in TREES[module].body):
            continue  # a package that is a docstring offers nothing
        looked += 1
        # a module that others import from has a list only where its names are a user's, too
        offered = list(getattr(loaded, "__all__", []))
        assert len(offered) == len(set(offered)), module
        assert [name for name in offered if not hasattr(loaded, name)] == [], module
    assert looked > 80


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
    assert [name for name in privrank.__all__ if not hasattr(privrank, name)] == []
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
    assert not loaded & {"statsmodels", "matplotlib", "cvxpy", "numba", "patsy"}


def test_studies_and_tools_import_what_there_is():
    looked = 0
    for folder in ("validation", "benchmarks", "tools", "vignettes"):
        for path in (PACKAGE.parent / folder).glob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("privrank"):
                    module = importlib.import_module(node.module)
                    for alias in node.names:
                        looked += 1
                        inner = f"{node.module}.{alias.name}"
                        found = hasattr(module, alias.name) or inner.partition(".")[2] in PATHS
                        assert found, f"{path.name}: {inner}"
    assert looked > 150


def test_no_module_gives_a_name_twice():
    looked = 0
    for module in MODULES:
        named = []
        for node in TREES[module].body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                named.append(node.name)
            elif isinstance(node, ast.Assign | ast.AnnAssign):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                parts = [part for target in targets for part in ast.walk(target)]
                named += [part.id for part in parts if isinstance(part, ast.Name)]
        looked += len(named)
        # constants and functions; an object may be worked on under its own name
        assert not {name for name in named if named.count(name) > 1}, module
    assert looked > 1000
