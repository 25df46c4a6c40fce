"""Offered sets: sensitivities against all answers of all neighbours of small plans."""

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from privrank.plans.choice import noise_choices
from privrank.privacy import offered as module
from privrank.privacy.accounting import integer_delta
from privrank.privacy.offered import (
    Offered,
    offered_sensitivity,
    position_scores,
    split_changes,
)
from privrank.privacy.sensitivity import net_noise

ANSWERS = ("best", "worst", "best-worst", "order")
NOISES = ("laplace", "zero-sum-laplace", "permutohedron", "gaussian")
PLANS = 240

FANO = ((0, 1, 2), (0, 3, 4), (0, 5, 6), (1, 3, 5), (1, 4, 6), (2, 3, 6), (2, 4, 5))
FANO_COMPLEMENTS = tuple(tuple(sorted(set(range(7)) - set(triple))) for triple in FANO)

# ten triples of six items that contain every pair twice, with item 0 in five and item 1 in five
TRIPLES = ("234", "235", "246", "257", "267", "347", "356", "367", "456", "457")
APART = tuple((int(k >= 5), *sorted(map(int, triple))) for k, triple in enumerate(TRIPLES))


def plan_of(answer, *versions):
    """Sets and questionnaires in the order that :class:`Offered` asks for."""
    sets = sorted({task for version in versions for task in version}, key=lambda t: (len(t), t))
    numbers = sorted({tuple(sorted(map(sets.index, version))) for version in versions})
    once = (1,) * len(numbers)
    return Offered(answer, tuple(sets), tuple(numbers), once, (0,) * len(numbers))


def task_lists(offered):
    return [[offered.sets[k] for k in version] for version in offered.versions]


def answers_to(answer, task, items):
    """The item vectors of all answers to a task, by name and not by position scores."""
    vectors = set()
    for order in itertools.permutations(task):
        vector = [0] * items
        if answer == "order":
            for first, second in itertools.combinations(order, 2):
                vector[first] += 1
                vector[second] -= 1
        if answer in ("best", "best-worst"):
            vector[order[0]] += 1
        if answer in ("worst", "best-worst"):
            vector[order[-1]] -= 1
        vectors.add(tuple(vector))
    return np.array(sorted(vectors))


def all_sums(parts):
    """Every sum of one row of each array."""
    sums = np.zeros((1, parts[0].shape[1]), dtype=np.int64)
    weights = 100 ** np.arange(sums.shape[1])
    for part in parts:
        both = (sums[:, None] + part).reshape(-1, sums.shape[1])
        # entries are far below 50, so the numbers differ if the vectors do
        sums = both[np.unique(both @ weights, return_index=True)[1]]
    return sums


def totals(answer, tasks, items):
    """T of one unit for all its answers."""
    return all_sums([answers_to(answer, task, items) for task in tasks])


def changes(answer, tasks, items):
    """The changes of T between all pairs of answers of one unit.

    Both units answer each task in every way, so a change is a sum of changes by task.
    """
    vectors = [answers_to(answer, task, items) for task in tasks]
    return all_sums([(part[:, None] - part).reshape(-1, items) for part in vectors])


def inner_sets(items):
    """All sets of items but the empty and the full one, as rows of 0 and 1."""
    return np.array(list(itertools.product((0, 1), repeat=items)))[1:-1]


def ratios(differences):
    """The largest sum over each inner set, and |A| (m - |A|)."""
    chosen = inner_sets(differences.shape[1])
    sizes = chosen.sum(axis=1)
    return (differences @ chosen.T).max(axis=0), sizes * (differences.shape[1] - sizes)


def multiple(differences):
    """The smallest multiple of the permutohedron that contains the differences."""
    largest, pairs = ratios(differences)
    return max(Fraction(int(a), int(b)) for a, b in zip(largest, pairs, strict=True))


def enumerated(items, offered):
    """Norms and body over all pairs of answers of all questionnaires."""
    moved = [changes(offered.answer, tasks, items) for tasks in task_lists(offered)]
    every = np.concatenate(moved)
    return {
        "l1": int(np.abs(every).sum(axis=1).max()),
        "linf": int(np.abs(every).max()),
        "square": int((every**2).sum(axis=1).max()),
        "body": multiple(every),
    }


def random_plan(rng, answer, most=5, tasks=3):
    items = int(rng.integers(3, most + 1))
    versions = []
    for _ in range(rng.integers(1, 4)):
        sizes = rng.integers(2, min(4, items) + 1, size=rng.integers(1, tasks + 1))
        versions.append(
            [tuple(sorted(rng.choice(items, size, replace=False).tolist())) for size in sizes]
        )
    return items, plan_of(answer, *versions)


@pytest.fixture(scope="module")
def cases():
    """Random small plans with all their changes enumerated."""
    rng = np.random.default_rng(20250611)
    plans = [random_plan(rng, ANSWERS[k % 4]) for k in range(PLANS)]
    return [(items, offered, enumerated(items, offered)) for items, offered in plans]


def bounded(monkeypatch, items, offered):
    """The sensitivities without any enumeration."""
    with monkeypatch.context() as patch:
        patch.setattr(module, "_CUTS", 0)
        return offered_sensitivity.__wrapped__(items, offered)


def test_sensitivities_are_the_maxima_over_all_neighbours(cases):
    for items, offered, truth in cases:
        sensitivity = offered_sensitivity(items, offered)
        assert sensitivity.net_l1 == truth["l1"]
        assert sensitivity.single == truth["linf"]
        assert sensitivity.net_linf == truth["linf"] + truth["linf"] % 2
        assert sensitivity.square == truth["square"]
        assert sensitivity.net_l2 == math.sqrt(truth["square"])
        assert sensitivity.net_permutohedra == truth["body"]
        assert sensitivity.effective_rows == max(map(len, offered.versions))
        assert (sensitivity.adjacency, sensitivity.distinct) == ("outcome", False)


def test_the_vector_of_one_unit_is_no_longer_than_stated(cases):
    attained = set()
    for items, offered, _ in cases:
        longest = max(
            int((totals(offered.answer, tasks, items) ** 2).sum(axis=1).max())
            for tasks in task_lists(offered)
        )
        stated = offered_sensitivity(items, offered).longest
        assert longest <= stated
        if longest == stated:
            attained.add(offered.answer)
    assert attained >= {"best", "worst"}


def test_changes_by_task_are_the_differences_of_all_pairs_of_answers():
    for answer in ANSWERS:
        tasks = [(0, 1, 2), (1, 2, 3)]
        vectors = totals(answer, tasks, 4)
        pairs = {tuple(u - v) for u in vectors for v in vectors}
        assert pairs == set(map(tuple, changes(answer, tasks, 4)))


def test_bounds_without_enumeration_are_never_too_small(cases, monkeypatch):
    larger = 0
    for items, offered, truth in cases:
        bound = bounded(monkeypatch, items, offered)
        assert bound.net_l1 >= truth["l1"]
        assert bound.net_l1 % 2 == 0
        assert bound.single == truth["linf"]
        assert bound.square >= truth["square"]
        assert bound.net_permutohedra >= truth["body"]
        larger += (bound.net_l1 > truth["l1"]) + (bound.square > truth["square"])
    assert larger > 0


def test_bounds_of_larger_plans_are_not_below_the_enumerated_maxima(monkeypatch):
    rng = np.random.default_rng(5)
    exact_l1 = 0
    larger = 0
    for k in range(100):
        items, offered = random_plan(rng, ANSWERS[k % 4], most=11, tasks=9)
        exact = offered_sensitivity(items, offered)
        bound = bounded(monkeypatch, items, offered)
        assert bound.single == exact.single
        assert bound.net_l1 >= exact.net_l1
        assert bound.square >= exact.square
        assert bound.net_permutohedra >= exact.net_permutohedra
        larger += bound.net_permutohedra > exact.net_permutohedra
        # certain if a random set of items leaves less than one task whole
        if offered.answer != "order" and all(
            sum(2.0 ** (1 - len(task)) for task in tasks) < 1 for tasks in task_lists(offered)
        ):
            assert bound.net_l1 == exact.net_l1
            exact_l1 += 1
    assert exact_l1 >= 10
    assert larger > 0


@pytest.mark.parametrize("answer", ANSWERS)
@pytest.mark.parametrize("size", [2, 3, 8])
def test_the_bound_of_one_task_is_the_same_as_its_enumeration(monkeypatch, answer, size):
    for items in (size, 9, 60):
        if items >= size:
            offered = plan_of(answer, [tuple(range(items - size, items))])
            exact = offered_sensitivity(items, offered)
            bound = bounded(monkeypatch, items, offered)
            assert bound.net_permutohedra == exact.net_permutohedra
            assert bound.net_l1 == exact.net_l1


def test_the_bound_of_orders_uses_the_largest_change_of_a_task(monkeypatch):
    # items 0 and 1 share a task, where both together move 8, and a single item moves 6
    tasks = [(0, 1, 2, 3), (0, 4, 5, 6), (0, 2, 4, 7), (1, 5, 6, 7), (1, 3, 4, 5)]
    offered = plan_of("order", tasks)
    exact = offered_sensitivity(8, offered)
    assert exact.net_permutohedra >= Fraction(8 + 4 * 6, 2 * 6) > Fraction(exact.single, 7)
    assert bounded(monkeypatch, 8, offered).net_permutohedra >= exact.net_permutohedra


def test_large_plans_are_bounded_instead_of_enumerated():
    rng = np.random.default_rng(3)
    versions = [[tuple(sorted(rng.choice(40, 5, replace=False).tolist())) for _ in range(12)]]
    sensitivity = offered_sensitivity(40, plan_of("best-worst", *versions))
    assert sensitivity.net_l1 == 4 * 12
    assert sensitivity.net_permutohedra >= Fraction(sensitivity.single, 39)
    whole = offered_sensitivity(200, plan_of("order", [tuple(range(200))]))
    # reversed order of 200 items: net wins 199, 197, ... change their signs
    assert whole.net_l1 == 2 * 200**2 // 2
    assert whole.net_permutohedra == 2


@pytest.mark.parametrize(
    ("answer", "scores", "inner"),
    [
        ("best", [1, 0, 0, 0], [1, 1, 1]),
        ("worst", [0, 0, 0, -1], [1, 1, 1]),
        ("best-worst", [1, 0, 0, -1], [2, 2, 2]),
        ("order", [3, 1, -1, -3], [6, 8, 6]),
    ],
)
def test_position_scores_and_the_changes_of_a_split(answer, scores, inner):
    assert position_scores(answer, 4).tolist() == scores
    assert split_changes(answer, 4).tolist() == [0, *inner, 0]
    for task_size in range(2, 7):
        values = position_scores(answer, task_size)
        for a in range(task_size + 1):
            extreme = values[:a].sum() - values[task_size - a :].sum()
            assert split_changes(answer, task_size)[a] == extreme


def test_sensitivities_do_not_depend_on_the_names_of_items_or_on_the_order_of_tasks():
    rng = np.random.default_rng(8)
    for k in range(40):
        items, offered = random_plan(rng, ANSWERS[k % 4], most=8, tasks=6)
        names = rng.permutation(items)
        renamed = [
            [tuple(sorted(names[list(task)].tolist())) for task in reversed(tasks)]
            for tasks in task_lists(offered)
        ]
        other = plan_of(offered.answer, *renamed)
        assert offered_sensitivity(items, other) == offered_sensitivity(items, offered)


# Numbers of known plans


def test_fano_triples_need_12_and_not_14():
    # no two colours split all seven lines, but six of them
    assert offered_sensitivity(7, plan_of("best", FANO)).net_l1 == 12
    assert offered_sensitivity(7, plan_of("best-worst", FANO)).net_l1 == 24
    assert enumerated_l1_by_signs("best", FANO, 7) == 12


def enumerated_l1_by_signs(answer, tasks, items):
    """max |x|_1 over signs: for each sign vector every task is answered at its best and worst."""
    largest = 0
    for signs in itertools.product((-1, 1), repeat=items):
        gains = [answers_to(answer, task, items) @ signs for task in tasks]
        largest = max(largest, sum(int(gain.max() - gain.min()) for gain in gains))
    return largest


def test_signs_give_the_l1_sensitivity_of_the_random_plans(cases):
    for items, offered, truth in cases[:80]:
        by_version = [
            enumerated_l1_by_signs(offered.answer, tasks, items) for tasks in task_lists(offered)
        ]
        assert max(by_version) == truth["l1"]


def enumerated_l1_with_silence(tasks, items):
    """max |x|_1 + 2 |u| over signs, where any task may be unanswered, for best-worst answers."""
    largest = 0
    for *signs, direction in itertools.product((-1, 1), repeat=items + 1):
        moved = 0
        for task in tasks:
            # an answer adds to T and 2 U, and silence adds nothing
            gains = np.append(answers_to("best-worst", task, items) @ signs + 2 * direction, 0)
            moved += int(gains.max() - gains.min())
        largest = max(largest, moved)
    return largest


def test_answers_and_silence_together_have_the_stated_sensitivity(cases, monkeypatch):
    larger = 0
    for items, offered, truth in cases:
        if offered.answer != "best-worst" or min(map(len, offered.sets)) < 3:
            continue
        silent = replace(offered, unanswered="private")
        together = max(enumerated_l1_with_silence(tasks, items) for tasks in task_lists(offered))
        assert offered_sensitivity(items, silent).net_l1 == together
        assert bounded(monkeypatch, items, silent).net_l1 >= together
        larger += together > truth["l1"]
    silent = replace(plan_of("best-worst", FANO), unanswered="private")
    assert enumerated_l1_with_silence(FANO, 7) == offered_sensitivity(7, silent).net_l1 == 26


def test_noise_that_does_not_protect_silence_is_refused():
    silent = replace(plan_of("best-worst", FANO_COMPLEMENTS), unanswered="private")
    sensitivity = offered_sensitivity(7, silent)
    assert {noise.name for noise in noise_choices(sensitivity, 1.0, 1e-6)} == set(NOISES[:2])
    for name in NOISES[2:]:
        with pytest.raises(ValueError, match="no proof for totals and answered tasks"):
            net_noise(sensitivity, name, 1.0, 1e-6)


def test_one_ranking_of_three_of_ten_costs_8():
    sensitivity = offered_sensitivity(10, plan_of("order", [(2, 5, 7)]))
    assert sensitivity.net_l1 == 8
    # the bound of three comparisons whose pairs are not known
    assert 4 * min(3, 10**2 // 4) == 12


@pytest.mark.parametrize(
    ("answer", "l1"), [("best", 2), ("worst", 2), ("best-worst", 4), ("order", 24)]
)
def test_one_row_of_five_items(answer, l1):
    assert offered_sensitivity(9, plan_of(answer, [(0, 2, 3, 5, 8)])).net_l1 == l1


def test_single_items_give_714_where_833_is_needed():
    counts = np.bincount(np.concatenate(APART))
    assert counts.tolist() == [5] * 8
    sensitivity = offered_sensitivity(8, plan_of("best", APART))
    assert sensitivity.net_permutohedra == Fraction(5, 6)
    assert Fraction(sensitivity.single, 7) == Fraction(5, 7)
    # every task shows item 0 or item 1, so two sets of answers differ by 10 in their sum
    assert sum((0 in task) != (1 in task) for task in APART) == 10


def test_balanced_pairs_need_no_more_than_single_items():
    sensitivity = offered_sensitivity(7, plan_of("best-worst", FANO_COMPLEMENTS))
    assert sensitivity.net_l1 == 28
    assert sensitivity.net_permutohedra == Fraction(2 * 4, 6)


def noise_variance(noise):
    return noise.distribution.variance / noise.fineness**2


def test_noise_variances_of_two_plans():
    # 30 versions: the plan with two items apart, under different names of the items
    rng = np.random.default_rng(1)
    versions = []
    for _ in range(30):
        names = rng.permutation(8)
        versions.append([tuple(sorted(names[list(task)].tolist())) for task in APART])
    wide = offered_sensitivity(8, plan_of("best-worst", *versions))
    assert (wide.net_l1, wide.net_permutohedra) == (40, Fraction(5, 3))
    assert noise_variance(net_noise(wide, "zero-sum-laplace", 1.0)) == pytest.approx(2328, rel=5e-3)
    assert noise_variance(net_noise(wide, "permutohedron", 1.0)) == pytest.approx(2534, rel=5e-3)
    assert noise_choices(wide, 1.0, 0.0)[0].name == "zero-sum-laplace"
    balanced = offered_sensitivity(7, plan_of("best-worst", FANO_COMPLEMENTS))
    zero_sum, body = (net_noise(balanced, name, 1.0) for name in NOISES[1:3])
    assert noise_variance(zero_sum) == pytest.approx(1089, rel=5e-3)
    assert noise_variance(body) == pytest.approx(929, rel=5e-3)
    assert noise_choices(balanced, 1.0, 0.0)[0].name == "permutohedron"


# Noise


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1.0, 20.0])
def test_noise_protects_every_change(cases, epsilon):
    delta = 1e-6
    for items, offered, truth in cases[::12]:
        sensitivity = offered_sensitivity(items, offered)
        largest, sizes = ratios(
            np.concatenate([changes(offered.answer, tasks, items) for tasks in task_lists(offered)])
        )
        for name in NOISES:
            noise = net_noise(sensitivity, name, epsilon, delta)
            assert noise.name == name
            assert noise.sensitivity % 2 == 0
            fine = noise.fineness
            if name == "gaussian":
                assert noise.sensitivity >= fine * truth["linf"]
                l2 = math.sqrt(truth["square"])
                scale = noise.distribution.scale
                assert integer_delta(scale, epsilon, l2, items, fine) <= delta
            elif name == "permutohedron":
                # the change is in `sensitivity` copies of the permutohedron, one rate each
                assert (fine * largest <= noise.sensitivity * sizes).all()
                assert noise.sensitivity * noise.distribution.rate <= epsilon
            else:
                assert noise.sensitivity >= fine * truth["l1"]
                assert noise.sensitivity <= epsilon * noise.distribution.scale * (1 + 1e-12)


def test_gaussian_noise_without_a_finer_lattice_has_whole_steps():
    # one item moves by an odd number, which net_noise would refuse
    sensitivity = offered_sensitivity(4, plan_of("best", [(0, 1, 2)]))
    assert sensitivity.single == 1
    noise = net_noise(sensitivity, "gaussian", 1e-5, 1e-6)
    assert (noise.fineness, noise.sensitivity) == (1, 2)


def test_groups_need_no_more_than_the_whole():
    # a unit stays in its group, so the vectors of two groups differ in one of them
    tasks = [(0, 1, 2), (0, 2, 3)]
    vectors = totals("best-worst", tasks, 4)
    sensitivity = offered_sensitivity(4, plan_of("best-worst", tasks))
    moved = 0
    for group in (0, 1):
        for u, v in itertools.product(vectors, repeat=2):
            change = np.zeros((2, 4), dtype=np.int64)
            change[group] = u - v
            moved = max(moved, int(np.abs(change).sum()))
    assert moved == sensitivity.net_l1


def silent_changes(answer, tasks, items):
    """Changes of T if each task may be left unanswered, which adds 0."""
    nothing = np.zeros((1, items), dtype=np.int64)
    vectors = [np.concatenate([answers_to(answer, task, items), nothing]) for task in tasks]
    return all_sums([(part[:, None] - part).reshape(-1, items) for part in vectors])


def test_private_silence_is_within_the_bounds_for_symmetric_scores_alone(cases):
    for items, offered, truth in cases[2:80:4] + cases[3:80:4]:
        assert offered.answer in ("best-worst", "order")
        for tasks in task_lists(offered):
            moved = silent_changes(offered.answer, tasks, items)
            assert np.abs(moved).sum(axis=1).max() <= truth["l1"]
            assert (moved**2).sum(axis=1).max() <= truth["square"]
            assert multiple(moved) <= truth["body"]
    # three pairs of three items: no set of items splits all of them
    pairs = [(0, 1), (0, 2), (1, 2)]
    moved = silent_changes("best", pairs, 3)
    assert np.abs(moved).sum(axis=1).max() == 5
    assert offered_sensitivity(3, plan_of("best", pairs)).net_l1 == 4


# Planted faults: the enumeration refuses each of them


def row_for_respondent(items, offered):
    rows = [[task] for tasks in task_lists(offered) for task in tasks]
    return offered_sensitivity(items, plan_of(offered.answer, *rows))


def refused(cases, quantity, faulty):
    """Number of plans for which a faulty sensitivity is below the enumerated maximum."""
    return sum(faulty(items, offered) < truth[quantity] for items, offered, truth in cases)


def test_row_sensitivity_for_a_respondent_is_refused(cases):
    several = [case for case in cases if max(map(len, case[1].versions)) > 1]
    assert len(several) > PLANS // 2
    wrong = {
        "l1": lambda items, offered: row_for_respondent(items, offered).net_l1,
        "body": lambda items, offered: row_for_respondent(items, offered).net_permutohedra,
        "square": lambda items, offered: row_for_respondent(items, offered).square,
    }
    assert refused(several, "l1", wrong["l1"]) > len(several) * 0.9
    assert refused(several, "body", wrong["body"]) > len(several) * 0.9
    assert refused(several, "square", wrong["square"]) > len(several) * 0.9


def average_version(items, offered, name):
    single = [
        getattr(offered_sensitivity(items, plan_of(offered.answer, tasks)), name)
        for tasks in task_lists(offered)
    ]
    return Fraction(sum(single), len(single))


def test_the_average_version_is_refused(cases):
    several = [case for case in cases if len(case[1].versions) > 1]
    for quantity, name in (("l1", "net_l1"), ("body", "net_permutohedra"), ("square", "square")):
        missed = refused(
            several,
            quantity,
            lambda items, offered, name=name: average_version(items, offered, name),
        )
        assert missed > len(several) // 2
    # the largest version is enough
    for items, offered, truth in several:
        parts = [
            offered_sensitivity(items, plan_of(offered.answer, t)) for t in task_lists(offered)
        ]
        assert max(part.net_l1 for part in parts) == truth["l1"]


def two_per_task(items, offered):
    return 2 * max(map(len, offered.versions))


def test_two_per_task_is_refused_for_best_and_worst_together(cases):
    both = [case for case in cases if case[1].answer == "best-worst"]
    one = [case for case in cases if case[1].answer in ("best", "worst")]
    assert refused(both, "l1", two_per_task) == len(both) == PLANS // 4
    assert refused(one, "l1", two_per_task) == 0


def single_items(items, offered):
    return Fraction(offered_sensitivity(items, offered).single, items - 1)


def test_a_multiple_from_single_items_is_refused(cases):
    assert refused(cases, "body", single_items) > 0
    # every task shows one of two items, and every item is shown twice
    rng = np.random.default_rng(6)
    apart = []
    for k in range(20):
        others = np.concatenate([rng.permutation(np.arange(2, 6)) for _ in range(2)]).reshape(4, 2)
        tasks = [
            (first, *sorted(pair))
            for first, pair in zip((0, 0, 1, 1), others.tolist(), strict=True)
        ]
        offered = plan_of(ANSWERS[k % 4], tasks)
        apart.append((6, offered, enumerated(6, offered)))
    assert refused(apart, "body", single_items) == 20
    for items, offered, truth in apart:
        assert offered_sensitivity(items, offered).net_permutohedra == truth["body"]


def test_a_local_search_may_miss_the_maximum():
    """A cut that no single move improves is below the l1 sensitivity, so it is not a bound."""
    tasks = [(0, 1), (2, 3), (0, 2), (1, 3)]
    exact = offered_sensitivity(4, plan_of("best", tasks)).net_l1

    def cut(chosen):
        return 2 * sum((i in chosen) != (j in chosen) for i, j in tasks)

    stuck = {0, 1}
    assert max(cut(stuck ^ {item}) for item in range(4)) <= cut(stuck) < exact == cut({0, 3})
