"""Which items released counts connect: what is missed, what is cut in vain, and how often."""

import numpy as np
import pytest

from privrank.bradley_terry.paircounts import FEW, parts_of
from privrank.hypotheses.tails import simulated
from privrank.privacy.knorm import CubeNoise
from privrank.privacy.noise import DiscreteLaplace


def counts(items, groups, each):
    """Counts of all pairs: `each` of two items of one group, none of others."""
    first, second = np.triu_indices(items, 1)
    return np.where(np.asarray(groups)[first] == np.asarray(groups)[second], float(each), 0.0)


def parts(items, groups, each, sd=1.0, seed=0):
    noise = np.random.default_rng(seed).laplace(0.0, sd / np.sqrt(2.0), items * (items - 1) // 2)
    found = parts_of(counts(items, groups, each) + noise, sd**2, items)
    return np.zeros(items, dtype=int) if found is None else found


@pytest.mark.parametrize(
    ("items", "groups"),
    [
        (2, [0, 1]),
        (6, [0, 0, 0, 0, 0, 1]),
        (6, [0, 1, 2, 0, 0, 0]),
        (6, [0, 0, 0, 1, 1, 1]),
        (8, [0, 1, 0, 1, 0, 1, 0, 1]),
        (30, [0] * 28 + [1] * 2),
        (30, [0, 1] * 15),
        (30, [0] * 20 + [1] * 8 + [2, 3]),
    ],
)
def test_parts_that_nobody_compared_are_found(items, groups):
    for seed in range(10):
        np.testing.assert_array_equal(parts(items, groups, 12.0, seed=seed), groups)


@pytest.mark.parametrize("items", [3, 6, 10, 25])
def test_items_that_are_well_compared_stay_together(items):
    """A cut with 8 standard deviations of its noise is no part."""
    each = 2 * FEW / np.sqrt(items - 1)
    cut = sum(parts(items, [0] * items, each, seed=seed).any() for seed in range(300))
    assert cut <= 3


@pytest.mark.parametrize("items", [2, 3, 4, 6, 20])
def test_comparisons_that_are_none_rarely_exceed_their_noise(items):
    """By the exact distribution of the sum of an item's noise: .002, .0015 and .001 at most."""
    distribution, k = DiscreteLaplace(20.0), items - 1
    values = np.arange(-600, 601)
    one = np.exp(-np.abs(values) / 20.0)
    whole = np.array([1.0])
    for _ in range(k):
        whole = np.convolve(whole, one / one.sum())
    sums = np.arange(len(whole)) - len(whole) // 2
    missed = whole[sums > FEW * np.sqrt(k * distribution.variance)].sum()
    assert 1e-5 < missed < {1: 0.002, 2: 0.0015}.get(k, 0.001)


@pytest.mark.parametrize("items", [3, 4, 6])
def test_so_they_do_under_noise_in_a_cube(items):
    pairs, draws = items * (items - 1) // 2, 200_000
    distribution = CubeNoise.calibrate(pairs, 1, 0.2)
    noise = simulated(distribution, (draws, pairs), np.random.default_rng(1))
    first = np.triu_indices(items, 1)[0] == 0
    sums = noise[:, first].sum(axis=1)
    missed = (sums > FEW * np.sqrt(first.sum() * distribution.variance)).mean()
    assert missed < (0.0015 if items == 3 else 0.001)


def test_of_very_many_items_single_ones_are_found():
    found = parts(520, [0] * 519 + [1], 3.0)
    assert found[-1] == 1 and not found[:-1].any()
