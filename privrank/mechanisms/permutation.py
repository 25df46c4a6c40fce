r"""Statistics that compare samples, at the observed and at random assignments to the samples.

Data are counts by sample and *kind*, shape (G, k): categories, or single respondents when each is
a kind of its own (then every column has one 1). Permuting respondents among samples of fixed sizes
n_1, ..., n_G deals the column totals anew: a multivariate hypergeometric table. A statistic maps
tables, shape (t, G, k), to t numbers; with more than two samples it is the largest over the pairs
of samples.

**Privacy.** Each statistic comes with Delta, its largest change when one respondent is replaced,
at any one assignment. Sizes are public and the replaced respondent may be dealt into any sample.

- *Feature means.* T = |mean of Phi over sample g - mean over sample h| for a norm and features
  Phi(x): one mean moves by |Phi(x) - Phi(x')| / n_g, so T by at most diam / n_g, and
  Delta = diam / min(n_1, ..., n_G), with diam the diameter of the features. It is attained: sample
  h all at x, sample g all at x' but the one who moves from x' to x.
- *Pairs.* The largest of several numbers that each move by at most Delta moves by at most Delta:
  |max a_j - max b_j| <= max |a_j - b_j|. Pairs without the replaced respondent do not move.
- *Total variation.* Half the l1 norm of frequencies: diam = 1.
- *Kernels.* The norm of the kernel's Hilbert space; the diameters are below.
- *Chi-square.* See `chi_square_sensitivity`.

**Null.** When respondents are exchangeable, so are the observed table and the dealt ones.

**Secrecy.** Assignments are drawn secretly, like noise, and never shown. Only then is dealing
column totals as private as permuting respondents: the table has the same distribution, but with a
known seed a replaced respondent would change it altogether.

**Kernels of rankings**, for the distance of two samples' mean features (MMD).

With tau Kendall's correlation of two rankings of m items, that is 1 - 4 d / (m (m - 1)) for d pairs
that they order differently:

- ``"kendall"``, the kernel tau itself, distinguishes distributions by their pairwise fractions
  only;
- ``"mallows"``, exp(tau - 1), distinguishes all distributions: it is characteristic. A power series
  in tau with positive coefficients is the inner product of multiples of all products of signs of
  pairs, and every function of a ranking is a polynomial in these signs.

The features of two rankings lie sqrt(k(x, x) + k(y, y) - 2 k(x, y)) apart. Both
kernels are 1 on the diagonal and least at reversed rankings, tau = -1: the diameter is 2 for
``"kendall"`` and sqrt(2 (1 - e^-2)) = 1.31504 for ``"mallows"``.

**Many rankings.** A kernel matrix grows with the square of their number. For more than `MAX_MATRIX`
rankings of 7 to 100 items the features are explicit (:class:`Features`):

- of ``"kendall"`` the C = m (m - 1) / 2 signs of the pairs, divided by sqrt(C); only rounding
  changes;
- of ``"mallows"`` the part of degree one of exp(tau - 1), (1 + tau) / e, in the same way, and of
  the rest, K2 = exp(tau - 1) - (1 + tau) / e, the projection on the span of 1,024 public uniform
  rankings z. K2 is a power series in tau without negative coefficients, so positive definite, and
  its space is orthogonal to the part of degree one in their sum. The squared length of the
  projection of sum c_i K2(x_i, .) is |R' sum c_i K2(z, x_i)|^2 for R R' = (K2(z, z) +
  10^-9 I)^-1; the ridge only shortens it. A projection lengthens no difference, so diameters and
  sensitivities stay bounds for all z. Differences that are orthogonal to all z are not detected.

**Samples of the same respondents.** A re-labelling swaps the two answers of each respondent or
leaves them.

If the two answers of a respondent are exchangeable, so are the observed tables and those
in which the answers of each respondent are swapped or not, by independent fair coins. Every
statistic of two samples is a statistic of such tables.

**Privacy of swaps.** The unit is a respondent with both answers, one in each sample. Replacing a
respondent replaces one unit of sample 1 and one unit of sample 2 at every pattern of swaps, because
for both outcomes of the coin each sample contains one of the new answers. If a replaced unit moves
a statistic by at most Delta, for every table, a replaced respondent therefore moves it by at most
2 Delta. The total variation distance of n pairs moves by 2 / n, a kernel distance by 2 diam / n.
Both are attained if all other respondents differ as much as possible in one direction and the
replaced respondent changes to the opposite direction. The coins are drawn independently of the
data, so the smoothed p-value is as private as the p-value of other permutation tests
(:mod:`privrank.mechanisms.closeness`). Like other re-labellings, the coins stay secret.

References
----------
Gretton et al. (2012), https://jmlr.org/papers/v13/gretton12a.html; Acharya, Sun and Zhang (2018),
https://arxiv.org/abs/1707.05128; Jiao and Vert (2018),
https://doi.org/10.1109/TPAMI.2017.2719680; Mania, Ramdas, Wainwright, Jordan and Recht (2018), https://arxiv.org/abs/1603.08035.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from privrank.hypotheses.nulls import dealt_tables, public_generator, uniform_rankings
from privrank.plans.samples import MAX_FEATURED, MAX_MATRIX, RankKernel
from privrank.privacy.draws import LARGEST_SHUFFLE, draw_shuffles, secret_generator
from privrank.privacy.noise import draw_one_each
from privrank.util.arrays import FloatArray, IntArray, Rng, Words, batches
from privrank.util.solvers import bisect, spectrum

TableArray = NDArray[np.int32]

_LANDMARKS = 1_024
"""Public rankings on which features are projected."""

_RIDGE = 1e-9
"""Added to their kernel matrix."""

_FEW = 2**22
"""Up to this many elements are always shuffled, and so many at a time."""

_PER_KIND = 8
"""So many respondents per kind take about as long to shuffle as the kind takes to be dealt."""

_CELLS = 2**26
"""Cells of tables, or pairs of samples, held at a time."""

FLOOR = 1e-12
"""Added under the roots of squared norms, where a root would magnify rounding errors."""

_ROWS = 256
"""Rows of a kernel matrix held at a time."""

_WORDS = 128
"""Words of pair orders compared at a time: some thousand rankings stay in the cache."""

_BITS = 2**33
"""Bits of pair orders held at a time; with more, distances are counted ranking by ranking."""


@dataclass(frozen=True, slots=True, eq=False)
class Features:
    """Features of many rankings under a kernel, computed some rows at a time (see the module).

    Parameters
    ----------
    ranks : ndarray of int64, shape (r, m)
        Rankings as ranks 1..m without ties.
    kernel : {"kendall", "mallows"}
        The kernel.
    """

    ranks: IntArray
    kernel: RankKernel

    def means(self, tables: TableArray) -> FloatArray:
        """Return the features of d_g = p_g - p_G, as :func:`kernel_products` has them, by table.

        Returns
        -------
        ndarray of float64, shape (t, G - 1, d)
        """
        count, groups, _ = tables.shape
        m = self.ranks.shape[1]
        first, second = np.triu_indices(m, 1)
        sizes = tables[0].sum(axis=1, dtype=np.int64)
        landmarks, root, heights = _landmarks(m)
        signs = np.zeros((count * (groups - 1), len(first)))
        rest = np.zeros((count * (groups - 1), len(landmarks)))
        for rows in batches(len(self.ranks), len(first) + len(landmarks)):
            shares = tables[:, :-1, rows] / sizes[:-1, None] - tables[:, -1:, rows] / sizes[-1]
            flat = shares.reshape(len(signs), -1)
            ranks = self.ranks[rows]
            signs += flat @ np.where(ranks[:, first] < ranks[:, second], 1.0, -1.0)
            if self.kernel == "mallows":
                rest += flat @ heights[_discordances(ranks, landmarks)]
        signs /= math.sqrt(len(first))
        if self.kernel == "mallows":
            signs = np.concatenate((signs * math.exp(-0.5), rest @ root), axis=1)
        return signs.reshape(count, groups - 1, -1)


@lru_cache(maxsize=4)
def _landmarks(m: int) -> tuple[IntArray, FloatArray, FloatArray]:
    """Return public rankings z, an inverse root of K2(z, z), and K2 by Kendall distance."""
    pairs = m * (m - 1) // 2
    ranks = np.unique(
        uniform_rankings(public_generator("landmarks of rankings", m), _LANDMARKS, m), axis=0
    )
    tau = 1.0 - 2.0 * np.arange(pairs + 1) / pairs
    heights = np.asarray(np.exp(tau - 1.0) - (1.0 + tau) / math.e)
    values, vectors = spectrum(heights[_discordances(ranks, ranks)] + _RIDGE * np.eye(len(ranks)))
    return ranks, vectors / np.sqrt(values), heights


def _discordances(ranks: IntArray, others: IntArray) -> IntArray:
    """Return the Kendall distances of rankings from others, shape (rows, others)."""
    from privrank.kernels import rankings as kernels

    parts = zip(*(_words(kernels.packed_pairs(some)) for some in (ranks, others)), strict=True)
    return np.asarray(sum(kernels.differing_bits(own, other) for own, other in parts))


def _words(bits: Words) -> list[Words]:
    """Return the words of pair orders, in blocks that fit into the cache."""
    return [np.ascontiguousarray(bits[:, k : k + _WORDS]) for k in range(0, bits.shape[1], _WORDS)]


Gram = Iterable[tuple[int, FloatArray]] | Features


def deal(counts: IntArray, permutations: int, rng: Rng) -> TableArray:
    """Return tables of counts after random assignments of the respondents to the samples.

    Parameters
    ----------
    counts : ndarray of int64, shape (G, k)
        Respondents by sample and kind; fewer than 10^9 in all.
    permutations : int
        Number of tables.
    rng : numpy.random.Generator or None
        None takes the randomness from the operating system.

    Returns
    -------
    ndarray of int32, shape (permutations, G, k)
        Independent tables with the row and column sums of `counts`.

    Notes
    -----
    A small number of respondents is shuffled, exactly uniformly. With a large number, kinds are
    dealt one after the other (:func:`privrank.hypotheses.nulls.dealt_tables`). The distribution is
    the same for both methods.
    """
    counts = np.asarray(counts, dtype=np.int64)
    samples, kinds = counts.shape
    total = int(counts.sum())
    if total <= _PER_KIND * kinds or (total <= LARGEST_SHUFFLE and total * permutations <= _FEW):
        return _shuffled_tables(counts, permutations, rng)
    # the data decide how many numbers are used, so later draws with a seed are from another stream
    return dealt_tables(counts.sum(axis=1), counts.sum(axis=0), permutations, secret_generator(rng))


def _shuffled_tables(counts: IntArray, permutations: int, rng: Rng) -> TableArray:
    """Return tables after shuffling the respondents, a batch of permutations at a time."""
    samples, kinds = counts.shape
    kind = np.repeat(np.arange(kinds), counts.sum(axis=0))
    offset = kinds * np.repeat(np.arange(samples), counts.sum(axis=1))
    # the cell of a respondent: the table's number, the sample dealt to, the kind
    tables = np.empty((permutations, samples, kinds), dtype=np.int32)
    for rows in batches(permutations, len(kind), _FEW):
        number = rows.stop - rows.start
        if len(kind) > LARGEST_SHUFFLE:
            # beyond what can be shuffled exactly, as secret as other draws that are no noise
            cell = (rng or secret_generator()).permuted(np.tile(kind, (number, 1)), axis=1) + offset
        else:
            cell = kind[draw_shuffles(number, len(kind), rng)] + offset
        cell += counts.size * np.arange(number)[:, None]
        tables[rows] = np.bincount(cell.ravel(), minlength=number * counts.size).reshape(
            number, samples, kinds
        )
    return tables


def permuted_statistics(
    counts: IntArray,
    statistic: Callable[[TableArray], FloatArray],
    permutations: int,
    rng: Rng,
    pairs: IntArray | None = None,
) -> FloatArray:
    """Return the statistic of the data, then its values for random assignments, in batches.

    `statistic` maps tables, shape (t, G, k), to t numbers, or to t rows of several. Returns
    `permutations` + 1 of them, all secret (see `privrank.mechanisms.closeness` for what may be
    released). With `pairs`, the kinds of respondents in each of two samples, shape (2, n), their
    answers are swapped (`privrank.mechanisms.permutation`).
    """
    tables = np.asarray(counts, dtype=np.int32)[None]
    parts = []
    for rows in batches(permutations + 1, len(counts) * max(counts.shape), _CELLS):
        # the data go with the first batch: a kernel matrix is then computed once, not twice
        first = rows.start == 0
        number = rows.stop - rows.start - first
        fresh = (
            deal(counts, number, rng)
            if pairs is None
            else swapped(pairs, counts.shape[1], number, rng)
        )
        parts.append(statistic(np.concatenate((tables, fresh)) if first else fresh))
    return np.concatenate(parts)


def _largest(
    tables: TableArray, distance: Callable[[IntArray, IntArray, int], FloatArray]
) -> FloatArray:
    """Return the largest distance of two samples g and h by table; 0 of one alone.

    `distance` maps n_h c_g - n_g c_h, which is n_g n_h times the difference of their frequencies,
    c_g + c_h and n_g n_h.
    """
    sizes = tables[0].sum(axis=1, dtype=np.int64).tolist()
    largest = np.zeros(len(tables))
    for g, h in combinations(range(len(sizes)), 2):
        first = tables[:, g].astype(np.int64)
        second = tables[:, h].astype(np.int64)
        # whole numbers up to n_g n_h, for which equal statistics compare equal
        apart = first * sizes[h] - second * sizes[g]
        largest = np.maximum(largest, distance(apart, first + second, sizes[g] * sizes[h]))
    return largest


def largest_distance(tables: TableArray) -> FloatArray:
    """Return the largest total variation distance of two samples' frequencies, by table.

    Parameters
    ----------
    tables : ndarray of int32, shape (t, G, k)
        Counts by sample and category.

    Returns
    -------
    ndarray of float64, shape (t,)
        Sensitivity: ``mean_sensitivity(sizes, 1.0)``.
    """
    return _largest(tables, lambda apart, both, product: np.abs(apart).sum(axis=1) / (2 * product))


def chi_square(tables: TableArray) -> FloatArray:
    """Return the largest two-sample chi-square statistic of two samples, by table.

    sum (rho mu - nu / rho)^2 / (mu + nu) over the kinds that occur, mu and nu the counts of samples
    of n1 and n2, rho^2 = n2 / n1: Pearson's statistic. For samples of equal sizes it is the
    statistic sum ((mu - nu)^2 - mu - nu) / (mu + nu) of Chan, Diakonikolas, Valiant and Valiant,
    and of Acharya, Sun and Zhang. To it the number of kinds that occur is added. No permutation
    changes that number, so the permutation tests are one.
    """
    return _largest(
        tables,
        lambda apart, both, product: np.asarray(
            (apart.astype(np.float64) ** 2 / np.maximum(both, 1)).sum(axis=1) / product
        ),
    )


def kernel_distance(tables: TableArray, gram: Gram) -> FloatArray:
    """Return the largest distance of two samples' mean features (MMD), by table.

    Parameters
    ----------
    tables : ndarray of int32, shape (t, G, k)
        Counts by sample and kind.
    gram : iterable of (int, ndarray of float64)
        The kernel matrix, as for `kernel_products`.

    Returns
    -------
    ndarray of float64, shape (t,)
        sqrt(T^2 + 1e-12) for T the root of the V-statistic, not its square; sqrt(x^2 + c) changes
        no faster than x. Sensitivity: ``mean_sensitivity(sizes, diameter)``.
    """
    products = kernel_products(tables, gram)
    g, h = np.triu_indices(tables.shape[1], 1)
    squared = products[:, g, g] + products[:, h, h] - 2.0 * products[:, g, h]
    return np.asarray(np.sqrt(squared.max(axis=1, initial=0.0) + FLOOR))


def kernel_products(tables: TableArray, gram: Gram) -> FloatArray:
    """Return the products d_g' K d_h, d_g = p_g - p_G for p_g the frequencies of sample g.

    Parameters
    ----------
    tables : ndarray of int32, shape (t, G, k)
        Counts by sample and kind; no sample is empty.
    gram : iterable of (int, ndarray of float64), or Features
        Upper part of the (k, k) kernel matrix K of the kinds by blocks of rows, as
        :func:`gram_blocks` yields it; ``[(0, matrix)]`` for a whole one. Or features of the kinds.

    Returns
    -------
    ndarray of float64, shape (t, G, G)
        Inner products of differences of mean features.

    Notes
    -----
    Matrix products over all tables. Only the upper part of K is used: with half its diagonal block
    it is U, and K = U + U'. With explicit features the products are the products of their means.
    """
    if isinstance(gram, Features):
        means = gram.means(tables)
        return np.pad(means @ means.transpose(0, 2, 1), ((0, 0), (0, 1), (0, 1)))
    sizes = tables[0].sum(axis=1, dtype=np.int64)
    shares = np.ascontiguousarray(tables[:, :-1] / sizes[:-1, None])
    shares -= tables[:, -1:] / sizes[-1]
    count, others, kinds = shares.shape
    flat = shares.reshape(count * others, kinds)
    # d_g'K d_h = d_g'U d_h + d_h'U d_g; differences from the last sample, whose own is 0
    halves = np.zeros((count, others, others))
    for first, block in gram:
        rows = len(block)
        upper = block.copy()
        upper[:, :rows] *= 0.5
        products = (flat[:, first : first + rows] @ upper).reshape(count, others, kinds - first)
        halves += np.einsum("tgk,thk->tgh", products, shares[:, :, first:], optimize=others > 1)
    return np.pad(halves + halves.transpose(0, 2, 1), ((0, 0), (0, 1), (0, 1)))


def gram_of(ranks: IntArray, kernel: RankKernel) -> Gram:
    """Return the kernel matrix of rankings or, depending on public sizes, their features."""
    if len(ranks) > MAX_MATRIX and ranks.shape[1] <= MAX_FEATURED:
        return Features(ranks, kernel)
    return list(gram_blocks(ranks, kernel))


def gram_blocks(ranks: IntArray, kernel: RankKernel) -> Iterator[tuple[int, FloatArray]]:
    """Yield the upper part of a kernel matrix of rankings, some rows at a time.

    Parameters
    ----------
    ranks : ndarray of int64, shape (r, m)
        Rankings of at least two items, as ranks 1..m without ties.
    kernel : {"kendall", "mallows"}
        tau or exp(tau - 1), tau Kendall's correlation of two rankings.

    Yields
    ------
    (int, ndarray of float64)
        First row f of the block, and the entries of its rows in the columns f, ..., r - 1.
    """
    from privrank.kernels import rankings as kernels

    rows, m = ranks.shape
    pairs = m * (m - 1) // 2
    parts = _words(kernels.packed_pairs(ranks)) if rows * pairs <= _BITS else []
    for first in range(0, rows, _ROWS):
        own = slice(first, first + _ROWS)
        if parts:
            discordant = kernels.differing_bits(parts[0][own], parts[0][first:])
            for part in parts[1:]:
                discordant += kernels.differing_bits(part[own], part[first:])
        else:
            discordant = np.array(
                [kernels.kendall_to_center(ranks[first:], row) for row in ranks[own]]
            )
        block = discordant * (-2.0 / pairs)  # tau - 1
        block = np.exp(block) if kernel == "mallows" else block + 1.0
        yield first, block


def swapped(pairs: IntArray, kinds: int, patterns: int, rng: Rng) -> TableArray:
    """Return tables of counts after random swaps within the pairs.

    Parameters
    ----------
    pairs : ndarray of int64, shape (2, n)
        The kind of each respondent's answer in the first and in the second sample.
    kinds : int
        Number of kinds.
    patterns : int
        Number of tables.
    rng : numpy.random.Generator or None
        None takes the coins from the operating system.

    Returns
    -------
    ndarray of int32, shape (patterns, 2, kinds)
        Independent tables.
    """
    n = pairs.shape[1]
    tables = np.empty((patterns, 2, kinds), dtype=np.int32)
    for rows in batches(patterns, n):
        number = rows.stop - rows.start
        # where the coin is 1 the answers of a respondent change places
        coins = draw_one_each(np.full(number * n, 2), rng).reshape(number, n)
        offset = 2 * kinds * np.arange(number)[:, None]
        cells = np.concatenate([pairs[side] + offset + kinds * (coins ^ side) for side in (0, 1)])
        tables[rows] = np.bincount(cells.ravel(), minlength=2 * kinds * number).reshape(
            number, 2, kinds
        )
    return tables


def noisy_quantile(draws: FloatArray, level: float, scale: float, *, copies: int = 1) -> float:
    """Return the number that a statistic exceeds with a given probability, noise included.

    Parameters
    ----------
    draws : ndarray of float64, shape (b,)
        Draws of the statistic under a public reference distribution, before noise.
    level : float
        The probability, in (0, 1).
    scale : float
        Scale of the Laplace noise that will be added; 0 for none.
    copies : {1, 2}
        How many such variables are added.

    Returns
    -------
    float
        The q with mean_b P(T_b + L >= q) = level, L the sum of them; without noise the least draw
        that a share of at most `level` of the draws exceeds.

    Notes
    -----
    If noise dominates, q is the mean of the draws plus a term that depends on the noise alone. Then
    statistics with different spreads have equal weight in an omnibus. If it does not, q is a
    quantile of the draws.
    """
    if scale == 0:
        return float(np.quantile(draws, 1.0 - level, method="inverted_cdf"))
    reach = copies * scale * (2.0 - math.log(min(level, 1.0 - level)))

    def exceeded(q: float) -> bool:
        return bool(laplace_tail((q - draws) / scale, copies).mean() > level)

    return bisect(exceeded, float(draws.min()) - reach, float(draws.max()) + reach, 60)[1]


def laplace_tail(steps: FloatArray, copies: int = 1) -> FloatArray:
    """Return P(L >= steps) for a Laplace variable L of scale 1, or for the sum of two `copies`."""
    tail = 0.5 * np.exp(-np.abs(steps))
    if copies == 2:
        tail *= 1.0 + 0.5 * np.abs(steps)
    return np.where(steps > 0, tail, 1.0 - tail)
