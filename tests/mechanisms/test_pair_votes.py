"""Votes on pairs by orders of offered sets: sensitivity, statistic, and what follows from it."""

import itertools
import json
import math

import numpy as np
import pandas as pd
import pytest
from mutating import with_check

import privrank as pr
from privrank.consensus.released import statements_of
from privrank.encode.choices import encode_tasks
from privrank.mechanisms.choices import CHOICES
from privrank.privacy.knorm import CubeNoise
from privrank.privacy.offered import Offered, vote_noise
from privrank.release.names import PAIRS

ITEMS = ["tea", "milk", "juice", "water", "soda"]


def plan_of(*versions):
    sets = sorted({task for version in versions for task in version}, key=lambda t: (len(t), t))
    numbers = sorted({tuple(sorted(map(sets.index, version))) for version in versions})
    return Offered("order", tuple(sets), tuple(numbers), (1,) * len(numbers), (0,) * len(numbers))


def votes_of(orders, items):
    """The votes of some orders, one pair after another, by definition."""
    return [
        sum(i in o and j in o and o.index(i) < o.index(j) for o in orders)
        for i, j in itertools.combinations(range(items), 2)
    ]


def random_plan(rng):
    items = int(rng.integers(3, 6))
    sizes = rng.integers(2, 4, size=(rng.integers(1, 3), rng.integers(1, 4)))
    return items, plan_of(
        *(
            tuple(tuple(sorted(rng.choice(items, s, replace=False).tolist())) for s in version)
            for version in sizes
        )
    )


def farthest(items, offered):
    """The largest changes of the votes of one unit in l1 and in the maximum norm."""
    l1 = linf = 0
    for version in offered.versions:
        tasks = [itertools.permutations(offered.sets[k]) for k in version]
        every = np.array([votes_of(orders, items) for orders in itertools.product(*tasks)])
        apart = np.abs(np.unique(every, axis=0)[:, None] - np.unique(every, axis=0))
        l1 = max(l1, int(apart.sum(axis=2).max()))
        linf = max(linf, int(apart.max()))
    return l1, linf


def test_the_noise_has_the_sensitivity_of_all_answers_of_all_neighbours():
    rng = np.random.default_rng(1)
    kinds = set()
    for _ in range(60):
        items, offered = random_plan(rng)
        noise = vote_noise(items, offered, 1.0)
        l1, linf = farthest(items, offered)
        cube = isinstance(noise.distribution, CubeNoise)
        kinds.add(cube)
        assert noise.sensitivity == (linf if cube else l1)
        assert noise.fineness == 1
        dimension = math.comb(items, 2)
        # the variances of both kinds of noise: the smaller one is taken
        smaller = (dimension + 1) * (dimension + 2) * linf**2 / 3 < 2 * l1**2
        assert cube == smaller
    assert kinds == {True, False}


def test_a_respondent_is_protected_with_all_tasks():
    offered = plan_of(((0, 1, 2), (0, 1, 3), (2, 3, 4)))
    assert vote_noise(5, offered, 1.0).sensitivity in (9, 2)
    single = plan_of(((0, 1, 2),), ((0, 1, 3),), ((2, 3, 4),))
    assert vote_noise(5, single, 1.0).sensitivity in (3, 1)


def survey(people, sets, orders, repeats=1):
    """A choices frame: each respondent orders all sets of a list."""
    names = np.array(ITEMS)
    size = len(sets[0])
    rows = [
        {"id": person, **{f"show {k}": names[i] for k, i in enumerate(task)}}
        | {f"p {k}": names[i] for k, i in enumerate(orders(person, task))}
        for person in range(people)
        for task in sets * repeats
    ]
    return pr.as_choices(
        pd.DataFrame(rows),
        offered=[f"show {k}" for k in range(size)],
        places=[f"p {k}" for k in range(size)],
        items=ITEMS,
        respondent="id",
    )


TRIPLES = list(itertools.combinations(range(5), 3))


def at_random(rng):
    return lambda person, task: rng.permutation(task)


def test_votes_are_those_of_the_orders():
    frame = survey(7, TRIPLES, at_random(np.random.default_rng(2)))
    encoded = encode_tasks(frame, items=ITEMS, respondent="id", max_rows=10)
    orders = [
        [ITEMS.index(item) for item in row]
        for row in frame[["place 1", "place 2", "place 3"]].to_numpy()
    ]
    assert CHOICES[PAIRS](encoded).tolist() == votes_of(orders, 5)
    rows = encode_tasks(frame.drop(columns=["id"]), items=ITEMS, respondent=None, max_rows=1)
    assert CHOICES[PAIRS](rows).tolist() == votes_of(orders, 5)


def test_complete_sets_give_the_consensus_of_their_rankings():
    rng = np.random.default_rng(3)
    ranked = [rng.permutation(5) for _ in range(40)]
    frame = survey(40, [tuple(range(5))], lambda person, task: ranked[person])
    ranks = pd.DataFrame([np.argsort(order) + 1 for order in ranked], columns=ITEMS)
    found = pr.PrivateRankAggregation(frame, respondent="id").fit(np.inf, method="kemeny")
    known = pr.PrivateRankAggregation(ranks, items=ITEMS).fit(np.inf)
    np.testing.assert_allclose(found.fractions, known.fractions, atol=1e-12)
    assert found.order == known.order
    pd.testing.assert_frame_equal(found.borda(), known.borda())
    for alpha in (0.05, 0.3):
        low, high = (result.pairwise(alpha)[["lower", "all_lower"]] for result in (found, known))
        pd.testing.assert_frame_equal(low, high)
    rates = pr.PrivateRankAggregation(frame, respondent="id").fit(np.inf, method="borda")
    pd.testing.assert_frame_equal(rates.borda().sort_index(), known.borda().sort_index())


@pytest.mark.parametrize("releases", ["auto", "pairs"])
def test_a_respondent_moves_scores_within_the_range_of_the_class(releases):
    """One respondent answers three of the triples in every way, and others are fixed."""
    sets = TRIPLES[:3]
    every = list(itertools.product(*(itertools.permutations(task) for task in sets)))
    method = "borda" if releases == "auto" else "kemeny"
    # the other respondents order all triples, so that all pairs are shown
    rest = [tuple(task) for task in TRIPLES]
    scores = []
    for answers in every[:: 1 if releases == "pairs" else 3]:
        own = pd.DataFrame(
            [
                {"id": 0} | named("show", task) | named("p", order)
                for task, order in zip(sets, answers, strict=True)
            ]
        )
        others = pd.DataFrame([{"id": 1} | named("show", t) | named("p", t) for t in rest])
        frame = pr.as_choices(
            pd.concat([own, others], ignore_index=True),
            offered=["show 0", "show 1", "show 2"],
            places=["p 0", "p 1", "p 2"],
            items=ITEMS,
            respondent="id",
        )
        model = pr.PrivateRankAggregation(frame, respondent="id", max_rows=10)
        scores.append(statements_of(model.fit(np.inf, method=method).release).scores)
    scores = np.array(scores)
    stated = statements_of(model.fit(np.inf, method=method).release)
    # the bound without the part of the second respondent, who orders all triples
    width = widths(stated, rest)
    bound = 4.0 * stated.differences[1] - (width[:, None] + width) ** 2
    differences = scores[:, :, None] - scores[:, None, :]
    found = np.ptp(differences, axis=0) ** 2
    apart = ~np.eye(5, dtype=bool)
    assert (found[apart] <= bound[apart] * (1 + 1e-9)).all()
    if releases == "pairs":  # all answers were tried, so the bound is attained
        np.testing.assert_allclose(found[apart], bound[apart])


def named(word, items):
    return {f"{word} {k}": ITEMS[i] for k, i in enumerate(items)}


def widths(stated, tasks):
    """The ranges of the contributions to the scores of a respondent who orders these tasks."""
    counts = np.zeros((5, 5))
    for task in tasks:
        counts[np.ix_(task, task)] += 1
    np.fill_diagonal(counts, 0)
    shown = counts.copy()
    for task in TRIPLES[:3]:
        shown[np.ix_(task, task)] += 1
    np.fill_diagonal(shown, 0)
    weights = np.divide(1.0, shown, out=np.zeros((5, 5)), where=shown > 0)
    if stated.fractions is None:
        weights = 4.0 / shown.sum(axis=1, keepdims=True) * np.ones(5)
    return (weights * counts).sum(axis=1)


def test_noise_in_scores_has_the_stated_variance():
    frame = survey(6, TRIPLES, at_random(np.random.default_rng(4)))
    model = pr.PrivateRankAggregation(frame, respondent="id", max_rows=10)
    exact = model.fit(np.inf).borda().loc[ITEMS, "score"]
    for options in ({"method": "borda"}, {"releases": "pairs"}):
        fits = [model.fit(0.7, rng=np.random.default_rng(seed), **options) for seed in range(300)]
        drawn = np.array([statements_of(fit.release).scores for fit in fits]) - exact.to_numpy()
        stated = statements_of(fits[0].release)
        variance = stated.noise.variance
        apart = drawn[:, :, None] - drawn[:, None, :]
        upper = np.triu_indices(5, 1)
        known = variance * stated.differences[0][upper]
        np.testing.assert_allclose(apart.var(axis=0)[upper], known, rtol=0.35)
        np.testing.assert_allclose(drawn.var(axis=0), variance * stated.score_scale**2, rtol=0.35)
        assert np.abs(drawn.mean(axis=0)).max() < 5 * math.sqrt(known.max() / 300)


REFUSED = {
    "not 'best' alone": ({}, {}, "PrivateRankAggregation needs orders"),
    "a score": ({}, {"score_share": 0.1}, "score_share and delta"),
    "a delta": ({}, {"delta": 1e-6}, "score_share and delta"),
    "a sort": ({}, {"method": "kwiksort"}, "'auto', 'kemeny' or 'borda'"),
    "pairs of totals": ({}, {"method": "borda", "releases": "pairs"}, "releases no pairs"),
    "ties": ({"ties": True}, {}, "ties= must be left out"),
    "missing": ({"missing": "half"}, {}, "missing= must be left out"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_other_requests_are_refused_before_spending(case):
    arguments, options, words = REFUSED[case]
    frame = survey(6, TRIPLES, at_random(np.random.default_rng(5)))
    if case == "not 'best' alone":
        frame = frame.drop(columns=["place 2", "place 3"]).rename(columns={"place 1": "best"})
    budget = pr.Budget(epsilon=1.0, unit="respondent")
    with pytest.raises(ValueError, match=words):
        pr.PrivateRankAggregation(frame, respondent="id", max_rows=10, **arguments).fit(
            1.0, budget=budget, **options
        )
    assert budget.spent == (0.0, 0.0)


def test_pairs_that_no_set_shows_have_no_votes():
    frame = survey(9, [(0, 1, 2), (2, 3, 4)], at_random(np.random.default_rng(6)))
    model = pr.PrivateRankAggregation(frame, respondent="id", max_rows=2)
    with pytest.raises(ValueError, match="show every two items together"):
        model.fit(1.0, releases="pairs", rng=np.random.default_rng(1))
    result = model.fit(1.0, rng=np.random.default_rng(1))
    assert result.fractions is None
    assert "win rates in the offered sets" in " ".join(str(result.summary()).split())


def test_the_unit_must_be_stated():
    frame = survey(6, TRIPLES, at_random(np.random.default_rng(7)))
    with pytest.raises(TypeError, match="respondent"):
        pr.PrivateRankAggregation(frame)


def test_formula_archive_and_pooling():
    frame = survey(60, TRIPLES[:6], at_random(np.random.default_rng(8)))
    asked = {"respondent": "id", "max_rows": 6}
    model = pr.PrivateRankAggregation.from_formula("order ~ 1", frame, **asked)
    pairs = model.fit(1.0, releases="pairs", rng=np.random.default_rng(1))
    same = pr.PrivateRankAggregation(frame, **asked).fit(
        1.0, releases="pairs", rng=np.random.default_rng(1)
    )
    assert pairs.order == same.order
    again = pr.from_json(pairs.to_json())
    pd.testing.assert_frame_equal(again.to_frame(), pairs.to_frame())
    other = model.fit(1.0, releases="pairs", rng=np.random.default_rng(2))
    pooled = pr.pool([pairs, other], survey="same").to_frame()
    assert set(pooled.index) == set(ITEMS)
    assert (pooled["std_err"] > 0).all()


def test_cube_noise_has_intervals_of_pairs():
    """A balanced plan, whose votes have cube noise: as many pairs as all items have."""
    frame = survey(40, TRIPLES, at_random(np.random.default_rng(9)))
    model = pr.PrivateRankAggregation(frame, respondent="id", max_rows=10)
    result = model.fit(2.0, releases="pairs", rng=np.random.default_rng(1))
    assert isinstance(result.release.parts["pairs"].distribution, CubeNoise)
    table = result.pairwise()
    inner = (table["all_lower"] <= table["lower"]) & (table["lower"] < table["fraction"])
    assert (inner & (table["fraction"] < table["upper"]) & (table["upper"] < 1.0)).all()


@pytest.mark.parametrize("options", [{"method": "borda"}, {"releases": "pairs"}, {}])
@pytest.mark.parametrize("epsilon", [0.7, np.inf])
def test_archives_of_every_release_are_read(options, epsilon):
    frame = survey(30, TRIPLES[:6], at_random(np.random.default_rng(10)))
    model = pr.PrivateRankAggregation(frame, respondent="id", max_rows=6)
    fit = model.fit(epsilon, rng=np.random.default_rng(1), **options)
    again = pr.from_json(fit.to_json())
    assert again.summary().as_text() == fit.summary().as_text()


@pytest.mark.parametrize("method", ["Borda", "local search", "Copeland"])
def test_an_archive_with_another_rule_is_refused(method):
    frame = survey(30, TRIPLES[:6], at_random(np.random.default_rng(10)))
    model = pr.PrivateRankAggregation(frame, respondent="id", max_rows=6)
    fit = model.fit(1.0, releases="pairs", rng=np.random.default_rng(1))
    record = json.loads(fit.to_json())
    record["release"]["method"] = method
    with pytest.raises(ValueError, match="the rule of their consensus"):
        pr.from_json(with_check(record))


def model_of_pairs(rows, items):
    """A model of orders of two items, each of which is a unit."""
    frame = pr.as_choices(
        pd.DataFrame(rows, columns=list("stpq")),
        offered=["s", "t"],
        places=["p", "q"],
        items=items,
    )
    return pr.PrivateRankAggregation(frame, respondent=None)


def test_errors_allow_for_units_that_contribute_unequally():
    """One pair is shown 20 times and answered by a coin, the others 600 times, in one order."""
    rows = [
        [a, b, *((a, b) if (a, b) != ("tea", "milk") or k % 2 else (b, a))]
        for a, b in itertools.combinations(ITEMS, 2)
        for k in range(20 if (a, b) == ("tea", "milk") else 600)
    ]
    model = model_of_pairs(rows, ITEMS)
    borda = model.fit(np.inf, method="kemeny").borda()
    true = math.sqrt(0.25 / 20)
    assert true <= borda.loc["tea", "std_err"] < 1.02 * true
    # without noise the sample has no error
    sample = model.fit(np.inf, method="kemeny", target="sample").borda()
    assert (sample["std_err"] == 0).all()


def test_tails_of_unequal_weights_are_those_of_fewer_items():
    """Pairs (0, 1), (2, 3), ... are shown 10 times, all others 2,000 times."""
    items = [f"i{k}" for k in range(8)]
    rows = [
        [a, b, a, b]
        for (i, a), (j, b) in itertools.combinations(enumerate(items), 2)
        for _ in range(10 if i // 2 == j // 2 else 2000)
    ]
    model = model_of_pairs(rows, items)
    fit = model.fit(1.0, method="kemeny", target="sample", rng=np.random.default_rng(1))
    exact = model.fit(np.inf, method="kemeny").borda()["score"]
    stated = statements_of(fit.release)
    assert stated.alike == 2
    # noise in a score is nearly that of one vote, a Laplace variable of scale 1 / 10
    rng = np.random.default_rng(2)
    noise = stated.noise.simulate(40_000, rng) * stated.scale[0, 1]
    for alpha in (0.05, 0.01, 0.001):
        low, high = stated.score_bounds(alpha, "sample")
        half = 0.5 * (high - low)[[items.index(name) for name in exact.index]].max()
        assert np.mean(np.abs(noise) > half) < alpha + 3 * math.sqrt(alpha / 40_000)


def test_equal_weights_have_the_tails_of_all_items():
    frame = survey(6, TRIPLES, at_random(np.random.default_rng(11)))
    model = pr.PrivateRankAggregation(frame, respondent="id", max_rows=10)
    stated = statements_of(model.fit(1.0, releases="pairs", rng=np.random.default_rng(1)).release)
    assert stated.alike == 5
    assert np.abs(stated.unequal).max() < 1e-12 and np.abs(stated.score_unequal).max() < 1e-12
