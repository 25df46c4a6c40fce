"""The norm of the scores of choices: privacy by enumeration, and its distribution under H0.

Small plans are drawn, all answers of all their units are enumerated, and means and covariances are
computed from the probabilities of all answers.
"""

import itertools
import math

import numpy as np
import pytest
from planting import planted

from privrank.mechanisms import choices
from privrank.mechanisms.choices import score_norm
from privrank.privacy import offered
from privrank.privacy.offered import Offered, largest_square, position_scores
from privrank.release.survey import Design

ANSWERS = ("best", "worst", "best-worst", "order")


def design_of(answer, items, versions, units):
    """The design of questionnaires with these sets and numbers of units."""
    sets = sorted({task for version in versions for task in version}, key=lambda s: (len(s), s))
    merged = {}
    for version, number in zip(versions, units, strict=True):
        places = tuple(sorted(sets.index(task) for task in version))
        merged[places] = merged.get(places, 0) + number
    plan = Offered(answer, tuple(sets), (*merged,), (*merged.values(),), (0,) * len(merged))
    rows = max(map(len, versions))
    names = tuple("abcdefghij"[:items])
    n = sum(units)
    return Design(names, n, "respondent", rows, False, False, "public", None, offered=plan)


def is_connected(items, versions):
    found = {0}
    for _ in range(items):
        for task in itertools.chain(*versions):
            found |= {*task} if found & {*task} else set()
    return len(found) == items


def drawn_plan(answer, seed):
    """A random plan of up to five items that connects them, and worths of these."""
    rng = np.random.default_rng(seed)
    while True:
        items = int(rng.integers(3, 6))
        versions = []
        for _ in range(rng.integers(1, 4)):
            sizes = rng.integers(3 if answer == "best-worst" else 2, 5, rng.integers(1, 3))
            versions.append([task_of(items, min(size, items), rng) for size in sizes])
        if is_connected(items, versions):
            units = rng.integers(1, 3, len(versions)).tolist()
            worths = rng.normal(0.0, 1.0, items) if seed % 2 else np.zeros(items)
            return design_of(answer, items, versions, units), tuple(worths.tolist())


def task_of(items, size, rng):
    return tuple(sorted(rng.choice(items, size, replace=False).tolist()))


def arrangements(answer, shown, items):
    """The item vectors of all answers to a set, and the items from best to worst of each."""
    scores = position_scores(answer, len(shown))
    found = {}
    for order in itertools.permutations(shown):
        vector = np.zeros(items, dtype=np.int64)
        vector[list(order)] = scores
        found.setdefault(tuple(vector.tolist()), order)
    return found


def vectors(design, version):
    """The distinct item vectors of all answers of a unit."""
    items = len(design.items)
    every = [arrangements(design.offered.answer, design.offered.sets[k], items) for k in version]
    sums = {tuple(np.sum(one, axis=0).tolist()) for one in itertools.product(*every)}
    return np.array(sorted(sums))


def farthest(design, statistic, bases=20, seed=1):
    """The largest change of the statistic by one unit, in many surveys of the other units."""
    rng = np.random.default_rng(seed)
    plan = design.offered
    own = [vectors(design, version) for version in plan.versions]
    units = np.repeat(np.arange(len(own)), plan.units)
    largest = 0
    for _ in range(bases):
        drawn = [own[k][rng.integers(len(own[k]))] for k in units]
        for unit, k in enumerate(units):
            others = np.sum(drawn, axis=0) - drawn[unit]
            found = [statistic.value(others + vector, ()) for vector in own[k]]
            largest = max(largest, max(found) - min(found))
    return largest


def largest_image(design, weights):
    """The largest |V x|^2 over all changes of all units."""
    largest = 0
    for version in design.offered.versions:
        own = vectors(design, version) @ weights.T
        apart = (own[:, None] - own).astype(float)
        largest = max(largest, (apart**2).sum(axis=2).max())
    return largest


CASES = [(answer, seed) for answer in ANSWERS for seed in range(20)]


@pytest.mark.parametrize(("answer", "seed"), CASES)
def test_no_unit_moves_the_statistic_by_more_than_its_sensitivity(answer, seed):
    design, worths = drawn_plan(answer, seed)
    statistic = score_norm(design, worths)
    assert 0 < farthest(design, statistic) <= statistic.sensitivity


@pytest.mark.parametrize(("answer", "seed"), CASES)
def test_the_sensitivity_is_that_of_all_answers(answer, seed, monkeypatch):
    design, worths = drawn_plan(answer, seed)
    facts = score_norm(design, worths).value.keywords
    exact = largest_image(design, facts["weights"])
    assert exact <= facts["square"] <= exact * (1 + 2e-5)
    # too many orders to enumerate
    monkeypatch.setattr(offered, "_CUTS", 0)
    offered.offered_sensitivity.cache_clear()
    bound = largest_square(len(design.items), design.offered, facts["weights"])
    offered.offered_sensitivity.cache_clear()
    assert exact <= bound


def test_the_bound_is_exact_for_balanced_plans(monkeypatch):
    sets = [list(itertools.combinations(range(4), 3))]
    for answer in ANSWERS:
        design = design_of(answer, 4, sets, [6])
        facts = score_norm(design, (0.0,) * 4).value.keywords
        monkeypatch.setattr(offered, "_shown", lambda plan: range(100))
        bound = largest_square(4, design.offered, facts["weights"])
        monkeypatch.undo()
        assert bound == pytest.approx(facts["square"], rel=3e-5)


def test_some_unit_moves_the_statistic_by_all_its_steps():
    design = design_of("best", 2, [[(0, 1)]], [2])
    statistic = score_norm(design, (0.0, 0.0))
    assert farthest(design, statistic) >= statistic.sensitivity - 1


def is_exceeded():
    """Whether in some plan a unit moves the statistic too far."""
    for answer, seed in itertools.product(ANSWERS, range(40)):
        design, worths = drawn_plan(answer, seed)
        statistic = score_norm(design, worths)
        if farthest(design, statistic, bases=40) > statistic.sensitivity:
            return True
    return False


FAULTS = {
    "the sensitivity of a task for a respondent": (
        "tuple(offered.sets[k] for k in version) for version in offered.versions if version",
        "(offered.sets[k],) for version in offered.versions for k in version",
    ),
    "the average questionnaire": (
        "largest = max(",
        "largest = (lambda found: np.mean([*found]))(",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_faulty_sensitivity_is_found(name, monkeypatch):
    planted(monkeypatch, offered, "largest_square", *FAULTS[name])
    monkeypatch.setattr(choices, "largest_square", offered.largest_square)
    assert is_exceeded()


# The distribution under H0


def probability(answer, order, worths):
    """The probability of an answer, up to a factor; `order` contains the items from the best."""
    v = np.array([worths[item] for item in order])
    if answer == "order":
        return math.prod(math.exp(v[k]) / np.exp(v[k:]).sum() for k in range(len(v)))
    return math.exp({"best": v[0], "worst": -v[-1], "best-worst": v[0] - v[-1]}[answer])


def tasks_of(design):
    """How often each set is shown."""
    plan = design.offered
    found = np.zeros(len(plan.sets), dtype=np.int64)
    for version, units in zip(plan.versions, plan.units, strict=True):
        np.add.at(found, list(version), units)
    return found


def answers_of(design, worths):
    """For each set: its tasks, the item vectors of its answers, and their probabilities."""
    plan = design.offered
    for tasks, shown in zip(tasks_of(design), plan.sets, strict=True):
        found = arrangements(plan.answer, shown, len(design.items))
        p = np.array([probability(plan.answer, order, worths) for order in found.values()])
        yield tasks, np.array([*found]), p / p.sum()


def moments(design, worths):
    """Mean and covariance of the item vector, from all answers."""
    mean, covariance = 0.0, 0.0
    for tasks, every, p in answers_of(design, worths):
        own = p @ every
        mean = mean + tasks * own
        covariance = covariance + tasks * ((every - own).T * p) @ (every - own)
    return mean, covariance


def direct(design, worths, totals):
    """The statistic by its definition."""
    mean, covariance = moments(design, worths)
    inverse = np.linalg.pinv(covariance, rcond=1e-9, hermitian=True)
    return math.sqrt((totals - mean) @ inverse @ (totals - mean))


def simulated(design, worths, rng):
    return sum(rng.multinomial(tasks, p) @ every for tasks, every, p in answers_of(design, worths))


def errors(build=score_norm):
    """By how many steps the statistic differs from its definition, in many plans."""
    for answer, seed in CASES:
        design, worths = drawn_plan(answer, seed)
        statistic = build(design, worths)
        totals = simulated(design, worths, np.random.default_rng(seed))
        yield abs(statistic.value(totals, ()) - direct(design, worths, totals) / statistic.step)


def test_the_statistic_is_that_of_its_definition():
    assert max(errors()) <= 1.1


def test_a_covariance_of_all_items_is_found(monkeypatch):
    planted(
        monkeypatch,
        choices,
        "score_norm",
        "unit**2 * linear.information(pairs.count * score.variance(t))",
        "offered.tasks * (np.eye(m) - 1.0 / m)",
    )
    assert max(errors(choices.score_norm)) > 50


@pytest.mark.parametrize("answer", ANSWERS)
def test_totals_are_drawn_with_their_mean_and_covariance(answer):
    design, worths = drawn_plan(answer, 3)
    draw = score_norm(design, worths).null.args[3]
    rng = np.random.default_rng(4)
    drawn = np.array([draw(rng) for _ in range(20_000)])
    mean, covariance = moments(design, worths)
    spread = np.sqrt(np.diag(covariance))
    assert (np.abs(drawn.mean(axis=0) - mean) <= 4.5 * spread / math.sqrt(len(drawn))).all()
    scale = np.outer(spread, spread)
    assert (np.abs(np.cov(drawn.T) - covariance) <= 0.05 * scale).all()


@pytest.mark.parametrize("answer", ANSWERS)
def test_orders_and_choices_are_drawn_with_their_probabilities(answer):
    design = design_of(answer, 3, [[(0, 1, 2)]], [1])
    worths = (0.8, 0.0, -0.5)
    draw = score_norm(design, worths).null.args[3]
    rng = np.random.default_rng(5)
    drawn = [tuple(draw(rng).tolist()) for _ in range(20_000)]
    ((_, every, p),) = answers_of(design, worths)
    shares = [drawn.count(tuple(answer.tolist())) / len(drawn) for answer in every]
    assert sum(shares) == pytest.approx(1.0)
    assert np.abs(np.array(shares) - p).max() <= 4.5 * 0.5 / math.sqrt(len(drawn))


def test_extreme_worths_give_finite_weights():
    design = design_of("best", 4, [[(0, 1, 2)], [(1, 2, 3)]], [20, 20])
    statistic = score_norm(design, (20.0, 0.0, 10.0, 5.0))
    assert 0 < farthest(design, statistic, bases=3) <= statistic.sensitivity
