"""Errors say nothing of private data beyond that a public promise is broken."""

import re

import numpy as np
import pandas as pd
import pytest

import privrank as pr
from privrank.mechanisms.statistics.permutation import LARGEST_DEAL

GROUPS, CATEGORIES = ["anna's", "bert's"], ["a", "b"]


def told(call):
    """What a call says: its error, or that there is none."""
    try:
        call()
    except (TypeError, ValueError) as error:
        assert error.__cause__ is None
        return f"{type(error).__name__}: {error}"
    return "no error"


def choices(sizes, each=1):
    """Choices of respondents, so many in each group."""
    group = np.repeat(GROUPS, sizes)
    frame = pd.DataFrame({"group": group, "who": np.arange(len(group))})
    frame["choice"] = np.resize(CATEGORIES, len(group))
    return pd.concat([frame] * each, ignore_index=True)


def by_formula(frame, unit, **arguments):
    people = {"respondent": "who", "max_rows": 2} if unit == "respondent" else {}
    facts = {"levels": GROUPS, "categories": CATEGORIES, "labels": "private"} | people
    return pr.ClosenessTest.from_formula("choice ~ group", frame, **facts | arguments)


def by_samples(frame, unit, **arguments):
    kind = pd.CategoricalDtype(CATEGORIES)
    samples = [frame.loc[frame["group"] == name, "choice"].astype(kind) for name in GROUPS]
    return pr.ClosenessTest(*samples, labels="private", **arguments)


MADE = {
    "formula, row": (by_formula, "row", 1),
    "formula, respondent": (by_formula, "respondent", 2),
    "samples": (by_samples, "row", 1),
}
# all that 60 units can be, from which the least of one group is declared as 20
SPLITS = [(0, 60), (1, 59), (2, 58), (19, 41), (41, 19), (59, 1), (60, 0)]


@pytest.mark.parametrize("made", MADE)
def test_secret_groups_that_are_too_small_are_refused_in_the_same_words(made):
    build, unit, each = MADE[made]
    said = {
        told(lambda sizes=sizes: build(choices(sizes, each), unit, min_group_sizes=(20, 20)))
        for sizes in SPLITS
    }
    assert len(said) == 1
    (words,) = said
    assert "min_group_sizes=" in words and "declare what holds for certain" in words
    assert not re.search(r"\d", words) and not any(name in words for name in GROUPS)


@pytest.mark.parametrize("made", MADE)
def test_secret_groups_that_keep_their_promise_are_all_taken(made):
    build, unit, each = MADE[made]
    for sizes in [(20, 40), (30, 30), (40, 20)]:
        test = build(choices(sizes, each), unit, min_group_sizes=(20, 20))
        result = test.fit(1.0, rng=np.random.default_rng(1))
        assert list(result.groups) == [20, 20]
        assert result.nobs == 60


@pytest.mark.parametrize("made", MADE)
@pytest.mark.parametrize("declared", [None, (20,), (20, 20, 20), (1, 20), (20, 2.5), "20, 20"])
def test_what_is_declared_of_secret_groups_is_judged_before_the_data(made, declared):
    build, unit, each = MADE[made]
    said = {
        told(lambda sizes=sizes: build(choices(sizes, each), unit, min_group_sizes=declared))
        for sizes in SPLITS
    }
    assert len(said) == 1 and "min_group_sizes" in said.pop()


def test_secret_groups_of_rankings_are_refused_whatever_their_sizes():
    frame = pd.DataFrame({"p": [1, 2, 1, 2], "q": [2, 1, 2, 1]})
    said = set()
    for group in ([0, 0, 0, 0], [0, 0, 0, 1], [0, 0, 1, 1]):
        data = frame.assign(group=np.array(GROUPS)[group])
        said.add(
            told(
                lambda data=data: pr.ClosenessTest.from_formula(
                    "p + q ~ group", data, levels=GROUPS, labels="private", min_group_sizes=(2, 2)
                )
            )
        )
    said.add(told(lambda: pr.ClosenessTest(frame, frame, labels="private", min_group_sizes=(2, 2))))
    assert len(said) == 1 and "choices" in said.pop()


def test_sizes_of_public_groups_may_be_stated():
    words = told(lambda: by_formula(choices((60, 0)), "row", labels="public", min_group_sizes=None))
    assert "at least two units" in words and "has 0" in words


def test_more_counts_than_can_be_permuted_are_refused_before_anything_is_spent():
    budget = pr.Budget(1.0)
    half = LARGEST_DEAL // 2
    for table, taken in (((half, half - 1), True), ((half, half), False)):
        test = pr.ClosenessTest.from_counts(
            {"x": {"a": table[0] - 5, "b": 5}, "y": {"a": table[1] - 9, "b": 9}}
        )
        if taken:
            assert test.fit(0.5, permutations=19, budget=budget).nobs == LARGEST_DEAL - 1
        else:
            with pytest.raises(ValueError, match=r"at most 999,999,999 units .* random sample"):
                test.fit(0.5, permutations=19, budget=budget)
    assert budget.spent == (0.5, 0.0)


@pytest.mark.parametrize("kind", [pr.UniformityTest, pr.IdentityTest])
def test_the_largest_counts_give_a_result(kind):
    counts = {"a": 10**12 - 10**6, "b": 10**6}
    null = [] if kind is pr.UniformityTest else [{"a": 0.25, "b": 0.75}]
    budget = pr.Budget(1.0)
    result = kind.from_counts(counts, *null).fit(1.0, budget=budget)
    assert result.reject and str(result.summary()) and budget.spent == (1.0, 0.0)
    with pytest.raises(ValueError, match="at most 1,000,000,000,000"):
        kind.from_counts({"a": 10**12, "b": 1}, *null)


@pytest.mark.parametrize("design", ["public", "private"])
def test_a_graph_that_falls_apart_costs_nothing(design):
    frame = pd.DataFrame({"item1": ["a", "c"], "item2": ["b", "d"], "outcome": [1, 1]})
    for budget, error in ((pr.Budget(np.inf), ValueError), (pr.Budget(1.0), pr.BudgetExceeded)):
        if design == "public":
            with pytest.raises(ValueError, match="connect all items"):
                pr.PrivateBTL(frame, items=list("abcd"), respondent=None, design=design)
            continue
        model = pr.PrivateBTL(frame, items=list("abcd"), respondent=None, design=design)
        with pytest.raises(error) as caught:
            model.fit(np.inf, budget=budget)
        # a finite budget refuses before anything of a private graph is said
        assert ("connect" in str(caught.value)) == np.isinf(budget.epsilon)
        assert budget.spendings == ()
