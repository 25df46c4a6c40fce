"""Choices from offered sets: no respondent moves a statistic further than its noise allows.

Small surveys are written down as frames, read by the public reader, and enumerated: one respondent
after another gives every possible answer to every task, and the others keep theirs.
"""

import itertools
import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache

import numpy as np
import pandas as pd
import pytest
from planting import planted

import privrank as pr
from privrank.encode import choices as reader
from privrank.encode.choices import encode_tasks
from privrank.mechanisms import choices, comparisons
from privrank.mechanisms.choices import (
    answer_totals,
    answered_tasks,
    largest_choice_effect,
    round_contrasts,
)
from privrank.plans.choice import requested_dependence
from privrank.privacy import offered
from privrank.privacy.accounting import integer_delta
from privrank.privacy.sensitivity import net_noise, weighted_noise
from privrank.release import names
from privrank.release.survey import STEPS, Design

EPSILON = 1.0
DELTA = 1e-6
NOISES = ("laplace", "zero-sum-laplace", "permutohedron", "gaussian")


@dataclass(frozen=True)
class Survey:
    """A questionnaire in versions, and the respondents: version, region and age of each."""

    answer: str
    items: str
    versions: tuple[tuple[str, ...], ...]
    people: tuple[tuple[int, str, float], ...]
    formula: str = ""
    silent: bool = False

    def tasks(self, person):
        return self.versions[self.people[person][0]]

    def answers(self, person):
        """All answers of a respondent: of each task the best, the worst, both, or the order."""
        named = 2 if self.answer == "best-worst" else 1
        silence = [(None,) * named] if self.silent else []
        every = (arrangements(self.answer, shown) + silence for shown in self.tasks(person))
        return list(itertools.product(*every))

    def frame(self, given):
        """One row per task, and a row without a task for a respondent who has none."""
        rows = []
        for person, answers in enumerate(given):
            _, region, age = self.people[person]
            facts = {"id": person, "region": region, "age": age}
            if not answers:
                rows.append(facts | {f"show{k}": item for k, item in enumerate(self.items[:3], 1)})
            for shown, answer in zip(self.tasks(person), answers, strict=True):
                sets = {f"show{k}": item for k, item in enumerate(shown, 1)}
                named = {f"answer{k}": item for k, item in enumerate(answer)}
                rows.append(facts | sets | named)
        return pd.DataFrame(rows)

    def convert(self, given):
        frame = self.frame(given)
        own = [name for name in frame if name.startswith("answer")]
        roles = {"best": "answer0", "worst": own[-1]}
        if self.answer == "order":
            roles = {"places": own}
        elif self.answer != "best-worst":
            roles = {self.answer: "answer0"}
        return pr.as_choices(
            frame,
            offered=[name for name in frame if name.startswith("show")],
            items=list(self.items),
            respondent="id",
            unanswered="private" if self.silent else "public",
            **roles,
        )

    def model(self, given):
        frame = self.convert(given)
        arguments = {"respondent": "id", "max_rows": 2, "design": "public"}
        if not self.formula:
            return pr.PrivateBTL(frame, **arguments)
        facts = {"levels": {"region": ["n", "s"]}} if "region" in self.formula else {}
        facts |= {"bounds": {"age": (0.0, 8.0)}} if "age" in self.formula else {}
        return pr.PrivateBTL.from_formula(
            f"{self.answer.replace('-', ' + ')} ~ {self.formula}", frame, **arguments, **facts
        )

    def encode(self, given):
        if self.formula:
            return self.model(given)._encoded
        return encode_tasks(self.convert(given), respondent="id", max_rows=2)


def arrangements(answer, shown):
    if answer == "best-worst":
        return list(itertools.permutations(shown, 2))
    if answer == "order":
        return list(itertools.permutations(shown))
    return [(item,) for item in shown]


def first_answers(survey):
    return [survey.answers(person)[0] for person in range(len(survey.people))]


TWO = ((0, "n", 0.0), (1, "s", 8.0), (0, "s", 5.0))
SILENT = (*TWO, (2, "n", 3.0))
# versions of one and of two tasks, a set shown twice, sets of different sizes, no task at all
PLAIN = {
    "best": Survey("best", "abcd", (("abc", "bd"), ("abcd",)), TWO),
    "best, one pair": Survey("best", "ab", (("ab", "ab"),), ((0, "n", 0.0), (0, "s", 1.0))),
    "best, pairs apart": Survey("best", "abcd", (("ac", "bd"), ("abcd",)), TWO),
    "best, pairs": Survey("best", "abc", (("ab", "ac"), ("bc", "bc")), TWO),
    "best, a set twice": Survey("best", "abcd", (("abcd", "abcd"), ("bc",)), TWO),
    "best, no task": Survey("best", "abcd", (("abc", "bcd"), ("ad",), ()), SILENT),
    "worst": Survey("worst", "abcd", (("abc", "cd"), ("abcd", "bd")), TWO),
    "best-worst": Survey("best-worst", "abcd", (("abc", "bcd"), ("abd",)), TWO),
    "best-worst, a set twice": Survey("best-worst", "abcd", (("abc", "abc"), ("bcd",)), TWO),
    "best-worst of four": Survey("best-worst", "abcd", (("abc",), ("abcd", "abcd")), TWO),
    "best-worst, no task": Survey("best-worst", "abcd", (("abc", "abd"), ("bcd",), ()), SILENT),
    "order": Survey("order", "abcd", (("abc", "cd"), ("abcd",)), TWO),
    "order, a set twice": Survey("order", "abc", (("abc", "abc"), ("bc", "ab")), TWO),
}
GROUPS = {
    f"{answer} by {formula}": Survey(answer, "abc", versions, people, formula)
    for answer, versions in (
        ("best", (("abc", "bc"), ("abc", "ab"))),
        ("worst", (("abc", "abc"), ("bc", "ac"))),
        ("best-worst", (("abc", "abc"), ("abc",))),
        ("order", (("abc", "bc"), ("abc",))),
    )
    for formula, people in (
        ("region", ((0, "n", 0.0), (1, "s", 8.0), (0, "s", 5.0))),
        ("region + age", ((0, "n", 0.0), (1, "n", 8.0), (0, "s", 5.0), (1, "s", 1.0))),
    )
}
UNANSWERED = {
    "silence": Survey("best-worst", "abcd", (("abc", "bcd"), ("abd",)), TWO, silent=True),
    "silence, a set twice": Survey(
        "best-worst", "abcd", (("abc", "abc"), ("bcd",)), TWO, silent=True
    ),
    "silence, best": Survey("best", "abcd", (("abc", "bd"), ("abcd",)), TWO, silent=True),
    "silence, worst": Survey("worst", "abcd", (("abc", "abc"), ("cd",)), TWO, silent=True),
}
SURVEYS = PLAIN | GROUPS | UNANSWERED


@cache
def neighbours(name):
    """For each respondent who answers anything, the encoded data of all his answers."""
    survey = SURVEYS[name]
    found = []
    for person in range(len(survey.people)):
        given = first_answers(survey)
        if given[person]:
            own = survey.answers(person)
            found.append([survey.encode([*given[:person], a, *given[person + 1 :]]) for a in own])
    return found


def moves(name, statistic=answer_totals):
    """All changes of the exact statistic of the first stage between neighbours, by respondent."""
    for family in neighbours(name):
        totals = np.array([statistic(encoded) for encoded in family])
        every = (totals[:, None] - totals).reshape(-1, totals.shape[1])
        yield np.unique(every, axis=0)


def inner_sets(items):
    return np.array(list(itertools.product((0, 1), repeat=items)))[1:-1]


def copies(changes, items):
    """How many permutohedra, of all groups together, a change takes; every group has its own."""
    chosen = inner_sets(items)
    sizes = chosen.sum(axis=1)
    sums = changes.reshape(len(changes), -1, items) @ chosen.T
    return np.ceil((sums / (sizes * (items - sizes))).max(axis=2).round(9)).sum(axis=1)


def exceeded(changes, noise, items, epsilon=EPSILON):
    """By how much the changes exceed what the noise protects; at most 0 if it protects them."""
    steps = noise.fineness * changes
    if noise.name == "gaussian":
        longest = math.sqrt((changes**2).sum(axis=1).max())
        scale = noise.distribution.scale
        spent = integer_delta(scale, epsilon, longest, items, noise.fineness)
        return spent - DELTA
    if noise.name == "permutohedron":
        assert noise.sensitivity * noise.distribution.rate <= epsilon * (1 + 1e-12)
        return copies(steps, items).max() - noise.sensitivity
    assert noise.sensitivity <= epsilon * noise.distribution.scale * (1 + 1e-12)
    return np.abs(steps).sum(axis=1).max() - noise.sensitivity


def noise_of(design, name, sensitivity=None):
    """The noise that a plan gives to the vectors of this design."""
    sensitivity = design.sensitivity if sensitivity is None else sensitivity
    facts = design.covariates
    if facts is not None and facts.bounds:
        return weighted_noise(sensitivity, facts.weight, EPSILON)
    return net_noise(sensitivity, name, EPSILON, DELTA)


# The first stage


@pytest.mark.parametrize("name", SURVEYS)
def test_no_respondent_moves_the_totals_further_than_the_noise_protects(name):
    design = neighbours(name)[0][0].design
    items = len(design.items)
    for changes in moves(name):
        for kind in design.sensitivity.noises:
            assert exceeded(changes, noise_of(design, kind), items) <= 0


@pytest.mark.parametrize("name", PLAIN)
def test_some_respondent_moves_the_totals_as_far_as_laplace_noise_protects(name):
    design = neighbours(name)[0][0].design
    noise = noise_of(design, "laplace")
    items = len(design.items)
    assert max(exceeded(changes, noise, items) for changes in moves(name)) == 0


@pytest.mark.parametrize("name", UNANSWERED)
def test_answers_and_silence_move_as_far_as_their_noise_protects(name):
    survey = SURVEYS[name]
    named = 2 if survey.answer == "best-worst" else 1

    def both(encoded):
        return np.concatenate((answer_totals(encoded), named * answered_tasks(encoded)))

    farthest = max(int(np.abs(changes).sum(axis=1).max()) for changes in moves(name, both))
    model = survey.model(first_answers(survey))
    release = model.fit(EPSILON, rng=np.random.default_rng(1), dependence="none").release
    totals, answered = (release.plan.parts[part] for part in (names.NET, names.ANSWERED))
    # the losses of a step of T and of a step of k U, if an answer names k items
    assert farthest / totals.noise.scale / totals.step * 2.0 == pytest.approx(EPSILON)
    assert farthest / (named * answered.noise.scale) == pytest.approx(EPSILON)


@pytest.mark.parametrize("name", SURVEYS)
def test_the_plan_of_a_fit_has_this_noise(name):
    survey = SURVEYS[name]
    model = survey.model(first_answers(survey))
    design = model._encoded.design
    for kind in NOISES[:1] if "age" in survey.formula else design.sensitivity.noises:
        delta = DELTA if kind == "gaussian" else 0.0
        noise = noise_of(design, kind)
        options = {"delta": delta, "dependence": "none", "allow_unidentified": True}
        result = model.fit(EPSILON, noise=kind, rng=np.random.default_rng(1), **options)
        part = result.release.plan.parts[names.NET]
        assert part.noise.variance == pytest.approx(noise.distribution.variance)
        assert (part.sensitivity, part.fineness) == (noise.sensitivity, noise.fineness)


@pytest.mark.parametrize("name", SURVEYS)
def test_public_facts_do_not_depend_on_answers(name):
    assert len(public_facts(neighbours(name))) == 1


def public_facts(families):
    """The offered sets and the version of each unit, of all encoded data."""
    return {(each.design.offered, tuple(each._version)) for family in families for each in family}


@pytest.mark.parametrize("name", SURVEYS)
def test_the_sum_of_the_totals_is_public(name):
    # zero-sum noise publishes it; it is not used if silence changes the sum
    design = neighbours(name)[0][0].design
    public = "zero-sum-laplace" in design.sensitivity.noises
    for changes in moves(name):
        sums = changes.reshape(len(changes), -1, len(design.items)).sum(axis=2)
        assert sums.any() != public


def test_respondents_without_any_task_have_nothing_to_protect():
    survey = Survey("best", "abc", ((),), ((0, "n", 0.0),) * 3)
    frame = survey.frame([()] * 3).assign(answer0=None)
    columns = {"offered": ["show1", "show2", "show3"], "best": "answer0", "respondent": "id"}
    tasks = pr.as_choices(frame, items=list("abc"), unanswered="public", **columns)
    for respondent in ("id", None):
        with pytest.raises(ValueError, match="at least one row that counts"):
            encode_tasks(
                tasks.drop(columns=[] if respondent else "id"), respondent=respondent, max_rows=1
            )


def test_a_row_is_a_unit_of_its_own():
    survey = PLAIN["best-worst"]
    base = [each for person in range(3) for each in survey.answers(person)[0]]
    shown = [each for person in range(3) for each in survey.tasks(person)]
    columns = ["show1", "show2", "show3", "best", "worst"]

    def totals(rows):
        frame = pd.DataFrame([(*s, *a) for s, a in zip(shown, rows, strict=True)], columns=columns)
        tasks = pr.as_choices(
            frame, offered=columns[:3], best="best", worst="worst", items=list("abcd")
        )
        encoded = encode_tasks(tasks, respondent=None, max_rows=1)
        assert encoded.design.sensitivity.net_l1 == 4
        return answer_totals(encoded)

    for row in range(len(base)):
        own = arrangements("best-worst", shown[row])
        found = np.array([totals([*base[:row], answer, *base[row + 1 :]]) for answer in own])
        assert np.abs(found[:, None] - found).sum(axis=2).max() == 4


# The second stage


@cache
def before_dependence(name, seed):
    """The release of the first stage, as the second stage is given it."""
    survey = SURVEYS[name]
    seen = []

    def look(encoded, release):
        seen.append(release)
        return largest_choice_effect(encoded, release)

    model = survey.model(first_answers(survey))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(comparisons, "largest_choice_effect", look)
        model.fit(4.0, dependence="worst", rng=np.random.default_rng(seed))
    (release,) = seen
    assert names.DEPENDENCE not in release.parts
    return release


SECOND = (
    "best, one pair",
    "best, a set twice",
    "best, no task",
    "worst",
    "best-worst, a set twice",
)
SECOND += ("best-worst, no task", "order, a set twice")
SECOND += tuple(UNANSWERED)
SECOND += ("best by region", "best-worst by region", "worst by region + age", "order by region")


def effects(name, seed=1):
    """The range of the statistic over all answers of each respondent, given one release."""
    release = before_dependence(name, seed)
    for family in neighbours(name):
        found = [int(largest_choice_effect(encoded, release)[0][0]) for encoded in family]
        yield max(found) - min(found)


@pytest.mark.parametrize("name", SECOND)
def test_no_respondent_moves_the_design_effect_by_more_than_its_steps(name):
    assert 0 < max(effects(name)) <= STEPS


def test_some_respondent_moves_the_design_effect_by_all_its_steps():
    farthest = max(max(effects("best, one pair", seed)) for seed in range(1, 6))
    assert farthest == STEPS


@pytest.mark.parametrize("name", SECOND)
def test_public_findings_do_not_depend_on_the_answers(name):
    release = before_dependence(name, 1)
    found = {
        str(largest_choice_effect(encoded, release)[1])
        for family in neighbours(name)
        for encoded in family[:3]
    }
    assert len(found) == 1


def long_orders(tasks, people):
    """Respondents who put the same hundred items in order, again and again."""
    sets = (tuple(range(100)),)
    shown = offered.Offered("order", sets, ((0,) * tasks,), (people,), (0,))
    items = tuple(map(str, range(100)))
    return Design(items, people, "respondent", tasks, False, False, "public", None, offered=shown)


def test_sums_of_squares_fit_into_64_bits():
    weights = np.ones((1, 1, 100))
    weights[0, 0, 50:] = -1.0
    for tasks, people in ((200, 1000), (2, 10**7), (2000, 10)):
        design = long_orders(tasks, people)
        assert requested_dependence(design, 1.0, "auto") == "worst"
        reach = int(round_contrasts(design, weights).farthest[0])
        assert people * reach**2 <= 2**60
    # squares of these would be wrapped at 64 bits, and the sensitivity would not hold
    design = long_orders(1000, 1000)
    assert 1000 * int(round_contrasts(design, weights).farthest[0]) ** 2 > 2**63
    for dependence in ("auto", "worst"):
        with pytest.raises(ValueError, match="dependence='none'"):
            requested_dependence(design, 1.0, dependence)
    assert requested_dependence(design, 1.0, "none") == "none"


def test_many_questionnaires_leave_differences_out():
    # after epsilon is spent, the ends of all contrasts have to fit into memory
    few, many = (
        Design(
            tuple(map(str, range(100))),
            people,
            "respondent",
            10,
            False,
            False,
            "public",
            None,
            offered=offered.Offered(
                "best-worst",
                tuple(sorted((k % 90, k % 90 + 1, k // 90 + 92) for k in range(700))),
                tuple(tuple((7 * k + j) % 700 for j in range(10)) for k in range(people)),
                (1,) * people,
                (0,) * people,
            ),
        )
        for people in (100, 10_000)
    )
    assert few.few_differences and not many.few_differences


# Planted faults: the enumeration above finds each of them


def too_far(kind, faulty):
    """The surveys in which a respondent moves the totals beyond the noise of a sensitivity."""
    found = set()
    for name in PLAIN:
        design = neighbours(name)[0][0].design
        items = len(design.items)
        noise = noise_of(design, kind, faulty(design))
        if any(exceeded(changes, noise, items) > 0 for changes in moves(name)):
            found.add(name)
    return found


@pytest.mark.parametrize("kind", NOISES)
def test_row_sensitivity_for_a_respondent_is_found(kind):
    def of_rows(design):
        sets = design.offered.sets
        one = tuple((k,) for k in range(len(sets)))
        ones = (1,) * len(sets)
        rows = replace(design.offered, versions=one, units=ones, patterns=ones)
        return offered.offered_sensitivity(len(design.items), rows)

    assert {"best-worst, a set twice", "order, a set twice"} <= too_far(kind, of_rows)


@pytest.mark.parametrize(
    ("kind", "quantity"),
    [(NOISES[0], "half"), (NOISES[1], "half"), (NOISES[2], "body"), (NOISES[3], "square")],
)
def test_the_average_version_is_found(kind, quantity, monkeypatch):
    # half of the l1 sensitivity stays whole, so that it is even
    mean = {"half": "// len(parts)", "square": "/ len(parts)", "body": "/ len(parts)"}
    planted(
        monkeypatch,
        offered,
        "offered_sensitivity",
        f"max(part.{quantity} for part in parts)",
        f"sum(part.{quantity} for part in parts) {mean[quantity]}",
    )

    def average(design):
        return offered.offered_sensitivity(len(design.items), design.offered)

    assert "best-worst, a set twice" in too_far(kind, average)


def test_two_per_task_for_best_and_worst_are_found():
    def two(design):
        return replace(design.sensitivity, half=design.sensitivity.rows)

    for kind in NOISES[:2]:
        assert too_far(kind, two) >= {name for name in PLAIN if name.startswith("best-worst")}


def test_a_multiple_from_single_items_is_found():
    def single(design):
        body = Fraction(design.sensitivity.single, len(design.items) - 1)
        return replace(design.sensitivity, body=body)

    assert "best, pairs apart" in too_far("permutohedron", single)


EFFECTS = {
    "off the midpoint": (choices, "_squares", "- middle[encoded._version[here]]", "- 0"),
    "the midpoint of the largest sums": (
        choices,
        "_squares",
        "contrasts.high + contrasts.low",
        "contrasts.high",
    ),
    "the smallest version": (choices.ChoiceContrasts, "farthest", ".max(axis=0)", ".min(axis=0)"),
    "answers alone": (choices, "round_contrasts", "end + whole[:, value, -1]", "end + 0"),
    "one end alone": (choices.ChoiceContrasts, "farthest", "self.high - self.low", "self.high"),
}


@pytest.mark.parametrize("name", EFFECTS)
def test_a_faulty_design_effect_is_found(name, monkeypatch):
    planted(monkeypatch, *EFFECTS[name])
    ranges = (max(effects(each, seed)) for each in SECOND for seed in (1, 2, 3))
    assert any(moved > STEPS for moved in ranges)


def test_sets_read_off_the_answers_are_found(monkeypatch):
    planted(
        monkeypatch,
        reader,
        "encode_tasks",
        "person, pattern, shown, answer_of",
        "person, pattern, chosen, answer_of",
    )
    monkeypatch.setattr(reader, "check_connected", lambda pairs, items: None)
    survey = PLAIN["best-worst of four"]
    given = first_answers(survey)
    own = arrangements("best-worst", survey.tasks(0)[0])
    family = [
        reader.encode_tasks(survey.convert([(a,), *given[1:]]), respondent="id", max_rows=2)
        for a in own
    ]
    assert len(public_facts([family])) > 1


def test_dropped_silent_tasks_are_found_and_refused():
    survey = PLAIN["best-worst"]
    given = first_answers(survey)
    silent = [(given[0][0], (None, None)), *given[1:]]
    # stated as public, silence is a public fact: an answer that decided it would show
    assert len(public_facts([[survey.encode(given), survey.encode(silent)]])) == 2
    columns = {"offered": ["show1", "show2", "show3"], "best": "answer0", "worst": "answer1"}
    with pytest.raises(ValueError, match="at least one task lacks one"):
        pr.as_choices(survey.frame(silent), items=list("abcd"), respondent="id", **columns)
    # stated as private, it is not: every respondent keeps every task
    private = replace(survey, silent=True)
    assert len(public_facts([[private.encode(given), private.encode(silent)]])) == 1
