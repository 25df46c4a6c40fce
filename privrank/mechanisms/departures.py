r"""Statistics of any number of groups: the distance of each group from all units together.

Let phi_i be the features of unit i of N. They are the indicator of its category with half the
l1 norm, whose diameter is 1, or its ranking in the space of a kernel (`plans.closeness.DIAMETER`
has the diameters). With mu the mean over all units and w_g = n_g / N the share of group g,

    D_g = |sum of phi_i - mu over the units i of g| / N = w_g |mean of g - mu|

is the *departure* of g, and T = D_1 + ... + D_G. For choices T is the total variation distance of
the joint distribution of group and category from the product of its margins. For two groups
T = 2 w_1 w_2 |mean of 1 - mean of 2| is their distance, rescaled.

**Privacy.** Unit and neighbours: replace one unit. Let its features move by d, |d| <= diam, in
group g. Then mu moves by d / N, the sum of g by (1 - w_g) d and the sum of every other group h by
-w_h d.

- *T* moves by at most (1 - w_g + sum_{h != g} w_h) |d| / N = 2 (1 - w_g) |d| / N. A re-labelling
  can put the unit into any group, so Delta = 2 (1 - w) diam / N for every re-labelling, where w is
  the smallest share. The bound is attained if all units of the smallest group are at x and all
  others at y.
- *D_g* moves by at most max(w_g, 1 - w_g) diam / N, because the unit is in g or it is not.
- *Private labels.* Neighbours may also change a unit's group. At a re-labelling the replaced unit
  stays in the group that it is dealt, and some unit j moves from one group to another. Consider
  both changes in turn. The first moves T by less than 2 diam / N, as above. The second leaves mu
  unchanged and moves phi_j - mu from one sum to the other. With |phi_j - mu| <= (1 - 1/N) diam this
  is less than 2 diam / N again. So Delta = 4 diam / N for all sizes of the groups, empty groups
  included. For choices no smaller multiple of 1 / N is a bound: 4 / N - 8 / N^2 is attained by one
  unit (a, x), one (b, z) and all others (c, y), where the first becomes (a, y) and the second
  (c, z).

**Omnibus.** The value max_j (T_j / Delta_j - q_j) of statistics T_j moves by at most 1 if the q_j
are public, because each term moves by at most 1. `quantiles` makes the terms comparable: q_j is the
number that the noisy T_j of a public reference distribution exceeds with a stated probability. The
test is valid for any q_j.

**Reference distributions** are public and make the parts of an omnibus comparable. They are draws
of the parts for groups that all choose, or rank, uniformly. They depend only on the sizes of the
groups and the number of categories or items, and come from separate public sequences. They are
independent of the data, the noise and the permutations of a fit. They determine how the level is
divided between the parts; the test is valid in every case.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import lru_cache, partial

import numpy as np

from privrank.hypotheses.nulls import public_generator, uniform_rankings
from privrank.mechanisms.permutation import (
    FLOOR,
    Gram,
    TableArray,
    gram_of,
    kernel_products,
    noisy_quantile,
)
from privrank.plans.closeness import DIAMETER, MAX_TABULATED, RankKernel
from privrank.util.arrays import FloatArray, IntArray, batches, orders_of, readonly_copy

_CELLS = 2**19
"""Cells of tables looked at a time."""

_TABULATED = 2**18
"""Counts up to which expected deviations are tabulated; beyond they grow like the root."""

_WHOLE = 0.035
_EACH = 0.05
"""Levels of the sum, and of all departures together; valid whatever they add up to."""

_DRAWS = 1_000
"""Draws of a reference distribution, unless re-labellings would have too many cells."""

_WORK = 2**25
"""Cells of tables up to which re-labellings are drawn, though never fewer than a tenth of them."""

_HELD = 2**24
"""Cells of tables, or inner products of groups, held at a time."""


def share_departures(tables: TableArray) -> FloatArray:
    """Return the departures D_g of shares by category, in total variation, by table.

    Parameters
    ----------
    tables : ndarray of int32, shape (t, G, k)
        Counts by group and category.

    Returns
    -------
    ndarray of float64, shape (t, G)
        Within a table, equal departures have exactly equal values.
    """
    sizes = tables[0].sum(axis=1, dtype=np.int64)
    total = int(sizes.sum())
    departures = np.empty(tables.shape[:2])
    for rows in batches(len(tables), tables[0].size, _CELLS):
        pooled = _pooled(tables[rows])
        for g, size in enumerate(sizes):
            deviation = np.abs(total * tables[rows, g].astype(np.int64) - size * pooled)
            departures[rows, g] = deviation.sum(axis=1) / (2.0 * total**2)
    return departures


def kernel_departures(tables: TableArray, gram: Gram) -> FloatArray:
    """Return the departures D_g of mean features under a kernel, by table.

    Parameters
    ----------
    tables : ndarray of int32, shape (t, G, k)
        Counts by group and kind; no group is empty.
    gram : iterable of (int, ndarray of float64)
        The kernel matrix, as for :func:`kernel_products`.

    Returns
    -------
    ndarray of float64, shape (t, G)
        w_g sqrt(x^2 + 1e-12), where x is the distance of the group's mean from the overall mean;
        the root changes no faster than x.
    """
    sizes = tables[0].sum(axis=1, dtype=np.int64)
    share = sizes / sizes.sum()
    from_mean = np.eye(len(sizes)) - share  # rows e_g - w: the mean of g less the mean of all
    square = ((from_mean @ kernel_products(tables, gram)) * from_mean).sum(axis=2)
    return np.asarray(share * np.sqrt(np.maximum(square, 0.0) + FLOOR))


def parts_of_departures(departures: FloatArray, sizes: IntArray, diameter: float) -> FloatArray:
    """Return T and all D_g in units of their sensitivities, shape (t, 1 + G)."""
    total = int(np.sum(sizes))
    share = np.asarray(sizes) / total
    steps = np.maximum(share, 1.0 - share) * diameter / total
    whole = departures.sum(axis=1) / (2.0 * (1.0 - share.min()) * diameter / total)
    return np.concatenate((whole[:, None], departures / steps), axis=1)


def cell_parts(tables: TableArray) -> FloatArray:
    r"""Return statistics of choices with power for many small differences and for one large one.

    Parameters
    ----------
    tables : ndarray of int32, shape (t, G, k)
        Counts by group and category; no group is empty.

    Returns
    -------
    ndarray of float64, shape (t, 1 + 2 G), or (t, 2) for two groups
        S, then all R_g, then all M_g, each in units of its sensitivity. For two groups, R_1 and
        M_1, because the other statistics are then redundant.

    Notes
    -----
    With counts c_gx, C_x = sum_g c_gx and A_gx = c_gx - w_g C_x,

        R_g = sum_x (|A_gx| - e_g(C_x)),  S = sum_g R_g,  M_g = max_x (|A_gx| - s_g(C_x)),

    where e_g and s_g approximate the mean and the spread of |A_gx| for equal groups. Without them a
    part would lose its power if categories have very different sizes. They are functions of C_x,
    which no re-labelling changes.

    **Privacy.** Unit and neighbours: replace one unit, in the group that a re-labelling has put it
    in. Write b_g = w_g (1 - w_g) and v_g = max(w_g, 1 - w_g). e_g rises by at most b_g per count
    (`_expected`) and s_g by at most v_g / 8 (`_spread`), and neither falls. Removing a unit of
    group g from x moves |A_gx| by at most 1 - w_g and |A_hx| of another group by at most w_h, their
    sum by at most 2 (1 - w_g), and -e_h(C_x) by 0 to b_h. Adding it at y moves them likewise, and
    -e_h(C_y) by -b_h to 0. With B the sum of all b_h:

    - S moves by at most 4 (1 - w) + B, w the smallest share;
    - R_g by at most 2 v_g + b_g;
    - M_g by at most 9 v_g / 8: so much each of two terms, and a maximum moves no more than its
      terms.
    """
    sizes = tables[0].sum(axis=1, dtype=np.int64)
    total = int(sizes.sum())
    two = len(sizes) == 2
    share = sizes / total
    both = share * (1.0 - share)
    most = np.maximum(share, 1.0 - share)
    sums, largest = (np.zeros(tables.shape[:2]) for _ in range(2))
    for rows in batches(len(tables), tables[0].size, _CELLS):
        pooled = _pooled(tables[rows])
        for g in range(1 if two else len(sizes)):
            deviation = np.abs(total * tables[rows, g].astype(np.int64) - sizes[g] * pooled)
            expected = _expected(pooled, int(sizes[g]), total).sum(axis=1)
            sums[rows, g] = deviation.sum(axis=1) / total - expected
            largest[rows, g] = (deviation / total - _spread(pooled, share[g])).max(axis=1)
    groups = sums / (2.0 * most + both)
    cells = largest / (9.0 / 8.0 * most)
    if two:
        return np.stack((groups[:, 0], cells[:, 0]), axis=1)
    whole = sums.sum(axis=1) / (4.0 * (1.0 - share.min()) + both.sum())
    return np.concatenate((whole[:, None], groups, cells), axis=1)


def _pooled(tables: TableArray) -> IntArray:
    """Return counts by kind over all groups, shape (1, k) if they are equal for all tables.

    Re-labellings of one data set have equal counts, so quantities that depend on these are computed
    once.
    """
    pooled = tables.sum(axis=1, dtype=np.int64)
    return np.asarray(pooled[:1] if (pooled == pooled[0]).all() else pooled)


def _spread(pooled: IntArray, share: float) -> FloatArray:
    """Return s(c) = sqrt(b c + r^2) - r with b = w (1 - w), l = max(w, 1 - w) / 8, r = b / (2 l).

    Its derivative is at most b / (2 r) = l, at 0.
    """
    both = share * (1.0 - share)
    root = 4.0 * min(share, 1.0 - share)
    return np.asarray(np.sqrt(both * pooled + root**2) - root)


def _expected(pooled: IntArray, size: int, total: int) -> FloatArray:
    """Return e(c), nearly the mean absolute deviation of a binomial (c, w = size / total) count.

    e(c) = min_{j <= c} (d(j) + (c - j) w (1 - w)), with d the mean absolute deviation. So e
    increases by at most w (1 - w) per count. As d does not decrease (the deviations of a martingale
    grow), e does not decrease either. Counts beyond the table have e(last) sqrt(c / last): as
    e(last) <= last w (1 - w), this increases by at most half of w (1 - w) per count.
    """
    table = _expected_table(size, total)
    last = len(table) - 1
    inside = table[np.minimum(pooled, last)]
    return np.asarray(inside * np.sqrt(np.maximum(pooled / last, 1.0)))


@lru_cache(maxsize=64)
def _expected_table(size: int, total: int) -> FloatArray:
    from scipy.stats import binom

    share = size / total
    count = np.arange(min(total, _TABULATED) + 1)
    # De Moivre: 2 j (1 - w) P(Bin(c, w) = j) for j = floor(c w) + 1
    j = count * size // total + 1
    deviation = 2.0 * j * (1.0 - share) * binom.pmf(j, count, share)
    # e(c) = min over j <= c of d(j) + (c - j) w (1 - w): a running minimum of what is over a line
    rise = share * (1.0 - share) * count
    return readonly_copy(
        np.minimum.accumulate(np.maximum.accumulate(deviation) - rise) + rise, np.float64
    )


def omnibus_values(parts: FloatArray, public: FloatArray) -> FloatArray:
    """Return max_j (T_j - q_j) by table; its sensitivity is 1 (see the module's description)."""
    return np.asarray((parts - public).max(axis=1))


@lru_cache(maxsize=64)
def choice_parts(sizes: tuple[int, ...], k: int, *, cells: bool) -> FloatArray:
    """Return draws of `cell_parts`, or of the departures, of groups that choose uniformly."""
    if cells:
        return readonly_copy(
            np.concatenate(list(map(cell_parts, choice_tables(sizes, k)))), np.float64
        )
    apart = np.concatenate(list(map(share_departures, choice_tables(sizes, k))))
    return readonly_copy(parts_of_departures(apart, np.array(sizes), 1.0), np.float64)


@lru_cache(maxsize=64)
def ranking_parts(sizes: tuple[int, ...], m: int, kernel: RankKernel) -> FloatArray:
    """Return draws of the departures of groups that rank m items uniformly."""
    ranks, drawn = ranking_tables(sizes, m, m <= MAX_TABULATED)
    gram = gram_of(ranks, kernel)
    apart = np.concatenate([kernel_departures(tables(), gram) for tables in drawn])
    return readonly_copy(parts_of_departures(apart, np.array(sizes), DIAMETER[kernel]), np.float64)


def levels(groups: int, parts: int) -> tuple[float, ...]:
    """Return the levels at which parts of `cell_parts`, or departures, enter an omnibus."""
    if parts == 2:
        return 0.025, 0.025
    if parts == 1 + groups:
        return _WHOLE, *[_EACH / groups] * groups
    return 0.02, *[0.015 / groups] * (2 * groups)


def quantiles(reference: FloatArray, groups: int, scale: float) -> FloatArray:
    """Return the public q_j of an omnibus from draws of its parts, for noise of this scale.

    q_j is the number that part j with its noise exceeds, under a reference distribution, with its
    probability in `levels`.
    """
    pairs = zip(reference.T, levels(groups, reference.shape[1]), strict=True)
    return np.array([noisy_quantile(draws, level, scale) for draws, level in pairs])


def choice_tables(sizes: tuple[int, ...], k: int) -> Iterator[TableArray]:
    """Yield public tables (draws, groups, k) of groups of these sizes that choose uniformly."""
    rng = public_generator("closeness of choices", k, *sizes)
    for rows in batches(_DRAWS, len(sizes) * k, _HELD):
        yield _multinomial(rng, sizes, k, rows.stop - rows.start)


def ranking_tables(
    sizes: tuple[int, ...], m: int, tabulated: bool
) -> tuple[IntArray, list[Callable[[], TableArray]]]:
    """Return rankings of m items, and functions that draw tables of their counts by group.

    If `tabulated`, these are all m! rankings, and each group has multinomial counts. If not, they
    are one public sample, whose re-labellings are drawn.
    """
    rng = public_generator("closeness of rankings", m, *sizes)
    total = sum(sizes)
    groups = len(sizes)
    draws = _DRAWS
    if tabulated:
        kinds = math.factorial(m)
        ranks = orders_of(m)
        drawn = partial(_multinomial, rng, sizes, kinds)
    else:
        kinds = total
        ranks = uniform_rankings(rng, total, m)
        draws = min(_DRAWS, max(_WORK // (groups * total), _DRAWS // 10))
        drawn = partial(_relabelled, rng, sizes)
    held = batches(draws, groups * max(groups, kinds), _HELD)
    return ranks, [partial(drawn, rows.stop - rows.start) for rows in held]


def _multinomial(
    rng: np.random.Generator, sizes: tuple[int, ...], k: int, draws: int
) -> TableArray:
    cells = np.full(k, 1.0 / k)
    tables = np.empty((draws, len(sizes), k), dtype=np.int32)
    for g, size in enumerate(sizes):
        tables[:, g] = rng.multinomial(size, cells, draws)
    return tables


def _relabelled(rng: np.random.Generator, sizes: tuple[int, ...], draws: int) -> TableArray:
    """Return tables in which each unit is a separate kind, dealt to the groups at random."""
    label = np.repeat(np.arange(len(sizes)), sizes)
    labels = rng.permuted(np.tile(label, (draws, 1)), axis=1)
    return np.stack([labels == g for g in range(len(sizes))], axis=1).astype(np.int32)
