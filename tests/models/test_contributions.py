"""What bounds cost: one release of disjoint classes, and a table from it and public facts."""

import math
from itertools import combinations, combinations_with_replacement, product

import numpy as np
import pandas as pd
import pytest
import surveys
from constantnoise import VOLUMES, hold_still
from visible import differences, everything

import privrank as pr
from privrank.encode.comparisons import ComparisonColumns, encode_comparisons
from privrank.mechanisms import tallies
from privrank.plans.contributions import plan_activity

ITEMS = list("abc")
ROWS = [(*pair, y) for pair in combinations(ITEMS, 2) for y in (1.0, -1.0)]
SILENT = ("a", "b", math.nan)


def frame_of(units):
    rows = [(who, *row) for who, unit in enumerate(units) for row in unit]
    return pd.DataFrame(rows, columns=["who", "item1", "item2", "outcome"])


def encode(units, distinct, rows=1):
    return encode_comparisons(
        frame_of(units), ComparisonColumns("item1", "item2", "outcome", "who"), items=ITEMS,
        max_rows=rows, distinct_pairs=distinct, ties=False, design="private", pair_counts=None,
        excess="sample",
    )  # fmt: skip


def tradeoff(frame, **changes):
    given = {"items": ITEMS, "respondent": "who", "epsilon": 1.0, "for_epsilon": 1.0}
    return pr.contribution_tradeoff(frame, **given | changes)


@pytest.mark.parametrize("distinct", [False, True])
@pytest.mark.parametrize("bounds", [(1,), (2,), (1, 2), (1, 3), (1, 2, 3, 4)])
def test_one_respondent_moves_two_classes_by_one_each(distinct, bounds):
    units = [u for k in range(1, 5) for u in combinations_with_replacement([*ROWS[:3], SILENT], k)]
    others = [ROWS[:2], [SILENT], ROWS]
    counts = []
    for unit in units:
        encoded = encode([others[0], unit, *others[1:]], distinct)
        found = tallies.activity(encoded._parts, bounds, distinct=distinct)
        answered = [row for row in unit if row is not SILENT]
        answers = len({row[:2] for row in answered}) if distinct else len(answered)
        rest = tallies.activity(encode(others, distinct)._parts, bounds, distinct=distinct)
        # the classes: none, up to each bound, beyond the last
        rest[sum(answers > bound for bound in (0, *bounds))] += 1
        assert found.tolist() == rest.tolist()
        counts.append(found)
    moved = [np.abs(one - two).sum() for one, two in combinations(counts, 2)]
    assert max(moved) == 2


def test_what_is_released_is_that_with_noise_for_two():
    frame = frame_of([ROWS] * 30 + [ROWS[:1]] * 70)
    budget = pr.Budget(epsilon=1.0, unit="respondent")
    found = tradeoff(frame, distinct_pairs=False, budget=budget, bounds=[1, 5])
    part = found.release.parts["activity"]
    assert (part.sensitivity, part.epsilon, part.step) == (2, 1.0, 1.0)
    assert part.distribution.scale == pytest.approx(2.0)
    assert budget.left == (0.0, 0.0)
    assert pr.Release.from_json(found.release.to_json()).to_json() == found.release.to_json()
    encoded = encode([ROWS] * 30 + [ROWS[:1]] * 70, False)
    drawn = [
        tallies.release_activity(
            encoded, [1, 5], plan_activity([1, 5], 1.0), budget=None, rng=None
        ).values["activity"]
        for _ in range(300)
    ]
    assert np.abs(np.mean(drawn, axis=0) - [0, 70, 0, 30]).max() < 1.0
    with pytest.raises(pr.BudgetExceeded):
        tradeoff(frame, distinct_pairs=False, budget=budget)


def test_rows_are_those_that_a_draw_keeps():
    units = (
        [ROWS * (1 + k % 3) for k in range(9)] + [ROWS[:k] for k in (1, 1, 2, 3, 4)] + [[SILENT]]
    )
    for distinct in (False, True):
        found = tradeoff(
            frame_of(units), epsilon=np.inf, bounds=range(1, 20), distinct_pairs=distinct
        ).to_frame()  # fmt: skip
        assert list(found.index) == list(range(1, 4 if distinct else 20))
        for bound in found.index:
            kept = tallies.bounded(encode(units, distinct, bound), None)
            assert found.loc[bound, "rows"] == kept._pairs[2].sum()
        assert (found["rows_std_err"] == 0).all()


def test_a_declared_activity_gives_the_same_and_spends_nothing():
    units = [ROWS[:1]] * 40 + [ROWS[:2]] * 20 + [ROWS] * 7
    bounds = [1, 2, 6]
    shared = {"bounds": bounds, "distinct_pairs": False}
    released = tradeoff(frame_of(units), epsilon=np.inf, **shared)
    declared = pr.contribution_tradeoff(
        {1: 40, 2: 20, 6: 7}, items=ITEMS, for_epsilon=1.0, **shared
    )
    # the class from 3 to 6 is read as 4.5 answers
    pd.testing.assert_frame_equal(released.to_frame()[:2], declared.to_frame()[:2])
    assert declared.to_frame().loc[6, "rows"] == 122
    assert declared.release is None and "nothing was released" in str(declared.summary())


def test_parts_of_the_error_add_up_and_move_with_the_bound():
    found = pr.contribution_tradeoff(
        {1: 2000, 100: 2000}, items=list("abcdefghij"), for_epsilon=1.0,
        distinct_pairs=False, bounds=[1, 3, 10, 100],
    ).to_frame()  # fmt: skip
    assert np.allclose(found["sampling"] ** 2 + found["privacy"] ** 2, found["std_err"] ** 2)
    assert found["sampling"].is_monotonic_decreasing and found["privacy"].is_monotonic_increasing
    assert found["rows"].tolist() == [4000, 8000, 22000, 202000]
    assert found["beyond"].tolist() == [2000, 2000, 2000, 0]


@pytest.mark.parametrize("volume", VOLUMES)
@pytest.mark.parametrize("distinct", [True, False])
def test_equal_public_facts_look_equal(distinct, volume, monkeypatch):
    hold_still(monkeypatch, volume)
    given = {"items": surveys.ITEMS, "respondent": "respondent", "distinct_pairs": distinct}
    seen = [
        everything(pr.contribution_tradeoff(frame, **given, epsilon=1.0, for_epsilon=1.0))
        for frame in surveys.private_respondents(distinct=False).values()
    ]
    assert len(seen) == 5
    assert not any(differences(seen[0], other) for other in seen[1:])


def test_a_summary_names_the_best_bound_and_the_guarantee():
    frame = frame_of([ROWS[:1]] * 300)
    text = " ".join(str(tradeoff(frame, rng=np.random.default_rng(0)).summary()).split())
    for words in (
        "max_rows = ", "exp(1)", "however many", "Seeded noise", "No. Respondents: 300",
        "+/- is the standard error from the noise of this release",
    ):  # fmt: skip
        assert words in text
    assert "non-private" in str(tradeoff(frame, epsilon=np.inf).summary()).lower()
    assert "<table" in tradeoff(frame)._repr_html_()


GOOD = frame_of([ROWS[:2]] * 5)
DECLARED = {"items": ITEMS, "for_epsilon": 1.0}
REFUSED = {
    "no epsilon": (lambda: tradeoff(GOOD, epsilon=None), "declare it with a mapping"),
    "a list": (lambda: pr.contribution_tradeoff([1, 2], respondent="who", **DECLARED), "frame"),
    "a word for epsilon": (lambda: tradeoff(GOOD, epsilon="1"), "epsilon must be a positive"),
    "no respondent": (lambda: tradeoff(GOOD, respondent=None, epsilon=None), "respondent must"),
    "respondent not stated": (
        lambda: pr.contribution_tradeoff(GOOD, items=ITEMS, for_epsilon=1.0),
        "respondent= must be stated",
    ),
    "another shape": (
        lambda: pr.contribution_tradeoff(GOOD[["who"]], items=ITEMS, for_epsilon=1.0),
        "privrank.as_comparisons",
    ),
    "for epsilon inf": (lambda: tradeoff(GOOD, for_epsilon=np.inf), "for_epsilon must be finite"),
    "bounds that fall": (lambda: tradeoff(GOOD, bounds=[5, 2]), "bounds must ascend"),
    "bounds twice": (lambda: tradeoff(GOOD, bounds=[2, 2]), "bounds must ascend"),
    "no bounds": (lambda: tradeoff(GOOD, bounds=[]), "bounds must be a sequence"),
    "a bound of zero": (lambda: tradeoff(GOOD, bounds=[0, 2]), "bounds must be between 1 and"),
    "a bound beyond all rows": (lambda: tradeoff(GOOD, bounds=[10**20]), "bounds must be between"),
    "a seed": (lambda: tradeoff(GOOD, rng=3), "rng must be None"),
    "a row budget": (lambda: tradeoff(GOOD, budget=pr.Budget(epsilon=1.0)), "unit"),
    "spending on a declaration": (
        lambda: pr.contribution_tradeoff({1: 10}, **DECLARED, epsilon=1.0),
        "must be left out",
    ),
    "no items": (lambda: pr.contribution_tradeoff({1: 10}, for_epsilon=1.0), "items must be"),
    **{
        f"activity {activity}": (
            lambda activity=activity: pr.contribution_tradeoff(activity, **DECLARED),
            "activity must be",
        )
        for activity in ({}, {1: 0}, {1: -1, 2: 5}, {1: "x"}, {1: math.nan}, {-1: 5})
    },
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_breaks_a_rule_is_refused_in_one_sentence(name):
    call, words = REFUSED[name]
    with pytest.raises((TypeError, ValueError)) as caught:
        call()
    said = str(caught.value)
    assert words in said and said.endswith(".") and "\n" not in said
    assert caught.value.__cause__ is None


def test_nothing_is_spent_where_a_fit_at_a_bound_is_refused():
    budget = pr.Budget(epsilon=1.0, unit="respondent")
    with pytest.raises(ValueError, match="too large"):
        tradeoff(GOOD, budget=budget, bounds=[1, 10**9], distinct_pairs=False)
    assert budget.left == (1.0, 0.0)


def test_bounds_beyond_the_number_of_pairs_are_that_number():
    items, pairs = list("abcdef"), list(combinations("abcdef", 2))
    given = {"items": items, "for_epsilon": 1.0, "bounds": [5, 10, 20, 50]}
    declared = pr.contribution_tradeoff({13: 100, 400: 100}, **given).to_frame()
    assert declared.index.tolist() == [5, 10, 15]
    assert declared["rows"].tolist() == [1000, 2000, 2800]
    assert declared["beyond"].tolist() == [200, 200, 0]
    rows = [(*pair, 1.0) for pair in pairs]
    # the class from 11 to 15 is read as 13 answers, and nobody has more, whatever the noise says
    exact = tradeoff(frame_of([rows[:11]] * 400), epsilon=np.inf, **given)
    assert exact.to_frame()["rows"].tolist() == [2000, 4000, 5200]
    noisy = tradeoff(frame_of([rows[:11]] * 400), epsilon=0.01, **given)
    assert noisy.activity.answers.tolist() == [0, 3, 8, 13]
    assert len(noisy.release.values["activity"]) == 5
    assert noisy.activity.respondents.sum() == pytest.approx(400)
    loose = tradeoff(frame_of([rows] * 9), epsilon=np.inf, distinct_pairs=False, **given)
    assert loose.to_frame().index.tolist() == [5, 10, 20, 50]


def test_respondents_without_answers_count_as_units():
    for silent, distinct in product((0, 4), (False, True)):
        found = tradeoff(frame_of([ROWS[::2]] * 3 + [[SILENT]] * silent), distinct_pairs=distinct)
        assert found.release.survey.nobs == 3 + silent
        assert found.activity.respondents.sum() == pytest.approx(3 + silent)
