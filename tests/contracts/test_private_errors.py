"""Errors say nothing of private data beyond that a public promise is broken."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import privrank as pr
from privrank.plans.samples import LARGEST_DEAL

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
    samples = [frame.loc[frame["group"] == name, "choice"] for name in GROUPS]
    return pr.ClosenessTest(*samples, items=CATEGORIES, labels="private", **arguments)


def by_rankings(frame, unit, **arguments):
    people = {"respondent": "who", "max_rows": 2} if unit == "respondent" else {}
    data = frame.assign(p=1 + (frame["choice"] == "a"), q=1 + (frame["choice"] == "b"))
    facts = {"levels": GROUPS, "labels": "private"} | people
    return pr.ClosenessTest.from_formula("p + q ~ group", data, **facts | arguments)


def by_ranked_samples(frame, unit, **arguments):
    ranks = np.stack([1 + (frame["choice"] == name) for name in CATEGORIES], axis=1)
    samples = [ranks[frame["group"] == name] for name in GROUPS]
    return pr.ClosenessTest(*samples, labels="private", **arguments)


MADE = {
    "formula, row": (by_formula, "row", 1),
    "formula, respondent": (by_formula, "respondent", 2),
    "samples": (by_samples, "row", 1),
    "rankings": (by_rankings, "row", 1),
    "rankings of respondents": (by_rankings, "respondent", 2),
    "samples of rankings": (by_ranked_samples, "row", 1),
}
# all that 60 units can be
SPLITS = [(0, 60), (1, 59), (2, 58), (19, 41), (41, 19), (59, 1), (60, 0)]


@pytest.mark.parametrize("made", MADE)
def test_secret_groups_of_any_size_are_taken_and_look_alike(made):
    build, unit, each = MADE[made]
    shown = set()
    for sizes in SPLITS:
        test = build(choices(sizes, each), unit)
        result = test.fit(1.0, permutations=19, rng=np.random.default_rng(1))
        assert 0 < result.pvalue <= 1 and result.groups.isna().all() and result.nobs == 60
        steps = {"p-value": np.array([5000])}
        still = pr.ClosenessTest.from_release(replace(result.release, values=steps))
        order = {"tie_break": (0, 1)}
        still = pr.ClosenessTest.from_release(replace(still.release, **order))
        shown.add((repr(test), str(still.summary(details=True)), still.to_json()))
    assert len(shown) == 1


@pytest.mark.parametrize("made", MADE)
@pytest.mark.parametrize("arguments", [{"effect_epsilon": 1.0}, {"method": "pairs"}])
def test_what_secret_groups_do_not_release_is_refused_in_the_same_words(made, arguments):
    build, unit, each = MADE[made]
    said = {
        told(lambda sizes=sizes: build(choices(sizes, each), unit).fit(1.0, **arguments))
        for sizes in SPLITS
    }
    assert len(said) == 1 and "labels='private'" in said.pop()


@pytest.mark.parametrize("made", MADE)
def test_one_unit_in_secret_groups_is_too_few_wherever_it_is(made):
    build, unit, each = MADE[made]
    said = {told(lambda s=sizes: build(choices(s, each), unit)) for sizes in [(0, 1), (1, 0)]}
    assert len(said) == 1 and "at least two units are needed" in said.pop()


def test_sizes_of_public_groups_may_be_stated():
    words = told(lambda: by_formula(choices((59, 1)), "row", labels="public"))
    assert "at least two units" in words and "has 1" in words


def test_more_counts_than_can_be_permuted_are_refused_before_anything_is_spent():
    budget = pr.Budget(epsilon=1.0)
    half = LARGEST_DEAL // 2
    for table, taken in (((half, half - 1), True), ((half, half), False)):
        test = pr.ClosenessTest.from_counts(
            {"x": {"a": table[0] - 5, "b": 5}, "y": {"a": table[1] - 9, "b": 9}}, ["a", "b"]
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
    budget = pr.Budget(epsilon=1.0)
    declared = {"categories": ["a", "b"]}
    result = kind.from_counts(counts, *null, **declared).fit(1.0, budget=budget)
    assert result.reject and str(result.summary()) and budget.spent == (1.0, 0.0)
    with pytest.raises(ValueError, match="at most 1,000,000,000,000"):
        kind.from_counts({"a": 10**12, "b": 1}, *null, **declared)


@pytest.mark.parametrize("design", ["public", "private"])
def test_a_graph_that_falls_apart_costs_nothing(design):
    frame = pd.DataFrame({"item1": ["a", "c"], "item2": ["b", "d"], "outcome": [1, 1]})
    for budget, error in (
        (pr.Budget(epsilon=np.inf), ValueError),
        (pr.Budget(epsilon=1.0), pr.BudgetExceeded),
    ):
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
