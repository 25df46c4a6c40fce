"""Sensitivities against exhaustive enumeration of what one unit can answer.

Every answer of a unit is win, tie, loss or missing. Under outcome adjacency the compared pairs and
the missing answers are fixed; under replacement the two units are free. A statistic that adds up
over units changes by the difference of two units' contributions, so enumerating contributions
enumerates all neighbours.
"""

import math
from functools import cache
from itertools import combinations, combinations_with_replacement, permutations, product
from operator import attrgetter

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from scipy.special import expit

from privrank.privacy.sensitivity import RankingSensitivity, UnitSensitivity

ADJACENCIES = ["outcome", "replace"]
DISTINCT = [
    UnitSensitivity(m, c, True, adjacency)
    for m in (2, 3, 4, 5)
    for c in range(1, m * (m - 1) // 2 + 1)
    for adjacency in ADJACENCIES
]
REPEATED = [
    UnitSensitivity(m, c, False, adjacency)
    for m, c in ((2, 1), (2, 3), (3, 1), (3, 2), (3, 3), (4, 2), (4, 3), (5, 2))
    for adjacency in ADJACENCIES
]
NORMS = {"l1": "cityblock", "l2": "euclidean", "linf": "chebyshev"}

WIN, TIE, LOSS, MISSING = 1, 0, -1, 2


def incidence(m):
    """Rows e_i - e_j, one per pair i < j."""
    rows = np.zeros((m * (m - 1) // 2, m), dtype=int)
    for row, (i, j) in zip(rows, combinations(range(m), 2), strict=True):
        row[i], row[j] = 1, -1
    return rows


@cache
def distinct_units(m, c):
    """All units with up to c distinct pairs: comparisons per pair, and net wins per pair."""
    answers = np.array(list(product((WIN, LOSS, MISSING), repeat=m * (m - 1) // 2)), dtype=np.int8)
    counts = (answers != MISSING).astype(np.int8)
    keep = counts.sum(axis=1) <= c
    return counts[keep], (answers * counts)[keep]


@cache
def repeated_units(m, c):
    """All units with c rows on any pairs: comparisons and net wins per pair."""
    pairs = m * (m - 1) // 2
    rows = [None, *product(range(pairs), (WIN, TIE, LOSS))]
    units = list(combinations_with_replacement(rows, c))
    counts, net = np.zeros((2, len(units), pairs), dtype=int)
    for k, unit in enumerate(units):
        for pair, answer in filter(None, unit):
            counts[k, pair] += 1
            net[k, pair] += answer
    return counts, net


def units(reach):
    # With distinct pairs ties are left out: they lie halfway between a win and a loss, and how far
    # apart two units are is convex in the answers of each where the statistic is linear in them.
    # The win matrix and second moments have enumerations of their own, with ties.
    return (distinct_units if reach.distinct else repeated_units)(reach.items, reach.rows)


def largest_change(statistic, counts, adjacency, norm):
    """Largest distance between the statistics of two neighbours."""
    if adjacency == "replace":
        groups = [statistic]
    else:
        _, design = np.unique(counts, axis=0, return_inverse=True)
        order = np.argsort(design, kind="stable")
        groups = np.split(statistic[order], np.flatnonzero(np.diff(design[order])) + 1)
    best = 0.0
    for group in groups:
        values = np.unique(group, axis=0)
        best = max(best, cdist(values, values, NORMS[norm]).max())
    return best


def check_squared(found, stated, exact):
    """Between a star and a full round robin only a bound is stated, 14 % too high at most."""
    if exact:
        assert found == pytest.approx(stated, rel=1e-12)
    else:
        assert found <= stated * (1 + 1e-12) and stated <= 1.14 * found


def is_exact(reach, edges):
    return not reach.distinct or edges < reach.items or edges >= reach.pairs


@pytest.mark.parametrize("reach", DISTINCT + REPEATED, ids=str)
@pytest.mark.parametrize("norm", NORMS)
def test_net(reach, norm):
    counts, net = units(reach)
    found = largest_change(net @ incidence(reach.items), counts, reach.adjacency, norm)
    if norm == "l2":
        check_squared(found**2, reach.net_l2**2, is_exact(reach, reach.rows))
    else:
        assert found == getattr(reach, f"net_{norm}")


@pytest.mark.parametrize("reach", DISTINCT + REPEATED, ids=str)
def test_longest_net(reach):
    _, net = units(reach)
    # a unit that only ties, or answers nothing, has the smallest value, 0
    found = ((net @ incidence(reach.items)) ** 2).sum(axis=1).max()
    check_squared(found, reach.longest, is_exact(reach, reach.rows))


@pytest.mark.parametrize("reach", DISTINCT + REPEATED, ids=str)
def test_pair_counts(reach):
    counts = np.unique(units(reach)[0], axis=0)
    found = largest_change(counts, counts, reach.adjacency, "l1")
    if reach.items == 2 and not reach.distinct:
        # both units can only compare the one pair, where 2 rows is a bound
        assert found <= reach.pair_counts_l1
    else:
        assert found == reach.pair_counts_l1
    assert largest_change(counts, counts, reach.adjacency, "linf") == reach.pair_counts_linf


# wins and losses of one pair, in half wins, by answer
CELLS = {"win": (2, 0), "tie": (1, 1), "loss": (0, 2), "missing": (0, 0)}


@pytest.mark.parametrize("reach", DISTINCT, ids=str)
@pytest.mark.parametrize("ties", [True, False])
def test_win_matrix_of_distinct_pairs(reach, ties):
    # The l1 distance is a sum over pairs, so the maximum over all pairs of units is found by
    # dynamic programming: best[a, b] after some pairs, the units having answered a and b of them.
    c = reach.rows
    answers = [name for name in CELLS if ties or name != "tie"]
    best = np.full((c + 1, c + 1), -np.inf)
    best[0, 0] = 0
    for _ in range(reach.pairs):
        grown = np.full_like(best, -np.inf)
        for one, other in product(answers, repeat=2):
            if reach.adjacency == "outcome" and (one == "missing") != (other == "missing"):
                continue
            moved = np.abs(np.subtract(CELLS[one], CELLS[other])).sum()
            a, b = int(one != "missing"), int(other != "missing")
            grown[a:, b:] = np.maximum(grown[a:, b:], best[: c + 1 - a, : c + 1 - b] + moved)
        best = grown
    assert reach.win_matrix_l1(ties=ties) == (best.max() if ties else best.max() / 2)


@pytest.mark.parametrize("reach", REPEATED, ids=str)
def test_win_matrix_of_repeated_pairs(reach):
    counts, net = units(reach)
    half_wins = np.hstack((counts + net, counts - net))
    found = largest_change(half_wins, counts, reach.adjacency, "l1")
    assert found == reach.win_matrix_l1(ties=True) == 2 * reach.win_matrix_l1(ties=False)


def gradients(counts, net, theta):
    """Gradient of the summed log-loss of each unit at theta."""
    edges = incidence(len(theta))
    probability = expit(edges @ theta)
    return (counts * probability - 0.5 * (counts + net)) @ edges


def gradient_l1(reach):
    """Of the logistic log-loss: slopes up to 1, and up to 1 apart when an answer is reversed."""
    return reach.slope_l1(1.0, 1.0)


@pytest.mark.parametrize("reach", DISTINCT + REPEATED, ids=str)
def test_gradient_at_extreme_worths(reach):
    # The change is convex in each win probability, so its extreme points are at worths so far
    # apart that probabilities are 0 or 1; relabelling the items makes them descending.
    counts, net = units(reach)
    gradient = np.rint(gradients(counts, net, -1e3 * np.arange(reach.items)))
    assert largest_change(gradient, counts, reach.adjacency, "l1") == gradient_l1(reach)


@pytest.mark.parametrize("reach", DISTINCT + REPEATED, ids=str)
def test_gradient_at_any_worths(reach):
    rng = np.random.default_rng(reach.items * 100 + reach.rows)
    counts, net = units(reach)
    keep = rng.permutation(len(counts))[:400]
    for spread in (0.0, 0.5, 3.0, 10.0):
        theta = spread * rng.standard_normal(reach.items)
        gradient = gradients(counts[keep], net[keep], theta)
        found = largest_change(gradient, counts[keep], reach.adjacency, "l1")
        assert found <= gradient_l1(reach) * (1 + 1e-9)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_a_row_is_a_respondent_with_one_row(adjacency):
    for m in (3, 4, 7):
        once, free = UnitSensitivity(m, 1, True, adjacency), UnitSensitivity(m, 1, False, adjacency)
        for name in ("net_l1", "net_l2", "net_linf", "longest"):
            assert getattr(once, name) == pytest.approx(getattr(free, name), rel=1e-12)
        assert gradient_l1(once) == gradient_l1(free)


@pytest.mark.parametrize("m", [3, 4, 6])
@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_more_rows_never_sensitivity_less(m, adjacency):
    pairs = m * (m - 1) // 2
    names = "net_l1 net_l2 net_linf longest second_moments_l1".split()
    names += ["pair_counts_l1", "pair_counts_linf", "item_counts_l1", "item_counts_linf"]
    for bound in [gradient_l1, *(attrgetter(name) for name in names)]:
        values = [bound(UnitSensitivity(m, c, True, adjacency)) for c in range(1, pairs + 3)]
        assert values == sorted(values)
        # rows beyond all pairs cannot exist
        assert len(set(values[pairs - 1 :])) == 1


@pytest.mark.parametrize(
    "items, rows, net, gradient, squared",
    [(6, 15, 36, 18, 70), (4, 6, 16, 8, 20)],
    ids=["University", "Immigration"],
)
def test_surveys(items, rows, net, gradient, squared):
    for adjacency in ADJACENCIES:
        reach = UnitSensitivity(items, rows, True, adjacency)
        assert (reach.net_l1, gradient_l1(reach), reach.longest) == (net, gradient, squared)
        # group privacy over the rows of a respondent would give these instead
        naive = rows * gradient_l1(UnitSensitivity(items, 1, True, "replace"))
        assert naive == {6: 60, 4: 24}[items] > gradient


@pytest.mark.parametrize("m", [1, 2, 3, 4, 5, 6])
def test_one_ranking_moves_pairs_and_borda_totals_this_far(m):
    ranks = np.array(list(permutations(range(1, m + 1))))
    first, second = np.triu_indices(m, 1)
    ahead = (ranks[:, first] < ranks[:, second]).astype(int)
    # relabelling the items maps any replacement to one of the identity
    pairs, totals = np.abs(ahead - ahead[0]), np.abs(ranks - ranks[0])
    reach = RankingSensitivity(m)
    assert reach.pairs_l1 == pairs.sum(axis=1).max()
    assert reach.pairs_l2 == pytest.approx(math.sqrt((pairs**2).sum(axis=1).max()))
    assert pairs.max(initial=0) <= 1
    assert reach.borda_l2 == pytest.approx(math.sqrt((totals**2).sum(axis=1).max()))
    assert reach.borda_linf == totals.max()
