"""Plans of choices from offered sets: balanced questionnaires, and the power of their fits."""

import math
import re
import time
from collections import Counter
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import privrank as pr
from privrank import btl
from privrank.encode.choices import encode_tasks
from privrank.hypotheses.nulls import public_generator
from privrank.power.base import DesignPoint
from privrank.power.comparisons import simulated_choices

ANSWERS = ("best", "worst", "best-worst", "order")
# three versions, of which one shows a set twice and one has fewer tasks
UNEVEN = {
    "x": [["a", "b", "c"], ["b", "c", "d", "e"], ["a", "b", "c"]],
    "y": [["a", "d", "e"], ["c", "d", "a"], ["b", "e", "d"]],
    "z": [["e", "a", "c", "b"]],
}
LETTERS = list("abcde")


def sets_of(plan):
    """Return the sets of each version."""
    return [part.iloc[:, 2:].astype(str).to_numpy() for _, part in plan.groupby("version")]


def spread(sets):
    """Return the frequencies of items and of pairs, smallest and largest."""
    items = Counter()
    pairs = Counter()
    for shown in sets:
        assert len(set(shown)) == len(shown)
        items.update(shown)
        pairs.update(frozenset(pair) for pair in combinations(shown, 2))
    every = [pairs[frozenset(pair)] for pair in combinations(items, 2)]
    return min(items.values()), max(items.values()), min(every), max(every)


def utilities(facts, worths, number):
    """Return the utilities of a simulated survey, drawn as documented, and versions."""
    felt = []
    version = []
    for place, units in enumerate(facts.offered.units):
        rng = public_generator("survey, sets", number, place)
        felt.append(worths + rng.gumbel(size=(units, len(worths))))
        version += [place] * units
    return np.concatenate(felt), version


def frame_of(plan, answer, felt, names):
    """Return the choices of respondents with these utilities; respondent i has version i mod V."""
    plan = {v: [list(s) for s in sets] for v, sets in plan.items()}
    versions = list(plan)
    rows = []
    for person, worths in enumerate(felt):
        version = versions[person % len(versions)]
        row = {"v": version}
        for task, shown in enumerate(plan[version], 1):
            order = sorted(shown, key=lambda item: -worths[names.index(item)])
            row |= {f"best_{task}": order[0], f"worst_{task}": order[-1]}
            row |= {f"place_{place}_{task}": item for place, item in enumerate(order, 1)}
        rows.append(row)
    size = max(len(shown) for sets in plan.values() for shown in sets)
    if answer == "order":
        named = {"places": [f"place_{place}_{{task}}" for place in range(1, size + 1)]}
    else:
        named = {role: f"{role}_{{task}}" for role in answer.split("-")}
    columns = [name.removesuffix("_{task}") for name in np.hstack(list(named.values()))]
    tasks = range(1, 1 + max(map(len, plan.values())))
    frame = pd.DataFrame(rows).reindex(
        columns=["v", *(f"{column}_{task}" for column in columns for task in tasks)]
    )
    return pr.as_choices(frame, offered=plan, version="v", items=names, **named)


@pytest.mark.parametrize(
    ("items", "size", "tasks", "together"),
    [(7, 3, 7, 1), (7, 4, 7, 2), (13, 4, 13, 1), (9, 3, 12, 1), (11, 5, 11, 2), (6, 3, 10, 2)],
)
def test_known_designs_follow(items, size, tasks, together):
    (sets,) = sets_of(pr.power.balanced_plan(items, size, tasks))
    shown = size * tasks // items
    assert spread(sets) == (shown, shown, together, together)
    assert len({frozenset(one) for one in sets}) == tasks


def test_versions_are_balanced_and_different_and_fast():
    started = time.perf_counter()
    plan = pr.power.balanced_plan(8, 4, 10, versions=30)
    assert time.perf_counter() - started < 3.0
    assert list(plan.columns) == ["version", "task", "item 1", "item 2", "item 3", "item 4"]
    assert len(plan) == 300 and plan.groupby("version")["task"].apply(list).map(len).eq(10).all()
    versions = sets_of(plan)
    assert {spread(sets) for sets in versions} == {(5, 5, 2, 3)}
    assert len({frozenset(map(frozenset, sets)) for sets in versions}) > 20
    low, high = spread(np.concatenate(versions))[2:]
    assert 50 < low <= high < 80  # 64 on average
    # each item is shown in each place
    assert plan["item 1"].value_counts().min() > 15


@pytest.mark.parametrize("facts", [(8, 3, 5), (10, 3, 7), (5, 5, 2), (4, 2, 3), (2, 2, 1)])
def test_frequencies_differ_by_one_where_the_design_is_not_even(facts):
    low, high, fewest, most = spread(sets_of(pr.power.balanced_plan(*facts))[0])
    assert high - low <= 1 and most - fewest <= 1


def test_a_plan_depends_on_its_arguments_alone_and_declares_its_items():
    names = ["tea", "milk", "juice", "water"]
    plan = pr.power.balanced_plan(names, 3, 4, versions=2, seed=5)
    pd.testing.assert_frame_equal(plan, pr.power.balanced_plan(names, 3, 4, versions=2, seed=5))
    assert not plan.equals(pr.power.balanced_plan(names, 3, 4, versions=2, seed=6))
    first = plan.set_index(["version", "task"])["item 1"].astype(str)
    wide = pd.DataFrame([{"v": v} | {f"b{t}": first[v, t] for t in range(1, 5)} for v in (1, 2)])
    tasks = pr.as_choices(wide, offered=plan, version="v", best="b{task}")
    assert list(tasks["best"].cat.categories) == names
    assert tasks["best"].tolist() == first.tolist()
    numbers = pr.power.balanced_plan([3, 1, 2], 2, 3)
    assert set(numbers["item 1"]) <= {1, 2, 3}


@pytest.mark.parametrize("answer", ANSWERS)
@pytest.mark.parametrize("nobs", [2, 60])
def test_a_simulated_fit_is_the_fit_of_its_choices(answer, nobs):
    design = pr.power.BTLPower(
        items=LETTERS, offered=UNEVEN, answer=answer, design="public", worths=1.0
    )
    assert design.max_rows == 3
    at = DesignPoint(nobs=nobs, epsilon=math.inf, effect=0.6, delta=0.0, alpha=0.05)
    facts = design._facts(nobs, math.inf)
    worths = design._worths(0.6)
    felt, version = utilities(facts, worths, 3)
    # the versions of a release are sorted: find the respondents of each
    plain = encode_tasks(
        frame_of(UNEVEN, answer, np.zeros((nobs, 5)), LETTERS), respondent="respondent", max_rows=3
    )
    assert plain.design.offered == facts.offered
    turned = np.empty_like(felt)
    for place in set(version):
        turned[plain._version == place] = felt[np.array(version) == place]
    frame = frame_of(UNEVEN, answer, turned, LETTERS)
    own = encode_tasks(frame, respondent="respondent", max_rows=3)
    simulated = simulated_choices(facts, worths, 3)
    order = np.argsort(own._version, kind="stable")
    assert (own._totals[order] == simulated._totals).all()
    assert (own._version[order] == simulated._version).all()
    if nobs > 2:
        release = design._released(at, design._planned(at), worths, 3)
        fitted = pr.PrivateBTL(frame, respondent="respondent", max_rows=3, design="public")
        result = fitted.fit(math.inf)
        simulated = btl.infer(release)
        assert simulated.params.to_numpy() == pytest.approx(result.params.to_numpy(), abs=1e-8)
        assert simulated.bse.to_numpy() == pytest.approx(result.bse.to_numpy(), rel=1e-6)


@pytest.mark.parametrize(("answer", "nobs"), [("best-worst", 120), ("best", 220)])
def test_a_contrast_is_detected_as_often_as_predicted(answer, nobs):
    names = [str(k) for k in range(7)]
    table = pr.power.balanced_plan(7, 4, 7, versions=2)
    plan = {v: part.iloc[:, 2:].astype(str).to_numpy() for v, part in table.groupby("version")}
    worths = np.array([0.3, -0.3, 0, 0, 0, 0, 0])
    found = 0
    runs = 30
    for run in range(runs):
        rng = np.random.default_rng([4, run])
        frame = frame_of(plan, answer, worths + rng.gumbel(size=(nobs, 7)), names)
        model = pr.PrivateBTL(frame, respondent="respondent", max_rows=7, design="public")
        result = model.fit(1.0, rng=rng)
        found += result.t_test([1.0, -1.0, 0, 0, 0, 0, 0]).pvalue <= 0.05
    facts = {"items": 7, "design": "public", "replicates": 100}
    design = pr.power.BTLPower(**facts, offered=table, answer=answer)
    power = design.power(nobs=nobs, epsilon=1.0, contrast=0.6)
    assert 0.3 < power < 0.95
    error = math.hypot(math.sqrt(power * (1 - power) / runs), power.error)
    assert abs(found / runs - power) < 3.0 * error


def test_power_grows_and_the_other_quantities_follow_from_it():
    sets = pr.power.balanced_plan(7, 4, 7)
    plan = pr.power.BTLPower(7, offered=sets, design="public", replicates=20)
    by_size = [plan.power(nobs, 1.0, 0.5) for nobs in (40, 400)]
    assert by_size[0] + 0.3 < by_size[1]
    by_epsilon = [plan.power(100, epsilon, 0.5) for epsilon in (0.3, math.inf)]
    assert by_epsilon[0] + 0.2 < by_epsilon[1]
    assert plan.power(300, 1.0, 0.0) <= 0.2
    nobs = plan.solve_power(epsilon=2.0, contrast=0.8, power=0.8)
    assert nobs.words == "respondents" and 30 < nobs < 200
    assert plan.power(int(nobs), 2.0, 0.8) == pytest.approx(0.8, abs=0.1)


TWO = {"x": [["0", "1"], ["1", "2"]]}
PLAN = {"x": [["0", "1", "2"], ["1", "2", "3"]]}
APART = {"x": [["0", "1"]], "y": [["2", "3"]]}
FACTS = {"items": 4, "offered": PLAN, "design": "public"}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"design": "private"}, "State design='public'"),
        ({"unit": "row"}, "unit= must be left out for choices"),
        ({"ties": True}, "ties= must be left out for choices"),
        ({"ties": "davidson", "tie_rate": 0.2}, "ties=, tie_rate= must be left out"),
        ({"mode": "local", "design": "private"}, "mode= must be left out|setting of the central"),
        ({"max_rows": 3}, "largest number of tasks of a version, which is 2. Leave it out"),
        ({"answer": "ranks"}, "answer must be one of 'best', 'worst', 'best-worst', 'order'"),
        ({"offered": TWO, "items": 3}, "sets of at least three items"),
        ({"offered": APART, "answer": "best"}, "must connect all items"),
        ({"items": 3}, "is not listed in items"),
        ({"offered": [["0", "1"]]}, "offered must be a data frame|offered must"),
        ({"offered": {"x": [["0", "1", "1"]]}}, "repeats an item"),
        ({"offered": {}}, "offered must have at least one row"),
    ],
)
def test_plans_that_cannot_be_fitted_are_refused_briefly(changes, words):
    with pytest.raises((TypeError, ValueError), match=words) as refused:
        pr.power.BTLPower(**FACTS | changes)
    assert str(refused.value).count(". ") <= 2


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((4, 5, 3), "size must be between 2 and 4"),
        ((4, 1, 3), "size must be between 2 and 4"),
        ((101, 5, 3), "items must be between 2 and 100"),
        ((4, 3, 0), "tasks must be"),
        ((4, 3, 2, 0), "versions must be"),
        ((4, 3, 2, 1, -1), "seed must be"),
        ((4, 3, 2, 1, 0.5), "seed must be an integer"),
        ((["a", "a"], 2, 2), "items"),
    ],
)
def test_other_questionnaires_are_refused(arguments, words):
    with pytest.raises((TypeError, ValueError), match=words):
        pr.power.balanced_plan(*arguments)


def test_max_rows_may_be_stated_and_settings_of_fits_are_checked():
    assert pr.power.BTLPower(**FACTS, max_rows=2).max_rows == 2
    with pytest.raises(ValueError, match="for paired comparisons"):
        pr.power.BTLPower(**FACTS, dependence="pairs", replicates=20).power(50, 1.0, 0.5)


def test_the_guide_shows_numbers_of_respondents_with_the_stated_power():
    page = (Path(__file__).parents[2] / "docs" / "planning.md").read_text(encoding="utf-8")
    table = re.findall(r"^\| (?:5|10) \| [345] \| \d+ \| \d+ \| \d+ \|$", page, flags=re.M)
    (size,) = re.findall(r"^\| 10 \| 4 \| \d+ \| (\d+) \| \d+ \|$", page, flags=re.M)
    assert len(table) == 6 and f"# {size} respondents (Monte Carlo" in page
    sets = pr.power.balanced_plan(8, 4, 10, versions=10)
    plan = pr.power.BTLPower(8, offered=sets, design="public", replicates=100)
    power = plan.power(nobs=int(size), epsilon=1.0, contrast=0.5)
    assert abs(power - 0.8) <= 2.0 * power.error
