"""Two categories: exact p-values, and no private test that is more powerful."""

import math
import pickle

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.stats import binom

from privrank.hypotheses.nulls import binomial_null as windowed
from privrank.hypotheses.nulls import binomial_weights
from privrank.mechanisms.categories import binomial
from privrank.privacy.noise import DiscreteLaplace


def binomial_distribution(n, p):
    return binomial_weights(n, p, np.arange(n + 1))


def distribution_of(epsilon):
    return DiscreteLaplace(1 / epsilon)


@pytest.mark.parametrize(
    ("n", "p"), [(2, 0.5), (30, 0.1), (200, 0.9), (10**5, 1e-4), (2 * 10**5, 0.3)]
)
def test_binomial_distribution(n, p):
    distribution = binomial_distribution(n, p)
    assert distribution.sum() == pytest.approx(1, abs=1e-10)
    assert distribution @ np.arange(n + 1) == pytest.approx(n * p, rel=1e-10)
    if n <= 200:
        exact = [math.comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(n + 1)]
        assert distribution == pytest.approx(exact, abs=1e-12)
    assert binomial_distribution(5, 0.0).tolist() == [1, 0, 0, 0, 0, 0]
    assert binomial_distribution(5, 1.0).tolist() == [0, 0, 0, 0, 0, 1]


@pytest.mark.parametrize("alternative", ["larger", "smaller", "two-sided"])
@pytest.mark.parametrize(("n", "p"), [(2, 0.5), (7, 0.3), (12, 0.9)])
def test_statistics_are_private_and_their_nulls_exact(alternative, n, p):
    statistic = binomial(n, p, alternative)
    values = [statistic.value(np.array([m, n - m]), ()) for m in range(n + 1)]
    assert max(abs(a - b) for a, b in zip(values, values[1:], strict=False)) == (
        statistic.sensitivity
    )
    null = statistic.null(99)
    assert null.draws is None
    for value in values:
        mass = sum(binom.pmf(m, n, p) for m in range(n + 1) if values[m] == value)
        assert null.weights[null.values == value].sum() == pytest.approx(mass, abs=1e-14)
    if alternative == "two-sided":
        distances = [abs(m / n - p) for m in range(n + 1)]
        assert np.array(values) * statistic.step == pytest.approx(distances, abs=statistic.step)
    else:
        assert values == sorted(values, reverse=alternative == "smaller")
    assert pickle.loads(pickle.dumps(statistic)).sensitivity == statistic.sensitivity


def rejection(n, p, distribution, alpha):
    """P(the most powerful private test rejects | M = m), exactly, for m = 0..n.

    At the boundary it draws lots: as the p-value of M + L = r falls linearly from P(M + L >= r) to
    P(M + L > r) in a uniform number.
    """
    reach = math.ceil(40 * distribution.scale)
    released = np.arange(-reach, n + reach + 1)
    null = binomial(n, p, "larger").null(99)
    full = np.array([null.pvalue(int(r), distribution) for r in released])
    least = np.array([null.pvalue(int(r) + 1, distribution) for r in released])
    share = np.clip((alpha - least) / np.maximum(full - least, 1e-300), 0, 1)
    noise = distribution.pmf(released[None, :] - np.arange(n + 1)[:, None])
    return noise @ share


@pytest.mark.parametrize("alpha", [0.001, 0.05, 0.37])
@pytest.mark.parametrize(("n", "p", "epsilon"), [(5, 0.3, 1.0), (30, 0.5, 0.1), (20, 0.9, 2.0)])
def test_pvalue_is_exactly_uniform(n, p, epsilon, alpha):
    level = binomial_distribution(n, p) @ rejection(n, p, distribution_of(epsilon), alpha)
    assert level == pytest.approx(alpha, abs=1e-10)


@pytest.mark.parametrize(("n", "p", "epsilon"), [(5, 0.3, 1.0), (30, 0.5, 0.1), (20, 0.9, 2.0)])
def test_pvalue_without_the_lot_is_larger_by_no_more_than_a_boundary(n, p, epsilon):
    distribution, null = distribution_of(epsilon), binomial(n, p, "larger").null(99)
    for noisy in range(-8, n + 9):
        boundary = null.pvalue(noisy, distribution) - null.pvalue(noisy + 1, distribution)
        assert 0 <= boundary <= math.tanh(epsilon / 2)
    reach = math.ceil(40 / epsilon)
    released = np.arange(-reach, n + reach + 1)
    mass = binomial_distribution(n, p) @ distribution.pmf(
        released[None, :] - np.arange(n + 1)[:, None]
    )
    pvalues = np.array([null.pvalue(int(r), distribution) for r in released])
    for alpha in (0.01, 0.05, 0.5):
        assert mass[pvalues <= alpha].sum() <= alpha + 1e-12


@pytest.mark.parametrize("other", [0.45, 0.7, 0.9])
@pytest.mark.parametrize(("n", "p", "epsilon"), [(6, 0.4, 1.0), (20, 0.4, 0.3), (15, 0.2, 2.0)])
def test_no_private_test_is_more_powerful(n, p, epsilon, other):
    alpha, up = 0.05, math.exp(epsilon)
    ours = rejection(n, p, distribution_of(epsilon), alpha)
    power = binomial_distribution(n, other) @ ours
    # the best private test at this one alternative is a linear program in P(reject | M = m)
    rows, bounds = [binomial_distribution(n, p)], [alpha]
    for a, b in [(m, m + 1) for m in range(n)] + [(m + 1, m) for m in range(n)]:
        row = np.zeros(n + 1)
        row[a], row[b] = 1, -up  # phi(a) <= e^eps phi(b)
        rows.append(row)
        bounds.append(0.0)
        row = np.zeros(n + 1)
        row[a], row[b] = up, -1  # 1 - phi(b) <= e^eps (1 - phi(a))
        rows.append(row)
        bounds.append(up - 1)
        assert ours[a] <= up * ours[b] + 1e-13
        assert 1 - ours[b] <= up * (1 - ours[a]) + 1e-13
    best = linprog(
        -binomial_distribution(n, other), A_ub=np.array(rows), b_ub=bounds, bounds=(0, 1)
    )
    assert power == pytest.approx(-best.fun, abs=1e-8)
    # continuous Laplace noise with its exact threshold is one of them
    grid = np.linspace(-60 / epsilon, n + 60 / epsilon, 40_001)[:, None] - np.arange(n + 1)
    tail = np.where(
        grid > 0, np.exp(-epsilon * np.abs(grid)) / 2, 1 - np.exp(-epsilon * np.abs(grid)) / 2
    )
    at = int(np.argmax(tail @ binomial_distribution(n, p) <= alpha))
    assert tail[at] @ binomial_distribution(n, other) <= power + 1e-9


def test_two_sided_power_is_near_that_of_the_better_side():
    n, p, distribution = 200, 0.3, distribution_of(0.5)
    two = binomial(n, p)
    wide = DiscreteLaplace(distribution.scale * two.sensitivity)
    threshold = two.null(99).threshold(0.05, wide)
    values = np.array([two.value(np.array([m, n - m]), ()) for m in range(n + 1)])
    reject = wide.tail(threshold - values)
    assert binomial_distribution(n, p) @ reject == pytest.approx(0.05, abs=1e-3)
    for other in (0.18, 0.42):
        side = binomial(n, p, "larger" if other > p else "smaller")
        level = side.null(99).threshold(0.05, distribution)
        better = distribution.tail(
            level - np.array([side.value(np.array([m, n - m]), ()) for m in range(n + 1)])
        )
        power, best = (
            binomial_distribution(n, other) @ reject,
            binomial_distribution(n, other) @ better,
        )
        assert 0.85 < power < best


@pytest.mark.parametrize(("n", "p"), [(7, 0.3), (40_000, 1e-4), (10**6, 0.5), (10**9, 0.999)])
def test_the_binomial_null_leaves_out_only_what_never_happens(n, p):
    null = windowed(n, p)
    np.testing.assert_allclose(null.weights, binom.pmf(null.values, n, p), rtol=1e-5, atol=1e-30)
    assert len(null.values) <= min(n + 1, 2 * math.ceil(12 * math.sqrt(n / 4) + 51))
    assert (windowed(9, 0.0).weights @ windowed(9, 0.0).values) == 0


def test_a_lot_at_the_boundary_is_for_exact_nulls_alone():
    assert binomial(2**22, 0.5).randomised and not binomial(2**22 + 1, 0.3).randomised
    assert binomial(2**30, 0.3, "larger").randomised
