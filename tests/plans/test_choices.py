"""What a fit releases follows the predicted error, and predictions are what comes about."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from ownlinks import SECH
from pairfits import release_counts
from scipy.integrate import quad
from scipy.stats import norm

import privrank as pr
from privrank.bradley_terry.fit import ScoreFunction
from privrank.distributions.links import find
from privrank.plans import comparisons as plan
from privrank.release.survey import Design, PairCounts

UNIVERSITY, IMMIGRATION = pr.datasets.load_university(), pr.datasets.load_immigration()
LAWS = ("laplace", "zero-sum-laplace", "permutohedron", "gaussian")


def design(items=6, nobs=300, unit="respondent", kind="private", pairs=None):
    rows = items * (items - 1) // 2 if unit == "respondent" else 1
    names = tuple(f"i{k}" for k in range(items))
    return Design(names, nobs, unit, rows, True, False, kind, pairs)


def survey(data, **arguments):
    rows = len(data.items) * (len(data.items) - 1) // 2
    arguments = {"respondent": "respondent", "max_rows": rows, "ties": True} | arguments
    return pr.PrivateBTL(data.comparisons, items=data.items, pair_counts="release", **arguments)


def test_every_release_is_considered_and_the_least_error_predicted_is_taken():
    facts = design()
    plans = plan.plan_choices(plan.Request(facts, 1.0, 1e-6))
    assert {(each.mechanism, each.noise) for each in plans} == {
        *(("net wins", distribution) for distribution in LAWS),
        ("win matrix", "laplace"),
        ("win matrix", "gaussian"),
        ("objective perturbation", "laplace"),
    }
    errors = [plan.predicted_error(plan.Request(facts, 1.0, 1e-6), each) for each in plans]
    assert errors == sorted(errors)
    for epsilon in (0.1, 1.0, 10.0):
        for unit, nobs in (("respondent", 300), ("row", 4000)):
            facts = design(nobs=nobs, unit=unit)
            request = plan.Request(facts, epsilon)
            chosen = plan.plan_fit(request)
            least = min(plan.predicted_error(request, each) for each in plan.plan_choices(request))
            assert plan.predicted_error(request, chosen) == least


@pytest.mark.parametrize("data", [UNIVERSITY, IMMIGRATION])
def test_respondents_release_net_wins_and_not_the_win_matrix(data):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pr.PrivrankWarning)
        fit = survey(data).fit(1.0, rng=np.random.default_rng(1))
    assert fit.release.mechanism == "net wins"
    assert {"net wins", "pair_counts", "dependence"} == set(fit.release.parts)


def test_shares_that_are_not_given_divide_up_what_is_left():
    request = plan.Request(design(), 1.0, shares={"dependence": 0.4})
    shares = plan.side_shares(request, ("pair_counts",))[0]
    assert shares["dependence"] == 0.4 and 0.05 < shares["pair_counts"] < 0.4
    request = plan.Request(design(), 1.0, dependence="none", shares={"pair_counts": 0.77})
    given = plan.side_shares(request, ("pair_counts",))[0]
    assert given == {"pair_counts": 0.77}


def test_rows_take_the_win_matrix_while_its_cells_are_few():
    chosen = {
        (items, nobs): plan.plan_fit(plan.Request(design(items, nobs, "row"), 0.5)).mechanism
        for items, nobs in ((3, 3000), (6, 30_000), (15, 3000))
    }
    assert chosen == {
        (3, 3000): "win matrix",
        (6, 30_000): "win matrix",
        (15, 3000): "net wins",
    }


def test_what_the_caller_asks_for_is_all_that_is_left():
    facts = design()
    for distribution in LAWS:
        plans = plan.plan_choices(plan.Request(facts, 1.0, 1e-6, "counts", noise=distribution))
        assert {each.noise for each in plans} == {distribution}
    (only,) = plan.plan_choices(plan.Request(facts, 1.0, method="objective"))
    assert only.mechanism == "objective perturbation"
    public = design(kind="public", pairs=replace(PairCounts.equal(6, 300.0), origin="observed"))
    assert {each.mechanism for each in plan.plan_choices(plan.Request(public, 1.0))} == {"net wins"}
    # a ridge too small for objective perturbation leaves it out
    assert "objective perturbation" not in {
        each.mechanism for each in plan.plan_choices(plan.Request(facts, 1.0, penalty=1e-9))
    }


def test_shares_and_pair_counts_enter_the_prediction():
    facts = design()

    def error(shares=None, facts=facts):
        request = plan.Request(facts, 1.0, method="counts", shares=shares, noise="permutohedron")
        return plan.predicted_error(request, plan.plan_fit(request))

    assert error({"dependence": 0.5}) > error()
    # counts that nobody knows: released with hardly any budget, or with so much that none is left
    assert error({"pair_counts": 0.01}) > error()
    assert error({"pair_counts": 0.85}) > error()
    for share in np.linspace(0.05, 0.8, 16):
        # the share that is taken by itself is the best, but for lattices and the distribution
        assert error({"pair_counts": share}) > 0.99 * error()
    declared = design(pairs=replace(PairCounts.equal(6, 300.0), origin="declared"))
    assert error(facts=declared) < error()


@pytest.mark.parametrize("link", ["logit", "probit", SECH])
@pytest.mark.parametrize("likelihood", [False, True])
def test_the_mean_square_pull_is_that_of_worths_of_the_spread(link, likelihood):
    function = ScoreFunction(find(link), likelihood)
    sd = np.sqrt(2.0) * function.spread
    exact, _ = quad(
        lambda t: norm.pdf(t, scale=sd) * float(function.mean(np.array([t]))[0]) ** 2,
        -9 * sd,
        9 * sd,
    )
    assert function.mean_square == pytest.approx(exact, rel=0.012)


@pytest.mark.filterwarnings("ignore::privrank.PrivrankWarning")
@pytest.mark.parametrize("mechanism", ["net wins", "win matrix", "objective perturbation"])
def test_predicted_errors_come_about(mechanism):
    # respondents who all answer everything, so that sampling error is nearly none
    rng = np.random.default_rng(2)
    truth = np.linspace(-0.9, 0.9, 5)
    frame = pr.simulate.bradley_terry(truth, repeats=3000, rng=rng)
    frame["respondent"] = frame.groupby(["item1", "item2"], observed=True).cumcount()
    model = pr.PrivateBTL(
        frame,
        items=range(5),
        respondent="respondent",
        max_rows=10,
        ties=False,
        pair_counts="release",
    )
    encoded = model._encoded
    request = plan.Request(encoded.design, 0.5)
    chosen = next(each for each in plan.plan_choices(request) if each.mechanism == mechanism)
    squares = []
    for _ in range(150):
        release = release_counts(encoded, chosen, 0.5, rng=rng)
        away = pr.PrivateBTL.from_release(release).params - truth
        squares.append(away @ away / (len(truth) - 1))
    predicted = plan.predicted_error(request, chosen)
    assert 0.5 < np.sqrt(np.mean(squares) / predicted) < 1.6
