"""Draws of the scores of items when it is not known how far apart, nor how evenly, they lie.

What noisy fractions say of an order depends on that. If two fitted scores differ by the standard
error of their difference, the order is right with probability .84 when scores lie anywhere, with
.5 when all items are alike, and with .99 when items are known to lie two and a half such errors
apart or more. Surveys do not say beforehand, so it is learnt from the pairs.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from privrank.nulltables import public_generator

__all__ = ["FEWEST_ITEMS", "MOST_ITEMS", "score_draws"]

FloatArray = NDArray[np.float64]

FEWEST_ITEMS = 4
"""Items from which on there are gaps to learn from"""

MOST_ITEMS = 100
"""Items up to which the chain is long enough"""

SHAPES = (0.3, 1.0, 8.0, 64.0)
"""Shapes of the law of gaps: clumps, points at random, between, and all but equal distances"""

WIDEST = 5.0
"""Largest mean gap: items that far apart are ordered alike in 99 of 100 rankings."""

MOST_SWEEPS, WORK, MEANS = 8000, 40_000_000, 8
"""Sweeps of the chain, the pairs that all of them visit, and steps of the mean gap in each"""


def score_draws(fractions: FloatArray, scores: FloatArray, variance: float) -> FloatArray:
    """Return draws of scores from their posterior law given pair fractions.

    Parameters
    ----------
    fractions : ndarray, shape (m, m)
        Noisy fractions, m from 4 to 100; entries (i, j) and (j, i) add up to 1.
    scores : ndarray, shape (m,)
        Where to begin: scores of mean 0 fitted to the fractions.
    variance : float
        Of the error in each fraction; positive.

    Returns
    -------
    ndarray, shape (N, m)
        N depends on m alone.

    Notes
    -----
    **Statistic.** Fractions are normal about F(t_i - t_j), F logistic, with the given variance. The
    order of the scores t is uniform and their gaps are independent with a gamma law; its shape is
    .3, 1, 8 or 64, each as probable, and its mean mu has a density in proportion to mu, up to 5.
    That is a flat prior for the variance of the scores, the choice for which intervals of empirical
    Bayes hold best in repeated samples (Morris 1983; Morris and Tang 2011). The smallest shape is
    for items that hardly differ beside others that differ much: without it their order would be
    taken for known too often.

    **Numerics.** A Markov chain that begins at the fitted scores and leaves out its first fifth.
    It takes the same steps for the same fractions: its random numbers are a public sequence, and
    the items enter in the order of their scores. A probability from its draws has a Monte Carlo
    error of about .01 for ten items and .02 for a hundred.
    """
    from privrank.kernels import score_walk

    m = len(scores)
    sweeps = min(WORK // m**2, MOST_SWEEPS)
    generator = public_generator("spaced scores", m)
    shapes = np.array(SHAPES)
    order = np.argsort(-scores, kind="stable")
    draws = score_walk(
        np.clip(fractions, -1.0, 2.0)[np.ix_(order, order)],
        np.clip(scores - scores.mean(), -20.0, 20.0)[order],
        variance,
        shapes,
        (1 - m) * gammaln(shapes),
        WIDEST,
        generator.standard_normal((sweeps, m + 1 + MEANS)),
        1.0 - generator.random((sweeps, 3 * m + 2 + MEANS)),
    )[sweeps // 5 :]
    back = np.empty_like(draws)
    back[:, order] = draws
    return back
