"""The ledger: exact sums, refusal before anything is read or drawn, one owner, one unit."""

import copy
import math
import pickle
import sys
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from itertools import product

import numpy as np
import pandas as pd
import pytest

import privrank as pr
from privrank import btl
from privrank.mechanisms import comparisons as mechanisms
from privrank.plans import choice as calibration
from privrank.privacy.accounting import pure_epsilon, split
from privrank.privacy.knorm import PermutohedronNoise, ZeroSumLaplace

COMPARISONS = pd.DataFrame(
    [(who, *pair, outcome) for who, outcome in ((1, 1), (2, -1), (3, 0)) for pair in ("ab", "bc")],
    columns=["respondent", "item1", "item2", "outcome"],
)
pytestmark = pytest.mark.filterwarnings("ignore::privrank.util.checks.PrivrankWarning")

UNIT = {None: "row", "respondent": "respondent"}
FITS = {
    "counts": (pr.PrivateBTL, {}, {"method": "counts"}),
    "released pair counts": (pr.PrivateBTL, {"pair_counts": "release"}, {"method": "counts"}),
    "objective": (pr.PrivateBTL, {}, {"method": "objective"}),
    "public design": (pr.PrivateBTL, {"design": "public"}, {}),
    "top k": (pr.PrivateTopK, {"k": 1}, {}),
}


def build(name, respondent):
    kind, arguments, options = FITS[name]
    rows = {"max_rows": 2} if respondent else {}
    return kind(
        COMPARISONS, items=["a", "b", "c"], respondent=respondent, ties=True, **rows, **arguments
    ), options


def test_ten_tenths_are_one():
    budget = pr.Budget(epsilon=1.0, delta=1e-5)
    for _ in range(10):
        budget.reserve("test", 0.1, 1e-6, unit="row")
    assert budget.spent == (1.0, 1e-5) and budget.left == (0.0, 0.0)
    with pytest.raises(pr.BudgetExceeded):
        budget.reserve("test", 1e-9, 0.0, unit="row")
    assert len(budget.spendings) == 10


@pytest.mark.parametrize("epsilon, delta", [(0.70001, 0.0), (0.1, 2e-6), (math.inf, 0.0)])
def test_refusal_leaves_the_ledger_as_it_was(epsilon, delta):
    budget = pr.Budget(epsilon=1.0, delta=1e-6)
    budget.reserve("first", 0.3, 0.0, unit="row")
    before = budget.spendings
    with pytest.raises(pr.BudgetExceeded, match="No data were read and no noise was drawn"):
        budget.reserve("second", epsilon, delta, unit="row")
    assert budget.spendings == before


def test_unlimited_budget_keeps_account():
    budget = pr.Budget(epsilon=np.inf, delta=0.1)
    budget.reserve("private", 1.0, 0.1, unit="row")
    budget.reserve("non-private", math.inf, 0.0, unit="row")
    assert budget.spent == (math.inf, 0.1) and budget.left == (math.inf, 0.0)
    with pytest.raises(pr.BudgetExceeded):
        budget.reserve("delta", 1.0, 1e-9, unit="row")


@pytest.mark.parametrize("epsilon, delta", [(-5.0, 0.0), (0.5, -0.1), (0.0, 0.0)])
def test_a_spending_cannot_give_budget_back(epsilon, delta):
    budget = pr.Budget(epsilon=1.0, delta=0.5)
    with pytest.raises(ValueError):
        budget.reserve("test", epsilon, delta, unit="row")
    assert budget.spendings == ()


def test_numpy_numbers_are_numbers():
    budget = pr.Budget(epsilon=np.float64(1.0))
    budget.reserve("test", np.float64(0.1), np.float64(0.0), unit="row")
    assert budget.left == (0.9, 0.0)


class Tripwire:
    """Stands in for encoded data: the public design may be read, nothing else."""

    def __init__(self, design):
        self.design = design

    def __getattr__(self, name):
        raise AssertionError(f"sensitive data were read: {name}")


def forbid(*_, **__):
    raise AssertionError("noise was drawn")


@pytest.mark.parametrize("respondent", UNIT)
@pytest.mark.parametrize("name", FITS)
def test_refused_fit_reads_and_draws_nothing(monkeypatch, name, respondent):
    fitted, options = build(name, respondent)
    fitted._encoded = Tripwire(fitted._encoded.design)
    monkeypatch.setattr(calibration.DiscreteLaplace, "draw", forbid)
    monkeypatch.setattr("privrank.mechanisms.comparisons.draw_cells", forbid)
    for distribution in (ZeroSumLaplace, PermutohedronNoise):
        monkeypatch.setattr(distribution, "draw", forbid)
    monkeypatch.setattr(mechanisms, "draw_permutation", forbid)
    rng = np.random.default_rng(0)
    state = rng.bit_generator.state
    small = pr.Budget(epsilon=0.5, unit=UNIT[respondent])
    with pytest.raises(pr.BudgetExceeded):
        fitted.fit(epsilon=1.0, budget=small, rng=rng, **options)
    wrong = pr.Budget(epsilon=5.0, unit="row" if respondent else "respondent")
    with pytest.raises(ValueError, match="budget protects one"):
        fitted.fit(epsilon=1.0, budget=wrong, rng=rng, **options)
    assert small.spendings == wrong.spendings == ()
    assert rng.bit_generator.state == state
    # the wire is live: once the budget allows the fit, reading trips it and the spending stands
    enough = pr.Budget(epsilon=1.0, unit=UNIT[respondent])
    with pytest.raises(pr.FitError, match="nothing was released.*AssertionError"):
        fitted.fit(epsilon=1.0, budget=enough, rng=rng, **options)
    assert enough.left == (0.0, 0.0)


@pytest.mark.parametrize("name", FITS)
def test_refused_non_private_run_reads_nothing(name):
    fitted, options = build(name, "respondent")
    fitted._encoded = Tripwire(fitted._encoded.design)
    with pytest.raises(pr.BudgetExceeded):
        fitted.fit(epsilon=np.inf, budget=pr.Budget(epsilon=1.0, unit="respondent"), **options)


def test_unit_mismatch_says_what_to_do():
    fit, _ = build("counts", "respondent")
    message = (
        "budget protects one row but this fit protects one respondent "
        "\\(max_rows=2\\). Epsilon 0.5 per .* Use a Budget\\(unit='respondent'\\)"
    )
    with pytest.raises(ValueError, match=message):
        fit.fit(epsilon=0.5, budget=pr.Budget(epsilon=9.0))
    fit, _ = build("counts", None)
    with pytest.raises(ValueError, match="protects one respondent but .* one row. Name the resp"):
        fit.fit(epsilon=0.5, budget=pr.Budget(epsilon=9.0, unit="respondent"))


@pytest.mark.parametrize("name", FITS)
def test_fit_enters_what_it_spends(name):
    fit, options = build(name, "respondent")
    budget = pr.Budget(epsilon=3.0, delta=1e-6, unit="respondent")
    rng = np.random.default_rng(0)
    fit.fit(epsilon=1.1, delta=1e-7, budget=budget, rng=rng, **options)
    fit.fit(epsilon=0.4, budget=budget, rng=rng, **options)
    assert [(line.epsilon, line.delta) for line in budget.spendings] == [(1.1, 1e-7), (0.4, 0.0)]
    assert budget.left == (1.5, 9e-7)


def test_failure_after_the_draw_keeps_the_spending(monkeypatch):
    fit, _ = build("counts", "respondent")
    monkeypatch.setattr(btl, "infer", forbid)
    budget = pr.Budget(epsilon=1.0, unit="respondent")
    with pytest.raises(pr.FitError):
        fit.fit(epsilon=0.25, budget=budget)
    assert budget.left == (0.75, 0.0)


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, pickle.dumps])
def test_two_copies_would_each_spend(duplicate):
    with pytest.raises(TypeError, match="cannot be copied or pickled"):
        duplicate(pr.Budget(epsilon=1.0))


def test_threads_share_one_ledger():
    budget = pr.Budget(epsilon=1.0)

    def spend(_):
        try:
            budget.reserve("thread", 0.01, 0.0, unit="row")
        except pr.BudgetExceeded:
            return False
        return True

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as pool:
            granted = sum(pool.map(spend, range(300)))
    finally:
        sys.setswitchinterval(interval)
    assert granted == len(budget.spendings) == 100
    assert budget.left == (0.0, 0.0)


def test_what_is_entered_without_rho_has_that_of_its_epsilon():
    budget = pr.Budget(epsilon=1.0, delta=1e-6, unit="row")
    budget.reserve("a mean", 0.5, 0.0, unit="row")
    budget.reserve("noise of another law", 0.25, 1e-7, unit="row")
    budget.reserve("Gaussian noise", 0.25, 1e-7, unit="row", rho=0.002)
    assert [line.rho for line in budget.spendings] == [0.125, None, 0.002]


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1.0, 3.0])
@pytest.mark.parametrize("delta", [0.0, 1e-6, 0.01, 0.3])
def test_pure_epsilon_gives_the_approximate_guarantee(epsilon, delta):
    # an event and its complement make every pair of distributions a pair of two-point distributions
    ratio = math.exp(pure_epsilon(epsilon, delta))
    q = np.concatenate((np.linspace(0, 1, 2001), [1 / (1 + ratio), ratio / (1 + ratio)]))
    p = np.minimum(ratio * q, 1 - (1 - q) / ratio)
    assert (p <= math.exp(epsilon) * q + delta + 1e-15).all()
    if delta == 0:
        assert (p - math.exp(epsilon) * q).max() == pytest.approx(0, abs=1e-12)
        assert pure_epsilon(epsilon, 0.0) == epsilon


@pytest.mark.parametrize("epsilon", [1e-3, 0.1, 0.3, 1 / 3, 1.0, 7.7])
def test_split_never_exceeds_the_whole(epsilon):
    shares = (0.01, 0.1, 0.25, 1 / 3)
    for one, other in product(shares, repeat=2):
        parts = split(epsilon, {"one": one, "other": other}, "main")
        whole = sum(map(Fraction, parts.values()))
        assert whole <= Fraction(epsilon)
        assert float(whole) == pytest.approx(epsilon, rel=1e-14)
    assert set(split(math.inf, {"one": 0.5}, "main").values()) == {math.inf}
