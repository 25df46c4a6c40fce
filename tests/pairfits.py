"""Fits of worths to comparisons per pair, as the tests of several modules ask for them."""

import numpy as np

from privrank.bradley_terry import fit
from privrank.bradley_terry.linear import Columns, ItemContrasts
from privrank.bradley_terry.losses import LOGISTIC_SCORE, EdgeLoss


def logistic(pairs):
    return EdgeLoss.matching(LOGISTIC_SCORE, pairs.count)


def fit_ridge(target, pairs, gamma, loss=None, **arguments):
    linear = ItemContrasts(pairs, len(target))
    return fit.fit_ridge(target, linear, gamma, loss or logistic(pairs), **arguments)


def rounding_bound(theta, target, pairs, gamma, loss=None):
    linear = ItemContrasts(pairs, len(theta))
    return linear.rounding(target, loss or logistic(pairs), gamma)(theta)


def differences(theta, pairs):
    return ItemContrasts(pairs, len(theta)).predict(theta)


def mean_scores(theta, pairs, function=LOGISTIC_SCORE):
    linear = ItemContrasts(pairs, len(theta))
    return linear.scores(pairs.count * function.mean(linear.predict(theta)))


def fit_linear(target, matrix, loss, ridge):
    pattern = np.zeros(len(matrix), dtype=np.int64)
    return fit.fit_ridge(target, Columns(matrix, pattern, 1), ridge, loss)
