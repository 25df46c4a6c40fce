"""Simulated fits: they are the fits of their answers, and say what many of them would."""

import math
import pickle
from functools import partial

import numpy as np
import pandas as pd
import pytest

import privrank as pr
from privrank.power.zerotests import ZeroTests, median_of, standard_error, zero_test

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
    simulated = fits.fit(3).inference
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
    ],
)
def test_power_is_the_share_of_fits_that_reject(nobs, epsilon, contrast, settings):
    fits = fits_of(nobs, epsilon, contrast, **settings)
    tests = ZeroTests.of([zero_test(fits, 0.05, number) for number in range(160)])
    share = np.mean(np.abs(tests.statistic) > tests.critical)
    power, error = tests.power()
    assert 0.03 < power < 0.97
    both = math.hypot(error, math.sqrt(power * (1 - power) / 160))
    assert abs(share - power) < 3.0 * both
    # what is averaged over has the distribution that it is said to have
    assert tests.moved.std() == pytest.approx(1.0, abs=0.15)
    assert abs(tests.moved.mean()) < 0.25


def test_the_error_of_a_plan_is_what_other_simulations_differ_by():
    fits = fits_of(60, 0.5, 1.5, max_rows=6, design="public")
    tests = [zero_test(fits, 0.05, number) for number in range(240)]
    found = [ZeroTests.of(tests[start : start + 40]).power() for start in range(0, 240, 40)]
    powers, errors = np.array(found).T
    assert 0.4 < powers.std(ddof=1) / errors.mean() < 2.0
    rng = np.random.default_rng(5)
    medians = [median_of(rng.exponential(size=61)) for _ in range(400)]
    values, stated = np.array(medians).T
    assert values.std() == pytest.approx(stated.mean(), rel=0.15)


def test_other_processes_find_the_same():
    fits = fits_of(100, 1.0, 0.5, max_rows=3)
    for one in (partial(standard_error, fits), partial(zero_test, fits, 0.05)):
        here, there = one(7), pickle.loads(pickle.dumps(one))(7)
        assert getattr(here, "statistic", here) == getattr(there, "statistic", there)
