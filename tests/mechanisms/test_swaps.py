"""Samples of the same respondents: swaps, their sensitivity by enumeration, and what is refused."""

import itertools
from collections import Counter
from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy.stats import chisquare

import privrank as pr
from privrank.closeness import compare
from privrank.mechanisms import closeness
from privrank.mechanisms.closeness import quantiles
from privrank.mechanisms.permutation import (
    chi_square,
    gram_blocks,
    kernel_distance,
    largest_distance,
    swapped,
)
from privrank.plans.samples import DIAMETER, PAIR_FACTOR
from privrank.release.survey import Sample
from privrank.results.claims import CLAIMS
from privrank.util.arrays import orders_of


def tables_of(pairs, kinds):
    """The tables of every pattern of swaps."""
    found = []
    for coins in itertools.product((0, 1), repeat=len(pairs)):
        table = np.zeros((2, kinds), dtype=np.int32)
        for coin, pair in zip(coins, pairs, strict=True):
            table[coin, pair[0]] += 1
            table[1 - coin, pair[1]] += 1
        found.append(table)
    return np.array(found)


@pytest.mark.parametrize("seed", [1, None])
def test_swaps_are_independent_and_fair(seed):
    pairs = [(0, 1), (2, 1), (0, 0), (1, 0)]
    distribution = Counter(table.tobytes() for table in tables_of(pairs, 3))
    rng = None if seed is None else np.random.default_rng(seed)
    drawn = swapped(np.array(pairs).T, 3, 4000, rng)
    assert (drawn.sum(axis=2) == 4).all()
    np.testing.assert_array_equal(drawn.sum(axis=1), np.tile([4, 3, 1], (4000, 1)))
    seen = Counter(table.tobytes() for table in drawn)
    assert seen.keys() <= distribution.keys()
    expected = np.array(list(distribution.values())) * 4000 / distribution.total()
    assert chisquare([seen[table] for table in distribution], expected).pvalue > 1e-6


def sample(kind, k, n, paired=True):
    groups = (("one", n), ("two", n))
    return Sample(kind, tuple(f"i{x}" for x in range(k)), n, "respondent", 1, groups, paired)


def largest_change(n, kinds, statistic):
    """The largest change of a statistic at any pattern when one respondent is replaced."""
    answers, largest = list(itertools.product(range(kinds), repeat=2)), 0.0
    # the order of the respondents does not matter: the first is replaced
    for rest in itertools.combinations_with_replacement(answers, n - 1):
        values = [statistic(tables_of([pair, *rest], kinds)) for pair in answers]
        largest = max(largest, float(np.ptp(values, axis=0).max()))
    return largest


@pytest.mark.parametrize(("n", "k"), [(2, 2), (3, 2), (2, 3), (3, 3), (2, 4)])
def test_total_variation_moves_by_2_over_n(n, k):
    asked = compare("tv", sample("choices", k, n))
    assert asked.sensitivity == PAIR_FACTOR / n and asked.effect is None
    assert largest_change(n, k, largest_distance) == pytest.approx(2 / n)
    # what separate units would be given is not enough
    alone = compare("tv", sample("choices", k, n, paired=False))
    assert alone.sensitivity < largest_change(n, k, largest_distance)


@pytest.mark.parametrize(("n", "k"), [(2, 2), (3, 2), (2, 3), (3, 3), (4, 2)])
def test_chi_square_moves_by_no_more_than_two_units(n, k):
    asked = compare("chi-square", sample("choices", k, n))
    alone = compare("chi-square", sample("choices", k, n, paired=False))
    assert asked.sensitivity == PAIR_FACTOR * alone.sensitivity
    found = largest_change(n, k, chi_square)
    assert 0 < found <= asked.sensitivity * (1 + 1e-9)


@pytest.mark.parametrize(
    ("m", "n", "kernel"), [(2, 3, "mallows"), (3, 2, "mallows"), (3, 2, "kendall")]
)
def test_kernel_distances_move_by_2_diameters_over_n(m, n, kernel):
    orders = orders_of(m)
    statistic = partial(kernel_distance, gram=list(gram_blocks(orders, kernel)))
    found = largest_change(n, len(orders), statistic)
    bound = compare("kendall" if kernel == "kendall" else "mmd", sample("rankings", m, n))
    assert bound.sensitivity == PAIR_FACTOR * DIAMETER[kernel] / n
    assert found <= bound.sensitivity * (1 + 1e-6)
    # attained by a ranking and its reversal, turned round, for the largest distance of two
    matrix = np.concatenate([block[0] for _, block in gram_blocks(orders, kernel)][:1])
    farthest = np.sqrt(2 * matrix[0] - 2 * matrix.min())
    assert found == pytest.approx(2 * farthest / n, rel=1e-3)


def test_the_omnibus_moves_by_2():
    n, k = 2, 7
    asked = compare("auto", sample("choices", k, n))
    assert asked.form == "cells" and asked.sensitivity == PAIR_FACTOR
    drawn = closeness.choice_parts((n, n), k, cells=True)
    public = quantiles(drawn, 2, 1.0)

    def statistic(tables):
        return closeness.omnibus_values(closeness.cell_parts(tables), public)

    rng, largest = np.random.default_rng(1), 0.0
    for _ in range(300):
        pairs = rng.integers(0, 3, (n + 1, 2))
        one, other = ([pairs[k], *pairs[1:n]] for k in (0, n))
        change = statistic(tables_of(one, k)) - statistic(tables_of(other, k))
        largest = max(largest, float(np.abs(change).max()))
    assert 0.5 < largest <= 2.0


ITEMS = ["a", "b", "c"]


def twice(n=40, seed=1, moved=0.0):
    """Two samples of the same respondents; of the second a share has its items turned round."""
    rng = np.random.default_rng(seed)
    first = rng.permuted(np.tile([1, 2, 3], (n, 1)), axis=1)
    second = np.where(rng.random((n, 1)) < moved, 4 - np.sort(first, axis=1), first)
    who = [f"person {k}" for k in range(n)]
    return [pd.DataFrame(ranks, columns=ITEMS).assign(who=who) for ranks in (first, second)]


def fitted(first, second, epsilon=np.inf, **options):
    test = pr.ClosenessTest(first, second, items=ITEMS, respondent="who", paired=True)
    return test.fit(epsilon, permutations=99, rng=np.random.default_rng(4), **options)


def test_rows_are_matched_by_respondent():
    first, second = twice(moved=0.5)
    found = fitted(first, second)
    turned = fitted(first, second.sample(frac=1.0, random_state=2))
    assert found.pvalue == turned.pvalue and found.nobs == 40
    # torn apart, the same rows are another data set
    mixed = second.assign(who=second["who"].to_numpy()[::-1])
    assert 0 < found.pvalue <= fitted(first, mixed).pvalue <= 1


def test_pairs_see_what_separate_samples_do_not():
    # respondents differ much from each other, and some of them change their mind the same way
    first, second = twice(150, moved=0.08)
    alone = pr.ClosenessTest(first[ITEMS], second[ITEMS])
    assert alone.fit(np.inf, permutations=99, rng=np.random.default_rng(4)).pvalue > 0.05
    assert fitted(first, second).pvalue <= 0.01


def test_those_who_never_change_their_mind_give_no_evidence():
    found = fitted(*twice())
    assert found.pvalue == 1.0
    text = " ".join(str(found.summary()).split())
    assert CLAIMS["no evidence, pairs"] in text


@pytest.mark.parametrize("index", [True, False])
def test_choices_of_the_same_people(index):
    who, choice = np.tile(np.arange(30), 2), ["x"] * 30 + ["y"] * 20 + ["x"] * 10
    frame, listed = pd.DataFrame({"who": who, "choice": choice}), ["x", "y", "z"]
    if index:
        waves = [frame.iloc[rows].set_index("who")["choice"] for rows in (range(30), range(30, 60))]
        test = pr.ClosenessTest(*waves, items=listed, respondent="who", paired=True)
    else:
        frame["wave"] = pd.Categorical(["one"] * 30 + ["two"] * 30)
        asked = {"categories": listed, "respondent": "who", "paired": True}
        test = pr.ClosenessTest.from_formula("choice ~ wave", frame, **asked)
    result = test.fit(np.inf, permutations=99, rng=np.random.default_rng(1))
    assert result.reject and result.nobs == 30 and result.groups.tolist() == [30, 30]
    text = " ".join(result.summary().as_text().split())
    assert "the two choices of a respondent are exchangeable. H1: they are not" in text
    again = pr.from_json(result.to_json())
    assert again.summary().as_text() == result.summary().as_text()


def test_longer_rankings_are_matched_too():
    rng = np.random.default_rng(1)
    ranks = rng.permuted(np.tile(np.arange(1, 9), (20, 1)), axis=1)
    columns = [f"i{x}" for x in range(8)]
    first = pd.DataFrame(ranks, columns=columns).assign(who=np.arange(20))
    second = pd.DataFrame(np.tile(np.arange(1, 9), (20, 1)), columns=columns)
    second["who"] = np.arange(20)[::-1]
    test = pr.ClosenessTest(first, second, respondent="who", items=columns, paired=True)
    result = test.fit(np.inf, permutations=99, rng=np.random.default_rng(2))
    other = pr.ClosenessTest(
        first, second.sample(frac=1.0, random_state=1), respondent="who", items=columns, paired=True
    )
    assert other.fit(np.inf, permutations=99, rng=np.random.default_rng(2)).pvalue == result.pvalue
    assert result.reject


def test_the_unit_is_the_pair():
    budget = pr.Budget(epsilon=1.0, unit="respondent")
    result = fitted(*twice(), epsilon=1.0, budget=budget)
    assert budget.left[0] == 0.0 and result.release.plan.number("scale") > 2.25 * 2 / 40
    with pytest.raises(ValueError, match="unit"):
        fitted(*twice(), epsilon=1.0, budget=pr.Budget(epsilon=1.0))


FIRST, SECOND = twice(10)
MATCHED = {"items": ITEMS, "respondent": "who", "paired": True}
REFUSED = [
    ((FIRST, SECOND), MATCHED | {"respondent": None}, ValueError, "with respondent="),
    ((FIRST, SECOND), MATCHED | {"paired": 1}, TypeError, "paired must be True or False"),
    ((FIRST, SECOND), MATCHED | {"labels": "private"}, ValueError, "labels='private' out"),
    ((FIRST, SECOND), MATCHED | {"max_rows": 2}, ValueError, "leave max_rows= out"),
    ((FIRST, SECOND), MATCHED | {"respondent": "id"}, ValueError, "no column 'id'"),
    ((FIRST, SECOND.iloc[:9]), MATCHED, ValueError, "every respondent in both samples"),
    ((FIRST.iloc[:9], SECOND.iloc[1:]), MATCHED, ValueError, "every respondent in both samples"),
    ((FIRST, SECOND.iloc[[*range(10), 3]]), MATCHED, ValueError, "at least one respondent twice"),
    ((FIRST, SECOND.assign(who=None)), MATCHED, ValueError, "respondent of every row"),
]


@pytest.mark.parametrize(("samples", "arguments", "error", "words"), REFUSED)
def test_refusals_name_nobody(samples, arguments, error, words):
    with pytest.raises(error, match=words) as caught:
        pr.ClosenessTest(*samples, **arguments)
    text = str(caught.value)
    assert "person" not in text and text.count(".") <= 2
    assert not any(number in text for number in ("9", "10", "11"))


def test_three_groups_are_no_pairs():
    frame = pd.concat([FIRST, SECOND, SECOND])
    frame["wave"] = pd.Categorical(np.repeat(["one", "two", "three"], 10))
    with pytest.raises(ValueError, match="compare two at a time"):
        pr.ClosenessTest.from_formula("a + b + c ~ wave", frame, respondent="who", paired=True)


@pytest.mark.parametrize("name", ["effect_epsilon", "details_epsilon"])
def test_what_pairs_do_not_release(name):
    with pytest.raises(ValueError, match=f"{name}= is for"):
        fitted(*twice(), epsilon=1.0, **{name: 1.0})
    with pytest.raises(ValueError, match="method must be one of"):
        fitted(*twice(), epsilon=1.0, method="sigmoid")
