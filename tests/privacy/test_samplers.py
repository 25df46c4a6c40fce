"""Exact samplers: digits of probabilities, coins, distributions, numbers of any size, speed."""

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import opendp.prelude as dp
import pytest
from scipy.stats import chi2_contingency, chisquare

from privrank.privacy import knorm, noise
from privrank.privacy.knorm import ZeroSumLaplace
from privrank.privacy.noise import (
    DiscreteGaussian,
    DiscreteLaplace,
    clipped_sum,
    digits,
    draw_cells,
)
from privrank.privacy.noise import exact_gaussian as gaussian
from privrank.privacy.noise import exact_geometric as geometric
from privrank.privacy.noise import exact_laplace as laplace

FALSE_ALARM = 1e-4
ENDS = np.iinfo(np.int64)


def source(seed):
    return np.random.default_rng(seed).bytes


ARGUMENTS = [Fraction(x) for x in (1e-12, 0.1, 1 / 3, 1.0, 2.5, 11.0, 44.3, 63.9)]


@pytest.mark.parametrize("one", [0, 1])
@pytest.mark.parametrize("x", [*ARGUMENTS, Fraction(1, 7), Fraction(2**52 + 1, 2**50)])
def test_digits_are_those_of_the_probability(x, one):
    with localcontext() as context:
        context.prec = 400
        p = 1 / ((Decimal(x.numerator) / Decimal(x.denominator)).exp() + one)
        for bits in (1, 16, 32, 64, 500):
            assert digits(x, bits, one) == int(p * 2**bits)


def test_digits_at_the_ends():
    assert digits(Fraction(0), 16, 0) == 2**16 and digits(Fraction(0), 16, 1) == 2**15
    # below 2^-bits the digits are zeros; further on they are not
    assert digits(Fraction(40), 32, 0) == 0 < digits(Fraction(40), 64, 0)
    assert digits(Fraction(10**300), 64, 1) == 0


def test_digits_are_refined_until_both_ends_agree():
    # e^-x is a little above 2^-20: the first places leave its 21st digits open
    x = Fraction(20 * math.log(2)) - Fraction(1, 2**60)
    with localcontext() as context:
        context.prec = 400
        p = (-(Decimal(x.numerator) / Decimal(x.denominator))).exp()
        assert digits(x, 20, 0) == int(p * 2**20) and digits(x, 40, 0) == int(p * 2**40)


@pytest.mark.parametrize("one", [0, 1])
def test_a_coin_has_its_probability_in_every_word(one):
    # all words of 16 bits once: as many heads as the first digits say, and one coin left open
    x = Fraction(3, 7)
    words = np.arange(2**16, dtype="<u2").tobytes()
    for following, expected in ((bytes(8), True), (bytes([255]) * 8, False)):
        supply = iter([words, following])
        heads = noise._heads(x, one, 2**16, lambda size, supply=supply: next(supply))
        level = digits(x, 16, one)
        assert heads[:level].all() and not heads[level + 1 :].any()
        assert heads[level] == expected
        assert list(supply) == []


def test_a_coin_that_stays_open_takes_more_bits():
    x = Fraction(3, 7)
    level = digits(x, 16 + 64, 1)
    tied = (level & (2**64 - 1)).to_bytes(8, "little")
    for last, expected in ((bytes(8), True), (bytes([255]) * 8, False)):
        supply = iter([tied, last])
        found = noise._settle(level >> 64, 16, x, 1, lambda size, supply=supply: next(supply))
        assert found == expected and list(supply) == []


def check_distribution(draws, mass, low):
    """Chi-square of draws against probabilities of low, low + 1, ...; rare ones pooled."""
    size = len(draws)
    inside = np.array([int(k) - low for k in draws])
    assert inside.min() >= 0 and inside.max() < len(mass)
    seen = np.bincount(inside, minlength=len(mass))
    common = mass * size >= 8
    seen, mean = np.append(seen[common], seen[~common].sum()), mass[common] * size
    mean = np.append(mean, size - mean.sum())
    if mean[-1] < 5:
        seen, mean = seen[:-1], mean[:-1] * seen[:-1].sum() / mean[:-1].sum()
    assert len(seen) < 2 or chisquare(seen, mean).pvalue > FALSE_ALARM


@pytest.mark.parametrize("scale", [0.05, 0.4, 0.5, 1.0, 1.5, 2.0, 7.3, 64.0])
def test_distributions(scale):
    k = np.arange(math.ceil(60 * scale) + 3)
    q = math.exp(-1 / scale)
    check_distribution(geometric(scale, 40_000, source(1)), (1 - q) * q**k, 0)
    both = np.arange(-len(k), len(k) + 1)
    check_distribution(laplace(scale, 40_000, source(2)), DiscreteLaplace(scale).pmf(both), both[0])
    mass = np.exp(-0.5 * (both / scale) ** 2)
    check_distribution(gaussian(scale, 40_000, source(3)), mass / mass.sum(), both[0])


def test_digits_of_a_geometric_variable_are_independent():
    draws = geometric(6.0, 60_000, source(4))
    table = [[(((draws >> 1) & 1) == a)[(draws & 1) == b].sum() for a in (0, 1)] for b in (0, 1)]
    assert chi2_contingency(np.array(table)).pvalue > FALSE_ALARM
    draws = laplace(5.0, 60_000, source(5))
    table = np.histogram2d(draws[::2], draws[1::2], [[-99, -4, 0, 4, 99]] * 2)[0]
    assert chi2_contingency(table).pvalue > FALSE_ALARM


@pytest.mark.parametrize("name", ["laplace", "gaussian"])
@pytest.mark.parametrize("scale", [0.7, 5.3])
def test_the_distribution_is_that_of_opendp(name, scale):
    dp.enable_features("contrib")
    norm = dp.l1_distance(T="i64") if name == "laplace" else dp.l2_distance(T="f64")
    make = dp.m.make_laplace if name == "laplace" else dp.m.make_gaussian
    theirs = make(dp.vector_domain(dp.atom_domain(T="i64")), norm, scale=scale)([0] * 8000)
    ours = getattr(noise, f"exact_{name}")(scale, 8000, source(6))
    edges = np.array([-1e9, -2 * scale, -scale, -0.5, 0.5, scale, 2 * scale, 1e9])
    table = np.array([np.histogram(draws, edges)[0] for draws in (theirs, ours)])
    table = table[:, table.any(axis=0)]
    assert chi2_contingency(table).pvalue > 1e-7


def test_the_exact_coin_agrees_with_the_double(monkeypatch):
    # the same bits, with every decision left to the exact coin
    quick = gaussian(5.7, 3000, source(7))
    monkeypatch.setattr(noise, "_SLACK", 2.0)
    assert (gaussian(5.7, 3000, source(7)) == quick).all()


def test_a_double_that_is_off_is_caught(monkeypatch):
    monkeypatch.setattr(noise, "_SLACK", 0.05)
    exact = gaussian(5.7, 3000, source(7))
    # an error within the slack changes nothing, as those coins are settled exactly
    monkeypatch.setattr(noise.np, "exp", lambda x, exp=np.exp: exp(x) + 0.02)
    assert (gaussian(5.7, 3000, source(7)) == exact).all()
    monkeypatch.setattr(noise, "_SLACK", 2.0**-24)
    assert (gaussian(5.7, 3000, source(7)) != exact).any()


@pytest.mark.parametrize("distribution", [laplace, gaussian])
def test_wide_distributions_have_their_moments(distribution):
    scale = 2.0**51 + 1.0
    draws = distribution(scale, 20_000, source(8)).astype(float) / scale
    second = 2.0 if distribution is laplace else 1.0
    assert draws.mean() == pytest.approx(0, abs=5 * math.sqrt(second / 20_000))
    assert (draws**2).mean() == pytest.approx(second, rel=0.12)


def with_python_integers(monkeypatch):
    for module in (noise, knorm):
        monkeypatch.setattr(module, "LARGEST", 4)


@pytest.mark.parametrize(
    "draw",
    [
        lambda: DiscreteLaplace(9.0).draw(np.arange(50), None),
        lambda: DiscreteGaussian(9.0).draw(np.arange(50), None),
        lambda: ZeroSumLaplace(5, 9.0).draw(np.arange(5), None),
        lambda: draw_cells(3.0, 0.25, 40, None).astype(float),
    ],
    ids=["laplace", "gaussian", "zero-sum", "cells"],
)
def test_numbers_of_any_size_follow_the_same_path(draw, monkeypatch):
    monkeypatch.setattr("os.urandom", source(9))
    plain = draw()
    with_python_integers(monkeypatch)
    monkeypatch.setattr("os.urandom", source(9))
    large = draw()
    assert large.dtype == plain.dtype and (large == plain).all()


def test_sums_are_exact_and_end_with_64_bits():
    far = np.array([10**30, -(10**30), 2**63, 5], dtype=object)
    values = np.array([7, 7, -1, ENDS.min])
    assert clipped_sum(values, far).tolist() == [ENDS.max, ENDS.min, ENDS.max, ENDS.min + 5]
    near = np.array([2**61, -(2**61), 3])
    ends = np.array([ENDS.max, ENDS.min, ENDS.max - 1])
    assert clipped_sum(ends, near).tolist() == [ENDS.max, ENDS.min, ENDS.max]


def test_cells_beyond_53_digits_are_exact(monkeypatch):
    steps = np.array([2**70 + 1, -(2**60), 3], dtype=object)
    monkeypatch.setattr(noise, "draw_nonzero", lambda *_: steps)
    found = draw_cells(1.0, 0.5, 3, None)
    assert [Fraction(x) * 2 for x in found] == [
        2**70 + 1 - Fraction(1, 2), -(2**60) + Fraction(1, 2), Fraction(5, 2)
    ]  # fmt: skip
