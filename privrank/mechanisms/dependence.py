"""Two statistics of how answers of one respondent depend on each other.

*Pairs*: the sums over respondents of (net_i - net_j)^2, one for each pair of items.

*Worst*: of many contrasts, the largest design effect. Directions come from what the fit has
released already, so they are public by then, and so is all that is computed from them alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privrank.bradley_terry.directions import Directions
from privrank.encode.encoded import Encoded
from privrank.release.survey import Design

__all__ = ["STEPS", "Contrasts", "pair_moments", "round_directions", "strongest"]

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

STEPS = 2**16
"""Sensitivity of the largest design effect, in lattice steps."""

_FINEST = 10
"""Weights of items are whole numbers of up to this many bits."""

_MOST_SORTED = 50
"""Items up to which the answers that reach farthest along a contrast are found one by one."""

_MOST_WEIGHTS = 2**20
"""Numbers of weights up to which they are, too."""

_BLOCK = 2**22
"""Numbers that are held at a time."""


@dataclass(frozen=True, slots=True, eq=False)
class Contrasts:
    """Contrasts in whole numbers, with all that their statistic needs to know.

    Parameters
    ----------
    weights : ndarray of int64, shape (contrasts, kinds, m + 1)
        Weights of the net wins of the items, and of the items named first, by kind of respondent.
    farthest : ndarray of int64, shape (contrasts,)
        Bound of the size of one respondent's weighted sum.
    scale : list of int
        What the sum of squares is divided by, at least the square of `farthest`.
    centre : list of int
        What is taken off the sum of squares.
    most : float
        Largest design effect that any answers can have: what STEPS for each respondent stand for.
    """

    weights: IntArray
    farthest: IntArray
    scale: list[int]
    centre: list[int]
    most: float


def round_directions(design: Design, found: Directions) -> Contrasts:
    """Bring contrasts to whole numbers and bound what one respondent can add to each.

    One respondent answers at most `rows` pairs, and an answer adds its contrast's difference of the
    two items, either way: no more than the `rows` largest differences in all, or `rows` times the
    largest where pairs may repeat.
    """
    rows = design.reach.effective_rows
    room = 2**60 / max(design.nobs, 1)
    bits = max(4, min(_FINEST, int(np.log2(np.sqrt(room) / (4.0 * rows)))))
    usable = all(np.isfinite(part).all() for part in (found.weights, found.independent))
    size = np.abs(found.weights).max(axis=(1, 2)) if usable else np.zeros(len(found.weights))
    factor = np.where(size > 0, 2.0**bits / np.where(size > 0, size, 1.0), 0.0)
    weights = found.weights if usable else np.zeros_like(found.weights)
    whole = np.rint(factor[:, None, None] * weights).astype(np.int64)
    farthest = _farthest(design, whole)
    squares = [int(far) ** 2 for far in farthest]
    each = np.maximum(factor**2 * np.where(usable, found.independent, 0.0) / design.nobs, 1e-12)
    each = np.maximum(each, [1e-6 * square for square in squares])
    most = max(square / unit for square, unit in zip(squares, each, strict=True))
    scale = [
        max(square, int(np.ceil(unit * most)), 1)
        for square, unit in zip(squares, each, strict=True)
    ]
    centre = [round(number) for number in factor**2 * np.where(usable, found.explained, 0.0)]
    return Contrasts(whole, farthest, scale, centre, most if usable else np.nan)


def _farthest(design: Design, weights: IntArray) -> IntArray:
    """Return how far one respondent's answers can reach along each contrast, or a bound."""
    items, named = weights[:, :, :-1], np.abs(weights[:, :, -1])
    m, rows = items.shape[2], design.reach.effective_rows
    widest = items.max(axis=2) - items.min(axis=2) + named
    if not design.distinct_pairs:
        return np.asarray((rows * widest).max(axis=1))
    if m > _MOST_SORTED or weights.size > _MOST_WEIGHTS:
        # the sum of all differences, by how often each weight is the larger one and the smaller
        order = np.sort(items, axis=2)
        every = order @ (2 * np.arange(m) - (m - 1)) + design.reach.pairs * named
        return np.asarray(np.minimum(every, rows * widest).max(axis=1))
    first, second = np.triu_indices(m, 1)
    out = np.zeros(weights.shape[:2], dtype=np.int64)
    block = max(1, _BLOCK // (len(first) * weights.shape[1]))
    for start in range(0, len(weights), block):
        here = items[start : start + block]
        apart = np.abs(here[:, :, first] - here[:, :, second])
        largest = np.sort(apart, axis=2)[:, :, len(first) - min(rows, len(first)) :]
        out[start : start + block] = largest.sum(axis=2)
    return np.asarray((out + rows * named).max(axis=1))


def strongest(encoded: Encoded, contrasts: Contrasts) -> int:
    """Return the largest design effect of the contrasts, in lattice steps; sensitive.

    Notes
    -----
    **Statistic.** Y = max_p floor(STEPS (Q_p - centre_p) / scale_p), or 0 if that is less, with Q_p
    the sum over respondents of the square of weights_p'net. **Privacy.** Given the contrasts,
    replacing one respondent moves Q_p by at most farthest_p^2, the largest square that there is, as
    squares are not negative. That is no more than scale_p, so the fraction moves by at most STEPS,
    a whole number, and so do its floor and the largest of all floors. Hence the sensitivity is
    STEPS, whatever was released before; contrasts, bounds and centres do not depend on the
    respondents but through that.
    """
    total = np.zeros(len(contrasts.scale), dtype=np.int64)
    for kind, moments in enumerate(_moments(encoded)):
        weights = contrasts.weights[:, kind]
        total += ((weights @ moments) * weights).sum(axis=1)
    sides = zip(total.tolist(), contrasts.centre, contrasts.scale, strict=True)
    return max(0, *(STEPS * (square - centre) // scale for square, centre, scale in sides))


def pair_moments(encoded: Encoded) -> IntArray:
    """Return the sums over respondents of (net_i - net_j)^2, for all pairs i < j; sensitive.

    Notes
    -----
    **Privacy.** :attr:`privrank.privacy.sensitivity.Reach.second_moments_l1`.
    """
    moments = _moments(encoded).sum(axis=0)[:-1, :-1]
    first, second = np.triu_indices(len(moments), 1)
    square = np.diag(moments)
    return np.asarray(square[first] + square[second] - 2 * moments[first, second])


def _moments(encoded: Encoded) -> IntArray:
    """Return the sums over respondents of net times net, shape (kinds, m + 1, m + 1); sensitive.

    The last entry of a respondent's net is wins minus losses of the items named first, where that
    matters.
    """
    if encoded._answers is None:
        raise ValueError("dependence needs respondents: name them with respondent=.")
    person, pair, _, net = encoded._answers
    first, second, _, _ = encoded._pairs
    m, facts = len(encoded.design.items), encoded.design.covariates
    pattern = first[pair] // m
    kind = np.zeros(len(pair), dtype=np.int64) if facts is None else facts.kinds[pattern]
    named = net if facts is None else facts.first[pattern] * net
    kinds = 1 if facts is None else int(facts.kinds.max()) + 1
    out = np.zeros((kinds, m + 1, m + 1), dtype=np.int64)
    order = np.argsort(kind, kind="stable")
    ends = np.searchsorted(kind[order], np.arange(kinds + 1))
    for each in range(kinds):
        here = order[ends[each] : ends[each + 1]]
        who, place = np.unique(person[here], return_inverse=True)
        nets = np.zeros((len(who), m + 1))
        np.add.at(nets, (place, first[pair[here]] % m), net[here])
        np.add.at(nets, (place, second[pair[here]] % m), -net[here])
        if facts is not None:
            np.add.at(nets, (place, np.full(len(place), m)), named[here])
        # exact: whole numbers far below 2^53
        out[each] = np.rint(nets.T @ nets).astype(np.int64)
    return out
