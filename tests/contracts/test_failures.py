"""Nothing that happens once epsilon is spent can raise, whatever a library's routines do.

Every routine of numpy.linalg, scipy.linalg, scipy.optimize and cvxpy that a fit and its result call
is made to fail, one at a time and all at once. What comes back is what comes back otherwise, to
rounding, or says what is missing: never another number.
"""

import importlib
import pkgutil
import sys
import warnings
from contextlib import ExitStack, contextmanager
from functools import cache
from itertools import combinations
from types import SimpleNamespace
from unittest.mock import patch

import numpy as np
import pandas as pd
import pytest
from scipy.linalg import LinAlgError

import privrank as pr
from privrank import btl as btl_module
from privrank.bradley_terry import contrasts, fit, linear
from privrank.mechanisms.capped import GAP, capped_norm
from privrank.results.ledger import Budget

ITEMS = ("a", "b", "c", "d")
PAIRS = list(combinations(ITEMS, 2))
SUM = " + ".join(ITEMS)

for found in pkgutil.walk_packages(pr.__path__, "privrank."):
    if "__main__" not in found.name:
        importlib.import_module(found.name)


def comparisons(people=40, items=ITEMS, seed=3):
    rng = np.random.default_rng(seed)
    rows = [(person, *pair) for person in range(people) for pair in combinations(items, 2)]
    frame = pd.DataFrame(rows, columns=["respondent", "item1", "item2"])
    frame["group"] = np.where(frame["respondent"] % 2, "x", "y")
    worth = pd.Series(np.linspace(0.5, -0.5, len(items)), index=items)
    gap = frame["item1"].map(worth).to_numpy() - frame["item2"].map(worth).to_numpy()
    return frame.assign(outcome=np.where(rng.random(len(frame)) < 1 / (1 + np.exp(-gap)), 1, -1))


def rankings(n=40, items=ITEMS, seed=4):
    rng = np.random.default_rng(seed)
    ranks = np.argsort(np.argsort(rng.normal(0, 1, (n, len(items))) + 0.4 * np.arange(len(items))))
    frame = pd.DataFrame(ranks.argsort(axis=1) + 1, columns=items)
    return frame.assign(group=pd.Categorical(np.where(np.arange(n) % 2, "x", "y")))


def btl(**fit):
    design = fit.pop("design", "private")
    link, items = fit.pop("link", "logit"), fit.pop("items", ITEMS)
    return lambda: (
        pr.PrivateBTL(
            comparisons(2 if len(items) > 99 else 40, items),
            items=items,
            respondent="respondent",
            max_rows=len(items) * (len(items) - 1) // 2,
            ties=False,
            design=design,
            link=link,
        ),
        fit,
    )


def formula(right, **fit):
    design, link = fit.pop("design", "private"), fit.pop("link", "logit")
    more = {"levels": {"group": ["x", "y"]}} if "group" in right else {}
    if fit.pop("scores", False):
        more |= {"item_formula": "z", "item_data": pd.DataFrame({"z": [3, 1, 2, 0]}, index=ITEMS)}
    return lambda: (
        pr.PrivateBTL.from_formula(
            f"item1 + item2 + outcome ~ {right}",
            comparisons(),
            items=ITEMS,
            respondent="respondent",
            max_rows=6,
            ties=False,
            design=design,
            link=link,
            **more,
        ),
        fit,
    )


def topk(**fit):
    arguments = {"items": ITEMS, "respondent": "respondent", "max_rows": 6, "ties": False}
    return lambda: (pr.PrivateTopK(comparisons(), 2, **arguments, design="public"), fit)


MANY, MORE = (tuple(f"i{k:02d}" for k in range(m)) for m in (12, 24))
PUBLIC = {"design": "public"}
CASES = {
    "BTL, counts": btl(method="counts", **PUBLIC),
    "BTL, released counts": btl(method="counts", epsilon=8.0),
    "BTL, objective": btl(method="objective", **PUBLIC),
    "BTL, objective by lbfgs": btl(method="objective", solver="lbfgs", **PUBLIC),
    "BTL, objective by cvxpy": btl(method="objective", solver="cvxpy", **PUBLIC),
    "BTL, conjugate gradients": btl(method="objective", **PUBLIC),
    "BTL, probit": btl(link="probit", **PUBLIC),
    "BTL, probit, non-private": btl(link="probit", epsilon=np.inf, penalty=0, **PUBLIC),
    "BTL, unpenalised": btl(penalty=0, **PUBLIC),
    "BTL, cluster": btl(epsilon=np.inf, dependence="cluster", **PUBLIC),
    "formula, public": formula("group", **PUBLIC),
    "formula, private": formula("group", epsilon=8.0),
    "formula, unpenalised": formula("group", epsilon=np.inf, penalty=0, **PUBLIC),
    "formula, item covariates": formula("1", scores=True, **PUBLIC),
    "top k": topk(),
    "aggregation": lambda: (pr.PrivateRankAggregation(rankings()[list(ITEMS)]), {}),
    "aggregation, kemeny": lambda: (
        pr.PrivateRankAggregation(rankings(30, MORE)[list(MORE)]),
        {"method": "kemeny", "epsilon": 0.5},
    ),
    "uniformity": lambda: (pr.UniformityTest(rankings()[list(ITEMS)]), {}),
    "identity": lambda: (pr.IdentityTest(rankings()[list(ITEMS)], pr.Mallows(4, 0.8)), {}),
    "closeness": lambda: (
        pr.ClosenessTest.from_formula(f"{SUM} ~ group", rankings()),
        {"permutations": 99},
    ),
}

# What each result says, as numbers; a method that a result does not have is left out.
METHODS = {
    "conf_int": lambda r: r.conf_int(),
    "rank_conf_int": lambda r: r.rank_conf_int(),
    "pairwise": lambda r: r.pairwise(),
    "pairwise, simultaneous": lambda r: r.pairwise(simultaneous=True),
    "test_homogeneity": lambda r: r.test_homogeneity(),
    "wald_test_terms": lambda r: r.wald_test_terms(),
    "test_lack_of_fit": lambda r: r.test_lack_of_fit() if "z" in "".join(r.params.index) else None,
    "wald_test": lambda r: r.wald_test(np.eye(len(r.params))[:1]),
    "t_test": lambda r: r.t_test(np.eye(len(r.params))[:1]),
    "quasi_se": lambda r: r.quasi_se(),
    "cov_params": lambda r: r.cov_params(),
    "worths": lambda r: r.worths() if callable(r.worths) else None,
    "to_frame": lambda r: r.to_frame(),
}


def numbers(value):
    """All numbers of a frame, a series or a test, in a row."""
    if value is None:
        return np.zeros(0)
    if isinstance(value, pd.DataFrame):
        return value.select_dtypes(["number", "bool"]).to_numpy(dtype=float).ravel()
    if isinstance(value, pd.Series):
        return pd.to_numeric(value, errors="coerce").to_numpy(dtype=float)
    return np.hstack([np.ravel(np.asarray(value.pvalue, float)), np.ravel(value.statistic)])


def said(result):
    """Everything that a result says: its texts, and the numbers of its methods by name."""
    summary = result.summary()
    texts = [summary.as_text(), summary.as_html(), summary.as_latex(), result.to_json()]
    assert all(texts) and pr.from_json(result.to_json()).to_json() == result.to_json()
    asked = {name: ask for name, ask in METHODS.items() if hasattr(result, name.split(",")[0])}
    return summary.as_text(), {name: answer(ask, result) for name, ask in asked.items()}


def answer(ask, result):
    """The numbers of a method, or the sentence by which it refuses what this result has not."""
    try:
        return numbers(ask(result))
    except (TypeError, ValueError) as refused:
        assert not isinstance(refused, LinAlgError)
        return str(refused)


def run(case, faults=None):
    """Fit with seeded noise under faults that begin as soon as epsilon is spent."""
    model, options = CASES[case]()
    options = {"epsilon": 1.0, "rng": np.random.default_rng(5)} | options
    budget = Budget(
        epsilon=options["epsilon"], unit="respondent" if "resp" in repr(model) else "row"
    )
    with ExitStack() as stack:
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")
        if "conjugate" in case:
            stack.enter_context(patch.object(fit, "DENSE_LIMIT", 1))
        stack.enter_context(replaced(faults or {}, budget))
        result = model.fit(budget=budget, **options)
        return (result, *said(result))


LIBRARIES = ("scipy.linalg", "scipy.optimize", "scipy.sparse.linalg")
NOT_SOLVERS = {"block_diag", "helmert", "LinearConstraint", "LinearOperator", "LinAlgError"}


def routines():
    """Where the package reaches a library's routines: (holder, name) of each, by name."""
    found = {}
    for module in pr_modules():
        for name, value in vars(module).items():
            home = getattr(value, "__module__", None) or ""
            if callable(value) and home.startswith(LIBRARIES) and name not in NOT_SOLVERS:
                found.setdefault(name, []).append((module, name))
    for name in ("eigh", "eigvalsh", "inv", "solve", "pinv", "svd", "qr", "matrix_rank"):
        found.setdefault(f"numpy {name}", []).append((np.linalg, name))
    found["numpy cholesky"] = [(np.linalg, "cholesky")]
    return found


def pr_modules():
    return [module for name, module in sorted(sys.modules.items()) if name.startswith("privrank")]


def raises(*_, **__):
    raise LinAlgError("did not converge")


GIVES_UP = {
    "cg": lambda system, right, **_: (np.zeros(len(right)), 1),
    "minimize": lambda _, start, *__, **___: SimpleNamespace(x=np.full(len(start), np.nan)),
    "least_squares": lambda _, start, *__, **___: SimpleNamespace(x=np.full(len(start), np.nan)),
    "milp": lambda *_, **__: SimpleNamespace(x=None, fun=None, status=1, mip_dual_bound=None),
}


@contextmanager
def replaced(faults, budget=None):
    """Put functions in the place of routines, by name, once the budget has been spent."""
    import cvxpy

    def in_place_of(original, fault):
        def routine(*arguments, **options):
            spent = budget is None or budget.spendings
            return (fault(original) if spent else original)(*arguments, **options)

        return routine

    places = routines() | {"cvxpy": [(cvxpy.Problem, "solve")]}
    with ExitStack() as stack:
        for routine, fault in faults.items():
            for holder, name in places[routine]:
                stack.enter_context(
                    patch.object(holder, name, in_place_of(getattr(holder, name), fault))
                )
        yield


EVERY = sorted({*routines(), "cvxpy"})


def noting(names):
    """Faults that only note which routine was called."""

    def note(routine):
        def fault(original):
            names.add(routine)
            return original

        return fault

    return {routine: note(routine) for routine in EVERY}


@cache
def called(case):
    """Run a case, and tell which routines it calls after epsilon is spent."""
    names = set()
    return run(case, noting(names)), sorted(names)


def faults_of(used):
    """Every way in which these routines can fail: one at a time, and all at once."""
    failing = {name: (lambda _: raises) for name in used}
    faults = {name: {name: fault} for name, fault in failing.items()} | {"all of them": failing}
    return faults | {
        f"{name} gives up": {name: lambda _, name=name: GIVES_UP[name]}
        for name in used
        if name in GIVES_UP
    }


def assert_same_or_missing(case, fault, plain, other):
    for name, expected in plain.items():
        found = other[name]
        if isinstance(expected, str):
            assert found == expected, (case, fault, name)
            continue
        assert not isinstance(found, str), (case, fault, name, found)
        assert found.shape == expected.shape, (case, fault, name)
        here = ~np.isnan(found)
        off = ~np.isclose(found[here], expected[here], rtol=1e-6, atol=1e-6)
        assert not off.any(), (case, fault, name, found[here][off], expected[here][off])


def holes(values):
    return 0 if isinstance(values, str) else int(np.isnan(values).sum())


@pytest.mark.parametrize("case", CASES)
def test_no_failure_of_a_routine_is_an_error(case):
    (_, _, plain), used = called(case)
    for name, faults in faults_of(used).items():
        result, text, other = run(case, faults)
        if "gap" in result.release.found and not result.proven:
            words = " ".join(text.split())
            assert "with a lower Kemeny score, by at most" in words
            continue
        assert_same_or_missing(case, name, plain, other)
        missing = [key for key, values in other.items() if holes(values) > holes(plain[key])]
        # the frame of quasi standard errors says of each whether there is one
        missing = [key for key in missing if key != "quasi_se"]
        assert not missing or "missing" in text, (case, name, missing)


SHAPE = (6, 16)


def capped(faults):
    """The capped norm of two opposed camps, which no unit vector near their sum describes."""
    n, m = SHAPE
    rng = np.random.default_rng(1)
    camp = np.where(rng.random(n)[:, None] < 0.5, np.arange(m), np.arange(m)[::-1])
    ranks = np.argsort(np.argsort(camp + rng.normal(0, 1, SHAPE), axis=1), axis=1) + 1
    with replaced(faults):
        return capped_norm(n, m).value(ranks)


def test_the_capped_norm_is_certified_whatever_fails():
    used = set()
    plain = capped(noting(used))
    assert {"minimize", "cho_factor", "numpy eigh", "qr", "svd"} <= used
    for name, faults in faults_of(used).items():
        assert abs(capped(faults) - plain) <= GAP * capped_norm(*SHAPE).sensitivity, name


@pytest.mark.parametrize("case", ["BTL, counts", "BTL, released counts", "BTL, cluster"])
def test_errors_without_an_answer_are_missing_and_said_to_be(monkeypatch, case):
    result = btl_module.infer(run(case)[0].release)
    nothing = np.full((len(ITEMS), len(ITEMS)), np.nan)
    monkeypatch.setattr(linear, "inverse", lambda _: nothing)
    monkeypatch.setattr(contrasts, "whitener", lambda _: lambda rows: np.full_like(rows, np.nan))
    text, other = said(result)
    assert "some standard errors, intervals or p-values are missing" in " ".join(text.split())
    assert np.isfinite(result.params).all()
    for name in ("cov_params", "test_homogeneity"):
        assert np.isnan(other[name]).all(), name
    if case == "BTL, cluster":  # tests of single contrasts do without the covariance
        assert np.isfinite(other["conf_int"]).all() and result.pairwise()["std_err"].isna().all()
        return
    assert np.isnan(other["conf_int"]).all()
    for simultaneous in (False, True):
        frame = result.pairwise(simultaneous=simultaneous)
        assert frame[["std_err", "lower", "upper", "pvalue"]].isna().all(axis=None)
    assert np.isnan([result.wald_test("a = b").pvalue, result.t_test("a = b").pvalue]).all()
    # nothing is certain, then
    assert (result.rank_conf_int() == [1, len(ITEMS)]).all(axis=None)


@pytest.mark.parametrize("case", ["formula, public", "formula, private"])
def test_coefficients_without_errors_say_so(monkeypatch, case):
    release = run(case)[0].release
    monkeypatch.setattr(linear, "inverse", lambda matrix: np.full_like(matrix, np.nan))
    result = btl_module.infer(release)
    text, other = said(result)
    assert "some standard errors, intervals or p-values are missing" in " ".join(text.split())
    assert np.isfinite(result.params).all()
    assert result.bse.isna().all() and result.pvalues.isna().all()
    assert np.isnan(other["wald_test_terms"].reshape(-1, 3)[:, [0, 2]]).all()


@pytest.mark.parametrize("case", ["BTL, counts", "formula, public", "formula, unpenalised"])
def test_a_fit_that_stops_early_says_so(monkeypatch, case):
    release = run(case)[0].release
    monkeypatch.setattr(fit, "_STEPS", 1)
    with pytest.warns(pr.PrivrankWarning, match="solver stopped before it reached"):
        result = btl_module.infer(release, penalty=1e-3, warn=True)
    assert np.isfinite(result.params).all()


def test_the_cases_reach_the_routines():
    # the tests above can fail: together they call what the package imports, but what runs before
    reached = {"minimize_scalar"}
    for case in CASES:
        reached |= set(called(case)[1])
    capped_norm.cache_clear()
    capped(noting(reached))
    assert {name for name in set(EVERY) - reached if not name.startswith("numpy")} == set()
