"""What the papers print for the local model fails what they claim, by exact enumeration.

BFZ21: Busa-Fekete, Fotakis and Zampetakis (2021). AGKM22: Alabi, Ghazi, Kumar and Manurangsi
(2022), https://arxiv.org/abs/2112.14652. YLL20: Yan, Li and Liu (2020),
https://arxiv.org/abs/1908.04486.
"""

import math
from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
from scipy.optimize import brentq

from privrank.local.kinds import PairBits, RandomPairs

ITEMS = ("a", "b", "c", "d")


def distributions(protocol, assignment=0):
    """Exact distribution of the answer to one question, for every ranking of the items."""
    response = protocol.response
    orders = np.array(list(permutations(range(1, len(protocol.items) + 1))))
    sets = protocol.favoured_answers(orders, np.full(len(orders), assignment))
    found = []
    for digits in sets:
        answers = [Fraction(1)]
        for favoured in digits:
            weights = np.full(protocol.options, response.other_weight, dtype=object)
            weights[favoured] = response.favoured_weight
            answers = [p * int(w) / response.total for p in answers for w in weights]
        found.append(answers)
    return orders, found


def loss(first, second):
    """The largest log-ratio of two distributions."""
    return max(abs(math.log(p / q)) for p, q in zip(first, second, strict=True))


def spent(protocol):
    _, found = distributions(protocol)
    return max(loss(first, second) for first in found for second in found)


def printed_answer(truth, epsilon):
    """YLL20 Algorithm 1: report 1 with probability p, else 0, whichever answer is true."""
    p = math.exp(epsilon) / (1 + math.exp(epsilon))
    return [1 - p, p]


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_yll20_algorithm_1_ignores_the_answer(epsilon):
    assert printed_answer(0, epsilon) == printed_answer(1, epsilon)
    assert spent(RandomPairs(ITEMS, epsilon)) == pytest.approx(epsilon, rel=1e-12)


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 4.0])
def test_yll20_theorem_1_has_a_two_too_many(epsilon):
    # 2 p / (1 - p) = exp(epsilon) for the probability p of the true answer
    p = math.exp(epsilon) / (2 + math.exp(epsilon))
    assert loss([1 - p, p], [p, 1 - p]) == pytest.approx(abs(epsilon - math.log(2)))
    # below log 2 a lie is more probable than the truth
    assert (p < 0.5) == (epsilon < math.log(2))
    truth = RandomPairs(ITEMS, epsilon).response.favoured_probability
    assert truth / (1 - truth) == pytest.approx(math.exp(epsilon))


@pytest.mark.parametrize(("epsilon", "achieved"), [(1.0, 0.83), (2.0, 1.49), (4.0, 2.62)])
def test_yll20_laplace_answers_are_dominated_by_randomised_response(epsilon, achieved):
    # Theorem 1 (b); sensitivity 1, cut at 1/2: all that is seen is a bit of smaller epsilon
    laplace = RandomPairs(ITEMS, epsilon, method="laplace")
    assert spent(laplace) == pytest.approx(math.log(2 * math.exp(epsilon / 2) - 1), rel=1e-12)
    assert round(spent(laplace), 2) == achieved
    same = RandomPairs(ITEMS, spent(laplace))
    assert same.gain == pytest.approx(laplace.gain)
    assert laplace.gain < RandomPairs(ITEMS, epsilon).gain


def pair_variance(pairs, epsilon, method="randomized"):
    """Variance of one pair's fraction, up to a constant, at so many pairs per respondent."""
    gain = RandomPairs(tuple("abcdefgh"), epsilon, pairs=pairs, method=method).gain
    return 1 / (pairs * gain**2)


def test_yll20_half_of_epsilon_is_not_the_best_number_of_pairs():
    # Section 5.2: K = epsilon / 2. The variance coth(y / 2)^2 y / epsilon at y = epsilon / K is
    # least where sinh y = 2 y; for Laplace answers where exp(y / 2) = 1 + y
    assert brentq(lambda y: math.sinh(y) - 2 * y, 1, 4) == pytest.approx(2.177, abs=5e-4)
    assert brentq(lambda y: math.exp(y / 2) - 1 - y, 1, 4) == pytest.approx(2.513, abs=5e-4)
    thresholds = [
        brentq(lambda e, k=k: pair_variance(k, e) - pair_variance(k + 1, e), 2 * k, 4 * k)
        for k in (1, 2)
    ]
    assert thresholds == pytest.approx([3.057, 5.320], abs=5e-4)
    best = min(range(1, 11), key=lambda k: pair_variance(k, 16.0))
    assert best == 7
    assert pair_variance(1, 2.9) < pair_variance(2, 2.9)  # 1.45 rounded either way, 1 is better


def duchi(x, epsilon):
    """The randomiser for numbers in [-1, 1]: its sign is + with this probability."""
    half = Fraction(1, 2)
    tanh = Fraction(math.expm1(epsilon)) / (Fraction(math.expm1(epsilon)) + 2)
    plus = half + x * tanh * half
    return [1 - plus, plus]


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0])
def test_agkm22_zero_or_one_wastes_half_of_epsilon(epsilon):
    # Algorithms 2 and 3 hand w in {0, 1} to a randomiser for [-1, 1]
    printed = loss(duchi(0, epsilon), duchi(1, epsilon))
    assert printed == pytest.approx(math.log((math.exp(epsilon) + 1) / 2))
    assert printed < 0.63 * epsilon
    assert loss(duchi(-1, epsilon), duchi(1, epsilon)) == pytest.approx(epsilon)


def test_agkm22_zero_or_one_costs_four_times_the_variance():
    epsilon, w = 0.5, 0.3
    scale = 1 / math.tanh(epsilon / 2)

    def variance(values):
        mean = sum(p * (2 * duchi(x, epsilon)[1] - 1) for x, p in values)
        return float(scale**2 * (1 - mean**2))

    printed, repaired = variance([(0, 1 - w), (1, w)]), variance([(-1, 1 - w), (1, w)]) / 4
    assert (round(printed, 2), round(repaired, 2)) == (16.58, 4.13)


def test_agkm22_algorithm_3_answers_nothing_and_repaired_it_hears_nothing():
    m, n, epsilon = 15, 5000, 1.0
    q = round(10 * m * math.log(m))
    asked = 2 * q / m  # of each of the n / m people of one item, at most
    # counted up for every person, the first query is already beyond the cap
    assert n / m > asked
    # counted up once a query: epsilon / 2 over so many answers
    each = epsilon / 2 / asked
    error = math.sqrt(m / n) / math.tanh(each / 2) / 2
    assert error == pytest.approx(5.9, abs=0.05)  # of a fraction in [0, 1]


@pytest.mark.parametrize("epsilon", [1.0, 0.3])
def test_bfz21_local_bias_is_half_of_what_is_claimed(epsilon):
    # Algorithms 5 and 6: m / 2 pairs at g = 2 epsilon / m each. The answers keep
    # (exp(g) - 1) / (exp(g) + 1) = tanh(epsilon / m) of a pair's signal, and not 2 epsilon / m
    m = len(ITEMS)
    protocol = PairBits(ITEMS, epsilon, pairs="all")
    orders, found = distributions(protocol)
    first, second = orders[:, protocol.asked(np.array([0]))[0, 0]].T
    # the first digit is the answer about the first pair: 1 for its second item
    ones = np.array([float(sum(answers[2:])) for answers in found])
    kept = ones[first > second].mean() - ones[first < second].mean()
    assert kept == pytest.approx(math.tanh(epsilon / m))
    assert kept < 0.51 * 2 * epsilon / m
    assert spent(protocol) == pytest.approx(epsilon, rel=1e-12)
