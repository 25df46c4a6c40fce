"""What follows from a release that is paid for: who may lead, ratings, synthetic data."""

from functools import cache
from itertools import combinations

import numpy as np
import pandas as pd
import pytest

import privrank as pr
from privrank.hypotheses.interval import dominant_set
from privrank.local import SubRanking

CEMS = pr.datasets.load_university()
TIED = {"items": CEMS.items, "respondent": "respondent", "max_rows": 15, "design": "public"}
CYCLE = pd.DataFrame([[1, 2, 3, 4], [3, 1, 2, 4], [2, 3, 1, 4]], columns=list("abcd"))
quiet = pytest.mark.filterwarnings("ignore::privrank.PrivrankWarning")


def seeded(seed=7):
    return np.random.default_rng(seed)


def smallest(better):
    """The smallest set of which each is better than all outside, by trying all sets."""
    items = range(len(better))
    for size in range(1, len(better) + 1):
        for inside in combinations(items, size):
            if all(better[i, j] for i in inside for j in set(items) - set(inside)):
                return set(inside)
    raise AssertionError


def known_and_true(rng, m):
    """Majorities that are known, and all of them, without ties."""
    ahead = np.triu(rng.random((m, m)) < rng.random(), 1)
    true = ahead | np.tril(~ahead.T, -1)
    seen = np.triu(rng.random((m, m)) < rng.random(), 1)
    return true & (seen | seen.T), true


# --- sets by majorities ---


@pytest.mark.parametrize("m", [1, 2, 3, 4, 5, 6])
def test_the_set_is_the_smallest_and_holds_that_of_whatever_is_not_known(m):
    rng, proper, larger = seeded(m), 0, 0
    for _ in range(120):
        known, true = known_and_true(rng, m)
        inside = set(np.flatnonzero(dominant_set(known)))
        assert inside == smallest(known)
        assert smallest(true) <= inside
        proper += len(inside) < m
        larger += smallest(true) != inside
    assert m < 3 or (proper > 5 and larger > 5)


def test_a_cycle_leads_and_nobody_wins_it():
    ranks = pd.concat([CYCLE] * 100, ignore_index=True)
    exact = pr.PrivateRankAggregation(ranks).fit(np.inf, target="sample")
    assert set(exact.smith_set()) == set("abc") and exact.condorcet_winner() is None
    noisy = pr.PrivateRankAggregation(ranks).fit(2.0, releases="pairs", rng=seeded())
    assert set(noisy.smith_set()) == set("abc") and noisy.condorcet_winner() is None


def test_an_even_division_is_no_majority():
    ranks = pd.DataFrame([[1, 2, 3], [2, 1, 3]] * 50, columns=list("abc"))
    exact = pr.PrivateRankAggregation(ranks).fit(np.inf, target="sample")
    assert set(exact.smith_set()) == {"a", "b"} and exact.condorcet_winner() is None
    two_more = pd.concat([ranks, ranks.iloc[[0, 0]]], ignore_index=True)
    exact = pr.PrivateRankAggregation(two_more).fit(np.inf, target="sample")
    assert exact.smith_set() == ("a",) and exact.condorcet_winner() == "a"


def test_the_set_is_that_of_the_pairs_the_table_calls_separated():
    fit = pr.PrivateRankAggregation(CEMS.rankings(), respondent="respondent")
    result = fit.fit(4.0, releases="pairs", rng=seeded())
    for alpha in (0.001, 0.05, 0.5):
        table = result.pairwise(alpha)
        known = pd.DataFrame(False, index=result.order, columns=result.order)
        for row in table[table["separated"]].itertuples():
            ahead = (row.item1, row.item2)[:: 1 if row.fraction > 0.5 else -1]
            known.loc[ahead] = True
        inside = {result.order[k] for k in smallest(known.to_numpy())}
        assert set(result.smith_set(alpha)) == inside
    assert result.condorcet_winner() == "London"
    assert len(result.smith_set(1e-12)) > 1 and result.condorcet_winner(1e-12) is None


def test_reports_of_the_local_model_say_who_may_lead():
    ranks = np.tile(CYCLE.to_numpy(), (4000, 1))
    protocol = SubRanking(list(CYCLE), 4.0, size=2)
    reports = pd.DataFrame(protocol.simulate(ranks, seeded()))
    result = pr.PrivateRankAggregation.from_reports(protocol.tally(reports))
    assert set(result.smith_set()) == set("abc")


def test_where_no_pairs_were_released_there_is_no_such_set():
    result = pr.PrivateRankAggregation(CYCLE).fit(1.0, method="borda", rng=seeded())
    for method in (result.smith_set, result.condorcet_winner):
        with pytest.raises(ValueError, match="releases no pair fractions: fit with releases="):
            method()


# --- ratings ---


@cache
def worths(**options):
    return pr.PrivateBTL(CEMS.comparisons, **TIED | {"ties": True} | options).fit(1.0, rng=seeded())


def test_ratings_are_worths_on_another_scale():
    result = worths()
    table, plain = result.elo(), result.worths()
    assert table["rating"].mean() == pytest.approx(1500.0)
    assert list(table["item"]) == list(result.items)
    assert list(table) == ["item", "rating", "std_err", "lower", "upper"]
    # 400 points ahead is preferred with odds of 10
    gap = table["rating"].iloc[0] - table["rating"].iloc[1]
    table = result.pairwise()
    odds = table["preferred_plus_half_ties"] / (1 - table["preferred_plus_half_ties"])
    assert 10 ** (gap / 400) == pytest.approx(odds.iloc[0])
    scale = 400 / np.log(10)
    shifted = result.elo(base=0)
    for column, name in (("rating", "worth"), ("std_err", "std_err"), ("upper", "upper")):
        np.testing.assert_allclose(shifted[column], scale * plain[name])
    np.testing.assert_allclose(result.elo(base=1000)["lower"], 1000 + scale * plain["lower"])


def test_ratings_of_groups():
    rows = CEMS.comparisons.join(CEMS.students, on="respondent")
    result = pr.PrivateBTL.from_formula(
        "item1 + item2 + outcome ~ french", rows, **TIED | {"ties": True}
    ).fit(np.inf)
    table = result.elo()
    assert len(table) == 12 and set(table["french"]) == {"good", "poor"}
    one = result.elo(at={"french": "good"})
    np.testing.assert_allclose(one["rating"], table[table["french"] == "good"]["rating"])


def test_a_rating_needs_the_logit_and_a_number():
    with pytest.raises(ValueError, match=r"base must be a number in \(-inf, inf\), got nan"):
        worths().elo(np.nan)
    with pytest.raises(ValueError, match="link='probit'"):
        worths(link="probit").elo()


# --- synthetic data ---


def test_comparisons_follow_the_fit():
    result = worths()
    frame = result.simulate(4000, seeded())
    assert list(frame) == ["item1", "item2", "outcome"] and len(frame) == 15 * 4000
    assert set(frame["outcome"]) == {-1, 1}
    table = result.pairwise().set_index(["item1", "item2"])["preferred_plus_half_ties"]
    won = frame.groupby(["item1", "item2"])["outcome"].mean() / 2 + 0.5
    assert np.abs(won - table.reindex(won.index)).max() < 4.5 * np.sqrt(0.25 / 4000)
    again = pr.PrivateBTL(frame, items=result.items, respondent=None, design="public")
    np.testing.assert_allclose(again.fit(np.inf).params, result.params, atol=0.05)


def test_synthetic_data_are_marked_and_follow_the_generator_alone():
    result = worths()
    frame = result.simulate(2, seeded())
    mark = "drawn from a fitted model, epsilon = 1 per respondent, seeded noise"
    assert frame.attrs == {"synthetic": mark}
    pd.testing.assert_frame_equal(frame, result.simulate(2, seeded()))
    pd.testing.assert_frame_equal(frame, pr.from_json(result.to_json()).simulate(2, seeded()))
    assert not frame.equals(result.simulate(2, seeded(8)))
    assert not result.simulate(50).equals(result.simulate(50))


def test_ties_are_drawn_where_they_have_a_parameter():
    result = worths(ties="davidson")
    frame = result.simulate(4000, seeded())
    table = result.pairwise().set_index(["item1", "item2"])
    for name, outcome in (("win", 1), ("tie", 0), ("loss", -1)):
        share = (frame["outcome"] == outcome).groupby([frame["item1"], frame["item2"]]).mean()
        assert np.abs(share - table[name].reindex(share.index)).max() < 4.5 * np.sqrt(0.25 / 4000)


def test_ties_of_a_group_are_those_of_its_worths():
    rows = CEMS.comparisons.join(CEMS.students, on="respondent")
    result = pr.PrivateBTL.from_formula(
        "item1 + item2 + outcome ~ french", rows, **TIED | {"ties": "davidson"}
    ).fit(np.inf)
    at = {"french": "good"}
    frame = result.simulate(4000, seeded(), at=at)
    tied = (frame["outcome"] == 0).groupby([frame["item1"], frame["item2"]]).mean()
    stated = result.pairwise(at=at).set_index(["item1", "item2"])["tie"]
    assert np.abs(tied - stated.reindex(tied.index)).max() < 4.5 * np.sqrt(0.25 / 4000)


def test_rankings_follow_the_fit():
    result = worths()
    ranks = result.simulate(20_000, seeded(), form="rankings")
    assert list(ranks) == list(result.items) and ranks.attrs["synthetic"].startswith("drawn from")
    assert (np.sort(ranks.to_numpy(), axis=1) == np.arange(1, 7)).all()
    for row in result.pairwise().itertuples():
        ahead = (ranks[row.item1] < ranks[row.item2]).mean()
        assert abs(ahead - row.preferred_plus_half_ties) < 4.5 * np.sqrt(0.25 / 20_000)


def test_groups_have_data_of_their_own():
    rows = CEMS.comparisons.join(CEMS.students, on="respondent")
    result = pr.PrivateBTL.from_formula(
        "item1 + item2 + outcome ~ french", rows, **TIED | {"ties": True}
    ).fit(np.inf)
    # London and Paris come first among the pairs, and who speaks French prefers Paris more often
    share = [
        (result.simulate(4000, seeded(), at={"french": level})["outcome"][:4000] == 1).mean()
        for level in ("good", "poor")
    ]
    assert share[0] < share[1] - 0.03


@pytest.mark.parametrize(
    ("arguments", "options", "kind", "message"),
    [
        ({"n": 0}, {}, ValueError, "n must be at least 1"),
        ({"n": 2.5}, {}, TypeError, "n must be an integer at least 1, got float"),
        ({"n": 2, "rng": 3}, {}, TypeError, "rng must be None .* or a numpy.random.Generator"),
        ({"n": 2, "form": "choices"}, {}, ValueError, "form must be one of 'comparisons', 'rank"),
        ({"n": 2, "form": "rankings"}, {"link": "probit"}, ValueError, "use form='comparisons'"),
    ],
)
def test_what_cannot_be_drawn_is_refused(arguments, options, kind, message):
    with pytest.raises(kind, match=message):
        worths(**options).simulate(**arguments)


@quiet
def test_nothing_is_drawn_of_items_that_are_not_identified():
    rows = CEMS.comparisons[~CEMS.comparisons[["item1", "item2"]].eq("Milano").any(axis=1)]
    options = TIED | {"ties": True, "design": "private"}
    result = pr.PrivateBTL(rows, **options).fit(5.0, rng=seeded())
    assert len(result.components) == 2
    with pytest.raises(ValueError, match="do not connect them: see components"):
        result.simulate(2)
    assert np.isnan(result.elo().set_index("item")["rating"]["Milano"])
