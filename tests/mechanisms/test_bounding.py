"""Rows drawn in secret: uniform, private whoever answers how often, and the same in every order."""

import math
from collections import Counter
from itertools import combinations, combinations_with_replacement, permutations, product

import numpy as np
import pandas as pd
import polars as pl
import pytest
import respondents
from outcomes import Outcomes
from respondents import frame_of
from scipy.stats import chisquare

import privrank as pr
from privrank.mechanisms import tallies
from privrank.privacy.draws import draw_key, draw_rows
from privrank.results.claims import CLAIMS

ITEMS = list("abc")
PAIRS = [("a", "b"), ("a", "c"), ("b", "c")]
ROWS = list(product(PAIRS, (1.0, -1.0)))


def encode(units, most, distinct, ties=False):
    return respondents.encode(
        units, max_rows=most, distinct_pairs=distinct, ties=ties, excess="sample"
    )


def rows_of(group, size, most, key):
    """What is drawn of groups that their own numbers name."""
    group = np.array(group)
    return draw_rows(group, np.array(size), most, (group,), key)


@pytest.mark.parametrize("rng", [None, np.random.default_rng(5)], ids=["secure", "seeded"])
@pytest.mark.parametrize(
    ("size", "most"), [((1, 1, 1, 1), 2), ((1, 1, 1, 1, 1), 4), ((3, 1, 2), 2), ((3, 1, 2), 5)]
)
def test_all_sets_of_rows_are_equally_likely(size, most, rng):
    size, draws = np.array(size), 4000
    whose = np.repeat(np.arange(len(size)), size)
    sets = combinations(whose, most)
    expected = Counter(tuple(np.bincount(kept, minlength=len(size))) for kept in sets)
    # two such groups, and between them one that keeps all it has
    group = np.repeat([3, 5, 9], [len(size), 1, len(size)])
    sizes = np.concatenate((size, [most], size))
    found = Counter()
    for _ in range(draws):
        kept = rows_of(group, sizes, most, draw_key(rng))
        assert kept[len(size)] == most
        found[tuple(kept[: len(size)]), tuple(kept[-len(size) :])] += 1
    number = math.comb(size.sum(), most) ** 2
    cells = [
        (found[one, two], expected[one] * expected[two] / number)
        for one, two in product(expected, expected)
    ]
    assert sum(count for count, _ in cells) == draws
    observed, share = np.array(cells).T
    assert chisquare(observed, draws * share).pvalue > 1e-4


@pytest.mark.parametrize("most", [1, 7, 50, 10**12, 10**20])
def test_rows_that_are_alike_are_drawn_without_being_written_out(most):
    size = np.array([10**9, 3, 10**9])
    kept = rows_of([0, 0, 1], size, most, draw_key(np.random.default_rng(0)))
    assert (kept <= size).all()
    assert kept[:2].sum() == min(most, size[:2].sum()) and kept[2] == min(most, size[2])


def test_nobody_has_rows():
    assert rows_of(np.zeros(0, dtype=int), np.zeros(0, dtype=int), 3, draw_key(None)).size == 0


# The exact privacy loss of net wins with discrete Laplace noise, over all draws.

UNITS = {
    "one of up to three": (
        [u for k in (1, 2, 3) for u in combinations_with_replacement(ROWS, k)], 1, False,
    ),
    "two of up to three": (
        [u for k in (1, 2, 3) for u in combinations_with_replacement(ROWS, k)], 2, False,
    ),
    "two of four, one pair each": (
        [u for k in (1, 3, 4) for u in combinations_with_replacement(ROWS[:4] + ROWS[5:], k)],
        2, True,
    ),
    "one of a thousand": ([(row,) * 1000 for row in ROWS] + [(row,) for row in ROWS], 1, True),
}  # fmt: skip


def kept_nets(outcomes, units, most, distinct):
    """The net wins of the rows that are kept, with their probabilities over all draws."""
    encoded = encode(units, most, distinct)

    def run():
        return tuple(tallies.net_wins(tallies.sample_rows(encoded, None)).tolist())

    found = Counter(outcomes.all(run))
    total = sum(found.values())
    return {net: count / total for (net, _), count in found.items()}


def loss(one, other, scale):
    """The largest log ratio of two mixtures of discrete Laplace vectors: in the box of centres.

    Beyond the box both numbers fall by the same factor with each step.
    """
    centres = np.array([*one, *other])
    low, high = centres.min(axis=0), centres.max(axis=0)
    box = np.array(list(product(*(range(a, b + 1) for a, b in zip(low, high, strict=True)))))

    def density(mixture):
        apart = np.abs(box[:, None] - np.array(list(mixture))[None]).sum(axis=2)
        return np.exp(-apart / scale) @ np.array(list(mixture.values()))

    return np.abs(np.log(density(one) / density(other))).max()


@pytest.mark.parametrize("name", UNITS)
def test_net_wins_of_drawn_rows_lose_no_more_than_epsilon(name, monkeypatch):
    units, most, distinct = UNITS[name]
    outcomes, epsilon = Outcomes(monkeypatch), 1.0
    reach = encode([units[0]], most, distinct).design.sensitivity
    scale = reach.net_l1 / epsilon
    if len(units[0]) < 1000:
        mixtures = [kept_nets(outcomes, [unit], most, distinct) for unit in units]
    else:  # rows that are alike: whichever is drawn
        mixtures = [kept_nets(Outcomes(monkeypatch), [unit[:1]], most, distinct) for unit in units]
        monkeypatch.undo()
        for unit, mixture in zip(units, mixtures, strict=True):
            kept = tallies.sample_rows(encode([unit], most, distinct), None)
            assert {tuple(tallies.net_wins(kept).tolist())} == set(mixture)
    distinct_mixtures = {tuple(sorted(mixture.items())) for mixture in mixtures}
    losses = [
        loss(dict(one), dict(other), scale) for one, other in combinations(distinct_mixtures, 2)
    ]
    assert max(losses) == pytest.approx(epsilon)


def test_the_loss_is_no_larger_beside_others_whose_rows_are_drawn_too(monkeypatch):
    outcomes, epsilon, most = Outcomes(monkeypatch), 1.0, 1
    other = (*ROWS[:3], ROWS[5])
    scale = encode([other], most, False).design.sensitivity.net_l1 / epsilon
    units = [ROWS[:1], ROWS[1:2], ROWS[:2], ROWS, ROWS[:1] * 3 + ROWS[1:2]]
    for place in (0, 1):
        data = [[unit, other] if place else [other, unit] for unit in units]
        mixtures = [kept_nets(outcomes, units, most, False) for units in data]
        losses = [loss(one, two, scale) for one, two in combinations(mixtures, 2)]
        assert 0.5 * epsilon < max(losses) <= epsilon + 1e-12


def test_kept_rows_keep_both_bounds_and_every_respondent(monkeypatch):
    outcomes = Outcomes(monkeypatch)
    silent = [(("a", "b"), math.nan)]
    units = [ROWS, [*ROWS[:2], (("b", "a"), 1.0), *silent], silent, ROWS[:1]]
    for distinct, most in product((False, True), (1, 2, 3)):
        encoded = encode(units, most, distinct)
        assert not encoded._pairs[2].size

        def run(encoded=encoded, most=most, distinct=distinct):
            kept = tallies.sample_rows(encoded, None)
            (part,) = kept._parts.held
            person, pair, count = part.person, part.pair, part.count
            assert kept.design.nobs == 4
            assert np.bincount(person, count).tolist() == [
                most,
                min(most, 1 if distinct else 3),
                0,
                1,
            ]
            if distinct:
                assert count.max() == 1
                assert len(set(zip(person.tolist(), pair.tolist(), strict=True))) == len(person)
            assert tallies.sample_rows(kept, None) is kept
            return count.sum()

        assert len(set(outcomes.all(run))) == 1


def test_a_fit_to_few_rows_is_that_without_a_draw():
    frame = frame_of([ROWS[:3:2], ROWS[1::2], ROWS[::2]] * 5)
    shared = {"items": ITEMS, "respondent": "who", "max_rows": 3}
    found = []
    for excess in ("refuse", "sample"):
        model = pr.PrivateBTL(frame, **shared, excess=excess)
        for epsilon in (1.0, np.inf):
            rng = np.random.default_rng(1)
            if excess == "refuse":
                draw_key(rng)  # all that is drawn for it
            record = model.fit(epsilon, rng=rng).release.to_record()
            assert record["design"].pop("excess") == excess
            found.append(record)
    assert found[:2] == found[2:]


def test_a_seeded_draw_is_the_same_in_every_order_and_engine():
    frame = frame_of([ROWS, ROWS[:4] * 3, ROWS[2:], ROWS[:1]] * 4)
    turned = frame.assign(item1=frame["item2"], item2=frame["item1"], outcome=-frame["outcome"])
    frames = [
        frame,
        frame.sample(frac=1.0, random_state=1),
        turned[::-1],
        pl.from_pandas(frame).lazy(),
        frame.assign(who=frame["who"].astype(float)),
    ]
    found = {
        pr.PrivateBTL(
            each, items=ITEMS, respondent="who", max_rows=2, excess="sample"
        ).fit(1.0, rng=np.random.default_rng(2)).release.to_json()
        for each in frames
    }  # fmt: skip
    assert len(found) == 1


def test_every_fit_draws_again():
    frame = frame_of([ROWS] * 20)
    model = pr.PrivateBTL(frame, items=ITEMS, respondent="who", max_rows=1, excess="sample")
    rng = np.random.default_rng(3)
    assert len({model.fit(np.inf, rng=rng).release.to_json() for _ in range(5)}) > 1
    assert len({model.fit(np.inf).release.to_json() for _ in range(5)}) > 1


def test_nothing_is_drawn_before_it_is_paid_for(monkeypatch):
    frame = frame_of([ROWS] * 20)
    monkeypatch.setattr(tallies, "draw_rows", None)
    for make, extra in ((pr.PrivateBTL, {}), (pr.PrivateTopK, {"k": 1})):
        model = make(
            frame, items=ITEMS, respondent="who", max_rows=2, excess="sample", **extra
        )  # fmt: skip
        with pytest.raises(pr.BudgetExceeded):
            model.fit(1.0, budget=pr.Budget(epsilon=0.5, unit="respondent"))


def test_summaries_say_that_rows_were_left_out_and_not_how_many():
    frame = frame_of([ROWS] * 20)
    for distinct, key in ((True, "pairs left out"), (False, "rows left out")):
        model = pr.PrivateBTL(
            frame, items=ITEMS, respondent="who", max_rows=2, excess="sample",
            distinct_pairs=distinct,
        )  # fmt: skip
        for epsilon in (1.0, np.inf):
            result = model.fit(epsilon, rng=np.random.default_rng(1))
            text = " ".join(str(result.summary()).split())
            assert CLAIMS[key].format(answers=2) in text
            assert ("one respondent (any number of rows)" in text) == (epsilon == 1.0)
            assert pr.from_json(result.to_json()).to_json() == result.to_json()


def test_few_comparisons_are_not_taken_for_none():
    # everybody has one row where a thousand are allowed: 0.1 % of what the bound allows
    rng = np.random.default_rng(4)
    first, second = np.array(list(permutations(range(3), 2)))[rng.integers(6, size=20_000)].T
    wins = rng.random(20_000) < 1 / (1 + np.exp(first - second))
    frame = pd.DataFrame({"item1": np.array(ITEMS)[first], "item2": np.array(ITEMS)[second]})
    frame = frame.assign(outcome=np.where(wins, 1, -1), who=np.arange(20_000))
    model = pr.PrivateBTL(
        frame, items=ITEMS, respondent="who", max_rows=1000, excess="sample", distinct_pairs=False
    )
    found = model.fit(50.0, rng=rng).params.to_numpy()
    assert np.abs(found - [1, 0, -1]).max() < 0.4
