"""Rank aggregation of Alabi, Ghazi, Kumar and Manurangsi (2022), corrected.

Private Rank Aggregation in Central and Local Models: the algorithms for the central model. They are
provided for comparison, because the default has a smaller loss at the same privacy. There are n
rankings of m items and D = m (m - 1) / 2 pairs; w_uv is the fraction of rankings that place u
before v, and q is the cap on queries.

- Section 3.1, all of w with Laplace noise, then Kemeny's order: ``method="pairs-laplace"``. It
  differs from ``method="kemeny"`` only in its noise, and is planned and released in the same way.
- Algorithm 1, KwikSort with sequential queries of noisy w: ``method="kwiksort"``. It uses the noise
  of Corollary 6 or, with a delta, the noise of Corollary 7 if that is smaller.
- The exponential mechanism of Table 2: ``method="exponential"``.

Errors in the paper, corrected here, are listed in docs/papers/agkm22.md. The cap q is computed by
:func:`privrank.plans.aggregation.sort_cap`.

**Privacy.** A unit has L steps on each pair. Replacing it moves each count n L w_uv by at most L
and the score of any one order by at most L D
(:func:`privrank.mechanisms.samples.release_aggregation`).

*Algorithm 1.* Each list that is divided is a function of the pivots, which are public, and of
earlier noisy counts. On any data at most q counts are queried, because a list is divided only if
the remainder of q suffices. So by adaptive composition, discrete Laplace noise of scale
q L / epsilon_1 makes the whole transcript epsilon_1-private, and the order is a function of the
transcript. A sort that is not finished is replaced by KwikSort on all D counts with noise of scale
D L / epsilon_2. Both transcript and replacement are spent, whether or not the replacement is used:
epsilon_1 + epsilon_2 = epsilon. If q is D, no replacement is needed and epsilon_2 = 0.

*Algorithm 1 with a delta.* Let X be discrete Gaussian, and let H_t(P, Q) be the sum of
max(0, P - t Q) over all outcomes. A count that moves by d, |d| <= L, is not easier to distinguish
than a count that moves by L: H_t(X, X + d) <= H_t(X, X + L) for all t >= 0
(:func:`privrank.privacy.accounting.lattice_delta`). Let a be the answers before the last query,
with probabilities P(a) and Q(a) on neighbours. H_t of the transcripts is the sum over a of P(a)
times H_(t Q(a) / P(a)) of the last answer given a. So it does not decrease if the last count always
moves by L. The last answer is then independent of the others and can be moved to the first
position, which makes the previous answer the last. Let a run with fewer than q queries ask for
further counts and ignore them. After q such steps the transcripts are transcripts of q counts that
all move by L, with l2 sensitivity L q^(1/2). At t = e^epsilon_1 the result is `lattice_delta` with
q coordinates and reach L, and the scale makes it at most delta. The replacement keeps its Laplace
noise at epsilon_2, so both together are (epsilon_1 + epsilon_2, delta)-private by adaptive
composition. Zero-concentrated privacy also composes adaptively: a count with Gaussian noise of
scale s has rho = (L / s)^2 / 2, and the replacement has at most epsilon_2^2 / 2. Together they have
rho = q (L / s)^2 / 2 + epsilon_2^2 / 2.

*Exponential mechanism.* An order is drawn with probability proportional to exp(-rate score).
Replacing one unit changes each score by at most L D, so numerator and normaliser each change by a
factor of at most exp(rate L D). The draw is epsilon-private at rate = epsilon / (2 L D). This
assumes idealised arithmetic.

Reference: https://arxiv.org/abs/2112.14652.

**Yan, Li and Liu (2020)**, LDP-KwikSort, compare with a central DP-KwikSort. Its corrected form is
``method="kwiksort-hay"``: KwikSort with a noisy count C_uv for each comparison, at most q counts.
Lists that are not divided when q is exhausted remain in the random order of the pivots (Hay,
Elagina and Miklau, 2017). Errors in the paper are listed in docs/papers/yll20.md.

*Privacy.* As for Algorithm 1, at most q counts are queried on any data, each moved by at most L if
a unit is replaced. So discrete Laplace noise of scale q L / epsilon makes the transcript
epsilon-private. The order is a function of the transcript and the pivots. With a delta its noise is
Gaussian if that is smaller, calibrated as for Algorithm 1 with epsilon_1 = epsilon.

References: https://arxiv.org/abs/1908.04486; Hay, Elagina and Miklau (2017), Differentially private
rank aggregation, SIAM International Conference on Data Mining.
"""

from collections.abc import Callable

import numpy as np

from privrank.consensus.orders import kwiksort, pair_matrix
from privrank.mechanisms.samples import Found
from privrank.mechanisms.spend import draw
from privrank.privacy.noise import draw_below
from privrank.release.names import FALLBACK, ORDER, PAIRS, QUERIES, TOTALS
from privrank.release.survey import Plan
from privrank.util.arrays import AnyArray, FloatArray, IntArray, Rng


def noisy_kwiksort(
    counts: IntArray, n: int, pivots: IntArray, q: int, noisy: Callable[[IntArray], object]
) -> tuple[IntArray, int, bool]:
    """Sort with a fresh noisy count for each comparison, at most `q` counts.

    Returns the order (best first), the number of queries, and whether the sort is finished. Lists
    that were not divided are in the order of the pivots.

    `counts[u, v]` is how many of `n` rankings place u before v; entries (u, v) and (v, u) add up to
    n. It is sensitive and passed only to `noisy`, which adds independent noise to a vector of
    counts. The pivot of a list is its first member in `pivots`, a uniform permutation.
    """
    order = np.array(pivots, dtype=np.int64)
    waiting = [(0, len(order))]
    queries = 0
    while waiting:
        start, end = waiting.pop()
        if end - start < 2:
            continue
        if queries + end - start - 1 > q:
            return order, queries, False
        # one noisy count for each member of the list against its pivot
        pivot = order[start]
        others = order[start + 1 : end].copy()
        queries += len(others)
        ahead = 2 * np.asarray(noisy(counts[others, pivot])) > n
        order[start:end] = np.concatenate((others[ahead], [pivot], others[~ahead]))
        place = start + int(ahead.sum())
        waiting += [(start, place), (place + 1, end)]
    return order, queries, True


def exponential_order(pairs: AnyArray, rate: float, uniforms: FloatArray) -> IntArray:
    """Draw an order with probability proportional to exp(-rate score).

    `pairs` is a pair matrix of at most about 20 items (memory and time grow like 2^m), and `rate`
    is at least 0. `uniforms` are independent uniform numbers in [0, 1) from the caller's source of
    noise: one per position, the last position first.

    Notes
    -----
    **Statistic.** The orders of a set A that end with i have total weight
    Z(A - i) exp(-rate cost(i, A - i)). So drawing the last item in proportion to these weights,
    then the last of the remaining items, and so on, gives each order its exact probability.
    """
    from privrank.kernels.subsets import last_terms, split_costs, subset_values

    block = rate * np.array(pairs, dtype=np.float64)
    np.fill_diagonal(block, 0.0)
    m = len(block)
    halves = split_costs(block)
    values = subset_values(halves, soft=True)
    subset = (1 << m) - 1
    members = list(range(m))
    order = np.empty(m, dtype=np.int64)
    for place, uniform in zip(range(m - 1, -1, -1), uniforms, strict=True):
        cumulative = np.exp(values[subset] - last_terms(values, halves, subset, members)).cumsum()
        pick = int(np.searchsorted(cumulative, uniform * cumulative[-1], side="right"))
        last = members.pop(min(pick, len(members) - 1))
        order[place] = last
        subset ^= 1 << last
    return order


def finder(plan: Plan) -> Callable[..., Found] | None:
    """Return the function that draws a plan's order, None if it releases votes."""
    return None if {PAIRS, TOTALS} & plan.parts.keys() else order_in


def order_in(
    plan: Plan, counts: IntArray, weight: int, tie_break: tuple[int, ...], rng: Rng
) -> Found:
    """Return the order drawn by a plan of this paper."""
    if "rate" in plan.settings:
        uniforms = np.array([draw_below(2**53, rng) * 2.0**-53 for _ in tie_break])
        return {ORDER: exponential_order(counts, plan.number("rate"), uniforms)}, {}
    pivots = np.array(tie_break)
    order, _, finished = noisy_kwiksort(
        counts,
        weight,
        pivots,
        int(plan.number("cap")),
        lambda values: draw(plan.parts[QUERIES], values, rng),
    )
    if finished or FALLBACK not in plan.parts:
        return {ORDER: order}, {}
    noisy = draw(plan.parts[FALLBACK], counts[np.triu_indices(len(counts), 1)], rng)
    return {ORDER: kwiksort(pair_matrix(noisy / weight), pivots)}, {}
