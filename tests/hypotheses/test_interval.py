"""Intervals for a distance: the zero rule, the scatter of shares, two categories exactly."""

import math
from bisect import bisect_left, bisect_right
from functools import partial
from itertools import pairwise

import numpy as np
import pytest
from scipy.stats import binom

import privrank as pr
from privrank.hypotheses.interval import corrected_distance, interval_from, zero_rule
from privrank.mechanisms.categories import distance_from_null
from privrank.privacy.noise import DiscreteLaplace

SKEWED = (0.4, 0.25, 0.2, 0.15, 0.0)


@pytest.mark.parametrize("n", [1, 2, 7, 60])
@pytest.mark.parametrize("p", [SKEWED, (0.25,) * 4, (0.97, 0.01, 0.02), (1.0, 0.0)])
def test_shares_scatter_by_no_more_than_the_bound(n, p):
    counts = np.arange(n + 1)
    means = [binom.pmf(counts, n, q) @ np.abs(counts / n - q) for q in p]
    assert sum(means) / 2 <= math.sqrt((len(p) - 1) / n) / 2 + 1e-12


def test_the_correction_takes_off_the_null_mean():
    n = 40
    mean = sum(
        binom.pmf(np.arange(n + 1), n, q) @ np.abs(np.arange(n + 1) - n * q) for q in SKEWED
    ) / (2 * n)
    assert corrected_distance(0.5, n, SKEWED) == pytest.approx(math.sqrt(0.25 - mean**2))
    assert corrected_distance(mean * 0.99, n, SKEWED) == 0.0
    assert corrected_distance(-3.0, n, SKEWED) == 0.0
    assert corrected_distance(0.5, 40, (1.0, 0.0)) == 0.5


def test_zero_is_in_the_interval_exactly_if_the_test_does_not_reject():
    rng = np.random.default_rng(3)
    for _ in range(10_000):
        low, high = np.sort(np.maximum(rng.normal(0.0, 0.3, 2), 0.0))
        rejected, step = bool(rng.random() < 0.5), float(rng.choice([1e-6, 0.1]))
        found = zero_rule((low, high), rejected=rejected, step=step)
        assert (found[0] > 0) == rejected and found[0] <= found[1]
        if rejected:
            assert found[1] > 0 and found[1] >= high and found[0] == (low or math.ulp(0.0))
        else:
            assert found == (0.0, high or step)


def test_both_ends_rise():
    n, distribution, found = 60, DiscreteLaplace(700.0), distance_from_null(60, SKEWED)
    scale = {"step": found.step, "sensitivity": found.sensitivity}
    ends = [
        interval_from(v, n, SKEWED, distribution, 0.1, **scale) for v in range(-4000, 60_000, 4000)
    ]
    assert all(a[0] <= b[0] and a[1] <= b[1] for a, b in pairwise(ends))


@pytest.mark.parametrize(("n", "p", "epsilon"), [(30, 0.5, 1.0), (30, 0.1, 0.3), (200, 0.3, 2.0)])
def test_two_categories_are_covered_exactly(n, p, epsilon):
    cells = (p, 1 - p)
    found = distance_from_null(n, cells)
    distribution = DiscreteLaplace.calibrate(found.sensitivity, epsilon)
    scale = {"step": found.step, "sensitivity": found.sensitivity}

    def end(side, noisy):
        return interval_from(noisy, n, cells, distribution, 0.1, **scale)[side]

    reach, top = math.ceil(12 * distribution.scale), round(max(cells) / found.step)
    span = range(-reach, top + reach)
    values = np.array([found.value(np.array([m, n - m]), ()) for m in range(n + 1)])
    for q in (p + 0.02, p + 0.15, p - 0.05, 0.99):
        tau = abs(q - p)
        # both ends rise in the released number
        first = span[bisect_left(span, tau, key=partial(end, 1))]
        beyond = span[bisect_right(span, tau, key=partial(end, 0))]
        inside = distribution.tail(first - values) - distribution.tail(beyond - values)
        assert binom.pmf(np.arange(n + 1), n, q) @ inside >= 0.9


@pytest.mark.parametrize("method", ["tv", "omnibus"])
def test_tests_and_intervals_agree_in_every_fit(method):
    rng = np.random.default_rng(8)
    p = (0.5, 0.3, 0.2)
    more = {} if method == "tv" else {"effect_epsilon": 8.0}
    rejected = []
    for _ in range(150):
        counts = rng.multinomial(60, rng.dirichlet([9, 5, 4]))
        result = pr.IdentityTest.from_counts(counts, p, list("abc")).fit(
            8.0, method=method, draws=99, rng=rng, **more
        )
        for alpha in (0.3, 0.05, 0.02):
            low, high = result.conf_int(alpha)
            assert (low > 0) == (result.pvalue <= alpha) and low <= high
            rejected.append(low > 0)
    assert 0.2 < np.mean(rejected) < 0.8


def test_an_effect_has_a_budget_of_its_own():
    counts = {"a": 60, "b": 90, "c": 50, "d": 70}
    test, rng = pr.UniformityTest.from_counts(counts, list(counts)), np.random.default_rng(4)
    budget = pr.Budget(epsilon=2.0)
    result = test.fit(1.0, method="omnibus", effect_epsilon=0.5, budget=budget, rng=rng)
    assert budget.spent == (1.5, 0.0) and result.epsilon == 1.5
    part = result.release.parts["effect"]
    assert part.epsilon == 0.5 and result.release.parts["statistic"].epsilon == pytest.approx(1.0)
    assert "released with epsilon 0.5" in " ".join(str(result.summary()).split())
    again = pr.from_json(result.to_json())
    assert again.conf_int() == result.conf_int() and again.effect == result.effect
    assert list(result.to_frame()[["lower", "upper"]].iloc[0]) == list(result.conf_int())
    free = test.fit(np.inf, method="omnibus")
    assert free.effect == test.fit(np.inf, method="tv").effect
    for asked, given, words in (
        (test, {"method": "tv"}, "the distance itself"),
        (test, {"epsilon": np.inf}, "leave it out"),
        (pr.UniformityTest(np.tile([1, 2, 3], (5, 1))), {}, "tests of shares"),
    ):
        with pytest.raises(ValueError, match=words):
            asked.fit(**{"epsilon": 1.0, "effect_epsilon": 0.5, **given})
    with pytest.raises(ValueError, match="effect_epsilon"):
        test.fit(1.0, method="omnibus", rng=rng).conf_int()


def test_the_boundary_gives_every_level_exactly():
    # P(p <= a) = a, summed over counts, noise and an even grid of the public number
    n, p, epsilon = 9, 0.3, 1.0
    found = distance_from_null(n, (p, 1 - p))
    null, distribution = found.null(99), DiscreteLaplace.calibrate(found.sensitivity, epsilon)
    released = np.arange(-40 * round(distribution.scale), 40 * round(distribution.scale), 1)
    for alpha in (0.05, 0.3):
        full, beyond = null.pvalue(0, distribution), null.pvalue(0, distribution, 0.5)
        assert full > beyond == pytest.approx(null.pvalue(1, distribution))
        least = null.threshold(alpha, distribution)
        share = (alpha - null.pvalue(least, distribution)) / (
            null.pvalue(least - 1, distribution) - null.pvalue(least, distribution)
        )
        # at least - 1 the test rejects for U above 1/2 - share, and for no U below that value
        assert null.threshold(alpha, distribution, 0.5 - share + 1e-6) == least - 1
        assert null.threshold(alpha, distribution, 0.5 - share - 1e-6) == least
        assert 0 <= share < 1 and released[0] < least < released[-1]


def test_the_public_number_is_archived():
    test = pr.IdentityTest.from_counts([30, 12], [0.5, 0.5], ["a", "b"])
    seen = []
    for seed in range(200):
        result = test.fit(1.0, rng=np.random.default_rng(seed))
        seen.append(result.boundary)
        part = result.release.parts["statistic"]
        null = result.null()
        whole, least = (null.pvalue(int(part.values[0]), part.laplace, u) for u in (-0.5, 0.5))
        expected = least + (0.5 - result.boundary) * (whole - least)
        assert result.pvalue == pytest.approx(expected, abs=1e-12)
    assert pr.from_json(result.to_json()).boundary == result.boundary
    assert min(seen) >= -0.5 and max(seen) < 0.5 and abs(np.mean(seen)) < 0.08
    assert test.fit(np.inf).boundary is None
    assert "decides at the boundary" in " ".join(str(result.summary()).split())
