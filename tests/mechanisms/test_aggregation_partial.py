"""Consensus of rankings with ties and missing items: half votes, and what they may move."""

import math
from fractions import Fraction
from itertools import combinations, permutations, product

import numpy as np
import pandas as pd
import pytest

import privrank as pr
from privrank.consensus.orders import weight_against
from privrank.encode.samples import encode_rankings
from privrank.mechanisms import samples as mechanism
from privrank.mechanisms.samples import half_votes, pair_count_values
from privrank.plans.aggregation import plan_aggregation as planned
from privrank.plans.aggregation import unit_steps
from privrank.privacy.knorm import SLACK, CubeNoise
from privrank.privacy.noise import DiscreteLaplace
from privrank.release.names import PAIRS, QUERIES, SCORE, TOTALS

GAP = np.nan
METHODS = ("auto", "kemeny", "borda", "pairs-laplace", "kwiksort", "kwiksort-hay", "exponential")


def rankings(m):
    """Every partial ranking on whole ranks: ties and gaps of all kinds."""
    return list(product([GAP, *range(1, m + 1)], repeat=m))


def votes_of(person, m, max_rows=1, missing="half"):
    """The half votes of one respondent, beside one other whose votes are known."""
    frame = pd.DataFrame([*person, tuple(range(1, m + 1))], columns=list("abcd"[:m]))
    frame["who"] = [0] * len(person) + [1]
    encoded = encode_rankings(
        frame, respondent="who", max_rows=max_rows, ties=True, missing=missing
    )
    steps = unit_steps(encoded.sample, partial=encoded.partial)
    return mechanism._votes(encoded, steps) - steps * np.triu(np.ones((m, m), int), 1), steps


def test_a_tie_and_a_missing_item_are_half_a_vote_for_each_order():
    ranks = np.array([[1, 2, 2], [1, GAP, 2], [2.5, 1, 2.5], [GAP, GAP, GAP]])
    doubled = np.nan_to_num(2 * ranks).astype(int)
    votes = half_votes(doubled)
    np.testing.assert_array_equal(votes, [[0, 4, 6], [4, 0, 5], [2, 3, 0]])
    frame = pd.DataFrame(ranks, columns=list("abc"))
    fit = pr.PrivateRankAggregation(frame, ties=True, missing="half").fit(np.inf)
    np.testing.assert_allclose(fit.fractions, votes / 8 + 0.5 * np.eye(3))
    expected = weight_against(fit.places, fit.fractions)
    assert fit.kemeny_score == pytest.approx(expected) and fit.order[2] == "c"
    words = " ".join(str(fit.summary()).split())
    assert "A shared rank counts as half a vote" in words
    assert "An unlisted item counts as half a vote" in words


def test_an_item_left_out_may_be_last():
    ranks = np.array([[1, 2, GAP, GAP], [2, 1, GAP, GAP], [1, GAP, 2, GAP]])
    fit = pr.PrivateRankAggregation(ranks, missing="bottom").fit(np.inf)
    votes = np.array([[0, 4, 6, 6], [2, 0, 4, 5], [0, 2, 0, 4], [0, 1, 2, 0]])
    np.testing.assert_allclose(fit.fractions, votes / 6 + 0.5 * np.eye(4))
    assert fit.order == tuple("0123") and fit.release.plan.settings["missing bottom"]
    words = " ".join(str(fit.summary()).split())
    assert "Unlisted items count as ranked below" in words and "shared rank" not in words
    # a rarely listed item is last of all when left out is last, and in the middle at half a vote
    lists = np.array([[1, 2, 3, GAP]] * 9 + [[GAP, GAP, GAP, 1]])
    bottom = pr.PrivateRankAggregation(lists, missing="bottom").fit(np.inf)
    half = pr.PrivateRankAggregation(lists, missing="half").fit(np.inf)
    assert bottom.order[3] == "3" != half.order[3]


def test_complete_rankings_have_the_same_votes_either_way():
    ranks = pr.Mallows(6, 0.8).rvs(200, np.random.default_rng(1))
    np.testing.assert_array_equal(half_votes(2 * ranks), 2 * pair_count_values(ranks))
    one = pr.PrivateRankAggregation(ranks).fit(np.inf)
    two = pr.PrivateRankAggregation(ranks, ties=True, missing="half").fit(np.inf)
    np.testing.assert_array_equal(one.fractions, two.fractions)
    assert one.order == two.order


def is_leading_list(ranks):
    given = np.array(ranks, dtype=float)
    given = given[~np.isnan(given)]
    return given.max(initial=0.0) <= len(given)


@pytest.mark.parametrize("missing", ["half", "bottom"])
@pytest.mark.parametrize(("m", "max_rows"), [(2, 2), (3, 1), (4, 1)])
def test_what_a_respondent_with_partial_rankings_can_move(m, max_rows, missing):
    everybody = [rows for k in range(1, max_rows + 1) for rows in product(rankings(m), repeat=k)]
    if m == 4:  # those on three ranks, which have every pattern of ties and gaps but one
        everybody = [rows for rows in everybody if np.nanmax([*rows[0], 1]) <= 3]
        everybody += [(order,) for order in permutations(range(1, 5))]
    if missing == "bottom":  # no rank is left out above the items that have none
        everybody = [rows for rows in everybody if all(map(is_leading_list, rows))]
    upper, pairs = np.triu_indices(m, 1), m * (m - 1) // 2
    tables = []
    for person in everybody:
        table, steps = votes_of(person, m, max_rows, missing)
        assert table.min() >= 0 and (table + table.T == steps)[~np.eye(m, dtype=bool)].all()
        tables.append(table)
    tables = np.unique(tables, axis=0)
    cells = tables[:, upper[0], upper[1]]
    # the extremes of linear functions of the votes: no need to form all pairs of people
    assert (cells.max(axis=0) - cells.min(axis=0) == steps).all()
    gaps = np.unique(tables.sum(axis=1), axis=0)
    gaps = gaps[:, None] - gaps[None]
    assert np.square(gaps).sum(axis=-1).max() == steps**2 * m * (m * m - 1) // 3
    farthest = max(np.abs(cells - one).sum(axis=1).max() for one in cells)
    assert farthest == steps * pairs
    totals = tables.sum(axis=1)
    for j in range(1, m):
        # within `steps` times K: no j items together gain more than j (m - j) steps
        for group in combinations(range(m), j):
            share = totals[:, list(group)].sum(axis=1)
            assert share.max() - share.min() == steps * j * (m - j)
    for order in permutations(range(m)):
        scores = [weight_against(np.array(order), table) for table in tables]
        assert max(scores) - min(scores) == steps * pairs


@pytest.mark.parametrize("method", METHODS)
def test_plans_for_partial_rankings_count_in_half_votes(method):
    sample = votes_sample(5, 60, 3)
    steps = unit_steps(sample, partial=True)
    assert steps == 2 * math.lcm(1, 2, 3)
    share = 0.1 if method in ("auto", "kemeny", "pairs-laplace") else 0.0
    plan = planned(sample, 0.8, 0.0, method, share, partial=True)
    whole = planned(sample, 0.8, 0.0, method, share)
    assert plan.settings["steps"] == steps == 2 * whole.settings["steps"]
    if method == "exponential":
        assert 2 * plan.settings["rate"] * 10 * steps <= 0.8
        return
    score = plan.parts.get(SCORE)
    loss = Fraction(10 * steps) / Fraction(score.noise.scale) if score else 0
    distribution = next(
        plan.parts[name] for name in (PAIRS, TOTALS, QUERIES) if name in plan.parts
    ).noise
    if isinstance(distribution, CubeNoise):
        loss += Fraction(steps) * Fraction(distribution.rate + SLACK)
    elif isinstance(distribution, DiscreteLaplace):
        loss += Fraction(int(plan.settings.get("cap", 10)) * steps) / Fraction(distribution.scale)
    else:
        loss += Fraction(steps * distribution.fineness) * Fraction(distribution.rate + SLACK)
    assert 0.7 < loss <= 0.8


def votes_sample(m, n, max_rows):
    frame = pd.DataFrame([list(range(1, m + 1))] * n, columns=list("abcdefgh"[:m]))
    frame["who"] = range(n)
    return encode_rankings(
        frame, respondent="who", max_rows=max_rows, ties=True, missing="half"
    ).sample


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_every_method_finds_the_order_of_partial_rankings(method, delta):
    if method in ("pairs-laplace", "exponential"):
        delta = 0.0  # they refuse one
    rng = np.random.default_rng(5)
    ranks = pr.Mallows(6, 0.5).rvs(3000, rng).astype(float)
    ranks[ranks > 4] = 5.5  # the last two places are shared
    ranks[rng.random(ranks.shape) < 0.15] = GAP
    frame = pd.DataFrame(ranks, columns=list("abcdef"))
    fit = pr.PrivateRankAggregation(frame, ties=True, missing="half").fit(
        3.0, delta, method=method, rng=rng
    )
    assert fit.order == tuple("abcdef")
    again = pr.from_json(fit.to_json())
    assert str(again.summary()) == str(fit.summary())
    assert "half a vote" in " ".join(str(fit.summary()).split())


def test_released_half_votes_have_the_noise_that_is_stated():
    rng = np.random.default_rng(2)
    ranks = pr.Mallows(4, 0.8).rvs(50, rng).astype(float)
    ranks[::3, 0] = GAP
    model = pr.PrivateRankAggregation(ranks, missing="half")
    exact = model.fit(np.inf).fractions[np.triu_indices(4, 1)]
    fits = [model.fit(1.0, method="kemeny", score_share=0, rng=rng) for _ in range(500)]
    part = fits[0].release.parts["pairs"]
    assert part.step == 0.5 and part.sensitivity == 2
    noise = [fit.release.parts["pairs"].values - 100 * exact for fit in fits]
    assert np.var(noise) == pytest.approx(part.distribution.variance, rel=0.15)
    # as large as for complete rankings, in votes
    complete = pr.PrivateRankAggregation(pr.Mallows(4, 0.8).rvs(50, rng))
    other = complete.fit(1.0, method="kemeny", score_share=0, rng=rng)
    assert fits[0].noise_sd == pytest.approx(other.noise_sd, rel=0.02)


def test_intervals_cover_with_ties_and_gaps():
    m, n, rng = 4, 300, np.random.default_rng(9)

    def drawn(size):
        ranks = pr.Mallows(m, 0.8).rvs(size, rng).astype(float)
        ranks[ranks > 2] = 3.5
        ranks[rng.random(ranks.shape) < 0.3] = GAP
        return ranks

    truth = half_votes(np.nan_to_num(2 * drawn(400_000)).astype(int)) / 800_000
    hits = []
    for _ in range(200):
        fit = pr.PrivateRankAggregation(drawn(n), ties=True, missing="half").fit(
            1.0, method="kemeny", rng=rng
        )
        pairs = fit.pairwise()
        first, second = (pairs[name].astype(int) for name in ("item1", "item2"))
        p = truth[first, second]
        hits.append(np.mean((pairs["lower"] <= p) & (p <= pairs["upper"])))
    # votes of 0, 1/2 and 1 vary less than p (1 - p), so intervals are on the wide side
    assert 0.94 < np.mean(hits) <= 1.0


GOOD = pd.DataFrame({"a": [1.0, 2.0, 1.0], "b": [2.0, 1.0, GAP], "c": [3.0, 3.0, 2.0]})


@pytest.mark.parametrize(
    ("frame", "options", "words"),
    [
        (GOOD, {}, "missing='bottom'.*missing='half'"),
        (GOOD, {"ties": True}, "missing='bottom'.*missing='half'"),
        (GOOD.assign(b=1.0), {}, "ties=True"),
        (GOOD.assign(b=1.0), {"missing": "half"}, "ties=True"),
        (GOOD.assign(a=2.5), {"missing": "bottom"}, "ties=True"),
        (GOOD.assign(a=0.0), {"missing": "half"}, "ranks from 1 .best. to 3"),
        (GOOD.assign(a=4.0), {"missing": "bottom"}, "ranks from 1 .best. to 3"),
        (GOOD.assign(a=1.3), {"ties": True, "missing": "half"}, "ranks from 1 .best. to 3"),
        (GOOD.assign(a=np.inf), {"missing": "half"}, "ranks from 1 .best. to 3"),
        (GOOD.head(0), {"ties": True}, "at least one row"),
        (GOOD, {"ties": 1}, "ties must be True or False"),
        (GOOD, {"missing": "last"}, "missing must be one of"),
    ],
)
def test_what_is_no_partial_ranking_is_refused_briefly(frame, options, words):
    with pytest.raises((ValueError, TypeError), match=words) as caught:
        pr.PrivateRankAggregation(frame, items=["a", "b", "c"], **options)
    text = str(caught.value)
    assert text.endswith(".") and "\n" not in text and "1.3" not in text


def test_a_formula_takes_partial_rankings_too():
    model = pr.PrivateRankAggregation.from_formula("a + b + c ~ 1", GOOD, missing="half")
    assert model.fit(np.inf).order[2] == "c"
    with pytest.raises(ValueError, match="is incomplete"):
        pr.PrivateRankAggregation.from_formula("a + b + c ~ 1", GOOD)


def test_completion_at_random_agrees_with_half_votes_on_average():
    """What as_rankings makes of the same answers has these votes as its mean, but for gaps."""
    rng = np.random.default_rng(4)
    ties = pd.DataFrame({"a": [1.0, 1.0], "b": [1.0, 2.0], "c": [2.0, 2.0]})
    exact = pr.PrivateRankAggregation(ties, ties=True, missing="half").fit(np.inf).fractions
    drawn = [
        pr.PrivateRankAggregation(pr.as_rankings(ties, ties="random", rng=rng)).fit(np.inf)
        for _ in range(400)
    ]
    np.testing.assert_allclose(np.mean([f.fractions for f in drawn], axis=0), exact, atol=0.06)
