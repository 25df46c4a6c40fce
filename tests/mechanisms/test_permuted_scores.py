"""Groups that chose from offered sets: the statistic, its sensitivity and its re-labellings.

Small surveys are made, and all answers of a respondent and all re-labellings are enumerated.
"""

import itertools
import math
from functools import lru_cache

import numpy as np
import pandas as pd
import pytest
from planting import planted

import privrank as pr
from privrank.encode.encoded import EncodedChoices
from privrank.mechanisms import choices
from privrank.mechanisms.choices import permuted_scores
from privrank.plans import samples
from privrank.plans.samples import comparison_of_choices
from privrank.privacy.offered import position_scores
from privrank.release.compared import questionnaires_by_group

ITEMS = ["tea", "milk", "juice", "water"]
ANSWERS = ("best", "worst", "best-worst", "order")
LEFT = {"best-worst": "best + worst"}
VERSIONS = ([(0, 1, 2), (1, 2, 3)], [(0, 2, 3)], [(0, 1, 2), (0, 1, 3), (1, 2, 3)])


@lru_cache
def survey(answer, people, seed=1):
    """A test of respondents with (group, questionnaire) as listed, who answer at random."""
    rng = np.random.default_rng(seed)
    rows = []
    for person, (group, questionnaire) in enumerate(people):
        if questionnaire is None:
            rows.append([person, group, *ITEMS[:3], *[None] * 3])
            continue
        for shown in VERSIONS[questionnaire]:
            names = [ITEMS[k] for k in shown]
            rows.append([person, group, *names, *rng.permutation(names)])
    frame = pd.DataFrame(rows, columns=["id", "town", "s1", "s2", "s3", "p1", "p2", "p3"])
    roles = {"places": ["p1", "p2", "p3"]}
    if answer != "order":
        roles = {role: {"best": "p1", "worst": "p3"}[role] for role in answer.split("-")}
    roles |= {"items": ITEMS, "respondent": "id", "unanswered": "public"}
    frame = pr.as_choices(frame, offered=["s1", "s2", "s3"], **roles)
    levels = sorted({group for group, _ in people})
    return pr.ClosenessTest.from_formula(
        f"{LEFT.get(answer, answer)} ~ town", frame, levels=levels, respondent="id", max_rows=3
    )._encoded


PEOPLE = (("n", 0), ("n", 0), ("s", 0), ("n", 1), ("s", 1), ("s", 1))
THREE = (("n", 0), ("s", 0), ("w", 0), ("n", 1), ("n", 1), ("s", 1), ("w", 0))


def facts_of(encoded):
    """The questionnaire and the group of each respondent."""
    plan = encoded.design.offered
    which = [plan.versions[k] for k in encoded._version]
    group = encoded.design.covariates.cell[np.array(plan.patterns)][encoded._version]
    return which, group


def by_hand(totals, which, group):
    """The statistic by its definition."""
    length = 0.0
    for one in set(group.tolist()):
        departure = np.zeros(totals.shape[1])
        for person in np.flatnonzero(group == one):
            alike = [k for k, questionnaire in enumerate(which) if questionnaire == which[person]]
            departure += totals[person] - totals[alike].mean(axis=0)
        length += math.sqrt((departure**2).sum())
    return length


def labellings(which, group):
    """All assignments of groups that keep the groups of each questionnaire."""
    places = [
        [k for k, questionnaire in enumerate(which) if questionnaire == one] for one in set(which)
    ]
    for orders in itertools.product(*(itertools.permutations(place) for place in places)):
        dealt = group.copy()
        for place, order in zip(places, orders, strict=True):
            dealt[place] = group[list(order)]
        yield dealt


@lru_cache
def vectors(plan, questionnaire):
    """The item vectors of all answers to a questionnaire."""
    every = []
    for k in questionnaire:
        scores = position_scores(plan.answer, len(plan.sets[k]))
        task = np.zeros((6, len(ITEMS)), dtype=np.int64)
        for vector, order in zip(task, itertools.permutations(plan.sets[k]), strict=True):
            vector[list(order)] = scores
        every.append(np.unique(task, axis=0))
    sums = [np.sum(one, axis=0) for one in itertools.product(*every)]
    return np.unique(sums, axis=0)


def values_of(totals, which, group):
    """The statistics of many surveys, shape (surveys, respondents, items), by matrix products."""
    number = {questionnaire: k for k, questionnaire in enumerate(set(which))}
    alike = np.array([number[one] for one in which])
    same = (alike[:, None] == alike).astype(np.int64)
    member = (np.unique(group)[:, None] == group).astype(np.int64)
    moves = member - (member @ same) / same.sum(axis=0)
    return np.sqrt(((moves @ totals) ** 2).sum(axis=2)).sum(axis=1)


def farthest(encoded):
    """The largest change of the statistic by one respondent, over all re-labellings."""
    plan = encoded.design.offered
    which, group = facts_of(encoded)
    largest = 0.0
    for person, questionnaire in enumerate(which):
        own = vectors(plan, questionnaire)
        totals = np.repeat(encoded._totals[None], len(own), axis=0)
        totals[:, person] = own
        for dealt in {tuple(each.tolist()) for each in labellings(which, group)}:
            values = values_of(totals, which, np.array(dealt))
            largest = max(largest, np.ptp(values))
    return largest


@pytest.mark.parametrize("people", [PEOPLE, THREE])
@pytest.mark.parametrize("answer", ANSWERS)
def test_the_first_value_is_the_statistic_of_the_data(answer, people):
    encoded = survey(answer, people)
    found = permuted_scores(encoded, 9, np.random.default_rng(1))
    assert found.shape == (10,)
    expected = by_hand(encoded._totals, *facts_of(encoded))
    assert found[0] == pytest.approx(expected, abs=1e-12)
    assert values_of(encoded._totals[None], *facts_of(encoded)) == pytest.approx([expected])


@pytest.mark.parametrize("people", [PEOPLE, THREE])
@pytest.mark.parametrize("answer", ANSWERS)
def test_no_respondent_moves_the_statistic_by_more_than_its_sensitivity(answer, people):
    bound = comparison_of_choices(survey(answer, people).design).sensitivity
    assert max(farthest(survey(answer, people, seed)) for seed in range(2)) <= bound * (1 + 1e-12)


def test_the_sensitivity_is_attained():
    encoded = survey("best", (("n", 0), ("s", 0), ("s", 0)))
    # all others answer alike
    totals = np.array([[0, 2, 0, 0]] * 3)
    alike = EncodedChoices(encoded.design, totals, encoded._version)
    assert farthest(alike) == pytest.approx(comparison_of_choices(encoded.design).sensitivity)


def test_respondents_who_are_compared_with_nobody_add_no_noise():
    both = (("n", 1), ("s", 1), ("s", 1))
    alone = comparison_of_choices(survey("best", both).design).sensitivity
    # a longer questionnaire of one group, and respondents without a task
    others = (("n", 2), ("n", 2), *[("n", None)] * 5, ("s", None))
    encoded = survey("best", (*both, *others))
    assert comparison_of_choices(encoded.design).sensitivity == pytest.approx(alone)
    totals = encoded._totals.copy()
    totals[:3] = (1, 0, 0, 0)
    # attained by the shared questionnaire, if all others answer alike
    moved = farthest(EncodedChoices(encoded.design, totals, encoded._version))
    assert moved == pytest.approx(alone)
    with pytest.raises(ValueError, match="shown to respondents of several groups"):
        comparison_of_choices(survey("best", (("n", 0), ("s", 1), ("n", None), ("s", None))).design)


FAULTS = {
    "the largest share": ("share[share > 0].min()", "share.max(axis=1).min()"),
    "the sensitivity of a task": ("compared).net_l2", "compared).net_l2 / 2.0"),
    "one group moves": ("2.0 * (1.0 - least)", "(1.0 - least)"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_faulty_sensitivity_is_found(name, monkeypatch):
    planted(monkeypatch, samples, "comparison_of_choices", *FAULTS[name])
    assert any(
        farthest(survey(answer, PEOPLE, seed))
        > samples.comparison_of_choices(survey(answer, PEOPLE, seed).design).sensitivity
        for answer in ANSWERS
        for seed in range(3)
    )


@pytest.mark.parametrize("people", [PEOPLE, THREE])
def test_all_labellings_of_a_questionnaire_are_equally_likely(people):
    encoded = survey("order", people)
    which, group = facts_of(encoded)
    every = [by_hand(encoded._totals, which, dealt) for dealt in labellings(which, group)]
    drawn = permuted_scores(encoded, 20_000, np.random.default_rng(2))[1:]
    for value in np.unique(np.round(every, 9)):
        share = np.isclose(every, value).mean()
        error = math.sqrt(share * (1 - share) / len(drawn))
        assert abs(np.isclose(drawn, value).mean() - share) <= 4.5 * error


def test_labellings_across_questionnaires_are_found(monkeypatch):
    def all_alike(design):
        place, group, units = questionnaires_by_group(design)
        return np.zeros_like(place), group, units.sum(axis=0, keepdims=True)

    monkeypatch.setattr(choices, "questionnaires_by_group", all_alike)
    encoded = survey("order", PEOPLE)
    found = choices.permuted_scores(encoded, 1, np.random.default_rng(1))[0]
    assert found != pytest.approx(by_hand(encoded._totals, *facts_of(encoded)), abs=1e-6)
