"""Noise distributions against exact probabilities: mass, ratios, samplers, cells, permutations."""

import math
from collections import Counter
from fractions import Fraction
from itertools import permutations

import numpy as np
import opendp.prelude as dp
import pytest
from scipy.stats import chi2, chisquare

import privrank as pr
from privrank.privacy.draws import draw_permutation
from privrank.privacy.noise import DiscreteGaussian, DiscreteLaplace, draw_below, draw_cells

# Seeded tests give the same answer every time; secure ones fail by chance this often.
FALSE_ALARM = {"seeded": 1e-4, "secure": 1e-7}
SCALES = [0.05, 0.3, 1.0, 4.0, 37.5, 1e3]

dp.enable_features("contrib")


def source(kind, seed=0):
    return np.random.default_rng(seed) if kind == "seeded" else None


def reach_of(distribution):
    """Integers beyond which less than 1e-17 of the mass is left."""
    return math.ceil(40 * distribution.scale) + 1


def opendp_loss(scale, sensitivity):
    """OpenDP's own privacy map of the vector discrete Laplace mechanism."""
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64")
    return dp.m.make_laplace(*space, scale=scale).map(sensitivity)


def fits(observed, expected, level):
    """Chi-square with rare cells pooled; `expected` sums to 1."""
    total = observed.sum()
    common = expected * total >= 10
    seen = np.append(observed[common], total - observed[common].sum())
    means = np.append(expected[common], max(1 - expected[common].sum(), 0.0)) * total
    if means[-1] < 10:
        assert seen[-1] <= 60
        seen, means = seen[:-1], means[:-1] * seen[:-1].sum() / means[:-1].sum()
    return len(seen) < 2 or chisquare(seen, means).pvalue > level


@pytest.mark.parametrize("scale", SCALES)
def test_mass_and_variance(scale):
    distribution = DiscreteLaplace(scale)
    k = np.arange(-reach_of(distribution), reach_of(distribution) + 1)
    assert math.fsum(distribution.pmf(k)) == pytest.approx(1, abs=1e-12)
    assert math.fsum(k.astype(float) ** 2 * distribution.pmf(k)) == pytest.approx(
        distribution.variance, rel=1e-9
    )


def test_variance_of_a_wide_distribution_is_that_of_the_continuous_one():
    assert DiscreteLaplace(2.0**35).variance == pytest.approx(2.0**71, rel=1e-12)


@pytest.mark.parametrize("sensitivity", [1, 2, 4, 36])
@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1.0, 3.0])
def test_probability_ratio_is_bounded_and_attained(sensitivity, epsilon):
    distribution = DiscreteLaplace.calibrate(sensitivity, epsilon)
    k = np.arange(-4 * sensitivity, 4 * sensitivity + 1)
    loss = np.log(distribution.pmf(k)) - np.log(distribution.pmf(k - sensitivity))
    assert loss.max() <= epsilon * (1 + 1e-9)
    assert loss.max() == pytest.approx(epsilon, rel=1e-9)


@pytest.mark.parametrize("sensitivity", [1, 4, 36, 70, 10**9])
@pytest.mark.parametrize("epsilon", [1e-6, 0.1, 1 / 3, 0.5, 0.7, 1.0, 2.7182818, 7.7, 20.0])
def test_calibrate_rounds_towards_privacy(sensitivity, epsilon):
    scale = DiscreteLaplace.calibrate(sensitivity, epsilon).scale
    # the scale that OpenDP's map would have chosen, which rounds outwards
    target = math.nextafter(epsilon, 0.0)
    theirs = sensitivity / target
    while opendp_loss(theirs, sensitivity) > target:
        theirs = math.nextafter(theirs, math.inf)
    assert scale == theirs
    # exact arithmetic, against both the float and the decimal that was typed
    spent = Fraction(sensitivity) / Fraction(scale)
    assert spent <= Fraction(epsilon) and spent <= Fraction(repr(epsilon))
    assert scale == pytest.approx(sensitivity / epsilon, rel=1e-14)


@pytest.mark.parametrize("epsilon", [1e-17, 5e-324])
def test_noise_too_large_for_integers_is_refused(epsilon):
    with pytest.raises(ValueError, match="epsilon is too small"):
        DiscreteLaplace.calibrate(4, epsilon)
    # a share of epsilon that is used up must never mean no noise
    with pytest.raises(ValueError, match="epsilon is too small"):
        DiscreteLaplace.calibrate(4, 0.0)
    with pytest.raises(ValueError, match="epsilon is too small"):
        DiscreteLaplace.calibrate(4, -0.2)


@pytest.mark.parametrize("kind", ["seeded", "secure"])
@pytest.mark.parametrize("scale", [0.3, 1.0, 4.0, 37.5])
def test_draws_follow_the_distribution(kind, scale):
    distribution = DiscreteLaplace(scale)
    draws = distribution.draw(np.full(30_000, 7), source(kind)) - 7
    width = reach_of(distribution)
    observed = np.bincount(np.clip(draws + width, 0, 2 * width), minlength=2 * width + 1)
    assert fits(observed, distribution.pmf(np.arange(-width, width + 1)), FALSE_ALARM[kind])
    # successive draws are independent: signs of neighbours, zeros left out
    signs = np.sign(draws[draws != 0])
    score = (signs[1:] * signs[:-1]).sum() ** 2 / (len(signs) - 1)
    assert chi2.sf(score, 1) > FALSE_ALARM[kind]


@pytest.mark.parametrize("kind", ["seeded", "secure"])
def test_draws_are_integers_of_the_shape_given(kind):
    values = np.arange(6).reshape(2, 3)
    noisy = DiscreteLaplace(2.0).draw(values, source(kind))
    assert noisy.dtype == np.int64 and noisy.shape == (2, 3)
    assert not np.shares_memory(noisy, values)


@pytest.mark.parametrize("kind", ["seeded", "secure"])
def test_scale_zero_draws_nothing(kind):
    rng = source(kind)
    state = None if rng is None else rng.bit_generator.state
    values = np.array([3, -1])
    for distribution in (DiscreteLaplace(0.0), DiscreteLaplace.calibrate(4, math.inf)):
        out = distribution.draw(values, rng)
        assert (out == values).all() and not np.shares_memory(out, values)
        assert distribution.variance == 0 and list(distribution.pmf(np.array([0, 1]))) == [1, 0]
    assert rng is None or rng.bit_generator.state == state
    assert DiscreteLaplace.calibrate(0, 1.0).scale == 0


@pytest.mark.parametrize("kind", [DiscreteLaplace, DiscreteGaussian])
def test_noise_of_scale_zero_is_none(kind):
    none, rng = kind(0.0), np.random.default_rng(1)
    assert none.variance == 0 and not none.simulate((3, 2), rng).any()
    for source_ in (rng, None):
        assert list(none.draw(np.array([3, -1]), source_)) == [3, -1]
    assert list(DiscreteLaplace(0.0).tail(np.array([-1, 0, 1]))) == [1, 1, 0]


def test_secure_noise_stays_at_the_ends_of_the_integers():
    # a sum that wrapped round would move the most extreme count to the other end
    ends = np.iinfo(np.int64)
    low, high = zip(
        *(DiscreteLaplace(2.0**40).draw(np.array([ends.min, ends.max]), None) for _ in range(50)),
        strict=True,
    )
    assert max(low) < -(2**62) and min(high) > 2**62


@pytest.mark.parametrize("kind", ["seeded", "secure"])
@pytest.mark.parametrize("scale, cell", [(1.0, 0.25), (0.7, 1.0), (3.0, 0.5), (5.0, 2.0**-4)])
def test_cells_have_the_distribution_of_continuous_laplace_noise(kind, scale, cell):
    size = 20_000
    draws = draw_cells(scale, cell, size, source(kind, 1))
    place = draws / cell - 0.5
    assert (place == np.rint(place)).all(), "not the middle of a cell"
    width = math.ceil(40 * scale / cell)
    edges = cell * np.arange(-width, width + 1)
    cdf = np.where(edges < 0, 0.5 * np.exp(edges / scale), 1 - 0.5 * np.exp(-edges / scale))
    observed = np.bincount(
        np.clip(place.astype(int) + width, 0, 2 * width - 1), minlength=2 * width
    )
    assert fits(observed, np.diff(cdf), FALSE_ALARM[kind])


def test_fine_cells_have_continuous_moments():
    # the widths that objective perturbation uses; four moments at 5 standard errors
    size, scale = 100_000, 3.0
    w = draw_cells(scale, 2.0**-33, size, np.random.default_rng(2)) / scale
    for order, mean, variance in ((1, 0, 2), (2, 2, 20), (3, 0, 720), (4, 24, 39744)):
        assert abs((w**order).mean() - mean) < 5 * math.sqrt(variance / size)


@pytest.mark.parametrize("kind", ["seeded", "secure"])
def test_permutations_are_uniform(kind):
    rng = source(kind, 3)
    seen = Counter(draw_permutation(4, rng) for _ in range(12_000))
    assert set(seen) == set(permutations(range(4)))
    assert chisquare(list(seen.values())).pvalue > FALSE_ALARM[kind]


def test_source_says_what_may_be_published():
    test = pr.UniformityTest.from_counts({"yes": 61, "no": 37}, categories=["yes", "no"])

    def source_of(rng, epsilon):
        return test.fit(epsilon=epsilon, rng=rng).release.source

    rng = np.random.default_rng(0)
    assert source_of(None, 1.0) == "secure"
    assert source_of(rng, 1.0) == "seeded"
    assert source_of(None, math.inf) == source_of(rng, math.inf) == "none"


@pytest.mark.parametrize("kind", ["seeded", "secure"])
@pytest.mark.parametrize("scale", [0.4, 1.0, 3.7, 20.0])
def test_gaussian_draws_follow_the_distribution(kind, scale):
    distribution = DiscreteGaussian(scale)
    draws = distribution.draw(np.full(20_000, -3), source(kind, 4)) + 3
    width = math.ceil(12 * scale)
    k = np.arange(-width, width + 1)
    mass = np.exp(-0.5 * (k / scale) ** 2)
    observed = np.bincount(np.clip(draws + width, 0, 2 * width), minlength=2 * width + 1)
    assert fits(observed, mass / mass.sum(), FALSE_ALARM[kind])
    assert distribution.variance == pytest.approx((mass @ k**2) / mass.sum(), rel=1e-12)


def test_gaussian_noise_of_scale_zero_and_of_a_large_scale():
    values = np.array([[3, -1], [0, 2]])
    out = DiscreteGaussian(0.0).draw(values, None)
    assert (out == values).all() and not np.shares_memory(out, values)
    assert DiscreteGaussian(0.0).variance == 0 and DiscreteGaussian(1e3).variance == 1e6
    assert DiscreteGaussian(2.0).draw(values, None).shape == (2, 2)
    # opendp's own map: the noise is s^2 / (2 scale^2) zero-concentrated
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T="f64")
    assert dp.m.make_gaussian(*space, scale=4.0).map(3.0) == pytest.approx(9 / 32)


@pytest.mark.parametrize("kind", ["seeded", "secure"])
def test_integers_below_any_bound_are_uniform(kind):
    rng = source(kind, 5)
    seen = np.bincount([draw_below(11, rng) for _ in range(6000)], minlength=11)
    assert chisquare(seen).pvalue > FALSE_ALARM[kind]
    total = 3 * 2**98 + 1
    draws = [draw_below(total, rng) for _ in range(3000)]
    assert max(draws) < total and min(draws) >= 0
    thirds = np.bincount([3 * k // total for k in draws], minlength=3)
    parity = np.bincount([k % 2 for k in draws])
    assert min(chisquare(thirds).pvalue, chisquare(parity).pvalue) > FALSE_ALARM[kind]
    assert draw_below(1, rng) == 0
