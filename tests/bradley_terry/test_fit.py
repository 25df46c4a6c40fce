"""Every fit ends by one rule, at the minimum: thousands of random sets, and hard ones."""

import warnings
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from pairfits import fit_linear, fit_ridge
from scipy.linalg import helmert
from scipy.optimize import linprog
from scipy.special import expit

import privrank as pr
from privrank.bradley_terry.fit import EdgeLoss, ScoreFunction
from privrank.bradley_terry.linear import item_contrasts
from privrank.distributions.links import LOGIT
from privrank.release.survey import PairCounts

SETS = 1_000


def random_set(seed, groups):
    """Items, edges, matrix of the linear predictor, wins and comparisons of a random survey."""
    rng = np.random.default_rng(seed)
    while True:
        found = _drawn(rng, groups)
        if len(found[2]) and np.linalg.matrix_rank(found[2]) == found[2].shape[1]:
            return found  # what compares too little is refused before it is fitted


def _drawn(rng, groups):
    m = int(rng.integers(3, 7))
    first, second = np.triu_indices(m, 1)
    count = rng.poisson(rng.choice([1.0, 3.0, 30.0, 3000.0]), (groups, len(first))).ravel()
    z = np.column_stack((np.ones(groups), np.arange(groups)))[:, :groups]
    step = helmert(m).T[first] - helmert(m).T[second]
    matrix = np.vstack([np.kron(row, step) for row in z])
    truth = rng.normal(0, rng.choice([0.3, 1.0, 2.0]), matrix.shape[1])
    won = rng.binomial(count, expit(matrix @ truth)).astype(float)
    kept = count > 0
    place = np.tile(np.column_stack((first, second)), (groups, 1))[kept]
    return m, place, matrix[kept], won[kept], count[kept].astype(float)


def has_a_finite_fit(matrix, won, lost):
    """By linear programming: there is no direction that every answer agrees with."""
    sign = np.where(lost == 0, 1.0, -1.0)
    one_sided = (won == 0) | (lost == 0)
    if not one_sided.any():
        return True
    away = (sign[:, None] * matrix)[one_sided]
    both = matrix[~one_sided]
    answer = linprog(
        -away.sum(axis=0),
        A_ub=-away,
        b_ub=np.zeros(len(away)),
        A_eq=both if len(both) else None,
        b_eq=np.zeros(len(both)) if len(both) else None,
        bounds=(-1, 1),
    )
    return answer.fun > -1e-7


def assert_at_the_minimum(predictors, matrix, target, count):
    """The gradient, in extended precision, is far below a standard error."""
    t = np.asarray(predictors, dtype=np.longdouble)
    slope = count * (1 / (1 + np.exp(-t)) - np.longdouble(0.5))
    gradient = np.asarray(matrix.T @ slope - target, dtype=float)
    weights = count * expit(np.float64(t)) * expit(-np.float64(t))
    information = matrix.T @ (weights[:, None] * matrix)
    size = np.sqrt(np.diag(information))
    away = np.linalg.solve(information / np.outer(size, size), gradient / size)
    assert np.sqrt(max(0.0, away @ (gradient / size))) < 1e-6


def test_linear_predictors_converge_on_a_thousand_sets():
    finite = 0
    for seed in range(SETS):
        _, _, matrix, won, count = random_set(seed, groups=2)
        target = matrix.T @ (won - 0.5 * count)
        loss = EdgeLoss.matching(ScoreFunction(LOGIT), count)
        fit = fit_linear(target, matrix, loss, np.zeros((matrix.shape[1],) * 2))
        assert fit.finite == has_a_finite_fit(matrix, won, count - won), seed
        assert fit.converged, seed
        if fit.finite:
            finite += 1
            assert_at_the_minimum(matrix @ fit.point, matrix, target, count)
    assert SETS / 2 < finite < SETS


@pytest.mark.parametrize("solver", ["newton", "lbfgs"])
def test_worths_converge_on_a_thousand_sets(solver):
    finite = 0
    for seed in range(SETS if solver == "newton" else SETS // 5):
        m, place, matrix, won, count = random_set(seed, groups=1)
        incidence = np.zeros((len(count), m))
        incidence[np.arange(len(count)), place[:, 0]] = 1.0
        incidence[np.arange(len(count)), place[:, 1]] = -1.0
        pairs = PairCounts(place[:, 0], place[:, 1], count, "observed")
        target = incidence.T @ (won - 0.5 * count)
        fit = fit_ridge(target, pairs, 0.0, solver=solver)
        assert fit.finite == has_a_finite_fit(matrix, won, count - won), seed
        assert fit.converged, seed
        if fit.finite:
            finite += 1
            t = fit.point[place[:, 0]] - fit.point[place[:, 1]]
            assert_at_the_minimum(t, matrix, matrix.T @ (won - 0.5 * count), count)
    assert finite > SETS / 20


@pytest.mark.parametrize("penalty", [1e-9, 1e-3, 1.0, 1e6])
def test_penalised_fits_converge_and_agree(penalty):
    for seed in range(100):
        m, place, matrix, won, count = random_set(seed, groups=1)
        target = matrix.T @ (won - 0.5 * count)
        loss = EdgeLoss.matching(ScoreFunction(LOGIT), count)
        linear = fit_linear(target, matrix, loss, penalty * np.eye(matrix.shape[1]))
        pairs = PairCounts(place[:, 0], place[:, 1], count, "observed")
        plain = fit_ridge(helmert(m).T @ target, pairs, penalty)
        assert linear.finite and linear.converged and plain.finite and plain.converged, seed
        worths = helmert(m).T @ linear.point
        if penalty > 1e-6 or has_a_finite_fit(matrix, won, count - won):
            centred = plain.point - plain.point.mean()
            np.testing.assert_allclose(centred, worths, atol=1e-5 * (1 + abs(worths).max()))


def test_an_unpenalised_formula_is_maximum_likelihood():
    # five items, three hundred comparisons: a fifth of such sets stopped early, and were said to
    # have no finite coefficients
    items = ("a", "b", "c", "d", "e")
    pairs = list(combinations(items, 2))
    for seed in range(10):
        rng = np.random.default_rng(seed)
        frame = pd.DataFrame(
            [pairs[k] for k in rng.integers(len(pairs), size=300)], columns=["item1", "item2"]
        )
        frame["group"] = rng.choice(["x", "y"], len(frame))
        worth = pd.Series([0.6, 0.3, 0.0, -0.3, -0.6], index=items)
        gap = frame["item1"].map(worth) - frame["item2"].map(worth)
        frame["outcome"] = np.where(rng.random(len(frame)) < expit(gap), 1, -1)
        with warnings.catch_warnings():
            warnings.simplefilter("error", pr.PrivrankWarning)
            fit = pr.PrivateBTL.from_formula(
                "item1 + item2 + outcome ~ group",
                frame,
                items=items,
                respondent=None,
                ties=False,
                design="public",
                levels={"group": ["x", "y"]},
            ).fit(np.inf, penalty=0)
        step = np.array(
            [[(i == a) - (i == b) for i in items[1:]] for a, b in frame.iloc[:, :2].values]
        )
        y = (frame["group"] == "y").to_numpy(dtype=float)
        design = np.column_stack((step, step * y[:, None]))
        glm = sm.GLM(frame["outcome"] > 0, design, family=sm.families.Binomial()).fit(tol=1e-14)
        for start, part in ((0, glm.params[:4]), (5, glm.params[4:])):
            worths = np.append(0.0, part)
            np.testing.assert_allclose(
                fit.params.iloc[start : start + 5], worths - worths.mean(), atol=1e-8
            )


@pytest.mark.parametrize("many", [1e3, 1e7, 1e10])
def test_a_single_lost_comparison_beside_many_is_infinite(many):
    # its gradient vanishes among the rounding errors of the others long before it is infinite
    first, second = np.array([0, 0, 1, 2]), np.array([1, 2, 2, 3])
    count = np.array([many, many, many, 1.0])
    won = np.array([0.6 * many, 0.6 * many, 0.5 * many, 1.0])
    incidence = np.zeros((4, 4))
    incidence[np.arange(4), first], incidence[np.arange(4), second] = 1.0, -1.0
    target = incidence.T @ (won - 0.5 * count)
    assert not fit_ridge(target, PairCounts(first, second, count, "observed"), 0.0).finite
    matrix = incidence @ helmert(4).T
    loss = EdgeLoss.matching(ScoreFunction(LOGIT), count)
    assert not fit_linear(helmert(4) @ target, matrix, loss, np.zeros((3, 3))).finite
    won[-1] = 0.5
    target = incidence.T @ (won - 0.5 * count)
    assert fit_ridge(target, PairCounts(first, second, count, "observed"), 0.0).finite
    assert fit_linear(helmert(4) @ target, matrix, loss, np.zeros((3, 3))).finite


@pytest.mark.parametrize("penalty", [1e-12, 1e-9, 1e-3])
@pytest.mark.parametrize("solver", ["newton", "lbfgs"])
def test_a_tiny_ridge_is_not_lost_beside_the_curvature(penalty, solver):
    # a chain of items: a ridge damped up to the curvature would take thousands of steps
    m = 60
    rng = np.random.default_rng(0)
    pairs = PairCounts(np.arange(m - 1), np.arange(1, m), np.full(m - 1, 1e6), "observed")
    won = 1e6 * rng.uniform(0.3, 0.7, m - 1)
    target = np.append(won - 5e5, 0.0) - np.append(0.0, won - 5e5)
    fit = fit_ridge(target, pairs, penalty, solver=solver)
    assert fit.converged
    wanted = np.log(won / (1e6 - won))
    np.testing.assert_allclose(-np.diff(fit.point), wanted, atol=1e-5 if penalty < 1e-6 else 1e-2)


@pytest.mark.parametrize("pairs", ["all", "some", "all, in another order"])
def test_tables_of_pairs_are_those_of_their_matrix(pairs):
    m, rng = 5, np.random.default_rng(3)
    first, second = np.triu_indices(m, 1)
    if pairs == "some":
        first, second = first[::2], second[::2]
    order = np.arange(len(first))
    if pairs == "all, in another order":
        order[:4] = order[:4][::-1]  # of the first item, by which alone pairs are sorted
    counts = PairCounts(first[order], second[order], np.ones(len(first)), "observed")
    contrasts = item_contrasts(counts, m)
    weights, edges = rng.random((3, len(first))), contrasts.matrix.toarray()
    for each in weights:
        wanted = edges.T @ (each[:, None] * edges)
        np.testing.assert_allclose(contrasts.information(each), wanted, atol=1e-14)
    np.testing.assert_array_equal(
        contrasts.information(weights), [contrasts.information(each) for each in weights]
    )
