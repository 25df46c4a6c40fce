"""Fits that would identify little are refused before they spend, by public numbers."""

import warnings

import numpy as np
import pandas as pd
import pytest

import privrank as pr
from privrank.plans.choice import plan_comparisons, probably_unidentified
from privrank.plans.comparisons import Request, plan_fit
from privrank.release.survey import Design, PairCounts

ROWS = {"respondent": None}


def seeded(seed=1):
    return np.random.default_rng(seed)


def frame(items, rows, seed=0):
    rng = np.random.default_rng(seed)
    first, second = np.triu_indices(items, 1)
    pair = rng.integers(0, len(first), rows)
    outcome = rng.choice([-1, 1], rows)
    return pd.DataFrame({"item1": first[pair], "item2": second[pair], "outcome": outcome})


def model(items=10, rows=450, **more):
    return pr.PrivateBTL(frame(items, rows), items=range(items), **ROWS, **more)


def identified(fit):
    return float(fit.params.notna().mean())


def test_nothing_is_spent_on_a_fit_that_would_say_nothing():
    budget = pr.Budget(epsilon=2.0, unit="row")
    with pytest.raises(ValueError, match="allow_unidentified=True the fit spends") as refusal:
        model().fit(0.5, budget=budget)
    text = str(refusal.value)
    for way in ("pair_counts='proportional'", "larger epsilon", "public design", "PrivateTopK"):
        assert way in text
    assert budget.left[0] == 2.0
    with pytest.warns(pr.PrivrankWarning, match="With probability 1.00"):
        fit = model().fit(0.5, budget=budget, allow_unidentified=True, rng=seeded())
    assert identified(fit) < 0.5 and budget.left[0] == 1.5


def test_what_a_refusal_names_does_work():
    for works in (
        model().fit(np.inf),
        model(rows=45_000).fit(0.5, rng=seeded()),
        model(design="public").fit(0.5, rng=seeded()),
        model(pair_counts="equal").fit(0.5, rng=seeded()),
        model(rows=9000, pair_counts="proportional").fit(2.0, rng=seeded()),
    ):
        assert identified(works) == 1.0


def test_a_bound_on_rows_is_named_where_there_is_one():
    survey = frame(20, 2000).assign(respondent=np.repeat(np.arange(200), 10))
    people = {"respondent": "respondent", "max_rows": 10, "distinct_pairs": False}
    with pytest.raises(ValueError, match="a smaller max_rows"):
        pr.PrivateBTL(survey, items=range(20), **people).fit(0.1)


def test_what_was_asserted_is_not_named_again():
    with pytest.raises(ValueError, match="Use a larger epsilon") as refusal:
        model(12, 200, pair_counts="proportional").fit(0.5)
    assert "proportional" not in str(refusal.value)


def test_item_covariates_need_comparisons_as_worths_do():
    data = pd.DataFrame({"size": np.arange(6.0)}, index=range(6))
    named = {"items": range(6), "item_formula": "size", "item_data": data, **ROWS}
    few, many = (
        pr.PrivateBTL.from_formula("item1 + item2 + outcome ~ 1", frame(6, rows), **named)
        for rows in (60, 3000)
    )
    with pytest.raises(ValueError, match="would be identified"):
        few.fit(0.5)
    assert few.fit(0.5, allow_unidentified=True, rng=seeded()).params.isna().all()
    assert many.fit(0.5, rng=seeded()).params.notna().all()


def failing(items, rows, epsilon, *, unit="row", most=1, matched=False):
    pairs = None
    if matched:
        pairs = PairCounts.equal(items, rows * most / (items * (items - 1) / 2), "proportional")
    names = tuple(map(str, range(items)))
    design = Design(names, rows, unit, most, True, False, "private", pairs)
    choice = plan_fit(Request(design, epsilon))
    return probably_unidentified(design, plan_comparisons(design, choice, epsilon, 0.0, "test"))


def test_the_probability_falls_with_epsilon_and_with_rows():
    by_epsilon = [failing(10, 1350, epsilon) for epsilon in (0.1, 0.3, 1.0, 3.0)]
    by_rows = [failing(10, rows, 1.0) for rows in (45, 450, 1350, 4500)]
    for found in (by_epsilon, by_rows):
        assert found == sorted(found, reverse=True) and found[0] == 1.0 and found[-1] == 0.0
    people = [failing(8, n, 1.0, unit="respondent", most=14) for n in (20, 100, 1000, 5000)]
    assert people == sorted(people, reverse=True) and people[0] == 1.0 and people[-1] == 0.0


@pytest.mark.parametrize(
    ("items", "rows", "epsilon"),
    [(4, 120, 0.5), (6, 300, 0.5), (6, 420, 0.5), (10, 900, 0.5), (20, 1900, 1.0), (3, 60, 0.7)],
)
def test_the_probability_is_that_of_fits(items, rows, epsilon):
    predicted = failing(items, rows, epsilon)
    fits = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed in range(60):
            fit = pr.PrivateBTL(frame(items, rows, seed), items=range(items), **ROWS).fit(
                epsilon, rng=np.random.default_rng(seed), allow_unidentified=True
            )
            fits.append(identified(fit) < 0.5)
    # of 60 fits and 100 simulations
    error = np.sqrt(max(predicted * (1 - predicted), 0.02) * (1 / 60 + 1 / 100))
    assert abs(np.mean(fits) - predicted) < 3.5 * error


def test_a_plan_says_what_a_fit_does():
    for items, rows, epsilon in ((10, 450, 0.5), (10, 4500, 1.0)):
        plan = pr.power.BTLPower(items=items, unit="row", replicates=20)
        power = plan.power(nobs=rows, epsilon=epsilon, contrast=3.0)
        if failing(items, rows, epsilon) > 0.5:
            assert power == 0.0
        else:
            assert power > 0.5


def test_a_switch_is_a_switch():
    with pytest.raises(TypeError, match="allow_unidentified"):
        model().fit(1.0, allow_unidentified="yes")
