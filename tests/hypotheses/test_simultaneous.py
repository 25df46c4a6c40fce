"""Simultaneous intervals: quantiles of normal errors plus noise, and variances of small groups."""

import numpy as np
import pytest
from scipy.special import ndtri

from privrank.hypotheses.interval import Contrast, contrasts, half_widths
from privrank.hypotheses.tails import noisy_quantiles, normal_laplace_tail, simulated
from privrank.privacy.knorm import PermutohedronNoise, ZeroSumLaplace
from privrank.privacy.noise import DiscreteLaplace

TWO = np.array([1 / 100, 1 / 300])


@pytest.mark.parametrize("sd", [0.02, 0.1, 0.5])
@pytest.mark.parametrize("level", [0.05, 0.003, 1e-5])
def test_laplace_quantiles_are_exact(sd, level):
    found = noisy_quantiles(np.array([sd]), TWO, DiscreteLaplace(4.0), level)
    assert normal_laplace_tail(found, sd, (4 / 100, 4 / 300)) == pytest.approx(level, rel=1e-6)


def test_without_noise_quantiles_are_normal():
    found = noisy_quantiles(np.array([0.1, 0.2]), TWO, DiscreteLaplace(0.0), 0.01)
    np.testing.assert_allclose(found, -ndtri(0.005) * np.array([0.1, 0.2]), rtol=1e-6)


@pytest.mark.parametrize(
    "distribution", [ZeroSumLaplace(5, 4.0), PermutohedronNoise(6, 0.05, 1)], ids=str
)
@pytest.mark.parametrize("sd", [0.01, 0.3])
def test_quantiles_under_noise_on_a_body(distribution, sd):
    rng = np.random.default_rng(1)
    one, other = (
        simulated(distribution, (60_000, distribution.items), rng),
        simulated(distribution, (60_000, distribution.items), rng),
    )
    error = (one / 100 - other / 300).ravel() + sd * rng.standard_normal(one.size)
    for level in (0.05, 0.004):
        found = noisy_quantiles(np.array([sd]), TWO, distribution, level)[0]
        assert np.mean(np.abs(error) > found) == pytest.approx(level, rel=0.06)


def test_many_deviations_are_interpolated_from_above():
    sds, distribution = np.linspace(0.01, 0.3, 200), DiscreteLaplace(8.0)
    every = noisy_quantiles(sds, TWO, distribution, 1e-4)
    single = [noisy_quantiles(sds[[k]], TWO, distribution, 1e-4)[0] for k in (0, 7, 100, 199)]
    ratio = every[[0, 7, 100, 199]] / single
    assert (ratio > 1 - 1e-9).all() and (ratio < 1.001).all()


def test_comparisons():
    assert contrasts(2) == (Contrast((0,), (1,)),)
    assert len(contrasts(3)) == 6 and len(contrasts(4)) == 10
    sizes = np.array([10.0, 30.0, 20.0])
    weights = Contrast((0,), (1, 2)).weights(sizes)
    np.testing.assert_allclose(weights, [1 / 10, -1 / 50, -1 / 50])


def test_half_widths_by_hand():
    # two groups, two items, no noise: Wilson's centres
    totals, sizes = np.array([[30.0, 70.0], [20.0, 20.0]]), np.array([100.0, 40.0])
    found = half_widths(totals, sizes, DiscreteLaplace(0.0), 1.0, 0.05, contrasts(2))
    z = -ndtri(0.05 / 4)
    shares = (totals + z * z / 2) / (sizes[:, None] + z * z)
    sds = np.sqrt((shares * (1 - shares) / sizes[:, None]).sum(axis=0))
    np.testing.assert_allclose(found, [z * sds], rtol=1e-6)


@pytest.mark.parametrize("totals", [0.0, -50.0, 10.0, 80.0])
def test_nobody_of_ten_is_no_certainty(totals):
    # whatever noise has made of the count, the error of a group of ten is not below .1
    table = np.array([[150.0, 150.0], [totals, 10.0 - totals]])
    widths = half_widths(
        table, np.array([300.0, 10.0]), DiscreteLaplace(0.01), 1.0, 0.05, contrasts(2)
    )
    assert (widths > 0.2).all() and (widths < 0.6).all()


def test_more_noise_and_more_statements_widen():
    sizes = np.array([300.0, 100.0])
    table = np.tile(sizes[:, None] / 5, (1, 5))
    few = half_widths(table, sizes, DiscreteLaplace(1.0), 1.0, 0.05, contrasts(2))
    assert (half_widths(table, sizes, DiscreteLaplace(2.0), 1.0, 0.05, contrasts(2)) > few).all()
    assert (half_widths(table, sizes, DiscreteLaplace(1.0), 1.0, 0.01, contrasts(2)) > few).all()
    three = np.vstack((table, table[1]))
    more = half_widths(
        three, np.array([300.0, 100.0, 100.0]), DiscreteLaplace(1.0), 1.0, 0.05, contrasts(3)
    )
    # the pair of the first two, beside four other comparisons
    assert (more[3] > few[0]).all()


def test_all_hold_at_once():
    rng, sizes = np.random.default_rng(2), np.array([300.0, 30.0])
    shares, distribution = (
        np.array([0.9, 0.06, 0.02, 0.01, 0.01]),
        ZeroSumLaplace.calibrate(5, 2, 5.0),
    )
    draws = 400
    missed = 0
    for _ in range(draws):
        counts = np.array([distribution.draw(rng.multinomial(int(n), shares), rng) for n in sizes])
        width = half_widths(counts.astype(float), sizes, distribution, 1.0, 0.05, contrasts(2))
        missed += (np.abs(contrasts(2)[0].weights(sizes) @ counts) > width[0]).any()
    assert missed <= 0.05 * draws + 3 * np.sqrt(0.05 * 0.95 * draws)
