"""Intervals for the distance of two samples: tails, ends, and the rule about zero."""

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import laplace, norm

from privrank.hypotheses import interval as module
from privrank.hypotheses.interval import Distance, zero_rule

TV = Distance((300, 300), 1.0, 5, exact=True)
MANY = Distance((300, 300), 1.0, 300, exact=True)
UNEQUAL = Distance((900, 200), 1.0, 5, exact=True)
MMD = Distance((300, 300), 1.315, None, exact=True)
SKEWED = Distance((50, 5000), 1.315, None, exact=True)
DISTANCES = [TV, MANY, UNEQUAL, MMD, SKEWED]


def test_quantiles_are_those_of_normal_and_laplace_noise():
    assert module._quantile(0.025, 0.3, 0.0, 2) == pytest.approx(0.3 * norm.isf(0.025))
    for number, level, b in ((1, 0.02, 0.1), (2, 0.025, 0.1), (2, 0.01, 2.0)):
        d = module._quantile(level, 0.3, b, number)
        rng = np.random.default_rng(1)
        noise = 0.3 * rng.normal(size=200_000) + b * rng.laplace(size=(number, 200_000)).sum(axis=0)
        assert np.mean(noise >= d) == pytest.approx(level, abs=4 * math.sqrt(level / 200_000))


@pytest.mark.parametrize(("scale", "b"), [(0.05, 0.0), (0.05, 0.01), (0.05, 0.2)])
def test_concentration_allows_for_the_noise(scale, b):
    u = module._concentrated(0.025, scale, b)
    if b == 0:
        assert u == pytest.approx(scale * math.sqrt(math.log(40)))
        return

    def bound(y):
        return np.exp(-((max(u - b * y, 0) / scale) ** 2)) * laplace.pdf(y)

    total = sum(quad(bound, *ends, epsabs=1e-12)[0] for ends in ((-40, 0), (0, u / b), (u / b, 60)))
    assert total == pytest.approx(0.025, rel=2e-4)


@pytest.mark.parametrize("distance", DISTANCES, ids=str)
@pytest.mark.parametrize("b", [0.0, 0.05])
def test_ends_rise_with_the_distance_and_bracket_it(distance, b):
    grid = np.linspace(-0.5, 2.0, 40)
    ends = np.array([distance.ends(float(t), 0.1, b, 0.05) for t in grid])
    assert (np.diff(ends, axis=0) >= -1e-12).all()
    assert (ends[:, 0] >= 0).all() and (ends <= distance.diameter).all()
    inside = (grid > 0.2) & (grid < 0.9)
    assert (ends[inside, 0] <= grid[inside]).all() and (ends[inside, 1] >= grid[inside]).all()
    wider = np.array([distance.ends(float(t), 0.1, b, 0.01) for t in grid])
    assert (wider[:, 0] <= ends[:, 0] + 1e-12).all()
    assert (wider[:, 1] >= ends[:, 1] - 1e-12).all()


def test_which_ends_are_taken():
    t, mean, b = 0.2, 0.05, 0.01
    s = TV.spread
    assert s == pytest.approx(1 / 150)
    low, high = TV.ends(t, mean, b, 0.05)
    half_normal = math.sqrt((1 - 2 / math.pi) / 4 * s)
    assert low == pytest.approx(t - mean - module._quantile(0.025, half_normal, b, 2))
    # the upper end solves m(U) = T + d
    total = 2 * (mean - b * math.log(100)) / math.sqrt(2 / math.pi)
    r = 2 * high / total
    mean_at = total / 2 * (r * (2 * norm.cdf(r) - 1) + 2 * norm.pdf(r))
    assert mean_at == pytest.approx(t + module._quantile(0.02, math.sqrt(s / 4), b, 1))
    # more categories than a tenth of a group: by concentration
    u = module._concentrated(0.025, math.sqrt(s / 2), b)
    assert MANY.ends(t, mean, b, 0.05)[1] == pytest.approx(t + u)
    # unequal sizes and two categories: the greater variance
    for distance in (UNEQUAL, Distance((300, 300), 1.0, 2, exact=True)):
        sd = math.sqrt(distance.spread / 4)
        low, _ = distance.ends(t, mean, b, 0.05)
        assert low == pytest.approx(t - mean - module._quantile(0.025, sd, b, 2))
    # kernels: the threshold, but of very unequal sizes no more than concentration gives
    assert MMD.ends(0.4, 0.1, b, 0.05)[0] == pytest.approx(0.3)
    skewed = SKEWED.ends(0.4, 0.1, b, 0.05)[0]
    u = module._concentrated(0.025, 1.315 * math.sqrt(SKEWED.spread / 2), b)
    assert skewed == pytest.approx(math.sqrt((0.4 - u) ** 2 - SKEWED.spread)) and skewed < 0.3
    # without a second number concentration is all there is
    bias = 0.5 * math.sqrt(4 * s)
    u = module._concentrated(0.025, math.sqrt(s / 2), b)
    assert TV.ends(0.5, None, b, 0.05) == pytest.approx((0.5 - u - bias, 0.5 + u))


def test_the_corrected_distance_inverts_the_mean():
    mean = 0.05
    for theta in (0.01, 0.1, 0.3):
        half = mean * math.sqrt(math.pi / 2)
        r = theta / half
        raised = half * (r * (2 * norm.cdf(r) - 1) + 2 * norm.pdf(r))
        assert raised > theta
        assert TV.corrected(raised, mean) == pytest.approx(theta, abs=1e-9)
    assert TV.corrected(0.04, mean) == 0 and TV.corrected(0.3, -0.01) == 0.3
    assert MMD.corrected(0.3, 0.1) == pytest.approx(math.sqrt(0.09 - MMD.spread))
    assert MMD.corrected(-0.3, 0.1) == 0


@pytest.mark.parametrize("distance", DISTANCES, ids=str)
def test_an_interval_without_zero_and_a_rejection_are_one(distance):
    rng = np.random.default_rng(5)
    numbers = 10_000 // len(DISTANCES)
    t, second = rng.laplace(0.1, 0.2, numbers), rng.laplace(0.05, 0.1, numbers)
    pvalues = rng.integers(1, 1001, numbers) / 10_000
    for one, other, p in zip(t, second, pvalues, strict=True):
        level = (0.01, 0.05, 0.1)[int(10_000 * p) % 3]
        ends = distance.ends(one, other, 0.03, level)
        low, high = zero_rule(ends, rejected=p <= level, step=1e-5)
        assert 0 <= low <= high <= distance.diameter and high >= ends[1]
        assert (low > 0) == (p <= level)
        if ends[0] > 0 and p <= level:
            assert low == min(ends[0], high)
