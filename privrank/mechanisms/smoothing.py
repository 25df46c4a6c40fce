r"""P-values of permutation tests from a noisy statistic: what may be released, and at what noise.

T_0 is the statistic of the data, T_1, ..., T_B those of B random re-labellings drawn independently
of the data, and Delta bounds, at every re-labelling, the change of the statistic when one unit is
replaced (`privrank.mechanisms.permutation`). Both the statistics and the re-labellings
stay secret.

**What is released.** Only the smoothed p-value p = H(M_0), rounded up, with

    M_0 = T_0 + sigma L,    H(m) = 1/(B + 1) sum_{i=0..B} P(T_i + sigma L >= m),

L a standard Laplace variable and sigma = 2.25 Delta / epsilon. Neither validity nor privacy depends
on B, which decides about power alone, and little beyond 99.

**What is not.** M_0 beside p shows the function H at a point, and H depends on all the data; so do
the permutation quantile, any T_i, and the rank of T_0 or of M_0 among them. An effect size and
`null_threshold` beside it need noise and a share of the budget of their own.

**Null.** Let the units be exchangeable under the null hypothesis. Given the multiset
{T_0, ..., T_B}, T_0 is a uniform draw from it. So M_0, given the multiset, has survival function
exactly H, which is continuous and strictly decreasing, and H(M_0) is uniform on (0, 1): exactly,
for every B, all sizes of the groups, with ties. Rounding up keeps P(p <= alpha) <= alpha. Without
noise p is (1 + #{T_i >= T_0, i >= 1}) / (B + 1), valid though not uniform (Phipson and Smyth,
2010).

**Privacy.** p is epsilon-differentially private. Fix the re-labellings as permutations of the
units; their distribution does not depend on the data, so a bound for each is one for their mixture,
however the permuted statistics are computed as long as their distribution is that of permuting
units. Write f for the density of sigma L, x_i = m - T_i, w = 1 / (B + 1), h(m) = -H'(m) = w sum_i
f(x_i), lambda_i = w f(x_i) / h (they sum to 1) and phi_i = (log f)'(x_i), which is -1/sigma or
1/sigma.

1. The density of p at u is f(m - T_0) / h(m) where H(m) = u, since p = H(M_0) and h > 0.
2. At fixed u, differentiating H(m) = u gives h dm = sum_i w f(x_i) dT_i: dm/dT_i = lambda_i.
3. d log f(x_0) / dT_i = phi_0 (lambda_i - [i = 0]) and, with the mean phibar = sum_j lambda_j
   phi_j, d log h / dT_i = sum_j lambda_j phi_j (lambda_i - [j = i]) = lambda_i (phibar - phi_i).
   So the log density changes at the rate lambda_i (phi_0 + phi_i - phibar) - [i = 0] phi_0.
4. Lead the T of one data set to those of a neighbour on a straight line, t in [0, 1]: no T_i moves
   faster than Delta. As h is continuous and positive, m and every x_i are continuously
   differentiable in t, log f(x_i) is Lipschitz and the log density absolutely continuous. The kink
   of f costs nothing: at almost every t with x_i = 0 also dx_i/dt = 0, and any phi_i between
   -1/sigma and 1/sigma gives the derivative, 0.
5. The rate in t is at most Delta (|phi_0| + sum_i lambda_i |phi_0 + phi_i - phibar|), convex in
   the vector phi for given lambda, so largest at a corner of the cube; by symmetry phi_0 =
   1/sigma. Let q be the lambda of the i with phi_i = 1/sigma, so phibar = (2q - 1)/sigma. The sum
   is (q (3 - 2q) + (1 - q) |1 - 2q|) / sigma: it is 1/sigma for q <= 1/2, and beyond
   (6q - 4q^2 - 1) / sigma, at most 5/4 of 1/sigma, at q = 3/4.
6. The log density moves by at most 2.25 Delta / sigma = epsilon.

The constant cannot be improved: for Delta / sigma = 0.05 the densities of two clusters of many
statistics differ by a factor of exp(2.248 Delta / sigma) (``tests/mechanisms/test_smoothing.py``).

**Limits.** The proof is for exact Laplace noise. Noise known as the middle of its `noise_cell` can
alter the rounded p only where a cell crosses one of the 10,000 steps: with probability below
2e-10 in all.

References
----------
Phipson and Smyth (2010), https://doi.org/10.2202/1544-6115.1585; Kim and Schrab (2023),
https://arxiv.org/abs/2310.19043; Acharya, Sun and Zhang (2018), https://arxiv.org/abs/1707.05128.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from privrank.plans.closeness import RELEASED_STEPS
from privrank.util.solvers import bracket

__all__ = ["noise_cell", "null_threshold", "round_up", "smoothed_pvalue"]

FloatArray = NDArray[np.float64]

_HALVINGS = 44

_TIE = 2.0**-30
"""Statistics no further apart than this, relative to the largest, may be equal but for rounding."""


def noise_cell(scale: float) -> float:
    """Return the cell width for `noise.draw_cells`: the power of two in (scale 2^-46, scale 2^-45].

    Middles of cells are then exact floats up to 64 scales, where noise of that size does not
    occur.
    """
    return 2.0 ** (math.frexp(scale)[1] - 46)


def smoothed_pvalue(statistics: FloatArray, noisy: float, scale: float) -> float:
    """Return H(m) at m = `noisy`, the p-value that is released once it is rounded up.

    Parameters
    ----------
    statistics : ndarray of float64, shape (B + 1,)
        The statistic of the data, anywhere, and those of the B re-labellings.
    noisy : float
        The statistic of the data plus Laplace noise of this scale.
    scale : float
        Noise scale, from `smoothing_scale`; 0 without noise.

    Returns
    -------
    float
        Uniform on (0, 1) under the null hypothesis. Not to be released before `round_up`.

    Notes
    -----
    **Privacy.** **Null.** Both proofs are in the module's description.
    """
    statistics = np.asarray(statistics, dtype=np.float64)
    if scale == 0:
        return float(np.mean(statistics >= noisy - _TIE * np.abs(statistics).max()))
    steps = (noisy - statistics) / scale
    tail = 0.5 * np.exp(-np.abs(steps))
    return float(np.mean(np.where(steps > 0, tail, 1.0 - tail)))


def round_up(pvalue: float) -> float:
    """Return the p-value as it is released: rounded up to a multiple of 1e-4, at least 1e-4."""
    return min(max(math.ceil(RELEASED_STEPS * pvalue), 1), RELEASED_STEPS) / RELEASED_STEPS


def null_threshold(statistics: FloatArray, level: float, b: float) -> float:
    """Return the c with mean_i P(T_i + b (L - L') >= c) = level over the T_i, the data's included.

    Without noise the least of the T_i that a share of at most `level` of them exceeds.

    Notes
    -----
    **Privacy.** Unit and neighbours: replace one unit. At fixed re-labellings each T_i moves by at
    most Delta, and so do their mean and c: the mean of tails rises with the T_i, and c moves by as
    much as they do if all move alike. So the l1 sensitivity of T_0 and either of the two is
    2 Delta, whatever else is released of the same re-labellings.
    """
    statistics = np.asarray(statistics, dtype=np.float64)
    if b == 0:
        return float(np.quantile(statistics, 1.0 - level, method="inverted_cdf"))
    reach = b * (4.0 - 2.0 * math.log(level))
    low, high = float(statistics.min()) - reach, float(statistics.max()) + reach

    def exceeded(threshold: float) -> bool:
        steps = (threshold - statistics) / b
        # the tail of a sum of two Laplace variables
        tail = 0.25 * np.exp(-np.abs(steps)) * (2.0 + np.abs(steps))
        return bool(np.where(steps > 0, tail, 1.0 - tail).mean() > level)

    return bracket(exceeded, low, high, _HALVINGS)[1]
