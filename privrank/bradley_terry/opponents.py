"""The check of proportional pair counts: are opponents of like worth? Sees no data."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from privrank.bradley_terry.paircounts import halves
from privrank.bradley_terry.score import ScoreEquations
from privrank.hypotheses.tails import normal_laplace_tail
from privrank.release.names import OPPONENTS
from privrank.release.release import Release
from privrank.util.solvers import quadratic


@dataclass(frozen=True, slots=True)
class MatchingTest:
    """Test that items met those of their own half of the ranking as often as others.

    Parameters
    ----------
    excess : float
        Comparisons within halves, in all comparisons, less the expected share.
    pvalue : float
        Its two-sided p-value.
    """

    excess: float
    pvalue: float


def matching_test(equations: ScoreEquations, release: Release) -> MatchingTest | None:
    """Test the assertion behind proportional pair counts; None where its check was left out.

    **Statistic.** Q = sum of s_i s_j over comparisons, s the halves of the released ranking
    (:func:`privrank.bradley_terry.paircounts.halves`), less what the fitted counts expect.
    **Null.** Comparisons that are independent given their items' counts, as of Poisson counts of
    pairs with means n_ij: normal with the variance of Q less what its regression on the counts of
    items explains. To it come the noise of these, by the same regression, and the Laplace noise of
    Q.
    """
    if OPPONENTS not in release.values:
        return None
    part, side, pairs = release.parts[OPPONENTS], halves(release), equations.pairs
    alike = (side[pairs.first] * side[pairs.second]).astype(np.float64)
    slopes = equations.by_item_counts(alike)
    explained = float(quadratic(slopes[None], equations.item_information)[0])
    # the noise of an item's comparisons has four times the variance of that of its score
    noise = 4.0 * equations.item_variance * float(slopes @ slopes)
    sampling = max(float((pairs.count * alike**2).sum()) - explained, 1.0)
    off = part.step * float(part.values[0]) - float((pairs.count * alike).sum())
    tail = normal_laplace_tail(abs(off), np.sqrt(sampling + noise), (part.laplace.scale,))
    return MatchingTest(0.5 * off / equations.total, float(tail))
