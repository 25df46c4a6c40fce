"""Simulated fits: they are the fits of their answers, and say what many of them would."""

import math
import pickle
from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom, chisquare, norm

import privrank as pr
from privrank.planning.simulation import Outcome, share_of
from privrank.power.comparisons import _outcome, _standard_error, median_of
from privrank.power.fits import _different
from privrank.release.names import MOMENTS
from privrank.topk import infer
from privrank.util.workers import Workers

NAMES = tuple("0123")


def fits_of(nobs, epsilon, contrast, **settings):
    plan = pr.power.BTLPower(items=4, **{"answers": "independent", **settings})
    at = plan._checked({"nobs": nobs, "epsilon": epsilon, "effect": contrast})
    return plan._fits(at)


def frame_of(answers):
    """Return the answers of a simulated survey as a user has them."""
    some, rows = answers.asked.shape
    pair = answers.asked.ravel()
    first, second = np.triu_indices(4, 1)
    return pd.DataFrame(
        {
            "item1": np.array(NAMES)[first[pair]],
            "item2": np.array(NAMES)[second[pair]],
            "outcome": np.rint(answers.away.ravel() + answers.mean[pair]).astype(int),
            "respondent": np.repeat(np.arange(some), rows),
        }
    )


@pytest.mark.parametrize(
    ("epsilon", "settings"),
    [
        (math.inf, {"max_rows": 6, "design": "public"}),
        (math.inf, {"max_rows": 3}),
        (math.inf, {"unit": "row"}),
        (400.0, {"max_rows": 6, "design": "public", "dependence": "worst"}),
        (400.0, {"max_rows": 3, "dependence": "worst"}),
        (400.0, {"max_rows": 3, "dependence": "pairs"}),
        (400.0, {"max_rows": 6, "design": "public", "dependence": "pairs"}),
        (400.0, {"max_rows": 3, "method": "objective"}),
        (400.0, {"unit": "row"}),
    ],
)
def test_a_simulated_fit_is_the_fit_of_its_answers(epsilon, settings):
    fits = fits_of(120, epsilon, 0.6, worths=1.0, **settings)
    simulated, _ = fits.fit(3)
    options = {name: settings[name] for name in ("method", "dependence") if name in settings}
    model = pr.PrivateBTL(
        frame_of(fits._simulated(3)),
        items=NAMES,
        respondent=None if settings.get("unit") == "row" else "respondent",
        max_rows=settings.get("max_rows", 1),
        design=settings.get("design", "private"),
    )
    fitted = model.fit(epsilon, rng=np.random.default_rng(0), **options)
    close = 1e-8 if math.isinf(epsilon) else 0.03
    assert simulated.fitted.coefficients == pytest.approx(fitted.params.to_numpy(), abs=close)
    errors = np.sqrt(np.diag(simulated.errors.total))
    assert errors == pytest.approx(fitted.bse.to_numpy(), rel=max(close, 1e-6))


def test_small_surveys_are_simulated_answer_by_answer():
    for settings in ({"mode": "local"}, {"max_rows": 5}, {"max_rows": 4, "design": "public"}):
        plan = pr.power.BTLPower(items=30, worths=2.0, answers="independent", **settings)
        fits = plan._fits(plan._checked({"nobs": 500, "epsilon": 2.0, "effect": 1.0}))
        for number in range(5):
            answers = fits._simulated(number)
            some, rows = answers.asked.shape
            assert some == 500
            assert answers.count.sum() == pytest.approx(500 * rows)
            assert all(len(set(each)) == rows for each in answers.asked.tolist())
            assert (np.abs(answers.net) <= answers.count + 1e-9).all()
            odd = np.abs(answers.net - np.rint(answers.net)) > 1e-9
            odd |= (np.rint(answers.net) - answers.count) % 2 != 0
            assert not odd.any()


def test_pairs_of_a_respondent_are_different_ones_and_all_sets_alike():
    rng = np.random.default_rng(3)
    asked = np.sort(_different(40_000, 3, 5, rng), axis=1)
    sets, times = np.unique(asked, axis=0, return_counts=True)
    assert len(sets) == math.comb(5, 3)
    assert chisquare(times).pvalue > 1e-4
    assert (np.sort(_different(7, 5, 5, rng), axis=1) == np.arange(5)).all()


def test_ties_that_responses_make_up_are_simulated():
    names = [str(number) for number in range(6)]
    plan = pr.power.BTLPower(items=6, mode="local", ties=True, replicates=60)
    protocol = pr.local.Comparisons(names, epsilon=1.0, ties=True)
    worths, errors, ties = plan._worths(0.5), [], []
    for run in range(12):
        rng = np.random.default_rng([5, run])
        pair = rng.integers(0, 15, 3000)
        first, second = protocol.all_pairs[pair].T
        ahead = rng.random(3000) < 1.0 / (1.0 + np.exp(worths[second] - worths[first]))
        ranks = np.full((3000, 6), 3)
        ranks[np.arange(3000), first] = np.where(ahead, 1, 2)
        ranks[np.arange(3000), second] = np.where(ahead, 2, 1)
        tally = protocol.tally(protocol.simulate(ranks, rng, pair))
        ties.append((tally.answer == 2) @ tally.count / 3000)
        covariance = pr.PrivateBTL.from_reports(tally).cov_params().to_numpy()
        errors.append(math.sqrt(covariance[0, 0] + covariance[1, 1] - 2.0 * covariance[0, 1]))
    fits = plan._fits(plan._checked({"nobs": 3000, "epsilon": 1.0, "effect": 0.5}))
    decided = np.mean([fits._simulated(number).decided.sum() for number in range(12)]) / 3000
    assert 1.0 - decided == pytest.approx(np.mean(ties), abs=0.015)
    assert plan.standard_error(3000, 1.0, 0.5) == pytest.approx(np.median(errors), rel=0.02)


def test_sparse_reports_have_the_errors_of_fits():
    plan = pr.power.BTLPower(items=30, mode="local", replicates=30)
    protocol = pr.local.Comparisons([str(number) for number in range(30)], epsilon=4.0)
    errors = []
    for run in range(12):
        rng = np.random.default_rng([6, run])
        ranks = rng.random((500, 30)).argsort(axis=1).argsort(axis=1) + 1
        covariance = pr.PrivateBTL.from_reports(protocol.tally(protocol.simulate(ranks, rng)))
        covariance = covariance.cov_params().to_numpy()
        errors.append(math.sqrt(covariance[0, 0] + covariance[1, 1] - 2.0 * covariance[0, 1]))
    assert plan.standard_error(500, 4.0) == pytest.approx(np.median(errors), rel=0.08)


def test_comparisons_that_fall_apart_find_nothing():
    fits = fits_of(2, math.inf, 1.0, max_rows=1, design="public")
    for number in range(5):
        inference, near = fits.fit(number)
        assert inference is None
        assert fits.release(number)[0] is None
        assert np.isfinite(near).all()
    plan = pr.power.BTLPower(items=4, design="public", replicates=20)
    assert plan.power(2, math.inf, 1.0) < 0.05
    assert plan.standard_error(2, math.inf) == math.inf
    assert plan.standard_error(2, math.inf).error == math.inf
    top = pr.power.TopKPower(items=4, k=1, design="public", replicates=20)
    assert top.power(2, math.inf, 1.0) < 0.05


def test_selections_without_noise_keep_the_moments_of_respondents():
    plan = pr.power.TopKPower(items=4, k=1, max_rows=6)
    at = plan._checked({"nobs": 60, "epsilon": math.inf, "effect": 0.5})
    _, planned = plan._survey().planned(at, plan._choice)
    assert set(MOMENTS) <= planned.parts.keys()


@pytest.mark.parametrize("rows", [2, 6])
def test_sums_of_large_surveys_vary_as_they_should(rows):
    fits = fits_of(40_000, 1.0, 1.0, max_rows=rows, worths=2.0, answers=1.7)
    drawn = [fits._simulated(number) for number in range(300)]
    share, mean = rows / 6, drawn[0].mean
    count = np.array([each.count for each in drawn])
    assert count.mean(axis=0) == pytest.approx(40_000 * share, rel=0.002)
    assert count.var(axis=0).mean() == pytest.approx(40_000 * share * (1 - share), rel=0.1)
    net = np.array([each.net - each.count * mean for each in drawn])
    assert net.var(axis=0) == pytest.approx(40_000 * 1.7 * share * (1 - mean**2), rel=0.35)
    off, ends = 0.5 * mean, drawn[0].ends.toarray()
    moments = np.mean([each.by_item(off) for each in drawn], axis=0) / 40_000
    rest, both = mean - off, share * (rows - 1) / 5
    spread = share * 1.7 * (1 - mean**2) + (share - both) * rest**2
    exact = ends.T @ (spread[:, None] * ends) + both * np.outer(rest @ ends, rest @ ends)
    assert moments == pytest.approx(exact, abs=0.01)


@pytest.mark.parametrize(
    ("nobs", "epsilon", "contrast", "settings"),
    [
        (60, 0.5, 1.5, {"max_rows": 6, "design": "public"}),
        (150, 0.4, 1.5, {"unit": "row"}),
        (200, 0.7, 1.5, {"max_rows": 4, "dependence": "pairs"}),
        (120, 0.7, 1.5, {"max_rows": 4, "method": "objective"}),
        (100, math.inf, 0.4, {"max_rows": 4}),
        (1500, 1.0, 0.6, {"mode": "local"}),
        (1500, 1.0, 0.6, {"mode": "local", "ties": True}),
        (25, math.inf, 2.5, {"max_rows": 2}),
        (300, 1.0, 0.6, {"max_rows": 6, "answers": 2.0}),
    ],
)
def test_first_order_estimates_are_distributed_as_the_others(nobs, epsilon, contrast, settings):
    fits = fits_of(nobs, epsilon, contrast, **settings)
    near = np.array([fits.fit(number)[1] for number in range(160)])
    own, others = near[:, 0], near[:, 1:].reshape(-1, 4)
    error = others.std(axis=0) / math.sqrt(160)
    assert (np.abs(own.mean(axis=0) - fits.worths) < 4.0 * error).all()
    assert (np.abs(others.mean(axis=0) - fits.worths) < error).all()
    assert own.std(axis=0) == pytest.approx(others.std(axis=0), rel=0.25)


def test_a_fit_and_its_release_are_the_same():
    for settings in ({"max_rows": 3, "dependence": "worst"}, {"max_rows": 6, "method": "counts"}):
        fits = fits_of(120, 1.0, 0.6, **settings)
        inference, near = fits.fit(2)
        release, others = fits.release(2)
        assert (near == others).all()
        assert infer(release, k=1).win_rate == pytest.approx(
            infer(inference.release, k=1).win_rate, abs=0
        )
        assert infer(release, k=1).effects == pytest.approx(infer(inference.release, k=1).effects)


def drawn_outcome(worth, spread, number):
    """Return an outcome that follows its margin, and something else as much as it is spread."""
    rng = np.random.default_rng(number)
    margin, *margins = rng.normal(worth, 1.0, 65)
    return Outcome(margin + spread * rng.normal() > 0, margin, np.array(margins))


@pytest.mark.parametrize(("worth", "spread"), [(0.0, 0.0), (0.8, 0.3), (1.0, 3.0), (-2.0, 0.2)])
def test_shares_are_without_bias_and_have_the_error_they_state(worth, spread):
    truth = norm.cdf(worth / math.hypot(1.0, spread))
    found = []
    workers = Workers(1)
    for start in range(0, 12000, 60):
        one = partial(drawn_outcome, worth, spread)
        found.append(share_of(lambda r, s=start, f=one: f(s + r), 60, workers, "outcomes"))
    shares, errors = np.array(found).T
    assert abs(shares.mean() - truth) < 3.5 * shares.std() / math.sqrt(len(shares)) + 0.002
    assert 0.9 < np.sqrt(np.square(errors).mean()) / shares.std() < 1.8
    raw = math.sqrt(truth * (1 - truth) / 60)
    if spread < 1:
        assert shares.std() < 0.85 * raw


def few_answers(number):
    """Return whether eight answers prefer the first item in more than five, with their margin."""
    won = np.random.default_rng(number).binomial(8, 0.7, 65)
    return Outcome(won[0] > 5, 0.7 * won[0] / 0.7, won[1:] * 0.1 / 0.1)


def test_margins_of_few_answers_are_often_equal():
    workers = Workers(1)
    found = [
        share_of(lambda r, s=start: few_answers(s + r), 40, workers, "outcomes")[0]
        for start in range(0, 8000, 40)
    ]
    assert np.mean(found) == pytest.approx(binom.sf(5, 8, 0.7), abs=0.004)
    assert np.std(found) < 0.3 * math.sqrt(0.25 / 40)


def test_a_share_of_all_or_none_has_an_error():
    workers = Workers(1)
    for worth in (-50.0, 50.0):
        value, error = share_of(partial(drawn_outcome, worth, 0.0), 30, workers, "outcomes")
        assert value == float(worth > 0)
        assert error == pytest.approx(1 / 31)


def test_medians_have_the_error_they_state():
    rng = np.random.default_rng(5)
    medians = [median_of(rng.exponential(size=61)) for _ in range(400)]
    values, stated = np.array(medians).T
    assert median_of([1.0] * 12 + [math.inf] * 8) == (1.0, math.inf)
    assert median_of([1.0] * 5 + [math.inf] * 15) == (math.inf, math.inf)
    assert values.std() == pytest.approx(stated.mean(), rel=0.15)


def test_other_processes_find_the_same():
    fits = fits_of(100, 1.0, 0.5, max_rows=3)
    for one in (partial(_standard_error, fits), partial(_outcome, fits, 0.05)):
        here, there = one(7), pickle.loads(pickle.dumps(one))(7)
        assert getattr(here, "margin", here) == getattr(there, "margin", there)
