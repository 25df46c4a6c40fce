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

References
----------
Phipson and Smyth (2010), https://doi.org/10.2202/1544-6115.1585; Kim and Schrab (2023),
https://arxiv.org/abs/2310.19043; Acharya, Sun and Zhang (2018), https://arxiv.org/abs/1707.05128.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from privrank.encode.encoded import EncodedGroups, EncodedSample
from privrank.hypotheses.interval import THRESHOLD_LEVEL
from privrank.hypotheses.statistic import Comparison
from privrank.mechanisms import departures
from privrank.mechanisms.permutation import (
    Gram,
    TableArray,
    chi_square,
    gram_blocks,
    gram_of,
    kernel_distance,
    largest_distance,
    noisy_quantile,
    permuted_statistics,
)
from privrank.mechanisms.samples import completed_groups, one_row_each, tabulated
from privrank.mechanisms.spend import Drawn, draw, spend_and_release
from privrank.plans.closeness import (
    DIAMETER,
    MAX_TABULATED,
    ONE_NUMBER,
    RELEASED_STEPS,
    RankKernel,
)
from privrank.privacy.budget import Ledger
from privrank.privacy.draws import draw_permutation
from privrank.privacy.noise import DiscreteLaplace, draw_cells
from privrank.release.names import DECISION, DETAILS, PVALUE, STATISTIC
from privrank.release.plan import Plan
from privrank.release.release import Release
from privrank.release.survey import Sample
from privrank.util.arrays import FloatArray, IntArray, orders_of
from privrank.util.checks import Rng

Measure = Callable[[TableArray], FloatArray]

_TIE = 2.0**-30
"""Statistics no further apart than this, relative to the largest, may be equal but for rounding."""


@dataclass(frozen=True, slots=True)
class _Data:
    """The input of a permutation test: counts by sample and kind; no sample is empty.

    Parameters
    ----------
    counts : ndarray of int64, shape (G, k)
        Units by sample and kind.
    gram : list, Features or None
        The kernel matrix of kinds of rankings, by blocks, or features of many.
    pairs : ndarray of int64, shape (2, n), or None
        The kinds of each respondent's answers in two samples of the same respondents.
    """

    counts: IntArray
    gram: Gram | None = None
    pairs: IntArray | None = None


def release_comparison(
    encoded: EncodedGroups,
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
    encoded : EncodedGroups
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
    sample = encoded.sample

    def drawn() -> Drawn:
        # under private labels the number of empty groups decides how much randomness is used
        early = draw_permutation(len(sample.items), rng) if sample.private_labels else None
        parts = [one_row_each(part, rng, apart=sample.paired) for part in encoded._parts]
        data = completed_groups(EncodedGroups(sample, parts, encoded._partners), rng)
        statistics = permuted(data, comparison, plan, public, rng)
        name = PVALUE if comparison.decision is None else DECISION
        values = {name: np.array([_outcome(comparison, plan, statistics[:, 0], rng)])}
        if STATISTIC in plan.parts:
            values[STATISTIC] = _effect(plan, statistics[:, -1], rng)
        values |= draw_details(data, plan, rng)
        return Drawn(values, early or draw_permutation(len(sample.items), rng))

    return spend_and_release(plan, sample, drawn, budget=budget, rng=rng)


def simulated_groups(groups: Sequence[IntArray], sample: Sample) -> EncodedGroups:
    """Return groups of simulated data, with one row per unit, of the sizes of a sample."""
    facts = replace(sample, unit="row", max_rows=1)
    parts = [
        EncodedSample(replace(facts, nobs=size, groups=()), rows)
        for rows, size in zip(groups, sample.sizes, strict=True)
    ]
    return EncodedGroups(facts, parts)


def permuted(
    encoded: EncodedGroups, comparison: Comparison, plan: Plan, public: FloatArray, rng: Rng
) -> FloatArray:
    """Return the statistics of the data and of all re-labellings, which are sensitive.

    In rows, with the observed data first. The distance of two groups is a second column if it is
    needed in addition to another statistic. `public` is from :func:`public_quantiles`.
    """
    data = _data(encoded, comparison)
    measures = [_measure(data, comparison, encoded.sample, public)]
    if STATISTIC in plan.parts and comparison.form != "pairs":
        measures.append(_pairs(data, comparison))
    count = int(plan.number("permutations"))

    def columns(tables: TableArray) -> FloatArray:
        return np.stack([measure(tables) for measure in measures], axis=1)

    return permuted_statistics(data.counts, columns, count, rng, data.pairs)


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
    items = len(sample.items)
    if comparison.statistic in ("mallows", "kendall"):
        drawn = departures.ranking_parts(sizes, items, comparison.statistic)
    else:
        drawn = departures.choice_parts(sizes, items, cells=comparison.form == "cells")
    return departures.quantiles(drawn, len(sizes), scale)


def _measure(data: _Data, comparison: Comparison, sample: Sample, public: FloatArray) -> Measure:
    """Return the statistic of the test, as a function of tables."""
    if comparison.form == "pairs":
        return _pairs(data, comparison)
    apart: Measure = (
        departures.share_departures
        if data.gram is None
        else partial(departures.kernel_departures, gram=data.gram)
    )
    if comparison.form == "sum":
        return lambda tables: apart(tables).sum(axis=1)
    if comparison.form == "cells":
        return lambda tables: departures.omnibus_values(departures.cell_parts(tables), public)
    ranked = comparison.statistic in ("mallows", "kendall")
    parts = partial(
        departures.parts_of_departures,
        sizes=np.array(sample.sizes),
        diameter=DIAMETER[_kernel(comparison)] if ranked else 1.0,
    )
    return lambda tables: departures.omnibus_values(parts(apart(tables)), public)


def _pairs(data: _Data, comparison: Comparison) -> Measure:
    """Return the largest distance of two groups, as a function of tables."""
    if data.gram is not None:
        return partial(kernel_distance, gram=data.gram)
    return chi_square if comparison.statistic == "chi-square" else largest_distance


def _data(encoded: EncodedGroups, comparison: Comparison) -> _Data:
    """Return counts by sample and kind of units with one row each; sensitive.

    Groups without units, if any, are left out.
    """
    sample = encoded.sample
    parts = [part for part in encoded._parts if part.sample.nobs]
    people = [part.sample.nobs for part in parts]
    if sample.kind == "choices":
        return _Data(
            np.array([tabulated(part) for part in parts]),
            pairs=_pairs_of([part._rows.ravel() for part in parts], encoded._partners),
        )
    ranks = np.concatenate([part._rows for part in parts])
    # of few items the kinds are all m! orders, of many each respondent is a kind
    m = len(sample.items)
    if m <= MAX_TABULATED:
        from privrank.kernels.rankings import places_of

        orders = orders_of(m)
        blocks = np.split(places_of(ranks), np.cumsum(people)[:-1])
        return _Data(
            np.array([np.bincount(block, minlength=len(orders)) for block in blocks]),
            gram=list(gram_blocks(orders, _kernel(comparison))),
            pairs=_pairs_of(blocks, encoded._partners),
        )
    return _Data(
        np.repeat(np.eye(len(people), dtype=np.int64), people, axis=1),
        gram=gram_of(ranks, _kernel(comparison)),
        pairs=_pairs_of(
            np.split(np.arange(sum(people)), np.cumsum(people)[:-1]), encoded._partners
        ),
    )


def _kernel(comparison: Comparison) -> RankKernel:
    return "kendall" if comparison.statistic == "kendall" else "mallows"


def _pairs_of(kinds: list[IntArray], partners: IntArray | None) -> IntArray | None:
    """Return the kinds of each respondent's answers, where two samples are of the same."""
    return None if partners is None else np.stack([kinds[0], kinds[1][partners]])


def draw_details(encoded: EncodedGroups, plan: Plan, rng: Rng) -> dict[str, IntArray]:
    """Return the totals by group with the noise that was planned for them, if any were.

    Units have one row each (:func:`privrank.mechanisms.samples.one_row_each`).
    """
    details = {}
    for number, part in enumerate(encoded._parts):
        name = f"{DETAILS} {number}"
        if name in plan.parts:
            rows = tabulated(part)
            totals = rows if part.sample.kind == "choices" else (rows - 1).sum(axis=0)
            details[name] = draw(plan.parts[name], totals, rng)
    return details


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
    most Delta, and so do their mean and c. For the mean of tails rises with the T_i, and c moves by
    as much as they do if all move alike. So the l1 sensitivity of T_0 and either of the two is
    2 Delta, whatever else is released of the same re-labellings.
    """
    return noisy_quantile(statistics, level, b, copies=2)
