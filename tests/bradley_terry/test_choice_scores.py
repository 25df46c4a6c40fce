"""Choices from sets: scores by edge, their moments by enumeration, and maximum likelihood."""

from decimal import Decimal, localcontext
from itertools import permutations

import numpy as np
import pytest
from scipy.optimize import approx_fprime, minimize
from scipy.special import expit, log_expit, logsumexp
from statsmodels.discrete.conditional_models import ConditionalLogit

from privrank.bradley_terry.choices import ChoiceScore
from privrank.bradley_terry.fit import (
    LOGISTIC_SCORE,
    LOGIT_MEAN_CURVATURE,
    UNIT_ROUNDOFF,
    EdgeLoss,
    Objective,
    fit_ridge,
)
from privrank.bradley_terry.inference import attainable
from privrank.bradley_terry.linear import LinearPredictor, item_contrasts
from privrank.distributions.links import PROBIT
from privrank.release.survey import PairCounts

ANSWERS = ("best", "worst", "best-worst", "order")
ONE_MODEL = ANSWERS[:3]
# sets of several sizes that share pairs; the third set is the first once more
SETS = ((0, 1, 2), (1, 2, 3, 4), (0, 1, 2), (0, 2, 3, 5), (1, 4, 5), (0, 1, 3, 4, 5))
ITEMS = 6


def represented(sets, answer, counts=None):
    """The edges of sets, with their counts, and the score function that knows the sets."""
    counts = np.ones(len(sets)) if counts is None else counts
    owner, first, second = [], [], []
    for place, shown in enumerate(sets):
        i, j = np.triu_indices(len(shown), 1)
        owner += [place] * len(i)
        first += list(np.array(shown)[i])
        second += list(np.array(shown)[j])
    owner = np.array(owner)
    pairs = PairCounts(np.array(first), np.array(second), counts[owner], "observed")
    where = np.argsort(np.argsort(first, kind="stable"))  # pair counts sort by the first item
    by_set = [where[owner == place] for place in range(len(sets))]
    groups = tuple(
        np.array([by_set[k] for k in range(len(sets)) if len(sets[k]) == size])
        for size in sorted({len(shown) for shown in sets})
    )
    return pairs, ChoiceScore(answer=answer, groups=groups)


def one_set(size, answer):
    return represented((tuple(range(size)),), answer)


def apart(worths):
    first, second = np.triu_indices(worths.shape[-1], 1)
    return worths[..., first] - worths[..., second]


def outcomes(answer, worths):
    """Scores of all answers for one set, not centred, and their probabilities."""
    s = len(worths)
    unit = np.eye(s)
    if answer == "order":
        orders = np.array(list(permutations(range(s))))
        scores = 0.5 * (s - 1 - 2.0 * np.argsort(orders, axis=1))
        sorted_worths = worths[orders]
        left = [logsumexp(sorted_worths[:, k:], axis=1) for k in range(s)]
        return scores, np.exp((sorted_worths - np.array(left).T).sum(axis=1))
    if answer == "best-worst":
        scores = np.array([unit[b] - unit[w] for b in range(s) for w in range(s) if b != w])
    else:
        scores = unit if answer == "best" else -unit
    log = scores @ worths
    return scores, np.exp(log - logsumexp(log))


def moments(answer, worths):
    """Mean of centred scores and their covariance, by enumeration."""
    scores, share = outcomes(answer, worths)
    mean = share @ scores
    return mean - scores.mean(axis=0), (scores - mean).T @ (share[:, None] * (scores - mean))


def allowed(answer):
    return range(3 if answer == "best-worst" else 2, 7)


@pytest.mark.parametrize("answer", ANSWERS)
def test_mean_and_variance_equal_enumeration(answer):
    rng = np.random.default_rng(1)
    for size in allowed(answer):
        pairs, score = one_set(size, answer)
        linear = item_contrasts(pairs, size)
        for spread in (0.0, 0.1, 1.0, 5.0):
            worths = rng.normal(0, spread, size)
            mean, covariance = moments(answer, worths)
            t = linear.predict(worths)
            np.testing.assert_allclose(linear.scores(score.mean(t)), mean, atol=3e-14)
            found = linear.information(score.variance(t))
            np.testing.assert_allclose(found, covariance, atol=3e-13)


def test_a_small_covariance_of_best_and_worst_has_small_errors():
    # the covariance of the first and last item, best and worst nearly always, is positive
    worths = np.array([20.0, 1.0, 0.0, -20.0])
    _, score = one_set(4, "best-worst")
    scores, share = outcomes("best-worst", worths)
    # with 1 - phi_0 and 1 + phi_3, 0 in nearly all answers, nothing cancels
    least = 1 - scores[:, 0]
    last = 1 + scores[:, 3]
    exact = share @ (least * last) - (share @ least) * (share @ last)
    assert -1e-12 < exact < 0
    assert score.curvature(apart(worths))[2] == pytest.approx(exact, rel=1e-9, abs=0)


@pytest.mark.parametrize("size", [2, 3, 7, 12])
def test_orders_at_equal_worths_vary_by_the_known_factor(size):
    _, score = one_set(size, "order")
    np.testing.assert_allclose(score.variance(np.zeros(size * (size - 1) // 2)), (size + 1) / 12)


@pytest.mark.parametrize("answer", ANSWERS)
def test_derivatives_agree_with_finite_differences(answer):
    counts = np.array([3.0, 1.0, 2.0, 7.0, 4.0, 2.0])
    pairs, score = represented(SETS, answer, counts)
    linear = item_contrasts(pairs, ITEMS)
    loss = EdgeLoss.matching(score, pairs.count)
    problem = Objective(np.zeros(ITEMS), linear, 0.0, loss)
    rng = np.random.default_rng(2)
    for spread in (0.1, 1.0, 3.0):
        worths = rng.normal(0, spread, ITEMS)
        np.testing.assert_allclose(
            problem.gradient(worths), approx_fprime(worths, problem.value, 1e-6), atol=2e-5
        )
        step = 1e-5 * np.eye(ITEMS)
        slopes = [problem.gradient(worths + e) - problem.gradient(worths - e) for e in step]
        found = linear.information(loss.curvature(linear.predict(worths)))
        np.testing.assert_allclose(found, np.array(slopes) / 2e-5, atol=1e-8)
        # rows of predictors are evaluated at once
        t = linear.predict(np.array([worths, np.zeros(ITEMS)]))
        for name in ("mean", "integral", "curvature", "variance"):
            both = getattr(score, name)(t)
            assert both.shape == t.shape
            np.testing.assert_allclose(both[0], getattr(score, name)(t[0]), rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("answer", ["best", "worst", "order"])
def test_sets_of_two_are_comparisons(answer):
    _, score = represented(((0, 1),) * 9, answer)
    t = np.array([0.0, 1e-9, -0.3, 1.0, -2.0, 5.0, 30.0, -100.0, 1e6])
    for name in ("mean", "integral", "curvature", "variance"):
        expected = getattr(LOGISTIC_SCORE, name)(t)
        np.testing.assert_allclose(getattr(score, name)(t), expected, rtol=1e-13, atol=1e-15)


def test_orders_of_three_have_twice_the_scores_of_best_and_worst():
    orders, _ = outcomes("order", np.zeros(3))
    named, _ = outcomes("best-worst", np.zeros(3))
    # scores of orders are half the net wins
    assert {tuple(2 * row) for row in orders} == {tuple(2 * row) for row in named}
    pairs, order = one_set(3, "order")
    _, both = one_set(3, "best-worst")
    np.testing.assert_allclose(order.variance(np.zeros(3)), both.variance(np.zeros(3)))
    # for other worths the model of the same statistic differs
    worths = np.array([0.4, -0.2, 0.9])
    linear = item_contrasts(pairs, 3)
    for score in (order, both):
        mean = linear.scores(score.mean(apart(worths)))
        np.testing.assert_allclose(mean, moments(score.answer, worths)[0], atol=1e-15)


@pytest.mark.parametrize("answer", ONE_MODEL)
def test_third_cumulants_equal_enumeration(answer):
    rng = np.random.default_rng(3)
    counts = np.array([3.0, 1.0, 2.0, 7.0, 4.0, 2.0])
    pairs, score = represented(SETS, answer, counts)
    linear = item_contrasts(pairs, ITEMS)
    worths = rng.normal(0, 1.0, (4, ITEMS))
    weights = rng.normal(0, 1.0, (4, ITEMS))
    expected = np.zeros(4)
    for row in range(4):
        for shown, count in zip(SETS, counts, strict=True):
            scores, share = outcomes(answer, worths[row, shown])
            values = scores @ weights[row, shown]
            expected[row] += count * share @ (values - share @ values) ** 3
    along = linear.predict(weights)
    found = score.third(linear.predict(worths), along, pairs.count)
    np.testing.assert_allclose(found, expected, rtol=1e-11)
    one = score.third(linear.predict(worths[1]), along[1:2], pairs.count)
    np.testing.assert_allclose(one, expected[1:2], rtol=1e-11)


def test_third_cumulants_of_orders_are_exact_to_first_order():
    rng = np.random.default_rng(9)
    for size in range(2, 7):
        pairs, score = one_set(size, "order")
        for spread, accuracy in ((1e-4, 1e-4), (0.1, 0.1)):
            worths = rng.normal(0, spread, size)
            weights = rng.normal(0, 1.0, size)
            scores, share = outcomes("order", worths)
            values = scores @ weights
            exact = share @ (values - share @ values) ** 3
            found = score.third(apart(worths), apart(weights)[None], pairs.count)
            size_of_terms = size**2 * (np.abs(apart(weights)) ** 3 * np.abs(apart(worths))).sum()
            assert found == pytest.approx([exact], abs=0.1 * accuracy * size_of_terms)


def test_third_cumulants_of_orders_of_two_are_those_of_comparisons():
    pairs, score = represented(((0, 1), (0, 2), (1, 2)), "order", np.array([2.0, 3.0, 5.0]))
    t = np.array([0.5, -1.0, 2.0])
    along = np.array([[1.0, -2.0, 0.7]])
    won = expit(t)
    # half of a net win, 1/2 or -1/2, with weight a has the third cumulant a^3 F (1 - F) (1 - 2 F)
    expected = (pairs.count * along[0] ** 3 * won * (1 - won) * (1 - 2 * won)).sum()
    assert score.third(t, along, pairs.count) == pytest.approx([expected])


def exact_differences(answer, worths):
    """Differences of mean scores of the items of each edge, divided by the size, to 50 digits."""
    v = [Decimal(float(x)) for x in worths]
    s = len(v)
    best = [(x - max(v)).exp() for x in v]
    worst = [(min(v) - x).exp() for x in v]
    if answer == "best-worst":
        by_best = [best[i] * (sum(worst) - worst[i]) for i in range(s)]
        by_worst = [worst[i] * (sum(best) - best[i]) for i in range(s)]
        mean = [(a - b) / sum(by_best) for a, b in zip(by_best, by_worst, strict=True)]
    else:
        named = best if answer == "best" else worst
        sign = 1 if answer == "best" else -1
        mean = [sign * x / sum(named) for x in named]
    first, second = np.triu_indices(s, 1)
    return [(mean[i] - mean[j]) / s for i, j in zip(first, second, strict=True)]


@pytest.mark.parametrize("answer", ONE_MODEL)
def test_errors_of_slopes_are_within_their_bound(answer):
    rng = np.random.default_rng(4)
    with localcontext() as context:
        context.prec = 50
        for size in (3, 4, 5, 9):
            pairs, score = one_set(size, answer)
            loss = EdgeLoss.matching(score, 7.0 * pairs.count)
            for scale in (1e-8, 1e-3, 1.0, 5.0, 30.0, 700.0, 1e6):
                # some items are far from the others, which are close to each other
                worths = rng.normal(0, 1.0, size) + scale * rng.choice([-1.0, 0.0, 1.0], size)
                slope = loss.slope(apart(worths))
                exact = exact_differences(answer, worths)
                off = [abs(Decimal(float(a)) - 7 * b) for a, b in zip(slope, exact, strict=True)]
                assert float(max(off)) <= 0.5 * loss.accuracy * UNIT_ROUNDOFF * loss.size[0]
                assert (np.abs(slope) <= loss.size * (1 + 1e-12)).all()


def test_bounds_of_slopes_are_reached():
    worths = np.array([1e3, 0.0, 0.0, -1e3])
    for answer in ONE_MODEL:
        _, score = one_set(4, answer)
        assert np.abs(score.mean(apart(worths))).max() == pytest.approx(score.bound[0])
    pairs, score = represented(SETS, "best-worst")
    sizes = np.round(2.0 / EdgeLoss.matching(score, pairs.count).size)
    assert {*sizes.tolist()} == {3.0, 4.0, 5.0}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("answer", ANSWERS)
def test_extreme_worths_do_not_overflow(answer):
    for worths in (
        np.array([1e6, -1e6, 0.0, 5.0]),
        np.array([0.0, 1e6, 1e6, 1e6]),
        np.array([0.0, 1.0, 800.0, 1500.0]),
    ):
        _, score = one_set(4, answer)
        t = apart(worths)
        for name in ("mean", "integral", "curvature", "variance"):
            assert np.isfinite(getattr(score, name)(t)).all()
        assert np.isfinite(score.third(t, t[None] / 1e6, np.ones(6))).all()
        if answer != "order":
            mean = worths.mean()
            top, low = worths.max(), worths.min()
            limit = {"best": top - mean, "worst": mean - low, "best-worst": top - low}[answer]
            assert score.integral(t).sum() == pytest.approx(
                limit, rel=1e-2 if limit < 2e3 else 1e-5
            )


@pytest.mark.parametrize("answer", ONE_MODEL)
def test_small_worths_do_not_cancel(answer):
    worths = 1e-7 * np.array([1.0, -2.0, 0.5, 0.7])
    _, score = one_set(4, answer)
    _, covariance = moments(answer, np.zeros(4))
    # the next term of the series is below 1e-21
    second = 0.5 * worths @ covariance @ worths
    assert score.integral(apart(worths)).sum() == pytest.approx(second, abs=1e-21)
    assert score.integral(np.zeros(6)).tolist() == [0.0] * 6


@pytest.mark.parametrize("answer", ANSWERS)
def test_the_largest_scores_of_any_items_are_attainable(answer):
    sets = tuple(shown for shown in SETS if len(shown) > 2)
    rng = np.random.default_rng(5)
    pairs, score = represented(sets, answer)
    for _ in range(200):
        total = np.zeros(ITEMS)
        for shown in sets:
            scores, _ = outcomes(answer, np.zeros(len(shown)))
            total[list(shown)] += scores[rng.integers(len(scores))] - scores.mean(axis=0)
        order = np.argsort(-total)
        for k in range(1, ITEMS):
            inside = np.isin(np.arange(ITEMS), order[:k])
            leaving = (inside[pairs.first] != inside[pairs.second]).sum()
            assert total[inside].sum() <= score.most * leaving + 1e-12
    # scores that all answers together could not have
    assert not attainable(10.0 * np.linspace(5, -5, ITEMS), pairs, score)
    assert attainable(np.zeros(ITEMS), pairs, score)


def test_planning_numbers_follow_equal_worths():
    ratio = LOGIT_MEAN_CURVATURE / 0.25
    for answer, curvature in (("best", 1 / 16), ("worst", 1 / 16), ("best-worst", 1 / 6)):
        _, score = one_set(4, answer)
        assert score.mean_curvature == pytest.approx(ratio * curvature)
        assert score.mean_variance == score.mean_curvature
        assert score.estimator == "maximum likelihood"
    _, score = one_set(4, "order")
    assert score.mean_curvature == pytest.approx(LOGIT_MEAN_CURVATURE)
    assert score.mean_variance == pytest.approx(5 / 3 * LOGIT_MEAN_CURVATURE)
    assert score.estimator == "composite likelihood"
    assert score.spread == 1.0
    assert (score.weight(np.ones(6)) == 1.0).all()


def test_score_functions_are_equal_by_their_answers_and_sets():
    _, score = one_set(3, "best")
    same = one_set(3, "best")[1]
    assert score == same and hash(score) == hash(same)
    assert score != one_set(3, "worst")[1]
    assert score != one_set(4, "best")[1]
    assert score != LOGISTIC_SCORE
    with pytest.raises(ValueError, match="logit"):
        ChoiceScore(link=PROBIT, answer="best", groups=score.groups)
    with pytest.raises(ValueError, match="read-only"):
        score.groups[0][0] = 1


def simulated(answer, tasks=900, seed=6):
    """Position scores of answers of tasks, drawn from the model with worths that differ."""
    rng = np.random.default_rng(seed)
    worths = np.array([1.0, 0.3, -0.2, -1.1, 0.5, -0.5])
    shown = rng.integers(len(SETS), size=tasks)
    given = []
    for task in shown:
        scores, share = outcomes(answer, worths[list(SETS[task])])
        given.append(scores[rng.choice(len(share), p=share)])
    return shown, given


def log_likelihood(answer, worths, tallies):
    """The log-likelihood of counted answers; of orders the sum over pairs."""
    total = 0.0
    for shown, scores, counts in tallies:
        here = worths[list(shown)]
        if answer == "order":
            total += counts @ log_expit(np.sign(apart(scores)) * apart(here)).sum(axis=1)
        elif answer == "best-worst":
            every = (here[:, None] - here)[~np.eye(len(here), dtype=bool)]
            total += counts @ (scores @ here - logsumexp(every))
        else:
            sign = 1.0 if answer == "best" else -1.0
            total += counts @ (scores @ here - logsumexp(sign * here))
    return total


def tallied(shown, given):
    """The distinct answers for each set, with their numbers."""
    for place in range(len(SETS)):
        answers = [scores for task, scores in zip(shown, given, strict=True) if task == place]
        yield SETS[place], *np.unique(answers, axis=0, return_counts=True)


def fitted(answer, shown, given, ridge=0.0, linear=None):
    counts = np.bincount(shown, minlength=len(SETS)).astype(float)
    pairs, score = represented(SETS, answer, counts)
    target = np.zeros(ITEMS)
    for task, scores in zip(shown, given, strict=True):
        target[list(SETS[task])] += scores - outcomes(answer, np.zeros(len(scores)))[0].mean(axis=0)
    linear = linear or item_contrasts(pairs, ITEMS)
    return fit_ridge(target, linear, ridge, EdgeLoss.matching(score, pairs.count))


@pytest.mark.parametrize("answer", ANSWERS)
def test_the_fit_is_the_maximum_of_the_likelihood(answer):
    shown, given = simulated(answer, 400)
    minimum = fitted(answer, shown, given)
    assert minimum.converged and minimum.finite
    tallies = list(tallied(shown, given))
    best = minimize(
        lambda free: -log_likelihood(answer, np.append(0.0, free), tallies),
        np.zeros(ITEMS - 1),
        jac="3-point",
        options={"gtol": 1e-6},
    )
    expected = np.append(0.0, best.x)
    np.testing.assert_allclose(minimum.point, expected - expected.mean(), atol=1e-6)


def test_first_choices_agree_with_a_conditional_logit():
    shown, given = simulated("best")
    minimum = fitted("best", shown, given)
    choice = np.concatenate([scores == 1 for scores in given]).astype(int)
    items = np.concatenate([SETS[task] for task in shown])
    group = np.repeat(np.arange(len(shown)), [len(SETS[task]) for task in shown])
    model = ConditionalLogit(choice, np.eye(ITEMS)[items][:, 1:], groups=group)
    free = model.fit(disp=False, method="newton").params
    np.testing.assert_allclose(minimum.point - minimum.point[0], np.append(0.0, free), atol=1e-6)


def test_a_dense_map_gives_the_fit_of_item_contrasts():
    shown, given = simulated("best-worst")
    pairs, _ = represented(SETS, "best-worst")
    matrix = item_contrasts(pairs, ITEMS).matrix.toarray()
    ridge = fitted("best-worst", shown, given, 0.5)
    same = fitted("best-worst", shown, given, 0.5, LinearPredictor(matrix))
    np.testing.assert_allclose(same.point, ridge.point, atol=1e-10)


def test_an_item_that_always_wins_has_no_finite_fit():
    shown = np.arange(len(SETS)).repeat(5)
    rng = np.random.default_rng(7)
    given = []
    for task in shown:
        place = SETS[task].index(0) if 0 in SETS[task] else rng.integers(len(SETS[task]))
        given.append(np.eye(len(SETS[task]))[place])
    assert not fitted("best", shown, given).finite


def test_information_and_tables_add_edges_of_the_same_pair():
    pairs, _ = represented(SETS, "best", np.arange(1.0, 7.0))
    linear = item_contrasts(pairs, ITEMS)
    matrix = linear.matrix.toarray()
    rng = np.random.default_rng(8)
    weights = rng.normal(1.0, 1.0, (2, 3, len(pairs.first)))
    expected = np.einsum("ei,...e,ej->...ij", matrix, weights, matrix)
    np.testing.assert_allclose(linear.information(weights), expected, atol=1e-13)
    np.testing.assert_allclose(linear.information(weights[0, 0]), expected[0, 0], atol=1e-13)
    np.testing.assert_allclose(linear.scores(weights[0, 0]), matrix.T @ weights[0, 0], atol=1e-13)
    np.testing.assert_allclose(linear.sizes(weights[0, 0]), np.abs(matrix).T @ weights[0, 0])
    table = np.zeros((ITEMS, ITEMS))
    for first, second, count in zip(pairs.first, pairs.second, pairs.count, strict=True):
        table[first, second] += count
        table[second, first] += count
    assert (pairs.table(ITEMS) == table).all()


def test_distinct_pairs_in_any_order_are_not_merged():
    first = np.array([0, 0, 0, 1, 1])
    second = np.array([3, 1, 2, 3, 2])
    linear = item_contrasts(PairCounts(first, second, np.ones(5), "observed"), 4)
    assert linear._repeated is None
    weights = np.arange(1.0, 6.0)
    matrix = linear.matrix.toarray()
    assert (linear.information(weights) == matrix.T @ (weights[:, None] * matrix)).all()


@pytest.mark.parametrize("answer", ["best", "best-worst"])
def test_conjugate_gradients_solve_sets_with_the_same_pairs(answer, monkeypatch):
    shown, given = simulated(answer)
    dense = fitted(answer, shown, given, 0.3)
    monkeypatch.setattr("privrank.bradley_terry.fit.DENSE_LIMIT", 2)
    np.testing.assert_allclose(fitted(answer, shown, given, 0.3).point, dense.point, atol=1e-9)
