"""Fits of worths to comparisons per pair, as the tests of several modules ask for them."""

from privrank.bradley_terry import fit
from privrank.bradley_terry.fit import LOGISTIC_SCORE, EdgeLoss
from privrank.bradley_terry.linear import LinearPredictor, item_contrasts
from privrank.mechanisms.comparisons import release_comparisons
from privrank.plans.choice import Choice, plan_comparisons


def logistic(pairs):
    return EdgeLoss.matching(LOGISTIC_SCORE, pairs.count)


def fit_ridge(target, pairs, gamma, loss=None, **arguments):
    linear = item_contrasts(pairs, len(target))
    return fit.fit_ridge(target, linear, gamma, loss or logistic(pairs), **arguments)


def rounding_bound(theta, target, pairs, gamma, loss=None):
    linear = item_contrasts(pairs, len(theta))
    return fit.Objective(target, linear, gamma, loss or logistic(pairs)).rounding(theta)


def differences(theta, pairs):
    return item_contrasts(pairs, len(theta)).predict(theta)


def mean_scores(theta, pairs, function=LOGISTIC_SCORE):
    linear = item_contrasts(pairs, len(theta))
    return linear.scores(pairs.count * function.mean(linear.predict(theta)))


def fit_linear(target, matrix, loss, ridge):
    return fit.fit_ridge(target, LinearPredictor(matrix), ridge, loss)


def release_counts(encoded, choice, epsilon, delta=0.0, *, rng=None, solver="newton", budget=None):
    """Return the release that a fit with this choice of noise makes of these counts."""
    return release_comparisons(
        encoded,
        plan_comparisons(encoded.design, choice, epsilon, delta, "a test"),
        link=choice.link,
        solver=solver,
        reader="from_release",
        budget=budget,
        rng=rng,
    )


def win_matrix(model, epsilon, rng=None):
    """Return a release of the win matrix, which plans take for few items only."""
    return release_counts(model._encoded, Choice("win matrix"), epsilon, rng=rng)
