"""Wins and losses, and comparisons, of each item: sensitivity and noise, by all neighbours."""

import itertools
import math

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from privrank.plans.choice import deviation, side_choices
from privrank.privacy.knorm import ZeroSumLaplace
from privrank.privacy.noise import DiscreteLaplace
from privrank.privacy.sensitivity import MAX_ITEMS, UnitSensitivity, side_noise

DISTINCT = [(m, k) for m in (2, 3, 4, 5) for k in range(1, m * (m - 1) // 2 + 1)]
REPEATED = [(2, 3), (3, 2), (3, 3), (4, 2), (4, 3), (5, 2)]


def sides(m, rows, distinct, ties):
    """Half wins, and half losses with a minus sign, of every unit of at most so many rows."""
    edges = list(itertools.combinations(range(m), 2)) * (1 if distinct else rows)
    answers = (1, -1, 0) if ties else (1, -1)
    seen = set()
    for size in range(rows + 1):
        for some in set(itertools.combinations(edges, size)):
            for outcome in itertools.product(answers, repeat=size):
                both = [0] * (2 * m)
                for (i, j), answer in zip(some, outcome, strict=True):
                    both[i] += 1 + answer
                    both[j] += 1 - answer
                    both[m + i] -= 1 - answer
                    both[m + j] -= 1 + answer
                seen.add(tuple(both))
    return np.array(sorted(seen), dtype=float)


def farthest(units):
    block = 2**22 // len(units) + 1
    starts = range(0, len(units), block)
    return max(cdist(units[k : k + block], units, "cityblock").max() for k in starts)


@pytest.mark.parametrize(("m", "k"), DISTINCT)
def test_the_sensitivity_of_distinct_pairs_is_exact(m, k):
    # wins alone are enough: a tie lies half way between a win and a loss, and distances are convex
    ties = m <= 4 and k <= 4
    reach = UnitSensitivity(m, k, True, "replace")
    if m == 5 and k > 4:  # extreme points of each sign pattern instead of all units
        assert extreme(m, k) == reach.sides_l1(ties=False)
        return
    units = sides(m, k, True, ties)
    assert (units.sum(axis=1) == 0).all()
    assert farthest(units) == reach.sides_l1(ties=True) == 2 * reach.sides_l1(ties=False)
    assert reach.sides_l1(ties=False) == 4 * min(k, m * m // 4)


def extreme(m, k):
    """The largest l1 distance of two units of at most k distinct pairs, by all patterns of signs.

    For signs s of wins and t of losses a pair adds s_i + t_j or s_j + t_i to one unit; each unit
    takes the k pairs that add most.
    """
    first, second = np.triu_indices(m, 1)
    largest = 0
    for signs in itertools.product((1, -1), repeat=2 * m):
        s, t = np.array(signs[:m]), np.array(signs[m:])
        won, lost = s[first] + t[second], s[second] + t[first]
        up = np.sort(np.maximum(np.maximum(won, lost), 0))[::-1][:k].sum()
        down = np.sort(np.maximum(-np.minimum(won, lost), 0))[::-1][:k].sum()
        largest = max(largest, up + down)
    return largest


@pytest.mark.parametrize(("m", "k"), [*DISTINCT, (6, 7), (6, 15)])
def test_the_sensitivity_is_that_of_all_patterns_of_signs(m, k):
    assert extreme(m, k) == UnitSensitivity(m, k, True, "outcome").sides_l1(ties=False)


@pytest.mark.parametrize(("m", "k"), REPEATED)
def test_the_sensitivity_of_repeated_pairs_is_exact(m, k):
    reach = UnitSensitivity(m, k, False, "replace")
    assert farthest(sides(m, k, False, k < 3)) == reach.sides_l1(ties=True) == 8 * k


def compared(m, rows, distinct):
    """Comparisons per item of every unit of at most so many rows."""
    edges = list(itertools.combinations(range(m), 2)) * (1 if distinct else rows)
    seen = set()
    for size in range(rows + 1):
        for some in set(itertools.combinations(edges, size)):
            seen.add(tuple(np.bincount(np.ravel(some).astype(int), minlength=m)))
    return np.array(sorted(seen))


@pytest.mark.parametrize(
    ("m", "k", "distinct"),
    [*((m, k, True) for m, k in DISTINCT), *((m, k, False) for m, k in REPEATED)],
)
def test_the_sensitivities_of_comparisons_per_item_are_exact(m, k, distinct):
    units = compared(m, k, distinct)
    reach = UnitSensitivity(m, k, distinct, "replace")
    assert farthest(units) == reach.item_counts_l1
    assert cdist(units, units, "chebyshev").max() == reach.item_counts_linf
    fixed = UnitSensitivity(m, k, distinct, "outcome")
    assert fixed.item_counts_l1 == fixed.item_counts_linf == 0


@pytest.mark.parametrize("distinct", [True, False])
@pytest.mark.parametrize(("m", "k"), [(4, 1), (4, 3), (5, 2)])
def test_the_check_moves_by_twice_the_rows(m, k, distinct):
    edges = list(itertools.combinations(range(m), 2)) * (1 if distinct else k)
    halves = np.array([1, 1, -1, -1] if m == 4 else [1, 1, 0, -1, -1])
    reach = UnitSensitivity(m, k, distinct, "replace")
    sums = {
        sum(halves[i] * halves[j] for i, j in some)
        for size in range(k + 1)
        for some in itertools.combinations(edges, size)
    }
    assert max(sums) - min(sums) <= reach.opponents_l1 == 2 * k
    if not distinct or k == 1:
        assert max(sums) - min(sums) == reach.opponents_l1
    assert UnitSensitivity(m, k, distinct, "outcome").opponents_l1 == 0


@pytest.mark.parametrize("ties", [True, False])
@pytest.mark.parametrize("name", ["laplace", "zero-sum-laplace"])
def test_no_unit_loses_more_than_epsilon(name, ties):
    lost = loss(name, 0.7, ties=ties)
    assert lost == pytest.approx(0.7, rel=1e-9) and lost <= 0.7 * (1 + 1e-12)


def loss(name, epsilon, m=4, k=2, *, ties):
    """The loss of both distributions is the l1 distance over the scale, attained far out."""
    noise = side_noise(UnitSensitivity(m, k, True, "replace"), name, epsilon, ties=ties)
    units = sides(m, k, True, ties) / (1 if ties else 2)
    return noise.fineness * farthest(units) / noise.distribution.scale


@pytest.mark.parametrize(
    ("planted", "k"),
    [
        ("2 * self.items - 2", 2),  # one item's wins and losses
        ("self.net_l1", 2),  # whole wins, where steps are half wins
        ("4 * self.effective_rows", 2),
        ("2 * (self.net_l1 // 2 + 1)", 3),  # replaced by nothing, not by another unit
    ],
)
def test_a_sensitivity_that_is_too_small_would_be_found(planted, k, monkeypatch):
    code = compile(planted, "planted", "eval")
    monkeypatch.setattr(
        UnitSensitivity, "sides_l1", lambda self, ties: eval(code, {"self": self, "ties": ties})
    )
    assert loss("laplace", 0.7, k=k, ties=True) > 0.7 * 1.1


def test_the_less_harmful_distribution_comes_first():
    reach = UnitSensitivity(6, 15, True, "replace")
    first, second = side_choices(reach, 1.0, ties=False)
    assert isinstance(first.distribution, ZeroSumLaplace) and first.distribution.items == 12
    ratio = (deviation(first, 12) / deviation(second, 12)) ** 2
    assert ratio == pytest.approx(1 - 0.115, abs=0.005)
    many = UnitSensitivity(MAX_ITEMS["zero-sum-laplace"] // 2 + 1, 1, True, "replace")
    (only,) = side_choices(many, 1.0, ties=False)
    assert isinstance(only.distribution, DiscreteLaplace)
    for name in ("gaussian", "permutohedron"):
        with pytest.raises(ValueError, match="pair_counts='proportional'"):
            side_noise(reach, name, 1.0, ties=False)
    assert math.isclose(only.distribution.scale, 4.0, rel_tol=1e-12)
