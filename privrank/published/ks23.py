"""Kim and Schrab (2023), Differentially private permutation tests: their decision at one level.

The decision alone is private at the published scale. The rank p-value that their code shows beside
it, with the noisy statistic and quantile, is not: it shows the order of M_0 among all others at
once, and at this scale loses 1.138 epsilon for a set of 17 statistics (enumerated in the tests).

References
----------
https://arxiv.org/abs/2310.19043
"""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from privrank.hypotheses.statistic import Decision
from privrank.mechanisms.closeness import noise_cell
from privrank.plans.closeness import noise_scale
from privrank.privacy.noise import draw_cells
from privrank.release.plan import Plan

__all__ = ["decision", "kim_schrab_reject"]

FloatArray = NDArray[np.float64]


def decision(sensitivity: float, alpha: float) -> Decision:
    """Return their decision at level `alpha`, for a statistic of this sensitivity.

    Notes
    -----
    **Privacy.** Noise of scale 2 sensitivity / epsilon on every statistic: `kim_schrab_reject`.
    """
    scale = partial(noise_scale, 2.0, sensitivity)
    return Decision("decision", scale, partial(_decide, alpha))


def _decide(
    alpha: float, statistics: FloatArray, plan: Plan, rng: np.random.Generator | None
) -> int:
    scale = plan.number("scale")
    noises = draw_cells(scale, noise_cell(scale), len(statistics), rng)
    return int(kim_schrab_reject(statistics, noises, alpha))


def kim_schrab_reject(statistics: FloatArray, noises: FloatArray, alpha: float) -> bool:
    """Return whether the noisy statistic of the data has a rank p-value of at most alpha.

    Parameters
    ----------
    statistics : ndarray of float64, shape (B + 1,)
        The statistic of the data first, then those of the re-labellings.
    noises : ndarray of float64, shape (B + 1,)
        Independent Laplace noise of scale 2 Delta / epsilon, one for each.
    alpha : float
        Level, fixed before the data are seen.

    Notes
    -----
    **Privacy.** The decision, and it alone, is epsilon-differentially private. With the noises of
    the re-labellings fixed, rejection means that M_0 exceeds the k-th largest of M_1, ..., M_B,
    k = floor(alpha (B + 1)). An order statistic of numbers that each move by at most Delta moves by
    at most Delta, and T_0 moves by Delta, so noise on T_0 of scale 2 Delta / epsilon suffices.

    **Null.** The noisy statistics are exchangeable, so the level is at most alpha.
    """
    noisy = np.asarray(statistics, dtype=np.float64) + noises
    return bool(np.count_nonzero(noisy >= noisy[0]) <= alpha * len(noisy) * (1 + 2.0**-50))
