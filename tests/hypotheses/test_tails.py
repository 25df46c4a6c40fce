"""Tails of a normal variable plus noise on a body, where few draws of the noise lead."""

import numpy as np
import pytest
from scipy.stats import norm

from privrank.hypotheses.tails import mixture_tail, noisy_tail, simulated
from privrank.privacy.knorm import PermutohedronNoise, ZeroSumLaplace

LAWS = [
    PermutohedronNoise(3, 0.1, 1),
    PermutohedronNoise(10, 0.05, 1),
    PermutohedronNoise(40, 0.02, 1),
    ZeroSumLaplace(10, 4.0),
    ZeroSumLaplace(40, 4.0),
]


def tail(distribution, x, sd, *weights):
    each = (np.array([weight]) for weight in weights)
    return float(noisy_tail(distribution, np.array([x]), np.array([sd]), *each)[0])


@pytest.mark.parametrize("distribution", LAWS, ids=str)
@pytest.mark.parametrize("blur", [1e-3, 0.1, 1.0])
def test_far_tails_are_those_of_the_distribution(distribution, blur):
    """At little sampling error, out to where one of all pairs is as far by chance."""
    m, rng = distribution.items, np.random.default_rng(1)
    draws = 150_000 if m < 40 else 40_000
    x = simulated(distribution, (draws, m), rng)
    sd = blur * float(x.std())
    even = m // 2 * 2
    apart = x[:, :even:2] - x[:, 1:even:2] + rng.normal(0.0, sd, (draws, even // 2))
    size = np.abs(apart)
    for level in (0.1, 0.01, 0.001, 0.1 / m**2):
        gap = float(np.quantile(size, 1.0 - level))
        one = tail(distribution, gap, sd, 1.0, 1.0)
        assert one == pytest.approx(level, rel=0.05 + 4.0 / np.sqrt(level * size.size)), level
    assert tail(distribution, 0.0, sd, 1.0, 1.0) == pytest.approx(1.0)


@pytest.mark.parametrize("m", [10, 40])
def test_the_tails_of_all_pairs_add_up_to_how_many_are_so_far(m):
    """At the 95 % quantile of the range of the noise, where intervals of ranks look."""
    distribution = PermutohedronNoise(m, 0.05, 1)
    draws = simulated(distribution, (40_000, m), np.random.default_rng(3))
    gap = float(np.quantile(np.ptp(draws, axis=1), 0.95))
    far = draws[np.ptp(draws, axis=1) > gap]
    counts = (np.abs(far[:, :, None] - far[:, None, :]) > gap).sum(axis=(1, 2)) / 2.0
    expected = 0.5 * m * (m - 1) * tail(distribution, gap, 1e-6, 1.0, 1.0)
    assert expected == pytest.approx(counts.sum() / len(draws), rel=0.08)


def test_unequal_weights_and_rows():
    distribution, rng = LAWS[1], np.random.default_rng(2)
    x = simulated(distribution, (200_000, 10), rng)
    first, second = rng.uniform(0.5, 2.0, (2, 300))
    gap = 2.5 * float(x.std()) * np.hypot(first, second)
    found = noisy_tail(distribution, gap, np.full(300, 1.0), first, second)
    for k in (0, 100, 299):
        apart = first[k] * x[:, ::2] - second[k] * x[:, 1::2] + rng.normal(size=(len(x), 5))
        assert found[k] == pytest.approx(np.mean(np.abs(apart) > gap[k]), rel=0.06)


def test_a_mixture_of_sizes():
    found = mixture_tail(np.array([1.0, 2.0]), np.array([0.5, 1.0]), np.zeros(1), np.ones(1))
    np.testing.assert_allclose(found, 2.0 * norm.sf([2.0, 2.0]))
    far = mixture_tail(
        np.array([1.0]), np.array([[1e-9, 1e-9]]), np.array([0.5, 3.0]), np.full(2, 0.5)
    )
    assert far[0] == pytest.approx(0.5)
