"""KwikSort that asks for noisy pair counts as it goes, and how many it may ask for.

Kept to compare with: all pair counts can be released at once for the same privacy, and a consensus
of such a release, which averages over the pairs, is more accurate.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["NoisySort", "hay_cap", "noisy_kwiksort", "query_cap"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class NoisySort:
    """What a private KwikSort has found.

    Parameters
    ----------
    order : ndarray of int64, shape (m,)
        Items, best first; lists that were not divided are in the order of the pivots.
    queries : int
        Counts that were asked for.
    finished : bool
        Whether every list was divided.
    """

    order: IntArray
    queries: int
    finished: bool


def noisy_kwiksort(
    counts: IntArray, rankings: int, pivots: IntArray, cap: int, noisy: Callable[[IntArray], object]
) -> NoisySort:
    """Sort with a fresh noisy count for each comparison, at most `cap` of them in all.

    Parameters
    ----------
    counts : ndarray of int64, shape (m, m)
        How many rankings place item i before item j. Sensitive: it is only handed to `noisy`.
    rankings : int
        Number n of rankings, public; entries (i, j) and (j, i) of `counts` add up to n.
    pivots : ndarray of int64, shape (m,)
        A uniform permutation from the caller's source of noise; see `consensus.kwiksort`.
    cap : int
        Most counts that are asked for; one number for the whole recursion.
    noisy : callable
        Adds independent noise to a vector of counts, as `DiscreteLaplace.draw` does.

    Returns
    -------
    NoisySort

    Notes
    -----
    **Privacy.** Replacing one ranking moves each count by at most 1. Every call of `noisy` sees a
    list that is a function of the pivots and of earlier noisy counts, and no more than `cap`
    counts are asked for on any data, as a list is divided only if what is left of the cap
    suffices. So by adaptive composition discrete Laplace noise of scale cap / epsilon makes the
    whole transcript epsilon-private, and the result is a function of it. The counter is one for
    all lists: with a counter handed down to each branch, the second does not see what the first
    has asked, and the cap does not hold.

    An unfinished sort may be finished by the pivots' order, which costs nothing (Hay et al.), or
    replaced by another release (Alabi et al.). Transcript and replacement are then both spent on,
    so sort and replacement have to share epsilon: with all of epsilon for the queries and half of
    it for the replacement the pair spends 1.5 epsilon.

    References
    ----------
    Alabi, Ghazi, Kumar and Manurangsi (2022), Algorithm 1, https://arxiv.org/abs/2112.14652; Hay,
    Elagina and Miklau (2017), Differentially private rank aggregation, SIAM International
    Conference on Data Mining; Yan, Li and Liu (2020), https://arxiv.org/abs/1908.04486, whose
    central variant has no cap; Ailon, Charikar and Newman (2008),
    https://doi.org/10.1145/1411509.1411513.
    """
    order = np.array(pivots, dtype=np.int64)
    waiting = [(0, len(order))]
    queries, finished = 0, True
    while waiting:
        start, end = waiting.pop()
        if end - start < 2:
            continue
        if queries + end - start - 1 > cap:
            finished = False
            break
        pivot, others = order[start], order[start + 1 : end].copy()
        answers = np.asarray(noisy(counts[others, pivot]))
        queries += len(others)
        ahead = 2 * answers > rankings
        place = start + int(ahead.sum())
        order[start:place], order[place] = others[ahead], pivot
        order[place + 1 : end] = others[~ahead]
        waiting += [(start, place), (place + 1, end)]
    return NoisySort(order, queries, finished)


def hay_cap(items: int) -> int:
    """Return the cap of Hay et al.: (m - 1) log2 m, rounded up, at most all pairs."""
    pairs = items * (items - 1) // 2
    return min(pairs, math.ceil((items - 1) * math.log2(items)))


def query_cap(items: int, failure: float) -> int:
    """Return a cap that KwikSort exceeds with probability at most `failure`, whatever the answers.

    Parameters
    ----------
    items : int
        Number of items m.
    failure : float
        In (0, 1).

    Returns
    -------
    int
        At most m (m - 1) / 2, which is never exceeded.

    Notes
    -----
    **Statistic.** Fix the answers: a tournament on the items, as every pair is asked at most once.
    Dividing m items by a uniform pivot takes m - 1 queries and leaves two lists whose pivots are
    independent, of d and m - 1 - d items, d uniform among the scores of the tournament. Let G_m
    be the largest E exp(t queries) over tournaments on m items. By Landau's theorem their scores
    are majorised by 0, 1, ..., m - 1, the scores of a transitive one. So if
    d -> G_d G_(m-1-d) is convex, its mean is largest there (Karamata), and

        G_m <= exp(t (m - 1)) (1 / m) sum over d < m of G_d G_(m-1-d).

    Convexity at every size is checked for the t in use; a t without it is passed over. Markov's
    inequality gives P(queries > q) <= G_m exp(-t (q + 1)); the smallest q over a grid of t is
    returned.

    References
    ----------
    Landau (1953), https://doi.org/10.1007/BF02476378; Alabi, Ghazi, Kumar and Manurangsi (2022)
    bound the failure by exp(-0.1 q / m).
    """
    best = items * (items - 1) // 2
    for t in np.geomspace(0.1, 30.0, 60) / max(items, 2):
        log = _log_moments(items, float(t))
        if log is not None:
            cap = math.floor((log - math.log(failure)) / float(t) * (1 + 1e-12))
            best = min(best, max(cap, 0))
    return best


def _log_moments(items: int, t: float) -> float | None:
    """Return the bound on log G_m, or None where convexity fails."""
    log = np.zeros(items + 1)
    for m in range(2, items + 1):
        pieces = log[:m] + log[m - 1 :: -1]
        top = pieces.max()
        share = np.exp(pieces - top)
        if m > 2 and (share[:-2] + share[2:] - 2 * share[1:-1]).min() < 0:
            return None
        log[m] = t * (m - 1) + top + math.log(share.sum() / m)
    return float(log[items])
