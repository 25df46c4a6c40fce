"""The subset response: its weights, and both of its samplers against them."""

import math
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from enumerating import distribution, exp
from scipy.stats import chisquare

from privrank.local import Comparisons
from privrank.local.protocols import SubsetResponse, secrets, shuffled

EPSILONS = [1e-9, 1e-3, 0.1, 1 / 3, 0.5, 1.0, 1.946, 4.0, 10.0, 37.7, 100.0]


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("digits", [1, 3, 62])
def test_the_ratio_of_weights_is_the_largest_that_epsilon_allows(epsilon, digits):
    share = Fraction(epsilon) / digits
    response = SubsetResponse.at(share, 7, 3)
    ratio = Fraction(response.favoured_weight, response.other_weight)
    assert ratio**digits <= exp(epsilon)
    assert ratio > exp(share) * (1 - Fraction(1, 2**51))
    assert response.epsilon == pytest.approx(float(share), rel=1e-6, abs=1e-15)
    assert response.total == 3 * response.favoured_weight + 4 * response.other_weight
    # one more would be too much
    assert Fraction(response.favoured_weight, response.other_weight - 1) > exp(share)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_laplace_noise_cut_at_one_half_is_a_binary_response_at_less(epsilon):
    response = SubsetResponse.thresholded_laplace(Fraction(epsilon))
    wrong = Fraction(response.other_weight, response.total)
    half = exp(Fraction(epsilon) / 2)
    assert 1 / (2 * half) < wrong < (1 + Fraction(1, 2**50)) / (2 * half)
    ratio = Fraction(response.favoured_weight, response.other_weight)
    assert ratio < 2 * half - 1 < exp(epsilon)
    assert response.epsilon == pytest.approx(math.log(2 * math.exp(epsilon / 2) - 1), rel=1e-6)


@pytest.mark.parametrize("options, favoured", [(2, 1), (3, 1), (6, 1), (4, 2), (5, 3), (5, 4)])
def test_the_secure_draw_has_the_stated_probabilities(options, favoured):
    response = SubsetResponse(options, favoured, 5, 2)
    for chosen in combinations(range(options), favoured):
        found = distribution(lambda chosen=chosen: response.secure(chosen))
        for value in range(options):
            weight = 5 if value in chosen else 2
            assert found[value] == Fraction(weight, response.total)
    assert response.favoured_probability == pytest.approx(5 * favoured / response.total)


def test_the_secure_draw_takes_its_numbers_from_the_operating_system(monkeypatch):
    asked = []
    monkeypatch.setattr(secrets, "randbelow", lambda total: asked.append(total) or 0)
    response = SubsetResponse.at(Fraction(1), 6)
    assert response.secure([4]) == 4
    assert asked == [response.total]


@pytest.mark.parametrize("options, favoured", [(2, 1), (6, 1), (8, 3), (3, 2)])
def test_simulated_draws_have_the_same_distribution(options, favoured):
    response = SubsetResponse.at(Fraction(1), options, favoured)
    rng = np.random.default_rng(12)
    for chosen in list(combinations(range(options), favoured))[:3]:
        sets = np.broadcast_to(np.array(chosen), (30_000, 1, favoured))
        values = response.simulated(sets, rng)
        assert values.shape == (30_000, 1)
        weights = np.full(options, float(response.other_weight))
        weights[list(chosen)] = float(response.favoured_weight)
        expected = weights / response.total * 30_000
        counts = np.bincount(values[:, 0], minlength=options)
        assert chisquare(counts, expected).pvalue > 1e-4


def test_the_secure_shuffle_gives_all_orders_alike():
    found = distribution(lambda: tuple(shuffled(4)))
    assert len(found) == 24
    assert set(found.values()) == {Fraction(1, 24)}


def test_report_ids_are_fresh_random_bits():
    protocol = Comparisons(["tea", "milk"], epsilon=1.0)
    drawn = {protocol.draw_id() for _ in range(100)}
    assert len(drawn) == 100
    assert all(len(text) == 32 and int(text, 16) >= 0 for text in drawn)
