"""The model of ties: against psychotools, against its own scores, and where noise carries it."""

import json
import math
from dataclasses import replace
from functools import cache
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from mutating import with_check
from planting import planted
from scipy.optimize import approx_fprime, minimize

import privrank as pr
from privrank.bradley_terry import equations as readings
from privrank.bradley_terry import predictor as predictors
from privrank.bradley_terry.equations import score_equations
from privrank.bradley_terry.estimate import covariance
from privrank.bradley_terry.fit import EdgeLoss, ScoreFunction, answer_probabilities
from privrank.distributions.links import LOGIT
from privrank.release.survey import PairCounts

REFERENCE = json.loads(
    (Path(__file__).parents[1] / "reference" / "davidson.json").read_text(encoding="utf-8")
)
SURVEYS = {
    "university": (pr.datasets.load_university(), 15),
    "immigration": (pr.datasets.load_immigration(), 6),
}
quiet = pytest.mark.filterwarnings("ignore::privrank.PrivrankWarning")


def model(name="university", *, unit="respondent", **options):
    survey, rows = SURVEYS[name]
    options = {"items": survey.items, "ties": "davidson", "design": "public"} | options
    if unit == "respondent":
        return pr.PrivateBTL(
            survey.comparisons, respondent="respondent", **{"max_rows": rows} | options
        )
    return pr.PrivateBTL(survey.comparisons, respondent=None, **options)


@cache
def fitted(unit="respondent", design="public"):
    return model(unit=unit, design=design).fit(1.0, rng=np.random.default_rng(5))


def answered(name):
    """Positions of the items of each answer, the answer, and the respondent."""
    survey = SURVEYS[name][0]
    rows = survey.comparisons.dropna(subset="outcome")
    first, second = (pd.Index(survey.items).get_indexer(rows[c]) for c in ("item1", "item2"))
    return first, second, rows["outcome"].to_numpy(), rows["respondent"].to_numpy()


# --- without privacy ---


@pytest.mark.parametrize("name", SURVEYS)
@pytest.mark.parametrize("design", ["public", "private"])
@pytest.mark.parametrize("solver", ["newton", "lbfgs"])
def test_maximum_likelihood_is_that_of_psychotools(name, design, solver):
    expected = REFERENCE[name]
    for unit in ("row", "respondent"):
        result = model(name, unit=unit, design=design).fit(np.inf, penalty=0, solver=solver)
        worths = pd.Series(expected["params"])
        np.testing.assert_allclose(result.params, worths[list(result.params.index)], atol=1e-6)
        assert result.tie_parameter["estimate"] == pytest.approx(expected["undecided"], abs=1e-6)


def test_the_fit_maximises_its_likelihood():
    first, second, answer, _ = answered("immigration")

    def loss(b):
        table = answer_probabilities(b[first] - b[second], b[-1])
        chosen = np.choose((1 - answer).astype(int), table)
        return -np.log(chosen).sum()

    best = minimize(loss, np.zeros(5), tol=1e-12).x
    best[:4] -= best[:4].mean()
    result = model("immigration").fit(np.inf, penalty=0)
    np.testing.assert_allclose(result.estimate.coefficients, best, atol=1e-4)


def test_slopes_and_information_are_derivatives_of_the_loss():
    rng = np.random.default_rng(2)
    first, second = np.triu_indices(4, 1)
    pairs = PairCounts(first, second, np.ones(6), "observed")
    linear = predictors.with_ties(predictors.item_contrasts(pairs, 4))
    count, b = np.tile(rng.integers(1, 9, 6).astype(float), 3), rng.normal(size=5)
    loss = EdgeLoss.matching(ScoreFunction(LOGIT, ties=True), count)

    def slope(b):
        return linear.scores(loss.slope(linear.predict(b)))

    numeric = approx_fprime(b, lambda x: loss.value(linear.predict(x)), 1e-7)
    np.testing.assert_allclose(slope(b), numeric, atol=1e-4)
    information = linear.information(loss.curvature(linear.predict(b)))
    np.testing.assert_allclose(information, approx_fprime(b, slope, 1e-7), atol=1e-4)
    several = linear.information(np.stack([loss.curvature(linear.predict(b))] * 2))
    np.testing.assert_allclose(several[1], information)
    np.testing.assert_allclose(linear.matrix @ b, linear.predict(b))


def test_cluster_robust_errors_are_those_of_respondents_scores():
    first, second, answer, who = answered("university")
    result = model().fit(np.inf, penalty=0)
    b, m = result.estimate.coefficients, 6
    won, tied, lost = answer_probabilities(b[first] - b[second], b[-1])
    scores = np.zeros((len(answer), m + 1))
    half = 0.5 * (answer - (won - lost))
    rows = np.arange(len(answer))
    scores[rows, first], scores[rows, second] = half, -half
    scores[:, -1] = (answer == 0) - tied
    by_person = pd.DataFrame(scores).groupby(who).sum().to_numpy()
    n = result.nobs
    meat = by_person.T @ by_person * n / (n - 1)
    equations = score_equations(result.release)
    bread = np.linalg.pinv(equations.information(b), rcond=1e-10)
    found = covariance(equations, result.release, result.estimate)
    np.testing.assert_allclose(found.total, bread @ meat @ bread, rtol=1e-6, atol=1e-12)


# --- what noise can do ---


@pytest.mark.parametrize("name", SURVEYS)
def test_the_log_likelihood_is_that_of_psychotools(name):
    for unit in ("row", "respondent"):
        result = model(name, unit=unit).fit(np.inf, penalty=0)
        assert result.llf == pytest.approx(REFERENCE[name]["loglik"], abs=1e-6)


def test_the_log_likelihood_without_a_tie_counts_no_tie():
    table = pd.DataFrame([("a", "b", 1), ("b", "a", 1), ("a", "b", 1)] * 5)
    table.columns = ["item1", "item2", "outcome"]
    result = pr.PrivateBTL(
        table, items=["a", "b"], respondent=None, ties="davidson", design="public"
    ).fit(np.inf, penalty=0)
    won, _, lost = answer_probabilities(np.diff(-result.params), result.tie_parameter["estimate"])
    assert result.llf == pytest.approx(10 * math.log(won[0]) + 5 * math.log(lost[0]))


def test_private_fits_have_no_likelihood():
    with pytest.raises(ValueError, match="epsilon=numpy.inf"):
        _ = fitted().llf


def with_ties(ties):
    """The release, as if noise had made its number of ties this one."""
    release = fitted().release
    return replace(release, values={**release.values, "ties": np.array([ties])})


def check_ties(ties):
    """The number of ties is cut off where there is a fit, and that fit has a tie parameter."""
    release = with_ties(ties)
    net = release.parts["net wins"]
    total = release.design.pairs.total
    scores = net.step * net.values - np.mean(net.step * net.values)
    most = total - np.abs(scores).sum() / 2
    expected = min(max(ties, 0.5), most)
    assert score_equations(release).score[-1] == pytest.approx(expected)
    result = pr.PrivateBTL.from_release(release)
    # always a tie parameter, whatever the noise, and all of it finite
    assert math.isfinite(result.tie_parameter["estimate"])
    won, tied, _ = answer_probabilities(np.zeros(1), result.tie_parameter["estimate"])
    assert (tied[0] < 0.01) == (ties < 10) and (tied[0] > 0.5) == (ties >= 4_000)
    assert np.isfinite(result.bse).all() and won > 0
    assert result.params.idxmax() == "London"


@quiet
@pytest.mark.parametrize("ties", [-800, 0, 3, 4_000, 10**7])
def test_the_number_of_ties_is_brought_to_where_there_is_a_fit(ties):
    check_ties(ties)


CUT = "max(min(ties, total - most), 0.5)"


@quiet
@pytest.mark.parametrize(
    ("cut", "ties"),
    [
        ("max(ties, 0.5)", 10**7),
        ("max(min(ties, total - 0.5), 0.5)", 10**7),
        ("max(min(ties, total), 0.5)", 4_000),
        ("min(ties, total - most)", -800),
        ("max(min(ties, total - most), 0.0)", 0),
        # at how far noise reaches, about the scale of ties, not at what there can be
        ("max(min(ties, total - most), 20.0)", 0),
    ],
)
def test_another_cut_would_be_found(cut, ties, monkeypatch):
    planted(monkeypatch, readings, "_possible_ties", CUT, cut)
    with pytest.raises((AssertionError, ValueError)):
        check_ties(ties)


@quiet
def test_half_wins_where_ties_are_few_would_be_found(monkeypatch):
    """Planted: another model, with another estimand, whenever the noise makes ties few."""
    honest = pr.PrivateBTL.from_release

    def fallback(release):
        if release.values["ties"][0] >= 10:
            return honest(release)
        parts = {name: part for name, part in release.plan.parts.items() if name != "ties"}
        values = {name: value for name, value in release.values.items() if name != "ties"}
        halves = replace(release.survey, ties=True)
        plan = replace(release.plan, parts=parts)
        return honest(replace(release, survey=halves, plan=plan, values=values))

    monkeypatch.setattr(pr.PrivateBTL, "from_release", fallback)
    check_ties(4_000)
    with pytest.raises(ValueError, match="tie"):
        check_ties(0)


@quiet
def test_a_tie_parameter_that_noise_hides_has_an_open_interval():
    result = pr.PrivateBTL.from_release(with_ties(2))
    assert result.tie_parameter["lower"] == -np.inf
    assert "cannot be ruled out that ties have probability 0" in " ".join(
        str(result.summary()).split()
    )


@quiet
def test_without_any_tie_or_decision_there_is_a_fit():
    frame = pd.DataFrame([(a, b, 0) for a, b in combinations("abc", 2)] * 5)
    frame.columns = ["item1", "item2", "outcome"]
    for outcome in (0, 1):
        table = frame.assign(outcome=outcome)
        result = pr.PrivateBTL(
            table, items=list("abc"), respondent=None, ties="davidson", design="public"
        ).fit(np.inf)
        assert np.isfinite(result.params).all()
        assert math.isfinite(result.tie_parameter["estimate"])


@quiet
def test_noise_covariance_is_that_of_simulated_releases():
    release = fitted(design="private").release
    equations = score_equations(release)
    b = pr.PrivateBTL.from_release(release).estimate.coefficients
    drawn = equations.simulate_noise(b, 5_000, [*equations.terms.values()], b, None)
    stated = equations.linear.centred(equations.linear.centred(equations.noise_covariance(b)).T)
    found = np.cov(equations.linear.centred(drawn).T)
    scale = np.sqrt(np.diag(stated))
    np.testing.assert_allclose(
        found / np.outer(scale, scale), stated / np.outer(scale, scale), atol=0.1
    )


# --- results ---


@quiet
@pytest.mark.parametrize("design", ["public", "private"])
@pytest.mark.parametrize("unit", ["row", "respondent"])
def test_results_say_how_probable_each_answer_is(design, unit):
    result = fitted(unit, design)
    pairs = result.pairwise()
    np.testing.assert_allclose(pairs[["win", "tie", "loss"]].sum(axis=1), 1.0)
    decided = pairs["win"] / (pairs["win"] + pairs["loss"])
    np.testing.assert_allclose(decided, pairs["preferred_if_decided"])
    assert (pairs["lower"] <= decided).all() and (decided <= pairs["upper"]).all()
    frame = pairs[["item1", "item2"]]
    pd.testing.assert_frame_equal(
        result.predict(frame)[["win", "tie", "loss"]], pairs[["win", "tie", "loss"]]
    )
    ties = result.tie_parameter
    assert ties["lower"] < ties["estimate"] < ties["upper"]
    assert ties["std_err"] == pytest.approx(math.hypot(ties["sampling"], ties["privacy"]))
    (row,) = [row for row in result.summary().rows if row[0] == "tie (log nu)"]
    assert row[1] == f"{ties['estimate']:.4f}" and len(row) == len(result.summary().columns)
    again = pr.from_json(result.to_json())
    pd.testing.assert_series_equal(again.tie_parameter, ties)
    assert str(again.summary()) == str(result.summary())
    assert "tie (log nu)" in str(pr.summary_col([result]))


@quiet
def test_net_wins_are_read_as_such_by_a_selection():
    release = fitted().release
    top = pr.PrivateTopK.from_release(release, 2)
    assert set(top.items[i] for i in np.argsort(-top.estimate)[:2]) == {"London", "Paris"}
    assert pr.from_json(top.to_json()).estimate.tolist() == top.estimate.tolist()


def test_half_wins_have_no_tie_parameter():
    result = model(ties=True).fit(np.inf)
    with pytest.raises(ValueError, match="ties='davidson'"):
        _ = result.tie_parameter
    assert "preferred_plus_half_ties" in result.pairwise()


# --- refusals, before anything is spent ---


@pytest.mark.parametrize(
    ("options", "fit", "message"),
    [
        ({"ties": "half"}, {}, "ties must be"),
        ({"link": "probit"}, {}, "model for the logit"),
        ({}, {"method": "objective"}, "method='counts'"),
        ({}, {"noise": "gaussian", "delta": 1e-6}, "noise='auto'"),
        ({}, {"solver": "cvxpy"}, "solver='newton'"),
    ],
)
def test_what_has_no_proof_is_refused(options, fit, message):
    budget = pr.Budget(epsilon=2.0, delta=1e-5, unit="respondent")
    with pytest.raises(ValueError, match=message):
        model(**options).fit(1.0, budget=budget, **fit)
    assert budget.spent == (0.0, 0.0)


def test_other_models_refuse_a_tie_parameter():
    survey, rows = SURVEYS["university"]
    named = {"items": survey.items, "respondent": "respondent", "max_rows": rows}
    with pytest.raises(ValueError, match="a selection has no tie parameter"):
        pr.PrivateTopK(survey.comparisons, 2, ties="davidson", **named)
    with pytest.raises(TypeError, match="ties must be True or False"):
        pr.power.TopKPower(items=4, k=2, ties="davidson")
    with pytest.raises(ValueError, match="logit"):
        pr.PrivateBTL.from_release(fitted().release, link="probit")


@quiet
def test_a_release_with_other_ties_than_its_noise_is_none():
    record = json.loads(fitted().release.to_json())
    record["parts"]["ties"]["noise"]["scale"] /= 2
    with pytest.raises(ValueError, match="noise of the scale"):
        pr.Release.from_json(with_check(record))


# --- noise that drives worths far apart ---


def drowned(epsilon, seed, penalty=1.0):
    """A fit of 200 answers under noise that is larger than all of them together."""
    rng, items = np.random.default_rng(3), [f"i{k}" for k in range(5)]
    first = rng.integers(0, 5, 200)
    second = (first + 1 + rng.integers(0, 4, 200)) % 5
    rows = {"item1": np.take(items, first), "item2": np.take(items, second)}
    frame = pd.DataFrame(rows | {"outcome": rng.choice([1, 0, -1], 200)})
    given = {"items": items, "respondent": None, "ties": "davidson", "pair_counts": "equal"}
    test = pr.PrivateBTL(frame, **given)
    return test.fit(epsilon, rng=np.random.default_rng(seed), penalty=penalty)


@quiet
@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize(
    ("epsilon", "penalty", "seeds"),
    [(0.01, 1.0, 40), (0.001, 1.0, 20), (0.0001, 1.0, 5), (0.01, 100.0, 5), (0.1, 1.0, 5)],
)
def test_the_fit_converges_however_far_apart_noise_drives_worths(epsilon, penalty, seeds):
    for seed in range(seeds):
        result = drowned(epsilon, seed, penalty)
        tie, facts = result.tie_parameter, score_equations(result.release)
        assert result.estimate.converged and np.isfinite(result.bse).all()
        assert not result.conf_int().isna().any(axis=None)
        # the tie parameter solves its score equation, and no interval claims what noise hides
        mean = facts.function.mean(facts.linear.predict(result.estimate.coefficients))
        ties = facts.linear.scores(facts.count * mean)[-1]
        assert ties == pytest.approx(facts.score[-1], abs=1e-6)
        assert tie["lower"] <= tie["estimate"] <= tie["upper"] and tie["std_err"] > 0
        assert "solver stopped" not in str(result.summary())


@quiet
def test_every_view_of_such_a_fit_works(tmp_path):
    for seed in (2, 28):
        result = drowned(0.01, seed)
        table = result.summary(details=True)
        shown = (
            str(table),
            table.as_latex(),
            table.as_html(),
            table.as_csv(),
            result._repr_html_(),
        )
        assert all("tie (log nu)" in text for text in shown)
        assert "cannot be ruled out that ties have probability 0" in " ".join(str(table).split())
        assert result.tie_parameter[["lower", "upper"]].tolist() == [-math.inf, math.inf]
        frames = (result.tidy(), result.to_frame(), result.conf_int(), result.ranks().to_frame())
        assert all(len(frame) >= 5 for frame in frames)
        probabilities = result.probabilities().to_numpy()
        assert np.nanmin(probabilities) >= 0 and np.nanmax(probabilities) <= 1
        pairs = pd.DataFrame({"item1": ["i0", "i1"], "item2": ["i1", "i4"]})
        predicted = result.predict(pairs).to_numpy(dtype=np.float64)
        assert np.isfinite(predicted).all() and len(result.pairwise()) == 10
        result.plot(), result.plot_pairwise()
        pr.report([result], tmp_path / "page.html")
        assert str(pr.from_json(result.to_json()).summary()) == str(result.summary())


@quiet
def test_more_ties_than_comparisons_have_no_endless_parameter():
    """Nothing is identified, and the comparisons that noise has taken away are added back."""
    result = model("immigration", design="private").fit(0.01, rng=np.random.default_rng(5))
    assert abs(result.tie_parameter["estimate"]) < 100
    text = " ".join(str(result.summary()).split())
    assert "No differences are identified" in text and "Not all standard errors can be" in text
