"""Simulated fits: they are the fits of their answers, and say what many of them would."""

import math
import pickle
from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

import privrank as pr
from privrank.planning.simulation import Outcome, share_of
from privrank.power.comparisons import _outcome, _standard_error, median_of
from privrank.topk import infer
from privrank.util.workers import Workers

NAMES = tuple("0123")


def fits_of(nobs, epsilon, contrast, **settings):
    plan = pr.power.BTLPower(items=4, **settings)
    at = plan._checked({"nobs": nobs, "epsilon": epsilon, "effect": contrast})
    return plan._fits(at)


def frame_of(answers):
    """Return the answers of a simulated survey as a user has them."""
    who, pair = np.nonzero(answers.met)
    first, second = np.triu_indices(4, 1)
    outcome = np.rint((answers.away + answers.mean)[who, pair]).astype(int)
    return pd.DataFrame(
        {
            "item1": np.array(NAMES)[first[pair]],
            "item2": np.array(NAMES)[second[pair]],
            "outcome": outcome,
            "respondent": who,
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


@pytest.mark.parametrize("rows", [2, 6])
def test_sums_of_large_surveys_vary_as_they_should(rows):
    fits = fits_of(40_000, 1.0, 1.0, max_rows=rows, worths=2.0, design_effect=1.7)
    drawn = [fits._simulated(number) for number in range(300)]
    share, mean = rows / 6, drawn[0].mean
    count = np.array([each.count for each in drawn])
    assert count.mean(axis=0) == pytest.approx(40_000 * share, rel=0.002)
    assert count.var(axis=0).mean() == pytest.approx(40_000 * share * (1 - share), rel=0.1)
    net = np.array([each.net - each.count * mean for each in drawn])
    assert net.var(axis=0) == pytest.approx(40_000 * 1.7 * share * (1 - mean**2), rel=0.35)
    off, ends = 0.5 * mean, fits._ends
    moments = np.mean([each.by_item(off, ends) for each in drawn], axis=0) / 40_000
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
    with Workers(1) as workers:
        for start in range(0, 12000, 60):
            one = partial(drawn_outcome, worth, spread)
            found.append(share_of(lambda r, s=start, f=one: f(s + r), 60, workers, "outcomes"))
    shares, errors = np.array(found).T
    assert abs(shares.mean() - truth) < 3.5 * shares.std() / math.sqrt(len(shares)) + 0.002
    assert 0.9 < np.sqrt(np.square(errors).mean()) / shares.std() < 1.8
    raw = math.sqrt(truth * (1 - truth) / 60)
    if spread < 1:
        assert shares.std() < 0.85 * raw


def test_a_share_of_all_or_none_has_an_error():
    with Workers(1) as workers:
        for worth in (-50.0, 50.0):
            value, error = share_of(partial(drawn_outcome, worth, 0.0), 30, workers, "outcomes")
            assert value == float(worth > 0)
            assert error == pytest.approx(1 / 31)


def test_medians_have_the_error_they_state():
    rng = np.random.default_rng(5)
    medians = [median_of(rng.exponential(size=61)) for _ in range(400)]
    values, stated = np.array(medians).T
    assert values.std() == pytest.approx(stated.mean(), rel=0.15)


def test_other_processes_find_the_same():
    fits = fits_of(100, 1.0, 0.5, max_rows=3)
    for one in (partial(_standard_error, fits), partial(_outcome, fits, 0.05)):
        here, there = one(7), pickle.loads(pickle.dumps(one))(7)
        assert getattr(here, "margin", here) == getattr(there, "margin", there)
