"""Observations that H0 rules out: without noise one is enough, with noise their count decides."""

import math
from itertools import permutations, product

import numpy as np
import pandas as pd
import pytest

import privrank as pr
from privrank.hypotheses import nulls
from privrank.mechanisms.categories import distance_from_null, of_ranks, omnibus_of
from privrank.privacy.noise import DiscreteLaplace
from privrank.release.names import IMPOSSIBLE

SHARES = {"a": 0.4, "b": 0.3, "c": 0.2, "d": 0.1, "e": 0.0}
ORDERS = pd.DataFrame(list(permutations([1, 2, 3])), columns=list("xyz"))
TABLE = ORDERS.assign(probability=[0.3, 0.25, 0.2, 0.15, 0.1, 0.0])
CASES = [
    *(("choices", method) for method in ("auto", "tv", "omnibus")),
    *(("rankings", method) for method in ("auto", "omnibus", "tv")),
]


def test_of(kind, odd=0, n=300):
    """Data as H0 has them, but for `odd` observations that it rules out."""
    if kind == "choices":
        counts = [int(n * share) for share in SHARES.values()]
        counts[0], counts[-1] = counts[0] - odd, odd
        return pr.IdentityTest.from_counts(dict(zip(SHARES, counts, strict=True)), SHARES)
    times = (n * TABLE["probability"]).round().astype(int)
    times.iloc[0], times.iloc[-1] = times.iloc[0] - odd, odd
    return pr.IdentityTest(ORDERS.loc[np.repeat(ORDERS.index, times)], TABLE)


test_of.__test__ = False


@pytest.mark.parametrize(("kind", "method"), CASES)
def test_one_is_enough_without_noise(kind, method):
    options = {"method": method, "draws": 999}
    result = test_of(kind, odd=1).fit(math.inf, **options)
    assert result.pvalue == (0.0 if result.draws is None else 1 / 1000)
    assert result.reject and "probability 0 to 1 of the 300" in result.summary().as_text()
    assert pr.from_json(result.to_json()).summary() == result.summary()
    none = test_of(kind).fit(math.inf, **options)
    assert none.pvalue > 0.05 and "probability 0" not in none.summary().as_text()


def test_two_categories_of_which_one_cannot_be():
    for method in ("auto", "binary"):
        test = pr.IdentityTest.from_counts([49, 1], [1.0, 0.0], ["a", "b"])
        assert test.fit(math.inf, method=method).pvalue == 0.0


@pytest.mark.parametrize(("kind", "method"), CASES)
def test_with_noise_the_count_never_leaves_by_itself(kind, method):
    for epsilon, delta in ((1.0, 0.0), (30.0, 0.0), (1.0, 0.999)):
        rng = np.random.default_rng(0)
        result = test_of(kind, odd=1).fit(epsilon, delta, method=method, draws=99, rng=rng)
        assert IMPOSSIBLE not in result.release.parts
        assert ("gives no special weight" in " ".join(result.summary().notes)) == (method == "tv")


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 8.0])
@pytest.mark.parametrize(
    ("n", "p"), [(2, (0.5, 0.5, 0.0)), (5, (0.7, 0.3, 0.0)), (4, (0.6, 0.4, 0.0, 0.0)), (3, (1, 0))]
)
def test_no_choice_moves_it_further_than_stated(n, p, epsilon):
    p = tuple(map(float, p))
    asked = omnibus_of(n, p, epsilon)
    assert asked.sensitivity == 1024 and asked.impossible is None
    largest = 0
    for cells in product(range(n + 1), repeat=len(p)):
        for i, j in permutations(range(len(p)), 2):
            if sum(cells) == n and cells[i]:
                counts = np.array(cells)
                moved = counts - np.eye(len(p), dtype=int)[i] + np.eye(len(p), dtype=int)[j]
                step = abs(asked.value(counts, ()) - asked.value(moved, ()))
                largest = max(largest, step)
    assert largest <= asked.sensitivity
    assert epsilon < 8 or largest > 0.9 * asked.sensitivity


@pytest.mark.parametrize("n", [2, 3])
def test_no_ranking_moves_it_further_than_stated(n):
    p = tuple(TABLE["probability"])
    asked = of_ranks(omnibus_of(n, p, 8.0, rankings=True))
    ranks, values = ORDERS.to_numpy(), {}
    for rows in product(range(6), repeat=n):
        values[rows] = asked.value(ranks[list(rows)], ())
    steps = [
        abs(values[rows] - values[(other, *rows[1:])]) for rows in values for other in range(6)
    ]
    assert 0.9 * asked.sensitivity < max(steps) <= asked.sensitivity


@pytest.mark.parametrize("epsilon", [0.5, 3.0])
def test_the_null_is_the_distribution_over_all_counts(epsilon):
    n, p = 9, (0.7, 0.3, 0.0)
    asked = omnibus_of(n, p, epsilon)
    distribution = asked.null(9999)
    found = dict(zip(distribution.values.tolist(), distribution.weights, strict=True))
    exact = {}
    for count in range(n + 1):
        value = asked.value(np.array([count, n - count, 0]), ())
        mass = math.comb(n, count) * 0.7**count * 0.3 ** (n - count)
        exact[value] = exact.get(value, 0.0) + mass
    assert set(found) <= set(exact)
    for value, mass in exact.items():
        assert found.get(value, 0.0) == pytest.approx(mass, abs=4 * math.sqrt(mass / 9999) + 1e-4)


def test_what_was_drawn_before_changes_nothing(monkeypatch, tmp_path):
    # quantiles and p-values, with noise and without, are sequences of their own
    n, p, counts = 60, (0.5, 0.3, 0.2, 0.0), np.array([20, 20, 20, 0])
    found = []
    for first in (1.0, math.inf):
        monkeypatch.setenv("PRIVRANK_CACHE", str(tmp_path / str(first)))
        monkeypatch.setattr(nulls, "_MEMORY", {})
        omnibus_of(n, p, first).null(640)
        found.append([omnibus_of(n, p, xi).value(counts, ()) for xi in (1.0, math.inf)])
    assert found[0] == found[1]


EPSILONS, SAMPLES = (0.25, 1.0, 4.0), 4000


def rejection(epsilon, share, method="auto", n=300):
    """Probability to reject at level .05, the noise integrated, where a share cannot be."""
    rng = np.random.default_rng(5)
    p = tuple(SHARES.values())
    asked = distance_from_null(n, p) if method == "tv" else omnibus_of(n, p, epsilon)
    noise = DiscreteLaplace(asked.sensitivity / epsilon)
    threshold = asked.null(9999).threshold(0.05, noise)
    cells = np.array(p) * (1 - share) + share * np.eye(5)[4]
    counts = rng.multinomial(n, cells, SAMPLES)
    values = np.array([asked.value(row, ()) for row in counts])
    return float(np.mean(noise.tail(threshold - values))), counts[:, 4], noise


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_level_is_kept_and_the_power_is_that_of_the_count(epsilon):
    # .004 for the table of 9,999 draws, and three standard errors
    assert rejection(epsilon, 0.0)[0] <= 0.054 + 3 * math.sqrt(0.05 * 0.95 / SAMPLES)
    for share in (0.01, 0.03, 0.1):
        power, seen, noise = rejection(epsilon, share)
        least = math.ceil(noise.scale * math.log(1 / 0.01))
        alone = np.mean(noise.tail(least - round(noise.scale * epsilon) * seen))
        assert power >= alone - 0.01
        assert power > rejection(epsilon, share, "tv")[0] - 0.03
    assert epsilon < 1 or rejection(epsilon, 0.03)[0] > 2 * rejection(epsilon, 0.03, "tv")[0]


def test_end_to_end_type_one_error():
    rng, rejected = np.random.default_rng(11), []
    for _ in range(300):
        counts = rng.multinomial(100, list(SHARES.values()))
        test = pr.IdentityTest.from_counts(dict(zip(SHARES, counts, strict=True)), SHARES)
        rejected.append(test.fit(1.0, draws=999, rng=rng).reject)
    assert np.mean(rejected) <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 300)
