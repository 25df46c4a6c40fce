"""A Markov chain over the scores of items, given noisy pair fractions."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from privrank.kernels.compiling import compiled

__all__ = ["score_walk"]

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

FARTHEST = 300.0
"""Scores stay within this of 0, so that their exponentials are finite"""


@compiled
def _log_gap(gap: float, shape: float, rate: float) -> float:
    """Return the log density of a gamma distributed gap, but for its constant."""
    return (shape - 1.0) * math.log(gap) - rate * gap if gap > 0.0 else -np.inf


@compiled
def _row_misfit(fractions: FloatArray, odds: FloatArray, i: int, own: float, but: int) -> float:
    """Return the squares that item i adds with odds `own`, not counting its pair with `but`."""
    total = 0.0
    for j in range(len(odds)):
        if j != i and j != but:
            rest = fractions[i, j] - own / (own + odds[j])
            total += rest * rest
    return total


@compiled
def _misfit(fractions: FloatArray, odds: FloatArray) -> float:
    """Return the sum of squares over all pairs."""
    total = 0.0
    for i in range(len(odds)):
        for j in range(i):
            rest = fractions[i, j] - odds[i] / (odds[i] + odds[j])
            total += rest * rest
    return total


@compiled
def _place_change(
    scores: FloatArray, order: IntArray, place: int, to: int, new: float, shape: float, rate: float
) -> float:
    """Return by how much the log prior grows when the item at `place` goes to `new`, at `to`."""
    last = len(order) - 1
    old = scores[order[place]]
    change = 0.0
    if place > 0:
        change -= _log_gap(old - scores[order[place - 1]], shape, rate)
    if place < last:
        change -= _log_gap(scores[order[place + 1]] - old, shape, rate)
    below = to - 1 if to <= place else to
    above = to + 1 if to >= place else to
    if to > 0:
        change += _log_gap(new - scores[order[below]], shape, rate)
    if to < last:
        change += _log_gap(scores[order[above]] - new, shape, rate)
    if to != place:  # the gap that closes behind the item, and the one that it divides
        if 0 < place < last:
            closed = scores[order[place + 1]] - scores[order[place - 1]]
            change += _log_gap(closed, shape, rate)
        if 0 < to < last:
            change -= _log_gap(scores[order[above]] - scores[order[below]], shape, rate)
    return change


@compiled
def _placed(scores: FloatArray, order: IntArray, place: int, new: float) -> int:
    """Return the place in the order of the item at `place` when its score is `new`."""
    to = place
    while to < len(order) - 1 and scores[order[to + 1]] < new:
        to += 1
    while to > 0 and scores[order[to - 1]] > new and to <= place:
        to -= 1
    return to


@compiled
def score_walk(
    fractions: FloatArray,
    start: FloatArray,
    variance: float,
    shapes: FloatArray,
    weights: FloatArray,
    widest: float,
    normals: FloatArray,
    uniforms: FloatArray,
) -> FloatArray:
    """Return draws of scores from their posterior law given pair fractions.

    Fractions are normal about F(t_i - t_j), F logistic, with the given variance. The gaps of the
    scores t in their order are independent with a gamma law of mean mu, and the order of the items
    is uniform. The shape of that law is one of `shapes`, each as probable, and mu < `widest` has a
    density in proportion to mu.

    Given an (m, m) matrix of fractions, m >= 4 scores to start at (within 300 of 0, where they
    stay), S shapes a with weights (1 - m) log Gamma(a), which the gaps' density has besides
    (a / mu)^((m - 1) a) prod(g)^(a - 1) exp(-a sum(g) / mu), and the random numbers of N sweeps:
    normal ones (N, m + 1 + K) and uniform ones in (0, 1] (N, 3 m + 2 + K), returns the (N, m)
    scores after each sweep.

    Each sweep is O(m^2) and offers: every item another score, by a step of the size of its error,
    of a gap, or smaller; every other pair of neighbours an exchange; all scores with mu another
    unit; mu another value, K times; and a shape drawn from its law given gaps and mu.
    """
    sweeps, m = len(normals), len(start)
    last, half = m - 1, 0.5 / variance
    scores = start.copy()
    order = np.argsort(scores, kind="mergesort")  # stable, compiled or not
    place = np.empty(m, np.int64)
    for k in range(m):
        place[order[k]] = k
        if k > 0:  # no two at one point
            scores[order[k]] = max(scores[order[k]], scores[order[k - 1]] + 1e-9)
    odds = np.exp(scores)
    misfit = _misfit(fractions, odds)
    shape, mean = shapes[0], min((scores[order[last]] - scores[order[0]]) / last, 0.9 * widest)
    error = 8.0 * math.sqrt(variance / m)  # twice that of a score among items alike
    logs, draws = np.empty(len(shapes)), np.empty((sweeps, m))
    for sweep in range(sweeps):
        uniform, normal, rate = uniforms[sweep], normals[sweep], shape / mean
        for item in range(m):
            size = error
            if uniform[item] < 0.3:
                size = 2.0 * mean
            elif uniform[item] < 0.6:  # small steps, for items in a clump
                size *= math.exp(20.0 * (uniform[item] - 0.6))
            new = scores[item] + normal[item] * size
            if abs(new) > FARTHEST:
                continue
            old, to = place[item], _placed(scores, order, place[item], new)
            prior = _place_change(scores, order, old, to, new, shape, rate)
            own = math.exp(new)
            more = _row_misfit(fractions, odds, item, own, -1)
            more -= _row_misfit(fractions, odds, item, odds[item], -1)
            if math.log(uniform[m + item]) < prior - half * more:
                scores[item], odds[item] = new, own
                misfit += more
                step = 1 if to > old else -1
                for k in range(old, to, step):
                    order[k] = order[k + step]
                    place[order[k]] = k
                order[to], place[item] = item, to
        for k in range(sweep % 2, last, 2):
            i, j = order[k], order[k + 1]
            now = fractions[i, j] - odds[i] / (odds[i] + odds[j])
            then = fractions[i, j] - odds[j] / (odds[i] + odds[j])
            more = then * then - now * now
            more += _row_misfit(fractions, odds, i, odds[j], j)
            more += _row_misfit(fractions, odds, j, odds[i], i)
            more -= _row_misfit(fractions, odds, i, odds[i], j)
            more -= _row_misfit(fractions, odds, j, odds[j], i)
            if math.log(uniform[2 * m + k]) < -half * more:
                misfit += more
                scores[i], scores[j] = scores[j], scores[i]
                odds[i], odds[j] = odds[j], odds[i]
                order[k], order[k + 1] = j, i
                place[j], place[i] = k, k + 1
        factor, middle = math.exp(0.3 * normal[m]), scores.mean()
        moved = middle + factor * (scores - middle)
        if factor * mean < widest and np.abs(moved).max() <= FARTHEST:
            moved_odds = np.exp(moved)
            other = _misfit(fractions, moved_odds)
            # m powers of the factor from the volume, 1 - m from the gaps, 1 from the law of mu
            if math.log(uniform[3 * m]) < 2.0 * math.log(factor) - half * (other - misfit):
                scores, odds, misfit = moved, moved_odds, other
                mean *= factor
        span, log_gaps = scores[order[last]] - scores[order[0]], 0.0
        for k in range(last):
            log_gaps += math.log(scores[order[k + 1]] - scores[order[k]])
        for k in range(len(normal) - m - 1):
            grow = (0.5 if k % 2 == 0 else 1.5) * normal[m + 1 + k]
            wide = mean * math.exp(grow)
            # a power of the growth from the volume, and 1 from the law of mu
            prior = (2.0 - last * shape) * grow - shape * span * (1.0 / wide - 1.0 / mean)
            if wide < widest and math.log(uniform[3 * m + 2 + k]) < prior:
                mean = wide
        for s in range(len(shapes)):
            logs[s] = weights[s] + last * shapes[s] * math.log(shapes[s] / mean)
            logs[s] += (shapes[s] - 1.0) * log_gaps - shapes[s] / mean * span
        shares = np.exp(logs - logs.max())
        left, chosen = uniform[3 * m + 1] * shares.sum(), 0
        while chosen < len(shapes) - 1 and left > shares[chosen]:
            left -= shares[chosen]
            chosen += 1
        shape = shapes[chosen]
        draws[sweep] = scores
    return draws
