r"""The release of a permutation test: a p-value or a decision, and an effect size on request.

The totals of every item by group, which show what differs, can be released as well. The p-value
belongs to a noisy statistic. This docstring states which of its parts may be released and with
which noise, and proves it.

T_0 is the statistic of the data, T_1, ..., T_B its values for B random re-labellings drawn
independently of the data. Delta bounds, at every re-labelling, the change of the statistic when one
unit is replaced (`privrank.mechanisms.permutation`). Both the statistics and the re-labellings stay
secret.

**Released.** Only the smoothed p-value p = H(M_0), rounded up, with

    M_0 = T_0 + sigma L,    H(m) = 1/(B + 1) sum_{i=0..B} P(T_i + sigma L >= m),

where L is a standard Laplace variable and sigma = 2.25 Delta / epsilon. B affects neither validity
nor privacy. It affects power only, and the power increases little beyond B = 99.

**Not released.** M_0 together with p shows the function H at a point, and H depends on all the
data. The permutation quantile, any T_i, and the rank of T_0 or of M_0 among them depend on all the
data as well. An effect size and its `null_threshold` need separate noise and a separate share of
the budget.

**Null.** Let the units be exchangeable under the null hypothesis. Given the multiset
{T_0, ..., T_B}, T_0 is a uniform draw from it. Given the multiset, M_0 therefore has the survival
function H, which is continuous and strictly decreasing, so H(M_0) is uniform on (0, 1). This is
exact for every B and all group sizes, and with ties. Rounding up preserves P(p <= alpha) <= alpha.
Without noise p is (1 + #{T_i >= T_0, i >= 1}) / (B + 1), which is valid though not uniform (Phipson
and Smyth, 2010).

**Privacy.** p is epsilon-differentially private. Fix the re-labellings as permutations of the
units. Their distribution does not depend on the data, so a bound for each of them is a bound for
their mixture. This holds for every method of computing the permuted statistics, as long as their
distribution is the distribution under permutation of units. Write f for the density of sigma L,
x_i = m - T_i, w = 1 / (B + 1), h(m) = -H'(m) = w sum_i f(x_i), lambda_i = w f(x_i) / h (they sum to
1) and phi_i = (log f)'(x_i), which is -1/sigma or 1/sigma.

1. The density of p at u is f(m - T_0) / h(m) where H(m) = u, since p = H(M_0) and h > 0.
2. At fixed u, differentiating H(m) = u gives h dm = sum_i w f(x_i) dT_i: dm/dT_i = lambda_i.
3. d log f(x_0) / dT_i = phi_0 (lambda_i - [i = 0]) and, with the mean phibar = sum_j lambda_j
   phi_j, d log h / dT_i = sum_j lambda_j phi_j (lambda_i - [j = i]) = lambda_i (phibar - phi_i).
   So the log density changes at the rate lambda_i (phi_0 + phi_i - phibar) - [i = 0] phi_0.
4. Move the T of one data set to the T of a neighbour on a straight line, t in [0, 1]. No T_i moves
   faster than Delta. Because h is continuous and positive, m and every x_i are continuously
   differentiable in t, log f(x_i) is Lipschitz and the log density is absolutely continuous. The
   kink of f does not matter: at almost every t with x_i = 0, dx_i/dt = 0 as well, and any phi_i
   between -1/sigma and 1/sigma gives the derivative, 0.
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

**Kim and Schrab (2023)** decide at one level instead, with noise of scale 2 Delta / epsilon on
every statistic. The decision alone is private at this scale. The rank p-value that their code also
shows, with the noisy statistic and quantile, is not private: it shows the rank of M_0 among all
others. At this scale it loses 1.138 epsilon for a set of 17 statistics (enumerated in the tests).

**Departures** are statistics of any number of groups: the distance of each group from all units
together. Let phi_i be the features of unit i of N. They are the indicator of its category with
half the l1 norm, whose diameter is 1, or its ranking in the space of a kernel
(`plans.samples.DIAMETER` has the diameters). With mu the mean over all units and w_g = n_g / N
the share of group g,

    D_g = |sum of phi_i - mu over the units i of g| / N = w_g |mean of g - mu|

is the *departure* of g, and T = D_1 + ... + D_G. For choices T is the total variation distance of
the joint distribution of group and category from the product of its margins. For two groups
T = 2 w_1 w_2 |mean of 1 - mean of 2| is their distance, rescaled.

**Privacy of departures.** Unit and neighbours: replace one unit. Let its features move by d,
|d| <= diam, in group g. Then mu moves by d / N, the sum of g by (1 - w_g) d and the sum of every
other group h by -w_h d.

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

References
----------
Phipson and Smyth (2010), https://doi.org/10.2202/1544-6115.1585; Kim and Schrab (2023),
https://arxiv.org/abs/2310.19043; Acharya, Sun and Zhang (2018), https://arxiv.org/abs/1707.05128.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache, partial

import numpy as np

from privrank.encode.encoded import EncodedChoices, EncodedGroups, EncodedSample
from privrank.hypotheses.interval import THRESHOLD_LEVEL
from privrank.hypotheses.nulls import binomial_weights, public_generator, uniform_rankings
from privrank.mechanisms.choices import permuted_scores
from privrank.mechanisms.permutation import (
    FLOOR,
    Gram,
    TableArray,
    chi_square,
    gram_of,
    kernel_distance,
    kernel_products,
    laplace_tail,
    largest_distance,
    noisy_quantile,
    permuted_statistics,
)
from privrank.mechanisms.samples import completed_groups, one_row_each, tabulated
from privrank.mechanisms.spend import Drawn, draw, spend_and_release
from privrank.plans.samples import (
    DIAMETER,
    MAX_TABULATED,
    ONE_NUMBER,
    RELEASED_STEPS,
    Comparison,
    RankKernel,
)
from privrank.privacy.budget import Ledger
from privrank.privacy.draws import draw_permutation
from privrank.privacy.noise import DiscreteLaplace, draw_cells
from privrank.release.names import DETAILS, PVALUE, STATISTIC
from privrank.release.release import Release
from privrank.release.survey import Plan, Sample
from privrank.util.arrays import FloatArray, IntArray, Rng, batches, orders_of, readonly_copy

Measure = Callable[[TableArray], FloatArray]

_TIE = 2.0**-30
"""Statistics no further apart than this, relative to the largest, may be equal but for rounding."""

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


def release_comparison(
    encoded: EncodedGroups | EncodedChoices,
    comparison: Comparison,
    plan: Plan,
    *,
    public: FloatArray,
    budget: Ledger | None,
    rng: Rng,
) -> Release:
    """Spend the budget and release what was planned.

    Parameters
    ----------
    encoded : EncodedGroups or EncodedChoices
        The sensitive samples.
    comparison : Comparison
        Statistic and form of release.
    plan : Plan
        Its noise (:func:`plan_comparison`).
    public : ndarray of float64
        Quantiles from :func:`public_quantiles`.
    budget : Ledger or None
        Ledger to reserve from.
    rng : numpy.random.Generator or None
        None for secure noise.

    Raises
    ------
    BudgetExceeded, ValueError
        Before any answer is read.
    """
    drawn = partial(_drawn, encoded, comparison, plan, public, rng)
    return spend_and_release(plan, encoded.sample, drawn, budget=budget, rng=rng)


def _drawn(
    encoded: EncodedGroups | EncodedChoices,
    comparison: Comparison,
    plan: Plan,
    public: FloatArray,
    rng: Rng,
) -> Drawn:
    """Draw the values of a release, and a random order of the items."""
    items = len(encoded.sample.items)
    if isinstance(encoded, EncodedChoices):
        statistics = permuted_scores(encoded, int(plan.number("permutations")), rng)
        pvalue = np.array([_outcome(comparison, plan, statistics, rng)])
        return Drawn({PVALUE: pvalue}, draw_permutation(items, rng))
    sample = encoded.sample
    # under private labels the number of empty groups decides how much randomness is used
    early = draw_permutation(items, rng) if sample.private_labels else None
    parts = [one_row_each(part, rng, apart=sample.paired) for part in encoded._parts]
    data = completed_groups(EncodedGroups(sample, parts, encoded._partners), rng)
    values = {}
    if comparison.form != "table":
        statistics = permuted(data, comparison, plan, public, rng)
        values[comparison.part] = np.array([_outcome(comparison, plan, statistics[:, 0], rng)])
        if STATISTIC in plan.parts:
            values[STATISTIC] = _effect(plan, statistics[:, -1], rng)
    # the totals by group with the noise that was planned for them, if any were
    for number, part in enumerate(data._parts):
        if (detail := f"{DETAILS} {number}") in plan.parts:
            rows = tabulated(part)
            totals = rows if sample.kind == "choices" else (rows - 1).sum(axis=0)
            values[detail] = draw(plan.parts[detail], totals, rng)
    return Drawn(values, early or draw_permutation(items, rng))


def simulated_groups(groups: Sequence[IntArray], sample: Sample) -> EncodedGroups:
    """Return groups of simulated data, with one row per unit, of the sizes of a sample."""
    facts = replace(sample, unit="row", max_rows=1)
    return EncodedGroups(
        facts,
        [
            EncodedSample(replace(facts, nobs=size, groups=()), rows)
            for rows, size in zip(groups, sample.sizes, strict=True)
        ],
    )


def permuted(
    encoded: EncodedGroups, comparison: Comparison, plan: Plan, public: FloatArray, rng: Rng
) -> FloatArray:
    """Return the statistics of the data and of all re-labellings, which are sensitive.

    In rows, with the observed data first. The distance of two groups is a second column if it is
    needed in addition to another statistic. `public` is from :func:`public_quantiles`.
    """
    counts, gram, pairs = _data(encoded, comparison)
    measures = [_measure(gram, comparison, encoded.sample, public)]
    if STATISTIC in plan.parts and comparison.form != "pairs":
        measures.append(_pairs(gram, comparison))
    return permuted_statistics(
        counts,
        lambda tables: np.stack([measure(tables) for measure in measures], axis=1),
        int(plan.number("permutations")),
        rng,
        pairs,
    )


def _outcome(comparison: Comparison, plan: Plan, statistics: FloatArray, rng: Rng) -> int:
    """Return the smoothed p-value in its steps, or the decision; `statistics` are sensitive."""
    if comparison.decision is not None:
        return comparison.decision(statistics, plan, rng)
    # M_0 = T_0 + sigma L, and of it only H(M_0) leaves this function
    scale = plan.number("scale")
    noisy = statistics[0]
    if scale > 0:
        noisy = noisy + draw_cells(scale, noise_cell(scale), 1, rng)[0]
    return round(round_up(smoothed_pvalue(statistics, float(noisy), scale)) * RELEASED_STEPS)


def _effect(plan: Plan, distances: FloatArray, rng: Rng) -> IntArray:
    """Return the noisy distance and its additional release; `distances` are sensitive."""
    part = plan.parts[STATISTIC]
    numbers = [float(distances[0])]
    if THRESHOLD_LEVEL in plan.settings:
        assert isinstance(part.noise, DiscreteLaplace)
        level = plan.number(THRESHOLD_LEVEL) / 2.0
        numbers.append(null_threshold(distances, level, part.noise.scale * part.step))
    elif part.sensitivity > ONE_NUMBER:
        numbers.append(float(distances[1:].mean()))
    return draw(part, np.array([math.floor(number / part.step) for number in numbers]), rng)


def public_quantiles(comparison: Comparison, sample: Sample, scale: float) -> FloatArray:
    """Return the quantiles by which an omnibus compares its parts; none for other statistics."""
    if comparison.form not in ("groups", "cells"):
        return np.empty(0)
    sizes = sample.sizes
    if comparison.statistic in ("mallows", "kendall"):
        drawn = ranking_parts(sizes, len(sample.items), comparison.statistic)
    else:
        drawn = choice_parts(sizes, len(sample.items), cells=comparison.form == "cells")
    return quantiles(drawn, len(sizes), scale)


def _measure(
    gram: Gram | None, comparison: Comparison, sample: Sample, public: FloatArray
) -> Measure:
    """Return the statistic of the test, as a function of tables."""
    if comparison.form == "pairs":
        return _pairs(gram, comparison)
    apart: Measure = share_departures if gram is None else partial(kernel_departures, gram=gram)
    if comparison.form == "sum":
        return lambda tables: apart(tables).sum(axis=1)
    if comparison.form == "cells":
        return lambda tables: omnibus_values(cell_parts(tables), public)
    parts = partial(
        parts_of_departures,
        sizes=np.array(sample.sizes),
        diameter=1.0 if gram is None else DIAMETER[_kernel(comparison)],
    )
    return lambda tables: omnibus_values(parts(apart(tables)), public)


def _pairs(gram: Gram | None, comparison: Comparison) -> Measure:
    """Return the largest distance of two groups, as a function of tables."""
    if gram is not None:
        return partial(kernel_distance, gram=gram)
    return chi_square if comparison.statistic == "chi-square" else largest_distance


def _data(
    encoded: EncodedGroups, comparison: Comparison
) -> tuple[IntArray, Gram | None, IntArray | None]:
    """Return the input of a permutation test, of units with one row each; sensitive.

    Counts by sample and kind; no sample is empty, as groups without units, if any, are left out.
    The kernel matrix of kinds of rankings, or features of many. The kinds of each respondent's
    answers, shape (2, n), where two samples are of the same respondents.
    """
    sample = encoded.sample
    parts = [part for part in encoded._parts if part.sample.nobs]
    gram = None
    if sample.kind == "choices":
        kinds = [part._rows.ravel() for part in parts]
        counts = np.array([tabulated(part) for part in parts])
    else:
        ranks = np.concatenate([part._rows for part in parts])
        places = np.arange(len(ranks))
        # of few items the kinds are all m! orders, of many each respondent is a kind
        if len(sample.items) <= MAX_TABULATED:
            from privrank.kernels.rankings import places_of

            places = places_of(ranks)
            ranks = orders_of(len(sample.items))
        kinds = np.split(places, np.cumsum([part.sample.nobs for part in parts])[:-1])
        counts = np.array([np.bincount(kind, minlength=len(ranks)) for kind in kinds])
        gram = gram_of(ranks, _kernel(comparison))
    partners = encoded._partners
    pairs = None if partners is None else np.stack([kinds[0], kinds[1][partners]])
    return counts, gram, pairs


def _kernel(comparison: Comparison) -> RankKernel:
    return "kendall" if comparison.statistic == "kendall" else "mallows"


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
        The statistic of the data, anywhere, and its values for the B re-labellings.
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
    return float(
        np.mean(
            statistics >= noisy - _TIE * np.abs(statistics).max()
            if scale == 0
            else laplace_tail((noisy - statistics) / scale)
        )
    )


def round_up(pvalue: float) -> float:
    """Return the p-value as it is released: rounded up to a multiple of 1e-4, at least 1e-4."""
    return min(max(math.ceil(RELEASED_STEPS * pvalue), 1), RELEASED_STEPS) / RELEASED_STEPS


def null_threshold(statistics: FloatArray, level: float, b: float) -> float:
    """Return the c with mean_i P(T_i + b (L - L') >= c) = level over the T_i, the data's included.

    Without noise the least of the T_i that a share of at most `level` of them exceeds.

    Notes
    -----
    **Privacy.** Unit and neighbours: replace one unit. At fixed re-labellings each T_i moves by at
    most Delta, and so do their mean and c. For the mean of tails rises with the T_i, and c moves by
    as much as they do if all move alike. So the l1 sensitivity of T_0 and either of the two is
    2 Delta, whatever else is released of the same re-labellings.
    """
    return noisy_quantile(statistics, level, b, copies=2)


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
    root = 4.0 * min(share, 1.0 - share)
    return np.asarray(np.sqrt(share * (1.0 - share) * pooled + root**2) - root)


def _expected(pooled: IntArray, size: int, total: int) -> FloatArray:
    """Return e(c), nearly the mean absolute deviation of a binomial (c, w = size / total) count.

    e(c) = min_{j <= c} (d(j) + (c - j) w (1 - w)), with d the mean absolute deviation. So e
    increases by at most w (1 - w) per count. As d does not decrease (the deviations of a martingale
    grow), e does not decrease either. Counts beyond the table have e(last) sqrt(c / last): as
    e(last) <= last w (1 - w), this increases by at most half of w (1 - w) per count.
    """
    table = _expected_table(size, total)
    last = len(table) - 1
    return np.asarray(table[np.minimum(pooled, last)] * np.sqrt(np.maximum(pooled / last, 1.0)))


@lru_cache(maxsize=64)
def _expected_table(size: int, total: int) -> FloatArray:
    share = size / total
    count = np.arange(min(total, _TABULATED) + 1)
    # De Moivre: 2 j (1 - w) P(Bin(c, w) = j) for j = floor(c w) + 1
    j = count * size // total + 1
    deviation = 2.0 * j * (1.0 - share) * binomial_weights(count, share, j)
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
    statistic = cell_parts if cells else share_departures
    rng = public_generator("closeness of choices", k, *sizes)
    held = batches(_DRAWS, len(sizes) * k, _HELD)
    drawn = np.concatenate(
        [statistic(_multinomial(rng, sizes, k, rows.stop - rows.start)) for rows in held]
    )
    parts = drawn if cells else parts_of_departures(drawn, np.array(sizes), 1.0)
    return readonly_copy(parts, np.float64)


@lru_cache(maxsize=64)
def ranking_parts(sizes: tuple[int, ...], m: int, kernel: RankKernel) -> FloatArray:
    """Return draws of the departures of groups that rank m items uniformly.

    Few items: all m! rankings, of which each group has multinomial counts. Else one public sample
    of rankings, whose re-labellings are drawn.
    """
    rng = public_generator("closeness of rankings", m, *sizes)
    total = sum(sizes)
    groups = len(sizes)
    draws = _DRAWS
    if m <= MAX_TABULATED:
        ranks = orders_of(m)
        drawn = partial(_multinomial, rng, sizes, len(ranks))
    else:
        ranks = uniform_rankings(rng, total, m)
        draws = min(_DRAWS, max(_WORK // (groups * total), _DRAWS // 10))
        drawn = partial(_relabelled, rng, sizes)
    gram = gram_of(ranks, kernel)
    held = batches(draws, groups * max(groups, len(ranks)), _HELD)
    apart = [kernel_departures(drawn(rows.stop - rows.start), gram) for rows in held]
    return readonly_copy(
        parts_of_departures(np.concatenate(apart), np.array(sizes), DIAMETER[kernel]), np.float64
    )


def quantiles(reference: FloatArray, groups: int, scale: float) -> FloatArray:
    """Return the public q_j of an omnibus from draws of its parts, for noise of this scale.

    q_j is the number that part j with its noise exceeds, under a reference distribution, with the
    probability that is its level. Parts are those of `cell_parts`, or T and departures.
    """
    levels = [0.02, *[0.015 / groups] * (2 * groups)]
    if reference.shape[1] == 2:
        levels = [0.025, 0.025]
    elif reference.shape[1] == 1 + groups:
        levels = [_WHOLE, *[_EACH / groups] * groups]
    return np.array(
        [
            noisy_quantile(draws, level, scale)
            for draws, level in zip(reference.T, levels, strict=True)
        ]
    )


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
    labels = rng.permuted(np.tile(np.repeat(np.arange(len(sizes)), sizes), (draws, 1)), axis=1)
    return np.stack([labels == g for g in range(len(sizes))], axis=1).astype(np.int32)
