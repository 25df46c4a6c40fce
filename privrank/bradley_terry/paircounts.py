"""Numbers of comparisons per pair of items: exact, declared, released, or derived from item counts.

This module has no access to the data.

**Proportional counts.** Either the wins W and losses L of each item are released, or its net wins
and its number of comparisons a. The weights of the items are estimated from a = W + L. An item
whose number of comparisons is not clearly above the noise is not identified.

**Matching of opponents.** Given the number of comparisons of each item, E n_ij = x_i x_j
exp(-beta g_ij). Here x_i is the weight of item i, and g_ij is the number of places between i and j
in the released ranking. beta is 0 if pairs are drawn at random, whatever the popularity of the
items, and if answers to a fixed questionnaire are missing at random. beta is positive if similar
items are compared more often.

**Estimate of beta.** Let s_i be 1 for items in the better half of the ranking and -1 for the
others. The sum Q of s_i s_j over comparisons is released in a second stage. The estimate of beta is
the value at which the expectation of Q, given the released counts of the items, equals Q. Expected
net wins depend on the pair counts, so the scores of the worths contain the error of beta. Let z be
the contribution of one comparison of a pair to an expected score. Let n' be the derivatives of the
pair counts with respect to beta, and h = sum of n' s_i s_j the derivative of Q. An error dQ / h in
beta moves the score by (sum of z n') dQ / h. The error of the score is therefore the error of
comparisons that contribute z - (sum of z n' / h) s_i s_j each, plus the noise of Q times
(sum of z n') / h.

If Q contains too little information on beta, beta is set to 0. The hypothesis beta = 0 is tested
in all cases.

**Connected items.** For public comparisons the graph determines which items are connected. For
released counts each cut of the items into two sides is examined. If the released comparisons across
the cut, added up, do not exceed `FEW` standard deviations of their noise, the two sides are treated
as not compared. Such cuts divide the items into *parts*. Differences of worths are identified
within a part. The parts depend only on the release and the distribution of its noise.

A cut without any comparisons is detected unless the noise of the sum exceeds `FEW` standard
deviations. The probability of that is at most 0.002 for one pair, 0.0015 for two pairs and 0.001
for more (``tests/release/test_connected.py``). The noise is symmetric, so a cut with at least twice
as many comparisons is classified as empty with at most the same probability.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.sparse import coo_array, csr_array, hstack
from scipy.sparse.csgraph import connected_components
from scipy.spatial.distance import squareform
from scipy.special import ndtr, ndtri

from privrank.bradley_terry.linear import item_contrasts
from privrank.hypotheses.tails import normal_laplace_tail
from privrank.privacy.noise import DiscreteLaplace
from privrank.release import names
from privrank.release.release import Release
from privrank.release.survey import Design, PairCounts, equivalent_variance, weight_unit
from privrank.util.arrays import AnyArray, BoolArray, FloatArray, IntArray, readonly_copy
from privrank.util.solvers import inverse, product, spectrum

MAX_ERROR = 0.1
"""Largest ratio of the noise of an item's comparisons to their number for an identified item.

With a larger ratio differences of worths are too large, and not in proportion to the noise."""

_MAX_DECAY = 0.1
_MAX_IN_ALL = 1.1
"""Sizes of beta, per place and in all, up to which intervals of 12 items covered in studies."""

_LARGEST = 0.99
"""Largest number of comparisons of one item that is fitted, as a share of all others' numbers."""

_STEPS = 100
_CLOSE = 1e-11

_MAX_DECAY_ERROR = 0.05
"""Largest standard error with which beta is fitted."""

_FARTHEST = 0.3
_ROUNDS = 50
"""Largest beta that is fitted, and steps of the search."""

FEW = 4.0
"""Standard deviations of the noise that released comparisons must exceed to count as present."""

_LIMIT = 0.05
"""Level of the lower limit of the comparisons across a cut."""

_MAX_EVERY = 10
_MAX_ORDERED = 100
_MAX_SPECTRAL = 500
"""Largest numbers of items for three searches: every cut is tried; the weakest of all single items
and all cuts along eigenvectors is tried first; such cuts are tried after all single items."""

_VECTORS = 8
"""Eigenvectors along which cuts are tried."""


def released_counts(design: Design, noisy: FloatArray, variance: float) -> dict[str, Any]:
    """Return counts per pair that were released with noise of this variance.

    A fit needs counts that are not negative, so a count that noise has made negative is set to 0.
    The difference is subtracted again as soon as the worths are known
    (:func:`privrank.bradley_terry.estimate.estimate`). The errors of the equations therefore have
    mean 0 and the variance of the noise, whatever the counts are. Shrinking the counts towards
    their mean instead would cause errors of the same sign in all pairs of an item that is compared
    more often than others.
    """
    count = np.maximum(noisy, 0.0)
    return {
        "pairs": PairCounts(*np.triu_indices(len(design.items), 1), count, "released"),
        "surplus": count - noisy,
        "member": parts_of(noisy, variance, len(design.items)),
    }


def uncounted(release: Release) -> bool:
    """Return whether the numbers of comparisons of the items are unknown."""
    return release.design.unknown and not {names.SIDES, names.ITEM_COUNTS} & release.parts.keys()


@lru_cache(maxsize=8)
def pair_counts(release: Release) -> dict[str, Any]:
    """Return the comparisons per pair, as arguments of the score equations.

    The key `pairs` is always present. Released counts add `surplus` and `member`. Counts that
    follow from the counts of the items add `member` and `matching`. If tasks may be unanswered, the
    counts of all tasks are multiplied by the released share of answered tasks.
    """
    if names.PAIR_COUNTS in release.parts:
        part = release.parts[names.PAIR_COUNTS]
        return released_counts(release.design, part.values.astype(np.float64), part.noise_variance)
    if names.SIDES in release.parts or names.ITEM_COUNTS in release.parts:
        matching, member = matched_counts(release)
        return {"pairs": matching.pairs, "member": member, "matching": matching}
    if release.design.pairs is None:
        raise ValueError("release must hold pair counts, or its design must.")
    if release.design.silent:
        count = answered_share(release) * release.design.pairs.count
        return {"pairs": replace(release.design.pairs, count=count.astype(np.float64))}
    pairs = release.design.pairs
    if pairs.squares is not None:
        unit = weight_unit(release.design)
        count = np.asarray(unit * pairs.count, dtype=np.float64)
        squares = np.asarray(unit**2 * pairs.squares, dtype=np.float64)
        pairs = replace(pairs, count=count, squares=squares)
    return {"pairs": pairs}


def answered_share(release: Release) -> float:
    """Return the released share of answered tasks; 1 if all tasks are answered."""
    return released_tasks(release) / release.design.tasks if release.design.silent else 1.0


def released_tasks(release: Release) -> int:
    """Return the released number of answered tasks, cut to the possible numbers."""
    return min(max(int(release.parts[names.ANSWERED].values[0]), 1), release.design.tasks)


@dataclass(frozen=True, eq=False)
class Matching:
    """The fit of the matching of opponents.

    Expected scores depend on the matching and on the mean of F - 1/2 of each pair, which methods
    take as an argument.

    Parameters
    ----------
    pairs : PairCounts
        The pair counts.
    beta, error : float
        The coefficient of the number of places between two items, and its standard error; 0 and
        infinite if beta is not fitted.
    off, deviation : float
        Q minus its expectation for beta = 0, and the standard deviation of this difference without
        the noise of Q; `off` is NaN if Q was not released.
    alike : ndarray, shape (edges,)
        1 for pairs within a half of the ranking, -1 for pairs across, 0 for pairs with the item in
        the middle.
    slopes : ndarray, shape (edges,)
        Derivatives of the pair counts with respect to beta, divided by the derivative of Q; 0 if
        beta is not fitted.
    by_items : ndarray, shape (m, m)
        Inverse of the covariance of independent comparisons by item: (diag a + n)^-1.
    variance : float
        Variance of the noise of the comparisons of an item.
    noise : DiscreteLaplace
        Noise of Q.
    """

    pairs: PairCounts
    beta: float
    error: float
    off: float
    deviation: float
    alike: FloatArray
    slopes: FloatArray
    by_items: FloatArray
    variance: float
    noise: DiscreteLaplace

    @property
    def pvalue(self) -> float:
        """Two-sided p-value of beta = 0; NaN where Q was not released."""
        return float(normal_laplace_tail(abs(self.off), self.deviation, (self.noise.scale,)))

    @property
    def most(self) -> float:
        """Size of beta up to which intervals covered in studies."""
        return min(_MAX_DECAY, _MAX_IN_ALL / (len(self.by_items) - 1))

    @property
    def by_counts(self) -> tuple[Any, ...]:
        """How the comparisons of the items enter the pair counts, as factors of a product.

        The first two give sums over each item's comparisons, corrected for the fit of beta.
        """
        contrasts = item_contrasts(self.pairs, len(self.by_items))
        summed = abs(contrasts.matrix).multiply(self.pairs.count[:, None])
        return (
            hstack((summed, csr_array(self.slopes[:, None])), format="csr"),
            np.vstack((np.eye(len(self.by_items)), -(self.alike @ summed))),
            self.by_items,
        )

    def covariance(self, mean: FloatArray) -> FloatArray:
        """Return the contribution of random opponents to the covariance of the scores.

        The counts of the items are fixed, and `mean` is the mean score of each pair.
        """
        contrasts = item_contrasts(self.pairs, len(self.by_items))
        count = self.pairs.count
        beta = contrasts.scores(self.slopes * mean)
        both = np.multiply.outer(beta, contrasts.scores(count * self.alike * mean))
        met = contrasts.information(count * mean**2) - both - both.T
        met += float(count @ self.alike**2) * np.multiply.outer(beta, beta)
        # subtract the part explained by the comparisons of the items
        summed, taken, by_items = self.by_counts
        nets = contrasts.scores_by(np.arange(len(mean)), mean).T @ summed @ taken
        return np.asarray(met - product(product(nets, by_items), nets.T))


def item_weights(counts: FloatArray, weights: FloatArray) -> FloatArray:
    """Return the x for which x_i times the sum of all other w_ij x_j equals `counts`.

    Newton's method minimises the sum over pairs of w_ij x_i x_j minus the sum of counts log x_i,
    which is convex in log x, in steps of at most 1 in log x. Each count must be positive and less
    than the sum of the others. The diagonal of `weights`, shape (m, m), is 0.
    """
    x = counts / np.sqrt(counts.sum())
    for _ in range(_STEPS):
        table = weights * np.outer(x, x)
        summed = table.sum(axis=1)
        move = inverse(table + np.diag(summed)) @ (counts - summed)
        x = x * np.exp(move / max(float(np.abs(move).max()), 1.0))
        if np.abs(move).max() < _CLOSE:
            break
    return np.asarray(x)


def _sides(release: Release) -> tuple[FloatArray, FloatArray, float]:
    """Return the items' wins, their losses with a minus sign, and the variance of their noise.

    If comparisons and net wins were released instead, half their sum and half their difference are
    returned, which are the same except for noise. The variance is the variance of the noise of an
    item's number of comparisons.
    """
    if names.ITEM_COUNTS in release.parts:
        nets = release.parts[names.NET]
        compared = release.parts[names.ITEM_COUNTS]
        half = 0.5 * nets.step * nets.values
        return half + 0.5 * compared.values, half - 0.5 * compared.values, compared.noise_variance
    part = release.parts[names.SIDES]
    assert part.distribution is not None
    won, lost = part.step * part.values.astype(np.float64).reshape(2, -1)
    return (
        won,
        lost,
        part.step**2 * 2.0 * equivalent_variance(part.distribution, part.values.size),
    )


def _places(release: Release) -> IntArray:
    """Return the places of the items by released win rates, 0 for the best."""
    won, lost, _ = _sides(release)
    order = np.argsort(-(won + lost) / np.maximum(won - lost, 1.0), kind="stable")
    return np.argsort(order)


def halves(release: Release) -> IntArray:
    """Return 1 for the better half of the items by released win rates, -1 for the other half.

    If the number of items is odd, the item in the middle has 0.
    """
    place = _places(release)
    return np.asarray(np.sign(len(place) - 1 - 2 * place))


def matched_counts(release: Release) -> tuple[Matching, IntArray | None]:
    """Return the fitted matching and the part of each item; None if all items are in one part.

    Each item whose number of comparisons is not clearly above the noise is a part of its own. If
    one item takes part in nearly all comparisons, its weight has no finite estimate, and every item
    is a part of its own.
    """
    won, lost, variance = _sides(release)
    counts = np.maximum(won - lost, 1.0)
    rough = np.sqrt(variance) > MAX_ERROR * counts
    largest = int(np.argmax(counts))
    most = _LARGEST * (counts.sum() - counts[largest])
    if counts[largest] > most:
        counts[largest] = most
        rough = np.ones(len(won), dtype=bool)
    matching = _who_met_whom(counts, variance, release)
    if not rough.any():
        return matching, None
    # each rough item by itself, the others together
    alone = np.where(rough, np.arange(len(won)), int(np.argmin(rough)))
    return matching, readonly_copy(np.unique(alone, return_inverse=True)[1], np.int64)


def _counts_at(
    beta: float, counts: FloatArray, place: IntArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return pair counts at a value of beta, their derivatives, and the inverse by items.

    The arguments include the counts and places of the items.
    """
    gaps = np.abs(place[:, None] - place).astype(np.float64)
    weights = np.exp(-beta * gaps)
    np.fill_diagonal(weights, 0.0)
    x = item_weights(counts, weights)
    table = weights * np.outer(x, x)
    by_items = inverse(table + np.diag(counts))
    # the shift that keeps the counts of the items fixed
    shift = by_items @ (table * gaps).sum(axis=1)
    ends = np.triu_indices(len(counts), 1)
    return table[ends], (table * (shift[:, None] + shift - gaps))[ends], by_items


def _deviation(
    count: FloatArray, alike: FloatArray, by_items: FloatArray, variance: float
) -> float:
    """Return the standard deviation of Q, given the counts of items with this noise.

    Pair counts are modelled as independent Poisson numbers, conditional on the counts of the items.
    The variance of Q is the variance of its sum minus the part explained by its regression on the
    counts of the items. The noise of these counts is added through the same regression.
    """
    signed = count * alike
    summed = sum(
        np.bincount(end, signed, len(by_items)) for end in np.triu_indices(len(by_items), 1)
    )
    slopes = by_items @ summed
    sampling = max(float(signed @ alike - summed @ slopes), 1.0)
    return float(np.sqrt(sampling + variance * float(slopes @ slopes)))


def _who_met_whom(counts: FloatArray, variance: float, release: Release) -> Matching:
    """Return the fitted matching, given the counts of items and the variance of their noise."""
    place = _places(release)
    side = halves(release)
    first, second = np.triu_indices(len(counts), 1)
    alike = (side[first] * side[second]).astype(np.float64)
    count, slopes, by_items = _counts_at(0.0, counts, place)
    deviation = _deviation(count, alike, by_items, variance)
    beta = 0.0
    off = np.nan
    error = np.inf
    shares = np.zeros(len(count))
    noise = DiscreteLaplace(0.0)
    if names.OPPONENTS in release.parts:
        part = release.parts[names.OPPONENTS]
        noise = part.laplace
        off = float(part.values[0]) - float(count @ alike)
        total = np.hypot(deviation, np.sqrt(noise.variance))
        error = float(total / max(abs(slopes @ alike), 1e-300))
    if error > _MAX_DECAY_ERROR:
        error = np.inf
    else:
        for _ in range(_ROUNDS):
            before = beta
            beta += float((part.values[0] - count @ alike) / (slopes @ alike))
            beta = min(max(beta, -_FARTHEST), _FARTHEST)
            count, slopes, by_items = _counts_at(beta, counts, place)
            if abs(beta - before) < 1e-12:
                break
        shares = slopes / (slopes @ alike)
        total = np.hypot(_deviation(count, alike, by_items, variance), np.sqrt(noise.variance))
        error = float(total / max(abs(slopes @ alike), 1e-300))
    return Matching(
        PairCounts(first, second, count, "proportional"),
        beta,
        error,
        off,
        deviation,
        alike,
        shares,
        by_items,
        variance,
        noise,
    )


def groups_of(pairs: PairCounts, items: int) -> tuple[int, AnyArray]:
    """Return the number of groups that are not compared with each other, and each item's group."""
    # with covariates item i with pattern s has the number s m + i
    edges = (pairs.first % items, pairs.second % items)
    groups, member = connected_components(
        coo_array((np.ones(len(pairs.first)), edges), shape=(items, items)), directed=False
    )
    if (member[edges[0]] != member[edges[1]]).any():
        raise RuntimeError(
            "scipy's connected_components put two items that are compared into two groups: "
            "install another version of scipy."
        )
    return int(groups), member


def check_connected(pairs: PairCounts, items: tuple[str, ...], *, reports: bool = False) -> None:
    """Raise an error if a public comparison graph is not connected.

    Differences of worths between unconnected groups have no meaning. The message names the items
    outside the largest group. `reports` means that the comparisons are local reports.
    """
    groups, member = groups_of(pairs, len(items))
    if groups == 1:
        return
    outside = [items[k] for k in np.flatnonzero(member != np.bincount(member).argmax())]
    shown = ", ".join(outside[:5]) + (", ..." if len(outside) > 5 else "")
    isolated = f"{shown} {'is' if len(outside) == 1 else 'are'} never compared with the others"
    if reports:
        raise ValueError(
            f"tally must hold reports that connect all items, and in its few {isolated}: collect "
            f"more reports."
        )
    raise ValueError(
        f"comparisons must connect all items, but {isolated}, so differences between the {groups} "
        f"groups are not identified: add comparisons, leave items without any out of items=, or "
        f"analyse each group by itself."
    )


def parts_of(noisy: FloatArray, variance: float, items: int) -> IntArray | None:
    """Return the part of each item, numbered from 0; None if all items are in one part.

    `noisy` are the released counts of all pairs, in the order of ``numpy.triu_indices(items, 1)``.
    `variance` is the variance of their noise, which is uncorrelated.
    """
    table = squareform(noisy, checks=False)
    queue = [np.arange(items)]
    parts = list[IntArray]()
    while queue:
        inside = queue.pop()
        # split by the weakest cut until all cuts of the remaining items exceed their noise
        within = table[np.ix_(inside, inside)]
        if len(inside) > _MAX_ORDERED:
            alone = within.sum(axis=1) <= FEW * np.sqrt(variance * (len(inside) - 1))
            if alone.any():  # all in one step: if nothing is identified, these are all items
                parts += np.split(inside[alone], alone.sum())
                if not alone.all():
                    queue.append(inside[~alone])
                continue
        relative = np.full(1, np.inf)
        if 1 < len(inside) <= _MAX_SPECTRAL:
            sides, relative = _crossings(within, variance)
        if relative.min() > FEW:
            parts.append(inside)
        else:
            cut = sides[np.argmin(relative)]
            queue += [inside[cut], inside[~cut]]
    if len(parts) == 1:
        return None
    member = np.empty(items, dtype=np.int64)
    for number, part in enumerate(sorted(parts, key=lambda part: int(part[0]))):
        member[part] = number
    return readonly_copy(member, np.int64)


def weak_cuts(
    noisy: FloatArray, variance: float, components: Sequence[IntArray]
) -> list[tuple[FloatArray, float]]:
    """Return the cuts that barely exceed their noise, and the probability of exceeding it.

    Parameters
    ----------
    noisy, variance : ndarray, float
        Released counts of all pairs and the variance of their noise (see :func:`parts_of`).
    components : sequence of ndarray of int
        The items of each part.

    Returns
    -------
    list of ndarray and float
        For each cut, 1 for the items on one side, shape (m,), and a probability. The cuts are those
        whose number of comparisons has a one-sided 95% lower limit below `FEW` standard deviations
        of the noise. The second value is the probability of a released number above `FEW` standard
        deviations if the true number equals this limit.
    """
    table = squareform(noisy, checks=False)
    weak = []
    for part in (part for part in components if 1 < len(part) <= _MAX_SPECTRAL):
        sides, relative = _crossings(table[np.ix_(part, part)], variance)
        least = relative + float(ndtri(_LIMIT))
        for cut in np.flatnonzero(least < FEW):
            side = np.zeros(len(table))
            side[part] = sides[cut]
            weak.append((side, float(ndtr(least[cut] - FEW))))
    return weak


def _crossings(table: FloatArray, variance: float) -> tuple[BoolArray, FloatArray]:
    """Return the sides of the cuts that are tried, one per row, and the comparisons across each.

    The comparisons are in standard deviations of their noise.
    """
    m = len(table)
    if m <= _MAX_EVERY:  # the bits of 1 to 2^(m-1) - 1: the last item is never on the side
        sides = (np.arange(1, 2 ** (m - 1))[:, None] >> np.arange(m)) % 2 == 1
    else:
        # a part with few comparisons to the rest is nearly constant along a low eigenvector
        vectors = spectrum(np.diag(table.sum(axis=1)) - table)[1]
        place = np.argsort(np.argsort(vectors[:, : min(_VECTORS, m)], axis=0), axis=0)
        sweeps = place.T[:, None, :] < np.arange(1, m)[None, :, None]
        sides = np.concatenate((np.eye(m, dtype=bool), sweeps.reshape(-1, m)))
    crossing = np.einsum("ci,ci->c", sides @ table, ~sides)
    size = sides.sum(axis=1)  # a side of k items has k (m - k) pairs across the cut
    return sides, crossing / np.maximum(np.sqrt(variance * size * (m - size)), 1e-150)
