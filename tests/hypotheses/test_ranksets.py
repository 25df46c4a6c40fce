"""Holm's step-down for sets of ranks: by hand, by its definition, and never wider than before."""

import math
from itertools import combinations
from unittest.mock import patch

import numpy as np
import pytest
from scipy.special import ndtr

import privrank as pr
from privrank.bradley_terry import contrasts
from privrank.consensus.statements import rank_threshold
from privrank.hypotheses.interval import rank_sets, shared_ranks
from privrank.local import SubRanking
from privrank.privacy.knorm import CubeNoise
from privrank.privacy.noise import DiscreteLaplace
from privrank.results import aggregation, pooled, topk


def test_equal_estimates_share_a_rank_and_others_do_not():
    assert shared_ranks(np.array([1.0, 3.0, 3.0, 2.0])).tolist() == [4, 1, 1, 3]
    # equal are those within 1e-8 of the range, and what solvers leave of zeros
    assert shared_ranks(np.array([0.0, 100.0, 100.0 - 9e-7, 100.0 - 2e-6])).tolist() == [4, 1, 1, 3]
    assert shared_ranks(np.array([1e-12, 0.0, -1e-12])).tolist() == [1, 1, 1]
    # an item that is not identified is ahead of nobody
    assert shared_ranks(np.array([0.5, np.nan, 0.75])).tolist()[::2] == [2, 1]


def every(m):
    return ~np.eye(m, dtype=bool)


def by_pvalues(values, pvalues, identified, alpha=0.05):
    return rank_sets(values, identified, lambda left: pvalues <= 2 * alpha / left)


def bonferroni(values, identified, certain):
    """The sets of the first step alone."""
    return rank_sets(values, identified, lambda left: certain(int(identified.sum())))


def test_three_items_by_hand():
    # two-sided levels .1 / 6 = .0167, then .1 / 5 = .02, then .1 / 4 = .025
    pvalues = np.array([[1.0, 0.016, 0.019], [0.016, 1.0, 0.026], [0.019, 0.026, 1.0]])
    values = np.array([2.0, 1.0, 0.0])
    low, high = by_pvalues(values, pvalues, every(3))
    assert low.tolist() == [1, 2, 2] and high.tolist() == [1, 3, 3]
    low, high = bonferroni(values, every(3), lambda left: pvalues <= 0.1 / left)
    assert low.tolist() == [1, 2, 1] and high.tolist() == [2, 3, 3]
    # without the last item there are two hypotheses, and one rank is less
    apart = np.ones((3, 3), dtype=bool) & every(3)
    apart[2, :2] = apart[:2, 2] = False
    low, high = by_pvalues(values, pvalues, apart)
    assert low.tolist() == [1, 2, 1] and high.tolist() == [1, 2, 1]
    assert np.array_equal(by_pvalues(values[:1], pvalues[:1, :1], every(1)), [[1], [1]])


def test_the_hypotheses_rejected_are_those_of_holm():
    rng = np.random.default_rng(1)
    for m in (2, 4, 7):
        for _ in range(50):
            values, size = rng.normal(size=m), rng.exponential(0.05, (m, m))
            pvalues, identified = np.minimum(size + size.T, 1), every(m)
            identified[0, -1] = identified[-1, 0] = m == 2
            one = np.where(values > values[:, None], pvalues / 2, 1 - pvalues / 2)[identified]
            place = np.argsort(one)
            holds = one[place] <= 0.05 / (len(one) - np.arange(len(one)))
            rejected = np.zeros(len(one), dtype=bool)
            rejected[place[: np.argmin(np.append(holds, False))]] = True
            better = np.zeros((m, m), dtype=bool)
            better[identified] = rejected
            low, high = by_pvalues(values, pvalues, identified)
            assert (low == 1 + better.sum(axis=1)).all()
            assert (high == 1 + identified.sum(axis=1) - better.sum(axis=0)).all()


@pytest.mark.parametrize("means", [[0, 0, 0, 0, 0], [0, 0, 3, 3, 9], [0, 2, 4, 6, 8]])
def test_all_sets_hold_at_once_and_contain_all_ranks_that_ties_share(means):
    rng, means, runs = np.random.default_rng(2), np.array(means, dtype=float), 3000
    best = 1 + (means > means[:, None]).sum(axis=1)
    last = 5 - (means < means[:, None]).sum(axis=1)
    wrong = 0
    for values in rng.normal(means, size=(runs, 5)):
        gaps = np.abs(values[:, None] - values)
        low, high = by_pvalues(values, 2 * ndtr(-gaps / math.sqrt(2)), every(5))
        wrong += (low > best).any() or (high < last).any()
    assert wrong / runs < 0.05 + 3 * math.sqrt(0.05 * 0.95 / runs)


def comparisons(seed):
    rng = np.random.default_rng(seed)
    return pr.simulate.bradley_terry(np.linspace(1, -1, 5), repeats=60, rng=rng)


def worths(seed=3):
    model = pr.PrivateBTL(comparisons(seed), items=range(5), respondent=None, design="public")
    return model.fit(1.0, rng=np.random.default_rng(seed))


def consensus(**options):
    ranks = pr.Mallows(6, 0.8).rvs(400, np.random.default_rng(4))
    return pr.PrivateRankAggregation(ranks).fit(1.0, rng=np.random.default_rng(5), **options)


def reports():
    ranks = pr.Mallows(5, 0.6).rvs(4000, np.random.default_rng(6))
    protocol = SubRanking(list(range(5)), 2.0)
    tally = protocol.tally(protocol.simulate(ranks, np.random.default_rng(7)))
    return pr.PrivateRankAggregation.from_reports(tally)


RESULTS = {
    "worths": (contrasts, worths),
    "win rates": (topk, lambda: pr.PrivateTopK.from_release(worths().release, 2)),
    "pooled": (pooled, lambda: pr.pool([worths(), worths(8)], survey="different")),
    "population": (aggregation, consensus),
    "sample": (aggregation, lambda: consensus(target="sample")),
    "reports": (aggregation, reports),
}


@pytest.mark.parametrize("name", RESULTS)
def test_sets_are_subsets_of_those_of_bonferroni(name):
    module, fit = RESULTS[name]
    result, narrower = fit(), 0
    for alpha in np.geomspace(1e-4, 0.5, 20):
        new = result.rank_conf_int(alpha)
        with patch.object(module, "rank_sets", bonferroni):
            old = result.rank_conf_int(alpha)
        assert (new["lower"] >= old["lower"]).all() and (new["upper"] <= old["upper"]).all()
        narrower += not new.equals(old)
    assert narrower or name == "population"


def test_thresholds_hold_whichever_orders_are_stated():
    """The sum of tails over the orders that may be wrong is at most alpha, in every survey."""
    m, n, alpha = 4, 300, 0.05
    first, second = np.triu_indices(m, 1)
    gaps = []
    for stated in range(len(first) + 1):
        gap = rank_threshold(DiscreteLaplace(0.0), 1.0, m, n, alpha, "population", True, stated)
        apart = np.abs(first - second)  # of a ranking, or its reverse by a fair coin
        tails = ndtr(-(gap - apart / n) * math.sqrt(n) / apart)
        sums = [
            2 * tails.sum() - tails[list(chosen)].sum()
            for chosen in combinations(range(len(first)), stated)
        ]
        assert max(sums) == pytest.approx(alpha, rel=5e-3)
        gaps.append(gap)
    assert gaps == sorted(gaps, reverse=True) and gaps[-1] < gaps[0]
    noise = CubeNoise.calibrate(6, 1, 1.0)
    # without sampling all pairs are alike, and the level is divided by the orders that are left
    once, more = (
        rank_threshold(noise, 1.0, m, n, level, "sample", True, stated)
        for level, stated in ((alpha, 3), (alpha * 12 / 9, 0))
    )
    assert once == pytest.approx(more, rel=2e-4)
